//! A study in words: its conclusions, its tables, and of its figures some points, as grids that any text can show.
//!
//! How grids are laid out is decided in `layout` and `markdown`, what the numbers are in `analysis`.

use super::block::grouped;
use super::grid::Grid;
use crate::quantity::{estimate, number, percent, tight_estimate};
use crate::words::clean;
use analysis::study::evaluated::{
    EvaluatedBar, EvaluatedCell, EvaluatedConclusion, EvaluatedFigure, EvaluatedRow, EvaluatedSeries,
    EvaluatedStudy, EvaluatedTable, EvaluatedTimeline, StudyVerdict, UndrawnFigures,
};
use analysis::traces::schedule::SchedulerState;
use analysis::traces::timeline::Iteration;
use model::endpoint::EndpointRole;
use model::units::Unit;

/// Beside rows that are the study's own.
pub(crate) const PUBLISHED: &str = "†";

/// A study in words.
pub(crate) struct StudyWords {
    /// Its title and source.
    pub(crate) title: String,
    /// What its sums of layers say, one bar a line.
    pub(crate) sums: Vec<String>,
    /// Its conclusions.
    pub(crate) conclusions: Vec<Concluded>,
    /// Its tables, then its figures.
    pub(crate) grids: Vec<Grid>,
}

impl StudyWords {
    /// Whether any of its numbers are not of this run.
    pub(crate) fn has_published(&self) -> bool {
        let marked = |text: &String| text.ends_with(PUBLISHED);
        self.grids
            .iter()
            .any(|grid| grid.columns.iter().chain(grid.rows.iter().map(|(name, _)| name)).any(marked))
    }
}

/// A conclusion in words.
pub(crate) struct Concluded {
    /// Whether it holds here.
    pub(crate) verdict: &'static str,
    /// Whether it does, for the eye.
    pub(crate) holds: Option<bool>,
    /// What the study says.
    pub(crate) claim: String,
    /// Why.
    pub(crate) evidence: Vec<String>,
    /// What would decide it, or why nothing does.
    pub(crate) open: Option<String>,
}

/// `evaluated` in words.
pub(crate) fn study(evaluated: &EvaluatedStudy) -> StudyWords {
    let tables = evaluated.tables.iter().map(table);
    let figures = evaluated.figures.iter().map(figure);
    let undrawn = (!evaluated.undrawn.is_empty()).then(|| undrawn(&evaluated.undrawn));
    StudyWords {
        title: format!("{}: {}", clean(&evaluated.title), clean(&evaluated.source)),
        sums: evaluated.stacks.iter().flat_map(|stack| &stack.bars).filter_map(sum_line).collect(),
        conclusions: concluded(&evaluated.conclusions),
        grids: tables.chain(figures).chain(undrawn).collect(),
    }
}

/// What a bar is made of, what takes most first; nothing where a part of it was not measured.
fn sum_line(bar: &EvaluatedBar) -> Option<String> {
    /// Less than this part is left to the table.
    const LEAST: f64 = 0.01;
    let EvaluatedCell::Value(whole, unit) = &bar.layers.last()?.so_far else { return None };
    let shares = bar.layers.iter().map(|layer| Some((layer.share?, clean(&layer.name))));
    let mut shares: Vec<(f64, String)> = shares.collect::<Option<_>>()?;
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    let parts = shares.iter().filter(|(share, _)| *share >= LEAST);
    let parts: Vec<String> = parts.map(|(share, name)| format!("{} {name}", percent(*share))).collect();
    Some(format!("{}, {}: {}", clean(&bar.name), tight_estimate(*whole, *unit), parts.join("; ")))
}

