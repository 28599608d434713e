//! bpf(2): maps, programs that run at tracepoints, and the ring through which they pass records. It writes no program, and
//! knows nothing of what a record says.

use crate::libc_call::checked;
use crate::{Errno, Failure, OrFail};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_long;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What grants the use of programs in the kernel.
pub const REMEDY: &str =
    "run as root, or grant it: sudo setcap cap_bpf,cap_perfmon,cap_dac_read_search+ep on the program";

/// Commands of bpf(2).
const MAP_CREATE: c_long = 0;
const MAP_LOOKUP_ELEM: c_long = 1;
const MAP_UPDATE_ELEM: c_long = 2;
const MAP_GET_NEXT_KEY: c_long = 4;
const PROG_LOAD: c_long = 5;
const RAW_TRACEPOINT_OPEN: c_long = 17;
const BTF_LOAD: c_long = 18;
/// Types of maps and of programs.
const MAP_TYPE_HASH: u32 = 1;
const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_LRU_HASH: u32 = 9;
const MAP_TYPE_RINGBUF: u32 = 27;
const PROG_TYPE_TRACING: u32 = 26;
/// `BPF_TRACE_RAW_TP`: the program gets what the kernel passes to the tracepoint, with its types.
const TRACE_RAW_TRACEPOINT: u32 = 23;
/// `BPF_TRACE_ITER`: it gets one after the other of what the kernel goes through.
pub(crate) const TRACE_ITERATOR: u32 = 28;
/// `BPF_F_MMAPABLE`.
const CAN_BE_MAPPED: u32 = 1 << 10;
/// The program may use helpers that are for GPL programs only, as MIT code may.
const LICENSE: &[u8] = b"Dual MIT/GPL\0";
/// In the length of a record in the ring: it is not complete yet, or was given up.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
/// The length of a record, and where it lies.
const HEADER_BYTES: usize = 8;
const LOG_BYTES: usize = 64 << 10;

/// One instruction, as the kernel takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct BpfInstruction {
    /// What it does.
    pub code: u8,
    registers: u8,
    /// How far it jumps, or where the memory is that it uses.
    pub offset: i16,
    /// A number.
    pub immediate: i32,
}

impl BpfInstruction {
    /// One that does `code` with these registers.
    pub fn new(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Self {
        let registers = match cfg!(target_endian = "little") {
            true => destination | source << 4,
            false => destination << 4 | source,
        };
        Self { code, registers, offset, immediate }
    }
}

/// Memory that programs and this process share, by keys.
#[derive(Debug)]
pub struct BpfMap {
    fd: OwnedFd,
    key_bytes: usize,
    value_bytes: usize,
}

#[repr(C)]
#[derive(Default)]
struct MapAttributes {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

#[repr(C)]
struct ElementAttributes {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramAttributes {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
    prog_btf_fd: u32,
    func_info_rec_size: u32,
    func_info: u64,
    func_info_cnt: u32,
    line_info_rec_size: u32,
    line_info: u64,
    line_info_cnt: u32,
    attach_btf_id: u32,
}

#[repr(C)]
struct TypesAttributes {
    btf: u64,
    btf_log_buf: u64,
    btf_size: u32,
    btf_log_size: u32,
    btf_log_level: u32,
}

#[repr(C)]
struct RawTracepointAttributes {
    name: u64,
    prog_fd: u32,
    padding: u32,
}

impl BpfMap {
    /// Room for so many values, each found by its key.
    pub fn hash(key_bytes: usize, value_bytes: usize, entries: u32) -> Result<Self, Failure> {
        Self::create(MAP_TYPE_HASH, key_bytes, value_bytes, entries, 0)
    }

    /// The same, where what was not used for long makes room for what is new.
    pub fn recent(key_bytes: usize, value_bytes: usize, entries: u32) -> Result<Self, Failure> {
        Self::create(MAP_TYPE_LRU_HASH, key_bytes, value_bytes, entries, 0)
    }

    /// So many values, all zero, of which each is found by a number of 4 bytes.
    pub fn array(value_bytes: usize, entries: u32) -> Result<Self, Failure> {
        Self::create(MAP_TYPE_ARRAY, 4, value_bytes, entries, 0)
    }

