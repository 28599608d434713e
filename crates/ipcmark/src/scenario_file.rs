//! Scenario files, and what is exchanged in them on the command line.

use crate::results_file::read_text;
use mechanisms::registry::CARDS;
use model::{Invalid, Scenario};
use std::path::Path;

/// The scenario that the file at `path` holds.
pub fn read(path: &Path) -> Result<Scenario, Invalid> {
    const LONGEST_BYTES: u64 = 1 << 20;
    let text = read_text(path, LONGEST_BYTES)?;
    let in_file =
        |Invalid { problem, remedy }| Invalid::new(format!("{}: {problem}", path.display()), remedy);
    Scenario::parse(&text, CARDS).map_err(in_file)
}

/// `scenario` with the mechanisms that `exchanges` name, each as `FLOW=MECHANISM`.
pub fn exchanged(scenario: &Scenario, exchanges: &[String]) -> Result<Scenario, Invalid> {
    let mut changed = scenario.clone();
    for text in exchanges {
        changed = changed.exchanged(&changed.exchanges(text, CARDS)?, CARDS)?;
    }
    Ok(changed)
}
