//! `ipcmark schema`: the JSON Schemas of the files that ipcmark writes, made from the types that write them.

use crate::cli::{SchemaArguments, SchemaOption};
use crate::exit::{Error, Exit};
use crate::output::print;
use model::{Line, Scenario};

/// Prints the one that is asked for.
pub fn run(arguments: &SchemaArguments) -> Result<Exit, Error> {
    let schema = match arguments.of {
        SchemaOption::Results => schemars::schema_for!(Line),
        SchemaOption::Scenario => Scenario::schema(),
    };
    print(&format!("{:#}\n", schema.as_value()))?;
    Ok(Exit::Success)
}
