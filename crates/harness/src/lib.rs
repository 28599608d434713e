//! The harness: where endpoints run, how they are launched, what they do, and the only clock.
#![forbid(unsafe_code)]

mod alone;
mod control;
pub mod doctor;
pub mod endpoint;
pub mod hidden;
pub mod host;
mod hub;
pub mod in_turn;
pub mod looking;
pub mod measure;
mod server;
pub mod trial;

mod client;
mod pacer;
mod part;
pub mod run;
pub mod run_directory;
mod together;
pub mod topology;
mod workload;
