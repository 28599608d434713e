//! The time of day, in the older way.

use crate::contract::{Operation, TimerKind, TrialContext};
use crate::support::cards::TIMER;
use model::card::Card;
use sys::{Errno, Failure};

/// gettimeofday(2).
#[derive(Debug)]
pub(crate) struct Gettimeofday;

impl Operation for Gettimeofday {
    const CARD: Card = Card {
        name: "gettimeofday",
        summary: "the time of day in microseconds, through the vDSO where it has it",
        man: &["gettimeofday(2)"],
        ..TIMER
    };

    fn prepare(_: &TrialContext<'_>) -> Result<Self, Failure> {
        Ok(Self)
    }

    #[inline(always)]
    fn call(&mut self) -> Result<(), Errno> {
        self.read().map(|micros| {
            std::hint::black_box(micros);
        })
    }

    fn timer(&self) -> Option<TimerKind> {
        TimerKind::wall(1000.0)
    }

    #[inline(always)]
    fn read(&mut self) -> Result<u64, Errno> {
        sys::accounting::gettimeofday()
    }
}
