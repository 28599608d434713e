//! `ipcmark completions`: a completion script, made from the definition of the command line and the registry.

use crate::cli::{Cli, CompletionsArguments};
use crate::exit::{Error, Exit};
use crate::output::write;
use crate::suites::SUITES;
use clap::CommandFactory;
use clap::builder::PossibleValuesParser;
use mechanisms::registry::CARDS;

/// Prints it.
pub fn run(arguments: CompletionsArguments) -> Result<Exit, Error> {
    let cards = || CARDS.iter().map(|card| card.name);
    let names = PossibleValuesParser::new(cards());
    let suites = PossibleValuesParser::new(cards().chain(SUITES.iter().map(|(name, _)| *name)));
    let mut command = Cli::command()
        .mut_subcommand("run", |run| run.mut_arg("what", |arg| arg.value_parser(suites)))
        .mut_subcommand("explain", |explain| explain.mut_arg("what", |arg| arg.value_parser(names.clone())))
        .mut_subcommand("list", |list| list.mut_arg("names", |arg| arg.value_parser(names)));
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "ipcmark", &mut script);
    write(|out| out.write_all(&script))?;
    Ok(Exit::Success)
}