    pub(crate) fn create(
        map_type: u32,
        key_bytes: usize,
        value_bytes: usize,
        entries: u32,
        map_flags: u32,
    ) -> Result<Self, Failure> {
        let short = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let attributes = MapAttributes {
            map_type,
            key_size: short(key_bytes),
            value_size: short(value_bytes),
            max_entries: entries,
            map_flags,
        };
        // SAFETY: the attributes are those of this command, and name no memory.
        let fd = unsafe { bpf(MAP_CREATE, &attributes) };
        let fd = fd.map_err(|errno| refused("a map", errno, ""))?;
        // SAFETY: the kernel has just made this descriptor for us.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd, key_bytes, value_bytes })
    }

    /// The value of `key`, if there is one.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let mut value = vec![0; self.value_bytes];
        match self.element(MAP_LOOKUP_ELEM, Some(key), &mut value) {
            Ok(()) => Ok(Some(value)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno).or_fail("bpf", "a value of a map"),
        }
    }

    /// Sets the value of `key`.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.element(MAP_UPDATE_ELEM, Some(key), &mut value.to_vec()).or_fail("bpf", "a value of a map")
    }

    /// All keys that there are now. What comes and goes meanwhile may be there or not, or twice.
    pub fn keys(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut next = vec![0; self.value_bytes.max(self.key_bytes)];
        loop {
            match self.element(MAP_GET_NEXT_KEY, keys.last().map(Vec::as_slice), &mut next) {
                Ok(()) => keys.push(next[..self.key_bytes].to_vec()),
                Err(Errno::NOENT) => return Ok(keys),
                Err(errno) => return Err(errno).or_fail("bpf", "the keys of a map"),
            }
        }
    }

    fn element(&self, command: c_long, key: Option<&[u8]>, value: &mut [u8]) -> Result<(), Errno> {
        assert!(key.is_none_or(|key| key.len() == self.key_bytes), "a key of another length");
        assert!(value.len() >= self.value_bytes, "a value that is too short");
        let attributes = ElementAttributes {
            map_fd: self.fd.as_raw_fd().cast_unsigned(),
            padding: 0,
            key: key.map_or(0, |key| key.as_ptr() as u64),
            value: value.as_mut_ptr() as u64,
            flags: 0,
        };
        // SAFETY: the kernel reads a whole key, and reads or writes a value, or a key that is no longer than `value`; both are as long
        // as this map has them, and both live until the call has returned.
        unsafe { bpf(command, &attributes) }.map(drop)
    }
}

impl AsFd for BpfMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A program that the kernel has taken.
#[derive(Debug)]
pub struct BpfProgram(OwnedFd);

impl BpfProgram {
    /// Has the kernel check and take a program for the tracepoint of which `type_number` is the type, in the kernel's description of its
    /// types. It gets what the kernel passes to the tracepoint, and may read what that refers to. `functions` are the instructions at
    /// which functions of the program begin that helpers call.
    pub fn load(
        name: &str,
        instructions: &[BpfInstruction],
        type_number: u32,
        functions: &[usize],
    ) -> Result<Self, Failure> {
        Self::load_as(TRACE_RAW_TRACEPOINT, name, instructions, type_number, functions)
    }

    /// The same for what the kernel goes through, by the function of which `type_number` is the type.
    pub fn load_iterator(
        name: &str,
        instructions: &[BpfInstruction],
        type_number: u32,
    ) -> Result<Self, Failure> {
        Self::load_as(TRACE_ITERATOR, name, instructions, type_number, &[])
    }

    fn load_as(
        expected_attach_type: u32,
        name: &str,
        instructions: &[BpfInstruction],
        type_number: u32,
        functions: &[usize],
    ) -> Result<Self, Failure> {
        Self::load_kind((PROG_TYPE_TRACING, expected_attach_type), name, instructions, type_number, functions)
    }

