//! Comparison of two results: is B faster than A, slower, or can it not be told?
//!
//! Machines drift: they move between speeds within seconds and from run to run, one trial resembles
//! the next, and a second run of the same program is off by some per cent for reasons of its own.
//! A comparison that takes trials for independent calls half of all cases different on such a host.
//! This one goes as follows.
//!
//! 1. Everything is on logarithms: a shift is ln B − ln A, and its exponential a ratio.
//! 2. A run's trials, in time order, are cut into 3 to 10 batches of at least four where there are
//!    as many. A batch counts as its median, a run as the mean of its batches, and the error comes
//!    from the variance *between* batches, which neighbours that resemble each other do not shrink
//!    (batch means: Law, *Simulation Modeling and Analysis*, 9.5.3). Degrees of freedom are
//!    Welch's and Satterthwaite's, quantiles Student's.
//! 3. Each run adds the variance of [`ComparisonOptions::repeatability`]: what no trial of one run can show,
//!    such as the layout of the binary in memory.
//! 4. The interval of a verdict is simultaneous over all cases compared (Bonferroni).
//! 5. Each case is looked at in several *views*: its time, its time as a multiple of its floor in the
//!    same round, and as multiples of the run's other floors that resemble it. It is faster or slower
//!    when its multiple of the floor is, and the time is too, and nothing else explains the change:
//!    neither another floor nor the other rows of its place, if they moved as much. Where the time
//!    wandered too much to say, and the floor is a switch on one CPU as the case is, it is enough that
//!    the time does not contradict; but then the floor is granted a repeatability of its own.
//! 6. There is no difference when the case's own 95% interval lies within [`ComparisonOptions::margin`]. Neither
//!    the correction for many cases nor repeatability enters: they guard against a false "different".
//!
//! What this cannot see: a speed that changes from run to run for one row alone looks like a change of
//! that row; and a real change of all rows of a place that no floor shares is taken for one of the host.
//! Only further runs of each side, in turn, tell.
//!
//! Two mechanisms measured in one run, in turn, need none of this: see [`compare_paired`].

use crate::stats;
use model::case::{Case, Workload};
use model::estimate::Estimate;
use model::floor::{CACHE_LINE, CONTEXT_SWITCH, SYSCALL};
use model::record::{Fact, Header, Outcome, Record, Results, Sample};
use model::units::Percent;
use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// The fewest trials of a case, in each run, that allow a verdict.
pub const FEWEST_TRIALS: usize = 6;
/// The probability that any interval of a comparison misses what it should cover.
const MISS: f64 = 0.05;

/// What counts as the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonOptions {
    /// Ratios within 1 ± this are no difference worth the name.
    pub margin: Percent,
    /// The standard deviation by which one run of a case differs from the next on a host at rest,
    /// for reasons that trials within a run do not show: the layout of the binary, physical pages,
    /// the state of the host. With 1.5%, a case alone is never called different below 4.2%, and one of
    /// 20 cases never below 6.4%.
    pub repeatability: Percent,
}

impl Default for ComparisonOptions {
    fn default() -> Self {
        Self { margin: Percent(0.05), repeatability: Percent(0.015) }
    }
}

/// What can be said of B against A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonVerdict {
    /// B takes less time.
    Faster,
    /// B takes more time.
    Slower,
    /// Any difference is within the margin.
    NoDifference,
    /// The trials allow neither.
    CannotTell,
}

impl fmt::Display for ComparisonVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ComparisonVerdict::Faster => "faster",
            ComparisonVerdict::Slower => "slower",
            ComparisonVerdict::NoDifference => "no difference found",
            ComparisonVerdict::CannotTell => "cannot tell",
        })
    }
}

/// Two runs side by side: A before, B after.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// What counts as the same.
    pub options: ComparisonOptions,
    /// What the runs have in common less than one might think: kernels, processors, builds.
    pub differences: Vec<Difference>,
    /// The cases of both runs, in the order of A.
    pub cases: Vec<ComparedCase>,
    /// The floors of both runs: the speed of the host, no part of the cases or their number.
    pub floors: Vec<ComparedCase>,
    /// The keys of the cases that only A has.
    pub only_in_a: Vec<String>,
    /// The keys of the cases that only B has.
    pub only_in_b: Vec<String>,
    /// All cases together.
    pub totals: ComparisonTotals,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// A fact about the runs that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// Which.
    pub what: String,
    /// What it is in A.
    pub a: String,
    /// What it is in B.
    pub b: String,
}

/// One case, or one floor, in both runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedCase {
    /// The text that pairs them.
    pub key: String,
    /// The case as A has it.
    pub case: Case,
    /// What A measured.
    pub a: Side,
    /// What B measured.
    pub b: Side,
    /// B's time over A's; absent with too few trials.
    pub ratio: Option<Ratio>,
    /// The same as multiples of a floor in the same rounds; absent where no floor ran in both.
    pub adjusted: Option<Adjusted>,
    /// What follows.
    pub verdict: ComparisonVerdict,
    /// Whether the times differ only because the floors do: the host changed, not the mechanism.
    pub floors_differ: bool,
    /// Why it cannot be told, or what stands behind the verdict, where that is not plain.
    pub reason: Option<String>,
}

/// One run's part in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Side {
    /// The median trial, in nanoseconds per iteration; absent without trials.
    pub median_ns: Option<f64>,
    /// How many trials.
    pub trials: u32,
}

/// B over A. A ratio of 1.1 is 10% more time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Ratio {
    /// The ratio: the geometric mean over each run's batches of trials, each batch by its median.
    pub ratio: f64,
    /// The interval by which a case is called different: 95% simultaneously for all cases compared,
    /// with the repeatability of runs in it.
    pub interval: (f64, f64),
    /// The 95% interval of this case alone, from the trials alone, by which no difference is found.
    pub own_interval: (f64, f64),
}

/// A ratio of multiples of a floor.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Adjusted {
    /// The floor.
    pub by: String,
    /// The ratio.
    pub ratio: Ratio,
}

/// All cases together.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonTotals {
    /// How many cases have enough trials in both runs; the intervals hold for so many together.
    pub compared: u32,
    /// How many are faster in B.
    pub faster: u32,
    /// How many are slower in B.
    pub slower: u32,
    /// In how many no difference was found.
    pub no_difference: u32,
    /// Of how many it cannot be told.
    pub cannot_tell: u32,
    /// The geometric mean of the ratios, with a 95% interval that holds however the cases hang together.
    pub ratio: Option<Estimate>,
    /// The same of the adjusted ratios.
    pub adjusted: Option<Estimate>,
    /// The same of the floors: the speed of the host.
    pub floors: Option<Estimate>,
}

/// Compares run `b` with run `a`. Cases are paired by [`Case::key`], and where several share one, by CPUs.
pub fn compare(a: &Results, b: &Results, options: ComparisonOptions) -> Comparison {
    let (pairs, only_in_a, only_in_b) = pair(&a.records, &b.records);
    let (floors, cases): (Vec<Pair<'_>>, Vec<Pair<'_>>) =
        pairs.into_iter().partition(|pair| pair.a.floor || pair.b.floor);
    let references: Vec<Reference<'_>> = floors.iter().filter_map(Reference::of).collect();
    let caution = |pairs: &[Pair<'_>]| Caution {
        together: pairs.iter().filter(|pair| pair.is_comparable()).count(),
        options,
    };
    let (of_cases, of_floors) = (caution(&cases), caution(&floors));
    let peers = Peers::of(&cases);
    let cases: Vec<Judged> =
        cases.iter().map(|pair| judge_case(pair, &references, &peers, of_cases)).collect();
    let floors: Vec<Judged> = floors.iter().map(|pair| judge_floor(pair, of_floors)).collect();
    let totals = totals(&cases, &floors, options);
    Comparison {
        options,
        differences: differences(&a.header, &b.header),
        notes: notes(a, b, &cases),
        cases: cases.into_iter().map(|judged| judged.compared).collect(),
        floors: floors.into_iter().map(|judged| judged.compared).collect(),
        only_in_a,
        only_in_b,
        totals,
    }
}

