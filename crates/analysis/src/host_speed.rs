//! How fast the host was beside a slice, as a fraction of the full speed that the run saw; and how its floors moved from one part of
//! the run to the next.
//!
//! What a slower host does to the times of a case is in `host_view`.

use crate::wander::{Window, wander, window_of};
use model::floor::{CACHE_LINE, CONTEXT_SWITCH, REMOTE_WAKE, SYSCALL};
use model::placement::CpuPair;
use model::record::{Results, Sample};
use model::speed::SpeedReading;
use model::{Case, Placement};
use std::collections::BTreeMap;

/// Readings within this fraction of full speed are of an undisturbed CPU.
pub const UNDISTURBED_WITHIN: f64 = 0.05;

/// How far a pair's reading may be from the fastest. A reading of a few hand-overs varies by a fifth by itself; two virtual CPUs
/// that are on two cores at one time and on one at another differ by a factor of some five.
pub const PAIR_WITHIN: f64 = 0.5;

/// The floors by which it is seen how a host moves while a run goes on.
const MOVED_WITH: [&str; 4] = [CONTEXT_SWITCH, SYSCALL, CACHE_LINE, REMOTE_WAKE];
/// With fewer slices in a window its middle varies by chance.
const FEWEST_IN_WINDOW: u64 = 4;

/// The readings of a run, of each CPU and of each pair of CPUs, and the lowest of them: full speed. Also how the floors of the run
/// moved while it went on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FullSpeed {
    cpus: BTreeMap<u32, Readings>,
    /// Of servers that may be on another host, which has numbers of its own.
    remote_cpus: BTreeMap<u32, Readings>,
    /// The lower CPU first.
    pairs: BTreeMap<(u32, u32), Readings>,
    /// The times of floors in each window of the run, by name and CPUs.
    floors: BTreeMap<(&'static str, (u32, u32)), Windows>,
}

impl FullSpeed {
    /// Of all samples of `results`.
    pub fn of(results: &Results) -> Self {
        Self::of_records(results.records.iter().map(|record| (&record.case, record.samples.as_slice())))
    }

