//! Comparisons for the terminal: runs side by side, two mechanisms measured interleaved, or what that will take.
//!
//! It prints the verdicts of `analysis::compare`; it reaches none of its own.

use super::block::{
    Block, Common, Heading, Row, Tone, comparable, floor_order, grouped, meanings, name, place,
};
use super::compared::{of_pairs, of_runs};
use super::layout::{DEEPER, INDENT, Style, blocks, finish, labelled, section};
use super::marks::missed;
use crate::quantity::{change, percent, time};
use crate::words::{clean, tight, wrap};
use analysis::compare::{
    ComparedCase, Comparison, ComparisonOptions, ComparisonPlan, ComparisonVerdict, PairedComparison,
    PlannedComparison, RunVarianceSource,
};
use model::estimate::Estimate;
use model::units::Percent;

const A: Heading = Heading::new("A");
const B: Heading = Heading::new("B").spare();
const CHANGE: Heading = Heading::new("time").meaning(
    "time of B over that of A; intervals (±) have the variance between runs in them, and are such that few of the \
         cases called faster or slower are neither",
);
const ADJUSTED: Heading = Heading::new("×floor").meaning(
    "the same for the time over the floor in each round (where endpoints sleep on two CPUs: over the floor \
         of a wake-up; for operations: over the speed readings), which leaves out how the host changed",
);

const DETECTS: Heading = Heading::new("detects")
    .meaning("the smallest difference that this comparison detects with a chance of 80%");

/// How each case changed from run A to run B: the answer, then blocks as in the table of results.
pub fn comparison(comparison: &Comparison, style: &Style) -> String {
    paragraphs(&of_runs(comparison), &style.for_tables()) + &comparison_tables(comparison, style)
}

/// What stands below the answer of a comparison, an empty line first.
pub(crate) fn comparison_tables(comparison: &Comparison, style: &Style) -> String {
    let style = &style.for_tables();
    let cases = comparable(&comparison.cases, |case| &case.case);
    let mut sheet: Vec<Block> = cases.into_iter().map(|(common, cases)| case_block(common, cases)).collect();
    sheet.extend(floor_block(&comparison.floors));
    let only = |run: &str, keys: &[String]| {
        let keys = keys.iter().flat_map(|key| wrap(&clean(key), style.width, INDENT, DEEPER));
        section(&format!("only in {run}"), keys.collect(), style)
    };
    let parts = [
        vec![String::new()],
        labelled(&head(comparison), style),
        blocks(&sheet, style),
        section("notes", labelled(&notes(&sheet, comparison.options), style), style),
        only("A", &comparison.only_in_a),
        only("B", &comparison.only_in_b),
    ];
    finish(&parts.concat())
}

fn paragraphs(texts: &[String], style: &Style) -> String {
    finish(&texts.iter().flat_map(|text| wrap(text, style.width, "", INDENT)).collect::<Vec<_>>())
}

/// Pairs that one run measured interleaved: the second of each pair against the first; a difference within `margin` is none.
pub fn paired(pairs: &[PairedComparison], margin: Percent, style: &Style) -> String {
    paragraphs(&of_pairs(pairs, margin), &style.for_tables()) + &paired_tables(pairs, style)
}

