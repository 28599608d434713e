//! The suites that come with the program, and suite files.

use crate::results_file::read_text;
use mechanisms::table::CARDS;
use model::Invalid;
use model::suite::Suite;
use std::path::Path;

/// The suite that runs when none is named.
pub const DEFAULT: &str = "default";

/// The suites by name, as text.
pub const SUITES: &[(&str, &str)] = &[
    (DEFAULT, include_str!("../../../suites/default.toml")),
    ("barefoot", include_str!("../../../suites/barefoot.toml")),
    ("mueller", include_str!("../../../suites/mueller.toml")),
    ("l41", include_str!("../../../suites/l41.toml")),
    ("splice", include_str!("../../../suites/splice.toml")),
    ("wisconsin", include_str!("../../../suites/wisconsin.toml")),
];

/// The suite that `name` names, or that the file `name` holds.
pub fn find(name: &str) -> Result<Suite, Invalid> {
    if let Some((_, text)) = SUITES.iter().find(|(known, _)| *known == name) {
        return Suite::parse(text, CARDS);
    }
    if !name.contains('/') && !name.ends_with(".toml") {
        let known = SUITES.iter().map(|(name, _)| *name);
        let Invalid { problem, remedy } = Invalid::unknown("suite", name, known);
        return Err(Invalid::new(
            problem,
            format!("{remedy}; a file is named by its path, such as ./{name}.toml"),
        ));
    }
    const LONGEST_BYTES: u64 = 1 << 20;
    let text = read_text(Path::new(name), LONGEST_BYTES)?;
    Suite::parse(&text, CARDS)
        .map_err(|Invalid { problem, remedy }| Invalid::new(format!("{name}: {problem}"), remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_is_valid_and_known_by_its_own_name() {
        for (name, text) in SUITES {
            let suite = Suite::parse(text, CARDS).unwrap_or_else(|invalid| panic!("{name}: {invalid}"));
            assert_eq!(suite.name, *name);
            assert!(suite.quick.is_some_and(|quick| quick < suite.time) && suite.study.is_some(), "{name}");
        }
    }
}
