//! What a replay of a scenario came to: means over its trials with their intervals, and of two that were measured in turn the
//! ratios.

use crate::interval::{MeanEstimate, mean_over_trials};
use crate::stats::mean;
use model::Scenario;
use model::elsewhere::Elsewhere;
use model::record::Setting;
use model::scenario::{Begin, Behaviour, Flow, FlowTotals, HeldBack, Mix, RecordedFlow};
use model::units::Nanoseconds;
use serde::Serialize;

/// What a replay came to.
#[derive(Debug, Clone, Serialize)]
pub struct AnalysedReplay {
    /// The scenario's name.
    pub scenario: String,
    /// How often its processes were started.
    pub trials: usize,
    /// How many slices there were of all trials.
    pub slices: usize,
    /// Whether it was ended early.
    pub interrupted: bool,
    /// The flows, in the order of the scenario.
    pub flows: Vec<ReplayedFlow>,
    /// The processes.
    pub processes: Vec<ReplayedProcess>,
}

/// What a flow came to.
#[derive(Debug, Clone, Serialize)]
pub struct ReplayedFlow {
    /// Its name.
    pub name: String,
    /// Who sends.
    pub from: String,
    /// Who receives.
    pub to: String,
    /// How.
    pub mechanism: String,
    /// Requests that were answered, or messages of a stream that came.
    pub messages: u64,
    /// Their bytes, without those of the answers.
    pub bytes: u64,
    /// How many a second; absent without a slice.
    pub per_s: Option<MeanEstimate>,
    /// The mean round trip; absent for streams, and where there was none.
    pub round_trip_ns: Option<MeanEstimate>,
    /// The median of the round trips of all slices.
    pub median_ns: Option<f64>,
    /// Their 99th percentile.
    pub p99_ns: Option<f64>,
    /// What its endpoints asked the kernel for, and got.
    pub settings: Vec<Setting>,
    /// When its messages begin.
    pub pace: ReplayPace,
    /// What was recorded of the same flow.
    pub recorded: Option<RecordedBeside>,
}

/// When the messages of a flow begin in a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayPace {
    /// When the one before is over: the program slept for less than 1% of the time between them.
    BackToBack,
    /// When the one before is over, and the sender has slept as long as the program did.
    Closed {
        /// How long, in the mean.
        thought_ns: f64,
    },
    /// When they are due.
    AtRate,
    /// When a message of that flow has come.
    After(String),
}

/// What was recorded of a flow, as far as the replay has it too.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RecordedBeside {
    /// How many a second.
    pub per_s: f64,
    /// How many times as many a second the replay had, with the interval of the replay: that of the recording is not known. Absent without
    /// either.
    pub rate_ratio: Option<MeanEstimate>,
    /// What follows from that.
    pub keeps: KeptPace,
    /// The mean round trip.
    pub round_trip_ns: Option<f64>,
    /// The median.
    pub median_ns: Option<f64>,
    /// The 99th percentile.
    pub p99_ns: Option<f64>,
    /// How long, and how often, it waited for acknowledgements, as nothing does but TCP; absent where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
}

impl ReplayPace {
    /// That of `flow` of `scenario`.
    fn from_flow(scenario: &Scenario, flow: &Flow) -> Self {
        /// Less of the time between two messages is no pause.
        const LEAST: f64 = 0.01;
        let per_s = flow.recorded.as_ref().map(|recorded| recorded.per_s);
        match &flow.begin {
            Begin::Closed { think_time } => {
                let thought_ns = think_time.mean();
                let is_pause = match per_s {
                    Some(per_s) => thought_ns * per_s / 1e9 >= LEAST,
                    None => thought_ns > 0.0,
                };
                if is_pause { Self::Closed { thought_ns } } else { Self::BackToBack }
            }
            Begin::Open(_) => Self::AtRate,
            Begin::After { flow, .. } => Self::After(scenario.flows[*flow].name.clone()),
        }
    }
}

