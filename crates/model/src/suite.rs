//! A suite: what to measure and what to draw of it, as data. `default` is what a newcomer sees.
//!
//! Reading the file is the binary's work; here its text becomes blocks of cases and a study. docs/reference/suites.md says what
//! the text can say.

use crate::block::Block;
use crate::card::Card;
use crate::diagnostic::{Diagnostic, unreadable};
use crate::endpoint::Endpoints;
use crate::invalid::Invalid;
use crate::pace::Pace;
use crate::peers::Peers;
use crate::placement::Placements;
use crate::precision::Precision;
use crate::spec::Spec;
use crate::study::Study;
use crate::units::{Size, parse_duration, parse_sizes};
use crate::workload::Workload;
use serde::Deserialize;
use std::str::FromStr;
use std::time::Duration;

/// A suite in the form of its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    summary: String,
    precision: String,
    time: String,
    #[serde(default)]
    quick: Option<String>,
    #[serde(default)]
    observe: Option<String>,
    #[serde(default)]
    slice: Option<String>,
    #[serde(default)]
    rounds: Option<u32>,
    #[serde(default)]
    total: Option<String>,
    #[serde(default)]
    endpoints: Option<Endpoints>,
    block: Vec<BlockInFile>,
    #[serde(default)]
    study: Option<Study<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockInFile {
    mechanisms: Vec<String>,
    workloads: Vec<String>,
    #[serde(default)]
    sizes: Option<String>,
    placements: Vec<String>,
    /// Comma-separated durations, as after `--think-time`.
    #[serde(default)]
    think_times: Option<String>,
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
    pub precision: Precision,
    /// The time that a run may take.
    pub time: Duration,
    /// The time of a quick run, which shows whether everything works; its numbers are rough.
    pub quick: Option<Duration>,
    /// The time for trials with the probes that the study needs, after all others; in a shorter run it is shorter in proportion.
    pub observe: Option<Duration>,
    /// How long a trial measures; else as the time of the run allows.
    pub slice: Option<Duration>,
    /// The rounds that a run may take; only time limits it where there is no number.
    pub rounds: Option<u32>,
    /// How many bytes a trial of `throughput` sends; else as many as fill its time.
    pub total: Option<Size>,
    /// What the endpoints are; processes where the suite does not say.
    pub endpoints: Option<Endpoints>,
    /// The cases, as products.
    pub blocks: Vec<Block>,
    /// What to draw of the results.
    pub study: Option<Study>,
}

impl Suite {
    /// The time for trials with probes in a run of `time`: the suite's own, shorter in proportion if the run is shorter.
    pub fn observe_in(&self, time: Duration) -> Duration {
        let observe = self.observe.unwrap_or_default();
        observe.min(observe.mul_f64(time.as_secs_f64() / self.time.as_secs_f64()))
    }

    /// Parses a suite file against the cards of the registry. Errors carry line and column.
    pub fn parse(text: &str, cards: &[Card]) -> Result<Self, Invalid> {
        let file: File = toml::from_str(text).map_err(|error| {
            unreadable("suite", text, &error, "see docs/reference/suites.md for the form")
        })?;
        Self::resolve(file, cards).map_err(|diagnostic| diagnostic.in_text("suite", text))
    }

    fn resolve(file: File, cards: &[Card]) -> Result<Self, Diagnostic> {
        /// A run of more would not end; the plan of many more would not either.
        const MOST_CASES: usize = 10_000;

        if file.block.is_empty() {
            return Err(
                Diagnostic::new("the suite has no block", "give at least one [[block]]").under("block")
            );
        }
        let blocks: Vec<Block> = file
            .block
            .iter()
            .enumerate()
            .map(|(at, block)| {
                self::block(block, cards).map_err(|diagnostic| diagnostic.under(at).under("block"))
            })
            .collect::<Result<_, _>>()?;
        if blocks.iter().map(Block::most_cases).fold(0, usize::saturating_add) > MOST_CASES {
            let problem = format!("the suite asks for more than {MOST_CASES} cases");
            return Err(Diagnostic::new(problem, "give fewer mechanisms, sizes or placements").under("block"));
        }
        let time = |name: &str, text: &str| {
            let time = parse_duration(text).map_err(Diagnostic::from).and_then(|time| match time {
                Duration::ZERO => Err(Diagnostic::new(
                    format!("the suite's {name} is 0"),
                    format!("give it as {name} = \"60s\""),
                )),
                time => Ok(time),
            });
            time.map_err(|diagnostic| diagnostic.under(name))
        };
        if file.rounds == Some(0) {
            return Err(
                Diagnostic::new("a run of no rounds measures nothing", "give at least 1").under("rounds")
            );
        }
        let total = file.total.as_deref().map(parse_total).transpose();
        let study = file.study.map(|study| {
            let study = study.resolve(&blocks, cards)?;
            study.check().map(|()| study)
        });
        let study = study.transpose().map_err(|diagnostic| diagnostic.under("study"))?;
        if file.observe.is_none() && study.as_ref().is_some_and(Study::needs_probes) {
            let problem = "the study draws what probes observe, and the suite gives no time for them";
            return Err(Diagnostic::new(problem, "give it as observe = \"60s\"").under("study"));
        }
        Ok(Self {
            name: file.name,
            summary: file.summary,
            precision: file
                .precision
                .parse()
                .map_err(|invalid| Diagnostic::from(invalid).under("precision"))?,
            time: time("time", &file.time)?,
            quick: file.quick.map(|quick| time("quick", &quick)).transpose()?,
            observe: file.observe.map(|observe| time("observe", &observe)).transpose()?,
            slice: file.slice.map(|slice| time("slice", &slice)).transpose()?,
            rounds: file.rounds,
            total: total.map_err(|invalid| Diagnostic::from(invalid).under("total"))?,
            endpoints: file.endpoints,
            study,
            blocks,
        })
    }
}

