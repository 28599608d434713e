//! `ipcmark endpoint check`: whether the endpoint that a command starts keeps the protocol. `ipcmark endpoint` itself is for the
//! harness, which is asked before arguments are parsed.

use crate::cli::{EndpointArguments, EndpointCommand};
use crate::exit::{Error, Exit};
use crate::output::print;
use crate::session::watch_signals;
use harness::coordinator::check::check;
use harness::coordinator::via::Via;
use std::sync::atomic::Ordering;

/// Checks an endpoint, which takes about half a minute, and prints what was found.
pub fn run(arguments: EndpointArguments) -> Result<Exit, Error> {
    let EndpointCommand::Check { command } = arguments.command;
    let via = Via::of(command)?;
    // An endpoint that is checked must not outlive this process.
    let interrupted = watch_signals()?;
    let (mut failed, mut printed) = (0, Ok(()));
    check(&via, &interrupted, |checked| {
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
    if interrupted.load(Ordering::Relaxed) {
        return Ok(Exit::Interrupted);
    }
    Ok(if failed == 0 { Exit::Success } else { Exit::CaseFailed })
}
