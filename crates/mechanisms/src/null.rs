//! Nothing: both ends return at once. It measures the instrument itself.
//!
//! With `delay=` client's receive burns a known time, which the result must show.

use crate::contract::{Endpoint, Mechanism, Ticket, Trial};
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::{Domain, Param, Params, Workload};
use std::time::Duration;
use sys::{Errno, Failure};

/// Moves nothing between nobody.
#[derive(Debug)]
pub struct Null;

/// An end that burns its delay for every receive.
#[derive(Debug)]
pub struct NullEnd {
    delay: Duration,
}

impl Mechanism for Null {
    const CARD: Card = Card {
        name: "null",
        kind: CardKind::Mechanism,
        summary: "nothing: the cost of the instrument itself",
        framing: Framing::None,
        reach: Reach::Process,
        payload: Payload::None,
        fds: false,
        hangup: false,
        polled: false,
        one_endpoint: false,
        empty: false,
        params: &[Param {
            name: "delay",
            summary: "a known time that client burns for every answer, to see that it is recovered",
            domain: Domain::Duration,
            default: Some("0s"),
        }],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        sized: true,
        limits: "none",
        man: &[],
    };
    type Bound = NullEnd;
    type End = NullEnd;

    fn probe(_: &Params) -> Support {
        Support::UNLIMITED
    }

    fn bind(trial: &Trial<'_>) -> Result<(NullEnd, Ticket), Failure> {
        let delay = trial.params.duration(&Self::CARD, "delay");
        Ok((NullEnd { delay }, Ticket::default()))
    }

    fn accept(bound: NullEnd) -> Result<NullEnd, Failure> {
        Ok(bound)
    }

    fn connect(_: &Trial<'_>, _: Ticket) -> Result<NullEnd, Failure> {
        Ok(NullEnd { delay: Duration::ZERO })
    }
}

impl Endpoint for NullEnd {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        // Without this the compiler sees that nobody reads the message and does away with the whole loop.
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
