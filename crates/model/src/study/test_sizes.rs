//! The sizes at which a test holds: a list, in the form of `--sizes`.

use crate::units::{Size, parse_sizes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Sizes as a list, in the form of `--sizes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestSizes(pub Vec<Size>);

impl fmt::Display for TestSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.0.iter().map(Size::to_string).collect();
        f.write_str(&sizes.join(","))
    }
}

impl Serialize for TestSizes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TestSizes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_sizes(&text).map(TestSizes).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for TestSizes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sizes".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "examples": ["1,64,4K", "1..64K"] })
    }
}
