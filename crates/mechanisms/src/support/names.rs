//! Names outside of the file system: recorded before the object is made, and removed with it. Not a mechanism itself.
//!
//! A record is believed only where nobody else can have written it: see [`remove_recorded`].

use crate::contract::TrialContext;
use crate::support::probe::support_of;
use model::card::Support;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{
    Access, AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, access, fstat, mkdirat, open, openat, stat,
    statat, unlinkat,
};
use rustix::process::{getegid, geteuid};
use std::ffi::CStr;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use sys::name::ObjectName;
use sys::sysv::{self, SysvKind};
use sys::{Errno, Failure, OrFail};

impl TrialContext<'_> {
    /// Makes the object `name` by `make`, and records before in the directory of the run that it is about to be made. If this
    /// process is killed, whoever removes the directory removes the object too.
    ///
    /// An object that is there already belongs to somebody else. It is left alone, and that is the failure.
    pub(crate) fn make_named<T>(
        &self,
        name: ObjectName,
        make: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<(T, Registered), Failure> {
        let registered = self.register(name)?;
        match make() {
            Err(failure) if failure.errno == Some(Errno::EXIST) => {
                registered.disown();
                Err(failure)
            }
            made => Ok((made?, registered)),
        }
    }

    /// Records in the directory of the run that `name` is about to be made, for names that no other run can have: see
    /// [`make_named`](Self::make_named).
    pub(crate) fn register(&self, name: ObjectName) -> Result<Registered, Failure> {
        let mut note = self.path().into_os_string();
        note.push(format!(".{}{NOTE}", name.to_string().replace([' ', '/'], "-")));
        let note = PathBuf::from(note);
        // It must be new: an open that follows or truncates what lies there would write into another file.
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&note)
            .or_fail("open", note.display())?;
        file.write_all(name.to_string().as_bytes()).or_fail("write", note.display())?;
        Ok(Registered { name: Some(name), note })
    }

    /// A name for a POSIX object `what`, which no other trial of any run has.
    pub(crate) fn posix_name(&self, what: &str) -> String {
        // It begins with "ipcmark-", because the directory of every run does.
        let run = self.directory.file_name().unwrap_or_default().to_string_lossy();
        format!("/{run}-{}-{what}", self.number)
    }
}

/// How the names of the files end that record names.
const NOTE: &str = ".name";
/// The longest record, in bytes: a file name is shorter.
const LONGEST_NOTE_BYTES: usize = 512;

/// A name that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Registered {
    /// `None`: it is somebody else's.
    name: Option<ObjectName>,
    note: PathBuf,
}

impl Registered {
    /// Gives up the name, which could not be made.
    fn disown(mut self) {
        self.name = None;
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if self.name.as_ref().is_none_or(|name| name.remove().is_ok()) {
            // If the file remains, whoever removes the directory finds that the name is gone.
            let _ = std::fs::remove_file(&self.note);
        }
    }
}

/// Removes the objects that are recorded in `directory`, which is that of the run `run` and belongs to this user alone.
///
/// A record is read only if it is a small regular file of this user with one name. Nothing else is opened: a FIFO would
/// wait, a device act, and a link lead elsewhere. What is recorded is removed only if it is a name of this run or, where
/// names cannot tell, if this user made the object after the record. Fails where a filter of system calls kills who removes one.
pub fn remove_recorded(directory: impl AsFd, run: &str) -> Result<(), Failure> {
    let Ok(entries) = Dir::read_from(&directory) else { return Ok(()) };
    for entry in entries.map_while(Result::ok) {
        if !entry.file_name().to_bytes().ends_with(NOTE.as_bytes()) {
            continue;
        }
        if let Some((name, since_s)) = read_note(directory.as_fd(), entry.file_name())
            && name.is_of(run)
        {
            // What cannot be removed belongs to somebody else.
            let remove = || {
                let _ = name.remove_noted(since_s);
            };
            if !sys::seccomp::outlives(remove) {
                return Err(Failure::new("remove", &name, sys::seccomp::cause(), sys::seccomp::REMEDY));
            }
            remove();
        }
    }
    Ok(())
}

