//! The subsystems in which a sample can find the processor: parts of the kernel, or the program itself.
//!
//! Only their names. Which stack lies in which subsystem is worked out in `analysis`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// A part of the kernel, or the program itself.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Subsystem {
    /// The way into the kernel and out of it, of system calls that do little else.
    Entry,
    /// Bytes copied to memory and from it.
    Copy,
    /// Choosing who runs, and switching to it.
    Scheduling,
    /// Wait queues: going to sleep on them, and waking the sleepers.
    Waiting,
    /// Taking locks.
    Locking,
    /// Sockets and their buffers, Unix sockets whole.
    Sockets,
    /// Protocols and devices under the sockets.
    Network,
    /// Descriptors, files, pipes, terminals, eventfds.
    Files,
    /// Allocating and freeing memory, and page tables.
    Memory,
    /// Page faults.
    Faults,
    /// Interrupts, timers and deferred work.
    Interrupts,
    /// The queues of io_uring.
    IoUring,
    /// Queues and semaphores of System V and POSIX, and futexes.
    Ipc,
    /// Signals and their handlers' frames.
    Signals,
    /// Probes, the one that samples among them.
    Tracing,
    /// The program and its libraries.
    User,
    /// The kernel, in a function that `subsystems.toml` does not name.
    Unknown,
}

impl Subsystem {
    /// All of them, in the order in which they are shown.
    pub const ALL: &[Subsystem] = Subsystem::VARIANTS;

    /// Its name in suites and results files.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// In words, as reports show it.
    pub fn name(self) -> &'static str {
        match self {
            Subsystem::Entry => "system call entry and exit",
            Subsystem::Copy => "copying",
            Subsystem::Scheduling => "scheduling",
            Subsystem::Waiting => "wait queues",
            Subsystem::Locking => "locking",
            Subsystem::Sockets => "sockets",
            Subsystem::Network => "network stack",
            Subsystem::Files => "files and pipes",
            Subsystem::Memory => "memory management",
            Subsystem::Faults => "page faults",
            Subsystem::Interrupts => "interrupts",
            Subsystem::IoUring => "io_uring",
            Subsystem::Ipc => "queues, semaphores, futexes",
            Subsystem::Signals => "signals",
            Subsystem::Tracing => "tracing",
            Subsystem::User => "user code",
            Subsystem::Unknown => "kernel, unknown",
        }
    }
}

impl std::fmt::Display for Subsystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
