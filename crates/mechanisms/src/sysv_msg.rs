//! Two System V message queues, one for each direction.

use crate::contract::{Endpoint, Mechanism, Ticket, Trial};
use crate::names::{Registered, names_have_a_place};
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::record::Setting;
use model::{Domain, Param, Params, Size, Workload};
use rustix::thread::{CapabilitySet, capabilities};
use sys::name::Name;
use sys::sysv::{Key, MessageQueue};
use sys::{Errno, Failure};

/// msgsnd(2) and msgrcv(2).
#[derive(Debug)]
pub struct SysvMsg;

/// An end that sends to one queue and receives from the other.
#[derive(Debug)]
pub struct SysvMsgEnd {
    output: MessageQueue,
    input: MessageQueue,
    settings: Vec<Setting>,
    /// Client's, which removes the queues.
    _registered: Option<[Registered; 2]>,
}

impl Mechanism for SysvMsg {
    const CARD: Card = Card {
        name: "sysv-msg",
        kind: CardKind::Mechanism,
        summary: "System V message queues, one for each direction",
        framing: Framing::Message,
        reach: Reach::Host,
        payload: Payload::Bytes,
        fds: false,
        hangup: false,
        polled: false,
        one_endpoint: false,
        empty: true,
        params: &[Param {
            name: "queue",
            summary: "bytes that a queue holds (msg_qbytes); above kernel.msgmnb with CAP_SYS_RESOURCE",
            domain: Domain::Size,
            default: None,
        }],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        sized: true,
        limits: "a message up to kernel.msgmax and what a queue holds, at first kernel.msgmnb: raise them with \
                 sysctl; the message is copied behind its type before it is sent",
        man: &["msgop(2)", "msgget(2)", "msgctl(2)", "sysvipc(7)"],
    };
    type Bound = SysvMsgEnd;
    type End = SysvMsgEnd;

    fn probe(params: &Params) -> Support {
        match names_have_a_place() {
            Support::Yes { .. } => Support::Yes { largest_bytes: largest(params) },
            lacking => lacking,
        }
    }

    fn bind(trial: &Trial<'_>) -> Result<(SysvMsgEnd, Ticket), Failure> {
        let [to_server, to_client] = keys(trial);
        let registered =
            [trial.register(Name::SysvMsg(to_server))?, trial.register(Name::SysvMsg(to_client))?];
        let size_bytes = most_bytes(trial);
        let (output, input) =
            (MessageQueue::create(to_server, size_bytes)?, MessageQueue::create(to_client, size_bytes)?);
        let settings = vec![hold(&output, trial.params)?, hold(&input, trial.params)?];
        Ok((SysvMsgEnd { output, input, settings, _registered: Some(registered) }, Ticket::default()))
    }

    fn accept(bound: SysvMsgEnd) -> Result<SysvMsgEnd, Failure> {
        Ok(bound)
    }

    fn connect(trial: &Trial<'_>, _: Ticket) -> Result<SysvMsgEnd, Failure> {
        let [to_server, to_client] = keys(trial);
        let size_bytes = most_bytes(trial);
        let (output, input) =
            (MessageQueue::open(to_client, size_bytes)?, MessageQueue::open(to_server, size_bytes)?);
        Ok(SysvMsgEnd { output, input, settings: Vec::new(), _registered: None })
    }
}

/// What a message has at the most: the answer to an empty one may have a byte.
fn most_bytes(trial: &Trial<'_>) -> usize {
    trial.shape.size_bytes.max(1)
}

fn queue(params: &Params) -> Option<u64> {
    params.size(&SysvMsg::CARD, "queue").map(|Size(bytes)| bytes)
}

/// The largest message that the kernel takes and a queue can hold. One that no queue could hold would wait for ever.
fn largest(params: &Params) -> Option<u64> {
    let limit = |name| sys::sysctl::number(&format!("kernel/{name}"));
    let may_exceed =
        || capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_RESOURCE));
    let holds = match (queue(params), limit("msgmnb")) {
        (Some(asked), Some(msgmnb)) if asked > msgmnb && !may_exceed() => Some(msgmnb),
        (asked, msgmnb) => asked.or(msgmnb),
    };
    limit("msgmax").into_iter().chain(holds).min()
}

/// Has `queue` hold what `params` ask.
fn hold(queue: &MessageQueue, params: &Params) -> Result<Setting, Failure> {
    let asked = self::queue(params);
    let got = queue.hold(asked)?;
    Ok(Setting {
        name: "msg_qbytes".to_owned(),
        asked: asked.map(|bytes| Size(bytes).to_string()),
        got: Size(got).to_string(),
        clamped: asked.is_some_and(|asked| asked != got),
    })
}

fn keys(trial: &Trial<'_>) -> [Key; 2] {
    ["to-server", "to-client"].map(|direction| Key::of((trial.path(), direction)))
}

impl Endpoint for SysvMsgEnd {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.output.send(bytes)
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        self.input.receive(into)
    }

    fn settings(&self) -> Vec<Setting> {
        self.settings.clone()
    }
}