/// Whether a replay had as many messages a second as the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeptPace {
    /// The interval holds the program's rate.
    AsRecorded,
    /// It lies above.
    Faster,
    /// It lies below.
    Slower,
    /// There are too few trials for an interval.
    NotKnown,
}

impl RecordedBeside {
    /// What was recorded as `of`, beside the rate `per_s` of a replay.
    fn beside(of: &RecordedFlow, per_s: Option<MeanEstimate>) -> Self {
        let of_mix = |value: &dyn Fn(&Mix<Nanoseconds>) -> f64| of.round_trip.as_ref().map(value);
        let rate_ratio = per_s.filter(|_| of.per_s > 0.0).map(|per_s| per_s.map(|per_s| per_s / of.per_s));
        let keeps = match rate_ratio.and_then(|ratio| ratio.interval) {
            None => KeptPace::NotKnown,
            Some((low, _)) if low > 1.0 => KeptPace::Faster,
            Some((_, high)) if high < 1.0 => KeptPace::Slower,
            Some(_) => KeptPace::AsRecorded,
        };
        Self {
            per_s: of.per_s,
            rate_ratio,
            keeps,
            round_trip_ns: of_mix(&Mix::mean),
            median_ns: of_mix(&|mix| mix.at(0.5).0 as f64),
            p99_ns: of_mix(&|mix| mix.at(0.99).0 as f64),
            held_back: of.held_back,
        }
    }
}

/// What a process came to.
#[derive(Debug, Clone, Serialize)]
pub struct ReplayedProcess {
    /// Its name.
    pub name: String,
    /// CPU time over wall time.
    pub cpu: Option<MeanEstimate>,
    /// Context switches a second.
    pub switches_per_s: Option<MeanEstimate>,
    /// The same as recorded.
    pub recorded_cpu: Option<f64>,
    /// The same as recorded.
    pub recorded_switches_per_s: Option<f64>,
    /// The slices in which it was not on its CPUs alone, which count like the others; absent where there were none.
    #[serde(skip_serializing_if = "Elsewhere::is_nothing")]
    pub elsewhere: Elsewhere,
}

/// What two scenarios came to that were measured in turn, and how the second differs.
#[derive(Debug, Clone, Serialize)]
pub struct ReplayedBoth {
    /// What each came to, the first and the second.
    pub replays: [AnalysedReplay; 2],
    /// The flows that both have.
    pub flows: Vec<FlowRatios>,
    /// The processes that both have.
    pub processes: Vec<ProcessRatio>,
}

/// The second over the first.
#[derive(Debug, Clone, Serialize)]
pub struct FlowRatios {
    /// The flow.
    pub name: String,
    /// Its mechanism in each.
    pub mechanisms: [String; 2],
    /// Of the rates.
    pub rate: Option<MeanEstimate>,
    /// Of the mean round trips.
    pub round_trip: Option<MeanEstimate>,
}

/// The second over the first.
#[derive(Debug, Clone, Serialize)]
pub struct ProcessRatio {
    /// The process.
    pub name: String,
    /// Of the CPU times over wall time.
    pub cpu: Option<MeanEstimate>,
}

impl AnalysedReplay {
    /// The flows of which a rate was recorded, the busiest of the program first.
    pub fn recorded_flows(&self) -> Vec<(&ReplayedFlow, &RecordedBeside)> {
        let mut flows: Vec<_> =
            self.flows.iter().filter_map(|flow| Some((flow, flow.recorded.as_ref()?))).collect();
        flows.retain(|(_, recorded)| recorded.rate_ratio.is_some());
        flows.sort_by(|(_, a), (_, b)| b.per_s.total_cmp(&a.per_s));
        flows
    }

