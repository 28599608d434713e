//! Ratios of what two variants of a program were measured to do, and why one could not be measured.

use analysis::interval::{MeanEstimate, mean_over_trials};
use analysis::stats;
use harness::programs::started::StartError;

/// How far an exchange may be from the program's own socket where the interval does not tell.
pub(super) const POINTS: f64 = 0.02;

/// The rates of the runs of one variant with one start of its servers, in one pass over the variants.
pub(super) struct Rates {
    pub(super) variant: usize,
    pub(super) pass: u32,
    pub(super) per_s: Vec<f64>,
}

/// What `variant` has over `base`: the geometric mean over passes, with a 95% interval; `None` without passes that have both.
pub(super) fn change(all: &[Rates], base: usize, variant: usize) -> Option<MeanEstimate> {
    let mean_log = |pass: u32, variant: usize| {
        let rates = all.iter().find(|rates| (rates.pass, rates.variant) == (pass, variant))?;
        Some(stats::mean(&rates.per_s.iter().map(|rate| rate.ln()).collect::<Vec<_>>()))
    };
    let passes = all.iter().map(|rates| rates.pass).max()? + 1;
    let logs: Vec<f64> =
        (0..passes).filter_map(|pass| Some(mean_log(pass, variant)? - mean_log(pass, base)?)).collect();
    Some(mean_over_trials(&logs)?.map(f64::exp))
}

pub(super) fn ratio_words(ratio: Option<MeanEstimate>) -> String {
    match ratio {
        Some(MeanEstimate { mean, interval: Some((low, high)) }) => {
            format!("{mean:.3} ({low:.3} to {high:.3})")
        }
        Some(MeanEstimate { mean, interval: None }) => format!("{mean:.3} (too few passes)"),
        None => "-".to_owned(),
    }
}

/// Why a start came to nothing.
pub(super) fn said(error: StartError) -> String {
    match error {
        StartError::Interrupted => "interrupted".to_owned(),
        StartError::Failure(failure) => failure.to_string(),
    }
}
