//! How the programs in the kernel and we understand each other: where what lies in a record and in what is known of a thread, and
//! what is told of a call.

use crate::recorder::calls::CallMeaning;
use crate::recorder::raw::{RawCall, RawEvent, RawKind};
use crate::recorder::thread::{Entered, ThreadTotals};

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
    pub(in super::super) const BYTES: i16 = 120;
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
    /// Whoever reads the records is woken at once.
    pub(in super::super) const URGENTLY: i32 = 16;
    /// It is told when it begins, too.
    pub(in super::super) const AT_ENTRY: i32 = 32;
    /// And only then, for it never returns.
    pub(in super::super) const NEVER_RETURNS: i32 = 64;
}

/// What is told of a call that means this.
pub(super) fn announcements(meaning: CallMeaning) -> i32 {
    announced::AT_EXIT
        | match meaning {
            CallMeaning::Send | CallMeaning::Receive => announced::IF_IT_SUCCEEDED,
            CallMeaning::Wait => announced::IF_IT_SLEPT,
            CallMeaning::Futex => announced::FUTEX,
            CallMeaning::Signal => announced::AT_ENTRY,
            CallMeaning::SignalReturn => announced::NEVER_RETURNS,
            meaning if meaning.is_urgent() => announced::URGENTLY,
            _ => 0,
        }
}

/// Which record it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    Call = 1,
    Begins = 2,
    Fork = 3,
    Exec = 4,
    End = 5,
}

/// What `bytes` say.
pub(super) fn event(bytes: &[u8]) -> Option<RawEvent> {
    let kinds = [RecordKind::Call, RecordKind::Begins, RecordKind::Fork, RecordKind::Exec, RecordKind::End];
    let kind = short(bytes, record::KIND)?;
    let kind = kinds.into_iter().find(|known| *known as u32 == kind)?;
    let what = match kind {
        RecordKind::Call => RawKind::Call(call(bytes)?),
        RecordKind::Begins => RawKind::Begins(entered(bytes)?),
        RecordKind::Fork => {
            RawKind::Fork { pid: short(bytes, record::MADE_PID)?, tid: short(bytes, record::MADE_TID)? }
        }
        RecordKind::Exec => {
            let name = bytes.get(record::NAME as usize..)?.split(|byte| *byte == 0).next()?;
            RawKind::Exec { name: String::from_utf8_lossy(name).into_owned() }
        }
        RecordKind::End => RawKind::End,
    };
    Some(RawEvent {
        at_ns: long(bytes, record::AT)?,
        pid: short(bytes, record::PID)?,
        tid: short(bytes, record::TID)?,
        cpu: Some(short(bytes, record::CPU)?),
        totals: Some(ThreadTotals {
            cpu_ns: long(bytes, record::CPU_TIME)?,
            switches: long(bytes, record::SWITCHES)?,
        }),
        what,
    })
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

fn call(bytes: &[u8]) -> Option<RawCall> {
    Some(RawCall {
        entered: entered(bytes)?,
        value: long(bytes, record::VALUE)?.cast_signed(),
        cpu_ns: long(bytes, record::CPU_TIME)?,
        asleep_ns: long(bytes, record::ASLEEP)?,
    })
}

fn entered(bytes: &[u8]) -> Option<Entered> {
    let mut arguments = [0; 4];
    for (at, argument) in (record::ARGUMENTS..).step_by(8).zip(&mut arguments) {
        *argument = long(bytes, at)?;
    }
    Some(Entered {
        number: u32::try_from(long(bytes, record::CALL)?).ok()?,
        arguments,
        at_ns: long(bytes, record::ENTERED)?,
        cpu_ns: long(bytes, record::ENTERED_CPU)?,
        asleep_ns: long(bytes, record::ENTERED_ASLEEP)?,
    })
}

fn long(bytes: &[u8], at: i16) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at as usize..)?.first_chunk()?))
}

fn short(bytes: &[u8], at: i16) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at as usize..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn no_record_panics(bytes: Vec<u8>) {
            event(&bytes);
            totals(&bytes, 0);
        }
    }

    #[test]
    fn a_new_thread_is_in_the_call_in_which_it_was_found() {
        let found = Entered { number: 7, arguments: [1, 2, 3, 4], at_ns: 9, cpu_ns: 0, asleep_ns: 0 };
        let bytes = new_thread(5, 9, Some(&found));
        assert_eq!(long(&bytes, thread::ARGUMENTS + 24), Some(4));
        assert_eq!(totals(&bytes, 20), Some((5, ThreadTotals::default())));
        let record = [vec![0; record::ENTERED as usize], bytes[thread::ENTERED as usize..].to_vec()].concat();
        assert_eq!(entered(&record), Some(found));
        assert_eq!(long(&new_thread(5, 9, None), thread::CALL), Some(u64::MAX));
    }
}
