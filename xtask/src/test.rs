//! `cargo xtask test`: everything that must hold before a change lands.
//!
//! Every step selects the whole workspace with all features, so that cargo compiles each crate once to check it and once
//! to run it. A step that selected a part of the workspace would have other features of the dependencies, and compile
//! them and all that is above them again.

use crate::steps::{cargo, root, step};
use crate::{programs, skips, tidy};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// What selects the same crates and features in every step.
const ALL: [&str; 2] = ["--workspace", "--all-features"];

/// Makes every check; the first failure ends it.
pub fn all() -> Result<(), String> {
    let programs = programs::Installing::start();
    format_tidy_lints()?;
    // Examples, of which there are none, make cargo choose the features as tests have them.
    step(
        "documentation",
        cargo(&["doc", "--no-deps", "--document-private-items", "--lib", "--bins", "--examples"])
            .args(ALL)
            .env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    step("build", cargo(&["test", "--no-run"]).args(ALL))?;
    programs.finish();
    let skipped = Skipped::new()?;
    let tests = step("tests", skipped.noted_by(cargo(&["test"]).args(ALL)));
    let ring = tests.and_then(|()| ring_under_loom());
    skipped.print();
    ring
}

/// The ring's own tests with loom's atomics, under every interleaving. Nothing but the ring can be built with these.
fn ring_under_loom() -> Result<(), String> {
    step(
        "the ring under every interleaving (loom)",
        cargo(&["test", "--package", "sys", "--profile", "loom", "--lib", "ring"])
            .env("RUSTFLAGS", "--cfg loom")
            .env("CARGO_TARGET_DIR", root().join("target/loom")),
    )
}

/// What `quick` runs of the tests: a name, and the arguments of cargo.
const QUICK: [(&str, &[&str]); 3] = [
    ("unit and property tests", &["--lib", "--bins"]),
    ("golden transcripts and bad input", &["--test", "all", "--", "cli::"]),
    ("conformance of a few mechanisms", &["--test", "conformance"]),
];
/// The mechanisms whose conformance `quick` tests: a descriptor, a socket, shared memory, and one that has no room for much.
const FEW: &str = "pipe,unix-stream,shm-ring,eventfd";
/// What `quick` leaves out.
const LEFT_OUT: &str = "\
left out: documentation (rustdoc); conformance of the other mechanisms; exact counts, restricted hosts and explanations
of the binary; deaths of processes; pages in a browser; the ring under loom; installing what tests need.
`cargo xtask test` has it all.";

/// Makes the checks that are over soon; says what it leaves out.
pub fn quick() -> Result<(), String> {
    format_tidy_lints()?;
    step("build", cargo(&["test", "--no-run"]).args(ALL))?;
    let skipped = Skipped::new()?;
    let tests = QUICK.iter().try_for_each(|(name, arguments)| {
        step(
            name,
            skipped.noted_by(cargo(&["test"]).args(ALL).args(*arguments).env("IPCMARK_TEST_MECHANISMS", FEW)),
        )
    });
    skipped.print();
    println!("{LEFT_OUT}");
    tests
}

fn format_tidy_lints() -> Result<(), String> {
    step("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    println!("== tidy");
    tidy::check()?;
    step("lints", cargo(&["clippy", "--all-targets"]).args(ALL).args(["--", "-D", "warnings"]))
}

/// The tests that say that they are skipped, each in a line of a file.
struct Skipped(PathBuf);

impl Skipped {
    fn new() -> Result<Self, String> {
        // Not in the directory for temporary files, where a link of another user may have that name.
        let file = root().join("target").join(format!("skips-{}", std::process::id()));
        fs::create_dir_all(root().join("target")).map_err(|error| error.to_string())?;
        fs::write(&file, "").map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Self(file))
    }

    /// `command`, whose tests write to the file.
    fn noted_by<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(skips::FILE, &self.0)
    }

    fn print(&self) {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        print!("{}", list(&text));
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
