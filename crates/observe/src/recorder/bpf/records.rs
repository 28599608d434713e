//! What the records say that programs in the kernel make.

use super::file_record::described;
use super::layout::{RecordKind, file, long, record, short};
use crate::recorder::raw::{RawCall, RawEvent, RawKind};
use crate::recorder::thread::{Entered, ThreadTotals};

/// What `bytes` say.
pub(super) fn event(bytes: &[u8]) -> Option<RawEvent> {
    let kinds = [
        RecordKind::Call,
        RecordKind::Begins,
        RecordKind::Fork,
        RecordKind::Exec,
        RecordKind::End,
        RecordKind::File,
    ];
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
        RecordKind::File => RawKind::File { file: long(bytes, file::FILE)?, is: described(bytes)? },
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
        files: [long(bytes, record::FILES)?, long(bytes, record::FILES + 8)?],
    })
}

#[cfg(test)]
mod tests {
    use super::super::layout::{new_thread, thread};
    use super::*;

    proptest::proptest! {
        #[test]
        fn no_record_panics(kind in 0..8_u32, bytes: Vec<u8>) {
            event(&bytes);
            let long = [kind.to_ne_bytes().to_vec(), bytes, vec![0x80; file::BYTES as usize]].concat();
            event(&long);
        }
    }

    #[test]
    fn a_record_of_a_call_says_what_is_known_of_its_thread() {
        let found = Entered { number: 7, arguments: [1, 2, 3, 4], at_ns: 9, ..Entered::default() };
        let of_thread = new_thread(5, 9, Some(&found))[thread::ENTERED as usize..].to_vec();
        let files = [8_u64, 6].map(u64::to_ne_bytes).concat();
        let bytes = [vec![0; record::ENTERED as usize], of_thread, files].concat();
        assert_eq!(entered(&bytes), Some(Entered { files: [8, 6], ..found }));
    }
}
