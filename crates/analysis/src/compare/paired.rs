//! Two cases that one run measured interleaved: the verdict on each pair, and how long one will take.
//!
//! Both sides of a quadruple had the same host within milliseconds, so that no floor is needed.

use super::discoveries::levels;
use super::mean_ratio::{FEWEST_TRIAL_PAIRS, MeanRatio};
use super::options::ComparisonOptions;
use super::quadruples::{QuadrupleRatio, quadruples};
use super::result::{ComparisonVerdict, Gate};
use super::statistics::MISS;
use crate::missed_settings::MissedSetting;
use crate::stats;
use model::case::Case;
use model::elsewhere::Elsewhere;
use model::estimate::Estimate;
use model::sample::Sample;
use model::units::Percent;
use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Two cases measured interleaved in one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairedRatios {
    /// What is compared, such as `pipe against unix-stream, latency 64`.
    pub name: String,
    /// What A and B are: two mechanisms, or two builds.
    pub sides: [String; 2],
    /// What both do, such as `latency 64 same-core`.
    pub what: String,
    /// The median time of an iteration of each side, in nanoseconds.
    pub median_ns: [Option<f64>; 2],
    /// The mechanism, of which one run may compare several cases.
    pub mechanism: String,
    /// The quadruples of slices of each trial pair, in order.
    pub trial_pairs: Vec<Vec<QuadrupleRatio>>,
}

impl PairedRatios {
    /// Of the slices of both sides: [`Sample::trial`] is the number of the trial pair, [`Sample::round`] that of the quadruple.
    pub fn new(name: String, cases: [&Case; 2], samples: [&[Sample]; 2]) -> Self {
        let times = |samples: &[Sample]| samples.iter().map(Sample::iteration_ns).collect::<Vec<_>>();
        Self {
            name,
            sides: sides(cases),
            what: cases[0].key().trim_start_matches(&cases[0].spec.to_string()).trim_start().to_owned(),
            median_ns: samples.map(|samples| stats::median(&times(samples))),
            mechanism: cases[1].spec.name.clone(),
            trial_pairs: quadruples(cases, samples),
        }
    }
}

/// What the sides of a comparison are called. Of two builds the case is the same: they are A and B.
fn sides(cases: [&Case; 2]) -> [String; 2] {
    if cases[0] == cases[1] {
        return ["A", "B"].map(str::to_owned);
    }
    cases.map(|case| match case.inject {
        Some(inject) => format!("{} inject={inject}", case.spec),
        None => case.spec.to_string(),
    })
}

/// The comparison of two cases measured interleaved.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PairedComparison {
    /// What is compared.
    pub name: String,
    /// What A and B are: two mechanisms, or two builds.
    pub sides: [String; 2],
    /// What both do.
    pub what: String,
    /// The median time of an iteration of each side, in nanoseconds.
    pub median_ns: [Option<f64>; 2],
    /// How many pairs of trials there were.
    pub trial_pairs: u32,
    /// How many quadruples of slices.
    pub quadruples: u32,
    /// B's time over A's, with the interval by which it is called different; with too few trial pairs it has none.
    pub ratio: Option<Estimate>,
    /// Whether that is the ratio at the host's full speed; otherwise it is over all states in which the host was.
    pub at_full_speed: bool,
    /// Why the kernel would not give the endpoints of both sides their memory at the same addresses; without a reason it did. Where it
    /// would not, addresses are by chance, and intervals are wider by that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses_by_chance: Option<String>,
    /// The slices that did not run on the CPUs of the placement, if any did not; they do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Elsewhere>,
    /// The settings of both sides that are not as asked, or not as usual.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<MissedSetting>,
    /// Its 95% interval by which no difference is found.
    pub own_interval: Option<(f64, f64)>,
    /// The smallest difference that this comparison finds with a chance of 80%.
    pub finds: Option<Percent>,
    /// What follows.
    pub verdict: ComparisonVerdict,
    /// Why it cannot be told.
    pub reason: Option<String>,
}

/// What a pilot says of how long a comparison takes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlannedComparison {
    /// What is compared.
    pub name: String,
    /// How many trial pairs the pilot had.
    pub trial_pairs: u32,
    /// How many find the difference asked for with a chance of 80%; absent where the pilot had too few to tell.
    pub needs_trial_pairs: Option<u32>,
    /// The same if the pilot was lucky: with the variance at the upper end of its one-sided 90% interval.
    pub needs_at_most: Option<u32>,
    /// How long `needs_trial_pairs` take of this pair alone, in nanoseconds.
    pub time_ns: Option<f64>,
    /// How long `needs_at_most` take, in nanoseconds.
    pub time_at_most_ns: Option<f64>,
}

