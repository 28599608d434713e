//! What `explain` says of what drivers measure: a sum of layers, in which a delay that was put into one is found in that one.

use crate::common::{Place, has, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A broker of the test's own, which holds up each message, and how a driver in Python goes through it. Long delays are found on a busy host, too.
const BROKER: &str = r#"
RELAY = """
import os, select, socket, sys, time
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
one, other = listener.accept()[0], listener.accept()[0]
while True:
    for source in select.select([one, other], [], [])[0]:
        message = source.recv(1 << 20)
        if not message:
            sys.exit()
        time.sleep(0.02)
        (other if source is one else one).sendall(message)
"""


def through_a_broker(orders):
    from endpoint import started
    if orders["role"] == "server":
        path = os.path.join(orders["directory"], f"{orders['number']}.broker")
        started(["python3", "-c", RELAY, path])
        say({"ticket": list(path.encode())})
    else:
        path = ticket().decode()
    sock = socket.socket(socket.AF_UNIX)
    while sock.connect_ex(path):
        pass
    return of_socket(sock)


run("#;

/// Makes the driver `slow` of the one in Python, which is built: its codec works for 20 ms, and it has a broker.
fn make_slow(place: &Place) {
    let drivers = place.path("data/ipcmark/drivers");
    let slow = drivers.join("slow");
    fs::create_dir(&slow).unwrap();
    for file in fs::read_dir(drivers.join("python")).unwrap() {
        let file = file.unwrap().path();
        if file.is_file() {
            fs::copy(&file, slow.join(file.file_name().unwrap())).unwrap();
        }
    }
    change(&slow.join("driver.py"), "\nrun(", BROKER);
    change(
        &slow.join("driver.py"),
        "\"python\",",
        "\"slow\", {\"slow-broker\": (through_a_broker, [\"latency\"])} |",
    );
    let (codec, pickled) = (slow.join("codec.py"), "return pickle.dumps({");
    let works = "end = time.perf_counter() + 0.02\n        while time.perf_counter() < end:\n            pass\n        ";
    change(&codec, "import pickle\n", "import pickle\nimport time\n");
    change(&codec, pickled, &format!("{works}{pickled}"));
    let broker = "\n[[mechanism]]\nname = \"slow-broker\"\nworkloads = [\"latency\"]\nsummary = \"a broker\"\nwithout = \"unix-stream\"\nadds = \"the broker\"\n";
    let manifest = slow.join("driver.toml");
    change(&manifest, "name = \"python\"", "name = \"slow\"");
    fs::write(&manifest, fs::read_to_string(&manifest).unwrap() + broker).unwrap();
}

fn change(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{}: {from}", file.display());
    fs::write(file, text.replacen(from, to, 1)).unwrap();
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
    make_slow(&place);
    let what = ["explain", "slow/multiprocessing-pipe:codec=pickle", "slow/slow-broker"];
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
}
