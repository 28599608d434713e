//! Flows and processes that are alike, taken together: the fifty connections of one client are one row of a table, and what is said of
//! them is their sum or their mean. Nothing is measured or simulated so.

use model::Scenario;
use model::elsewhere::Elsewhere;
use model::scenario::{
    Begin, Behaviour, Flow, FlowBehaviour, FlowTotals, Mix, MixValue, Process, ProcessBehaviour,
    RecordedFlow, RecordedProcess,
};

/// So many that are alike are shown one by one.
const FEW: usize = 4;

/// Which flows and processes of a scenario are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alike {
    /// In the order of the first of each.
    flows: Vec<Group>,
    processes: Vec<Group>,
}

/// Some that are alike, or one that is like no other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    /// The name of the one, or `50 × ` and what the names have in common.
    name: String,
    /// As indices.
    members: Vec<usize>,
}

impl Alike {
    /// Those of `scenarios`, which are the same but for the mechanisms of flows. Alike are processes whose names differ in a number alone,
    /// that may run on the same CPUs and say nothing to each other, and flows between them whose names differ so, that have the same
    /// mechanism and come after alike flows. Not more than four of them stay apart.
    pub fn from_scenarios(scenarios: &[&Scenario]) -> Self {
        let Some(first) = scenarios.first() else { return Self { flows: Vec::new(), processes: Vec::new() } };
        let processes = groups(first.processes.iter().map(|process| {
            let Process { name, cpus, roots, serves, recorded } = process;
            (name.as_str(), (cpus, *roots, *serves, recorded.is_some()))
        }));
        let processes = apart(processes, first);
        let place = |process: usize| place(&processes, process);
        let flows = groups(first.flows.iter().enumerate().map(|(at, flow)| {
            let mechanisms: Vec<String> =
                scenarios.iter().map(|scenario| scenario.flows[at].mechanism.to_string()).collect();
            let after = flow.after().map(|before| without_numbers(&first.flows[before].name));
            let is_known = flow.recorded.is_some();
            (
                flow.name.as_str(),
                (place(flow.from), place(flow.to), mechanisms, flow.is_stream(), after, is_known),
            )
        }));
        Self { flows, processes }
    }

    /// How many processes are alike with `process`.
    fn process_count(&self, process: usize) -> f64 {
        self.processes[place(&self.processes, process)].members.len() as f64
    }

    /// `scenario` with one flow for each group, and one process: rates and CPU times are sums, sizes and times are those of all, and how long a process
    /// waited is a mean.
    pub fn scenario(&self, scenario: &Scenario) -> Scenario {
        let process = |group: &Group| {
            let all: Vec<&Process> = group.members.iter().map(|at| &scenario.processes[*at]).collect();
            let recorded: Option<Vec<&RecordedProcess>> =
                all.iter().map(|one| one.recorded.as_ref()).collect();
            Process {
                name: group.name.clone(),
                recorded: recorded.as_deref().map(sum_of_processes),
                ..all[0].clone()
            }
        };
        let flow = |group: &Group| {
            let all: Vec<&Flow> = group.members.iter().map(|at| &scenario.flows[*at]).collect();
            let begin = match &all[0].begin {
                Begin::After { flow, per_message } => {
                    Begin::After { flow: place(&self.flows, *flow), per_message: *per_message }
                }
                begin => begin.clone(),
            };
            let recorded: Option<Vec<&RecordedFlow>> = all.iter().map(|one| one.recorded.as_ref()).collect();
            Flow {
                name: group.name.clone(),
                from: place(&self.processes, all[0].from),
                to: place(&self.processes, all[0].to),
                size: mix(&all, |flow| Some(&flow.size)).unwrap_or_else(|| all[0].size.clone()),
                reply: mix(&all, |flow| flow.reply.as_ref()),
                begin,
                recorded: recorded.as_deref().map(|recorded| {
                    let sum = sum_of_flows(recorded);
                    RecordedFlow {
                        round_trip: mix(&all, |flow| flow.recorded.as_ref()?.round_trip.as_ref()),
                        client_waited: sum.client_waited / self.process_count(all[0].from),
                        server_waited: sum.server_waited / self.process_count(all[0].to),
                        ..sum
                    }
                }),
                ..all[0].clone()
            }
        };
        Scenario {
            processes: self.processes.iter().map(process).collect(),
            flows: self.flows.iter().map(flow).collect(),
            ..scenario.clone()
        }
    }

