//! The list of what tests skip, from all steps of a test run.

use crate::steps::root;
use crate::test_notes::SKIPS;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// The file to which each skip adds a line.
pub struct Notes(PathBuf);

impl Notes {
    /// Begins an empty list.
    pub fn new() -> Result<Self, String> {
        // Not in the directory for temporary files, where a link of another user may have that name.
        let file = root().join("target").join(format!("skips-{}", std::process::id()));
        fs::create_dir_all(root().join("target")).map_err(|error| error.to_string())?;
        fs::write(&file, "").map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Self(file))
    }

    /// `command`, whose tests write to the file.
    pub fn noted_by<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(SKIPS, &self.0)
    }

    /// Prints what was skipped.
    pub fn print(&self) {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        print!("{}", list(&text));
    }

    /// Notes `text`, which says what is missing and what is not tested. With `CI=true` that is a failure.
    pub fn tool_is_missing(&self, text: &str) -> Result<(), String> {
        if std::env::var_os("CI").is_some_and(|ci| ci == "true") {
            return Err(format!("CI=true, and {text}"));
        }
        let file = OpenOptions::new().append(true).open(&self.0);
        file.and_then(|mut file| writeln!(file, "{text}"))
            .map_err(|error| format!("{}: {error}", self.0.display()))
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        // Beside what cargo builds it bothers nobody.
        let _ = fs::remove_file(&self.0);
    }
}

/// `text`, a line for each skip, as a list: what is not tested, why, and what makes it run; and which tests say so.
fn list(text: &str) -> String {
    let mut skips: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in text.lines() {
        let (test, what) = line.split_once(": ").unwrap_or(("", line));
        skips.entry(what).or_default().insert(test);
    }
    if skips.is_empty() {
        return "== skipped: nothing\n".to_owned();
    }
    let lines = skips.iter().map(|(what, tests)| {
        let first = tests.first().copied().unwrap_or_default();
        let more = if tests.len() > 1 { format!(" and {} more", tests.len() - 1) } else { String::new() };
        format!("  {what} ({first}{more})\n")
    });
    format!("== skipped: {}\n{}", skips.len(), lines.collect::<String>())
}

#[test]
fn skips_are_counted_and_listed() {
    assert_eq!(list(""), "== skipped: nothing\n");
    let text = "b: x: no; do\na: x: no; do\nc: y: none; do\n";
    assert_eq!(list(text), "== skipped: 2\n  x: no; do (a and 1 more)\n  y: none; do (c)\n");
}
