// The page's script: reads the data, fills the page, draws the charts. It computes no statistic and rounds no number:
// every number comes with its words from the program that made the page.
//
// Text from results files is only ever set as text (textContent, append), and is escaped for the chart library, which
// takes a little markup in what it is given.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);

// Elements ------------------------------------------------------------------------------------------------------

/** An element with properties and children; children that are strings become text. */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** `text` for the chart library, so that markup in it is shown and not obeyed. */
const plain = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

/** A definition list of pairs. */
const definitions = (pairs) =>
  make('dl', {}, ...pairs.flatMap(([term, text]) => [make('dt', {}, term), make('dd', {}, text)]));

/** A table. Columns have a title and perhaps a meaning and `words`; rows a head, cells ({text, value}) and a class. */
function tableOf({ caption, columns, rows }, { sortable = false, most = Infinity } = {}) {
  const body = make('tbody');
  const more = make('button', { type: 'button', className: 'more' });
  let order = rows;
  let shown = most;
  const fill = () => {
    body.replaceChildren(...order.slice(0, shown).map(rowOf));
    more.hidden = order.length <= shown;
    more.textContent = `Show all ${order.length} rows`;
  };
  const rowOf = (row) => make('tr', { className: row.className || '' },
    make('th', { scope: 'row' }, row.head, row.why ? make('span', { className: 'why' }, row.why) : null),
    ...row.cells.map((cell, at) =>
      make('td', { className: cell.className || (columns[at + 1].words ? 'words' : '') }, ...[cell.text].flat())));
  const heads = columns.map((column, at) => {
    const title = column.meaning ? make('abbr', { title: column.meaning }, column.title) : column.title;
    const head = make('th', { scope: 'col', className: column.words ? 'words' : '' });
    if (!sortable) {
      head.append(title);
      return head;
    }
    const button = make('button', { type: 'button' }, title);
    button.addEventListener('click', () => {
      const down = head.ariaSort === 'ascending';
      heads.forEach((other) => other.removeAttribute('aria-sort'));
      head.ariaSort = down ? 'descending' : 'ascending';
      order = sorted(rows, at, down);
      fill();
    });
    head.append(button);
    return head;
  });
  more.addEventListener('click', () => {
    shown = Infinity;
    fill();
  });
  fill();
  const element = make('table', {}, make('caption', {}, caption), make('thead', {}, make('tr', {}, ...heads)), body);
  const scroll = make('div', { className: 'scroll', tabIndex: 0, role: 'region', ariaLabel: caption }, element);
  return make('div', {}, scroll, more);
}

/** `rows` by the column `at`: numbers by their value, words by the alphabet, what is missing last. */
function sorted(rows, at, down) {
  const key = (row) => (at === 0 ? row.head : row.cells[at - 1].value);
  const compare = (a, b) => (typeof a === 'string' ? a.localeCompare(b) : a - b);
  const missing = (row) => key(row) === null || key(row) === undefined;
  return [...rows].sort((a, b) => {
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    return down ? compare(key(b), key(a)) : compare(key(a), key(b));
  });
}

// Rows ----------------------------------------------------------------------------------------------------------

const names = data.series.map(([name]) => name);
const styleOf = (name) => {
  const [, color, dash, marker, sign] = data.series[names.indexOf(name)];
  return { color, dash, marker, sign };
};

/** Every row that charts can show, with what its block says of it. */
const rows = data.runs.flatMap((run, host) => run.blocks.filter((block) => block.chart).flatMap((block) => {
  const [workload, place, size, sizeText, sizeWords] = block.chart;
  const at = new Map(block.columns.map((column, index) => [column.title, index]));
  return block.rows.map((row) => ({ ...row, name: names[row.s], host, workload, place, size, sizeText, sizeWords, block, at }));
}));

/** What the cell of `row` under `title` says; a dash where there is none. */
const cell = (row, title) => row.c[row.at.get(title)] ?? '-';

/** The number of the cell of `row` under `title`, with its interval if it has one; null where there is none. */
function number(row, title) {
  const found = row.n[row.at.get(title)];
  if (found === null || found === undefined) return null;
  const [value, low, high] = Array.isArray(found) ? found : [found];
  return { value, low, high };
}

const unique = (values) => [...new Set(values)];
const workloadRows = (workload) => rows.filter((row) => row.workload === workload);

/** The columns of `some` rows, each once, in the order of the tables. */
function columnsOf(some) {
  const columns = new Map();
  for (const block of new Set(some.map((row) => row.block))) {
    block.columns.forEach((column) => columns.has(column.title) || columns.set(column.title, column));
  }
  return [...columns.values()];
}

/** The column that says how long an iteration takes; where there is none, the first. */
const timeOf = (some) => {
  const titles = columnsOf(some).map((column) => column.title);
  return ['round trip', 'time'].find((title) => titles.includes(title)) ?? titles[0];
};

// What is chosen ------------------------------------------------------------------------------------------------

const METRICS = {
  'round trip': 'round trip', 'rtt/2': 'half a round trip', time: 'time', rate: 'throughput', p99: '99th percentile',
  'p99.9': '99.9th percentile', cpu: 'CPU time, both endpoints', switches: 'context switches', faults: 'page faults',
  '×floor': 'multiple of the floor', '×wake': 'multiple of the floor that wakes a sleeper', drift: 'drift that the floor leaves', user: 'user CPU time', system: 'system CPU time', 'all/s': 'iterations a second, all peers',
  lost: 'part of the messages lost', least: 'iterations of the client with the fewest', most: 'iterations of the client with the most',
};
/** Of these more is better. */
const HIGHER = new Set(['rate', 'all/s', 'fairness', 'least']);
const chosen = { off: new Set() };

