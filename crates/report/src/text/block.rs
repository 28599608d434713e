//! Blocks: rows that can be compared with each other, and the words for what they have in common.
//!
//! A block is words. What its cells say is decided in `columns`, where they stand in `layout`.

use crate::words::clean;
use model::estimate::Estimate;
use model::floor;
use model::topology::CpuPair;
use model::units::Unit;
use model::{Case, Endpoints, Pace, Peers, Placement, Session, Size, Workload};
use std::collections::BTreeMap;

/// Rows that can be compared with each other.
pub(crate) struct Block {
    /// What they have in common.
    pub(crate) heading: String,
    /// What a row is.
    pub(crate) rows_are: &'static str,
    /// The columns after the name.
    pub(crate) columns: Vec<Heading>,
    /// The rows.
    pub(crate) rows: Vec<Row>,
    /// What is to be said under the rows.
    pub(crate) below: Vec<String>,
    /// Where charts place the rows; `None` of what no chart shows.
    pub(crate) common: Option<Common>,
}

/// The head of one column.
#[derive(Clone, Copy)]
pub(crate) struct Heading {
    /// What stands above the column.
    pub(crate) title: &'static str,
    /// What it means, where the title does not say all.
    pub(crate) meaning: Option<&'static str>,
    /// Whether a reader can do without the column where there is little room.
    pub(crate) spare: bool,
    /// In what its numbers are counted; `None` of words and of what no chart shows.
    pub(crate) unit: Option<Unit>,
}

impl Heading {
    pub(crate) const fn new(title: &'static str) -> Self {
        Self { title, meaning: None, spare: false, unit: None }
    }

    pub(crate) const fn meaning(self, meaning: &'static str) -> Self {
        Self { meaning: Some(meaning), ..self }
    }

    pub(crate) const fn spare(self) -> Self {
        Self { spare: true, ..self }
    }

    pub(crate) const fn unit(self, unit: Unit) -> Self {
        Self { unit: Some(unit), ..self }
    }
}

/// One row of a block.
pub(crate) struct Row {
    /// The first column.
    pub(crate) name: String,
    /// The other columns; `None` is a value that is missing.
    pub(crate) cells: Vec<Option<String>>,
    /// The numbers of the cells that charts can draw; empty where no chart shows the row.
    pub(crate) numbers: Vec<Option<Estimate>>,
    /// The record that it is of, by its place among the records; `None` where it is of none.
    pub(crate) record: Option<usize>,
    /// After the last column: the signs of the row's warnings, or a verdict.
    pub(crate) tail: String,
    /// How the row strikes the eye.
    pub(crate) tone: Tone,
}

/// How a row strikes the eye, where there is colour.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// Something is to be known about it.
    Doubtful,
    Good,
    Bad,
}

/// What the rows of one block have in common, in the order of the blocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Common {
    pub(crate) workload: Workload,
    pub(crate) placement: Placement,
    pub(crate) cpus: Option<CpuPair>,
    endpoints: Endpoints,
    pub(crate) size_bytes: Option<Size>,
    pace: Pace,
    pub(crate) peers: Peers,
}

impl Common {
    /// Operations share one block whatever their size: each is a row of its own.
    pub(crate) fn from_case(case: &Case) -> Self {
        Self {
            workload: case.workload,
            placement: case.placement,
            cpus: case.cpus,
            endpoints: case.endpoints,
            size_bytes: case.size_bytes.filter(|_| !case.workload.is_alone()),
            pace: case.pace,
            peers: case.peers,
        }
    }

    /// The heading of the block, which says what its numbers are per.
    pub(crate) fn heading(&self) -> String {
        format!("{}, per {}", self.subject(&self.size_words()), self.workload.iteration())
    }

    /// The same for all sizes.
    pub(crate) fn of_all_sizes(self) -> Self {
        Self { size_bytes: None, ..self }
    }

