//! From the names that a suite gives to cases to the cases that its blocks measure.

use super::document::{Candidate, OtherCell, Study, StudyCell, StudyNeed};
use super::selection::Selection;
use super::test_sizes::TestSizes;
use crate::block::Block;
use crate::card::{Card, CardKind};
use crate::diagnostic::Diagnostic;
use crate::invalid::{Invalid, printable};
use crate::need::{Need, Pattern, candidates as candidates_of};
use crate::pace::Pace;
use crate::peers::Peers;
use crate::placement::Placements;
use crate::spec::Spec;
use crate::units::{Size, parse_sizes};
use crate::workload::Workload;
use std::collections::BTreeMap;

impl Study<String> {
    /// The study with each case as the suite's `blocks` measure it.
    pub(crate) fn resolve(self, blocks: &[Block], cards: &[Card]) -> Result<Study, Diagnostic> {
        let selection = |(name, text): (String, String)| match Selection::find(&text, blocks, cards) {
            Ok(selection) => Ok((name, selection)),
            Err(invalid) => Err(Diagnostic::from(invalid).under(name).under("cases")),
        };
        let mut cases: BTreeMap<String, Selection> =
            self.cases.into_iter().map(selection).collect::<Result<_, _>>()?;
        let Study { title, source, mut tables, figures, stacks, conclusions, .. } = self;
        for (at_table, table) in tables.iter_mut().enumerate() {
            for (at_row, row) in table.rows.iter_mut().enumerate() {
                for (at_cell, cell) in row.cells.iter_mut().enumerate() {
                    let StudyCell::Other(OtherCell::Best(need)) = cell else { continue };
                    let chosen = best_of(need, &mut cases, blocks, cards).map_err(|invalid| {
                        let of_cell = Diagnostic::from(invalid).under(at_cell).under("cells");
                        of_cell.under(at_row).under("rows").under(at_table).under("table")
                    })?;
                    *cell = StudyCell::Other(chosen);
                }
            }
        }
        Ok(Study { title, source, cases, tables, figures, stacks, conclusions })
    }
}

