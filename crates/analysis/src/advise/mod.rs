//! Which mechanism to take for a need: those that meet it, ranked by what was measured of them here; where the answer
//! changes with the size; what it costs to take another; and which settings matter.
//!
//! Which cards meet a need is in `model::need`. Nothing is measured here, and nothing is laid out.

mod measured;
mod ranking;
mod recommend;
mod sizes;

pub use measured::{Measured, measured};
pub use ranking::{CLOSE, are_told_apart, best_of, is_hopeless, is_surely_worse, over};
pub use recommend::{CostOfAnother, Knob, Ranked, Recommendation, Standing, recommend};
pub use sizes::{SizeChange, size_changes};

#[cfg(test)]
mod tests;
