//! `cargo xtask bench choose`: predictions beside what really happens, of scenarios at random, of PostgreSQL, and of a pipeline.
//!
//! It uses ipcmark as people do, by its command line. A program that is missing is said, with where it is to be had.

mod costs;
mod pipeline;
mod postgresql;
mod random;

use super::ipcmark::Ipcmark;
use super::setup::numbers;

/// Runs all three parts, or the one that is named first. Arguments: `random`, `postgresql` or `pipeline`; how many scenarios (50); the
/// seconds that measuring the costs takes (120).
pub fn run(arguments: &[&str]) -> Result<(), String> {
    let (part, rest) = match arguments {
        [part @ ("random" | "postgresql" | "pipeline"), rest @ ..] => (Some(*part), rest),
        rest => (None, rest),
    };
    let [scenarios, seconds] = numbers(rest, [50, 120])?;
    let ipcmark = Ipcmark::build("bench-choose")?;
    let wants = |name: &str| part.is_none_or(|part| part == name);
    if wants("random") {
        random::run(&ipcmark, scenarios, seconds)?;
    }
    if wants("postgresql") {
        postgresql::run(&ipcmark)?;
    }
    if wants("pipeline") {
        pipeline::run(&ipcmark)?;
    }
    Ok(())
}
