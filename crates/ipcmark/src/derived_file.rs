//! Files that are made of results and can be made again: pages and figures. Results themselves are not written here.
//!
//! A file of the same kind is replaced. Anything else is left alone: it may be somebody's results. A file is complete or
//! absent: it is written under another name and then renamed.

use crate::exit::Error;
use crate::special_file;
use model::Invalid;
use rustix::fs::OFlags;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use sys::{Failure, OrFail};

/// A kind of file, by what it is called and how it begins.
#[derive(Debug, Clone, Copy)]
pub struct FileKind {
    name: &'static str,
    begins: &'static [u8],
}

impl FileKind {
    /// A page of [`report::html`] or [`report::explanation_html`].
    pub const PAGE: FileKind =
        FileKind { name: "page", begins: b"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset" };
    /// A figure as [`report::svg`] draws it, or an iteration as [`report::timeline`] does.
    pub const SVG: FileKind =
        FileKind { name: "SVG figure", begins: b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg" };
    /// A flame graph of [`report::flame_graph`].
    pub const FLAMES: FileKind =
        FileKind { name: "flame graph", begins: b"<?xml version=\"1.0\" standalone=\"no\"?>" };
    /// A trace of [`report::trace`].
    pub const TRACE: FileKind = FileKind { name: "trace", begins: b"{\"traceEvents\"" };
    /// Stacks of [`report::folded`], which begin as any text may.
    pub const STACKS: FileKind = FileKind { name: "text", begins: b"" };
    /// A page of the manual.
    pub const MANUAL: FileKind = FileKind { name: "page of the manual", begins: b".ie \\n(.g .ds Aq" };
    /// A figure as [`report::png`] draws it.
    pub const PNG: FileKind = FileKind { name: "PNG figure", begins: b"\x89PNG\r\n\x1a\n" };
}

/// Writes `content` to `path`. Its directory is made, if the directory above that exists.
pub fn write(path: &Path, content: &[u8], kind: FileKind) -> Result<(), Error> {
    if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        match fs::create_dir(directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(Error::of_written(path, &error));
            }
            _ => {}
        }
    }
    check(path, kind)?;
    // What is no regular file, such as /dev/null or a pipe, takes bytes and keeps none.
    match special_file::open(path)? {
        Some(mut file) => file.write_all(content).or_fail("write", path.display()).map_err(Error::from),
        None => replace(path, content),
    }
}

/// Refuses a `path` at which there is something that [`write()`] would leave alone. For use before work that takes long.
pub fn check(path: &Path, kind: FileKind) -> Result<(), Error> {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            Err(Invalid::new(format!("{} is a directory", path.display()), "name a file in it").into())
        }
        Ok(metadata) if metadata.is_file() && !begins_as(path, kind) => Err(Invalid::new(
            format!("{} exists and is not a {} that ipcmark made", path.display(), kind.name),
            "name another file, or remove it",
        )
        .into()),
        _ => Ok(()),
    }
}

/// Whether the file at `path` can be made again, by how it begins. An empty one is worth nothing.
fn begins_as(path: &Path, kind: FileKind) -> bool {
    let mut start = Vec::new();
    // It may be a FIFO by now, which would wait.
    let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path);
    let read = file.and_then(|file| file.take(kind.begins.len() as u64).read_to_end(&mut start));
    read.is_ok() && (start == kind.begins || start.is_empty())
}

/// Writes under another name and renames to `path`, so that nobody ever reads half of it.
fn replace(path: &Path, content: &[u8]) -> Result<(), Error> {
    let beside = beside(path);
    let mut file = File::create_new(&beside).map_err(|error| Error::of_written(path, &error))?;
    let written = file.write_all(content).and_then(|()| fs::rename(&beside, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&beside);
        failed(path, error).into()
    })
}

/// A name in the directory of `path` that nobody can have taken beforehand.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!(".{name}.{}-{:08x}", std::process::id(), rand::random::<u32>()))
}

fn failed(path: &Path, error: std::io::Error) -> Failure {
    Failure::new("write", path.display(), error.to_string(), "free some room, or write it elsewhere")
}
