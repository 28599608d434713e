//! What probes saw of one case, gathered over trials.

use super::control_cases::ControlDifference;
use crate::stats::median_interval;
use crate::traces::calls::CallTally;
use crate::traces::schedule::{Overlap, ScheduleTally};
use crate::traces::subsystem::samples_by_subsystem;
use model::card::Support;
use model::estimate::Estimate;
use model::observation::profile::{CallProfile, ScheduleProfile};
use model::observation::subsystem::Subsystem;
use model::observation::{EventKind, Observation, Probe, SampledStack, StackFrame};
use model::record::Fact;
use model::{Case, Workload};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A probe that makes iterations take more than so many times as long is marked: it changes what it looks at.
const CHANGES: f64 = 2.0;

/// What probes saw of one case.
#[derive(Debug, Clone)]
pub struct CaseObservations {
    /// The case.
    pub case: Case,
    control_cases: Vec<(ControlDifference, Case)>,
    tries: BTreeMap<Probe, Tries>,
    calls: BTreeMap<Probe, [CallTally; 2]>,
    schedules: ScheduleTally,
    faults: BTreeMap<(usize, String, bool), u64>,
    fault_iterations: u64,
    counters: BTreeMap<String, [Counted; 2]>,
    stacks: [BTreeMap<Vec<StackFrame>, u64>; 2],
    timeline: Option<Observation>,
}

/// How a probe fared.
#[derive(Debug, Clone)]
struct Tries {
    support: Support,
    failure: Option<String>,
    log_ratios: Vec<f64>,
    unavailable: BTreeSet<String>,
    lost: u64,
}

#[derive(Debug, Clone, Default)]
struct Counted {
    sum: f64,
    iterations: u64,
    running: f64,
    unknown: Option<String>,
}

/// A probe, whether it works here, and what it costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProbeUse {
    /// The probe.
    pub probe: Probe,
    /// Why there is nothing of it, and what would grant it; absent where there is.
    pub absent: Option<String>,
    /// What it could not see.
    pub unavailable: Vec<String>,
    /// How many records the kernel had no room for.
    pub lost: u64,
    /// The time of an iteration under it, over that of the same iterations unseen, measured in turn.
    pub effect: Option<Estimate>,
    /// It makes iterations take more than twice as long, so that it changes what it looks at.
    pub changes: bool,
}

/// Page faults of one end in one mapping.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FaultRate {
    /// The client's, or the server's.
    pub of_client: bool,
    /// Where.
    pub mapping: String,
    /// A device was waited for.
    pub major: bool,
    /// How many an iteration.
    pub per_iteration: f64,
}

/// One counter of both ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CounterRate {
    /// What is counted.
    pub name: String,
    /// The client's, per iteration, or why that is not known.
    pub client: Fact<f64>,
    /// The server's.
    pub server: Fact<f64>,
    /// The smallest part of the time in which it ran, in any trial.
    pub running: f64,
}

/// A place in which the processor was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubsystemShare {
    /// Where.
    pub place: Subsystem,
    /// The part of the client's samples.
    pub client: f64,
    /// The part of the server's.
    pub server: f64,
    /// How many samples of both that is.
    pub samples: u64,
}

impl CaseObservations {
    /// Nothing yet of `case`, which is measured beside its `control cases`.
    pub fn new(case: Case, control_cases: Vec<(ControlDifference, Case)>) -> Self {
        Self {
            case,
            control_cases,
            tries: BTreeMap::new(),
            calls: BTreeMap::new(),
            schedules: ScheduleTally::default(),
            faults: BTreeMap::new(),
            fault_iterations: 0,
            counters: BTreeMap::new(),
            stacks: Default::default(),
            timeline: None,
        }
    }

    /// The cases that differ from it by one thing.
    pub fn control_cases(&self) -> &[(ControlDifference, Case)] {
        &self.control_cases
    }

    /// Notes whether `probe` works here.
    pub fn note_support(&mut self, probe: Probe, support: Support) {
        let tries =
            Tries { support, failure: None, log_ratios: Vec::new(), unavailable: BTreeSet::new(), lost: 0 };
        self.tries.insert(probe, tries);
    }

