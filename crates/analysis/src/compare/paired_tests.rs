//! Interleaved comparisons of simulated sides, on hosts whose state changes, with a verdict asked for after every trial pair.

use super::options::ComparisonOptions;
use super::paired::{PairedComparison, PairedRatios, compare_paired, is_paired_verdict_reached, plan_paired};
use super::quadruples::{QuadrupleRatio, quadruples};
use super::result::ComparisonVerdict;
use crate::simulated::Random;
use model::floor;
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

const SIDES: Sides =
    Sides { host: Host::Rest, shift: 0.0, response: [0.7; 2], ratio_drift: 0.0, readings: true };
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
            Host::Neighbour(_) => {
                if random.unit() < 0.5 {
                    1.5f64.ln()
                } else {
                    0.0
                }
            }
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
                    samples[side].push(Sample {
                        trial,
                        speed,
                        ..testing::sample(round, 1000.0 * log.exp(), None)
                    });
                }
            }
        }
        samples
    }

    fn trial_pairs(self, random: &mut Random) -> Vec<Vec<QuadrupleRatio>> {
        let [a, b] = self.measure(random);
        let case = floor::operation("b", 1);
        quadruples([&case, &case], [&a, &b])
    }
}

fn options() -> ComparisonOptions {
    ComparisonOptions::interleaved()
}

fn pair(trial_pairs: &[Vec<QuadrupleRatio>]) -> PairedRatios {
    PairedRatios {
        name: "b against a".to_owned(),
        mechanism: "b".to_owned(),
        trial_pairs: trial_pairs.to_vec(),
        ..PairedRatios::default()
    }
}

