//! What exchanges under a real program change: each number that was measured, beside that of the program as it is.
//!
//! The variants of a program run in passes, A B … and then B … A, so that what drifts evenly drops out of the mean of both. A pass gives one
//! ratio of each number, and the intervals come from what passes differ by; they hold at whatever time one looks, for trying stops because
//! of them.

use crate::compare::{FEWEST_TRIAL_PAIRS, MeanRatio, QuadrupleRatio, time_of};
use crate::stats;
use model::estimate::Estimate;
use model::units::Percent;
use schemars::JsonSchema;
use serde::Serialize;

/// What a number is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MeasureUnit {
    /// A time in nanoseconds.
    Nanoseconds,
    /// A count.
    Count,
    /// Bytes.
    Bytes,
    /// What the program prints, in whatever unit it does.
    Printed,
}

/// What is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// More of it.
    More,
    /// Less of it.
    Less,
}

/// A number that each run of the program gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TriedMeasure {
    /// What it is called.
    pub name: String,
    /// What it is of.
    pub unit: MeasureUnit,
    /// What is better.
    pub better: Better,
}

/// The runs of one variant with one start of its servers.
#[derive(Debug, Clone, PartialEq)]
pub struct TriedStart {
    /// Which variant, 0 the program as it is.
    pub variant: usize,
    /// Which pass over the variants.
    pub pass: u32,
    /// Of each run, each measure; absent where a run did not give it.
    pub runs: Vec<Vec<Option<f64>>>,
}

/// What an exchange does to a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// There is surely more of it.
    More,
    /// There is surely less of it.
    Less,
    /// It surely changes by no more than the margin.
    None,
    /// It was not tried long enough to tell.
    Undecided,
}

/// One number of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TriedNumber {
    /// Which number.
    #[serde(flatten)]
    pub measure: TriedMeasure,
    /// Its median over all runs; absent where no run gave it.
    pub value: Option<f64>,
    /// It over that of the program as it is, with its interval; absent with too few passes, and of the program as it is.
    pub ratio: Option<Estimate>,
    /// What follows.
    pub change: Change,
}

/// One variant of the program.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TriedVariant {
    /// What it is, in words.
    pub title: String,
    /// The exchanges that it makes, as they are typed; none for the program as it is.
    pub exchanges: Vec<String>,
    /// Its numbers, the one that decides first.
    pub numbers: Vec<TriedNumber>,
    /// How often its servers were started, or the command where there are none.
    pub starts: u32,
    /// How many runs it had.
    pub runs: u32,
    /// What its connections did in one run that warmed it up, the busiest first; none where that was not recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<TriedConnection>,
}

/// What went between two processes of the program, as `ipcmark record` sees it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TriedConnection {
    /// Who sends to whom.
    pub name: String,
    /// Through what.
    pub mechanism: String,
    /// Requests, or messages that nobody answers, a second.
    pub per_s: f64,
    /// The mean round trip in nanoseconds; absent where nobody answers.
    pub round_trip_ns: Option<f64>,
}

/// What came of trying.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Tried {
    /// The command.
    pub command: String,
    /// The variants, the program as it is first.
    pub variants: Vec<TriedVariant>,
    /// How many whole passes there were.
    pub passes: u32,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: f64,
    /// What is no change worth the name.
    pub margin: Percent,
    /// What gives a decision where there is none, as an option that is typed.
    pub needs: Option<String>,
    /// The number that decides with the calls of the program answered, over that with nobody who looks; absent where that was not measured.
    pub filter: Option<Estimate>,
    /// What could not be kept from the program, each with how often it happened.
    pub not_kept: Vec<(String, u64)>,
}

/// The interval of a ratio misses with this probability, over all variants together.
const MISS: f64 = 0.05;

/// What a variant is: its title, and its exchanges as they are typed.
pub type VariantName = (String, Vec<String>);

