//! Whether a probe works on this host, which a process of its own finds out by trying.

use crate::attached::attach;
use model::card::Support;
use model::observation::{Probe, ProbeRequest};
use model::visible::{Commands, visible};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Output};
use sys::{Failure, OrFail};

/// The hidden sub-command by which the binary tries a probe on itself; the probe's name follows it.
pub const TRY: &str = "__try_probe";

/// Tries the probe called `name` on this process, and writes as JSON on standard output whether it works. The process is not to
/// be used for anything else: a filter of its calls stays.
pub fn try_probe(name: &str) -> Result<(), Failure> {
    let support = match attempt(name) {
        Ok(()) => Support::UNLIMITED,
        Err(Failure { operation, object, answer, next, .. }) => {
            Support::No { reason: format!("{operation} {object}: {answer}"), remedy: next }
        }
    };
    const OUT: &str = "standard output";
    let json = serde_json::to_string(&support)
        .map_err(|error| Failure::new("write", OUT, error.to_string(), "report this bug"))?;
    std::io::stdout().write_all(visible(&json, Commands::None).as_bytes()).or_fail("write", OUT)
}

fn attempt(name: &str) -> Result<(), Failure> {
    let probe = Probe::ALL.iter().copied().find(|probe| probe.name() == name);
    if probe.is_none() {
        return Err(Failure::new("try", name, "there is no such probe", "run one version of ipcmark only"));
    }
    let mut probe = attach(&ProbeRequest { probe, ..ProbeRequest::default() }, 0..0)?;
    probe.begin()?;
    probe.end()?;
    probe.observation().map(drop)
}

/// Whether `probe` works here, as a process of its own finds out by trying.
pub fn support(probe: Probe) -> Support {
    let tried = Command::new("/proc/self/exe").arg0("ipcmark").args([TRY, probe.name()]).output();
    match tried {
        Ok(Output { stdout, stderr, status }) => reported_support(&stdout, &stderr, status),
        Err(error) => {
            Support::No { reason: format!("it cannot be tried: {error}"), remedy: SEE_DOCTOR.to_owned() }
        }
    }
}

const SEE_DOCTOR: &str = "see 'ipcmark doctor'";

/// What a process that tried a probe reported; one that was killed reports nothing.
fn reported_support(stdout: &[u8], stderr: &[u8], status: ExitStatus) -> Support {
    serde_json::from_slice(stdout).unwrap_or_else(|_| {
        let said = String::from_utf8_lossy(stderr);
        let said = said.trim();
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        Support::No {
            reason: format!("the process that tried it made no report ({status}){said}"),
            remedy: SEE_DOCTOR.to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn what_a_probe_supports_travels_as_data() {
        let success = ExitStatus::from_raw(0);
        for support in [
            Support::UNLIMITED,
            Support::No { reason: "open (a file): no (really)".to_owned(), remedy: "ask (root)".to_owned() },
        ] {
            let report = serde_json::to_vec(&support).unwrap();
            assert_eq!(reported_support(&report, b"a word of the loader's", success), support);
        }
    }

    #[test]
    fn a_process_that_dies_while_it_tries_is_no_support_and_is_told_of() {
        let support = reported_support(b"", b"out of memory\n", ExitStatus::from_raw(9));
        let Support::No { reason, remedy } = support else { panic!("{support:?}") };
        assert!(reason.contains("SIGKILL") && reason.ends_with(": out of memory"), "{reason}");
        assert_eq!(remedy, SEE_DOCTOR);
        assert!(matches!(reported_support(b"{", b"", ExitStatus::from_raw(0)), Support::No { .. }));
    }

    #[test]
    fn no_probe_is_tried_under_a_name_that_is_none() {
        assert!(attempt("divination").unwrap_err().to_string().contains("no such probe"));
    }
}
