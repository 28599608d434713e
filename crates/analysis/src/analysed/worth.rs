//! What a run's values are worth: how well they are known in each kind of place, and what more time would give.

use super::record::AnalysedRecord;
use crate::stats;
use model::record::Results;

/// How well the cases of one kind of place are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlaceWorth {
    /// Whether their endpoints run on two CPUs.
    pub on_two_cpus: bool,
    /// Half of the width of the interval of a time over it, which nine in ten cases keep.
    pub half_width: f64,
    /// What was asked for.
    pub asked: f64,
}

/// What a run's values are worth.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunWorth {
    /// The kinds of places that were measured, one CPU first.
    pub places: Vec<PlaceWorth>,
    /// What a longer run would give.
    pub more: Option<MoreTime>,
    /// How much longer the median slice took than the times that are shown, as a fraction; absent where no speed was read.
    pub slower: Option<f64>,
}

/// What a longer run would give: errors go down with the root of the time.
#[derive(Debug, Clone, PartialEq)]
pub struct MoreTime {
    /// Its time, in nanoseconds.
    pub time_ns: u64,
    /// The half widths of [`RunWorth::places`] then.
    pub half_widths: Vec<f64>,
}

impl RunWorth {
    /// Of `records`, which are those of `results`.
    pub(super) fn from_results(results: &Results, records: &[AnalysedRecord<'_>]) -> Self {
        let cases = || records.iter().filter(|analysed| !analysed.record.floor);
        let places: Vec<PlaceWorth> = [false, true]
            .into_iter()
            .filter_map(|on_two_cpus| {
                let here = || cases().filter(|analysed| analysed.record.case.uses_two_cpus() == on_two_cpus);
                let halves: Vec<f64> = here().filter_map(AnalysedRecord::half_width).collect();
                let asked = results.header.settings.precision.for_case(&here().next()?.record.case).0;
                Some(PlaceWorth { on_two_cpus, half_width: of_nearly_all(halves)?, asked })
            })
            .collect();
        let slower: Vec<f64> = cases().filter_map(AnalysedRecord::slower_as_found).collect();
        Self {
            more: MoreTime::from_places(results.header.settings.time_ns, &places),
            places,
            slower: stats::median(&slower),
        }
    }

    /// Whether every kind of place is known as well as was asked for.
    pub fn is_as_asked(&self) -> bool {
        self.places.iter().all(|place| place.half_width <= place.asked)
    }
}

/// What nine in ten of `halves` keep: a median would be silent of a whole kind of cases that is known worse. `None` of nothing.
fn of_nearly_all(mut halves: Vec<f64>) -> Option<f64> {
    const NEARLY_ALL: f64 = 0.9;
    halves.sort_unstable_by(f64::total_cmp);
    stats::quantile_of_sorted(&halves, NEARLY_ALL)
}

impl MoreTime {
    /// The least of some times as long that gives what was asked for, or else the longest of them; `None` where `places` are known so well
    /// already.
    fn from_places(time_ns: u64, places: &[PlaceWorth]) -> Option<Self> {
        const TIMES: [u64; 3] = [2, 5, 10];
        let after = |times: u64| -> Vec<f64> {
            places.iter().map(|place| place.half_width / (times as f64).sqrt()).collect()
        };
        let suffices =
            |times: &u64| after(*times).iter().zip(places).all(|(half, place)| *half <= place.asked);
        if places.is_empty() || suffices(&1) {
            return None;
        }
        let times = TIMES.into_iter().find(suffices).unwrap_or(TIMES[TIMES.len() - 1]);
        Some(Self { time_ns: time_ns.saturating_mul(times), half_widths: after(times) })
    }
}
