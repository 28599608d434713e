//! Probes: instruments that observe an endpoint while it does its iterations, one a file.
//!
//! An endpoint observes itself: it opens what the kernel offers for its own thread, switches it on after the lead-in and off
//! before the lead-out, and reports afterwards what was seen. [`cpu_trace`] is the exception: it records the CPUs of both
//! endpoints, from outside of them, and they do the same iterations with it and without. [`recorder`] is for programs of
//! others. Nothing here runs in a timed trial, and
//! nothing here says what an observation means.
#![forbid(unsafe_code)]

mod accounted;
mod attached;
mod btf;
mod clocks;
mod counters;
mod cpu_bpf;
mod cpu_programs;
mod cpu_records;
pub mod cpu_trace;
#[cfg(test)]
mod cpu_trace_tests;
mod cpu_tracepoints;
mod events;
mod instrument;
mod mappings;
mod one_call;
mod perf;
pub mod ptrace;
pub mod recorder;
mod sampling;
mod support;
pub mod symbols;
mod tracefs;

pub use attached::{AttachedProbe, attach};
pub use support::{TRY, support, try_probe};

use sys::Failure;

/// Checks that `asked` is a counter's name, as the command line takes it. It may still be that it cannot be counted here.
pub fn check_counter(asked: &str) -> Result<(), Failure> {
    counters::group(asked).map(drop)
}

/// What the system call `number` is called, such as `read`.
pub fn call_name(number: u32) -> String {
    syscalls::Sysno::new(number as usize)
        .map_or_else(|| format!("call {number}"), |call| call.name().to_owned())
}