    /// What the groups did where the scenario did this.
    pub fn behaviour(&self, behaviour: &Behaviour) -> Behaviour {
        let flows = self.flows.iter().map(|group| sum_of_rates(group.members_in(&behaviour.flows)));
        let processes = self.processes.iter().map(|group| ProcessBehaviour {
            cpu: group.members_in(&behaviour.processes).map(|process| process.cpu).sum(),
            switches_per_s: group
                .members_in(&behaviour.processes)
                .map(|process| process.switches_per_s)
                .sum(),
        });
        Behaviour { flows: flows.collect(), processes: processes.collect() }
    }

    /// The same of the slices of trials.
    pub fn trials(&self, trials: &[Vec<Behaviour>]) -> Vec<Vec<Behaviour>> {
        trials.iter().map(|slices| slices.iter().map(|slice| self.behaviour(slice)).collect()).collect()
    }

    /// What the flows of each group came to together.
    pub fn totals(&self, totals: &[FlowTotals]) -> Vec<FlowTotals> {
        let sum = |group: &Group| {
            group.members_in(totals).fold(FlowTotals::default(), |mut sum, one| {
                sum.messages += one.messages;
                sum.bytes += one.bytes;
                match (&mut sum.round_trips, one.round_trips) {
                    (Some(all), Some(more)) => all.merge(&more),
                    (None, more) => sum.round_trips = more,
                    (Some(_), None) => {}
                }
                for setting in one.settings {
                    if !sum.settings.contains(&setting) {
                        sum.settings.push(setting);
                    }
                }
                sum
            })
        };
        self.flows.iter().map(sum).collect()
    }

    /// The slices in which processes of each group were elsewhere, together.
    pub fn elsewhere(&self, elsewhere: &[Elsewhere]) -> Vec<Elsewhere> {
        let sum = |group: &Group| {
            group.members_in(elsewhere).fold(Elsewhere::default(), |mut sum, one| {
                sum.add(&one);
                sum
            })
        };
        self.processes.iter().map(sum).collect()
    }
}

impl Group {
    fn alone(at: usize, name: &str) -> Self {
        Self { name: name.to_owned(), members: vec![at] }
    }

    /// Its members of `all`.
    fn members_in<'a, T: Clone>(&'a self, all: &'a [T]) -> impl Iterator<Item = T> + 'a {
        self.members.iter().filter_map(|at| all.get(*at).cloned())
    }
}

/// Some of one kind whose names are the same but for numbers, each by its index.
struct Named<'a, K> {
    common: String,
    kind: K,
    members: Vec<(usize, &'a str)>,
}

/// Those in groups that have the same kind, and names that differ in a number alone.
fn groups<'a, K: PartialEq>(all: impl Iterator<Item = (&'a str, K)>) -> Vec<Group> {
    let mut found: Vec<Named<'_, K>> = Vec::new();
    for (at, (name, kind)) in all.enumerate() {
        let common = without_numbers(name);
        match found.iter_mut().find(|known| known.common == common && known.kind == kind) {
            Some(known) => known.members.push((at, name)),
            None => found.push(Named { common, kind, members: vec![(at, name)] }),
        }
    }
    let mut groups: Vec<Group> = Vec::new();
    for Named { common, members, .. } in found {
        if members.len() > FEW {
            let name = format!("{} × {common}", members.len());
            groups.push(Group { name, members: members.iter().map(|(at, _)| *at).collect() });
        } else {
            groups.extend(members.iter().map(|(at, name)| Group::alone(*at, name)));
        }
    }
    groups.sort_by_key(|group| group.members[0]);
    groups
}

/// `groups` of processes, but for those whose members say something to each other: these are no group.
fn apart(groups: Vec<Group>, scenario: &Scenario) -> Vec<Group> {
    let talks_to_itself = |group: &Group| {
        let has = |process: usize| group.members.contains(&process);
        scenario.flows.iter().any(|flow| has(flow.from) && has(flow.to))
    };
    let alone = |at: &usize| Group::alone(*at, &scenario.processes[*at].name);
    let parts = groups.into_iter().flat_map(|group| match talks_to_itself(&group) {
        true => group.members.iter().map(alone).collect(),
        false => vec![group],
    });
    let mut parts: Vec<Group> = parts.collect();
    parts.sort_by_key(|group| group.members[0]);
    parts
}

/// The group of the one at `at`.
fn place(groups: &[Group], at: usize) -> usize {
    groups.iter().position(|group| group.members.contains(&at)).unwrap_or_default()
}

/// `a-2-b-3` as `a-b`; a name that is nothing but numbers as it is.
fn without_numbers(name: &str) -> String {
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = name.split('-').filter(|part| !is_number(part)).collect();
    if parts.is_empty() { name.to_owned() } else { parts.join("-") }
}

