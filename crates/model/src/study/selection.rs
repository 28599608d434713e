//! A selection: cases of a suite that differ by nothing but their size.

use crate::case::Case;
use crate::pace::Pace;
use crate::peers::Peers;
use crate::placement::Placements;
use crate::spec::Spec;
use crate::units::Size;
use crate::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Cases that differ by nothing but their size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// The spec, with parameters.
    pub spec: Spec,
    /// What the endpoints do.
    pub workload: Workload,
    /// The sizes that the suite measures it at, ascending; none where a size means nothing to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<Size>,
    /// Where the endpoints run.
    pub placements: Placements,
    /// When the client begins its iterations.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pace: Pace,
    /// How many endpoints communicate at once.
    #[serde(default, skip_serializing_if = "is_default")]
    pub peers: Peers,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Selection {
    /// Whether `case` is one of them.
    pub fn has(&self, case: &Case) -> bool {
        let sized = match case.size_bytes {
            None => self.sizes.is_empty(),
            Some(size) => self.sizes.contains(&size),
        };
        sized
            && self.placements.0.contains(&case.placement)
            && (&self.spec, self.workload, self.pace, self.peers)
                == (&case.spec, case.workload, case.pace, case.peers)
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.spec, self.workload, self.placements)?;
        if self.pace != Pace::BackToBack {
            write!(f, " {}", self.pace)?;
        }
        if self.peers != Peers::Pair { write!(f, " {}", self.peers) } else { Ok(()) }
    }
}
