//! Two cases compared: both have a trial alive at the same time, and each round measures slices A B B A, or B A A B, so that what
//! drifts over the round cancels. Trials are renewed over the whole comparison.
//!
//! It makes samples. Whether their ratio is known well enough is for a rule to say that it is given: nothing here computes a
//! statistic.

use super::schedule::{Scheduler, Stop, TimeBudget, Trial, TrialProgress, Trials};
use crate::protocol::orders::{Singly, Sizing, SliceOrders};
use model::Case;
use model::elsewhere::Elsewhere;
use model::record::{Sample, Setting};
use std::time::Duration;

/// How many rounds the trials of a pair have, before fresh ones take their place.
const ROUNDS_OF_TRIALS: u32 = 16;

/// Two cases to compare.
#[derive(Debug)]
pub struct CasePair {
    /// What is compared against, and what is judged.
    pub cases: [Case; 2],
    /// What was measured of each: two samples a round, with the number of their pair of trials.
    pub samples: [Vec<Sample>; 2],
    /// Why there is no more.
    pub failure: Option<String>,
    /// The slices that did not run on the CPUs of the placement; their rounds do not count.
    pub elsewhere: Elsewhere,
    /// What the endpoints of each asked the kernel for, and got.
    pub settings: [Vec<Setting>; 2],
    hints_ns: [Option<f64>; 2],
}

impl CasePair {
    /// Two cases of which nothing was measured yet.
    pub fn new(a: Case, b: Case) -> Self {
        Self {
            cases: [a, b],
            samples: [Vec::new(), Vec::new()],
            failure: None,
            elsewhere: Elsewhere::default(),
            settings: [Vec::new(), Vec::new()],
            hints_ns: [None; 2],
        }
    }
}

/// Whether the ratio of two cases is known well enough, from what was measured of both.
pub type RatioSettledRule<'a> = &'a dyn Fn(&CasePair) -> bool;

/// Measures `pairs`, interleaved, until `settled` says of each ratio that it is known, or time is up, or it is interrupted. The
/// trials of the first of each pair come from `trials[0]`, those of the second from `trials[1]`.
pub fn measure<'a>(
    pairs: &'a mut [CasePair],
    trials: [&'a dyn Trials; 2],
    budget: TimeBudget<'a>,
    slice: Duration,
    settled: RatioSettledRule<'a>,
    report: impl FnMut(TrialProgress),
) {
    let slice_ns = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    let scheduler = Scheduler::new(budget);
    let tracks = pairs.iter_mut().map(|pair| Track { pair, live: None, rounds: 0 }).collect();
    let mut comparison = Comparison { scheduler, trials, tracks, slice_ns, settled, done: 0, report };
    // To stop early is no error: what was measured by then is the result.
    let _ = comparison.rounds();
}

/// A pair on its way.
struct Track<'a> {
    pair: &'a mut CasePair,
    live: Option<[Box<dyn Trial + 'a>; 2]>,
    rounds: u32,
}

/// What came of one side: a result, or which side failed, and why.
type SideOutcome<T> = Result<T, (usize, String)>;

/// A comparison under way.
struct Comparison<'a, F> {
    scheduler: Scheduler<'a>,
    trials: [&'a dyn Trials; 2],
    tracks: Vec<Track<'a>>,
    slice_ns: u64,
    settled: RatioSettledRule<'a>,
    /// How many pairs had ended when the round began.
    done: usize,
    report: F,
}

