//! All cases of a comparison together, and what a reader must know of the two runs.

use super::result::{ComparisonTotals, ComparisonVerdict, Difference, Ratio};
use super::run_variance::RunVariance;
use super::statistics::{MISS, Replicates, Shift};
use super::verdict::JudgedCase;
use crate::stats;
use model::estimate::Estimate;
use model::fact::Fact;
use model::record::{Header, Results};
use std::collections::BTreeMap;
use std::fmt;

/// What all cases and floors come to together.
pub(super) fn totals(
    cases: &[JudgedCase],
    floors: &[JudgedCase],
    [times_between, multiples_between, floors_between]: [RunVariance; 3],
) -> ComparisonTotals {
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
        undecided: count(ComparisonVerdict::Undecided),
        ratio: geometric_mean(&times, times_between),
        adjusted: geometric_mean(&adjusted, multiples_between),
        floors: geometric_mean(&floors, floors_between),
    }
}

/// The geometric mean of ratios. The cases of a run drift together, so that their errors are added as if
/// all were one error (the standard deviation of a mean is at most the mean of the standard
/// deviations, however the parts hang together); only the variance between runs is each case's own.
fn geometric_mean(shifts: &[Shift], runs: RunVariance) -> Option<Estimate> {
    if shifts.is_empty() {
        return None;
    }
    let mean_of = |value: fn(&Shift) -> f64| stats::mean(&shifts.iter().map(value).collect::<Vec<_>>());
    let deviation = mean_of(|shift| shift.variance.sqrt());
    let degrees =
        shifts.iter().map(|shift| shift.variance.powi(2) / shift.spread).fold(f64::INFINITY, f64::min);
    let variance = deviation.powi(2);
    let mean = Shift {
        log: mean_of(|shift| shift.log),
        variance,
        spread: variance.powi(2) / degrees,
        run_share: mean_of(|shift| shift.run_share) / shifts.len() as f64,
        replicates: Replicates::default(),
    };
    let half = mean.half(runs, MISS / 2.0);
    Some(Estimate {
        median: mean.log.exp(),
        interval: Some(((mean.log - half).exp(), (mean.log + half).exp())),
    })
}

/// What a reader must know of the comparison as a whole.
pub(super) fn notes(a: &[Results], b: &[Results], cases: &[JudgedCase]) -> Vec<String> {
    /// Where so many cases are compared and most of them move together, that is no accident.
    const MANY: usize = 4;

    let mut notes = Vec::new();
    for (run, results) in
        [("A", a), ("B", b)].into_iter().flat_map(|(side, runs)| runs.iter().map(move |run| (side, run)))
    {
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

/// The facts that differ between the first runs of both sides and bear on the results.
pub(super) fn differences(a: &[Results], b: &[Results]) -> Vec<Difference> {
    let (Some(a), Some(b)) = (a.first(), b.first()) else { return Vec::new() };
    let (a, b) = (&a.header, &b.header);
    let facts = |header: &Header| {
        let host = &header.host;
        BTreeMap::from([
            ("architecture", host.arch.clone()),
            ("BPF programs", map(&host.bpf_programs)),
            ("build", format!("{} {} {}", header.tool.version, header.tool.profile, header.tool.target)),
            ("checked payload", header.settings.check.to_string()),
            ("clock source", text(&host.clocksource)),
            ("control group", map(&host.control_group)),
            ("governor", text(&host.governor)),
            ("host", text(&host.name)),
            ("kernel", text(&host.kernel)),
            ("mitigations", text(&host.mitigations)),
            ("pipe capacity in bytes", text(&host.pipe_bytes)),
            ("processor", text(&host.cpu)),
            ("queueing of interfaces", map(&host.queueing)),
            ("security modules", text(&host.security_modules)),
            ("simultaneous multi-threading", text(&host.smt)),
            ("slice in nanoseconds", header.settings.slice_ns.to_string()),
            ("transparent huge pages", text(&host.transparent_huge_pages)),
            ("virtualisation", text(&host.virtualisation)),
        ])
    };
    let pairs = facts(a).into_iter().zip(facts(b).into_values());
    let facts =
        pairs.filter(|((_, a), b)| a != b).map(|((what, a), b)| Difference { what: what.to_owned(), a, b });
    // What one of them does not record is no difference.
    let limits = a.host.limits.iter().filter_map(|(name, a)| {
        let (a, b) = (text(a), text(b.host.limits.get(name)?));
        (a != b).then(|| Difference { what: name.clone(), a, b })
    });
    facts.chain(limits).collect()
}

/// What a fact has by name, as text.
fn map<T: fmt::Display>(fact: &Fact<BTreeMap<String, T>>) -> String {
    let each = |map: &BTreeMap<String, T>| -> Vec<String> {
        map.iter().map(|(name, value)| format!("{name} {value}")).collect()
    };
    fact.known().map_or_else(|| "unknown".to_owned(), |map| each(map).join(", "))
}

/// A fact as text; that it is unknown is a fact, why is not.
fn text<T: fmt::Debug>(fact: &Fact<T>) -> String {
    fact.known()
        .map_or_else(|| "unknown".to_owned(), |value| format!("{value:?}").trim_matches('"').to_owned())
}
