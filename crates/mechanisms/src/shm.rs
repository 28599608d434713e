//! What it costs to make, attach, detach and remove shared memory of n bytes.

use crate::contract::{Operation, Trial};
use crate::descriptor::supported;
use crate::names::{Registered, names_have_a_place};
use model::card::{Card, Support};
use model::{Domain, Param, Params, Size};
use rustix::fs::{Mode, OFlags, open};
use sys::name::ObjectName;
use sys::segment::{MemorySegment, SegmentSource};
use sys::sysv::SysvKey;
use sys::{Errno, Failure, OrFail};

/// shmget(2), shmat(2), shmdt(2) and shmctl(2), and what does the same for POSIX memory and memfds.
#[derive(Debug)]
pub struct Shm {
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
    /// Of memory that is there.
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
                summary: "all of it; or make and remove what is never attached; or attach and detach what is there",
                domain: Domain::Choice(&["whole", "create", "attach"]),
                default: Some("whole"),
            },
            Param {
                name: "touch",
                summary: "write a byte to each page, so that each faults in; with part=attach the pages are there already",
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
                reason: "part=create attaches nothing that could be touched".to_owned(),
                remedy: "take touch=on with part=whole or part=attach".to_owned(),
            };
        }
        probe_source(params.text(&Self::CARD, "memory"))
    }

    fn prepare(trial: &Trial<'_>) -> Result<Self, Failure> {
        let size_bytes = trial.shape.size_bytes;
        let text = |name| trial.params.text(&Self::CARD, name);
        let (source, registered) = source(trial, text("memory"))?;
        // Once beforehand, so that touching it later cannot fail.
        let segment = create(&source, size_bytes)?;
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

/// Whether there is memory of `kind` here.
pub(crate) fn probe_source(kind: Option<&str>) -> Support {
    match (kind, names_have_a_place()) {
        (Some("posix" | "sysv"), lacking @ Support::No { .. }) => lacking,
        // Of a file that never gets a name, so that nothing could be left.
        (Some("posix"), _) => {
            let nameless = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
            supported(open("/dev/shm", nameless, Mode::RUSR | Mode::WUSR).or_fail("open", "/dev/shm"))
        }
        (Some("sysv"), _) => match sys::sysctl::number("kernel/shmmax") {
            Some(most_bytes) => {
                Support::Yes { largest_bytes: Some(most_bytes).filter(|most| *most < Size::LARGEST.0) }
            }
            None => Support::No {
                reason: "there is no /proc/sys/kernel/shmmax".to_owned(),
                remedy: "take a kernel with CONFIG_SYSVIPC, and mount /proc".to_owned(),
            },
        },
        _ => Support::UNLIMITED,
    }
}

/// What makes memory of `kind` for `trial`, and the name that it has.
pub(crate) fn source(
    trial: &Trial<'_>,
    kind: Option<&str>,
) -> Result<(SegmentSource, Option<Registered>), Failure> {
    let (source, name) = match kind {
        Some("sysv") => {
            let key = SysvKey::of(trial.path());
            (SegmentSource::Sysv(key), ObjectName::SysvShm(key))
        }
        Some("posix") => {
            let name = trial.posix_name("memory");
            (SegmentSource::Posix(name.clone()), ObjectName::PosixShm(name))
        }
        _ => return Ok((SegmentSource::Memfd, None)),
    };
    Ok((source, Some(trial.register(name)?)))
}

/// Memory whose pages can all be touched.
pub(crate) fn create(source: &SegmentSource, size_bytes: usize) -> Result<MemorySegment, Failure> {
    let segment =
        source.create(size_bytes).or_fail("make", format!("{size_bytes} bytes of shared memory"))?;
    segment.reserve()?;
    Ok(segment)
}
