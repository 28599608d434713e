//! What a suite wants drawn of its results: the tables, figures and conclusions of a study, with the published numbers.
//!
//! It is data: it stands in the suite's file, is kept in the header of the results, and [`draw()`] makes [`EvaluatedStudy`]
//! of it and of results. It says nothing of how cases are measured or how a drawing looks.
//!
//! [`EvaluatedStudy`]: crate::evaluated::EvaluatedStudy

mod check;
pub mod formula;
pub mod metric;

pub use self::formula::{Formula, Literal, Measure};
pub use self::metric::Metric;

use crate::card::{Card, CardKind};
use crate::case::{Case, Placements, Spec, Workload};
use crate::diagnostic::Diagnostic;
use crate::invalid::{Invalid, printable};
use crate::observation::Probe;
use crate::pace::Pace;
use crate::peers::Peers;
use crate::plan;
use crate::suite::Block;
use crate::units::{Size, parse_sizes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What is to be drawn. `C` is what a case is: text in a suite's file, where the cards say what it means, and a
/// [`Selection`] from then on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, bound = "C: Serialize + serde::de::DeserializeOwned")]
pub struct Study<C = Selection> {
    /// The study, in words.
    pub title: String,
    /// Where it was published: authors, venue, year.
    pub source: String,
    /// The cases, each by the name that formulas know it by.
    #[serde(default)]
    pub cases: BTreeMap<String, C>,
    /// Its tables, in its order.
    #[serde(default, rename = "table", skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<StudyTable>,
    /// Its figures, in its order.
    #[serde(default, rename = "figure", skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<StudyFigure>,
    /// What it concluded.
    #[serde(default, rename = "conclusion", skip_serializing_if = "Vec::is_empty")]
    pub conclusions: Vec<StudyConclusion>,
}

/// Cases that differ by nothing but their size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// The row, with parameters.
    pub spec: Spec,
    /// What the endpoints do.
    pub workload: Workload,
    /// The sizes that the suite measures it at, ascending; none where a size means nothing to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<Size>,
    /// Where the endpoints run.
    pub placements: Placements,
    /// When client begins its iterations.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pace: Pace,
    /// How many endpoints communicate at once.
    #[serde(default, skip_serializing_if = "is_default")]
    pub peers: Peers,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
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

/// A cell: a formula as text, nothing as empty text, or one of [`Other`].
#[derive(Debug, Clone, PartialEq)]
pub enum StudyCell {
    /// Nothing is to stand here.
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
    /// Words as they stand.
    Words(String),
    /// The name of the line whose measure is least, with those that cannot be told apart from it.
    Least(Vec<Candidate>),
    /// The name of the line whose measure is greatest.
    Most(Vec<Candidate>),
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

/// One of those from which the least or the most is taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// What it is called.
    pub name: String,
    /// By what it is judged.
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
    /// What is along the horizontal axis.
    #[serde(default)]
    pub x: FigureX,
    /// What is along the vertical axis, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub y: String,
    /// Whether equal distances are equal ratios.
    #[serde(default)]
    pub scale: FigureScale,
    /// The lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<StudySeries>,
    /// The case, of one size, of which some iterations are drawn from moment to moment, instead of lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<String>,
    /// What a reader must know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why it cannot be drawn from what is measured here, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

/// What a figure's lines go over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureX {
    /// The size of the messages.
    #[default]
    Size,
    /// The number of bytes that a call returned.
    Returned,
}

/// How a figure's axes go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureScale {
    /// Both in equal ratios.
    #[default]
    LogLog,
    /// The horizontal one in equal ratios, the vertical one in equal differences.
    Log,
    /// Both in equal differences.
    Linear,
}

/// A line of a figure: of what is measured, or as published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudySeries {
    /// What it is of.
    pub name: String,
    /// What is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Measure>,
    /// The study's own points, `x` ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<(Literal, Literal)>,
}

/// What a study concluded, with the tests by which it holds here or does not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyConclusion {
    /// The study's conclusion, in its sense.
    pub claim: String,
    /// It holds when each of these does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<StudyTest>,
    /// Why it cannot be tested by what is measured here, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

/// Where a measure must lie. One that goes over sizes must lie there at each of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyTest {
    /// What is tested, in words; else the formula.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is tested.
    pub of: Measure,
    /// At which sizes, where it goes over sizes; else at all.
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

/// Sizes as a list, in the form of `--sizes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestSizes(pub Vec<Size>);

