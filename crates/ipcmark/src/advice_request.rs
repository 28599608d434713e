//! What is asked of `advise`: what was typed or the scenario says, as needs, checked, with their defaults.
//!
//! It reads the scenario, and asks nothing else of this host.

use crate::cli::{AdviseArguments, AnswerOptions};
use crate::exit::Error;
use crate::scenario_file;
use mechanisms::registry::CARDS;
use model::card::Card;
use model::need::{Need, Pattern, Requirement};
use model::scenario::{Begin, Flow, HeldBack, Process};
use model::{CpuPair, Domain, Invalid, Pace, Placement, Placements, Size, Spec};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the processes run if nobody says it: as far apart as two CPUs are at the least.
const TWO_CPUS: &str = "same-llc|cross-llc|cross-node|smt|unpinned";

/// What `ipcmark advise` is to do.
#[derive(Debug)]
pub struct AdviceRequest {
    /// The needs, each answered by itself.
    pub needs: Vec<PlacedNeed>,
    /// The names of the mechanisms to choose among; all if there are none.
    pub among: Vec<String>,
    /// The time for each need.
    pub time: Duration,
    /// How long a trial may go without a report.
    pub timeout: Duration,
    /// How the answers are printed and kept.
    pub answer: AnswerOptions,
    /// The picture to make.
    pub svg: Option<PathBuf>,
}

/// A need, and where the processes run.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedNeed {
    /// The flow of the scenario that it is of.
    pub flow: Option<String>,
    /// The need.
    pub need: Need,
    /// Where its processes run: the first that this host has.
    pub placements: Placements,
    /// Whether that flow, as it was recorded, waits for acknowledgements.
    pub held_back: Option<HeldBack>,
}

impl AdviceRequest {
    /// What `arguments` ask for.
    pub fn new(arguments: AdviseArguments) -> Result<Self, Error> {
        let (needs, among) = match (arguments.pattern, arguments.what.as_slice()) {
            (None, [scenario, mechanisms @ ..]) => {
                (of_scenario(Path::new(scenario), &arguments)?, mechanisms.to_vec())
            }
            (None, []) => {
                return Err(Invalid::new(
                    "neither a scenario nor a need is named",
                    "name a scenario file, or give --pattern request-reply, stream or signal",
                )
                .into());
            }
            (Some(pattern), mechanisms) => {
                let (need, placements) = (typed(pattern, &arguments)?, placements(&arguments)?);
                (vec![PlacedNeed { flow: None, need, placements, held_back: None }], mechanisms.to_vec())
            }
        };
        needs.iter().try_for_each(|placed| placed.need.check())?;
        if needs.len() > 1 && arguments.svg.is_some() {
            return Err(Invalid::new(
                "a picture shows one need, and the scenario has several flows",
                "take --html, whose page has a picture for each",
            )
            .into());
        }
        let AdviseArguments { time, timeout, answer, svg, .. } = arguments;
        for name in &among {
            let offered = || CARDS.iter().filter(|card| model::need::is_offered(card)).map(|card| card.name);
            if !offered().any(|known| known == name) {
                return Err(Invalid::unknown_mechanism("mechanism", name, offered()).into());
            }
        }
        Ok(Self { needs, among, time, timeout, answer, svg })
    }
}

fn placements(arguments: &AdviseArguments) -> Result<Placements, Invalid> {
    arguments.placement.clone().map_or_else(|| TWO_CPUS.parse(), Ok)
}

/// The need that was typed.
fn typed(pattern: Pattern, arguments: &AdviseArguments) -> Result<Need, Invalid> {
    let size = match (pattern, arguments.size) {
        (Pattern::Signal, None) => Size(1),
        (Pattern::Signal, Some(_)) => {
            return Err(Invalid::new(
                "a signal carries nothing, so that it has no size",
                "leave out --size, or take another pattern",
            ));
        }
        (_, Some(size)) => size,
        (_, None) => {
            return Err(Invalid::new(
                format!("the pattern {pattern} needs the size of its messages"),
                "give it as --size 4K",
            ));
        }
    };
    let rate = match arguments.rate.as_deref().map(Pace::rate).transpose()? {
        Some(Pace::Rate(rate)) => Some(rate),
        _ => None,
    };
    Ok(Need {
        rate,
        requirements: arguments.needs.clone(),
        objective: arguments.optimise.unwrap_or(pattern.objective()),
        ..Need::new(pattern, size)
    })
}

