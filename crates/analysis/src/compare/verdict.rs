//! The verdict of one case: its time and its multiples of floors weighed against each other.

use super::pairing::RecordPair;
use super::references::{Neighbours, Reference};
use super::result::{AdjustedRatio, ComparedCase, ComparisonVerdict, RunMedian};
use super::statistics::{Caution, FEWEST_TRIALS, Shift, ShiftEstimate, direction, logs, times};
use crate::stats;
use model::case::Case;
use model::floor::SYSCALL;
use model::record::{Outcome, Record};
use model::sample::Sample;
use model::workload::Workload;

/// A verdict with the shifts behind it, for the totals.
pub(super) struct JudgedCase {
    pub(super) compared: ComparedCase,
    pub(super) time: Option<Shift>,
    pub(super) adjusted: Option<Shift>,
}

/// What follows from one pair.
struct Judgement {
    verdict: ComparisonVerdict,
    floors_differ: bool,
    reason: Option<String>,
}

impl Judgement {
    fn plain(verdict: ComparisonVerdict) -> Self {
        Self { verdict, floors_differ: false, reason: None }
    }

    fn cannot_tell(reason: String) -> Self {
        Self { reason: Some(reason), ..Self::plain(ComparisonVerdict::CannotTell) }
    }
}

/// A cause that may leave nothing of a change: the change less that cause.
struct OtherCause {
    what: String,
    is_floor: bool,
    rest: ShiftEstimate,
}

