//! The harness: starts endpoints, has them measure, decides what is measured next, and reads what bears on it from the host.
//!
//! It computes no statistic and draws no conclusion: whether a case is known well enough is a rule that its caller hands in.
#![forbid(unsafe_code)]

pub mod clock;
pub mod coordinator;
pub mod endpoint;
pub mod hidden;
pub mod host;
pub mod programs;
pub mod protocol;
