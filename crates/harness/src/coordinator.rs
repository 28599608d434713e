//! The coordinator: it starts trials, says which comes next, and takes their samples.

pub mod address_layout;
pub mod check;
mod common_window;
pub mod compare;
mod deadlines;
pub mod dose;
pub mod driver;
pub mod endpoint_process;
mod endpoint_threads;
#[cfg(test)]
mod fake_trials;
pub mod heartbeat;
mod led;
pub mod leftovers;
pub mod other_build;
mod own_child;
pub mod plain_times;
pub mod profile;
pub mod push;
mod reexecution;
pub mod remote;
pub mod replay;
pub mod run;
pub mod run_directory;
#[cfg(test)]
mod run_tests;
pub mod schedule;
#[cfg(test)]
mod schedule_tests;
pub mod slices;
mod speed_beside;
pub mod trial_error;
pub mod trials;
pub mod via;
