//! Nothing: both endpoints return at once. It measures the instrument itself.
//!
//! With `delay=` the client's receive burns a known time, which the result must show.

use crate::contract::{Endpoint, Mechanism, Ticket, TrialContext};
use crate::support::cards::STREAM;
use model::card::{Card, Framing, Payload, Reach, Support};
use model::{Domain, Param, Params};
use std::time::Duration;
use sys::{Errno, Failure};

/// Moves nothing.
#[derive(Debug)]
pub(crate) struct Null;

/// An endpoint that burns its delay in every receive.
#[derive(Debug)]
pub(crate) struct NullEndpoint {
    delay: Duration,
}

impl Mechanism for Null {
    const CARD: Card = Card {
        name: "null",
        summary: "nothing: the cost of the instrument itself",
        framing: Framing::None,
        reach: Reach::Process,
        payload: Payload::None,
        hangup: false,
        polled: false,
        params: &[Param {
            name: "delay",
            summary: "a known time that the client burns for every answer; the result must show it",
            domain: Domain::Duration,
            default: Some("0s"),
        }],
        limits: "none",
        man: &[],
        ..STREAM
    };
    type Bound = NullEndpoint;
    type End = NullEndpoint;

    fn probe(_: &Params) -> Support {
        Support::UNLIMITED
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(NullEndpoint, Ticket), Failure> {
        let delay = trial.params.duration(&Self::CARD, "delay");
        Ok((NullEndpoint { delay }, Ticket::default()))
    }

    fn accept(bound: NullEndpoint) -> Result<NullEndpoint, Failure> {
        Ok(bound)
    }

    fn connect(_: &TrialContext<'_>, _: Ticket) -> Result<NullEndpoint, Failure> {
        Ok(NullEndpoint { delay: Duration::ZERO })
    }
}

impl Endpoint for NullEndpoint {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        // Without this the compiler sees that nobody reads the message, and removes the whole loop.
        Ok(std::hint::black_box(bytes).len())
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        if !self.delay.is_zero() {
            sys::delay::burn(self.delay);
        }
        Ok(std::hint::black_box(into).len())
    }
}
