//! Studies evaluated: their tables, figures and conclusions with the numbers of a run.

mod evaluate;
pub mod evaluated;
mod metric_value;
#[cfg(test)]
mod tests;

pub use self::evaluate::{evaluate, evaluate_results};