    /// Notes that `probe` failed on this case.
    pub fn note_failure(&mut self, probe: Probe, failure: String) {
        if let Some(tries) = self.tries.get_mut(&probe) {
            tries.failure = Some(failure);
        }
    }

    /// Adds a trial that `probe` looked at. `ratio` is the time of a turn over that of the same iterations unseen.
    pub fn add(&mut self, probe: Probe, observation: Observation, ratio: f64) {
        if let Some(tries) = self.tries.get_mut(&probe) {
            tries.log_ratios.push(ratio.ln());
            tries.unavailable.extend(observation.endpoints().flat_map(|end| end.unavailable.iter().cloned()));
            tries.lost += observation.endpoints().map(|end| end.lost).sum::<u64>();
        }
        match probe {
            Probe::Counters => self.add_counters(&observation),
            Probe::Syscalls | Probe::Ptrace => self.add_calls(probe, &observation),
            Probe::Scheduler => self.schedules.add(&observation),
            Probe::Faults => self.add_faults(&observation),
            Probe::Sampling => self.add_stacks(&observation),
            Probe::Timeline => self.timeline = Some(observation),
        }
    }

    fn add_calls(&mut self, probe: Probe, observation: &Observation) {
        let calls = self.calls.entry(probe).or_default();
        for (calls, seen) in calls.iter_mut().zip(observation.endpoints()) {
            calls.add(seen, observation.iterations);
        }
    }

    fn add_faults(&mut self, observation: &Observation) {
        self.fault_iterations += observation.iterations;
        for (end, seen) in observation.endpoints().enumerate() {
            for event in &seen.events {
                if let EventKind::PageFault { mapping, major, .. } = event.what {
                    let name = seen.mappings.get(mapping as usize).cloned().unwrap_or_default();
                    *self.faults.entry((end, name, major)).or_default() += 1;
                }
            }
        }
    }

    fn add_counters(&mut self, observation: &Observation) {
        for (end, seen) in observation.endpoints().enumerate() {
            for counter in &seen.counters {
                let counted = &mut self.counters.entry(counter.name.clone()).or_default()[end];
                match &counter.count {
                    Fact::Known(count) => {
                        counted.running = if counted.iterations == 0 {
                            counter.running
                        } else {
                            counted.running.min(counter.running)
                        };
                        counted.sum += count;
                        counted.iterations += observation.iterations;
                    }
                    Fact::Unknown(reason) => counted.unknown = Some(reason.clone()),
                }
            }
        }
    }

    fn add_stacks(&mut self, observation: &Observation) {
        for (stacks, seen) in self.stacks.iter_mut().zip(observation.endpoints()) {
            for stack in &seen.stacks {
                *stacks.entry(stack.frames.clone()).or_default() += stack.samples;
            }
        }
    }

    /// Both ends' calls by kind, from the probe that disturbs least of those that saw them.
    pub fn calls(&self, name: impl Fn(u32) -> String) -> Option<(Probe, [Vec<CallProfile>; 2])> {
        let seen = [Probe::Syscalls, Probe::Ptrace]
            .into_iter()
            .find_map(|probe| Some((probe, self.calls.get(&probe)?)));
        seen.map(|(probe, [client, server])| (probe, [client.rows(&name), server.rows(&name)]))
    }

    /// How each end was scheduled.
    pub fn schedule(&self) -> Option<[ScheduleProfile; 2]> {
        self.schedules.rows()
    }

    /// How the times of both ends lie over one another.
    pub fn overlap(&self) -> Option<Overlap> {
        self.schedules.overlap().filter(|_| !self.case.workload.is_alone())
    }

    /// Page faults by where they were, the most frequent first; `None` where none could be seen.
    pub fn faults(&self) -> Option<Vec<FaultRate>> {
        let row = |((end, mapping, major), count): (&(usize, String, bool), &u64)| FaultRate {
            of_client: *end == 0,
            mapping: mapping.clone(),
            major: *major,
            per_iteration: *count as f64 / self.fault_iterations as f64,
        };
        let mut rows: Vec<FaultRate> = self.faults.iter().map(row).collect();
        rows.sort_by(|a, b| b.per_iteration.total_cmp(&a.per_iteration));
        (self.fault_iterations > 0).then_some(rows)
    }

