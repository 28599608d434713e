//! What shared memory is made of, and how far comes by client's. Not a mechanism itself.

use crate::contract::{Ticket, Trial};
use crate::descriptor::supported;
use crate::names::{Registered, names_have_a_place};
use model::card::Support;
use model::{Domain, Param};
use rustix::fd::OwnedFd;
use rustix::fs::{self, Mode, OFlags};
use rustix::io::read;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::shm;
use std::path::{Path, PathBuf};
use sys::name::ObjectName;
use sys::shared_memory::SharedMemory;
use sys::sysv::{self, SysvKey};
use sys::{Failure, OrFail};

/// The parameter that says what the memory is.
pub(crate) const MEMORY: Param = Param {
    name: "memory",
    summary: "what is mapped: a memfd, a POSIX object, a System V segment, a file in TMPDIR, or a memfd of huge pages",
    domain: Domain::Choice(&["memfd", "posix", "sysv", "file", "huge"]),
    default: Some("memfd"),
};

/// Where POSIX shared memory objects are (shm_overview(7)).
const OBJECTS: &str = "/dev/shm";
/// What may be done with files and objects, by their owner alone.
const OWNERS: Mode = Mode::RUSR.union(Mode::WUSR);

/// Shared memory that is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory<'a> {
    /// The value of [`MEMORY`].
    pub(crate) kind: Option<&'a str>,
    /// Whose it is.
    pub(crate) name: &'a str,
    pub(crate) len_bytes: usize,
}

/// What client has left to do when server holds the memory: to remove its name, if it has one.
#[derive(Debug)]
pub struct Pending(Option<(Named, OwnedFd)>);

/// A name that is removed when this is dropped.
#[derive(Debug)]
enum Named {
    Object { _registered: Registered },
    File(PathBuf),
}

impl Drop for Named {
    fn drop(&mut self) {
        if let Named::File(path) = self {
            // If it stays, it goes with the run's directory.
            let _ = fs::unlink(&*path);
        }
    }
}

impl Pending {
    /// Waits until server holds the memory, or has failed, and removes its name.
    pub(crate) fn server_has_it(self) -> Result<(), Failure> {
        if let Some((name, opened)) = self.0 {
            // Server closes its end of the pipe in either case.
            read(&opened, &mut [0]).or_fail("read", "whether server holds the memory")?;
            drop(name);
        }
        Ok(())
    }
}

impl Memory<'_> {
    /// Whether it can be had: where a name would be needed, of a file that never gets one.
    pub(crate) fn probe(self) -> Support {
        let Self { kind, len_bytes, .. } = self;
        match (kind, names_have_a_place()) {
            (Some("posix" | "sysv" | "file"), lacking @ Support::No { .. }) => lacking,
            (Some("posix"), _) => supported(
                nameless(Path::new(OBJECTS)).and_then(|fd| SharedMemory::create_file(fd, len_bytes)),
            ),
            // Not every file system has files without a name.
            (Some("file"), _) => nameless(&std::env::temp_dir())
                .map_or(Support::UNLIMITED, |fd| supported(SharedMemory::create_file(fd, len_bytes))),
            (Some("sysv"), _) => match sys::sysctl::number("kernel/shmmax") {
                Some(most_bytes) if len_bytes as u64 <= most_bytes => Support::UNLIMITED,
                most_bytes => Support::No {
                    reason: format!(
                        "a segment of {len_bytes} bytes is above kernel.shmmax, {}",
                        most_bytes.unwrap_or(0)
                    ),
                    remedy: "raise kernel.shmmax, on a kernel with CONFIG_SYSVIPC".to_owned(),
                },
            },
            (Some("huge"), _) => supported(SharedMemory::create_huge("ipcmark-probe", len_bytes)),
            _ => supported(SharedMemory::create("ipcmark-probe", len_bytes)),
        }
    }

    /// Client's, for `trial`; adds to `ticket` what server needs to come by it.
    pub(crate) fn bind(
        self,
        trial: &Trial<'_>,
        ticket: &mut Ticket,
    ) -> Result<(SharedMemory, Pending), Failure> {
        let Self { kind, name, len_bytes } = self;
        let (memory, named) = match kind {
            Some("posix") => {
                let object = trial.posix_name("memory");
                let registered = trial.register(ObjectName::PosixShm(object.clone()))?;
                let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
                let fd = shm::open(&object, flags, OWNERS).or_fail("shm_open", &object)?;
                (SharedMemory::create_file(fd, len_bytes)?, Named::Object { _registered: registered })
            }
            Some("sysv") => {
                let key = SysvKey::of(trial.path());
                let registered = trial.register(ObjectName::SysvShm(key))?;
                (sysv::create_memory(key, len_bytes)?, Named::Object { _registered: registered })
            }
            Some("file") => {
                let path = file(trial);
                let fd = open(&path, OFlags::CREATE | OFlags::EXCL)?;
                let named = Named::File(path);
                (SharedMemory::create_file(fd, len_bytes)?, named)
            }
            kind => {
                let create =
                    if kind == Some("huge") { SharedMemory::create_huge } else { SharedMemory::create };
                let (memory, fd) = create(&format!("ipcmark-{name}"), len_bytes)?;
                ticket.fds.push(fd);
                return Ok((memory, Pending(None)));
            }
        };
        let (opened, to_opened) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", name)?;
        ticket.fds.push(to_opened);
        Ok((memory, Pending(Some((named, opened)))))
    }

    /// Server's, by what client added to `ticket`.
    pub(crate) fn connect(self, trial: &Trial<'_>, ticket: &mut Ticket) -> Result<SharedMemory, Failure> {
        let Self { kind, name, len_bytes } = self;
        // The memory, or what is closed when it is mapped.
        let [fd] = ticket.next_descriptors(name)?;
        match kind {
            Some("posix") => {
                let object = trial.posix_name("memory");
                let fd = shm::open(&object, shm::OFlags::RDWR, Mode::empty()).or_fail("shm_open", &object)?;
                SharedMemory::open_file(fd, len_bytes)
            }
            Some("sysv") => sysv::open_memory(SysvKey::of(trial.path()), len_bytes),
            Some("file") => SharedMemory::open_file(open(&file(trial), OFlags::empty())?, len_bytes),
            Some("huge") => SharedMemory::open_huge(fd, len_bytes),
            _ => SharedMemory::open(fd, len_bytes),
        }
    }
}

/// A file of `directory` that has no name.
fn nameless(directory: &Path) -> Result<OwnedFd, Failure> {
    open(directory, OFlags::TMPFILE)
}

fn file(trial: &Trial<'_>) -> PathBuf {
    trial.path().with_extension("memory")
}

fn open(path: &Path, flags: OFlags) -> Result<OwnedFd, Failure> {
    fs::open(path, flags | OFlags::RDWR | OFlags::CLOEXEC, OWNERS).or_fail("open", path.display())
}
