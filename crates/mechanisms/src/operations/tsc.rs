//! The processor's time-stamp counter: what one reading costs.

use crate::contract::{Operation, TimerKind, TrialContext};
use crate::support::cards::TIMER;
use model::card::{Card, Support};
use model::{Domain, Param, Params};
use sys::{Errno, Failure};

/// Intel SDM, RDTSC.
#[derive(Debug)]
pub(crate) struct Tsc {
    ordered: bool,
}

impl Operation for Tsc {
    const CARD: Card = Card {
        name: "tsc",
        summary: "one reading of the time-stamp counter",
        params: &[Param {
            name: "order",
            summary: "fenced: the reading waits for the instructions before it (LFENCE; RDTSC), as a clock must; bare: it does not",
            domain: Domain::Choice(&["fenced", "bare"]),
            default: Some("fenced"),
        }],
        limits: "x86-64 with an invariant counter",
        man: &["Intel SDM, RDTSC"],
        ..TIMER
    };

    fn probe(_: &Params) -> Support {
        if sys::tsc::is_invariant() {
            return Support::UNLIMITED;
        }
        Support::No {
            reason: "the processor has no invariant time-stamp counter".to_owned(),
            remedy: "measure clock_gettime instead".to_owned(),
        }
    }

    fn prepare(trial: &TrialContext<'_>) -> Result<Self, Failure> {
        Ok(Self { ordered: trial.params.text(&Self::CARD, "order") == Some("fenced") })
    }

    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        self.read().map(|ticks| {
            std::hint::black_box(ticks);
        })
    }

    fn timer(&self) -> Option<TimerKind> {
        Some(TimerKind { tick_ns: None, counts_sleep: true })
    }

    #[inline(always)]
    fn read(&mut self) -> Result<u64, Errno> {
        Ok(if self.ordered { sys::tsc::read() } else { sys::tsc::read_unordered() })
    }
}
