//! Interleaved comparisons of simulated sides, on hosts whose state changes, with a look after every trial pair.

use super::paired::{PairedComparison, PairedRatios, compare_paired, is_paired_verdict_reached, plan_paired};
use super::quadruples::{Quadruple, adjusted, quadruples};
use super::result::{ComparisonOptions, ComparisonVerdict};
use super::simulation::Random;
use model::sample::Sample;
use model::speed::{SpeedReading, SpeedReadings};
use model::testing;
use model::units::Percent;

/// How the host's speed moves, on logarithms.
#[derive(Debug, Clone, Copy)]
enum Host {
    Rest,
    /// Full speed, and 1.5 times slower while a neighbour runs, each left after this many seconds on average.
    Neighbour(f64),
    /// An autoregressive process with a standard deviation of 15% and this correlation time in seconds.
    Wander(f64),
}

/// Two sides alive at once on one host.
#[derive(Debug, Clone, Copy)]
struct Sides {
    host: Host,
    /// ln B − ln A at full speed.
    shift: f64,
    /// How much of the host's slowness each side feels.
    response: [f64; 2],
    /// The deviation of a drift of the ratio that trial pairs near in time share.
    ratio_drift: f64,
    readings: bool,
}

const SIDES: Sides = Sides { host: Host::Rest, shift: 0.0, response: [0.7; 2], ratio_drift: 0.0, readings: true };
const SLICE_S: f64 = 0.0013;
const START_S: f64 = 0.01;
const QUADRUPLES: u32 = 24;
/// As many as there is time for in 6 s.
const TRIAL_PAIRS: u32 = 44;

/// A host's state as time goes on.
struct State {
    host: Host,
    log: f64,
    left_s: f64,
}

impl State {
    fn new(host: Host, random: &mut Random) -> Self {
        let log = match host {
            Host::Rest => 0.0,
            Host::Neighbour(_) => if random.unit() < 0.5 { 1.5f64.ln() } else { 0.0 },
            Host::Wander(_) => 0.15 * random.normal(),
        };
        let left_s = if let Host::Neighbour(dwell_s) = host { random.exponential(dwell_s) } else { 0.0 };
        Self { host, log, left_s }
    }

    fn advance(&mut self, seconds: f64, random: &mut Random) {
        match self.host {
            Host::Rest => {}
            Host::Neighbour(dwell_s) => {
                self.left_s -= seconds;
                while self.left_s < 0.0 {
                    self.log = 1.5f64.ln() - self.log;
                    self.left_s += random.exponential(dwell_s);
                }
            }
            Host::Wander(correlation_s) => {
                let keep = (-seconds / correlation_s).exp();
                self.log = keep * self.log + (1.0 - keep * keep).sqrt() * 0.15 * random.normal();
            }
        }
    }
}

impl Sides {
    /// The slices of one trial pair after the other, of A and of B.
    fn measure(self, random: &mut Random) -> [Vec<Sample>; 2] {
        let mut samples = [Vec::new(), Vec::new()];
        let mut state = State::new(self.host, random);
        let mut drift = self.ratio_drift * random.normal();
        for trial in 0..TRIAL_PAIRS {
            state.advance(START_S, random);
            // About 2 s of correlation.
            drift = 0.93 * drift + (1.0f64 - 0.93 * 0.93).sqrt() * self.ratio_drift * random.normal();
            let layouts = [0.003 * random.normal(), 0.003 * random.normal() + drift + self.shift];
            for nth in 0..QUADRUPLES {
                let order = if nth % 2 == 0 { [0, 1, 1, 0] } else { [1, 0, 0, 1] };
                for side in order {
                    let before = state.log;
                    state.advance(SLICE_S / 2.0, random);
                    let during = state.log;
                    state.advance(SLICE_S / 2.0, random);
                    let mut log = layouts[side] + self.response[side] * during + 0.02 * random.normal();
                    if random.unit() < 0.05 {
                        log += random.exponential(0.3);
                    }
                    let mut read = |log: f64| 7000.0 * (log + 0.01 * random.normal()).exp();
                    let client = SpeedReading { before_ns: read(before), after_ns: read(state.log) };
                    let speed = self.readings.then_some(SpeedReadings { client, server: None, pair: None });
                    let round = trial * QUADRUPLES + nth;
                    samples[side].push(Sample { trial, speed, ..testing::sample(round, 1000.0 * log.exp(), None) });
                }
            }
        }
        samples
    }

