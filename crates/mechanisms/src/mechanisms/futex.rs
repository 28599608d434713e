//! A futex in shared memory between any two CPUs. On one CPU it is the floor `context-switch`.

use crate::contract::{Mechanism, Ticket, TrialContext};
use crate::floors::context_switch::{ContextSwitch, ContextSwitchEndpoint};
use crate::support::cards::TOKEN;
use model::Params;
use model::card::{Card, Support};
use sys::Failure;

/// futex(2).
#[derive(Debug)]
pub(crate) struct Futex;

impl Mechanism for Futex {
    const CARD: Card = Card {
        name: "futex",
        summary: "a word in shared memory, with a wake-up by futex",
        man: &["futex(2)", "memfd_create(2)"],
        ..TOKEN
    };
    type Bound = ContextSwitchEndpoint;
    type End = ContextSwitchEndpoint;

    fn probe(params: &Params) -> Support {
        ContextSwitch::probe(params)
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(ContextSwitchEndpoint, Ticket), Failure> {
        ContextSwitch::bind(trial)
    }

    fn accept(bound: ContextSwitchEndpoint) -> Result<ContextSwitchEndpoint, Failure> {
        ContextSwitch::accept(bound)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<ContextSwitchEndpoint, Failure> {
        ContextSwitch::connect(trial, ticket)
    }
}