/// The name that `note` records, and the second from which on the object may have been made.
fn read_note(directory: BorrowedFd<'_>, note: &CStr) -> Option<(ObjectName, i64)> {
    /// The kernel dates a file by a finer clock than a System V object, whose second may be the one before that of an older file.
    const CLOCKS_APART_S: i64 = 1;
    is_note(&statat(directory, note, AtFlags::SYMLINK_NOFOLLOW).ok()?).then_some(())?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(directory, note, flags, Mode::empty()).ok()?;
    // Another file may stand there by now: what counts is what was opened.
    let opened = fstat(&file).ok().filter(is_note)?;
    let mut text = String::new();
    std::fs::File::from(file).take(LONGEST_NOTE_BYTES as u64).read_to_string(&mut text).ok()?;
    Some((text.parse().ok()?, opened.st_mtime as i64 - CLOCKS_APART_S))
}

fn is_note(file: &Stat) -> bool {
    FileType::from_raw_mode(file.st_mode) == FileType::RegularFile
        && file.st_uid == geteuid().as_raw()
        && file.st_nlink == 1
        && (0..=LONGEST_NOTE_BYTES as i64).contains(&file.st_size)
}

/// Whether a run can have a directory. Without one, no name can be recorded, and none may be made.
pub fn probe_names() -> Support {
    const REMEDY: &str = "set TMPDIR to a directory that you may write";
    let directory = std::env::temp_dir();
    let no = |reason: String, remedy: &str| Support::No { reason, remedy: remedy.to_owned() };
    match (writable(&directory, REMEDY), stat(&directory)) {
        (Support::Yes { .. }, Ok(found)) if !is_safe(&found) => no(
            format!("other users may rename and remove what lies in {}", directory.display()),
            "set TMPDIR to a directory of your own, or to one with the sticky bit, as /tmp has",
        ),
        // Endpoints are told of it in JSON.
        (Support::Yes { .. }, _) if directory.to_str().is_none() => {
            no(format!("the path {} is not UTF-8", directory.display()), REMEDY)
        }
        (Support::Yes { .. }, _) => match try_directory(&directory) {
            Ok(()) => Support::UNLIMITED,
            Err(failure) => {
                no(format!("{} {}: {}", failure.operation, failure.object, failure.answer), REMEDY)
            }
        },
        (support, _) => support,
    }
}

/// Whether something can be made in `directory`: a file system may be full, or refuse what its mode allows. Files without a name leave
/// nothing if this process is killed; where there are none, a directory is made and removed, under a name that `ipcmark clean` knows.
fn try_directory(directory: &Path) -> Result<(), Failure> {
    let nameless = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match open(directory, nameless, Mode::RUSR | Mode::WUSR) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {}
        made => return made.map(drop).or_fail("make something in", directory.display()),
    }
    let tried = directory.join(format!("ipcmark-run-{}-{:08x}", std::process::id(), rand::random::<u32>()));
    match mkdirat(CWD, &tried, Mode::RWXU) {
        // Another name may be free.
        Err(Errno::EXIST) => return Ok(()),
        made => made.or_fail("mkdir", directory.display())?,
    }
    // `clean` may have come first.
    let _ = unlinkat(CWD, &tried, AtFlags::REMOVEDIR);
    Ok(())
}

/// The same for System V objects of `kind`, which are recorded there.
pub(crate) fn probe_sysv(kind: SysvKind) -> Support {
    match probe_names() {
        Support::Yes { .. } => support_of(sysv::probe(kind)),
        no => no,
    }
}

