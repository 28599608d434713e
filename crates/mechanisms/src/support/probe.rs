//! Whether a mechanism works on this host: helpers that try it. Not a mechanism itself.

use crate::contract::{Endpoint, Mechanism, Shape, TrialContext};
use model::card::Support;
use model::{Params, Workload};
use std::path::Path;
use sys::{Failure, OrFail};

/// Whether a byte that the client sends by `M` arrives at the server. For mechanisms whose `accept` does not wait for
/// the server.
pub(crate) fn try_message<M: Mechanism>(params: &Params) -> Support {
    let shape = Shape { size_bytes: 1, workload: Workload::Latency };
    let trial = TrialContext { params, shape, directory: Path::new(""), number: 0, network: None };
    let attempt = || {
        let (bound, ticket) = M::bind(&trial)?;
        let mut server = M::connect(&trial, ticket)?;
        let mut client = M::accept(bound)?;
        client.send(&[1]).or_fail("send by", M::CARD.name)?;
        server.receive(&mut [0]).or_fail("receive by", M::CARD.name)
    };
    support_of(attempt())
}

/// `Support::Yes` if the attempt `result` succeeded, else the reason and the remedy of its failure.
pub(crate) fn support_of<T>(result: Result<T, Failure>) -> Support {
    match result {
        Ok(_) => Support::UNLIMITED,
        Err(failure) => Support::No {
            reason: format!("{} {}: {}", failure.operation, failure.object, failure.answer),
            remedy: failure.next,
        },
    }
}

/// The largest size below `refused_bytes` that `takes` accepts, found by bisection. 0 if it accepts none.
pub(crate) fn largest_below(
    refused_bytes: usize,
    takes: impl Fn(usize) -> Result<bool, Failure>,
) -> Result<usize, Failure> {
    let (mut taken, mut refused) = (0, refused_bytes);
    while refused - taken > 1 {
        let middle = taken.midpoint(refused);
        if takes(middle)? { taken = middle } else { refused = middle }
    }
    Ok(taken)
}
