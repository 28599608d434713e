//! From flows to the scenario: names, mixes, shares of the time. What cannot be in a scenario is said in it.

use super::channels::{Talk, channels};
use super::flows::{FlowDraft, find_causes, flows, of_begun, of_served};
use super::messages::{Message, messages};
use super::split::{OF_THREAD, split};
use super::summarised::{flow, reply_bytes};
use super::threads::before;
use super::unseen::Unseen;
use model::card::{Card, CardKind, Framing};
use model::communication::{Communication, CommunicationKind};
use model::scenario::{Flow, Process, RecordedProcess, Recording, Scenario};
use model::units::Size;
use model::{Invalid, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// Names are cut to this, which leaves room for a number after them.
const LONGEST_NAME: usize = 24;

/// The scenario that `communication` is, `recorded` as that says. It is called `name`.
///
/// It is refused if no process said anything to another that a scenario can have; what there was is in the answer then.
pub fn scenario_of(
    mut communication: Communication,
    name: &str,
    mut recorded: Recording,
    cards: &[Card],
) -> Result<Scenario, Invalid> {
    let mut unseen = Unseen::default();
    std::mem::take(&mut communication.unseen).into_iter().for_each(|text| unseen.say(text));
    split(&mut communication, &mut unseen);
    let communication = &communication;
    let found = messages(communication);
    say_unreceived(communication, &found.unreceived, &mut unseen);
    let (own, between): (Vec<Message>, Vec<Message>) =
        found.all.into_iter().partition(|message| message.from == message.to);
    say_own(communication, &own, &mut unseen);
    let mut drafts = flows(communication, channels(communication, between));
    drafts.retain_mut(|draft| is_possible(draft, communication, cards, &mut unseen));
    leave_out_rare(&mut drafts, &mut unseen);
    let mut drafts = busiest(communication, drafts, &mut unseen);
    find_causes(&mut drafts, &mut unseen);
    recorded.unseen.extend(unseen.into_sentences());
    if drafts.is_empty() {
        let mut problem = "the processes said nothing to each other that a scenario can have".to_owned();
        recorded.unseen.iter().for_each(|text| problem += &format!("\n  {text}"));
        return Err(Invalid::new(problem, "record for longer, or record the processes on both sides"));
    }
    let processes: BTreeSet<u32> = drafts.iter().flat_map(|draft| [draft.from, draft.to]).collect();
    let index: BTreeMap<u32, usize> =
        processes.iter().enumerate().map(|(at, process)| (*process, at)).collect();
    let mut names = Names::default();
    let shares = shares(communication);
    let processes: Vec<Process> = processes
        .iter()
        .map(|process| {
            let seen = &communication.processes[*process as usize];
            let ns = (communication.seconds() * 1e9).max(1.0);
            let (in_calls, waited) = shares.get(process).copied().unwrap_or_default();
            let recorded = RecordedProcess {
                cpu: seen.cpu_ns() as f64 / ns,
                switches_per_s: seen.switches() as f64 * 1e9 / ns,
                in_calls: in_calls as f64 / ns,
                waited: waited as f64 / ns,
            };
            Process {
                name: names.unique(&seen.name, "process"),
                cpus: seen.cpus(),
                roots: of_begun(&drafts, *process),
                serves: of_served(&drafts, *process),
                recorded: (!seen.outside).then_some(recorded),
            }
        })
        .collect();
    let mut names = Names::default();
    let flows = drafts.iter().map(|draft| {
        let (from, to) = (index[&draft.from], index[&draft.to]);
        // The names of two threads would be too long for a column.
        let [of_from, of_to] = [from, to].map(|at| processes[at].name.replacen(OF_THREAD, "", 1));
        let name = format!("{of_from}-{of_to}");
        flow(draft, (from, to), names.unique(&name, "flow"), communication, cards)
    });
    let flows = flows.collect::<Result<Vec<Flow>, Invalid>>()?;
    Ok(Scenario {
        name: name.to_owned(),
        summary: summary(&processes, &flows),
        recorded: Some(recorded),
        processes,
        flows,
    })
}

/// One line that says what was recorded.
fn summary(processes: &[Process], flows: &[Flow]) -> String {
    let plural =
        |count: usize, noun: &str, nouns: &str| format!("{count} {}", if count == 1 { noun } else { nouns });
    let mut mechanisms: Vec<&str> = flows.iter().map(|flow| flow.mechanism.name.as_str()).collect();
    mechanisms.sort_unstable();
    mechanisms.dedup();
    format!(
        "{} and {} over {}",
        plural(processes.len(), "process", "processes"),
        plural(flows.len(), "flow", "flows"),
        mechanisms.join(", ")
    )
}

/// Names that are given once each.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    /// `name` as a scenario can have it, or with a number after it if it was given before.
    fn unique(&mut self, name: &str, nothing: &str) -> String {
        let fit = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        let fitting: String = name.chars().take(LONGEST_NAME * 2 + 8).map(fit).collect();
        let fitting = fitting.trim_matches('-');
        let fitting = if fitting.is_empty() { nothing } else { fitting };
        let mut given = fitting.to_owned();
        let mut number = 2;
        while !self.0.insert(given.clone()) {
            given = format!("{fitting}-{number}");
            number += 1;
        }
        given
    }
}

