//! `cargo xtask test`: everything that must hold before a change lands.
//!
//! Every step selects the whole workspace with all features, so that cargo compiles each crate once to check it and once
//! to run it. A step that selected a part of the workspace would have other features of the dependencies, and compile
//! them and all that is above them again.

use crate::skipped::Skipped;
use crate::steps::{cargo, root, step};
use crate::{dist, fuzz, programs, python, rust_tests, tidy};

/// What selects the same crates and features in every step.
const ALL: [&str; 2] = ["--workspace", "--all-features"];

/// Makes every check; the first failure ends it.
pub fn all() -> Result<(), String> {
    let programs = programs::Installing::start();
    let python = python::Environment::start();
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
    let tests = rust_tests::run(&ALL, &skipped);
    let package = tests.and_then(|()| python.check(&skipped));
    let ring = package.and_then(|()| ring_under_loom());
    let fuzzed = ring.and_then(|()| fuzz::check());
    let packed = fuzzed.and_then(|()| dist::check(&skipped));
    skipped.print();
    packed
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
left out: documentation (rustdoc); the Debian package; conformance of the other mechanisms; exact counts, restricted hosts and explanations
of the binary; deaths of processes; pages in a browser; the ring under loom; fuzz targets; the Python package; installing what tests need.
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
