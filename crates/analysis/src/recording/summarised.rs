//! A flow of a scenario from its messages: sizes, work, pauses and waiting, each as a mix of few values.

use super::channels::{Exchange, Talk};
use super::flows::FlowDraft;
use super::held_back::held_back;
use super::messages::Message;
use model::card::{Card, Framing};
use model::communication::Communication;
use model::scenario::{Begin, Flow, Mix, RecordedFlow};
use model::units::{Nanoseconds, Size};
use model::{Invalid, Spec};
use std::collections::BTreeMap;

/// A recorded mix has at most so many values.
const MOST_VALUES: usize = 12;

/// The flow `name` that `draft` is, between these processes of the scenario.
pub(super) fn flow(
    draft: &FlowDraft,
    (from, to): (usize, usize),
    name: String,
    communication: &Communication,
    cards: &[Card],
) -> Result<Flow, Invalid> {
    let all: Vec<&Message> = draft.messages().collect();
    let mechanism = mechanism(draft, &all, cards);
    let card = cards.iter().find(|card| card.name == mechanism.name);
    let empty = Invalid::new(format!("flow {name} has no messages"), "report this bug");
    let flow = Flow {
        name,
        from,
        to,
        mechanism,
        size: Mix::only(Size(0)),
        reply: None,
        messages: 1,
        fds: 0,
        read: None,
        begin: Begin::Closed { think_time: times(Vec::new()) },
        client_work: times(Vec::new()),
        server_work: times(Vec::new()),
        recorded: Some(recorded(draft, &all, communication)),
    };
    let summarised = match &draft.talk {
        Talk::Exchanges(all) => {
            of_exchanges(flow, draft, all, card.map_or(Framing::Stream, |card| card.framing))
        }
        Talk::Stream(all) => of_stream(flow, draft, all),
    };
    summarised.ok_or(empty)
}

/// What `draft` was recorded to go over, with how its receivers wait.
fn mechanism(draft: &FlowDraft, all: &[&Message], cards: &[Card]) -> Spec {
    let mechanism = Spec::parse(&draft.mechanism, cards)
        .unwrap_or_else(|_| Spec::plain(draft.mechanism.split(':').next().unwrap_or_default()));
    if are_polled(all) { mechanism.waiting("epoll", cards) } else { mechanism }
}

/// `flow` with requests and their answers; `None` without one.
fn of_exchanges(flow: Flow, draft: &FlowDraft, all: &[Exchange], framing: Framing) -> Option<Flow> {
    let each = |of: &dyn Fn(&Exchange) -> u64| all.iter().map(of).collect::<Vec<u64>>();
    let requests: usize = all.iter().map(|exchange| exchange.requests.len()).sum();
    let request_bytes = all.iter().flat_map(|exchange| &exchange.requests).map(|request| request.bytes);
    let round_trip = each(&|exchange| exchange.ended_ns().saturating_sub(exchange.begun_ns()));
    let thoughts = each(&|exchange| exchange.requests.first().map_or(0, |request| request.sender.thought_ns));
    Some(Flow {
        size: sizes(request_bytes.collect())?,
        reply: Some(sizes(each(&|exchange| reply_bytes(exchange, framing)))?),
        messages: u32::try_from((requests as f64 / all.len() as f64).round() as u64).unwrap_or(1).max(1),
        begin: begin(draft, thoughts),
        client_work: times(each(&client_work_ns)),
        server_work: times(each(&server_work_ns)),
        recorded: flow
            .recorded
            .map(|recorded| RecordedFlow { round_trip: Some(times(round_trip)), ..recorded }),
        ..flow
    })
}

/// `flow` with messages that nobody answers; `None` without one.
fn of_stream(flow: Flow, draft: &FlowDraft, all: &[Message]) -> Option<Flow> {
    let each = |of: fn(&Message) -> u64| all.iter().map(of).collect::<Vec<u64>>();
    Some(Flow {
        size: sizes(each(|message| message.bytes))?,
        read: usual_read(all),
        begin: begin(draft, each(|message| message.sender.thought_ns)),
        client_work: times(each(|message| message.sender.work_ns)),
        server_work: times(each(|message| message.receiver.work_ns)),
        ..flow
    })
}

