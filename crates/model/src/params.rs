//! The parameters of a spec: `pipe:capacity=1M,wait=spin`, checked against its card.
//!
//! Values are kept in canonical text, so that equal parameters are equal text in results files.

use crate::card::{ByName, Card};
use crate::invalid::Invalid;
use crate::param::MATCH;
use crate::param::Param;
use crate::semantics::Namespace;
use crate::units::{Size, parse_duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The name of the parameter that says whether the memory of messages is cold.
pub const MEMORY: &str = "memory";

/// The parameters given for one entry of the registry: name to canonical value. Those at their default are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Params(BTreeMap<String, String>);

impl Params {
    /// Parses `k=v,k=v` against what `card` declares.
    pub fn parse(text: &str, card: &Card) -> Result<Self, Invalid> {
        Self::parse_among(text, card.name, &card.params.iter().collect::<Vec<_>>())
    }

    /// The same against the parameters `known` of what is called `of`.
    pub(crate) fn parse_among(text: &str, of: &str, known: &[&Param]) -> Result<Self, Invalid> {
        let mut params = BTreeMap::new();
        for item in text.split(',') {
            let Some((name, value)) = item.split_once('=') else {
                return Err(Invalid::new(
                    format!("'{}' is not a parameter of {of}", crate::invalid::printable(item)),
                    format!("give parameters as {of}:NAME=VALUE; known: {}", words(known)),
                ));
            };
            let Some(param) = known.iter().find(|param| param.name == name.trim()) else {
                let noun = format!("parameter of {of}");
                return Err(Invalid::unknown(&noun, name.trim(), known.iter().map(|param| param.name)));
            };
            let canonical = param
                .domain
                .canonical(value.trim())
                .map_err(|e| Invalid::new(format!("{of}:{}: {}", param.name, e.problem), e.remedy))?;
            if params.insert(param.name.to_owned(), canonical).is_some() {
                return Err(Invalid::new(format!("{of}:{} is given twice", param.name), "give it once"));
            }
        }
        params.retain(|name, value| {
            let default = known.iter().find(|param| param.name == name).and_then(|param| param.default);
            default != Some(value.as_str())
        });
        Ok(Self(params))
    }

    /// Whether no parameter differs from its default.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Has endpoints wait in this `way`, if `card` has it.
    pub(crate) fn set_wait(&mut self, way: &str, card: &Card) {
        let Some(wait) = card.params.iter().find(|param| param.name == "wait") else { return };
        if wait.domain.canonical(way).is_ok() {
            self.0.remove("wait");
            if wait.default != Some(way) {
                self.0.insert("wait".to_owned(), way.to_owned());
            }
        }
    }

    /// Whether the endpoints wait by spinning.
    pub fn spins(&self) -> bool {
        self.0.get("wait").is_some_and(|wait| wait == "spin")
    }

    /// Whether the memory of messages is given back before iterations are timed.
    pub fn has_cold_memory(&self) -> bool {
        self.0.get(MEMORY).is_some_and(|memory| memory == "cold")
    }

    /// Whether the endpoints always sleep while they wait: they neither spin nor spin for a while first.
    pub fn sleeps(&self) -> bool {
        self.0.get("wait").is_none_or(|wait| !wait.starts_with("spin"))
    }

    /// The text that was given for `name`, where it differs from the default.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The text of `name`: as given, else the card's default, else `None` for the kernel's.
    pub fn text<'a>(&'a self, card: &'a Card, name: &str) -> Option<&'a str> {
        let given = self.0.get(name).map(String::as_str);
        given.or_else(|| card.params.iter().find(|param| param.name == name).and_then(|param| param.default))
    }

    /// The namespace that two processes must share to meet by a name alone; `None` where they cannot.
    pub fn meets_in(&self, card: &Card) -> Option<Namespace> {
        match card.by_name {
            ByName::Never => None,
            ByName::Always => Some(card.semantics.namespace),
            ByName::As(name) => match self.text(card, name) {
                Some("path") => Some(Namespace::Mount),
                Some("abstract") => Some(Namespace::Net),
                _ => None,
            },
        }
    }

    /// The same for messages of `size`, which replaces every `match`.
    pub fn matched(&self, size: Size) -> Self {
        let value = |value: &String| if value == MATCH { size.to_string() } else { value.clone() };
        Self(self.0.iter().map(|(name, text)| (name.clone(), value(text))).collect())
    }

    /// The size of `name`, or `None` for the kernel's default.
    pub fn size(&self, card: &Card, name: &str) -> Option<Size> {
        self.text(card, name).and_then(|text| text.parse().ok())
    }

    /// The count of `name`, or `None` for the kernel's default.
    pub fn count(&self, card: &Card, name: &str) -> Option<u32> {
        self.text(card, name).and_then(|text| text.parse().ok())
    }

    /// The duration of `name`; zero when it has no default.
    pub fn duration(&self, card: &Card, name: &str) -> Duration {
        self.text(card, name).and_then(|text| parse_duration(text).ok()).unwrap_or_default()
    }
}

fn words(known: &[&Param]) -> String {
    match known {
        [] => "none".to_owned(),
        params => params.iter().map(|p| format!("{}={}", p.name, p.domain)).collect::<Vec<_>>().join(", "),
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&items.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::CardKind;
    use crate::param::{Domain, Param};
    use crate::testing::cards::card;
    use proptest::prelude::*;

    const fn param(name: &'static str, domain: Domain, default: Option<&'static str>) -> Param {
        Param { name, summary: "", domain, default }
    }

    const CARD: Card = Card {
        params: &[
            param("capacity", Domain::Size, None),
            param("wait", Domain::Choice(&["block", "spin"]), Some("block")),
            param("spin", Domain::Duration, Some("10us")),
            param("depth", Domain::Count, Some("8")),
            param("buffer", Domain::SizeOrMatch, None),
        ],
        ..card("pipe", CardKind::Mechanism, &[], true)
    };

    fn parse(text: &str) -> Result<Params, Invalid> {
        Params::parse(text, &CARD)
    }

    #[test]
    fn what_matches_the_message_is_known_with_the_message() {
        let params = parse("buffer=match,depth=9").unwrap();
        assert_eq!(params.to_string(), "buffer=match,depth=9");
        assert_eq!(params.size(&CARD, "buffer"), None);
        assert_eq!(params.matched(Size(4096)).to_string(), "buffer=4K,depth=9");
        assert_eq!(parse("buffer=4096").unwrap().to_string(), "buffer=4K");
        assert!(parse("buffer=mtach").is_err() && parse("capacity=match").is_err());
    }

    #[test]
    fn equal_parameters_are_equal_text() {
        for (text, canonical) in [
            ("capacity=1048576", "capacity=1M"),
            ("wait=spin,capacity=4KiB", "capacity=4K,wait=spin"),
            ("capacity = 1M , wait = spin", "capacity=1M,wait=spin"),
            ("spin=1500us", "spin=1ms 500us"),
            ("depth=007", "depth=7"),
            ("wait=block", ""),
            ("spin=10000ns,depth=8", ""),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), canonical, "{text}");
        }
        assert!(parse("wait=block").unwrap().is_empty());
        assert!(parse("wait=spin").unwrap().spins() && !parse("capacity=1").unwrap().spins());
        assert!(!parse("wait=spin").unwrap().sleeps() && parse("capacity=1").unwrap().sleeps());
    }

    #[test]
    fn values_come_from_what_was_given_else_from_the_card() {
        let params = parse("capacity=64K,depth=3").unwrap();
        assert_eq!(params.size(&CARD, "capacity"), Some(Size(65_536)));
        assert_eq!(params.count(&CARD, "depth"), Some(3));
        assert_eq!(params.duration(&CARD, "spin"), Duration::from_micros(10));
        assert_eq!(params.text(&CARD, "wait"), Some("block"));
        let none = Params::default();
        assert_eq!((none.size(&CARD, "capacity"), none.count(&CARD, "depth")), (None, Some(8)));
        assert_eq!((none.text(&CARD, "other"), none.duration(&CARD, "other")), (None, Duration::ZERO));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            ("", "'' is not a parameter of pipe"),
            ("capacity", "'capacity' is not a parameter"),
            ("capacity=1,,", "'' is not a parameter"),
            ("capacty=1", "unknown parameter of pipe 'capacty'"),
            ("capacity=0", "pipe:capacity: a size of 0"),
            ("capacity=2G", "pipe:capacity: 2G is too large"),
            ("capacity=1,capacity=1", "given twice"),
            ("wait=sleep", "unknown value 'sleep'"),
            ("spin=2s", "2s is too long"),
            ("depth=0", "'0' is not a count"),
            ("depth=-1", "'-1' is not a count"),
            ("depth=4294967296", "is not a count"),
        ] {
            let invalid = parse(text).unwrap_err();
            assert!(invalid.problem.contains(says), "{text}: {invalid}");
            assert!(!invalid.remedy.is_empty());
        }
        assert!(parse("capacty=1").unwrap_err().remedy.contains("did you mean 'capacity'"));
    }

    proptest! {
        #[test]
        fn what_is_accepted_survives_its_own_text(
            capacity in 1..=Size::LARGEST.0,
            spin_ns in 0..=1_000_000_000u64,
            depth in 1..=u32::MAX,
            wait in prop_oneof![Just("block"), Just("spin")],
        ) {
            let params = parse(&format!("capacity={capacity},spin={spin_ns}ns,depth={depth},wait={wait}")).unwrap();
            prop_assert_eq!(parse(&params.to_string()).unwrap(), params.clone());
            prop_assert_eq!(params.size(&CARD, "capacity"), Some(Size(capacity)));
            prop_assert_eq!(params.duration(&CARD, "spin"), Duration::from_nanos(spin_ns));
            prop_assert_eq!(params.count(&CARD, "depth"), Some(depth));
        }
    }
}