/// The numbers of the variants with these `names` from their starts; passes that lack one of them count for nothing.
pub fn variants_of(
    measures: &[TriedMeasure],
    names: &[VariantName],
    starts: &[TriedStart],
    margin: Percent,
) -> Vec<TriedVariant> {
    let level = MISS / names.len().saturating_sub(1).max(1) as f64;
    let tried_variant = |(variant, (title, exchanges)): (usize, &VariantName)| {
        let own = || starts.iter().filter(|start| start.variant == variant);
        let numbers = measures.iter().enumerate().map(|(at, measure)| {
            let values: Vec<f64> = own().flat_map(|start| &start.runs).filter_map(|run| run[at]).collect();
            let ratio = (variant > 0).then(|| pass_ratios(starts, variant, at));
            let mean = ratio.as_ref().and_then(|ratios| mean_ratio(ratios));
            TriedNumber {
                measure: measure.clone(),
                value: stats::median(&values),
                ratio: mean.map(|mean| estimate(mean, level)).or_else(|| rough(&ratio.unwrap_or_default())),
                change: mean.map_or(Change::Undecided, |mean| change(mean, level, margin)),
            }
        });
        TriedVariant {
            title: title.clone(),
            exchanges: exchanges.clone(),
            numbers: numbers.collect(),
            starts: count(own().count()),
            runs: count(own().map(|start| start.runs.len()).sum()),
            connections: Vec::new(),
        }
    };
    names.iter().enumerate().map(tried_variant).collect()
}

/// How many passes have all variants.
pub fn whole_passes(starts: &[TriedStart], variants: usize) -> u32 {
    let last = starts.iter().map(|start| start.pass).max().unwrap_or(0);
    let has =
        |pass: u32, variant: usize| starts.iter().any(|start| (start.pass, start.variant) == (pass, variant));
    count((0..=last).filter(|pass| (0..variants).all(|variant| has(*pass, variant))).count())
}

/// The number that decides with a filter over that without, from the starts of both.
pub fn filter_ratio(starts: &[TriedStart], free: usize) -> Option<Estimate> {
    // The program as it is, under the filter, over the one that is free.
    let ratios: Vec<f64> = pass_ratios(starts, free, 0).iter().map(|log| -log).collect();
    mean_ratio(&ratios).map(|mean| estimate(mean, MISS)).or_else(|| rough(&ratios))
}

/// Whether each variant is decided by its first number, and a change known to a fifth of itself.
pub fn is_known(variants: &[TriedVariant], margin: Percent) -> bool {
    /// Of the change.
    const PRECISION: f64 = 0.2;
    let is_known = |number: &TriedNumber| match (number.change, number.ratio) {
        (Change::None, _) => true,
        (Change::More | Change::Less, Some(Estimate { median, interval: Some((low, high)) })) => {
            (high - low) / 2.0 <= margin.0.max(PRECISION * (median - 1.0).abs())
        }
        _ => false,
    };
    variants.iter().skip(1).all(|variant| variant.numbers.first().is_some_and(is_known))
}

/// The option that gives the time for a decision on the first number of every variant; `None` where all are decided.
pub fn needs(
    starts: &[TriedStart],
    variants: &[TriedVariant],
    elapsed_ns: f64,
    margin: Percent,
) -> Option<String> {
    let level = MISS / variants.len().saturating_sub(1).max(1) as f64;
    let passes = whole_passes(starts, variants.len()) as usize;
    let needed = |variant: usize| {
        let mean = mean_ratio(&pass_ratios(starts, variant, 0));
        mean.map_or(FEWEST_TRIAL_PAIRS as u32, |mean| mean.needed_pairs(margin.0.ln_1p(), 1.0, level))
    };
    let undecided = |variant: &usize| variants[*variant].numbers[0].change == Change::Undecided;
    let most = (1..variants.len()).filter(undecided).map(needed).max()?;
    Some(time_of(f64::from(most), passes, elapsed_ns))
}