/// One mix of what `of` takes from `flows`, each as often as that flow had messages.
fn mix<T: MixValue>(flows: &[&Flow], of: impl Fn(&Flow) -> Option<&Mix<T>>) -> Option<Mix<T>> {
    let first = of(flows.first()?)?;
    if flows.iter().all(|flow| of(flow) == Some(first)) {
        return Some(first.clone());
    }
    let parts = flows.iter().flat_map(|flow| {
        let messages = flow.recorded.as_ref().map_or(1.0, |recorded| recorded.messages as f64);
        let parts = of(flow).map(Mix::parts).unwrap_or_default();
        parts.iter().map(move |(value, weight)| (*value, weight * messages))
    });
    Mix::weighted(parts)
}

/// The rates together, and the mean round trip.
fn sum_of_rates(flows: impl Iterator<Item = FlowBehaviour>) -> FlowBehaviour {
    let (mut per_s, mut asked_per_s, mut waiting) = (0.0, 0.0, 0.0);
    for flow in flows {
        per_s += flow.per_s;
        if let Some(round_trip_ns) = flow.round_trip_ns {
            asked_per_s += flow.per_s;
            waiting += flow.per_s * round_trip_ns;
        }
    }
    FlowBehaviour { per_s, round_trip_ns: (asked_per_s > 0.0).then(|| waiting / asked_per_s) }
}

/// The sums, and the mean share of the time for which one waited.
fn sum_of_processes(all: &[&RecordedProcess]) -> RecordedProcess {
    let sum = |of: fn(&RecordedProcess) -> f64| all.iter().map(|one| of(one)).sum();
    RecordedProcess {
        cpu: sum(|one| one.cpu),
        switches_per_s: sum(|one| one.switches_per_s),
        in_calls: sum(|one| one.in_calls),
        waited: sum(|one| one.waited) / all.len() as f64,
    }
}

