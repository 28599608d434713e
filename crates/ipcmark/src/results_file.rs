//! Results files: created once, appended line by line, read back whole.

use crate::derived_file::{Existing, exists};
use crate::exit::Error;
use crate::special_file;
use analysis::summary::recompute;
use model::record::{Line, Results};
use model::{Invalid, results};
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use sys::{Failure, OrFail};

/// A results file that is being written.
#[derive(Debug)]
pub struct ResultsFile {
    path: PathBuf,
    file: File,
}

impl ResultsFile {
    /// Makes the file. What is no regular file, such as /dev/null, takes lines and keeps none.
    pub fn create(path: &Path, existing: Existing) -> Result<Self, Error> {
        if let Some(file) = special_file::open(path)? {
            return Ok(Self { path: path.to_owned(), file });
        }
        if existing == Existing::Replaced && path.is_file() {
            std::fs::remove_file(path).map_err(|error| Error::of_written(path, &error))?;
        }
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        let file = file.map_err(|error| match error.kind() {
            _ if path.is_dir() => {
                Invalid::new(format!("{} is a directory", path.display()), "name a file in it with -o").into()
            }
            ErrorKind::AlreadyExists => exists(path).into(),
            _ => Error::of_written(path, &error),
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Appends one line, so that it is in the file whatever happens next.
    pub fn append(&mut self, line: &Line) -> Result<(), Failure> {
        self.file.write_all(results::to_line(line).as_bytes()).or_fail("write", self.path.display())
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Reads the results file at `path`. What follows from its samples is computed anew, also of a run that was cut off.
pub fn read(path: &Path) -> Result<Results, Error> {
    let refused = Cell::new(None);
    let file = BufReader::new(Watched { file: open(path)?, refused: &refused });
    let parsed = results::parse(file, &path.display().to_string());
    let mut results = parsed.map_err(|invalid| match refused.take() {
        Some(error) => refused_reading(path, &error),
        None => invalid.into(),
    })?;
    recompute(&mut results);
    Ok(results)
}

/// A file that notes the kernel's refusal to read it, which whoever parses what is read takes for a word of it.
struct Watched<'a> {
    file: File,
    refused: &'a Cell<Option<io::Error>>,
}

impl Read for Watched<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(bytes);
        if let Some(code) = read.as_ref().err().and_then(io::Error::raw_os_error) {
            self.refused.set(Some(io::Error::from_raw_os_error(code)));
        }
        read
    }
}

/// Reads the text file at `path`, if it is at most `longest_bytes` long.
pub fn read_text(path: &Path, longest_bytes: u64) -> Result<String, Error> {
    let mut text = String::new();
    let refuse = |error: &io::Error| Error::of_read(path, error, "name a text file");
    open(path)?.take(longest_bytes + 1).read_to_string(&mut text).map_err(|error| refuse(&error))?;
    if text.len() as u64 > longest_bytes {
        Err(refuse(&io::Error::other(format!("it is longer than {longest_bytes} bytes"))))
    } else {
        Ok(text)
    }
}

fn open(path: &Path) -> Result<File, Error> {
    let file = File::open(path).map_err(|error| refused_reading(path, &error))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(refused_reading(path, &io::Error::other("it is a directory")));
    }
    Ok(file)
}

fn refused_reading(path: &Path, error: &io::Error) -> Error {
    Error::of_read(path, error, "name a file that exists and that you may read")
}