/// How many runs each start is to have, so that the interval is narrowest in the same time: many where starting takes long, few where runs of
/// one start resemble each other more than those of others.
pub fn runs_per_start(starts: &[TriedStart], start_ns: f64, run_ns: f64) -> u32 {
    const MOST: f64 = 16.0;
    /// So many starts tell something of the variance between them.
    const ENOUGH: usize = 8;
    let logs =
        |start: &TriedStart| -> Vec<f64> { start.runs.iter().filter_map(|run| Some(run[0]?.ln())).collect() };
    let several: Vec<(usize, Vec<f64>)> =
        starts.iter().map(|start| (start.variant, logs(start))).filter(|(_, logs)| logs.len() > 1).collect();
    if several.len() < ENOUGH {
        return 2;
    }
    let within = stats::mean(&several.iter().map(|(_, logs)| variance(logs)).collect::<Vec<_>>());
    let runs = stats::mean(&several.iter().map(|(_, logs)| logs.len() as f64).collect::<Vec<_>>());
    // Of each variant by itself, for variants differ.
    let mut between = Vec::new();
    for variant in 0..=several.iter().map(|(variant, _)| *variant).max().unwrap_or(0) {
        let own = several.iter().filter(|(of, _)| *of == variant);
        let means: Vec<f64> = own.map(|(_, logs)| stats::mean(logs)).collect();
        if means.len() > 1 {
            between.push(variance(&means) - within / runs);
        }
    }
    let between = stats::mean(&between).max(within / MOST.powi(2));
    if between <= 0.0 {
        return 1;
    }
    (start_ns / run_ns * within / between).sqrt().round().clamp(1.0, MOST) as u32
}

/// The log ratio of each pass that has both: what `variant` has of the measure `at`, over what the program as it is has.
fn pass_ratios(starts: &[TriedStart], variant: usize, at: usize) -> Vec<f64> {
    let last = starts.iter().map(|start| start.pass).max().map_or(0, |pass| pass + 1);
    let mean_log = |pass: u32, variant: usize| {
        let start = starts.iter().find(|start| (start.pass, start.variant) == (pass, variant));
        mean_log_of(start?, at)
    };
    (0..last).filter_map(|pass| Some(mean_log(pass, variant)? - mean_log(pass, 0)?)).collect()
}

fn mean_log_of(start: &TriedStart, at: usize) -> Option<f64> {
    let logs: Vec<f64> =
        start.runs.iter().filter_map(|run| run[at]).filter(|x| *x > 0.0).map(f64::ln).collect();
    (!logs.is_empty()).then(|| stats::mean(&logs))
}

fn mean_ratio(logs: &[f64]) -> Option<MeanRatio> {
    let passes: Vec<Vec<QuadrupleRatio>> =
        logs.iter().map(|log| vec![QuadrupleRatio { log_ratio: *log, speed: None }]).collect();
    MeanRatio::from_pairs(&passes)
}

fn estimate(mean: MeanRatio, level: f64) -> Estimate {
    let half = mean.half(level);
    Estimate { median: mean.log.exp(), interval: Some(((mean.log - half).exp(), (mean.log + half).exp())) }
}

/// Without an interval, what few passes say.
fn rough(logs: &[f64]) -> Option<Estimate> {
    Some(Estimate { median: stats::median(logs)?.exp(), interval: None })
}

fn change(mean: MeanRatio, level: f64, margin: Percent) -> Change {
    let half = mean.half(level);
    match () {
        () if mean.log > half => Change::More,
        () if -mean.log > half => Change::Less,
        () if mean.log.abs() + half <= margin.0.ln_1p() => Change::None,
        () => Change::Undecided,
    }
}

