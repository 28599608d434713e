//! What results come to, as a study would print it: tables, figures and conclusions with numbers in them.
//!
//! Words and numbers only: how they are laid out and drawn is `report`'s work, and which of them a suite
//! wants is in `model::study`.

use crate::traces::timeline::Iteration;
use model::estimate::Estimate;
use model::units::{Size, Unit};
use serde::{Serialize, Serializer};

/// A study with the numbers of one run in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluatedStudy {
    /// Its title.
    pub title: String,
    /// Where it was published: authors, year, venue.
    pub source: String,
    /// Its tables, in its order.
    pub tables: Vec<EvaluatedTable>,
    /// Its figures, in its order.
    pub figures: Vec<EvaluatedFigure>,
    /// Its sums of layers, in its order; each bar is one of the tables, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<EvaluatedStack>,
    /// What it concluded, and whether that holds here.
    pub conclusions: Vec<EvaluatedConclusion>,
    /// Its figures of which this run has nothing to draw, each reason once.
    pub undrawn: Vec<UndrawnFigures>,
}

/// Figures of which a run has nothing to draw, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UndrawnFigures {
    /// What the study calls them.
    pub names: Vec<String>,
    /// Why.
    pub reason: String,
}

/// A table of a study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluatedTable {
    /// What the study calls it: `Table 20`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The heads of the columns after the first, which names the rows.
    pub columns: Vec<String>,
    /// The rows, each with as many cells as there are columns.
    pub rows: Vec<EvaluatedRow>,
    /// What a reader must know of it.
    pub notes: Vec<String>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluatedRow {
    /// The system or the case.
    pub name: String,
    /// Whether its numbers are the study's; else they are of this run.
    pub published: bool,
    /// One a column.
    pub cells: Vec<EvaluatedCell>,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvaluatedCell {
    /// Nothing.
    Empty,
    /// Words.
    Words(String),
    /// A number; published ones have no interval.
    #[serde(serialize_with = "counted")]
    Value(Estimate, Unit),
    /// There is no number: why.
    Missing(String),
}

/// A number as one object with its unit.
fn counted<S: Serializer>(number: &Estimate, unit: &Unit, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Counted {
        #[serde(flatten)]
        number: Estimate,
        unit: Unit,
    }
    Counted { number: *number, unit: *unit }.serialize(to)
}

/// A figure of a study: lines over a quantity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluatedFigure {
    /// What the study calls it: `Figure 32`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The horizontal axis.
    pub x: FigureAxis,
    /// The vertical axis.
    pub y: FigureAxis,
    /// The lines.
    pub series: Vec<EvaluatedSeries>,
    /// Some iterations from moment to moment, instead of lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<EvaluatedTimeline>,
    /// Lines that were to be drawn and could not be, each with the reason.
    pub missing: Vec<String>,
    /// What a reader must know of it.
    pub notes: Vec<String>,
}

/// Some iterations of a case, with all events.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluatedTimeline {
    /// The case.
    pub case: String,
    /// The iterations: typical ones, then a slow one.
    pub iterations: Vec<Iteration>,
}

/// Times as sums of layers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluatedStack {
    /// What it is called.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The bars, from top to bottom.
    pub bars: Vec<EvaluatedBar>,
}

/// A sum of layers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluatedBar {
    /// What it is of.
    pub name: String,
    /// Its layers, the lowest first.
    pub layers: Vec<EvaluatedLayer>,
}

/// A layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluatedLayer {
    /// What is added.
    pub name: String,
    /// The time that it adds to that of the layers below.
    pub adds: EvaluatedCell,
    /// The time with it and without those above.
    pub so_far: EvaluatedCell,
    /// Its part of the time of the whole bar, where both are known.
    pub share: Option<f64>,
}

/// An axis of a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureAxis {
    /// What it shows.
    pub title: String,
    /// Its unit.
    pub unit: Unit,
    /// Whether equal distances are equal ratios.
    pub logarithmic: bool,
}

/// A line of a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluatedSeries {
    /// Its name.
    pub name: String,
    /// Whether its numbers are the study's; else they are of this run.
    pub published: bool,
    /// Its points, `x` ascending.
    pub points: Vec<FigurePoint>,
}

/// A point of a line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FigurePoint {
    /// Along the horizontal axis.
    pub x: f64,
    /// Along the vertical axis; published ones have no interval.
    pub y: Estimate,
}

/// What a study concluded, and what this run says of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluatedConclusion {
    /// The study's conclusion.
    pub claim: String,
    /// Whether it holds here.
    pub verdict: StudyVerdict,
    /// What the verdict rests on.
    pub tests: Vec<EvaluatedTest>,
    /// How long a run would decide it, where this one did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longer: Option<String>,
}

/// What a conclusion wants of some numbers, and what they are here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluatedTest {
    /// What is tested.
    pub name: String,
    /// The unit of the numbers and of their bounds.
    pub unit: Unit,
    /// The least that a number may be.
    pub at_least: Option<f64>,
    /// The most that a number may be.
    pub at_most: Option<f64>,
    /// The study's number.
    pub published: Option<f64>,
    /// One number, or one a size.
    pub numbers: Vec<TestedNumber>,
    /// All of this in words, with what is missing or in doubt.
    pub evidence: String,
}

/// A number of a test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TestedNumber {
    /// The size that it is of; absent where the test goes over none.
    pub size_bytes: Option<Size>,
    /// The number.
    #[serde(flatten)]
    pub number: Estimate,
}

/// Whether a conclusion holds in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StudyVerdict {
    /// The intervals lie wholly where the claim wants them.
    Holds,
    /// They lie wholly elsewhere.
    DoesNotHold,
    /// The intervals straddle the border, there are too few trials for them, or the run ended before a case; the evidence
    /// says which.
    NotTestedLongEnough,
    /// The run was not asked for what it is about: for what.
    NotAskedFor(String),
    /// What it is about cannot be measured on this host as it is: why.
    CannotBeMeasured(String),
}

impl StudyVerdict {
    /// The names of all, in the order in which they are counted.
    pub const NAMES: [&'static str; 5] =
        ["holds", "does not hold", "not tested long enough", "not asked for", "cannot be measured here"];

    /// It in words.
    pub fn name(&self) -> &'static str {
        let at = match self {
            StudyVerdict::Holds => 0,
            StudyVerdict::DoesNotHold => 1,
            StudyVerdict::NotTestedLongEnough => 2,
            StudyVerdict::NotAskedFor(_) => 3,
            StudyVerdict::CannotBeMeasured(_) => 4,
        };
        Self::NAMES[at]
    }

    /// Why there is nothing to judge, where that is so.
    pub fn why(&self) -> Option<&String> {
        match self {
            StudyVerdict::NotAskedFor(why) | StudyVerdict::CannotBeMeasured(why) => Some(why),
            StudyVerdict::Holds | StudyVerdict::DoesNotHold | StudyVerdict::NotTestedLongEnough => None,
        }
    }
}
