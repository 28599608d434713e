//! `cargo xtask bench choose`: predictions beside what really happens, of scenarios at random, of PostgreSQL, of nginx, and of a
//! pipeline; and what recording PostgreSQL costs.
//!
//! It uses ipcmark as people do, by its command line. A program that is missing is said, with where it is to be had.

mod costs;
mod nginx;
mod pipeline;
mod postgresql;
mod program;
mod random;

use super::ipcmark::Ipcmark;
use super::setup::numbers;

/// Runs all parts, or the one that is named first. Arguments: `random`, `recording`, `postgresql`, `nginx` or `pipeline`; how many
/// scenarios (50); the seconds that measuring their costs takes (120); the first seed (0).
pub fn run(arguments: &[&str]) -> Result<(), String> {
    let (part, rest) = match arguments {
        [part @ ("random" | "recording" | "postgresql" | "nginx" | "pipeline"), rest @ ..] => {
            (Some(*part), rest)
        }
        rest => (None, rest),
    };
    let [scenarios, seconds, first] = numbers(rest, [50, 120, 0])?;
    let ipcmark = Ipcmark::build("bench-choose")?;
    let wants = |name: &str| part.is_none_or(|part| part == name);
    if wants("random") {
        random::run(&ipcmark, scenarios, seconds, first)?;
    }
    if wants("recording") {
        postgresql::slowed_by_recording(&ipcmark)?;
    }
    if matches!(part, Some("random" | "recording")) {
        return Ok(());
    }
    println!("\n| program | rate predicted | measured (95% interval) | |\n| --- | --- | --- | --- |");
    if wants("postgresql") {
        postgresql::run(&ipcmark)?;
    }
    if wants("nginx") {
        nginx::run(&ipcmark)?;
    }
    if wants("pipeline") {
        pipeline::run(&ipcmark)?;
    }
    Ok(())
}
