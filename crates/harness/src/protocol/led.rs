//! The core of the protocol, which every endpoint speaks: the coordinator leads it from phase to phase, and it says how long each took.
//!
//! What ipcmark's own endpoints can beside that, above all to lead whole slices by themselves, is in the files beside this one.

use super::channel::Channel;
use super::error::short;
use super::frame::shortened;
use super::hello::{CoordinatorHello, DriverHello};
use super::orders::NetworkOrders;
use model::{EndpointRole, Params, Workload};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use sys::Failure;

/// A message of the core, in either direction: what its schema is made from.
#[derive(Debug, JsonSchema)]
#[serde(untagged)]
pub enum CoreMessage {
    /// From the coordinator.
    Coordinator(ToLed),
    /// From an endpoint.
    Endpoint(FromLed),
}

/// What the coordinator says to an endpoint that it leads.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToLed {
    /// The first message.
    Hello(CoordinatorHello),
    /// The second: what the endpoint is to do.
    Orders(Box<LedOrders>),
    /// To a client: how its server is reached, as bytes in the order of the mechanism.
    Ticket(Vec<u8>),
    /// The next phase. A client begins at once; its server is ready.
    Phase(LedPhase),
    /// Only to an endpoint with the capability `alive`: the coordinator is still there, which it says each second.
    Alive,
    /// Only to an endpoint with the capability `alive`, which answers `pong` also during a phase.
    Ping,
    /// There is nothing more to do: the endpoint ends.
    Goodbye,
}

/// What an endpoint says that is led.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FromLed {
    /// In answer to the coordinator's.
    Hello(DriverHello),
    /// From a server that has bound, before it waits for its client.
    Ticket(Vec<u8>),
    /// It is connected with its peer.
    Connected,
    /// From a server: what the phase sends is received from now on.
    Ready,
    /// The phase is over.
    Done(LedDone),
    /// In answer to `ping`.
    Pong,
    /// It cannot go on, and why, in a sentence. It ends.
    Failed(#[serde(deserialize_with = "short")] String),
}

impl FromLed {
    /// The next message of the driver on `channel`; sleeps until it comes.
    pub(crate) fn heard(channel: &Channel) -> Result<Self, Failure> {
        let heard = channel.receive().map(|(message, _)| message);
        // Its author knows no other version of this program.
        let next = |failure: &Failure| match failure.operation.as_str() {
            "decode" => "see 'ipcmark schema protocol'".to_owned(),
            _ => failure.next.clone(),
        };
        heard.map_err(|failure| Failure { next: next(&failure), ..failure })
    }

    /// The message as it was said, to be shown.
    pub(crate) fn as_said(&self) -> String {
        shortened(&serde_json::to_string(self).unwrap_or_default())
    }
}

impl LedDone {
    /// Why its time can be none, if that is so.
    pub(crate) fn impossible_time(&self) -> Option<String> {
        let elapsed_ns = self.elapsed_ns;
        let is_possible = elapsed_ns.is_finite() && elapsed_ns >= 0.0;
        (!is_possible).then(|| format!("elapsed_ns is {elapsed_ns}, and must not be negative"))
    }
}

/// The capability to time iterations one by one.
pub(crate) const EACH: &str = "each";
/// The capability to listen to the coordinator while at work.
pub(crate) const ALIVE: &str = "alive";

/// Messages before the timed ones, so that both endpoints are under way when the clock starts; and after them, so that they still are when
/// it stops.
const LEAD_IN: u64 = 5;
const LEAD_OUT: u64 = 2;
/// The least messages of a stream before and after those that are timed.
const LEAST_STREAMED: u64 = 8;
/// Into how many cycles of filled and emptied buffers the timed messages of a stream are parted.
const CYCLES: u64 = 16;

/// What an endpoint is to do in its trial.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LedOrders {
    /// `client` or `server`.
    pub role: EndpointRole,
    /// The name of the mechanism: one that the endpoint's hello has.
    pub mechanism: String,
    /// The parameters that differ from their defaults. An endpoint that does not know one refuses the orders.
    #[serde(default)]
    pub parameters: Params,
    /// `latency`, `transfer` or `throughput`.
    pub workload: Workload,
    /// The size of a message.
    pub size_bytes: u64,
    /// Descriptors that the endpoint has from its start, in the order of the mechanism; there is no ticket then.
    #[serde(default)]
    pub descriptors: Vec<i32>,
    /// Where names in the file system go. It is removed after the run.
    pub directory: PathBuf,
    /// The number of the trial in its run: names that begin with it are this trial's.
    pub number: u64,
    /// How the endpoints find each other where the mechanism is of a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkOrders>,
}

/// The messages of one phase, numbered on from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedPhase {
    /// Whether every byte is made and checked, and not the number of each message alone.
    pub check: bool,
    /// Whether the client reports how long each timed iteration took; never asked without the capability `each`.
    #[serde(default)]
    pub each: bool,
    /// One after the other, without a pause.
    pub stretches: Vec<Stretch>,
}

/// Some messages of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    /// How many.
    pub messages: u64,
    /// Whether they are timed: one stretch of a phase is.
    #[serde(default)]
    pub timed: bool,
    /// In `throughput`, whether the server then sends a message of one byte, whose number is how many have come in the phase.
    #[serde(default)]
    pub acknowledged: bool,
}

/// What an endpoint says of a phase that is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "an object with elapsed_ns")]
pub struct LedDone {
    /// How long the timed messages took by the endpoint's own steady clock.
    pub elapsed_ns: f64,
    /// How long each took, where that was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each_ns: Vec<u64>,
}

impl LedPhase {
    /// A phase of so many timed `messages` of `workload`.
    pub(crate) fn drawn(
        workload: Workload,
        messages: u64,
        check: bool,
        each: bool,
        random: &mut impl Rng,
    ) -> Self {
        let stretches = match workload {
            Workload::Throughput => streamed(messages, random),
            _ => [(LEAD_IN, false), (messages, true), (LEAD_OUT, false)]
                .map(|(messages, timed)| Stretch { messages, timed, acknowledged: false })
                .to_vec(),
        };
        Self { check, each, stretches }
    }

    /// How many messages it has in all.
    pub(crate) fn count(&self) -> u64 {
        self.stretches.iter().map(|stretch| stretch.messages).sum()
    }

    /// How many of them are timed.
    pub(crate) fn timed(&self) -> u64 {
        self.stretches.iter().filter(|stretch| stretch.timed).map(|stretch| stretch.messages).sum()
    }
}

/// A stream: first a message that is acknowledged, so that both endpoints are there. What comes before the timed messages is of random length, so
/// that the buffers are not at the same point of their cycle in every slice; what comes after keeps the client sending until they have come.
fn streamed(messages: u64, random: &mut impl Rng) -> Vec<Stretch> {
    let cycle = messages / CYCLES;
    let run_up = random.random_range(cycle..=3 * cycle).max(LEAST_STREAMED);
    let run_out = (messages / 2).max(LEAST_STREAMED);
    [(1, false, true), (run_up, false, false), (messages, true, false), (run_out, false, true)]
        .map(|(messages, timed, acknowledged)| Stretch { messages, timed, acknowledged })
        .to_vec()
}
