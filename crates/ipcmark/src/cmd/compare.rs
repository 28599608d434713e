//! `ipcmark compare`
use crate::cli::Compare;
use crate::exit::{Error, Exit};
/// TODO
pub fn run(_: &Compare) -> Result<Exit, Error> { Ok(Exit::Success) }
