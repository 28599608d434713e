//! How long trials are: the slice for a run, and the time that trials of a slice take. For planning only.

use model::{Case, Size, Workload};
use std::time::Duration;

/// The rounds for which a slice is chosen: many short trials beat few long ones.
const ROUNDS_AIMED_AT: u32 = 40;
/// What starting and ending the endpoints of one trial costs.
const TRIAL_COST: Duration = Duration::from_micros(2500);
const SHORTEST_SLICE: Duration = Duration::from_micros(1000);
const LONGEST_SLICE: Duration = Duration::from_millis(10);

/// The slice of a run of `trials_a_round` that may take `time`.
pub fn slice_for(time: Duration, trials_a_round: usize) -> Duration {
    let trials = u32::try_from(trials_a_round.max(1)).unwrap_or(u32::MAX);
    (time / ROUNDS_AIMED_AT / trials).saturating_sub(TRIAL_COST).clamp(SHORTEST_SLICE, LONGEST_SLICE)
}

/// About how long so many trials of `slice` take, with what a trial costs beside its iterations.
pub fn estimate(trials: usize, slice: Duration) -> Duration {
    (TRIAL_COST + slice) * u32::try_from(trials).unwrap_or(u32::MAX)
}

/// How many messages of `case` make the `total` that a trial of a stream is to send, if one was asked for.
pub fn iterations_of_total(case: &Case, total: Option<Size>) -> Option<u64> {
    let total = total.filter(|_| case.workload == Workload::Throughput)?;
    // No number of empty messages makes any total: as many as fill the slice are sent.
    Some(total.0.checked_div(case.size_bytes?.0)?.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::floor;

    #[test]
    fn a_slice_shrinks_with_the_number_of_trials_within_its_bounds() {
        let time = Duration::from_secs(60);
        assert_eq!(slice_for(time, 1), LONGEST_SLICE);
        assert_eq!(slice_for(time, 0), LONGEST_SLICE);
        assert_eq!(slice_for(time, 10_000), SHORTEST_SLICE);
        assert!(slice_for(time, 200) < slice_for(time, 150));
        assert_eq!(estimate(4, Duration::from_micros(500)), Duration::from_millis(12));
    }

    #[test]
    fn a_total_is_as_many_messages_as_it_holds_and_at_least_one() {
        let of = |workload, size_bytes, total| {
            let case = Case { workload, size_bytes: Some(Size(size_bytes)), ..floor::operation("pipe", 1) };
            iterations_of_total(&case, Some(Size(total)))
        };
        assert_eq!(of(Workload::Throughput, 100, 1000), Some(10));
        assert_eq!(of(Workload::Throughput, 100, 1), Some(1));
        assert_eq!(of(Workload::Throughput, 0, 1000), None);
        assert_eq!(of(Workload::Latency, 100, 1000), None);
    }
}
