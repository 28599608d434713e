//! The directory of a run, for names in the file system, and its removal: by this process on every way out, by a janitor that
//! outlives it after `SIGKILL`, and by `ipcmark clean` if both were killed.

use super::reexecution::reexecution;
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
/// Where none can be made there is none: the mechanisms that need one say so when they are probed, and the others are
/// measured.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    id: String,
    /// Held for its flock(2): `clean` leaves alone what somebody holds.
    _lock: Option<OwnedFd>,
    /// The janitor reads from the other end of this pipe, and wakes when this process ends in whatever way.
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

/// Removes `path`, what is in it, and what is noted there. It is no failure if somebody else has removed it already.
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
    let mut command = reexecution(JANITOR, None);
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

/// Removes the directories of runs that are dead. Returns which, and which it could not remove.
pub fn clean() -> Result<Vec<Cleaned>, Failure> {
    clean_in(&std::env::temp_dir())
}

fn clean_in(parent: &Path) -> Result<Vec<Cleaned>, Failure> {
    let entries = std::fs::read_dir(parent).or_fail("readdir", parent.display())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn leftover(parent: &Path, name: &str) -> PathBuf {
        let path = parent.join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("socket"), "").unwrap();
        path
    }

    /// Gives the lock back. A child that another test has just forked holds a copy of the descriptor, and with it the lock,
    /// until it executes its program: the lock is waited for.
    fn release(held: OwnedFd, path: &Path) {
        drop(held);
        let waited = crate::clock::Timer::start();
        while in_use(path) && waited.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_a_dead_run_left_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let dead = leftover(parent.path(), "ipcmark-run-1-abc");
        let alive = leftover(parent.path(), "ipcmark-run-2-abc");
        let other = leftover(parent.path(), "somebody-elses");
        let held = lock(&alive).unwrap();
        let cleaned = clean_in(parent.path()).unwrap();
        assert_eq!(cleaned.iter().map(|(path, _)| path).collect::<Vec<_>>(), [&dead]);
        assert!(cleaned[0].1.is_ok() && !dead.exists() && alive.exists() && other.exists());
        release(held, &alive);
        assert_eq!(clean_in(parent.path()).unwrap().len(), 1);
        assert!(!alive.exists());
    }

    #[test]
    fn a_directory_is_locked_once() {
        let parent = tempfile::tempdir().unwrap();
        let path = leftover(parent.path(), "ipcmark-run-3-abc");
        let held = lock(&path).unwrap();
        assert!(in_use(&path) && lock(&path).is_err());
        release(held, &path);
        assert!(!in_use(&path) && !in_use(&parent.path().join("ipcmark-run-none")));
    }

    #[test]
    fn only_names_of_runs_are_taken_for_runs() {
        assert!(is_run_directory(Path::new("/tmp/ipcmark-run-17-00ff")));
        assert!(!is_run_directory(Path::new("/tmp/ipcmark")) && !is_run_directory(Path::new("/")));
    }

    #[test]
    fn to_remove_what_is_gone_is_no_failure() {
        let parent = tempfile::tempdir().unwrap();
        let gone = parent.path().join("ipcmark-run-4-abc");
        remove(&gone);
        assert!(discard(&gone).is_ok());
    }
}
