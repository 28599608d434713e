//! What probes observed of one case, summed over trials.

use super::control_cases::ControlDifference;
use crate::interval::MeanEstimate;
use crate::path::{DosedTrials, RateTrials, SampleCounts};
use crate::rate_line::{TrialPoint, value_at};
use crate::stats::median_interval;
use crate::traces::calls::CallTally;
use crate::traces::schedule::{Overlap, ScheduleTally};
use crate::traces::subsystem::samples_by_subsystem;
use model::Case;
use model::card::Support;
use model::endpoint::EndpointRole;
use model::estimate::Estimate;
use model::observation::profile::{CallProfile, ScheduleProfile};
use model::observation::subsystem::Subsystem;
use model::observation::{EventKind, Observation, Probe, SampledStack, SamplingRate, StackFrame};
use model::record::Fact;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A probe that makes iterations take more than so many times as long is marked: it changes what it observes.
const CHANGES: f64 = 2.0;

/// What probes observed of one case.
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
    samples: SampleCounts,
    timeline: Option<Observation>,
    /// Trials at every dose of events of both CPUs.
    pub doses: DosedTrials,
}

/// What became of a probe.
#[derive(Debug, Clone)]
struct Tries {
    support: Support,
    failure: Option<String>,
    log_ratios: Vec<f64>,
    /// At which rate samples were taken in each of these trials, if the probe takes any.
    rates: Vec<SamplingRate>,
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
    /// What it could not observe.
    pub unavailable: Vec<String>,
    /// How many records were lost because the kernel's buffer was full.
    pub lost: u64,
    /// The time of an iteration under it, over that of the same iterations without it, measured in turn. Of samples, at their
    /// highest rate.
    pub effect: Option<Estimate>,
    /// The same where its events are open and take no samples: extrapolated. Absent of what takes none, and of too few trials.
    pub effect_at_no_samples: Option<MeanEstimate>,
    /// It makes iterations take more than twice as long, so that it changes what it observes.
    pub changes: bool,
}

/// Page faults of one endpoint in one mapping.
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

/// One counter of both endpoints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CounterRate {
    /// What is counted.
    pub name: String,
    /// The client's, per iteration, or why that is not known.
    pub client: Fact<f64>,
    /// The server's.
    pub server: Fact<f64>,
    /// The smallest share of the time in which it ran, over all trials.
    pub running: f64,
}

/// A subsystem in which samples found the processor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubsystemShare {
    /// Which.
    pub subsystem: Subsystem,
    /// The share of the client's samples, extrapolated to none; without an interval it is the share of all samples. Absent
    /// where there are none.
    pub client: Option<MeanEstimate>,
    /// The share of the server's.
    pub server: Option<MeanEstimate>,
    /// How many samples of both that is.
    pub samples: u64,
}