impl<F: FnMut(TrialProgress)> Comparison<'_, F> {
    fn rounds(&mut self) -> Result<(), Stop> {
        loop {
            let open: Vec<usize> = (0..self.tracks.len()).filter(|&at| self.is_open(at)).collect();
            if open.is_empty() {
                return Ok(());
            }
            self.done = self.tracks.len() - open.len();
            // Where not all can stay alive, each pair has all rounds of its trials in a row.
            let stay_alive = 2 * open.len() <= self.trials[0].most_alive();
            let (together, rounds) = if stay_alive { (open.len(), 1) } else { (1, ROUNDS_OF_TRIALS) };
            for pairs in open.chunks(together) {
                self.rounds_of_pairs(pairs, rounds)?;
            }
        }
    }

    /// So many rounds of `pairs`. Trials are started before all of them and ended after all of them.
    fn rounds_of_pairs(&mut self, pairs: &[usize], rounds: u32) -> Result<(), Stop> {
        for &at in pairs {
            if self.tracks[at].live.is_none() {
                let started = self.start(at)?;
                self.note(at, started);
            }
        }
        self.scheduler.wait_out_disturbance(self.trials[0]);
        for _ in 0..rounds {
            for &at in pairs {
                let measured = self.slices(at)?;
                self.note(at, measured);
            }
        }
        for &at in pairs {
            if self.tracks[at].rounds.is_multiple_of(ROUNDS_OF_TRIALS) {
                let ended = self.end(at)?;
                self.note(at, ended);
            }
        }
        Ok(())
    }

    /// Whether the ratio at `at` is not known yet. That is asked when fresh trials are due.
    fn is_open(&mut self, at: usize) -> bool {
        let Track { pair, live, .. } = &self.tracks[at];
        pair.failure.is_none() && (live.is_some() || !(self.settled)(pair))
    }

    /// What fails ends its pair.
    fn note(&mut self, at: usize, outcome: SideOutcome<()>) {
        if let Err((which, error)) = outcome {
            let Track { pair, live, .. } = &mut self.tracks[at];
            pair.failure = Some(format!("{}: {error}", pair.cases[which]));
            *live = None;
        }
    }

    /// One round of one pair, of which both trials are alive: four slices; or which side failed, and why.
    fn slices(&mut self, at: usize) -> Result<SideOutcome<()>, Stop> {
        let round = self.tracks[at].rounds;
        let order = if round.is_multiple_of(2) { [0, 1, 1, 0] } else { [1, 0, 0, 1] };
        let mut samples = [Vec::new(), Vec::new()];
        for which in order {
            let Track { pair, live, .. } = &mut self.tracks[at];
            let Some(live) = live else { return Ok(Ok(())) };
            self.scheduler.check_time()?;
            let size = Sizing::Slice { slice_ns: self.slice_ns, hint_ns: pair.hints_ns[which] };
            let orders = SliceOrders { size, singly: Singly::Omitted };
            let started = self.scheduler.elapsed();
            let report = match self.scheduler.slice_anywhere(self.trials[which], &mut *live[which], orders)? {
                Ok(report) => report,
                Err(error) => return Ok(Err((which, error))),
            };
            if let Some(cpu) = report.elsewhere {
                pair.elsewhere.note(cpu);
                return self.renew(at);
            }
            pair.hints_ns[which] = Some(report.sample.iteration_ns());
            pair.settings[which] = report.settings;
            let started_ns = u64::try_from(started.as_nanos()).unwrap_or(u64::MAX);
            let trial = round / ROUNDS_OF_TRIALS;
            samples[which].push(Sample { trial, round, started_ns, ..report.sample });
            (self.report)(self.scheduler.progress(Some(round), self.done, self.tracks.len()));
        }
        // A round counts as a whole or not at all.
        let Track { pair, rounds, .. } = &mut self.tracks[at];
        pair.samples.iter_mut().zip(samples).for_each(|(all, of_round)| all.extend(of_round));
        *rounds += 1;
        Ok(Ok(()))
    }

    /// Has the pair at `at` go on with fresh trials, which have a number of their own: those that there are were moved.
    fn renew(&mut self, at: usize) -> Result<SideOutcome<()>, Stop> {
        let rounds = &mut self.tracks[at].rounds;
        *rounds = (*rounds + 1).next_multiple_of(ROUNDS_OF_TRIALS);
        self.end(at)
    }

    /// Ends the trials of the pair at `at`, if they are alive.
    fn end(&mut self, at: usize) -> Result<SideOutcome<()>, Stop> {
        let live = self.tracks[at].live.take();
        for (which, trial) in live.into_iter().flatten().enumerate() {
            if let Err(error) = self.scheduler.end(trial)? {
                return Ok(Err((which, error)));
            }
        }
        Ok(Ok(()))
    }
}

