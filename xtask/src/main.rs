//! The project's own tasks: `cargo xtask test`, `bench`, `fuzz`, `docs`. Not part of what users install.
#![forbid(unsafe_code)]

mod bench;
mod docs;
mod fuzz;
mod others;
mod page;
mod probes;
mod programs;
mod steps;
mod test;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK
  test           format, lints, documentation, every test, and what only a whole build can show
  bench NAME     print ratios measured in one interleaved run: bare, ring, same, trial, others,
                 probes;
                 others PROGRAM: one of them;
                 page: what a report of ten thousand cases takes to make and to open
  fuzz [SECONDS] run every fuzz target for so long each (default 60); needs a nightly toolchain
  docs           write the generated documentation anew";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test"] => test::run(),
        ["bench", name] => bench::run(name, ""),
        ["bench", "others", program] => bench::run("others", program),
        ["fuzz"] => fuzz::run("60"),
        ["fuzz", seconds] => fuzz::run(seconds),
        ["docs"] => docs::write(),
        // The benchmarks trial endpoints, which are re-executions of whatever program trials them.
        [harness::protocol::orders::COMMAND, coordinator] => {
            harness::endpoint::process::main(coordinator).map_err(|failure| failure.to_string())
        }
        [harness::coordinator::run_directory::JANITOR, _, path] => {
            harness::coordinator::run_directory::janitor(Path::new(path));
            Ok(())
        }
        [observe::ptrace::COMMAND, tid] => observe::ptrace::main(tid).map_err(|failure| failure.to_string()),
        [probes::ONE_TRIAL] => probes::one_trial(),
        [bench::BARE, rest @ ..] => bench::bare_peer(rest),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
