//! The ring's memory as it really is: mapped, with an address. The raw pointers of the ring are here and nowhere
//! else.

use super::layout::{LINE_BYTES, RingGeometry};
use super::memory::Memory;
use super::protocol::Engine;
use super::wait::WaitStrategy;
use crate::shared_memory::SharedMemory;
use crate::side::MemorySide;
use crate::{Errno, Failure};
use rustix::thread::futex;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Memory that has an address. It lives as long as its owner.
#[derive(Debug)]
pub(super) struct Region<O> {
    base: NonNull<u8>,
    len_bytes: usize,
    _owner: O,
}

// SAFETY: a region moves with its owner, and memory does not belong to a thread.
unsafe impl<O: Send> Send for Region<O> {}

impl<O> Region<O> {
    /// # Safety
    ///
    /// `base` is aligned to a line and valid for `len_bytes` of reads and writes while `owner` lives, and
    /// all access while it does follows the contract of [`Memory`].
    pub(super) unsafe fn new(base: NonNull<u8>, len_bytes: usize, owner: O) -> Self {
        Self { base, len_bytes, _owner: owner }
    }

    #[inline(always)]
    fn at(&self, at: usize, len_bytes: usize) -> *mut u8 {
        debug_assert!(at + len_bytes <= self.len_bytes);
        // SAFETY: callers keep to the contract of `Memory`, so that `at` is inside.
        unsafe { self.base.as_ptr().add(at) }
    }

    /// The `length_bytes` at `at`, to be read where they are.
    ///
    /// # Safety
    ///
    /// As for [`Memory::read`], as long as the reference lives.
    unsafe fn bytes(&self, at: usize, length_bytes: usize) -> &[u8] {
        // SAFETY: inside by contract, valid while the owner lives, and zero at first.
        unsafe { std::slice::from_raw_parts(self.at(at, length_bytes), length_bytes) }
    }

    /// The `length_bytes` at `at`, to be written where they are.
    ///
    /// # Safety
    ///
    /// As for [`Memory::write`], as long as the reference lives.
    unsafe fn bytes_mut(&mut self, at: usize, length_bytes: usize) -> &mut [u8] {
        // SAFETY: inside by contract, valid while the owner lives, and zero at first.
        unsafe { std::slice::from_raw_parts_mut(self.at(at, length_bytes), length_bytes) }
    }
}

impl<O, W: WaitStrategy, const SLOTS: usize> Engine<Region<O>, W, SLOTS> {
    #[inline(always)]
    pub(super) fn reserve(&mut self, most_bytes: usize) -> Result<&mut [u8], Errno> {
        let (at, length_bytes) = self.reserve_place(most_bytes)?;
        // SAFETY: `reserve_place` has found a place that is inside and that the peer is done with. This endpoint
        // sends nothing while it is borrowed. See `RingEndpoint::reserve` on a peer that breaks that.
        Ok(unsafe { self.memory.bytes_mut(at, length_bytes) })
    }

    #[inline(always)]
    pub(super) fn peek(&mut self, most_bytes: usize) -> Result<&[u8], Errno> {
        let (at, length_bytes) = self.peek_place()?;
        // SAFETY: `open` has checked that the piece is inside, whatever the peer wrote. The peer does not touch it
        // before the cursor says so, and this endpoint does not publish that while it is borrowed. See
        // `RingEndpoint::peek`.
        Ok(unsafe { self.memory.bytes(at, length_bytes.min(most_bytes)) })
    }
}