    /// Of the samples of each case.
    pub fn of_records<'a>(records: impl IntoIterator<Item = (&'a Case, &'a [Sample])>) -> Self {
        let mut full = Self::default();
        for (case, samples) in records {
            samples.iter().for_each(|sample| full.add(case, sample));
        }
        full
    }

    /// Takes the readings of one more sample. The order in which samples come does not matter.
    pub fn add(&mut self, case: &Case, sample: &Sample) {
        for (place, reading) in readings(case, sample) {
            let readings = match place {
                Place::Cpu(cpu) => self.cpus.entry(cpu).or_default(),
                Place::RemoteCpu(cpu) => self.remote_cpus.entry(cpu).or_default(),
                Place::Pair(pair) => self.pairs.entry(pair).or_default(),
            };
            readings.add(reading.before_ns);
            readings.add(reading.after_ns);
        }
        let floor = MOVED_WITH.into_iter().find(|floor| *floor == case.spec.name);
        if let Some((floor, cpus)) = floor.zip(case.cpus) {
            let windows = self.floors.entry((floor, ordered(cpus))).or_default();
            let ns = sample.iteration_ns();
            if ns.is_finite() && ns > 0.0 {
                windows.entry(window_of(sample.started_ns)).or_default().add(ns);
            }
        }
    }

    /// By how much the host moved within the run for a case like `case`, which sleeps or not: the standard deviation, on logarithms, of what most
    /// windows of the run say of the floor that does as the case does. `None` where there is no such floor in enough of them, and between hosts.
    pub(crate) fn wander(&self, case: &Case, sleeps: bool) -> Option<f64> {
        let cpus = case.cpus.filter(|_| case.placement != Placement::Remote)?;
        let floors: &[&'static str] = match (case.uses_two_cpus(), sleeps) {
            (true, true) => &[REMOTE_WAKE],
            (true, false) => &[CACHE_LINE],
            (false, _) => &[CONTEXT_SWITCH, SYSCALL],
        };
        floors.iter().find_map(|floor| {
            let windows = self.floors.get(&(*floor, ordered(cpus)))?.values();
            wander(&windows.filter_map(Readings::window).collect::<Vec<_>>())
        })
    }

    /// The reading of `cpu` at full speed, in nanoseconds; `None` without readings of it.
    pub fn cpu_ns(&self, cpu: u32) -> Option<f64> {
        self.cpus.get(&cpu)?.full_ns()
    }

    /// The reading of a pair of CPUs at full speed, in nanoseconds; `None` without readings of it.
    pub fn pair_ns(&self, pair: CpuPair) -> Option<f64> {
        self.pairs.get(&ordered(pair))?.full_ns()
    }

    /// What the readings beside a sample of `case` say; `None` without readings.
    pub fn beside(&self, case: &Case, sample: &Sample) -> Option<SliceSpeed> {
        let mut slice: Option<SliceSpeed> = None;
        for (place, reading) in readings(case, sample) {
            let full_ns = match place {
                Place::Cpu(cpu) => self.cpu_ns(cpu),
                Place::RemoteCpu(cpu) => self.remote_cpus.get(&cpu).and_then(Readings::full_ns),
                Place::Pair((client, server)) => self.pair_ns(CpuPair { client, server }),
            }?;
            let slice = slice.get_or_insert(SliceSpeed::FULL);
            let within = match place {
                Place::Cpu(_) | Place::RemoteCpu(_) => UNDISTURBED_WITHIN,
                Place::Pair(_) => PAIR_WITHIN,
            };
            let is_within = reading.slower_ns() <= full_ns * (1.0 + within);
            slice.undisturbed &= is_within;
            if !matches!(place, Place::Pair(_)) || !is_within {
                slice.speed = slice.speed.min(full_ns / reading.mean_ns());
            }
            let log = (reading.mean_ns() / full_ns).ln();
            let half_difference = (reading.before_ns / reading.after_ns).ln() / 2.0;
            match place {
                Place::Cpu(_) | Place::RemoteCpu(_) => slice.cpus.add(log, half_difference),
                Place::Pair(_) => slice.pair.add(log, half_difference),
            }
        }
        let cpus_read = 1 + u8::from(sample.speed.is_some_and(|speed| speed.server.is_some()));
        slice.map(|slice| SliceSpeed { cpus: slice.cpus.over(f64::from(cpus_read)), ..slice })
    }

    /// The speed beside a sample of `case`, of the slowest of what it used, as a fraction of full speed; `None` without readings.
    pub fn fraction(&self, case: &Case, sample: &Sample) -> Option<f64> {
        self.beside(case, sample).map(|slice| slice.speed)
    }

    /// Whether both readings of each CPU that a sample of `case` used are within [`UNDISTURBED_WITHIN`] of full speed, and those
    /// of their pair within [`PAIR_WITHIN`]; `None` without readings.
    pub fn undisturbed(&self, case: &Case, sample: &Sample) -> Option<bool> {
        self.beside(case, sample).map(|slice| slice.undisturbed)
    }
}

/// How fast the host was beside one slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceSpeed {
    /// The speed of the slowest of what the slice used, as a fraction of full speed.
    pub speed: f64,
    /// Whether all readings are as near to full speed as [`FullSpeed::undisturbed`] says.
    pub undisturbed: bool,
    /// The readings of the CPUs, put together.
    pub cpus: Slowness,
    /// The readings of the pair of CPUs.
    pub pair: Slowness,
}

impl SliceSpeed {
    const FULL: Self =
        Self { speed: f64::INFINITY, undisturbed: true, cpus: Slowness::NONE, pair: Slowness::NONE };
}

