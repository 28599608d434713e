//! What a suite wants drawn of its results: the tables, figures and conclusions of a study, with the published numbers.
//!
//! It is data: it stands in the suite's file and is kept in the header of the results. It says nothing of how cases are
//! measured; how numbers are worked out for it is in `analysis`, how they look is in `report`.

use super::formula::Measure;
use super::literal::Literal;
use super::selection::Selection;
use super::test_sizes::TestSizes;
use crate::case::Case;
use crate::invalid::Invalid;
use crate::need::{Pattern, Requirement};
use crate::observation::probe::Probe;
use crate::units::{Size, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What is to be drawn. `C` is how a case is written: as text in a suite's file, and as a [`Selection`] once the text has
/// been resolved against the cards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, bound = "C: Serialize + serde::de::DeserializeOwned")]
pub struct Study<C = Selection> {
    /// Its title.
    pub title: String,
    /// Where it was published: authors, venue, year.
    pub source: String,
    /// The cases, by the names that formulas use.
    #[serde(default)]
    pub cases: BTreeMap<String, C>,
    /// Its tables, in its order.
    #[serde(default, rename = "table", skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<StudyTable>,
    /// Its figures, in its order.
    #[serde(default, rename = "figure", skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<StudyFigure>,
    /// Its sums of layers, in its order.
    #[serde(default, rename = "stack", skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<StudyStack>,
    /// What it concluded.
    #[serde(default, rename = "conclusion", skip_serializing_if = "Vec::is_empty")]
    pub conclusions: Vec<StudyConclusion>,
}

/// A table of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyTable {
    /// What the study calls it: `Table 20`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The heads of the columns after the first, which names the rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// The rows, each with as many cells as there are columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<StudyRow>,
    /// What a reader must know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why it cannot be drawn from what is measured here, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyRow {
    /// The system or the case.
    pub name: String,
    /// Whether its cells are the study's own numbers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub published: bool,
    /// One a column.
    pub cells: Vec<StudyCell>,
}

/// A cell: a formula as text, nothing as empty text, or one of [`OtherCell`].
#[derive(Debug, Clone, PartialEq)]
pub enum StudyCell {
    /// Nothing.
    Empty,
    /// A number.
    Measure(Measure),
    /// Something else.
    Other(OtherCell),
}

/// What a cell can be beside a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum OtherCell {
    /// Words, shown as they are.
    Words(String),
    /// The name of the candidate whose measure is least, with those that cannot be distinguished from it.
    Least(Vec<Candidate>),
    /// The name of the candidate whose measure is greatest.
    Most(Vec<Candidate>),
    /// The name of the candidate that is best for a need, of the mechanisms that the suite measures and whose cards meet it. In
    /// results it is [`OtherCell::Least`] or [`OtherCell::Most`].
    Best(StudyNeed),
    /// What the kernel made of a setting, such as `SO_SNDBUF`.
    Setting {
        /// The setting.
        name: String,
        /// The case, of one size.
        of: String,
    },
    /// Something that the results say of the host.
    Host(HostFact),
    /// A number should stand here and cannot: why.
    Missing(String),
}

/// A need whose best candidate a cell names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyNeed {
    /// How processes talk.
    pub pattern: Pattern,
    /// The size of a message, as people type it; a signal may have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// What a candidate must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Requirement>,
    /// What it must not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Requirement>,
}

/// One of those that are compared for the least or the greatest measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// What it is called.
    pub name: String,
    /// Its measure.
    pub of: Measure,
}

/// A fact about the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostFact {
    /// The machine's architecture.
    Arch,
    /// The processor's name.
    Cpu,
    /// How many bits its addresses have.
    CpuMode,
    /// Which byte of a number comes first in memory.
    ByteOrder,
    /// How many CPUs the run might use.
    Cpus,
    /// Whether hardware threads share cores.
    Smt,
    /// The kernel.
    Kernel,
    /// The hypervisor.
    Virtualisation,
    /// The size of the first cache for data.
    L1d,
    /// The size of the first cache for instructions.
    L1i,
    /// The size of the second cache.
    L2,
    /// The size of the third cache.
    L3,
    /// The size of a cache line.
    CacheLine,
    /// The size of memory.
    Memory,
}

/// A figure of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyFigure {
    /// What the study calls it: `Figure 32`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// What the horizontal axis shows.
    #[serde(default)]
    pub x: FigureX,
    /// What the vertical axis shows, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub y: String,
    /// Which axes are logarithmic.
    #[serde(default)]
    pub scale: FigureScale,
    /// The lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<StudySeries>,
    /// A case of one size: the figure shows some of its iterations from moment to moment instead of lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<String>,
    /// What a reader must know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why it cannot be drawn from what is measured here, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

/// Times as sums of layers: stacked bars, and a table of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyStack {
    /// What it is called.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The bars, from top to bottom.
    #[serde(rename = "bar")]
    pub bars: Vec<StudyBar>,
    /// What a reader must know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A bar: layers, of which each stands on those before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyBar {
    /// What it is of.
    pub name: String,
    /// The size of its messages, as people type it, where its cases have several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The layers, the lowest first.
    pub layers: Vec<StudyLayer>,
}

/// A layer: what a case takes more than that of the layer below.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyLayer {
    /// What is added.
    pub name: String,
    /// The case that has this layer and those below, and nothing else.
    pub of: String,
}

