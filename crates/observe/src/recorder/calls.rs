//! Which system calls a recorder wants, and what each means for the descriptors and objects of a process. It reads no call.

use std::fmt::Write;
use std::sync::LazyLock;
use syscalls::Sysno;

/// What a system call is to a recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallMeaning {
    /// It sends as many bytes as it returns, through the descriptor that is its first argument.
    Send,
    /// It receives them.
    Receive,
    /// It sends what its third argument says.
    SendAll,
    /// It sends or receives as many messages as it returns, of sizes that are not known.
    SendMany,
    ReceiveMany,
    /// It moves bytes from the descriptor of this argument to the one of that.
    Move {
        from: usize,
        to: usize,
    },
    /// It waits for any of several descriptors.
    Wait,
    /// On a System V queue.
    QueueSend,
    QueueReceive,
    /// On semaphores.
    Semaphores,
    /// It wakes who sleeps on a word, or sleeps on it.
    Futex,
    /// It sends a signal to the process that is its first argument, or to which a descriptor refers.
    Signal,
    /// It takes a signal.
    SignalWait,
    /// A handler has dealt with one.
    SignalReturn,
    /// It makes a descriptor of a file, or of what nobody communicates through. The argument with its flags, if it has any.
    Open {
        flags: Option<usize>,
    },
    /// It makes a descriptor of the process that is its first argument.
    OpenProcess,
    Socket,
    Eventfd,
    Pipe {
        flags: Option<usize>,
    },
    Socketpair,
    Accept {
        flags: Option<usize>,
    },
    Connect,
    Close,
    CloseRange,
    Duplicate,
    DuplicateTo,
    Control,
    /// It sets an option of a socket.
    SetOption,
    /// What goes through it is not in calls.
    Uring,
}

use CallMeaning as M;

/// Names of calls, and what they mean. Those that are made most often stand first, for the kernel tries them in this order.
const CALLS: &[(&[&str], CallMeaning)] = &[
    (&["read", "readv", "recvfrom", "recvmsg", "mq_timedreceive"], M::Receive),
    (&["write", "writev", "sendto", "sendmsg", "vmsplice"], M::Send),
    (&["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"], M::Wait),
    (&["futex"], M::Futex),
    (&["close"], M::Close),
    (&["mq_timedsend"], M::SendAll),
    (&["sendmmsg"], M::SendMany),
    (&["recvmmsg"], M::ReceiveMany),
    (&["sendfile"], M::Move { from: 1, to: 0 }),
    (&["splice"], M::Move { from: 0, to: 2 }),
    (&["tee"], M::Move { from: 0, to: 1 }),
    (&["msgsnd"], M::QueueSend),
    (&["msgrcv"], M::QueueReceive),
    (&["semop", "semtimedop"], M::Semaphores),
    (&["kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"], M::Signal),
    (&["rt_sigtimedwait"], M::SignalWait),
    (&["rt_sigreturn"], M::SignalReturn),
    (&["pause", "rt_sigsuspend"], M::Wait),
    (&["open"], M::Open { flags: Some(1) }),
    (&["openat"], M::Open { flags: Some(2) }),
    (&["creat", "openat2", "epoll_create", "signalfd", "inotify_init"], M::Open { flags: None }),
    (&["timerfd_create", "memfd_create"], M::Open { flags: Some(1) }),
    (&["epoll_create1", "inotify_init1"], M::Open { flags: Some(0) }),
    (&["signalfd4"], M::Open { flags: Some(3) }),
    (&["mq_open", "pidfd_getfd", "perf_event_open", "io_uring_setup"], M::Open { flags: None }),
    (&["pidfd_open"], M::OpenProcess),
    (&["socket"], M::Socket),
    (&["eventfd", "eventfd2"], M::Eventfd),
    (&["pipe"], M::Pipe { flags: None }),
    (&["pipe2"], M::Pipe { flags: Some(1) }),
    (&["socketpair"], M::Socketpair),
    (&["accept"], M::Accept { flags: None }),
    (&["accept4"], M::Accept { flags: Some(3) }),
    (&["connect"], M::Connect),
    (&["close_range"], M::CloseRange),
    (&["dup"], M::Duplicate),
    (&["dup2", "dup3"], M::DuplicateTo),
    (&["fcntl"], M::Control),
    (&["setsockopt"], M::SetOption),
    (&["io_uring_enter"], M::Uring),
];

