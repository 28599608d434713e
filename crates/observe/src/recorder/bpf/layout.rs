//! How the programs in the kernel and we understand each other: where what lies in a record and in what is known of a thread, and
//! what is told of a call. What a record says is in `records`.

use crate::recorder::calls::CallMeaning;
use crate::recorder::thread::{Entered, ThreadTotals};
use syscalls::Sysno;

/// What is known of a thread.
pub(super) mod thread {
    /// Its process, in 4 bytes; all else has 8.
    pub(in super::super) const PID: i16 = 0;
    /// Since when it has a CPU, or sleeps, or 0.
    pub(in super::super) const ON_SINCE: i16 = 8;
    pub(in super::super) const OFF_SINCE: i16 = 16;
    /// Its CPU time, sleep and switches so far.
    pub(in super::super) const CPU: i16 = 24;
    pub(in super::super) const ASLEEP: i16 = 32;
    pub(in super::super) const SWITCHES: i16 = 40;
    /// When it entered its call, its CPU time and its sleep by then, which call it is, or [`NO_CALL`], and its four first arguments.
    pub(in super::super) const ENTERED: i16 = 48;
    pub(in super::super) const ENTERED_CPU: i16 = 56;
    pub(in super::super) const ENTERED_ASLEEP: i16 = 64;
    pub(in super::super) const CALL: i16 = 72;
    pub(in super::super) const ARGUMENTS: i16 = 80;
    pub(in super::super) const BYTES: i16 = 112;
    pub(in super::super) const NO_CALL: i32 = -1;
}

/// What a record says.
pub(super) mod record {
    /// Which record it is, on which CPU, of which process and thread: 4 bytes each.
    pub(in super::super) const KIND: i16 = 0;
    pub(in super::super) const CPU: i16 = 4;
    pub(in super::super) const PID: i16 = 8;
    pub(in super::super) const TID: i16 = 12;
    /// When, and the CPU time, sleep and switches of the thread until then.
    pub(in super::super) const AT: i16 = 16;
    pub(in super::super) const CPU_TIME: i16 = 24;
    pub(in super::super) const ASLEEP: i16 = 32;
    pub(in super::super) const SWITCHES: i16 = 40;
    pub(in super::super) const HEAD_BYTES: i16 = 48;
    /// Of a call: what it returned, and then what [`super::thread`] has of it.
    pub(in super::super) const VALUE: i16 = 48;
    pub(in super::super) const ENTERED: i16 = 56;
    pub(in super::super) const ENTERED_CPU: i16 = 64;
    pub(in super::super) const ENTERED_ASLEEP: i16 = 72;
    pub(in super::super) const CALL: i16 = 80;
    pub(in super::super) const ARGUMENTS: i16 = 88;
    /// The files of its descriptors, by where the kernel has them, or 0: of the first argument, the word or what was made, and of another.
    pub(in super::super) const FILES: i16 = 120;
    pub(in super::super) const BYTES: i16 = 136;
    /// Of a thread that was made: its process and itself, 4 bytes each.
    pub(in super::super) const MADE_PID: i16 = 48;
    pub(in super::super) const MADE_TID: i16 = 52;
    pub(in super::super) const MADE_BYTES: i16 = 56;
    /// Of another program: its name.
    pub(in super::super) const NAME: i16 = 48;
    pub(in super::super) const NAME_BYTES: i16 = 16;
}

