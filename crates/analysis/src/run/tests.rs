//! The model on runs of which the truth is known.

use super::{RunModel, RunSlices};
use crate::simulated::Random;
use crate::stats;
use model::floor;
use model::placement::CpuPair;
use model::record::Sample;
use model::speed::{SpeedReading, SpeedReadings};
use model::{Case, Spec, Workload, testing};

/// A case of mechanism `name` on one CPU.
fn case(name: &str) -> Case {
    let cpus = Some(CpuPair { client: 1, server: 1 });
    Case { cpus, spec: Spec::plain(name), workload: Workload::Latency, ..floor::operation("", 1) }
}

fn beside(ns: f64) -> Option<SpeedReadings> {
    let client = SpeedReading { before_ns: ns, after_ns: ns };
    Some(SpeedReadings { client, server: None, pair: None })
}

/// A host on which a minute is measured.
struct Host {
    /// For half of the time it is slower by so much, as a logarithm.
    slower: f64,
    /// Of that, so much comes back in the times.
    slope: f64,
    trial_deviation: f64,
    slice_deviation: f64,
    /// What moves all cases together from one ten seconds to the next.
    drift: f64,
}

const QUIET: Host = Host { slower: 0.0, slope: 0.5, trial_deviation: 0.0, slice_deviation: 0.01, drift: 0.0 };

impl Host {
    /// The samples of cases that take so many nanoseconds: 8 trials of 5 slices each.
    fn run(&self, times_ns: &[f64], random: &mut Random) -> Vec<(Case, Vec<Sample>)> {
        const TRIALS: u32 = 8;
        const SLICES: u32 = 5;
        let moves: Vec<f64> = (0..7).map(|_| self.drift * random.normal()).collect();
        let mut of_case = |(at, ns): (usize, &f64)| {
            let mut samples = Vec::new();
            for trial in 0..TRIALS {
                let of_trial = self.trial_deviation * random.normal();
                for slice in 0..SLICES {
                    let started_ns = u64::from(trial * SLICES + slice) * 1_500_000_000 + at as u64;
                    let slower = if random.unit() < 0.5 { self.slower } else { 0.0 };
                    let log = of_trial
                        + self.slope * slower
                        + moves[(started_ns / 10_000_000_000) as usize]
                        + self.slice_deviation * random.normal();
                    let speed = beside(5000.0 * slower.exp() * (1.0 + 0.001 * random.normal()));
                    let sample = testing::sample(trial, ns * log.exp(), None);
                    samples.push(Sample { trial, started_ns, speed, ..sample });
                }
            }
            (case(&format!("m{at}")), samples)
        };
        times_ns.iter().enumerate().map(&mut of_case).collect()
    }
}

fn model(run: &[(Case, Vec<Sample>)]) -> RunModel {
    RunModel::of_records(run.iter().map(|(case, samples)| (case, samples.as_slice())))
}

fn half(estimate: model::estimate::Estimate) -> f64 {
    estimate.half_width().unwrap()
}

#[test]
fn times_are_those_of_the_calm_host_though_it_was_slow_half_of_the_time() {
    let host = Host { slower: 0.4, ..QUIET };
    let run = host.run(&[1000.0, 2000.0, 5000.0, 9000.0], &mut Random(1));
    let model = model(&run);
    for ((case, _), truth_ns) in run.iter().zip([1000.0, 2000.0, 5000.0, 9000.0]) {
        let found = model.time_ns(case).unwrap();
        assert!((found.median / truth_ns - 1.0).abs() < 0.01 && half(found) < 0.02, "{found:?}");
        let [client, server, pair, wake] = model.slopes(case).unwrap();
        assert!((client.unwrap().slope - 0.5).abs() < 0.05, "{client:?}");
        assert_eq!((server, pair, wake), (None, None, None));
    }
}

#[test]
fn a_case_of_few_slices_knows_the_slope_of_the_others() {
    let host = Host { slower: 0.4, ..QUIET };
    let mut run = host.run(&[1000.0, 2000.0, 5000.0, 9000.0], &mut Random(2));
    // Of the last nothing is left but slices on the slow host, of two trials.
    run[3].1.retain(|sample| sample.speed.unwrap().client.before_ns > 6000.0 && sample.trial < 2);
    let found = model(&run).time_ns(&run[3].0).unwrap();
    assert!((found.median / 9000.0 - 1.0).abs() < 0.03, "{found:?}");
    assert!(found.interval.is_some());
    // Alone it has too few trials for an interval.
    assert_eq!(model(&run[3..]).time_ns(&run[3].0).unwrap().interval, None);
}