/// For each process: CPU time in calls, and sleep in them.
fn shares(communication: &Communication) -> BTreeMap<u32, (u64, u64)> {
    let mut shares: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let before = before(communication);
    for (call, before) in communication.calls.iter().zip(before) {
        let share = shares.entry(call.process).or_default();
        share.0 += call.cpu_until_ns.saturating_sub(call.cpu_from_ns);
        // A wait counts when what it waited for has come.
        if call.kind != CommunicationKind::Wait && call.bytes.is_some() {
            share.1 += before.waited_ns;
        }
    }
    shares
}

fn say_unreceived(
    communication: &Communication,
    unreceived: &std::collections::HashMap<u32, u64>,
    unseen: &mut Unseen,
) {
    let Some(first) = unreceived.keys().min() else { return };
    let (count, others) = (unreceived.values().sum::<u64>(), unreceived.len() - 1);
    let name = &communication.objects[*first as usize].name;
    let others = if others > 0 { format!(" and {others} other objects") } else { String::new() };
    unseen.count(count, format!("messages through {name}{others} that no recorded process received"));
}

fn say_own(communication: &Communication, own: &[Message], unseen: &mut Unseen) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for message in own {
        *counts.entry(&communication.processes[message.from as usize].name).or_default() += 1;
    }
    for (name, count) in counts {
        unseen.count(count, format!("messages of {name} to itself are in no flow"));
    }
}

/// Whether a scenario can have `draft`. Empty messages are left out where its mechanism has none.
fn is_possible(
    draft: &mut FlowDraft,
    communication: &Communication,
    cards: &[Card],
    unseen: &mut Unseen,
) -> bool {
    let name = draft.mechanism.split(':').next().unwrap_or_default().to_owned();
    let workload =
        if matches!(draft.talk, Talk::Exchanges(_)) { Workload::Latency } else { Workload::Throughput };
    let card = cards
        .iter()
        .find(|card| card.name == name && card.kind == CardKind::Mechanism && card.takes(workload));
    let [from, to] = [draft.from, draft.to].map(|process| &communication.processes[process as usize].name);
    let Some(card) = card else {
        let pattern = if workload == Workload::Latency { "requests" } else { "a stream" };
        let what =
            format!("messages from {from} to {to}: ipcmark has no mechanism like {name} for {pattern}");
        unseen.count(draft.count() as u64, what);
        return false;
    };
    let has_empty = card.empty || !card.sized;
    let fits = |message: &Message| Size(message.bytes) <= Size::LARGEST && (message.bytes > 0 || has_empty);
    let count = draft.count();
    match &mut draft.talk {
        Talk::Exchanges(all) => all.retain(|exchange| {
            exchange.requests.iter().all(fits)
                && exchange.replies.iter().all(fits)
                && reply_bytes(exchange, card.framing) <= Size::LARGEST.0
        }),
        Talk::Stream(all) => all.retain(fits),
    }
    let left_out = (count - draft.count()) as u64;
    unseen.count(left_out, format!("messages from {from} to {to} that are empty or too large"));
    if let (Talk::Exchanges(all), true) = (&draft.talk, card.framing != Framing::Stream) {
        let further: usize = all.iter().map(|exchange| exchange.replies.len() - 1).sum();
        let what = format!("further answers from {to} to {from}, of which a request has one here");
        unseen.count(further as u64, what);
    }
    draft.count() > 0
}

/// Leaves out what hardly happened beside the rest: a scenario would repeat it as fast as it goes. It is said.
fn leave_out_rare(drafts: &mut Vec<FlowDraft>, unseen: &mut Unseen) {
    /// Fewer messages than this, and than this share of the busiest flow's.
    const FEW: usize = 5;
    const RARE: usize = 1000;
    let most = drafts.iter().map(FlowDraft::count).max().unwrap_or_default();
    let (mut flows, mut messages) = (0, 0);
    drafts.retain(|draft| {
        let is_rare = draft.count() < FEW && draft.count() * RARE < most;
        flows += u64::from(is_rare);
        messages += if is_rare { draft.count() } else { 0 };
        !is_rare
    });
    let why = "a scenario repeats what it has, and they hardly happened";
    unseen.count(flows, format!("flows with {messages} messages in all are left out: {why}"));
}

/// The busiest of `drafts`, as many as a scenario can have. The rest is said.
fn busiest(communication: &Communication, drafts: Vec<FlowDraft>, unseen: &mut Unseen) -> Vec<FlowDraft> {
    let mut order: Vec<usize> = (0..drafts.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(drafts[*at].count()));
    let (mut kept, mut processes) = (BTreeSet::new(), BTreeSet::new());
    let mut left_out: BTreeMap<[&str; 2], [u64; 2]> = BTreeMap::new();
    for at in order {
        let draft = &drafts[at];
        let more = BTreeSet::from([draft.from, draft.to]);
        if kept.len() < Scenario::MOST_FLOWS && processes.union(&more).count() <= Scenario::MOST_PROCESSES {
            kept.insert(at);
            processes.extend(more);
        } else {
            let names =
                [draft.from, draft.to].map(|process| &*communication.processes[process as usize].name);
            let [flows, messages] = left_out.entry(names).or_default();
            *flows += 1;
            *messages += draft.count() as u64;
        }
    }
    for ([from, to], [flows, messages]) in left_out {
        let what = format!(
            "flows from {from} to {to} with {messages} messages in all are left out, for they are too many"
        );
        unseen.count(flows, what);
    }
    let mut at = 0..;
    drafts.into_iter().filter(|_| at.next().is_some_and(|at| kept.contains(&at))).collect()
}
