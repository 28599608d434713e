//! A futex in shared memory, as the context-switch floor has it, between any two CPUs.

use crate::context_switch::{ContextSwitch, ContextSwitchEnd};
use crate::contract::{Mechanism, Ticket, TrialContext};
use model::Params;
use model::card::{Card, CardKind, Support};
use sys::Failure;

/// futex(2).
#[derive(Debug)]
pub struct Futex;

impl Mechanism for Futex {
    const CARD: Card = Card {
        name: "futex",
        kind: CardKind::Mechanism,
        summary: "a word in shared memory, with a wake-up by futex",
        limits: "4 bytes",
        ..ContextSwitch::CARD
    };
    type Bound = ContextSwitchEnd;
    type End = ContextSwitchEnd;

    fn probe(params: &Params) -> Support {
        ContextSwitch::probe(params)
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(ContextSwitchEnd, Ticket), Failure> {
        ContextSwitch::bind(trial)
    }

    fn accept(bound: ContextSwitchEnd) -> Result<ContextSwitchEnd, Failure> {
        ContextSwitch::accept(bound)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<ContextSwitchEnd, Failure> {
        ContextSwitch::connect(trial, ticket)
    }
}
