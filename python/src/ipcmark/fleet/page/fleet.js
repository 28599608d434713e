// The script of a fleet's page: reads the data, fills the tables, draws the map. It computes no statistic; it writes
// the logarithms that it was given as ratios, because a million of them as words would be too long.
//
// Text from results is only ever set as text.
'use strict';

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId('data').textContent);
const { hosts, cases } = data;
const ratio = new Float32Array(Uint8Array.from(atob(data.ratio), (letter) => letter.charCodeAt(0)).buffer);
const at = (host, of) => ratio[host * cases.length + of];
const differing = new Map(data.cells.map(([host, of, half]) => [host * cases.length + of, half]));
const differs = (host, of) => differing.has(host * cases.length + of);

// Elements ------------------------------------------------------------------------------------------------------

/** An element with properties and children; children that are strings become text. */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** A table that sorts by a click on a heading. Columns are titles; a cell is {text, value} or a number's pair of both. */
function tableOf(caption, columns, rows, most = 25) {
  const body = make('tbody');
  const more = make('button', { type: 'button', className: 'more' });
  let order = rows;
  let shown = most;
  const fill = () => {
    body.replaceChildren(...order.slice(0, shown).map(([head, ...cells]) => make('tr', {},
      make('th', { scope: 'row' }, head.text),
      ...cells.map((cell) => make('td', { className: typeof cell.value === 'number' ? '' : 'prose' }, cell.text)))));
    more.hidden = order.length <= shown;
    more.textContent = `Show all ${order.length} rows`;
  };
  const heads = columns.map((title, place) => {
    const button = make('button', { type: 'button' }, title);
    const head = make('th', { scope: 'col', className: typeof rows[0]?.[place].value === 'string' ? 'words' : '' }, button);
    button.addEventListener('click', () => {
      const down = head.ariaSort === 'ascending';
      heads.forEach((other) => other.removeAttribute('aria-sort'));
      head.ariaSort = down ? 'descending' : 'ascending';
      const key = (row) => row[place].value ?? '';
      const compare = (a, b) => (typeof key(a) === 'number' ? key(a) - key(b) : String(key(a)).localeCompare(key(b)));
      order = [...rows].sort((a, b) => (down ? compare(b, a) : compare(a, b)));
      fill();
    });
    return head;
  });
  more.addEventListener('click', () => {
    shown = Infinity;
    fill();
  });
  fill();
  const table = make('table', {}, make('caption', {}, caption), make('thead', {}, make('tr', {}, ...heads)), body);
  return make('div', { className: 'card' }, make('div', { className: 'scroll', tabIndex: 0, role: 'region', ariaLabel: caption }, table), more);
}

const words = (text) => ({ text: text ?? '-', value: text ?? '' });
const count = (value) => ({ text: String(value), value });
const missing = { text: '-', value: -Infinity };

/** A logarithm of a ratio as the ratio, with half of its 95% interval where it is known. */
function times(log, half = null) {
  if (log === null || Number.isNaN(log)) return missing;
  const width = half === null ? '' : ` ±${(100 * half).toFixed(1)}%`;
  return { text: `×${Math.exp(log).toFixed(3)}${width}`, value: log };
}

/** A standard deviation of logarithms as a percentage. */
const percent = (of) => (of === null ? missing : { text: `${(100 * of).toFixed(2)}%`, value: of });

// What differs --------------------------------------------------------------------------------------------------

function fillOutliers() {
  const rows = data.outliers.map(({ host, facts, cells }) => {
    const list = make('ul', { className: 'facts' }, ...facts.map((text) => make('li', {}, text)));
    const most = make('ul', { className: 'facts' }, ...cells.map(([of, own, half]) => make('li', {}, `${cases[of].key} ${times(own, half).text}`)));
    const { name, overall, half, differs: all, count: number } = hosts[host];
    return [{ text: chooser(name, host), value: name }, { ...times(overall, half), text: `${times(overall, half).text}${all ? ' differs' : ''}` },
      count(number), { text: most, value: '' }, { text: list, value: '' }];
  });
  byId('outliers').append(rows.length === 0 ? make('p', {}, 'None that can be told from the others.')
    : tableOf('Hosts that differ', ['host', 'overall', 'cases that differ', 'the most, beyond overall', 'what is special'], rows));
}

