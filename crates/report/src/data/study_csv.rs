//! CSV of the study that a run repeats: one line a number, for spreadsheets and data frames.
//!
//! Cells of tables, points of figures and numbers of conclusions stand in one long table, each with where it is from:
//! tables of a study differ in their columns, and a CSV has one set of them. Columns keep their names and their order;
//! new ones are added at the end. What is missing is an empty field, never 0. Cases are `csv`'s.

use super::written::{field, written};
use analysis::analysed::AnalysedResults;
use analysis::study::evaluated::{
    EvaluatedCell, EvaluatedConclusion, EvaluatedFigure, EvaluatedRow, EvaluatedSeries, EvaluatedStudy,
    EvaluatedTable, EvaluatedTest, FigurePoint, TestedNumber, UndrawnFigures,
};
use model::estimate::Estimate;
use model::units::Unit;
use std::io;

/// A number of a study, or the words that stand in its place.
#[derive(Clone, Default)]
struct Line {
    part: &'static str,
    name: String,
    row: String,
    column: String,
    x_bytes: Option<f64>,
    published: bool,
    number: Option<(Estimate, Unit)>,
    words: Option<String>,
    missing: Option<String>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    verdict: Option<&'static str>,
}

/// A column: its name, and its field where the line has one.
type Column = (&'static str, fn(&Line) -> Option<String>);

const COLUMNS: &[Column] = &[
    ("part", |line| Some(line.part.to_owned())),
    ("name", |line| Some(line.name.clone())),
    ("row", |line| Some(line.row.clone())),
    ("column", |line| Some(line.column.clone())),
    ("x_bytes", |line| shown(line.x_bytes)),
    ("published", |line| Some(line.published.to_string())),
    ("value", |line| shown(Some(line.number?.0.median))),
    ("low", |line| shown(Some(line.number?.0.interval?.0))),
    ("high", |line| shown(Some(line.number?.0.interval?.1))),
    ("unit", |line| Some(line.number?.1.name().to_owned())),
    ("words", |line| line.words.clone()),
    ("missing", |line| line.missing.clone()),
    ("at_least", |line| shown(line.at_least)),
    ("at_most", |line| shown(line.at_most)),
    ("verdict", |line| Some(line.verdict?.to_owned())),
];

/// Writes the study of `results` as CSV (RFC 4180, but for lines that end in a bare line feed), after a line of names;
/// of results without a study that line alone.
pub fn study_csv(analysed: &AnalysedResults<'_>, out: impl io::Write) -> io::Result<()> {
    let lines = analysed.study.as_ref().map(lines).unwrap_or_default();
    write(&analysed.results.header.run, &lines, out)
}

fn write(run: &str, lines: &[Line], mut out: impl io::Write) -> io::Result<()> {
    let mut csv = ::csv::Writer::from_writer(Vec::new());
    csv.write_record(["run"].into_iter().chain(COLUMNS.iter().map(|(name, _)| *name)))?;
    for line in lines {
        let fields = COLUMNS.iter().map(|(_, of)| of(line).unwrap_or_default());
        csv.write_record([run.to_owned()].into_iter().chain(fields).map(|text| field(&text)))?;
    }
    out.write_all(&written(csv)?)
}

fn shown(number: Option<f64>) -> Option<String> {
    number.map(|number| number.to_string())
}

/// Every number of `study`, in its order.
fn lines(study: &EvaluatedStudy) -> Vec<Line> {
    let tables = study.tables.iter().flat_map(of_table);
    let figures = study.figures.iter().flat_map(of_figure);
    let undrawn = study.undrawn.iter().flat_map(of_undrawn);
    tables.chain(figures).chain(undrawn).chain(study.conclusions.iter().flat_map(of_conclusion)).collect()
}

fn of_table(table: &EvaluatedTable) -> Vec<Line> {
    let cell = |row: &EvaluatedRow, column: &String, cell: &EvaluatedCell| {
        let line = Line {
            part: "table",
            name: table.name.clone(),
            row: row.name.clone(),
            column: column.clone(),
            published: row.published,
            ..Line::default()
        };
        match cell.clone() {
            EvaluatedCell::Empty => None,
            EvaluatedCell::Words(words) => Some(Line { words: Some(words), ..line }),
            EvaluatedCell::Value(number, unit) => Some(Line { number: Some((number, unit)), ..line }),
            EvaluatedCell::Missing(why) => Some(Line { missing: Some(why), ..line }),
        }
    };
    let of_row = |row: &EvaluatedRow| {
        let cells = table.columns.iter().zip(&row.cells);
        cells.filter_map(|(column, of)| cell(row, column, of)).collect::<Vec<_>>()
    };
    table.rows.iter().flat_map(of_row).collect()
}

fn of_figure(figure: &EvaluatedFigure) -> Vec<Line> {
    let line =
        Line { part: "figure", name: figure.name.clone(), column: figure.y.title.clone(), ..Line::default() };
    let point = |series: &EvaluatedSeries, point: &FigurePoint| Line {
        row: series.name.clone(),
        published: series.published,
        x_bytes: Some(point.x),
        number: Some((point.y, figure.y.unit)),
        ..line.clone()
    };
    let of_series =
        |series: &EvaluatedSeries| series.points.iter().map(|at| point(series, at)).collect::<Vec<_>>();
    let missing = figure.missing.iter().map(|why| Line { missing: Some(why.clone()), ..line.clone() });
    figure.series.iter().flat_map(of_series).chain(missing).collect()
}

fn of_undrawn(figures: &UndrawnFigures) -> impl Iterator<Item = Line> {
    let line = |name: &String| Line {
        part: "figure",
        name: name.clone(),
        missing: Some(figures.reason.clone()),
        ..Line::default()
    };
    figures.names.iter().map(line)
}

fn of_conclusion(conclusion: &EvaluatedConclusion) -> Vec<Line> {
    let line = Line {
        part: "conclusion",
        name: conclusion.claim.clone(),
        verdict: Some(conclusion.verdict.name()),
        ..Line::default()
    };
    let of_test = |test: &EvaluatedTest| {
        let line =
            Line { row: test.name.clone(), at_least: test.at_least, at_most: test.at_most, ..line.clone() };
        let published = test.published.map(|median| Line {
            published: true,
            number: Some((Estimate { median, interval: None }, test.unit)),
            ..line.clone()
        });
        let number = |tested: &TestedNumber| Line {
            x_bytes: tested.size_bytes.map(|size| size.0 as f64),
            number: Some((tested.number, test.unit)),
            ..line.clone()
        };
        published.into_iter().chain(test.numbers.iter().map(number)).collect::<Vec<_>>()
    };
    let missing = conclusion.verdict.why().map(|why| Line { missing: Some(why.clone()), ..line.clone() });
    conclusion.tests.iter().flat_map(of_test).chain(missing).collect()
}
