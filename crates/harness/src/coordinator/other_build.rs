//! Another build of ipcmark whose endpoints are to be measured: whether it speaks the protocol of this one.

use super::endpoint_process::endpoint_command;
use super::own_child::unless_closed;
use super::reexecution::nowhere;
use crate::protocol::channel::{Channel, channel, wait_any};
use crate::protocol::hello::{Hello, VERSION};
use crate::protocol::message::{CoordinatorMessage, EndpointMessage};
use model::Invalid;
use rustix::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;
use sys::Failure;

/// How long an endpoint of it has to say hello.
const HELLO: Duration = Duration::from_secs(5);

/// Whether the endpoints of `program` speak the protocol of this build; a [`Failure`] where the kernel does not let it be asked.
pub fn check(program: &Path) -> Result<Result<(), Invalid>, Failure> {
    let shown = program.display();
    let none = |why: String| {
        Invalid::new(
            format!("{shown} is no ipcmark whose endpoints this build can start: {why}"),
            "name a build that has `compare --against`, or compare results files of both",
        )
    };
    let (ours, theirs) = channel()?;
    let mut command = endpoint_command(Some(program));
    command.stdin(OwnedFd::from(theirs)).stdout(nowhere()?).stderr(nowhere()?);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let failure = Failure::from_io("start", &shown, &error);
            let problem = format!("{shown} cannot be started: {error}");
            let invalid = || Invalid::new(problem, "name an ipcmark binary, with its path");
            return if failure.is_of_name() { Ok(Err(invalid())) } else { Err(failure) };
        }
    };
    // The other side of the channel must be the child's alone.
    drop(command);
    let hello = hello(&ours);
    drop(ours);
    // It has said what it has to say, or never will.
    let _ = child.kill();
    let _ = child.wait();
    let hello = match hello {
        Ok(hello) => hello,
        Err(failure) => return Ok(Err(none(failure.answer))),
    };
    let (version, next) =
        (hello.version, "compare results files of both instead: ipcmark compare A.jsonl B.jsonl");
    let problem =
        format!("{shown} speaks version {version} of the endpoint protocol, and this build {VERSION}");
    Ok(if hello.refusal().is_none() { Ok(()) } else { Err(Invalid::new(problem, next)) })
}

fn hello(control: &Channel) -> Result<Hello, Failure> {
    let silent = || Failure::new("receive", "hello", "it says no hello", "");
    unless_closed(control.send(&CoordinatorMessage::Hello(Hello::own()), &[]))?;
    match wait_any(&[control], HELLO) {
        Ok(Some(_)) => {}
        Ok(None) | Err(_) => return Err(silent()),
    }
    match control.receive()?.0 {
        EndpointMessage::Hello(hello) => Ok(hello),
        _ => Err(silent()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::frame::frame;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// What is said of a script whose endpoint answers with `hello`.
    fn said_of(name: &str, hello: Option<&Hello>) -> Result<(), Invalid> {
        let path = std::env::temp_dir().join(format!("ipcmark-test-{}-{name}", std::process::id()));
        let answer = path.with_extension("answer");
        let message = hello.map(|hello| frame(&EndpointMessage::Hello(hello.clone())).unwrap());
        fs::write(&answer, message.unwrap_or_default()).unwrap();
        fs::write(&path, format!("#!/bin/sh\ncat {} >&0\n", answer.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        let said = check(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::remove_file(&answer).unwrap();
        said
    }

    #[test]
    fn only_a_build_that_speaks_this_protocol_is_taken() {
        said_of("same", Some(&Hello::own())).unwrap();
        let other = said_of("other", Some(&Hello { version: 999, ..Hello::own() })).unwrap_err();
        assert!(other.problem.contains("speaks version 999"), "{other}");
        assert!(said_of("none", None).unwrap_err().problem.contains("is no ipcmark"));
        let missing = check(Path::new("/nonexistent/ipcmark")).unwrap().unwrap_err();
        assert!(missing.problem.contains("cannot be started"), "{missing}");
    }
}
