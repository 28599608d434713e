//! The project's own tasks: `cargo xtask test`, `release`, `tidy`, `book`, `campaign`, `fuzz`, `docs`, `bench`. Not part of what users install.
//!
//! Without the feature `crates` it is small and quick to build, for every test begins with building it. What needs
//! ipcmark's own crates, `campaign`, `docs` and `bench`, is done by a second build of it, which this one starts.
#![forbid(unsafe_code)]

#[cfg(feature = "crates")]
mod bench;
mod docs;
mod drivers;
mod notes;
mod programs;
mod release;
mod steps;
mod test;
mod test_notes;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK
  test           check everything that must hold: format, tidy, lints, documentation, all tests
  test --quick   the same without what takes long; says at the end what it left out
  tidy           check what no compiler checks: words, names, imports, lengths of files
  docs           write the generated documentation again
  book           make a site of the documents, in target/book
  bench NAME     print ratios, each measured in one interleaved run. NAME is one of
                 bare, trial, stream, others, remote, probes, explain;
                 bare CASE, stream CASE, others PROGRAM, remote PROGRAM, explain MECHANISM: those whose names begin so;
                 bare pages: a loop that touches more memory, over the loop;
                 coverage [RUNS [SECONDS [MINUTES]]]: how often an interval covers what all runs say;
                 same [RUNS [SECONDS]]: what ipcmark says of runs that differ in nothing;
                 power [REPETITIONS [SECONDS [PART…]]]: how often it finds a delay that is injected;
                 PART is interleaved or between-runs, and same-core or same-llc;
                 model FILE…: how far results files of one host agree, and how often their intervals cover it;
                 advise: how often what is advised is the fastest of all candidates;
                 predict [NAME [PASSES]]: what is predicted of real servers beside what `try` measures;
                 try [NAME [PASSES]]: exchanges of real servers beside their own Unix sockets; try filter: what the filter costs;
                 static [SECONDS]: the static binary beside cargo's own build;
                 languages [NAME]: drivers over loops written by hand in each language;
                 layers [NAME [PASSES]]: where sums of layers find delays that are put into one;
                 memory [SECONDS]: the most memory of a run of the default suite;
                 page: the time to make and to open a report of ten thousand cases
  release        make what users install, in target/dist: archives, Debian packages, images, checksums, a bill of materials;
                 test the package, pages in every size, and the other machine types, emulated
  campaign [MINUTES [PART…]]
                 kill, fill, starve, cut links and fuzz for so long (default 60); prints a table.
                 PART is miri, kills, hosts or fuzz
  fuzz [SECONDS] run every fuzz target for so long each (default 60); needs a nightly toolchain";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test"] => test::all(),
        ["test", "--quick"] => test::quick(),
        ["tidy"] => test::tidy::check(),
        ["book"] => docs::book::write(),
        ["fuzz"] => test::fuzz::run("60"),
        ["fuzz", seconds] => test::fuzz::run(seconds),
        ["release"] => release::all(),
        _ => with_crates(&words),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The tasks that need ipcmark's own crates, and the processes that the benchmarks start from this program.
#[cfg(feature = "crates")]
fn with_crates(words: &[&str]) -> Result<(), String> {
    if let Some(done) = harness::hidden::dispatch(words.iter().map(Into::into)) {
        return done.map_err(|failure| failure.to_string());
    }
    match words {
        ["docs"] => docs::generated::write(),
        ["campaign"] => test::campaign::run("60", &[]),
        ["campaign", minutes, parts @ ..] => test::campaign::run(minutes, parts),
        ["bench", name, arguments @ ..] => {
            bench::run(name, arguments).unwrap_or_else(|| Err(USAGE.to_owned()))
        }
        [bench::probes::ONE_TRIAL] => bench::probes::one_trial(),
        [bench::by_hand::BY_HAND, rest @ ..] => bench::by_hand::endpoint(rest),
        _ => Err(USAGE.to_owned()),
    }
}

/// Starts the build that has ipcmark's own crates.
#[cfg(not(feature = "crates"))]
fn with_crates(words: &[&str]) -> Result<(), String> {
    let build = ["run", "--quiet", "--package", "xtask", "--features", "crates"];
    // What measures is optimised; what writes documentation need not be.
    let profile: &[&str] = match words {
        ["docs"] | ["campaign", ..] => &[],
        ["bench", ..] => &["--release"],
        _ => return Err(USAGE.to_owned()),
    };
    steps::step(words[0], steps::cargo(&build).args(profile).arg("--").args(words))
}
