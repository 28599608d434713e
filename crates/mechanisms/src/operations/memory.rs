//! Writes or reads every byte of n bytes, in private memory or in memory that could be shared: does sharing cost
//! anything?

use crate::contract::{Operation, TrialContext};
use crate::support::segments::{make, probe_source};
use model::card::{Card, Support};
use model::{Domain, Param, Params};
use std::hint::black_box;
use sys::{Errno, Failure, OrFail, segment};

/// memset(3), and a read of every byte.
#[derive(Debug)]
pub(crate) struct Memory {
    memory: segment::MappedMemory,
    reads: bool,
}

impl Operation for Memory {
    const CARD: Card = Card {
        name: "memory",
        summary: "write n bytes of memory, or read them, in cache if they fit",
        params: &[
            Param {
                name: "memory",
                summary: "private, or a memfd, a System V segment or a POSIX object that nobody else has attached",
                domain: Domain::Choice(&["private", "memfd", "sysv", "posix"]),
                default: Some("private"),
            },
            Param {
                name: "do",
                summary: "write every byte, as memset does, or read every byte",
                domain: Domain::Choice(&["write", "read"]),
                default: Some("write"),
            },
        ],
        sized: true,
        limits: "those of shm; huge pages differ: /sys/kernel/mm/transparent_hugepage has enabled for private memory, \
                 shmem_enabled for shared",
        man: &["memset(3)", "mmap(2)", "memfd_create(2)", "shmop(2)", "shm_open(3)"],
        ..Card::OPERATION
    };

    fn probe(params: &Params) -> Support {
        probe_source(params.text(&Self::CARD, "memory"))
    }

    fn prepare(trial: &TrialContext<'_>) -> Result<Self, Failure> {
        let size_bytes = trial.shape.size_bytes;
        let kind = trial.params.text(&Self::CARD, "memory");
        let mut memory = if kind == Some("private") {
            segment::MappedMemory::private(size_bytes).or_fail("mmap", format!("{size_bytes} bytes"))?
        } else {
            // Its name is removed when this function returns. The memory stays attached.
            let (segment, source, _registered) = make(trial, kind, size_bytes)?;
            segment.into_mapped().or_fail("attach", format!("{source:?}"))?
        };
        // Every page must be present before the iterations.
        memory.fill(1);
        Ok(Self { memory, reads: trial.params.text(&Self::CARD, "do") == Some("read") })
    }

    #[inline(always)]
    fn call(&mut self) -> Result<(), Errno> {
        let memory = black_box(&mut self.memory);
        if self.reads {
            black_box(memory.fold());
        } else {
            memory.fill(2);
        }
        Ok(())
    }
}
