//! Private memory is mapped and unmapped. What does the first access to its pages add?

use crate::contract::{Operation, TrialContext};
use model::card::Card;
use model::{Domain, Param};
use sys::anonymous::map_and_unmap;
use sys::{Errno, Failure};

/// mmap(2), page faults and munmap(2).
#[derive(Debug)]
pub(crate) struct Mmap {
    size_bytes: usize,
    touch_every_bytes: Option<usize>,
}

impl Operation for Mmap {
    const CARD: Card = Card {
        name: "mmap",
        summary: "map n bytes of private memory, touch each page, and unmap it",
        params: &[Param {
            name: "touch",
            summary: "write a byte to each page, so that each causes a page fault",
            domain: Domain::Choice(&["on", "off"]),
            default: Some("on"),
        }],
        sized: true,
        limits: "memory",
        man: &["mmap(2)", "munmap(2)"],
        ..Card::OPERATION
    };

    fn prepare(trial: &TrialContext<'_>) -> Result<Self, Failure> {
        let touch = trial.params.text(&Self::CARD, "touch") == Some("on");
        Ok(Self {
            size_bytes: trial.shape.size_bytes,
            touch_every_bytes: touch.then(rustix::param::page_size),
        })
    }

    #[inline(always)]
    fn call(&mut self) -> Result<(), Errno> {
        map_and_unmap(self.size_bytes, self.touch_every_bytes)
    }
}
