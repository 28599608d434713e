//! What a process used, in clock ticks.

use crate::contract::{Launch, Operation};
use model::card::Card;
use sys::{Errno, Failure};

/// times(2).
#[derive(Debug)]
pub struct Times;

impl Operation for Times {
    const CARD: Card = Card {
        name: "times",
        summary: "the CPU time that the process used, in clock ticks",
        man: &["times(2)"],
        ..Card::OPERATION
    };

    fn prepare(_: &Launch<'_>) -> Result<Self, Failure> {
        Ok(Self)
    }

    #[inline(always)]
    fn call(&mut self) -> Result<(), Errno> {
        sys::accounting::times()
    }
}
