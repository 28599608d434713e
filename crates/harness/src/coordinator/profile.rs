//! A profile of cases: in every round each probe observes each case between two trials without one, so that its own effect is
//! known from its neighbours in time.
//!
//! The first round warms up: what it observes is reported, and has no ratio.

use super::schedule::{Scheduler, Stop, TimeBudget, TrialOutcome, TrialProgress, Trials};
use crate::protocol::orders::Sizing;
use model::Case;
use model::observation::{Observation, Probe, ProbeRequest, SamplingRate};

/// The rounds after which a case has been observed enough: fewer allow no 95% interval of a probe's effect.
pub const ENOUGH_ROUNDS: u32 = 12;
/// The slice of an observed trial, where the number of its iterations is not given.
pub const A_SLICE: Sizing = Sizing::Slice { slice_ns: 8_000_000, hint_ns: None };
/// By what the slice is divided where ptrace stops an endpoint at every call.
const PTRACE_SHARE: u64 = 10;
/// How much longer trials are of which samples are taken, and those where there is one for each of several rates.
const SAMPLING_TIMES: u64 = 16;
const SAMPLING_TIMES_OF_SEVERAL: u64 = 8;

/// A case to be observed.
#[derive(Debug, Clone)]
pub struct ProbeSubject {
    /// The case.
    pub case: Case,
    /// By which probes.
    pub probes: Vec<Probe>,
    /// How many iterations a trial is to have, or how long they are to take.
    pub size: Sizing,
}

/// What is to be observed.
#[derive(Debug, Clone, Copy)]
pub struct ProbePlan<'a> {
    /// The cases.
    pub subjects: &'a [ProbeSubject],
    /// The counters that were asked for by name.
    pub counters: &'a [String],
    /// How often samples are taken: a round has a trial at each of these rates.
    pub sampling: &'a [SamplingRate],
    /// The rounds after which to stop.
    pub rounds: u32,
}

/// One trial with a probe.
#[derive(Debug)]
pub struct ObservedTrial<'a> {
    /// The case, by its place in the list.
    pub at: usize,
    /// The probe.
    pub probe: Probe,
    /// How often samples were taken in this trial, if the probe takes any.
    pub sampling: SamplingRate,
    /// What it saw, or why it saw nothing.
    pub outcome: Result<Observation, String>,
    /// The time of an iteration under the probe over that in the trials without a probe before and after it; absent in the
    /// first round, which warms up.
    pub ratio: Option<f64>,
    /// The round, from 0.
    pub round: u32,
    /// The case itself.
    pub case: &'a Case,
    /// How far the profile is.
    pub progress: TrialProgress,
}

/// Observes each case by each of its probes, round after round, until there were enough rounds, or time is up, or it is
/// interrupted. A probe that fails on a case is not tried on it again. In the first round, every probe is tried on every case
/// even if time is up.
pub fn observe<'a>(
    plan: ProbePlan<'a>,
    trials: &'a dyn Trials,
    budget: TimeBudget<'a>,
    report: impl FnMut(ObservedTrial<'_>),
) {
    let tracks = plan.subjects.iter().map(|subject| Track { subject, hint_ns: None, failed: Vec::new() });
    let tracks = tracks.collect();
    let mut profile = Profiling { scheduler: Scheduler::new(budget), trials, plan, tracks, report };
    // To stop early is no error: what was observed by then is the result.
    let _ = profile.rounds();
}

/// One case on its way.
struct Track<'a> {
    subject: &'a ProbeSubject,
    hint_ns: Option<f64>,
    failed: Vec<Probe>,
}

impl Track<'_> {
    fn open_probes(&self) -> Vec<Probe> {
        self.subject.probes.iter().copied().filter(|probe| !self.failed.contains(probe)).collect()
    }
}

/// A profile under way.
struct Profiling<'a, F> {
    scheduler: Scheduler<'a>,
    trials: &'a dyn Trials,
    plan: ProbePlan<'a>,
    tracks: Vec<Track<'a>>,
    report: F,
}