    fn log_ratios(self, random: &mut Random) -> Vec<Vec<f64>> {
        let [a, b] = self.measure(random);
        PairedRatios::of(String::new(), String::new(), &a, &b).log_ratios
    }
}

fn options() -> ComparisonOptions {
    ComparisonOptions::interleaved()
}

fn pair(log_ratios: &[Vec<f64>]) -> PairedRatios {
    PairedRatios { name: "b against a".to_owned(), mechanism: "b".to_owned(), log_ratios: log_ratios.to_vec() }
}

/// The comparison as it stands when its run stops: at its verdict, or when the time is up.
fn stopped(log_ratios: &[Vec<f64>], among: usize) -> PairedComparison {
    let stop = (1..log_ratios.len())
        .find(|&pairs| is_paired_verdict_reached(&pair(&log_ratios[..pairs]), among, options()))
        .unwrap_or(log_ratios.len());
    compare_paired(&[pair(&log_ratios[..stop])], options()).remove(0)
}

#[derive(Debug, Default)]
struct Rates {
    different: f64,
    same: f64,
    trial_pairs: f64,
}

fn rates(sides: Sides, runs: u32) -> Rates {
    let mut random = Random(23);
    let mut rates = Rates::default();
    for _ in 0..runs {
        let found = stopped(&sides.log_ratios(&mut random), 10);
        let share = 1.0 / f64::from(runs);
        match found.verdict {
            ComparisonVerdict::Faster | ComparisonVerdict::Slower => rates.different += share,
            ComparisonVerdict::NoDifference => rates.same += share,
            ComparisonVerdict::CannotTell => {}
        }
        rates.trial_pairs += share * f64::from(found.trial_pairs);
    }
    rates
}

fn hosts() -> Vec<Host> {
    let dwell_times_s = [0.1, 0.5, 2.0, 10.0];
    let changing = dwell_times_s.into_iter().flat_map(|s| [Host::Neighbour(s), Host::Wander(s)]);
    std::iter::once(Host::Rest).chain(changing).collect()
}

#[test]
#[ignore = "explore"]
fn explore() {
    for drift in [0.0, 0.002] {
        for response in [[0.7, 0.7], [0.7, 0.6]] {
            for host in hosts() {
                let sides = Sides { host, ratio_drift: drift, response, ..SIDES };
                let same = rates(sides, 300);
                let slower = rates(Sides { shift: 1.01f64.ln(), ..sides }, 100);
                println!("{drift} {response:?} {host:?}: A/A {same:.3?}  A/1.01A {slower:.3?}");
            }
        }
    }
}

#[test]
#[ignore = "explore"]
fn explore_readings() {
    for response in [[0.7, 0.7], [0.7, 0.6]] {
        for host in hosts() {
            let mut random = Random(5);
            let mut errors = [0.0; 3];
            for _ in 0..60 {
                let [a, b] = Sides { host, response, ..SIDES }.measure(&mut random);
                let all = quadruples(&a, &b);
                let plain: Vec<Vec<f64>> = all.iter().map(|p| p.iter().map(|q| q.log_ratio).collect()).collect();
                let left: Vec<Vec<f64>> = all
                    .iter()
                    .map(|p| {
                        let keep = |q: &&Quadruple| q.readings_log_ratio.unwrap().abs() < 0.02;
                        p.iter().filter(keep).map(|q| q.log_ratio).collect()
                    })
                    .filter(|p: &Vec<f64>| !p.is_empty())
                    .collect();
                for (at, logs) in [plain, left, adjusted(&all)].iter().enumerate() {
                    let found = &compare_paired(&[pair(logs)], options())[0];
                    let half = found.ratio.and_then(|r| r.half_width()).unwrap_or(1.0);
                    errors[at] += half / 60.0 * 100.0;
                }
            }
            println!("{response:?} {host:?}: half of plain, left out, adjusted {errors:.3?} %");
        }
    }
}
