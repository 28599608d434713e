//! Why one case is slower than another, in words: one sentence, then the difference as a sum of segments, then both paths.
//! What is so is decided in `analysis::path`.

use super::grid::Grid;
use super::layout::{DEEPER, INDENT, Style, finish, grid, section};
use super::marks::missed;
use super::path::{CallNames, MINOR, RESIDUAL, place_name, segments};
use crate::quantity::{mean_time, signed_mean_time, time, time_or_signed, time_range};
use crate::words::{clean, wrap};
use analysis::path::{ExplainedDifference, PathDifference, SegmentDifference};
use model::Case;

/// How many segments the sentence names.
const NAMED: usize = 3;

/// Differences for the terminal, one after the other.
pub fn differences(all: &[ExplainedDifference], style: &Style) -> String {
    let style = &style.for_tables();
    finish(&all.iter().flat_map(|one| lay_out(one, style)).skip(1).collect::<Vec<_>>())
}

fn lay_out(one: &ExplainedDifference, style: &Style) -> Vec<String> {
    let words = wrap(&sentence(one), style.width, INDENT, DEEPER);
    let tables = tables(one);
    let is_told = one.difference.bare_ns.interval.is_some();
    let (shown, more) = match (style.detail, is_told) {
        (true, _) => (tables.as_slice(), None),
        (false, true) => (&tables[..1], Some("--detail shows the whole path of each.")),
        (false, false) => (&[][..], None),
    };
    let tables = shown.iter().flat_map(|table| grid(table, style));
    let more = more.into_iter().flat_map(|text| wrap(text, style.width, INDENT, DEEPER));
    // What the tables say below them must be said of the sentence's times too.
    let settings = if shown.is_empty() { missed(&one.settings) } else { Vec::new() };
    let settings = settings.iter().flat_map(|text| wrap(text, style.width, INDENT, DEEPER));
    section(&heading(one), words, style).into_iter().chain(tables).chain(more).chain(settings).collect()
}

/// Which cases they are.
pub(crate) fn heading(one: &ExplainedDifference) -> String {
    let [first, second] = one.cases.each_ref().map(|case| clean(&case.key()));
    match &one.other_build {
        Some(build) => format!("{first} against that of {}", clean(&build.display().to_string())),
        None => format!("{first} against {second}"),
    }
}

/// The difference, and the path of each.
pub(crate) fn tables(one: &ExplainedDifference) -> [Grid; 3] {
    [difference(one), path(one, 0), path(one, 1)]
}

/// Why the first is slower or faster, by how much, and which segments carry it.
pub(crate) fn sentence(one: &ExplainedDifference) -> String {
    let [first, second] = names(one);
    let PathDifference { bare_ns, bare_of_each_ns: [a, b], .. } = &one.difference;
    if bare_ns.interval.is_none() {
        return format!(
            "{first} took {} and {second} {}, but {} rounds are too few to tell: give it more with --time.",
            time(a.mean).unwrap_or_default(),
            time(b.mean).unwrap_or_default(),
            one.difference.rounds
        );
    }
    if !bare_ns.is_sure() {
        return format!(
            "No difference was found between {first} and {second}: {} and {}, {}.",
            time(a.mean).unwrap_or_default(),
            time(b.mean).unwrap_or_default(),
            signed_mean_time(*bare_ns).unwrap_or_default(),
        );
    }
    let more = if bare_ns.mean > 0.0 { "longer" } else { "less" };
    let interval = bare_ns.interval.map(|(low, high)| (low.abs().min(high.abs()), low.abs().max(high.abs())));
    let range = interval.map(|interval| format!(" ({})", time_range(interval))).unwrap_or_default();
    let carriers: Vec<String> =
        one.difference.carriers().take(NAMED).map(|line| carried(line, one)).collect();
    let why = match carriers.is_empty() {
        true => "no segment of its path surely differs in that direction".to_owned(),
        false => carriers.join(", "),
    };
    format!(
        "{first} takes {} {more} than {second}{range}, {} instead of {}: {why}.{}",
        time(bare_ns.mean.abs()).unwrap_or_default(),
        time(a.mean).unwrap_or_default(),
        time(b.mean).unwrap_or_default(),
        unexplained(&one.difference),
    )
}

