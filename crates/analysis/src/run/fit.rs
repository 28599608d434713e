//! The regression of a group of cases: what each takes at the reference state of the host, and what that is worth.
//!
//! log(time of a slice) = case + (slopes of the group + of the case) · readings + trial + noise. Slopes of cases, and trials, are random effects
//! (Pinheiro and Bates, *Mixed-Effects Models in S and S-PLUS*, 2); noise and trials have Student's distribution, whose
//! degrees of freedom are fitted, so that what was interrupted counts little (Lange, Little and Taylor 1989). Variances are found by
//! expectation and maximisation, and those of a case are drawn to those of its group as far as it has few slices.
//! Cases know of each other only through the slopes of the group, so that each step solves small systems.

use super::drift::{Drift, TrialInWindow};
use crate::stats;
use nalgebra::{SMatrix, SVector};
use std::collections::BTreeMap;

/// Of the client's CPU, of the server's, of their pair, and of waking.
pub(super) const READINGS: usize = 4;
/// A case's own effects: its level and its slopes.
const OWN: usize = 1 + READINGS;

type Readings = SVector<f64, READINGS>;
type Slopes = SMatrix<f64, READINGS, READINGS>;
type Own = SVector<f64, OWN>;
type OwnSquare = SMatrix<f64, OWN, OWN>;
type OwnShared = SMatrix<f64, OWN, READINGS>;

/// The most steps.
const STEPS: usize = 30;
/// When no level moves by more in a step, the next ones change nothing that is shown.
const LEAST_MOVE: f64 = 1e-4;
/// In the first of them noise has heavy tails, whatever it turns out to be: what readings explain is noise until the slopes are known.
const FIRST_STEPS: usize = 8;
/// The standard deviation of the slopes of groups, before anything was measured: around 0.
const SLOPE_PRIOR: f64 = 1.0;
/// What the slopes of cases deviate by from their group's, before anything was measured, and how many cases that is worth.
const CASE_SLOPE_PRIOR: f64 = 0.05;
const CASE_SLOPE_PRIOR_CASES: f64 = 10.0;
/// How many trials the variance of the group's is worth beside those of a case.
pub(super) const GROUP_WORTH: f64 = 10.0;
/// The degrees of freedom among which those of the noise are chosen.
const DEGREES: [f64; 6] = [2.0, 3.0, 4.0, 6.0, 10.0, 30.0];
/// Those of trials: of too few to be fitted.
const TRIAL_DEGREES: f64 = 8.0;
/// How much slower than in the reference state something was, as a logarithm: the upper ends of bins.
const DISTURBED: [f64; 4] = [0.02, 0.05, 0.1, 0.2];
const BINS: usize = DISTURBED.len() + 1;
/// How many slices of ordinary noise each bin has before anything was measured.
const BIN_WORTH: f64 = 20.0;
/// No noise is less: the clock's grain.
const LEAST_VARIANCE: f64 = 1e-8;

/// A slice as the regression takes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice {
    /// The trial, by its number among those of its case.
    trial: usize,
    /// The window of the run in which it began.
    window: usize,
    log_time: f64,
    /// What a case's own effects are multiplied by: 1, and the readings.
    row: Own,
    /// The bin of how much slower than in the reference state something was.
    bin: usize,
}

/// What was found of one case.
#[derive(Debug, Clone)]
pub(super) struct Effect {
    /// The logarithm of its time at the reference state.
    pub(super) level: f64,
    /// The variance of `level` that no other case shares.
    pub(super) own: f64,
    /// How `level` follows errors of the group's slopes.
    shared: Readings,
    /// Its slopes, with those of the group in them, and their variances.
    pub(super) slopes: [(f64, f64); READINGS],
    pub(super) trials: usize,
}

/// What was found of a group of cases.
#[derive(Debug, Clone)]
pub(super) struct GroupFit {
    /// In the order of the cases that were given.
    pub(super) effects: Vec<Effect>,
    /// The covariance of the group's slopes.
    slopes: Slopes,
    /// What moves all cases together.
    pub(super) drift: Drift,
}

impl GroupFit {
    /// The sum of the levels of cases, each times its share, with the variance of that.
    pub(super) fn contrast(&self, shares: &[(usize, f64)]) -> (f64, f64) {
        let mut follows = Readings::zeros();
        let (mut level, mut own) = (0.0, 0.0);
        for (at, share) in shares {
            let effect = &self.effects[*at];
            level += share * effect.level;
            own += share * share * effect.own;
            follows += effect.shared * *share;
        }
        (level, own + (follows.transpose() * self.slopes * follows)[0])
    }
}

