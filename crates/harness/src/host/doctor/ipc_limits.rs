//! Rules about limits of IPC other than sockets'.

use super::finding::{Finding, Severity};
use super::here::Here;
use model::units::Size;

/// `pipe(7)`, "/proc files".
pub(super) fn pipe_size(here: &Here<'_>) -> Option<Finding> {
    const DEFAULT: u64 = 1 << 20;
    let size: u64 = here.limit("fs/pipe-max-size").filter(|size| *size < DEFAULT)?;
    let what = format!("a pipe may hold at most {}", Size(size));
    let why = "larger capacities are refused without privilege: large messages go through in many pieces";
    let command = here.as_root(&format!("sysctl -w fs.pipe-max-size={DEFAULT}"));
    Some(Finding::new(Severity::Limits, "pipe-size", what, why).mended_by(command))
}

pub(super) fn open_files(here: &Here<'_>) -> Option<Finding> {
    const WANTED: u64 = 1024;
    let (soft, hard) = here.rlimit("RLIMIT_NOFILE").filter(|(soft, _)| *soft < 64)?;
    let what = format!("a process may open {soft} files");
    let why = "mechanisms with many descriptors, and sessions that pass them, fail";
    let command = match hard {
        hard if hard > soft => format!("ulimit -n {}", hard.min(WANTED)),
        _ => here.as_root(&format!("prlimit --pid $$ --nofile={WANTED}")),
    };
    Some(Finding::new(Severity::Limits, "open-files", what, why).mended_by(command))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{STATUS, assert_finds, finding, limit};
    use super::*;

    #[test]
    fn root_gets_commands_without_sudo() {
        let status = STATUS.replace("1000", "0");
        let found = finding(pipe_size, limit("fs/pipe-max-size", "65536"), &[("proc/self/status", &status)]);
        let command = "sysctl -w fs.pipe-max-size=1048576";
        assert_finds(found, Severity::Limits, "at most 64K", Some(command));
    }

    #[test]
    fn few_files_are_raised_within_the_hard_limit() {
        let files = |value| finding(open_files, limit("RLIMIT_NOFILE", value), &[]);
        assert_finds(files("32/unlimited"), Severity::Limits, "32 files", Some("ulimit -n 1024"));
        assert_finds(files("32/48"), Severity::Limits, "32 files", Some("ulimit -n 48"));
        let command = Some("sudo prlimit --pid $$ --nofile=1024");
        assert_finds(files("32/32"), Severity::Limits, "32 files", command);
        assert_eq!(files("64/64"), None);
    }
}