fn concluded(conclusions: &[EvaluatedConclusion]) -> Vec<Concluded> {
    let (mut said, mut said_briefly) = (SaidReasons::default(), SaidReasons::default());
    let one = |conclusion: &EvaluatedConclusion| {
        let holds = match &conclusion.verdict {
            StudyVerdict::Holds => Some(true),
            StudyVerdict::DoesNotHold => Some(false),
            _ => None,
        };
        let why = conclusion.verdict.why();
        // Where a test says why, it is not said twice.
        let only = why.filter(|_| conclusion.tests.is_empty());
        let tests = conclusion.tests.iter().map(|test| &test.evidence);
        let texts = tests.chain(only).chain(&conclusion.longer);
        let evidence = texts.map(|text| clean(&said.once(text, why))).collect();
        let open = why.or(conclusion.longer.as_ref()).map(|text| clean(&said_briefly.once(text, why)));
        Concluded {
            verdict: conclusion.verdict.name(),
            holds,
            claim: clean(&conclusion.claim),
            evidence,
            open,
        }
    };
    conclusions.iter().map(one).collect()
}

/// The reasons why something was not measured that have been given: each is given once.
#[derive(Default)]
pub(crate) struct SaidReasons(Vec<String>);

impl SaidReasons {
    /// `text`, in which the reason of `why` stands, without a reason that was given before.
    pub(crate) fn once(&mut self, text: &str, why: Option<&String>) -> String {
        let Some(reason) = why.map(|why| why.split_once(": ").map_or(why.as_str(), |(_, reason)| reason))
        else {
            return text.to_owned();
        };
        if self.0.iter().any(|said| said == reason) {
            return text.replace(reason, "as above");
        }
        if text.contains(reason) {
            self.0.push(reason.to_owned());
        }
        text.to_owned()
    }
}

fn table(table: &EvaluatedTable) -> Grid {
    /// A table of more columns is turned on its side, if it has few rows.
    const MOST_COLUMNS: usize = 5;
    const FEW_ROWS: usize = 4;

    let name = |row: &EvaluatedRow| {
        let mark = if row.published { format!(" {PUBLISHED}") } else { String::new() };
        clean(&row.name) + &mark
    };
    let rows: Vec<(String, Vec<String>)> =
        table.rows.iter().map(|row| (name(row), row.cells.iter().map(cell).collect())).collect();
    let columns: Vec<String> = table.columns.iter().map(|column| clean(column)).collect();
    let (columns, rows) = if columns.len() > MOST_COLUMNS && rows.len() <= FEW_ROWS {
        on_its_side(&columns, &rows)
    } else {
        (columns, rows)
    };
    let missing = missing(table);
    let below = table.notes.iter().map(|note| clean(note)).chain(missing).collect();
    Grid { heading: format!("{}: {}", clean(&table.name), clean(&table.title)), columns, rows, below }
}

fn on_its_side(
    columns: &[String],
    rows: &[(String, Vec<String>)],
) -> (Vec<String>, Vec<(String, Vec<String>)>) {
    let names = rows.iter().map(|(name, _)| name.clone()).collect();
    let row = |(at, column): (usize, &String)| {
        (column.clone(), rows.iter().map(|(_, cells)| cells.get(at).cloned().unwrap_or_default()).collect())
    };
    (names, columns.iter().enumerate().map(row).collect())
}

/// The reasons of the numbers that `table` lacks, each once.
fn missing(table: &EvaluatedTable) -> Vec<String> {
    let reasons = table.rows.iter().flat_map(|row| {
        row.cells.iter().zip(&table.columns).filter_map(move |(cell, column)| match cell {
            EvaluatedCell::Missing(why) => Some((clean(why), (row.name.as_str(), column.trim()))),
            _ => None,
        })
    });
    let line = |(why, places): (String, Vec<(&str, &str)>)| {
        let mut names: Vec<&str> = places.iter().map(|(row, _)| *row).collect();
        names.dedup();
        match places.as_slice() {
            [(row, column)] => format!("{}, {}: {why}", clean(row), clean(column)),
            _ => format!("{}: {why}", clean(&names.join(", "))),
        }
    };
    grouped(reasons).into_iter().map(line).collect()
}

fn cell(cell: &EvaluatedCell) -> String {
    match cell {
        EvaluatedCell::Empty => String::new(),
        EvaluatedCell::Words(words) => clean(words),
        EvaluatedCell::Value(value, unit) => estimate(*value, *unit),
        EvaluatedCell::Missing(_) => "-".to_owned(),
    }
}