/// What is known of a case while its group is fitted.
struct Case<'a> {
    slices: &'a [Slice],
    own: Own,
    /// The squared scale of the noise.
    noise: f64,
    /// The squared scale of its trials.
    trial_scale: f64,
    trials: Vec<Trial>,
    /// The weight of each slice: less than 1 for one that is off by much.
    weights: Vec<f64>,
    /// Its trials in each window that they have slices in, and which of these each slice is in.
    in_windows: Vec<(usize, usize)>,
    in_window_of: Vec<usize>,
    system: System,
}

/// A trial: what it is off by, the variance of that, and its weight.
#[derive(Clone, Copy)]
struct Trial {
    deviation: f64,
    variance: f64,
    weight: f64,
}

/// The normal equations of a case, solved for its own effects: own = `constant` − `follows` · slopes of the group.
#[derive(Clone)]
struct System {
    inverse: OwnSquare,
    constant: Own,
    follows: OwnShared,
}

/// What cases say of the slopes of their group.
struct SlopeEquations {
    matrix: Slopes,
    right: Readings,
}

/// The group's parameters.
struct Group {
    slopes: Readings,
    covariance: Slopes,
    /// The variance of a case's slopes around the group's.
    of_case: Readings,
    degrees: f64,
    /// What the variance of the noise is multiplied by, by how much slower than in the reference state something was.
    disturbed: [f64; BINS],
    drift: Drift,
}

/// Fits the slices of each case, in any order; every case has at least one.
pub(super) fn fit(cases: &[Vec<Slice>]) -> GroupFit {
    let mut cases: Vec<Case<'_>> = cases.iter().map(|slices| Case::begin(slices)).collect();
    let mut group = Group {
        slopes: Readings::zeros(),
        covariance: Slopes::identity() * SLOPE_PRIOR.powi(2),
        of_case: Readings::repeat(CASE_SLOPE_PRIOR.powi(2)),
        degrees: DEGREES[0],
        disturbed: [1.0; BINS],
        drift: Drift::default(),
    };
    for step in 0..STEPS {
        let before: Vec<f64> = cases.iter().map(|case| case.own[0]).collect();
        solve(&mut cases, &mut group, |case| case.weights.clone());
        let moved = cases.iter().zip(before).map(|(case, before)| (case.own[0] - before).abs());
        if step > FIRST_STEPS && moved.fold(0.0, f64::max) < LEAST_MOVE {
            break;
        }
        let residuals: Vec<Vec<f64>> = cases.iter_mut().map(|case| case.residuals(&group)).collect();
        if step >= FIRST_STEPS {
            group.degrees = fitted_degrees(&cases, &group, &residuals);
            update_drift(&cases, &mut group, &residuals);
        }
        update_scales(&mut cases, &mut group, &residuals);
        update_case_slopes(&cases, &mut group);
    }
    // The error is that which slices and trials of these distributions have on the average: weights that happened to be small say nothing
    // of it.
    let expected = |degrees: f64| (degrees + 1.0) / (degrees + 3.0);
    let of_slices = expected(group.degrees);
    let levels: Vec<Own> = cases.iter().map(|case| case.own).collect();
    for case in &mut cases {
        case.trials.iter_mut().for_each(|trial| trial.weight = expected(TRIAL_DEGREES));
    }
    solve(&mut cases, &mut group, |case| vec![of_slices; case.slices.len()]);
    let effects = cases.iter().zip(levels).map(|(case, own)| case.effect(&group, own)).collect();
    GroupFit { effects, slopes: group.covariance, drift: group.drift }
}

/// The effects of cases and the slopes of the group, given weights and variances.
fn solve(cases: &mut [Case<'_>], group: &mut Group, weights: impl Fn(&Case<'_>) -> Vec<f64>) {
    let mut equations =
        SlopeEquations { matrix: Slopes::identity() / SLOPE_PRIOR.powi(2), right: Readings::zeros() };
    for case in cases.iter_mut() {
        let weights = weights(case);
        case.system = case.equations(&weights, group, &mut equations);
    }
    group.covariance = equations.matrix.try_inverse().unwrap_or_else(Slopes::zeros);
    group.slopes = group.covariance * equations.right;
    for case in cases {
        case.own = case.system.constant - case.system.follows * group.slopes;
    }
}

