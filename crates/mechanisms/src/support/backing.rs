//! Shared memory of each kind, and how the server gets what the client made. Not a mechanism itself.

use crate::contract::{Ticket, TrialContext};
use crate::support::names::{Registered, probe_names, probe_sysv};
use crate::support::probe::support_of;
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
use sys::sysv::{self, SysvKey, SysvKind};
use sys::{Errno, Failure, OrFail};

/// The parameter that says which kind of memory is shared.
pub(crate) const MEMORY: Param = Param {
    name: "memory",
    summary: "what is mapped: a memfd, a POSIX object, a System V segment, a file in TMPDIR, or a memfd of huge pages",
    domain: Domain::Choice(&["memfd", "posix", "sysv", "file", "huge"]),
    default: Some("memfd"),
};

/// Where POSIX shared memory objects are (shm_overview(7)).
const OBJECTS: &str = "/dev/shm";
/// The mode of files and objects: their owner reads and writes them, nobody else.
const OWNERS: Mode = Mode::RUSR.union(Mode::WUSR);

/// A request for shared memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryRequest<'a> {
    /// The value of [`MEMORY`].
    pub(crate) kind: Option<&'a str>,
    /// The name of the mechanism.
    pub(crate) name: &'a str,
    pub(crate) len_bytes: usize,
}

/// What the client still has to do once the server holds the memory: remove its name, if it has one.
#[derive(Debug)]
pub(crate) struct Pending(Option<(Named, OwnedFd)>);

/// A name that is removed when this is dropped.
#[derive(Debug)]
enum Named {
    Object { _registered: Registered },
    File(PathBuf),
}

impl Drop for Named {
    fn drop(&mut self) {
        if let Named::File(path) = self {
            // If this fails, the file is removed with the directory of the run.
            let _ = fs::unlink(&*path);
        }
    }
}

impl Pending {
    /// Waits until the server holds the memory, or has failed, and removes its name.
    pub(crate) fn wait_for_server(self) -> Result<(), Failure> {
        if let Some((name, opened)) = self.0 {
            // The server closes the pipe in either case.
            read(&opened, &mut [0]).or_fail("read", "whether the server holds the memory")?;
            drop(name);
        }
        Ok(())
    }
}

impl MemoryRequest<'_> {
    /// Whether the memory can be had. Makes no name, so that nothing is left if this process is killed.
    pub(crate) fn probe(self) -> Support {
        let Self { kind, len_bytes, .. } = self;
        let named = if kind == Some("sysv") { probe_sysv(SysvKind::Memory) } else { probe_names() };
        match (kind, named) {
            (Some("posix" | "sysv" | "file"), no @ Support::No { .. }) => no,
            (Some("posix"), _) => support_of(
                nameless(Path::new(OBJECTS))
                    .and_then(|fd| SharedMemory::create_file(fd, len_bytes))
                    .map_err(of_objects),
            ),
            // Not every file system has files without a name.
            (Some("file"), _) => nameless(&std::env::temp_dir())
                .map_or(Support::UNLIMITED, |fd| support_of(SharedMemory::create_file(fd, len_bytes))),
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
            (Some("huge"), _) => support_of(SharedMemory::create_huge("ipcmark-probe", len_bytes)),
            _ => support_of(SharedMemory::create("ipcmark-probe", len_bytes)),
        }
    }

    /// Makes the memory in the client, for `trial`. Adds to `ticket` what the server needs to open it.
    pub(crate) fn bind(
        self,
        trial: &TrialContext<'_>,
        ticket: &mut Ticket,
    ) -> Result<(SharedMemory, Pending), Failure> {
        let Self { kind, name, len_bytes } = self;
        let (memory, named) = match kind {
            Some("posix") => {
                let object = trial.posix_name("memory");
                let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
                let (fd, registered) = trial.make_named(ObjectName::PosixShm(object.clone()), || {
                    shm::open(&object, flags, OWNERS).or_fail("shm_open", &object).map_err(of_objects)
                })?;
                (SharedMemory::create_file(fd, len_bytes)?, Named::Object { _registered: registered })
            }
            Some("sysv") => {
                let key = SysvKey::hashed(trial.path());
                let (memory, registered) =
                    trial.make_named(ObjectName::SysvShm(key), || sysv::create_memory(key, len_bytes))?;
                (memory, Named::Object { _registered: registered })
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

    /// Opens the memory in the server, with what the client added to `ticket`.
    pub(crate) fn connect(
        self,
        trial: &TrialContext<'_>,
        ticket: &mut Ticket,
    ) -> Result<SharedMemory, Failure> {
        let Self { kind, name, len_bytes } = self;
        // The memory itself, or a pipe that is closed once the memory is mapped.
        let [fd] = ticket.next_descriptors(name)?;
        match kind {
            Some("posix") => {
                let object = trial.posix_name("memory");
                let fd = shm::open(&object, shm::OFlags::RDWR, Mode::empty()).or_fail("shm_open", &object)?;
                SharedMemory::open_file(fd, len_bytes)
            }
            Some("sysv") => sysv::open_memory(SysvKey::hashed(trial.path()), len_bytes),
            Some("file") => SharedMemory::open_file(open(&file(trial), OFlags::empty())?, len_bytes),
            Some("huge") => SharedMemory::open_huge(fd, len_bytes),
            _ => SharedMemory::open(fd, len_bytes),
        }
    }
}

/// The failure of what is made in [`OBJECTS`], where no other TMPDIR helps.
pub(crate) fn of_objects(failure: Failure) -> Failure {
    match failure.errno {
        Some(Errno::ROFS | Errno::NOENT | Errno::NOTDIR | Errno::OPNOTSUPP) => Failure {
            next: format!("POSIX objects lie in {OBJECTS}: 'ipcmark doctor' says what to do (shared-memory)"),
            ..failure
        },
        _ => failure,
    }
}

/// A file of `directory` that has no name.
fn nameless(directory: &Path) -> Result<OwnedFd, Failure> {
    open(directory, OFlags::TMPFILE)
}

fn file(trial: &TrialContext<'_>) -> PathBuf {
    trial.path().with_extension("memory")
}

fn open(path: &Path, flags: OFlags) -> Result<OwnedFd, Failure> {
    fs::open(path, flags | OFlags::RDWR | OFlags::CLOEXEC, OWNERS).or_fail("open", path.display())
}