/// The cases for which `comparison` fails a limit of `above` on slowing down, as in a CI gate.
///
/// A case fails when it is called slower *and* its ratio is above 1 + `above`, both as measured and
/// against its floor: what is asked of is the mechanism, not the host. The ratio itself counts, not the
/// low end of its interval: that B is slower at all is already beyond doubt, and a gate on the low
/// end would let pass twice the slow-down that it names. What cannot be told does not fail; a gate
/// that must not be blind looks at [`ComparisonTotals::cannot_tell`] too.
pub fn failures(comparison: &Comparison, above: Percent) -> Vec<&ComparedCase> {
    let over = |ratio: Option<&Ratio>| ratio.is_none_or(|ratio| ratio.ratio > 1.0 + above.0);
    let fails = |case: &&ComparedCase| {
        case.verdict == ComparisonVerdict::Slower
            && over(case.ratio.as_ref())
            && over(case.adjusted.as_ref().map(|adjusted| &adjusted.ratio))
    };
    comparison.cases.iter().filter(fails).collect()
}

// ---- pairing ----

/// One case in both runs.
#[derive(Clone, Copy)]
struct Pair<'a> {
    a: &'a Record,
    b: &'a Record,
}

impl Pair<'_> {
    fn is_comparable(&self) -> bool {
        self.a.samples.len() >= FEWEST_TRIALS && self.b.samples.len() >= FEWEST_TRIALS
    }
}

/// The pairs in A's order, and the keys that only A and only B have.
///
/// A key names no CPUs unless they were asked for, so that a run can have two cases of one key, such
/// as the same copy on two CPUs. These pair by CPUs first, and what is left in order.
fn pair<'a>(a: &'a [Record], b: &'a [Record]) -> (Vec<Pair<'a>>, Vec<String>, Vec<String>) {
    let mut left: HashMap<String, Vec<&Record>> = HashMap::new();
    for record in b.iter().rev() {
        left.entry(record.case.key()).or_default().push(record);
    }
    let mut partners: Vec<Option<&Record>> = vec![None; a.len()];
    for any_cpus in [false, true] {
        for (record, partner) in a.iter().zip(&mut partners).filter(|(_, partner)| partner.is_none()) {
            let Some(candidates) = left.get_mut(&record.case.key()) else { continue };
            let found = candidates.iter().rposition(|b| any_cpus || b.case.cpus == record.case.cpus);
            *partner = found.map(|at| candidates.remove(at));
        }
    }
    let pairs = a.iter().zip(&partners).filter_map(|(a, b)| b.map(|b| Pair { a, b })).collect();
    let only_in_a = a.iter().zip(&partners).filter(|(_, b)| b.is_none()).map(|(a, _)| a.case.key()).collect();
    let mut only_in_b = Vec::new();
    for record in b {
        let key = record.case.key();
        if left.get(&key).is_some_and(|left| left.iter().any(|other| std::ptr::eq(*other, record))) {
            only_in_b.push(key);
        }
    }
    (pairs, only_in_a, only_in_b)
}

// ---- shifts and views ----

/// How cautiously to judge.
#[derive(Clone, Copy)]
struct Caution {
    /// Over how many cases the intervals hold together.
    together: usize,
    options: ComparisonOptions,
}

impl Caution {
    /// The variance that `quantities` which differ from run to run add to a shift between two runs.
    fn repeat_variance(self, quantities: f64) -> f64 {
        2.0 * quantities * self.options.repeatability.0.powi(2)
    }

    /// The probability on each side of a simultaneous interval.
    fn tail(self) -> f64 {
        MISS / 2.0 / self.together.max(1) as f64
    }

    fn within_margin(self, log: f64, half: f64) -> bool {
        log.abs() + half <= self.options.margin.0.ln_1p()
    }
}

/// The mean of a run's batches, on logarithms.
#[derive(Clone, Copy)]
struct BatchMean {
    mean: f64,
    variance: f64,
    degrees: f64,
}

impl BatchMean {
    /// Of at least [`FEWEST_TRIALS`] logarithms in time order.
    fn of(logs: &[f64]) -> Option<Self> {
        let n = logs.len();
        if n < FEWEST_TRIALS {
            return None;
        }
        let batches = (n / 4).clamp(3, 10);
        let medians: Option<Vec<f64>> = (0..batches)
            .map(|nth| stats::median(&logs[nth * n / batches..(nth + 1) * n / batches]))
            .collect();
        let medians = medians?;
        let degrees = (batches - 1) as f64;
        Some(Self {
            mean: stats::mean(&medians),
            variance: stats::squares(&medians) / degrees / batches as f64,
            degrees,
        })
    }
}

/// ln B − ln A, with its variance from the trials.
#[derive(Clone, Copy)]
struct Shift {
    log: f64,
    variance: f64,
    /// The sum of squared variances, each over its degrees of freedom.
    spread: f64,
}

impl Shift {
    fn between(a: &[f64], b: &[f64]) -> Option<Self> {
        let (a, b) = (BatchMean::of(a)?, BatchMean::of(b)?);
        Some(Self {
            log: b.mean - a.mean,
            variance: a.variance + b.variance,
            spread: a.variance.powi(2) / a.degrees + b.variance.powi(2) / b.degrees,
        })
    }

    /// Half the width of the interval that misses with `tail` on each side, with a variance of
    /// `known` beside that of the trials.
    fn half(self, known: f64, tail: f64) -> f64 {
        let variance = self.variance + known;
        student_quantile(tail, variance.powi(2) / self.spread) * variance.sqrt()
    }
}

/// The point that a Student variable of `degrees` of freedom exceeds with probability `tail`.
pub(crate) fn student_quantile(tail: f64, degrees: f64) -> f64 {
    /// From here on it is the normal one to four digits; NaN is of no variance at all.
    const AS_GOOD_AS_NORMAL: f64 = 1e4;
    let degrees = if degrees.is_nan() { AS_GOOD_AS_NORMAL } else { degrees.clamp(1.0, AS_GOOD_AS_NORMAL) };
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::INFINITY, |t| -t.inverse_cdf(tail))
}

/// A shift as judged.
#[derive(Clone, Copy)]
struct View {
    shift: Shift,
    /// Of the simultaneous interval with repeatability.
    half: f64,
    /// The same with the floor's repeatability too.
    strict_half: f64,
    /// Of the case's own interval, from the trials alone.
    own_half: f64,
}

impl View {
    /// Of the logarithms of each run, in time order; `None` where either has too few.
    fn of(a: &[f64], b: &[f64], caution: Caution) -> Option<Self> {
        let shift = Shift::between(a, b)?;
        Some(Self {
            shift,
            half: shift.half(caution.repeat_variance(1.0), caution.tail()),
            strict_half: shift.half(caution.repeat_variance(2.0), caution.tail()),
            own_half: shift.half(0.0, MISS / 2.0),
        })
    }

    /// The side of 1 on which the whole interval lies.
    fn side(self) -> Option<ComparisonVerdict> {
        side_of(self.shift.log, self.half)
    }

    /// Whether this view leaves room for `other`'s: both on one side, or `other`'s shift in this interval.
    fn allows(self, other: View) -> bool {
        self.side().is_some_and(|side| other.side() == Some(side))
            || (self.shift.log - other.shift.log).abs() <= self.half
    }

    fn ratio(self) -> Ratio {
        let ends = |half: f64| ((self.shift.log - half).exp(), (self.shift.log + half).exp());
        Ratio { ratio: self.shift.log.exp(), interval: ends(self.half), own_interval: ends(self.own_half) }
    }
}

fn side_of(log: f64, half: f64) -> Option<ComparisonVerdict> {
    match () {
        () if log - half > 0.0 => Some(ComparisonVerdict::Slower),
        () if log + half < 0.0 => Some(ComparisonVerdict::Faster),
        () => None,
    }
}

/// The logarithms of `samples` as multiples of `floor_ns`, in time order; without those that have no floor.
fn logs(samples: &[Sample], floor_ns: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
    let mut timed: Vec<(u64, f64)> =
        samples.iter().filter_map(|s| Some((s.started_ns, (s.iteration_ns() / floor_ns(s)?).ln()))).collect();
    timed.sort_by_key(|(started_ns, _)| *started_ns);
    timed.into_iter().map(|(_, log)| log).collect()
}

/// The logarithms of the times of a record.
fn times(record: &Record) -> Vec<f64> {
    logs(&record.samples, |_| Some(1.0))
}

/// A floor that ran in every round of both runs.
struct Reference<'a> {
    case: &'a Case,
    ns_by_round: [HashMap<u32, f64>; 2],
}

