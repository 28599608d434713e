//! What a scenario must be so that it can run: names, graph, limits, and what the cards of its mechanisms allow.

use super::{Begin, Flow, Mix, RecordedFlow, RecordedProcess, Recording, Scenario};
use crate::card::{Card, CardKind};
use crate::diagnostic::Diagnostic;
use crate::invalid::printable;
use crate::units::Size;
use crate::workload::{Session, Workload};
use std::collections::HashSet;
use std::ops::RangeInclusive;

/// The longest name.
const LONGEST_NAME: usize = 64;
/// The most messages of a flow for each of another.
const MOST_PER_MESSAGE: f64 = 1e6;
/// What a recording can have counted, or told in seconds, a second or as a multiple: far beyond it sums are no numbers any more.
const COUNTED: RangeInclusive<f64> = 0.0..=1e12;
/// A share of messages.
const SHARE: RangeInclusive<f64> = 0.0..=1.0;
/// By what share a program can be slower, or faster, than before.
const CHANGE: RangeInclusive<f64> = -1.0..=1e6;

impl Scenario {
    /// More processes are refused.
    pub const MOST_PROCESSES: usize = 256;
    /// More flows are refused.
    pub const MOST_FLOWS: usize = 256;

    /// Refuses what cannot run. The names are checked already.
    pub(super) fn check(&self, cards: &[Card]) -> Result<(), Diagnostic> {
        self.check_recorded()?;
        for (at, flow) in self.flows.iter().enumerate() {
            self.check_flow(at, cards).map_err(|(key, problem, remedy)| {
                let problem = format!("flow '{}': {problem}", flow.name);
                Diagnostic::new(problem, remedy).under(key).under(at).under("flow")
            })?;
        }
        for (at, process) in self.processes.iter().enumerate() {
            if self.flows.iter().all(|flow| flow.from != at && flow.to != at) {
                let problem = format!("process '{}' is in no flow", process.name);
                return Err(Diagnostic::new(problem, "give it one, or leave it out")
                    .under(at)
                    .under("process"));
            }
        }
        Ok(())
    }

    /// Refuses what no recording has.
    fn check_recorded(&self) -> Result<(), Diagnostic> {
        if let Some(recorded) = &self.recorded {
            check_numbers(&of_recording(recorded))?;
        }
        for (at, process) in self.processes.iter().enumerate() {
            if let Some(recorded) = &process.recorded {
                check_numbers(&of_process(recorded))
                    .map_err(|diagnostic| diagnostic.under(at).under("process"))?;
            }
        }
        for (at, flow) in self.flows.iter().enumerate() {
            if let Some(recorded) = &flow.recorded {
                check_numbers(&of_flow(recorded)).map_err(|diagnostic| diagnostic.under(at).under("flow"))?;
            }
        }
        Ok(())
    }

    fn check_flow(&self, at: usize, cards: &[Card]) -> Result<(), Refusal> {
        let flow = &self.flows[at];
        if flow.from == flow.to {
            return Err(refusal("to", "it goes from a process to itself", "name two processes"));
        }
        self.check_begin(at)?;
        let sizes = [("size", Some(flow.size.largest())), ("reply", flow.reply.as_ref().map(Mix::largest))];
        let sizes = sizes.into_iter().chain([("read", flow.read)]);
        for (key, size) in sizes.filter_map(|(key, size)| Some((key, size?))) {
            if size > Size::LARGEST {
                let remedy = format!("give at most {}", Size::LARGEST);
                return Err(refusal(
                    key,
                    format!("a message of {size} bytes is larger than ipcmark handles"),
                    remedy,
                ));
            }
        }
        if !(1..=Session::MOST_MESSAGES).contains(&flow.messages) {
            let remedy = format!("give 1 to {}", Session::MOST_MESSAGES);
            return Err(refusal("messages", format!("a request of {} messages", flow.messages), remedy));
        }
        if flow.messages > 1 && flow.is_stream() {
            let remedy = "give it a reply, or leave messages out";
            return Err(refusal("messages", "a stream has no requests", remedy));
        }
        if flow.read.is_some() && !flow.is_stream() || flow.read == Some(Size(0)) {
            let remedy = "give at least 1 byte, and only for a flow without a reply";
            return Err(refusal("read", "only the receiver of a stream reads some bytes at a time", remedy));
        }
        check_card(flow, cards)
    }

