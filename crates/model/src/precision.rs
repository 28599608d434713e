//! How narrow an interval is to be before a case counts as settled.

use crate::case::Case;
use crate::invalid::Invalid;
use crate::units::Percent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The half-width of the 95% interval at which a case is settled. Two CPUs of a shared host are disturbed independently of each
/// other, and their distance may change: what they do together may be asked for less precisely.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Precision {
    /// Of a case.
    #[serde(rename = "precision")]
    pub least: Percent,
    /// Of a case that uses more than one CPU, where another is asked for.
    #[serde(rename = "precision_two_cpus", default, skip_serializing_if = "Option::is_none")]
    pub on_two_cpus: Option<Percent>,
}

impl Precision {
    /// What is asked of `case`.
    pub fn for_case(self, case: &Case) -> Percent {
        match self.on_two_cpus {
            Some(on_two_cpus) if case.uses_two_cpus() => on_two_cpus,
            _ => self.least,
        }
    }
}

impl From<Percent> for Precision {
    fn from(least: Percent) -> Self {
        Self { least, on_two_cpus: None }
    }
}

impl Precision {
    /// In words, for people.
    pub fn words(self) -> String {
        match self.on_two_cpus {
            None => format!("±{}", self.least),
            Some(on_two_cpus) => format!("±{}, on two CPUs to ±{on_two_cpus}", self.least),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.on_two_cpus {
            None => write!(f, "{}", self.least),
            Some(on_two_cpus) => write!(f, "{},{on_two_cpus}", self.least),
        }
    }
}

impl FromStr for Precision {
    type Err = Invalid;

    /// One percentage, or two with a comma: of one CPU, and of two.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        Ok(match text.split_once(',') {
            None => Self::from(text.parse::<Percent>()?),
            Some((one, two)) => Self { least: one.parse()?, on_two_cpus: Some(two.parse()?) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floor;
    use crate::placement::{CpuPair, Placement};

    #[test]
    fn two_cpus_may_be_asked_for_less_precisely() {
        let case = |client, server, placement| Case {
            placement,
            cpus: Some(CpuPair { client, server }),
            ..floor::operation("pipe", 0)
        };
        let precision: Precision = "3%,5%".parse().unwrap();
        assert_eq!(precision.for_case(&case(1, 1, Placement::SameCore)), Percent(0.03));
        assert_eq!(precision.for_case(&case(1, 0, Placement::SameLlc)), Percent(0.05));
        let unpinned = Case { placement: Placement::Unpinned, cpus: None, ..floor::operation("pipe", 0) };
        assert_eq!(precision.for_case(&unpinned), Percent(0.05));
        assert_eq!(Precision::from(Percent(0.02)).for_case(&unpinned), Percent(0.02));
    }

    #[test]
    fn it_survives_its_own_text_and_refuses_what_is_none() {
        for text in ["3%,5%", "2.5%"] {
            assert_eq!(text.parse::<Precision>().unwrap().to_string(), text);
        }
        for text in ["3%,", ",5%", "3%,5%,7%", "3", ""] {
            assert!(text.parse::<Precision>().is_err(), "{text}");
        }
    }
}