impl<'a> Reference<'a> {
    fn of(pair: &Pair<'a>) -> Option<Self> {
        let by_round = |record: &Record| record.samples.iter().map(|s| (s.round, s.iteration_ns())).collect();
        let is_one = [SYSCALL, CONTEXT_SWITCH, CACHE_LINE].contains(&pair.a.case.spec.name.as_str());
        is_one.then(|| Self { case: &pair.a.case, ns_by_round: [by_round(pair.a), by_round(pair.b)] })
    }

    /// Whether a change of this floor could be a change of `case`: every case enters the kernel, and a
    /// hand-over where the case runs resembles what the case does.
    fn resembles(&self, case: &Case) -> bool {
        self.case.spec.name == SYSCALL
            || (self.case.placement == case.placement && self.case.workload == Workload::Latency)
    }

    fn view(&self, pair: &Pair<'_>, caution: Caution) -> Option<View> {
        let logs = |record: &Record, run: usize| {
            logs(&record.samples, |sample| self.ns_by_round[run].get(&sample.round).copied())
        };
        View::of(&logs(pair.a, 0), &logs(pair.b, 1), caution)
    }
}

/// How the rows of a place moved from A to B, to tell whether one of them moved alone.
///
/// Rows are taken together, because all sizes of one mechanism may well change for one reason.
struct Peers {
    /// The median shift of each row, by workload and placement.
    rows: HashMap<(Workload, String), BTreeMap<String, f64>>,
}

impl Peers {
    /// The fewest other rows whose common movement says something of the host.
    const FEWEST: usize = 3;

    fn of(cases: &[Pair<'_>]) -> Self {
        let mut shifts: HashMap<(Workload, String), BTreeMap<String, Vec<f64>>> = HashMap::new();
        for pair in cases {
            let Some(shift) = Shift::between(&times(pair.a), &times(pair.b)) else { continue };
            let rows = shifts.entry(Self::place(&pair.a.case)).or_default();
            rows.entry(pair.a.case.spec.name.clone()).or_default().push(shift.log);
        }
        let median_of = |(name, logs): (String, Vec<f64>)| Some((name, stats::median(&logs)?));
        let rows = shifts
            .into_iter()
            .map(|(place, rows)| (place, rows.into_iter().filter_map(median_of).collect()))
            .collect();
        Self { rows }
    }

    fn place(case: &Case) -> (Workload, String) {
        (case.workload, case.placement.to_string())
    }

    /// `time`, the view of `case`, less what the other rows of its place moved; `None` with too few.
    fn view(&self, case: &Case, time: View) -> Option<View> {
        let rows = self.rows.get(&Self::place(case))?;
        let others: Vec<f64> =
            rows.iter().filter(|(name, _)| **name != case.spec.name).map(|(_, log)| *log).collect();
        let moved = stats::median(&others).filter(|_| others.len() >= Self::FEWEST)?;
        Some(View { shift: Shift { log: time.shift.log - moved, ..time.shift }, ..time })
    }
}

// ---- verdicts ----

/// A verdict with the shifts behind it, for the totals.
struct Judged {
    compared: ComparedCase,
    time: Option<Shift>,
    adjusted: Option<Shift>,
}

/// What was found of one pair.
struct Finding {
    verdict: ComparisonVerdict,
    floors_differ: bool,
    reason: Option<String>,
}

impl Finding {
    fn plain(verdict: ComparisonVerdict) -> Self {
        Self { verdict, floors_differ: false, reason: None }
    }

    fn cannot_tell(reason: String) -> Self {
        Self { reason: Some(reason), ..Self::plain(ComparisonVerdict::CannotTell) }
    }
}

/// A view that may leave nothing of a change.
struct Explanation {
    what: String,
    is_floor: bool,
    view: View,
}

fn judge_case(pair: &Pair<'_>, references: &[Reference<'_>], peers: &Peers, caution: Caution) -> Judged {
    let Some(time) = time_view(pair, caution) else {
        return judged(pair, None, None, Finding::cannot_tell(lack(pair)));
    };
    let own_floor = |record: &Record| logs(&record.samples, |sample| sample.floor_ns);
    let own = View::of(&own_floor(pair.a), &own_floor(pair.b), caution).map(|view| ("its floor", view));
    let floor_is_alike = own.is_some() && is_switch(&pair.a.case) && is_switch(&pair.b.case);
    let mut floors: Vec<(&str, View)> = references
        .iter()
        .filter(|reference| reference.resembles(&pair.a.case))
        .filter_map(|reference| Some((reference.case.spec.name.as_str(), reference.view(pair, caution)?)))
        .collect();
    // A case without a floor of its own, such as an operation, is held against the bare system call.
    let stand_in = || floors.iter().position(|(name, _)| *name == SYSCALL).map(|at| floors.remove(at));
    let Some(adjusted) = own.or_else(stand_in) else {
        return judged(pair, Some(time), None, without_floor(time, caution));
    };
    let of_floor = |(name, view)| Explanation { what: format!("the floor '{name}'"), is_floor: true, view };
    let of_peers = |view| Explanation { what: "the other rows there".to_owned(), is_floor: false, view };
    let peers = peers.view(&pair.a.case, time).map(of_peers);
    let others: Vec<Explanation> = floors.into_iter().map(of_floor).chain(peers).collect();
    let finding = weigh(time, adjusted.1, floor_is_alike, &others, caution);
    judged(pair, Some(time), Some(adjusted), finding)
}

/// Whether an iteration of `case` hands over and back by switching on one CPU.
fn is_switch(case: &Case) -> bool {
    matches!(case.workload, Workload::Latency | Workload::Transfer)
        && case.cpus.is_some_and(|cpus| cpus.client == cpus.server)
}

/// A floor is the measure of the host itself, so that its time is all there is to look at.
fn judge_floor(pair: &Pair<'_>, caution: Caution) -> Judged {
    let Some(time) = time_view(pair, caution) else {
        return judged(pair, None, None, Finding::cannot_tell(lack(pair)));
    };
    let finding = match time.side() {
        Some(side) => Finding::plain(side),
        None => undecided(time, time, caution),
    };
    judged(pair, Some(time), None, finding)
}

fn time_view(pair: &Pair<'_>, caution: Caution) -> Option<View> {
    View::of(&times(pair.a), &times(pair.b), caution)
}

/// The verdict of a case from its time, its multiple of its floor, and its multiples of `others`.
///
/// Where the time alone says nothing, its multiple of a floor is believed only if that floor does as
/// the case does. A switch between two processes on one CPU is in every round trip there. A copy or
/// a bare system call drifts by laws of its own, and so does a cache line handed over by spinning,
/// beside an end that sleeps on another CPU.
fn weigh(
    time: View,
    adjusted: View,
    floor_is_alike: bool,
    others: &[Explanation],
    caution: Caution,
) -> Finding {
    let strictly = side_of(adjusted.shift.log, adjusted.strict_half).is_some();
    let agreed = time.side() == adjusted.side() || (floor_is_alike && strictly && time.allows(adjusted));
    let explained_by = others.iter().find(|other| !other.view.allows(adjusted));
    match (adjusted.side(), explained_by) {
        (Some(side), None) if agreed => Finding::plain(side),
        (Some(_), Some(other)) if agreed => Finding {
            floors_differ: other.is_floor,
            ..Finding::cannot_tell(format!("{} changed too, which may explain it", other.what))
        },
        (Some(_), _) if time.side().is_none() => Finding::cannot_tell(
            "only its multiple of the floor changed: the floor may have, instead of the case".to_owned(),
        ),
        _ if time.side().is_some() => only_the_time_differs(time, adjusted, caution),
        _ => undecided(time, adjusted, caution),
    }
}

/// The time is on one side of 1 and the multiple of the floor is not: because the floor moved with
/// it, or because the multiple is too uncertain to say.
fn only_the_time_differs(time: View, adjusted: View, caution: Caution) -> Finding {
    let found = undecided(time, adjusted, caution);
    let as_ever = caution.within_margin(adjusted.shift.log, adjusted.own_half);
    let floors_differ = as_ever || !adjusted.allows(time);
    let reason = if floors_differ {
        "the runs differ only because their floors do"
    } else {
        "its time changed; as a multiple of its floor that is not certain"
    };
    Finding { floors_differ, reason: Some(reason.to_owned()), ..found }
}