/** A button that chooses a host. */
function chooser(text, host) {
  const button = make('button', { type: 'button' }, text);
  button.addEventListener('click', () => {
    chooseHost(host);
    byId('host').scrollIntoView({ block: 'center' });
  });
  return button;
}

function fillGroups() {
  const rows = data.groups.map((group) => {
    const most = make('ul', { className: 'facts' }, ...group.cells.map(([of, own, half]) => make('li', {}, `${cases[of].key} ${times(own, half).text}`)));
    return [words(`${group.factor} ${group.level}`), count(group.hosts), words(group.against),
      { ...times(group.overall, group.half), text: `${times(group.overall, group.half).text}${group.differs ? ' differs' : ''}` },
      count(group.count), { text: most, value: '' }];
  });
  byId('groups').append(rows.length === 0 ? make('p', {}, 'There is one of each, or too few hosts of the others.')
    : tableOf('Kernels and processors', ['which', 'hosts', 'against', 'overall', 'cases that differ', 'the most, beyond overall'], rows));
}

// The map -------------------------------------------------------------------------------------------------------

/** A colour of the style sheet as its red, green and blue. */
function rgb(name) {
  const probe = make('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const parts = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number);
  probe.remove();
  return parts;
}

const rowsOfMap = hosts.map((_, host) => host).sort((a, b) => hosts[b].overall - hosts[a].overall);

function drawMap() {
  const canvas = byId('map');
  const width = canvas.parentElement.clientWidth;
  const wide = Math.max(1, Math.floor(width / cases.length));
  const high = Math.max(1, Math.min(16, Math.floor(600 / hosts.length)));
  canvas.width = wide * cases.length;
  canvas.height = high * hosts.length;
  const [slower, faster, even] = ['--slower', '--faster', '--even'].map(rgb);
  const picture = new ImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(picture.data.buffer);
  rowsOfMap.forEach((host, row) => {
    for (let of = 0; of < cases.length; of += 1) {
      const log = at(host, of);
      if (Number.isNaN(log)) continue;
      const share = Math.min(1, Math.abs(log) / data.darkest);
      const [red, green, blue] = (log > 0 ? slower : faster).map((end, part) => Math.round(even[part] + share * (end - even[part])));
      const colour = (255 << 24) | (blue << 16) | (green << 8) | red;
      for (let y = row * high; y < (row + 1) * high; y += 1) {
        pixels.fill(colour, y * canvas.width + of * wide, y * canvas.width + (of + 1) * wide);
      }
    }
  });
  canvas.getContext('2d').putImageData(picture, 0, 0);
  const cellAt = (event) => [rowsOfMap[Math.floor(event.offsetY / high)], Math.floor(event.offsetX / wide)];
  canvas.onmousemove = (event) => {
    const [host, of] = cellAt(event);
    if (hosts[host] && cases[of]) byId('cell').textContent = `${hosts[host].name}, ${cases[of].key}: ${times(at(host, of)).text}`;
  };
  canvas.onclick = (event) => {
    const [host, of] = cellAt(event);
    if (!hosts[host] || !cases[of]) return;
    chooseHost(host);
    chooseCase(of);
  };
}

// One host, one case --------------------------------------------------------------------------------------------

function chooseHost(host) {
  const { name, kernel, cpu, runs, overall, half } = hosts[host];
  byId('host').value = name;
  const all = cases.map((_, of) => of).filter((of) => !Number.isNaN(at(host, of)));
  all.sort((a, b) => differs(host, b) - differs(host, a) || Math.abs(at(host, b) - overall) - Math.abs(at(host, a) - overall));
  const rows = all.map((of) => [words(cases[of].key), times(at(host, of)),
    times(at(host, of) - overall, differing.get(host * cases.length + of) ?? null), words(differs(host, of) ? 'differs' : '')]);
  byId('of-host').replaceChildren(
    make('p', {}, `${name}: ${kernel ?? 'kernel unknown'}, ${cpu ?? 'processor unknown'}, ${runs} runs; overall ${times(overall, half).text}`),
    tableOf(`Cases on ${name}`, ['case', 'against the median host', 'beyond overall', ''], rows));
}

function chooseCase(of) {
  byId('case').value = cases[of].key;
  const all = hosts.map((_, host) => host).filter((host) => !Number.isNaN(at(host, of)));
  all.sort((a, b) => differs(b, of) - differs(a, of) || Math.abs(at(b, of)) - Math.abs(at(a, of)));
  const rows = all.map((host) => [{ text: chooser(hosts[host].name, host), value: hosts[host].name }, words(hosts[host].kernel), words(hosts[host].cpu),
    times(at(host, of)), words(differs(host, of) ? 'differs' : '')]);
  byId('of-case').replaceChildren(
    make('p', {}, `${cases[of].time} on the median host; between runs ${percent(cases[of].runs).text}, between hosts ${percent(cases[of].hosts).text}; a host is found to differ from ${times(cases[of].least).text}`),
    strip(of, all), tableOf(cases[of].key, ['host', 'kernel', 'processor', 'against the median host', ''], rows));
}

/** A picture of the hosts' ratios in a case, a line for each kernel. */
function strip(of, all) {
  const kernels = [...new Set(all.map((host) => hosts[host].kernel ?? 'unknown'))].sort();
  const [width, line, left] = [720, 34, 10];
  const reach = Math.max(0.02, ...all.map((host) => Math.abs(at(host, of))));
  const x = (log) => left + (width - 2 * left) * (0.5 + log / reach / 2);
  const svg = (tag, attributes, text = '') => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
    element.textContent = text;
    return element;
  };
  const height = line * kernels.length + 22;
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, class: 'strip', role: 'img', 'aria-label': `Hosts by their ratio, ${cases[of].key}` });
  [-reach, 0, reach].forEach((log, place) => picture.append(
    svg('line', { x1: x(log), x2: x(log), y1: 0, y2: height - 18 }),
    svg('text', { x: x(log), y: height - 4, 'text-anchor': ['start', 'middle', 'end'][place] }, times(log).text)));
  kernels.forEach((kernel, row) => picture.append(svg('text', { x: left, y: row * line + 12 }, kernel)));
  all.toReversed().forEach((host) => picture.append(svg('circle', {
    cx: x(at(host, of)).toFixed(1), cy: kernels.indexOf(hosts[host].kernel ?? 'unknown') * line + 22, r: 3.5, class: differs(host, of) ? 'differs' : '',
  })));
  return make('figure', { className: 'scroll', tabIndex: 0, role: 'region', ariaLabel: `Picture of ${cases[of].key}` }, picture);
}

