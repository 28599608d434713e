//! What a check finds wrong. It checks nothing.

use super::source_file::SourceFile;
use std::fmt;

/// What is wrong at one place.
#[derive(Debug, PartialEq, Eq)]
pub struct Breach {
    /// The file.
    pub file: String,
    /// The line; `None`: the file as a whole.
    pub line: Option<usize>,
    /// What is wrong, in words.
    pub message: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

impl Breach {
    /// What is wrong in `source`.
    pub fn new(source: &SourceFile, line: impl Into<Option<usize>>, message: impl Into<String>) -> Self {
        Self { file: source.name.clone(), line: line.into(), message: message.into() }
    }
}
