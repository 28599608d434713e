//! Files that are made of results: pages, figures, traces, manual pages. Results themselves are not written here.
//!
//! A file is complete or absent: it is written under another name and then renamed. One that exists is replaced if `--overwrite` is
//! given, and left alone otherwise.

use crate::exit::Error;
use crate::special_file;
use model::Invalid;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use sys::{Errno, Failure, OrFail};

/// Whether files that exist are replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Existing {
    /// They are left alone, and it is an error to name one.
    #[default]
    Kept,
    /// They are replaced.
    Replaced,
}

impl From<bool> for Existing {
    fn from(overwrite: bool) -> Self {
        if overwrite { Existing::Replaced } else { Existing::Kept }
    }
}

/// Writes `content` to `path`. Its directory is made, if the directory above that exists.
pub fn write(path: &Path, content: &[u8], existing: Existing) -> Result<(), Error> {
    if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        match fs::create_dir(directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(Error::of_written(path, &error));
            }
            _ => {}
        }
    }
    check(path, existing)?;
    // What is no regular file, such as /dev/null or a pipe, takes bytes and keeps none.
    match special_file::open(path)? {
        Some(mut file) => file.write_all(content).or_fail("write", path.display()).map_err(Error::from),
        None => put(path, content, existing),
    }
}

/// Refuses a `path` at which there is something that is to stay. For use before work that takes long.
pub fn check(path: &Path, existing: Existing) -> Result<(), Error> {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            Err(Invalid::new(format!("{} is a directory", path.display()), "name a file in it").into())
        }
        Ok(metadata) if metadata.is_file() && existing == Existing::Kept => Err(exists(path).into()),
        _ => Ok(()),
    }
}

/// That a file is in the way, and how it is replaced.
pub fn exists(path: &Path) -> Invalid {
    Invalid::new(format!("{} exists", path.display()), "name another file, or replace it with --overwrite")
}

/// Writes under another name and renames to `path`, so that nobody ever reads half of it.
fn put(path: &Path, content: &[u8], existing: Existing) -> Result<(), Error> {
    let beside = beside(path);
    let mut file = File::create_new(&beside).map_err(|error| Error::of_written(path, &error))?;
    let written = file.write_all(content).and_then(|()| rename(&beside, path, existing));
    written.map_err(|error| {
        let _ = fs::remove_file(&beside);
        match error.kind() {
            ErrorKind::AlreadyExists => exists(path).into(),
            _ => failed(path, error).into(),
        }
    })
}

/// Renames `from` to `to`. A file that appeared there after it was looked for is left alone too, where the file system can do that.
fn rename(from: &Path, to: &Path, existing: Existing) -> io::Result<()> {
    if existing == Existing::Kept {
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS) => {}
            other => return other.map_err(io::Error::from),
        }
    }
    fs::rename(from, to)
}

/// A name in the directory of `path` that nobody can have taken beforehand.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!(".{name}.{}-{:08x}", std::process::id(), rand::random::<u32>()))
}

fn failed(path: &Path, error: io::Error) -> Failure {
    Failure::new("write", path.display(), error.to_string(), "free some room, or write it elsewhere")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_appears_while_another_is_written_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("page.html");
        put(&path, b"mine", Existing::Kept).unwrap();
        // As if somebody else had made it after `check`.
        assert!(matches!(put(&path, b"other", Existing::Kept), Err(Error::Invalid(_))));
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        put(&path, b"new", Existing::Replaced).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing else is left");
    }
}