impl<'a> Case<'a> {
    fn begin(slices: &'a [Slice]) -> Self {
        let logs: Vec<f64> = slices.iter().map(|slice| slice.log_time).collect();
        let mut own = Own::zeros();
        own[0] = stats::median(&logs).unwrap_or_default();
        let noise = stats::deviation_of_most(&logs).unwrap_or_default().powi(2).max(LEAST_VARIANCE);
        let trials = slices.iter().map(|slice| slice.trial + 1).max().unwrap_or_default();
        let trial = Trial { deviation: 0.0, variance: 0.0, weight: 1.0 };
        let system =
            System { inverse: OwnSquare::zeros(), constant: Own::zeros(), follows: OwnShared::zeros() };
        let mut numbers: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut in_windows = Vec::new();
        let number = |slice: &Slice| {
            *numbers.entry((slice.trial, slice.window)).or_insert_with(|| {
                in_windows.push((slice.trial, slice.window));
                in_windows.len() - 1
            })
        };
        let in_window_of = slices.iter().map(number).collect();
        Self {
            slices,
            own,
            noise,
            trial_scale: noise / 4.0,
            trials: vec![trial; trials],
            weights: vec![1.0; slices.len()],
            in_windows,
            in_window_of,
            system,
        }
    }

    /// The sums of a case's normal equations, of which trials have taken their part; adds what they say of the group's slopes.
    fn equations(&self, weights: &[f64], group: &Group, slopes: &mut SlopeEquations) -> System {
        let mut of_trials = vec![(OwnSquare::zeros(), Own::zeros()); self.trials.len()];
        for (slice, weight) in self.slices.iter().zip(weights) {
            let precision = weight / (self.noise * group.disturbed[slice.bin]);
            let (matrix, right) = &mut of_trials[slice.trial];
            matrix.ger(precision, &slice.row, &slice.row, 1.0);
            right.axpy((slice.log_time - group.drift.at(slice.window)) * precision, &slice.row, 1.0);
        }
        let (mut matrix, mut right) = (OwnSquare::zeros(), Own::zeros());
        for ((of_trial, of_right), trial) in of_trials.iter().zip(&self.trials) {
            let sums: Own = of_trial.column(0).into_owned();
            let scale = self.trial_scale / trial.weight;
            let taken = scale / (1.0 + scale * sums[0]);
            matrix += of_trial - sums * sums.transpose() * taken;
            right += of_right - sums * (taken * of_right[0]);
        }
        let shared: OwnShared = matrix.fixed_columns::<READINGS>(1).into_owned();
        let square: Slopes = matrix.fixed_view::<READINGS, READINGS>(1, 1).into_owned();
        let mut with_prior = matrix;
        for (at, variance) in group.of_case.iter().enumerate() {
            with_prior[(at + 1, at + 1)] += 1.0 / variance;
        }
        let inverse = with_prior.try_inverse().unwrap_or_else(OwnSquare::zeros);
        let (constant, follows) = (inverse * right, inverse * shared);
        slopes.matrix += square - shared.transpose() * follows;
        slopes.right += right.fixed_rows::<READINGS>(1) - shared.transpose() * constant;
        System { inverse, constant, follows }
    }

    /// What the effects leave of each slice. Takes what each trial is off by, and weighs both.
    fn residuals(&mut self, group: &Group) -> Vec<f64> {
        let expected = self.expected(group);
        let off = |slice: &Slice| slice.log_time - group.drift.at(slice.window) - slice.row.dot(&expected);
        let off: Vec<f64> = self.slices.iter().map(off).collect();
        let mut sums = vec![(0.0, 0.0); self.trials.len()];
        for ((slice, off), weight) in self.slices.iter().zip(&off).zip(&self.weights) {
            let (precision, sum) = &mut sums[slice.trial];
            let worth = weight / (self.noise * group.disturbed[slice.bin]);
            *precision += worth;
            *sum += off * worth;
        }
        for (trial, (precision, sum)) in self.trials.iter_mut().zip(sums) {
            let variance = 1.0 / (precision + trial.weight / self.trial_scale);
            // What the level may be off by, the trial is off by the other way.
            let of_level = (variance * precision).powi(2) * self.system.inverse[(0, 0)];
            *trial = Trial { deviation: variance * sum, variance: variance + of_level, weight: trial.weight };
            let square = trial.deviation.powi(2) / self.trial_scale;
            trial.weight = (TRIAL_DEGREES + 1.0) / (TRIAL_DEGREES + square);
        }
        let left: Vec<f64> = self
            .slices
            .iter()
            .zip(off)
            .map(|(slice, off)| off - self.trials[slice.trial].deviation)
            .collect();
        for ((weight, left), slice) in self.weights.iter_mut().zip(&left).zip(self.slices) {
            let noise = self.noise * group.disturbed[slice.bin];
            *weight = (group.degrees + 1.0) / (group.degrees + left * left / noise);
        }
        left
    }