    fn check_begin(&self, at: usize) -> Result<(), Refusal> {
        let flow = &self.flows[at];
        let Begin::After { flow: before, per_message } = flow.begin else { return Ok(()) };
        if !(per_message > 0.0 && per_message <= MOST_PER_MESSAGE) {
            let remedy = format!("give a number above 0, of at most {MOST_PER_MESSAGE}");
            return Err(refusal("per_message", format!("{per_message} messages for each"), remedy));
        }
        let (name, of) = (&self.flows[before].name, &self.processes[flow.from].name);
        if self.flows[before].to != flow.from {
            let problem = format!("it is after '{name}', which '{of}' does not receive");
            return Err(refusal("after", problem, "name a flow that its sender receives"));
        }
        // Whoever is on the way to this flow waits, or will be asked for more before this message is dealt with.
        let mut on_the_way = HashSet::from([at]);
        let mut next = Some(before);
        while let Some(before) = next {
            if !on_the_way.insert(before) || self.flows[before].from == flow.to {
                let problem = "its messages come back to a process that has to do with the one before still";
                return Err(refusal(
                    "after",
                    problem,
                    "let the flows that are after one another end somewhere",
                ));
            }
            next = self.flows[before].after();
        }
        Ok(())
    }
}

/// A number of a recording: its key, itself, and between what it can be.
type Recorded = (&'static str, f64, RangeInclusive<f64>);

fn of_recording(Recording { seconds, slowdown, slowdown_interval, .. }: &Recording) -> Vec<Recorded> {
    let interval = slowdown_interval.iter().flatten().map(|end| ("slowdown_interval", *end, CHANGE));
    let slowdown = slowdown.iter().map(|share| ("slowdown", *share, CHANGE));
    [("seconds", *seconds, COUNTED)].into_iter().chain(slowdown).chain(interval).collect()
}

fn of_process(recorded: &RecordedProcess) -> Vec<Recorded> {
    let RecordedProcess { cpu, switches_per_s, in_calls, waited } = *recorded;
    vec![
        ("cpu", cpu, COUNTED),
        ("switches_per_s", switches_per_s, COUNTED),
        ("in_calls", in_calls, COUNTED),
        ("waited", waited, COUNTED),
    ]
}

fn of_flow(recorded: &RecordedFlow) -> Vec<Recorded> {
    let RecordedFlow { messages, per_s, round_trip: _, client_waited, server_waited, .. } = recorded;
    let RecordedFlow { partial_reads, on_one_cpu, held_back, .. } = recorded;
    let on_one_cpu = on_one_cpu.iter().map(|share| ("on_one_cpu", *share, SHARE));
    let held_back = held_back.iter().map(|held| ("held_back", held.share, SHARE));
    let all = [
        ("messages", *messages as f64, COUNTED),
        ("per_s", *per_s, COUNTED),
        ("client_waited", *client_waited, COUNTED),
        ("server_waited", *server_waited, COUNTED),
        ("partial_reads", *partial_reads, SHARE),
    ];
    all.into_iter().chain(on_one_cpu).chain(held_back).collect()
}

/// Refuses the first of `numbers` that cannot be one.
fn check_numbers(numbers: &[Recorded]) -> Result<(), Diagnostic> {
    match numbers.iter().find(|(_, number, range)| !range.contains(number)) {
        Some((key, number, range)) => {
            let problem = format!("nothing that was recorded has {key} = {number}");
            let remedy =
                format!("give a number from {} to {}, or record it again", range.start(), range.end());
            Err(Diagnostic::new(problem, remedy).under(*key).under("recorded"))
        }
        None => Ok(()),
    }
}

/// The key that is wrong, what is wrong, and what to do.
type Refusal = (&'static str, String, String);

fn refusal(key: &'static str, problem: impl Into<String>, remedy: impl Into<String>) -> Refusal {
    (key, problem.into(), remedy.into())
}

/// Whether the mechanism of `flow` can carry it.
fn check_card(flow: &Flow, cards: &[Card]) -> Result<(), Refusal> {
    let name = &flow.mechanism.name;
    let card = cards.iter().find(|card| card.name == name);
    let workload = if flow.is_stream() { Workload::Throughput } else { Workload::Latency };
    let Some(card) = card.filter(|card| card.kind == CardKind::Mechanism && card.takes(workload)) else {
        let pattern = if flow.is_stream() { "a stream" } else { "requests and replies" };
        let can = |card: &Card| card.kind == CardKind::Mechanism && card.takes(workload);
        let remedy = format!("take one of {}", names_of(cards, can));
        return Err(refusal("mechanism", format!("{name} does not carry {pattern}"), remedy));
    };
    let sizes = [("size", Some(&flow.size)), ("reply", flow.reply.as_ref())];
    let empty = sizes.into_iter().find(|(_, mix)| mix.is_some_and(|mix| mix.parts()[0].0 == Size(0)));
    if let Some((key, _)) = empty.filter(|_| !card.empty && card.sized) {
        return Err(refusal(key, format!("{name} carries no empty messages"), "give at least 1 byte"));
    }
    if flow.fds > Session::MOST_FDS || flow.fds > 0 && !card.fds {
        let passing = names_of(cards, |card| card.fds && card.kind == CardKind::Mechanism);
        let remedy = format!("give at most {}, to one of {passing}", Session::MOST_FDS);
        return Err(refusal("fds", format!("{name} does not pass {} descriptors", flow.fds), remedy));
    }
    Ok(())
}

/// The names of those of `cards` of which `is_meant` holds.
fn names_of(cards: &[Card], is_meant: impl Fn(&Card) -> bool) -> String {
    let names: Vec<&str> = cards.iter().filter(|card| is_meant(card)).map(|card| card.name).collect();
    names.join(", ")
}

/// Whether these are names, each once, and there are some of each, but not too many.
pub(super) fn check_names(processes: &[String], flows: &[String]) -> Result<(), Diagnostic> {
    names("process", processes, Scenario::MOST_PROCESSES)?;
    names("flow", flows, Scenario::MOST_FLOWS)
}

fn names(noun: &str, names: &[String], most: usize) -> Result<(), Diagnostic> {
    let mut known = HashSet::new();
    for (at, name) in names.iter().map(String::as_str).enumerate() {
        let refuse = |problem: String, remedy: String| {
            Err(Diagnostic::new(problem, remedy).under("name").under(at).under(noun))
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_name) {
            let remedy = format!("give 1 to {LONGEST_NAME} letters, digits, dots, lines and dashes");
            return refuse(format!("'{}' is no name for a {noun}", printable(name)), remedy);
        }
        if !known.insert(name) {
            return refuse(
                format!("the name '{name}' is given to more than one {noun}"),
                "give each a name of its own".into(),
            );
        }
        if at >= most {
            return refuse(
                format!("there are more than {most} of kind {noun}"),
                format!("give at most {most}"),
            );
        }
    }
    if known.is_empty() {
        return Err(Diagnostic::new(format!("there is no {noun}"), format!("give at least one [[{noun}]]"))
            .under(noun));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cards::card;
    use proptest::prelude::*;

    const BOTH: &[Workload] = &[Workload::Latency, Workload::Throughput];
    const CARDS: &[Card] = &[
        card("pipe", CardKind::Mechanism, BOTH, true),
        card("read", CardKind::Operation, &[Workload::Cost], true),
    ];

    const CHAIN: &str = r#"
name = "chain"
summary = "a client, a proxy and a store"

[[process]]
name = "client"
roots = "together"

[[process]]
name = "proxy"
cpus = [0, 1]

[[process]]
name = "store"

[[flow]]
name = "query"
from = "client"
to = "proxy"
mechanism = "pipe"
size = "64:90%, 4K:10%"
reply = "128"
client_work = "3us"
server_work = "20us"
think_time = "1ms"

[[flow]]
name = "fetch"
from = "proxy"
to = "store"
mechanism = "pipe"
size = "64"
reply = "8K"
after = "query"
per_message = 0.5

[[flow]]
name = "log"
from = "proxy"
to = "store"
mechanism = "pipe"
size = "200"
read = "4K"
rate = "100-poisson"
"#;

    #[test]
    fn a_scenario_is_what_its_file_says() {
        let scenario = Scenario::parse(CHAIN, CARDS).unwrap();
        assert_eq!(scenario.processes.len(), 3);
        let [query, fetch, log] = scenario.flows.as_slice() else { panic!("{scenario:?}") };
        assert_eq!((query.from, query.to, query.size.parts().len()), (0, 1, 2));
        assert_eq!(fetch.begin, Begin::After { flow: 0, per_message: 0.5 });
        assert!(log.is_stream() && !query.is_stream());
        assert_eq!(scenario.roots(0).collect::<Vec<_>>(), [0]);
        assert_eq!(scenario.roots(1).collect::<Vec<_>>(), [2]);
        assert_eq!(scenario.caused_by(0).collect::<Vec<_>>(), [1]);
        assert_eq!(scenario.received_by(2).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_scenario_is_read_as_it_was_written() {
        let scenario = Scenario::parse(CHAIN, CARDS).unwrap();
        let text = scenario.to_toml();
        assert_eq!(Scenario::parse(&text, CARDS).unwrap(), scenario, "{text}");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (from, to, says) in [
            ("\"pipe\"\nsize = \"64:", "\"pip\"\nsize = \"64:", "unknown mechanism or operation 'pip'"),
            ("\"pipe\"\nsize = \"64:", "\"read\"\nsize = \"64:", "read does not carry requests and replies"),
            ("to = \"proxy\"", "to = \"proxi\"", "unknown process 'proxi'"),
            ("to = \"proxy\"", "to = \"client\"", "from a process to itself"),
            ("after = \"query\"", "after = \"log\"", "which 'proxy' does not receive"),
            ("after = \"query\"", "after = \"fetch\"", "which 'proxy' does not receive"),
            ("after = \"query\"", "after = \"query\"\nrate = \"1k\"", "begins after another, or at a rate"),
            ("after = \"query\"", "think_time = \"1us\"", "no other flow is named"),
            ("per_message = 0.5", "per_message = -1.0", "-1 messages for each"),
            ("name = \"log\"", "name = \"fetch\"", "'fetch' is given to more than one flow"),
            ("name = \"store\"", "name = \"a b\"", "'a b' is no name"),
            ("90%", "80%", "add up to 90%"),
            ("client_work = \"3us\"", "client_work = \"3\"", "not a duration"),
            ("client_work = \"3us\"", "work = \"3us\"", "unknown field `work`"),
            ("reply = \"128\"", "reply = \"128\"\nread = \"1\"", "only the receiver of a stream"),
            ("reply = \"128\"", "reply = \"128\"\nfds = 3", "does not pass 3 descriptors"),
            ("reply = \"128\"", "reply = \"128\"\nmessages = 0", "a request of 0 messages"),
            (
                "name = \"store\"",
                "name = \"store\"\n[process.recorded]\ncpu = nan\nswitches_per_s = 1\nin_calls = 0\nwaited = 0",
                "nothing that was recorded has cpu = NaN",
            ),
            ("reply = \"128\"", "reply = \"2G\"", "larger than ipcmark handles"),
            ("read = \"4K\"", "read = \"2G\"", "larger than ipcmark handles"),
        ] {
            let text = CHAIN.replacen(from, to, 1);
            assert_ne!(text, CHAIN, "{from}");
            let invalid = Scenario::parse(&text, CARDS).unwrap_err();
            assert!(invalid.problem.contains(says), "{says}: {invalid}");
            assert!(invalid.problem.starts_with("the scenario is not valid at line "), "{invalid}");
        }
        let alone = format!("{CHAIN}\n[[process]]\nname = \"alone\"\n");
        assert!(Scenario::parse(&alone, CARDS).unwrap_err().problem.contains("'alone' is in no flow"));
    }

    #[test]
    fn messages_do_not_come_back_to_who_waits_for_them() {
        let back = CHAIN.replacen(
            "to = \"store\"\nmechanism = \"pipe\"\nsize = \"64\"",
            "to = \"client\"\nmechanism = \"pipe\"\nsize = \"64\"",
            1,
        );
        assert_ne!(back, CHAIN);
        let invalid = Scenario::parse(&back, CARDS).unwrap_err();
        assert!(invalid.problem.contains("come back"), "{invalid}");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,200}") {
            let _ = Scenario::parse(&text, CARDS);
        }

        #[test]
        fn no_damage_panics(at in 0..CHAIN.len(), with in ".{0,4}") {
            let mut text = CHAIN.to_owned();
            text.replace_range(at..=at, &with);
            let _ = Scenario::parse(&text, CARDS);
        }
    }
}