/** Fills the select `id` with [value, text] options and keeps what was chosen, if it is still there. */
function offer(id, options, wanted) {
  const select = byId(id);
  const before = wanted ?? select.value;
  select.replaceChildren(...options.map(([value, text]) => make('option', { value: String(value) }, text)));
  if (options.some(([value]) => String(value) === before)) select.value = before;
  select.closest('label').hidden = options.length < 2;
  return select.value;
}

/** What the charts start with if the page was made for a metric: that, and the first workload that has it. */
function wantedFirst() {
  const of = rows.find((row) => data.metric && row.at.has(data.metric));
  return of ? { workload: of.workload, place: of.place, metric: data.metric } : {};
}

/** Reads the controls, from the first to the last: what a control offers depends on those before it. */
function choose(wanted = {}) {
  const workloads = unique(rows.map((row) => row.workload));
  chosen.workload = offer('workload', workloads.map((name) => [name, name]), wanted.workload);
  const all = workloadRows(chosen.workload);
  chosen.place = offer('place', unique(all.map((row) => row.place)).map((place) => [place, place]), wanted.place);
  const here = all.filter((row) => row.place === chosen.place);
  const metrics = columnsOf(here).filter((column) => column.unit);
  chosen.metric = offer('metric', metrics.map(({ title }) => [title, METRICS[title] ?? title]), wanted.metric);
  chosen.unit = metrics.find(({ title }) => title === chosen.metric)?.unit ?? 'number';
  const sizes = new Map(here.map((row) => [row.size, row.sizeText]));
  // What carries no payload comes last, so that the first choice is a size.
  const sizeOptions = [...sizes].sort(([a], [b]) => (a ?? Infinity) - (b ?? Infinity)).map(([size, text]) => [size, text || 'no payload']);
  // Few mechanisms have empty messages: they are not what the page starts with.
  chosen.size = offer('size', sizeOptions, byId('size').value || String(sizeOptions.find(([size]) => size > 0)?.[0]));
  chosen.host = offer('host', [['all', 'all hosts'], ...data.runs.map((run, host) => [host, run.label])]);
  byId('host').closest('label').hidden = data.runs.length < 2;
  [chosen.xScale, chosen.yScale] = byId('axes').value.split(' ');
  chosen.rows = here.filter((row) => chosen.host === 'all' || String(row.host) === chosen.host);
  chosen.sizes = sizeOptions;
  chosen.higher = HIGHER.has(chosen.metric);
}

/** The rows that charts show: of the series that are switched on. */
const shownRows = () => chosen.rows.filter((row) => !chosen.off.has(row.name));
/** The same at the size chosen. */
const atSize = () => shownRows().filter((row) => String(row.size) === chosen.size);

/** The names of the series here, the best first, by what each takes at the size chosen. */
function ranking() {
  const time = timeOf(chosen.rows);
  const best = new Map(unique(chosen.rows.map((row) => row.name)).map((name) => [name, Infinity]));
  for (const row of chosen.rows) {
    const found = String(row.size) === chosen.size ? number(row, time) : null;
    if (found) best.set(row.name, Math.min(best.get(row.name), found.value));
  }
  return [...best].sort(([, a], [, b]) => a - b).map(([name]) => name);
}

/** The mechanism that does nothing, by which the instrument measures itself. */
const INSTRUMENT = 'null';
/** More series than this are not shown at first: they would hide each other. */
const MOST_SERIES = 10;

/** The switches of the series, those that are here. */
function offerSeries() {
  const ranked = ranking();
  const on = (name) => !chosen.off.has(name);
  byId('names').replaceChildren(...ranked.map((name) => {
    const box = make('input', { type: 'checkbox', checked: on(name) });
    box.addEventListener('change', () => {
      chosen.off[box.checked ? 'delete' : 'add'](name);
      countSeries(ranked);
      redraw();
    });
    const { color, sign } = styleOf(name);
    const swatch = make('span', { ariaHidden: 'true' }, sign);
    swatch.style.color = color;
    return make('li', {}, make('label', {}, box, swatch, name));
  }));
  countSeries(ranked);
}

const countSeries = (ranked) => {
  byId('shown').textContent = `${ranked.filter((name) => !chosen.off.has(name)).length} of ${ranked.length} shown`;
};

/** Switches on the series for which `wanted` of their rank holds. */
function switchSeries(wanted) {
  chosen.off = new Set(ranking().filter((_, rank) => !wanted(rank)));
  offerSeries();
  redraw();
}

// Charts --------------------------------------------------------------------------------------------------------

const FACTOR = { ns: 1e-9, 'bytes/s': 1, bytes: 1, number: 1 };
const DASHES = ['solid', 'dash', 'dot', 'dashdot', 'longdash'];

/** An axis for `unit`. The library writes SI prefixes itself, for any scale and any zoom. */
function axis(unit, scale, title) {
  const base = { title: { text: plain(title), standoff: 8 }, automargin: true, zeroline: false };
  if (scale !== 'log') return { ...base, type: 'linear', rangemode: 'tozero', tickformat: unit === 'number' ? '~r' : '~s', ticksuffix: SUFFIX[unit] };
  return { ...base, type: 'log' };
}

const SUFFIX = { ns: 's', 'bytes/s': 'B/s', bytes: '', number: '' };
const PREFIXES = ['p', 'n', 'µ', 'm', '', 'k', 'M', 'G', 'T'];

/** Numbers from `first` to below ten times that, in steps of `step`, all of them over `first`. */
const between = (first, step) => Array.from({ length: Math.ceil((9 * first) / step) }, (_, at) => (first + at * step) / first);
/** What powers of ten are multiplied by, the coarsest first. */
const STEPS = [[1], [1, 2, 5], [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9], between(100, 5), between(1000, 10)];