/// A need for each flow of the scenario at `path`, with what was typed in addition.
fn of_scenario(path: &Path, arguments: &AdviseArguments) -> Result<Vec<PlacedNeed>, Error> {
    let scenario = scenario_file::read(path)?;
    let placed = |flow: &Flow| {
        let ends = [&scenario.processes[flow.from], &scenario.processes[flow.to]];
        Ok(PlacedNeed {
            flow: Some(flow.name.clone()),
            need: need_of(flow, arguments),
            placements: match &arguments.placement {
                Some(typed) => typed.clone(),
                None => fixed(ends).map_or_else(|| TWO_CPUS.parse(), Ok)?,
            },
            held_back: flow.recorded.as_ref().and_then(|recorded| recorded.held_back),
        })
    };
    scenario.flows.iter().map(placed).collect()
}

/// What `flow` needs: its middle size, its rate, and that nothing gets lost or overtaken. Descriptors where it passes some.
fn need_of(flow: &Flow, arguments: &AdviseArguments) -> Need {
    let pattern = if flow.is_stream() { Pattern::Stream } else { Pattern::RequestReply };
    let mut requirements = vec![Requirement::Order, Requirement::Reliable];
    requirements.extend((flow.fds > 0).then_some(Requirement::Descriptors));
    requirements.extend(&arguments.needs);
    requirements.sort_unstable();
    requirements.dedup();
    Need {
        rate: match flow.begin {
            Begin::Open(rate) => Some(rate),
            Begin::Closed { .. } | Begin::After { .. } => None,
        },
        requirements,
        objective: arguments.optimise.unwrap_or(pattern.objective()),
        ..Need::new(pattern, flow.size.at(0.5))
    }
}

/// The CPUs of two processes that may each run on one alone.
fn fixed(ends: [&Process; 2]) -> Option<Placements> {
    match ends.map(|process| process.cpus.as_slice()) {
        [[client], [server]] => {
            Some(Placements(vec![Placement::Cpus(CpuPair { client: *client, server: *server })]))
        }
        _ => None,
    }
}

/// The mechanisms that may be offered for `need`, with every parameter at its default, but that those which may have a name have one
/// where the need asks for names: how many messages are queued may depend on it.
pub fn specs(need: &Need, among: &[String]) -> (Vec<Spec>, Vec<model::need::Exclusion>) {
    let (met, excluded) = model::need::candidates(need, CARDS);
    let is_meant = |name: &str| among.is_empty() || among.iter().any(|meant| meant == name);
    let wants_names = need.requirements.contains(&Requirement::Named);
    let spec = |card: &Card| match name_of(card).filter(|_| wants_names) {
        Some(name) => {
            Spec::parse(&format!("{}:{name}", card.name), CARDS).unwrap_or_else(|_| Spec::plain(card.name))
        }
        None => Spec::plain(card.name),
    };
    let met = met.into_iter().filter(|card| is_meant(card.name)).map(spec);
    (met.collect(), excluded.into_iter().filter(|exclusion| is_meant(&exclusion.mechanism)).collect())
}

