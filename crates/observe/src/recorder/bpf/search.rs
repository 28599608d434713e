//! Who has a file open, of all processes of this host: a program goes through their descriptors in the kernel's memory. It holds none of
//! these files, as who reads /proc/PID/fd does for a moment.

use super::file_types::FileTypes;
use super::programs::unknown;
use crate::btf::Btf;
use crate::recorder::described::Inode;
use Register::{R0, R1, R2, R3, R4, R6, R7, R8, R9, Stack};
use Width::{Eight, Four};
use std::collections::BTreeSet;
use sys::Failure;
use sys::bpf::{BpfInstruction, BpfMap, BpfProgram, BpfRing};
use sys::bpf_assembler::{Assembler, Condition, Helper, Label, Register, Width};
use sys::bpf_iterator::BpfIterator;

/// So many descriptors of each process are examined in one go.
const AT_ONCE: i32 = 64;
/// More descriptors of a process are not examined.
const MOST_DESCRIPTORS: i32 = 1 << 16;
/// Files that were found in one go have room here: more are not told.
const RING_BYTES: usize = 1 << 20;
/// Where things lie on the stack: a key of four bytes, what was found, and a pointer on the way from one structure to the next.
const KEY: i16 = -4;
const FOUND: i16 = -40;
const FOUND_DEVICE: i16 = FOUND;
const FOUND_INODE: i16 = FOUND + 8;
const FOUND_PID: i16 = FOUND + 16;
const FOUND_ACCESS: i16 = FOUND + 20;
const FOUND_BYTES: i16 = 24;
const INODE_KEY_BYTES: usize = 16;
const FILE: i16 = -48;
const NEXT: i16 = -56;
/// In the order of what the program is told and tells: the first descriptor, and whether any process has later ones.
const FIRST: u32 = 0;
const MORE: u32 = 1;
/// `FMODE_READ` and `FMODE_WRITE`.
const READS: u32 = 1;
const WRITES: u32 = 2;

/// A process that has a file open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct FoundFile {
    pub(in super::super) at: Inode,
    pub(in super::super) pid: u32,
    pub(in super::super) reads: bool,
    pub(in super::super) writes: bool,
}

/// Who has the files `wanted` open.
pub(in super::super) fn who_has(wanted: &BTreeSet<Inode>) -> Result<Vec<FoundFile>, Failure> {
    let btf = Btf::read(FileTypes::STRUCTURES)?;
    let types = FileTypes::from_btf(&btf).ok_or_else(|| unknown("files, pipes and sockets"))?;
    let pid = btf.member("task_struct", "pid").ok_or_else(|| unknown("the number of a thread"))?;
    let iterator = btf.iterator("task").ok_or_else(|| unknown("how it goes through threads"))?;
    let entries = u32::try_from(wanted.len()).unwrap_or(u32::MAX).max(1);
    let inodes = BpfMap::hash(INODE_KEY_BYTES, 8, entries)?;
    for Inode { device, number } in wanted {
        inodes.set(&[device.to_ne_bytes(), number.to_ne_bytes()].concat(), &[0; 8])?;
    }
    let places = BpfMap::array(8, 2)?;
    let mut ring = BpfRing::create(RING_BYTES)?;
    let searching = Search { code: Assembler::default(), inodes: &inodes, places: &places, ring: &ring };
    let program = searching.program(&types, pid);
    let iterator = BpfIterator::from_program(&BpfProgram::load_iterator("search", &program, iterator)?)?;
    let mut found = Vec::new();
    for first in (0..MOST_DESCRIPTORS).step_by(AT_ONCE as usize) {
        places.set(&FIRST.to_ne_bytes(), &i64::from(first).to_ne_bytes())?;
        places.set(&MORE.to_ne_bytes(), &[0; 8])?;
        iterator.run()?;
        ring.read(|bytes| found.extend(found_file(bytes)));
        if places.get(&MORE.to_ne_bytes())?.is_none_or(|more| more.iter().all(|byte| *byte == 0)) {
            break;
        }
    }
    Ok(found)
}

fn found_file(bytes: &[u8]) -> Option<FoundFile> {
    let long = |at: i16| Some(u64::from_ne_bytes(*bytes.get((at - FOUND) as usize..)?.first_chunk()?));
    let short = |at: i16| Some(u32::from_ne_bytes(*bytes.get((at - FOUND) as usize..)?.first_chunk()?));
    let access = short(FOUND_ACCESS)?;
    Some(FoundFile {
        at: Inode { device: long(FOUND_DEVICE)?, number: long(FOUND_INODE)? },
        pid: short(FOUND_PID)?,
        reads: access & READS != 0,
        writes: access & WRITES != 0,
    })
}

/// Writes the program. R6 is the thread, R7 its table of files, R8 how many descriptors it has, R9 the one that is examined.
struct Search<'a> {
    code: Assembler,
    inodes: &'a BpfMap,
    places: &'a BpfMap,
    ring: &'a BpfRing,
}

