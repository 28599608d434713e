//! The CPU time that a process has used, in clock ticks.

use crate::contract::{Operation, TimerKind, TrialContext};
use crate::support::cards::TIMER;
use model::card::Card;
use sys::{Errno, Failure};

/// times(2).
#[derive(Debug)]
pub(crate) struct Times;

impl Operation for Times {
    const CARD: Card = Card {
        name: "times",
        summary: "the CPU time that the process has used, in clock ticks",
        man: &["times(2)"],
        ..TIMER
    };

    fn prepare(_: &TrialContext<'_>) -> Result<Self, Failure> {
        Ok(Self)
    }

    #[inline(always)]
    fn call(&mut self) -> Result<(), Errno> {
        std::hint::black_box(sys::accounting::times());
        Ok(())
    }

    fn timer(&self) -> Option<TimerKind> {
        TimerKind::wall(1e9 / rustix::param::clock_ticks_per_second() as f64)
    }

    #[inline(always)]
    fn read(&mut self) -> Result<u64, Errno> {
        Ok(sys::accounting::times())
    }
}