/// What was seen of `all` messages of `draft`.
fn recorded(draft: &FlowDraft, all: &[&Message], communication: &Communication) -> RecordedFlow {
    let seconds = communication.seconds().max(1e-9);
    let partial = all.iter().filter(|message| message.reads > 1).count();
    // A process waits where it sends and where it receives.
    let waited = |process: u32| {
        let sending =
            all.iter().filter(|message| message.from == process).map(|message| message.sender.waited_ns);
        let receiving =
            all.iter().filter(|message| message.to == process).map(|message| message.receiver.waited_ns);
        (sending.sum::<u64>() + receiving.sum::<u64>()) as f64 / 1e9 / seconds
    };
    RecordedFlow {
        messages: draft.count() as u64,
        per_s: draft.count() as f64 / seconds,
        round_trip: None,
        client_waited: waited(draft.from),
        server_waited: waited(draft.to),
        partial_reads: partial as f64 / all.len().max(1) as f64,
        on_one_cpu: on_one_cpu(all),
        held_back: held_back(draft),
    }
}

/// When a message of `draft` begins: after another flow's, or after a pause, which was `thoughts` of its sender.
fn begin(draft: &FlowDraft, thoughts: Vec<u64>) -> Begin {
    match draft.after {
        Some((flow, per_message)) => Begin::After { flow, per_message },
        None if draft.is_paced => Begin::Closed { think_time: times(draft.pauses()) },
        None => Begin::Closed { think_time: times(thoughts) },
    }
}

fn sizes(bytes: Vec<u64>) -> Option<Mix<Size>> {
    Mix::summarised(bytes.into_iter().map(Size).collect(), MOST_VALUES)
}

/// 0 where there are none.
fn times(ns: Vec<u64>) -> Mix<Nanoseconds> {
    Mix::summarised(ns.into_iter().map(Nanoseconds).collect(), MOST_VALUES)
        .unwrap_or_else(|| Mix::only(Nanoseconds(0)))
}

/// What the client worked for an exchange. What came before the first request of a recording is not known.
fn client_work_ns(exchange: &Exchange) -> u64 {
    let sent: u64 = exchange.requests.iter().map(|message| message.sender.work_ns).sum();
    let received: u64 = exchange.replies.iter().map(|message| message.receiver.work_ns).sum();
    sent + received
}

fn server_work_ns(exchange: &Exchange) -> u64 {
    let received: u64 = exchange.requests.iter().map(|message| message.receiver.work_ns).sum();
    let sent: u64 = exchange.replies.iter().map(|message| message.sender.work_ns).sum();
    received + sent
}

/// The length of the answer. Answers that follow each other are one in a stream; elsewhere one message is the answer, the largest.
pub(super) fn reply_bytes(exchange: &Exchange, framing: Framing) -> u64 {
    let bytes = exchange.replies.iter().map(|reply| reply.bytes);
    if framing == Framing::Stream { bytes.sum() } else { bytes.max().unwrap_or_default() }
}

/// Whether those who receive `messages` wait in poll(2) or the like, and not in the call that receives.
fn are_polled(messages: &[&Message]) -> bool {
    let sum = |of: fn(&Message) -> u64| messages.iter().map(|message| of(message)).sum::<u64>();
    let waited_ns = sum(|message| message.receiver.waited_ns);
    sum(|message| message.receiver.polled_ns) > waited_ns / 2
}

/// The share of `messages` that were received on the CPU on which they were sent; `None` where it is not known of any.
fn on_one_cpu(messages: &[&Message]) -> Option<f64> {
    let known: Vec<bool> = messages.iter().filter_map(|message| message.is_on_one_cpu()).collect();
    let together = known.iter().filter(|together| **together).count();
    (!known.is_empty()).then(|| together as f64 / known.len() as f64)
}

/// How much the receiver of `messages` asks for most often.
fn usual_read(messages: &[Message]) -> Option<Size> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for asked in messages.iter().filter_map(|message| message.asked) {
        *counts.entry(asked).or_default() += 1;
    }
    let usual = counts.into_iter().max_by_key(|(_, count)| *count)?.0;
    Some(Size(usual)).filter(|size| *size > Size(0) && *size <= Size::LARGEST)
}