/// Whether nobody but root, its owner and members of this user's own group can put something else in place of what this user makes
/// in `directory`. Where the file mode mask is 002, directories are made for the group too, of which the user is often the only member.
fn is_safe(directory: &Stat) -> bool {
    const STICKY: u32 = 0o1000;
    let mode = directory.st_mode;
    let is_groups = mode & 0o020 != 0 && directory.st_gid != getegid().as_raw();
    let is_owners = mode & 0o002 == 0 && !is_groups && [0, geteuid().as_raw()].contains(&directory.st_uid);
    mode & STICKY != 0 || is_owners
}

/// Whether files can be made in `directory`. `remedy` says what to do if not.
pub(crate) fn writable(directory: &Path, remedy: &str) -> Support {
    match access(directory, Access::WRITE_OK | Access::EXEC_OK).or_fail("access", directory.display()) {
        Ok(()) => Support::UNLIMITED,
        Err(failure) => Support::No {
            reason: format!("{} {}: {}", failure.operation, failure.object, failure.answer),
            remedy: remedy.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Shape;
    use model::{Params, Workload};
    use rustix::fs::{linkat, mknodat};
    use std::fs;
    use sys::sysv::{SysvKey, SysvSemaphores};

    const RUN: &str = "ipcmark-run-1-0000abcd";

    /// A directory of the run [`RUN`], in one that is removed at the end.
    fn run_directory() -> (tempfile::TempDir, PathBuf) {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join(RUN);
        fs::create_dir(&path).unwrap();
        (parent, path)
    }

    fn with_trial<T>(directory: &Path, number: u64, what: impl FnOnce(TrialContext<'_>) -> T) -> T {
        let shape = Shape { size_bytes: 1, workload: Workload::Latency };
        what(TrialContext { params: &Params::default(), shape, directory, number, network: None })
    }

    fn noted(directory: &Path) -> Vec<ObjectName> {
        let fd = fs::File::open(directory).unwrap();
        let entries = Dir::read_from(&fd).unwrap().map(Result::unwrap);
        entries.filter_map(|entry| Some(read_note(fd.as_fd(), entry.file_name())?.0)).collect()
    }

    #[test]
    fn names_differ_between_trials_and_their_records_are_removed_with_them() {
        let (_parent, directory) = run_directory();
        let posix_name = |number, what| with_trial(&directory, number, |trial| trial.posix_name(what));
        let name = ObjectName::PosixMq(posix_name(1, "to-server"));
        assert_ne!(posix_name(1, "to-client"), posix_name(1, "to-server"));
        assert_ne!(posix_name(2, "to-server"), posix_name(1, "to-server"));
        assert!(name.is_of(RUN) && !name.is_of("ipcmark-run-1-0000abc"));
        let registered = with_trial(&directory, 1, |trial| trial.register(name.clone())).unwrap();
        assert_eq!(noted(&directory), [name]);
        drop(registered);
        assert_eq!(noted(&directory), []);
    }

    #[test]
    fn an_object_that_was_there_before_is_left_alone() {
        let (_parent, directory) = run_directory();
        let key = SysvKey::hashed(&directory);
        let theirs = SysvSemaphores::create(key, 1, false).unwrap();
        let made = with_trial(&directory, 1, |trial| {
            trial.make_named(ObjectName::SysvSem(key), || SysvSemaphores::create(key, 1, false))
        });
        let failure = made.unwrap_err();
        assert!(failure.errno == Some(Errno::EXIST) && failure.next.contains("left alone"), "{failure}");
        assert_eq!(theirs.add(0, 1), Ok(()));
        assert_eq!(noted(&directory), []);
        ObjectName::SysvSem(key).remove().unwrap();
    }

    #[test]
    fn what_is_recorded_is_removed_if_it_was_made_later_and_is_of_this_run() {
        let (_parent, directory) = run_directory();
        let [older, newer] = ["older", "newer"].map(|of| SysvKey::hashed((&directory, of)));
        let earlier = SysvSemaphores::create(older, 1, false).unwrap();
        let fd = fs::File::open(&directory).unwrap();
        let note = |name: &str, text: String| fs::write(directory.join(name), text).unwrap();
        note("1.name", ObjectName::SysvSem(newer).to_string());
        let later = SysvSemaphores::create(newer, 1, false).unwrap();
        note("2.name", ObjectName::SysvSem(older).to_string());
        // The record is written three seconds after the object was made.
        let date = directory.metadata().unwrap().modified().unwrap() + std::time::Duration::from_secs(3);
        fs::File::options().write(true).open(directory.join("2.name")).unwrap().set_modified(date).unwrap();
        let foreign = format!("ipcmark-run-2-{:08x}-1-memory", std::process::id());
        let shm = Path::new("/dev/shm").join(&foreign);
        fs::write(&shm, "").unwrap();
        note("3.name", ObjectName::PosixShm(format!("/{foreign}")).to_string());
        remove_recorded(&fd, RUN).unwrap();
        assert_eq!(earlier.add(0, 1), Ok(()), "what was there before the record was removed");
        assert_eq!(later.add(0, 1), Err(Errno::PIPE), "what was made after the record is still there");
        assert!(shm.exists(), "a name of another run was removed");
        fs::remove_file(shm).unwrap();
        ObjectName::SysvSem(older).remove().unwrap();
    }

    /// Every file that is no record: none is opened for longer than it takes to see that, none is followed, none is believed.
    #[test]
    fn what_is_no_small_file_of_ours_is_no_record() {
        let (parent, directory) = run_directory();
        let name = ObjectName::SysvSem(SysvKey::hashed(&directory)).to_string();
        let set = SysvSemaphores::create(SysvKey::hashed(&directory), 1, false).unwrap();
        let outside = parent.path().join("outside");
        fs::write(&outside, &name).unwrap();
        let at = |name: &str| directory.join(name);
        std::os::unix::fs::symlink(&outside, at("link.name")).unwrap();
        linkat(CWD, &outside, CWD, at("hard-link.name"), AtFlags::empty()).unwrap();
        mknodat(CWD, at("fifo.name"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket.name")).unwrap();
        fs::create_dir(at("directory.name")).unwrap();
        fs::File::create(at("huge.name")).unwrap().set_len(1 << 30).unwrap();
        fs::write(at("noise.name"), [0xff, 0, 0x1b]).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("device.name")).unwrap();
        if geteuid().is_root() {
            // Of another user, and a device that never ends.
            fs::write(at("other.name"), &name).unwrap();
            std::os::unix::fs::chown(at("other.name"), Some(65_534), None).unwrap();
            let zero = rustix::fs::makedev(1, 5);
            let _ = mknodat(CWD, at("zero.name"), FileType::CharacterDevice, Mode::RUSR, zero);
        }
        assert_eq!(noted(&directory), []);
        remove_recorded(fs::File::open(&directory).unwrap(), RUN).unwrap();
        assert_eq!(set.add(0, 1), Ok(()));
        // The same text in a file of ours is a record.
        fs::write(at("good.name"), &name).unwrap();
        assert_eq!(noted(&directory).len(), 1);
        ObjectName::SysvSem(SysvKey::hashed(&directory)).remove().unwrap();
    }

    #[test]
    fn a_directory_in_which_others_rename_is_not_safe() {
        let own = geteuid().as_raw();
        let directory = tempfile::tempdir().unwrap();
        let mut found = stat(directory.path()).unwrap();
        let group = getegid().as_raw();
        for (mode, owner, group, safe) in [
            (0o700, own, group, true),
            (0o755, 0, group, true),
            (0o1777, 0, group, true),
            (0o775, own, group, true),
            (0o775, own, group + 1, false),
            (0o777, own, group, false),
            (0o755, own + 1, group, false),
        ] {
            found.st_mode = (found.st_mode & !0o7777) | mode;
            (found.st_uid, found.st_gid) = (owner, group);
            assert_eq!(is_safe(&found), safe, "{mode:o} {owner} {group}");
        }
    }
}
