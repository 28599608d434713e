//! Charts of results: for each workload and placement the chosen metric over the sizes, or side by side where there is
//! one size, and the style of each line. It draws none.
//!
//! Lines over sizes are of the same type as the figures of studies, so that whoever draws one draws the other.

use super::line_style::{LineStyle, LineStyles, Series};
use super::stacks::stack;
use super::timeline::timeline;
use crate::text::block::{Common, grouped, name};
use crate::text::columns::{self, parse_metric};
use crate::text::head::labels;
use crate::text::sheet::sheet;
use analysis::analysed::AnalysedResults;
use analysis::study::evaluated::{EvaluatedFigure, EvaluatedSeries, FigureAxis, FigurePoint};
use model::estimate::Estimate;
use model::units::Unit;
use model::{Invalid, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// A chart and what a file with it is to be called, without the ending.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// Lower-case letters, digits and hyphens.
    pub file_name: String,
    /// What is drawn.
    pub chart: Chart,
    /// How its lines or rows look, in their order.
    pub(super) styles: Vec<LineStyle>,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// Lines over a quantity.
    Lines(EvaluatedFigure),
    /// A number for each of some names.
    SideBySide(SideBySide),
}

/// Numbers of one size or of none, a row each.
#[derive(Debug, Clone, PartialEq)]
pub struct SideBySide {
    /// What was measured.
    pub name: String,
    /// The numbers' axis, which is logarithmic.
    pub axis: FigureAxis,
    /// Names and their numbers, all above 0, the best first.
    pub rows: Vec<(String, Estimate)>,
}

