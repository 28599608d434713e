//! Another build of ipcmark whose endpoints are to be measured: whether it speaks the protocol of this one.

use super::reexecution::reexecution;
use crate::protocol::orders::{PROTOCOL, VERSION, protocol_line};
use model::Invalid;
use std::path::Path;
use std::process::Stdio;

/// Refuses `program` unless it says that its endpoints speak the protocol of this build.
pub fn check(program: &Path) -> Result<(), Invalid> {
    let mut command = reexecution(PROTOCOL, Some(program));
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().map_err(|error| {
        Invalid::new(
            format!("{} cannot be started: {error}", program.display()),
            "name an ipcmark binary, with its path",
        )
    })?;
    let said = String::from_utf8_lossy(&output.stdout);
    let own = protocol_line(VERSION);
    match said.trim().strip_prefix("ipcmark-endpoint ") {
        Some(_) if said.trim() == own => Ok(()),
        Some(version) => Err(Invalid::new(
            format!(
                "{} speaks version {version} of the endpoint protocol, and this build {VERSION}",
                program.display()
            ),
            "compare results files of both instead: ipcmark compare A.jsonl B.jsonl",
        )),
        None => Err(Invalid::new(
            format!("{} is no ipcmark whose endpoints this build can start", program.display()),
            "name a build that has `compare --against`, or compare results files of both",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// What is said of a script that prints `line`.
    fn said_of(name: &str, line: &str) -> Result<(), Invalid> {
        let path = std::env::temp_dir().join(format!("ipcmark-test-{}-{name}", std::process::id()));
        fs::write(&path, format!("#!/bin/sh\necho {line}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        let said = check(&path);
        fs::remove_file(&path).unwrap();
        said
    }

    #[test]
    fn only_a_build_that_speaks_this_protocol_is_taken() {
        said_of("same", &protocol_line(VERSION)).unwrap();
        let other = said_of("other", "ipcmark-endpoint 999").unwrap_err();
        assert!(other.problem.contains("speaks version 999"), "{other}");
        assert!(said_of("none", "hello").unwrap_err().problem.contains("is no ipcmark"));
        let missing = check(Path::new("/nonexistent/ipcmark")).unwrap_err();
        assert!(missing.problem.contains("cannot be started"), "{missing}");
    }
}
