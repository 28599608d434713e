//! A suite: what to measure, as data. `default` is what a newcomer sees.
//!
//! Reading the file is the binary's work; here its text becomes blocks of cases.

use crate::card::Card;
use crate::case::{Placements, Spec, Workload};
use crate::invalid::Invalid;
use crate::pace::Pace;
use crate::peers::Peers;
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
    /// Comma-separated durations, as after `--gap`.
    #[serde(default)]
    gaps: Option<String>,
    /// Comma-separated rates, as after `--rate`.
    #[serde(default)]
    rates: Option<String>,
    /// Comma-separated arrangements, as after `--peers`.
    #[serde(default)]
    peers: Option<String>,
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
    /// When near begins its turns, for the workloads in which each turn is answered; the others go back to back.
    pub paces: Vec<Pace>,
    /// How many endpoints communicate at once, for the workloads in which several can.
    pub peers: Vec<Peers>,
}

impl Suite {
    /// Parses a suite file against the cards of the table. Errors of form carry line and column.
    pub fn parse(text: &str, cards: &[Card]) -> Result<Self, Invalid> {
        let file: File = toml::from_str(text).map_err(|e| {
            // The library quotes the line at fault as it stands, control characters included.
            let why = e.to_string().replace(|c: char| c.is_control() && c != '\n', "?");
            let problem = format!("the suite is not valid: {}", why.trim_end());
            Invalid::new(problem, "see suites/default.toml for the form")
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
            paces: paces(file.gaps.as_deref(), file.rates.as_deref())?,
            peers: peers(file.peers.as_deref())?,
        })
    }
}

/// The paces of comma-separated `gaps` and `rates`; back to back where there are neither.
pub fn paces(gaps: Option<&str>, rates: Option<&str>) -> Result<Vec<Pace>, Invalid> {
    let gaps = gaps.into_iter().flat_map(|list| list.split(',')).map(|text| Pace::gap(text.trim()));
    let rates = rates.into_iter().flat_map(|list| list.split(',')).map(|text| Pace::rate(text.trim()));
    let paces = gaps.chain(rates).collect::<Result<Vec<_>, _>>()?;
    Ok(if paces.is_empty() { vec![Pace::BackToBack] } else { paces })
}

/// The arrangements of a comma-separated list; one pair where there is none.
pub fn peers(list: Option<&str>) -> Result<Vec<Peers>, Invalid> {
    let Some(list) = list else { return Ok(vec![Peers::Pair]) };
    list.split(',').map(|text| text.trim().parse()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::{Framing, Kind, Payload, Reach};
    use crate::case::Placement;

    const CARDS: &[Card] = &[Card {
        name: "pipe",
        kind: Kind::Mechanism,
        summary: "",
        framing: Framing::Stream,
        reach: Reach::Related,
        payload: Payload::Bytes,
        fds: false,
        hangup: false,
        polled: false,
        params: &[],
        workloads: &[Workload::Latency],
        sized: true,
        limits: "",
        man: &[],
    }];

    const SUITE: &str = r#"
name = "small"
summary = "one block"
precision = "2%"
time = "1m 30s"

[[block]]
rows = ["pipe"]
workloads = ["latency", "throughput"]
sizes = "1..4,64"
placements = ["smt|same-llc", "cpus=1,0"]
"#;

    #[test]
    fn a_suite_is_what_its_file_says() {
        let suite = Suite::parse(SUITE, CARDS).unwrap();
        assert_eq!((suite.name.as_str(), suite.summary.as_str()), ("small", "one block"));
        assert_eq!((suite.precision, suite.time), (Percent(0.02), Duration::from_secs(90)));
        let [block] = suite.blocks.as_slice() else { panic!("{suite:?}") };
        assert_eq!(block.specs, [Spec::plain("pipe")]);
        assert_eq!(block.workloads, [Workload::Latency, Workload::Throughput]);
        assert_eq!(block.sizes, [1, 2, 4, 64].map(Size));
        assert_eq!(block.placements[0].0, [Placement::Smt, Placement::SameLlc]);
    }

    #[test]
    fn sizes_may_be_left_out() {
        let suite = Suite::parse(&SUITE.replace("sizes = \"1..4,64\"", ""), CARDS).unwrap();
        assert!(suite.blocks[0].sizes.is_empty());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let no_block = "name = 'n'\nsummary = 's'\nprecision = '2%'\ntime = '1s'\nblock = []";
        for (text, says) in [
            (String::new(), "missing field"),
            (SUITE.replace("name =", "nam ="), "unknown field `nam`"),
            (SUITE.replace("\"2%\"", "2"), "line 4"),
            (SUITE.replace("2%", "200%"), "'200%' is not a percentage"),
            (SUITE.replace("1m 30s", "90"), "'90' is not a duration"),
            (SUITE.replace("1m 30s", "0s"), "time is 0"),
            (SUITE.replace("[\"pipe\"]", "[\"pip\"]"), "unknown mechanism or operation 'pip'"),
            (SUITE.replace("[\"pipe\"]", "[]"), "no rows"),
            (SUITE.replace("\"latency\", ", "\"latancy\", "), "unknown workload 'latancy'"),
            (SUITE.replace("[\"latency\", \"throughput\"]", "[]"), "no workloads"),
            (SUITE.replace("[\"smt|same-llc\", \"cpus=1,0\"]", "[]"), "no placements"),
            (SUITE.replace("smt|", "smt|near|"), "unknown placement 'near'"),
            (SUITE.replace("1..4", "4..1"), "runs downwards"),
            (no_block.to_owned(), "no block"),
        ] {
            let invalid = Suite::parse(&text, CARDS).unwrap_err();
            assert!(invalid.problem.contains(says), "{says}: {invalid}");
            assert!(!invalid.remedy.is_empty());
        }
    }
}