/// Readings over those at full speed, a mean where there are several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slowness {
    /// The logarithm of the readings over full speed.
    pub log: f64,
    /// Half the logarithm of the reading before over the one after: it varies as the error of `log` does.
    pub half_difference: f64,
}

impl Slowness {
    /// Of nothing that was read.
    pub const NONE: Self = Self { log: 0.0, half_difference: 0.0 };

    fn add(&mut self, log: f64, half_difference: f64) {
        self.log += log;
        self.half_difference += half_difference;
    }

    fn over(self, count: f64) -> Self {
        Self { log: self.log / count, half_difference: self.half_difference / count }
    }
}

/// What was read.
#[derive(Debug, Clone, Copy)]
enum Place {
    Cpu(u32),
    /// The server's, of a case whose endpoints may be on two hosts.
    RemoteCpu(u32),
    Pair((u32, u32)),
}

/// The readings beside a sample, of CPUs that are known and times that can be compared.
fn readings<'a>(case: &Case, sample: &'a Sample) -> impl Iterator<Item = (Place, &'a SpeedReading)> {
    let known = sample.speed.as_ref().zip(case.cpus).map(|(speed, cpus)| {
        let of_server = if case.placement == Placement::Remote { Place::RemoteCpu } else { Place::Cpu };
        let server = speed.server.as_ref().map(|reading| (of_server(cpus.server), reading));
        let pair = speed.pair.as_ref().map(|reading| (Place::Pair(ordered(cpus)), reading));
        [Some((Place::Cpu(cpus.client), &speed.client)), server, pair]
    });
    let is_time = |ns: f64| ns.is_finite() && ns > 0.0;
    known
        .into_iter()
        .flatten()
        .flatten()
        .filter(move |(_, reading)| is_time(reading.before_ns) && is_time(reading.after_ns))
}

fn ordered(pair: CpuPair) -> (u32, u32) {
    (pair.client.min(pair.server), pair.client.max(pair.server))
}

/// Times by the window of the run in which they were taken.
type Windows = BTreeMap<u64, Readings>;

/// How often each reading was seen: buckets that are [`Readings::BUCKET`] wide on the logarithm, so that a run of any length
/// takes little memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Readings {
    buckets: BTreeMap<i64, u64>,
    count: u64,
}

impl Readings {
    /// A two-thousandth, well below what readings differ by.
    const BUCKET: f64 = 0.0005;

    fn add(&mut self, ns: f64) {
        *self.buckets.entry((ns.ln() / Self::BUCKET).floor() as i64).or_default() += 1;
        self.count += 1;
    }

    /// What they say on logarithms as times of one window; `None` of too few.
    fn window(&self) -> Option<Window> {
        /// The width between the quartiles of normal values, in standard deviations.
        const QUARTILES: f64 = 1.349;
        let deviation = (self.log_at(3) - self.log_at(1)) / QUARTILES;
        (self.count >= FEWEST_IN_WINDOW).then(|| Window {
            middle: self.log_at(2),
            deviation,
            values: self.count as f64,
        })
    }

    /// The logarithm of a quartile, to within a bucket.
    fn log_at(&self, quarter: u64) -> f64 {
        bucket_at(&self.buckets, self.count * quarter / 4).map_or(0.0, |bucket| Self::BUCKET * bucket as f64)
    }

    /// The reading at full speed: the median of those within [`UNDISTURBED_WITHIN`] of the lowest. The lowest is one that few
    /// are below, because a single low one may be a mistake of the clock; but a busy host may be at full speed for less than a
    /// hundredth of the time.
    fn full_ns(&self) -> Option<f64> {
        let lowest = bucket_at(&self.buckets, self.count / 500 + (self.count / 10).min(4))?;
        let near = self.buckets.range(..=lowest + (UNDISTURBED_WITHIN / Self::BUCKET) as i64);
        let count: u64 = near.clone().map(|(_, count)| count).sum();
        let middle = bucket_at(near, count / 2)?;
        Some(((middle as f64 + 0.5) * Self::BUCKET).exp())
    }
}

