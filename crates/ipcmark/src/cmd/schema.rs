//! `ipcmark schema`: the JSON Schema of one line of a results file, made from the types that write it.

use crate::exit::{Error, Exit};
use crate::output::print;
use model::Line;

/// Prints it.
pub fn run() -> Result<Exit, Error> {
    let schema = schemars::schema_for!(Line);
    print(&format!("{:#}\n", schema.as_value()))?;
    Ok(Exit::Success)
}
