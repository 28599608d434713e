//! From the names that a suite gives to cases to the cases that its blocks measure.

use super::document::Study;
use super::selection::Selection;
use super::test_sizes::TestSizes;
use crate::block::Block;
use crate::card::{Card, CardKind};
use crate::diagnostic::Diagnostic;
use crate::invalid::{Invalid, printable};
use crate::pace::Pace;
use crate::peers::Peers;
use crate::placement::Placements;
use crate::spec::Spec;
use crate::units::{Size, parse_sizes};
use crate::workload::Workload;

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
    /// The cases of `blocks` that `text` names: the spec, then as much of workload, placement, pace and peers as tells them
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
                    "name a mechanism or operation of a block with its parameters, and a workload, placement, pace and peers of that block",
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
        // The limit of a spec on this host is not known here: only sizes that are named can be drawn.
        let named = block.sizes.iter().filter(|size| **size != Size::LIMIT);
        let sizes = if card.sized && workload.is_sized() { named.copied().collect() } else { Vec::new() };
        block.placements_of(card.kind).into_iter().flat_map(move |placements| {
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

/// What the words after the spec ask for.
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
