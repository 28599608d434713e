//! What probes observed, reduced: events to system calls, schedules, iterations and profiles; stacks to subsystems.
//!
//! It opens no probe and draws nothing.

pub mod calls;
pub mod profile;
pub mod schedule;
pub mod subsystem;
pub mod timeline;
