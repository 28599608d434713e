//! The paths of all iterations of one trial, added up by place.

use super::segment::{CriticalPath, EventCounts, SegmentKind, SegmentPlace};
use super::walk::critical_paths;
use model::observation::CpuTrace;
use std::collections::BTreeMap;

/// What one place of the path took in all iterations of a trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PlaceTally {
    pub(super) ns: u64,
    /// The events whose recording took time in it.
    pub(super) events: EventCounts,
    /// When in an iteration it begins, added up over the segments, and their number.
    pub(super) offset_ns: u64,
    pub(super) segments: u64,
}

/// The paths of one trial.
#[derive(Debug, Clone, Default)]
pub(super) struct TrialPaths {
    pub(super) iterations: u64,
    /// Those of which it is not known throughout whom the server served.
    pub(super) unfollowed: u64,
    pub(super) places: BTreeMap<SegmentPlace, PlaceTally>,
    /// The nanoseconds in which other tasks had a CPU that an endpoint waited for, by name.
    pub(super) tasks_ns: BTreeMap<String, u64>,
    pub(super) each: Vec<IterationPlaces>,
    /// The path of an iteration that took about the median.
    pub(super) typical: Option<CriticalPath>,
}

/// What one iteration spent where.
#[derive(Debug, Clone)]
pub(super) struct IterationPlaces {
    pub(super) ns: u64,
    pub(super) places: Vec<(SegmentPlace, u64)>,
}

impl IterationPlaces {
    fn from_path(path: &CriticalPath) -> Self {
        let mut places: BTreeMap<SegmentPlace, u64> = BTreeMap::new();
        path.segments.iter().for_each(|segment| *places.entry(segment.place).or_default() += segment.ns());
        Self { ns: path.ns(), places: places.into_iter().collect() }
    }
}

impl TrialPaths {
    pub(super) fn from_trace(trace: &CpuTrace) -> Self {
        let paths = critical_paths(trace);
        let unfollowed = paths.iter().filter(|path| !path.is_followed).count() as u64;
        let mut trial = TrialPaths { iterations: paths.len() as u64, unfollowed, ..Self::default() };
        for path in &paths {
            for segment in &path.segments {
                let tally = trial.places.entry(segment.place).or_default();
                tally.ns += segment.ns();
                tally.offset_ns += segment.from_ns - path.from_ns;
                tally.segments += 1;
                for (sum, events) in tally.events.iter_mut().zip(segment.events) {
                    *sum += events;
                }
                if let (SegmentKind::OtherTask, Some(tid)) = (segment.place.kind, segment.task) {
                    let name = trace.task_names.get(&tid).cloned();
                    let name = name.unwrap_or_else(|| format!("thread {tid}"));
                    *trial.tasks_ns.entry(name).or_default() += segment.ns();
                }
            }
        }
        trial.each = paths.iter().map(IterationPlaces::from_path).collect();
        trial.typical = typical(paths);
        trial
    }

    /// Adds another slice of the same trial.
    pub(super) fn add(&mut self, other: Self) {
        self.iterations += other.iterations;
        self.unfollowed += other.unfollowed;
        for (place, of) in other.places {
            let tally = self.places.entry(place).or_default();
            tally.ns += of.ns;
            tally.offset_ns += of.offset_ns;
            tally.segments += of.segments;
            tally.events.iter_mut().zip(of.events).for_each(|(sum, events)| *sum += events);
        }
        for (name, ns) in other.tasks_ns {
            *self.tasks_ns.entry(name).or_default() += ns;
        }
        self.each.extend(other.each);
    }

    /// Nanoseconds an iteration at `place`.
    pub(super) fn ns_at(&self, place: SegmentPlace) -> f64 {
        self.places.get(&place).map_or(0.0, |tally| tally.ns as f64 / self.iterations as f64)
    }

    /// Nanoseconds an iteration.
    pub(super) fn iteration_ns(&self) -> f64 {
        self.places.values().map(|tally| tally.ns).sum::<u64>() as f64 / self.iterations as f64
    }
}

/// The path whose iteration took the median.
fn typical(mut paths: Vec<CriticalPath>) -> Option<CriticalPath> {
    paths.sort_by_key(CriticalPath::ns);
    let middle = paths.len() / 2;
    (!paths.is_empty()).then(|| paths.swap_remove(middle))
}
