//! Which mechanisms and operations are asked for, in which workloads, sizes, placements, paces and numbers of peers: as a
//! suite. Pure: what of it this host has is for `planning` to say.

use mechanisms::registry::{self, CARDS};
use model::block::Block;
use model::card::{Card, CardKind};
use model::suite::Suite;
use model::{Invalid, Pace, Peers, Percent, Placements, Size, Spec, Workload};
use std::time::Duration;

/// The precision of cases given by hand.
const PRECISION: Percent = Percent(0.02);
/// The time of a run of cases given by hand.
const TIME: Duration = Duration::from_secs(60);
/// The name that stands for every mechanism and operation.
pub const ALL: &str = "all";

/// What is asked for beside mechanisms. What is not asked for stays as the suite has it.
#[derive(Debug, Default, Clone)]
pub struct Axes {
    /// To measure these workloads alone.
    pub workloads: Vec<Workload>,
    /// To measure at these sizes.
    pub sizes: Option<Vec<Size>>,
    /// To measure in these placements.
    pub placements: Vec<Placements>,
    /// To begin iterations at these paces.
    pub paces: Option<Vec<Pace>>,
    /// To measure with these numbers of peers.
    pub peers: Vec<Peers>,
}

/// A suite of the mechanisms and operations in `texts`, with `axes`. Without a workload each is measured in its first, and of
/// `all` each in all of its workloads.
pub fn by_hand(texts: &[String], axes: &Axes) -> Result<Suite, Invalid> {
    let mut blocks = Vec::new();
    for text in texts {
        if text == ALL {
            blocks.extend(all(&axes.workloads)?);
        } else {
            let spec = Spec::parse(text, &registry::cards())?;
            let workloads = registry::card(&spec.name).map_or(&[][..], |card| card.workloads);
            blocks.push(block(spec, &axes.workloads, &workloads[..workloads.len().min(1)])?);
        }
    }
    let suite = Suite {
        name: "by hand".to_owned(),
        summary: String::new(),
        precision: PRECISION.into(),
        time: TIME,
        quick: None,
        observe: None,
        slice: None,
        rounds: None,
        total: None,
        endpoints: None,
        study: None,
        blocks,
    };
    restrict(suite, axes)
}

/// The placements of a list whose commas also stand within `cpus=CLIENT,SERVER`.
pub fn placements(pieces: &[String]) -> Result<Vec<Placements>, Invalid> {
    let mut texts: Vec<String> = Vec::new();
    for piece in pieces {
        match texts.last_mut().filter(|text| text.starts_with("cpus=") && !text.contains(',')) {
            Some(text) => *text = format!("{text},{piece}"),
            None => texts.push(piece.clone()),
        }
    }
    texts.iter().map(|text| text.parse()).collect()
}

/// Every mechanism and operation that has one of `workloads`, or any if there are none.
fn all(workloads: &[Workload]) -> Result<Vec<Block>, Invalid> {
    let is_asked_for = |card: &&Card| workloads.is_empty() || workloads.iter().any(|w| card.takes(*w));
    let cards = CARDS.iter().filter(|card| card.kind != CardKind::Floor).filter(is_asked_for);
    cards.map(|card| block(Spec::plain(card.name), workloads, card.workloads)).collect()
}

/// `spec` in the `asked` workloads, or in those that it has `otherwise`: 1 byte, on one core and on two.
fn block(spec: Spec, asked: &[Workload], otherwise: &[Workload]) -> Result<Block, Invalid> {
    Ok(Block {
        specs: vec![spec],
        workloads: if asked.is_empty() { otherwise.to_vec() } else { asked.to_vec() },
        sizes: vec![Size(1)],
        placements: vec!["same-core".parse()?, "same-llc|cross-llc|cross-node|smt|unpinned".parse()?],
        paces: vec![Pace::BackToBack],
        peers: vec![Peers::Pair],
    })
}

