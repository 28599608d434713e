//! What differs, as one HTML file that opens by itself: the answer, the ratios as a picture, and the tables of the terminal. Of
//! comparisons, of programs under `try`, and of replays.
//!
//! Nothing on the page runs: it has no script, and its policy allows none.

use super::document::Document;
use crate::svg::ratios::{RatioRow, ratios};
use crate::text::compared::{of_pairs, of_runs};
use crate::text::comparison::{comparison_tables, paired_tables};
use crate::text::layout::Style;
use crate::text::replay::{replay, replay_both};
use crate::text::tried::{sentences, tried_tables};
use analysis::compare::{Comparison, ComparisonVerdict, PairedComparison};
use analysis::replay::{AnalysedReplay, ReplayedBoth};
use analysis::tried::{Change, Tried};
use maud::{PreEscaped, html};
use model::units::Percent;

/// Smaller than so, letters cannot be read: the picture is moved under the finger instead.
const OWN_STYLE: &str = ".ratios { overflow-x: auto; } .ratios svg { display: block; min-width: 34rem; }";

/// As wide as a page shows it.
const WIDTH: usize = 120;

/// What a page says.
struct Page<'a> {
    title: &'a str,
    heading: &'a str,
    /// The answer in sentences.
    answer: Vec<String>,
    /// Of what the rows are ratios.
    what: &'a str,
    rows: Vec<RatioRow>,
    margin: Percent,
    /// What a terminal shows below the answer.
    text: String,
}

impl Page<'_> {
    fn html(self, command: &[String]) -> String {
        let body = html! {
            @if !self.answer.is_empty() {
                section.card { @for sentence in &self.answer { p { (sentence) } } }
            }
            @if !self.rows.is_empty() {
                figure.ratios { (PreEscaped(ratios(&self.rows, self.what, self.margin))) }
            }
            section.card { pre { (self.text.trim_matches('\n')) } }
        };
        let Self { title, heading, .. } = self;
        Document { title, heading, style: OWN_STYLE, has_images: false, body, command }.html()
    }
}

fn style() -> Style {
    Style { width: WIDTH, ..Style::default() }
}

/// The page of `compared`, made by `command`.
pub fn comparison_html(compared: &Comparison, command: &[String]) -> String {
    let row = |case: &analysis::compare::ComparedCase| {
        let ratio = case.ratio?;
        Some(RatioRow {
            name: case.key.clone(),
            ratio: ratio.ratio,
            interval: Some(ratio.interval),
            is_decided: case.verdict != ComparisonVerdict::Undecided,
        })
    };
    Page {
        title: "ipcmark: how runs differ",
        heading: "How runs differ",
        answer: of_runs(compared),
        what: "time of B over that of A",
        rows: compared.cases.iter().filter_map(row).collect(),
        margin: compared.options.margin,
        text: comparison_tables(compared, &style()),
    }
    .html(command)
}

/// The page of `pairs`, measured interleaved, made by `command`.
pub fn paired_html(pairs: &[PairedComparison], margin: Percent, command: &[String]) -> String {
    let row = |pair: &PairedComparison| {
        let ratio = pair.ratio?;
        Some(RatioRow {
            name: pair.name.clone(),
            ratio: ratio.median,
            interval: ratio.interval,
            is_decided: pair.verdict != ComparisonVerdict::Undecided,
        })
    };
    Page {
        title: "ipcmark: which is faster",
        heading: "Which is faster",
        answer: of_pairs(pairs, margin),
        what: "time of B over that of A",
        rows: pairs.iter().filter_map(row).collect(),
        margin,
        text: paired_tables(pairs, &style()),
    }
    .html(command)
}

/// The page of a program that was tried, made by `command`.
pub fn tried_html(of: &Tried, command: &[String]) -> String {
    let row = |variant: &analysis::tried::TriedVariant| {
        let number = variant.numbers.first()?;
        let ratio = number.ratio?;
        Some(RatioRow {
            name: variant.exchanges.join(" "),
            ratio: ratio.median,
            interval: ratio.interval,
            is_decided: number.change != Change::Undecided,
        })
    };
    let first = of.variants.first().and_then(|variant| variant.numbers.first());
    let what = first.map_or_else(String::new, |number| format!("{} over that as it is", number.measure.name));
    Page {
        title: "ipcmark: what another mechanism changes",
        heading: "What another mechanism changes",
        answer: sentences(of),
        what: &what,
        rows: of.variants.iter().filter_map(row).collect(),
        margin: of.margin,
        text: tried_tables(of, &style()),
    }
    .html(command)
}

/// The page of a replay, made by `command`.
pub fn replay_html(one: &AnalysedReplay, command: &[String]) -> String {
    Page {
        title: "ipcmark: a scenario, replayed",
        heading: "A scenario, replayed",
        answer: Vec::new(),
        what: "",
        rows: Vec::new(),
        margin: Percent(0.0),
        text: replay(one, &style()),
    }
    .html(command)
}

/// The page of two replays that were measured in turn, made by `command`.
pub fn replay_both_html(both: &ReplayedBoth, command: &[String]) -> String {
    let row = |flow: &analysis::replay::FlowRatios| {
        let rate = flow.rate?;
        let is_decided = rate.interval.is_some_and(|(low, high)| low > 1.0 || high < 1.0);
        Some(RatioRow { name: flow.name.clone(), ratio: rate.mean, interval: rate.interval, is_decided })
    };
    Page {
        title: "ipcmark: two scenarios, replayed",
        heading: "Two scenarios, replayed",
        answer: Vec::new(),
        what: "rate of the second over that of the first",
        rows: both.flows.iter().filter_map(row).collect(),
        margin: Percent(0.0),
        text: replay_both(both, &style()),
    }
    .html(command)
}
