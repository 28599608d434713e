//! `ipcmark endpoint check`: whether the endpoint that a command starts keeps the protocol. `ipcmark endpoint` itself is for the
//! harness, which is asked before arguments are parsed.

use crate::cli::{EndpointArguments, EndpointCommand};
use crate::exit::{Error, Exit};
use crate::output::print;
use harness::coordinator::check::check;
use harness::coordinator::via::Via;

/// Checks an endpoint, which takes about half a minute, and prints what was found.
pub fn run(arguments: EndpointArguments) -> Result<Exit, Error> {
    let EndpointCommand::Check { command } = arguments.command;
    let via = Via::of(command)?;
    let (mut failed, mut printed) = (0, Ok(()));
    check(&via, |checked| {
        let line = match &checked.result {
            Ok(()) => format!("ok      {}\n", checked.name),
            Err(why) => {
                failed += 1;
                format!("failed  {}: {}\n", checked.name, why.replace(char::is_control, " "))
            }
        };
        if printed.is_ok() {
            printed = print(&line);
        }
    });
    printed?;
    Ok(if failed == 0 { Exit::Success } else { Exit::CaseFailed })
}
