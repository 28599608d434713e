//! Report computes nothing: what it shows was computed by `analysis`, once for all forms.

use std::fs;
use std::path::{Path, PathBuf};

/// What no form of a report may call, or take from a crate that computes.
const FORBIDDEN: [&str; 15] = [
    "analysis::stats",
    "analysis::summary",
    "analysis::study::evaluate(",
    "analysis::study::evaluate_results",
    "analysis::study::{",
    "analysis::compare::compare",
    "compare_paired(",
    "summarise(",
    "evaluate_results(",
    "quantiles_ns(",
    "quantile_ns(",
    ".decode()",
    "floor_of(",
    "chosen(",
    "tracks(observation",
];

/// All sources of this crate but its tests and what they are made of.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let of_tests = ["tests", "fixture.rs", "explained.rs", "observed.rs"];
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let own = entries.filter(|path| !of_tests.iter().any(|name| path.ends_with(name)));
    own.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

#[test]
fn no_form_of_a_report_computes() {
    let all = sources(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").as_path());
    assert!(all.len() > 30, "{all:?}");
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        let source = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for forbidden in FORBIDDEN {
            assert!(!source.contains(forbidden), "{}: {forbidden}", path.display());
        }
    }
}
