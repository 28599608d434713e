//! A suite: what to measure, as data. `default` is what a newcomer sees.
//!
//! Reading the file is the binary's work; here its text becomes blocks of cases.

use crate::card::Card;
use crate::case::{Placements, Spec, Workload};
use crate::invalid::Invalid;
use crate::units::{Percent, Size, parse_duration, parse_sizes};
use serde::Deserialize;
use std::time::Duration;

/// A suite in the form of its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    summary: String,
    precision: String,
    time: String,
    block: Vec<BlockInFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockInFile {
    rows: Vec<String>,
    workloads: Vec<String>,
    #[serde(default)]
    sizes: Option<String>,
    placements: Vec<String>,
}

/// What to measure, and how precisely by default.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// The name that `ipcmark run` takes.
    pub name: String,
    /// One line: what it shows.
    pub summary: String,
    /// The half-width at which a case is settled.
    pub precision: Percent,
    /// The time that a run may take.
    pub time: Duration,
    /// The cases, as products.
    pub blocks: Vec<Block>,
}

/// A product of rows, workloads, sizes and placements.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The rows of the table, with parameters.
    pub specs: Vec<Spec>,
    /// What the endpoints do.
    pub workloads: Vec<Workload>,
    /// The message sizes; rows without a size ignore them.
    pub sizes: Vec<Size>,
    /// Where the endpoints run.
    pub placements: Vec<Placements>,
}

impl Suite {
    /// Parses a suite file against the cards of the table. Errors of form carry line and column.
    pub fn parse(text: &str, cards: &[Card]) -> Result<Self, Invalid> {
        let file: File = toml::from_str(text).map_err(|e| {
            Invalid::new(format!("the suite is not valid: {e}"), "see suites/default.toml for the form")
        })?;
        if file.block.is_empty() {
            return Err(Invalid::new("the suite has no block", "give at least one [[block]]"));
        }
        let blocks = file.block.iter().map(|block| Block::resolve(block, cards)).collect::<Result<_, _>>()?;
        let time = parse_duration(&file.time)?;
        if time.is_zero() {
            return Err(Invalid::new("the suite's time is 0", "give it as time = \"60s\""));
        }
        Ok(Self { name: file.name, summary: file.summary, precision: file.precision.parse()?, time, blocks })
    }
}

impl Block {
    fn resolve(file: &BlockInFile, cards: &[Card]) -> Result<Self, Invalid> {
        for (name, list) in
            [("rows", &file.rows), ("workloads", &file.workloads), ("placements", &file.placements)]
        {
            if list.is_empty() {
                return Err(Invalid::new(
                    format!("a block of the suite has no {name}, so that nothing would come of it"),
                    format!("give at least one of its {name}, or leave the block out"),
                ));
            }
        }
        Ok(Self {
            specs: file.rows.iter().map(|text| Spec::parse(text, cards)).collect::<Result<_, _>>()?,
            workloads: file.workloads.iter().map(|text| text.parse()).collect::<Result<_, _>>()?,
            sizes: file.sizes.as_deref().map(parse_sizes).transpose()?.unwrap_or_default(),
            placements: file.placements.iter().map(|text| text.parse()).collect::<Result<_, _>>()?,
        })
    }
}
