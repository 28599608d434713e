//! How fast the host was beside a slice, as a fraction of the full speed that the run saw.
//!
//! What a slower host does to the times of a case is in `run`.

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

/// The readings of a run, of each CPU and of each pair of CPUs, and the lowest of them: full speed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FullSpeed {
    cpus: BTreeMap<u32, Readings>,
    /// Of servers that may be on another host, which has numbers of its own.
    remote_cpus: BTreeMap<u32, Readings>,
    /// The lower CPU first.
    pairs: BTreeMap<(u32, u32), Readings>,
}

impl FullSpeed {
    /// Of all samples of `results`.
    pub fn from_results(results: &Results) -> Self {
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
            match place {
                Place::Cpu(_) | Place::RemoteCpu(_) => slice.cpus += log,
                Place::Pair(_) => slice.pair += log,
            }
        }
        let cpus_read = 1 + u8::from(sample.speed.is_some_and(|speed| speed.server.is_some()));
        slice.map(|slice| SliceSpeed { cpus: slice.cpus / f64::from(cpus_read), ..slice })
    }

    /// The speed beside a sample of `case`, of the slowest of what it used, as a fraction of full speed; `None` without readings.
    pub fn fraction(&self, case: &Case, sample: &Sample) -> Option<f64> {
        self.beside(case, sample).map(|slice| slice.speed)
    }
}

/// How fast the host was beside one slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceSpeed {
    /// The speed of the slowest of what the slice used, as a fraction of full speed.
    pub speed: f64,
    /// Whether both readings of each CPU that it used are within [`UNDISTURBED_WITHIN`] of full speed, and those of their pair within
    /// [`PAIR_WITHIN`].
    pub undisturbed: bool,
    /// The logarithm of the readings of the CPUs over full speed, a mean where there are two.
    pub cpus: f64,
    /// The same of the reading of the pair of CPUs; 0 where there is none.
    pub pair: f64,
}

impl SliceSpeed {
    const FULL: Self = Self { speed: f64::INFINITY, undisturbed: true, cpus: 0.0, pair: 0.0 };
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

pub(crate) fn ordered(pair: CpuPair) -> (u32, u32) {
    (pair.client.min(pair.server), pair.client.max(pair.server))
}

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