impl CaseObservations {
    /// Nothing yet of `case`, which is measured beside its control cases.
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
            samples: SampleCounts::default(),
            timeline: None,
            doses: DosedTrials::default(),
        }
    }

    /// The cases that differ from it by one thing.
    pub fn control_cases(&self) -> &[(ControlDifference, Case)] {
        &self.control_cases
    }

    /// Notes whether `probe` works here.
    pub fn note_support(&mut self, probe: Probe, support: Support) {
        let tries = Tries {
            support,
            failure: None,
            log_ratios: Vec::new(),
            rates: Vec::new(),
            unavailable: BTreeSet::new(),
            lost: 0,
        };
        self.tries.insert(probe, tries);
    }

    /// Notes that `probe` failed on this case.
    pub fn note_failure(&mut self, probe: Probe, failure: String) {
        if let Some(tries) = self.tries.get_mut(&probe) {
            tries.failure = Some(failure);
        }
    }

    /// Adds a trial with `probe`, which takes its samples, if it does, at the rate `sampling`. `ratio` is the time of an iteration
    /// over that of the same iterations without it.
    pub fn add(&mut self, probe: Probe, sampling: SamplingRate, observation: Observation, ratio: f64) {
        if let Some(tries) = self.tries.get_mut(&probe) {
            tries.log_ratios.push(ratio.ln());
            tries.rates.push(sampling);
            tries.unavailable.extend(observation.endpoints().flat_map(|end| end.unavailable.iter().cloned()));
            tries.lost += observation.endpoints().map(|end| end.lost).sum::<u64>();
        }
        match probe {
            Probe::Counters => self.add_counters(&observation),
            Probe::Syscalls | Probe::Ptrace => self.add_calls(probe, &observation),
            Probe::Scheduler => self.schedules.add(&observation),
            Probe::Faults => self.add_faults(&observation),
            Probe::Sampling => self.add_stacks(sampling, &observation),
            // It sees nothing but what it does itself.
            Probe::OneCall => {}
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

    fn add_stacks(&mut self, rate: SamplingRate, observation: &Observation) {
        self.samples.add(rate, observation);
        for (stacks, seen) in self.stacks.iter_mut().zip(observation.endpoints()) {
            for stack in &seen.stacks {
                *stacks.entry(stack.frames.clone()).or_default() += stack.samples;
            }
        }
    }

    /// The calls of both endpoints by kind, from the probe that disturbs least.
    pub fn calls(&self, name: impl Fn(u32) -> String) -> Option<(Probe, [Vec<CallProfile>; 2])> {
        let seen = [Probe::Syscalls, Probe::Ptrace]
            .into_iter()
            .find_map(|probe| Some((probe, self.calls.get(&probe)?)));
        seen.map(|(probe, [client, server])| (probe, [client.profiles(&name), server.profiles(&name)]))
    }

    /// How each endpoint was scheduled.
    pub fn schedule(&self) -> Option<[ScheduleProfile; 2]> {
        self.schedules.profiles()
    }

    /// How much both endpoints ran at the same time.
    pub fn overlap(&self) -> Option<Overlap> {
        self.schedules.overlap().filter(|_| !self.case.workload.is_alone())
    }

    /// Page faults by mapping, the most frequent first; `None` where no probe observed them.
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
            (None, 0) => Fact::Unknown("there is no server".to_owned()),
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

    /// The stacks of each endpoint.
    pub fn stacks(&self) -> [Vec<SampledStack>; 2] {
        let sampled_stacks = |stacks: &BTreeMap<Vec<StackFrame>, u64>| {
            stacks
                .iter()
                .map(|(frames, samples)| SampledStack { frames: frames.clone(), samples: *samples })
                .collect()
        };
        [sampled_stacks(&self.stacks[0]), sampled_stacks(&self.stacks[1])]
    }

    /// The samples of each trial; `None` where none were taken.
    pub(crate) fn samples(&self) -> Option<&SampleCounts> {
        self.stacks.iter().any(|stacks| !stacks.is_empty()).then_some(&self.samples)
    }

    /// At which rates samples were taken, and in how many trials.
    pub fn sampling_rates(&self) -> Vec<RateTrials> {
        self.samples.rates()
    }

    /// In which subsystems samples found the processor, the most frequent first.
    pub fn subsystems(&self) -> Vec<SubsystemShare> {
        let [client, server] =
            self.stacks().map(|stacks| samples_by_subsystem(&stacks).into_iter().collect::<BTreeMap<_, _>>());
        let samples_in =
            |subsystems: &BTreeMap<Subsystem, u64>, place| subsystems.get(&place).copied().unwrap_or(0);
        let row = |subsystem: Subsystem| SubsystemShare {
            subsystem,
            client: self.samples.share_of_endpoint(EndpointRole::Client, subsystem),
            server: self.samples.share_of_endpoint(EndpointRole::Server, subsystem),
            samples: samples_in(&client, subsystem) + samples_in(&server, subsystem),
        };
        let mut rows: Vec<SubsystemShare> =
            Subsystem::ALL.iter().copied().map(row).filter(|row| row.samples > 0).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.samples));
        rows
    }

    /// Every probe, whether it works here, and what it costs.
    pub fn probes(&self) -> Vec<ProbeUse> {
        let row = |(probe, tries): (&Probe, &Tries)| {
            let effect = match probe {
                Probe::Sampling => tries.effect_at(SamplingRate::Full.share()).map(estimate),
                _ => median_interval(&tries.log_ratios).map(|logs| logs.map(f64::exp)),
            };
            let at_no_samples = || tries.effect_at(0.0).filter(|effect| effect.interval.is_some());
            let absent = match (&tries.support, &tries.failure) {
                (Support::No { reason, remedy }, _) => Some(format!("{reason}; {remedy}")),
                (Support::Yes { .. }, Some(failure)) => Some(failure.clone()),
                (Support::Yes { .. }, None) if effect.is_none() => {
                    Some("there was no time for it; give more --time".to_owned())
                }
                _ => None,
            };
            ProbeUse {
                probe: *probe,
                absent,
                unavailable: tries.unavailable.iter().cloned().collect(),
                lost: tries.lost,
                effect_at_no_samples: (*probe == Probe::Sampling).then(at_no_samples).flatten(),
                changes: effect.is_some_and(|effect| effect.median > CHANGES),
                effect,
            }
        };
        self.tries.iter().map(row).collect()
    }

    /// A trial with all events.
    pub fn timeline(&self) -> Option<&Observation> {
        self.timeline.as_ref()
    }

    /// Whether samples name the functions of the kernel.
    pub(crate) fn names_kernel_functions(&self) -> bool {
        self.tries.get(&Probe::Sampling).is_some_and(|tries| tries.unavailable.is_empty())
    }
}