    /// Its effects with the slopes of the group in them.
    fn expected(&self, group: &Group) -> Own {
        let mut expected = self.own;
        for at in 0..READINGS {
            expected[at + 1] += group.slopes[at];
        }
        expected
    }

    /// The sum of the squares of its noise, as far as its slices say.
    fn squares(&self, residuals: &[f64], group: &Group) -> [(f64, f64); BINS] {
        let mut bins = [(0.0, 0.0); BINS];
        for ((slice, left), weight) in self.slices.iter().zip(residuals).zip(&self.weights) {
            let (count, sum) = &mut bins[slice.bin];
            *count += 1.0;
            *sum += weight * (left * left + self.trials[slice.trial].variance) / group.disturbed[slice.bin];
        }
        bins
    }

    /// What each trial is off by in each window, with what moves the window still in it.
    fn trials_in_windows(&self, group: &Group, residuals: &[f64]) -> Vec<TrialInWindow> {
        let mut sums = vec![(0, 0.0, 0.0); self.in_windows.len()];
        for (at, (slice, left)) in self.slices.iter().zip(residuals).enumerate() {
            let off = left + self.trials[slice.trial].deviation + group.drift.at(slice.window);
            let worth = self.weights[at] / (self.noise * group.disturbed[slice.bin]);
            let (slices, sum, all) = &mut sums[self.in_window_of[at]];
            *slices += 1;
            *sum += off * worth;
            *all += worth;
        }
        let of_trial = |((trial, window), (slices, sum, worth)): (&(usize, usize), (usize, f64, f64))| {
            let own = self.trial_scale / self.trials[*trial].weight;
            TrialInWindow { window: *window, slices, deviation: sum / worth, variance: own + 1.0 / worth }
        };
        self.in_windows.iter().zip(sums).map(of_trial).collect()
    }

    fn trial_squares(&self) -> f64 {
        self.trials.iter().map(|trial| trial.weight * (trial.deviation.powi(2) + trial.variance)).sum()
    }

    fn effect(&self, group: &Group, own: Own) -> Effect {
        let shared: Readings = -self.system.follows.row(0).transpose();
        let slope = |at: usize| {
            let follows: Readings = Readings::ith(at, 1.0) - self.system.follows.row(at + 1).transpose();
            let of_group = (follows.transpose() * group.covariance * follows)[0];
            (own[at + 1] + group.slopes[at], self.system.inverse[(at + 1, at + 1)] + of_group)
        };
        Effect {
            level: own[0],
            own: self.system.inverse[(0, 0)],
            shared,
            slopes: std::array::from_fn(slope),
            trials: self.trials.len(),
        }
    }
}

impl Slice {
    /// One of those numbers of a trial and a window, with the logarithm of its time and those of the readings over those of the reference
    /// state, 0 where there is none.
    pub(super) fn new(trial: usize, window: usize, log_time: f64, readings: &[f64; READINGS]) -> Self {
        let slower = readings[..READINGS - 1].iter().copied().fold(0.0, f64::max);
        let bin = DISTURBED.iter().take_while(|end| slower > **end).count();
        let row = Own::from_iterator(std::iter::once(1.0).chain(readings.iter().copied()));
        Self { trial, window, log_time, row, bin }
    }
}