/// Compares two mechanisms, in one or more cases, that one run measured interleaved.
///
/// The intervals hold at whatever time the run stopped, also because of them. Which pairs are called different is decided so that
/// of those called at most the share [`ComparisonOptions::false_discoveries`] is false, over mechanisms and their cases. What cannot be
/// told yet says how long a comparison would tell it, from what was had in `elapsed_ns`.
pub fn compare_paired(
    pairs: &[PairedRatios],
    elapsed_ns: f64,
    options: ComparisonOptions,
) -> Vec<PairedComparison> {
    let means: Vec<Option<MeanRatio>> =
        pairs.iter().map(|pair| MeanRatio::from_pairs(&pair.trial_pairs)).collect();
    let cases: Vec<(&str, Option<f64>)> = pairs
        .iter()
        .zip(&means)
        .map(|(pair, mean)| (pair.mechanism.as_str(), mean.map(MeanRatio::p)))
        .collect();
    let levels = levels(&cases, options.false_discoveries.0);
    let judged = pairs.iter().zip(means).zip(levels);
    judged.map(|((pair, mean), level)| judge_paired(pair, mean, level, elapsed_ns, options)).collect()
}

/// Whether the verdict on a pair is reached, whatever the other pairs of the run turn out to be: its interval excludes 0 at the least
/// level that it can be judged by, or lies within the margin. `among` is how many mechanisms the run compares times the cases of
/// the pair's mechanism.
pub fn is_paired_verdict_reached(pair: &PairedRatios, among: usize, options: ComparisonOptions) -> bool {
    let level = options.false_discoveries.0 / among.max(1) as f64;
    MeanRatio::from_pairs(&pair.trial_pairs)
        .is_some_and(|mean| verdict(mean, level, options) != ComparisonVerdict::Undecided)
}

fn verdict(mean: MeanRatio, level: f64, options: ComparisonOptions) -> ComparisonVerdict {
    let within_margin = mean.log.abs() + mean.half(MISS) <= options.margin.0.ln_1p();
    match () {
        () if mean.log.abs() > mean.half(level) && mean.log > 0.0 => ComparisonVerdict::Slower,
        () if mean.log.abs() > mean.half(level) => ComparisonVerdict::Faster,
        () if within_margin => ComparisonVerdict::NoDifference,
        () => ComparisonVerdict::Undecided,
    }
}

fn judge_paired(
    pair: &PairedRatios,
    mean: Option<MeanRatio>,
    level: f64,
    elapsed_ns: f64,
    options: ComparisonOptions,
) -> PairedComparison {
    let had = pair.trial_pairs.len();
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let ends = |mean: MeanRatio, half: f64| ((mean.log - half).exp(), (mean.log + half).exp());
    let verdict = mean.map_or(ComparisonVerdict::Undecided, |mean| verdict(mean, level, options));
    let reason = match (verdict, mean) {
        (ComparisonVerdict::Undecided, Some(mean)) => {
            let needed = mean.needed_pairs(options.margin.0.ln_1p(), 1.0, level);
            let time = time_of(f64::from(needed), had, elapsed_ns);
            Some(format!("its interval reaches beyond ±{}: give it {time}", options.margin))
        }
        (ComparisonVerdict::Undecided, None) => {
            let pairs = if had == 1 { "1 pair".to_owned() } else { format!("{had} pairs") };
            let time = time_of(FEWEST_TRIAL_PAIRS as f64, had, elapsed_ns);
            Some(format!(
                "{pairs} of trials allow no interval, which takes {FEWEST_TRIAL_PAIRS}: give it {time}"
            ))
        }
        _ => None,
    };
    PairedComparison {
        name: pair.name.clone(),
        sides: pair.sides.clone(),
        what: pair.what.clone(),
        median_ns: pair.median_ns,
        trial_pairs: count(pair.trial_pairs.len()),
        quadruples: count(pair.trial_pairs.iter().map(Vec::len).sum()),
        ratio: mean
            .map(|mean| Estimate { median: mean.log.exp(), interval: Some(ends(mean, mean.half(level))) })
            .or_else(|| rough_ratio(pair)),
        at_full_speed: mean.is_some_and(|mean| mean.at_full_speed),
        addresses_by_chance: None,
        elsewhere: None,
        settings: Vec::new(),
        own_interval: mean.map(|mean| ends(mean, mean.half(MISS))),
        finds: mean.map(|mean| Percent(mean.finds(level).exp_m1())),
        verdict,
        reason,
    }
}

