//! What exchanging the mechanisms of a scenario gives, computed: costs fitted to measured cases, a simulation of the scenario with
//! the mechanisms that it has and with the others, and the ratio of both.
//!
//! Nothing is measured or replayed here. docs/lab/choose.md says what is assumed, and why it is simulated.

mod calibrate;
#[cfg(test)]
mod calibrate_tests;
mod case_costs;
#[cfg(test)]
mod fixture;
mod flow_costs;
mod held;
mod measured;
mod needed;
mod placement;
mod prediction;
mod simulation;
mod size_line;
mod spells;
#[cfg(test)]
mod tests;

pub use case_costs::{CaseSlice, CostCase, EndPlace, MeasuredCosts};
pub use flow_costs::FlowCosts;
pub use held::{Held, HeldChange, HeldFlow, held};
pub use measured::Measured;
pub use needed::{NeededCosts, needed};
pub use prediction::{Basis, Change, FlowPrediction, PredictOptions, Prediction, ProcessPrediction, predict};
pub use size_line::{SizeFit, SizeLine, SizeSegment};
