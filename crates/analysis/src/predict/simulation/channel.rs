//! What is between the endpoints of a flow while it is simulated, and what was counted there. It decides nothing.

use super::process::Arrived;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::VecDeque;

/// What is between the endpoints of a flow.
#[derive(Debug)]
pub(super) struct Channel {
    /// The bytes of a stream that were sent and not read.
    pub(super) held_bytes: u64,
    /// The bytes that its receiver has read beyond the part that it took last.
    pub(super) read_ahead_bytes: u64,
    /// The messages of a stream that are on their way.
    pub(super) travelling: VecDeque<Arrived>,
    pub(super) last_arrival_ns: u64,
    /// An activity of the sender that waits for room.
    pub(super) blocked: Option<usize>,
    /// When the next is due, where they are due at a rate.
    pub(super) due_ns: f64,
    /// What is owed of a number of messages for each that is no whole number.
    pub(super) owed: f64,
    pub(super) random: SmallRng,
    pub(super) count: u64,
    pub(super) answered: u64,
    pub(super) round_trips_ns: f64,
    /// How many messages and answers were sent, and how many of them to a receiver on the same CPU.
    pub(super) sent: u64,
    pub(super) sent_together: u64,
}

impl Channel {
    /// That of `flow`. It draws the same whatever other flows draw, and whatever its mechanism is.
    pub(super) fn new(seed: u64, flow: usize) -> Self {
        Self {
            held_bytes: 0,
            read_ahead_bytes: 0,
            travelling: VecDeque::new(),
            last_arrival_ns: 0,
            blocked: None,
            due_ns: 0.0,
            owed: 0.0,
            random: SmallRng::seed_from_u64(seed ^ (flow as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            count: 0,
            answered: 0,
            round_trips_ns: 0.0,
            sent: 0,
            sent_together: 0,
        }
    }

    /// Counts from now on.
    pub(super) fn forget(&mut self) {
        (self.count, self.answered, self.round_trips_ns) = (0, 0, 0.0);
        (self.sent, self.sent_together) = (0, 0);
    }

    /// The share of messages and answers that went to a receiver on the sender's CPU; `None` without one.
    pub(super) fn on_one_cpu(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.sent_together as f64 / self.sent as f64)
    }
}
