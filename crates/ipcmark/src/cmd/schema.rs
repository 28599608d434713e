//! `ipcmark schema`: the JSON Schemas of what ipcmark writes and what endpoints say, made from the types themselves.

use crate::cli::{SchemaArguments, SchemaOption};
use crate::exit::{Error, Exit};
use crate::output::print;
use harness::protocol::led::CoreMessage;
use model::{Line, Scenario};

/// Prints the one that is asked for.
pub fn run(arguments: &SchemaArguments) -> Result<Exit, Error> {
    let schema = match arguments.of {
        SchemaOption::Results => schemars::schema_for!(Line),
        SchemaOption::Scenario => Scenario::schema(),
        SchemaOption::Protocol => schemars::schema_for!(CoreMessage),
    };
    print(&format!("{:#}\n", schema.as_value()))?;
    Ok(Exit::Success)
}