/// Not called different: is there no difference, or can it not be told?
fn undecided(time: View, adjusted: View, caution: Caution) -> Finding {
    let same = |view: View| caution.within_margin(view.shift.log, view.own_half);
    if same(adjusted) || same(time) {
        return Finding::plain(ComparisonVerdict::NoDifference);
    }
    let away = side_of(adjusted.shift.log, adjusted.own_half).is_some();
    Finding::cannot_tell(if away {
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
fn without_floor(time: View, caution: Caution) -> Finding {
    match time.side() {
        None => undecided(time, time, caution),
        Some(_) => Finding::cannot_tell(
            "no floor was launched beside it in both runs: the host may have changed instead".to_owned(),
        ),
    }
}

/// Why a pair cannot be compared at all.
fn lack(pair: &Pair<'_>) -> String {
    let of = |run: &str, record: &Record| {
        let trials = record.samples.len();
        let failure = match &record.outcome {
            Outcome::Failed { error } => format!(" ({error})"),
            _ => String::new(),
        };
        (trials < FEWEST_TRIALS)
            .then(|| format!("{run} has {trials} of the {FEWEST_TRIALS} trials needed{failure}"))
    };
    let lacks: Vec<String> = [of("A", pair.a), of("B", pair.b)].into_iter().flatten().collect();
    lacks.join("; ")
}

fn judged(pair: &Pair<'_>, time: Option<View>, adjusted: Option<(&str, View)>, finding: Finding) -> Judged {
    let side = |record: &Record| {
        let iterations_ns: Vec<f64> = record.samples.iter().map(Sample::iteration_ns).collect();
        Side {
            median_ns: stats::median(&iterations_ns),
            trials: u32::try_from(iterations_ns.len()).unwrap_or(u32::MAX),
        }
    };
    Judged {
        compared: ComparedCase {
            key: pair.a.case.key(),
            case: pair.a.case.clone(),
            a: side(pair.a),
            b: side(pair.b),
            ratio: time.map(View::ratio),
            adjusted: adjusted.map(|(by, view)| Adjusted { by: by.to_owned(), ratio: view.ratio() }),
            verdict: finding.verdict,
            floors_differ: finding.floors_differ,
            reason: finding.reason,
        },
        time: time.map(|view| view.shift),
        adjusted: adjusted.map(|(_, view)| view.shift),
    }
}

// ---- all cases together ----

fn totals(cases: &[Judged], floors: &[Judged], options: ComparisonOptions) -> ComparisonTotals {
    let count = |verdict: ComparisonVerdict| {
        let found = cases.iter().filter(|case| case.compared.verdict == verdict).count();
        u32::try_from(found).unwrap_or(u32::MAX)
    };
    let times: Vec<Shift> = cases.iter().filter_map(|case| case.time).collect();
    let adjusted: Vec<Shift> = cases.iter().filter_map(|case| case.adjusted).collect();
    let floors: Vec<Shift> = floors.iter().filter_map(|floor| floor.time).collect();
    ComparisonTotals {
        compared: u32::try_from(times.len()).unwrap_or(u32::MAX),
        faster: count(ComparisonVerdict::Faster),
        slower: count(ComparisonVerdict::Slower),
        no_difference: count(ComparisonVerdict::NoDifference),
        cannot_tell: count(ComparisonVerdict::CannotTell),
        ratio: geometric_mean(&times, options),
        adjusted: geometric_mean(&adjusted, options),
        floors: geometric_mean(&floors, options),
    }
}

/// The geometric mean of ratios. The cases of a run drift together, so that their errors are added as if
/// all were one error (the standard deviation of a mean is at most the mean of the standard
/// deviations, however the parts hang together); only repeatability is each case's own.
fn geometric_mean(shifts: &[Shift], options: ComparisonOptions) -> Option<Estimate> {
    if shifts.is_empty() {
        return None;
    }
    let caution = Caution { together: 1, options };
    let of = |value: fn(&Shift) -> f64| stats::mean(&shifts.iter().map(value).collect::<Vec<_>>());
    let deviation = of(|shift| shift.variance.sqrt());
    let degrees =
        shifts.iter().map(|shift| shift.variance.powi(2) / shift.spread).fold(f64::INFINITY, f64::min);
    let variance = deviation.powi(2);
    let mean = Shift { log: of(|shift| shift.log), variance, spread: variance.powi(2) / degrees };
    let half = mean.half(caution.repeat_variance(1.0) / shifts.len() as f64, caution.tail());
    Some(Estimate {
        median: mean.log.exp(),
        interval: Some(((mean.log - half).exp(), (mean.log + half).exp())),
    })
}

/// What a reader must know of the comparison as a whole.
fn notes(a: &Results, b: &Results, cases: &[Judged]) -> Vec<String> {
    /// From so many cases on, most of them moving together is no accident.
    const MANY: usize = 4;

    let mut notes = Vec::new();
    for (run, results) in [("A", a), ("B", b)] {
        if results.end.as_ref().is_none_or(|end| end.interrupted) {
            notes.push(format!("run {run} was cut off: its cases have fewer trials than planned"));
        }
    }
    let times: Vec<Ratio> = cases.iter().filter_map(|case| case.compared.ratio).collect();
    let slower = times.iter().filter(|ratio| ratio.interval.0 > 1.0).count();
    let faster = times.iter().filter(|ratio| ratio.interval.1 < 1.0).count();
    for (word, moved) in [("less", faster), ("more", slower)] {
        if times.len() >= MANY && moved * 2 > times.len() {
            notes.push(format!(
                "most cases ({moved} of {}) take {word} time together: the host may have changed; measure A and \
                 B again, in turn",
                times.len()
            ));
        }
    }
    notes
}

/// The facts that differ between two runs and bear on the results.
fn differences(a: &Header, b: &Header) -> Vec<Difference> {
    let facts = |header: &Header| {
        let host = &header.host;
        BTreeMap::from([
            ("architecture", host.arch.clone()),
            ("build", format!("{} {} {}", header.tool.version, header.tool.profile, header.tool.target)),
            ("checked payload", header.settings.check.to_string()),
            ("clock source", text(&host.clocksource)),
            ("governor", text(&host.governor)),
            ("host", text(&host.name)),
            ("kernel", text(&host.kernel)),
            ("mitigations", text(&host.mitigations)),
            ("processor", text(&host.cpu)),
            ("simultaneous multi-threading", text(&host.smt)),
            ("slice in nanoseconds", header.settings.slice_ns.to_string()),
            ("transparent huge pages", text(&host.transparent_huge_pages)),
            ("virtualisation", text(&host.virtualisation)),
        ])
    };
    let pairs = facts(a).into_iter().zip(facts(b).into_values());
    pairs
        .filter(|((_, a), b)| a != b)
        .map(|((what, a), b)| Difference { what: what.to_owned(), a, b })
        .collect()
}

/// A fact as text; that it is unknown is a fact, why is not.
fn text<T: fmt::Debug>(fact: &Fact<T>) -> String {
    fact.known()
        .map_or_else(|| "unknown".to_owned(), |value| format!("{value:?}").trim_matches('"').to_owned())
}

// ---- two mechanisms in one run ----

/// Two cases measured in turn in every round of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedRatios {
    /// What is compared, such as `pipe against unix-stream, latency 64`.
    pub name: String,
    /// One log-ratio a round, in order, from [`round_log_ratios`].
    pub log_ratios: Vec<f64>,
}

/// What came of two cases measured in turn.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PairedComparison {
    /// What is compared.
    pub name: String,
    /// How many rounds had both.
    pub rounds: u32,
    /// B's time over A's: the median round, with an interval of 95% for all pairs together; absent with no rounds.
    pub ratio: Option<Estimate>,
    /// What follows.
    pub verdict: ComparisonVerdict,
    /// Why it cannot be told.
    pub reason: Option<String>,
}

/// The log-ratio of every round in which both were launched: the mean logarithm of B's trials less
/// that of A's. In the order A B B A a drift that is linear over the round drops out.
pub fn round_log_ratios(a: &[Sample], b: &[Sample]) -> Vec<f64> {
    let logs_by_round = |samples: &[Sample]| {
        let mut logs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for sample in samples {
            logs.entry(sample.round).or_default().push(sample.iteration_ns().ln());
        }
        logs
    };
    let of_b = logs_by_round(b);
    let in_both = logs_by_round(a).into_iter().filter_map(|(round, a)| Some((a, of_b.get(&round)?)));
    in_both.map(|(a, b)| stats::mean(b) - stats::mean(&a)).collect()
}

/// Compares two mechanisms, in one or more cases, that one run measured in turn.
///
/// Both sides of a round had the same host, so that nothing has to be adjusted: the ratio is that of
/// the median round, its interval is of order statistics and holds for all pairs together
/// (Bonferroni). Every round has fresh endpoints, so that what differs from run to run differs from
/// round to round and is in the interval. It assumes that what is left in the *ratio* of one round says
/// nothing of the next.
pub fn compare_paired(pairs: &[PairedRatios], options: ComparisonOptions) -> Vec<PairedComparison> {
    let together = pairs.iter().filter(|pair| pair.log_ratios.len() >= FEWEST_TRIALS).count();
    let caution = Caution { together, options };
    pairs.iter().map(|pair| judge_paired(pair, caution)).collect()
}

fn judge_paired(pair: &PairedRatios, caution: Caution) -> PairedComparison {
    let estimate = stats::median_interval_at(&pair.log_ratios, 1.0 - 2.0 * caution.tail());
    let margin = caution.options.margin;
    let (verdict, reason) = match estimate.and_then(|estimate| estimate.interval) {
        None => {
            let why =
                format!("{} rounds are too few for {} pairs", pair.log_ratios.len(), caution.together.max(1));
            (ComparisonVerdict::CannotTell, Some(why))
        }
        Some((low, _)) if low > 0.0 => (ComparisonVerdict::Slower, None),
        Some((_, high)) if high < 0.0 => (ComparisonVerdict::Faster, None),
        Some((low, high)) if caution.within_margin(low, 0.0) && caution.within_margin(high, 0.0) => {
            (ComparisonVerdict::NoDifference, None)
        }
        Some(_) => (
            ComparisonVerdict::CannotTell,
            Some(format!("its interval reaches beyond ±{margin}: give it more time")),
        ),
    };
    PairedComparison {
        name: pair.name.clone(),
        rounds: u32::try_from(pair.log_ratios.len()).unwrap_or(u32::MAX),
        ratio: estimate.map(|estimate| estimate.map(f64::exp)),
        verdict,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::case::Spec;
    use model::floor;
    use model::testing;
    use model::topology::CpuPair;
    use model::units::Size;
    use proptest::prelude::*;

    /// A deterministic source of random numbers (splitmix64), so that every rate below is the same everywhere.
    struct Random(u64);

    impl Random {
        fn unit(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^= z >> 31;
            ((z >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
        }

        fn exponential(&mut self, mean: f64) -> f64 {
            -mean * self.unit().ln()
        }
    }

    /// How the speed of a host moves, on logarithms.
    #[derive(Debug, Clone, Copy)]
    enum Drift {
        Rest,
        /// Each run has its own speed.
        Level,
        /// An autoregressive process with a standard deviation of 10% and this correlation time in seconds.
        Wander(f64),
        /// Two modes, ×1.0 and ×1.5, left after this time in seconds on average.
        Modes(f64),
    }

    impl Drift {
        const STEP_S: f64 = 0.05;

        fn path(self, deviation: f64, seconds: f64, random: &mut Random) -> Vec<f64> {
            let steps = (seconds / Self::STEP_S) as usize + 2;
            match self {
                Drift::Rest => vec![0.0; steps],
                Drift::Level => vec![2.0 * deviation * random.normal(); steps],
                Drift::Wander(correlation_s) => {
                    let keep = (-Self::STEP_S / correlation_s).exp();
                    let mut at = deviation * random.normal();
                    let mut step = || {
                        at = keep * at + (1.0 - keep * keep).sqrt() * deviation * random.normal();
                        at
                    };
                    (0..steps).map(|_| step()).collect()
                }
                Drift::Modes(dwell_s) => {
                    let mut slow = random.unit() < 0.5;
                    let mut left_s = random.exponential(dwell_s);
                    let mut step = || {
                        left_s -= Self::STEP_S;
                        while left_s < 0.0 {
                            slow = !slow;
                            left_s += random.exponential(dwell_s);
                        }
                        if slow { 1.5f64.ln() } else { 0.0 }
                    };
                    (0..steps).map(|_| step()).collect()
                }
            }
        }
    }

    /// A simulated suite on a simulated host: 20 cases, three floors, a minute in rounds of 1.5 s.
    #[derive(Debug, Clone, Copy)]
    struct World {
        drift: Drift,
        /// How much of the host's speed each floor shares: the system call, the hand-over, the copy.
        shares: [f64; 3],
        /// The deviation from run to run of one case, which no floor shares.
        case_shift: f64,
        /// The same of a floor.
        floor_shift: f64,
        /// A drift of each case alone: deviation and correlation time in seconds.
        own_drift: Option<(f64, f64)>,
        /// Whether cases leave when their interval is narrow enough, as in a real run.
        settles: bool,
        /// What B's first case takes over A's.
        effect: f64,
    }

    const CASES: usize = 20;
    const ROUNDS: usize = 40;
    const ROUND_S: f64 = 1.5;
    const WORLD: World = World {
        drift: Drift::Rest,
        shares: [1.0; 3],
        case_shift: 0.02,
        floor_shift: 0.01,
        own_drift: None,
        settles: false,
        effect: 1.0,
    };

    fn on_cpu(name: &str, workload: Workload) -> Case {
        let size_bytes = (workload != Workload::Cost).then_some(Size(64));
        Case { workload, size_bytes, ..floor::operation(name, 1) }
    }

    impl World {
        fn cases() -> Vec<Case> {
            let workload = |nth: usize| match nth % 10 {
                9 => Workload::Cost,
                5..9 => Workload::Throughput,
                _ => Workload::Latency,
            };
            (0..CASES).map(|nth| on_cpu(&format!("row-{nth}"), workload(nth))).collect()
        }

        fn run(self, effect: f64, random: &mut Random) -> Results {
            let floors = [
                on_cpu(SYSCALL, Workload::Cost),
                on_cpu(CONTEXT_SWITCH, Workload::Latency),
                on_cpu(floor::MEMCPY, Workload::Cost),
            ];
            let cases = Self::cases();
            let slots = cases.len() + floors.len();
            let seconds = ROUNDS as f64 * ROUND_S;
            let speed = self.drift.path(0.1, seconds, random);
            let own: Vec<Vec<f64>> = (0..CASES)
                .map(|_| match self.own_drift {
                    Some((deviation, s)) => Drift::Wander(s).path(deviation, seconds, random),
                    None => vec![0.0; speed.len()],
                })
                .collect();
            let shifts: Vec<f64> = (0..slots)
                .map(|slot| random.normal() * if slot < CASES { self.case_shift } else { self.floor_shift })
                .collect();
            let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); slots];
            for round in 0..ROUNDS {
                let logs = self.round(round, effect, &speed, &own, &shifts, random);
                for (slot, (at_s, log)) in logs.iter().enumerate() {
                    if slot < CASES && self.settles && is_settled(&samples[slot]) {
                        continue;
                    }
                    // Throughput is bounded by the copy, the rest by the hand-over.
                    let floor = cases.get(slot).and_then(|case| match case.workload {
                        Workload::Cost => None,
                        Workload::Throughput => Some(CASES + 2),
                        _ => Some(CASES + 1),
                    });
                    let floor_ns = floor.map(|floor| 400.0 * logs[floor].1.exp());
                    samples[slot].push(Sample {
                        started_ns: (at_s * 1e9) as u64,
                        ..testing::sample(round as u32, 1000.0 * log.exp(), floor_ns)
                    });
                }
            }
            let records = cases.into_iter().chain(floors).zip(samples).enumerate();
            let records = records.map(|(slot, (case, samples))| Record {
                floor: slot >= CASES,
                ..testing::record(case, samples)
            });
            Results { records: records.collect(), ..testing::results() }
        }

        /// One round in random order: when each slot was launched, and the logarithm of its time.
        fn round(
            self,
            round: usize,
            effect: f64,
            speed: &[f64],
            own: &[Vec<f64>],
            shifts: &[f64],
            random: &mut Random,
        ) -> Vec<(f64, f64)> {
            let slots = shifts.len();
            let mut order: Vec<usize> = (0..slots).collect();
            for last in (1..slots).rev() {
                order.swap(last, (random.unit() * (last + 1) as f64) as usize);
            }
            let mut logs = vec![(0.0, 0.0); slots];
            for (place, slot) in order.into_iter().enumerate() {
                let at_s = (round as f64 + place as f64 / slots as f64) * ROUND_S;
                let step = (at_s / Drift::STEP_S) as usize;
                // 2% from trial to trial, and one trial in 25 disturbed.
                let mut log = shifts[slot] + 0.02 * random.normal();
                if random.unit() < 0.04 {
                    log += random.exponential(0.25);
                }
                log += match slot.checked_sub(CASES) {
                    Some(floor) => self.shares[floor] * speed[step],
                    None => speed[step] + own[slot][step] + if slot == 0 { effect.ln() } else { 0.0 },
                };
                logs[slot] = (at_s, log);
            }
            logs
        }

        /// Of `pairs` pairs of runs: the share of unchanged cases that are called different, the share of those
        /// in which no difference is found, and the share of changed cases that are found.
        fn rates(self, pairs: usize) -> Rates {
            let mut random = Random(7);
            let (mut called, mut same, mut found) = (0, 0, 0);
            for _ in 0..pairs {
                let (a, b) = (self.run(1.0, &mut random), self.run(self.effect, &mut random));
                let comparison = compare(&a, &b, ComparisonOptions::default());
                let is_called = |case: &&ComparedCase| {
                    matches!(case.verdict, ComparisonVerdict::Faster | ComparisonVerdict::Slower)
                };
                called += comparison.cases[1..].iter().filter(is_called).count();
                same += comparison.cases[1..]
                    .iter()
                    .filter(|case| case.verdict == ComparisonVerdict::NoDifference)
                    .count();
                found += usize::from(comparison.cases[0].verdict == ComparisonVerdict::Slower);
            }
            let share = |count: usize, of: usize| count as f64 / of as f64;
            let unchanged = pairs * (CASES - 1);
            Rates {
                called: share(called, unchanged),
                same: share(same, unchanged),
                found: share(found, pairs),
            }
        }
    }

    fn is_settled(samples: &[Sample]) -> bool {
        let iterations_ns: Vec<f64> = samples.iter().map(Sample::iteration_ns).collect();
        stats::median_interval(&iterations_ns).and_then(Estimate::half_width).is_some_and(|half| half <= 0.02)
    }

    #[derive(Debug)]
    struct Rates {
        called: f64,
        same: f64,
        found: f64,
    }

    /// Every drift, with floors that share it and with floors of which only one does.
    fn worlds() -> Vec<World> {
        let drifts = [
            Drift::Rest,
            Drift::Level,
            Drift::Wander(1.0),
            Drift::Wander(15.0),
            Drift::Wander(60.0),
            Drift::Modes(1.0),
            Drift::Modes(10.0),
            Drift::Modes(30.0),
            Drift::Modes(60.0),
        ];
        let mut worlds: Vec<World> = drifts.map(|drift| World { drift, ..WORLD }).to_vec();
        worlds.extend(drifts.map(|drift| World { drift, settles: true, ..WORLD }));
        worlds.extend(drifts.map(|drift| World { drift, shares: [0.2, 1.0, 0.2], ..WORLD }));
        worlds.extend([10.0, 60.0].map(|s| World {
            drift: Drift::Modes(s),
            shares: [1.0, 0.3, 0.3],
            ..WORLD
        }));
        worlds.extend([10.0, 60.0].map(|s| World { drift: Drift::Modes(s), floor_shift: 0.04, ..WORLD }));
        worlds.extend([1.0, 5.0].map(|s| World { own_drift: Some((0.04, s)), case_shift: 0.01, ..WORLD }));
        worlds
    }

    #[test]
    fn at_most_one_unchanged_case_in_20_is_called_different_however_the_host_drifts() {
        let rates: Vec<(World, f64)> =
            worlds().into_iter().map(|world| (world, world.rates(20).called)).collect();
        for (world, called) in &rates {
            assert!(*called <= 0.05, "{called} in {world:?}");
        }
        let mean = stats::mean(&rates.iter().map(|(_, called)| *called).collect::<Vec<_>>());
        assert!(mean <= 0.02, "{mean}");
    }

    #[test]
    fn a_real_change_is_found_as_far_as_the_noise_permits() {
        let found = |effect: f64, world: World| World { effect, ..world }.rates(40).found;
        let calm = World { case_shift: 0.01, ..WORLD };
        for (drift, least_10, least_15) in [
            (Drift::Rest, 0.75, 0.95),
            (Drift::Wander(15.0), 0.5, 0.8),
            (Drift::Modes(10.0), 0.3, 0.85),
            (Drift::Modes(30.0), 0.45, 0.8),
        ] {
            let world = World { drift, ..calm };
            let (ten, fifteen) = (found(1.10, world), found(1.15, world));
            assert!(ten >= least_10 && fifteen >= least_15, "{drift:?}: {ten} of 10%, {fifteen} of 15%");
        }
        assert!(found(1.15, World { drift: Drift::Modes(10.0), ..WORLD }) >= 0.6);
    }

    #[test]
    fn on_a_host_at_rest_most_cases_show_no_difference() {
        let rates = WORLD.rates(20);
        assert!(rates.same > 0.7, "{rates:?}");
    }

    /// A run with one latency case and the floors `syscall` and `context-switch`, each of `trials` trials
    /// with a ripple of 1%.
    fn run(trials: u32, case_ns: f64, floor_ns: Option<f64>) -> Results {
        let samples = |iteration_ns: f64| -> Vec<Sample> {
            let ripple = |round: u32| 1.0 + 0.0025 * (f64::from(round * 7 % 5) - f64::from(round * 3 % 4));
            (0..trials).map(|round| testing::sample(round, iteration_ns * ripple(round), floor_ns)).collect()
        };
        let mut records = vec![testing::record(on_cpu("pipe", Workload::Latency), samples(case_ns))];
        for (name, workload) in [(SYSCALL, Workload::Cost), (CONTEXT_SWITCH, Workload::Latency)] {
            if let Some(floor_ns) = floor_ns {
                let record = testing::record(on_cpu(name, workload), samples(floor_ns));
                records.push(Record { floor: true, ..record });
            }
        }
        Results { records, ..testing::results() }
    }

    fn only_case(a: &Results, b: &Results) -> ComparedCase {
        compare(a, b, ComparisonOptions::default()).cases[0].clone()
    }

    #[test]
    fn a_change_of_the_case_alone_is_called_and_one_of_the_host_is_not() {
        let before = run(20, 1000.0, Some(500.0));
        let slower = only_case(&before, &run(20, 1300.0, Some(500.0)));
        assert_eq!((slower.verdict, slower.floors_differ), (ComparisonVerdict::Slower, false), "{slower:?}");
        let ratio = slower.ratio.unwrap();
        assert!((ratio.ratio - 1.3).abs() < 1e-9 && ratio.interval.0 > 1.2 && ratio.interval.1 < 1.4);
        assert!(ratio.interval.0 < ratio.own_interval.0 && ratio.own_interval.1 < ratio.interval.1);
        let faster = only_case(&run(20, 1300.0, Some(500.0)), &before);
        assert_eq!(faster.verdict, ComparisonVerdict::Faster);

        let host = compare(&before, &run(20, 1300.0, Some(650.0)), ComparisonOptions::default());
        let case = &host.cases[0];
        assert_eq!((case.verdict, case.floors_differ), (ComparisonVerdict::NoDifference, true), "{case:?}");
        assert!(
            host.floors.iter().all(|floor| floor.verdict == ComparisonVerdict::Slower),
            "{:?}",
            host.floors
        );
        assert!(host.totals.floors.unwrap().interval.unwrap().0 > 1.2);
        assert_eq!((host.totals.compared, host.totals.no_difference), (1, 1));

        let floors_alone = only_case(&before, &run(20, 1000.0, Some(650.0)));
        assert_eq!(floors_alone.verdict, ComparisonVerdict::CannotTell, "{floors_alone:?}");
    }

    #[test]
    fn another_floor_can_explain_a_change_that_the_own_floor_does_not_share() {
        let mut after = run(20, 1300.0, Some(500.0));
        for sample in &mut after.records[1].samples {
            sample.elapsed_ns *= 1.3;
        }
        let case = only_case(&run(20, 1000.0, Some(500.0)), &after);
        assert_eq!((case.verdict, case.floors_differ), (ComparisonVerdict::CannotTell, true));
        assert!(case.reason.unwrap().contains("'syscall'"));
    }

    #[test]
    fn a_time_that_wanders_is_told_by_a_floor_that_does_as_the_case_does_and_by_no_other() {
        // Both move between two speeds every ten trials; B takes 15% more in either.
        let wandering = |factor: f64, cpus: CpuPair| {
            let speed = |round: u32| if (round / 10).is_multiple_of(2) { 1.0 } else { 1.5 };
            let samples = (0..40).map(|round| {
                let ripple = 1.0 + 0.002 * f64::from(round * 7 % 5);
                testing::sample(round, 1000.0 * factor * ripple * speed(round), Some(500.0 * speed(round)))
            });
            let case = Case { cpus: Some(cpus), ..on_cpu("pipe", Workload::Latency) };
            Results { records: vec![testing::record(case, samples.collect())], ..testing::results() }
        };
        let compared = |cpus| only_case(&wandering(1.0, cpus), &wandering(1.15, cpus));
        let one_cpu = compared(CpuPair { client: 1, server: 1 });
        let ratio = one_cpu.ratio.unwrap();
        assert!(ratio.interval.0 < 1.0 && ratio.interval.1 > 1.0, "{ratio:?}");
        assert_eq!(one_cpu.verdict, ComparisonVerdict::Slower);
        assert_eq!(compared(CpuPair { client: 1, server: 0 }).verdict, ComparisonVerdict::CannotTell);
    }

    #[test]
    fn an_operation_is_held_against_the_bare_system_call() {
        let with_operation = |results: &Results| {
            let mut results = results.clone();
            results.records[0].case = on_cpu("getpid", Workload::Cost);
            results.records[0].samples.iter_mut().for_each(|sample| sample.floor_ns = None);
            results
        };
        let before = with_operation(&run(20, 1000.0, Some(500.0)));
        let slower = only_case(&before, &with_operation(&run(20, 1300.0, Some(500.0))));
        assert_eq!(slower.adjusted.unwrap().by, SYSCALL);
        assert_eq!(slower.verdict, ComparisonVerdict::Slower);
        let host = only_case(&before, &with_operation(&run(20, 1300.0, Some(650.0))));
        assert_eq!((host.verdict, host.floors_differ), (ComparisonVerdict::NoDifference, true));
    }

    #[test]
    fn what_cannot_be_told_says_why() {
        let before = run(20, 1000.0, Some(500.0));
        let few = only_case(&before, &run(5, 1300.0, Some(500.0)));
        assert_eq!(few.verdict, ComparisonVerdict::CannotTell);
        assert_eq!(few.reason.unwrap(), "B has 5 of the 6 trials needed");
        assert_eq!((few.ratio, few.b.trials), (None, 5));

        let mut failed = run(0, 1.0, Some(500.0));
        failed.records[0].outcome = Outcome::Failed { error: "pipe: EMFILE".to_owned() };
        let case = only_case(&before, &failed);
        assert_eq!(case.reason.unwrap(), "B has 0 of the 6 trials needed (pipe: EMFILE)");
        assert_eq!(case.b.median_ns, None);

        let bare = only_case(&run(20, 1000.0, None), &run(20, 1300.0, None));
        assert_eq!(bare.verdict, ComparisonVerdict::CannotTell);
        assert!(bare.reason.unwrap().contains("no floor"));

        let slight = only_case(&before, &run(20, 1060.0, Some(500.0)));
        assert_eq!(slight.verdict, ComparisonVerdict::Slower, "a case alone: {slight:?}");
        let cautious = ComparisonOptions { repeatability: Percent(0.03), ..ComparisonOptions::default() };
        let slight = compare(&before, &run(20, 1060.0, Some(500.0)), cautious).cases[0].clone();
        assert!(
            slight.reason.clone().unwrap().contains("two runs of 1 cases can differ by (±8."),
            "{slight:?}"
        );
    }

    #[test]
    fn a_run_is_no_different_from_itself() {
        let results = WORLD.run(1.0, &mut Random(3));
        let comparison = compare(&results, &results, ComparisonOptions::default());
        assert_eq!((comparison.totals.faster, comparison.totals.slower), (0, 0));
        assert_eq!((comparison.only_in_a.len(), comparison.only_in_b.len()), (0, 0));
        assert_eq!((comparison.cases.len(), comparison.floors.len()), (CASES, 3));
        assert!(comparison.differences.is_empty());
        for case in comparison.cases.iter().chain(&comparison.floors) {
            assert_eq!(case.ratio.unwrap().ratio, 1.0);
        }
        assert_eq!(comparison.totals.ratio.unwrap().median, 1.0);
    }

    #[test]
    fn pairs_are_made_by_key_then_by_cpus() {
        let on = |name: &str, cpu: u32| testing::record(floor::operation(name, cpu), Vec::new());
        let a = [on("x", 0), on("memcpy", 7), on("memcpy", 3), on("old", 0), on("y", 1)];
        let b = [on("memcpy", 3), on("new", 0), on("memcpy", 7), on("y", 9), on("x", 0)];
        let (pairs, only_in_a, only_in_b) = pair(&a, &b);
        let cpus: Vec<(&str, u32, u32)> = pairs
            .iter()
            .map(|pair| {
                let client = |record: &Record| record.case.cpus.unwrap().client;
                (pair.a.case.spec.name.as_str(), client(pair.a), client(pair.b))
            })
            .collect();
        assert_eq!(cpus, [("x", 0, 0), ("memcpy", 7, 7), ("memcpy", 3, 3), ("y", 1, 9)]);
        assert_eq!(only_in_a, ["old cost same-core"]);
        assert_eq!(only_in_b, ["new cost same-core"]);
    }

    #[test]
    fn rows_that_move_together_without_their_floors_are_not_called_and_noted() {
        let mut random = Random(5);
        let (a, mut b) = (WORLD.run(1.0, &mut random), WORLD.run(1.0, &mut random));
        for record in b.records.iter_mut().filter(|record| !record.floor) {
            record.samples.iter_mut().for_each(|sample| sample.elapsed_ns *= 1.4);
        }
        let comparison = compare(&a, &b, ComparisonOptions::default());
        // Of the two operations each has only one other in its place, which is too few to blame the host.
        let called: Vec<&str> = slower(&comparison);
        assert_eq!(called, ["row-9", "row-19"]);
        assert!(
            comparison.cases[0].reason.as_deref().is_some_and(|why| why.contains("the other rows there"))
        );
        assert!(!comparison.cases[0].floors_differ);
        assert!(
            comparison.notes.iter().any(|note| note.contains("more time together")),
            "{:?}",
            comparison.notes
        );
        assert!(comparison.notes.iter().any(|note| note.starts_with("run A was cut off")));
    }

    #[test]
    fn all_sizes_of_one_row_may_change_for_one_reason() {
        let mut random = Random(6);
        let (mut a, mut b) = (WORLD.run(1.0, &mut random), WORLD.run(1.0, &mut random));
        // The first four are round trips: one row in four sizes.
        for results in [&mut a, &mut b] {
            for (nth, record) in results.records[..4].iter_mut().enumerate() {
                record.case.spec = Spec::plain("pipe");
                record.case.size_bytes = Some(Size(1 << nth));
            }
        }
        for record in &mut b.records[..4] {
            record.samples.iter_mut().for_each(|sample| sample.elapsed_ns *= 1.4);
        }
        assert_eq!(slower(&compare(&a, &b, ComparisonOptions::default())), ["pipe"; 4]);
    }

    fn slower(comparison: &Comparison) -> Vec<&str> {
        let slower = comparison.cases.iter().filter(|case| case.verdict == ComparisonVerdict::Slower);
        slower.map(|case| case.case.spec.name.as_str()).collect()
    }

    #[test]
    fn hosts_that_differ_are_named() {
        let a = testing::results();
        let mut b = a.clone();
        b.header.host.kernel = Fact::Known("6.2".to_owned());
        b.header.host.governor = Fact::Known("powersave".to_owned());
        let difference = |what: &str, a: &str, b: &str| Difference {
            what: what.to_owned(),
            a: a.to_owned(),
            b: b.to_owned(),
        };
        assert_eq!(
            compare(&a, &b, ComparisonOptions::default()).differences,
            [difference("governor", "unknown", "powersave"), difference("kernel", "6.1", "6.2")]
        );
    }

    #[test]
    fn a_gate_fails_on_a_slow_down_beyond_its_limit_of_the_mechanism_not_of_the_host() {
        let before = run(20, 1000.0, Some(500.0));
        let failing = |after: &Results, above: f64| {
            failures(&compare(&before, after, ComparisonOptions::default()), Percent(above)).len()
        };
        let slower = run(20, 1120.0, Some(500.0));
        assert_eq!((failing(&slower, 0.05), failing(&slower, 0.15)), (1, 0));
        assert_eq!(failing(&run(20, 880.0, Some(500.0)), 0.05), 0, "faster");
        // 30% slower on a host that is 15% slower: the mechanism took 13% more.
        let on_slow_host = run(20, 1300.0, Some(575.0));
        assert_eq!((failing(&on_slow_host, 0.05), failing(&on_slow_host, 0.15)), (1, 0));
        assert_eq!(failing(&before, 0.0001), 0);
    }

    #[test]
    fn words_and_json_are_those_of_the_manual() {
        let words = [
            ComparisonVerdict::Faster,
            ComparisonVerdict::Slower,
            ComparisonVerdict::NoDifference,
            ComparisonVerdict::CannotTell,
        ];
        assert_eq!(
            words.map(|verdict| verdict.to_string()),
            ["faster", "slower", "no difference found", "cannot tell"]
        );
        assert_eq!(
            serde_json::to_string(&words).unwrap(),
            r#"["faster","slower","no-difference","cannot-tell"]"#
        );
        let before = run(20, 1000.0, Some(500.0));
        let json = serde_json::to_value(compare(&before, &before, ComparisonOptions::default())).unwrap();
        assert_eq!(json["cases"][0]["verdict"], "no-difference");
        assert_eq!(json["cases"][0]["ratio"]["ratio"], 1.0);
        assert_eq!(json["options"]["margin"], 0.05);
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
        for (tail, degrees, value) in [
            (0.025, 1.0, 12.706),
            (0.025, 2.0, 4.303),
            (0.025, 10.0, 2.228),
            (0.025, 18.0, 2.101),
            (0.001, 4.0, 7.173),
            (0.001, 100.0, 3.174),
            (0.025, 1e4, 1.960),
        ] {
            let found = student_quantile(tail, degrees);
            assert!((found - value).abs() < 0.001, "{tail} {degrees}: {found}");
        }
        let mut last = 0.0;
        for together in [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6] {
            let now = student_quantile(0.025 / together, 20.0);
            assert!(now > last && now.is_finite());
            last = now;
        }
        for hundredths in 100..5000u32 {
            let degrees = f64::from(hundredths) / 100.0;
            let found = student_quantile(0.025 / 20.0, degrees);
            assert!(found > 3.0 && found < 700.0, "{degrees}: {found}");
        }
    }

    #[test]
    fn drift_within_a_round_drops_out_of_abba() {
        // A B B A under a drift of 2% a trial; B takes 10% more.
        let trial = |round: u32, place: u32, ns: f64| {
            let drift = (0.02 * f64::from(4 * round + place)).exp();
            Sample { started_ns: u64::from(4 * round + place), ..testing::sample(round, ns * drift, None) }
        };
        let a: Vec<Sample> =
            (0..12).flat_map(|round| [trial(round, 0, 100.0), trial(round, 3, 100.0)]).collect();
        let mut b: Vec<Sample> =
            (0..12).flat_map(|round| [trial(round, 1, 110.0), trial(round, 2, 110.0)]).collect();
        b.truncate(22);
        let ratios = round_log_ratios(&a, &b);
        assert_eq!(ratios.len(), 11);
        assert!(ratios.iter().all(|log| (log - 1.1f64.ln()).abs() < 1e-9), "{ratios:?}");
    }

    fn paired(log_ratios: Vec<f64>) -> PairedRatios {
        PairedRatios { name: "pipe against fifo".to_owned(), log_ratios }
    }

    #[test]
    fn paired_verdicts_come_from_the_median_round() {
        let around = |centre: f64, spread: f64, n: u32| {
            paired(
                (0..n).map(|nth| centre + spread * (f64::from(nth * 7 % n) / f64::from(n) - 0.5)).collect(),
            )
        };
        let verdicts = |pairs: &[PairedRatios]| -> Vec<ComparisonVerdict> {
            compare_paired(pairs, ComparisonOptions::default()).iter().map(|pair| pair.verdict).collect()
        };
        assert_eq!(
            verdicts(&[
                around(0.1, 0.05, 20),
                around(-0.1, 0.05, 20),
                around(0.0, 0.05, 20),
                around(0.0, 0.5, 20),
                around(0.1, 0.0, 4),
            ]),
            [
                ComparisonVerdict::Slower,
                ComparisonVerdict::Faster,
                ComparisonVerdict::NoDifference,
                ComparisonVerdict::CannotTell,
                ComparisonVerdict::CannotTell
            ]
        );
        let alone = compare_paired(&[around(0.1, 0.05, 8)], ComparisonOptions::default());
        assert_eq!(alone[0].verdict, ComparisonVerdict::Slower);
        assert!((alone[0].ratio.unwrap().median - 1.1).abs() < 0.01);
        // Eight rounds allow one interval of 95%, and not twenty that hold together.
        let many = compare_paired(&vec![around(0.1, 0.05, 8); 20], ComparisonOptions::default());
        assert_eq!(many[0].verdict, ComparisonVerdict::CannotTell);
        assert_eq!(many[0].reason.as_deref(), Some("8 rounds are too few for 20 pairs"));
        assert_eq!(verdicts(&[paired(Vec::new())]), [ComparisonVerdict::CannotTell]);
    }

    #[test]
    fn paired_intervals_hold_together() {
        let mut random = Random(11);
        let mut any = 0;
        for _ in 0..300 {
            let pairs: Vec<PairedRatios> =
                (0..10).map(|_| paired((0..30).map(|_| 0.05 * random.normal()).collect())).collect();
            let called = |pair: &PairedComparison| {
                matches!(pair.verdict, ComparisonVerdict::Faster | ComparisonVerdict::Slower)
            };
            any += usize::from(compare_paired(&pairs, ComparisonOptions::default()).iter().any(called));
        }
        assert!(any <= 21, "{any} of 300 families have a false call");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn to_iteration_the_comparison_round_iterations_the_verdict_round(
            times_a in proptest::collection::vec(900.0..1100.0f64, 0..30),
            times_b in proptest::collection::vec(900.0..1400.0f64, 0..30),
            floor_b in 400.0..600.0f64,
        ) {
            let results = |times: &[f64], floor_ns: f64| {
                let samples = |of: &dyn Fn(f64) -> f64| -> Vec<Sample> {
                    let samples = times.iter().zip(0..);
                    samples.map(|(ns, round)| testing::sample(round, of(*ns), Some(floor_ns))).collect()
                };
                let floor = testing::record(on_cpu(SYSCALL, Workload::Cost), samples(&|_| floor_ns));
                let case = testing::record(on_cpu("pipe", Workload::Latency), samples(&|ns| ns));
                Results { records: vec![case, Record { floor: true, ..floor }], ..testing::results() }
            };
            let (a, b) = (results(&times_a, 500.0), results(&times_b, floor_b));
            let (there, back) = (only_case(&a, &b), only_case(&b, &a));
            let turned = match there.verdict {
                ComparisonVerdict::Faster => ComparisonVerdict::Slower,
                ComparisonVerdict::Slower => ComparisonVerdict::Faster,
                other => other,
            };
            prop_assert_eq!(back.verdict, turned);
            prop_assert_eq!(there.ratio.is_some(), times_a.len().min(times_b.len()) >= FEWEST_TRIALS);
            if let (Some(there), Some(back)) = (there.ratio, back.ratio) {
                prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-9);
                prop_assert!(there.interval.0 <= there.ratio && there.ratio <= there.interval.1);
            }
        }
    }
}
