//! A block of a suite: cases as a product of specs, workloads, sizes, placements, paces and peers.

use crate::card::CardKind;
use crate::pace::Pace;
use crate::peers::Peers;
use crate::placement::{Placement, Placements};
use crate::spec::Spec;
use crate::units::Size;
use crate::workload::Workload;

/// A product of specs, workloads, sizes, placements, paces and peers.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The entries of the registry, with parameters.
    pub specs: Vec<Spec>,
    /// What the endpoints do.
    pub workloads: Vec<Workload>,
    /// The message sizes; specs without a size ignore them.
    pub sizes: Vec<Size>,
    /// Where the endpoints run.
    pub placements: Vec<Placements>,
    /// When the client begins its iterations, for the workloads in which each iteration is answered; the others go back to back.
    pub paces: Vec<Pace>,
    /// How many endpoints communicate at once, for the workloads in which several can.
    pub peers: Vec<Peers>,
}

impl Block {
    /// The placements that differ for a card of `kind`: an operation runs on one CPU.
    pub(crate) fn placements_of(&self, kind: CardKind) -> Vec<Placements> {
        match kind {
            CardKind::Mechanism | CardKind::Floor => self.placements.clone(),
            CardKind::Operation => vec![Placements(vec![Placement::SameCore])],
        }
    }

    /// How many cases it asks for, at most.
    pub(crate) fn most_cases(&self) -> usize {
        // A list of sizes that ends with each spec's limit is as long as doublings can be.
        let sizes = if self.sizes.contains(&Size::LIMIT) { 31 } else { 0 } + self.sizes.len().max(1);
        let axes = [self.workloads.len(), sizes, self.placements.len(), self.paces.len(), self.peers.len()];
        axes.into_iter().fold(self.specs.len(), usize::saturating_mul)
    }
}
