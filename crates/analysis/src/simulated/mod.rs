//! Simulated hosts and runs on them, for tests: of each, the truth is known.

mod coverage;
mod host;
mod random;
mod run;

pub(crate) use self::random::Random;
