//! What `explain` says of what drivers measure: a sum of layers, in which a delay that was put into one is found in that one.

use crate::common::{Place, has, run};
use serde_json::Value;
use std::process::Command;

/// Long delays are found on a busy host, too.
const DELAY_NS: &str = "20000000";

/// Makes the driver `name` of the one in Python, which is built, with a delay in the layer `layer`.
fn make_delayed(place: &Place, name: &str, layer: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drivers/handwritten/delayed.sh");
    let drivers = place.path("data/ipcmark/drivers");
    let mut command = Command::new("sh");
    run(command.arg(script).arg(drivers).args([name, layer, DELAY_NS])).expect(0);
}

fn ipcmark(place: &Place, words: &[&str]) -> Command {
    let mut command = place.ipcmark(words);
    command.env("XDG_DATA_HOME", place.path("data"));
    command
}

/// The part that the layer `name` is of `bar`.
fn share(bar: &Value, name: &str) -> f64 {
    let layers = bar["layers"].as_array().unwrap();
    let found = layers.iter().find(|layer| layer["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {bar:#}"))["share"]
        .as_f64()
        .unwrap_or_else(|| panic!("{bar:#}"))
}

/// Slow: each of five cases is measured in turn, with delays.
#[test]
fn a_slow_codec_and_a_slow_broker_are_found_in_their_own_layers() {
    if !has("python3", "python3", "the layers of what a driver measures") {
        return;
    }
    let place = Place::new();
    run(&mut ipcmark(&place, &["driver", "build", "python"])).expect(0);
    make_delayed(&place, "slow", "codec");
    make_delayed(&place, "held", "broker");
    let what = ["explain", "slow/multiprocessing-pipe:codec=pickle", "held/relayed"];
    let how = ["-s", "64", "-p", "unpinned", "--time", "40s"];
    let said = run(&mut ipcmark(&place, &[&what[..], &how, &["--format", "json"]].concat())).expect(0);
    let results: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said}"));
    let bars = &results["study"]["stacks"][0]["bars"];
    let codec = share(&bars[0], "serialisation: pickle");
    assert!(codec > 0.5, "{codec} of the time is the codec's: {bars:#}");
    let broker = share(&bars[1], "the broker");
    assert!(broker > 0.5, "{broker} of the time is the broker's: {bars:#}");
    let names: Vec<&Value> =
        bars[0]["layers"].as_array().unwrap().iter().map(|layer| &layer["name"]).collect();
    assert_eq!(
        names,
        ["the mechanism", "the runtime", "framing: a length before each message", "serialisation: pickle"]
    );
    place.assert_nothing_is_left("an explanation of layers");
    let said = run(&mut ipcmark(&place, &["explain", "python/pipe", "--probes", "syscalls"])).expect(2);
    assert!(said.err.contains("without probes"), "{said}");
    let said = run(&mut ipcmark(&place, &["explain", "slow/pipe", "go/pipe"])).expect(2);
    assert!(said.err.contains("the driver go is not built here"), "{said}");
}
