//! The suites that come with the program, and suite files.

use crate::drivers;
use crate::exit::Error;
use crate::results_file::read_text;
use mechanisms::registry::cards;
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
    ("languages", include_str!("../../../suites/languages.toml")),
    ("middleware", include_str!("../../../suites/middleware.toml")),
];

/// Whether `word` names a suite, and no mechanism: one of the program's, or a path.
pub fn is_named(word: &str) -> bool {
    SUITES.iter().any(|(known, _)| *known == word)
        || word.ends_with(".toml")
        || word.contains('/') && !drivers::are_named(word)
}

/// The suite that `name` names, or that the file `name` holds.
pub fn find(name: &str) -> Result<Suite, Error> {
    if let Some((_, text)) = SUITES.iter().find(|(known, _)| *known == name) {
        return Suite::parse(text, &cards()).map_err(Error::from);
    }
    if !is_named(name) {
        let known = SUITES.iter().map(|(name, _)| *name);
        let Invalid { problem, remedy } = Invalid::unknown("suite", name, known);
        let remedy = format!("{remedy}; a file is named by its path, such as ./{name}.toml");
        return Err(Invalid::new(problem, remedy).into());
    }
    const LONGEST_BYTES: u64 = 1 << 20;
    let text = read_text(Path::new(name), LONGEST_BYTES)?;
    let in_file = |Invalid { problem, remedy }| Invalid::new(format!("{name}: {problem}"), remedy);
    Suite::parse(&text, &cards()).map_err(in_file).map_err(Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::card::Card;

    /// The cards that there are where drivers are known.
    fn with_drivers() -> Vec<Card> {
        drivers::register().unwrap();
        cards()
    }

    #[test]
    fn every_suite_is_valid_and_known_by_its_own_name() {
        for (name, text) in SUITES {
            let suite =
                Suite::parse(text, &with_drivers()).unwrap_or_else(|invalid| panic!("{name}: {invalid}"));
            assert_eq!(suite.name, *name);
            assert!(suite.quick.is_some_and(|quick| quick < suite.time) && suite.study.is_some(), "{name}");
        }
    }

    /// The tables and figures of the studies: the suite's section in docs/reference/studies.md and what stands in backquotes in the second
    /// column of its rows.
    #[test]
    fn the_page_of_the_studies_names_every_table_and_figure() {
        let page = include_str!("../../../docs/reference/studies.md");
        drivers::register().unwrap();
        for section in page.split("\n## `").skip(1) {
            let name = section.split('`').next().unwrap();
            let study = find(name).unwrap().study.unwrap();
            let tables = study.tables.iter().map(|table| table.name.as_str());
            let mut drawn: Vec<&str> =
                tables.chain(study.figures.iter().map(|figure| figure.name.as_str())).collect();
            let rows = section.lines().filter(|line| line.starts_with("| ")).skip(2);
            let cells = rows.filter_map(|row| row.split('|').nth(2));
            let mut named: Vec<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
            // What the suite has beside the study's own may stand in a remark.
            drawn.retain(|name| named.contains(name) || !section.contains(&format!("`{name}`")));
            drawn.sort_unstable();
            named.sort_unstable();
            assert_eq!(named, drawn, "{name}");
        }
        for (name, _) in SUITES.iter().filter(|(name, _)| *name != DEFAULT) {
            assert!(
                page.contains(&format!("\n## `{name}`: ")),
                "docs/reference/studies.md has no section of {name}"
            );
        }
    }

    #[test]
    fn the_example_of_the_format_is_a_suite() {
        let page = include_str!("../../../docs/reference/suites.md");
        let text = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let suite = Suite::parse(text, &with_drivers()).unwrap_or_else(|invalid| panic!("{invalid}"));
        assert!(suite.study.is_some());
    }
}
