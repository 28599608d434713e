//! Studies evaluated: their tables, figures and conclusions with the numbers of a run.
//!
//! From a name to trials (`select`), from trials to a number with its interval (`estimate`), from numbers to tables, figures
//! and verdicts (`tables`, `figures`, `stacks`, `judge`).

mod estimate;
mod evaluate;
pub mod evaluated;
mod figures;
mod formula_value;
mod host;
mod judge;
mod longer;
mod metric_value;
mod missing;
mod overlay;
mod select;
mod stacks;
mod tables;
#[cfg(test)]
mod tests;
mod words;

pub use self::evaluate::evaluate;
pub use self::overlay::overlaid;