/** Marks for a logarithmic axis over `values`: the coarsest of which there are at least three. */
function logarithmicTicks(values, unit) {
  const exponents = values.filter((value) => value > 0).map(Math.log10);
  if (exponents.length === 0) return {};
  const [least, most] = [Math.min(...exponents), Math.max(...exponents)];
  // One value alone has an axis of the library's choice, some decades long.
  const isAlone = most - least < 0.004;
  const ticks = (steps) => {
    const all = [];
    for (let exponent = Math.floor(least) - 1; exponent <= most + 1; exponent += 1) {
      steps.forEach((step) => all.push([Number(`${step}e${exponent}`), exponent, step]));
    }
    return all;
  };
  const within = (margin) => ([value]) => Math.log10(value) >= least - margin && Math.log10(value) <= most + margin;
  // The library lays out every mark, in view or not: marks far outside would take it seconds.
  const finest = isAlone ? null : STEPS.map(ticks).find((all) => all.filter(within(0.02)).length >= 3);
  const found = finest ?? ticks([1, 2, 5]);
  const chosen = found.filter(within(found.length > 60 ? 0.05 : 1));
  const words = ([, exponent, step]) => {
    if (unit === 'number') return String(Number((step * 10 ** exponent).toPrecision(4)));
    const thousands = Math.floor(exponent / 3);
    const digits = Number((step * 10 ** (exponent - 3 * thousands)).toPrecision(4));
    return `${digits} ${PREFIXES[thousands + 4] ?? `e${3 * thousands} `}${SUFFIX[unit]}`;
  };
  return { tickvals: chosen.map(([value]) => value), ticktext: chosen.map(words) };
}

/** What `trace` shows along `x` or `y`: its values and the ends of their intervals. */
function ends(trace, along) {
  const { array = [], arrayminus = [] } = trace[`error_${along}`] ?? {};
  return [...trace[along]].flatMap((value, at) => [value, value + (array[at] ?? 0), value - (arrayminus[at] ?? 0)]);
}

/** Gives the logarithmic axes of `layout` their marks. */
function markAxes(traces, layout, units) {
  for (const [name, along] of [['xaxis', 'x'], ['yaxis', 'y']]) {
    const unit = units[along];
    if (layout[name].type !== 'log' || !unit || layout[name].tickvals) continue;
    Object.assign(layout[name], logarithmicTicks(traces.flatMap((trace) => ends(trace, along)), unit));
  }
}

/** Whether messages of `size` bytes have a place on an axis of `scale`. */
const hasPlace = (size, scale) => size !== null && (scale !== 'log' || size > 0);

/** The axis of sizes, which are powers of two. */
function sizeAxis(sizes, scale) {
  const known = sizes.filter(([size]) => hasPlace(size, scale));
  const step = Math.ceil(known.length / (innerWidth < 700 ? 5 : 11));
  const marked = known.filter((_, at) => at % step === 0);
  return {
    ...axis('bytes', scale, 'message size in bytes'),
    tickvals: marked.map(([size]) => size), ticktext: marked.map(([, text]) => text),
  };
}

/** The numbers of `some` rows under `title` as the library takes them, in seconds and bytes. */
function points(some, title, unit, scale, x) {
  const factor = FACTOR[unit];
  const found = some.map((row) => ({ row, number: number(row, title) }))
    .filter(({ number }) => number && (scale !== 'log' || number.value > 0));
  const beyond = (of) => found.map(({ number }) => (number.low === undefined ? 0 : of(number) * factor));
  return {
    at: found.map(({ row }) => x(row)),
    values: found.map(({ number }) => number.value * factor),
    error: {
      type: 'data', symmetric: false, thickness: 1, width: 3,
      array: beyond(({ value, high }) => high - value), arrayminus: beyond(({ value, low }) => value - low),
    },
    words: found.map(({ row }) => `<b>${plain(row.name)}</b> ${plain(hostOf(row))}<br>`
      + `${row.sizeText ? `${plain(row.sizeWords)}: ` : ''}${plain(cell(row, title))}`),
    rows: found.map(({ row }) => row),
  };
}

const hostOf = (row) => (data.runs.length > 1 ? data.runs[row.host].label : '');
const hover = '%{customdata}<extra></extra>';
const metricName = () => METRICS[chosen.metric] ?? chosen.metric;
const better = () => (chosen.higher ? 'Higher is better.' : 'Lower is better.');
const where = () => `${chosen.workload}, ${chosen.place}`;
const sizeWords = () => {
  const row = chosen.rows.find(({ size }) => String(size) === chosen.size);
  return row?.sizeWords ? `, ${row.sizeWords}` : '';
};
const bars = 'Points are medians over fresh trials, bars their 95% intervals where there are enough trials.';
/** Rows by series and host, which are one line each. */
const lines = (some) => Object.values(Object.groupBy(some, (row) => `${row.s} ${row.host}`));

/** The numbers of `metric` of `some` rows, names down and sizes across. */
function bySizeTable(some, title) {
  const columns = chosen.sizes.map(([, text]) => ({ title: text }));
  return {
    caption: `${metricName()} by message size: ${where()}`, columns: [{ title: 'mechanism' }, ...columns],
    rows: lines(some).map((line) => ({
      head: [line[0].name, hostOf(line[0])].filter(Boolean).join(', '),
      cells: chosen.sizes.map(([size]) => {
        const row = line.find((row) => row.size === size);
        return { text: row ? cell(row, title) : '-' };
      }),
    })),
  };
}

/** Numbers of one size: a row each, with the columns `titles`. */
const oneSizeTable = (some, caption, titles) => ({
  caption, columns: [{ title: 'mechanism' }, ...titles.map((title) => ({ title }))],
  rows: some.map((row) => ({
    head: [row.name, hostOf(row)].filter(Boolean).join(', '), cells: titles.map((title) => ({ text: cell(row, title) })),
  })),
});

