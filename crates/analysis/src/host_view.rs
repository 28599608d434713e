//! What a case takes on a host that changes its speed: in slices at full speed, in all slices reduced to full speed, and in all
//! slices as they were measured; and which of the three is shown.
//!
//! What one interval is worth is in `interval`; what a reading says in `host_speed`.

use crate::host_speed::{FullSpeed, SliceSpeed, Slowness};
use crate::interval::{
    median_over_trials, median_over_trials_of_a_host_at_rest, median_time_over_trials, widened,
};
use crate::slope::{FittedSlope, TimedReading, fit_slope};
use crate::stats;
use model::Case;
use model::estimate::Estimate;
use model::record::Sample;
use model::summary::{HostView, SpeedSummary};
use std::collections::HashMap;

/// With fewer undisturbed slices the view is not shown first, though it may have an interval.
pub const FEWEST_UNDISTURBED: usize = 20;
/// With a smaller share of undisturbed slices all slices are shown as they were measured. (On hosts that were always disturbed, 0 to 5% of slices
/// seemed undisturbed; the slopes of twelve runs went from 0 to 1.1. Times as found varied by 1% from run to run, undisturbed ones by
/// 3%, adjusted ones by 4%. With 15 to 40% undisturbed, times on one CPU as found varied by 1.0 to 1.2%, undisturbed ones by 1.5 to 1.7%.)
const LEAST_SHARE: f64 = 0.5;
/// What times drift by from minute to minute, as a share of what readings vary by, where no floor says it.
pub(crate) const DRIFT_ON_ONE_CPU: f64 = 0.25;
/// The same where two CPUs have a part in an iteration.
pub(crate) const DRIFT_ON_TWO_CPUS: f64 = 0.6;
/// Half the width of a 95% interval, in standard deviations.
const NORMAL: f64 = 1.96;
/// Speeds that differ by less than this, as a fraction, are the same: the clock's grain.
const LEAST_CHANGE: f64 = 0.002;

/// Slices of a case in the order of time, each with what its time is multiplied by.
#[derive(Debug, Clone)]
pub struct ChosenSlices<'a> {
    /// The slices of each trial.
    trials: Vec<Vec<(&'a Sample, f64)>>,
    drift: HostDrift,
}

/// What the host moves by from minute to minute: half the width of the interval that this has by itself, on logarithms.
#[derive(Debug, Clone, Copy)]
enum HostDrift {
    /// As the floor of the case moved within the run.
    OfFloor(f64),
    /// No floor says it: a share of what the readings vary by, beside what the case itself shows.
    OfReadings(f64),
}

impl<'a> ChosenSlices<'a> {
    fn of(slices: impl IntoIterator<Item = (&'a Sample, f64)>, drift: HostDrift) -> Self {
        let slices = slices.into_iter().map(|(sample, factor)| (sample, (sample, factor)));
        Self { trials: by_trial(slices.collect()), drift }
    }

    /// The samples.
    pub fn samples(&self) -> impl Iterator<Item = &'a Sample> {
        self.trials.iter().flatten().map(|(sample, _)| *sample)
    }

    /// The median with its interval of the times in nanoseconds that `time_ns` takes of samples, reduced to full speed where
    /// the slices are.
    pub fn median_time(&self, time_ns: impl Fn(&Sample) -> Option<f64>) -> Option<Estimate> {
        let times = self.values(|sample, factor| Some(time_ns(sample)? * factor));
        match self.drift {
            HostDrift::OfFloor(half) => Some(widened(median_over_trials_of_a_host_at_rest(&times)?, half)),
            HostDrift::OfReadings(half) => Some(widened(median_time_over_trials(&times)?, half)),
        }
    }

    /// The median with its interval of the ratios that `ratio` takes of samples. It is that of their logarithms: of an even number
    /// of slices the middle between 1/2 and 2 is 1.
    pub fn median_ratio(&self, ratio: impl Fn(&Sample) -> Option<f64>) -> Option<Estimate> {
        let logs = self.values(|sample, _| Some(ratio(sample)?.ln()).filter(|log| log.is_finite()));
        median_over_trials(&logs).map(|logs| logs.map(f64::exp))
    }

    fn values(&self, value: impl Fn(&Sample, f64) -> Option<f64>) -> Vec<Vec<f64>> {
        let of_trial = |trial: &Vec<(&Sample, f64)>| {
            trial.iter().filter_map(|(sample, factor)| value(sample, *factor)).collect()
        };
        self.trials.iter().map(of_trial).collect()
    }
}

