//! What is checked, and what all checks have in common: limits, sizes, and how a finding is said.

use crate::coordinator::driver::Driver;
use crate::coordinator::run_directory::RunDirectory;
use crate::protocol::silence::SILENCE;
use model::{Size, Workload};
use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long an endpoint may take for anything that it is asked.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take to end: its own limit of silence, and what a virtual machine may need beside busy CPUs.
pub(super) const END_WITHIN: Duration = SILENCE.saturating_add(Duration::from_secs(15));
/// The size of the messages of most trials.
pub(super) const SIZE: Size = Size(100);
/// One that a stream delivers in parts.
pub(super) const LARGE: Size = Size(256 << 10);
/// The mechanisms over which the peer is played.
pub(super) const STREAMS: [&str; 3] = ["tcp", "unix-stream", "pipe"];

/// Whether it is as it should be, or what is wrong.
pub(super) type Finding = Result<(), String>;

/// What is checked: endpoints that a command starts, until a signal ends it.
pub(super) struct Tested<'a> {
    pub(super) driver: Driver,
    /// Where names in the file system go.
    pub(super) directory: RunDirectory,
    /// How many trials there have been.
    pub(super) numbers: Cell<u64>,
    pub(super) interrupted: &'a AtomicBool,
}

impl Tested<'_> {
    pub(super) fn next_number(&self) -> u64 {
        self.numbers.replace(self.numbers.get() + 1)
    }

    /// The workloads that it has of `mechanism`.
    pub(super) fn workloads_of(&self, mechanism: &str) -> &[Workload] {
        self.driver.mechanism(mechanism).map_or(&[], |offered| &offered.workloads)
    }

    /// One of them.
    pub(super) fn workload_of(&self, mechanism: &str) -> Workload {
        self.workloads_of(mechanism).first().copied().unwrap_or(Workload::Latency)
    }

    /// The streams that it has.
    pub(super) fn streams(&self) -> impl Iterator<Item = &'static str> {
        STREAMS.into_iter().filter(|name| !self.workloads_of(name).is_empty())
    }

    /// The mechanism by which it is checked what is the same in all: a stream, if it has one.
    pub(super) fn first(&self) -> Option<&str> {
        let offered = self.driver.hello.mechanisms.first().map(|offered| offered.name.as_str());
        self.streams().next().or(offered)
    }
}

pub(super) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