/// The sums of shares and rates, and the means of what is a share of messages. The round trip is that of the first.
fn sum_of_flows(all: &[&RecordedFlow]) -> RecordedFlow {
    let sum = |of: fn(&RecordedFlow) -> f64| all.iter().map(|one| of(one)).sum::<f64>();
    let messages: u64 = all.iter().map(|one| one.messages).sum();
    let share = |of: fn(&RecordedFlow) -> Option<f64>| {
        let known = || all.iter().filter_map(|one| Some((of(one)?, one.messages as f64)));
        let weight: f64 = known().map(|(_, weight)| weight).sum();
        (weight > 0.0).then(|| known().map(|(share, weight)| share * weight).sum::<f64>() / weight)
    };
    RecordedFlow {
        messages,
        per_s: sum(|one| one.per_s),
        round_trip: all[0].round_trip.clone(),
        client_waited: sum(|one| one.client_waited),
        server_waited: sum(|one| one.server_waited),
        partial_reads: share(|one| Some(one.partial_reads)).unwrap_or_default(),
        on_one_cpu: share(|one| one.on_one_cpu),
        held_back: all.iter().find_map(|one| one.held_back),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::card::{Card, CardKind};
    use model::testing::cards::card;
    use model::units::Size;
    use model::workload::Workload;

    const CARDS: &[Card] = &[
        card("pipe", CardKind::Mechanism, &[Workload::Latency], true),
        card("tcp", CardKind::Mechanism, &[Workload::Latency], true),
    ];

    /// A client with connections to a server, and one of another kind.
    fn connections(count: u64) -> Scenario {
        let mut text =
            "name = \"n\"\n[[process]]\nname = \"client\"\n[[process]]\nname = \"server\"\n".to_owned();
        let flow = |name: &str, mechanism: &str, size: u64, per_s: u64| {
            format!(
                "[[flow]]\nname = \"{name}\"\nfrom = \"client\"\nto = \"server\"\nmechanism = \"{mechanism}\"\nsize = \"{size}\"\n\
                 reply = \"5\"\n[flow.recorded]\nmessages = {per_s}\nper_s = {per_s}.0\nround_trip = \"{size}us\"\nclient_waited = 0.1\n\
                 server_waited = 0.2\npartial_reads = 0.0\n"
            )
        };
        text += &flow("a-b", "tcp", 10, 300);
        (2..=count).for_each(|nth| text += &flow(&format!("a-b-{nth}"), "tcp", 20, 100));
        text += &flow("a-b-99", "pipe", 7, 10);
        Scenario::parse(&text, CARDS).unwrap()
    }

    fn names(scenario: &Scenario) -> Vec<&str> {
        scenario.flows.iter().map(|flow| flow.name.as_str()).collect()
    }

    #[test]
    fn many_connections_of_one_kind_are_one_flow() {
        let scenario = connections(5);
        let shown = Alike::from_scenarios(&[&scenario]).scenario(&scenario);
        assert_eq!(names(&shown), ["5 × a-b", "a-b-99"], "another mechanism is not like them");
        let recorded = shown.flows[0].recorded.as_ref().unwrap();
        assert_eq!((recorded.messages, recorded.per_s), (700, 700.0));
        assert!((recorded.client_waited - 0.5).abs() < 1e-9);
        let mean = (300.0 * 10.0 + 400.0 * 20.0) / 700.0;
        assert!((shown.flows[0].size.mean() - mean).abs() < 1e-6, "{}", shown.flows[0].size);
        assert!((recorded.round_trip.as_ref().unwrap().mean() / 1e3 - mean).abs() < 1e-6);
        assert_eq!(shown.flows[0].reply, Some(Mix::only(Size(5))));
    }

    #[test]
    fn a_few_are_shown_one_by_one() {
        let scenario = connections(4);
        assert_eq!(Alike::from_scenarios(&[&scenario]).scenario(&scenario), scenario);
    }

    #[test]
    fn one_that_is_exchanged_alone_is_not_like_the_others() {
        let scenario = connections(6);
        let mut other = scenario.clone();
        other.flows[2].mechanism = other.flows[6].mechanism.clone();
        let alike = Alike::from_scenarios(&[&scenario, &other]);
        assert_eq!(names(&alike.scenario(&other)), ["5 × a-b", "a-b-3", "a-b-99"]);
    }

    #[test]
    fn rates_are_sums_and_round_trips_are_means_over_messages() {
        let scenario = connections(5);
        let flow = |per_s: f64, ns: f64| FlowBehaviour { per_s, round_trip_ns: Some(ns) };
        let mut flows = vec![flow(100.0, 30.0); 6];
        flows[1] = flow(300.0, 10.0);
        let processes = vec![ProcessBehaviour { cpu: 0.5, switches_per_s: 9.0 }; 2];
        let shown =
            Alike::from_scenarios(&[&scenario]).behaviour(&Behaviour { flows, processes: processes.clone() });
        assert_eq!(shown.flows[0], FlowBehaviour { per_s: 700.0, round_trip_ns: Some(15_000.0 / 700.0) });
        assert_eq!((shown.flows.len(), shown.processes), (2, processes));
    }

    #[test]
    fn processes_are_alike_with_the_flows_between_them() {
        let mut text = "name = \"n\"\n[[process]]\nname = \"client\"\n".to_owned();
        for nth in 1..=7 {
            text += &format!("[[process]]\nname = \"worker-{nth}\"\n");
        }
        for nth in 1..=7 {
            text += &format!(
                "[[flow]]\nname = \"work-{nth}\"\nfrom = \"client\"\nto = \"worker-{nth}\"\nmechanism = \"pipe\"\nsize = \"8\"\nreply = \"1\"\n"
            );
        }
        let scenario = Scenario::parse(&text, CARDS).unwrap();
        let shown = Alike::from_scenarios(&[&scenario]).scenario(&scenario);
        let processes: Vec<&str> = shown.processes.iter().map(|process| process.name.as_str()).collect();
        assert_eq!((processes, names(&shown)), (vec!["client", "7 × worker"], vec!["7 × work"]));
        assert_eq!((shown.flows[0].from, shown.flows[0].to), (0, 1));
    }

    #[test]
    fn a_chain_is_shown_as_one() {
        let mut text = "name = \"n\"\n".to_owned();
        (0..7).for_each(|nth| text += &format!("[[process]]\nname = \"node-{nth}\"\n"));
        for nth in 0..6 {
            text += &format!(
                "[[flow]]\nname = \"hop-{nth}\"\nfrom = \"node-{nth}\"\nto = \"node-{}\"\nmechanism = \"pipe\"\nsize = \"8\"\nreply = \"1\"\n",
                nth + 1
            );
        }
        let scenario = Scenario::parse(&text, CARDS).unwrap();
        assert_eq!(Alike::from_scenarios(&[&scenario]).scenario(&scenario), scenario);
    }

    #[test]
    fn a_name_of_numbers_keeps_them() {
        assert_eq!(["a-2-b-31", "7", "a2", "-"].map(without_numbers), ["a-b", "7", "a2", "-"]);
    }
}
