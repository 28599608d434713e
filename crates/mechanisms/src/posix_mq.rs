//! Two POSIX message queues, one for each direction.

use crate::contract::{Endpoint, Mechanism, Ticket, Trial};
use crate::descriptor::{largest_below, supported};
use crate::names::{Registered, names_have_a_place};
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::record::Setting;
use model::{Domain, Param, Params, Size, Workload};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::read;
use rustix::pipe::{PipeFlags, pipe_with};
use sys::name::Name;
use sys::posix_mq::{MessageQueue, allows_two, charge_of_two_bytes, has_priority, raise_quota};
use sys::{Errno, Failure, OrFail};

/// mq_send(3) and mq_receive(3).
#[derive(Debug)]
pub struct PosixMq;

/// An end that sends to one queue and receives from the other.
#[derive(Debug)]
pub struct PosixMqEnd {
    output: MessageQueue,
    input: MessageQueue,
    settings: Vec<Setting>,
}

/// Client, which removes the names as soon as both ends hold the queues.
#[derive(Debug)]
pub struct Bound {
    end: PosixMqEnd,
    opened: OwnedFd,
    registered: [Registered; 2],
}

impl Mechanism for PosixMq {
    const CARD: Card = Card {
        name: "posix-mq",
        kind: CardKind::Mechanism,
        summary: "POSIX message queues, one for each direction",
        framing: Framing::Message,
        reach: Reach::Host,
        payload: Payload::Bytes,
        fds: false,
        hangup: false,
        polled: true,
        one_endpoint: false,
        empty: true,
        params: &[
            Param {
                name: "depth",
                summary: "messages that a queue holds (mq_maxmsg); up to fs.mqueue.msg_max, or 65536 with CAP_SYS_RESOURCE",
                domain: Domain::Count,
                default: Some("10"),
            },
            Param {
                name: "priority",
                summary: "the priority of every message, up to 32767; 0 unless it is given",
                domain: Domain::Count,
                default: None,
            },
        ],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        sized: true,
        limits: "a message up to fs.mqueue.msgsize_max, or 16 MiB with CAP_SYS_RESOURCE; all queues of a user up to \
                 'ulimit -q', which is raised where it may be",
        man: &["mq_overview(7)", "mq_send(3)", "mq_receive(3)"],
    };
    type Bound = Bound;
    type End = PosixMqEnd;

    fn probe(params: &Params) -> Support {
        if let Some(priority) = params.count(&Self::CARD, "priority").filter(|given| !has_priority(*given)) {
            return Support::No {
                reason: format!("mq_send: there is no priority {priority}"),
                remedy: "give at most 32767 (MQ_PRIO_MAX is 32768)".to_owned(),
            };
        }
        match (names_have_a_place(), largest(params)) {
            (Support::Yes { .. }, Ok(0)) => Support::No {
                reason: format!("mq_open: two queues of {} messages are refused", depth(params)),
                remedy: "raise fs.mqueue.msg_max or 'ulimit -q', or give a smaller depth".to_owned(),
            },
            (Support::Yes { .. }, Ok(largest)) => Support::Yes { largest_bytes: Some(largest as u64) },
            (Support::Yes { .. }, failed) => supported(failed),
            (lacking, _) => lacking,
        }
    }

    fn bind(trial: &Trial<'_>) -> Result<(Bound, Ticket), Failure> {
        let [to_server, to_client] = names(trial);
        let register = |name: &str| trial.register(Name::PosixMq(name.to_owned()));
        let registered = [register(&to_server)?, register(&to_client)?];
        let (depth, asked_bytes) = (depth(trial.params), most_bytes(trial));
        // A message above the limit is refused when it is sent, as in the other rows.
        let size_bytes = if allows_two(depth, asked_bytes)? { asked_bytes } else { largest(trial.params)? };
        let quota = raise_quota().or_fail("setrlimit", "RLIMIT_MSGQUEUE")?;
        let end = PosixMqEnd {
            output: with_priority(MessageQueue::create(&to_server, depth, size_bytes)?, trial.params),
            input: MessageQueue::create(&to_client, depth, size_bytes)?,
            settings: vec![quota_setting(charge_of_two_bytes(depth, size_bytes), quota)],
        };
        let (opened, to_opened) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", "posix-mq")?;
        Ok((Bound { end, opened, registered }, Ticket { address: Vec::new(), fds: vec![to_opened] }))
    }

    fn accept(bound: Bound) -> Result<PosixMqEnd, Failure> {
        // Server closes its end of the pipe when it has opened both queues, or has failed.
        read(&bound.opened, &mut [0]).or_fail("read", "posix-mq")?;
        drop(bound.registered);
        Ok(bound.end)
    }

    fn connect(trial: &Trial<'_>, _ticket: Ticket) -> Result<PosixMqEnd, Failure> {
        let [to_server, to_client] = names(trial);
        let size_bytes = most_bytes(trial);
        let output = with_priority(MessageQueue::open(&to_client, size_bytes)?, trial.params);
        let input = MessageQueue::open(&to_server, size_bytes)?;
        Ok(PosixMqEnd { output, input, settings: Vec::new() })
    }
}

/// What a message has at the most: no queue is made for empty ones alone, and their answer may have a byte.
fn most_bytes(trial: &Trial<'_>) -> usize {
    trial.shape.size_bytes.max(1)
}

fn depth(params: &Params) -> u32 {
    // The card has a default, so that there is always a count.
    params.count(&PosixMq::CARD, "depth").unwrap_or(1)
}

fn with_priority(queue: MessageQueue, params: &Params) -> MessageQueue {
    queue.with_priority(params.count(&PosixMq::CARD, "priority").unwrap_or(0))
}

/// The largest message of two queues that this process may make; 0 when there can be none.
fn largest(params: &Params) -> Result<usize, Failure> {
    /// What the kernel allows nobody to exceed (`HARD_MSGSIZEMAX`).
    const MOST_BYTES: usize = 16 << 20;
    largest_below(MOST_BYTES + 1, |size_bytes| allows_two(depth(params), size_bytes))
}

fn names(trial: &Trial<'_>) -> [String; 2] {
    ["to-server", "to-client"].map(|direction| trial.posix_name(direction))
}

/// The quota that two queues need, and what there is, which other queues of the user may have taken.
fn quota_setting(needed_bytes: u64, got_bytes: Option<u64>) -> Setting {
    Setting {
        name: "RLIMIT_MSGQUEUE".to_owned(),
        asked: Some(Size(needed_bytes).to_string()),
        got: got_bytes.map_or("unlimited".to_owned(), |bytes| Size(bytes).to_string()),
        clamped: got_bytes.is_some_and(|got| got < needed_bytes),
    }
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

    fn settings(&self) -> Vec<Setting> {
        self.settings.clone()
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        Some(self.input.as_fd())
    }
}