/// The setting by which the mechanism of `card` has a name, if it may have none.
fn name_of(card: &Card) -> Option<String> {
    let param = card.params.iter().find(|param| param.name == "name")?;
    let Domain::Choice(words) = param.domain else { return None };
    let named = words.iter().find(|word| param.default != Some(**word))?;
    Some(format!("{}={named}", param.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use model::need::{Objective, candidates, is_offered};
    use proptest::prelude::*;

    fn request(words: &str) -> Result<AdviceRequest, Invalid> {
        let words = ["ipcmark", "advise"].into_iter().chain(words.split_whitespace());
        match Cli::parse_from(words).command {
            Some(Command::Advise(arguments)) => AdviceRequest::new(arguments).map_err(Error::invalid),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_need_is_what_was_typed() {
        let words =
            "--size 4K --pattern request-reply --rate 20k --needs descriptors,boundaries --optimise cpu";
        let request = request(words).unwrap();
        let [placed] = request.needs.as_slice() else { panic!("{request:?}") };
        assert_eq!((placed.need.size, placed.need.objective), (Size(4096), Objective::Cpu));
        assert_eq!(placed.need.requirements, [Requirement::Descriptors, Requirement::Boundaries]);
        assert_eq!(placed.need.pace().to_string(), "rate=20k");
        assert_eq!(request.time, Duration::from_secs(20));
    }

    #[test]
    fn what_may_have_a_name_is_measured_with_one_where_the_need_asks_for_names() {
        let specs_of = |needs: &str| {
            let request = request(&format!("--size 64 --pattern stream {needs}")).unwrap();
            let (met, _) = specs(&request.needs[0].need, &[]);
            met.iter().map(ToString::to_string).filter(|spec| spec.starts_with("unix-")).collect::<Vec<_>>()
        };
        let named = ["unix-stream:name=path", "unix-seqpacket:name=path", "unix-dgram:name=abstract"];
        let found = specs_of("--needs named");
        assert!(named.iter().all(|spec| found.iter().any(|of| of == spec)), "{found:?}");
        assert!(specs_of("").iter().all(|spec| !spec.contains("name=")), "{:?}", specs_of(""));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_a_remedy() {
        for (words, says) in [
            ("", "neither a scenario nor a need"),
            ("--pattern stream", "needs the size"),
            ("--pattern signal --size 4", "has no size"),
            ("--pattern signal --optimise throughput", "no throughput"),
            ("--pattern stream --size 1 --optimise latency", "no latency"),
            ("--pattern stream --size 0", "0 bytes"),
            ("--pattern stream --size 1 --rate fast", "not a rate"),
            ("--pattern stream --size 1 pip", "unknown mechanism"),
            ("--pattern stream --size 1 pipe syscall", "unknown mechanism"),
            ("--pattern stream --size 1 --needs connected,connectionless", "both"),
            ("/nonexistent/scenario.toml", "nonexistent"),
        ] {
            let invalid = request(words).unwrap_err();
            assert!(invalid.problem.contains(says), "{words}: {invalid}");
            assert!(!invalid.remedy.is_empty());
        }
    }

    #[test]
    fn each_flow_of_a_scenario_is_a_need() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("scenario.toml");
        let text = r#"
name = "two"
[[process]]
name = "a"
cpus = [0]
[[process]]
name = "b"
cpus = [1]
[[flow]]
name = "ask"
from = "a"
to = "b"
mechanism = "unix-stream"
size = "64:90%, 4K:10%"
reply = "128"
fds = 2
rate = "1k"
[[flow]]
name = "tell"
from = "b"
to = "a"
mechanism = "pipe"
size = "8K"
[[flow]]
name = "parts"
from = "a"
to = "b"
mechanism = "tcp:nodelay=off"
size = "104"
reply = "4"
[flow.recorded]
messages = 100
per_s = 25
client_waited = 0.9
server_waited = 0.9
partial_reads = 0
held_back = { share = 0.98, wait_ns = 40000000 }
"#;
        std::fs::write(&path, text).unwrap();
        let request = request(&path.display().to_string()).unwrap();
        let [ask, tell, parts] = request.needs.as_slice() else { panic!("{request:?}") };
        assert_eq!((ask.flow.as_deref(), ask.need.pattern), (Some("ask"), Pattern::RequestReply));
        assert_eq!((ask.need.size, ask.need.rate.unwrap().per_s), (Size(64), 1000));
        assert!(ask.need.requirements.contains(&Requirement::Descriptors));
        assert_eq!(ask.placements.to_string(), "cpus=0,1");
        assert_eq!((tell.need.pattern, tell.need.size), (Pattern::Stream, Size(8192)));
        assert!(!tell.need.requirements.contains(&Requirement::Descriptors));
        assert_eq!(parts.held_back, Some(HeldBack { share: 0.98, wait_ns: 40_000_000 }));
        assert_eq!((ask.held_back, tell.held_back), (None, None));
    }

    proptest! {
        #[test]
        fn every_mechanism_is_offered_or_excluded_and_none_that_lacks_something(
            wanted in proptest::sample::subsequence(Requirement::ALL.to_vec(), 0..=4),
            pattern in proptest::sample::select(Pattern::ALL.to_vec()),
            size in 1..(32_u64 << 20),
        ) {
            let need = Need { requirements: wanted.clone(), ..Need::new(pattern, Size(size)) };
            let (met, excluded) = candidates(&need, CARDS);
            prop_assert_eq!(met.len() + excluded.len(), CARDS.iter().filter(|card| is_offered(card)).count());
            for card in met {
                prop_assert!(wanted.iter().all(|requirement| requirement.is_met(card, Size(size))));
            }
        }
    }
}