/// The comparison as it stands when its run stops: at its verdict, or when the time is up.
fn stopped(trial_pairs: &[Vec<QuadrupleRatio>], among: usize) -> PairedComparison {
    let stop = (1..trial_pairs.len())
        .find(|&pairs| is_paired_verdict_reached(&pair(&trial_pairs[..pairs]), among, options()))
        .unwrap_or(trial_pairs.len());
    compare_paired(&[pair(&trial_pairs[..stop])], 1e9, options()).remove(0)
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
        let found = stopped(&sides.trial_pairs(&mut random), 10);
        let share = 1.0 / f64::from(runs);
        match found.verdict {
            ComparisonVerdict::Faster | ComparisonVerdict::Slower => rates.different += share,
            ComparisonVerdict::NoDifference => rates.same += share,
            ComparisonVerdict::Undecided => {}
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

/// Slow: it simulates many runs.
#[test]
fn like_sides_are_told_to_be_alike_and_one_percent_is_found_however_the_host_changes() {
    let mut called = 0.0;
    for host in hosts() {
        let sides = Sides { host, ratio_drift: 0.001, ..SIDES };
        let alike = rates(sides, 60);
        assert!(alike.different <= 0.034 && alike.same >= 0.95, "{host:?}: {alike:?}");
        called += alike.different / hosts().len() as f64;
        let slower = rates(Sides { shift: 1.01f64.ln(), ..sides }, 30);
        assert!(slower.different >= 0.9, "{host:?}: {slower:?}");
    }
    assert!(called <= 0.01, "{called} of like sides are called different");
}

#[test]
fn sides_that_a_neighbour_slows_unlike_are_told_by_their_ratio_at_full_speed() {
    let sides = Sides { host: Host::Neighbour(0.5), response: [0.7, 0.6], ..SIDES };
    let halves = |readings: bool| {
        let mut random = Random(5);
        let found = (0..20).map(|_| {
            let trial_pairs = Sides { readings, ..sides }.trial_pairs(&mut random);
            let found = compare_paired(&[pair(&trial_pairs)], 1e9, options()).remove(0);
            assert_eq!(found.at_full_speed, readings);
            let ratio = found.ratio.unwrap();
            if readings {
                assert!((ratio.median - 1.0).abs() < 0.006, "{ratio:?}");
            }
            ratio.half_width().unwrap()
        });
        found.sum::<f64>() / 20.0
    };
    let (with, without) = (halves(true), halves(false));
    assert!(with < 0.5 * without, "{with} with readings, {without} without");
}

/// Slow: it simulates many runs.
#[test]
fn to_regress_on_changed_readings_is_better_than_to_leave_their_quadruples_out() {
    let half = |host: Host, of: &dyn Fn(&QuadrupleRatio) -> Option<QuadrupleRatio>| {
        let mut random = Random(6);
        let halves = (0..20).map(|_| {
            let trial_pairs = Sides { host, ..SIDES }.trial_pairs(&mut random);
            let chosen: Vec<Vec<_>> =
                trial_pairs.iter().map(|quadruples| quadruples.iter().filter_map(of).collect()).collect();
            compare_paired(&[pair(&chosen)], 1e9, options())[0].ratio.unwrap().half_width().unwrap()
        });
        halves.sum::<f64>() / 20.0
    };
    let unread = |quadruple: &QuadrupleRatio| QuadrupleRatio { speed: None, ..*quadruple };
    let is_steady =
        |quadruple: &QuadrupleRatio| quadruple.speed.is_some_and(|speed| speed.cpus_difference.abs() < 0.02);
    let (mut regressed, mut left_out) = (0.0, 0.0);
    for host in [Host::Wander(0.1), Host::Wander(0.5), Host::Wander(2.0)] {
        regressed += half(host, &|quadruple| Some(*quadruple));
        left_out += half(host, &|quadruple| is_steady(quadruple).then(|| unread(quadruple)));
    }
    assert!(regressed < left_out, "{regressed} regressed, {left_out} left out");
}

/// Trial pairs of one quadruple each, of a log ratio of `centre` with a ripple of `spread`.
fn around(mechanism: &str, centre: f64, spread: f64, pairs: u32) -> PairedRatios {
    let quadruple = |nth: u32| {
        let log_ratio = centre + spread * (f64::from(nth * 7 % pairs) / f64::from(pairs) - 0.5);
        vec![QuadrupleRatio { log_ratio, speed: None }]
    };
    PairedRatios {
        name: format!("{mechanism} against pipe"),
        mechanism: mechanism.to_owned(),
        trial_pairs: (0..pairs).map(quadruple).collect(),
        ..PairedRatios::default()
    }
}

#[test]
fn verdicts_follow_from_the_intervals_and_too_few_trial_pairs_allow_none() {
    let compared = compare_paired(
        &[
            around("a", 0.1, 0.02, 20),
            around("b", -0.1, 0.02, 20),
            around("c", 0.0, 0.005, 20),
            around("d", 0.0, 0.5, 20),
            around("e", 0.1, 0.0, 4),
            around("f", 0.1, 0.0, 0),
        ],
        34e9,
        options(),
    );
    let verdicts: Vec<ComparisonVerdict> = compared.iter().map(|pair| pair.verdict).collect();
    use ComparisonVerdict::{Faster, NoDifference, Slower, Undecided};
    assert_eq!(verdicts, [Slower, Faster, NoDifference, Undecided, Undecided, Undecided]);
    assert!((compared[0].ratio.unwrap().median - 0.1f64.exp()).abs() < 0.003);
    let reason = |at: usize| compared[at].reason.as_deref().unwrap();
    assert!(reason(3).starts_with("its interval reaches beyond ±1%: give it --time "), "{}", reason(3));
    // Eight pairs of trials take twice as long as four.
    assert_eq!(reason(4), "4 pairs of trials allow no interval, which takes 8: give it --time 75s");
    assert_eq!(reason(5), "0 pairs of trials allow no interval, which takes 8: give it --time 300s");
    let rough = compared[4].ratio.unwrap();
    assert!((rough.median - 0.1f64.exp()).abs() < 1e-9 && rough.interval.is_none(), "{rough:?}");
    assert_eq!((compared[4].trial_pairs, compared[4].finds, compared[5].ratio), (4, None, None));
    let (finds, ratio) = (compared[2].finds.unwrap().0, compared[2].ratio.unwrap());
    assert!(finds > ratio.half_width().unwrap() && finds < 0.02, "{finds}");
}

#[test]
fn a_verdict_that_is_reached_stands_in_the_report_whatever_the_other_pairs_say() {
    let mut random = Random(9);
    let pairs: Vec<PairedRatios> = (0..30)
        .map(|nth| {
            let ratio = |_| {
                vec![QuadrupleRatio {
                    log_ratio: 0.0005 * f64::from(nth) + 0.006 * random.normal(),
                    speed: None,
                }]
            };
            PairedRatios {
                trial_pairs: (0..20).map(ratio).collect(),
                ..around(&format!("m{}", nth / 10), 0.0, 0.0, 1)
            }
        })
        .collect();
    let compared = compare_paired(&pairs, 1e9, options());
    let reached: Vec<usize> =
        (0..30).filter(|at| is_paired_verdict_reached(&pairs[*at], 3 * 10, options())).collect();
    assert!(reached.len() > 3 && reached.len() < 30, "{reached:?}");
    assert!(reached.iter().all(|at| compared[*at].verdict != ComparisonVerdict::Undecided));
}

/// Slow: it simulates many runs.
#[test]
fn a_plan_says_how_many_trial_pairs_find_a_difference_and_they_do() {
    let sides = Sides { host: Host::Neighbour(0.5), ..SIDES };
    let mut random = Random(31);
    let (find, mut needed, mut found, runs) = (Percent(0.008), 0, 0, 40);
    for _ in 0..runs {
        let pilot = sides.trial_pairs(&mut random);
        let planned = plan_paired(&[pair(&pilot[..12])], find, 1e8, options()).pairs.remove(0);
        let pairs = planned.needs_trial_pairs.unwrap();
        assert!(planned.needs_at_most.unwrap() > pairs);
        assert_eq!(planned.time_ns, Some(1e8 * f64::from(pairs)));
        needed += pairs;
    }
    let pairs = (needed / runs) as usize;
    assert!((12..TRIAL_PAIRS as usize).contains(&pairs), "{pairs}");
    for _ in 0..runs {
        let slower = Sides { shift: find.0.ln_1p(), ..sides }.trial_pairs(&mut random);
        let compared = compare_paired(&[pair(&slower[..pairs])], 1e9, options()).remove(0);
        found += u32::from(compared.verdict == ComparisonVerdict::Slower);
    }
    assert!((26..40).contains(&found), "{found} of {runs} with {pairs} trial pairs");
    let few = plan_paired(&[around("a", 0.0, 0.1, 3)], find, 1e8, options()).pairs.remove(0);
    assert_eq!((few.needs_trial_pairs, few.time_ns), (None, None));
}