    /// What the slices of `trials` and `totals` of `scenario` come to; its processes were moved as `elsewhere` says.
    pub fn from_trials(
        scenario: &Scenario,
        trials: &[Vec<Behaviour>],
        totals: &[FlowTotals],
        elsewhere: &[Elsewhere],
        interrupted: bool,
    ) -> Self {
        let mean = |value: &dyn Fn(&Behaviour) -> Option<f64>| {
            mean_of_means(trials.iter().map(|slices| slices.iter().filter_map(value).collect()))
        };
        let name = |process: usize| scenario.processes[process].name.clone();
        let flow = |(at, total): (usize, &FlowTotals)| {
            let described = &scenario.flows[at];
            let quantile = |share| Some(total.round_trips.as_ref()?.quantile_ns(share)? as f64);
            let per_s = mean(&|slice| Some(slice.flows[at].per_s));
            ReplayedFlow {
                name: described.name.clone(),
                from: name(described.from),
                to: name(described.to),
                mechanism: described.mechanism.to_string(),
                messages: total.messages,
                bytes: total.bytes,
                per_s,
                round_trip_ns: mean(&|slice| slice.flows[at].round_trip_ns),
                median_ns: quantile(0.5),
                p99_ns: quantile(0.99),
                settings: total.settings.clone(),
                pace: ReplayPace::from_flow(scenario, described),
                recorded: described.recorded.as_ref().map(|recorded| RecordedBeside::beside(recorded, per_s)),
            }
        };
        let process = |at: usize| {
            let recorded = scenario.processes[at].recorded.as_ref();
            ReplayedProcess {
                name: name(at),
                cpu: mean(&|slice| Some(slice.processes[at].cpu)),
                switches_per_s: mean(&|slice| Some(slice.processes[at].switches_per_s)),
                recorded_cpu: recorded.map(|recorded| recorded.cpu),
                recorded_switches_per_s: recorded.map(|recorded| recorded.switches_per_s),
                elsewhere: elsewhere.get(at).cloned().unwrap_or_default(),
            }
        };
        Self {
            scenario: scenario.name.clone(),
            trials: trials.len(),
            slices: trials.iter().map(Vec::len).sum(),
            interrupted,
            flows: totals.iter().enumerate().map(flow).collect(),
            processes: (0..scenario.processes.len()).map(process).collect(),
        }
    }
}

impl ReplayedBoth {
    /// How the slices of the trials `b` of the scenario that came to the second of `replays` differ from `a`, of the first. They were
    /// measured in the order a b b a, a b b a, …
    pub fn new(replays: [AnalysedReplay; 2], [a, b]: [&[Vec<Behaviour>]; 2]) -> Self {
        let [first, second] = &replays;
        let flow = |(at, of): (usize, &ReplayedFlow)| {
            let other = second.flows.iter().position(|flow| flow.name == of.name)?;
            Some(FlowRatios {
                name: of.name.clone(),
                mechanisms: [of.mechanism.clone(), second.flows[other].mechanism.clone()],
                rate: ratio(
                    a,
                    b,
                    |slice| Some(slice.flows[at].per_s),
                    |slice| Some(slice.flows[other].per_s),
                ),
                round_trip: ratio(
                    a,
                    b,
                    |slice| slice.flows[at].round_trip_ns,
                    |slice| slice.flows[other].round_trip_ns,
                ),
            })
        };
        let process = |(at, of): (usize, &ReplayedProcess)| {
            let other = second.processes.iter().position(|process| process.name == of.name)?;
            let cpu = |at: usize| move |slice: &Behaviour| Some(slice.processes[at].cpu);
            Some(ProcessRatio { name: of.name.clone(), cpu: ratio(a, b, cpu(at), cpu(other)) })
        };
        let flows = first.flows.iter().enumerate().filter_map(flow).collect();
        let processes = first.processes.iter().enumerate().filter_map(process).collect();
        Self { flows, processes, replays }
    }
}

