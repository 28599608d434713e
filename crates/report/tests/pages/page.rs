//! The page in a browser: it draws the right numbers, obeys its controls, and shows every text as text.
//!
//! `IPCMARK_SCREENSHOTS=DIR` keeps pictures of it, for people to look at. Nothing here judges its beauty or its speed.

use crate::browser::{Browser, assert_clean};
use crate::picture::keep;
use crate::{browser, fixture, study};
use analysis::analysed::AnalysedResults;
use analysis::study::evaluated::EvaluatedStudy;
use model::Placement;
use model::record::{Fact, Outcome, Results};
use model::warning::Warning;
use report::{Style, html, table};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// A page in a file of its own.
struct Page {
    directory: tempfile::TempDir,
}

impl Page {
    fn from_all(all: &[AnalysedResults<'_>]) -> Self {
        Self::starting_with(None, all)
    }

    fn starting_with(metric: Option<&str>, all: &[AnalysedResults<'_>]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let command = ["ipcmark", "report", "a.jsonl", "--html", "a page.html"].map(str::to_owned);
        fs::write(directory.path().join("page.html"), html(all, metric, &command).unwrap()).unwrap();
        Self { directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("page.html")
    }
}

/// The results of two hosts.
fn two_hosts() -> [Results; 2] {
    let mut other = fixture::later_results();
    other.header.host.name = Fact::Known("metal-2".to_owned());
    [fixture::results(), other]
}

fn with_study(results: &Results, study: EvaluatedStudy) -> AnalysedResults<'_> {
    AnalysedResults { study: Some(study), ..AnalysedResults::from_results(results) }
}

/// Draws every chart, as scrolling through the page would.
fn draw_all(browser: &mut Browser) {
    browser.evaluate("Promise.all(figures.map(draw))");
}

/// Opens `page`, draws all of it, and checks that nothing went wrong and nothing was fetched.
fn open(browser: &mut Browser, page: &Page) {
    browser.open(&page.path());
    draw_all(browser);
    assert_clean(browser);
}

/// Chooses `value` in the select `id`, as a reader does.
fn choose(browser: &mut Browser, id: &str, value: &str) {
    browser.evaluate(&format!(
        "(() => {{ const s = byId({id:?}); s.value = {value:?}; if (s.value !== {value:?}) throw new Error('no such option'); \
         s.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()"
    ));
    draw_all(browser);
}

/// The traces of the chart `id`: name, x, y.
fn traces(browser: &mut Browser, id: &str) -> Vec<(String, Vec<Value>, Vec<Value>)> {
    let found =
        browser.evaluate(&format!("byId({id:?}).data.map((t) => [t.name ?? '', [...t.x], [...t.y]])"));
    serde_json::from_value(found).unwrap()
}

fn is_close(a: &Value, b: f64) -> bool {
    (a.as_f64().unwrap() / b - 1.0).abs() < 1e-4
}

/// Slow: it opens a browser.
#[test]
fn charts_draw_what_was_measured() {
    let Some(mut browser) = browser() else { return };
    let [results, _] = two_hosts();
    open(&mut browser, &Page::from_all(&[AnalysedResults::from_results(&results)]));

    let drawn = traces(&mut browser, "by-size");
    let latency = |name: &str| {
        let records = results.records.iter().filter(|record| {
            record.case.spec.to_string() == name
                && record.case.workload == model::Workload::Latency
                && record.case.placement == Placement::SameCore
        });
        records.map(|record| record.summary.clone().unwrap().iteration_ns).collect::<Vec<_>>()
    };
    for name in ["pipe", "unix-stream", "shm-ring:wait=futex"] {
        let (_, x, y) = drawn.iter().find(|(drawn, _, _)| drawn == name).unwrap();
        let expected = latency(name);
        assert_eq!((x.len(), y.len()), (expected.len(), expected.len()), "{name}");
        for (y, expected) in y.iter().zip(&expected) {
            assert!(is_close(y, expected.median * 1e-9), "{name}: {y} is drawn for {expected:?}");
        }
    }
    let pipe = latency("pipe")[0];
    let bar = browser.evaluate("byId('by-size').data.find((t) => t.name === 'pipe').error_y.array[0]");
    assert!(is_close(&bar, (pipe.interval.unwrap().1 - pipe.median) * 1e-9), "{bar} for {pipe:?}");

    // Latency against CPU time, and percentiles, at the size chosen.
    let frontier = traces(&mut browser, "frontier");
    let (_, x, _) = frontier.iter().find(|(name, _, _)| name == "unix-stream").unwrap();
    let record = results.records.iter().find(|record| record.case.spec.name == "unix-stream").unwrap();
    assert!(is_close(&x[0], record.summary.as_ref().unwrap().cpu_ns() * 1e-9));
    let (_, _, y) = &traces(&mut browser, "percentiles")[0];
    assert!(y.len() >= 7 && y.windows(2).all(|pair| pair[0].as_f64() <= pair[1].as_f64()), "{y:?}");
    let cells = browser.evaluate("byId('heat').data[0].text.flat().filter(Boolean).length");
    assert!(cells.as_u64().unwrap() >= 5);
}

/// Slow: it opens a browser.
#[test]
fn the_map_is_coloured_within_each_column() {
    let Some(mut browser) = browser() else { return };
    let [results, _] = two_hosts();
    open(&mut browser, &Page::from_all(&[AnalysedResults::from_results(&results)]));
    let drawn = browser.evaluate(
        "(({ z, zmin, zmax, y, x }) => ({ z, zmin, zmax, y, x, reversed: byId('heat').data[0].reversescale ?? false }))(byId('heat').data[0])",
    );
    assert_eq!((&drawn["zmin"], &drawn["zmax"], &drawn["reversed"]), (&json!(0), &json!(1), &json!(false)));
    let names: Vec<&str> = drawn["y"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    // Of 4 KiB the worst takes 14% longer: nearly as good as the best.
    for (column, best, worst, how_good) in [
        (0, "shm-ring:wait=futex", "unix-stream", 0.0..=0.0),
        (1, "pipe", "unix-stream:buffer=8M,wait=spin-then-block", 0.7..=0.9),
    ] {
        let cell = |name: &str| {
            let row = names.iter().position(|known| *known == name).unwrap();
            drawn["z"][row][column].as_f64()
        };
        assert_eq!(cell(best), Some(1.0), "column {column}: {drawn}");
        assert!(cell(worst).is_some_and(|worst| how_good.contains(&worst)), "column {column}: {drawn}");
    }
    // Of a rate more is better; what there is no number for has no colour.
    let of_rates = "(chosen.higher = true, standing([1, 100, null, 10, 0]))";
    assert_eq!(browser.evaluate(of_rates), json!([0, 1, null, 0.5, null]));
    assert_eq!(browser.evaluate("standing([7])"), json!([1]));
    assert_eq!(browser.evaluate("(chosen.higher = false, standing([1, 2]))"), json!([1, 0]));
    let legend = browser.evaluate("byId('heat').closest('figure').querySelector('.lead').innerText");
    assert!(legend.as_str().unwrap().starts_with("Within each column:"), "{legend}");
}

/// Slow: it opens a browser.
#[test]
fn the_speed_of_the_host_is_drawn_and_each_case_has_its_slices() {
    let Some(mut browser) = browser() else { return };
    let results = fixture::on_a_shared_host(1.4);
    open(&mut browser, &Page::from_all(&[AnalysedResults::from_results(&results)]));
    let drawn = "Promise.all([...document.querySelectorAll('#speed img')].map((i) => i.decode().then(() => i.naturalWidth > 0)))";
    assert_eq!(browser.evaluate(drawn), json!([true]));
    browser.evaluate("document.querySelectorAll('#speed details').forEach((d) => { d.open = true; })");
    // The browser tells of the toggle a moment later.
    browser.evaluate("new Promise((done) => setTimeout(done, 100))");
    let rows = results.records.iter().filter(|record| !record.floor && record.summary.is_some()).count();
    let all = browser.evaluate(drawn);
    assert_eq!(all, json!(vec![true; 1 + rows]));
    let words = browser.evaluate("byId('speed').innerText");
    assert!(words.as_str().unwrap().contains("as found"), "{words}");
    assert_clean(&mut browser);
    keep("speed.png", &browser.screenshot());
}

/// Slow: it opens a browser.
#[test]
fn axes_are_marked_as_far_as_intervals_reach() {
    let Some(mut browser) = browser() else { return };
    let [results, _] = two_hosts();
    open(&mut browser, &Page::from_all(&[AnalysedResults::from_results(&results)]));
    let ends = "ends({ y: [15, 20], error_y: { array: [1, 13], arrayminus: [0.5, 5] } }, 'y')";
    assert_eq!(browser.evaluate(ends), json!([15, 16, 14.5, 20, 33, 15]));
    let reach = format!("const all = {ends}.map((us) => us * 1e-6)");
    let marks = "logarithmicTicks(all, 'ns').tickvals.filter((at) => at >= Math.min(...all) && at <= Math.max(...all))";
    assert_eq!(
        browser.evaluate(&format!("(() => {{ {reach}; return {marks}; }})()")),
        json!([1.5e-5, 2e-5, 2.5e-5, 3e-5])
    );
    // One number alone has room around it, and few marks.
    assert!(browser.evaluate("logarithmicTicks([7.5e-6], 'ns').tickvals.length").as_u64().unwrap() < 12);
}

/// Slow: it opens a browser.
#[test]
fn every_number_of_the_page_stands_in_the_terminal_table() {
    let Some(mut browser) = browser() else { return };
    let results = fixture::results();
    open(&mut browser, &Page::from_all(&[AnalysedResults::from_results(&results)]));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let terminal = words(&table(
        &AnalysedResults::from_results(&results),
        &Style { width: 200, color: false, detail: true },
    ));
    let cells = browser.evaluate("rows.flatMap((row) => row.c).filter(Boolean)");
    for cell in cells.as_array().unwrap() {
        assert!(terminal.contains(cell.as_str().unwrap()), "{cell} is not in the table");
    }
    // What a table of a chart says is what its hover says, and that is the row's cell.
    let agree = browser.evaluate(
        "figures.filter((f) => !f.element.hidden).every((f) => { f.numbers.open = true; fillNumbers(f); \
         return f.numbers.querySelectorAll('tbody tr').length > 0; })",
    );
    assert_eq!(agree, true);
    let summary = browser.evaluate("byId('table').innerText");
    assert!(summary.as_str().unwrap().contains("3.31 µs ±15%"), "{summary}");
}

/// Slow: it opens a browser.
#[test]
fn charts_start_with_the_metric_that_was_asked_for() {
    let Some(mut browser) = browser() else { return };
    let [results, _] = two_hosts();
    let chosen = "[chosen.workload, chosen.metric, byId('metric').value]";
    for (metric, workload) in [("p99", "latency"), ("rate", "throughput")] {
        open(&mut browser, &Page::starting_with(Some(metric), &[AnalysedResults::from_results(&results)]));
        assert_eq!(browser.evaluate(chosen), json!([workload, metric, metric]));
    }
    // What is chosen then is the reader's affair.
    choose(&mut browser, "metric", "time");
    assert_eq!(browser.evaluate(chosen), json!(["throughput", "time", "time"]));
}

/// Slow: it opens a browser.
#[test]
fn controls_do_what_they_say() {
    let Some(mut browser) = browser() else { return };
    let hosts = two_hosts();
    open(
        &mut browser,
        &Page::from_all(&[
            AnalysedResults::from_results(&hosts[0]),
            AnalysedResults::from_results(&hosts[1]),
        ]),
    );
    let lines = |browser: &mut Browser| traces(browser, "by-size").len();
    let both = lines(&mut browser);
    choose(&mut browser, "host", "0");
    let one = lines(&mut browser);
    assert!(one < both, "{one} lines of one host, {both} of two");
    choose(&mut browser, "host", "all");

    choose(&mut browser, "metric", "p99");
    let p99 = hosts[0].records[1].summary.as_ref().unwrap().quantiles.unwrap().p99_ns as f64;
    let pipe = traces(&mut browser, "by-size").into_iter().find(|(name, _, _)| name == "pipe").unwrap();
    assert!(is_close(&pipe.2[0], p99 * 1e-9));
    choose(&mut browser, "metric", "round trip");

    choose(&mut browser, "axes", "linear linear");
    let types = "[byId('by-size').layout.xaxis.type, byId('by-size').layout.yaxis.type]";
    assert_eq!(browser.evaluate(types), json!(["linear", "linear"]));
    choose(&mut browser, "axes", "log log");
    assert_eq!(browser.evaluate(types), json!(["log", "log"]));

    choose(&mut browser, "size", "4096");
    let names = browser.evaluate("byId('frontier').data.slice(1).map((t) => t.name)");
    assert!(names.as_array().unwrap().contains(&json!("fifo")), "{names}");

    // Series are switched by the keyboard alone.
    browser.evaluate("[...document.querySelectorAll('#names label')].find((l) => l.innerText.includes('pipe')).querySelector('input').focus()");
    browser.press(" ", 32, " ");
    draw_all(&mut browser);
    assert!(traces(&mut browser, "by-size").iter().all(|(name, _, _)| name != "pipe"));
    browser.evaluate("byId('all').click()");

    // So is the order of the table.
    browser.evaluate("document.querySelectorAll('#table thead button')[3].focus()");
    for (sort, sign) in [("ascending", 1.0), ("descending", -1.0)] {
        browser.press("Enter", 13, "\r");
        let state = browser.evaluate("document.activeElement.closest('th').ariaSort");
        assert_eq!(state, sort);
        let times = browser.evaluate("[...document.querySelectorAll('#table tbody tr')].map((r) => seconds(r.cells[3].innerText)).filter((t) => t > 0)");
        let times: Vec<f64> = serde_json::from_value(times).unwrap();
        assert!(
            times.len() > 3 && times.windows(2).all(|pair| sign * (pair[1] - pair[0]) >= 0.0),
            "{times:?}"
        );
    }

    let paper = "getComputedStyle(document.body).backgroundColor";
    let before = browser.evaluate(paper);
    browser.evaluate("byId('theme').click()");
    assert_ne!(browser.evaluate(paper), before);

    // What has one size is drawn too.
    choose(&mut browser, "workload", "throughput");
    assert_eq!(browser.evaluate("byId('compared').closest('figure').hidden"), false);
    choose(&mut browser, "workload", "cost");
    assert!(!traces(&mut browser, "compared").is_empty());
    assert_clean(&mut browser);
}

/// The width and the title of each picture of an iteration, or of layers: one that cannot be drawn has no width.
const PICTURES: &str =
    "[...document.querySelectorAll('img.picture')].map((img) => [img.naturalWidth, img.alt])";

/// Slow: it opens a browser.
#[test]
fn a_study_is_drawn_as_it_says_below_what_was_measured() {
    let Some(mut browser) = browser() else { return };
    let (results, study) = (fixture::results(), study::study());
    open(&mut browser, &Page::from_all(&[with_study(&results, study.clone())]));
    // The ranked dots stand above what the study concluded.
    choose(&mut browser, "workload", "throughput");
    let order = "(() => { const dots = byId('compared').getBoundingClientRect(); \
         return dots.height > 0 && dots.bottom <= document.querySelector('.conclusions').getBoundingClientRect().top; })()";
    assert_eq!(browser.evaluate(order), true);
    let figure = &study.figures[0];
    let drawn = browser.evaluate(
        "byId('study-0-0').data.map((t) => [t.name, t.line.dash, t.marker.symbol.endsWith('-open'), t.error_y.visible, t.y])",
    );
    for (series, drawn) in figure.series.iter().zip(drawn.as_array().unwrap()) {
        let published = if series.published { ", published" } else { "" };
        assert_eq!(drawn[0], format!("{}{published}", series.name));
        assert_eq!(drawn[1], if series.published { "dash" } else { "solid" });
        assert_eq!(
            (drawn[2].as_bool(), drawn[3].as_bool()),
            (Some(series.published), Some(!series.published))
        );
        for (point, y) in series.points.iter().zip(drawn[4].as_array().unwrap()) {
            assert!(is_close(y, point.y.median));
        }
    }
    let styles = browser
        .evaluate("byId('study-0-0').data.map((t) => [t.line.color, t.marker.symbol.replace('-open', '')])");
    assert_ne!((&styles[0][0], &styles[0][1]), (&styles[1][0], &styles[1][1]), "lines differ");
    assert_eq!(styles[0], styles[2], "a line and what was published of it are alike");
    let axes = browser.evaluate("[byId('study-0-0').layout.xaxis.type, byId('study-0-0').layout.yaxis.type]");
    assert_eq!(axes, json!(["log", "log"]));
    let text = browser.evaluate("byId('studies').innerText");
    let text = text.as_str().unwrap();
    let expected = [
        "holds here",
        "does not hold here",
        "not tested long enough",
        "cannot be measured here: one host",
        "278 µs",
        "949 µs",
        "6.49 µs ±9.5%",
        "TCP is not permitted here",
        "SPARCstation 10 (published)",
        "mqueue: this kernel has none",
    ];
    for words in expected {
        assert!(text.contains(words), "'{words}' is not on the page:\n{text}");
    }
    assert!(text.contains("Not drawn: needs a second host."), "{text}");
    assert_eq!(browser.evaluate("byId('study-0-1')"), Value::Null, "a figure without lines has no axes");
    let pictures = browser.evaluate(PICTURES);
    let pictures = pictures.as_array().unwrap();
    assert_eq!(pictures.len(), 3, "a typical iteration, the slowest, and a sum of layers");
    assert_eq!(pictures[2], json!([720, "The layers: what each adds"]));
    for (picture, choice) in pictures.iter().zip(["typical", "slowest of 5"]) {
        assert_eq!(picture[0], 600, "{picture}");
        let title = picture[1].as_str().unwrap();
        assert!(title.starts_with(&format!("pipe latency 64 same-core, {choice}: ")), "{title}");
    }
    // Heads stand over words as over numbers.
    let heads =
        "[...byId('studies').querySelectorAll('thead th')].map((head) => getComputedStyle(head).textAlign)";
    assert_eq!(browser.evaluate(heads), json!(["left", "right", "right", "left"]));
}

/// The fixture with `text` wherever a file can put text.
fn hostile(text: &str) -> Results {
    let mut results = fixture::results();
    let known = || Fact::Known(text.to_owned());
    let header = &mut results.header;
    let host = &mut header.host;
    (host.name, host.kernel, host.cpu, host.arch) =
        (known(), known(), Fact::Unknown(text.to_owned()), text.to_owned());
    (host.governor, host.virtualisation, host.clocksource) = (known(), known(), known());
    host.mitigations = Fact::Known([(text.to_owned(), text.to_owned())].into());
    host.limits = [(text.to_owned(), known())].into();
    host.caches_bytes = Fact::Known([(text.to_owned(), 7)].into());
    (header.run, header.started_at, header.command) =
        (text.to_owned(), text.to_owned(), vec![text.to_owned(); 2]);
    (header.tool.name, header.tool.version, header.tool.profile) =
        (text.to_owned(), text.to_owned(), text.to_owned());
    header.settings.suite = Some(text.to_owned());
    for dropped in &mut header.plan.dropped {
        (dropped.case, dropped.reason) = (text.to_owned(), text.to_owned());
    }
    results.notes = vec![text.to_owned()];
    for (at, record) in results.records.iter_mut().enumerate() {
        if at % 2 == 0 {
            record.case.spec.name = text.to_owned();
            record.case.spec.params = serde_json::from_value(json!({ text: text })).unwrap();
        }
        if let Outcome::Failed { error } = &mut record.outcome {
            *error = text.to_owned();
        }
        let (name, asked, got) = (text.to_owned(), text.to_owned(), text.to_owned());
        record.warnings.push(Warning::Clamped { name, asked, got });
    }
    results
}

/// Slow: it opens a browser.
#[test]
fn nothing_in_a_results_file_becomes_markup() {
    const HOSTILE: [&str; 10] = [
        "</script><script>window.pwned = 1</script>",
        "<!-- <script>",
        "<img src=x onerror='window.pwned = 1'>",
        "\"'><svg onload=window.pwned=1>",
        "<a href=\"javascript:window.pwned=1\">link</a>",
        "\u{2028}window.pwned=1//\u{2029}",
        "\u{202e}\u{2066}dessever\u{200b}",
        "{{data}} {{script}} ${window.pwned=1} %{y} $x^2$",
        "<b>bold</b> &lt;i&gt; &amp;",
        "__proto__",
    ];
    let Some(mut browser) = browser() else { return };
    for text in HOSTILE {
        let (results, study) = (hostile(text), study::hostile_study(text));
        let analysed = with_study(&results, study);
        open(&mut browser, &Page::from_all(&[analysed.clone(), analysed]));
        browser.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })");
        // The library shows what is under the pointer through its own markup.
        for chart in ["study-0-0", "by-size", "heat", "frontier"] {
            browser.point_at(&format!("#{chart} .nsewdrag"));
        }
        assert_eq!(browser.evaluate("typeof window.pwned"), "undefined", "{text}");
        // Three scripts of the page and the library, and no element that the page does not make.
        let made = "[document.scripts.length, document.querySelectorAll('img, iframe, i, [onload], [onerror], svg a, a[href^=javascript]').length]";
        // The pictures of iterations and of layers are images, in which no script runs: two and one of each study.
        assert_eq!(browser.evaluate(made), json!([4, 6]), "{text}");
        let drawn = browser.evaluate(PICTURES);
        let widths: Vec<&Value> = drawn.as_array().unwrap().iter().map(|picture| &picture[0]).collect();
        assert_eq!(widths, [600, 600, 720, 600, 600, 720].map(|width| json!(width)).each_ref(), "{text}");
        let bold = browser.evaluate("[...document.querySelectorAll('svg tspan')].some((t) => t.style.fontWeight === 'bold' && t.textContent === 'bold')");
        assert_eq!(bold, false, "{text}");
        let shown = browser.evaluate("document.body.innerText");
        let hidden =
            |c: char| c != '\n' && (c.is_control() && c != '\t' || ('\u{202a}'..='\u{2069}').contains(&c));
        assert!(!shown.as_str().unwrap().contains(hidden), "{text}");
        if text.contains('<') {
            assert!(shown.as_str().unwrap().contains(text), "{text} is not shown as it is");
        }
        assert_clean(&mut browser);
    }
}

/// Slow: it opens a browser.
#[test]
fn the_page_fits_a_phone_and_paper() {
    let Some(mut browser) = browser() else { return };
    let (hosts, study) = (two_hosts(), study::study());
    let page = Page::from_all(&[with_study(&hosts[0], study), AnalysedResults::from_results(&hosts[1])]);
    // `cargo xtask release` tries every combination.
    let is_release = std::env::var_os("IPCMARK_EVERY_PAGE").is_some();
    for (name, width, mobile, scheme, is_always) in [
        ("desktop-light", 1280, false, "light", false),
        ("desktop-dark", 1280, false, "dark", true),
        ("phone-light", 390, true, "light", true),
        ("phone-dark", 390, true, "dark", false),
    ] {
        if !is_always && !is_release {
            continue;
        }
        browser.show_as(width, 900, mobile, scheme);
        open(&mut browser, &page);
        let wide = browser.evaluate("document.documentElement.scrollWidth");
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{name} is {wide} wide");
        let dark = browser.evaluate("document.documentElement.dataset.theme");
        assert_eq!(dark, scheme, "{name}");
        // Every control can be reached and has a name.
        let nameless = "[...document.querySelectorAll('button, select, input')].filter((c) => !(c.innerText || c.labels?.[0]?.innerText || c.ariaLabel)).length";
        assert_eq!(browser.evaluate(nameless), 0, "{name}");
        keep(&format!("{name}.png"), &browser.screenshot());
    }
    let pdf = browser.print();
    assert!(pdf.len() > 20_000, "the page prints as {} characters of base64", pdf.len());
    keep("print.pdf", &pdf);
    assert_clean(&mut browser);
}

/// Slow: it opens a browser.
#[test]
fn without_scripts_the_page_says_its_answer_once_and_fits() {
    let Some(mut browser) = browser() else { return };
    let (hosts, study) = (two_hosts(), study::study());
    let claim = study.conclusions[0].claim.clone();
    let page = Page::from_all(&[with_study(&hosts[0], study), AnalysedResults::from_results(&hosts[1])]);
    browser.call("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    for (width, mobile) in [(1280, false), (390, true)] {
        browser.show_as(width, 900, mobile, "light");
        browser.open(&page.path());
        assert_clean(&mut browser);
        let wide = browser.evaluate("document.documentElement.scrollWidth");
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{wide} at {width}");
        let moved =
            "[...document.querySelectorAll('pre, img')].filter((e) => e.scrollWidth > e.clientWidth).length";
        assert_eq!(browser.evaluate(moved), 0, "at {width}");
        let shown = browser.evaluate("document.body.innerText");
        let shown = shown.as_str().unwrap();
        for once in ["The answer of vm-1", "The answer of metal-2", "What it costs", &claim] {
            assert_eq!(shown.matches(once).count(), 1, "{once}:\n{shown}");
        }
        assert_eq!(shown.matches("Fastest round trip").count(), 2, "one of each run:\n{shown}");
        // Nothing is there that only a script would fill.
        let empty = "[...document.querySelectorAll('section, button, select, h1, h2')].filter((e) => e.checkVisibility() && !e.innerText.trim()).length";
        assert_eq!(browser.evaluate(empty), 0);
        assert_eq!(browser.evaluate("document.querySelectorAll('button, select').length > 0"), true);
        assert_eq!(
            browser.evaluate(
                "[...document.querySelectorAll('button, select')].some((e) => e.checkVisibility())"
            ),
            false
        );
        keep(&format!("without-scripts-{width}.png"), &browser.screenshot());
    }
}
