//! From what a recorder has of processes to a scenario: threads become processes, calls become messages, messages become requests with their answers, or
//! streams, and those become flows.
//!
//! A call has a size and a time, and no content. What belongs together is concluded from order and direction alone.

mod analysed;
mod channels;
mod cost;
mod flows;
mod held_back;
mod messages;
mod scenario;
mod split;
mod summarised;
#[cfg(test)]
mod tests;
mod threads;
mod unseen;

pub use analysed::{AnalysedScenario, FlowSums};
pub use cost::slowdown;
pub use scenario::scenario_of;
