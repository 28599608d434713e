//! The endpoints of a trial: which of the two is meant, and whether they are processes or threads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use strum::IntoStaticStr;

/// What the endpoints are.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Endpoints {
    /// Two fresh processes.
    #[default]
    Processes,
    /// Two threads of one fresh process.
    Threads,
}

impl fmt::Display for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Endpoints::Processes => "processes",
            Endpoints::Threads => "threads",
        })
    }
}

/// One of the two endpoints of a case.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum EndpointRole {
    /// Starts each iteration and keeps the clock.
    Client,
    /// Answers.
    Server,
}

impl EndpointRole {
    /// Both, the client first.
    pub const ALL: [EndpointRole; 2] = [EndpointRole::Client, EndpointRole::Server];

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            EndpointRole::Client => EndpointRole::Server,
            EndpointRole::Server => EndpointRole::Client,
        }
    }

    /// The name, as it is typed and shown.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
