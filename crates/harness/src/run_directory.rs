//! The directory of a run, for names in the file system, and who removes it: on every way out this
//! process, after `SIGKILL` a janitor that outlives it, and `ipcmark clean` if both were killed.

use crate::trial::re_execution;
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use sys::name::ObjectName;
use sys::{Failure, OrFail};

/// The hidden sub-command by which the binary becomes a janitor.
pub const JANITOR: &str = "__janitor";
/// What the name of every run's directory begins with.
const PREFIX: &str = "ipcmark-run-";

/// The directory of a run. It is locked while the run lives and removed when this is dropped.
///
/// Where none can be made there is none: the rows that need one say so when they are probed, and the
/// others are measured.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    id: String,
    /// Held for its flock(2): `clean` leaves alone what somebody holds.
    _lock: Option<OwnedFd>,
    /// The janitor sleeps on the other end, which says that it is closed when this process ends in whatever way.
    _janitor: OwnedFd,
}

impl RunDirectory {
    /// Makes the directory of a new run under the directory for temporary files, and starts its janitor.
    pub fn create() -> Result<Self, Failure> {
        let id = format!("{}-{:08x}", std::process::id(), rand::random::<u32>());
        let path = std::env::temp_dir().join(format!("{PREFIX}{id}"));
        // The janitor comes first: there is no moment at which a directory would outlive a killed run.
        let janitor = start_janitor(&path)?;
        let lock = match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Some(lock(&path).inspect_err(|_| remove(&path))?),
            Err(_) => None,
        };
        Ok(Self { path, id, _lock: lock, _janitor: janitor })
    }

    /// The id of the run, which is in the name of everything that it makes.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where the directory is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes `path`, what is in it, and what is noted there. Whoever comes later may find it gone, which is as good.
fn remove(path: &Path) {
    remove_all(&mechanisms::recorded_names(path));
    let _ = std::fs::remove_dir_all(path);
}

fn remove_all(names: &[ObjectName]) {
    for name in names {
        // What cannot be removed belongs to somebody else by now.
        let _ = name.remove();
    }
}

/// Opens the directory and locks it (flock(2)).
fn lock(path: &Path) -> Result<OwnedFd, Failure> {
    let directory = open(path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .or_fail("open", path.display())?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive).or_fail("flock", path.display())?;
    Ok(directory)
}

fn start_janitor(path: &Path) -> Result<OwnedFd, Failure> {
    let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", "the janitor's pipe")?;
    let mut command = re_execution(JANITOR)?;
    command.arg(path).stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().or_fail("start", "the janitor (/proc/self/exe)")?;
    Ok(ours)
}

/// The janitor: sleeps until the coordinator has ended, then removes what it left.
pub fn janitor(path: &Path) {
    // The coordinator never writes: the read ends when its end of the pipe is closed.
    let _ = std::io::stdin().read(&mut [0]);
    if is_run_directory(path) && path.exists() {
        // Endpoints die with the coordinator, but a moment later: one may just be making a name, or an object that it
        // has noted already.
        let names = mechanisms::recorded_names(path);
        for _ in 0..10 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            remove(path);
            if !path.exists() {
                break;
            }
        }
        remove_all(&names);
    }
}

fn is_run_directory(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
}

/// A directory that a dead run left, and whether it could be removed.
pub type Cleaned = (PathBuf, Result<(), Failure>);

/// Removes the directories of runs that are dead; says which, and which it could not.
pub fn clean() -> Result<Vec<Cleaned>, Failure> {
    let parent = std::env::temp_dir();
    let entries = std::fs::read_dir(&parent).or_fail("readdir", parent.display())?;
    let leftovers = entries.flatten().map(|entry| entry.path()).filter(|path| is_run_directory(path));
    Ok(leftovers.filter(|path| !in_use(path)).map(|path| (path.clone(), discard(&path))).collect())
}

fn discard(path: &Path) -> Result<(), Failure> {
    remove_all(&mechanisms::recorded_names(path));
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.or_fail("rm -r", path.display()),
    }
}

/// Whether a living run holds `path`. One that cannot be opened belongs to somebody else, and is reported by `discard`.
fn in_use(path: &Path) -> bool {
    let Ok(directory) = open(path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    else {
        return false;
    };
    flock(&directory, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
}