const bySize = {
  id: 'by-size', wide: true,
  title: () => `${metricName()} by message size`,
  lead: () => `${better()} ${bars}${data.runs.length > 1 && chosen.host === 'all'
    ? ` Lines: ${data.runs.map((run, host) => `${run.label} ${DASHES[host % DASHES.length]}`).join(', ')}.` : ''}${
    chosen.sizes.some(([size]) => size === 0) && !hasPlace(0, chosen.xScale)
      ? ' Messages of 0 bytes have no place on a logarithmic axis: they are in the table and in the map below.' : ''}`,
  wanted: () => chosen.sizes.filter(([size]) => size !== null).length > 1,
  draw() {
    const some = shownRows().filter((row) => row.size !== null);
    const traces = lines(some.filter((row) => hasPlace(row.size, chosen.xScale))).map((line) => {
      const { color, dash, marker } = styleOf(line[0].name);
      const several = data.runs.length > 1 && chosen.host === 'all';
      const { at, values, error, words } = points(
        line.sort((a, b) => a.size - b.size), chosen.metric, chosen.unit, chosen.yScale, (row) => row.size);
      return {
        x: at, y: values, error_y: { ...error, color }, customdata: words, hovertemplate: hover, mode: 'lines+markers',
        name: plain(line[0].name), marker: { color, symbol: marker, size: 8 },
        line: { color, width: 2, dash: several ? DASHES[line[0].host % DASHES.length] : dash },
      };
    });
    const layout = {
      xaxis: sizeAxis(chosen.sizes, chosen.xScale), yaxis: axis(chosen.unit, chosen.yScale, metricName()), height: 480,
    };
    return { traces, layout, table: bySizeTable(some, chosen.metric), units: { y: chosen.unit } };
  },
};

const compared = {
  id: 'compared', wide: true,
  title: () => `${metricName()}${sizeWords()}: side by side`,
  lead: () => `${better()} ${bars}`,
  wanted: () => data.runs.length > 1 || !bySize.wanted(),
  draw() {
    const order = ranking().filter((name) => !chosen.off.has(name)).reverse();
    const traces = unique(atSize().map((row) => row.host)).map((host) => {
      const { at, values, error, words, rows: found } = points(
        atSize().filter((row) => row.host === host), chosen.metric, chosen.unit, chosen.yScale, (row) => plain(row.name));
      return {
        y: at, x: values, error_x: { ...error, color: '#8b95a1' }, customdata: words, hovertemplate: hover,
        mode: 'markers', name: plain(data.runs[host].label), showlegend: data.runs.length > 1,
        marker: {
          color: found.map((row) => styleOf(row.name).color), size: 10,
          symbol: ['circle', 'square-open', 'diamond', 'triangle-up-open'][host % 4],
        },
      };
    });
    const layout = {
      xaxis: axis(chosen.unit, chosen.yScale, metricName()), height: 110 + 26 * order.length, legend: { orientation: 'h', y: 1.08 },
      yaxis: { type: 'category', categoryorder: 'array', categoryarray: order.map(plain), automargin: true },
      showlegend: data.runs.length > 1, hovermode: 'closest',
    };
    return { traces, layout, table: oneSizeTable(atSize(), `${metricName()}: ${where()}${sizeWords()}`, [chosen.metric]), units: { x: chosen.unit } };
  },
};

/**
 * How good each of `values` is among them: from 1, the best, to 0, the worst, in equal steps for equal ratios. 0 is at most
 * half as good as 1, so that values that nearly tie have nearly one colour.
 */
function standing(values) {
  const known = values.filter((value) => value > 0).map(Math.log10);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const range = Math.max(most - least, Math.log10(2));
  return values.map((value) => {
    if (!(value > 0)) return null;
    return 1 - (chosen.higher ? most - Math.log10(value) : Math.log10(value) - least) / range;
  });
}

const heat = {
  id: 'heat', wide: true,
  title: () => `${metricName()}: every mechanism at every size`,
  lead: () => 'Within each column: the brightest is the best, the darkest the worst, which is half as good or less, and equal steps of colour are equal ratios. Colours of two columns say nothing of each other.',
  wanted: () => bySize.wanted(),
  draw(width) {
    const sizes = chosen.sizes.filter(([size]) => size !== null);
    const rank = new Map(ranking().map((name, at) => [name, at]));
    const drawn = lines(shownRows()).filter((line) => line.some((row) => number(row, chosen.metric)?.value > 0));
    const order = drawn.sort((a, b) => rank.get(b[0].name) - rank.get(a[0].name) || b[0].host - a[0].host);
    const label = (line) => plain([line[0].name, hostOf(line[0])].filter(Boolean).join(', '));
    const at = (line, size) => line.find((row) => row.size === size);
    const value = (row) => (row ? number(row, chosen.metric)?.value ?? null : null);
    const grid = (of) => order.map((line) => sizes.map(([size]) => of(at(line, size))));
    const columns = sizes.map(([size]) => standing(order.map((line) => value(at(line, size)))));
    const roomy = width / sizes.length > 58;
    const traces = [{
      type: 'heatmap', x: sizes.map(([, text]) => plain(text)), y: order.map(label), xgap: 2, ygap: 2,
      z: order.map((_, line) => columns.map((column) => column[line])), zmin: 0, zmax: 1, showscale: false,
      text: grid((row) => (row ? plain(cell(row, chosen.metric).replace(/ [±>-].*$/, '')) : '')),
      texttemplate: roomy ? '%{text}' : '', textfont: { size: 11 },
      customdata: grid((row) => (row ? `<b>${plain(row.name)}</b> ${plain(hostOf(row))}<br>${plain(row.sizeWords)}: ${plain(cell(row, chosen.metric))}` : '')),
      hovertemplate: hover, colorscale: 'Viridis', hoverongaps: false,
    }];
    const layout = {
      xaxis: { type: 'category', title: { text: 'message size in bytes', standoff: 8 }, automargin: true, showgrid: false },
      yaxis: { type: 'category', automargin: true, showgrid: false }, height: 150 + 26 * order.length,
    };
    return { traces, layout, table: bySizeTable(shownRows(), chosen.metric) };
  },
};

