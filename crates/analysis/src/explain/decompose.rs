//! An iteration as a sum of terms, from two independent sources, and what is left.
//!
//! *By difference*: two cases that differ by one thing, measured in the same rounds without probes. *By probes*: the CPU time
//! of each endpoint, measured without probes and split by where samples found the processor; the time in which neither
//! endpoint uses a CPU is the way from being woken to running. The second is complete, except for functions of which the
//! subsystem is unknown; the first is not, because not everything can be left out alone.

use super::control_cases::ControlDifference;
use super::evidence::Evidence;
use crate::stats::median_interval;
use model::estimate::Estimate;
use model::floor::{CACHE_LINE, CONTEXT_SWITCH};
use model::observation::subsystem::Subsystem;
use model::record::{Record, Sample};
use serde::Serialize;

/// The futex calls of the floor that hands over by sleeping and waking.
const CALLS_OF_A_HAND_OVER: f64 = 4.0;
/// Two sources that differ by more than this share of the iteration contradict each other.
const CONTRADICTION: f64 = 0.1;

/// What a term stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TermKind {
    /// The way into the kernel and out of it.
    Calls,
    /// Bytes copied.
    Copies,
    /// Waking, choosing who runs, switching to it, and coming out of idling.
    WakeUps,
    /// Cache lines on their way from one CPU to the other.
    CacheLines,
    /// Sockets, protocols and devices.
    Network,
    /// The mechanism's own code in the kernel: pipes, files, queues, futexes.
    Mechanism,
    /// Locks.
    Locking,
    /// Memory given out and taken back.
    Memory,
    /// Page faults.
    Faults,
    /// The program itself.
    User,
    /// Interrupts and probes.
    Interrupts,
}

impl TermKind {
    const ALL: [TermKind; 11] = [
        TermKind::Calls,
        TermKind::Copies,
        TermKind::WakeUps,
        TermKind::CacheLines,
        TermKind::Network,
        TermKind::Mechanism,
        TermKind::Locking,
        TermKind::Memory,
        TermKind::Faults,
        TermKind::User,
        TermKind::Interrupts,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            TermKind::Calls => "system call entry and exit",
            TermKind::Copies => "copies",
            TermKind::WakeUps => "wake-ups and switches",
            TermKind::CacheLines => "cache lines handed over",
            TermKind::Network => "sockets and network stack",
            TermKind::Mechanism => "pipe, file and queue code",
            TermKind::Locking => "locks",
            TermKind::Memory => "memory management",
            TermKind::Faults => "page faults",
            TermKind::User => "user code",
            TermKind::Interrupts => "interrupts and probes",
        }
    }

    /// The term of samples in `subsystem`; `None` where the subsystem is unknown.
    fn of(subsystem: Subsystem) -> Option<Self> {
        Some(match subsystem {
            Subsystem::Entry => TermKind::Calls,
            Subsystem::Copy => TermKind::Copies,
            Subsystem::Scheduling | Subsystem::Waiting => TermKind::WakeUps,
            Subsystem::Locking => TermKind::Locking,
            Subsystem::Sockets | Subsystem::Network => TermKind::Network,
            Subsystem::Files | Subsystem::IoUring | Subsystem::Ipc | Subsystem::Signals => {
                TermKind::Mechanism
            }
            Subsystem::Memory => TermKind::Memory,
            Subsystem::Faults => TermKind::Faults,
            Subsystem::Interrupts | Subsystem::Tracing => TermKind::Interrupts,
            Subsystem::User => TermKind::User,
            Subsystem::Unknown => return None,
        })
    }
}

/// One term of an iteration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Term {
    /// What it stands for.
    pub kind: TermKind,
    /// By samples, in nanoseconds an iteration.
    pub by_probes_ns: Option<f64>,
    /// By cases that differ in this, in nanoseconds an iteration.
    pub by_difference_ns: Option<Estimate>,
    /// What the difference is between.
    pub difference: Option<String>,
    /// The two sources are further apart than a tenth of the iteration.
    pub contradicts: bool,
}