impl Search<'_> {
    /// `bpf_iter_task(what is gone through, task)`, for each thread; 0 at the end.
    fn program(mut self, types: &FileTypes, pid: i16) -> Vec<BpfInstruction> {
        const TASK: i16 = 8;
        let end = self.code.label();
        let code = &mut self.code;
        code.load(Eight, R6, R1, TASK);
        code.jump_if(R6, Condition::Equal, 0, end);
        // Threads of a process have the same files.
        code.load(Four, R1, R6, pid);
        code.load(Four, R2, R6, types.task_tgid);
        code.jump_if(R1, Condition::NotEqual, R2, end);
        code.store(Four, Stack, FOUND_PID, R1);
        code.load(Eight, R7, R6, types.task_files);
        // A process that has ended has none.
        code.jump_if(R7, Condition::Equal, 0, end);
        code.load(Eight, R7, R7, types.files_table);
        code.load(Four, R8, R7, types.table_count);
        code.load(Eight, R7, R7, types.table_files);
        self.place(FIRST, end);
        let code = &mut self.code;
        code.load(Eight, R9, R0, 0);
        for _ in 0..AT_ONCE {
            self.descriptor(types, end);
        }
        self.place(MORE, end);
        let code = &mut self.code;
        code.jump_if(R9, Condition::AtLeast, R8, end);
        code.store(Eight, R0, 0, 1);
        code.put(end);
        code.exit_with(0);
        code_of(self.code)
    }

    /// Tells of the descriptor R9 if it refers to one of the files, and goes on to the next.
    fn descriptor(&mut self, types: &FileTypes, end: Label) {
        let next = self.code.label();
        let code = &mut self.code;
        code.jump_if(R9, Condition::AtLeast, R8, end);
        code.set(R3, R9);
        code.shift_left(R3, 3);
        code.add(R3, R7);
        self.read(FILE, 8);
        let code = &mut self.code;
        code.load(Eight, R3, Stack, FILE);
        code.jump_if(R3, Condition::Equal, 0, next);
        code.add(R3, i32::from(types.file_inode));
        self.read(NEXT, 8);
        self.code.load(Eight, R3, Stack, NEXT);
        self.code.add(R3, i32::from(types.inode_number));
        self.read(FOUND_INODE, 8);
        self.code.load(Eight, R3, Stack, NEXT);
        self.code.add(R3, i32::from(types.inode_system));
        self.read(NEXT, 8);
        self.code.store(Eight, Stack, FOUND_DEVICE, 0);
        self.code.load(Eight, R3, Stack, NEXT);
        self.code.add(R3, i32::from(types.system_device));
        self.read(FOUND_DEVICE, 4);
        let code = &mut self.code;
        code.refer(R1, self.inodes);
        code.set(R2, Stack);
        code.add(R2, i32::from(FOUND));
        code.call(Helper::MapLookup);
        code.jump_if(R0, Condition::Equal, 0, next);
        code.load(Eight, R3, Stack, FILE);
        code.add(R3, i32::from(types.file_access));
        self.read(FOUND_ACCESS, 4);
        let code = &mut self.code;
        code.refer(R1, self.ring);
        code.set(R2, Stack);
        code.add(R2, i32::from(FOUND));
        code.set(R3, i32::from(FOUND_BYTES));
        code.set(R4, 0);
        code.call(Helper::RingOutput);
        code.put(next);
        code.add(R9, 1);
    }

    /// R0 is one of the places by which the program is told, and tells.
    fn place(&mut self, which: u32, end: Label) {
        let code = &mut self.code;
        code.store(Four, Stack, KEY, which.cast_signed());
        code.refer(R1, self.places);
        code.set(R2, Stack);
        code.add(R2, i32::from(KEY));
        code.call(Helper::MapLookup);
        code.jump_if(R0, Condition::Equal, 0, end);
    }

    /// Reads so many `bytes` from where R3 says.
    fn read(&mut self, to: i16, bytes: i16) {
        let code = &mut self.code;
        code.set(R1, Stack);
        code.add(R1, i32::from(to));
        code.set(R2, i32::from(bytes));
        code.call(Helper::ReadKernel);
    }
}

fn code_of(code: Assembler) -> Vec<BpfInstruction> {
    code.finish().0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn inode(file: &impl AsFd) -> Inode {
        let stat = rustix::fs::fstat(file).unwrap();
        // The kernel writes a device otherwise than it tells it: of those without a disk, the minor number alone is not zero.
        Inode { device: u64::from(rustix::fs::minor(stat.st_dev)), number: stat.st_ino }
    }

    #[test]
    fn who_has_a_pipe_is_found_and_which_end() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        // One of them beyond those that are examined in the first go.
        let high = limit.is_none_or(|limit| limit > 300);
        let high = high.then(|| rustix::io::fcntl_dupfd_cloexec(&write, 300).unwrap());
        let write = if high.is_some() {
            drop(write);
            high
        } else {
            Some(write)
        };
        let found = match who_has(&BTreeSet::from([inode(&read)])) {
            Ok(found) => found,
            Err(failure) => return eprintln!("not tested here: {failure}"),
        };
        drop(write);
        let pid = std::process::id();
        let at = inode(&read);
        for (reads, writes) in [(true, false), (false, true)] {
            assert!(found.contains(&FoundFile { at, pid, reads, writes }), "{found:?}");
        }
        assert!(who_has(&BTreeSet::from([Inode { device: 0, number: u64::MAX }])).unwrap().is_empty());
    }
}