/// The candidates for `wanted`: what `blocks` measure of each mechanism whose card meets it. Cases without a name get one.
fn best_of(
    wanted: &StudyNeed,
    cases: &mut BTreeMap<String, Selection>,
    blocks: &[Block],
    cards: &[Card],
) -> Result<OtherCell, Invalid> {
    let size = wanted.size.as_deref().map(str::parse::<Size>).transpose()?;
    if size.is_none() && wanted.pattern != Pattern::Signal {
        return Err(Invalid::new("a need without a size", "give the size of its messages, as size = \"64\""));
    }
    let need = Need {
        requirements: wanted.needs.clone(),
        without: wanted.without.clone(),
        ..Need::new(wanted.pattern, size.unwrap_or(Size(1)))
    };
    need.check()?;
    let workload = need.workload();
    let mut candidates: Vec<Candidate> = Vec::new();
    for card in candidates_of(&need, cards).0 {
        let spec = Spec::plain(card.name);
        let with_spec = blocks.iter().filter(|block| block.specs.contains(&spec));
        let measured = with_spec.flat_map(|block| measured(block, &spec, card)).find(|selection| {
            selection.workload == workload
                && (!card.sized || size.is_some_and(|size| selection.sizes.contains(&size)))
                && selection.pace == Pace::BackToBack
                && selection.peers == Peers::Pair
        });
        let Some(measured) = measured else { continue };
        let sizes = if card.sized { size.into_iter().collect() } else { Vec::new() };
        let selection = Selection { sizes, ..measured };
        let known = cases.iter().find(|(_, known)| **known == selection).map(|(name, _)| name.clone());
        let name = known.unwrap_or_else(|| match size {
            Some(size) if card.sized => format!("{}-{workload}-{size}", card.name),
            _ => format!("{}-{workload}", card.name),
        });
        cases.entry(name.clone()).or_insert(selection);
        let metric = if workload == Workload::Throughput { "rate" } else { "time" };
        candidates.push(Candidate { name: card.name.to_owned(), of: format!("{metric} of {name}").parse()? });
    }
    Ok(match workload {
        _ if candidates.is_empty() => OtherCell::Words("-".to_owned()),
        Workload::Throughput => OtherCell::Most(candidates),
        _ => OtherCell::Least(candidates),
    })
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

#[cfg(test)]
mod tests {
    use crate::card::{Card, CardKind};
    use crate::semantics::Semantics;
    use crate::study::{OtherCell, Study, StudyCell};
    use crate::suite::Suite;
    use crate::testing::cards::card;
    use crate::workload::Workload;

    const BOTH: &[Workload] = &[Workload::Latency, Workload::Throughput];
    const QUEUE: Card = card("queue", CardKind::Mechanism, BOTH, true);
    const CARDS: &[Card] = &[
        Card {
            semantics: Semantics { connected: true, ..Semantics::NONE },
            ..card("pipe", CardKind::Mechanism, BOTH, true)
        },
        QUEUE,
        Card {
            semantics: Semantics { most_bytes: Some(10), ..Semantics::NONE },
            ..card("small", CardKind::Mechanism, BOTH, true)
        },
        card("unmeasured", CardKind::Mechanism, BOTH, true),
    ];

    fn cell(need: &str) -> Result<(StudyCell, Study), String> {
        let text = format!(
            r#"
name = "s"
summary = "s"
precision = "2%"
time = "1s"
[[block]]
mechanisms = ["pipe", "queue", "small"]
workloads = ["latency", "throughput"]
sizes = "8,64"
placements = ["same-core"]
[study]
title = "t"
source = "s"
[study.cases]
known = "pipe latency 64"
[[study.table]]
name = "T"
title = "t"
columns = ["best"]
rows = [{{ name = "r", cells = [{{ best = {need} }}] }}]
"#
        );
        let study =
            Suite::parse(&text, CARDS).map_err(|invalid| invalid.to_string())?.study.ok_or("no study")?;
        Ok((study.tables[0].rows[0].cells[0].clone(), study))
    }

    fn candidates(need: &str) -> Vec<(String, String)> {
        match cell(need).unwrap().0 {
            StudyCell::Other(OtherCell::Least(of) | OtherCell::Most(of)) => {
                of.into_iter().map(|one| (one.name, one.of.to_string())).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_candidates_for_a_need_are_what_is_measured_and_meets_it() {
        let named = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
        };
        assert_eq!(
            candidates(r#"{ pattern = "request-reply", size = "64" }"#),
            named(&[("pipe", "time of known"), ("queue", "time of queue-latency-64")])
        );
        assert_eq!(
            candidates(r#"{ pattern = "stream", size = "8", without = ["connected"] }"#),
            named(&[("queue", "rate of queue-throughput-8"), ("small", "rate of small-throughput-8")])
        );
        let (_, study) = cell(r#"{ pattern = "stream", size = "8" }"#).unwrap();
        assert_eq!(study.cases["small-throughput-8"].to_string(), "small throughput same-core");
    }

    #[test]
    fn a_need_that_nothing_meets_has_no_candidate_and_a_wrong_one_is_refused() {
        let (nothing, _) = cell(r#"{ pattern = "stream", size = "64", needs = ["hosts"] }"#).unwrap();
        assert_eq!(nothing, StudyCell::Other(OtherCell::Words("-".to_owned())));
        for (need, says) in [
            (r#"{ pattern = "stream" }"#, "without a size"),
            (r#"{ pattern = "stream", size = "x" }"#, "'x'"),
            (r#"{ pattern = "chat", size = "8" }"#, "unknown pattern 'chat'"),
            (r#"{ pattern = "stream", size = "8", needs = ["connected", "connectionless"] }"#, "both"),
        ] {
            let said = cell(need).unwrap_err();
            assert!(said.contains(says) && said.contains("at line"), "{said}");
        }
    }
}