/// The geometric mean of what is of `b` over what is of `a`, with its interval: one log ratio of each quadruple a b b a, and their
/// mean of each trial.
fn ratio(
    a: &[Vec<Behaviour>],
    b: &[Vec<Behaviour>],
    of_a: impl Fn(&Behaviour) -> Option<f64>,
    of_b: impl Fn(&Behaviour) -> Option<f64>,
) -> Option<MeanEstimate> {
    let log = |value: Option<f64>| value.filter(|value| *value > 0.0).map(f64::ln);
    let of_trial = |(a, b): (&Vec<Behaviour>, &Vec<Behaviour>)| {
        let quadruples = a.chunks_exact(2).zip(b.chunks_exact(2));
        let logs = quadruples.filter_map(|(a, b)| {
            let [a1, a2] = [log(of_a(&a[0]))?, log(of_a(&a[1]))?];
            let [b1, b2] = [log(of_b(&b[0]))?, log(of_b(&b[1]))?];
            Some((b1 + b2 - a1 - a2) / 2.0)
        });
        logs.collect()
    };
    let MeanEstimate { mean, interval } = mean_of_means(a.iter().zip(b).map(of_trial))?;
    Some(MeanEstimate { mean: mean.exp(), interval: interval.map(|(low, high)| (low.exp(), high.exp())) })
}