fn variance(values: &[f64]) -> f64 {
    stats::squares(values) / (values.len() as f64 - 1.0)
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: Percent = Percent(0.01);

    fn measures() -> Vec<TriedMeasure> {
        let measure = |name: &str, unit, better| TriedMeasure { name: name.to_owned(), unit, better };
        vec![
            measure("rps", MeasureUnit::Printed, Better::More),
            measure("wall time", MeasureUnit::Nanoseconds, Better::Less),
        ]
    }

    /// Passes A B and B A in turn in which B has `factor` times as much, on a host that drifts by 2 parts in a thousand a start, with noise of some parts in a
    /// thousand.
    fn starts(passes: u32, factor: f64) -> Vec<TriedStart> {
        let start = |nth: u32| {
            let (pass, place) = (nth / 2, nth % 2);
            let variant = (pass + place) % 2;
            let noise = 1e-3 * f64::from(nth * 7 % 11) / 11.0;
            let rps =
                1000.0 * if variant == 1 { factor } else { 1.0 } * (0.002 * f64::from(nth) + noise).exp();
            let runs = vec![vec![Some(rps), Some(1e9 / rps)], vec![Some(rps * 1.001), None]];
            TriedStart { variant: variant as usize, pass, runs }
        };
        (0..2 * passes).map(start).collect()
    }

    fn names() -> [VariantName; 2] {
        ["as it is", "Unix sockets"].map(|title| (title.to_owned(), vec![title.to_owned()]))
    }

    #[test]
    fn a_change_is_found_beside_a_drift_and_its_direction_told() {
        let variants = variants_of(&measures(), &names(), &starts(20, 1.4), MARGIN);
        let [rps, wall] = &variants[1].numbers[..] else { panic!() };
        let (low, high) = rps.ratio.unwrap().interval.unwrap();
        assert!(low < 1.4 && 1.4 < high && high - low < 0.01, "{rps:?}");
        assert_eq!((rps.change, wall.change), (Change::More, Change::Less));
        assert_eq!((variants[1].starts, variants[1].runs), (20, 40));
        assert!(variants[0].numbers[0].ratio.is_none());
        assert!(is_known(&variants, MARGIN));
        assert!(!is_known(&variants_of(&measures(), &names(), &starts(7, 1.4), MARGIN), MARGIN));
    }

    #[test]
    fn without_a_change_none_is_found_and_few_passes_decide_nothing() {
        let variants = variants_of(&measures(), &names(), &starts(20, 1.0), MARGIN);
        assert_eq!(variants[1].numbers[0].change, Change::None);
        let few = starts(7, 1.4);
        let variants = variants_of(&measures(), &names(), &few, MARGIN);
        let first = &variants[1].numbers[0];
        assert_eq!((first.change, first.ratio.unwrap().interval), (Change::Undecided, None));
        assert!((first.ratio.unwrap().median - 1.4).abs() < 0.01);
        // Eight passes, and a tenth to spare.
        assert_eq!(needs(&few, &variants, 7e9, MARGIN).as_deref(), Some("--time 9s"));
    }

    #[test]
    fn a_pass_that_lacks_a_start_counts_for_nothing() {
        let mut starts = starts(9, 1.4);
        starts.pop();
        assert_eq!(whole_passes(&starts, 2), 8);
        let ratio =
            |starts: &[TriedStart]| variants_of(&measures(), &names(), starts, MARGIN)[1].numbers[0].ratio;
        let before = ratio(&starts);
        starts.last_mut().unwrap().runs[0][0] = Some(1.0);
        assert_eq!(ratio(&starts), before);
    }

    #[test]
    fn starts_have_many_runs_where_starting_takes_long_and_starts_are_alike() {
        let starts_spread_by = |between: f64, within: f64| -> Vec<TriedStart> {
            let start = |nth: u32| {
                let sign = |bit: u32| f64::from(2 * (nth / bit % 2)) - 1.0;
                let runs = [-1.0, 1.0].map(|run| vec![Some((between * sign(1) + within * run).exp())]);
                TriedStart { variant: 0, pass: nth, runs: runs.to_vec() }
            };
            (0..20).map(start).collect()
        };
        assert_eq!(runs_per_start(&starts_spread_by(0.1, 0.001), 1e9, 1e9), 1);
        assert!(runs_per_start(&starts_spread_by(0.001, 0.1), 10e9, 1e9) >= 10);
        let balanced = runs_per_start(&starts_spread_by(0.02, 0.01), 4e9, 1e9);
        assert!((2..=5).contains(&balanced), "{balanced}");
        assert_eq!(runs_per_start(&starts_spread_by(0.1, 0.1)[..4], 1e9, 1e9), 2);
    }
}
