//! The first five minutes of docs/tutorial.md, line by line: every command that it shows does what it says.

use crate::common::{IPCMARK, Place, run};
use std::path::Path;

const TUTORIAL: &str = include_str!("../../../../docs/tutorial.md");

/// The commands of the page, in order.
fn commands() -> Vec<&'static str> {
    let blocks = TUTORIAL.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("$ ")).collect()
}

/// `command` as a test has time for it.
fn shortened(command: &str) -> String {
    let short = command.replace("--time 10s", "--time 2s");
    let needs_time = ["ipcmark compare", "ipcmark explain"].iter().any(|begin| short.starts_with(begin));
    if needs_time { short + " --time 6s" } else { short }
}

/// Slow: the commands measure.
#[test]
fn every_line_of_the_tutorial_can_be_typed() {
    let place = Place::new();
    let directory = Path::new(IPCMARK).parent().unwrap().display().to_string();
    let path = format!("{directory}:{}", std::env::var("PATH").unwrap());
    let all = commands();
    assert!(all.len() >= 6, "{all:?}");
    for command in all {
        let said = run(place.command("sh").env("PATH", &path).args(["-c", &shortened(command)]));
        // Where the kernel records nothing for this user, an explanation says so and ends with 1.
        let is_explained = said.status.success() || command.starts_with("ipcmark explain");
        assert!(is_explained && !said.err.contains("error:"), "{command}: {said}");
    }
    assert!(place.path("first.jsonl").is_file() && place.path("page.html").is_file());
    place.assert_nothing_is_left("the tutorial");
}