/// Where the numbers of a decomposition come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TermSource {
    /// Samples: complete, except for functions of which the subsystem is unknown.
    Samples,
    /// Cases that differ by one thing: what cannot be left out by itself is in the residual.
    Differences,
}

/// An iteration as a sum.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decomposition {
    /// What the iteration takes, in nanoseconds.
    pub iteration_ns: f64,
    /// Its terms.
    pub terms: Vec<Term>,
    /// What is left of it by samples: functions of which the subsystem is unknown. Absent without samples.
    pub residual_by_probes_ns: Option<f64>,
    /// What is left of it by differences: below 0 where costs overlap in time.
    pub residual_by_difference_ns: f64,
    /// How many samples it rests on.
    pub samples: u64,
    /// The better source: samples, where the kernel's functions have names and the endpoints do not spin. The time of
    /// endpoints that spin is all in their own code, and samples cannot tell what an instruction waits for.
    pub best: TermSource,
}

impl Decomposition {
    /// What `term` takes by the better source.
    pub fn ns_of(&self, term: &Term) -> Option<f64> {
        match self.best {
            TermSource::Samples => term.by_probes_ns,
            TermSource::Differences => term.by_difference_ns.map(|difference| difference.median),
        }
    }

    /// The terms that take most, at most `count`, the largest first.
    pub fn largest(&self, count: usize) -> Vec<(&Term, f64)> {
        let mut terms: Vec<(&Term, f64)> = self
            .terms
            .iter()
            .filter_map(|term| Some((term, self.ns_of(term)?)))
            .filter(|(_, ns)| *ns > 0.0)
            .collect();
        terms.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        terms.truncate(count);
        terms
    }

    /// What is left by the better source.
    pub fn residual_ns(&self) -> f64 {
        match (self.best, self.residual_by_probes_ns) {
            (TermSource::Samples, Some(residual_ns)) => residual_ns,
            _ => self.residual_by_difference_ns,
        }
    }
}

/// Decomposes an iteration of the case; `None` where an iteration is no sum.
pub(crate) fn decompose(evidence: &Evidence<'_>) -> Option<Decomposition> {
    if !evidence.observations.is_a_sum() {
        return None;
    }
    let iteration_ns = evidence.record.summary.as_ref()?.iteration_ns.median;
    let sampled = by_probes(evidence, iteration_ns);
    let term = |kind: TermKind| {
        let by_probes_ns =
            sampled.as_ref().map(|sampled| sampled.of(kind)).filter(|_| kind != TermKind::CacheLines);
        let (by_difference_ns, difference) = by_difference(evidence, kind).unzip();
        let apart_ns = by_probes_ns.zip(by_difference_ns).map(|(a, b): (f64, Estimate)| (a - b.median).abs());
        Term {
            kind,
            by_probes_ns,
            by_difference_ns,
            difference,
            contradicts: apart_ns.is_some_and(|apart_ns| apart_ns > CONTRADICTION * iteration_ns),
        }
    };
    let terms: Vec<Term> = TermKind::ALL
        .map(term)
        .into_iter()
        .filter(|term| term.by_difference_ns.is_some() || term.by_probes_ns.is_some_and(|ns| ns > 0.0))
        .collect();
    let explained_ns: f64 = terms.iter().filter_map(|term| term.by_difference_ns).map(|ns| ns.median).sum();
    Some(Decomposition {
        iteration_ns,
        residual_by_probes_ns: sampled.as_ref().map(|sampled| sampled.unknown_ns),
        residual_by_difference_ns: iteration_ns - explained_ns,
        best: match sampled.is_some() && !evidence.record.case.spec.params.spins() {
            true => TermSource::Samples,
            false => TermSource::Differences,
        },
        samples: sampled.map_or(0, |sampled| sampled.samples),
        terms,
    })
}

