//! How times follow the speed readings beside them: a regression of the logarithm of the time on that of the reading.
//!
//! Late slices weigh less (Huber's weights). A reading lasts microseconds and stands for a slice of milliseconds, so it has an error, which
//! flattens a slope: what the readings before and after differ by says how large the error is, and the slope is corrected for it
//! (Fuller, *Measurement Error Models*, 1.2). The interval allows for slices that resemble those of their section, and for
//! slopes that hang on few sections (Bell and McCaffrey 2002).

use crate::interval::{TAIL, sections};
use crate::stats::{self, DEVIATION_OF_MEDIAN, student_quantile};
use model::summary::SpeedSlope;

/// With fewer slices there is no slope.
const FEWEST_SLICES: usize = 20;
/// Readings that vary by less than this on the logarithm, as a standard deviation, allow no slope.
const LEAST_DEVIATION: f64 = 0.001;

/// A slice as the regression takes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimedReading {
    /// The logarithm of the time.
    pub(crate) log_time: f64,
    /// The logarithm of the reading over that at full speed.
    pub(crate) log: f64,
    /// Half the logarithm of the reading before over the one after.
    pub(crate) half_difference: f64,
}

/// A slope with its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FittedSlope {
    pub(crate) slope: f64,
    /// Half the width of its 95% interval.
    pub(crate) half: f64,
    /// The mean of the logarithm of the readings over full speed.
    pub(crate) mean_log: f64,
}

impl From<FittedSlope> for SpeedSlope {
    fn from(FittedSlope { slope, half, .. }: FittedSlope) -> Self {
        Self { slope, interval: (slope - half, slope + half) }
    }
}

/// A weighted straight line.
struct Line {
    slope: f64,
    mean_log: f64,
    mean_log_time: f64,
    /// The weighted sum of squares of the readings.
    squares: f64,
    /// The sum of all weights.
    weight: f64,
}

impl Line {
    fn through(read: &[TimedReading], weights: &[f64]) -> Self {
        let sum = |of: &dyn Fn(&TimedReading) -> f64| -> f64 {
            read.iter().zip(weights).map(|(reading, weight)| weight * of(reading)).sum()
        };
        let weight = weights.iter().sum::<f64>();
        let (mean_log, mean_log_time) = (sum(&|r| r.log) / weight, sum(&|r| r.log_time) / weight);
        let squares = sum(&|r| (r.log - mean_log).powi(2));
        let products = sum(&|r| (r.log - mean_log) * (r.log_time - mean_log_time));
        let slope = if squares > 0.0 { products / squares } else { 0.0 };
        Self { slope, mean_log, mean_log_time, squares, weight }
    }

    fn residual(&self, reading: &TimedReading) -> f64 {
        reading.log_time - self.mean_log_time - self.slope * (reading.log - self.mean_log)
    }
}

/// The slope of the slices of each trial, in the order of time; `None` where slices, trials or differences of readings are too few.
pub(crate) fn fit_slope(trials: &[Vec<TimedReading>]) -> Option<FittedSlope> {
    let sections: Vec<Vec<TimedReading>> = sections(trials, Vec::is_empty)?
        .iter()
        .map(|section| section.iter().copied().flatten().copied().collect())
        .collect();
    let all: Vec<TimedReading> = sections.concat();
    let weights = huber_weights(&all)?;
    let line = Line::through(&all, &weights);
    let variance = line.squares / line.weight;
    if all.len() < FEWEST_SLICES || variance < LEAST_DEVIATION.powi(2) {
        return None;
    }
    let mean_log = all.iter().map(|reading| reading.log).sum::<f64>() / all.len() as f64;
    let reliability = reliability(&all, variance)?;
    let half = half_width(&sections, &weights, &line);
    Some(FittedSlope { slope: line.slope / reliability, half: half / reliability, mean_log })
}

/// Less than 1 for slices that lie further off the line than one and a half deviations.
fn huber_weights(all: &[TimedReading]) -> Option<Vec<f64>> {
    const ROUNDS: usize = 10;
    const NEAR: f64 = 1.5;
    let mut weights = vec![1.0; all.len()];
    for _ in 0..ROUNDS {
        let line = Line::through(all, &weights);
        let off: Vec<f64> = all.iter().map(|reading| line.residual(reading).abs()).collect();
        let near = NEAR * DEVIATION_OF_MEDIAN * stats::median(&off)?;
        weights = off.iter().map(|off| if *off > near { near / off } else { 1.0 }).collect();
        // Where most slices lie on the line, the others count for nothing, but a line needs a weight.
        weights.iter_mut().for_each(|weight| *weight = weight.max(1e-6));
    }
    Some(weights)
}