/// Every call that is wanted, by number, in the order of [`CALLS`].
static WANTED: LazyLock<Vec<(u32, CallMeaning)>> = LazyLock::new(|| {
    let number = |name: &str| name.parse::<Sysno>().ok().map(|call| call.id() as u32);
    let numbered = |(names, meaning): &(&[&str], CallMeaning)| {
        let meaning = *meaning;
        names.iter().filter_map(move |name| Some((number(name)?, meaning))).collect::<Vec<_>>()
    };
    CALLS.iter().flat_map(numbered).collect()
});

/// The same, to be found by number.
static BY_NUMBER: LazyLock<Vec<Option<CallMeaning>>> = LazyLock::new(|| {
    let most = WANTED.iter().map(|(number, _)| *number as usize).max().unwrap_or_default();
    let mut all = vec![None; most + 1];
    for (number, meaning) in WANTED.iter() {
        all[*number as usize] = Some(*meaning);
    }
    all
});

/// What the call `number` means; `None` if it is not wanted.
pub(super) fn meaning(number: u32) -> Option<CallMeaning> {
    BY_NUMBER.get(number as usize).copied().flatten()
}

/// Every call that is wanted, by number.
pub(super) fn wanted() -> &'static [(u32, CallMeaning)] {
    &WANTED
}

/// A filter of the kernel for the calls that are wanted.
pub(super) fn filter() -> String {
    let mut filter = String::new();
    let mut run: Option<(u32, u32)> = None;
    let mut close = |run: Option<(u32, u32)>| {
        let Some((first, last)) = run else { return };
        let or = if filter.is_empty() { "" } else { "||" };
        let _ = match first == last {
            true => write!(filter, "{or}id=={first}"),
            false => write!(filter, "{or}(id>={first}&&id<={last})"),
        };
    };
    // Numbers that follow one another in the table are compared as a range.
    for (number, _) in WANTED.iter() {
        run = match run {
            Some((first, last)) if last + 1 == *number => Some((first, *number)),
            Some(ended) => {
                close(Some(ended));
                Some((*number, *number))
            }
            None => Some((*number, *number)),
        };
    }
    close(run);
    filter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_known_by_their_numbers() {
        assert_eq!(meaning(Sysno::read.id() as u32), Some(M::Receive));
        assert_eq!(meaning(Sysno::openat.id() as u32), Some(M::Open { flags: Some(2) }));
        assert_eq!(meaning(Sysno::getpid.id() as u32), None);
        assert_eq!(meaning(u32::MAX), None);
    }

    #[test]
    fn each_wanted_call_passes_the_filter() {
        let passes = |filter: &str, number: u32| {
            filter.split("||").any(|part| match part.strip_prefix("id==") {
                Some(only) => only.parse() == Ok(number),
                None => {
                    let range = part.trim_matches(['(', ')']);
                    let (first, last) = range.split_once("&&").unwrap();
                    let number_of =
                        |text: &str, before: &str| text.strip_prefix(before).unwrap().parse::<u32>().unwrap();
                    (number_of(first, "id>=")..=number_of(last, "id<=")).contains(&number)
                }
            })
        };
        let all = filter();
        assert!(all.len() < 4096, "the kernel takes a page: {all}");
        for number in 0..600 {
            assert_eq!(passes(&all, number), meaning(number).is_some(), "{number}: {all}");
        }
    }
}
