//! The directory of a run, for names in the file system, and its removal: by this process on every way out, by a janitor that
//! outlives it after `SIGKILL`, and by `ipcmark clean` if both were killed. What may be removed is for `leftovers` to say.

use super::leftovers::{Found, OwnDirectory, PREFIX, find, make};
use super::reexecution::{nowhere, reexecution};
use crate::host::isolation::Witness;
use model::card::Support;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;
use sys::{Failure, OrFail};

/// The hidden sub-command by which the binary becomes a janitor.
pub const JANITOR: &str = "__janitor";

/// The directory of a run. It is locked while the run lives and removed when this is dropped.
///
/// Where none can be made there is none: the mechanisms that need one say so when they are probed, and the others are
/// measured.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    id: String,
    /// `None`: there is none, and nothing at its path is this run's.
    own: Option<OwnDirectory>,
    /// Where the numbers of the next scheduler's trials begin.
    next_number: AtomicU64,
    /// The janitor reads from the other end of this pipe, and wakes when this process ends in whatever way.
    _janitor: OwnedFd,
}

impl RunDirectory {
    /// Makes the directory of a new run under the directory for temporary files, and starts its janitor.
    pub fn create() -> Result<Self, Failure> {
        /// Somebody who took one name by chance takes no second.
        const ATTEMPTS: usize = 4;
        let is_safe = matches!(mechanisms::probe_names(), Support::Yes { .. });
        for _ in 0..ATTEMPTS {
            let id = format!("{}-{:08x}", std::process::id(), rand::random::<u32>());
            let path = std::env::temp_dir().join(format!("{PREFIX}{id}"));
            // The janitor comes first: there is no moment at which a directory would outlive a killed run.
            let janitor = start_janitor(&path)?;
            match if is_safe { make(&path) } else { Err(Errno::ACCESS) } {
                Ok(own) => return Ok(Self::at(path, id, Some(own), janitor)),
                Err(Errno::EXIST) => {}
                // Nobody can make anything below a device, so that no other user's directory is ever taken for this run's.
                Err(_) => {
                    let path = Path::new("/dev/null").join(format!("{PREFIX}{id}"));
                    return Ok(Self::at(path, id, None, janitor));
                }
            }
        }
        Err(Failure::from_errno("mkdir", std::env::temp_dir().display(), Errno::EXIST))
    }

    fn at(path: PathBuf, id: String, own: Option<OwnDirectory>, janitor: OwnedFd) -> Self {
        Self { path, id, own, next_number: AtomicU64::new(0), _janitor: janitor }
    }

    /// Numbers of trials of one scheduler, from this one on. What an endpoint that was killed made under its number is left here until
    /// the run ends, and must not be in the way of another.
    pub(crate) fn first_number(&self) -> u64 {
        /// More trials than a scheduler starts.
        const TRIALS: u64 = 1 << 24;
        self.next_number.fetch_add(TRIALS, Ordering::Relaxed)
    }

    /// The id of the run, which is in the name of everything that it makes.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A file in it that tells another process, at the same path, that it sees this directory; `None` where there can be none.
    pub(crate) fn witness(&self) -> Option<Witness> {
        let witness =
            Witness { path: self.path.join("witness"), token: format!("{:032x}", rand::random::<u128>()) };
        self.own.as_ref()?;
        // Two sides are told one after the other: the second finds a token of its own.
        let _ = std::fs::remove_file(&witness.path);
        let mut new = OpenOptions::new();
        let file = new.write(true).create_new(true).mode(0o600).open(&witness.path);
        file.and_then(|mut file| file.write_all(witness.token.as_bytes())).ok()?;
        Some(witness)
    }

    /// Where the directory is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // What cannot be removed now the janitor tries again.
        let _ = self.own.as_ref().map(OwnDirectory::remove);
    }
}

fn start_janitor(path: &Path) -> Result<OwnedFd, Failure> {
    let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", "the janitor's pipe")?;
    let mut command = reexecution(JANITOR, None);
    command.arg(path).stdin(theirs).stdout(nowhere()?).stderr(nowhere()?);
    command.spawn().or_fail("start", "the janitor (/proc/self/exe)")?;
    Ok(ours)
}

/// The janitor: sleeps until the coordinator has ended, then removes what it left.
pub fn janitor(path: &Path) {
    // The coordinator never writes: the read ends when its end of the pipe is closed.
    let _ = std::io::stdin().read(&mut [0]);
    remove_dead(path);
}

/// Removes the directory at `path`, if it is one that a dead run of this user has left.
pub(super) fn remove_dead(path: &Path) {
    const ATTEMPTS: usize = 10;
    const PAUSE: Duration = Duration::from_millis(20);
    for _ in 0..ATTEMPTS {
        match find(path) {
            Ok(Found::Nothing | Found::Foreign | Found::Open(_)) => return,
            Ok(Found::Ours(own)) => {
                // Endpoints die with the coordinator, but a moment later: one may just be making a file, or an object that it has
                // recorded already.
                let _ = own.remove_recorded();
                sleep(PAUSE);
                if own.remove().is_ok() {
                    return;
                }
            }
            // A child of the coordinator holds the lock until it has executed its program, or has died.
            Ok(Found::InUse) | Err(_) => {}
        }
        sleep(PAUSE);
    }
}
