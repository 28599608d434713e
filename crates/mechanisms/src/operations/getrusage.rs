//! What a process has used: CPU time and counters.

use crate::contract::{Operation, TimerKind, TrialContext};
use crate::support::cards::TIMER;
use model::card::Card;
use sys::{Errno, Failure};

/// getrusage(2).
#[derive(Debug)]
pub(crate) struct Getrusage;

impl Operation for Getrusage {
    const CARD: Card = Card {
        name: "getrusage",
        summary: "what the process has used: CPU time, page faults, switches",
        man: &["getrusage(2)"],
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
        TimerKind::cpu(1000.0)
    }

    #[inline(always)]
    fn read(&mut self) -> Result<u64, Errno> {
        sys::accounting::getrusage()
    }
}
