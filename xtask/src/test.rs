//! `cargo xtask test`: everything that must hold before a change lands. What only a release needs is in `release.rs`.
//!
//! Every step selects the whole workspace with all features, so that cargo compiles each crate once to check it and once
//! to run it. A step that selected a part of the workspace would have other features of the dependencies, and compile
//! them and all that is above them again.

#[cfg(feature = "crates")]
pub mod campaign;
pub mod fuzz;
#[cfg(feature = "crates")]
pub mod namespaces;
mod python;
mod rust_tests;
pub mod tidy;

use self::rust_tests::{TestProgram, TestSelection};
use crate::notes::Notes;
use crate::steps::{Times, cargo, step};
use crate::{drivers, programs};

/// What selects the same crates and features in every step.
const ALL: [&str; 2] = ["--workspace", "--all-features"];

const EVERY: TestSelection = TestSelection { is_wanted: |_, _| true, variables: &[] };
const QUICK: TestSelection =
    TestSelection { is_wanted: is_quick, variables: &[("IPCMARK_TEST_MECHANISMS", FEW)] };

/// Makes every check; the first step that fails ends it.
pub fn all() -> Result<(), String> {
    let programs = programs::Installing::start(&programs::OF_TESTS);
    let python = python::Environment::start();
    let (notes, mut times) = (Notes::new()?, Times::default());
    let passed = format_tidy_lints(&mut times)
        .and_then(|()| times.measure("documentation", documentation))
        .and_then(|()| times.measure("build", || rust_tests::build(&ALL)))
        .and_then(|built| {
            times.measure("waiting for packages", || programs.finish());
            times.measure("lints of drivers", || drivers::lint(&notes))?;
            times.measure("tests", || rust_tests::run(&built, EVERY, &notes))
        })
        .and_then(|()| times.measure("Python package", || python.check(&notes)));
    notes.print();
    times.print();
    passed
}

/// The documentation of all items, without warnings. Examples make cargo choose the features as tests have them.
fn documentation() -> Result<(), String> {
    let mut doc = cargo(&["doc", "--no-deps", "--document-private-items", "--lib", "--bins", "--examples"]);
    step("documentation", doc.args(ALL).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Whether `--quick` has this test: those of the libraries, the golden transcripts, bad input, and the conformance suite of [`FEW`].
fn is_quick(program: &TestProgram, name: &str) -> bool {
    match program.selected_by.as_str() {
        "--test all" => name.starts_with("cli::"),
        "--test conformance" => true,
        selected_by => !selected_by.starts_with("--test") && !name.contains("::under_loom::"),
    }
}

/// The mechanisms whose conformance `--quick` tests: a descriptor, a socket, shared memory, and one that has no room for much.
const FEW: &str = "pipe,unix-stream,shm-ring,eventfd";
/// What `--quick` leaves out.
const LEFT_OUT: &str = "\
left out: documentation (rustdoc); conformance of the other mechanisms; exact counts, restricted hosts and explanations
of the binary; deaths of processes; pages in a browser; the ring under loom; the Python package; installing what tests need.
`cargo xtask test` has it all.";

/// Makes the checks that are over soon; says what it leaves out.
pub fn quick() -> Result<(), String> {
    let (notes, mut times) = (Notes::new()?, Times::default());
    let passed = format_tidy_lints(&mut times)
        .and_then(|()| times.measure("build", || rust_tests::build(&ALL)))
        .and_then(|built| times.measure("tests", || rust_tests::run(&built, QUICK, &notes)));
    notes.print();
    times.print();
    println!("{LEFT_OUT}");
    passed
}

fn format_tidy_lints(times: &mut Times) -> Result<(), String> {
    times.measure("format", || step("format", &mut cargo(&["fmt", "--all", "--check"])))?;
    times.measure("tidy", || {
        println!("== tidy");
        tidy::check()
    })?;
    let mut lints = cargo(&["clippy", "--all-targets"]);
    // The fuzzer itself, in C++, is not compiled: nothing is linked.
    lints.args(ALL).args(["--", "-D", "warnings"]).env("CUSTOM_LIBFUZZER_PATH", "/dev/null");
    times.measure("lints", || step("lints", &mut lints))
}
