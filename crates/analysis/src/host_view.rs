//! What a case takes on a host that changes its speed: in slices at full speed, in all slices reduced to full speed, and in all
//! slices as they were measured; and which of the three is shown.
//!
//! What one interval is worth is in `interval`; what a reading says in `host_speed`.

use crate::host_speed::{FullSpeed, SliceSpeed};
use crate::interval::median_over_trials;
use crate::stats;
use model::Case;
use model::estimate::Estimate;
use model::record::Sample;
use model::summary::{HostView, SpeedSummary};

/// Slices of a case in the order of time, each with what its time is multiplied by.
#[derive(Debug, Clone)]
pub struct ChosenSlices<'a> {
    /// The slices of each trial.
    trials: Vec<Vec<(&'a Sample, f64)>>,
}

impl<'a> ChosenSlices<'a> {
    fn of(slices: impl IntoIterator<Item = (&'a Sample, f64)>) -> Self {
        let mut slices: Vec<(&Sample, f64)> = slices.into_iter().collect();
        slices.sort_by_key(|(sample, _)| (sample.started_ns, sample.trial, sample.round));
        let mut trials: Vec<(u32, Vec<(&Sample, f64)>)> = Vec::new();
        for slice in slices {
            match trials.iter_mut().rev().find(|(trial, _)| *trial == slice.0.trial) {
                Some((_, slices)) => slices.push(slice),
                None => trials.push((slice.0.trial, vec![slice])),
            }
        }
        Self { trials: trials.into_iter().map(|(_, slices)| slices).collect() }
    }

    /// The samples.
    pub fn samples(&self) -> impl Iterator<Item = &'a Sample> {
        self.trials.iter().flatten().map(|(sample, _)| *sample)
    }

    /// The median with its interval of the times in nanoseconds that `time_ns` takes of samples, reduced to full speed where the slices are.
    pub fn median_time(&self, time_ns: impl Fn(&Sample) -> Option<f64>) -> Option<Estimate> {
        self.median(|sample, factor| Some(time_ns(sample)? * factor))
    }

    /// The median with its interval of the ratios that `ratio` takes of samples.
    pub fn median_ratio(&self, ratio: impl Fn(&Sample) -> Option<f64>) -> Option<Estimate> {
        self.median(|sample, _| ratio(sample))
    }

    fn median(&self, value: impl Fn(&Sample, f64) -> Option<f64>) -> Option<Estimate> {
        let log = |(sample, factor): &(&Sample, f64)| {
            Some(value(sample, *factor)?.ln()).filter(|log| log.is_finite())
        };
        let logs: Vec<Vec<f64>> =
            self.trials.iter().map(|trial| trial.iter().filter_map(log).collect()).collect();
        median_over_trials(&logs).map(|logs| logs.map(f64::exp))
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
        let as_found = ChosenSlices::of(samples.iter().map(|sample| (sample, 1.0)));
        let iteration_ns = as_found.median_time(|sample| Some(sample.iteration_ns()))?;
        let beside: Vec<Option<SliceSpeed>> = samples.iter().map(|s| full_speed.beside(case, s)).collect();
        let speeds: Vec<f64> = beside.iter().flatten().map(|slice| slice.speed).collect();
        let undisturbed =
            samples.iter().zip(&beside).filter(|(_, slice)| slice.is_some_and(|s| s.undisturbed));
        let undisturbed = ChosenSlices::of(undisturbed.map(|(sample, _)| (sample, 1.0)));
        let undisturbed_ns = undisturbed.median_time(|sample| Some(sample.iteration_ns()));
        let shown = undisturbed_ns.filter(|estimate| estimate.interval.is_some());
        let speed = stats::median(&speeds).map(|median_speed| SpeedSummary {
            shown: if shown.is_some() { HostView::Undisturbed } else { HostView::AsFound },
            undisturbed: undisturbed_ns,
            adjusted: None,
            as_found: Some(iteration_ns),
            undisturbed_share: undisturbed.samples().count() as f64 / samples.len() as f64,
            median_speed,
            slope: None,
            pair_slope: None,
        });
        Some(match shown {
            Some(iteration_ns) => Self { chosen: undisturbed, iteration_ns, speed },
            None => Self { chosen: as_found, iteration_ns, speed },
        })
    }
}
