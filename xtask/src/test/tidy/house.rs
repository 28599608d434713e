//! Rules of the house for single files: each says what it is, only `sys` is unsafe, one file reads the clock.

use super::breach::Breach;
use super::source_file::SourceFile;

/// Whose files may read a clock: the one of the harness, tests, and what is no part of ipcmark.
const MAY_READ_CLOCK: [&str; 4] = ["harness/src/clock.rs", "/tests/", "/examples/", "xtask/"];

/// The Rust files that break a rule.
pub fn check(sources: &[SourceFile]) -> Vec<Breach> {
    sources.iter().filter(|source| source.is_rust()).flat_map(of_file).collect()
}

fn of_file(source: &SourceFile) -> Vec<Breach> {
    let (name, text) = (&source.name, &source.text);
    let mut breaches = Vec::new();
    let mut find = |message: &str| breaches.push(Breach::new(source, None, message));
    if !text.starts_with("//!") && !text.starts_with("#![") {
        find("does not open with what it is and what it is not (//!)");
    }
    let is_crate_root = name.ends_with("src/lib.rs") || name.ends_with("src/main.rs");
    if is_crate_root && !name.contains("crates/sys/") && !text.contains("#![forbid(unsafe_code)]") {
        find("does not forbid unsafe code");
    }
    let reads_clock = ["Instant::now", "SystemTime::now"].iter().any(|call| text.contains(call));
    if reads_clock && !MAY_READ_CLOCK.iter().any(|part| name.contains(part)) {
        find("reads a clock; only harness/src/clock.rs does");
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: &str, text: &str) -> usize {
        check(&[SourceFile::new(name, text)]).len()
    }

    #[test]
    fn a_file_opens_with_what_it_is() {
        assert_eq!(count("crates/model/src/a.rs", "//! Nouns. No verbs.\nfn f() {}"), 0);
        assert_eq!(count("crates/model/src/a.rs", "fn f() {}"), 1);
    }

    #[test]
    fn only_sys_is_unsafe() {
        assert_eq!(count("crates/model/src/lib.rs", "//! Nouns.\n#![forbid(unsafe_code)]"), 0);
        assert_eq!(count("crates/model/src/lib.rs", "//! Nouns."), 1);
        assert_eq!(count("crates/sys/src/lib.rs", "//! The kernel's facilities."), 0);
    }

    #[test]
    fn one_file_reads_the_clock() {
        let text = "//! A clock.\nfn f() { Instant::now(); }";
        assert_eq!(count("crates/harness/src/clock.rs", text), 0);
        assert_eq!(count("crates/harness/src/run.rs", text), 1);
        assert_eq!(count("crates/ipcmark/tests/all/common.rs", text), 0);
    }
}