impl<O> Memory for Region<O> {
    #[inline(always)]
    unsafe fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: inside and aligned by contract, valid while the owner lives.
        unsafe { AtomicU64::from_ptr(self.at(at, 8).cast()) }
    }

    #[inline(always)]
    unsafe fn flag(&self, at: usize) -> &AtomicU32 {
        // SAFETY: inside and aligned by contract, valid while the owner lives.
        unsafe { AtomicU32::from_ptr(self.at(at, 4).cast()) }
    }

    #[inline(always)]
    unsafe fn write(&self, at: usize, from: &[u8]) {
        // SAFETY: inside and without a race by contract. `from` is private memory, so that they cannot overlap.
        unsafe { copy(from.as_ptr(), self.at(at, from.len()), from.len()) }
    }

    #[inline(always)]
    unsafe fn read(&self, at: usize, into: &mut [u8]) {
        // SAFETY: inside and without a race by contract. `into` is private memory, so that they cannot overlap.
        unsafe { copy(self.at(at, into.len()), into.as_mut_ptr(), into.len()) }
    }

    #[inline(always)]
    unsafe fn dirty_lines(&self, at: usize, length_bytes: usize) {
        for line in (at.next_multiple_of(LINE_BYTES)..at + length_bytes).step_by(LINE_BYTES) {
            // SAFETY: inside and without a race by contract.
            unsafe { self.at(line, 1).write_volatile(0) };
        }
    }

    #[inline(always)]
    unsafe fn fetch_lines(&self, at: usize, length_bytes: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        for line in (at..at + length_bytes).step_by(LINE_BYTES) {
            // The intrinsic for it fetches lines to be read, unless the build is for newer processors alone. Older ones
            // take the instruction for none.
            // SAFETY: the instruction changes no memory, no register and no flag.
            unsafe {
                std::arch::asm!("prefetchw [{}]", in(reg) self.at(line, 1), options(nostack, preserves_flags));
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = (at, length_bytes);
    }

    unsafe fn sleep(&self, at: usize) {
        // No timeout: a timer to arm and to disarm would cost what no other way of waiting pays. A peer that closes wakes
        // this endpoint; a peer that died does not.
        // Woken, interrupted or too late: in every case the caller polls again.
        // SAFETY: by contract.
        let _ = futex::wait(unsafe { self.flag(at) }, futex::Flags::empty(), 1, None);
    }

    unsafe fn wake(&self, at: usize) {
        // The address is mapped, so that this cannot fail.
        // SAFETY: by contract.
        let woken = futex::wake(unsafe { self.flag(at) }, futex::Flags::empty(), 1);
        debug_assert!(woken.is_ok());
    }
}

/// Copies `count` bytes; a line or less without a function call.
///
/// # Safety
///
/// As for `copy_nonoverlapping`.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, count: usize) {
    /// Copies the first and the last bytes, as many as `T` has; they may overlap. The last go first: the store to a
    /// slot's header comes next and goes to the slot's first half, and a processor joins stores to one half.
    ///
    /// # Safety
    ///
    /// As for `copy_nonoverlapping`. `count` is from the size of `T` to twice that, and `T` is plain data.
    #[inline(always)]
    unsafe fn head_and_tail<T>(from: *const u8, to: *mut u8, count: usize) {
        let last = count - size_of::<T>();
        // SAFETY: by contract; these accesses need no alignment.
        unsafe {
            let head = from.cast::<T>().read_unaligned();
            let tail = from.add(last).cast::<T>().read_unaligned();
            to.add(last).cast::<T>().write_unaligned(tail);
            to.cast::<T>().write_unaligned(head);
        }
    }
    /// What one register holds: a quarter of a line.
    #[cfg(target_arch = "x86_64")]
    type Wide = std::arch::x86_64::__m128i;
    #[cfg(not(target_arch = "x86_64"))]
    type Wide = u128;
    // SAFETY: by contract, and by the ranges.
    unsafe {
        match count {
            32..=64 => {
                let (from, to) = (from.cast::<Wide>(), to.cast::<Wide>());
                let (a, b) = (from.read_unaligned(), from.add(1).read_unaligned());
                let c = from.byte_add(count - 32).read_unaligned();
                let d = from.byte_add(count - 16).read_unaligned();
                to.byte_add(count - 32).write_unaligned(c);
                to.byte_add(count - 16).write_unaligned(d);
                to.write_unaligned(a);
                to.add(1).write_unaligned(b);
            }
            16..32 => head_and_tail::<Wide>(from, to, count),
            8..16 => head_and_tail::<u64>(from, to, count),
            4..8 => head_and_tail::<u32>(from, to, count),
            2..4 => head_and_tail::<u16>(from, to, count),
            1 => to.write(from.read()),
            _ => std::ptr::copy_nonoverlapping(from, to, count),
        }
    }
}

/// Takes `side` of the pair of rings in `memory`.
pub(super) fn claim<W: WaitStrategy>(
    memory: SharedMemory,
    geometry: RingGeometry,
    side: MemorySide,
    wait: W,
) -> Result<Engine<Region<SharedMemory>, W, { RingGeometry::SLOTS }>, Failure> {
    let refuse = |why: &str| {
        let object = format!("the {side:?} side of a ring");
        Failure::new("claim", object, why, "make new shared memory")
    };
    if memory.len_bytes() != geometry.memory_bytes() {
        return Err(refuse("the memory is not of the ring's size"));
    }
    let (base, len_bytes) = (memory.base(), memory.len_bytes());
    // SAFETY: the mapping lives as long as `memory` and is aligned to a page. Nobody else in this process uses it,
    // because it is moved in here, and the peer uses its own mapping through this function too.
    let region = unsafe { Region::new(base, len_bytes, memory) };
    // SAFETY: the size is checked. The memory is zero, as it was created, but for what a peer has written that claims
    // it too.
    let claimed = unsafe { Engine::claim(region, geometry, side, wait) };
    claimed.ok_or_else(|| refuse("it is taken, or the peer's geometry or way of waiting is another"))
}