/// The bucket of the reading that has so many below it.
fn bucket_at<'a>(buckets: impl IntoIterator<Item = (&'a i64, &'a u64)>, below: u64) -> Option<i64> {
    let mut passed = 0;
    let found = buckets.into_iter().find(|(_, count)| {
        passed += **count;
        passed > below
    });
    found.map(|(bucket, _)| *bucket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_view::HostViews;
    use crate::simulated::Random;
    use crate::stats;
    use model::{floor, testing};

    const SLICES: u32 = 600;

    /// A case and the floor of a minute, each slice with an error of 2% of its own, on a host that is faster and slower by `deviation` from
    /// window to window.
    fn minute(deviation: f64, random: &mut Random) -> (Vec<Sample>, Vec<Sample>) {
        let moves: Vec<f64> = (0..12).map(|_| deviation * random.normal()).collect();
        let mut slice = |nth: u32, iteration_ns: f64| {
            let started_ns = u64::from(nth) * 60_000_000_000 / u64::from(SLICES);
            let log = moves[window_of(started_ns) as usize] + 0.02 * random.normal();
            Sample { started_ns, trial: nth / 20, ..testing::sample(nth, iteration_ns * log.exp(), None) }
        };
        (0..SLICES).map(|nth| (slice(nth, 5000.0), slice(nth, 2000.0))).unzip()
    }

    fn switch() -> Case {
        let cpus = Some(CpuPair { client: 1, server: 1 });
        Case { cpus, workload: model::Workload::Latency, ..floor::operation(CONTEXT_SWITCH, 1) }
    }

    fn case() -> Case {
        Case { spec: model::Spec::plain("pipe"), ..switch() }
    }

    #[test]
    fn what_a_floor_moved_by_within_a_run_is_told_from_what_its_slices_differ_by() {
        let mut random = Random(3);
        let mut wanders = |deviation: f64| -> Vec<f64> {
            let one = |_| {
                let (_, floor) = minute(deviation, &mut random);
                FullSpeed::of_records([(&switch(), floor.as_slice())]).wander(&case(), false).unwrap()
            };
            (0..50).map(one).collect()
        };
        // The median of 50 slices that differ by 2% varies by 0.35%.
        assert!(stats::median(&wanders(0.0)).unwrap() < 0.003);
        let moved = stats::median(&wanders(0.03)).unwrap();
        assert!((0.024..0.036).contains(&moved), "{moved}");
    }

    #[test]
    fn the_interval_of_a_case_is_as_wide_as_its_floor_moved() {
        let mut random = Random(4);
        let (_, moved) = minute(0.03, &mut random);
        let (samples, still) = minute(0.0, &mut random);
        let half = |floor: &[Sample]| {
            let full = FullSpeed::of_records([(&switch(), floor)]);
            HostViews::of(&case(), &samples, &full).unwrap().iteration_ns.half_width().unwrap()
        };
        assert!(half(&still) < 0.01 && half(&moved) > 0.035, "{} {}", half(&still), half(&moved));
    }

    #[test]
    fn a_floor_of_other_cpus_or_of_too_short_a_run_says_nothing() {
        let (_, floor) = minute(0.0, &mut Random(5));
        let of = |case: &Case, floor: &[Sample], sleeps| {
            FullSpeed::of_records([(&switch(), floor)]).wander(case, sleeps)
        };
        assert!(of(&case(), &floor, false).is_some());
        // Between two CPUs a switch on one of them says nothing.
        let other = |client, server| Case { cpus: Some(CpuPair { client, server }), ..case() };
        assert_eq!(of(&other(0, 0), &floor, false), None);
        assert_eq!(of(&other(1, 0), &floor, true), None);
        assert_eq!(of(&Case { cpus: None, ..case() }, &floor, false), None);
        assert_eq!(of(&case(), &floor[..SLICES as usize / 3], false), None);
    }
}
