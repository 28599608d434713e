//! Studies over results made by hand.

mod figures;
mod fixture;
mod numbers;
mod overlay;
mod probes;
mod refusals;
mod verdicts;
