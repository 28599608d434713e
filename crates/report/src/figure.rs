//! Figures of results: one for each workload and placement, the chosen metric over the sizes. It draws none.
//!
//! They are of the same type as the figures of studies, so that whoever draws one draws the other.

use crate::columns;
use crate::page::Input;
use crate::sheet::sheet;
use crate::text::clean;
use model::drawn::{Axis, Figure, Point, Series, Unit};
use model::record::Fact;
use model::{Invalid, Workload};
use std::collections::BTreeMap;

/// A figure and what a file with it is to be called, without the ending.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// Lower-case letters, digits and hyphens.
    pub file_name: String,
    /// What is drawn.
    pub figure: Figure,
}

/// The figures of the studies in `inputs`, and those of its results: of the column `metric`, or of each workload's
/// first. What has one size only has no figure.
pub fn drawings(inputs: &[Input<'_>], metric: Option<&str>) -> Result<Vec<Drawing>, Invalid> {
    let studies = inputs.iter().filter_map(|input| input.study).flat_map(|study| &study.figures).cloned();
    let general = general(inputs, metric)?;
    let mut drawings: Vec<Drawing> = Vec::new();
    for figure in studies.chain(general) {
        let name = file_name(&figure.name);
        let same = drawings.iter().filter(|drawing| drawing.file_name.starts_with(&name)).count();
        let file_name = if same == 0 { name } else { format!("{name}-{}", same + 1) };
        drawings.push(Drawing { file_name, figure });
    }
    if drawings.is_empty() {
        return Err(Invalid::new(
            "there is nothing to draw: no workload was measured at two sizes",
            "measure several, as with -s 1..64K, or have it as a page with --html, which draws single sizes too",
        ));
    }
    Ok(drawings)
}

/// The title of a column of numbers, or which it may have meant.
pub fn parse_metric(metric: &str) -> Result<String, Invalid> {
    let known: Vec<&str> = columns::numbers().collect();
    if known.contains(&metric) {
        Ok(metric.to_owned())
    } else {
        Err(Invalid::unknown("metric", metric, known))
    }
}

fn general(inputs: &[Input<'_>], metric: Option<&str>) -> Result<Vec<Figure>, Invalid> {
    metric.map(parse_metric).transpose()?;
    /// What one figure is of: the workload and where it ran; and the title and the unit of what it shows.
    type Groups = BTreeMap<(Workload, String), (&'static str, Unit, BTreeMap<String, Vec<Point>>)>;
    let mut groups: Groups = BTreeMap::new();
    for input in inputs {
        let host = if inputs.len() > 1 { format!(", {}", host(input)) } else { String::new() };
        for block in sheet(input.results).blocks {
            let Some((common, size)) = block.common.and_then(|common| Some((common, common.size_bytes?)))
            else {
                continue;
            };
            let wanted = metric.unwrap_or(columns::of(common.workload)[0].heading.title);
            let Some(at) = block.columns.iter().position(|column| column.title == wanted) else { continue };
            let Some(unit) = block.columns[at].unit else { continue };
            let key = (common.workload, common.place());
            let (_, _, lines) = groups.entry(key).or_insert((block.columns[at].title, unit, BTreeMap::new()));
            for row in block.rows {
                let Some(y) = row.numbers.get(at).copied().flatten() else { continue };
                lines.entry(row.name + &host).or_default().push(Point { x: size.0 as f64, y });
            }
        }
    }
    let figures = groups.into_iter().map(|((workload, place), (title, unit, lines))| Figure {
        name: format!("{workload}, {place}"),
        title: format!("{title} by message size"),
        x: Axis { title: "message size in bytes".to_owned(), unit: Unit::Bytes, logarithmic: true },
        y: Axis { title: title.to_owned(), unit, logarithmic: true },
        series: lines.into_iter().map(|(name, points)| line(name, points)).collect(),
        missing: Vec::new(),
        notes: Vec::new(),
    });
    let has_sizes = |figure: &Figure| figure.series.iter().any(|series| series.points.len() > 1);
    Ok(figures.filter(has_sizes).collect())
}

fn line(name: String, mut points: Vec<Point>) -> Series {
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Series { name, published: false, points }
}

fn host(input: &Input<'_>) -> String {
    match &input.results.header.host.name {
        Fact::Known(name) => clean(name),
        Fact::Unknown(_) => clean(&input.results.header.run),
    }
}

/// `name` as a file can be called everywhere.
fn file_name(name: &str) -> String {
    const LONGEST: usize = 80;
    let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' });
    let words: String = letters.take(LONGEST).collect();
    let joined = words.split_whitespace().collect::<Vec<_>>().join("-");
    if joined.is_empty() { "figure".to_owned() } else { joined }
}
