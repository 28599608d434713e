//! The tests of the binary but for those of dying processes: one program, for each program costs a link of all crates.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

mod advise;
mod bad_networks;
mod cli;
mod common;
mod confined;
mod continuous;
mod cpu_traces;
mod drivers;
mod ended_drivers;
mod explain;
mod extremes;
mod fan_in;
mod hints;
mod injected_causes;
mod layers;
mod limits;
mod network;
mod predict;
mod profiles;
mod pushed;
mod record;
mod remote;
mod replay;
mod restricted;
mod results_files;
mod same_trials;
mod soundness;
mod terminal;
mod tried;
mod tutorial;
mod usual;