/// The mean over trials of the mean of each; a trial without a value counts as none.
fn mean_of_means(trials: impl Iterator<Item = Vec<f64>>) -> Option<MeanEstimate> {
    let means = trials.filter(|values| !values.is_empty()).map(|values| mean(&values));
    mean_over_trials(&means.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::card::{Card, CardKind};
    use model::scenario::{FlowBehaviour, ProcessBehaviour};
    use model::testing::cards::card;
    use model::workload::Workload;

    fn slice(per_s: f64) -> Behaviour {
        let flow = FlowBehaviour { per_s, round_trip_ns: (per_s > 0.0).then(|| 1e9 / per_s) };
        Behaviour {
            flows: vec![flow],
            processes: vec![ProcessBehaviour { cpu: 0.5, switches_per_s: 2.0 * per_s }],
        }
    }

    #[test]
    fn a_ratio_is_free_of_what_drifts_evenly() {
        // Each slice is slower than the one before: a b b a has the same of it on both sides.
        let at = |nth: usize| 1000.0 * 0.99_f64.powi(nth as i32);
        let a: Vec<Vec<Behaviour>> = (0..8).map(|n| vec![slice(at(4 * n)), slice(at(4 * n + 3))]).collect();
        let b: Vec<Vec<Behaviour>> =
            (0..8).map(|n| vec![slice(1.2 * at(4 * n + 1)), slice(1.2 * at(4 * n + 2))]).collect();
        let rate = |slice: &Behaviour| Some(slice.flows[0].per_s);
        let found = ratio(&a, &b, rate, rate).unwrap();
        assert!((found.mean - 1.2).abs() < 1e-9, "{found:?}");
        let (low, high) = found.interval.unwrap();
        assert!(low <= found.mean && found.mean <= high);
    }

    #[test]
    fn quadruples_in_which_nothing_happened_are_left_out() {
        let a = [vec![slice(0.0), slice(10.0), slice(10.0), slice(10.0)]];
        let b = [vec![slice(20.0), slice(20.0), slice(20.0), slice(20.0)]];
        let rate = |slice: &Behaviour| Some(slice.flows[0].per_s);
        let found = ratio(&a, &b, rate, rate).unwrap();
        assert!((found.mean - 2.0).abs() < 1e-9 && found.interval.is_none(), "{found:?}");
        assert_eq!(ratio(&[a[0][..2].to_vec()], &[b[0][..2].to_vec()], rate, rate), None);
    }

    #[test]
    fn a_rate_is_set_beside_the_recorded_one() {
        let recorded = |per_s: f64| RecordedFlow {
            messages: 100,
            per_s,
            round_trip: None,
            client_waited: 0.0,
            server_waited: 0.0,
            partial_reads: 0.0,
            on_one_cpu: None,
            held_back: None,
        };
        let replayed = |interval| Some(MeanEstimate { mean: 3000.0, interval });
        let known = replayed(Some((2900.0, 3100.0)));
        let beside = RecordedBeside::beside(&recorded(1000.0), known);
        assert_eq!(beside.rate_ratio, Some(MeanEstimate { mean: 3.0, interval: Some((2.9, 3.1)) }));
        assert_eq!(beside.keeps, KeptPace::Faster);
        let keeps = |per_s, of| RecordedBeside::beside(&recorded(per_s), of).keeps;
        assert_eq!(keeps(3050.0, known), KeptPace::AsRecorded);
        assert_eq!(keeps(4000.0, known), KeptPace::Slower);
        assert_eq!(keeps(4000.0, replayed(None)), KeptPace::NotKnown);
        // Nothing was recorded of a flow that had no message, nor is there a rate without a slice.
        assert_eq!(RecordedBeside::beside(&recorded(0.0), known).rate_ratio, None);
        assert_eq!(RecordedBeside::beside(&recorded(1000.0), None).rate_ratio, None);
    }

    #[test]
    fn a_pause_that_hardly_takes_time_is_none() {
        const CARDS: &[Card] = &[card("pipe", CardKind::Mechanism, &[Workload::Latency], true)];
        let pace = |begin: &str, seen: &str| {
            let text = format!(
                "name = \"n\"\n[[process]]\nname = \"a\"\n[[process]]\nname = \"b\"\n[[process]]\nname = \"c\"\n\
                 [[flow]]\nname = \"asks\"\nfrom = \"a\"\nto = \"b\"\nmechanism = \"pipe\"\nsize = \"1\"\nreply = \"1\"\n\
                 [[flow]]\nname = \"f\"\nfrom = \"b\"\nto = \"c\"\nmechanism = \"pipe\"\nsize = \"1\"\nreply = \"1\"\n{begin}\n{seen}"
            );
            let scenario = Scenario::parse(&text, CARDS).unwrap_or_else(|invalid| panic!("{invalid}"));
            ReplayPace::from_flow(&scenario, &scenario.flows[1])
        };
        let seen = "[flow.recorded]\nmessages = 9\nper_s = 10000.0\nclient_waited = 0.1\nserver_waited = 0.1\npartial_reads = 0.0";
        assert_eq!(pace("think_time = \"900ns\"", seen), ReplayPace::BackToBack);
        assert_eq!(pace("think_time = \"900ns\"", ""), ReplayPace::Closed { thought_ns: 900.0 });
        assert_eq!(pace("think_time = \"20us\"", seen), ReplayPace::Closed { thought_ns: 20_000.0 });
        assert_eq!(pace("", ""), ReplayPace::BackToBack);
        assert_eq!(pace("rate = \"1k\"", seen), ReplayPace::AtRate);
        assert_eq!(pace("after = \"asks\"", seen), ReplayPace::After("asks".to_owned()));
    }

    #[test]
    fn what_differs_from_start_to_start_is_in_the_interval() {
        // Every slice of a trial says the same; the trials differ by a tenth.
        let trials = |factor: f64| -> Vec<Vec<Behaviour>> {
            [1.0, 1.1, 0.9, 1.0, 1.1, 0.9].map(|own| vec![slice(1000.0 * factor * own); 20]).into()
        };
        let rate = |slice: &Behaviour| Some(slice.flows[0].per_s);
        let alike: Vec<_> = trials(1.0).iter().map(|_| vec![slice(1000.0); 20]).collect();
        let (low, high) = ratio(&alike, &trials(1.0), rate, rate).unwrap().interval.unwrap();
        assert!(low < 0.95 && high > 1.05, "{low} to {high}");
    }
}
