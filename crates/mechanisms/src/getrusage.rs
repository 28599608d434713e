//! What a process used.

use crate::contract::{Launch, Operation};
use model::card::Card;
use sys::{Errno, Failure};

/// getrusage(2).
#[derive(Debug)]
pub struct Getrusage;

impl Operation for Getrusage {
    const CARD: Card = Card {
        name: "getrusage",
        summary: "what the process used: CPU time, faults, switches",
        man: &["getrusage(2)"],
        ..Card::OPERATION
    };

    fn prepare(_: &Launch<'_>) -> Result<Self, Failure> {
        Ok(Self)
    }

    #[inline(always)]
    fn call(&mut self) -> Result<(), Errno> {
        sys::accounting::getrusage()
    }
}
