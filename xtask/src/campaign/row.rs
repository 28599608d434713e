//! A line of the campaign's table.

/// One line of the table.
pub struct Row {
    pub part: String,
    pub done: String,
    pub found: String,
}

impl Row {
    /// Of `part`, what was done of it, and what that found.
    pub fn new(part: impl Into<String>, done: impl Into<String>, found: impl Into<String>) -> Self {
        Self { part: part.into(), done: done.into(), found: found.into() }
    }
}
