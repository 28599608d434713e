//! Where on the path the events of each set lie, and so where what they cost lies.

use super::dose::DoseCosts;
use super::segment::{EventCounts, SegmentKind, SegmentPlace, place_of};
use super::tally::TrialPaths;
use model::endpoint::EndpointRole;
use model::observation::EventSet;
use std::collections::BTreeMap;

/// Of a set with fewer events than this on the path of an iteration the cost cannot be placed: what its trials add is chance, or off the
/// path.
const RARE: f64 = 0.1;

/// The events on the path of an iteration, in the mean over trials.
pub(super) struct EventShares {
    /// Every place, in the order in which an iteration comes to them.
    pub(super) places: Vec<PlaceShare>,
    /// The events of each set on the path of an iteration.
    pub(super) events: Vec<f64>,
    /// The iterations that were observed.
    pub(super) iterations: u64,
    /// The sets, as they were given.
    sets: Vec<EventSet>,
}

/// The events at one place.
pub(super) struct PlaceShare {
    pub(super) place: SegmentPlace,
    /// The events of all sets in an iteration.
    pub(super) events: f64,
    /// The share of the cost of each set that lies here; that of rare sets lies nowhere.
    of_sets: Vec<f64>,
    /// The share of what all sets have in common.
    of_common: f64,
    /// The client's own code, in which the clock is read for each iteration.
    has_clock: bool,
}

impl EventShares {
    /// Of what `trials` observed of `sets`.
    pub(super) fn from_trials(trials: &[&TrialPaths], sets: &[EventSet]) -> Self {
        let mut places: BTreeMap<SegmentPlace, (EventCounts, u64, u64)> = BTreeMap::new();
        for (place, tally) in trials.iter().flat_map(|trial| &trial.places) {
            let (events, offset_ns, segments) = places.entry(*place).or_default();
            events.iter_mut().zip(tally.events).for_each(|(sum, events)| *sum += events);
            *offset_ns += tally.offset_ns;
            *segments += tally.segments;
        }
        let iterations: u64 = trials.iter().map(|trial| trial.iterations).sum();
        let an_iteration = |count: u64| count as f64 / iterations.max(1) as f64;
        let of_set = |set: EventSet| places.values().map(|(events, ..)| events[place_of(set)]).sum::<u64>();
        let totals: Vec<u64> = sets.iter().map(|set| of_set(*set)).collect();
        let of_frequent: Vec<u64> =
            totals.iter().map(|total| if an_iteration(*total) < RARE { 0 } else { *total }).collect();
        let share = |count: u64, of: u64| if of == 0 { 0.0 } else { count as f64 / of as f64 };
        let clock = client_code(places.keys());
        let at_place = |(place, (events, ..)): (&SegmentPlace, &(EventCounts, u64, u64))| {
            let here: Vec<u64> = sets.iter().map(|set| events[place_of(*set)]).collect();
            let frequent_here = here.iter().zip(&of_frequent).filter(|(_, total)| **total > 0);
            PlaceShare {
                place: *place,
                events: an_iteration(events.iter().sum()),
                of_common: share(frequent_here.map(|(count, _)| count).sum(), of_frequent.iter().sum()),
                of_sets: here.iter().zip(&of_frequent).map(|(count, total)| share(*count, *total)).collect(),
                has_clock: *place == clock,
            }
        };
        let mut in_order: Vec<(f64, PlaceShare)> =
            places.iter().map(|at| (at.1.1 as f64 / at.1.2.max(1) as f64, at_place(at))).collect();
        in_order.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        Self {
            places: in_order.into_iter().map(|(_, place)| place).collect(),
            events: totals.iter().map(|total| an_iteration(*total)).collect(),
            iterations,
            sets: sets.to_vec(),
        }
    }

    /// The sets that are not rare.
    pub(super) fn frequent(&self) -> Vec<EventSet> {
        let each = self.sets.iter().zip(&self.events);
        each.filter(|(_, events)| **events >= RARE).map(|(set, _)| *set).collect()
    }
}

impl PlaceShare {
    /// What of `costs` lies here, in nanoseconds an iteration.
    pub(super) fn cost_ns(&self, costs: &DoseCosts) -> f64 {
        let of_sets: f64 = self.of_sets.iter().zip(&costs.sets_ns).map(|(share, ns)| share * ns).sum();
        let of_clock = if self.has_clock { costs.base_ns } else { 0.0 };
        of_sets + self.of_common * costs.common_ns + of_clock
    }
}

/// Where the client's own code is among `places`.
fn client_code<'a>(mut places: impl Iterator<Item = &'a SegmentPlace>) -> SegmentPlace {
    let of_client = |kind| SegmentPlace { of: EndpointRole::Client, kind, call: None };
    let user = of_client(SegmentKind::User);
    if places.any(|place| *place == user) { user } else { of_client(SegmentKind::Running) }
}
