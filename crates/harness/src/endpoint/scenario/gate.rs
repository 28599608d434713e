//! When the flows that a process begins by itself may go on: from the coordinator's word to begin to its word to pause. Whoever
//! pauses sleeps.

use crate::clock::{Clock, Stamp};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{read, write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sys::{Failure, OrFail};

/// The gate of one process.
pub(super) struct Gate {
    is_open: AtomicBool,
    /// How many of the strands with flows to begin have nothing under way and begin nothing. One that has not noticed yet that the
    /// gate was opened is still among them, and a pause that comes before it has need not wait for it.
    parked: Mutex<usize>,
    changed: Condvar,
    /// Readable when the gate was opened or closed, of each strand that sleeps in poll(2).
    bells: Vec<OwnedFd>,
    clock: Clock,
}

/// Why a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// It is time.
    Due,
    /// There was a pause, and it is over.
    Resumed,
}

impl Gate {
    /// A closed gate, with as many bells as there are strands.
    pub(super) fn new(clock: Clock, strands: usize) -> Result<Self, Failure> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = |_| eventfd(0, flags).or_fail("eventfd", "a process of a scenario");
        let bells = (0..strands).map(bell).collect::<Result<_, _>>()?;
        let (is_open, parked) = (AtomicBool::new(false), Mutex::new(0));
        Ok(Self { is_open, parked, changed: Condvar::new(), bells, clock })
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Lets everything go on.
    pub(super) fn open(&self) {
        let parked = self.parked();
        self.is_open.store(true, Ordering::Release);
        self.changed.notify_all();
        drop(parked);
        self.ring();
    }

    /// Ends the beginning of anything, and waits until `strands` of them have nothing under way.
    pub(super) fn close(&self, strands: usize) {
        let mut parked = self.parked();
        self.is_open.store(false, Ordering::Release);
        self.changed.notify_all();
        self.ring();
        while *parked < strands {
            parked = self.changed.wait(parked).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes that a strand has nothing under way, and does not wait.
    pub(super) fn park(&self) {
        *self.parked() += 1;
        self.changed.notify_all();
    }

    /// Whether a strand that has parked may go on.
    pub(super) fn resume(&self) -> bool {
        let mut parked = self.parked();
        let may_go_on = self.is_open();
        *parked -= usize::from(may_go_on);
        may_go_on
    }

    /// Sleeps until `due`; in a pause, until it is over.
    pub(super) fn sleep_until(&self, due: Stamp) -> Woken {
        let mut parked = self.parked();
        loop {
            if !self.is_open() {
                *parked += 1;
                self.changed.notify_all();
                while !self.is_open() {
                    parked = self.changed.wait(parked).unwrap_or_else(PoisonError::into_inner);
                }
                *parked -= 1;
                return Woken::Resumed;
            }
            let left_ns = self.clock.ns_between(self.clock.now(), due);
            if left_ns < 1.0 {
                return Woken::Due;
            }
            let left = Duration::from_nanos(left_ns as u64);
            parked = self.changed.wait_timeout(parked, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What poll(2) finds readable when the gate has changed, for `strand`.
    pub(super) fn bell(&self, strand: usize) -> BorrowedFd<'_> {
        self.bells[strand].as_fd()
    }

    /// Takes note that the gate has changed.
    pub(super) fn silence(&self, strand: usize) {
        // There is nothing to read if it has not.
        let _ = read(&self.bells[strand], &mut [0; 8]);
    }

    fn ring(&self) {
        for bell in &self.bells {
            // It cannot be full.
            let _ = write(bell, &1_u64.to_ne_bytes());
        }
    }

    fn parked(&self) -> MutexGuard<'_, usize> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::ClockSource;
    use std::sync::atomic::AtomicU64;

    /// It hangs if a strand that slept through an opening is missed.
    #[test]
    fn a_pause_comes_to_its_end_however_soon_it_follows_the_last_and_nothing_begins_in_it() {
        let clock = Clock::new(ClockSource::MonotonicRaw);
        let gate = Gate::new(clock, 1).unwrap();
        let (is_over, begun) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    if gate.sleep_until(clock.now()) == Woken::Due {
                        begun.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
            let begun_in_pauses = (0..200).map(|_| {
                gate.close(1);
                let before = begun.load(Ordering::Relaxed);
                std::thread::yield_now();
                let more = begun.load(Ordering::Relaxed) - before;
                gate.open();
                more
            });
            let begun_in_pauses: u64 = begun_in_pauses.sum();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(begun_in_pauses, 0);
        });
    }
}
