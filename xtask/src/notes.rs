//! What tests say of themselves, from all steps of a test run: the list of what is skipped, and why slow ones are slow.

use crate::steps::root;
use crate::test_notes::{REASONS, SKIPS};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// The files to which tests add a line each.
pub struct Notes {
    skips: PathBuf,
    reasons: PathBuf,
}

impl Notes {
    /// Begins empty lists.
    pub fn new() -> Result<Self, String> {
        // Not in the directory for temporary files, where a link of another user may have that name.
        let directory = root().join("target");
        fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        let file = |kind: &str| directory.join(format!("{kind}-{}", std::process::id()));
        let notes = Self { skips: file("skips"), reasons: file("slow-tests") };
        for file in [&notes.skips, &notes.reasons] {
            fs::write(file, "").map_err(|error| format!("{}: {error}", file.display()))?;
        }
        Ok(notes)
    }

    /// `command`, whose tests write to the files.
    pub fn noted_by<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(SKIPS, &self.skips).env(REASONS, &self.reasons)
    }

    /// The tests that said why they are slow, and why.
    pub fn reasons(&self) -> Vec<(String, String)> {
        let text = fs::read_to_string(&self.reasons).unwrap_or_default();
        let parts = text.lines().filter_map(|line| line.split_once(": "));
        parts.map(|(test, why)| (test.to_owned(), why.to_owned())).collect()
    }

    /// Prints what was skipped.
    pub fn print(&self) {
        let text = fs::read_to_string(&self.skips).unwrap_or_default();
        print!("{}", list(&text));
    }

    /// Notes `text`, which says what is missing and what is not tested. With `CI=true` that is a failure.
    pub fn tool_is_missing(&self, text: &str) -> Result<(), String> {
        if std::env::var_os("CI").is_some_and(|ci| ci == "true") {
            return Err(format!("CI=true, and {text}"));
        }
        let file = OpenOptions::new().append(true).open(&self.skips);
        file.and_then(|mut file| writeln!(file, "{text}"))
            .map_err(|error| format!("{}: {error}", self.skips.display()))
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        for file in [&self.skips, &self.reasons] {
            // Beside what cargo builds it bothers nobody.
            let _ = fs::remove_file(file);
        }
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