/// The figures with a line of the studies of `all`, and charts of their results: of the column `metric`, or of each
/// workload's first.
pub fn drawings(all: &[AnalysedResults<'_>], metric: Option<&str>) -> Result<Vec<Drawing>, Invalid> {
    let studies = all.iter().filter_map(|results| results.study.as_ref()).flat_map(|study| &study.figures);
    let studies = studies.filter(|figure| !figure.series.is_empty()).cloned();
    let general = general(all, metric)?;
    let styles = line_styles(all);
    let mut drawings: Vec<Drawing> = Vec::new();
    for chart in studies.map(Chart::Lines).chain(general) {
        let (name, lines): (_, Vec<&String>) = match &chart {
            Chart::Lines(of) => (&of.name, of.series.iter().map(|series| &series.name).collect()),
            Chart::SideBySide(of) => (&of.name, of.rows.iter().map(|(name, _)| name).collect()),
        };
        let (name, styles) = (file_name(name), lines.into_iter().map(|name| styles.style(name)).collect());
        let taken = |name: &str| drawings.iter().any(|drawing| drawing.file_name == name);
        let numbered = (2..).map(|nth| format!("{name}-{nth}"));
        let file_name = [name.clone()].into_iter().chain(numbered).find(|name| !taken(name));
        drawings.push(Drawing { file_name: file_name.unwrap_or(name), chart, styles });
    }
    if drawings.is_empty() {
        return Err(Invalid::new(
            "there is nothing to draw: no case has a number for it",
            "take another --metric, or see with --format table what was measured",
        ));
    }
    Ok(drawings)
}

/// What the studies of `all` draw that is no chart, as SVG, each with its file's name: iterations from moment to moment, and sums of layers.
pub fn study_pictures(all: &[AnalysedResults<'_>]) -> Vec<(String, String)> {
    let studies = || all.iter().filter_map(|results| results.study.as_ref());
    let figures = studies().flat_map(|study| &study.figures);
    let stacks = studies().flat_map(|study| &study.stacks);
    let stacks = stacks.map(|of| (file_name(&of.name), stack(of)));
    let of_figure = |figure: &EvaluatedFigure| {
        let name = file_name(&figure.name);
        let iterations = figure
            .timeline
            .iter()
            .flat_map(|seen| seen.iterations.iter().map(|iteration| timeline(iteration, &seen.case)));
        let named = iterations.enumerate().map(|(at, svg)| (format!("{name}-iteration-{}", at + 1), svg));
        named.collect::<Vec<_>>()
    };
    figures.flat_map(of_figure).chain(stacks).collect()
}

/// The styles of all that is drawn of `all`: the rows of results, the lines of studies, and with several runs both of each run.
pub(crate) fn line_styles(all: &[AnalysedResults<'_>]) -> LineStyles {
    let planned = all.iter().flat_map(|results| &results.results.header.plan.cases);
    let planned = grouped(planned.map(|case| (mechanism(&name(case)), ())));
    let first: Vec<String> = planned.into_iter().map(|(mechanism, _)| mechanism).collect();
    let of_run = |(results, label): (&AnalysedResults<'_>, String)| {
        let alone = rows(results).into_iter().chain(study_lines(results, &first));
        let with_run =
            |series: &Series| Series { name: format!("{}, {label}", series.name), ..series.clone() };
        let both = |picture: Vec<Series>| match all {
            [_] => picture,
            _ => picture.iter().map(with_run).chain(picture.clone()).collect(),
        };
        alone.map(both).collect::<Vec<_>>()
    };
    let pictures: Vec<Vec<Series>> = all.iter().zip(labels(all)).flat_map(of_run).collect();
    LineStyles::for_pictures(&first, &pictures)
}

/// What the charts of `results` show, each once.
fn rows(results: &AnalysedResults<'_>) -> Vec<Vec<Series>> {
    let mut charts: BTreeMap<(Workload, String), BTreeSet<Series>> = BTreeMap::new();
    for case in results.results.records.iter().filter(|record| !record.floor).map(|record| &record.case) {
        let (common, name) = (Common::from_case(case), name(case));
        let chart = charts.entry((common.workload, common.place())).or_default();
        chart.insert(Series { mechanism: mechanism(&name), name });
    }
    charts.into_values().map(|chart| chart.into_iter().collect()).collect()
}

/// The lines of each figure of the study of `results`. A line whose name begins with one of the `mechanisms` is of that one.
fn study_lines(results: &AnalysedResults<'_>, mechanisms: &[String]) -> Vec<Vec<Series>> {
    let is_of = |name: &str, mechanism: &str| {
        name.split_at_checked(mechanism.len()).is_some_and(|(head, rest)| {
            head.eq_ignore_ascii_case(mechanism) && (rest.is_empty() || rest.starts_with([':', ',', ' ']))
        })
    };
    let line = |series: &EvaluatedSeries| {
        let name = series.name.clone();
        let known = mechanisms.iter().filter(|known| is_of(&name, known));
        let known = known.max_by_key(|known| known.len());
        Series { mechanism: known.unwrap_or(&name).clone(), name }
    };
    let figures = results.study.iter().flat_map(|study| &study.figures);
    figures.map(|figure| figure.series.iter().map(line).collect()).collect()
}

/// The name of a row without parameters.
fn mechanism(name: &str) -> String {
    name.split([':', ' ']).next().unwrap_or(name).to_owned()
}

/// Whether `point` has a place on the axes of `figure`.
pub(crate) fn is_drawable(point: &FigurePoint, figure: &EvaluatedFigure) -> bool {
    let fits = |value: f64, axis: &FigureAxis| value.is_finite() && (!axis.logarithmic || value > 0.0);
    fits(point.x, &figure.x) && fits(point.y.median, &figure.y)
}

fn general(all: &[AnalysedResults<'_>], metric: Option<&str>) -> Result<Vec<Chart>, Invalid> {
    metric.map(parse_metric).transpose()?;
    let mut groups: BTreeMap<(Workload, String), Group> = BTreeMap::new();
    for (results, label) in all.iter().zip(labels(all)) {
        let of_run = if all.len() > 1 { format!(", {label}") } else { String::new() };
        for block in sheet(results).blocks {
            let Some(common) = block.common else { continue };
            let wanted = metric.unwrap_or(columns::shown_of(common.workload)[0].heading.title);
            let Some(at) = block.columns.iter().position(|column| column.title == wanted) else { continue };
            let (title, Some(unit)) = (block.columns[at].title, block.columns[at].unit) else { continue };
            let group = groups.entry((common.workload, common.place()));
            let group = group.or_insert_with(|| Group { title, unit, numbers: Vec::new() });
            let number = |number: &Estimate| number.median.is_finite() && number.median > 0.0;
            let numbers = block.rows.into_iter().filter_map(|row| {
                Some((common, row.name + &of_run, row.numbers.get(at).copied().flatten().filter(number)?))
            });
            group.numbers.extend(numbers);
        }
    }
    let charts = groups.into_iter();
    Ok(charts.flat_map(|((workload, place), group)| group.charts(&format!("{workload}, {place}"))).collect())
}

/// The numbers of one workload in one place, in the order of the tables.
struct Group {
    title: &'static str,
    unit: Unit,
    numbers: Vec<(Common, String, Estimate)>,
}

impl Group {
    /// Lines over the sizes if any name has two, and side by side what has no size or no other, or no bytes, which have
    /// no place on a logarithmic axis.
    fn charts(&self, name: &str) -> Vec<Chart> {
        let along = |common: &Common| common.size_bytes.filter(|size| size.0 > 0);
        let mut lines: BTreeMap<&str, Vec<FigurePoint>> = BTreeMap::new();
        for (common, name, y) in &self.numbers {
            let point = along(common).map(|size| FigurePoint { x: size.0 as f64, y: *y });
            lines.entry(name).or_default().extend(point);
        }
        let has_lines = lines.values().any(|points| points.len() > 1);
        let lines = has_lines.then(|| Chart::Lines(self.lines(name, lines)));
        let alone = self.numbers.iter().filter(|(common, _, _)| along(common).is_none() || !has_lines);
        let sizes = grouped(alone.map(|(common, name, y)| (common.size_words(), (name.clone(), *y))));
        let side_by_side = sizes.into_iter().map(|(size, rows)| {
            Chart::SideBySide(SideBySide { name: format!("{name}{size}"), axis: self.axis(), rows })
        });
        lines.into_iter().chain(side_by_side).collect()
    }

    fn lines(&self, name: &str, lines: BTreeMap<&str, Vec<FigurePoint>>) -> EvaluatedFigure {
        let series = lines.into_iter().filter(|(_, points)| !points.is_empty()).map(|(name, mut points)| {
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            EvaluatedSeries { name: name.to_owned(), published: false, points }
        });
        EvaluatedFigure {
            name: name.to_owned(),
            title: format!("{} by message size", self.title),
            x: FigureAxis { title: "message size in bytes".to_owned(), unit: Unit::Bytes, logarithmic: true },
            y: self.axis(),
            series: series.collect(),
            missing: Vec::new(),
            timeline: None,
            notes: Vec::new(),
        }
    }

    fn axis(&self) -> FigureAxis {
        FigureAxis { title: self.title.to_owned(), unit: self.unit, logarithmic: true }
    }
}

/// `name` as a file can be called everywhere.
pub fn file_name(name: &str) -> String {
    const LONGEST: usize = 80;
    let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' });
    let words: String = letters.take(LONGEST).collect();
    let joined = words.split_whitespace().collect::<Vec<_>>().join("-");
    if joined.is_empty() { "figure".to_owned() } else { joined }
}