/// An iteration split by samples.
struct Sampled {
    terms_ns: Vec<(TermKind, f64)>,
    unknown_ns: f64,
    samples: u64,
}

impl Sampled {
    fn of(&self, kind: TermKind) -> f64 {
        self.terms_ns.iter().filter(|(of, _)| *of == kind).fold(0.0, |sum, (_, ns)| sum + ns)
    }
}

/// Splits the CPU time of both endpoints by samples. Where they use more together than the iteration takes, they did so at the
/// same time, and each counts for less; where they use less, neither ran for the rest.
fn by_probes(evidence: &Evidence<'_>, iteration_ns: f64) -> Option<Sampled> {
    let subsystems = evidence.observations.subsystems();
    let summary = evidence.record.summary.as_ref()?;
    let (client_ns, server_ns) = (summary.client.cpu_ns, summary.server.map_or(0.0, |server| server.cpu_ns));
    // Where the kernel is hidden, there is nothing to tell its parts by.
    if subsystems.is_empty() || !evidence.observations.names_kernel_functions() {
        return None;
    }
    let share = (iteration_ns / (client_ns + server_ns)).min(1.0);
    let ns_of = |client: f64, server: f64| (client * client_ns + server * server_ns) * share;
    let mut sampled = Sampled { terms_ns: Vec::new(), unknown_ns: 0.0, samples: 0 };
    for row in &subsystems {
        let ns = ns_of(row.client, row.server);
        sampled.samples += row.samples;
        match TermKind::of(row.subsystem) {
            Some(kind) => sampled.terms_ns.push((kind, ns)),
            None => sampled.unknown_ns += ns,
        }
    }
    sampled.terms_ns.push((TermKind::WakeUps, (iteration_ns - client_ns - server_ns).max(0.0)));
    Some(sampled)
}

/// What `kind` costs by the difference of two cases, and which.
fn by_difference(evidence: &Evidence<'_>, kind: TermKind) -> Option<(Estimate, String)> {
    let control_case = |role| evidence.control_case(role);
    let this = evidence.record;
    match kind {
        TermKind::Calls => {
            let (calls, call) =
                (evidence.calls_an_iteration()?, control_case(ControlDifference::SystemCall)?);
            let cost = call.summary.as_ref()?.iteration_ns;
            Some((cost.map(|ns| ns * calls), format!("{calls:.1} × an empty system call")))
        }
        TermKind::Copies => {
            let one = control_case(ControlDifference::OneByte)?;
            Some((difference(this, one)?, format!("{} less 1 byte", this.case.size_bytes?)))
        }
        TermKind::WakeUps => match control_case(ControlDifference::Spinning) {
            Some(spinning) => {
                Some((difference(this, spinning)?, "sleeping less spinning (wait=spin)".to_owned()))
            }
            None if this.case.spec.params.spins() => None,
            None => {
                let (floor, call) =
                    (evidence.floor(CONTEXT_SWITCH)?, control_case(ControlDifference::SystemCall)?);
                let of_calls_ns = CALLS_OF_A_HAND_OVER * call.summary.as_ref()?.iteration_ns.median;
                let cost = floor.summary.as_ref()?.iteration_ns.map(|ns| ns - of_calls_ns);
                Some((cost, "the floor context-switch less its system calls".to_owned()))
            }
        },
        TermKind::CacheLines => {
            let floor = evidence.floor(CACHE_LINE)?;
            Some((floor.summary.as_ref()?.iteration_ns, "the floor cache-line: there and back".to_owned()))
        }
        TermKind::Network => {
            let local = control_case(ControlDifference::Local)?;
            Some((difference(this, local)?, format!("this less {}", local.case.spec)))
        }
        TermKind::User => {
            let nothing = control_case(ControlDifference::Nothing)?;
            Some((
                nothing.summary.as_ref()?.iteration_ns,
                "the same iterations without a mechanism".to_owned(),
            ))
        }
        TermKind::Mechanism
        | TermKind::Locking
        | TermKind::Memory
        | TermKind::Faults
        | TermKind::Interrupts => None,
    }
}