/// What stands below the answer of pairs, an empty line first.
pub(crate) fn paired_tables(pairs: &[PairedComparison], style: &Style) -> String {
    let style = &style.for_tables();
    const RATIO: Heading = Heading::new("time").meaning(
        "time of B over that of A in slices side by side; intervals (±) hold at whatever time one stops",
    );
    let row = |pair: &PairedComparison| Row {
        name: clean(&pair.name),
        cells: vec![
            Some(pair.trial_pairs.to_string()),
            pair.ratio.and_then(estimate),
            pair.finds.and_then(found),
        ],
        numbers: Vec::new(),
        record: None,
        tail: pair.verdict.to_string(),
        tone: tone(pair.verdict),
    };
    let strayed: Vec<Option<String>> = pairs
        .iter()
        .map(|pair| {
            Some(format!(
                "{}: they do not count, nor what was measured beside them",
                pair.elsewhere.as_ref()?
            ))
        })
        .collect();
    let reasons = pairs.iter().zip(&strayed).flat_map(|(pair, strayed)| {
        [pair.reason.as_deref(), strayed.as_deref()].into_iter().flatten().map(|why| (why, clean(&pair.name)))
    });
    let mut settings: Vec<String> = Vec::new();
    for said in pairs.iter().flat_map(|pair| missed(&pair.settings)) {
        if !settings.contains(&said) {
            settings.push(said);
        }
    }
    let block = Block {
        heading: "B against A, interleaved".to_owned(),
        rows_are: "pair",
        columns: vec![Heading::new("trials").meaning("pairs of trials alive at once"), RATIO, DETECTS],
        rows: pairs.iter().map(row).collect(),
        below: remarks(reasons).into_iter().chain(settings).collect(),
        common: None,
    };
    let sheet = [block];
    let parts = [blocks(&sheet, style), section("notes", labelled(&meanings(&sheet), style), style)];
    finish(&parts.concat())
}

/// How long it takes to find a difference of `find` in each pair.
pub fn planned(plan: &ComparisonPlan, style: &Style) -> String {
    let style = &style.for_tables();
    let row = |pair: &PlannedComparison| Row {
        name: clean(&pair.name),
        cells: vec![
            pair.needs_trial_pairs.map(|pairs| pairs.to_string()),
            pair.time_ns.and_then(time),
            pair.time_at_most_ns.and_then(time),
        ],
        numbers: Vec::new(),
        record: None,
        tail: String::new(),
        tone: Tone::Plain,
    };
    let block = Block {
        heading: format!("to find a difference of {} with a chance of 80%", plan.find),
        rows_are: "pair",
        columns: vec![
            Heading::new("trials")
                .meaning("pairs of trials alive at once; absent where the pilot had too few of them"),
            Heading::new("time").meaning("what they take beside the other pairs, as the pilot went"),
            Heading::new("at most")
                .meaning("the same if the pilot had an easy time: one in ten has a worse one"),
        ],
        rows: plan.pairs.iter().map(row).collect(),
        below: Vec::new(),
        common: None,
    };
    let sheet = [block];
    let all = |ns: f64| time(ns).unwrap_or_default();
    let together = plan.time_ns.zip(plan.time_at_most_ns).map(|(ns, most)| {
        (
            "all".to_owned(),
            format!("give the comparison --time {}, or {} to be safe", tight(&all(ns)), tight(&all(most))),
        )
    });
    let notes: Vec<(String, String)> = meanings(&sheet).into_iter().chain(together).collect();
    let parts = [blocks(&sheet, style), section("notes", labelled(&notes, style), style)];
    finish(&parts.concat()[1..])
}

fn head(comparison: &Comparison) -> Vec<(&'static str, String)> {
    let totals = &comparison.totals;
    let means = [("time", totals.ratio), ("×floor", totals.adjusted), ("floors", totals.floors)];
    let means = means
        .into_iter()
        .filter_map(|(what, mean)| Some(format!("{what} {}", tight(&mean.and_then(estimate)?))));
    let means = means.collect::<Vec<_>>().join(", ");
    let on_average = (!means.is_empty()).then_some(("on average", means));
    let runs = &comparison.run_deviation;
    let source = match runs.source {
        RunVarianceSource::Replicates => "from the runs of each side",
        RunVarianceSource::Differences => {
            "from the differences of all cases, most of which are taken not to differ"
        }
        RunVarianceSource::Assumed => "assumed: too few cases and runs",
    };
    let deviation = |percent: Percent| format!("{:.1}%", 100.0 * percent.0);
    let between = format!("time {}, ×floor {}, {source}", deviation(runs.time), deviation(runs.adjusted));
    let differs = comparison.differences.iter().map(|fact| {
        ("differs", format!("{}: {} in A, {} in B", clean(&fact.what), clean(&fact.a), clean(&fact.b)))
    });
    let sides = [("A", &comparison.missed_in_a), ("B", &comparison.missed_in_b)];
    let settings = sides.into_iter().flat_map(|(side, settings)| {
        missed(settings).into_iter().map(move |said| ("setting", format!("in {side}, {said}")))
    });
    let notes = comparison.notes.iter().map(|note| ("note", clean(note)));
    on_average
        .into_iter()
        .chain([("run to run", between)])
        .chain(differs)
        .chain(settings)
        .chain(notes)
        .collect()
}