// The page ------------------------------------------------------------------------------------------------------

/** Has the input `id` choose among `names`. */
function offer(id, names, choose) {
  byId(`${id}-names`).append(...names.map((name) => make('option', { value: name })));
  byId(id).addEventListener('change', () => {
    const place = names.indexOf(byId(id).value);
    if (place >= 0) choose(place);
  });
}

/** Says on the button what it does, and has the style sheet follow it. */
function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  byId('theme').textContent = dark ? 'Light' : 'Dark';
  byId('theme').ariaPressed = String(dark);
  drawMap();
}

function start() {
  byId('title').textContent = data.title;
  byId('lead').textContent = data.lead;
  byId('method').textContent = data.method;
  byId('command').textContent = data.command;
  byId('scale-words').textContent = data.scale;
  byId('notices').append(...data.notices.map((text) => make('li', { className: 'notice' }, text)));
  byId('answers').append(...data.answers.map(([what, value, next]) => make('li', {},
    make('div', { className: 'what' }, what), make('div', { className: 'value' }, value), make('div', { className: 'next' }, next))));
  byId('map').ariaLabel = `Ratios of ${hosts.length} hosts in ${cases.length} cases; the tables have the numbers`;
  fillOutliers();
  fillGroups();
  const rows = cases.map((of) => [words(of.key), { text: of.time, value: of.ns }, percent(of.runs), percent(of.hosts), times(of.least), count(of.count)]);
  byId('cases').append(tableOf('All cases', ['case', 'median host', 'between runs', 'between hosts', 'found from', 'hosts that differ'], rows));
  offer('host', hosts.map((host) => host.name), chooseHost);
  offer('case', cases.map((of) => of.key), chooseCase);
  chooseHost(data.outliers[0]?.host ?? rowsOfMap[0]);
  chooseCase(data.cells[0]?.[1] ?? 0);
  setTheme(matchMedia('(prefers-color-scheme: dark)').matches);
  byId('theme').addEventListener('click', () => setTheme(document.documentElement.dataset.theme !== 'dark'));
  addEventListener('resize', drawMap);
}

start();
