//! Each message in an unlinked temporary file of its own, whose descriptor is sent over a Unix socket.
//!
//! The steps are those of the study that compares files with sockets: open, unlink, write, sendmsg, close; and
//! recvmsg, lseek, read, close.

use crate::contract::{StepTrace, TrialContext};
use crate::support::cards::FILE_PER_MESSAGE;
use crate::support::file_per_message::{MessageFile, write_all};
use crate::support::names::{Registered, probe_names, writable};
use crate::support::probe::support_of;
use crate::support::wait::WAIT;
use model::card::{Card, Support};
use model::record::Setting;
use model::{Domain, Param, Params};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, SeekFrom, open, seek, statfs, unlink};
use rustix::io::read;
use std::path::{Path, PathBuf};
use sys::name::ObjectName;
use sys::{Errno, Failure, OrFail};

/// A temporary file.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    path: PathBuf,
    file_system: &'static str,
    /// The record of the name, if it is outside of the run's directory.
    _registered: Option<Registered>,
}

const ON: Param = Param {
    name: "on",
    summary: "the file system: tmpfs at /dev/shm, or the disk that holds the directory for temporary files",
    domain: Domain::Choice(&["tmpfs", "disk"]),
    default: Some("tmpfs"),
};

/// The directory where every Linux machine has a tmpfs (shm_overview(7)).
const SHM: &str = "/dev/shm";

impl MessageFile for TemporaryFile {
    const CARD: Card = Card {
        name: "file-pass",
        summary: "each message in an unlinked file, whose descriptor is sent",
        empty: true,
        params: &[ON, WAIT],
        limits: "room on the file system; a new file for each message, which the receiver reads",
        man: &["open(2)", "unlink(2)", "unix(7)", "lseek(2)"],
        ..FILE_PER_MESSAGE
    };

    fn probe(params: &Params) -> Support {
        let on_disk = params.text(&Self::CARD, ON.name) == Some("disk");
        let directory = if on_disk { std::env::temp_dir() } else { PathBuf::from(SHM) };
        let remedy =
            "mount a tmpfs that you may write at /dev/shm; for on=disk set TMPDIR to a directory on a disk";
        match file_system(&directory) {
            Ok(name) if (name == "tmpfs") == on_disk => {
                let reason = format!("the file system of {} is {name}", directory.display());
                Support::No { reason, remedy: remedy.to_owned() }
            }
            Ok(_) => match writable(&directory, remedy) {
                Support::Yes { .. } => probe_names(),
                no => no,
            },
            failed => support_of(failed),
        }
    }

    fn prepare(trial: &TrialContext<'_>, endpoint: &'static str) -> Result<Self, Failure> {
        let path = trial.path().with_extension(endpoint);
        if trial.params.text(&Self::CARD, ON.name) == Some("disk") {
            return Ok(Self { file_system: file_system(trial.directory)?, path, _registered: None });
        }
        let name = trial.posix_name(endpoint);
        let registered = trial.register(ObjectName::PosixShm(name.clone()))?;
        let path = Path::new(SHM).join(name.trim_start_matches('/'));
        Ok(Self { file_system: file_system(Path::new(SHM))?, path, _registered: Some(registered) })
    }

    #[inline(always)]
    fn write(&mut self, bytes: &[u8], trace: &mut impl StepTrace) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = open(&self.path, flags, Mode::RUSR | Mode::WUSR)?;
        trace.step_ended("open");
        unlink(&self.path)?;
        trace.step_ended("unlink");
        write_all(&file, bytes)?;
        trace.step_ended("write");
        Ok(file)
    }

    #[inline(always)]
    fn read(file: &OwnedFd, into: &mut [u8], trace: &mut impl StepTrace) -> Result<usize, Errno> {
        seek(file, SeekFrom::Start(0))?;
        trace.step_ended("lseek");
        let mut count = 0;
        while count < into.len() {
            match read(file, &mut into[count..]) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        trace.step_ended("read");
        Ok(count)
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting {
            name: "file system".to_owned(),
            asked: None,
            got: self.file_system.to_owned(),
            clamped: false,
            usual: None,
        }]
    }
}

/// The file system on which `path` is (statfs(2)).
fn file_system(path: &Path) -> Result<&'static str, Failure> {
    Ok(match statfs(path).or_fail("statfs", path.display())?.f_type as u32 {
        0x0102_1994 => "tmpfs",
        0xef53 => "ext4",
        0x9123_683e => "btrfs",
        0x5846_5342 => "xfs",
        0x794c_7630 => "overlay",
        0x2fc1_2fc1 => "zfs",
        0xf2f5_2010 => "f2fs",
        _ => "of an unknown kind",
    })
}
