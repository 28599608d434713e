//! The messages of the protocol: from the coordinator to an endpoint, back, and between the endpoints of a trial. What they
//! carry is in the files beside this one; docs/reference/protocol.md describes them.

use super::error::EndpointError;
use super::hello::Hello;
use super::led::{LedDone, LedOrders, LedPhase};
use super::orders::{Orders, SliceOrders};
use super::phase::{Phase, ServerPhase};
use super::report::{EndpointResult, SliceReport};
use super::scenario::{FlowTicket, ProcessSnapshot, ScenarioOrders};
use model::record::Setting;
use serde::{Deserialize, Serialize};

/// What the coordinator says to an endpoint.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CoordinatorMessage {
    /// The first message.
    Hello(Hello),
    /// The second: what the endpoint is to do, led from phase to phase.
    Orders(Box<LedOrders>),
    /// To a client that is led: how its server is reached.
    Ticket(Vec<u8>),
    /// To an endpoint that is led: the next phase.
    Phase(LedPhase),
    /// The second, to an endpoint of ipcmark: what it is to do, slice by slice. The links to its peers come with it, where descriptors can.
    Trial(Box<Orders>),
    /// The second, to a process of a scenario: what that is to do.
    Scenario(Box<ScenarioOrders>),
    /// From the sender of a flow, to its receiver. Descriptors come with it.
    FlowTicket(FlowTicket),
    /// To a process of a scenario: go on with the flows that you begin by yourself.
    Begin,
    /// To a process of a scenario: begin nothing more, and say when what you began is over.
    Pause,
    /// To a process of a scenario: say what you have done.
    Snapshot {
        /// Whether the round trips since the last snapshot that had them are wanted too.
        round_trips: bool,
    },
    /// The next slice; only to a client or an operation.
    Slice(SliceOrders),
    /// No client is behind this one, which may go on.
    Go,
    /// From the endpoint's peer, where the endpoints have no link.
    Peer(Box<PeerMessage>),
    /// The coordinator is still there. It says so each second over a byte stream.
    Alive,
    /// It wants to know whether the endpoint is still there.
    Ping,
    /// There is nothing more to do.
    Goodbye,
}

/// What an endpoint says to the coordinator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EndpointMessage {
    /// The first message, in answer to the coordinator's.
    Hello(Hello),
    /// It is led, and a server that has bound: how it is reached.
    Ticket(Vec<u8>),
    /// It is led, and the phase is over.
    Done(LedDone),
    /// It is led, and cannot go on.
    Failed(String),
    /// It sends a flow of a scenario. The coordinator passes this on to whoever receives it. Descriptors come with it.
    FlowTicket(FlowTicket),
    /// It is a process of a scenario, and began nothing that is not over.
    Parked,
    /// What it has done as a process of a scenario.
    Snapshot(Box<ProcessSnapshot>),
    /// It is a client or an operation, and is ready for its first slice; or a process of a scenario, and has all its endpoints of flows; or it is
    /// led, and is connected.
    Connected,
    /// It is one of several clients, and is warm. It goes on when the coordinator says so, which it does when all are. Or it is led, and a
    /// server that receives from now on.
    Ready,
    /// It is one of several clients, and has measured one whole phase. The coordinator says when all have.
    MeasuredOnePhase,
    /// The iterations that come now should take so long, in nanoseconds: the coordinator is to wait for them.
    Expect {
        /// How long.
        ns: u64,
    },
    /// For the endpoint's peer, where the endpoints have no link.
    Peer(Box<PeerMessage>),
    /// A slice is over.
    Slice(Box<SliceReport>),
    /// It is still there.
    Pong,
    /// It has done what it was told to do, or failed. There is no message after it.
    Ended {
        /// Why it failed.
        error: Option<EndpointError>,
    },
}

impl From<EndpointResult> for EndpointMessage {
    fn from(result: EndpointResult) -> Self {
        Self::Ended { error: result.err() }
    }
}

/// What the endpoints of a trial say to each other, over a link of their own or by way of the coordinator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PeerMessage {
    /// How to connect: address bytes in a format that is the mechanism's own. Descriptors come with it over a link alone.
    Ticket(Vec<u8>),
    /// The server is connected, with these settings.
    Settings(Vec<Setting>),
    /// The client's memory for pair readings, whose descriptor comes with it.
    SpeedLine,
    /// From the client: what comes next.
    Phase(Phase),
    /// From the server: it is ready for the phase. Said where a probe observes it, or where the endpoints have no link.
    Ready,
    /// From the server: what the phase took.
    Done(Box<ServerPhase>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::frame::message;
    use model::record::{Sample, Usage};
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    /// Whatever comes is a message or a failure, for both sides. What is read is written again and read the same.
    #[test]
    fn damaged_messages_are_refused_or_read_and_panic_nowhere() {
        let sample = Sample::new(5, 100.0, Usage::default(), None);
        let from_endpoint = [
            EndpointMessage::Hello(Hello::own()),
            EndpointMessage::Expect { ns: u64::MAX },
            EndpointMessage::Slice(Box::new(SliceReport::from_sample(sample))),
            EndpointMessage::Peer(Box::new(PeerMessage::Done(Box::default()))),
            EndpointMessage::from(Err(EndpointError::bug("a", "b", "c"))),
        ];
        let from_coordinator = [
            CoordinatorMessage::Hello(Hello { wants_facts: true, ..Hello::own() }),
            CoordinatorMessage::Peer(Box::new(PeerMessage::Ticket(vec![1, 2]))),
            CoordinatorMessage::Goodbye,
        ];
        let bodies = from_endpoint.iter().map(|m| serde_json::to_vec(m).unwrap());
        let bodies: Vec<Vec<u8>> =
            bodies.chain(from_coordinator.iter().map(|m| serde_json::to_vec(m).unwrap())).collect();
        let mut random = SmallRng::seed_from_u64(1);
        let (mut read, mut refused) = (0, 0);
        for round in 0..20_000 {
            let mut body = bodies[round % bodies.len()].clone();
            for _ in 0..random.random_range(0..4) {
                let at = random.random_range(0..body.len());
                match random.random_range(0..3) {
                    0 => body[at] = random.random(),
                    1 => body.truncate(at.max(1)),
                    _ => body[at] = b"0123456789\"{}[],:-e."[random.random_range(0..20)],
                }
            }
            let count = |is_read: bool| if is_read { (1, 0) } else { (0, 1) };
            for (is_read, is_refused) in [
                count(message::<EndpointMessage>(&body).is_ok()),
                count(message::<CoordinatorMessage>(&body).is_ok()),
            ] {
                read += is_read;
                refused += is_refused;
            }
        }
        assert!(read > 1000 && refused > 1000, "{read} {refused}");
    }

    #[test]
    fn messages_are_as_the_document_says() {
        let text = |message: &EndpointMessage| serde_json::to_string(message).unwrap();
        assert_eq!(text(&EndpointMessage::Connected), r#""connected""#);
        assert_eq!(text(&EndpointMessage::Expect { ns: 5_000_000 }), r#"{"expect":{"ns":5000000}}"#);
        assert_eq!(text(&EndpointMessage::MeasuredOnePhase), r#""measured-one-phase""#);
        assert_eq!(serde_json::to_string(&CoordinatorMessage::Alive).unwrap(), r#""alive""#);
        let error = text(&EndpointMessage::from(Err(EndpointError::bug("a", "b", "c"))));
        assert!(
            error.starts_with(r#"{"ended":{"error":{"operation":"a","object":"b","answer":"c","#),
            "{error}"
        );
    }
}