impl Study {
    /// By which probes `case` is to be looked at, so that all can be drawn.
    pub fn probes_of(&self, case: &Case) -> Vec<Probe> {
        let timelines = self.figures.iter().filter_map(|figure| figure.timeline.as_ref());
        let timelines = timelines.map(|name| (name, None, Some(Probe::Timeline)));
        let taken = self.measures().flat_map(|measure| measure.formula.taken());
        let taken = taken.map(|taken| (&taken.case, taken.at, taken.metric.probe()));
        let wanted = timelines.chain(taken).filter(|(name, at, _)| {
            let selection = self.cases.get(*name);
            selection.is_some_and(|selection| selection.has(case))
                && at.is_none_or(|at| case.size_bytes == Some(at))
        });
        let mut probes: Vec<Probe> = wanted.filter_map(|(_, _, probe)| probe).collect();
        probes.sort_unstable();
        probes.dedup();
        probes
    }

    /// Whether anything of it is of what probes see.
    pub fn needs_probes(&self) -> bool {
        let is_looked =
            |measure: &Measure| measure.formula.taken().iter().any(|taken| taken.metric.probe().is_some());
        self.figures.iter().any(|figure| figure.timeline.is_some()) || self.measures().any(is_looked)
    }

    /// All that it takes numbers from.
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
    /// Whether it is to hold at `size`.
    pub fn is_of(&self, size: Size) -> bool {
        self.sizes.as_ref().is_none_or(|sizes| sizes.0.contains(&size))
    }

    /// Between what its numbers are to be.
    pub fn bounds(&self) -> (f64, f64) {
        let least = self.at_least.as_ref().map_or(f64::NEG_INFINITY, |literal| literal.value);
        let most = self.at_most.as_ref().map_or(f64::INFINITY, |literal| literal.value);
        (least, most)
    }
}

impl Study<String> {
    /// The study with each case as the suite's `blocks` measure it.
    pub(crate) fn resolve(self, blocks: &[Block], cards: &[Card]) -> Result<Study, Diagnostic> {
        let selection = |(name, text): (String, String)| match Selection::find(&text, blocks, cards) {
            Ok(selection) => Ok((name, selection)),
            Err(invalid) => Err(Diagnostic::from(invalid).under(name).under("cases")),
        };
        let cases = self.cases.into_iter().map(selection).collect::<Result<_, _>>()?;
        let Study { title, source, tables, figures, conclusions, .. } = self;
        Ok(Study { title, source, cases, tables, figures, conclusions })
    }
}

impl Selection {
    /// Whether `case` is one of them.
    pub fn has(&self, case: &Case) -> bool {
        let sized = match case.size_bytes {
            None => self.sizes.is_empty(),
            Some(size) => self.sizes.contains(&size),
        };
        sized
            && self.placements.0.contains(&case.placement)
            && (&self.spec, self.workload, self.pace, self.peers)
                == (&case.spec, case.workload, case.pace, case.peers)
    }

    /// The cases of `blocks` that `text` names: the row, then as much of workload, placement, pace and peers as tells them
    /// from others, and sizes if not all are meant. A placement is named whole or by its first alternative.
    pub fn find(text: &str, blocks: &[Block], cards: &[Card]) -> Result<Self, Invalid> {
        let mut words = text.split_whitespace();
        let spec = Spec::parse(words.next().unwrap_or_default(), cards)?;
        let asked = words.try_fold(Asked::default(), Asked::take)?;
        let card = cards.iter().find(|card| card.name == spec.name);
        let mut found: Vec<Selection> = Vec::new();
        for block in blocks.iter().filter(|block| block.specs.contains(&spec)) {
            for selection in card.into_iter().flat_map(|card| measured(block, &spec, card)) {
                let is_same = |other: &&mut Selection| {
                    other.workload == selection.workload
                        && other.placements == selection.placements
                        && other.pace == selection.pace
                        && other.peers == selection.peers
                };
                match found.iter_mut().find(is_same) {
                    _ if !asked.is_met_by(&selection) => {}
                    Some(known) => known.sizes.extend(&selection.sizes),
                    None => found.push(selection),
                }
            }
        }
        let mut selection = match found.as_slice() {
            [one] => one.clone(),
            [] => {
                return Err(Invalid::new(
                    format!("no [[block]] of the suite measures '{}'", printable(text)),
                    "name a row of a block with its parameters, and a workload, placement, pace and peers of that block",
                ));
            }
            several => {
                let names: Vec<String> = several.iter().map(Selection::to_string).collect();
                return Err(Invalid::new(
                    format!("'{}' names several cases: {}", printable(text), names.join("; ")),
                    "add the workload, the placement, the pace or the peers that are meant",
                ));
            }
        };
        selection.sizes.sort_unstable();
        selection.sizes.dedup();
        if let Some(sizes) = asked.sizes {
            if let Some(other) = sizes.iter().find(|size| !selection.sizes.contains(size)) {
                return Err(Invalid::new(
                    format!("no [[block]] of the suite measures {selection} at {other}"),
                    format!("its sizes are {}", TestSizes(selection.sizes)),
                ));
            }
            selection.sizes = sizes;
        }
        Ok(selection)
    }
}