/// The verdict of the case of `pair`.
pub(super) fn judge_case(
    pair: &RecordPair<'_>,
    references: &[Reference<'_>],
    neighbours: &Neighbours,
    caution: Caution,
) -> JudgedCase {
    let Some(time) = time_shift(pair, caution) else {
        return judged_case(pair, None, None, Judgement::cannot_tell(too_few_trials(pair)));
    };
    let own_floor = |record: &Record| logs(&record.samples, |sample| sample.floor_ns);
    let own =
        ShiftEstimate::of(&own_floor(pair.a), &own_floor(pair.b), caution).map(|rest| ("its floor", rest));
    let floor_is_alike = own.is_some() && is_switch(&pair.a.case) && is_switch(&pair.b.case);
    let mut floors: Vec<(&str, ShiftEstimate)> = references
        .iter()
        .filter(|reference| reference.resembles(&pair.a.case))
        .filter_map(|reference| Some((reference.case.spec.name.as_str(), reference.estimate(pair, caution)?)))
        .collect();
    // A case without a floor of its own, such as an operation, is held against the bare system call.
    let stand_in = || floors.iter().position(|(name, _)| *name == SYSCALL).map(|at| floors.remove(at));
    let Some(adjusted) = own.or_else(stand_in) else {
        return judged_case(pair, Some(time), None, without_floor(time, caution));
    };
    let of_floor = |(name, rest)| OtherCause { what: format!("the floor '{name}'"), is_floor: true, rest };
    let of_neighbours = |rest| OtherCause {
        what: "the other mechanisms with this workload and placement".to_owned(),
        is_floor: false,
        rest,
    };
    let neighbours = neighbours.less_common_shift(&pair.a.case, time).map(of_neighbours);
    let others: Vec<OtherCause> = floors.into_iter().map(of_floor).chain(neighbours).collect();
    let judgement = weigh(time, adjusted.1, floor_is_alike, &others, caution);
    judged_case(pair, Some(time), Some(adjusted), judgement)
}

/// Whether an iteration of `case` hands over and back by switching on one CPU.
fn is_switch(case: &Case) -> bool {
    matches!(case.workload, Workload::Latency | Workload::Transfer)
        && case.cpus.is_some_and(|cpus| cpus.client == cpus.server)
}

/// The verdict of a floor. It measures the host itself, so that its time is all there is to judge.
pub(super) fn judge_floor(pair: &RecordPair<'_>, caution: Caution) -> JudgedCase {
    let Some(time) = time_shift(pair, caution) else {
        return judged_case(pair, None, None, Judgement::cannot_tell(too_few_trials(pair)));
    };
    let judgement = match time.direction() {
        Some(direction) => Judgement::plain(direction),
        None => undecided(time, time, caution),
    };
    judged_case(pair, Some(time), None, judgement)
}

fn time_shift(pair: &RecordPair<'_>, caution: Caution) -> Option<ShiftEstimate> {
    ShiftEstimate::of(&times(pair.a), &times(pair.b), caution)
}

/// The verdict of a case from its time, its multiple of its floor, and its multiples of `others`.
///
/// Where the time alone says nothing, its multiple of a floor is believed only if that floor does as
/// the case does. A switch between two processes on one CPU is in every round trip there. A copy or
/// a bare system call drifts by laws of its own, and so does a cache line handed over by spinning,
/// beside an end that sleeps on another CPU.
fn weigh(
    time: ShiftEstimate,
    adjusted: ShiftEstimate,
    floor_is_alike: bool,
    others: &[OtherCause],
    caution: Caution,
) -> Judgement {
    let strictly = direction(adjusted.shift.log, adjusted.strict_half).is_some();
    let agreed =
        time.direction() == adjusted.direction() || (floor_is_alike && strictly && time.allows(adjusted));
    let explained_by = others.iter().find(|other| !other.rest.allows(adjusted));
    match (adjusted.direction(), explained_by) {
        (Some(direction), None) if agreed => Judgement::plain(direction),
        (Some(_), Some(other)) if agreed => Judgement {
            floors_differ: other.is_floor,
            ..Judgement::cannot_tell(format!("{} changed too, which may explain it", other.what))
        },
        (Some(_), _) if time.direction().is_none() => Judgement::cannot_tell(
            "only its multiple of the floor changed: the floor may have changed instead of the case"
                .to_owned(),
        ),
        _ if time.direction().is_some() => only_the_time_differs(time, adjusted, caution),
        _ => undecided(time, adjusted, caution),
    }
}

/// The time is on one side of 1 and the multiple of the floor is not: because the floor moved with
/// it, or because the multiple is too uncertain to say.
fn only_the_time_differs(time: ShiftEstimate, adjusted: ShiftEstimate, caution: Caution) -> Judgement {
    let undecided = undecided(time, adjusted, caution);
    let as_ever = caution.within_margin(adjusted.shift.log, adjusted.own_half);
    let floors_differ = as_ever || !adjusted.allows(time);
    let reason = if floors_differ {
        "the runs differ only because their floors do"
    } else {
        "its time changed; as a multiple of its floor that is not certain"
    };
    Judgement { floors_differ, reason: Some(reason.to_owned()), ..undecided }
}

/// The case is not called different: there is no difference, or it cannot be told.
fn undecided(time: ShiftEstimate, adjusted: ShiftEstimate, caution: Caution) -> Judgement {
    let same = |shift: ShiftEstimate| caution.within_margin(shift.shift.log, shift.own_half);
    if same(adjusted) || same(time) {
        return Judgement::plain(ComparisonVerdict::NoDifference);
    }
    let away = direction(adjusted.shift.log, adjusted.own_half).is_some();
    Judgement::cannot_tell(if away {
        format!(
            "the difference is within what two runs of {} cases can differ by (±{:.1}%)",
            caution.together,
            adjusted.half.exp_m1() * 100.0
        )
    } else {
        format!("its interval reaches beyond ±{}: give both runs more time", caution.options.margin)
    })
}

/// Without any floor a change of the host cannot be told from one of the mechanism.
fn without_floor(time: ShiftEstimate, caution: Caution) -> Judgement {
    match time.direction() {
        None => undecided(time, time, caution),
        Some(_) => Judgement::cannot_tell(
            "no floor was measured beside it in both runs: the host may have changed instead".to_owned(),
        ),
    }
}

/// Why a pair cannot be compared at all.
fn too_few_trials(pair: &RecordPair<'_>) -> String {
    let of = |run: &str, record: &Record| {
        let trials = record.samples.len();
        let failure = match &record.outcome {
            Outcome::Failed { error } => format!(" ({error})"),
            _ => String::new(),
        };
        (trials < FEWEST_TRIALS)
            .then(|| format!("{run} has {trials} of the {FEWEST_TRIALS} trials needed{failure}"))
    };
    let reasons: Vec<String> = [of("A", pair.a), of("B", pair.b)].into_iter().flatten().collect();
    reasons.join("; ")
}

/// The pair as reports show it, with its shifts.
fn judged_case(
    pair: &RecordPair<'_>,
    time: Option<ShiftEstimate>,
    adjusted: Option<(&str, ShiftEstimate)>,
    judgement: Judgement,
) -> JudgedCase {
    let median = |record: &Record| {
        let iterations_ns: Vec<f64> = record.samples.iter().map(Sample::iteration_ns).collect();
        RunMedian {
            median_ns: stats::median(&iterations_ns),
            trials: u32::try_from(iterations_ns.len()).unwrap_or(u32::MAX),
        }
    };
    JudgedCase {
        compared: ComparedCase {
            key: pair.a.case.key(),
            case: pair.a.case.clone(),
            a: median(pair.a),
            b: median(pair.b),
            ratio: time.map(ShiftEstimate::ratio),
            adjusted: adjusted
                .map(|(by, estimate)| AdjustedRatio { by: by.to_owned(), ratio: estimate.ratio() }),
            verdict: judgement.verdict,
            floors_differ: judgement.floors_differ,
            reason: judgement.reason,
        },
        time: time.map(|estimate| estimate.shift),
        adjusted: adjusted.map(|(_, estimate)| estimate.shift),
    }
}
