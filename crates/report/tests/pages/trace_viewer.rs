//! The trace file, read by a program that is not ours: the importer of the viewer that Chromium's developers wrote for the format.
//!
//! What Perfetto makes of the same file is held by the tests beside the writer, which read it as Perfetto does.

use crate::browser::Browser;
use crate::{browser, observed, test_notes, viewer};
use analysis::analysed::AnalysedTimeline;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// Imports the text in `TRACE` and says what the viewer then knows: all that is counted here, in its own words.
const IMPORT: &str = r"(() => {
    const model = new tr.Model();
    new tr.importer.Import(model).importTraces([TRACE]);
    const name = (slice) => slice ? slice.title : 'nothing';
    const counts = {};
    const count = (what) => counts[what] = (counts[what] || 0) + 1;
    for (const thread of model.getAllThreads()) {
        for (const slice of thread.sliceGroup.slices) count(`${thread.name}: ${slice.title} in ${name(slice.parentSlice)}`);
    }
    for (const flow of model.flowEvents) count(`from ${name(flow.startSlice)} to ${name(flow.endSlice)}`);
    const asynchronous = model.getAllThreads().flatMap((thread) => thread.asyncSliceGroup.slices.map((slice) => ({
        thread: thread.name, name: slice.title, from_ms: slice.start, until_ms: slice.end, number: slice.args.number,
    })));
    return {
        warnings: model.importWarnings.map((warning) => warning.message),
        processes: Object.values(model.processes).sort((a, b) => a.sortIndex - b.sortIndex).map((process) => process.name),
        counts, asynchronous,
    };
})()";

/// A browser with the viewer in it; without one, says that no trace is imported, or fails with `CI=true`.
fn viewer() -> Option<Browser> {
    let Some(directory) = viewer::directory() else {
        test_notes::tool_is_missing("a trace viewer", viewer::PACKAGE, "no trace is imported into a viewer");
        return None;
    };
    let mut browser = browser()?;
    let [ours, page] = viewer::FILES.map(|file| fs::read_to_string(directory.join(file)).unwrap());
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("viewer.html");
    fs::write(&path, format!("<!doctype html><meta charset=utf-8><script>{ours}</script>{page}")).unwrap();
    browser.open(&path);
    browser.wait_for("typeof tr === 'object' && typeof tr.importer.Import === 'function'");
    Some(browser)
}

/// What the viewer knows of the trace of the iterations made by hand, which are in `observed`.
fn imported(browser: &mut Browser) -> Value {
    let observation = observed::observation();
    let timeline =
        AnalysedTimeline::from_observation(&observation, "pipe, latency, 64".to_owned(), observed::call_name);
    let trace = report::trace(&timeline);
    browser.evaluate(&IMPORT.replace("TRACE", &json!(trace).to_string()))
}

/// Slow: it opens a browser.
#[test]
fn another_importer_finds_both_tracks_and_all_that_is_on_them() {
    let Some(mut browser) = viewer() else { return };
    let imported = imported(&mut browser);
    assert_eq!(imported["warnings"], json!([]));
    assert_eq!(imported["processes"], json!(["client: pipe, latency, 64", "server: pipe, latency, 64"]));
    let counts: BTreeMap<String, u64> = serde_json::from_value(imported["counts"].clone()).unwrap();
    let expected = [
        // Five iterations of a write and a read, in which client sleeps until server wakes it, and waits for a CPU.
        ("client: write in nothing", 5),
        ("client: wakes server in write", 5),
        ("client: read in nothing", 5),
        ("client: asleep in read", 5),
        ("client: woken, waits for a CPU in read", 5),
        // The same of server, which begins with a read and ends asleep in one that does not return.
        ("server: read in nothing", 5),
        ("server: asleep in read", 5),
        ("server: woken, waits for a CPU in read", 5),
        ("server: write in nothing", 5),
        ("server: wakes client in write", 5),
        ("server: asleep in nothing", 1),
        // The last iteration is slow.
        ("server: page fault in nothing", 1),
        ("server: preempted in nothing", 1),
        // The arrows.
        ("from wakes server to woken, waits for a CPU", 5),
        ("from wakes client to woken, waits for a CPU", 5),
    ];
    assert_eq!(counts, expected.map(|(what, count)| (what.to_owned(), count)).into());
}

/// Slow: it opens a browser.
#[test]
fn another_importer_lays_iterations_one_after_the_other() {
    let Some(mut browser) = viewer() else { return };
    let imported = imported(&mut browser);
    let iterations = imported["asynchronous"].as_array().unwrap();
    let ends_ns = observed::observation().iteration_ends_ns;
    assert_eq!(iterations.len(), ends_ns.len() - 1);
    let mut before_ms = 0.0;
    for (number, (iteration, ends_ns)) in iterations.iter().zip(ends_ns.windows(2)).enumerate() {
        assert_eq!((&iteration["thread"], &iteration["name"]), (&json!("client"), &json!("iteration")));
        assert_eq!(iteration["number"], number + 1);
        let [from_ms, until_ms] = ["from_ms", "until_ms"].map(|name| iteration[name].as_f64().unwrap());
        assert_eq!(((until_ms - from_ms) * 1e6).round() as u64, ends_ns[1] - ends_ns[0]);
        // Iterations that overlap, be it by what rounding leaves, are given rows of their own.
        assert!(from_ms >= before_ms, "{iterations:#?}");
        before_ms = until_ms;
    }
}
