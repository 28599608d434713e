//! Scenario files, and what is exchanged in them on the command line.

use crate::exit::Error;
use crate::results_file::read_text;
use mechanisms::registry::CARDS;
use model::{Invalid, Scenario};
use std::path::Path;

/// The scenario that the file at `path` holds.
pub fn read(path: &Path) -> Result<Scenario, Error> {
    const LONGEST_BYTES: u64 = 1 << 20;
    let text = read_text(path, LONGEST_BYTES)?;
    let in_file =
        |Invalid { problem, remedy }| Invalid::new(format!("{}: {problem}", path.display()), remedy);
    Scenario::parse(&text, CARDS).map_err(in_file).map_err(Error::from)
}

/// `scenario` with the mechanisms that `exchanges` name, each as `FLOW=MECHANISM`.
pub fn exchanged(scenario: &Scenario, exchanges: &[String]) -> Result<Scenario, Invalid> {
    let all: Result<Vec<_>, Invalid> = exchanges.iter().map(|text| scenario.exchanges(text, CARDS)).collect();
    scenario.exchanged(&all?.concat(), CARDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The directory of the scenarios that come with the source.
    const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");

    #[test]
    fn every_scenario_that_comes_along_is_read_and_so_is_what_is_written_of_it() {
        let files: Vec<_> =
            std::fs::read_dir(SCENARIOS).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() >= 4, "{files:?}");
        for file in files {
            let scenario = read(&file).unwrap_or_else(|invalid| panic!("{invalid:?}"));
            // Shares are rounded in the text.
            let again = Scenario::parse(&scenario.to_toml(), CARDS).unwrap();
            assert_eq!((again.processes, again.flows.len()), (scenario.processes, scenario.flows.len()));
        }
    }

    #[test]
    fn the_example_of_the_page_is_a_scenario() {
        let page = include_str!("../../../docs/reference/scenario.md");
        let text = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let scenario = Scenario::parse(text, CARDS).unwrap_or_else(|invalid| panic!("{invalid}"));
        let changed = exchanged(&scenario, &["query=unix-stream:sndbuf=64K,fetch=pipe".to_owned()]).unwrap();
        let names: Vec<String> = changed.flows.iter().map(|flow| flow.mechanism.to_string()).collect();
        assert_eq!(names, ["unix-stream:sndbuf=64K", "pipe"]);
    }
}
