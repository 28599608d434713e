//! Words in rows and columns, of which tables of any form are made. Where they stand is decided in `layout`, `markdown`
//! and the pages.

/// Words in rows and columns.
pub(crate) struct Grid {
    /// What it is.
    pub(crate) heading: String,
    /// The heads of the columns after the names.
    pub(crate) columns: Vec<String>,
    /// A name and as many cells as there are columns.
    pub(crate) rows: Vec<(String, Vec<String>)>,
    /// What is to be said under it.
    pub(crate) below: Vec<String>,
}
