//! What exchanging the mechanisms of a recorded scenario can give: what messages cost by both, as measured, times the messages that
//! were recorded, between the bounds of operational analysis.
//!
//! Nothing is measured or run here. `ipcmark try` measures the same under the program itself.

mod costs;
mod needed;
mod prediction;
#[cfg(test)]
mod tests;

pub use costs::{EndPlace, MeasuredCosts, MessageCost};
pub use needed::{NeededCosts, needed};
pub use prediction::{FlowPrediction, Limit, LimitOn, Prediction, ProcessPrediction, predict};