/// The part of the variance of the readings that is not error. The error is that of most slices: of the few in which the host
/// changed its speed, the readings differ for that reason.
fn reliability(all: &[TimedReading], variance: f64) -> Option<f64> {
    let differences: Vec<f64> = all.iter().map(|reading| reading.half_difference.abs()).collect();
    let error = DEVIATION_OF_MEDIAN * stats::median(&differences)?;
    Some((1.0 - error * error / variance).clamp(0.5, 1.0))
}

/// Half the width of the slope's interval, from what each section adds to the slope.
fn half_width(sections: &[Vec<TimedReading>], weights: &[f64], line: &Line) -> f64 {
    let mut weights = weights.iter();
    let (mut variance, mut squared_leverages) = (0.0, 0.0);
    for section in sections {
        let (mut score, mut leverage) = (0.0, 0.0);
        for (reading, weight) in section.iter().zip(weights.by_ref()) {
            let distance = reading.log - line.mean_log;
            score += weight * distance * line.residual(reading);
            leverage += weight * distance * distance / line.squares;
        }
        // A section that decides the slope has small residuals for that reason.
        variance += (score / line.squares / (1.0 - leverage.min(0.9))).powi(2);
        squared_leverages += leverage * leverage;
    }
    let count = sections.len() as f64;
    let degrees = (1.0 / squared_leverages - 1.0).clamp(1.0, count - 1.0);
    student_quantile(TAIL, degrees) * (variance * (count - 1.0) / count).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten trials of ten slices; each time follows its reading with the slope 0.7, off by `off(nth)`.
    fn trials(off: impl Fn(u32) -> f64) -> Vec<Vec<TimedReading>> {
        let reading = |nth: u32| {
            let log = f64::from(nth * 13 % 10) * 0.03;
            TimedReading { log_time: 5.0 + 0.7 * log + off(nth), log, half_difference: 0.0 }
        };
        (0..10).map(|trial| (0..10).map(|slice| reading(trial * 10 + slice + trial)).collect()).collect()
    }

    #[test]
    fn a_slope_is_found_though_some_slices_are_late() {
        let fitted =
            fit_slope(&trials(|nth| if nth % 17 == 0 { 0.5 } else { 0.001 * f64::from(nth % 3) })).unwrap();
        assert!((fitted.slope - 0.7).abs() < 0.02, "{fitted:?}");
        assert!((fitted.mean_log - 0.135).abs() < 0.01, "{fitted:?}");
    }

    #[test]
    fn an_error_of_the_readings_flattens_no_slope() {
        let mut random = crate::simulated::Random(3);
        let mut noisy = |trials: Vec<Vec<TimedReading>>| -> Vec<Vec<TimedReading>> {
            let mut noisy = |reading: TimedReading| {
                let (before, after) = (0.06 * random.normal(), 0.06 * random.normal());
                let log = reading.log + (before + after) / 2.0;
                TimedReading { log, half_difference: (before - after) / 2.0, ..reading }
            };
            trials.into_iter().map(|trial| trial.into_iter().map(&mut noisy).collect()).collect()
        };
        let slopes: Vec<f64> = (0..200).map(|_| fit_slope(&noisy(trials(|_| 0.0))).unwrap().slope).collect();
        let mean = stats::mean(&slopes);
        assert!((mean - 0.7).abs() < 0.03, "{mean}");
    }

    #[test]
    fn readings_that_do_not_vary_and_few_slices_have_no_slope() {
        let still = |_| TimedReading { log_time: 1.0, log: 0.0, half_difference: 0.0 };
        assert_eq!(fit_slope(&vec![(0..10).map(still).collect(); 10]), None);
        assert_eq!(fit_slope(&trials(|_| 0.0)[..5]), None);
        let short: Vec<_> = trials(|_| 0.0).iter().map(|trial| trial[..1].to_vec()).collect();
        assert_eq!(fit_slope(&short), None);
    }
}
