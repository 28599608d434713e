//! From channels to flows: those of the same two processes one after the other are one, and what a process says while it deals
//! with a message comes after that.

use super::channels::{Channel, Exchange, Talk};
use super::messages::Message;
use super::threads::Before;
use super::unseen::Unseen;
use model::communication::Communication;
use model::scenario::Concurrency;
use std::collections::{BTreeMap, BTreeSet};

/// The share of messages that must begin while another flow's are dealt with.
const CAUSED: f64 = 0.8;
/// The share of requests that must begin while another of the same process is open, so that it makes or serves them all at once.
const TOGETHER: f64 = 0.1;

/// A flow in the making.
#[derive(Debug, Clone)]
pub(super) struct FlowDraft {
    pub(super) from: u32,
    pub(super) to: u32,
    /// As after `-m`.
    pub(super) mechanism: String,
    pub(super) talk: Talk,
    until_ns: u64,
    /// The flow after which it is, and how many of it for each of that.
    pub(super) after: Option<(usize, f64)>,
    /// Whether it waits for another flow after which it cannot be in a scenario.
    pub(super) is_paced: bool,
}

impl FlowDraft {
    /// How many requests, or messages.
    pub(super) fn count(&self) -> usize {
        match &self.talk {
            Talk::Exchanges(all) => all.len(),
            Talk::Stream(all) => all.len(),
        }
    }

    /// When each was begun.
    fn begun(&self) -> Vec<u64> {
        match &self.talk {
            Talk::Exchanges(all) => all.iter().map(Exchange::begun_ns).collect(),
            Talk::Stream(all) => all.iter().map(|message| message.begun_ns).collect(),
        }
    }

    /// How long its sender did nothing for it before each message but the first, whatever it waited for.
    pub(super) fn pauses(&self) -> Vec<u64> {
        let pause = |message: &Message, over_ns: u64| {
            let Before { work_ns, waited_ns, .. } = message.sender;
            message.begun_ns.saturating_sub(over_ns).saturating_sub(work_ns + waited_ns)
        };
        match &self.talk {
            Talk::Exchanges(all) => all
                .windows(2)
                .filter_map(|two| Some(pause(two[1].requests.first()?, two[0].ended_ns())))
                .collect(),
            Talk::Stream(all) => all.windows(2).map(|two| pause(&two[1], two[0].begun_ns)).collect(),
        }
    }

    /// All messages of it, answers included.
    pub(super) fn messages(&self) -> Box<dyn Iterator<Item = &Message> + '_> {
        match &self.talk {
            Talk::Exchanges(all) => {
                Box::new(all.iter().flat_map(|exchange| exchange.requests.iter().chain(&exchange.replies)))
            }
            Talk::Stream(all) => Box::new(all.iter()),
        }
    }
}

/// The flows of `channels`, in the order of their beginning.
pub(super) fn flows(communication: &Communication, mut channels: Vec<Channel>) -> Vec<FlowDraft> {
    channels.sort_by_key(|channel| channel.span().0);
    let mut flows: Vec<FlowDraft> = Vec::new();
    // Connections of the same two processes that are open at once stay apart.
    let mut lanes: BTreeMap<(u32, u32, String, bool), Vec<usize>> = BTreeMap::new();
    for channel in channels {
        let (from_ns, until_ns) = channel.span();
        let object = &communication.objects[channel.object as usize];
        let mechanism = object.mechanism.clone().unwrap_or_default();
        let exchanges = matches!(channel.talk, Talk::Exchanges(_));
        let lane = lanes.entry((channel.from, channel.to, mechanism.clone(), exchanges)).or_default();
        match lane.iter().find(|flow| flows[**flow].until_ns <= from_ns) {
            Some(flow) => {
                let flow = &mut flows[*flow];
                flow.until_ns = until_ns;
                match (&mut flow.talk, channel.talk) {
                    (Talk::Exchanges(all), Talk::Exchanges(more)) => all.extend(more),
                    (Talk::Stream(all), Talk::Stream(more)) => all.extend(more),
                    _ => unreachable!("a lane has one kind"),
                }
            }
            None => {
                lane.push(flows.len());
                let Channel { from, to, talk, .. } = channel;
                flows.push(FlowDraft { from, to, mechanism, talk, until_ns, after: None, is_paced: false });
            }
        }
    }
    flows
}

/// Finds out for each flow after which other it is. What would come back to a process that waits is said and left alone.
pub(super) fn find_causes(flows: &mut [FlowDraft], unseen: &mut Unseen) {
    for at in 0..flows.len() {
        let begun = flows[at].begun();
        let mut best: Option<(f64, usize)> = None;
        for (before, flow) in flows.iter().enumerate() {
            if before == at || flow.to != flows[at].from {
                continue;
            }
            let share = share_during(&begun, &dealt_with(flow));
            if share >= CAUSED && best.is_none_or(|(other, _)| share > other) {
                best = Some((share, before));
            }
        }
        let Some(before) = best.map(|(_, before)| before).or_else(|| shared_cause(flows, at, &begun)) else {
            continue;
        };
        if comes_back(flows, at, before) {
            let text = "a message that is sent while one of the same process is dealt with is a flow of its own here, for \
                        it would come back to who waits";
            unseen.say(text);
            flows[at].is_paced = true;
            continue;
        }
        let per_message = flows[at].count() as f64 / flows[before].count() as f64;
        flows[at].after = Some((before, per_message));
    }
}

