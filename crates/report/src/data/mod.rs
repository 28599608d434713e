//! Results for other programs: CSV, JSON and traces.

pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod rows;
pub(crate) mod study_csv;
pub(crate) mod trace;
mod written;
