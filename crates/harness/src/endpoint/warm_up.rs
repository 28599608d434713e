//! How many iterations the phases of a slice have, and the warm-up that finds it out. Nothing of it is a result.

use super::client::Client;
use super::meters::{IterationLog, Unwatched};
use super::pacer::wall_ns;
use super::session::{LEAST_WARM_UP_ITERATIONS, Outcome, WARM_UP_SHARE};
use crate::protocol::orders::{Singly, Sizing, SliceOrders};
use crate::protocol::phase::{Phase, PhaseKind};
use mechanisms::Endpoint;
use model::Pace;

/// The most iterations of a phase, however short they are.
pub(super) const MOST_ITERATIONS: u64 = 1 << 32;
/// The share of a slice that goes to the iterations that are timed together, where others are timed one by one.
const TOGETHER_SHARE: f64 = 0.6;
/// What a phase of several peers takes at least: some time slices of the kernel's scheduler, or else peers that share a CPU
/// would do their iterations one after the other.
pub(super) const LEAST_COMMON_PHASE_NS: u64 = 20_000_000;
/// What a slice of an open loop takes at least: a queue that grows by a percent of the time is seen in as long a time only.
const LEAST_OPEN_LOOP_NS: u64 = 200_000_000;
/// By how much more the next phase of a warm-up may have.
const GROWTH: u64 = 16;

/// How many iterations a slice has in its two kinds of phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PhaseIterations {
    /// Those that are timed together.
    pub(super) together: u64,
    /// Those that are timed one by one.
    pub(super) singly: u64,
}

impl PhaseIterations {
    /// As many as fill `slice_ns` at `pace`, where an iteration takes `iteration_ns`.
    fn filling(slice_ns: u64, iteration_ns: f64, pace: Pace, singly: Singly) -> Self {
        let together_share = if singly == Singly::Omitted { 1.0 } else { TOGETHER_SHARE };
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

impl<E: Endpoint> Client<'_, E> {
    /// How many iterations the phases of a slice are to have. The first slice of a trial begins with a warm-up.
    pub(super) fn phase_iterations(&mut self, orders: SliceOrders) -> Outcome<PhaseIterations> {
        let pace = self.session.orders.case.pace;
        match orders.size {
            Sizing::Iterations(iterations) => {
                self.warm_up_exactly(iterations)?;
                Ok(PhaseIterations { together: iterations, singly: iterations.min(IterationLog::CAPACITY) })
            }
            Sizing::Slice { slice_ns, hint_ns } => {
                let iteration_ns = match self.iteration_ns {
                    Some(iteration_ns) => iteration_ns,
                    None => self.warm_up(slice_ns as f64, hint_ns)?,
                };
                self.iteration_ns = Some(iteration_ns);
                Ok(PhaseIterations::filling(slice_ns, iteration_ns, pace, orders.singly))
            }
        }
    }

    /// As many checked iterations as a phase has, in pieces that grow, so that the coordinator can be told how long the next takes.
    fn warm_up_exactly(&mut self, iterations: u64) -> Outcome<()> {
        if self.iteration_ns.is_some() {
            return Ok(());
        }
        let (mut left, mut piece) = (iterations, LEAST_WARM_UP_ITERATIONS);
        while left > 0 {
            piece = piece.min(left);
            self.iteration_ns = Some(self.time(piece, true)?);
            left -= piece;
            piece = piece.saturating_mul(GROWTH);
        }
        Ok(())
    }

    /// Iterations back to back, with every byte checked, until there were enough of them and they took long enough. Returns what
    /// one takes that is not checked: to make and to verify a long message may take many times as long as to send it.
    fn warm_up(&mut self, slice_ns: f64, hint_ns: Option<f64>) -> Outcome<f64> {
        let enough_ns = slice_ns * WARM_UP_SHARE;
        self.repeat(enough_ns, slice_ns, true)?;
        // What a paced iteration took before counts from when it was due.
        match hint_ns.filter(|_| self.session.orders.case.pace == Pace::BackToBack) {
            Some(hint_ns) => Ok(hint_ns),
            None => self.repeat(enough_ns / 2.0, slice_ns, false),
        }
    }

    /// Phases that grow until they took `enough_ns`. Returns what an iteration took in the last.
    fn repeat(&mut self, enough_ns: f64, most_ns: f64, check: bool) -> Outcome<f64> {
        let (mut iterations, mut ns_so_far) = (LEAST_WARM_UP_ITERATIONS, 0.0);
        loop {
            // One slow iteration may fill a slice: a warm-up of many would take longer than the measurement.
            let iteration_ns = self.time(iterations, check)?;
            ns_so_far += iteration_ns * iterations as f64;
            if ns_so_far >= enough_ns.min(most_ns) || iterations == MOST_ITERATIONS {
                return Ok(iteration_ns);
            }
            iterations = ((enough_ns / iteration_ns) as u64)
                .clamp(iterations, iterations.saturating_mul(GROWTH))
                .min(MOST_ITERATIONS);
        }
    }

    /// What an iteration takes in a phase of so many, in nanoseconds.
    fn time(&mut self, iterations: u64, check: bool) -> Outcome<f64> {
        let phase = Phase { kind: PhaseKind::Total, iterations, check, reads_speed: false };
        let (client, _) = self.phase(phase, &mut Unwatched)?;
        Ok(client.elapsed_ns.max(1.0) / iterations as f64)
    }
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
    fn a_slice_of_an_open_loop_is_long() {
        let pace = Pace::Rate(Rate { per_s: 1000, arrivals: Arrivals::Uniform });
        assert_eq!(PhaseIterations::filling(2_000_000, 1000.0, pace, Singly::Omitted).together, 200);
    }
}