/// The flow after which the one at `at`, whose messages were `begun` then, is taken to be where several connections of one process cause
/// it together: a proxy takes any of its connections to a server for the request of any client. Each of these has one of those.
fn shared_cause(flows: &[FlowDraft], at: usize, begun: &[u64]) -> Option<usize> {
    let callers = || flows.iter().enumerate().filter(|(_, flow)| flow.to == flows[at].from);
    let processes: BTreeSet<u32> = callers().map(|(_, flow)| flow.from).collect();
    let is_taken = |cause: usize| {
        let beside = |flow: &FlowDraft| flow.from == flows[at].from && flow.to == flows[at].to;
        flows.iter().any(|flow| beside(flow) && flow.after.is_some_and(|(before, _)| before == cause))
    };
    let of_process = |process: u32| {
        let group: Vec<(usize, Vec<(u64, u64)>)> = callers()
            .filter(|(before, flow)| *before != at && flow.from == process)
            .map(|(before, flow)| (before, dealt_with(flow)))
            .collect();
        let mut spans: Vec<(u64, u64)> = group.iter().flat_map(|(_, spans)| spans.iter().copied()).collect();
        spans.sort_unstable();
        let share = share_during(begun, &united(&spans));
        let free = group.into_iter().filter(|(before, _)| !is_taken(*before));
        let nearest = free
            .max_by(|(_, one), (_, other)| share_during(begun, one).total_cmp(&share_during(begun, other)));
        nearest.filter(|_| share >= CAUSED).map(|(before, _)| (share, before))
    };
    processes
        .into_iter()
        .filter_map(of_process)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, before)| before)
}

/// Spans that overlap as one, of `spans` in the order of their beginning.
fn united(spans: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut united: Vec<(u64, u64)> = Vec::new();
    for (from, until) in spans {
        match united.last_mut().filter(|(_, last)| from <= last) {
            Some((_, last)) => *last = (*last).max(*until),
            None => united.push((*from, *until)),
        }
    }
    united
}

/// Whether what comes of `before` would end at a process that has to do with it still, if the flow at `at` were after it.
fn comes_back(flows: &[FlowDraft], at: usize, before: usize) -> bool {
    let mut next = Some(before);
    let mut steps = 0;
    while let Some(flow) = next {
        if flow == at || flows[flow].from == flows[at].to || steps > flows.len() {
            return true;
        }
        // What is after this one already must not come back either.
        steps += 1;
        next = flows[flow].after.map(|(flow, _)| flow);
    }
    later_comes_back(flows, at, before)
}

/// Whether a flow that is after the one at `at` already would come back to who sends `before`, or what is before that.
fn later_comes_back(flows: &[FlowDraft], at: usize, before: usize) -> bool {
    let mut earlier = Vec::new();
    let mut next = Some(before);
    while let Some(flow) = next {
        earlier.push(flows[flow].from);
        next = flows[flow].after.map(|(flow, _)| flow);
    }
    let mut later = vec![at];
    let mut found = 0;
    while found < later.len() {
        let now = later[found];
        found += 1;
        for (other, flow) in flows.iter().enumerate() {
            if flow.after.is_some_and(|(cause, _)| cause == now) {
                if earlier.contains(&flow.to) {
                    return true;
                }
                later.push(other);
            }
        }
    }
    false
}

/// When the receiver of `flow` dealt with a message of it: until it answered, or in a stream as long as messages came.
fn dealt_with(flow: &FlowDraft) -> Vec<(u64, u64)> {
    match &flow.talk {
        Talk::Exchanges(all) => {
            all.iter().map(|exchange| (exchange.asked_ns(), exchange.answered_ns())).collect()
        }
        Talk::Stream(all) => {
            let received = || all.iter().map(|message| message.received_ns);
            // What the last message leads to comes after it, within the time that there is between two.
            let span = received().min().zip(received().max());
            span.map(|(first, last)| (first, last + (last - first) / all.len() as u64)).into_iter().collect()
        }
    }
}

/// The share of `begun` that lies in `spans`. Both are in the order of time.
fn share_during(begun: &[u64], spans: &[(u64, u64)]) -> f64 {
    let inside = |at: &&u64| {
        let next = spans.partition_point(|(from, _)| from <= at);
        next > 0 && spans[next - 1].1 >= **at
    };
    begun.iter().filter(inside).count() as f64 / begun.len().max(1) as f64
}

/// Whether `process` makes the requests that it begins by itself all at once.
pub(super) fn of_begun(flows: &[FlowDraft], process: u32) -> Concurrency {
    let is_root = |flow: &FlowDraft| flow.from == process && flow.after.is_none();
    concurrency(flows, is_root, |exchange| (exchange.begun_ns(), exchange.ended_ns()))
}

/// Whether `process` receives requests before it has answered others.
pub(super) fn of_served(flows: &[FlowDraft], process: u32) -> Concurrency {
    concurrency(flows, |flow| flow.to == process, |exchange| (exchange.asked_ns(), exchange.answered_ns()))
}

/// That of the requests of those `flows` that are meant, each of which has the span that `span` says: together if more than a few of them
/// begin in one of another flow.
fn concurrency(
    flows: &[FlowDraft],
    is_meant: impl Fn(&FlowDraft) -> bool,
    span: impl Fn(&Exchange) -> (u64, u64),
) -> Concurrency {
    let mut spans: Vec<(u64, u64, usize)> = Vec::new();
    for (at, flow) in flows.iter().enumerate().filter(|(_, flow)| is_meant(flow)) {
        if let Talk::Exchanges(all) = &flow.talk {
            spans.extend(all.iter().map(&span).map(|(from, until)| (from, until, at)));
        }
    }
    spans.sort_unstable();
    let (mut overlapping, mut last) = (0, (0, usize::MAX));
    for (from, until, at) in &spans {
        if *from < last.0 && *at != last.1 {
            overlapping += 1;
        }
        if *until > last.0 {
            last = (*until, *at);
        }
    }
    match overlapping as f64 > TOGETHER * spans.len() as f64 {
        true => Concurrency::Together,
        false => Concurrency::InTurn,
    }
}