fn case_block(common: Common, mut cases: Vec<&ComparedCase>) -> Block {
    let a_ns = |case: &ComparedCase| case.a.median_ns.unwrap_or(f64::INFINITY);
    cases.sort_by(|one, other| a_ns(one).total_cmp(&a_ns(other)));
    let row = |case: &&ComparedCase| {
        let adjusted = case.adjusted.as_ref().map(|adjusted| adjusted.ratio);
        let adjusted = adjusted.and_then(|of| change(of.ratio, Some(of.interval)));
        row(case, adjusted)
    };
    Block {
        heading: common.heading(),
        rows_are: common.rows_are(),
        columns: vec![A, B, CHANGE, ADJUSTED, DETECTS],
        rows: cases.iter().map(row).collect(),
        below: reasons(&cases),
        common: None,
    }
}

/// The floors, which say how the host changed.
fn floor_block(floors: &[ComparedCase]) -> Option<Block> {
    let mut floors: Vec<&ComparedCase> = floors.iter().collect();
    floors.sort_by_key(|floor| floor_order(&floor.case));
    let row = |floor: &&ComparedCase| row(floor, Some(place(&floor.case)));
    (!floors.is_empty()).then(|| Block {
        heading: "floors: how the host changed".to_owned(),
        rows_are: "floor",
        columns: vec![A, B, CHANGE, Heading::new("on"), DETECTS],
        rows: floors.iter().map(row).collect(),
        below: reasons(&floors),
        common: None,
    })
}

/// The row of `compared`: its times, their ratio, one more cell, and what would have been found.
fn row(compared: &ComparedCase, last: Option<String>) -> Row {
    let ratio = compared.ratio.and_then(|of| change(of.ratio, Some(of.interval)));
    Row {
        name: name(&compared.case),
        cells: vec![
            compared.a.median_ns.and_then(time),
            compared.b.median_ns.and_then(time),
            ratio,
            last,
            compared.finds.and_then(found),
        ],
        numbers: Vec::new(),
        record: None,
        tail: compared.verdict.to_string(),
        tone: tone(compared.verdict),
    }
}

/// Why the verdicts on `rows` are what they are, where that is not plain.
fn reasons(rows: &[&ComparedCase]) -> Vec<String> {
    remarks(rows.iter().filter_map(|row| Some((row.reason.as_deref()?, name(&row.case)))))
}

fn tone(verdict: ComparisonVerdict) -> Tone {
    match verdict {
        ComparisonVerdict::Faster => Tone::Good,
        ComparisonVerdict::Slower => Tone::Bad,
        ComparisonVerdict::NoDifference => Tone::Plain,
        ComparisonVerdict::Undecided => Tone::Doubtful,
    }
}

/// The reasons behind the verdicts, each once, with the rows that it is of.
fn remarks<'a>(reasons: impl Iterator<Item = (&'a str, String)>) -> Vec<String> {
    grouped(reasons)
        .into_iter()
        .map(|(reason, names)| format!("{}: {}", names.join(", "), clean(reason)))
        .collect()
}

fn notes(sheet: &[Block], options: ComparisonOptions) -> Vec<(String, String)> {
    let margin = format!(
        "{}: the 95% interval of the case alone lies within ±{}: of its ×floor, of its time where speed was read beside it, or of its \
         time beside the other mechanisms on these CPUs, whichever is narrowest",
        ComparisonVerdict::NoDifference,
        options.margin
    );
    meanings(sheet).into_iter().chain([("margin".to_owned(), margin)]).collect()
}

/// A difference that is found; `None` of one that nobody would call found.
fn found(of: Percent) -> Option<String> {
    (of.0 < 10.0).then(|| percent(of.0))
}

fn estimate(of: Estimate) -> Option<String> {
    change(of.median, of.interval)
}
