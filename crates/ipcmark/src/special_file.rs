//! Files that are not regular, such as /dev/null, /dev/stdout and pipes, opened for writing because the user named one.
//!
//! In a directory that others may write, what a name stands for can change from one call to the next, and a FIFO may be somebody
//! else's ear. So nothing is made or cut here, and what was opened is checked once more.

use crate::exit::Error;
use model::Invalid;
use rustix::fs::statfs;
use rustix::process::geteuid;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Opens what stands at `path` if it is neither a regular file nor a directory; `None` otherwise.
pub fn open(path: &Path) -> Result<Option<File>, Error> {
    let Ok(found) = path.metadata() else { return Ok(None) };
    if found.is_file() || found.is_dir() {
        return Ok(None);
    }
    if found.file_type().is_fifo() && is_of_another(&found) && !is_nameless(path) {
        return Err(Invalid::new(
            format!("{} is a FIFO of another user, who would get what is written", path.display()),
            "name another file",
        )
        .into());
    }
    let file = OpenOptions::new().write(true).open(path);
    let file = file.map_err(|error| Error::of_written(path, &error))?;
    match file.metadata() {
        Ok(opened) if (opened.dev(), opened.ino()) == (found.dev(), found.ino()) => Ok(Some(file)),
        _ => Err(Error::of_written(path, &io::Error::other("something else was put in its place meanwhile"))),
    }
}

fn is_of_another(found: &Metadata) -> bool {
    ![0, geteuid().as_raw()].contains(&found.uid())
}

/// Whether it is a pipe without a name, which only who holds it can name (/dev/stdout): its maker gave it to this process.
fn is_nameless(path: &Path) -> bool {
    const PIPEFS_MAGIC: i64 = 0x5049_5045;
    statfs(path).is_ok_and(|file_system| file_system.f_type == PIPEFS_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    #[test]
    fn only_what_is_not_regular_is_opened_and_no_fifo_of_another_user() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("file"), "precious").unwrap();
        assert!(open(&at("file")).unwrap().is_none() && open(&at("missing")).unwrap().is_none());
        assert!(open(directory.path()).unwrap().is_none());
        assert!(open(Path::new("/dev/null")).unwrap().is_some());
        let (_reader, writer) = rustix::pipe::pipe().unwrap();
        let nameless = format!("/proc/self/fd/{}", rustix::fd::AsRawFd::as_raw_fd(&writer));
        assert!(open(Path::new(&nameless)).unwrap().is_some());
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        if geteuid().is_root() {
            std::os::unix::fs::chown(at("fifo"), Some(65_534), None).unwrap();
            // There is no reader: an open would wait for ever.
            let refused = open(&at("fifo")).unwrap_err();
            assert!(format!("{refused:?}").contains("a FIFO of another user"), "{refused:?}");
        }
        std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert!(open(&at("socket")).is_err());
        assert_eq!(std::fs::read(at("file")).unwrap(), b"precious");
    }
}