    /// Whether it differs from `other` by nothing but the place and the size.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let like = Self { placement: self.placement, cpus: self.cpus, size_bytes: self.size_bytes, ..*other };
        *self == like
    }

    /// Where its iterations run.
    pub(crate) fn place_with_cpus(&self) -> String {
        let text = |pair: CpuPair| match self.placement {
            // Of two hosts, each with numbers of its own.
            Placement::Remote => format!("cpus {},{}", pair.client, pair.server),
            _ => cpus_text(pair),
        };
        let cpus = self.cpus.map(|pair| format!(" ({})", text(pair))).unwrap_or_default();
        format!("{}{cpus}", self.placement)
    }

    fn subject(&self, size: &str) -> String {
        format!("{}{size}, {}{}", self.workload_words(), self.place_with_cpus(), self.manner())
    }

    fn workload_words(&self) -> String {
        match self.workload {
            Workload::Session(Session { messages, fds }) => {
                format!("session of {messages} messages with {fds} descriptors each")
            }
            other => other.to_string(),
        }
    }

    /// As what, at what pace and between how many its iterations run, where that is not the usual.
    fn manner(&self) -> String {
        let threads = if self.endpoints == Endpoints::Threads { ", threads" } else { "" };
        let pace = self.pace.in_words().map(|words| format!(", {words}")).unwrap_or_default();
        let peers = self.peers.in_words().map(|words| format!(", {words}")).unwrap_or_default();
        format!("{threads}{pace}{peers}")
    }

    /// The size after a comma; nothing where none is to be expected.
    pub(crate) fn size_words(&self) -> String {
        match (self.size_bytes, self.workload) {
            (Some(size), _) => format!(", {}", size_text(size)),
            (None, workload) if workload.is_alone() || workload == Workload::Connect => String::new(),
            (None, _) => ", no payload".to_owned(),
        }
    }

    /// Where and how its iterations run, without CPU numbers: another host has others.
    pub(crate) fn place(&self) -> String {
        format!("{}{}", self.placement, self.manner())
    }

    /// The place in words, and how its iterations run where that is not the usual: `one core, 4 pairs`.
    pub(crate) fn place_words(&self) -> String {
        let place = match self.placement {
            Placement::SameCore => "one core".to_owned(),
            Placement::Smt => "two threads of a core".to_owned(),
            Placement::SameLlc => "two cores".to_owned(),
            Placement::CrossLlc => "two cores of two caches".to_owned(),
            Placement::CrossNode => "two cores of two nodes".to_owned(),
            Placement::Remote => "two hosts".to_owned(),
            Placement::Unpinned | Placement::Cpus(_) => self.placement.to_string(),
        };
        place + &self.manner()
    }

    /// What an iteration is, as a heading: `Round trip`.
    pub(crate) fn value_words(&self) -> String {
        match self.workload {
            Workload::Latency => "Round trip".to_owned(),
            Workload::Throughput => "Rate".to_owned(),
            Workload::Transfer => "Rate of a transfer".to_owned(),
            Workload::Connect => "Connection".to_owned(),
            Workload::Session(_) => format!("A {}", self.workload_words()),
            Workload::Cost => "Operation".to_owned(),
            Workload::Accuracy => "Error of a timer".to_owned(),
        }
    }

    /// What a row of the block is.
    pub(crate) fn rows_are(&self) -> &'static str {
        if self.workload.is_alone() { "operation" } else { "mechanism" }
    }
}

/// `items` in groups of those whose cases can be compared with each other.
pub(crate) fn comparable<T>(items: &[T], case: impl Fn(&T) -> &Case) -> BTreeMap<Common, Vec<&T>> {
    let mut groups: BTreeMap<Common, Vec<&T>> = BTreeMap::new();
    for item in items {
        groups.entry(Common::from_case(case(item))).or_default().push(item);
    }
    groups
}

/// The name of the row of `case`: what the heading of its block leaves open. The block of floors has `shared-copy` in
/// several sizes.
pub(crate) fn name(case: &Case) -> String {
    let has_sizes = case.workload.is_alone() || case.spec.name == floor::SHARED_COPY;
    let size = case.size_bytes.filter(|_| has_sizes).map(|size| format!(" {size}")).unwrap_or_default();
    let inject = case.inject.map(|inject| format!(" inject={inject}")).unwrap_or_default();
    clean(&format!("{}{size}{inject}", case.spec))
}

/// The order of floors: the instrument itself, a system call, handing over, copies from the smallest.
pub(crate) fn floor_order(case: &Case) -> impl Ord + use<> {
    let order = [
        floor::NULL,
        floor::SYSCALL,
        floor::CONTEXT_SWITCH,
        floor::CACHE_LINE,
        floor::REMOTE_WAKE,
        floor::SHARED_COPY,
        floor::MEMCPY,
    ];
    let rank = order.iter().position(|name| *name == case.spec.name);
    (rank.is_none(), rank, case.cpus, case.endpoints, case.workload, case.size_bytes)
}

/// Where `case` runs, for a row whose block does not say it.
pub(crate) fn place(case: &Case) -> String {
    let cpus = case.cpus.map_or("unpinned".to_owned(), cpus_text);
    if case.endpoints == Endpoints::Threads { cpus + ", threads" } else { cpus }
}

fn cpus_text(pair: CpuPair) -> String {
    if pair.client == pair.server {
        format!("cpu {}", pair.client)
    } else {
        format!("cpus {},{}", pair.client, pair.server)
    }
}

/// A size that cannot be taken for a count: `1 byte`, `64 bytes`, `4K`.
pub(crate) fn size_text(size: Size) -> String {
    match size.to_string() {
        one if one == "1" => "1 byte".to_owned(),
        number if number.ends_with(|c: char| c.is_ascii_digit()) => format!("{number} bytes"),
        with_unit => with_unit,
    }
}

/// A size with its unit, as headings have it: `1 B`, `4 KiB`.
pub(crate) fn size_unit(size: Size) -> String {
    let text = size.to_string();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    match &text[digits.len()..] {
        "" => format!("{digits} B"),
        unit => format!("{digits} {unit}iB"),
    }
}

/// The titles and meanings of the columns of `blocks`, each once.
pub(crate) fn meanings(blocks: &[Block]) -> Vec<(String, String)> {
    let columns = blocks.iter().flat_map(|block| &block.columns);
    let columns = columns.filter_map(|column| Some((column.title, column.meaning?)));
    grouped(columns).into_iter().map(|(title, meanings)| (title.to_owned(), meanings[0].to_owned())).collect()
}

/// The values of each key, keys in the order in which they first occur.
pub(crate) fn grouped<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}
