//! The time of day, in the older way.

use crate::contract::{Launch, Operation};
use model::card::Card;
use sys::{Errno, Failure};

/// gettimeofday(2).
#[derive(Debug)]
pub struct Gettimeofday;

impl Operation for Gettimeofday {
    const CARD: Card = Card {
        name: "gettimeofday",
        summary: "the time of day in microseconds, through the vDSO where it has it",
        man: &["gettimeofday(2)"],
        ..Card::OPERATION
    };

    fn prepare(_: &Launch<'_>) -> Result<Self, Failure> {
        Ok(Self)
    }

    #[inline(always)]
    fn call(&mut self) -> Result<(), Errno> {
        sys::accounting::gettimeofday()
    }
}
