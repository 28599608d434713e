//! From what was measured and observed to what it means: summaries, intervals, comparisons, studies evaluated, traces
//! reduced, explanations.
//!
//! Pure: it reads no clock, starts nothing and opens no file. How a result is laid out is `report`'s affair.
#![forbid(unsafe_code)]

pub mod advise;
pub mod alike;
pub mod allocation;
pub mod analysed;
pub mod compare;
pub mod explain;
pub mod host_speed;
pub mod interval;
pub mod missed_settings;
pub mod path;
pub mod predict;
mod rate_line;
pub mod recording;
pub mod replay;
#[cfg(test)]
mod results_tests;
pub mod run;
#[cfg(test)]
mod simulated;
pub mod stats;
pub mod stopping;
pub mod study;
pub mod summary;
pub mod traces;
pub mod tried;
