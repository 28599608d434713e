//! What it costs to make, attach, detach and remove shared memory of n bytes.

use crate::contract::{Operation, TrialContext};
use crate::support::names::Registered;
use crate::support::segments::{make, probe_source};
use model::card::{Card, Support};
use model::{Domain, Param, Params};
use sys::segment::{MemorySegment, SegmentSource};
use sys::{Errno, Failure, OrFail};

/// shmget(2), shmat(2), shmdt(2) and shmctl(2), and the calls that do the same for POSIX memory and memfds.
#[derive(Debug)]
pub(crate) struct Shm {
    source: SegmentSource,
    size_bytes: usize,
    part: Part,
    touch_every_bytes: Option<usize>,
    _registered: Option<Registered>,
}

#[derive(Debug)]
enum Part {
    Whole,
    Create,
    /// Attach and detach existing memory.
    Attach(MemorySegment),
}

impl Operation for Shm {
    const CARD: Card = Card {
        name: "shm",
        summary: "make shared memory of n bytes, attach it, detach it, and remove it",
        params: &[
            Param {
                name: "memory",
                summary: "a System V segment, a POSIX object, or a memfd, which has no name",
                domain: Domain::Choice(&["sysv", "posix", "memfd"]),
                default: Some("sysv"),
            },
            Param {
                name: "part",
                summary: "whole: all of it; create: make and remove memory that is never attached; attach: attach and detach existing memory",
                domain: Domain::Choice(&["whole", "create", "attach"]),
                default: Some("whole"),
            },
            Param {
                name: "touch",
                summary: "write a byte to each page, so that each causes a page fault; with part=attach the pages exist already",
                domain: Domain::Choice(&["off", "on"]),
                default: Some("off"),
            },
        ],
        sized: true,
        limits: "memory; kernel.shmmax and kernel.shmall for System V, the size of /dev/shm for POSIX",
        man: &["shmget(2)", "shmop(2)", "shmctl(2)", "shm_open(3)", "memfd_create(2)", "mmap(2)"],
        ..Card::OPERATION
    };

    fn probe(params: &Params) -> Support {
        let is = |name, word| params.text(&Self::CARD, name) == Some(word);
        if is("part", "create") && is("touch", "on") {
            return Support::No {
                reason: "with part=create nothing is attached that could be touched".to_owned(),
                remedy: "use touch=on with part=whole or part=attach".to_owned(),
            };
        }
        probe_source(params.text(&Self::CARD, "memory"))
    }

    fn prepare(trial: &TrialContext<'_>) -> Result<Self, Failure> {
        let size_bytes = trial.shape.size_bytes;
        let text = |name| trial.params.text(&Self::CARD, name);
        // It is made once beforehand, so that touching it later cannot fail.
        let (segment, source, registered) = make(trial, text("memory"), size_bytes)?;
        let remove = |segment| source.remove(segment).or_fail("remove", format!("{source:?}"));
        let part = match text("part") {
            Some("attach") => Part::Attach(segment),
            Some("create") => remove(segment).map(|()| Part::Create)?,
            _ => remove(segment).map(|()| Part::Whole)?,
        };
        let touch_every_bytes = (text("touch") == Some("on")).then(rustix::param::page_size);
        Ok(Self { source, size_bytes, part, touch_every_bytes, _registered: registered })
    }

    #[inline(always)]
    fn call(&mut self) -> Result<(), Errno> {
        match &mut self.part {
            Part::Attach(segment) => segment.attach_and_detach(self.touch_every_bytes),
            Part::Create => {
                let segment = self.source.create(self.size_bytes)?;
                self.source.remove(segment)
            }
            Part::Whole => {
                let mut segment = self.source.create(self.size_bytes)?;
                segment.attach_and_detach(self.touch_every_bytes)?;
                self.source.remove(segment)
            }
        }
    }
}
