//! Which processes have epoll(7) wake them also when there is room to send, at each change: found in /proc by what their epoll
//! descriptors watch. It records no call.

use rustix::event::epoll::EventFlags;
use std::fs;

/// Whether the process `pid` has a descriptor that is watched so. One that has ended or that belongs to somebody else has none that can be
/// seen.
pub(super) fn has_room_watch(pid: u32) -> bool {
    let Ok(fds) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    fds.flatten().any(|fd| {
        let is_epoll =
            fs::read_link(fd.path()).is_ok_and(|target| target.as_os_str() == "anon_inode:[eventpoll]");
        let info = || fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", fd.file_name().display()));
        is_epoll && info().is_ok_and(|info| info.lines().any(is_room_watch))
    })
}

/// Whether `line` of an epoll descriptor's fdinfo is of a descriptor that is watched so (proc_pid_fdinfo(5)):
/// `tfd:       11 events: 8000201d data: …`.
fn is_room_watch(line: &str) -> bool {
    let wanted = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
    let mut words = line.split_whitespace().skip_while(|word| *word != "events:").skip(1);
    let events = words.next().and_then(|events| u32::from_str_radix(events, 16).ok());
    line.starts_with("tfd:")
        && events.is_some_and(|events| EventFlags::from_bits_retain(events).contains(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::epoll;
    use std::os::unix::net::UnixStream;

    #[test]
    fn descriptors_that_are_watched_for_room_at_each_change_are_told_from_others() {
        for (line, is) in [
            ("tfd:       11 events: 8000201d data: 55e1e0  pos:0 ino:1 sdev:8", true),
            ("tfd:       11 events: 80000005 data: 1", true),
            ("tfd:        6 events:       19 data: 1", false),
            ("tfd:        6 events: 80000001 data: 1", false),
            ("flags:\t02", false),
            ("tfd: 6 events: no", false),
        ] {
            assert_eq!(is_room_watch(line), is, "{line}");
        }
    }

    #[test]
    fn a_process_that_does_is_told_from_one_that_is_not_there() {
        let (own, _peer) = UnixStream::pair().unwrap();
        let instance = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        epoll::add(&instance, &own, epoll::EventData::new_u64(0), flags).unwrap();
        assert!(has_room_watch(std::process::id()) && !has_room_watch(u32::MAX));
    }
}
