//! The list of the tests that say that they are skipped, from all steps of a test run.

use crate::skips;
use crate::steps::root;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// The tests that say that they are skipped, each in a line of a file.
pub struct Skipped(PathBuf);

impl Skipped {
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
        command.env(skips::FILE, &self.0)
    }

    /// Prints the list.
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

impl Drop for Skipped {
    fn drop(&mut self) {
        // Beside what cargo builds it bothers nobody.
        let _ = fs::remove_file(&self.0);
    }
}

/// `text`, a line for each skip, as a list with a count.
fn list(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    match lines.len() {
        0 => "== skipped: nothing\n".to_owned(),
        count => format!("== skipped: {count}\n{}\n", lines.join("\n")),
    }
}

#[test]
fn skips_are_counted_and_listed() {
    assert_eq!(list(""), "== skipped: nothing\n");
    assert_eq!(list("b: no\na: no\nb: no\n"), "== skipped: 2\na: no\nb: no\n");
}
