//! Simulated runs on a simulated host that drifts, for tests: of what a comparison says of them the truth is known.

use super::comparison::compare;
use super::options::ComparisonOptions;
use super::result::{ComparedCase, ComparisonVerdict};
use crate::simulated::Random;
use crate::stats;
use model::case::Case;
use model::estimate::Estimate;
use model::floor::{self, CONTEXT_SWITCH, SYSCALL};
use model::record::{Record, Results};
use model::sample::Sample;
use model::testing;
use model::units::Size;
use model::workload::Workload;

/// How the speed of a host moves, on logarithms.
#[derive(Debug, Clone, Copy)]
pub(super) enum Drift {
    Rest,
    /// Each run has its own speed.
    Level,
    /// An autoregressive process with a standard deviation of 10% and this correlation time in seconds.
    Wander(f64),
    /// Two modes, ×1.0 and ×1.5, left after this time in seconds on average.
    Modes(f64),
}

impl Drift {
    const STEP_S: f64 = 0.05;

    fn path(self, deviation: f64, seconds: f64, random: &mut Random) -> Vec<f64> {
        let steps = (seconds / Self::STEP_S) as usize + 2;
        match self {
            Drift::Rest => vec![0.0; steps],
            Drift::Level => vec![2.0 * deviation * random.normal(); steps],
            Drift::Wander(correlation_s) => {
                let keep = (-Self::STEP_S / correlation_s).exp();
                let mut at = deviation * random.normal();
                let mut step = || {
                    at = keep * at + (1.0 - keep * keep).sqrt() * deviation * random.normal();
                    at
                };
                (0..steps).map(|_| step()).collect()
            }
            Drift::Modes(dwell_s) => {
                let mut slow = random.unit() < 0.5;
                let mut left_s = random.exponential(dwell_s);
                let mut step = || {
                    left_s -= Self::STEP_S;
                    while left_s < 0.0 {
                        slow = !slow;
                        left_s += random.exponential(dwell_s);
                    }
                    if slow { 1.5f64.ln() } else { 0.0 }
                };
                (0..steps).map(|_| step()).collect()
            }
        }
    }
}

/// A simulated suite on a simulated host: 20 cases, three floors, a minute in rounds of 1.5 s.
#[derive(Debug, Clone, Copy)]
pub(super) struct World {
    pub(super) drift: Drift,
    /// How much of the host's speed each floor shares: the system call, the hand-over, the copy.
    pub(super) shares: [f64; 3],
    /// The deviation from run to run of one case, which no floor shares.
    pub(super) case_shift: f64,
    /// The same of a floor.
    pub(super) floor_shift: f64,
    /// A drift of each case alone: deviation and correlation time in seconds.
    pub(super) own_drift: Option<(f64, f64)>,
    /// Whether cases leave when their interval is narrow enough, as in a real run.
    pub(super) settles: bool,
    /// What B's first case takes over A's.
    pub(super) effect: f64,
}

pub(super) const CASES: usize = 20;
pub(super) const ROUNDS: usize = 40;
pub(super) const ROUND_S: f64 = 1.5;
pub(super) const WORLD: World = World {
    drift: Drift::Rest,
    shares: [1.0; 3],
    case_shift: 0.02,
    floor_shift: 0.01,
    own_drift: None,
    settles: false,
    effect: 1.0,
};

pub(super) fn on_cpu(name: &str, workload: Workload) -> Case {
    let size_bytes = (workload != Workload::Cost).then_some(Size(64));
    Case { workload, size_bytes, ..floor::operation(name, 1) }
}

impl World {
    fn cases() -> Vec<Case> {
        let workload = |nth: usize| match nth % 10 {
            9 => Workload::Cost,
            5..9 => Workload::Throughput,
            _ => Workload::Latency,
        };
        (0..CASES).map(|nth| on_cpu(&format!("row-{nth}"), workload(nth))).collect()
    }

