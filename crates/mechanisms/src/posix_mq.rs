//! Two POSIX message queues, one for each direction.

use crate::contract::{Endpoint, Launch, Mechanism, Ticket};
use crate::names::{Registered, names_have_a_place};
use model::card::{Card, Framing, Kind, Payload, Reach, Support};
use model::{Domain, Param, Params, Workload};
use rustix::fd::OwnedFd;
use rustix::io::read;
use rustix::pipe::{PipeFlags, pipe_with};
use sys::name::Name;
use sys::posix_mq::MessageQueue;
use sys::{Errno, Failure, OrFail};

/// mq_send(3) and mq_receive(3).
#[derive(Debug)]
pub struct PosixMq;

/// An end that sends to one queue and receives from the other.
#[derive(Debug)]
pub struct PosixMqEnd {
    output: MessageQueue,
    input: MessageQueue,
}

/// Near, which removes the names as soon as both ends hold the queues.
#[derive(Debug)]
pub struct Bound {
    end: PosixMqEnd,
    opened: OwnedFd,
    registered: [Registered; 2],
}

impl Mechanism for PosixMq {
    const CARD: Card = Card {
        name: "posix-mq",
        kind: Kind::Mechanism,
        summary: "POSIX message queues, one for each direction",
        framing: Framing::Message,
        reach: Reach::Host,
        payload: Payload::Bytes,
        fds: false,
        hangup: false,
        params: &[Param {
            name: "depth",
            summary: "messages that a queue holds (mq_maxmsg); up to fs.mqueue.msg_max",
            domain: Domain::Count,
            default: Some("10"),
        }],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        sized: true,
        limits: "a message up to fs.mqueue.msgsize_max, all queues of a user up to 'ulimit -q'",
        man: &["mq_overview(7)", "mq_send(3)", "mq_receive(3)"],
    };
    type Bound = Bound;
    type End = PosixMqEnd;

    fn probe(_: &Params) -> Support {
        match (names_have_a_place(), largest()) {
            (Support::Yes { .. }, Some(largest)) => Support::Yes { largest_bytes: Some(largest) },
            (Support::Yes { .. }, None) => Support::No {
                reason: "there is no /proc/sys/fs/mqueue".to_owned(),
                remedy: "take a kernel with CONFIG_POSIX_MQUEUE, and mount /proc".to_owned(),
            },
            (lacking, _) => lacking,
        }
    }

    fn bind(launch: &Launch<'_>) -> Result<(Bound, Ticket), Failure> {
        let [to_far, to_near] = names(launch);
        let register = |name: &str| launch.register(Name::PosixMq(name.to_owned()));
        let registered = [register(&to_far)?, register(&to_near)?];
        let depth = launch.params.count(&Self::CARD, "depth").unwrap_or(1);
        // A message above the limit is refused when it is sent, as in the other rows.
        let size_bytes = launch.shape.size_bytes.min(largest().unwrap_or(u64::MAX) as usize);
        let end = PosixMqEnd {
            output: MessageQueue::create(&to_far, depth, size_bytes)?,
            input: MessageQueue::create(&to_near, depth, size_bytes)?,
        };
        let (opened, to_opened) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", "posix-mq")?;
        Ok((Bound { end, opened, registered }, Ticket { address: Vec::new(), fds: vec![to_opened] }))
    }

    fn accept(bound: Bound) -> Result<PosixMqEnd, Failure> {
        // Far closes its end of the pipe when it has opened both queues, or has failed.
        read(&bound.opened, &mut [0]).or_fail("read", "posix-mq")?;
        drop(bound.registered);
        Ok(bound.end)
    }

    fn connect(launch: &Launch<'_>, _ticket: Ticket) -> Result<PosixMqEnd, Failure> {
        let [to_far, to_near] = names(launch);
        let size_bytes = launch.shape.size_bytes;
        let output = MessageQueue::open(&to_near, size_bytes)?;
        Ok(PosixMqEnd { output, input: MessageQueue::open(&to_far, size_bytes)? })
    }
}

/// The largest message of a queue that anybody may make.
fn largest() -> Option<u64> {
    sys::sysctl::number("fs/mqueue/msgsize_max")
}

fn names(launch: &Launch<'_>) -> [String; 2] {
    ["to-far", "to-near"].map(|direction| launch.posix_name(direction))
}

impl Endpoint for PosixMqEnd {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.output.send(bytes)
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        self.input.receive(into)
    }
}