/// What must be said where the segments surely do not add up to the difference without probes.
fn unexplained(difference: &PathDifference) -> String {
    /// Of the difference.
    const LARGE: f64 = 0.1;
    let bound = LARGE * difference.bare_ns.mean.abs();
    let is_large = difference.residual_ns.interval.is_some_and(|(low, high)| low > bound || high < -bound);
    let sum = signed_mean_time(difference.sum_ns).filter(|_| is_large);
    sum.map_or_else(String::new, |sum| {
        format!(" All segments together differ by {sum} only: the rest is not explained.")
    })
}

fn carried(line: &SegmentDifference, one: &ExplainedDifference) -> String {
    let difference = signed_mean_time(line.difference_ns).unwrap_or_default();
    format!("{difference} in '{}'", line_name(line, &one.call_names))
}

/// Both sides, as sentences and tables name them.
pub(crate) fn names(one: &ExplainedDifference) -> [String; 2] {
    let [first, second] = one.cases.each_ref().map(name);
    match &one.other_build {
        Some(build) => {
            [format!("{first} of this build"), format!("that of {}", clean(&build.display().to_string()))]
        }
        None => [first, second],
    }
}

/// A case, as a sentence names it.
fn name(case: &Case) -> String {
    let size = case.size_bytes.map(|size| format!(" {size}")).unwrap_or_default();
    let inject = case.inject.map(|inject| format!(" inject={inject}")).unwrap_or_default();
    clean(&format!("{}{size}{inject}", case.spec))
}

/// A line's place, with the calls of both.
fn line_name(line: &SegmentDifference, calls: &CallNames) -> String {
    let Some(place) = line.place else { return MINOR.to_owned() };
    let mut numbers: Vec<u32> = line.calls.concat();
    numbers.sort_unstable();
    numbers.dedup();
    let names: Vec<String> = numbers
        .iter()
        .map(|number| calls.get(number).cloned().unwrap_or_else(|| number.to_string()))
        .collect();
    match names.is_empty() {
        true => place_name(place, calls),
        false => {
            let both = names.join("/");
            clean(&format!("{}: {}", place.of.name(), place.kind.name(place.of, &both)))
        }
    }
}

fn difference(one: &ExplainedDifference) -> Grid {
    let difference = &one.difference;
    let row = |line: &SegmentDifference| {
        let cells = [
            time_or_signed(line.first_ns.mean),
            time_or_signed(line.second_ns.mean),
            signed_mean_time(line.difference_ns).unwrap_or_default(),
        ];
        (line_name(line, &one.call_names), cells.to_vec())
    };
    let [first, second] = &difference.bare_of_each_ns;
    let empty = String::new;
    let rows = difference.segments.iter().map(row).chain([
        ("sum".to_owned(), vec![empty(), empty(), signed_mean_time(difference.sum_ns).unwrap_or_default()]),
        (
            "iteration without probes".to_owned(),
            vec![
                mean_time(*first).unwrap_or_default(),
                mean_time(*second).unwrap_or_default(),
                signed_mean_time(difference.bare_ns).unwrap_or_default(),
            ],
        ),
        (
            RESIDUAL.to_owned(),
            vec![empty(), empty(), signed_mean_time(difference.residual_ns).unwrap_or_default()],
        ),
    ]);
    Grid {
        heading: "the difference, segment by segment".to_owned(),
        columns: names(one).into_iter().chain(["difference".to_owned()]).collect(),
        rows: rows.collect(),
        below: [format!(
            "From {} rounds in which both were measured in turn. Segments are corrected for what recording cost.",
            difference.rounds
        )]
        .into_iter()
        .chain(missed(&one.settings))
        .collect(),
    }
}

/// The path of one of both.
fn path(one: &ExplainedDifference, at: usize) -> Grid {
    segments(&one.sums[at], &one.call_names, format!("the path of {}", names(one)[at]))
}
