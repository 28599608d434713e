//! Rules about limits of IPC other than sockets': of pipes, queues, descriptors, locked memory and processes.

use super::finding::{Finding, Severity};
use super::here::Here;
use crate::host::limits;
use model::units::Size;

/// `pipe(7)`, "/proc files": beyond `pipe-user-pages-soft`, new pipes of a user have two pages, until others are closed.
pub(super) fn pipe_pages(here: &Here<'_>) -> Option<Finding> {
    const USUAL_BYTES: u64 = 64 << 10;
    const LEAST_PAGES: u64 = 64 << 10;
    let holds = *here.host.pipe_bytes.known().filter(|bytes| **bytes < USUAL_BYTES)?;
    let pages: u64 = here.limit("fs/pipe-user-pages-soft").unwrap_or(0);
    let what = format!(
        "a new pipe of this user holds {}, not {}: its pipes have as much as fs.pipe-user-pages-soft allows ({pages} pages)",
        Size(holds),
        Size(USUAL_BYTES)
    );
    let why = "pipes and FIFOs pass streams in smaller pieces, with more switches: a fraction of the usual rate. Processes \
               of this user hold many pipes; close them, or raise the limit";
    let command = here
        .as_root(&format!("sysctl -w fs.pipe-user-pages-soft={}", LEAST_PAGES.max(pages.saturating_mul(4))));
    Some(Finding::new(Severity::Spoils, "pipe-pages", what, why).mended_by(command))
}

/// `mq_overview(7)`, "/proc interfaces", and `sysvipc(7)`; the values of a host that sets none.
pub(super) fn message_queues(here: &Here<'_>) -> Option<Finding> {
    const USUAL: [(&str, u64); 4] = [
        ("fs/mqueue/msg_max", 10),
        ("fs/mqueue/msgsize_max", 8192),
        ("kernel/msgmax", 8192),
        ("kernel/msgmnb", 16384),
    ];
    /// `MQ_BYTES_MAX`. The soft limit is raised as far as the hard one allows.
    const QUOTA_BYTES: u64 = 819_200;
    let unusual = USUAL.iter().filter_map(|(name, usual)| {
        let value = here.limit::<u64>(name).filter(|value| value != usual)?;
        Some((name.replace('/', "."), value, *usual))
    });
    let unusual: Vec<(String, u64, u64)> = unusual.collect();
    let quota = here.rlimit("RLIMIT_MSGQUEUE").map(|(_, hard)| hard).filter(|hard| *hard < QUOTA_BYTES);
    let is_small = quota.is_some() || unusual.iter().any(|(_, value, usual)| value < usual);
    let settings = unusual.iter().map(|(name, value, usual)| format!("{name} is {value}, usually {usual}"));
    let quotas = quota.iter().map(|hard| format!("'ulimit -q' is {hard}, usually {QUOTA_BYTES}"));
    let words: Vec<String> = settings.chain(quotas).collect();
    if words.is_empty() {
        return None;
    }
    let why = "message queues hold more or less than elsewhere: how often a sender waits depends on it, and smaller ones \
               refuse messages, or depths, that are usual";
    let severity = if is_small { Severity::Limits } else { Severity::Fine };
    let sysctls =
        unusual.iter().map(|(name, _, usual)| format!("{name}={usual}")).collect::<Vec<_>>().join(" ");
    let command = match quota {
        Some(_) => here.as_root(&format!("prlimit --pid $$ --msgqueue={QUOTA_BYTES}")),
        None => here.as_root(&format!("sysctl -w {sysctls}")),
    };
    Some(Finding::new(severity, "message-queues", words.join(", "), why).mended_by(command))
}

/// `getrlimit(2)`, `RLIMIT_MEMLOCK`.
pub(super) fn locked_memory(here: &Here<'_>) -> Option<Finding> {
    const WANTED: u64 = 8 << 20;
    let (soft, hard) = here.rlimit("RLIMIT_MEMLOCK").filter(|(soft, _)| *soft < 1 << 20)?;
    let what = format!("a process may lock {} of memory", Size(soft));
    let why = "sends without a copy pin their pages, and rings of io_uring their buffers: beyond this they are refused, \
               or copied after all. It does not limit root";
    let command = match hard {
        hard if hard > soft => format!("ulimit -l {}", hard.min(WANTED) >> 10),
        _ => here.as_root(&format!("prlimit --pid $$ --memlock={WANTED}")),
    };
    Some(Finding::new(Severity::Limits, "locked-memory", what, why).mended_by(command))
}

/// `getrlimit(2)`, `RLIMIT_NPROC`, and `pids.max` of `cgroups(7)`.
pub(super) fn processes(here: &Here<'_>) -> Option<Finding> {
    const ENOUGH: u64 = 64;
    let free = limits::free_processes(here.root).filter(|free| *free < ENOUGH)?;
    let what = format!("{free} more processes may be started ('ulimit -u', pids.max)");
    let why = "fewer trials are alive at once, so that cases are measured one after the other, and many peers are refused";
    Some(Finding::new(Severity::Limits, "processes", what, why))
}

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
    fn pipes_that_are_smaller_than_usual_are_of_a_user_who_has_many() {
        let small = |host: &mut model::record::Host| {
            host.pipe_bytes = model::record::Fact::Known(8192);
            limit("fs/pipe-user-pages-soft", "16384")(host);
        };
        let command = Some("sudo sysctl -w fs.pipe-user-pages-soft=65536");
        assert_finds(finding(pipe_pages, small, &[]), Severity::Spoils, "holds 8K, not 64K", command);
        assert_eq!(finding(pipe_pages, limit("fs/pipe-user-pages-soft", "64"), &[]), None);
    }

    #[test]
    fn queues_of_another_size_than_usual_are_found() {
        let found = finding(message_queues, limit("kernel/msgmnb", "4096"), &[]);
        let command = Some("sudo sysctl -w kernel.msgmnb=16384");
        assert_finds(found, Severity::Limits, "kernel.msgmnb is 4096, usually 16384", command);
        let found = finding(message_queues, limit("kernel/msgmnb", "65536"), &[]);
        assert_finds(found, Severity::Fine, "usually 16384", command);
        let found = finding(message_queues, limit("RLIMIT_MSGQUEUE", "4096/8192"), &[]);
        let command = Some("sudo prlimit --pid $$ --msgqueue=819200");
        assert_finds(found, Severity::Limits, "'ulimit -q' is 8192", command);
        assert_eq!(finding(message_queues, limit("RLIMIT_MSGQUEUE", "819200/819200"), &[]), None);
    }

    #[test]
    fn little_memory_that_may_be_locked_and_few_processes_are_found() {
        let locked = |value| finding(locked_memory, limit("RLIMIT_MEMLOCK", value), &[]);
        assert_finds(locked("65536/unlimited"), Severity::Limits, "lock 64K", Some("ulimit -l 8192"));
        let command = Some("sudo prlimit --pid $$ --memlock=8388608");
        assert_finds(locked("65536/65536"), Severity::Limits, "lock 64K", command);
        assert_eq!(locked("8388608/8388608"), None);
        let most =
            |most| [("sys/fs/cgroup/user.slice/pids.max", most), ("sys/fs/cgroup/pids.current", "3\n")];
        let found = finding(processes, |_| (), &most("20\n"));
        assert_finds(found, Severity::Limits, "more processes", None);
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