    /// What was counted, per iteration; what is known first.
    pub fn counters(&self) -> Vec<CounterRate> {
        let fact = |counted: &Counted| match (&counted.unknown, counted.iterations) {
            (None, 1..) => Fact::Known(counted.sum / counted.iterations as f64),
            (Some(reason), _) => Fact::Unknown(reason.clone()),
            (None, 0) => Fact::Unknown("there is no server end".to_owned()),
        };
        let row = |(name, [client, server]): (&String, &[Counted; 2])| CounterRate {
            name: name.clone(),
            client: fact(client),
            server: fact(server),
            running: if server.iterations == 0 { client.running } else { client.running.min(server.running) },
        };
        let mut rows: Vec<CounterRate> = self.counters.iter().map(row).collect();
        rows.sort_by_key(|row| row.client.known().is_none());
        rows
    }

    /// The stacks of each end.
    pub fn stacks(&self) -> [Vec<SampledStack>; 2] {
        let of = |stacks: &BTreeMap<Vec<StackFrame>, u64>| {
            stacks
                .iter()
                .map(|(frames, samples)| SampledStack { frames: frames.clone(), samples: *samples })
                .collect()
        };
        [of(&self.stacks[0]), of(&self.stacks[1])]
    }

    /// In which part of the kernel, or the program, the processor was found, the most frequent first.
    pub fn subsystems(&self) -> Vec<SubsystemShare> {
        let [client, server] =
            self.stacks().map(|stacks| samples_by_subsystem(&stacks).into_iter().collect::<BTreeMap<_, _>>());
        let total = |of: &BTreeMap<Subsystem, u64>| of.values().sum::<u64>().max(1) as f64;
        let of = |subsystems: &BTreeMap<Subsystem, u64>, place| subsystems.get(&place).copied().unwrap_or(0);
        let row = |place: Subsystem| SubsystemShare {
            place,
            client: of(&client, place) as f64 / total(&client),
            server: of(&server, place) as f64 / total(&server),
            samples: of(&client, place) + of(&server, place),
        };
        let mut rows: Vec<SubsystemShare> =
            Subsystem::ALL.into_iter().map(row).filter(|row| row.samples > 0).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.samples));
        rows
    }

    /// Every probe, whether it works here, and what it costs.
    pub fn probes(&self) -> Vec<ProbeUse> {
        let row = |(probe, tries): (&Probe, &Tries)| {
            let effect = median_interval(&tries.log_ratios).map(|logs| logs.map(f64::exp));
            let absent = match (&tries.support, &tries.failure) {
                (Support::No { reason, remedy }, _) => Some(format!("{reason}; {remedy}")),
                (Support::Yes { .. }, Some(failure)) => Some(failure.clone()),
                (Support::Yes { .. }, None) if effect.is_none() => {
                    Some("there was no time for it".to_owned())
                }
                _ => None,
            };
            ProbeUse {
                probe: *probe,
                absent,
                unavailable: tries.unavailable.iter().cloned().collect(),
                lost: tries.lost,
                changes: effect.is_some_and(|effect| effect.median > CHANGES),
                effect,
            }
        };
        self.tries.iter().map(row).collect()
    }

    /// A trial of which everything was seen.
    pub fn timeline(&self) -> Option<&Observation> {
        self.timeline.as_ref()
    }

    /// Whether samples show the kernel's functions.
    pub(crate) fn sees_the_kernel(&self) -> bool {
        self.tries.get(&Probe::Sampling).is_some_and(|tries| tries.unavailable.is_empty())
    }

    /// Whether an iteration is a sum of what both ends do one after the other.
    pub(crate) fn is_a_sum(&self) -> bool {
        matches!(
            self.case.workload,
            Workload::Latency | Workload::Transfer | Workload::Session(_) | Workload::Connect
        )
    }
}
