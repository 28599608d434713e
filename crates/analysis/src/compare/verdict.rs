//! The verdict of one case: its time and its multiples of floors weighed against each other.

use super::case_shifts::CaseShifts;
use super::chosen_pair::{ChosenPair, trials};
use super::paired::time_of;
use super::references::Neighbours;
use super::result::{AdjustedRatio, ComparedCase, ComparisonVerdict, RunMedian};
use super::statistics::{Caution, FEWEST_TRIALS, Shift, ShiftEstimate, direction};
use crate::stats;
use model::sample::Sample;
use model::units::Percent;

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

    fn undecided(reason: String) -> Self {
        Self { reason: Some(reason), ..Self::plain(ComparisonVerdict::Undecided) }
    }
}

/// A cause that may leave nothing of a change: the change less that cause.
struct OtherCause {
    what: String,
    is_floor: bool,
    rest: ShiftEstimate,
}

/// The verdict of a case.
pub(super) fn judge_case(
    pair: &ChosenPair<'_>,
    shifts: Option<&CaseShifts<'_>>,
    neighbours: &Neighbours,
    caution: Caution,
) -> JudgedCase {
    let Some(shifts) = shifts else {
        return judged_case(pair, None, None, Judgement::undecided(too_few_trials(pair)));
    };
    let time = shifts.time.estimate(caution.times, caution);
    let of_floor = |shift: Shift| shift.estimate(caution.multiples, caution);
    let Some((by, adjusted)) = shifts.adjusted.map(|(by, shift)| (by, of_floor(shift))) else {
        return judged_case(pair, Some(time), None, without_floor(time, caution));
    };
    let floors = shifts.others.iter().map(|(name, shift)| OtherCause {
        what: format!("the floor '{name}'"),
        is_floor: true,
        rest: of_floor(*shift),
    });
    // A floor that does as the case does says by itself what the host does.
    let asked = (!shifts.floor_is_alike).then_some(neighbours);
    let common = asked.and_then(|neighbours| neighbours.less_common_shift(pair.case, shifts.time));
    let neighbours = common.map(|shift| OtherCause {
        what: "the other mechanisms with this workload and placement".to_owned(),
        is_floor: false,
        rest: shift.estimate(caution.times, caution),
    });
    let others: Vec<OtherCause> = floors.chain(neighbours).collect();
    let beside_others = shifts.beside_others.map(|shift| shift.estimate(caution.times, caution));
    let best_known = best_known(adjusted, &[shifts.is_read.then_some(time), beside_others]);
    let judgement = weigh(time, adjusted, best_known, shifts.floor_is_alike, &others, caution);
    judged_case(pair, Some(time), Some((by, adjusted)), judgement)
}

/// Of `adjusted` and what else does not depend on how fast the host was, the one that is known best, whatever it says.
fn best_known(adjusted: ShiftEstimate, views: &[Option<ShiftEstimate>]) -> ShiftEstimate {
    let narrower = |known: ShiftEstimate, view: &ShiftEstimate| {
        if view.own_half < known.own_half { *view } else { known }
    };
    views.iter().flatten().fold(adjusted, narrower)
}

/// The verdict of a floor. It measures the host itself, so that its time is all there is to judge.
pub(super) fn judge_floor(
    pair: &ChosenPair<'_>,
    shifts: Option<&CaseShifts<'_>>,
    caution: Caution,
) -> JudgedCase {
    let Some(shifts) = shifts else {
        return judged_case(pair, None, None, Judgement::undecided(too_few_trials(pair)));
    };
    let time = shifts.time.estimate(caution.times, caution);
    let judgement = match time.direction() {
        Some(direction) => Judgement::plain(direction),
        None => undecided(time, caution),
    };
    judged_case(pair, Some(time), None, judgement)
}

/// The verdict of a case from its time, its multiple of its floor, and its multiples of `others`.
///
/// Where the time alone says nothing, its multiple of a floor is believed only if that floor does as
/// the case does. A switch between two processes on one CPU is in every round trip there. A copy or
/// a bare system call drifts by laws of its own, and so does a cache line handed over by spinning,
/// beside an end that sleeps on another CPU. That there is no difference is for `best_known` to say.
fn weigh(
    time: ShiftEstimate,
    adjusted: ShiftEstimate,
    best_known: ShiftEstimate,
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
            ..Judgement::undecided(format!("{} changed too, which may explain it", other.what))
        },
        (Some(_), _) if time.direction().is_none() => Judgement::undecided(
            "only its multiple of the floor changed: the floor may have changed instead of the case"
                .to_owned(),
        ),
        _ if time.direction().is_some() => only_the_time_differs(time, adjusted, caution),
        _ => undecided(best_known, caution),
    }
}

