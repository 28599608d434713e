//! How fast the CPUs of a slice were, as read just before and just after its timed iterations. Nothing is read here.
//!
//! A speed reading is the time of a fixed run of instructions that keeps the core's execution units busy. On a shared host it
//! grows while a neighbour runs on the sibling thread of the same core, which the host tells its guest in no other way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The readings of one slice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpeedReadings {
    /// Of the client's CPU.
    pub client: SpeedReading,
    /// Of the server's CPU; absent where it is the client's, and of operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<SpeedReading>,
    /// Of both CPUs together: a cache line's way to the other CPU and back. Absent where there is one CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<SpeedReading>,
}

/// Two readings in nanoseconds: the lower, the faster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpeedReading {
    /// Just before the timed iterations.
    pub before_ns: f64,
    /// Just after them.
    pub after_ns: f64,
}

impl SpeedReading {
    /// The slower of both.
    pub fn slower_ns(self) -> f64 {
        self.before_ns.max(self.after_ns)
    }

    /// The geometric mean of both.
    pub fn mean_ns(self) -> f64 {
        (self.before_ns * self.after_ns).sqrt()
    }
}