/// What `block` measures of `spec`.
fn measured<'a>(
    block: &'a Block,
    spec: &'a Spec,
    card: &'a Card,
) -> impl Iterator<Item = Selection> + use<'a> {
    let is_mechanism = card.kind == CardKind::Mechanism;
    let paced =
        move |workload: Workload, pace| pace == Pace::BackToBack || (is_mechanism && workload.is_answered());
    let ways = move |workload: Workload| {
        let paces = block.paces.iter().copied().filter(move |pace| paced(workload, *pace));
        paces.flat_map(move |pace| {
            let of_pair = !is_mechanism || pace != Pace::BackToBack;
            let peers = block.peers.iter().filter(move |peers| **peers == Peers::Pair || !of_pair);
            peers.map(move |peers| (pace, *peers))
        })
    };
    block.workloads.iter().copied().filter(|workload| card.takes(*workload)).flat_map(move |workload| {
        // What a row's limit is here is not known before it is measured: what is drawn is of sizes that are named.
        let named = block.sizes.iter().filter(|size| **size != Size::LIMIT);
        let sizes = if card.sized && workload.is_sized() { named.copied().collect() } else { Vec::new() };
        plan::places(card.kind, block).into_iter().flat_map(move |placements| {
            let sizes = sizes.clone();
            ways(workload).map(move |(pace, peers)| Selection {
                spec: spec.clone(),
                workload,
                sizes: sizes.clone(),
                placements: placements.clone(),
                pace,
                peers,
            })
        })
    })
}

/// What the words after the row ask for.
#[derive(Default)]
struct Asked {
    workload: Option<Workload>,
    placements: Option<Placements>,
    pace: Option<Pace>,
    peers: Option<Peers>,
    sizes: Option<Vec<Size>>,
}

impl Asked {
    fn take(mut self, word: &str) -> Result<Self, Invalid> {
        let again = if let Ok(workload) = word.parse() {
            self.workload.replace(workload).is_some()
        } else if let Ok(pace) = word.parse() {
            self.pace.replace(pace).is_some()
        } else if let Ok(peers) = word.parse() {
            self.peers.replace(peers).is_some()
        } else if let Ok(sizes) = parse_sizes(word) {
            self.sizes.replace(sizes).is_some()
        } else {
            self.placements.replace(word.parse()?).is_some()
        };
        if again {
            return Err(Invalid::new(
                format!("'{}' is the second of its kind in one case", printable(word)),
                "give one workload, one placement, one pace, one arrangement of peers and one list of sizes",
            ));
        }
        Ok(self)
    }

    fn is_met_by(&self, selection: &Selection) -> bool {
        let placed = |asked: &Placements| {
            *asked == selection.placements
                || (asked.0.len() == 1 && selection.placements.0.first() == asked.0.first())
        };
        self.workload.is_none_or(|workload| workload == selection.workload)
            && self.pace.is_none_or(|pace| pace == selection.pace)
            && self.peers.is_none_or(|peers| peers == selection.peers)
            && self.placements.as_ref().is_none_or(placed)
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.spec, self.workload, self.placements)?;
        if self.pace != Pace::BackToBack {
            write!(f, " {}", self.pace)?;
        }
        if self.peers != Peers::Pair { write!(f, " {}", self.peers) } else { Ok(()) }
    }
}

impl fmt::Display for TestSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.0.iter().map(Size::to_string).collect();
        f.write_str(&sizes.join(","))
    }
}

impl Serialize for TestSizes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TestSizes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_sizes(&text).map(TestSizes).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for TestSizes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sizes".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "examples": ["1,64,4K", "1..64K"] })
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
        f.write_str("a formula, or one of { words }, { least }, { most }, { setting }, { host }, { missing }")
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