/// What is told of a call.
pub(super) mod announced {
    /// It is told when it has ended.
    pub(in super::super) const AT_EXIT: i32 = 1;
    /// But not if it failed without sleep,
    pub(in super::super) const IF_IT_SUCCEEDED: i32 = 2;
    /// or without sleep at all,
    pub(in super::super) const IF_IT_SLEPT: i32 = 4;
    /// or if it is about a word of one process.
    pub(in super::super) const FUTEX: i32 = 8;
    /// It is told when it begins, too.
    pub(in super::super) const AT_ENTRY: i32 = 16;
    /// And only then, for it never returns.
    pub(in super::super) const NEVER_RETURNS: i32 = 32;
    /// To what its first argument refers is told, if it was not,
    pub(in super::super) const OF_FIRST: i32 = 64;
    /// its second,
    pub(in super::super) const OF_SECOND: i32 = 128;
    /// its third,
    pub(in super::super) const OF_THIRD: i32 = 256;
    /// or what it returns.
    pub(in super::super) const OF_RETURNED: i32 = 512;
    /// It changes that, so that it is told again.
    pub(in super::super) const ANEW: i32 = 1024;
    /// Only that is told, and not the call.
    pub(in super::super) const SILENT: i32 = 2048;
}

/// What is told of the call `number`, which means this. None of those that only make, copy and close descriptors: to what a descriptor
/// refers is looked up in the kernel when it is used.
pub(super) fn announcements(number: u32, meaning: CallMeaning) -> i32 {
    use announced::{
        ANEW, AT_ENTRY, AT_EXIT, FUTEX, IF_IT_SLEPT, IF_IT_SUCCEEDED, NEVER_RETURNS, OF_FIRST, OF_RETURNED,
        OF_SECOND, OF_THIRD, SILENT,
    };
    let other = |argument: usize| if argument == 1 { OF_SECOND } else { OF_THIRD };
    let told = match meaning {
        CallMeaning::Send | CallMeaning::Receive => IF_IT_SUCCEEDED | OF_FIRST,
        CallMeaning::SendAll => OF_FIRST,
        CallMeaning::Move { from, to } => OF_FIRST | other(from.max(to)),
        CallMeaning::Wait => IF_IT_SLEPT,
        CallMeaning::Futex => FUTEX,
        CallMeaning::Signal if number == Sysno::pidfd_send_signal.id() as u32 => AT_ENTRY | OF_FIRST,
        CallMeaning::Signal => AT_ENTRY,
        CallMeaning::SignalReturn => NEVER_RETURNS,
        CallMeaning::Connect => OF_FIRST | ANEW,
        CallMeaning::Accept { .. } => OF_RETURNED | ANEW,
        CallMeaning::Eventfd => OF_RETURNED | ANEW | SILENT,
        CallMeaning::Control | CallMeaning::SetOption => OF_FIRST | ANEW | SILENT,
        CallMeaning::SendMany
        | CallMeaning::ReceiveMany
        | CallMeaning::QueueSend
        | CallMeaning::QueueReceive
        | CallMeaning::Semaphores
        | CallMeaning::SignalWait
        | CallMeaning::Uring => 0,
        CallMeaning::Open { .. }
        | CallMeaning::OpenProcess
        | CallMeaning::Socket
        | CallMeaning::Pipe { .. }
        | CallMeaning::Socketpair
        | CallMeaning::Close
        | CallMeaning::CloseRange
        | CallMeaning::Duplicate
        | CallMeaning::DuplicateTo => return 0,
    };
    AT_EXIT | told
}

