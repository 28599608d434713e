//! Two System V message queues, one for each direction.

use crate::contract::{Endpoint, Launch, Mechanism, Ticket};
use crate::names::{Registered, names_have_a_place};
use model::card::{Card, Framing, Kind, Payload, Reach, Support};
use model::{Params, Workload};
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
    /// Near's, which removes the queues.
    _registered: Option<[Registered; 2]>,
}

impl Mechanism for SysvMsg {
    const CARD: Card = Card {
        name: "sysv-msg",
        kind: Kind::Mechanism,
        summary: "System V message queues, one for each direction",
        framing: Framing::Message,
        reach: Reach::Host,
        payload: Payload::Bytes,
        fds: false,
        hangup: false,
        params: &[],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        sized: true,
        limits: "a message up to kernel.msgmax, a queue up to kernel.msgmnb: raise them with sysctl; the message is \
                 copied behind its type before it is sent",
        man: &["msgop(2)", "msgget(2)", "sysvipc(7)"],
    };
    type Bound = SysvMsgEnd;
    type End = SysvMsgEnd;

    fn probe(_: &Params) -> Support {
        match names_have_a_place() {
            Support::Yes { .. } => {
                let limit = |name| sys::sysctl::number(&format!("kernel/{name}"));
                // A message that no queue could hold would wait for ever.
                Support::Yes { largest_bytes: limit("msgmax").into_iter().chain(limit("msgmnb")).min() }
            }
            lacking => lacking,
        }
    }

    fn bind(launch: &Launch<'_>) -> Result<(SysvMsgEnd, Ticket), Failure> {
        let [to_far, to_near] = keys(launch);
        let registered = [launch.register(Name::SysvMsg(to_far))?, launch.register(Name::SysvMsg(to_near))?];
        let size_bytes = launch.shape.size_bytes;
        let end = SysvMsgEnd {
            output: MessageQueue::create(to_far, size_bytes)?,
            input: MessageQueue::create(to_near, size_bytes)?,
            _registered: Some(registered),
        };
        Ok((end, Ticket::default()))
    }

    fn accept(bound: SysvMsgEnd) -> Result<SysvMsgEnd, Failure> {
        Ok(bound)
    }

    fn connect(launch: &Launch<'_>, _: Ticket) -> Result<SysvMsgEnd, Failure> {
        let [to_far, to_near] = keys(launch);
        let size_bytes = launch.shape.size_bytes;
        let output = MessageQueue::open(to_near, size_bytes)?;
        Ok(SysvMsgEnd { output, input: MessageQueue::open(to_far, size_bytes)?, _registered: None })
    }
}

fn keys(launch: &Launch<'_>) -> [Key; 2] {
    ["to-far", "to-near"].map(|direction| Key::of((launch.path(), direction)))
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
}
