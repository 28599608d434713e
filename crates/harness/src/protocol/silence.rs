//! How long either side of a byte stream may be silent.

use std::time::Duration;

/// How often the coordinator says over a byte stream that it is still there.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long an endpoint goes on without a word from the coordinator.
pub(crate) const SILENCE: Duration = Duration::from_secs(5);
/// How long the coordinator waits for an endpoint to say that it is still there.
pub(crate) const ANSWER: Duration = Duration::from_secs(3);
