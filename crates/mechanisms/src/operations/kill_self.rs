//! A signal to the calling thread, whose handler does nothing: no other process, and no sleep.

use crate::contract::{Operation, TrialContext};
use model::card::Card;
use sys::signal::{Signal, SignalSender, ThreadId, handle};
use sys::{Errno, Failure};

/// kill(2).
#[derive(Debug)]
pub(crate) struct KillSelf(SignalSender);

impl Operation for KillSelf {
    const CARD: Card = Card {
        name: "kill-self",
        summary: "SIGUSR1 from a thread to itself, and its handler",
        man: &["kill(2)", "sigaction(2)"],
        ..Card::OPERATION
    };

    fn prepare(_: &TrialContext<'_>) -> Result<Self, Failure> {
        handle(Signal::Standard)?;
        Ok(Self(SignalSender::new(ThreadId::current(), Signal::Standard)))
    }

    #[inline(always)]
    fn call(&mut self) -> Result<(), Errno> {
        self.0.kill()
    }
}
