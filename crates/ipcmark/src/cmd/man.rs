//! `ipcmark man`: manual pages, made from the definition of the command line.

use crate::cli::{Cli, ManArguments};
use crate::exit::{Error, Exit};
use crate::output::{print, write};
use clap::CommandFactory;
use model::Invalid;

/// Prints the page of `ipcmark`, or writes the pages of all commands into a directory.
pub fn run(arguments: ManArguments) -> Result<Exit, Error> {
    match &arguments.directory {
        None => write(|out| clap_mangen::Man::new(Cli::command()).render(out))?,
        Some(directory) => {
            clap_mangen::generate_to(Cli::command(), directory).map_err(|error| {
                let problem = format!("the pages cannot be written to {}: {error}", directory.display());
                Invalid::new(problem, "name a directory that exists and that you may write")
            })?;
            print(&format!("wrote the manual pages to {}\n", directory.display()))?;
        }
    }
    Ok(Exit::Success)
}
