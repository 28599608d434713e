//! A comparison in sentences: how long each side takes, and how many times as long, or that it is not decided.

use crate::quantity::{percent, time, times};
use crate::words::clean;
use analysis::compare::{ComparedCase, Comparison, ComparisonVerdict, PairedComparison};
use model::units::Percent;

/// More cases than these are counted, and the most changed of them are named.
const MOST: usize = 3;

/// What is said of one case.
struct Compared {
    /// What A and B are.
    sides: [String; 2],
    /// What both do.
    what: String,
    /// What each takes, in nanoseconds.
    times_ns: [Option<f64>; 2],
    /// B over A, and its interval.
    ratio: Option<(f64, Option<(f64, f64)>)>,
    verdict: ComparisonVerdict,
}

/// `pairs`, measured interleaved, in sentences; a difference within `margin` is none.
pub(crate) fn of_pairs(pairs: &[PairedComparison], margin: Percent) -> Vec<String> {
    let compared = |pair: &PairedComparison| Compared {
        sides: pair.sides.each_ref().map(|side| clean(side)),
        what: clean(&pair.what),
        times_ns: pair.median_ns,
        ratio: pair.ratio.map(|ratio| (ratio.median, ratio.interval)),
        verdict: pair.verdict,
    };
    sentences(&pairs.iter().map(compared).collect::<Vec<_>>(), margin)
}

/// Runs side by side in sentences.
pub(crate) fn of_runs(comparison: &Comparison) -> Vec<String> {
    let compared = |case: &ComparedCase| Compared {
        sides: ["A", "B"].map(str::to_owned),
        what: clean(&case.key),
        times_ns: [case.a.median_ns, case.b.median_ns],
        ratio: case.ratio.map(|ratio| (ratio.ratio, Some(ratio.interval))),
        verdict: case.verdict,
    };
    let cases: Vec<Compared> = comparison.cases.iter().map(compared).collect();
    sentences(&cases, comparison.options.margin)
}

fn sentences(all: &[Compared], margin: Percent) -> Vec<String> {
    if all.len() <= MOST {
        return all.iter().map(|compared| sentence(compared, margin)).collect();
    }
    let is = |verdict| move |compared: &&Compared| compared.verdict == verdict;
    let count = |verdict| all.iter().filter(is(verdict)).count();
    let [_, b] = &all[0].sides;
    let subject = if all.iter().all(|compared| compared.sides[1] == *b) { b.as_str() } else { "B" };
    let counted = format!(
        "Of {} cases {subject} is slower in {}, faster in {}, no different in {}; {} are undecided.",
        all.len(),
        count(ComparisonVerdict::Slower),
        count(ComparisonVerdict::Faster),
        count(ComparisonVerdict::NoDifference),
        count(ComparisonVerdict::Undecided)
    );
    let is_different = |compared: &&Compared| {
        matches!(compared.verdict, ComparisonVerdict::Slower | ComparisonVerdict::Faster)
    };
    let mut different: Vec<&Compared> = all.iter().filter(is_different).collect();
    let change = |compared: &Compared| compared.ratio.map_or(0.0, |(ratio, _)| ratio.ln().abs());
    different.sort_by(|a, b| change(b).total_cmp(&change(a)));
    let named = different.into_iter().take(MOST).map(|compared| sentence(compared, margin));
    std::iter::once(counted).chain(named).collect()
}

/// What is to be said of one case.
fn sentence(compared: &Compared, margin: Percent) -> String {
    let Compared { sides: [a, b], what, times_ns, verdict, .. } = compared;
    let [time_a, time_b] = times_ns.map(|ns| ns.and_then(time).unwrap_or_else(|| "unknown".to_owned()));
    let interval = compared.ratio.and_then(|(_, interval)| interval);
    match (verdict, compared.ratio) {
        (ComparisonVerdict::Slower | ComparisonVerdict::Faster, Some((ratio, _))) => format!(
            "{what}: {b} takes {time_b}, {a} {time_a}: {}{}{}.",
            as_long(ratio),
            interval.map(|interval| format!(" ({})", range(interval))).unwrap_or_default(),
            if says_both(*times_ns, interval) { "" } else { AT_ONE_SPEED }
        ),
        (ComparisonVerdict::NoDifference, _) => {
            format!("{what}: {b} takes as long as {a}, {time_a}, within ±{margin}.")
        }
        _ => match interval {
            Some(interval) => {
                format!("{what}: undecided: {b} takes {} as long as {a}'s {time_a}.", range(interval))
            }
            None => format!("{what}: undecided: too few trials to tell."),
        },
    }
}

/// Stands behind a ratio that the times beside it do not have.
const AT_ONE_SPEED: &str = ", had the host been as fast for both";

/// Whether the ratio of `times_ns` is about what `interval` has: each time is of the host as it was then, and the ratio is of one speed of it.
fn says_both(times_ns: [Option<f64>; 2], interval: Option<(f64, f64)>) -> bool {
    /// Nobody sees less in two times.
    const SEEN: f64 = 0.02;
    match (times_ns, interval) {
        ([Some(a), Some(b)], Some((low, high))) => {
            (low * (1.0 - SEEN)..=high * (1.0 + SEEN)).contains(&(b / a))
        }
        _ => true,
    }
}

/// A ratio in words: `1.96 times as long`, `4.0% longer`, `12% less`.
fn as_long(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 1.5 => format!("{} times as long", times(ratio).trim_end_matches('x')),
        ratio if ratio >= 1.0 => format!("{} longer", percent(ratio - 1.0)),
        ratio => format!("{} less", percent(1.0 - ratio)),
    }
}

/// An interval of ratios: `1.93 to 1.99 times`.
fn range((low, high): (f64, f64)) -> String {
    let text = |ratio: f64| if ratio < 9.95 { format!("{ratio:.2}") } else { format!("{ratio:.0}") };
    format!("{} to {} times", text(low), text(high))
}