#[test]
fn what_moves_all_cases_widens_times_and_leaves_ratios_alone() {
    let times_ns = [1000.0, 2000.0, 3000.0, 4000.0, 5000.0, 6000.0];
    let widths = |drift: f64| {
        let run = Host { drift, ..QUIET }.run(&times_ns, &mut Random(3));
        let model = model(&run);
        (half(model.time_ns(&run[0].0).unwrap()), half(model.ratio(&run[0].0, &[&run[1].0]).unwrap()))
    };
    let ((still, ratio), (moved, moved_ratio)) = (widths(0.0), widths(0.05));
    assert!(still < 0.01 && moved > 0.03, "{still} {moved}");
    assert!(moved_ratio < 4.0 * ratio && moved_ratio < moved / 2.0, "{ratio} {moved_ratio}");
}

#[test]
fn trials_that_differ_widen_the_interval_as_they_should() {
    let (mut covered, mut widths) = (0, Vec::new());
    for seed in 0..100 {
        let run = Host { trial_deviation: 0.03, ..QUIET }.run(&[1000.0, 2000.0, 3000.0], &mut Random(seed));
        let found = model(&run).time_ns(&run[0].0).unwrap();
        let (low, high) = found.interval.unwrap();
        covered += u32::from(low < 1000.0 && 1000.0 < high);
        widths.push(half(found));
    }
    // Eight trials: 2.2 · 3% / √8.
    let width = stats::median(&widths).unwrap();
    assert!((0.018..0.035).contains(&width) && covered >= 90, "±{width}, {covered} of 100");
}

#[test]
fn slices_that_stalled_and_heavy_tails_count_little() {
    let mut run = QUIET.run(&[1000.0, 2000.0], &mut Random(4));
    let (_, samples) = &mut run[0];
    for sample in samples.iter_mut().step_by(3) {
        sample.elapsed_ns += 200e6;
    }
    for sample in samples.iter_mut().skip(1).step_by(6) {
        sample.elapsed_ns *= 1.5;
    }
    let found = model(&run).time_ns(&run[0].0).unwrap();
    assert!((found.median / 1000.0 - 1.0).abs() < 0.02, "{found:?}");
}

#[test]
fn cases_without_readings_and_with_some_are_known_apart() {
    let mut run = QUIET.run(&[1000.0, 2000.0, 3000.0], &mut Random(5));
    run[0].1.iter_mut().for_each(|sample| sample.speed = None);
    // One slice without a reading is left out.
    run[1].1[3].speed = None;
    run[1].1[3].elapsed_ns *= 100.0;
    let model = model(&run);
    assert_eq!(model.slopes(&run[0].0).unwrap(), [None; 4]);
    let ratio = model.ratio(&run[0].0, &[&run[1].0]).unwrap();
    assert!((ratio.median / 0.5 - 1.0).abs() < 0.01, "{ratio:?}");
    let found = model.time_ns(&run[1].0).unwrap();
    assert!((found.median / 2000.0 - 1.0).abs() < 0.01, "{found:?}");
    assert_eq!(model.time_ns(&case("never measured")), None);
}

#[test]
fn runs_are_compared_at_one_state_of_the_host() {
    // The second run found the host slower all the time.
    let first = Host { slower: 0.3, ..QUIET }.run(&[1000.0, 2000.0, 4000.0], &mut Random(6));
    let mut second = first.clone();
    for sample in second.iter_mut().flat_map(|(_, samples)| samples) {
        sample.elapsed_ns *= (0.5_f64 * 0.2).exp();
        let ns = sample.speed.unwrap().client.before_ns * 0.2_f64.exp();
        sample.speed = beside(ns);
    }
    let slices = [&first, &second]
        .map(|run| RunSlices::from_records(run.iter().map(|(case, samples)| (case, samples.as_slice()))));
    let state = super::HostState::middle(&slices.each_ref().map(RunSlices::calm_state));
    let [a, b] = slices.map(|slices| RunModel::at(&slices, &state).time_ns(&first[0].0).unwrap());
    assert!((b.median / a.median - 1.0).abs() < 0.01, "{a:?} {b:?}");
}

#[test]
fn nothing_and_times_that_cannot_be_are_no_error() {
    assert_eq!(RunModel::from_slices(&RunSlices::default()).time_ns(&case("pipe")), None);
    let odd = [0.0, f64::INFINITY, f64::NAN, 1e-300, 1e300].map(|ns| testing::sample(0, ns, None));
    let _ = RunModel::of_records([(&case("pipe"), odd.as_slice())]).time_ns(&case("pipe"));
    let same: Vec<Sample> = (0..9).map(|trial| testing::sample(trial, 100.0, None)).collect();
    let found = RunModel::of_records([(&case("pipe"), same.as_slice())]).time_ns(&case("pipe")).unwrap();
    assert!((found.median - 100.0).abs() < 1e-6 && half(found) < 0.001, "{found:?}");
}
