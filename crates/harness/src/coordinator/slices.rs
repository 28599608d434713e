//! How long slices are, and the time that a round of them takes. For planning only.

use model::{Case, Size, Workload};
use std::time::Duration;

/// The rounds for which a slice is chosen: as many slices as intervals need, and no more, for long slices disturb each other less.
const ROUNDS_AIMED_AT: u32 = 60;
/// What a slice costs beside its timed iterations: orders, lead-in, speed readings, the report; and its part of what its trial
/// costs to start.
const SLICE_COST: Duration = Duration::from_micros(1000);
const SHORTEST_SLICE: Duration = Duration::from_micros(1000);
/// So long that the timers which slices of TCP leave behind, for up to 200 ms, seldom meet another one (docs/lab/method-page.md).
const LONGEST_SLICE: Duration = Duration::from_millis(30);

/// The slice of a run of `slices_a_round` that may take `time`.
pub fn slice_for(time: Duration, slices_a_round: usize) -> Duration {
    let slices = u32::try_from(slices_a_round.max(1)).unwrap_or(u32::MAX);
    (time / ROUNDS_AIMED_AT / slices).saturating_sub(SLICE_COST).clamp(SHORTEST_SLICE, LONGEST_SLICE)
}

/// About how long so many slices of `slice` take, with what they cost beside their iterations.
pub fn estimate(slices: usize, slice: Duration) -> Duration {
    (SLICE_COST + slice) * u32::try_from(slices).unwrap_or(u32::MAX)
}

/// How many messages of `case` make the `total` that a slice of a stream is to send, if one was asked for.
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
    fn a_slice_shrinks_with_the_number_of_slices_within_its_bounds() {
        let time = Duration::from_secs(60);
        assert_eq!(slice_for(time, 1), LONGEST_SLICE);
        assert_eq!(slice_for(time, 0), LONGEST_SLICE);
        assert_eq!(slice_for(time, 10_000), SHORTEST_SLICE);
        assert!(slice_for(time, 120) < slice_for(time, 100));
        assert_eq!(estimate(4, Duration::from_micros(500)), Duration::from_millis(6));
    }

    #[test]
    fn a_total_is_as_many_messages_as_it_holds_and_at_least_one() {
        let iterations = |workload, size_bytes, total| {
            let case = Case { workload, size_bytes: Some(Size(size_bytes)), ..floor::operation("pipe", 1) };
            iterations_of_total(&case, Some(Size(total)))
        };
        assert_eq!(iterations(Workload::Throughput, 100, 1000), Some(10));
        assert_eq!(iterations(Workload::Throughput, 100, 1), Some(1));
        assert_eq!(iterations(Workload::Throughput, 0, 1000), None);
        assert_eq!(iterations(Workload::Latency, 100, 1000), None);
    }
}