/// The degrees of freedom with which the residuals are likeliest.
fn fitted_degrees(cases: &[Case<'_>], group: &Group, residuals: &[Vec<f64>]) -> f64 {
    /// Of so many factors at once the logarithm is taken, which would take most of the time: none is above 1e12.
    const AT_ONCE: usize = 16;
    let squares: Vec<f64> = cases
        .iter()
        .zip(residuals)
        .flat_map(|(case, residuals)| {
            let noise = |slice: &Slice| case.noise * group.disturbed[slice.bin];
            residuals.iter().zip(case.slices).map(move |(left, slice)| left * left / noise(slice))
        })
        .collect();
    let likelihood = |degrees: f64| {
        use statrs::function::gamma::ln_gamma;
        let constant = ln_gamma(f64::midpoint(degrees, 1.0)) - ln_gamma(degrees / 2.0) - 0.5 * degrees.ln();
        let factor = |square: &f64| 1.0 + square / degrees;
        let sum: f64 =
            squares.chunks(AT_ONCE).map(|some| some.iter().map(factor).product::<f64>().ln()).sum();
        constant * squares.len() as f64 - f64::midpoint(degrees, 1.0) * sum
    };
    let likelihoods = DEGREES.map(|degrees| (degrees, likelihood(degrees)));
    likelihoods.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(4.0, |(degrees, _)| degrees)
}

/// What the noise of cases is drawn to (Smyth, *Linear models and empirical Bayes methods*, 2004).
struct NoisePrior {
    /// The middle of theirs, which one that is noisy does not move.
    scale: f64,
    /// How many slices that is worth: the more alike the cases are, the more.
    worth: f64,
}

impl NoisePrior {
    /// Of cases with so large a sum of squares of so many slices.
    fn from_cases(cases: &[(f64, f64)]) -> Self {
        /// Cases that are no less alike than chance makes them tell no more than that their number is bounded.
        const MOST: f64 = 100.0;
        let logs: Vec<f64> =
            cases.iter().map(|(sum, count)| (sum / count).max(LEAST_VARIANCE).ln()).collect();
        let scale = stats::median(&logs).unwrap_or_default().exp();
        // The logarithm of a mean of n squares varies by trigamma(n / 2), nearly 2 / n.
        let by_chance: Vec<f64> = cases.iter().map(|(_, count)| 2.0 / count).collect();
        let beyond =
            if cases.len() > 2 { stats::deviation(&logs).powi(2) - stats::mean(&by_chance) } else { 0.0 };
        // trigamma(x) is nearly 1/x + 1/(2x²); it is that of half of the worth.
        let half = (1.0 + (1.0 + 2.0 * beyond.max(0.0)).sqrt()) / (2.0 * beyond.max(f64::MIN_POSITIVE));
        Self { scale, worth: (2.0 * half).min(MOST) }
    }
}

/// The scales of noise and trials of each case, drawn to those of the group.
fn update_scales(cases: &mut [Case<'_>], group: &mut Group, residuals: &[Vec<f64>]) {
    let bins: Vec<[(f64, f64); BINS]> =
        cases.iter().zip(residuals).map(|(case, left)| case.squares(left, group)).collect();
    let squares: Vec<(f64, f64)> = cases
        .iter()
        .zip(&bins)
        .map(|(case, bins)| (bins.iter().map(|(_, sum)| sum).sum(), case.trial_squares()))
        .collect();
    let noises = cases.iter().zip(&squares).map(|(case, (noise, _))| (*noise, case.slices.len() as f64));
    let noise = NoisePrior::from_cases(&noises.collect::<Vec<_>>());
    let trials: usize = cases.iter().map(|case| case.trials.len()).sum();
    let trial_scale = squares.iter().map(|(_, of_trials)| of_trials).sum::<f64>() / trials as f64;
    let mut of_bin = [0.0; BINS];
    for (at, of_bin) in of_bin.iter_mut().enumerate() {
        let (mut count, mut sum) = (BIN_WORTH, BIN_WORTH);
        for (case, bins) in cases.iter().zip(&bins) {
            count += bins[at].0;
            sum += bins[at].1 / case.noise;
        }
        *of_bin = group.disturbed[at] * sum / count;
    }
    // What slices in the reference state have is the noise of the case.
    group.disturbed = of_bin.map(|factor| factor / of_bin[0]);
    for (case, (of_slices, of_trials)) in cases.iter_mut().zip(squares) {
        let (slices, trials) = (case.slices.len() as f64, case.trials.len() as f64);
        case.noise = ((of_slices + noise.worth * noise.scale) / (slices + noise.worth)).max(LEAST_VARIANCE);
        case.trial_scale =
            ((of_trials + GROUP_WORTH * trial_scale) / (trials + GROUP_WORTH)).max(LEAST_VARIANCE);
    }
}

/// What moves all cases together.
fn update_drift(cases: &[Case<'_>], group: &mut Group, residuals: &[Vec<f64>]) {
    let trials: Vec<TrialInWindow> = cases
        .iter()
        .zip(residuals)
        .flat_map(|(case, residuals)| case.trials_in_windows(group, residuals))
        .collect();
    group.drift.update(trials.into_iter(), cases.len());
}

/// What the slopes of cases deviate by from those of the group.
fn update_case_slopes(cases: &[Case<'_>], group: &mut Group) {
    for at in 0..READINGS {
        let of_case = |case: &Case<'_>| {
            let follows: Readings = case.system.follows.row(at + 1).transpose();
            let of_group = (follows.transpose() * group.covariance * follows)[0];
            case.own[at + 1].powi(2) + case.system.inverse[(at + 1, at + 1)] + of_group
        };
        let prior = CASE_SLOPE_PRIOR_CASES * CASE_SLOPE_PRIOR.powi(2);
        let sum: f64 = cases.iter().map(of_case).sum();
        group.of_case[at] = (sum + prior) / (cases.len() as f64 + CASE_SLOPE_PRIOR_CASES);
    }
}
