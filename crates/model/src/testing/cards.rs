//! A card for tests that says no more than they are about.

use crate::card::{Card, CardKind, Framing, Payload, Reach};
use crate::workload::Workload;

/// A stream of bytes on one host, without parameters.
pub const fn card(name: &'static str, kind: CardKind, workloads: &'static [Workload], sized: bool) -> Card {
    Card {
        name,
        kind,
        framing: Framing::Stream,
        reach: Reach::Host,
        payload: Payload::Bytes,
        workloads,
        sized,
        ..Card::OPERATION
    }
}