/// What a gate says that allows B to be slower by `above`: whether any of `pairs` is slower than that, or else may be.
pub fn gate_paired(pairs: &[PairedComparison], above: Percent) -> Gate {
    let limit = 1.0 + above.0;
    let of_pair = |pair: &PairedComparison| match (pair.verdict, pair.ratio) {
        (ComparisonVerdict::Slower, Some(ratio)) if ratio.median > limit => Gate::Fails,
        (ComparisonVerdict::Slower | ComparisonVerdict::Faster, _) => Gate::Passes,
        _ if pair.own_interval.is_none_or(|(_, high)| high > limit) => Gate::Undecided,
        _ => Gate::Passes,
    };
    Gate::worst(pairs.iter().map(of_pair))
}

/// The median ratio of all quadruples: what there is where too few trial pairs allow no interval.
fn rough_ratio(pair: &PairedRatios) -> Option<Estimate> {
    let logs: Vec<f64> = pair.trial_pairs.iter().flatten().map(|quadruple| quadruple.log_ratio).collect();
    Some(Estimate { median: stats::median(&logs)?.exp(), interval: None })
}

/// The option that gives a run the time for `needed` of what it had `had` of in `elapsed_ns`, and a tenth to spare.
pub(crate) fn time_of(needed: f64, had: usize, elapsed_ns: f64) -> String {
    const SPARE: f64 = 1.1;
    const WEEK_S: f64 = 7.0 * 24.0 * 3600.0;
    let seconds = (SPARE * elapsed_ns / 1e9 * needed / had.max(1) as f64).ceil().max(1.0);
    match seconds {
        seconds if seconds > WEEK_S => "more than a week (--time), or allow a wider margin".to_owned(),
        seconds if seconds >= 600.0 => format!("--time {}m", (seconds / 60.0).ceil()),
        seconds => format!("--time {seconds}s"),
    }
}

/// What a pilot says of a comparison of several pairs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonPlan {
    /// The difference to find.
    pub find: Percent,
    /// Each pair.
    pub pairs: Vec<PlannedComparison>,
    /// How long all take, in nanoseconds; absent where the pilot had too few trial pairs of one.
    pub time_ns: Option<f64>,
    /// How long all take if the pilot was lucky, in nanoseconds.
    pub time_at_most_ns: Option<f64>,
}

/// How many trial pairs, and how much time, finding a difference of `find` takes, from a pilot in which one trial pair took
/// `trial_pair_ns`.
pub fn plan_paired(
    pilot: &[PairedRatios],
    find: Percent,
    trial_pair_ns: f64,
    options: ComparisonOptions,
) -> ComparisonPlan {
    /// The part of pilots whose variance is lower than the upper end says.
    const LUCK: f64 = 0.1;
    let level = options.false_discoveries.0 / pilot.len().max(1) as f64;
    let planned = |pair: &PairedRatios| {
        let mean = MeanRatio::from_pairs(&pair.trial_pairs);
        let needs = |times: fn(MeanRatio) -> f64| {
            mean.map(|mean| mean.needed_pairs(find.0.ln_1p(), times(mean), level))
        };
        let (needs_trial_pairs, needs_at_most) = (
            needs(|_| 1.0),
            needs(|mean| {
                ChiSquared::new(mean.degrees())
                    .map_or(1.0, |chi| (mean.degrees() / chi.inverse_cdf(LUCK)).sqrt())
            }),
        );
        PlannedComparison {
            name: pair.name.clone(),
            trial_pairs: u32::try_from(pair.trial_pairs.len()).unwrap_or(u32::MAX),
            needs_trial_pairs,
            needs_at_most,
            time_ns: needs_trial_pairs.map(|pairs| f64::from(pairs) * trial_pair_ns),
            time_at_most_ns: needs_at_most.map(|pairs| f64::from(pairs) * trial_pair_ns),
        }
    };
    let pairs: Vec<PlannedComparison> = pilot.iter().map(planned).collect();
    ComparisonPlan {
        find,
        time_ns: pairs.iter().map(|pair| pair.time_ns).sum(),
        time_at_most_ns: pairs.iter().map(|pair| pair.time_at_most_ns).sum(),
        pairs,
    }
}
