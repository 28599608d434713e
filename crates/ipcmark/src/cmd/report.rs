//! `ipcmark report`: shows results files.

use crate::cli::Report;
use crate::exit::{Error, Exit};
use crate::output::{style, write};
use crate::results_file;

/// Reads every file before it shows any, so that a bad one is said first.
pub fn run(arguments: &Report) -> Result<Exit, Error> {
    let all = arguments.files.iter().map(|path| results_file::read(path)).collect::<Result<Vec<_>, _>>()?;
    for results in &all {
        write(|out| arguments.show.format.write(results, &style(), out))?;
    }
    Ok(Exit::Success)
}