/// The slices of a case that are shown first, and what the speed readings beside all slices say.
#[derive(Debug, Clone)]
pub struct HostViews<'a> {
    /// The slices that are shown first.
    pub chosen: ChosenSlices<'a>,
    /// Nanoseconds per iteration of those slices.
    pub iteration_ns: Estimate,
    /// The three estimates; absent where no readings were taken or none changed.
    pub speed: Option<SpeedSummary>,
}

impl<'a> HostViews<'a> {
    /// Of `samples` of `case`, in a run that was as fast as `full_speed`; `None` without samples.
    pub fn of(case: &Case, samples: &'a [Sample], full_speed: &FullSpeed) -> Option<Self> {
        let sleeps = samples.iter().any(|sample| sample.wake_floor_ns.is_some());
        let wander = full_speed.wander(case, sleeps);
        let speeds = speeds(case, samples, full_speed);
        let of_floor = wander
            .map(|wander| HostDrift::OfFloor(NORMAL * wander.max(least_drift(speeds.iter().flatten()))));
        let drift = |chosen: &dyn Fn(&&SliceSpeed) -> bool| {
            let of_readings = || drift_of(case, speeds.iter().flatten().filter(chosen));
            of_floor.unwrap_or_else(|| HostDrift::OfReadings(of_readings()))
        };
        let as_found = ChosenSlices::of(samples.iter().map(|sample| (sample, 1.0)), drift(&|_| true));
        let as_found_ns = as_found.median_time(iteration_ns)?;
        let Some(speeds) = &speeds else {
            return Some(Self { chosen: as_found, iteration_ns: as_found_ns, speed: None });
        };
        let with_speeds = || samples.iter().zip(speeds);
        let is_undisturbed = |slice: &&SliceSpeed| slice.undisturbed;
        let undisturbed = ChosenSlices::of(
            with_speeds().filter(|(_, speed)| is_undisturbed(speed)).map(|(sample, _)| (sample, 1.0)),
            drift(&is_undisturbed),
        );
        let undisturbed_ns = undisturbed.median_time(iteration_ns);
        let adjustment = Adjustment::of(samples, speeds);
        let adjusted = adjustment.as_ref().map(|adjustment| {
            ChosenSlices::of(
                with_speeds().map(|(sample, speed)| (sample, adjustment.factor(speed))),
                as_found.drift,
            )
        });
        let adjusted_ns = adjusted.as_ref().zip(adjustment.as_ref()).and_then(|(slices, adjustment)| {
            Some(widened(slices.median_time(iteration_ns)?, adjustment.error()))
        });
        let is_known = |estimate: Option<Estimate>| estimate.is_some_and(|e| e.interval.is_some());
        let count = undisturbed.samples().count();
        let undisturbed_share = count as f64 / samples.len() as f64;
        // A run that was hardly ever at full speed does not know it: the few readings near it are those that were short by
        // chance, and the slope to it leads beyond what was measured.
        let knows_full_speed = undisturbed_share >= LEAST_SHARE;
        let (shown, chosen, iteration_ns) = match (undisturbed_ns, adjusted, adjusted_ns) {
            _ if !knows_full_speed => (HostView::AsFound, as_found, as_found_ns),
            (Some(ns), ..) if is_known(undisturbed_ns) && count >= FEWEST_UNDISTURBED => {
                (HostView::Undisturbed, undisturbed, ns)
            }
            (_, Some(slices), Some(ns)) if is_known(adjusted_ns) => (HostView::Adjusted, slices, ns),
            _ => (HostView::AsFound, as_found, as_found_ns),
        };
        let speed = SpeedSummary {
            shown,
            undisturbed: undisturbed_ns,
            adjusted: adjusted_ns,
            as_found: Some(as_found_ns),
            undisturbed_share,
            median_speed: stats::median(&speeds.iter().map(|slice| slice.speed).collect::<Vec<_>>())?,
            slope: adjustment.as_ref().and_then(|a| a.cpus).map(Into::into),
            pair_slope: adjustment.as_ref().and_then(|a| a.pair).map(Into::into),
        };
        Some(Self { chosen, iteration_ns, speed: Some(speed) })
    }
}

fn iteration_ns(sample: &Sample) -> Option<f64> {
    Some(sample.iteration_ns())
}

/// The speed beside each sample; `None` where one of them has no readings, or where none differ.
fn speeds(case: &Case, samples: &[Sample], full_speed: &FullSpeed) -> Option<Vec<SliceSpeed>> {
    let speeds: Option<Vec<SliceSpeed>> =
        samples.iter().map(|sample| full_speed.beside(case, sample)).collect();
    let differ = |slice: &SliceSpeed| (slice.speed - 1.0).abs() > LEAST_CHANGE;
    speeds.filter(|speeds| speeds.iter().any(differ))
}

