//! `ipcmark man`: manual pages, made from the definition of the command line.

use crate::cli::{Cli, ManArguments};
use crate::derived_file::{self, Existing};
use crate::exit::{Error, Exit};
use crate::output::{print, write};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::path::Path;
use sys::OrFail;

/// Prints the page of `ipcmark`, or writes the pages of all commands into a directory.
pub fn run(arguments: ManArguments) -> Result<Exit, Error> {
    match &arguments.directory {
        None => write(|out| Man::new(Cli::command()).render(out))?,
        Some(directory) => {
            let mut command = Cli::command().disable_help_subcommand(true);
            command.build();
            write_pages(command, directory, arguments.existing.into())?;
            print(&format!("wrote the manual pages to {}\n", directory.display()))?;
        }
    }
    Ok(Exit::Success)
}

/// Writes the page of `command`, which has been built, and those of its sub-commands.
fn write_pages(command: Command, directory: &Path, existing: Existing) -> Result<(), Error> {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write_pages(command.clone(), directory, existing)?;
    }
    let page = Man::new(command);
    let path = directory.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text).or_fail("write", path.display())?;
    derived_file::write(&path, &text, existing)
}