/// How many bytes a trial of `throughput` is to send.
pub fn parse_total(text: &str) -> Result<Size, Invalid> {
    match text.parse()? {
        Size(0) => Err(Invalid::new("a total of 0 bytes is nothing to send", "give it as 16M")),
        total if total > Size::LARGEST => Err(Invalid::new(
            format!("a total of {total} is too large"),
            format!("give at most {}", Size::LARGEST),
        )),
        total => Ok(total),
    }
}

/// The block that `file` describes.
fn block(file: &BlockInFile, cards: &[Card]) -> Result<Block, Diagnostic> {
    for (name, list) in
        [("mechanisms", &file.mechanisms), ("workloads", &file.workloads), ("placements", &file.placements)]
    {
        if list.is_empty() {
            return Err(Diagnostic::new(
                format!("a block of the suite has no {name}, so that it has no cases"),
                format!("give at least one of its {name}, or leave the block out"),
            )
            .under(name));
        }
    }
    let sizes = file.sizes.as_deref().map(parse_sizes).transpose();
    let (think_times, rates) = (file.think_times.as_deref(), file.rates.as_deref());
    let pace_of = if think_times.is_some_and(|think_times| paces(Some(think_times), None).is_err()) {
        "think_times"
    } else {
        "rates"
    };
    Ok(Block {
        specs: each("mechanisms", &file.mechanisms, |text| Spec::parse(text, cards))?,
        workloads: each("workloads", &file.workloads, Workload::from_str)?,
        sizes: sizes.map_err(|invalid| Diagnostic::from(invalid).under("sizes"))?.unwrap_or_default(),
        placements: each("placements", &file.placements, Placements::from_str)?,
        paces: paces(think_times, rates).map_err(|invalid| Diagnostic::from(invalid).under(pace_of))?,
        peers: peers(file.peers.as_deref()).map_err(|invalid| Diagnostic::from(invalid).under("peers"))?,
    })
}

/// What `parse` makes of each of `texts`, the list `name` of a block.
fn each<T>(
    name: &str,
    texts: &[String],
    parse: impl Fn(&str) -> Result<T, Invalid>,
) -> Result<Vec<T>, Diagnostic> {
    let one =
        |(at, text): (usize, &String)| parse(text).map_err(|e| Diagnostic::from(e).under(at).under(name));
    texts.iter().enumerate().map(one).collect()
}

/// The paces of comma-separated `think_times` and `rates`; back to back where there are neither.
pub fn paces(think_times: Option<&str>, rates: Option<&str>) -> Result<Vec<Pace>, Invalid> {
    let think_times =
        think_times.into_iter().flat_map(|list| list.split(',')).map(|text| Pace::think_time(text.trim()));
    let rates = rates.into_iter().flat_map(|list| list.split(',')).map(|text| Pace::rate(text.trim()));
    let paces = think_times.chain(rates).collect::<Result<Vec<_>, _>>()?;
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
    use crate::card::CardKind;
    use crate::placement::Placement;
    use crate::testing::cards::card;
    use crate::units::Percent;

    const CARDS: &[Card] = &[card("pipe", CardKind::Mechanism, &[Workload::Latency], true)];

    const SUITE: &str = r#"
name = "small"
summary = "one block"
precision = "2%"
time = "1m 30s"

[[block]]
mechanisms = ["pipe"]
workloads = ["latency", "throughput"]
sizes = "1..4,64"
placements = ["smt|same-llc", "cpus=1,0"]
"#;

    #[test]
    fn a_suite_is_what_its_file_says() {
        let suite = Suite::parse(SUITE, CARDS).unwrap();
        assert_eq!((suite.name.as_str(), suite.summary.as_str()), ("small", "one block"));
        assert_eq!((suite.precision, suite.time), (Percent(0.02).into(), Duration::from_secs(90)));
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
            (SUITE.replace("[\"pipe\"]", "[]"), "no mechanisms"),
            (SUITE.replace("\"latency\", ", "\"latancy\", "), "unknown workload 'latancy'"),
            (SUITE.replace("[\"latency\", \"throughput\"]", "[]"), "no workloads"),
            (SUITE.replace("[\"smt|same-llc\", \"cpus=1,0\"]", "[]"), "no placements"),
            (SUITE.replace("smt|", "smt|client|"), "unknown placement 'client'"),
            (SUITE.replace("1..4", "4..1"), "runs downwards"),
            (no_block.to_owned(), "no block"),
        ] {
            let invalid = Suite::parse(&text, CARDS).unwrap_err();
            assert!(invalid.problem.contains(says), "{says}: {invalid}");
            assert!(invalid.problem.starts_with("the suite is not valid at line "), "{invalid}");
            assert!(!invalid.remedy.is_empty());
        }
    }
}