/// What reduces times to full speed.
struct Adjustment {
    cpus: Option<FittedSlope>,
    pair: Option<FittedSlope>,
}

impl Adjustment {
    /// Of slices that were timed at such speeds; `None` where neither reading allows a slope.
    fn of(samples: &[Sample], speeds: &[SliceSpeed]) -> Option<Self> {
        /// Each slope is fitted to what the other leaves, in turn, until neither moves.
        const ROUNDS: usize = 4;
        let has_pair = speeds.iter().any(|slice| slice.pair != Slowness::NONE);
        let mut both = Self { cpus: None, pair: None };
        for _ in 0..if has_pair { ROUNDS } else { 1 } {
            both.cpus = fit(samples, speeds, |slice| slice.cpus, |slice| log_factor(both.pair, slice.pair));
            both.pair = fit(samples, speeds, |slice| slice.pair, |slice| log_factor(both.cpus, slice.cpus));
        }
        (both.cpus.is_some() || both.pair.is_some()).then_some(both)
    }

    /// What a time at such a speed is multiplied by.
    fn factor(&self, speed: &SliceSpeed) -> f64 {
        (log_factor(self.cpus, speed.cpus) + log_factor(self.pair, speed.pair)).exp()
    }

    /// What the slopes' errors add to the interval of adjusted times, on logarithms.
    fn error(&self) -> f64 {
        let error = |slope: Option<FittedSlope>| slope.map_or(0.0, |slope| slope.half * slope.mean_log);
        error(self.cpus).hypot(error(self.pair))
    }
}

/// What a host with neighbours moves by from minute to minute at the least, however quiet it was for this one: a standard deviation on
/// logarithms, as `compare` assumes it between two runs. Readings that hardly vary are of a host that is not shared.
fn least_drift<'a>(speeds: impl Iterator<Item = &'a SliceSpeed>) -> f64 {
    const SHARED: f64 = 0.01;
    const OF_READINGS: f64 = 0.5;
    (OF_READINGS * varied(speeds)).min(SHARED)
}

/// What the readings beside slices vary by.
fn varied<'a>(speeds: impl Iterator<Item = &'a SliceSpeed>) -> f64 {
    let logs: Vec<f64> = speeds.map(|slice| slice.cpus.log).collect();
    stats::deviation_of_most(&logs).unwrap_or(0.0)
}

/// What the host moves by from minute to minute, where no floor says it: half the width of the interval that this has by itself, on logarithms.
/// Its standard deviation is a share of that of the readings beside slices (docs/method.md has the experiments): where two CPUs wake each
/// other, the hypervisor has a part in each iteration, and the share is larger. Where readings do not vary, nobody else is on the
/// host, and it is nothing.
fn drift_of<'a>(case: &Case, speeds: impl Iterator<Item = &'a SliceSpeed>) -> f64 {
    let share = if case.uses_two_cpus() { DRIFT_ON_TWO_CPUS } else { DRIFT_ON_ONE_CPU };
    NORMAL * share * varied(speeds)
}

/// The slope of times, each multiplied by what `known` is the logarithm of.
fn fit(
    samples: &[Sample],
    speeds: &[SliceSpeed],
    reading: impl Fn(&SliceSpeed) -> Slowness,
    known: impl Fn(&SliceSpeed) -> f64,
) -> Option<FittedSlope> {
    let slices: Vec<(&Sample, TimedReading)> = samples
        .iter()
        .zip(speeds)
        .map(|(sample, speed)| {
            let Slowness { log, half_difference } = reading(speed);
            (
                sample,
                TimedReading { log_time: sample.iteration_ns().ln() + known(speed), log, half_difference },
            )
        })
        .collect();
    fit_slope(&by_trial(slices))
}

fn log_factor(slope: Option<FittedSlope>, reading: Slowness) -> f64 {
    -slope.map_or(0.0, |slope| slope.slope * reading.log)
}

/// What goes with each sample, by trial, in the order of time.
fn by_trial<T>(mut slices: Vec<(&Sample, T)>) -> Vec<Vec<T>> {
    slices.sort_by_key(|(sample, _)| (sample.started_ns, sample.trial, sample.round));
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut trials: Vec<Vec<T>> = Vec::new();
    for (sample, value) in slices {
        let place = *places.entry(sample.trial).or_insert(trials.len());
        if place == trials.len() {
            trials.push(Vec::new());
        }
        trials[place].push(value);
    }
    trials
}
