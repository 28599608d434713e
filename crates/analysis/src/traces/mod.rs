//! What probes saw, reduced: events to system calls, schedules, iterations and profiles; stacks to parts of the kernel.
//!
//! It opens no probe and draws nothing.

pub mod calls;
pub mod profile;
pub mod schedule;
pub mod subsystem;
pub mod timeline;