impl Tries {
    /// The effect where samples are taken at `rate`, by the line through all trials. Samples come by the clock, so that at twice the rate
    /// they take twice the share of the time: what is left of the time, the inverse of the effect, is on a line.
    fn effect_at(&self, rate: f64) -> Option<MeanEstimate> {
        let trials = self.rates.iter().zip(&self.log_ratios);
        let point = |(rate, log): (&SamplingRate, &f64)| TrialPoint {
            rate: rate.share(),
            value: (-log).exp(),
            weight: 1.0,
        };
        let left = value_at(rate, &trials.map(point).collect::<Vec<_>>())?;
        let interval =
            left.interval.filter(|(low, _)| *low > 0.0).map(|(low, high)| (high.recip(), low.recip()));
        (left.mean > 0.0).then(|| MeanEstimate { mean: left.mean.recip(), interval })
    }
}

fn estimate(of: MeanEstimate) -> Estimate {
    Estimate { median: of.mean, interval: of.interval }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Workload;
    use model::floor::operation;
    use model::observation::{Counter, EndpointEvent, EndpointObservation};

    fn observations() -> CaseObservations {
        let case = Case { workload: Workload::Latency, ..operation("pipe", 1) };
        let mut observations = CaseObservations::new(case, Vec::new());
        Probe::ALL.iter().for_each(|&probe| observations.note_support(probe, Support::UNLIMITED));
        observations
    }

    /// Ten iterations in which the client did what `client` says and the server nothing.
    fn trial(client: EndpointObservation) -> Observation {
        Observation {
            iterations: 10,
            elapsed_ns: 1000.0,
            iteration_ends_ns: Vec::new(),
            client,
            server: Some(EndpointObservation::default()),
        }
    }

    fn probe(observations: &CaseObservations, probe: Probe) -> ProbeUse {
        observations.probes().into_iter().find(|used| used.probe == probe).unwrap()
    }

    #[test]
    fn a_probe_has_an_effect_or_a_reason_why_there_is_nothing() {
        let mut observations = observations();
        for ratio in [2.0, 3.0, 4.0] {
            let client = EndpointObservation {
                unavailable: vec!["user stacks".to_owned()],
                lost: 2,
                ..EndpointObservation::default()
            };
            observations.add(Probe::Syscalls, SamplingRate::Full, trial(client), ratio);
        }
        observations.note_failure(Probe::Faults, "EPERM".to_owned());
        let no = Support::No { reason: "no tracefs".to_owned(), remedy: "mount it".to_owned() };
        observations.note_support(Probe::Scheduler, no);
        let syscalls = probe(&observations, Probe::Syscalls);
        assert!((syscalls.effect.unwrap().median - 3.0).abs() < 1e-12 && syscalls.changes);
        assert_eq!((syscalls.absent, syscalls.lost), (None, 6));
        assert_eq!(syscalls.unavailable, ["user stacks"], "said once");
        let absent = |of| probe(&observations, of).absent.unwrap();
        assert_eq!(absent(Probe::Faults), "EPERM");
        assert_eq!(absent(Probe::Scheduler), "no tracefs; mount it");
        assert_eq!(absent(Probe::Sampling), "there was no time for it; give more --time");
    }

    #[test]
    fn faults_are_per_iteration_by_mapping() {
        let mut observations = observations();
        assert_eq!(observations.faults(), None);
        let fault = |mapping| EndpointEvent {
            at_ns: 1,
            what: EventKind::PageFault { address: 0, major: false, mapping },
        };
        let client = EndpointObservation {
            events: vec![fault(0), fault(1), fault(1)],
            mappings: vec!["heap".to_owned(), "stack".to_owned()],
            ..EndpointObservation::default()
        };
        observations.add(Probe::Faults, SamplingRate::Full, trial(client), 1.0);
        let faults = observations.faults().unwrap();
        let rates: Vec<_> =
            faults.iter().map(|f| (f.of_client, f.mapping.as_str(), f.per_iteration)).collect();
        assert_eq!(rates, [(true, "stack", 0.2), (true, "heap", 0.1)]);
    }

    #[test]
    fn counters_are_per_iteration_over_all_trials_and_the_known_come_first() {
        let mut observations = observations();
        for (count, running) in [(100.0, 1.0), (300.0, 0.5)] {
            let counter = |name: &str, count| Counter { name: name.to_owned(), count, running };
            let client = EndpointObservation {
                counters: vec![
                    counter("bus-cycles", Fact::Unknown("not on this processor".to_owned())),
                    counter("cycles:user", Fact::Known(count)),
                ],
                ..EndpointObservation::default()
            };
            observations.add(Probe::Counters, SamplingRate::Full, trial(client), 1.0);
        }
        let counters = observations.counters();
        let names: Vec<_> = counters.iter().map(|counter| counter.name.as_str()).collect();
        assert_eq!(names, ["cycles:user", "bus-cycles"]);
        assert_eq!((counters[0].client.known(), counters[0].running), (Some(&20.0), 0.5));
        assert_eq!(counters[0].server.known(), None);
        assert_eq!(counters[1].client, Fact::Unknown("not on this processor".to_owned()));
    }

    #[test]
    fn what_samples_cost_is_taken_off_the_effect_and_what_open_events_cost_is_left() {
        // Open events make iterations take 1.25 times as long, and samples at the highest rate take a fifth of the time.
        let ratio = |rate: SamplingRate| 1.25 / (1.0 - 0.2 * rate.share());
        let mut observations = observations();
        let add = |observations: &mut CaseObservations, rate| {
            observations.add(Probe::Sampling, rate, trial(EndpointObservation::default()), ratio(rate));
        };
        for rate in SamplingRate::ALL {
            add(&mut observations, rate);
        }
        let few = probe(&observations, Probe::Sampling);
        assert!(few.effect.is_some() && few.effect_at_no_samples.is_none(), "three trials are no line");
        for rate in SamplingRate::ALL.into_iter().cycle().take(6) {
            add(&mut observations, rate);
        }
        let found = probe(&observations, Probe::Sampling);
        assert!((found.effect.unwrap().median - 1.25 / 0.8).abs() < 1e-9, "{found:?}");
        let left = found.effect_at_no_samples.unwrap();
        assert!((left.mean - 1.25).abs() < 1e-9, "{found:?}");
        let (low, high) = left.interval.unwrap();
        assert!(low <= high && (1.24..1.26).contains(&low), "{low} {high}");
        assert_eq!(probe(&observations, Probe::Syscalls).effect_at_no_samples, None);
    }

    #[test]
    fn samples_of_trials_are_added_up_by_stack_and_subsystem() {
        let mut observations = observations();
        let stack =
            |name: &str, samples| SampledStack { frames: vec![StackFrame::Kernel(name.to_owned())], samples };
        for samples in [1, 2] {
            let stacks = vec![stack("tcp_ack", samples), stack("_copy_to_iter", 3 * samples)];
            observations.add(
                Probe::Sampling,
                SamplingRate::Full,
                trial(EndpointObservation { stacks, ..EndpointObservation::default() }),
                1.0,
            );
        }
        let subsystems = observations.subsystems();
        let shares: Vec<_> =
            subsystems.iter().map(|s| (s.subsystem, s.client.unwrap().mean, s.samples)).collect();
        assert_eq!(shares, [(Subsystem::Copy, 0.75, 9), (Subsystem::Network, 0.25, 3)]);
        assert_eq!(observations.stacks()[0].len(), 2);
        assert!(observations.stacks()[1].is_empty() && observations.names_kernel_functions());
    }
}
