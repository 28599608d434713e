//! What can be typed about endpoints that are other programs: `endpoint`, `driver`, and the options of `run`.

use super::examples;
use clap::{Args, Subcommand};

/// Whose programs the endpoints are.
#[derive(Debug, Clone, Default, Args)]
pub struct EndpointOptions {
    /// Have this command be both endpoints, of every mechanism that names no driver: it speaks the protocol of docs/reference/protocol.md
    #[arg(long, value_name = "COMMAND")]
    pub endpoint: Option<String>,
    /// Have this command be the client
    #[arg(long, value_name = "COMMAND")]
    pub client_endpoint: Option<String>,
    /// Have this command be the server
    #[arg(long, value_name = "COMMAND")]
    pub server_endpoint: Option<String>,
}

impl EndpointOptions {
    /// Whether any is typed.
    pub fn are_typed(&self) -> bool {
        self.endpoint.is_some() || self.client_endpoint.is_some() || self.server_endpoint.is_some()
    }
}

/// `ipcmark endpoint`.
#[derive(Debug, Args)]
#[command(after_help = examples::ENDPOINT, long_about = "Take part in trials that a coordinator leads over standard input and output.\n\n\
        `ipcmark run --server-via COMMAND` starts it through COMMAND. It speaks the protocol of docs/reference/protocol.md, opens no port \
        but those of the mechanisms that it is told to measure, and ends when its standard input does.")]
pub struct EndpointArguments {
    /// What to do instead
    #[command(subcommand)]
    pub command: EndpointCommand,
}

/// The sub-commands of `ipcmark endpoint`.
#[derive(Debug, Subcommand)]
pub enum EndpointCommand {
    /// Check that the endpoint that a command starts or reaches keeps the protocol
    Check {
        /// Driver that is built, by its name, or a command, such as ipcmark endpoint, with its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
}

/// `ipcmark driver`.
#[derive(Debug, Args)]
#[command(after_help = examples::DRIVER)]
pub struct DriverArguments {
    /// What to do
    #[command(subcommand)]
    pub command: DriverCommand,
}

/// The sub-commands of `ipcmark driver`.
#[derive(Debug, Subcommand)]
pub enum DriverCommand {
    /// List the drivers: what each measures, and whether it is built here
    List,
    /// Build drivers here, for this user
    Build {
        /// Names of drivers [default: all whose language this host has]
        #[arg(value_name = "DRIVER")]
        names: Vec<String>,
    },
    /// Begin a driver of your own in a new directory, from one that works
    New {
        /// Driver from which it begins, by its language: python
        language: String,
        /// Name of the new one, and of its directory
        name: String,
    },
}
