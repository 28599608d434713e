//! Differences between a case and its control cases, as a check of single groups of the path: two ways to one number that know
//! nothing of each other.

use super::control_cases::ControlDifference;
use super::evidence::Evidence;
use crate::interval::MeanEstimate;
use crate::path::{PathSum, SegmentKind};
use crate::stats::median_interval;
use model::estimate::Estimate;
use model::observation::subsystem::Subsystem;
use model::record::Record;
use serde::Serialize;

/// Two values that are further apart than this share of the iteration disagree, if their intervals do not overlap either.
const APART: f64 = 0.1;

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckedTerm {
    /// Bytes copied.
    Copies,
    /// Going to sleep, being woken and coming back.
    Sleeping,
    /// The program itself.
    OwnCode,
}

impl CheckedTerm {
    const ALL: [CheckedTerm; 3] = [CheckedTerm::Copies, CheckedTerm::Sleeping, CheckedTerm::OwnCode];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            CheckedTerm::Copies => "copies",
            CheckedTerm::Sleeping => "sleeping and waking",
            CheckedTerm::OwnCode => "user code",
        }
    }
}

/// One term by two ways.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CrossCheck {
    /// What.
    pub term: CheckedTerm,
    /// By the path, and by samples where these split it, in nanoseconds an iteration.
    pub by_path_ns: MeanEstimate,
    /// By the difference of two cases, without probes.
    pub by_difference_ns: Estimate,
    /// What the difference is between.
    pub difference: String,
    /// Whether the two agree.
    pub agrees: bool,
}

/// Every check that can be made of `sum`.
pub(crate) fn cross_checks(evidence: &Evidence<'_>, sum: &PathSum) -> Vec<CrossCheck> {
    let check = |term| {
        let by_path_ns = by_path(evidence, sum, term)?;
        let (by_difference_ns, difference) = by_difference(evidence, term)?;
        let agrees = agree(by_path_ns, by_difference_ns, sum.bare_ns.mean);
        Some(CrossCheck { term, by_path_ns, by_difference_ns, difference, agrees })
    };
    CheckedTerm::ALL.into_iter().filter_map(check).collect()
}

/// Whether two estimates are of one value, as far as one can tell.
fn agree(path: MeanEstimate, difference: Estimate, iteration_ns: f64) -> bool {
    let overlap = match (path.interval, difference.interval) {
        (Some((a, b)), Some((c, d))) => a <= d && c <= b,
        _ => false,
    };
    overlap || (path.mean - difference.median).abs() <= APART * iteration_ns
}

fn by_path(evidence: &Evidence<'_>, sum: &PathSum, term: CheckedTerm) -> Option<MeanEstimate> {
    match term {
        CheckedTerm::Copies => evidence.sampled_ns(&[Subsystem::Copy]),
        CheckedTerm::Sleeping => sum.of_kinds(&|kind| {
            kind.is_wake_up() || matches!(kind, SegmentKind::UntilSleep | SegmentKind::AfterSleep)
        }),
        CheckedTerm::OwnCode => sum.of_kinds(&|kind| kind == SegmentKind::User),
    }
}

/// What `term` costs by the difference of two cases, and which.
fn by_difference(evidence: &Evidence<'_>, term: CheckedTerm) -> Option<(Estimate, String)> {
    let this = evidence.record;
    match term {
        CheckedTerm::Copies => {
            let one = evidence.control_case(ControlDifference::OneByte)?;
            Some((difference(this, one)?, format!("{} less 1 byte", this.case.size_bytes?)))
        }
        CheckedTerm::Sleeping => {
            let spinning = evidence.control_case(ControlDifference::Spinning)?;
            Some((difference(this, spinning)?, "sleeping less spinning (wait=spin)".to_owned()))
        }
        CheckedTerm::OwnCode => {
            let nothing = evidence.control_case(ControlDifference::Nothing)?;
            let iteration_ns = nothing.summary.as_ref()?.iteration_ns;
            Some((iteration_ns, "the same iterations without a mechanism".to_owned()))
        }
    }
}

/// The time of an iteration of `a` less that of `b`, over the rounds in which both have a trial.
pub(crate) fn difference(a: &Record, b: &Record) -> Option<Estimate> {
    let of_round = |sample: &&model::Sample, round| sample.round == round;
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

    #[test]
    fn two_values_agree_if_their_intervals_meet_or_they_are_close() {
        let path = |mean, interval| MeanEstimate { mean, interval };
        let difference = |median, interval| Estimate { median, interval };
        assert!(agree(path(300.0, Some((200.0, 400.0))), difference(500.0, Some((390.0, 600.0))), 1000.0));
        assert!(!agree(path(300.0, Some((290.0, 310.0))), difference(500.0, Some((490.0, 510.0))), 1000.0));
        assert!(agree(path(300.0, None), difference(390.0, None), 1000.0));
        assert!(
            !agree(path(300.0, None), difference(410.0, Some((0.0, 900.0))), 1000.0),
            "no interval is no evidence"
        );
    }
}
