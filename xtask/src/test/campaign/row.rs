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

    /// Of `part`, with all that went wrong. The table has the first of it, and standard error all.
    pub fn found(part: &str, done: String, wrong: &[String]) -> Self {
        wrong.iter().for_each(|wrong| eprintln!("{part}: {wrong}"));
        let found =
            wrong.first().map_or("nothing".to_owned(), |first| format!("**{} times**: {first}", wrong.len()));
        Self::new(part, done, found)
    }
}
