//! What a program does that harness or probes have started from its own file: the hidden sub-commands, and `endpoint`. It parses
//! no command line for people.

use crate::coordinator::endpoint_process::CHILD_OF;
use crate::coordinator::{driver, push, run_directory, via};
use crate::endpoint::process;
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
    match command.to_str()? {
        via::ENDPOINT => match (arguments.next(), arguments.next()) {
            (None, _) => Some(process::main_over_standard_streams()),
            (Some(option), Some(coordinator)) if option == CHILD_OF => {
                Some(process::main(&coordinator.to_string_lossy()))
            }
            (Some(option), Some(cpu)) if option == driver::RUN_ON => {
                Some(driver::become_on(&cpu.to_string_lossy(), arguments))
            }
            // What else can be typed is for people, and for the command line's parser.
            _ => None,
        },
        observe::recorder::starter::COMMAND => Some(observe::recorder::starter::main(arguments)),
        observe::ptrace::COMMAND => Some(observe::ptrace::main(&text(arguments.next()))),
        observe::TRY => Some(observe::try_probe(&text(arguments.next()))),
        run_directory::JANITOR => {
            run_directory::janitor(Path::new(&arguments.next().unwrap_or_default()));
            Some(Ok(()))
        }
        exchange::COMMAND => Some(exchange::guard_main(arguments)),
        push::HOLDER => Some(push::hold()),
        _ => None,
    }
}

fn text(argument: Option<OsString>) -> String {
    argument.unwrap_or_default().to_string_lossy().into_owned()
}
