//! Two POSIX message queues, one for each direction.

use crate::contract::{Endpoint, Mechanism, Ticket, TrialContext};
use crate::support::cards::MESSAGE;
use crate::support::cards::OF_QUEUE;
use crate::support::names::{Registered, probe_names};
use crate::support::probe::{largest_below, support_of};
use model::card::{Card, Support};
use model::record::Setting;
use model::semantics::{Naming, Order, Semantics};
use model::{Domain, Param, Params, Size};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::read;
use rustix::pipe::{PipeFlags, pipe_with};
use sys::name::ObjectName;
use sys::posix_mq::{
    PosixMessageQueue, allows_two_queues, has_priority, raise_quota, two_queues_charge_bytes,
};
use sys::{Errno, Failure, OrFail};

/// mq_send(3) and mq_receive(3).
#[derive(Debug)]
pub(crate) struct PosixMq;

/// An endpoint that sends to one queue and receives from the other.
#[derive(Debug)]
pub(crate) struct PosixMqEndpoint {
    output: PosixMessageQueue,
    input: PosixMessageQueue,
    settings: Vec<Setting>,
}

/// The client, which removes the names as soon as both endpoints hold the queues.
#[derive(Debug)]
pub(crate) struct Bound {
    endpoint: PosixMqEndpoint,
    opened: OwnedFd,
    registered: [Registered; 2],
}

impl Mechanism for PosixMq {
    const CARD: Card = Card {
        name: "posix-mq",
        summary: "POSIX message queues, one for each direction",
        polled: true,
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
        limits: "a message up to fs.mqueue.msgsize_max, or 16 MiB with CAP_SYS_RESOURCE; all queues of a user up to \
                 'ulimit -q', which is raised where it may be",
        semantics: Semantics {
            order: Order::ByPriority,
            naming: Naming::Name,
            most_bytes: Some(16 << 20),
            ..OF_QUEUE
        },
        man: &["mq_overview(7)", "mq_send(3)", "mq_receive(3)"],
        ..MESSAGE
    };
    type Bound = Bound;
    type End = PosixMqEndpoint;

    fn probe(params: &Params) -> Support {
        if let Some(priority) = params.count(&Self::CARD, "priority").filter(|given| !has_priority(*given)) {
            return Support::No {
                reason: format!("mq_send: there is no priority {priority}"),
                remedy: "give at most 32767 (MQ_PRIO_MAX is 32768)".to_owned(),
            };
        }
        match (probe_names(), largest(params)) {
            (Support::Yes { .. }, Ok(0)) => Support::No {
                reason: format!("mq_open: two queues of {} messages are refused", depth(params)),
                remedy: "raise fs.mqueue.msg_max or 'ulimit -q', or give a smaller depth".to_owned(),
            },
            (Support::Yes { .. }, Ok(largest)) => Support::Yes { largest_bytes: Some(largest as u64) },
            (Support::Yes { .. }, failed) => support_of(failed),
            (no, _) => no,
        }
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(Bound, Ticket), Failure> {
        let [to_server, to_client] = names(trial);
        let (depth, asked_bytes) = (depth(trial.params), most_bytes(trial));
        // A message above the limit is refused when it is sent, as with other mechanisms.
        let size_bytes =
            if allows_two_queues(depth, asked_bytes)? { asked_bytes } else { largest(trial.params)? };
        let quota = raise_quota().or_fail("setrlimit", "RLIMIT_MSGQUEUE")?;
        let make = |name: &str| {
            trial.make_named(ObjectName::PosixMq(name.to_owned()), || {
                PosixMessageQueue::create(name, depth, size_bytes)
            })
        };
        let (output, to_server) = make(&to_server)?;
        let (input, to_client) = make(&to_client)?;
        let registered = [to_server, to_client];
        let endpoint = PosixMqEndpoint {
            output: with_priority(output, trial.params),
            input,
            settings: vec![quota_setting(two_queues_charge_bytes(depth, size_bytes), quota)],
        };
        let (opened, to_opened) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", "posix-mq")?;
        Ok((Bound { endpoint, opened, registered }, Ticket { address: Vec::new(), fds: vec![to_opened] }))
    }

    fn accept(bound: Bound) -> Result<PosixMqEndpoint, Failure> {
        // The server closes the pipe when it has opened both queues, or has failed.
        read(&bound.opened, &mut [0]).or_fail("read", "posix-mq")?;
        drop(bound.registered);
        Ok(bound.endpoint)
    }

    fn connect(trial: &TrialContext<'_>, _ticket: Ticket) -> Result<PosixMqEndpoint, Failure> {
        let [to_server, to_client] = names(trial);
        let size_bytes = most_bytes(trial);
        let output = with_priority(PosixMessageQueue::open(&to_client, size_bytes)?, trial.params);
        let input = PosixMessageQueue::open(&to_server, size_bytes)?;
        Ok(PosixMqEndpoint { output, input, settings: Vec::new() })
    }
}

/// The largest message of a trial. No queue can be made for empty messages alone, and their answer may have one byte.
fn most_bytes(trial: &TrialContext<'_>) -> usize {
    trial.shape.size_bytes.max(1)
}

fn depth(params: &Params) -> u32 {
    // The card has a default, so that there is always a count.
    params.count(&PosixMq::CARD, "depth").unwrap_or(1)
}

fn with_priority(queue: PosixMessageQueue, params: &Params) -> PosixMessageQueue {
    queue.with_priority(params.count(&PosixMq::CARD, "priority").unwrap_or(0))
}

/// The largest message of two queues that this process may make. 0 if it may make none.
fn largest(params: &Params) -> Result<usize, Failure> {
    /// What even a privileged process cannot exceed (`HARD_MSGSIZEMAX`).
    const MOST_BYTES: usize = 16 << 20;
    largest_below(MOST_BYTES + 1, |size_bytes| allows_two_queues(depth(params), size_bytes))
}

fn names(trial: &TrialContext<'_>) -> [String; 2] {
    ["to-server", "to-client"].map(|direction| trial.posix_name(direction))
}

/// The quota that two queues need, and the quota that there is. Other queues of the user may have used some of it.
fn quota_setting(needed_bytes: u64, got_bytes: Option<u64>) -> Setting {
    Setting {
        name: "RLIMIT_MSGQUEUE".to_owned(),
        asked: Some(Size(needed_bytes).to_string()),
        got: got_bytes.map_or("unlimited".to_owned(), |bytes| Size(bytes).to_string()),
        clamped: got_bytes.is_some_and(|got| got < needed_bytes),
        usual: None,
    }
}

impl Endpoint for PosixMqEndpoint {
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