    /// The same of any type of program, and for what it is to be attached to.
    pub(crate) fn load_kind(
        (prog_type, expected_attach_type): (u32, u32),
        name: &str,
        instructions: &[BpfInstruction],
        type_number: u32,
        functions: &[usize],
    ) -> Result<Self, Failure> {
        let short = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let types = if functions.is_empty() { None } else { Some(function_types()?) };
        // The program itself is the first.
        let begins = [0].iter().chain(functions).take(if types.is_some() { usize::MAX } else { 0 });
        let infos: Vec<[u32; 2]> = begins.map(|at| [short(*at), FUNCTION_TYPE]).collect();
        let mut prog_name = [0; 16];
        // What is longer is cut, with a zero byte at its end.
        prog_name.iter_mut().take(15).zip(name.bytes()).for_each(|(to, from)| *to = from);
        let mut log = Vec::new();
        let load = |log: &mut Vec<u8>| {
            let attributes = ProgramAttributes {
                prog_type,
                insn_cnt: short(instructions.len()),
                insns: instructions.as_ptr() as u64,
                license: LICENSE.as_ptr() as u64,
                log_level: u32::from(!log.is_empty()),
                log_size: u32::try_from(log.len()).unwrap_or(0),
                log_buf: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
                kern_version: 0,
                prog_flags: 0,
                prog_name,
                prog_ifindex: 0,
                expected_attach_type,
                prog_btf_fd: types.as_ref().map_or(0, |types| types.as_raw_fd().cast_unsigned()),
                func_info_rec_size: short(size_of::<[u32; 2]>()),
                func_info: infos.as_ptr() as u64,
                func_info_cnt: short(infos.len()),
                line_info_rec_size: 0,
                line_info: 0,
                line_info_cnt: 0,
                attach_btf_id: type_number,
            };
            // SAFETY: the instructions, the licence, what is said of functions and the log are as long as is said, and live until the call
            // has returned.
            unsafe { bpf(PROG_LOAD, &attributes) }
        };
        let fd = load(&mut log).or_else(|errno| {
            // What the kernel does not like of a program is said only to who asks.
            log = vec![0; LOG_BYTES];
            load(&mut log).map_err(|_| errno)
        });
        let fd = fd.map_err(|errno| {
            let text = String::from_utf8_lossy(&log);
            refused(&format!("the program {name}"), errno, text.trim_end_matches('\0').trim())
        })?;
        // SAFETY: the kernel has just made this descriptor for us.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Has it run wherever its tracepoint is passed, on every CPU, until what is returned is dropped.
    pub fn attach(&self) -> Result<BpfLink, Failure> {
        let attributes =
            RawTracepointAttributes { name: 0, prog_fd: self.0.as_raw_fd().cast_unsigned(), padding: 0 };
        // SAFETY: the attributes are those of this command. They name no memory: a typed program has its tracepoint's name.
        let fd = unsafe { bpf(RAW_TRACEPOINT_OPEN, &attributes) };
        let fd = fd.map_err(|errno| refused("a tracepoint", errno, ""))?;
        // SAFETY: the kernel has just made this descriptor for us.
        Ok(BpfLink { _fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }
}

/// The number of the function in [`function_types`].
const FUNCTION_TYPE: u32 = 3;

/// The types of a program with functions: each of these takes nothing that is said, and returns a number
/// (kernel: Documentation/bpf/btf.rst).
fn function_types() -> Result<OwnedFd, Failure> {
    const NAMES: &[u8] = b"\0int\0function\0";
    const INTEGER: u32 = 1 << 24;
    const PROTOTYPE: u32 = 13 << 24;
    const FUNCTION: u32 = 12 << 24;
    const SIGNED_OF_32_BITS: u32 = 1 << 24 | 32;
    let types = [1, INTEGER, 4, SIGNED_OF_32_BITS, 0, PROTOTYPE, 1, 5, FUNCTION, 2];
    let types_bytes = std::mem::size_of_val(&types) as u32;
    // The magic number and the version, the length of this header, and where both sections lie.
    let header = [0x0001_eb9f, 24, 0, types_bytes, types_bytes, NAMES.len() as u32];
    let numbers = header.into_iter().chain(types).flat_map(u32::to_ne_bytes);
    let text: Vec<u8> = numbers.chain(NAMES.iter().copied()).collect();
    let attributes = TypesAttributes {
        btf: text.as_ptr() as u64,
        btf_log_buf: 0,
        btf_size: text.len() as u32,
        btf_log_size: 0,
        btf_log_level: 0,
    };
    // SAFETY: the text is as long as is said, and lives until the call has returned.
    let fd = unsafe { bpf(BTF_LOAD, &attributes) };
    let fd = fd.map_err(|errno| refused("types of functions", errno, ""))?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl AsFd for BpfProgram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A program at its tracepoint. It runs there until this is dropped.
#[derive(Debug)]
pub struct BpfLink {
    _fd: OwnedFd,
}

impl BpfLink {
    /// By its descriptor.
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self { _fd: fd }
    }
}

/// Memory that programs write and this process reads, as numbers of eight bytes: the only value of a map, mapped.
#[derive(Debug)]
pub struct BpfMemory {
    map: BpfMap,
    base: NonNull<AtomicU64>,
    words: usize,
}

impl BpfMemory {
    /// So many numbers, all zero.
    pub fn create(words: usize) -> Result<Self, Failure> {
        let bytes = words * size_of::<u64>();
        let map = BpfMap::create(MAP_TYPE_ARRAY, 4, bytes, 1, CAN_BE_MAPPED)?;
        let (nowhere, protection) = (std::ptr::null_mut(), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: the kernel chooses the address, so that no existing mapping is touched.
        let base = unsafe { mmap(nowhere, bytes, protection, MapFlags::SHARED, &map.fd, 0) };
        let base = base.and_then(|base| NonNull::new(base.cast()).ok_or(Errno::FAULT));
        Ok(Self { map, base: base.or_fail("mmap", "the memory of a map")?, words })
    }

    /// The numbers.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many are mapped as long as `self` lives, aligned to a page, and only ever used as atomics here.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.words) }
    }
}

impl AsFd for BpfMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

impl Drop for BpfMemory {
    fn drop(&mut self) {
        // SAFETY: this value mapped these bytes, and no reference into them outlives it.
        let outcome = unsafe { munmap(self.base.as_ptr().cast(), self.words * size_of::<u64>()) };
        debug_assert!(outcome.is_ok());
    }
}

/// A ring that programs fill and this process empties (`BPF_MAP_TYPE_RINGBUF`).
#[derive(Debug)]
pub struct BpfRing {
    map: BpfMap,
    /// One page, in which we say how far we have read.
    consumer: NonNull<u8>,
    /// One page, in which the kernel says how far there are records, and the records twice, one behind the other.
    producer: NonNull<u8>,
    page_bytes: usize,
    len_bytes: usize,
}

impl BpfRing {
    /// A ring of `len_bytes`, which is a power of two and of whole pages.
    pub fn create(len_bytes: usize) -> Result<Self, Failure> {
        let map = BpfMap::create(MAP_TYPE_RINGBUF, 0, 0, u32::try_from(len_bytes).unwrap_or(u32::MAX), 0)?;
        let page_bytes = rustix::param::page_size();
        let map_at = |len_bytes: usize, protection: ProtFlags, from_bytes: usize| {
            let nowhere = std::ptr::null_mut();
            // SAFETY: the kernel chooses the address, so that no existing mapping is touched.
            let base =
                unsafe { mmap(nowhere, len_bytes, protection, MapFlags::SHARED, &map.fd, from_bytes as u64) };
            base.and_then(|base| NonNull::new(base.cast::<u8>()).ok_or(Errno::FAULT))
                .or_fail("mmap", "a ring")
        };
        let consumer = map_at(page_bytes, ProtFlags::READ | ProtFlags::WRITE, 0)?;
        match map_at(page_bytes + 2 * len_bytes, ProtFlags::READ, page_bytes) {
            Ok(producer) => Ok(Self { map, consumer, producer, page_bytes, len_bytes }),
            Err(failure) => {
                // SAFETY: it was mapped above, and nobody has it.
                let _ = unsafe { munmap(consumer.as_ptr().cast(), page_bytes) };
                Err(failure)
            }
        }
    }

    /// Takes all records that are complete, in their order.
    pub fn read(&mut self, mut take: impl FnMut(&[u8])) {
        // SAFETY: both words are mapped as long as `self` lives, aligned to a page, and only ever used as atomics.
        let (read, written) = unsafe {
            (self.consumer.cast::<AtomicU64>().as_ref(), self.producer.cast::<AtomicU64>().as_ref())
        };
        let mut at = read.load(Ordering::Relaxed);
        while at < written.load(Ordering::Acquire) {
            let offset = self.page_bytes + (at as usize & (self.len_bytes - 1));
            // SAFETY: a record begins within the first of both mappings of the data, aligned to 8 bytes, with its length, which the
            // kernel changes once, when the record is complete.
            let header = unsafe { self.producer.add(offset).cast::<AtomicU32>().as_ref() };
            let header = header.load(Ordering::Acquire);
            if header & BUSY != 0 {
                return;
            }
            let len_bytes = (header & !(BUSY | DISCARDED)) as usize;
            assert!(len_bytes <= self.len_bytes, "a record that is longer than its ring");
            if header & DISCARDED == 0 {
                // SAFETY: the record lies in the two mappings of the data: it begins in the first, and is no longer than one of them. It is
                // complete, and the kernel writes over it only after we have said below that it was read.
                let record = unsafe {
                    std::slice::from_raw_parts(self.producer.add(offset + HEADER_BYTES).as_ptr(), len_bytes)
                };
                take(record);
            }
            at += (HEADER_BYTES + len_bytes).next_multiple_of(8) as u64;
            read.store(at, Ordering::Release);
        }
    }
}

impl AsFd for BpfRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

impl Drop for BpfRing {
    fn drop(&mut self) {
        // SAFETY: this value mapped these bytes, and no reference into them outlives it.
        let outcome = unsafe {
            munmap(self.consumer.as_ptr().cast(), self.page_bytes)
                .and(munmap(self.producer.as_ptr().cast(), self.page_bytes + 2 * self.len_bytes))
        };
        debug_assert!(outcome.is_ok());
    }
}

/// bpf(2).
///
/// # Safety
/// `attributes` are those of `command`, and what they name is valid.
pub(crate) unsafe fn bpf<T>(command: c_long, attributes: &T) -> Result<i32, Errno> {
    // SAFETY: the caller says that the attributes are valid, of which the size is told.
    let returned = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), std::mem::size_of::<T>())
    };
    checked(returned).map(|fd| i32::try_from(fd).unwrap_or(-1))
}

pub(crate) fn refused(what: &str, errno: Errno, log: &str) -> Failure {
    let next = match errno {
        Errno::PERM | Errno::ACCESS if log.is_empty() => REMEDY.to_owned(),
        Errno::NOSYS => "use a kernel with CONFIG_BPF_SYSCALL".to_owned(),
        _ if log.is_empty() => "see bpf(2); a container may forbid it (seccomp)".to_owned(),
        _ => format!("report this bug with the output of 'uname -a', and what the kernel said: {log}"),
    };
    Failure::new("bpf", what, errno.to_string(), next)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// Who may not use programs gets the remedy; all else is tested by who may.
    fn allowed<T>(outcome: Result<T, Failure>) -> Option<T> {
        match outcome {
            Ok(made) => Some(made),
            Err(failure) => {
                assert!(!rustix::process::geteuid().is_root() || failure.next == REMEDY, "{failure}");
                None
            }
        }
    }

    #[test]
    fn a_map_has_what_was_put_into_it() {
        let Some(map) = allowed(BpfMap::hash(4, 8, 10)) else { return };
        assert_eq!(map.get(&[1, 0, 0, 0]).unwrap(), None);
        map.set(&[1, 0, 0, 0], &[7; 8]).unwrap();
        map.set(&[2, 0, 0, 0], &[8; 8]).unwrap();
        assert_eq!(map.get(&[1, 0, 0, 0]).unwrap(), Some(vec![7; 8]));
        let mut keys = map.keys().unwrap();
        keys.sort();
        assert_eq!(keys, [[1, 0, 0, 0], [2, 0, 0, 0]]);
        let array = BpfMap::array(8, 3).unwrap();
        assert_eq!(array.get(&[2, 0, 0, 0]).unwrap(), Some(vec![0; 8]));
        assert_eq!(array.get(&[3, 0, 0, 0]).unwrap(), None);
    }

    #[test]
    fn the_memory_of_a_map_has_what_was_put_into_it() {
        let Some(memory) = allowed(BpfMemory::create(1 << 10)) else { return };
        memory.words()[1023].store(7, Ordering::Relaxed);
        assert_eq!(memory.words()[1023].load(Ordering::Relaxed), 7);
        assert_eq!(memory.words()[..1023].iter().map(|word| word.load(Ordering::Relaxed)).max(), Some(0));
    }

    #[test]
    fn a_ring_that_nobody_filled_is_empty() {
        let Some(mut ring) = allowed(BpfRing::create(1 << 16)) else { return };
        ring.read(|record| panic!("{record:?}"));
    }
}
