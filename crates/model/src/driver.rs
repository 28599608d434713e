//! Whose programs the endpoints of a case are, where they are not ipcmark's own: drivers, in another language or of a middleware.

use crate::invalid::{Invalid, printable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The word for ipcmark's own endpoint, where the other one is a driver.
const OWN: &str = "ipcmark";

/// The name of a driver: `python`. Small letters, digits, `-`, `_` and `.`, at most 32 of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct DriverName(String);

impl DriverName {
    /// The longest name.
    const LONGEST: usize = 32;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for DriverName {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins && text.len() <= Self::LONGEST && text.chars().all(is_of_name) && text != OWN {
            return Ok(Self(text));
        }
        Err(Invalid::new(
            format!("'{}' is no name of a driver", printable(&text)),
            "a name has small letters, digits, '-', '_' and '.', at most 32; see 'ipcmark driver list'",
        ))
    }
}

impl From<DriverName> for String {
    fn from(name: DriverName) -> Self {
        name.0
    }
}

impl fmt::Display for DriverName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The drivers of a case: of its client, of its server, of both or of neither.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct CaseDrivers {
    /// Of the client, unless that is ipcmark's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<DriverName>,
    /// Of the server, unless that is ipcmark's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<DriverName>,
}

impl CaseDrivers {
    /// Whether both endpoints are ipcmark's own.
    pub fn are_none(&self) -> bool {
        self.client.is_none() && self.server.is_none()
    }

    /// The names of those there are, the client's first.
    pub fn names(&self) -> impl Iterator<Item = &DriverName> {
        self.client.iter().chain(&self.server)
    }

    /// Parses `DRIVER` for both endpoints, or `CLIENT+SERVER`, of which one may be `ipcmark`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let end = |text: &str| match text {
            OWN => Ok(None),
            name => DriverName::try_from(name.to_owned()).map(Some),
        };
        let (client, server) = text.split_once('+').unwrap_or((text, text));
        Ok(Self { client: end(client)?, server: end(server)? })
    }
}

impl fmt::Display for CaseDrivers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |name: &Option<DriverName>| name.as_ref().map_or(OWN, DriverName::as_str).to_owned();
        let (client, server) = (text(&self.client), text(&self.server));
        if client == server { f.write_str(&client) } else { write!(f, "{client}+{server}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_written_as_they_are_typed() {
        for text in ["python", "python+go", "ipcmark+go", "node+ipcmark"] {
            assert_eq!(CaseDrivers::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(CaseDrivers::parse("go+go").unwrap().to_string(), "go");
        assert!(CaseDrivers::parse("ipcmark").unwrap().are_none());
        for wrong in ["", "+", "Python", "a b", "-x", "a+b+c", "\u{1b}[2J", &"x".repeat(33)] {
            CaseDrivers::parse(wrong).unwrap_err();
        }
        assert!(serde_json::from_str::<DriverName>("\"a/b\"").is_err());
    }
}
