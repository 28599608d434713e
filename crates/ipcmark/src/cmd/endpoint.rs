//! `ipcmark endpoint check`: whether the endpoint that a command starts keeps the protocol. `ipcmark endpoint` itself is for the
//! harness, which is asked before arguments are parsed.

use crate::cli::{EndpointArguments, EndpointCommand};
use crate::drivers::built;
use crate::exit::{Error, Exit};
use crate::output::print;
use crate::session::watch_signals;
use harness::coordinator::check::{Checked, check};
use harness::coordinator::via::Via;
use model::{DriverName, Invalid};
use std::sync::atomic::Ordering;

/// Checks an endpoint, which takes seconds for each mechanism that it has, and prints what was found.
pub fn run(arguments: EndpointArguments) -> Result<Exit, Error> {
    let EndpointCommand::Check { command } = arguments.command;
    let via = match command.as_slice() {
        [name] => named(name)?,
        _ => None,
    };
    let via = via.map_or_else(|| Via::from_words(command), Ok)?;
    // An endpoint that is checked must not outlive this process.
    let interrupted = watch_signals()?;
    let (mut reasons, mut printed) = (Vec::<Reason>::new(), Ok(()));
    let is_all = check(&via, &interrupted, |Checked { name, result }| {
        let line = match result.map_err(|why| why.replace(char::is_control, " ")) {
            Ok(()) => format!("ok      {name}\n"),
            Err(why) => match reasons.iter_mut().find(|reason| reason.core == core(&why)) {
                Some(reason) => return reason.also.push(name),
                None => {
                    let line = format!("failed  {name}: {why}\n");
                    reasons.push(Reason { core: core(&why), first: name, also: Vec::new() });
                    line
                }
            },
        };
        if printed.is_ok() {
            printed = print(&line);
        }
    });
    printed?;
    for Reason { first, also, .. } in reasons.iter().filter(|reason| !reason.also.is_empty()) {
        print(&format!("failed  for the reason of '{first}', also in: {}\n", also.join("; ")))?;
    }
    if interrupted.load(Ordering::Relaxed) {
        return Ok(Exit::Interrupted);
    }
    if !is_all {
        print("        the other checks are made when this is mended\n")?;
    }
    Ok(if reasons.is_empty() { Exit::Success } else { Exit::CaseFailed })
}

/// The command of the driver that is built under this `name`, if one is.
fn named(name: &str) -> Result<Option<Via>, Invalid> {
    DriverName::try_from(name.to_owned()).map_or(Ok(None), |name| built(&name))
}

/// Why checks failed: one mistake of an endpoint is found by many of them.
struct Reason {
    /// What is the same in all.
    core: String,
    /// The check that found it first, and the others.
    first: String,
    also: Vec<String>,
}

/// What of `why` is the same wherever it is found: neither the numbers in it, nor of which role it is said.
fn core(why: &str) -> String {
    let of_role = ["as a client: ", "as a server: "].into_iter().find_map(|role| why.strip_prefix(role));
    of_role.unwrap_or(why).replace(|c: char| c.is_ascii_digit(), "")
}