/** The seconds that `words` say: 2.81 µs. */
const seconds = (words) => {
  const [digits, unit] = words.split(' ');
  return Number(digits) * { ns: 1e-9, 'µs': 1e-6, ms: 1e-3, s: 1 }[unit];
};
const percentile = (quantile) => `${Number((100 * quantile).toPrecision(6))}%`;

const percentiles = {
  id: 'percentiles',
  title: () => `Latency percentiles${sizeWords()}`,
  lead: () => 'How long the slow iterations take: at 99%, one iteration in a hundred takes longer. A curve that rises steeply at the right has a long tail.',
  wanted: () => chosen.rows.some((row) => row.q),
  draw() {
    const some = atSize().filter((row) => row.q);
    const along = (at) => 1 / (1 - data.quantiles[at]);
    const traces = some.map((row) => {
      const { color, dash, marker } = styleOf(row.name);
      return {
        x: row.q.map((_, at) => along(at)), y: row.q.map(seconds), mode: 'lines+markers', name: plain(row.name),
        line: { color, dash, width: 2 }, marker: { color, symbol: marker, size: 6 }, hovertemplate: hover,
        customdata: row.q.map((words, at) => `<b>${plain(row.name)}</b> ${plain(hostOf(row))}<br>${percentile(data.quantiles[at])} take at most ${plain(words)}`),
      };
    });
    const longest = Math.max(1, ...some.map((row) => row.q.length));
    const ticks = [...(innerWidth < 700 ? [] : [0]), 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999].filter((at) => at <= data.quantiles[longest - 1]);
    const layout = {
      xaxis: {
        ...axis('number', 'log', 'of all iterations'), tickvals: ticks.map((at) => 1 / (1 - at)), ticktext: ticks.map(percentile),
      },
      yaxis: axis('ns', chosen.yScale, 'takes at most'), height: 420,
    };
    const table = {
      caption: `Percentiles: ${where()}${sizeWords()}`,
      columns: [{ title: 'mechanism' }, ...data.quantiles.slice(0, longest).map((at) => ({ title: at ? percentile(at) : 'least' }))],
      rows: some.map((row) => ({
        head: [row.name, hostOf(row)].filter(Boolean).join(', '),
        cells: data.quantiles.slice(0, longest).map((_, at) => ({ text: row.q[at] ?? '-' })),
      })),
    };
    return { traces, layout, table, units: { y: 'ns' } };
  },
};

const frontier = {
  id: 'frontier',
  title: () => `Time against CPU time${sizeWords()}`,
  lead: () => 'Spinning is fast and uses a whole core; sleeping needs less CPU time and is slower. Nothing is better in both than what lies on the dotted line.',
  wanted: () => chosen.rows.filter((row) => String(row.size) === chosen.size && number(row, 'cpu')).length > 1,
  draw() {
    const time = timeOf(chosen.rows);
    const some = atSize().filter((row) => number(row, time)?.value > 0 && number(row, 'cpu')?.value > 0);
    const x = (row) => number(row, 'cpu').value * FACTOR.ns;
    const y = (row) => number(row, time).value * FACTOR.ns;
    // Names of neighbours go above and below by turns, and inwards from the sides, so that few hide each other.
    const across = [...some].sort((a, b) => x(a) - x(b));
    const label = (row) => {
      const at = across.indexOf(row);
      const side = at === 0 ? 'right' : at === across.length - 1 ? 'left' : 'center';
      return `${at % 2 ? 'bottom' : 'top'} ${side}`;
    };
    const best = [...some].sort((a, b) => x(a) - x(b)).filter((row, at, all) => all.slice(0, at).every((other) => y(other) > y(row)));
    const traces = [{
      x: best.map(x), y: best.map(y), mode: 'lines', line: { color: '#8b95a1', dash: 'dot', width: 1.5 }, hoverinfo: 'skip',
    }, ...some.map((row) => {
      const { color, marker } = styleOf(row.name);
      const { error } = points([row], time, 'ns', chosen.yScale, x);
      return {
        x: [x(row)], y: [y(row)], error_y: { ...error, color }, mode: some.length > 24 ? 'markers' : 'markers+text',
        text: [row.host === some[0].host ? plain(row.name) : ''], textposition: label(row), textfont: { size: 11 }, cliponaxis: false,
        name: plain(row.name), hovertemplate: hover,
        marker: { color, symbol: row.host === some[0].host ? marker : `${marker}-open`, size: 10 },
        customdata: [`<b>${plain(row.name)}</b> ${plain(hostOf(row))}<br>${plain(time)} ${plain(cell(row, time))}<br>CPU ${plain(cell(row, 'cpu'))}`],
      };
    })];
    const layout = {
      xaxis: axis('ns', chosen.yScale, 'CPU time of both endpoints'), yaxis: axis('ns', chosen.yScale, METRICS[time] ?? time),
      height: 420,
    };
    const table = oneSizeTable(some, `Time and CPU time: ${where()}${sizeWords()}`, [time, 'cpu']);
    return { traces, layout, table, units: { x: 'ns', y: 'ns' } };
  },
};

const nameOf = (series) => (series.published ? `${series.name}, published` : series.name);