/// What a record says of a file.
pub(super) mod file {
    /// Where the kernel has it, its inode, and 4 bytes each: the device of that, and its type and mode.
    pub(in super::super) const FILE: i16 = 48;
    pub(in super::super) const INODE: i16 = 56;
    pub(in super::super) const DEVICE: i16 = 64;
    pub(in super::super) const MODE: i16 = 68;
    /// Which file system that is.
    pub(in super::super) const FILE_SYSTEM: i16 = 72;
    /// What it is called.
    pub(in super::super) const NAME: i16 = 88;
    pub(in super::super) const NAME_BYTES: i16 = 32;
    /// Of a pipe, how many pages it holds; of an eventfd, its number; of a pidfd, that of the process. Of a socket, its type.
    pub(in super::super) const NUMBER: i16 = 120;
    /// Of a socket, 4 bytes each: its family, its protocol, its buffers and which of them were set, and whether TCP sends at once.
    pub(in super::super) const FAMILY: i16 = 124;
    pub(in super::super) const PROTOCOL: i16 = 128;
    pub(in super::super) const SET_BUFFERS: i16 = 132;
    pub(in super::super) const SEND_BUFFER: i16 = 136;
    pub(in super::super) const RECEIVE_BUFFER: i16 = 140;
    pub(in super::super) const NODELAY: i16 = 144;
    /// Its own port in the order of this host, and that of its peer in the order of networks.
    pub(in super::super) const OWN_PORT: i16 = 148;
    pub(in super::super) const PEER_PORT: i16 = 152;
    /// Its addresses, and those of its peer.
    pub(in super::super) const OWN_IPV4: i16 = 156;
    pub(in super::super) const PEER_IPV4: i16 = 160;
    pub(in super::super) const OWN_IPV6: i16 = 164;
    pub(in super::super) const PEER_IPV6: i16 = 180;
    /// Of a Unix socket, how long its name is and that of its peer, or 0, and the first of them, as in `sockaddr_un`.
    pub(in super::super) const OWN_NAME_BYTES: i16 = 196;
    pub(in super::super) const PEER_INODE: i16 = 200;
    pub(in super::super) const PEER_NAME_BYTES: i16 = 208;
    pub(in super::super) const SOCKET_NAME: i16 = 212;
    pub(in super::super) const SOCKET_NAME_BYTES: i16 = 110;
    pub(in super::super) const BYTES: i16 = 328;
}

/// Which record it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    Call = 1,
    Begins = 2,
    Fork = 3,
    Exec = 4,
    End = 5,
    File = 6,
}

/// What is known of a thread of the process `pid` before it did anything: the call in which it sleeps, if it is in one.
pub(super) fn new_thread(pid: u32, at_ns: u64, entered: Option<&Entered>) -> Vec<u8> {
    let mut bytes = vec![0; thread::BYTES as usize];
    let mut put = |at: i16, value: u64| bytes[at as usize..][..8].copy_from_slice(&value.to_ne_bytes());
    put(thread::CALL, i64::from(thread::NO_CALL).cast_unsigned());
    if let Some(entered) = entered {
        put(thread::OFF_SINCE, at_ns);
        put(thread::ENTERED, at_ns);
        put(thread::CALL, u64::from(entered.number));
        for (at, argument) in (thread::ARGUMENTS..).step_by(8).zip(entered.arguments) {
            put(at, argument);
        }
    }
    bytes[thread::PID as usize..][..4].copy_from_slice(&pid.to_ne_bytes());
    bytes
}

/// The process of the thread of which `bytes` say what is known, and its totals until `at_ns`.
pub(super) fn totals(bytes: &[u8], at_ns: u64) -> Option<(u32, ThreadTotals)> {
    let running_ns = match long(bytes, thread::ON_SINCE)? {
        0 => 0,
        since_ns => at_ns.saturating_sub(since_ns),
    };
    let cpu_ns = long(bytes, thread::CPU)? + running_ns;
    Some((short(bytes, thread::PID)?, ThreadTotals { cpu_ns, switches: long(bytes, thread::SWITCHES)? }))
}

pub(super) fn long(bytes: &[u8], at: i16) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at as usize..)?.first_chunk()?))
}

pub(super) fn short(bytes: &[u8], at: i16) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at as usize..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn no_thread_panics(bytes: Vec<u8>) {
            totals(&bytes, 0);
        }
    }

    #[test]
    fn a_new_thread_is_in_the_call_in_which_it_was_found() {
        let found = Entered { number: 7, arguments: [1, 2, 3, 4], at_ns: 9, ..Entered::default() };
        let bytes = new_thread(5, 9, Some(&found));
        assert_eq!(long(&bytes, thread::ARGUMENTS + 24), Some(4));
        assert_eq!(totals(&bytes, 20), Some((5, ThreadTotals::default())));
        assert_eq!(long(&new_thread(5, 9, None), thread::CALL), Some(u64::MAX));
    }
}