/// `suite` with those of its workloads that are asked for, and with its other axes replaced where one is asked for.
pub fn restrict(mut suite: Suite, axes: &Axes) -> Result<Suite, Invalid> {
    let Axes { workloads, sizes, placements, paces, peers } = axes;
    for block in &mut suite.blocks {
        if !workloads.is_empty() {
            let of_block = std::mem::take(&mut block.workloads);
            let kept = workloads.iter().filter(|asked| of_block.iter().any(|had| had.is_like(**asked)));
            block.workloads = kept.copied().collect();
        }
        if let Some(sizes) = sizes {
            block.sizes.clone_from(sizes);
        }
        if !placements.is_empty() {
            block.placements.clone_from(placements);
        }
        if let Some(paces) = paces {
            block.paces.clone_from(paces);
        }
        if !peers.is_empty() {
            block.peers.clone_from(peers);
        }
    }
    if suite.blocks.iter().all(|block| block.workloads.is_empty()) {
        let asked: Vec<&str> = workloads.iter().map(|workload| workload.name()).collect();
        return Err(Invalid::new(
            format!("the suite '{}' has no workload {}", suite.name, asked.join(" or ")),
            "name mechanisms instead, or leave -w out",
        ));
    }
    Ok(suite)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_mechanism_by_hand_is_measured_in_its_first_workload_with_one_byte_on_one_core_and_on_two() {
        let suite = by_hand(&texts(&["pipe", "syscall"]), &Axes::default()).unwrap();
        let [pipe, syscall] = suite.blocks.as_slice() else { panic!("{suite:?}") };
        assert_eq!((&pipe.specs, &pipe.workloads), (&vec![Spec::plain("pipe")], &vec![Workload::Latency]));
        assert_eq!(syscall.workloads, [Workload::Cost]);
        assert_eq!((&pipe.sizes, pipe.placements.len()), (&vec![Size(1)], 2));
        assert_eq!((&pipe.paces, &pipe.peers), (&vec![Pace::BackToBack], &vec![Peers::Pair]));
        assert_eq!((suite.precision, suite.time), (PRECISION.into(), TIME));
    }

    #[test]
    fn all_is_every_mechanism_and_operation_that_has_the_workload_and_no_floor() {
        let names = |axes: &Axes| -> Vec<String> {
            let suite = by_hand(&texts(&["all"]), axes).unwrap();
            suite.blocks.iter().map(|block| block.specs[0].name.clone()).collect()
        };
        let everything = names(&Axes::default());
        let of_kind = |kind| CARDS.iter().filter(move |card| card.kind == kind);
        assert!(of_kind(CardKind::Floor).all(|card| !everything.iter().any(|name| name == card.name)));
        assert!(of_kind(CardKind::Mechanism).all(|card| everything.iter().any(|name| name == card.name)));
        let costs = names(&Axes { workloads: vec![Workload::Cost], ..Axes::default() });
        assert!(costs.contains(&"syscall".to_owned()) && !costs.contains(&"pipe".to_owned()), "{costs:?}");
    }

    #[test]
    fn axes_replace_those_of_every_block_and_workloads_are_kept_or_left_out() {
        let axes = Axes {
            workloads: vec![Workload::Throughput],
            sizes: Some(vec![Size(64), Size(4096)]),
            placements: vec!["unpinned".parse().unwrap()],
            paces: Some(vec![Pace::think_time("1us").unwrap()]),
            peers: vec!["pairs=2".parse().unwrap()],
        };
        let suite = restrict(by_hand(&texts(&["all"]), &Axes::default()).unwrap(), &axes).unwrap();
        for block in &suite.blocks {
            assert!(block.workloads.is_empty() || block.workloads == axes.workloads, "{block:?}");
            assert_eq!((Some(&block.sizes), &block.placements), (axes.sizes.as_ref(), &axes.placements));
            assert_eq!((Some(&block.paces), &block.peers), (axes.paces.as_ref(), &axes.peers));
        }
        assert_eq!(restrict(suite.clone(), &Axes::default()).unwrap(), suite);
    }

    #[test]
    fn commas_part_placements_but_not_the_cpus_of_one() {
        let placed = |pieces: &[&str]| placements(&texts(pieces)).map(|all| all.len());
        assert_eq!(placed(&["cpus=0", "1", "same-core", "cpus=1", "0"]).unwrap(), 3);
        assert_eq!(placed(&["same-core", "smt|same-llc"]).unwrap(), 2);
        placed(&["cpus=0"]).unwrap_err();
        placed(&["same-core", "1"]).unwrap_err();
        placed(&[""]).unwrap_err();
    }

    #[test]
    fn a_workload_that_no_block_has_is_refused() {
        let suite = by_hand(&texts(&["pipe"]), &Axes::default()).unwrap();
        let axes = Axes { workloads: vec![Workload::Cost, Workload::Connect], ..Axes::default() };
        let invalid = restrict(suite, &axes).unwrap_err();
        assert_eq!(invalid.problem, "the suite 'by hand' has no workload cost or connect");
    }

    #[test]
    fn an_unknown_mechanism_or_parameter_is_refused() {
        for text in ["pip", "pipe:capacty=1", "", "all:wait=spin"] {
            by_hand(&texts(&[text]), &Axes::default()).unwrap_err();
        }
    }
}
