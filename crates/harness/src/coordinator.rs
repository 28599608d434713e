//! The coordinator: it starts trials, says which comes next, and takes their samples.

mod common_window;
pub mod compare;
pub mod dose;
mod endpoint_threads;
#[cfg(test)]
mod fake_trials;
pub mod other_build;
pub mod plain_times;
pub mod profile;
mod reexecution;
pub mod run;
pub mod run_directory;
#[cfg(test)]
mod run_tests;
pub mod schedule;
#[cfg(test)]
mod schedule_tests;
pub mod slices;
pub mod trial_error;
pub mod trials;
