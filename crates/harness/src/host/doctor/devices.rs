//! Rules about what lies in /dev: without it, or where it cannot be written, some mechanisms are not there.

use super::finding::{Finding, Severity};
use super::here::Here;

/// shm_overview(7): POSIX objects are files of a file system there.
pub(super) fn shared_memory(here: &Here<'_>) -> Option<Finding> {
    let why = "POSIX shared memory objects and named semaphores cannot be made; another TMPDIR does not help";
    let (what, command) = if is_missing(here, "shm") {
        ("there is no /dev/shm", "mkdir -p /dev/shm && mount -t tmpfs tmpfs /dev/shm")
    } else if is_read_only(here, "/dev/shm") {
        ("/dev/shm is read-only", "mount -o remount,rw /dev/shm")
    } else {
        return None;
    };
    let command = format!("{}sh -c '{command}'", here.sudo());
    Some(Finding::new(Severity::Limits, "shared-memory", what, why).mended_by(command))
}

/// mq_overview(7): queues have no need of it, only who wants to see them there.
pub(super) fn message_queue_names(here: &Here<'_>) -> Option<Finding> {
    let has_queues = here.root.join("proc/sys/fs/mqueue").is_dir();
    let is_there = here.root.join("proc/sys/fs").is_dir();
    if has_queues || !is_there {
        return None;
    }
    let why = "POSIX message queues cannot be made: the kernel is built without CONFIG_POSIX_MQUEUE, or this namespace \
               hides them";
    Some(Finding::new(Severity::Limits, "posix-queues", "there is no /proc/sys/fs/mqueue", why))
}

/// pts(4).
pub(super) fn pseudo_terminals(here: &Here<'_>) -> Option<Finding> {
    if !is_missing(here, "ptmx") {
        return None;
    }
    let why = "no pseudo-terminal can be made, so that pty cannot be measured";
    let command =
        "mkdir -p /dev/pts && mount -t devpts -o ptmxmode=666 devpts /dev/pts && ln -s pts/ptmx /dev/ptmx";
    let command = format!("{}sh -c '{command}'", here.sudo());
    Some(Finding::new(Severity::Limits, "pseudo-terminals", "there is no /dev/ptmx", why).mended_by(command))
}

/// Whether there is a /dev, and nothing called `name` in it.
fn is_missing(here: &Here<'_>, name: &str) -> bool {
    let devices = here.root.join("dev");
    devices.is_dir() && !devices.join(name).exists()
}

/// Whether what is mounted last at `place` is mounted read-only (proc_pid_mounts(5)).
fn is_read_only(here: &Here<'_>, place: &str) -> bool {
    let mounts = here.text("proc/self/mounts").unwrap_or_default();
    let mut of_place = mounts.lines().filter(|line| line.split(' ').nth(1) == Some(place));
    let options = of_place.next_back().and_then(|line| line.split(' ').nth(3));
    options.is_some_and(|options| options.split(',').any(|option| option == "ro"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{AS_IS, assert_finds, finding};
    use super::*;

    #[test]
    fn what_is_missing_in_dev_or_cannot_be_written_is_found() {
        let missing = [("dev/null", "")];
        let command = "sudo sh -c 'mkdir -p /dev/shm && mount -t tmpfs tmpfs /dev/shm'";
        let found = finding(shared_memory, AS_IS, &missing);
        assert_finds(found, Severity::Limits, "no /dev/shm", Some(command));
        assert!(finding(pseudo_terminals, AS_IS, &missing).is_some());
        let there = |mounts| [("dev/shm/x", ""), ("dev/ptmx", ""), ("proc/self/mounts", mounts)];
        let twice = "tmpfs /dev/shm tmpfs rw,nosuid 0 0\nnone /dev/shm tmpfs ro,relatime 0 0\n";
        let command = "sudo sh -c 'mount -o remount,rw /dev/shm'";
        let found = finding(shared_memory, AS_IS, &there(twice));
        assert_finds(found, Severity::Limits, "is read-only", Some(command));
        let fine = there("tmpfs /dev/shm tmpfs rw,nosuid 0 0\n");
        assert_eq!(finding(shared_memory, AS_IS, &fine), None);
        assert_eq!(finding(pseudo_terminals, AS_IS, &fine), None);
        // Of a host that shows nothing, nothing is said.
        assert_eq!(finding(shared_memory, AS_IS, &[]), None);
        assert!(finding(message_queue_names, AS_IS, &[("proc/sys/fs/pipe-max-size", "1")]).is_some());
        assert_eq!(finding(message_queue_names, AS_IS, &[("proc/sys/fs/mqueue/msg_max", "10")]), None);
    }
}
