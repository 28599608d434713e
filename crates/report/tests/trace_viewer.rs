//! The trace file, read by a program that is not ours: the importer of the viewer that Chromium's developers wrote for the format.
//!
//! What Perfetto makes of the same file is held by the tests beside the writer, which read it as Perfetto does.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

mod browser;
#[path = "../src/observed.rs"]
mod observed;
#[path = "browser/viewer.rs"]
mod viewer;

use browser::{Browser, browser};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;

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

/// A browser with the viewer in it; without one, says past the capture of the test harness that traces are not imported.
fn viewer() -> Option<Browser> {
    let Some(directory) = viewer::directory() else {
        let text = format!(
            "\nNOT TESTED: there is no trace viewer here: no trace is imported into it; apt-get install {}\n",
            viewer::PACKAGE
        );
        let _ = std::io::stderr().write_all(text.as_bytes());
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

/// What the viewer knows of the trace of the turns made by hand, which are in `observed`.
fn imported(browser: &mut Browser) -> Value {
    let trace = report::trace(&observed::observation(), "pipe, latency, 64", observed::call_name);
    browser.evaluate(&IMPORT.replace("TRACE", &json!(trace).to_string()))
}

#[test]
fn another_importer_finds_both_tracks_and_all_that_is_on_them() {
    let Some(mut browser) = viewer() else { return };
    let imported = imported(&mut browser);
    assert_eq!(imported["warnings"], json!([]));
    assert_eq!(imported["processes"], json!(["near: pipe, latency, 64", "far: pipe, latency, 64"]));
    let counts: BTreeMap<String, u64> = serde_json::from_value(imported["counts"].clone()).unwrap();
    let expected = [
        // Five turns of a write and a read, in which near sleeps until far wakes it, and waits for a CPU.
        ("near: write in nothing", 5),
        ("near: wakes far in write", 5),
        ("near: read in nothing", 5),
        ("near: asleep in read", 5),
        ("near: woken, waits for a CPU in read", 5),
        // The same of far, which begins with a read and ends asleep in one that does not return.
        ("far: read in nothing", 5),
        ("far: asleep in read", 5),
        ("far: woken, waits for a CPU in read", 5),
        ("far: write in nothing", 5),
        ("far: wakes near in write", 5),
        ("far: asleep in nothing", 1),
        // The last turn is slow.
        ("far: page fault in nothing", 1),
        ("far: preempted in nothing", 1),
        // The arrows.
        ("from wakes far to woken, waits for a CPU", 5),
        ("from wakes near to woken, waits for a CPU", 5),
    ];
    assert_eq!(counts, expected.map(|(what, count)| (what.to_owned(), count)).into());
}

#[test]
fn another_importer_lays_turns_one_after_the_other() {
    let Some(mut browser) = viewer() else { return };
    let imported = imported(&mut browser);
    let turns = imported["asynchronous"].as_array().unwrap();
    let ends_ns = observed::observation().turn_ends_ns;
    assert_eq!(turns.len(), ends_ns.len() - 1);
    let mut before_ms = 0.0;
    for (number, (turn, ends_ns)) in turns.iter().zip(ends_ns.windows(2)).enumerate() {
        assert_eq!((&turn["thread"], &turn["name"]), (&json!("near"), &json!("turn")));
        assert_eq!(turn["number"], number + 1);
        let [from_ms, until_ms] = ["from_ms", "until_ms"].map(|name| turn[name].as_f64().unwrap());
        assert_eq!(((until_ms - from_ms) * 1e6).round() as u64, ends_ns[1] - ends_ns[0]);
        // Turns that overlap, be it by what rounding leaves, are given rows of their own.
        assert!(from_ms >= before_ms, "{turns:#?}");
        before_ms = until_ms;
    }
}
