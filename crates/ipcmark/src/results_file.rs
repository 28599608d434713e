//! Results files: created once, appended line by line, read back whole.

use crate::special_file;
use analysis::summary::{recompute, warnings};
use model::record::{Line, Results};
use model::{Invalid, results};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use sys::{Failure, OrFail};

/// A results file that is being written.
#[derive(Debug)]
pub struct ResultsFile {
    path: PathBuf,
    file: File,
}

impl ResultsFile {
    /// Makes the file. What exists is never overwritten, except what is no regular file, such as /dev/null.
    pub fn create(path: &Path) -> Result<Self, Invalid> {
        if let Some(file) = special_file::open(path)? {
            return Ok(Self { path: path.to_owned(), file });
        }
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        let file = file.map_err(|error| match error.kind() {
            _ if path.is_dir() => {
                Invalid::new(format!("{} is a directory", path.display()), "name a file in it with -o")
            }
            ErrorKind::AlreadyExists => Invalid::new(
                format!("{} exists, and results are never overwritten", path.display()),
                "name another file with -o, or remove it",
            ),
            _ => Invalid::new(
                format!("{} cannot be written: {error}", path.display()),
                "name a file in a directory that exists and that you may write",
            ),
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

/// Reads the results file at `path`. Where the run was cut off, its cases have the summaries of what was measured by then.
pub fn read(path: &Path) -> Result<Results, Invalid> {
    let mut results = results::parse(BufReader::new(open(path)?), &path.display().to_string())?;
    if results.end.is_none() {
        summarise_unfinished(&mut results);
    }
    Ok(results)
}

/// Summarises all cases, so that all know the same full speed of the host, and warns of those that had no summary yet.
fn summarise_unfinished(results: &mut Results) {
    let unfinished: Vec<bool> = results.records.iter().map(|record| record.summary.is_none()).collect();
    recompute(results);
    let precision = results.header.settings.precision;
    for (record, _) in results.records.iter_mut().zip(unfinished).filter(|(_, unfinished)| *unfinished) {
        let found = record.summary.as_ref();
        record.warnings.extend(
            found.into_iter().flat_map(|found| {
                warnings(&record.case, found, &record.settings, precision.of(&record.case).0)
            }),
        );
    }
}

/// Reads the text file at `path`, if it is at most `longest_bytes` long.
pub fn read_text(path: &Path, longest_bytes: u64) -> Result<String, Invalid> {
    let mut text = String::new();
    let refuse =
        |why: String| Invalid::new(format!("{} cannot be read: {why}", path.display()), "name a text file");
    open(path)?
        .take(longest_bytes + 1)
        .read_to_string(&mut text)
        .map_err(|error| refuse(error.to_string()))?;
    if text.len() as u64 > longest_bytes {
        Err(refuse(format!("it is longer than {longest_bytes} bytes")))
    } else {
        Ok(text)
    }
}

fn open(path: &Path) -> Result<File, Invalid> {
    let refuse = |why: &dyn std::fmt::Display| {
        Invalid::new(
            format!("{} cannot be read: {why}", path.display()),
            "name a file that exists and that you may read",
        )
    };
    let file = File::open(path).map_err(|error| refuse(&error))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(refuse(&"it is a directory"));
    }
    Ok(file)
}