/// The time of an iteration of `a` less that of `b`, over the rounds in which both have a trial.
pub(crate) fn difference(a: &Record, b: &Record) -> Option<Estimate> {
    let of_round = |sample: &&Sample, round| sample.round == round;
    let differences: Vec<f64> = a
        .samples
        .iter()
        .filter_map(|sample| {
            let other = b.samples.iter().find(|other| of_round(other, sample.round))?;
            Some(sample.iteration_ns() - other.iteration_ns())
        })
        .collect();
    median_interval(&differences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::case_observations::CaseObservations;
    use crate::host_speed::FullSpeed;
    use crate::summary::summarise;
    use model::card::Support;
    use model::floor::operation;
    use model::observation::{EndpointObservation as OfEnd, Observation, Probe, SampledStack, StackFrame};
    use model::record::{Outcome, Usage};
    use model::topology::CpuPair;
    use model::{Case, Placement, Size, Spec, Workload};

    fn case(name: &str, size: u64) -> Case {
        Case {
            workload: Workload::Latency,
            size_bytes: Some(Size(size)),
            placement: Placement::SameLlc,
            cpus: Some(CpuPair { client: 1, server: 0 }),
            ..operation(name, 1)
        }
    }

    /// Eight trials of a hundred iterations of `iteration_ns`, of which the client and the server used `client_ns` and `server_ns` of CPU time.
    fn record(case: Case, iteration_ns: u64, client_ns: u64, server_ns: u64) -> Record {
        let usage = |ns: u64| Usage { cpu_ns: ns * 100, ..Usage::default() };
        let sample = |round| Sample {
            round,
            started_ns: 0,
            iterations: 100,
            trial_iterations: 100,
            elapsed_ns: iteration_ns as f64 * 100.0,
            floor_ns: None,
            wake_floor_ns: None,
            each: None,
            client: usage(client_ns),
            server: Some(usage(server_ns)),
            calls: None,
            steps: None,
            timer: None,
            schedule: None,
            shares: None,
            lost: None,
            trial: round,
            speed: None,
            stolen_ns: None,
        };
        let samples: Vec<Sample> = (0..8).map(sample).collect();
        let summary = summarise(&case, &samples, &FullSpeed::default());
        let outcome = Outcome::Settled;
        Record { case, floor: false, outcome, samples, summary, settings: Vec::new(), warnings: Vec::new() }
    }

    /// So many samples in each function of the kernel, the rest in the program.
    fn end(kernel: &[(&str, u64)], user: u64) -> OfEnd {
        let stack = |frame, samples| SampledStack { frames: vec![frame], samples };
        let stacks =
            kernel.iter().map(|(name, samples)| stack(StackFrame::Kernel((*name).to_owned()), *samples));
        let user = stack(StackFrame::User("ask".to_owned()), user);
        OfEnd { stacks: stacks.chain([user]).collect(), ..OfEnd::default() }
    }

    fn sampled(
        case: Case,
        control_cases: Vec<(ControlDifference, Case)>,
        client: OfEnd,
        server: OfEnd,
    ) -> CaseObservations {
        let mut gathered = CaseObservations::new(case, control_cases);
        gathered.note_support(Probe::Sampling, Support::UNLIMITED);
        let seen = Observation {
            iterations: 100,
            elapsed_ns: 1.0,
            iteration_ends_ns: Vec::new(),
            client,
            server: Some(server),
        };
        gathered.add(Probe::Sampling, seen, 1.0);
        gathered
    }

    fn decomposed(observations: &CaseObservations, records: &[Record]) -> Decomposition {
        decompose(&Evidence { observations, record: &records[0], records, calls: None }).unwrap()
    }

    fn of(sum: &Decomposition, kind: TermKind) -> &Term {
        sum.terms.iter().find(|term| term.kind == kind).unwrap_or_else(|| panic!("no {kind:?} in {sum:?}"))
    }

    #[test]
    fn samples_split_cpu_time_and_what_neither_used_is_a_wake_up() {
        // Of 1000 ns the client runs for 400 and the server for 200.
        let client = end(&[("_copy_to_iter", 25), ("tcp_sendmsg", 50)], 25);
        let server = end(&[("_copy_to_iter", 50), ("no_such_function", 50)], 0);
        let records = [record(case("tcp", 4096), 1000, 400, 200)];
        let sum = decomposed(&sampled(case("tcp", 4096), Vec::new(), client, server), &records);
        assert_eq!(sum.best, TermSource::Samples);
        assert_eq!(of(&sum, TermKind::Copies).by_probes_ns, Some(200.0));
        assert_eq!(of(&sum, TermKind::Network).by_probes_ns, Some(200.0));
        assert_eq!(of(&sum, TermKind::User).by_probes_ns, Some(100.0));
        assert_eq!(of(&sum, TermKind::WakeUps).by_probes_ns, Some(400.0));
        assert_eq!(sum.residual_by_probes_ns, Some(100.0));
        let all: f64 = sum.terms.iter().filter_map(|term| term.by_probes_ns).sum();
        assert_eq!(all + 100.0, sum.iteration_ns, "the sum is the iteration");
        let largest: Vec<TermKind> = sum.largest(1).into_iter().map(|(term, _)| term.kind).collect();
        assert_eq!(largest, [TermKind::WakeUps]);
    }

    #[test]
    fn ends_that_run_at_the_same_time_count_for_less() {
        let records = [record(case("pipe", 1), 1000, 1000, 1000)];
        let (client, server) = (end(&[("pipe_write", 10)], 0), end(&[("pipe_read", 10)], 0));
        let sum = decomposed(&sampled(case("pipe", 1), Vec::new(), client, server), &records);
        assert_eq!(of(&sum, TermKind::Mechanism).by_probes_ns, Some(1000.0));
        assert!(sum.terms.iter().all(|term| term.kind != TermKind::WakeUps));
    }

    #[test]
    fn a_difference_is_between_trials_of_the_same_rounds_and_may_contradict() {
        let one_byte = case("pipe", 1);
        let records = [record(case("pipe", 4096), 1000, 500, 500), record(one_byte.clone(), 300, 150, 150)];
        let (client, server) = (end(&[("_copy_to_iter", 1)], 9), end(&[("_copy_to_iter", 1)], 9));
        let sum = decomposed(
            &sampled(case("pipe", 4096), vec![(ControlDifference::OneByte, one_byte)], client, server),
            &records,
        );
        let copies = of(&sum, TermKind::Copies);
        assert_eq!((copies.by_probes_ns, copies.by_difference_ns.unwrap().median), (Some(100.0), 700.0));
        assert!(copies.contradicts);
        assert_eq!(copies.difference.as_deref(), Some("4K less 1 byte"));
        assert_eq!(sum.residual_by_difference_ns, 300.0);
    }

    #[test]
    fn endpoints_that_spin_are_decomposed_by_differences() {
        let spec = Spec { name: "shm-ring".to_owned(), params: spins() };
        let spinning = Case { spec, ..case("shm-ring", 4096) };
        let records = [record(spinning.clone(), 1000, 1000, 1000)];
        let sum = decomposed(&sampled(spinning, Vec::new(), end(&[], 10), end(&[], 10)), &records);
        assert_eq!(sum.best, TermSource::Differences);
        assert_eq!(sum.residual_ns(), 1000.0, "there is nothing to take a difference of");
    }

    fn spins() -> model::Params {
        serde_json::from_str("{\"wait\":\"spin\"}").unwrap()
    }
}
