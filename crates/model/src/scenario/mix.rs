//! A mix: values and how large a share each has. It is how a scenario writes distributions of sizes and of times.
//!
//! It is not a histogram: a mix has few values, as a person would type them.

use crate::invalid::{Invalid, printable};
use crate::units::{Nanoseconds, Percent, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Values in ascending order, each with its share. The shares add up to 1.
///
/// Its text is `4K`, or `64:90%, 4K:10%`.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix<T> {
    parts: Vec<(T, f64)>,
}

/// What a [`Mix`] can be of.
pub trait MixValue: Copy + Ord + FromStr<Err = Invalid> + fmt::Display {
    /// The value as a number: bytes or nanoseconds.
    fn number(self) -> f64;
    /// The value nearest to a number that is not negative.
    fn nearest(number: f64) -> Self;
}

impl MixValue for Size {
    fn number(self) -> f64 {
        self.0 as f64
    }
    fn nearest(number: f64) -> Self {
        Size(number.round() as u64)
    }
}

impl MixValue for Nanoseconds {
    fn number(self) -> f64 {
        self.0 as f64
    }
    fn nearest(number: f64) -> Self {
        Nanoseconds(number.round() as u64)
    }
}

impl<T: MixValue> Mix<T> {
    /// The most values that the text of a mix may have.
    pub const MOST_VALUES: usize = 64;

    /// One value, always.
    pub fn only(value: T) -> Self {
        Self { parts: vec![(value, 1.0)] }
    }

    /// The values with their weights, which need not add up to 1. Values with a share that would be written as 0% are left
    /// out. `None` if nothing is left.
    pub fn weighted(weights: impl IntoIterator<Item = (T, f64)>) -> Option<Self> {
        let mut parts: Vec<(T, f64)> = weights.into_iter().filter(|(_, weight)| *weight > 0.0).collect();
        parts.sort_by_key(|(value, _)| *value);
        parts.dedup_by(|later, first| {
            let is_same = later.0 == first.0;
            if is_same {
                first.1 += later.1;
            }
            is_same
        });
        let total: f64 = parts.iter().map(|(_, weight)| weight).sum();
        parts.retain(|(_, weight)| weight / total >= Percent::LEAST.0);
        let left: f64 = parts.iter().map(|(_, weight)| weight).sum();
        parts.iter_mut().for_each(|(_, weight)| *weight /= left);
        (left.is_finite() && !parts.is_empty()).then_some(Self { parts })
    }

    /// What `values` are like, in at most `most` values: as they are where they are few, else the mean of each of `most`
    /// groups of as many. The mean of all is kept but for rounding. `None` without values.
    pub fn summarised(mut values: Vec<T>, most: usize) -> Option<Self> {
        values.sort_unstable();
        let count = values.len();
        let distinct = values.chunk_by(|a, b| a == b);
        if distinct.clone().count() <= most {
            return Self::weighted(distinct.map(|same| (same[0], same.len() as f64)));
        }
        let groups = (0..most).map(|at| &values[at * count / most..(at + 1) * count / most]);
        Self::weighted(groups.filter(|group| !group.is_empty()).map(|group| {
            let mean = group.iter().map(|value| value.number()).sum::<f64>() / group.len() as f64;
            (T::nearest(mean), group.len() as f64)
        }))
    }

    /// The values in ascending order, each with its share.
    pub fn parts(&self) -> &[(T, f64)] {
        &self.parts
    }

    /// The mean, in bytes or nanoseconds.
    pub fn mean(&self) -> f64 {
        self.parts.iter().map(|(value, share)| value.number() * share).sum()
    }

    /// The value below which `share` of the values lie, `share` from 0 to 1. With an evenly distributed `share` it draws one.
    pub fn at(&self, share: f64) -> T {
        let mut below = 0.0;
        for (value, part) in &self.parts {
            below += part;
            if share < below {
                return *value;
            }
        }
        self.largest()
    }

    /// The largest value.
    pub fn largest(&self) -> T {
        self.parts[self.parts.len() - 1].0
    }

    /// Whether every value is 0.
    pub fn is_zero(&self) -> bool {
        self.largest().number() == 0.0
    }
}

