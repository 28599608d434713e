//! A fact: a value, or the reason why it is not known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value, or why it could not be had.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fact<T> {
    /// The value.
    Known(T),
    /// Why there is none.
    Unknown(String),
}

/// What results of an earlier build do not have.
impl<T> Default for Fact<T> {
    fn default() -> Self {
        Fact::Unknown("these results do not record it".to_owned())
    }
}

impl<T> Fact<T> {
    /// The value, if there is one.
    pub fn known(&self) -> Option<&T> {
        match self {
            Fact::Known(value) => Some(value),
            Fact::Unknown(_) => None,
        }
    }
}
