//! The answer of a run, in the sentences with which its report begins and ends: what is fastest where, and what the values are worth.

use super::block::{Common, grouped, name, size_unit};
use super::head;
use crate::quantity::{percent, rounded_percent, times};
use crate::words::clean;
use analysis::analysed::{AnalysedResults, Leader, RunWorth};
use model::record::{Fact, RemoteSides};
use model::units::format_ns;
use model::{Case, Size, Workload};
use std::time::Duration;

/// Stands where a line must not end: between a number and its unit, or what it is of.
pub(crate) const UNBROKEN: char = '\u{a0}';

/// Of more that are too close to call the fastest two are named, and the others counted.
const NAMED: usize = 3;

/// What is fastest: for each workload a heading with its places and what is to be said of each. Nothing where nothing competes.
pub(crate) fn fastest(results: &AnalysedResults<'_>) -> Vec<(String, Vec<(String, String)>)> {
    let places = grouped(results.leaders.iter().filter(|leader| leader.has_rivals()).map(|leader| {
        let common = Common::from_case(case(results, leader)).of_all_sizes();
        (common, leader)
    }));
    let sentences = places.iter().map(|(common, leaders)| {
        let heading = match common.workload {
            Workload::Throughput | Workload::Transfer => "Highest",
            _ => "Fastest",
        };
        let what = common.value_words().to_lowercase();
        (
            format!("{heading} {}", what.trim_start_matches("a ")),
            (common.place_words(), of_place(results, leaders)),
        )
    });
    grouped(sentences)
}

/// What is fastest in one place, and at the sizes where that keeps its CPUs busy, what is of those that sleep while they wait.
fn of_place(results: &AnalysedResults<'_>, leaders: &[&Leader]) -> String {
    let all = of_sizes(results, leaders, true);
    let sleepers: Vec<&Leader> = leaders.iter().filter_map(|leader| leader.asleep.as_deref()).collect();
    if sleepers.is_empty() {
        return all;
    }
    let are_all = sleepers.len() == leaders.len();
    format!("{all}. Of those that sleep: {}", of_sizes(results, &sleepers, are_all))
}

/// The fastest from the smallest size to the largest, which `are_all` or some of those that were measured.
fn of_sizes(results: &AnalysedResults<'_>, leaders: &[&Leader], are_all: bool) -> String {
    let same = |a: &&Leader, b: &&Leader| best_names(results, a) == best_names(results, b);
    let spans: Vec<&[&Leader]> = leaders.chunk_by(|a, b| same(a, b)).collect();
    let sizes = |span: &[&Leader]| -> String {
        let size = |leader: &Leader| case(results, leader).size_bytes.map(size_words);
        match (size(span[0]), size(span[span.len() - 1])) {
            _ if spans.len() == 1 && are_all => String::new(),
            (Some(first), Some(last)) if first == last => format!(" at {first}"),
            (Some(_), Some(last)) if are_all && span[0] == leaders[0] => format!(" up to {last}"),
            (Some(first), Some(_)) if are_all && span.last() == leaders.last() => format!(" from {first}"),
            (Some(first), Some(last)) => format!(" from {first} to {last}"),
            _ => " without payload".to_owned(),
        }
    };
    let words: Vec<String> = spans.iter().map(|span| of_span(results, span, &sizes(span))).collect();
    words.join("; ")
}

/// What is fastest at the sizes of `span`, which are called `sizes`, and by how much at the first of them where it is one alone.
fn of_span(results: &AnalysedResults<'_>, span: &[&Leader], sizes: &str) -> String {
    let first = span[0];
    let at = case(results, first).size_bytes.filter(|_| span.len() > 1 || sizes.is_empty()).map(size_words);
    let at = at.map(|size| format!("at {size}: ")).unwrap_or_default();
    let names = best_names(results, first);
    let by_how_much = if names.len() == 1 { by_how_much(results, first, &at) } else { String::new() };
    format!("{}{sizes}{by_how_much}", of_best(&names, first.is_known))
}

/// The fastest, or those that are too close to call.
fn of_best(names: &[String], is_known: bool) -> String {
    match names {
        [only] if is_known => only.clone(),
        [only] => format!("probably {only}"),
        [first, second, others @ ..] if names.len() > NAMED => {
            format!("{first}, {second} and {} more tie", others.len())
        }
        [others @ .., last] => format!("{} and {last} tie", others.join(", ")),
        [] => String::new(),
    }
}