/// What a figure's horizontal axis shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureX {
    /// The size of the messages.
    #[default]
    Size,
    /// The number of bytes that a call returned.
    Returned,
}

/// Which axes of a figure are logarithmic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureScale {
    /// Both.
    #[default]
    LogLog,
    /// The horizontal one.
    Log,
    /// None.
    Linear,
}

/// A line of a figure: of what is measured, or as published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudySeries {
    /// Its name.
    pub name: String,
    /// What is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Measure>,
    /// The study's own points, `x` ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<(Literal, Literal)>,
}

/// What a study concluded, with the tests that decide whether it holds here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyConclusion {
    /// The study's conclusion.
    pub claim: String,
    /// It holds when each of these does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<StudyTest>,
    /// Why it cannot be tested by what is measured here, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

/// The bounds of a measure. A measure over several sizes must be within them at each size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyTest {
    /// What is tested, in words; else the formula.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is tested.
    pub of: Measure,
    /// At which sizes, where the measure is over several; else at all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<TestSizes>,
    /// It must not be below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<Literal>,
    /// It must not be above this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Literal>,
    /// What the study found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Literal>,
}

impl Study {
    /// The probes that `case` needs so that everything can be drawn.
    pub fn probes_of(&self, case: &Case) -> Vec<Probe> {
        let timelines = self.figures.iter().filter_map(|figure| figure.timeline.as_ref());
        let timelines = timelines.map(|name| (name, None, Some(Probe::Timeline)));
        let metrics = self.measures().flat_map(|measure| measure.formula.metrics());
        let metrics = metrics.map(|of_case| (&of_case.case, of_case.at, of_case.metric.probe()));
        let wanted = timelines.chain(metrics).filter(|(name, at, _)| {
            let selection = self.cases.get(*name);
            selection.is_some_and(|selection| selection.has(case))
                && at.is_none_or(|at| case.size_bytes == Some(at))
        });
        let mut probes: Vec<Probe> = wanted.filter_map(|(_, _, probe)| probe).collect();
        probes.sort_unstable();
        probes.dedup();
        probes
    }

    /// Whether it draws anything that probes observe.
    pub fn needs_probes(&self) -> bool {
        let is_observed = |measure: &Measure| {
            measure.formula.metrics().iter().any(|of_case| of_case.metric.probe().is_some())
        };
        self.figures.iter().any(|figure| figure.timeline.is_some()) || self.measures().any(is_observed)
    }

    /// All measures in it.
    fn measures(&self) -> impl Iterator<Item = &Measure> {
        let cells = self.tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells);
        let of_cells = cells.flat_map(|cell| match cell {
            StudyCell::Measure(measure) => vec![measure],
            StudyCell::Other(OtherCell::Least(candidates) | OtherCell::Most(candidates)) => {
                candidates.iter().map(|candidate| &candidate.of).collect()
            }
            _ => Vec::new(),
        });
        let of_lines =
            self.figures.iter().flat_map(|figure| &figure.series).filter_map(|line| line.of.as_ref());
        let of_tests = self.conclusions.iter().flat_map(|conclusion| &conclusion.tests).map(|test| &test.of);
        of_cells.chain(of_lines).chain(of_tests)
    }
}

impl StudyTest {
    /// Whether it must hold at `size`.
    pub fn is_of(&self, size: Size) -> bool {
        self.sizes.as_ref().is_none_or(|sizes| sizes.0.contains(&size))
    }

    /// The bounds of its numbers.
    pub fn bounds(&self) -> (f64, f64) {
        let least = self.at_least.as_ref().map_or(f64::NEG_INFINITY, |literal| literal.value);
        let most = self.at_most.as_ref().map_or(f64::INFINITY, |literal| literal.value);
        (least, most)
    }
}

impl Serialize for StudyCell {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            StudyCell::Empty => serializer.serialize_str(""),
            StudyCell::Measure(measure) => measure.serialize(serializer),
            StudyCell::Other(other) => other.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for StudyCell {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrMore)
    }
}

/// A cell is text, or a table of one entry.
struct TextOrMore;

impl<'de> serde::de::Visitor<'de> for TextOrMore {
    type Value = StudyCell;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a formula, or one of { words }, { least }, { most }, { best }, { setting }, { host }, { missing }")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<StudyCell, E> {
        if text.is_empty() {
            return Ok(StudyCell::Empty);
        }
        text.parse().map(StudyCell::Measure).map_err(E::custom)
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<StudyCell, A::Error> {
        OtherCell::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(StudyCell::Other)
    }
}

impl JsonSchema for StudyCell {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cell".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (measure, other) = (generator.subschema_for::<Measure>(), generator.subschema_for::<OtherCell>());
        schemars::json_schema!({ "anyOf": [measure, other] })
    }
}

impl StudyFigure {
    /// The unit of its vertical axis: that of its first line.
    pub fn unit(&self) -> Result<Unit, Invalid> {
        let Some(first) = self.series.first() else { return Ok(Unit::Number) };
        match (&first.of, first.published.first()) {
            (Some(measure), _) => measure.unit(),
            (None, Some((_, y))) => Ok(y.unit),
            (None, None) => Ok(Unit::Number),
        }
    }
}
