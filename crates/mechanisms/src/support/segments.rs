//! Shared memory that operations make and attach: whether it can be had, and its name. Not an operation itself.

use crate::contract::TrialContext;
use crate::support::backing::of_objects;
use crate::support::names::{Registered, probe_names, probe_sysv};
use crate::support::probe::support_of;
use model::Size;
use model::card::Support;
use rustix::fs::{Mode, OFlags, open};
use sys::name::ObjectName;
use sys::segment::{MemorySegment, SegmentSource};
use sys::sysv::{SysvKey, SysvKind};
use sys::{Failure, OrFail};

/// Whether memory of `kind` can be had here.
pub(crate) fn probe_source(kind: Option<&str>) -> Support {
    let named = if kind == Some("sysv") { probe_sysv(SysvKind::Memory) } else { probe_names() };
    match (kind, named) {
        (Some("posix" | "sysv"), no @ Support::No { .. }) => no,
        // A file without a name, so that nothing can be left.
        (Some("posix"), _) => {
            let nameless = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
            let opened = open("/dev/shm", nameless, Mode::RUSR | Mode::WUSR).or_fail("open", "/dev/shm");
            support_of(opened.map_err(of_objects))
        }
        (Some("sysv"), _) => match sys::sysctl::number("kernel/shmmax") {
            Some(most_bytes) => {
                Support::Yes { largest_bytes: Some(most_bytes).filter(|most| *most < Size::LARGEST.0) }
            }
            None => Support::No {
                reason: "there is no /proc/sys/kernel/shmmax".to_owned(),
                remedy: "use a kernel with CONFIG_SYSVIPC, and mount /proc".to_owned(),
            },
        },
        _ => Support::UNLIMITED,
    }
}

/// Memory of `kind` for `trial`, what made it, and its name.
pub(crate) type Made = (MemorySegment, SegmentSource, Option<Registered>);

/// Makes memory of `kind` for `trial`, whose pages can all be touched.
pub(crate) fn make(trial: &TrialContext<'_>, kind: Option<&str>, size_bytes: usize) -> Result<Made, Failure> {
    let (source, name) = match kind {
        Some("sysv") => {
            let key = SysvKey::hashed(trial.path());
            (SegmentSource::Sysv(key), ObjectName::SysvShm(key))
        }
        Some("posix") => {
            let name = trial.posix_name("memory");
            (SegmentSource::Posix(name.clone()), ObjectName::PosixShm(name))
        }
        _ => return Ok((create(&SegmentSource::Memfd, size_bytes)?, SegmentSource::Memfd, None)),
    };
    let (segment, registered) = trial.make_named(name, || create(&source, size_bytes))?;
    Ok((segment, source, Some(registered)))
}

fn create(source: &SegmentSource, size_bytes: usize) -> Result<MemorySegment, Failure> {
    let segment =
        source.create(size_bytes).or_fail("make", format!("{size_bytes} bytes of shared memory"))?;
    segment.reserve()?;
    Ok(segment)
}