/// Some points of each line of `figure`; the page draws all.
fn figure(figure: &EvaluatedFigure) -> Grid {
    /// More columns do not fit a terminal.
    const SHOWN: usize = 5;

    let mut all: Vec<f64> = figure.series.iter().flat_map(|line| &line.points).map(|point| point.x).collect();
    all.sort_unstable_by(f64::total_cmp);
    all.dedup();
    let last = all.len().saturating_sub(1);
    let shown: Vec<f64> = match all.len() {
        0..=SHOWN => all,
        _ => (0..SHOWN).map(|nth| all[nth * last / (SHOWN - 1)]).collect(),
    };
    let row = |line: &EvaluatedSeries| {
        let at = |x: &f64| line.points.iter().find(|point| point.x == *x);
        let cell = |x| at(x).map_or("-".to_owned(), |point| number(point.y.median, figure.y.unit));
        let mark = if line.published { format!(" {PUBLISHED}") } else { String::new() };
        (clean(&line.name) + &mark, shown.iter().map(cell).collect())
    };
    if let Some(timeline) = &figure.timeline {
        return iterations(figure, timeline);
    }
    let y = if figure.y.title.is_empty() { String::new() } else { format!(", {}", clean(&figure.y.title)) };
    Grid {
        heading: format!("{}: {}{y}", clean(&figure.name), clean(&figure.title)),
        columns: shown.iter().map(|x| number(*x, figure.x.unit)).collect(),
        rows: figure.series.iter().map(row).collect(),
        below: figure.notes.iter().chain(&figure.missing).map(|text| clean(text)).collect(),
    }
}

/// The figures of which nothing can be drawn, each reason once.
fn undrawn(figures: &[UndrawnFigures]) -> Grid {
    Grid {
        heading: "Not drawn".to_owned(),
        columns: Vec::new(),
        rows: Vec::new(),
        below: figures.iter().map(undrawn_line).collect(),
    }
}

/// Which figures are not drawn, and why.
pub(crate) fn undrawn_line(UndrawnFigures { names, reason }: &UndrawnFigures) -> String {
    clean(&format!("{}: {reason}", names.join(", ")))
}

/// What both endpoints did in the iterations of `timeline`; the page and SVG draw them.
fn iterations(figure: &EvaluatedFigure, timeline: &EvaluatedTimeline) -> Grid {
    let of_end = |iteration: &Iteration, end: EndpointRole| {
        let track = iteration.tracks.endpoints().find(|(at, _)| *at == end).map(|(_, track)| track);
        track.map_or("-".to_owned(), |track| {
            let mut names: Vec<(&str, usize)> = Vec::new();
            for call in &track.calls {
                match names.iter_mut().find(|(name, _)| *name == call.name) {
                    Some((_, times)) => *times += 1,
                    None => names.push((&call.name, 1)),
                }
            }
            let asleep = track.spans.iter().filter(|span| span.state == SchedulerState::Sleeps).count();
            let calls = names.into_iter().map(|(name, times)| format!("{times} {}", clean(name)));
            let asleep = (asleep > 0).then(|| format!("{asleep} asleep"));
            calls.chain(asleep).collect::<Vec<_>>().join(", ")
        })
    };
    let row = |iteration: &Iteration| {
        let took_ns = iteration.until_ns.saturating_sub(iteration.from_ns);
        let cells = vec![
            number(took_ns as f64, Unit::Ns),
            of_end(iteration, EndpointRole::Client),
            of_end(iteration, EndpointRole::Server),
        ];
        (iteration.choice.to_string(), cells)
    };
    let drawn = format!("{}: drawn with --html and --svg", clean(&timeline.case));
    Grid {
        heading: format!("{}: {}", clean(&figure.name), clean(&figure.title)),
        columns: ["took", "client", "server"].map(str::to_owned).to_vec(),
        rows: timeline.iterations.iter().map(row).collect(),
        below: [drawn].into_iter().chain(figure.notes.iter().map(|text| clean(text))).collect(),
    }
}
