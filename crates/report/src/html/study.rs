//! Studies for the page: what `analysis::study::evaluated` has, with every number in words beside it.
//!
//! It decides neither what a study shows nor how it is drawn.

use super::number::Number;
use crate::quantity::{number, tight_estimate};
use crate::svg::figures::is_drawable;
use crate::svg::line_style::{Dash, LineStyles};
use crate::svg::stacks;
use crate::svg::timeline::{self, timeline};
use crate::text::study::{SaidReasons, undrawn_line};
use crate::words::clean;
use analysis::study::evaluated::{
    EvaluatedCell, EvaluatedConclusion, EvaluatedFigure, EvaluatedRow, EvaluatedSeries, EvaluatedStack,
    EvaluatedStudy, EvaluatedTable, EvaluatedTimeline, FigureAxis, FigurePoint, StudyVerdict,
};
use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct StudyData {
    title: String,
    source: String,
    conclusions: Vec<ConclusionData>,
    figures: Vec<FigureData>,
    tables: Vec<TableData>,
    /// Its sums of layers: what each is, and the picture as SVG.
    stacks: Vec<(String, String)>,
    /// Which figures are not drawn, and why.
    undrawn: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct ConclusionData {
    pub(super) claim: String,
    /// What the style sheet knows the verdict by.
    pub(super) verdict: &'static str,
    /// The verdict in words.
    pub(super) words: String,
    pub(super) evidence: Vec<String>,
}

#[derive(Serialize)]
struct FigureData {
    name: String,
    title: String,
    x: AxisData,
    y: AxisData,
    series: Vec<SeriesData>,
    /// Each iteration that is drawn from moment to moment: what it is, and the picture as SVG.
    pictures: Vec<(String, String)>,
    missing: Vec<String>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct AxisData {
    title: String,
    unit: &'static str,
    log: bool,
}

#[derive(Serialize)]
struct SeriesData {
    name: String,
    published: bool,
    color: &'static str,
    dash: &'static str,
    marker: &'static str,
    /// Along x, what that is in words, along y, what that is in words.
    points: Vec<(f64, String, Number, String)>,
}

#[derive(Serialize)]
struct TableData {
    name: String,
    title: String,
    columns: Vec<String>,
    rows: Vec<(String, bool, Vec<CellData>)>,
    notes: Vec<String>,
}

/// A cell: what it says, and whether it is a number (`n`), words (`w`) or a reason why there is none (`m`).
type CellData = (String, char);

/// `study` as the page takes it, its lines in the `styles` of the page.
pub(crate) fn data(study: &EvaluatedStudy, styles: &LineStyles) -> StudyData {
    StudyData {
        title: clean(&study.title),
        source: clean(&study.source),
        conclusions: conclusions(&study.conclusions),
        figures: study.figures.iter().map(|of| figure(of, styles)).collect(),
        tables: study.tables.iter().map(table).collect(),
        stacks: study.stacks.iter().map(stacked).collect(),
        undrawn: study.undrawn.iter().map(undrawn_line).collect(),
    }
}

/// `conclusions` in words.
pub(super) fn conclusions(conclusions: &[EvaluatedConclusion]) -> Vec<ConclusionData> {
    let mut said = SaidReasons::default();
    let one = |conclusion: &EvaluatedConclusion| {
        let (name, why) = (conclusion.verdict.name(), conclusion.verdict.why());
        let (verdict, words) = match &conclusion.verdict {
            StudyVerdict::Holds => ("holds", format!("{name} here")),
            StudyVerdict::DoesNotHold => ("fails", format!("{name} here")),
            _ => ("open", name.to_owned()),
        };
        let words = match why {
            Some(why) => format!("{words}: {}", clean(&said.once(why, Some(why)))),
            None => words,
        };
        let texts = conclusion.tests.iter().map(|test| &test.evidence).chain(&conclusion.longer);
        let evidence = texts.map(|text| clean(&said.once(text, why))).collect();
        ConclusionData { claim: clean(&conclusion.claim), verdict, words, evidence }
    };
    conclusions.iter().map(one).collect()
}

fn figure(figure: &EvaluatedFigure, styles: &LineStyles) -> FigureData {
    FigureData {
        name: clean(&figure.name),
        title: clean(&figure.title),
        x: axis(&figure.x),
        y: axis(&figure.y),
        series: figure.series.iter().map(|of| series(of, figure, styles)).collect(),
        pictures: figure.timeline.iter().flat_map(pictures).collect(),
        missing: cleaned(&figure.missing),
        notes: cleaned(&figure.notes),
    }
}

fn pictures(seen: &EvaluatedTimeline) -> impl Iterator<Item = (String, String)> {
    let picture = |iteration| {
        let title = format!("{}, {}", clean(&seen.case), timeline::title(iteration));
        (title, timeline(iteration, &seen.case))
    };
    seen.iterations.iter().map(picture)
}

fn stacked(stack: &EvaluatedStack) -> (String, String) {
    (format!("{}: {}", clean(&stack.name), clean(&stack.title)), stacks::stack(stack))
}

fn axis(axis: &FigureAxis) -> AxisData {
    AxisData { title: clean(&axis.title), unit: axis.unit.name(), log: axis.logarithmic }
}

fn series(series: &EvaluatedSeries, figure: &EvaluatedFigure, styles: &LineStyles) -> SeriesData {
    let style = styles.style(&series.name);
    let drawable = series.points.iter().filter(|point| is_drawable(point, figure));
    let point = |point: &FigurePoint| {
        let y = Number::from_estimate(point.y)?;
        Some((point.x, number(point.x, figure.x.unit), y, tight_estimate(point.y, figure.y.unit)))
    };
    SeriesData {
        name: clean(&series.name),
        published: series.published,
        color: style.color,
        dash: if series.published { Dash::Short } else { style.dash }.name(),
        marker: style.marker.name(),
        points: drawable.filter_map(point).collect(),
    }
}

fn table(table: &EvaluatedTable) -> TableData {
    let row = |row: &EvaluatedRow| (clean(&row.name), row.published, row.cells.iter().map(cell).collect());
    TableData {
        name: clean(&table.name),
        title: clean(&table.title),
        columns: cleaned(&table.columns),
        rows: table.rows.iter().map(row).collect(),
        notes: cleaned(&table.notes),
    }
}

fn cell(cell: &EvaluatedCell) -> CellData {
    match cell {
        EvaluatedCell::Empty => (String::new(), 'w'),
        EvaluatedCell::Words(words) => (clean(words), 'w'),
        EvaluatedCell::Value(number, unit) => (tight_estimate(*number, *unit), 'n'),
        EvaluatedCell::Missing(why) => (clean(why), 'm'),
    }
}

fn cleaned(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| clean(text)).collect()
}
