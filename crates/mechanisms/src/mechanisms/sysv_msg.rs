//! Two System V message queues, one for each direction.

use crate::contract::{Endpoint, Mechanism, Ticket, TrialContext};
use crate::support::cards::MESSAGE;
use crate::support::cards::OF_QUEUE;
use crate::support::names::{Registered, probe_sysv};
use model::card::{ByName, Card, Support};
use model::record::Setting;
use model::semantics::{Credentials, Naming, Semantics};
use model::{Domain, Param, Params, Size};
use rustix::thread::{CapabilitySet, capabilities};
use sys::name::ObjectName;
use sys::sysv::{SysvKey, SysvKind, SysvMessageQueue};
use sys::{Errno, Failure};

/// msgsnd(2) and msgrcv(2).
#[derive(Debug)]
pub(crate) struct SysvMsg;

/// An endpoint that sends to one queue and receives from the other.
#[derive(Debug)]
pub(crate) struct SysvMsgEndpoint {
    output: SysvMessageQueue,
    input: SysvMessageQueue,
    settings: Vec<Setting>,
    /// Only in the client, which removes the queues.
    _registered: Option<[Registered; 2]>,
}

impl Mechanism for SysvMsg {
    const CARD: Card = Card {
        name: "sysv-msg",
        summary: "System V message queues, one for each direction",
        by_name: ByName::Always,
        params: &[Param {
            name: "queue",
            summary: "bytes that a queue holds (msg_qbytes); above kernel.msgmnb with CAP_SYS_RESOURCE",
            domain: Domain::Size,
            default: None,
        }],
        limits: "a message up to kernel.msgmax and what a queue holds, at first kernel.msgmnb: raise them with \
                 sysctl; the message is copied behind its type before it is sent",
        semantics: Semantics { credentials: Credentials::LastUser, naming: Naming::Key, ..OF_QUEUE },
        man: &["msgop(2)", "msgget(2)", "msgctl(2)", "sysvipc(7)"],
        ..MESSAGE
    };
    type Bound = SysvMsgEndpoint;
    type End = SysvMsgEndpoint;

    fn probe(params: &Params) -> Support {
        match probe_sysv(SysvKind::Queue) {
            Support::Yes { .. } => Support::Yes { largest_bytes: largest(params) },
            no => no,
        }
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(SysvMsgEndpoint, Ticket), Failure> {
        let [to_server, to_client] = keys(trial);
        let make = |key| {
            trial.make_named(ObjectName::SysvMsg(key), || SysvMessageQueue::create(key, most_bytes(trial)))
        };
        let (output, to_server) = make(to_server)?;
        let (input, to_client) = make(to_client)?;
        let registered = [to_server, to_client];
        let settings = vec![set_capacity(&output, trial.params)?, set_capacity(&input, trial.params)?];
        Ok((SysvMsgEndpoint { output, input, settings, _registered: Some(registered) }, Ticket::default()))
    }

    fn accept(bound: SysvMsgEndpoint) -> Result<SysvMsgEndpoint, Failure> {
        Ok(bound)
    }

    fn connect(trial: &TrialContext<'_>, _: Ticket) -> Result<SysvMsgEndpoint, Failure> {
        let [to_server, to_client] = keys(trial);
        let size_bytes = most_bytes(trial);
        let (output, input) =
            (SysvMessageQueue::open(to_client, size_bytes)?, SysvMessageQueue::open(to_server, size_bytes)?);
        Ok(SysvMsgEndpoint { output, input, settings: Vec::new(), _registered: None })
    }
}

/// The largest message of a trial. The answer to an empty message may have one byte.
fn most_bytes(trial: &TrialContext<'_>) -> usize {
    trial.shape.size_bytes.max(1)
}

fn queue(params: &Params) -> Option<u64> {
    params.size(&SysvMsg::CARD, "queue").map(|Size(bytes)| bytes)
}

/// The largest message that the kernel accepts and a queue can hold. A larger one would wait for ever.
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

/// What kernel.msgmnb is on a host that does not set it (`MSGMNB` in the kernel's `include/uapi/linux/msg.h`).
const USUAL_QUEUE_BYTES: u64 = 16384;

/// Sizes `queue` as `params` ask.
fn set_capacity(queue: &SysvMessageQueue, params: &Params) -> Result<Setting, Failure> {
    let asked = self::queue(params);
    let got = queue.set_capacity(asked)?;
    Ok(Setting {
        name: "msg_qbytes".to_owned(),
        asked: asked.map(|bytes| Size(bytes).to_string()),
        got: Size(got).to_string(),
        clamped: asked.is_some_and(|asked| asked != got),
        usual: asked.is_none().then(|| Size(USUAL_QUEUE_BYTES).to_string()),
    })
}

fn keys(trial: &TrialContext<'_>) -> [SysvKey; 2] {
    ["to-server", "to-client"].map(|direction| SysvKey::hashed((trial.path(), direction)))
}

impl Endpoint for SysvMsgEndpoint {
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
