//! An explanation with everything that is computed from its histograms and its timeline.

use super::timeline::AnalysedTimeline;
use crate::explain::Explanation;
use model::histogram::EncodedHistogram;

/// An explanation with everything that is computed from it.
#[derive(Debug, Clone)]
pub struct AnalysedExplanation<'a> {
    /// What was explained.
    pub explanation: &'a Explanation,
    /// The times of the client's system calls, then of the server's, in the order of [`Explanation::calls`].
    pub call_times: [Vec<TimeQuantiles>; 2],
    /// From woken to running: the client's, then the server's. Absent where wake-ups could not be seen.
    pub wake_ups: [Option<TimeQuantiles>; 2],
    /// A trial from moment to moment.
    pub timeline: Option<AnalysedTimeline<'a>>,
}

/// Where the times of many like events lie; absent where there was none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeQuantiles {
    /// Half of them took at most this.
    pub median_ns: Option<u64>,
    /// 99% of them took at most this.
    pub p99_ns: Option<u64>,
}

impl TimeQuantiles {
    fn from_times(times: &EncodedHistogram) -> Self {
        let times = times.decode();
        Self { median_ns: times.quantile_ns(0.5), p99_ns: times.quantile_ns(0.99) }
    }
}

impl<'a> AnalysedExplanation<'a> {
    /// `explanation` with what is computed from it. `call_name` names a system call by its number.
    pub fn from_explanation(explanation: &'a Explanation, call_name: impl Fn(u32) -> String) -> Self {
        let calls = explanation.calls.as_ref().map(|(_, calls)| calls);
        let call_times = |end: usize| -> Vec<TimeQuantiles> {
            calls
                .iter()
                .flat_map(|calls| &calls[end])
                .map(|call| TimeQuantiles::from_times(&call.time))
                .collect()
        };
        let wake_ups = |end: usize| {
            let schedule = explanation.schedule.as_ref()?;
            schedule[end].wake_up.as_ref().map(TimeQuantiles::from_times)
        };
        let timeline = explanation.timeline.as_ref();
        Self {
            explanation,
            call_times: [0, 1].map(call_times),
            wake_ups: [0, 1].map(wake_ups),
            timeline: timeline
                .map(|seen| AnalysedTimeline::from_observation(seen, explanation.case.key(), call_name)),
        }
    }
}