/** A figure of a study: the published series have open markers. */
const ofStudy = (figure, id) => ({
  id, wide: true, own: true,
  title: () => `${figure.name}: ${figure.title}`,
  lead: () => [
    figure.series.some((series) => series.published) ? 'Filled markers: this run, with 95% intervals. Open markers: as published.' : '',
    ...figure.notes, ...figure.missing.map((what) => `Not drawn: ${what}.`),
  ].filter(Boolean).join(' '),
  wanted: () => true,
  draw() {
    const traces = figure.series.map((series) => {
      const factor = FACTOR[figure.y.unit];
      const number = ([, , number]) => (Array.isArray(number) ? number : [number, number, number]);
      return {
        x: series.points.map(([x]) => x * FACTOR[figure.x.unit]), y: series.points.map((point) => number(point)[0] * factor),
        error_y: {
          type: 'data', symmetric: false, thickness: 1, width: 3, color: series.color, visible: !series.published,
          array: series.points.map((point) => (number(point)[2] - number(point)[0]) * factor),
          arrayminus: series.points.map((point) => (number(point)[0] - number(point)[1]) * factor),
        },
        mode: 'lines+markers', name: plain(nameOf(series)), hovertemplate: hover,
        line: { color: series.color, width: series.published ? 1.5 : 2.5, dash: series.dash },
        marker: { color: series.color, size: 8, symbol: series.published ? `${series.marker}-open` : series.marker },
        customdata: series.points.map(([, x, , y]) => `<b>${plain(nameOf(series))}</b><br>${plain(x)}: ${plain(y)}`),
      };
    });
    const xs = unique(figure.series.flatMap((series) => series.points.map(([x, text]) => `${x} ${text}`)))
      .map((pair) => [Number(pair.split(' ')[0]), pair.slice(pair.indexOf(' ') + 1)]).sort(([a], [b]) => a - b);
    const scale = (of) => (of.log ? 'log' : 'linear');
    const layout = {
      xaxis: figure.x.unit === 'bytes' ? { ...sizeAxis(xs, scale(figure.x)), title: { text: plain(figure.x.title), standoff: 8 } }
        : axis(figure.x.unit, scale(figure.x), figure.x.title),
      yaxis: axis(figure.y.unit, scale(figure.y), figure.y.title), height: 460, showlegend: true,
      legend: { orientation: 'h', yanchor: 'bottom', y: 1.02, x: 0 }, hovermode: 'closest',
    };
    const table = {
      caption: `${figure.name}: ${figure.title}`, columns: [{ title: figure.x.title }, ...figure.series.map((series) => ({ title: nameOf(series) }))],
      rows: xs.map(([x, text]) => ({
        head: text, cells: figure.series.map((series) => ({ text: series.points.find(([at]) => at === x)?.[3] ?? '-' })),
      })),
    };
    return { traces, layout, table, units: { x: figure.x.unit, y: figure.y.unit } };
  },
});

/** The library, unpacked once, when the first chart is to be drawn. */
const library = (() => {
  let loading = null;
  const load = async () => {
    const packed = Uint8Array.from(atob(byId('library').textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
    document.head.append(make('script', { textContent: await new Response(stream).text() }));
    return globalThis.Plotly;
  };
  return () => (loading ??= load());
})();

/** The figures on the page: those of studies, and the general ones. */
const figures = [];

/** Puts `chart` into `parent`, to be drawn when it comes into view. */
function place(chart, parent) {
  const plot = make('div', { className: 'plot', id: chart.id });
  const heading = make('h3');
  const lead = make('p', { className: 'lead' });
  const numbers = make('details', {}, make('summary', {}, 'Numbers as a table'));
  const element = make('figure', { className: chart.wide ? 'wide' : '' }, heading, lead, plot, numbers);
  const figure = { chart, element, heading, lead, plot, numbers, stale: true, visible: false };
  numbers.addEventListener('toggle', () => fillNumbers(figure));
  figures.push(figure);
  parent.append(element);
  seen.observe(element);
}

const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
  const figure = figures.find(({ element }) => element === entry.target);
  figure.visible = entry.isIntersecting;
  if (figure.visible) draw(figure);
}), { rootMargin: '200px' });

/** Draws `figure` if what it shows has changed. */
async function draw(figure) {
  if (!figure.stale || figure.element.hidden) return;
  figure.stale = false;
  figure.plot.ariaBusy = 'true';
  try {
    const plotly = await library();
    drawNow(plotly, figure);
  } catch (error) {
    // The numbers stand in the tables all the same.
    figure.plot.textContent = `This browser cannot draw the chart (${error.message}): its numbers are in the table below.`;
  }
  figure.plot.ariaBusy = 'false';
}

function drawNow(plotly, { chart, plot, numbers }, size = null) {
  const { traces, layout, table, units } = chart.draw(size?.width ?? plot.clientWidth);
  if (units) markAxes(traces, layout, units);
  const narrow = innerWidth < 700;
  plotly.react(plot, traces, {
    font: { family: getComputedStyle(document.body).fontFamily, size: narrow ? 11 : 13 }, showlegend: false,
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', margin: { l: 12, r: 16, t: narrow ? 12 : 32, b: 12 },
    modebar: { bgcolor: 'rgba(0,0,0,0)', color: '#8b95a1', activecolor: '#0a7bc2' },
    dragmode: matchMedia('(pointer: coarse)').matches ? false : 'zoom', hovermode: 'closest',
    hoverlabel: { align: 'left' }, ...layout,
    ...(size ? { width: size.width, height: Math.min(layout.height, size.height) } : { width: undefined }),
  }, {
    responsive: true, displaylogo: false, displayModeBar: !narrow, modeBarButtonsToRemove: ['select2d', 'lasso2d', 'autoScale2d'],
    toImageButtonOptions: { format: 'svg', filename: `ipcmark-${chart.id}` },
  });
  plot.setAttribute('role', 'img');
  plot.setAttribute('aria-label', `${chart.title()}; the numbers are in the table below`);
  numbers.table = table;
  numbers.stale = true;
  fillNumbers({ numbers });
}

/** The numbers of a chart as a table, made when it is opened. */
function fillNumbers({ numbers }) {
  if (!numbers.open || !numbers.stale) return;
  numbers.stale = false;
  numbers.replaceChildren(numbers.firstElementChild, tableOf(numbers.table));
}

