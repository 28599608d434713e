//! How many iterations the phases of a slice have, from what one takes. The warm-up that finds that out is the client's.

use super::meters::IterationLog;
use super::pacer::wall_ns;
use crate::protocol::orders::Singly;
use model::Pace;
use std::iter::successors;

/// The most iterations of a phase, however short they are.
pub(crate) const MOST_ITERATIONS: u64 = 1 << 32;
/// The share of a slice that goes to the iterations that are timed together, where others are timed one by one.
const TOGETHER_SHARE: f64 = 0.6;
/// What a phase of several peers takes at least: some time slices of the kernel's scheduler, or else peers that share a CPU
/// would do their iterations one after the other.
pub(super) const LEAST_COMMON_PHASE_NS: u64 = 20_000_000;
/// What a slice of an open loop takes at least: a queue that grows by a percent of the time is seen in as long a time only.
const LEAST_OPEN_LOOP_NS: u64 = 200_000_000;
/// The least iterations of a warm-up.
pub(super) const LEAST_WARM_UP_ITERATIONS: u64 = 4;
/// By how much more the next phase of a warm-up may have.
pub(crate) const GROWTH: u64 = 16;

/// How many iterations a slice has in its two kinds of phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PhaseIterations {
    /// Those that are timed together.
    pub(crate) together: u64,
    /// Those that are timed one by one.
    pub(crate) singly: u64,
}

impl PhaseIterations {
    /// As many as fill `slice_ns` at `pace`, where an iteration takes `iteration_ns`.
    pub(crate) fn filling(slice_ns: u64, iteration_ns: f64, pace: Pace, singly: Singly) -> Self {
        let together_share = match singly {
            Singly::Omitted | Singly::Throughout => 1.0,
            Singly::First | Singly::Last => TOGETHER_SHARE,
        };
        let (slice_ns, iteration_ns) = match pace {
            Pace::Rate(_) => (slice_ns.max(LEAST_OPEN_LOOP_NS), wall_ns(pace, iteration_ns)),
            _ => (slice_ns, wall_ns(pace, iteration_ns)),
        };
        let fitting = |share: f64| ((slice_ns as f64 * share / iteration_ns) as u64).max(1);
        Self {
            together: fitting(together_share).min(MOST_ITERATIONS),
            singly: fitting(1.0 - TOGETHER_SHARE).min(IterationLog::CAPACITY),
        }
    }
}

/// `iterations` in pieces that grow: what one took says how long the next will take.
pub(super) fn growing_pieces(iterations: u64) -> impl Iterator<Item = u64> {
    let sizes = successors(Some(LEAST_WARM_UP_ITERATIONS), |piece| Some(piece.saturating_mul(GROWTH)));
    let mut left = iterations;
    let pieces = sizes.map(move |most| {
        let piece = most.min(left);
        left -= piece;
        piece
    });
    pieces.take_while(|piece| *piece > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::pace::{Arrivals, Rate};

    #[test]
    fn phases_fill_their_shares_of_a_slice_and_have_an_iteration_at_least() {
        let of =
            |iteration_ns| PhaseIterations::filling(2_000_000, iteration_ns, Pace::BackToBack, Singly::Last);
        assert_eq!(of(1000.0), PhaseIterations { together: 1200, singly: 800 });
        assert_eq!(of(1e9), PhaseIterations { together: 1, singly: 1 });
        assert_eq!(of(1e-9).together, MOST_ITERATIONS);
        assert_eq!(of(1.0).singly, IterationLog::CAPACITY);
        let total_alone = PhaseIterations::filling(2_000_000, 1000.0, Pace::BackToBack, Singly::Omitted);
        assert_eq!(total_alone.together, 2000);
    }

    #[test]
    fn pieces_grow_and_are_all_there_is() {
        assert_eq!(growing_pieces(0).count(), 0);
        assert_eq!(growing_pieces(3).collect::<Vec<_>>(), [3]);
        assert_eq!(growing_pieces(100).collect::<Vec<_>>(), [4, 64, 32]);
        assert_eq!(growing_pieces(u64::MAX).sum::<u64>(), u64::MAX);
    }

    #[test]
    fn a_slice_of_an_open_loop_is_long() {
        let pace = Pace::Rate(Rate { per_s: 1000, arrivals: Arrivals::Uniform });
        assert_eq!(PhaseIterations::filling(2_000_000, 1000.0, pace, Singly::Omitted).together, 200);
    }
}