impl<'a, F: FnMut(TrialProgress)> Comparison<'a, F> {
    /// Starts a trial of each side, in an order that chance decides: the kernel gives whoever starts first the memory that was freed
    /// last, so that a side that always did would have the same memory in all its trials.
    fn start(&mut self, at: usize) -> Result<SideOutcome<()>, Stop> {
        self.scheduler.check_time()?;
        let mut start = |which: usize| -> Result<SideOutcome<Box<dyn Trial + 'a>>, Stop> {
            let case = &self.tracks[at].pair.cases[which];
            let trial = self.scheduler.start(self.trials[which], case, None)?;
            Ok(trial.map_err(|error| (which, error)))
        };
        let first = usize::from(rand::random::<bool>());
        let live = match start(first)? {
            Err(failure) => Err(failure),
            Ok(one) => start(1 - first)?.map(|other| if first == 0 { [one, other] } else { [other, one] }),
        };
        Ok(live.map(|live| self.tracks[at].live = Some(live)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake_trials::{FakeTrials, LONG, SLICE_TIME, case, failure};
    use super::super::trial_error::TrialError;
    use super::*;

    fn same(_: usize, _: &str) -> Result<f64, TrialError> {
        Ok(100.0)
    }

    fn run(
        pairs: &mut [CasePair],
        trials: &FakeTrials<'_>,
        time: Duration,
        settled: RatioSettledRule<'_>,
    ) -> Vec<TrialProgress> {
        let mut progress = Vec::new();
        let slice = Duration::from_millis(1);
        measure(pairs, [trials, trials], trials.budget(time), slice, settled, |reached| {
            progress.push(reached);
        });
        progress
    }

    fn pair(a: &str, b: &str) -> CasePair {
        CasePair::new(case(a), case(b))
    }

    /// The cases of the trials in the order in which they were started, but for the two of a pair, whose order chance decides.
    fn started_in_pairs(trials: &FakeTrials<'_>) -> Vec<String> {
        let mut started = trials.started.borrow().clone();
        started.chunks_mut(2).for_each(<[String]>::sort);
        started
    }

    fn rounds(samples: &[Sample]) -> Vec<u32> {
        samples.iter().map(|sample| sample.round).collect()
    }

    #[test]
    fn rounds_go_a_b_b_a_and_b_a_a_b() {
        let trials = FakeTrials::new(&same);
        let mut pairs = [pair("a", "b")];
        run(&mut pairs, &trials, 8 * SLICE_TIME, &|_| false);
        assert_eq!(trials.order(), "a b b a b a a b");
        assert_eq!(rounds(&pairs[0].samples[0]), [0, 0, 1, 1]);
        assert_eq!(rounds(&pairs[0].samples[1]), [0, 0, 1, 1]);
    }

    #[test]
    fn both_sides_are_alive_at_once_and_trials_are_renewed() {
        let trials = FakeTrials::new(&same);
        let mut pairs = [pair("a", "b")];
        run(&mut pairs, &trials, LONG, &|pair| pair.samples[0].len() as u32 >= 2 * 3 * ROUNDS_OF_TRIALS);
        assert_eq!(started_in_pairs(&trials), ["a", "b"].repeat(3));
        assert_eq!(trials.most_were_alive.get(), 2);
        for samples in &pairs[0].samples {
            let numbers: Vec<u32> = samples.iter().map(|sample| sample.trial).collect();
            let slices_of = |trial: u32| numbers.iter().filter(|number| **number == trial).count() as u32;
            assert_eq!([slices_of(0), slices_of(1), slices_of(2)], [2 * ROUNDS_OF_TRIALS; 3]);
        }
    }

    #[test]
    fn trials_of_all_pairs_are_renewed_at_the_same_time_and_disturb_once() {
        let trials = FakeTrials::new(&same);
        let mut pairs = [pair("a", "b"), pair("c", "d")];
        run(&mut pairs, &trials, LONG, &|pair| pair.samples[0].len() as u32 >= 2 * 2 * ROUNDS_OF_TRIALS);
        assert_eq!(*trials.waited_after.borrow(), [0, 2 * 4 * ROUNDS_OF_TRIALS as usize]);
    }

    #[test]
    fn pairs_alternate_where_all_can_stay_alive_and_else_follow_each_other() {
        let slices = 8 * ROUNDS_OF_TRIALS as usize;
        let trials = FakeTrials::new(&same);
        run(&mut [pair("a", "b"), pair("c", "d")], &trials, 8 * SLICE_TIME, &|_| false);
        assert_eq!(trials.order(), "a b b a c d d c");
        let trials = FakeTrials::new(&same).with_most_alive(3);
        run(&mut [pair("a", "b"), pair("c", "d")], &trials, slices as u32 * SLICE_TIME, &|_| false);
        assert_eq!((trials.most_were_alive.get(), trials.count()), (2, slices));
        assert_eq!(started_in_pairs(&trials), ["a", "b", "c", "d"]);
    }

    #[test]
    fn each_side_has_trials_of_its_own_source() {
        let (before, after) = (FakeTrials::new(&same), FakeTrials::new(&same));
        let mut pairs = [pair("a", "b")];
        // The clock is that of the first, which has two slices of each round.
        let budget = before.budget(4 * SLICE_TIME);
        measure(&mut pairs, [&before, &after], budget, Duration::from_millis(1), &|_| false, |_| {});
        assert_eq!((before.order().as_str(), after.order().as_str()), ("a a a a", "b b b"));
    }

    #[test]
    fn a_pair_whose_ratio_is_known_leaves_and_the_others_go_on() {
        let trials = FakeTrials::new(&|_, name| Ok(if name == "a" { 1.0 } else { 2.0 }));
        let mut pairs = [pair("a", "b"), pair("c", "d")];
        let most = 2 * ROUNDS_OF_TRIALS as usize;
        let rule = |pair: &CasePair| {
            let a = &pair.samples[0];
            a.len()
                >= if a.first().is_some_and(|sample| sample.iteration_ns() == 1.0) { most } else { 3 * most }
        };
        let progress = run(&mut pairs, &trials, LONG, &rule);
        assert_eq!((pairs[0].samples[0].len(), pairs[1].samples[0].len()), (most, 3 * most));
        let last = progress.last().unwrap();
        assert_eq!((last.round, last.done, last.of), (Some(3 * ROUNDS_OF_TRIALS - 1), 1, 2));
    }

    #[test]
    fn pairs_of_which_all_is_known_need_no_trial() {
        let trials = FakeTrials::new(&same);
        run(&mut [pair("a", "b")], &trials, LONG, &|_| true);
        run(&mut [], &trials, LONG, &|_| false);
        assert_eq!(trials.count(), 0);
    }

    #[test]
    fn a_failure_ends_its_pair_alone_and_names_the_case() {
        let fails = |before, name: &str| {
            if name == "b" && before > 7 { Err(failure("it broke")) } else { Ok(1.0) }
        };
        let trials = FakeTrials::new(&fails);
        let mut pairs = [pair("a", "b"), pair("c", "d")];
        run(&mut pairs, &trials, LONG, &|pair| pair.samples[0].len() >= 2);
        let why = pairs[0].failure.as_deref().unwrap();
        assert!(why.starts_with("b ") && why.contains("it broke"), "{why}");
        // The round that failed has no samples.
        assert_eq!((pairs[0].samples[0].len(), pairs[0].samples[1].len()), (2, 2));
        assert_eq!(
            (pairs[1].failure.as_deref(), pairs[1].samples[1].len() as u32),
            (None, 2 * ROUNDS_OF_TRIALS)
        );
    }

    #[test]
    fn a_round_of_which_a_slice_ran_elsewhere_does_not_count_and_the_trials_are_renewed() {
        let strays =
            |before, _: &str| if before == 5 { Err(TrialError::Elsewhere { cpu: 7 }) } else { Ok(1.0) };
        let trials = FakeTrials::new(&strays);
        let mut pairs = [pair("a", "b")];
        run(&mut pairs, &trials, 14 * SLICE_TIME, &|_| false);
        assert_eq!((pairs[0].elsewhere.slices, &pairs[0].failure), (1, &None));
        // One round before it, two of fresh trials after it, which are told from those before.
        for samples in &pairs[0].samples {
            assert_eq!(samples.iter().map(|sample| sample.trial).collect::<Vec<_>>(), [0, 0, 1, 1, 1, 1]);
        }
        assert_eq!(trials.started.borrow().len(), 4);
    }

    #[test]
    fn time_that_runs_out_leaves_the_rounds_that_were_measured_whole() {
        for slices_that_fit in 0..10 {
            let trials = FakeTrials::new(&same);
            let mut pairs = [pair("a", "b")];
            run(&mut pairs, &trials, SLICE_TIME * slices_that_fit, &|_| false);
            assert_eq!(trials.count(), slices_that_fit as usize);
            let samples = pairs[0].samples.each_ref().map(|samples| samples.len() as u32);
            assert_eq!(samples, [slices_that_fit / 4 * 2; 2]);
            assert!(pairs[0].failure.is_none());
        }
    }

    #[test]
    fn an_interruption_at_any_point_leaves_the_rounds_that_were_measured_whole() {
        for interrupted_at in 0..10 {
            let answer = move |before, _: &str| {
                if before == interrupted_at { Err(TrialError::Interrupted) } else { Ok(1.0) }
            };
            let between = FakeTrials::new(&same).interrupted_after(interrupted_at);
            for trials in [between, FakeTrials::new(&answer)] {
                let mut pairs = [pair("a", "b")];
                run(&mut pairs, &trials, LONG, &|_| false);
                let samples = pairs[0].samples.each_ref().map(Vec::len);
                assert_eq!((samples, &pairs[0].failure), ([interrupted_at / 4 * 2; 2], &None));
            }
        }
    }
}