/** Has the general charts drawn anew: those in view at once, the others when they come into view. */
function redraw() {
  for (const figure of figures.filter(({ chart }) => !chart.own)) {
    figure.element.hidden = !figure.chart.wanted();
    figure.heading.textContent = figure.chart.title();
    figure.lead.textContent = figure.chart.lead();
    figure.stale = true;
    if (figure.visible) draw(figure);
  }
}

// The words around the charts -----------------------------------------------------------------------------------

/** The meaning of the sign of a warning. */
const meanings = new Map(data.runs.flatMap((run) => run.notes));
const marks = (signs) => [...(signs ?? '')].map((sign) => make('abbr', { title: meanings.get(sign) ?? '' }, sign));

/** The row of a table for `row`, under `columns`, which end with its warnings. */
const summaryRow = (row, columns) => ({
  head: row.name, why: row.e, className: row.e ? 'bad' : '',
  cells: [
    ...(data.runs.length > 1 ? [{ text: hostOf(row), value: hostOf(row) }] : []),
    ...(columns.sized ? [{ text: row.sizeText || '-', value: row.size }] : []),
    ...columns.titles.map((title) => ({ text: cell(row, title), value: number(row, title)?.value ?? null })),
    { text: marks(row.t), value: row.t ?? '', className: 'marks' },
  ],
});

/** The summary table of what is chosen, with its warnings. */
function fillSummary() {
  const all = columnsOf(chosen.rows);
  const sized = chosen.rows.some((row) => row.size !== null);
  const columns = [
    { title: chosen.rows[0]?.block.rows_are ?? 'mechanism' },
    ...(data.runs.length > 1 ? [{ title: 'host', words: true }] : []), ...(sized ? [{ title: 'size' }] : []),
    ...all, { title: 'warnings', words: true },
  ];
  const ordered = [...chosen.rows].sort((a, b) => (a.size ?? 0) - (b.size ?? 0));
  const titles = all.map(({ title }) => title);
  byId('table').replaceChildren(tableOf({
    caption: `${where()}, per ${chosen.rows[0]?.block.heading.split(', per ').pop() ?? 'iteration'}`, columns,
    rows: ordered.map((row) => summaryRow(row, { titles, sized })),
  }, { sortable: true, most: 200 }));
  const blocks = unique(chosen.rows.map((row) => row.block)).filter((block) => block.below.length);
  byId('remarks').replaceChildren(make('details', {}, make('summary', {}, 'Floors, warnings and failures, block by block'),
    ...blocks.map((block) => make('div', {}, make('h3', {}, block.heading), make('ul', {}, ...block.below.map((text) => make('li', {}, text)))))));
}

/** A block that no chart shows, such as the floors. */
const blockTable = (block, label) => make('div', { className: 'card' }, tableOf({
  caption: [block.heading, label].filter(Boolean).join(', '),
  columns: [{ title: block.rows_are }, ...block.columns, { title: 'warnings', words: true }],
  rows: block.rows.map((row) => ({
    head: names[row.s], why: row.e, className: row.e ? 'bad' : '',
    cells: [...row.c.map((text, at) => ({ text: text ?? '-', value: [row.n[at]].flat()[0] ?? text })), { text: marks(row.t), value: row.t ?? '' }],
  })),
}, { sortable: true }), ...block.below.map((text) => make('p', { className: 'quiet' }, text)));

/** An SVG file as an image, which can run nothing, whatever the results file says. */
const picture = (svg, alt) => make('img', { className: 'picture', alt, src: `data:image/svg+xml,${encodeURIComponent(svg)}` });

/** What the host did to a group of cases, each with its slices. */
const hostEffectsTable = (block) => tableOf({
  caption: block.heading,
  columns: [{ title: block.rows_are }, ...block.columns.map(([title, meaning]) => ({ title, meaning })), { title: 'slices over the run', words: true }],
  rows: block.rows.map((row) => ({
    head: row.name,
    cells: [
      ...row.cells.map(([text, number]) => ({ text: text ?? '-', value: [number].flat()[0] })),
      { text: row.slices ? picture(row.slices, `slices of ${row.name}`) : '-' },
    ],
  })),
}, { sortable: true });

/** The speed of the host of one run, and what each of its cases takes with and without regard to it. */
function fillSpeed(speed, label) {
  const key = speed.key.map(([color, meaning]) => {
    const swatch = make('span', { ariaHidden: 'true' }, '■ ');
    swatch.style.color = color;
    return make('li', {}, swatch, meaning);
  });
  const card = make('div', { className: 'card' }, ...(label ? [make('h3', { className: 'as-is' }, label)] : []),
    picture(speed.chart, 'speed of each CPU over the run, as a fraction of full speed'),
    make('p', { className: 'quiet' }, 'Slices are coloured by the speed beside them:'), make('ul', { className: 'key' }, ...key));
  for (const block of speed.blocks) {
    const details = make('details', {}, make('summary', {}, block.heading));
    // Most are never opened, and there may be ten thousand cases.
    details.addEventListener('toggle', () => details.append(hostEffectsTable(block)), { once: true });
    card.append(details);
  }
  byId('speed').append(card);
  byId('speed').hidden = false;
}