    pub(super) fn run(self, effect: f64, random: &mut Random) -> Results {
        let floors = [
            on_cpu(SYSCALL, Workload::Cost),
            on_cpu(CONTEXT_SWITCH, Workload::Latency),
            on_cpu(floor::MEMCPY, Workload::Cost),
        ];
        let cases = Self::cases();
        let slots = cases.len() + floors.len();
        let seconds = ROUNDS as f64 * ROUND_S;
        let speed = self.drift.path(0.1, seconds, random);
        let own: Vec<Vec<f64>> = (0..CASES)
            .map(|_| match self.own_drift {
                Some((deviation, s)) => Drift::Wander(s).path(deviation, seconds, random),
                None => vec![0.0; speed.len()],
            })
            .collect();
        let shifts: Vec<f64> = (0..slots)
            .map(|slot| random.normal() * if slot < CASES { self.case_shift } else { self.floor_shift })
            .collect();
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); slots];
        for round in 0..ROUNDS {
            let logs = self.round(round, effect, &speed, &own, &shifts, random);
            for (slot, (at_s, log)) in logs.iter().enumerate() {
                if slot < CASES && self.settles && is_settled(&samples[slot]) {
                    continue;
                }
                // Throughput is bounded by the copy, the rest by the hand-over.
                let floor = cases.get(slot).and_then(|case| match case.workload {
                    Workload::Cost => None,
                    Workload::Throughput => Some(CASES + 2),
                    _ => Some(CASES + 1),
                });
                let floor_ns = floor.map(|floor| 400.0 * logs[floor].1.exp());
                samples[slot].push(Sample {
                    started_ns: (at_s * 1e9) as u64,
                    ..testing::sample(round as u32, 1000.0 * log.exp(), floor_ns)
                });
            }
        }
        let records = cases.into_iter().chain(floors).zip(samples).enumerate();
        let records = records
            .map(|(slot, (case, samples))| Record { floor: slot >= CASES, ..testing::record(case, samples) });
        Results { records: records.collect(), ..testing::results() }
    }

    /// One round in random order: when the trial of each slot began, and the logarithm of its time.
    fn round(
        self,
        round: usize,
        effect: f64,
        speed: &[f64],
        own: &[Vec<f64>],
        shifts: &[f64],
        random: &mut Random,
    ) -> Vec<(f64, f64)> {
        let slots = shifts.len();
        let mut order: Vec<usize> = (0..slots).collect();
        for last in (1..slots).rev() {
            order.swap(last, (random.unit() * (last + 1) as f64) as usize);
        }
        let mut logs = vec![(0.0, 0.0); slots];
        for (place, slot) in order.into_iter().enumerate() {
            let at_s = (round as f64 + place as f64 / slots as f64) * ROUND_S;
            let step = (at_s / Drift::STEP_S) as usize;
            // 2% from trial to trial, and one trial in 25 disturbed.
            let mut log = shifts[slot] + 0.02 * random.normal();
            if random.unit() < 0.04 {
                log += random.exponential(0.25);
            }
            log += match slot.checked_sub(CASES) {
                Some(floor) => self.shares[floor] * speed[step],
                None => speed[step] + own[slot][step] + if slot == 0 { effect.ln() } else { 0.0 },
            };
            logs[slot] = (at_s, log);
        }
        logs
    }

    /// Of `pairs` pairs of runs: the share of unchanged cases that are called different, the share of those
    /// in which no difference is found, and the share of changed cases that are found.
    pub(super) fn rates(self, pairs: usize) -> Rates {
        let mut random = Random(7);
        let (mut called, mut same, mut found) = (0, 0, 0);
        for _ in 0..pairs {
            let (a, b) = (self.run(1.0, &mut random), self.run(self.effect, &mut random));
            let comparison = compare(&[a], &[b], ComparisonOptions::default());
            let is_called = |case: &&ComparedCase| {
                matches!(case.verdict, ComparisonVerdict::Faster | ComparisonVerdict::Slower)
            };
            called += comparison.cases[1..].iter().filter(is_called).count();
            same += comparison.cases[1..]
                .iter()
                .filter(|case| case.verdict == ComparisonVerdict::NoDifference)
                .count();
            found += usize::from(comparison.cases[0].verdict == ComparisonVerdict::Slower);
        }
        let share = |count: usize, of: usize| count as f64 / of as f64;
        let unchanged = pairs * (CASES - 1);
        Rates { called: share(called, unchanged), same: share(same, unchanged), found: share(found, pairs) }
    }
}

pub(super) fn is_settled(samples: &[Sample]) -> bool {
    let iterations_ns: Vec<f64> = samples.iter().map(Sample::iteration_ns).collect();
    stats::median_interval(&iterations_ns).and_then(Estimate::half_width).is_some_and(|half| half <= 0.02)
}

#[derive(Debug)]
pub(super) struct Rates {
    pub(super) called: f64,
    pub(super) same: f64,
    pub(super) found: f64,
}

/// Every drift, with floors that share it and with floors of which only one does.
pub(super) fn worlds() -> Vec<World> {
    let drifts = [
        Drift::Rest,
        Drift::Level,
        Drift::Wander(1.0),
        Drift::Wander(15.0),
        Drift::Wander(60.0),
        Drift::Modes(1.0),
        Drift::Modes(10.0),
        Drift::Modes(30.0),
        Drift::Modes(60.0),
    ];
    let mut worlds: Vec<World> = drifts.map(|drift| World { drift, ..WORLD }).to_vec();
    worlds.extend(drifts.map(|drift| World { drift, settles: true, ..WORLD }));
    worlds.extend(drifts.map(|drift| World { drift, shares: [0.2, 1.0, 0.2], ..WORLD }));
    worlds.extend([10.0, 60.0].map(|s| World { drift: Drift::Modes(s), shares: [1.0, 0.3, 0.3], ..WORLD }));
    worlds.extend([10.0, 60.0].map(|s| World { drift: Drift::Modes(s), floor_shift: 0.04, ..WORLD }));
    worlds.extend([1.0, 5.0].map(|s| World { own_drift: Some((0.04, s)), case_shift: 0.01, ..WORLD }));
    worlds
}