impl<F: FnMut(ObservedTrial<'_>)> Profiling<'_, F> {
    fn rounds(&mut self) -> Result<(), Stop> {
        for round in 0..=self.plan.rounds {
            for at in 0..self.tracks.len() {
                self.round_of_case(at, round)?;
            }
        }
        Ok(())
    }

    /// One trial with each probe. The bare trial after one probe is that before the next.
    fn round_of_case(&mut self, at: usize, round: u32) -> Result<(), Stop> {
        let mut bare_ns = None;
        for (probe, sampling) in self.instruments(at, round) {
            // At another rate it failed just now.
            if self.tracks[at].failed.contains(&probe) {
                continue;
            }
            if round > 0 {
                self.scheduler.check_time()?;
            }
            let (outcome, ratio) = match self.bracket(at, (probe, sampling), &mut bare_ns)? {
                Ok((observation, ratio)) => (Ok(observation), (round > 0).then_some(ratio)),
                Err(error) => {
                    self.tracks[at].failed.push(probe);
                    (Err(error), None)
                }
            };
            let warm_up = round.checked_sub(1);
            let progress = self.scheduler.progress(warm_up, 0, self.tracks.len());
            let case = &self.tracks[at].subject.case;
            (self.report)(ObservedTrial { at, probe, sampling, outcome, ratio, round, case, progress });
        }
        Ok(())
    }

    /// The probes that are open for the case at `at`, each with the rate of its samples: that of samples at each rate, but once in the
    /// round that warms up. Rounds begin with one rate after the other.
    fn instruments(&self, at: usize, round: u32) -> Vec<(Probe, SamplingRate)> {
        let rates = self.plan.sampling;
        let in_order = rates.iter().copied().cycle().skip(round as usize).take(rates.len());
        let of_round: Vec<SamplingRate> =
            if round == 0 { in_order.take(1).collect() } else { in_order.collect() };
        let with_rates = |probe| match probe {
            Probe::Sampling => of_round.iter().map(|rate| (probe, *rate)).collect(),
            _ => vec![(probe, SamplingRate::default())],
        };
        self.tracks[at].open_probes().into_iter().flat_map(with_rates).collect()
    }

    /// A bare trial, unless there was one just before, a trial with `probe`, and a bare trial. Returns what the probe saw and
    /// the ratio of its iterations to those of the bare trials.
    fn bracket(
        &mut self,
        at: usize,
        (probe, sampling): (Probe, SamplingRate),
        bare_ns: &mut Option<f64>,
    ) -> Result<TrialOutcome<(Observation, f64)>, Stop> {
        let before_ns = match *bare_ns {
            Some(before_ns) => before_ns,
            None => match self.trial(at, None, sampling)? {
                Ok(bare) => bare.iteration_ns(),
                Err(error) => return Ok(Err(error)),
            },
        };
        self.tracks[at].hint_ns = Some(before_ns);
        let observation = match self.trial(at, Some(probe), sampling)? {
            Ok(observation) => observation,
            Err(error) => return Ok(Err(error)),
        };
        let after_ns = match self.trial(at, None, sampling)? {
            Ok(bare) => bare.iteration_ns(),
            Err(error) => return Ok(Err(error)),
        };
        *bare_ns = Some(after_ns);
        let ratio = observation.iteration_ns() / (before_ns * after_ns).sqrt();
        Ok(Ok((observation, ratio)))
    }

    fn trial(
        &mut self,
        at: usize,
        probe: Option<Probe>,
        sampling: SamplingRate,
    ) -> Result<TrialOutcome<Observation>, Stop> {
        let Track { subject: ProbeSubject { case, size, .. }, hint_ns, .. } = &self.tracks[at];
        let request = ProbeRequest { probe, counters: self.plan.counters.to_vec(), sampling };
        let size = size_under(*size, probe, self.plan.sampling.len(), *hint_ns);
        self.scheduler.observe(self.trials, case, size, &request)
    }
}

/// The size of a trial under `probe`, which takes samples at so many `rates` if it does, where those without a probe have `size`.
fn size_under(size: Sizing, probe: Option<Probe>, rates: usize, hint_ns: Option<f64>) -> Sizing {
    let Sizing::Slice { slice_ns, .. } = size else { return size };
    let slice_ns = match probe {
        // An iteration takes so much longer there that a few are enough.
        Some(Probe::Ptrace) => slice_ns / PTRACE_SHARE,
        // Samples are few: a trial must be longer to have enough of them.
        Some(Probe::Sampling) if rates > 1 => slice_ns * SAMPLING_TIMES_OF_SEVERAL,
        Some(Probe::Sampling) => slice_ns * SAMPLING_TIMES,
        _ => slice_ns,
    };
    Sizing::Slice { slice_ns, hint_ns }
}

#[cfg(test)]
mod tests {
    use super::super::fake_trials::{FakeTrials, LONG, SLICE_TIME, case, failure};
    use super::super::trial_error::TrialError;
    use super::*;
    use std::time::Duration;

    /// A trial as it was reported: its name, its round, its ratio, and whether it failed.
    type Reported = (String, u32, Option<f64>, bool);

    fn run(subjects: &[ProbeSubject], rounds: u32, trials: &FakeTrials<'_>, time: Duration) -> Vec<Reported> {
        let mut reported = Vec::new();
        let plan = ProbePlan { subjects, counters: &[], sampling: &SamplingRate::ALL, rounds };
        observe(plan, trials, trials.budget(time), |trial| {
            let name = format!("{}+{}", trial.case.spec.name, trial.probe);
            assert_eq!(subjects[trial.at].case, *trial.case);
            reported.push((name, trial.round, trial.ratio, trial.outcome.is_err()));
        });
        reported
    }

    fn subject(name: &str, probes: &[Probe]) -> ProbeSubject {
        ProbeSubject { case: case(name), probes: probes.to_vec(), size: A_SLICE }
    }

    fn same(_: usize, _: &str) -> Result<f64, TrialError> {
        Ok(100.0)
    }

    const TWO: [Probe; 2] = [Probe::Syscalls, Probe::Faults];

    #[test]
    fn each_probe_stands_between_two_bare_trials_and_neighbours_share_one() {
        let trials = FakeTrials::new(&same);
        run(&[subject("a", &TWO), subject("b", &TWO[..1])], 1, &trials, LONG);
        let round = "a a+syscalls a a+faults a b b+syscalls b";
        assert_eq!(trials.order(), format!("{round} {round}"));
    }

    #[test]
    fn the_effect_of_a_probe_is_over_the_geometric_mean_of_its_neighbours_and_unknown_in_the_warm_up() {
        // Bare trials take 100 ns and 400 ns alternately; under the probe an iteration takes 600 ns.
        let answer = |before: usize, name: &str| {
            Ok(if name.contains('+') {
                600.0
            } else if before.is_multiple_of(3) {
                100.0
            } else {
                400.0
            })
        };
        let trials = FakeTrials::new(&answer);
        let reported = run(&[subject("a", &TWO[..1])], 2, &trials, LONG);
        let ratios: Vec<Option<f64>> = reported.iter().map(|(_, _, ratio, _)| *ratio).collect();
        assert_eq!(ratios, [None, Some(3.0), Some(3.0)]);
        assert_eq!(reported.iter().map(|(_, round, ..)| *round).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_probe_that_fails_on_a_case_is_not_tried_on_it_again() {
        let fails = |_, name: &str| if name == "a+syscalls" { Err(failure("no")) } else { Ok(1.0) };
        let trials = FakeTrials::new(&fails);
        let reported = run(&[subject("a", &TWO), subject("b", &TWO)], 3, &trials, LONG);
        let times_reported = |name: &str| reported.iter().filter(|(reported, ..)| reported == name).count();
        assert_eq!(
            (times_reported("a+syscalls"), times_reported("a+faults"), times_reported("b+syscalls")),
            (1, 4, 4)
        );
        assert!(reported.iter().all(|(name, _, _, failed)| *failed == (name == "a+syscalls")));
    }

    #[test]
    fn a_bare_trial_that_fails_is_the_failure_of_the_probe_beside_it() {
        let trials = FakeTrials::new(&|before, _| if before == 2 { Err(failure("no")) } else { Ok(1.0) });
        let reported = run(&[subject("a", &TWO)], 0, &trials, LONG);
        assert_eq!(trials.order(), "a a+syscalls a a a+faults a");
        assert_eq!(reported.iter().map(|(.., failed)| *failed).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn the_warm_up_tries_every_probe_and_later_rounds_keep_to_the_time() {
        let subjects = [subject("a", &TWO)];
        let trials = FakeTrials::new(&same);
        assert_eq!(run(&subjects, 5, &trials, Duration::ZERO).len(), 2);
        // A bracket that has begun is finished: 5 trials of the warm-up, and 3 of the next round.
        let trials = FakeTrials::new(&same);
        assert_eq!(run(&subjects, 5, &trials, 6 * SLICE_TIME).len(), 3);
        assert_eq!(trials.count(), 8);
    }

    #[test]
    fn an_interruption_at_any_point_leaves_what_was_observed() {
        // Of five trials a round, the third and the fifth finish a bracket.
        for (interrupted_at, brackets) in
            [(0, 0), (1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2), (7, 2), (8, 3)]
        {
            let answer = move |before, _: &str| {
                if before == interrupted_at { Err(TrialError::Interrupted) } else { Ok(1.0) }
            };
            let between = FakeTrials::new(&same).interrupted_after(interrupted_at);
            for trials in [between, FakeTrials::new(&answer)] {
                assert_eq!(run(&[subject("a", &TWO)], 5, &trials, LONG).len(), brackets);
            }
        }
    }

    #[test]
    fn each_round_takes_samples_at_each_rate_and_the_warm_up_at_one() {
        use SamplingRate::{Full, Half, Quarter};
        let trials = FakeTrials::new(&same);
        let subjects = [subject("a", &[Probe::Faults, Probe::Sampling])];
        let mut reported = Vec::new();
        let plan = ProbePlan { subjects: &subjects, counters: &[], sampling: &SamplingRate::ALL, rounds: 2 };
        observe(plan, &trials, trials.budget(LONG), |trial| {
            if trial.probe == Probe::Sampling {
                reported.push((trial.round, trial.sampling));
            }
        });
        let expected = [(0, Quarter), (1, Half), (1, Full), (1, Quarter), (2, Full), (2, Quarter), (2, Half)];
        assert_eq!(reported, expected);
        // The trials with samples are asked for the rates that are reported, and each has a bare one behind it.
        let names = trials.started.borrow();
        let asked = trials.asked_sampling.borrow();
        let of_samples = |at: &usize| names[*at] == "a+sampling";
        let at: Vec<usize> = (0..names.len()).filter(of_samples).collect();
        assert_eq!(at.iter().map(|at| asked[*at]).collect::<Vec<_>>(), expected.map(|(_, rate)| rate));
        assert!(at.iter().all(|at| names[at + 1] == "a" && names[at - 1] == "a"), "{names:?}");
    }

    #[test]
    fn samples_that_fail_at_one_rate_are_not_tried_at_the_others() {
        let fails = |_, name: &str| if name == "a+sampling" { Err(failure("no")) } else { Ok(1.0) };
        let trials = FakeTrials::new(&fails);
        let reported = run(&[subject("a", &[Probe::Sampling])], 3, &trials, LONG);
        assert_eq!(reported.len(), 1);
        let later = |before: usize, name: &str| {
            if name == "a+sampling" && before > 4 { Err(failure("no")) } else { Ok(1.0) }
        };
        let trials = FakeTrials::new(&later);
        let reported = run(&[subject("a", &[Probe::Sampling])], 3, &trials, LONG);
        assert_eq!(reported.iter().filter(|(.., failed)| *failed).count(), 1);
    }

    #[test]
    fn slices_are_shorter_under_ptrace_and_longer_where_samples_are_taken() {
        let sizing = |probe| size_under(A_SLICE, probe, 1, Some(5.0));
        let slice = |slice_ns| Sizing::Slice { slice_ns, hint_ns: Some(5.0) };
        assert_eq!(sizing(None), slice(8_000_000));
        assert_eq!(sizing(Some(Probe::Ptrace)), slice(800_000));
        assert_eq!(sizing(Some(Probe::Sampling)), slice(128_000_000));
        let exact = Sizing::Iterations(9);
        assert_eq!(size_under(exact, Some(Probe::Sampling), 1, None), exact);
        assert_eq!(size_under(A_SLICE, Some(Probe::Sampling), 3, Some(5.0)), slice(64_000_000));
    }
}
