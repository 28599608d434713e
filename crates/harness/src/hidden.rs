//! The hidden sub-commands: what a program does that harness or probes have started from its own file. It parses no
//! command line for people.

use crate::coordinator::run_directory;
use crate::endpoint::process;
use crate::protocol::orders;
use std::ffi::OsString;
use std::path::Path;
use sys::Failure;

/// Does what the hidden sub-command in `arguments` (without the name of the program) asks for. `None`: there is none.
///
/// Every program that starts trials calls this before anything else, for its endpoints are processes of the same program
/// and must not pay for parsing a command line.
pub fn dispatch(arguments: impl IntoIterator<Item = OsString>) -> Option<Result<(), Failure>> {
    let mut arguments = arguments.into_iter();
    let command = arguments.next()?;
    let first = || arguments.next().unwrap_or_default();
    match command.to_str()? {
        orders::PROTOCOL => {
            println!("{}", orders::protocol_line(orders::VERSION));
            Some(Ok(()))
        }
        orders::COMMAND => Some(process::main(&text(first))),
        observe::ptrace::COMMAND => Some(observe::ptrace::main(&text(first))),
        observe::TRY => Some(observe::try_probe(&text(first))),
        run_directory::JANITOR => {
            run_directory::janitor(Path::new(&arguments.nth(1).unwrap_or_default()));
            Some(Ok(()))
        }
        _ => None,
    }
}

fn text(argument: impl FnOnce() -> OsString) -> String {
    argument().to_string_lossy().into_owned()
}
