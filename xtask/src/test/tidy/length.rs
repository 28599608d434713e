//! No file is longer than a reader can hold in mind, but for some that have a reason.

use super::breach::Breach;
use super::source_file::SourceFile;

/// So many lines are enough.
const MOST: usize = 600;

/// The files that may be longer, each with the reason.
const MAY_BE_LONGER: [(&str, &str); 1] = [(
    "crates/report/src/html/page.js",
    "a page runs scripts that its policy names by their hashes: one script of ours, which nothing assembles",
)];

/// The Rust files and scripts that are too long, and the entries of the list that no file needs.
pub fn check(sources: &[SourceFile]) -> Vec<Breach> {
    check_with(sources, &MAY_BE_LONGER)
}

fn check_with(sources: &[SourceFile], may_be_longer: &[(&str, &str)]) -> Vec<Breach> {
    let is_code = |source: &&SourceFile| source.is_rust() || source.name.ends_with(".js");
    let long = sources.iter().filter(is_code).filter(|source| source.text.lines().count() > MOST);
    let (excused, long): (Vec<&SourceFile>, Vec<&SourceFile>) =
        long.partition(|source| may_be_longer.iter().any(|(name, _)| *name == source.name));
    let too_long = long.into_iter().map(|source| {
        let lines = source.text.lines().count();
        Breach::new(source, None, format!("{lines} lines; more than {MOST} need a reason in tidy/length.rs"))
    });
    let idle = may_be_longer.iter().filter(|(name, _)| excused.iter().all(|source| source.name != *name));
    let idle = idle.map(|(name, _)| Breach {
        file: (*name).to_owned(),
        line: None,
        message: format!("has at most {MOST} lines or is gone; remove it from the list in tidy/length.rs"),
    });
    too_long.chain(idle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_needs_a_reason_and_a_reason_needs_a_long_file() {
        let sources = [
            SourceFile::new("crates/a/src/long.rs", "\n".repeat(MOST + 1)),
            SourceFile::new("crates/a/src/short.rs", "\n".repeat(MOST)),
            SourceFile::new("docs/long.md", "\n".repeat(MOST + 1)),
        ];
        assert_eq!(check_with(&sources, &[]).len(), 1);
        assert_eq!(check_with(&sources, &[("crates/a/src/long.rs", "one state machine")]), []);
        let breaches = check_with(&sources[1..], &[("crates/a/src/short.rs", "it was long once")]);
        assert!(breaches[0].to_string().contains("remove it from the list"), "{}", breaches[0]);
    }
}
