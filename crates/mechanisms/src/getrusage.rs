//! What a process used.

use crate::contract::{OF_TIMERS, Operation, Timer, TrialContext};
use model::card::Card;
use sys::{Errno, Failure};

/// getrusage(2).
#[derive(Debug)]
pub struct Getrusage;

impl Operation for Getrusage {
    const CARD: Card = Card {
        name: "getrusage",
        summary: "what the process used: CPU time, faults, switches",
        workloads: OF_TIMERS,
        man: &["getrusage(2)"],
        ..Card::OPERATION
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

    fn timer(&self) -> Option<Timer> {
        Timer::cpu(1000.0)
    }

    #[inline(always)]
    fn read(&mut self) -> Result<u64, Errno> {
        sys::accounting::getrusage()
    }
}
