//! Lines of CSV as bytes.

use std::io;

/// What `lines` hold. It is written in one go, for the library hides what kind of error a writer had, and that a reader
/// has gone is no failure.
pub(crate) fn written(lines: ::csv::Writer<Vec<u8>>) -> io::Result<Vec<u8>> {
    lines.into_inner().map_err(::csv::IntoInnerError::into_error)
}