/// How many times as long the next takes, and the last.
fn by_how_much(results: &AnalysedResults<'_>, leader: &Leader, at: &str) -> String {
    let shown = match leader.slower.as_slice() {
        [] => return String::new(),
        [only] => vec![only],
        [next, .., last] => vec![next, last],
    };
    let shown: Vec<String> = shown
        .into_iter()
        .map(|(other, ratio)| {
            format!("{}{UNBROKEN}{}", times(ratio.median), name(&results.records[*other].record.case))
        })
        .collect();
    format!(" ({at}{})", shown.join(", "))
}

/// The names of the fastest and of those that are too close to it to call.
fn best_names(results: &AnalysedResults<'_>, leader: &Leader) -> Vec<String> {
    let all = std::iter::once(&leader.best).chain(&leader.as_good);
    all.map(|at| name(&results.records[*at].record.case)).collect()
}

/// A size that no line parts from its unit.
fn size_words(size: Size) -> String {
    size_unit(size).replace(' ', &UNBROKEN.to_string())
}

fn case<'a>(results: &'a AnalysedResults<'_>, leader: &Leader) -> &'a Case {
    &results.records[leader.best].record.case
}

/// What the host made of the values, what more time would give, and what else a reader must know of the run, one paragraph each.
pub(crate) fn of_host(results: &AnalysedResults<'_>) -> Vec<String> {
    let header = &results.results.header;
    let unoptimised = (header.tool.profile != "release").then(|| {
        format!(
            "Measured with a {} build, which is slower than a release build.",
            clean(&header.tool.profile)
        )
    });
    let end = match &results.results.end {
        None => Some("The run was cut off.".to_owned()),
        Some(end) if end.interrupted => {
            Some(format!("The run was interrupted after {}.", format_ns(end.elapsed_ns as f64)))
        }
        Some(_) => None,
    };
    let remote = header.remote.iter().flat_map(sides);
    let notes = results.results.notes.iter().map(|note| format!("Note: {}", clean(note)));
    let all = unoptimised.into_iter().chain(end).chain(remote).chain(worth(results)).chain(notes);
    all.collect()
}

/// The hosts of both sides of a run between two.
fn sides(sides: &RemoteSides) -> Vec<String> {
    head::remote(sides).into_iter().map(|(side, what)| format!("The {side}: {what}.")).collect()
}

/// How good the values are, why they are no better, and what more time would give.
fn worth(results: &AnalysedResults<'_>) -> Option<String> {
    let worth = &results.worth;
    let [first, others @ ..] = worth.places.as_slice() else { return None };
    let place = if first.on_two_cpus { "two cores" } else { "one core" };
    let is_calm = worth.is_as_asked();
    let quality = if is_calm { "calm" } else { "noisy" };
    let mut text =
        format!("Host: {quality}. Values of {place} are good to ±{}", rounded_percent(first.half_width));
    for two in others {
        text += &format!(", of two to ±{}", rounded_percent(two.half_width));
    }
    if let Some(more) = &worth.more {
        let halves: Vec<String> =
            more.half_widths.iter().map(|half| format!("±{}", rounded_percent(*half))).collect();
        text += &format!("; --time {} would give about {}", duration(more.time_ns), halves.join(" and "));
    }
    text += ".";
    if let Some(cause) = cause(results, worth).filter(|_| !is_calm) {
        text += &format!(" {cause} See 'ipcmark doctor'.");
    }
    Some(text)
}

/// Why the host is noisy, as far as it is seen.
fn cause(results: &AnalysedResults<'_>, worth: &RunWorth) -> Option<String> {
    /// Less is no cause.
    const WORTH_SAYING: f64 = 0.02;
    const STOLEN: f64 = 0.0005;
    let slower = worth.slower.filter(|slower| *slower >= WORTH_SAYING).map(|slower| {
        format!(
            "The speed of its CPUs changes (a neighbour?): times are of the calmest quarter of the run, the median slice took {} longer.",
            percent(slower)
        )
    });
    let stolen = match results.results.end.as_ref().map(|end| &end.stolen) {
        Some(Fact::Known(share)) if *share >= STOLEN => {
            Some(format!("The hypervisor took {} of the CPU time.", percent(*share)))
        }
        _ => None,
    };
    let causes: Vec<String> = slower.into_iter().chain(stolen).collect();
    (!causes.is_empty()).then(|| causes.join(" "))
}

/// A time as `--time` takes it: `50s`, `5m`.
fn duration(ns: u64) -> String {
    let seconds = Duration::from_nanos(ns).as_secs().max(1);
    if seconds >= 120 { format!("{}m", seconds.div_ceil(60)) } else { format!("{seconds}s") }
}