/** A study with the numbers of `run`, or of several where there is none. */
function fillStudy(study, run, at) {
  const where = run ? `${study.source}. Measured here: ${run.label}.` : `Measured here: ${study.source}.`;
  const section = make('section', {}, make('h2', {}, study.title), make('p', { className: 'quiet' }, where));
  if (study.conclusions.length) {
    section.append(make('h3', {}, 'What it concluded, and whether that holds here'), make('ul', { className: 'conclusions' },
      ...study.conclusions.map(({ claim, verdict, words, evidence }) => make('li', { className: verdict }, claim,
        make('span', { className: 'verdict' }, words), ...evidence.map((line) => make('p', { className: 'quiet' }, line))))));
  }
  byId('studies').append(section);
  study.figures.forEach((figure, index) => {
    const chart = ofStudy(figure, `study-${at}-${index}`);
    const pictures = figure.pictures.map(([alt, svg]) => picture(svg, alt));
    if (figure.series.length) place(chart, section);
    else section.append(make('figure', {}, make('h3', {}, chart.title()), make('p', { className: 'lead' }, chart.lead()), ...pictures));
  });
  for (const [title, svg] of study.stacks) {
    section.append(make('figure', { className: 'wide' }, make('h3', {}, title), picture(svg, title)));
  }
  if (study.undrawn.length) {
    section.append(make('div', { className: 'card' }, make('h3', {}, 'Not drawn'),
      ...study.undrawn.map((line) => make('p', { className: 'quiet' }, line))));
  }
  for (const table of study.tables) {
    const isWords = (at) => table.rows.some(([, , cells]) => cells[at][1] === 'w' && cells[at][0] !== '');
    const columns = table.columns.map((title, at) => ({ title, words: isWords(at) }));
    const rows = table.rows.map(([head, published, cells]) => ({
      head: published ? `${head} (published)` : head, className: published ? 'published' : '',
      cells: cells.map(([text, kind]) => ({ text, className: { n: '', w: 'prose', m: 'missing' }[kind] })),
    }));
    section.append(make('div', { className: 'card' },
      tableOf({ caption: `${table.name}: ${table.title}`, columns: [{ title: '' }, ...columns], rows }),
      ...table.notes.map((note) => make('p', { className: 'quiet' }, note))));
  }
}

function fillWords() {
  const hosts = data.runs.map((run) => run.label);
  for (const run of data.runs) {
    const lead = run.head.filter(([label]) => ['host', 'run'].includes(label)).map(([, text]) => make('p', { className: 'quiet' }, text));
    const notices = run.notices.map((text) => make('li', { className: 'notice' }, text));
    byId('runs').append(make('div', { className: 'run' }, ...lead, make('ul', { className: 'notices' }, ...notices)));
    const parts = [
      make('h3', { className: 'as-is' }, run.title), definitions(run.head), make('p', {}, 'Measured by ', make('code', {}, run.command)),
      make('details', {}, make('summary', {}, `All that is known of ${run.label}`), definitions(run.environment)),
    ];
    byId('environment').append(make('div', { className: 'card' }, ...parts));
    byId('missing').querySelector('ul').append(...run.missing.map((text) =>
      make('li', {}, hosts.length > 1 ? `${run.label}: ${text}` : text)));
    byId('floors').append(...run.blocks.filter((block) => !block.chart).map((block) => blockTable(block, hosts.length > 1 ? run.label : '')));
  }
  byId('missing').hidden = data.runs.every((run) => run.missing.length === 0);
  byId('notes').replaceWith(Object.assign(definitions([...meanings]), { id: 'notes' }));
}

// The page ------------------------------------------------------------------------------------------------------

function refresh() {
  choose();
  offerSeries();
  redraw();
  fillSummary();
}

/** Says on the button what it does, and has the style sheet follow it. */
function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  byId('theme').textContent = dark ? 'Light' : 'Dark';
  byId('theme').ariaPressed = String(dark);
}

function start() {
  setTheme(matchMedia('(prefers-color-scheme: dark)').matches);
  byId('theme').addEventListener('click', () => setTheme(document.documentElement.dataset.theme !== 'dark'));
  fillWords();
  data.overlays.forEach((study, at) => fillStudy(study, null, `all-${at}`));
  data.runs.forEach((run, at) => run.study && fillStudy(run.study, run, at));
  data.runs.forEach((run) => run.speed && fillSpeed(run.speed, data.runs.length > 1 ? run.label : ''));
  figures.forEach((figure) => {
    figure.heading.textContent = figure.chart.title();
    figure.lead.textContent = figure.chart.lead();
  });
  if (rows.length === 0) {
    byId('charts').hidden = true;
    return;
  }
  choose(wantedFirst());
  // The instrument itself is so fast that beside it all others look alike.
  const ranked = ranking().filter((name) => name !== INSTRUMENT);
  const many = names.length > MOST_SERIES;
  const first = (name) => (many ? ranked.slice(0, MOST_SERIES).includes(name) : name !== INSTRUMENT);
  chosen.off = new Set(ranked.length ? names.filter((name) => !first(name)) : []);
  [bySize, compared, heat, percentiles, frontier].forEach((chart) => place(chart, byId('figures')));
  byId('controls').addEventListener('change', refresh);
  byId('all').addEventListener('click', () => switchSeries(() => true));
  byId('none').addEventListener('click', () => switchSeries(() => false));
  byId('fastest').addEventListener('click', () => switchSeries((rank) => rank < MOST_SERIES));
  refresh();
  // Unpacking takes a moment, which is best taken while the reader reads the first words.
  // A page that is printed without being shown is never idle, and has charts on paper all the same.
  const soon = globalThis.requestIdleCallback ?? ((work) => setTimeout(work));
  soon(() => library().catch(() => {}), { timeout: 1000 });
  addEventListener('beforeprint', () => drawForPaper(PAPER));
  addEventListener('afterprint', () => drawForPaper(null));
}

/** How wide and how high charts are on paper, whatever the window is: the width of A4 and Letter within margins. */
const PAPER = { width: 690, height: 350 };

/** On paper everything is in view. */
function drawForPaper(size) {
  if (!globalThis.Plotly) return;
  for (const figure of figures.filter(({ element }) => !element.hidden)) {
    figure.stale = false;
    drawNow(globalThis.Plotly, figure, size);
  }
}

start();
