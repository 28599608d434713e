//! The spec: an entry of the registry with its parameters and its drivers, as it is typed.

use crate::card::Card;
use crate::driver::CaseDrivers;
use crate::invalid::Invalid;
use crate::param::{Domain, Param};
use crate::params::Params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The parameter of a driver's mechanism that says what becomes of a message before it is sent: it is an object of a number and bytes, which is
/// made bytes by a codec of the driver's language, and an object again where it is received.
pub const CODEC: Param = Param {
    name: "codec",
    summary: "what makes bytes of each message, an object of a number and bytes: json, msgpack, protobuf and others",
    domain: Domain::Name,
    default: Some("none"),
};

/// A mechanism, operation or floor with its parameters and drivers: `pipe:capacity=1M`, `python/pipe`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Spec {
    /// Its name in the registry.
    pub name: String,
    /// The parameters that differ from their defaults, in canonical text.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub params: Params,
    /// Whose programs the endpoints are, where they are not ipcmark's own.
    #[serde(default, skip_serializing_if = "CaseDrivers::are_none")]
    pub drivers: CaseDrivers,
}

impl Spec {
    /// The entry `name` with every parameter at its default.
    pub fn plain(name: &str) -> Self {
        Self { name: name.to_owned(), params: Params::default(), drivers: CaseDrivers::default() }
    }

    /// Parses `NAME` or `NAME:k=v,…`, with `DRIVER/` or `CLIENT+SERVER/` before it, against the cards of the registry.
    pub fn parse(text: &str, cards: &[Card]) -> Result<Self, Invalid> {
        let (drivers, text) = Self::split_drivers(text)?;
        let (name, params) = match text.split_once(':') {
            Some((name, params)) => (name, Some(params)),
            None => (text, None),
        };
        let Some(card) = cards.iter().find(|card| card.name == name) else {
            let known = cards.iter().map(|card| card.name);
            return Err(Invalid::unknown_mechanism("mechanism or operation", name, known));
        };
        let known: Vec<&Param> = match drivers.are_none() {
            true => card.params.iter().collect(),
            // What a driver makes of an object is not what ipcmark's own endpoints do with bytes.
            false => card.params.iter().filter(|param| param.name != CODEC.name).chain([&CODEC]).collect(),
        };
        let params = params.map(|params| Params::parse_among(params, card.name, &known));
        let params = params.transpose()?.unwrap_or_default();
        Ok(Self { name: name.to_owned(), params, drivers })
    }

    /// The drivers that `text` begins with, and what follows them.
    pub fn split_drivers(text: &str) -> Result<(CaseDrivers, &str), Invalid> {
        match text.split_once('/') {
            // Behind the name, a slash belongs to a parameter.
            Some((drivers, rest)) if !drivers.contains(':') => Ok((CaseDrivers::parse(drivers)?, rest)),
            _ => Ok((CaseDrivers::default(), text)),
        }
    }

    /// The same, whose endpoints wait in this `way` if its card has that.
    pub fn waiting(mut self, way: &str, cards: &[Card]) -> Self {
        if let Some(card) = cards.iter().find(|card| card.name == self.name) {
            self.params.set_wait(way, card);
        }
        self
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drivers = if self.drivers.are_none() { String::new() } else { format!("{}/", self.drivers) };
        if self.params.is_empty() {
            return f.pad(&format!("{drivers}{}", self.name));
        }
        f.pad(&format!("{drivers}{}:{}", self.name, self.params))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = Spec::parse(&text, &[]);
        }
    }
}
