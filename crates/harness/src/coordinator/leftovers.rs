//! Directories of runs, and of pushed copies, in the directory for temporary files: telling ours from others', and removing them.
//!
//! Anybody may put anything there under any name. What is removed is a directory of this user's own, which nobody else can write
//! and no living run holds. It is opened without following a link, and from then on reached by its descriptor alone.

use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, Stat, flock, fstat, open, openat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use sys::{Failure, OrFail};

/// What the name of every run's directory begins with; its process id and eight hexadecimal digits follow.
pub(super) const PREFIX: &str = "ipcmark-run-";
/// What the name of the directory of a pushed copy begins with; six letters and digits of mktemp(1) follow.
pub(super) const PUSHED_PREFIX: &str = "ipcmark-push-";

/// What stands at the name of such a directory.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    /// No directory, or one of another user: what it is for is not for us to say.
    Foreign,
    /// A directory of this user that others may have written to. What lies in it is not believed.
    Open(Failure),
    /// A living run holds it.
    InUse,
    Ours(OwnDirectory),
}

/// A directory of this user's that nobody else can write, locked for this process.
#[derive(Debug)]
pub(super) struct OwnDirectory {
    parent: OwnedFd,
    /// Held for its flock(2), too: `clean` leaves alone what somebody holds.
    directory: OwnedFd,
    path: PathBuf,
    name: String,
}

/// Opens and locks what stands at `path`.
pub(super) fn find(path: &Path) -> Result<Found, Failure> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(Found::Foreign);
    };
    match open_directory(parent) {
        Ok(parent) => find_in(parent, path, name),
        Err(Errno::NOENT) => Ok(Found::Nothing),
        Err(errno) => Err(Failure::from_errno("open", parent.display(), errno)),
    }
}

/// The directory that the user has chosen for temporary files, or that the host has: its path is taken as it is.
fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    open(path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

fn find_in(parent: OwnedFd, path: &Path, name: &str) -> Result<Found, Failure> {
    if !is_own_name(name) {
        return Ok(Found::Foreign);
    }
    // With O_DIRECTORY nothing but a directory is ever opened: a FIFO does not wait, and a device does not act.
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::RDONLY | OFlags::CLOEXEC;
    let directory = match openat(&parent, name, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(Found::Nothing),
        Err(Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM) => return Ok(Found::Foreign),
        Err(errno) => return Err(Failure::from_errno("open", path.display(), errno)),
    };
    let found = fstat(&directory).or_fail("fstat", path.display())?;
    if found.st_uid != geteuid().as_raw() {
        return Ok(Found::Foreign);
    }
    if found.st_mode & WRITABLE_BY_OTHERS != 0 {
        let mode = found.st_mode & 0o7777;
        return Ok(Found::Open(Failure::new(
            "trust",
            path.display(),
            format!("its mode is {mode:04o}, so that others may have written to it"),
            "ipcmark makes none like it: see what it is, and remove it by hand",
        )));
    }
    if flock(&directory, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Ok(Found::InUse);
    }
    let own = OwnDirectory { parent, directory, path: path.to_owned(), name: name.to_owned() };
    // Whoever held the lock before may have removed it.
    Ok(if own.stands(&found) { Found::Ours(own) } else { Found::Nothing })
}

const WRITABLE_BY_OTHERS: u32 = 0o022;

impl OwnDirectory {
    /// Removes the objects that are recorded in it, and leaves the records.
    pub(super) fn remove_recorded(&self) -> Result<(), Failure> {
        mechanisms::remove_recorded(&self.directory, &self.name)
    }

    /// Removes the objects that are recorded in it, what is in it, and itself. Directories in it are of middleware; one with another file system
    /// mounted on it, or too deep, stays, and this fails.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        // Where an object stays, so does its record.
        self.remove_recorded()?;
        empty(&self.directory, DEEPEST).or_fail("rm", self.path.display())?;
        let found = fstat(&self.directory).or_fail("fstat", self.path.display())?;
        // If something else stands there by now, this one is gone. Only an empty directory could be removed in the moment between.
        if !self.stands(&found) {
            return Ok(());
        }
        match unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR) {
            Err(Errno::NOENT) => Ok(()),
            other => other.or_fail("rmdir", self.path.display()),
        }
    }

    /// Whether `found` still stands at its name.
    fn stands(&self, found: &Stat) -> bool {
        statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|now| (now.st_dev, now.st_ino) == (found.st_dev, found.st_ino))
    }
}

