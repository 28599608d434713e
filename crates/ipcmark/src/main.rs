//! The binary: takes what was typed, does it, and tells by its exit code how it went.
//!
//! It measures nothing itself. `cmd` has the story of each sub-command: arguments become a request, and nothing after that
//! sees arguments; request, plan, session, scheduler, collector, and what is shown.
#![forbid(unsafe_code)]

mod advice;
mod advice_request;
mod cli;
mod cmd;
mod collector;
mod derived_file;
mod doses;
mod drivers;
mod exit;
mod explanation;
mod explanation_against;
mod explanation_files;
mod layers;
mod measuring;
mod output;
mod planning;
mod profile;
mod progress;
mod remote;
mod replay_failure;
mod request;
mod results_file;
mod rules;
mod scenario_file;
mod selection;
mod session;
mod shipped;
mod special_file;
mod streams;
mod suites;
mod try_metric;
mod try_recording;
mod try_request;

use clap::{CommandFactory, Parser};
use exit::{Error, Exit};
use mechanisms::registry::CARDS;
use model::Invalid;
use model::invalid::nearest;
use rustix::process::{Resource, getrlimit};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    streams::show_panics();
    session::outlive_the_limit_of_file_sizes();
    with_room_on_the_stack(program)
}

/// Does `work` in this thread, or in one of its own where this one's stack is too small (`ulimit -s`).
fn with_room_on_the_stack(work: fn() -> ExitCode) -> ExitCode {
    const ENOUGH_BYTES: u64 = 1 << 20;
    if getrlimit(Resource::Stack).current.is_none_or(|bytes| bytes >= ENOUGH_BYTES) {
        return work();
    }
    match std::thread::Builder::new().stack_size(ENOUGH_BYTES as usize).spawn(work) {
        Ok(thread) => thread.join().unwrap_or(ExitCode::FAILURE),
        Err(_) => work(),
    }
}

fn program() -> ExitCode {
    if let Some(done) = harness::hidden::dispatch(std::env::args_os().skip(1)) {
        return exit::code(done.map_err(Error::from));
    }
    let words = match with_command(std::env::args_os().collect()) {
        Ok(words) => words,
        Err(invalid) => return exit::code(Err::<Exit, _>(invalid.into())),
    };
    match cli::Cli::try_parse_from(words) {
        Ok(cli) => exit::code(dispatch(cli)),
        Err(said) if said.use_stderr() => {
            // Where nobody reads it, the exit code still says it.
            let _ = streams::say(std::io::stderr(), &streams::words_of_parser(&said));
            ExitCode::from(2)
        }
        Err(help) => exit::code(output::print(&streams::words_of_parser(&help))),
    }
}

/// `words` with `run` where they name no command: what follows the program is then what to measure. One that is nearly a command, and
/// nearer to it than to anything that could be measured, is refused.
fn with_command(mut words: Vec<OsString>) -> Result<Vec<OsString>, Invalid> {
    let Some(first) = words.get(1) else { return Ok(words) };
    let program = cli::Cli::command();
    let commands = || program.get_subcommands().map(clap::Command::get_name).chain(["help"]);
    let is_of_program = ["-h", "--help", "-V", "--version"].iter().any(|word| first == word);
    if is_of_program || commands().any(|command| first == command) {
        return Ok(words);
    }
    if let Some(word) = first.to_str().filter(|word| !word.starts_with('-') && !suites::is_named(word)) {
        let mechanisms = CARDS.iter().map(|card| card.name).chain([selection::ALL]);
        let name = word.split(':').next().unwrap_or(word);
        if nearest(name, mechanisms.chain(commands())).is_some_and(|near| commands().any(|of| of == near)) {
            return Err(Invalid::unknown("command", word, commands()));
        }
    }
    words.insert(1, "run".into());
    Ok(words)
}

fn dispatch(cli: cli::Cli) -> Result<Exit, Error> {
    use cli::Command;
    match cli.command.unwrap_or_default() {
        Command::Run(arguments) => cmd::run::run(arguments),
        Command::List(arguments) => cmd::list::run(arguments),
        Command::Doctor(arguments) => cmd::doctor::run(arguments),
        Command::Report(arguments) => cmd::report::run(arguments),
        Command::Compare(arguments) => cmd::compare::run(arguments),
        Command::Explain(arguments) => cmd::explain::run(arguments),
        Command::Advise(arguments) => cmd::advise::run(arguments),
        Command::Predict(arguments) => cmd::predict::run(arguments),
        Command::Replay(arguments) => cmd::replay::run(arguments),
        Command::Record(arguments) => cmd::record::run(arguments),
        Command::Try(arguments) => cmd::try_exchange::run(arguments),
        Command::Suite(arguments) => cmd::suite::run(arguments),
        Command::Endpoint(arguments) => cmd::endpoint::run(arguments),
        Command::Driver(arguments) => cmd::driver::run(&arguments),
        Command::Clean => cmd::clean::run(),
        Command::Schema(arguments) => cmd::schema::run(&arguments),
        Command::Completions(arguments) => cmd::completions::run(arguments),
        Command::Man(arguments) => cmd::man::run(arguments),
    }
}