/// The time is on one side of 1 and the multiple of the floor is not: because the floor moved with
/// it, or because the multiple is too uncertain to say.
fn only_the_time_differs(time: ShiftEstimate, adjusted: ShiftEstimate, caution: Caution) -> Judgement {
    let undecided = undecided(adjusted, caution);
    let as_ever = caution.within_margin(adjusted.shift.log, adjusted.own_half);
    let floors_differ = as_ever || !adjusted.allows(time);
    let reason = if floors_differ {
        "the runs differ only because their floors do"
    } else {
        "its time changed; as a multiple of its floor that is not certain"
    };
    Judgement { floors_differ, reason: Some(reason.to_owned()), ..undecided }
}

/// The case is not called different by `view`, which is as adjusted as there is one: there is no difference, or it cannot be told.
///
/// The time alone does not do: where a host is 8% faster and a mechanism 8% slower, it is the same.
fn undecided(view: ShiftEstimate, caution: Caution) -> Judgement {
    if caution.within_margin(view.shift.log, view.own_half) {
        return Judgement::plain(ComparisonVerdict::NoDifference);
    }
    let away = direction(view.shift.log, view.own_half).is_some();
    Judgement::undecided(if away {
        format!(
            "the difference is within what so many cases can differ by by chance (±{:.1}%)",
            view.half.exp_m1() * 100.0
        )
    } else {
        format!(
            "its interval reaches beyond ±{}: give both runs more time, or more runs",
            caution.options.margin
        )
    })
}

/// Without any floor a change of the host cannot be told from one of the mechanism.
fn without_floor(time: ShiftEstimate, caution: Caution) -> Judgement {
    match time.direction() {
        None => undecided(time, caution),
        Some(_) => Judgement::undecided(
            "no floor was measured beside it in both runs: the host may have changed instead".to_owned(),
        ),
    }
}

/// Why a pair cannot be compared at all.
fn too_few_trials(pair: &ChosenPair<'_>) -> String {
    let lacking = |side: &str, runs: &[(usize, Vec<&Sample>)], failures: &[&str]| {
        let most = runs.iter().map(|(_, samples)| trials(samples)).max().unwrap_or(0);
        let failure = failures.first().map(|error| format!(" ({error})")).unwrap_or_default();
        let samples = runs.iter().flat_map(|(_, samples)| samples);
        let elapsed_ns = samples.map(|sample| sample.started_ns).max().unwrap_or(0) as f64;
        let time = (most > 0 && elapsed_ns > 0.0)
            .then(|| format!(": measure it with {}", time_of(FEWEST_TRIALS as f64, most, elapsed_ns)));
        (most < FEWEST_TRIALS).then(|| {
            let time = time.unwrap_or_default();
            format!("{side} has {most} of the {FEWEST_TRIALS} trials needed{failure}{time}")
        })
    };
    let [a, b] = &pair.slices.0;
    let [failures_a, failures_b] = &pair.failures;
    let reasons: Vec<String> =
        [lacking("A", a, failures_a), lacking("B", b, failures_b)].into_iter().flatten().collect();
    reasons.join("; ")
}

/// The pair as reports show it, with its shifts.
fn judged_case(
    pair: &ChosenPair<'_>,
    time: Option<ShiftEstimate>,
    adjusted: Option<(&str, ShiftEstimate)>,
    judgement: Judgement,
) -> JudgedCase {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let of_side = |side: usize| {
        let runs = &pair.slices.0[side];
        RunMedian {
            median_ns: stats::median(&pair.found_ns[side]),
            runs: count(runs.len()),
            trials: count(runs.iter().map(|(_, samples)| trials(samples)).sum()),
        }
    };
    let deciding = adjusted.map(|(_, estimate)| estimate).or(time);
    JudgedCase {
        compared: ComparedCase {
            key: pair.case.key(),
            case: pair.case.clone(),
            a: of_side(0),
            b: of_side(1),
            ratio: time.map(ShiftEstimate::ratio),
            adjusted: adjusted
                .map(|(by, estimate)| AdjustedRatio { by: by.to_owned(), ratio: estimate.ratio() }),
            finds: deciding.map(|estimate| Percent(estimate.finds.exp_m1())),
            verdict: judgement.verdict,
            floors_differ: judgement.floors_differ,
            reason: match (pair.injected(), judgement.reason) {
                (Some(injected), Some(reason)) => Some(format!("{injected}; {reason}")),
                (injected, reason) => injected.or(reason),
            },
        },
        time: time.map(|estimate| estimate.shift),
        adjusted: adjusted.map(|(_, estimate)| estimate.shift),
    }
}
