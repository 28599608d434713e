//! Slices that ran on other CPUs than their placement has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Slices that did not run where they should have, because an endpoint was moved away from its CPU. In a run they count for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Elsewhere {
    /// How many.
    pub slices: u32,
    /// The CPUs on which endpoints were found instead, in the order of their numbers.
    pub cpus: BTreeSet<u32>,
}

impl Elsewhere {
    /// Whether there was no such slice.
    pub fn is_nothing(&self) -> bool {
        self.slices == 0
    }

    /// Counts one more, of which an endpoint was on `cpu`.
    pub fn note(&mut self, cpu: u32) {
        self.slices = self.slices.saturating_add(1);
        self.cpus.insert(cpu);
    }

    /// Counts those of `more` too.
    pub fn add(&mut self, more: &Self) {
        self.slices = self.slices.saturating_add(more.slices);
        self.cpus.extend(&more.cpus);
    }
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus: Vec<String> = self.cpus.iter().map(u32::to_string).collect();
        let slices = if self.slices == 1 { "1 slice".to_owned() } else { format!("{} slices", self.slices) };
        write!(f, "{slices} not on the CPUs of the placement, but on CPU {}", cpus.join(", "))
    }
}