/// How many directories may lie within each other.
const DEEPEST: u32 = 16;

/// Removes what is in `directory`, and within each other at most `depth` directories. It holds no list: there may be any number.
fn empty(directory: &OwnedFd, depth: u32) -> Result<(), Errno> {
    /// A file system may leave out entries of a directory that changes meanwhile.
    const MOST_PASSES: usize = 8;
    let mut failed = None;
    for _ in 0..MOST_PASSES {
        let mut is_empty = true;
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if [&b"."[..], b".."].contains(&name.to_bytes()) {
                continue;
            }
            let removed = unlinkat(directory, name, AtFlags::empty()).or_else(|errno| match errno {
                Errno::ISDIR if depth > 0 => empty_within(directory, name, depth - 1),
                _ => Err(errno),
            });
            match removed {
                Ok(()) => is_empty = false,
                Err(Errno::NOENT) => {}
                Err(errno) => failed = Some(errno),
            }
        }
        if is_empty {
            break;
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Removes the directory `name` in `directory`, which is reached by no link and is of the same file system.
fn empty_within(directory: &OwnedFd, name: &CStr, depth: u32) -> Result<(), Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inner = openat(directory, name, flags, Mode::empty())?;
    if fstat(&inner)?.st_dev != fstat(directory)?.st_dev {
        return Err(Errno::XDEV);
    }
    empty(&inner, depth)?;
    unlinkat(directory, name, AtFlags::REMOVEDIR)
}

/// Whether `name` is one that a run gives its directory, or that of a pushed copy.
fn is_own_name(name: &str) -> bool {
    let random = name.strip_prefix(PUSHED_PREFIX);
    let is_of_copy = random
        .is_some_and(|random| random.len() == 6 && random.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    is_of_copy || is_name_of_run(name)
}

/// Whether `name` is one that a run gives its directory: the prefix, a process id, and eight hexadecimal digits.
fn is_name_of_run(name: &str) -> bool {
    let parts = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(pid, random)| {
        (1..=10).contains(&pid.len())
            && pid.bytes().all(|byte| byte.is_ascii_digit())
            && random.len() == 8
            && random.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// What [`clean`] found.
#[derive(Debug, Default)]
pub struct Cleaned {
    /// The directories of dead runs and of copies that nobody holds, of this user, and whether each could be removed.
    pub own: Vec<(PathBuf, Result<(), Failure>)>,
    /// How many names like a run's belong to other users, or are no directories. They are left alone.
    pub foreign: u64,
}

/// Removes the directories of this user's runs that are dead, and of pushed copies that nobody holds.
pub fn clean() -> Result<Cleaned, Failure> {
    clean_in(&std::env::temp_dir())
}

pub(super) fn clean_in(parent: &Path) -> Result<Cleaned, Failure> {
    let fd = open_directory(parent).or_fail("open", parent.display())?;
    let mut cleaned = Cleaned::default();
    for entry in Dir::read_from(&fd).or_fail("readdir", parent.display())? {
        let entry = entry.or_fail("readdir", parent.display())?;
        let Some(name) = entry.file_name().to_str().ok().filter(|name| is_own_name(name)) else {
            continue;
        };
        let path = parent.join(name);
        let outcome = match find_in(fd.try_clone().or_fail("dup", parent.display())?, &path, name) {
            Ok(Found::Nothing | Found::InUse) => continue,
            Ok(Found::Foreign) => {
                cleaned.foreign += 1;
                continue;
            }
            Ok(Found::Ours(own)) => own.remove(),
            Ok(Found::Open(failure)) | Err(failure) => Err(failure),
        };
        cleaned.own.push((path, outcome));
    }
    Ok(cleaned)
}

/// Makes the directory of a new run at `path` and locks it. `Errno::EXIST`: something stands there, which is somebody else's.
pub(super) fn make(path: &Path) -> Result<OwnDirectory, Errno> {
    rustix::fs::mkdirat(CWD, path, Mode::RWXU)?;
    match find(path) {
        Ok(Found::Ours(own)) => Ok(own),
        // `clean` came between, and has it now.
        _ => Err(Errno::EXIST),
    }
}

#[cfg(test)]
#[path = "leftovers_tests.rs"]
mod tests;