impl<T: MixValue> fmt::Display for Mix<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [(value, _)] = self.parts.as_slice() {
            return f.pad(&value.to_string());
        }
        let parts: Vec<String> =
            self.parts.iter().map(|(value, share)| format!("{value}:{}", Percent(*share))).collect();
        f.pad(&parts.join(", "))
    }
}

impl<T: MixValue> FromStr for Mix<T> {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        /// How far from 100% rounded shares may add up to.
        const ROUNDING: f64 = 0.01;
        let remedy = "give one value, or each with its share: 64:90%, 4K:10%";
        if !text.contains(':') && !text.contains(',') {
            return Ok(Self::only(text.trim().parse()?));
        }
        let mut parts = Vec::new();
        for part in text.split(',') {
            let Some((value, share)) = part.split_once(':') else {
                return Err(Invalid::new(format!("'{}' has no share", printable(part.trim())), remedy));
            };
            parts.push((value.trim().parse()?, share.parse::<Percent>()?.0));
        }
        if parts.len() > Self::MOST_VALUES {
            let problem = format!("a mix of {} values is too fine", parts.len());
            return Err(Invalid::new(problem, format!("give at most {}", Self::MOST_VALUES)));
        }
        let total: f64 = parts.iter().map(|(_, share)| share).sum();
        if (total - 1.0).abs() > ROUNDING {
            let problem =
                format!("the shares of '{}' add up to {}, not to 100%", printable(text), Percent(total));
            return Err(Invalid::new(problem, remedy));
        }
        Self::weighted(parts).ok_or_else(|| Invalid::new("a mix of nothing", remedy))
    }
}

impl<T: MixValue> Serialize for Mix<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, T: MixValue> Deserialize<'de> for Mix<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl<T> JsonSchema for Mix<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Mix".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "One value, or values each with its share.",
            "examples": ["4K", "64:90%, 4K:10%", "10us"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mix(text: &str) -> Mix<Size> {
        text.parse().unwrap()
    }

    #[test]
    fn a_mix_is_what_its_text_says() {
        assert_eq!(mix("4K"), Mix::only(Size(4096)));
        let two = mix("4K:10%,64:90%");
        assert_eq!(two.to_string(), "64:90%, 4K:10%");
        assert!((two.mean() - (0.9 * 64.0 + 0.1 * 4096.0)).abs() < 1e-9);
        assert_eq!([0.0, 0.89, 0.91, 1.0].map(|share| two.at(share).0), [64, 64, 4096, 4096]);
        assert_eq!("10us".parse::<Mix<Nanoseconds>>().unwrap().mean(), 10_000.0);
        assert!("0".parse::<Mix<Nanoseconds>>().unwrap().is_zero());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            ("", "not a size"),
            ("64:50%,4K:20%", "add up to 70%"),
            ("64,4K:20%", "'64' has no share"),
            ("64:0%,1:100%", "not a percentage"),
            ("x:100%", "not a size"),
        ] {
            let invalid = text.parse::<Mix<Size>>().unwrap_err();
            assert!(invalid.problem.contains(says), "{text}: {invalid}");
        }
    }

    #[test]
    fn few_values_stay_and_many_become_groups_with_the_same_mean() {
        let few = Mix::summarised(vec![Size(1), Size(5), Size(1), Size(1)], 4).unwrap();
        assert_eq!(few.to_string(), "1:75%, 5:25%");
        let many = Mix::summarised((1..=1000).map(Size).collect(), 10).unwrap();
        assert_eq!(many.parts().len(), 10);
        assert!((many.mean() - 500.5).abs() < 1.0, "{many}");
        assert_eq!(Mix::<Size>::summarised(Vec::new(), 3), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = text.parse::<Mix<Size>>();
            let _ = text.parse::<Mix<Nanoseconds>>();
        }

        #[test]
        fn its_own_text_is_read(weights in proptest::collection::vec((0..1u64 << 30, 0.01..1.0f64), 1..20)) {
            let mix = Mix::weighted(weights.into_iter().map(|(bytes, weight)| (Size(bytes), weight))).unwrap();
            let read = mix.to_string().parse::<Mix<Size>>().unwrap();
            prop_assert_eq!(read.parts().len(), mix.parts().len());
            prop_assert!((read.mean() - mix.mean()).abs() <= 0.02 * mix.mean() + 1.0);
        }
    }
}
