//! What the samples of one case say: from samples to a summary, and the warnings that a reader needs.
//!
//! Pure: a summary is recomputed from a results file at any time.

use crate::interval::{CONFIDENCE, FEWEST_TRIALS, TAIL, ratio_over_trials};
use crate::run::{RunModel, fast_quarter_ns, stalled_ns};
use crate::stats::student_quantile;
use crate::{stats, stopping};
use model::estimate::{Estimate, Modes};
use model::histogram::Histogram;
use model::network::NetworkSample;
use model::record::{Outcome, Results, Sample, Setting, StepSample, StepSamples, TimerSample, Usage};
use model::summary::{Fairness, PerIteration, Quantiles, SpeedSummary, Stalls, StepTime, StepTimes, Summary};
use model::warning::Warning;
use model::{Case, Peers, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// What `samples` of `case` say, in a run of which `model` is the model; `None` when there are none.
pub fn summarise(case: &Case, samples: &[Sample], model: &RunModel) -> Option<Summary> {
    let iteration_ns = model.time_ns(case)?;
    let iterations: u64 = samples.iter().map(|sample| sample.iterations).sum();
    let trials = samples.iter().map(|sample| sample.trial).collect::<BTreeSet<_>>().len();
    Some(Summary {
        trials: count(trials),
        slices: count(samples.len()),
        iterations,
        iteration_ns,
        total_ns: total_ns(case, samples),
        stalls: stalls(case, samples),
        speed: speed(case, samples, model),
        bytes_per_s: rate(case, iteration_ns, samples),
        lost: lost(samples),
        lost_interval: lost_interval(samples),
        quantiles: quantiles(samples),
        // Several peers have but one part, in which every iteration is timed.
        each_over_total: trial_ratio(samples, |s| {
            s.each.as_ref().map(|each| each.mean_ns / s.iteration_ns())
        })
        .filter(|_| case.peers == Peers::Pair),
        floor_multiple: trial_ratio(samples, |s| s.floor_ns.map(|floor| s.iteration_ns() / floor)),
        wake_floor_multiple: trial_ratio(samples, |s| s.wake_floor_ns.map(|floor| s.iteration_ns() / floor)),
        client: per_iteration(samples.iter().map(|s| s.client), iterations),
        server: samples
            .first()?
            .server
            .map(|_| per_iteration(samples.iter().filter_map(|s| s.server), iterations)),
        modes: modes(case, samples, trials, model),
        achieved: achieved(samples),
        iterations_per_s: (case.peers != Peers::Pair && case.workload.is_answered())
            .then(|| f64::from(case.peers.clients()) / iteration_ns.median * 1e9),
        fairness: fairness(samples),
        timer: timer(samples),
        steps: step_times(samples),
        network: NetworkSample::sum(samples.iter().filter_map(|sample| sample.network.as_ref())),
    })
}

/// The time of all slices over their iterations, or over the messages that came. An interval that a timer measured has its length by order.
fn total_ns(case: &Case, samples: &[Sample]) -> Option<f64> {
    let elapsed_ns: f64 = samples.iter().map(|sample| sample.elapsed_ns).sum();
    let came: u64 = samples.iter().map(Sample::came).sum();
    (case.workload != Workload::Accuracy && came > 0).then(|| elapsed_ns / came as f64)
}

/// The slices that stalled, unless there are none.
fn stalls(case: &Case, samples: &[Sample]) -> Option<Stalls> {
    if case.workload == Workload::Accuracy {
        return None;
    }
    let fast_ns = fast_quarter_ns(samples.iter().map(Sample::iteration_ns).collect())?;
    let stalled_ns = samples.iter().filter_map(|s| stalled_ns(s.iteration_ns(), s.iterations, fast_ns));
    let (slices, longest_ns) =
        stalled_ns.fold((0, 0.0), |(slices, longest_ns), ns| (slices + 1, ns.max(longest_ns)));
    (slices > 0).then_some(Stalls { slices, longest_ns })
}

/// The mean over trials of the ratios that `ratio` takes of samples, of each trial the median. It is that of logarithms: the middle between
/// 1/2 and 2 is 1.
fn trial_ratio(samples: &[Sample], ratio: impl Fn(&Sample) -> Option<f64>) -> Option<Estimate> {
    let of_sample = |sample: &Sample| ratio(sample).filter(|ratio| ratio.ln().is_finite());
    ratio_over_trials(&by_trial(samples, of_sample), CONFIDENCE)
}

/// The median over the slices of each trial of what `value` gives, in the order of time.
pub(crate) fn by_trial(samples: &[Sample], value: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
    let mut trials: BTreeMap<u32, (u64, Vec<f64>)> = BTreeMap::new();
    for sample in samples {
        let (started_ns, values) = trials.entry(sample.trial).or_insert((sample.started_ns, Vec::new()));
        *started_ns = sample.started_ns.min(*started_ns);
        values.extend(value(sample));
    }
    let mut trials: Vec<(u64, Vec<f64>)> = trials.into_values().collect();
    trials.sort_by_key(|(started_ns, _)| *started_ns);
    trials.into_iter().filter_map(|(_, values)| stats::median(&values)).collect()
}

/// What the readings beside the slices say; `None` where there are none, or the CPU's never changed.
fn speed(case: &Case, samples: &[Sample], model: &RunModel) -> Option<SpeedSummary> {
    let speeds: Option<Vec<f64>> =
        samples.iter().map(|sample| model.full_speed().fraction(case, sample)).collect();
    let times: Vec<f64> = samples.iter().map(Sample::iteration_ns).collect();
    let [client, server, pair, wake] = model.slopes(case)?;
    let client = Some(client?);
    let median_speed = stats::median(&speeds?)?;
    Some(SpeedSummary { as_found_ns: stats::median(&times), median_speed, client, server, pair, wake })
}

/// Bytes that came per second, in the workloads that send many.
pub(crate) fn rate(case: &Case, iteration_ns: Estimate, samples: &[Sample]) -> Option<Estimate> {
    let is_stream = matches!(case.workload, Workload::Throughput | Workload::Transfer);
    let iteration_bytes = case.iteration_bytes().filter(|_| is_stream)?;
    let came = 1.0 - lost(samples).unwrap_or(0.0);
    Some(iteration_ns.map(|ns| came * iteration_bytes / ns * 1e9))
}

/// The two groups of slices, and how much slower the host was beside the slow ones, if that explains them.
fn modes(case: &Case, samples: &[Sample], trials: usize, model: &RunModel) -> Option<Modes> {
    /// How much of what lies between the groups, on the logarithm, the readings must account for.
    const EXPLAINED: f64 = 0.5;
    let iteration_ns: Vec<f64> = samples.iter().map(Sample::iteration_ns).collect();
    let modes = stats::two_modes(&iteration_ns, trials)?;
    let border_ns = (modes.fast * modes.slow).sqrt();
    let speed = |is_slow: bool| {
        let group = samples.iter().filter(|sample| (sample.iteration_ns() > border_ns) == is_slow);
        stats::median(
            &group.filter_map(|sample| model.full_speed().fraction(case, sample)).collect::<Vec<_>>(),
        )
    };
    let slow_speed = speed(true).zip(speed(false)).map(|(slow, fast)| slow / fast);
    let between = (modes.slow / modes.fast).ln();
    let explains = |slow_speed: &f64| -slow_speed.ln() >= EXPLAINED * between;
    Some(Modes { slow_speed: slow_speed.filter(explains), ..modes })
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

fn lost(samples: &[Sample]) -> Option<f64> {
    let lost: Vec<u64> = samples.iter().filter_map(|sample| sample.lost).collect();
    let sent: u64 = samples.iter().map(|sample| sample.iterations).sum();
    (!lost.is_empty()).then(|| lost.iter().sum::<u64>() as f64 / sent as f64)
}

/// The interval of what is lost. It is that of the share which came, for that is never 0 where a time can be told.
fn lost_interval(samples: &[Sample]) -> Option<(f64, f64)> {
    let came =
        trial_ratio(samples, |sample| sample.lost.map(|_| sample.came() as f64 / sample.iterations as f64));
    came?.map(|came| 1.0 - came).interval
}

fn achieved(samples: &[Sample]) -> Option<f64> {
    let achieved: Vec<f64> = samples.iter().filter_map(|sample| Some(sample.schedule?.achieved())).collect();
    stats::median(&achieved)
}

fn fairness(samples: &[Sample]) -> Option<Fairness> {
    let of_trial = |shares: &Vec<u64>| {
        let shares: Vec<f64> = shares.iter().map(|iterations| *iterations as f64).collect();
        let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        let count = shares.len() as f64;
        let over_mean = |iterations: f64| iterations * count / sum;
        (sum > 0.0).then(|| Fairness {
            jain: sum * sum / squares / count,
            least: over_mean(shares.iter().copied().fold(f64::INFINITY, f64::min)),
            most: over_mean(shares.iter().copied().fold(0.0, f64::max)),
        })
    };
    let trials: Vec<Fairness> =
        samples.iter().filter_map(|sample| of_trial(sample.shares.as_ref()?)).collect();
    let median = |of: fn(&Fairness) -> f64| stats::median(&trials.iter().map(of).collect::<Vec<_>>());
    Some(Fairness { jain: median(|f| f.jain)?, least: median(|f| f.least)?, most: median(|f| f.most)? })
}

fn timer(samples: &[Sample]) -> Option<TimerSample> {
    let timers: Vec<TimerSample> = samples.iter().filter_map(|sample| sample.timer).collect();
    let median = |of: fn(&TimerSample) -> f64| stats::median(&timers.iter().map(of).collect::<Vec<_>>());
    Some(TimerSample {
        error_ns: median(|timer| timer.error_ns)?,
        deviation_ns: median(|timer| timer.deviation_ns)?,
        off_clock_ns: median(|timer| timer.off_clock_ns)?,
        resolution_ns: timers.iter().map(|timer| timer.resolution_ns).fold(f64::INFINITY, f64::min),
    })
}

fn step_times(samples: &[Sample]) -> Option<StepTimes> {
    let steps: Vec<&StepSamples> = samples.iter().filter_map(|sample| sample.steps.as_ref()).collect();
    (!steps.is_empty()).then(|| StepTimes {
        client: merged(steps.iter().flat_map(|steps| &steps.client)),
        server: merged(steps.iter().flat_map(|steps| &steps.server)),
    })
}

/// The steps of all trials by name, in the order in which they first came.
fn merged<'a>(steps: impl Iterator<Item = &'a StepSample>) -> Vec<StepTime> {
    let mut times: Vec<(&str, Histogram)> = Vec::new();
    for step in steps {
        let decoded = step.time.decode();
        match times.iter_mut().find(|(name, _)| *name == step.name) {
            Some((_, time)) => time.merge(&decoded),
            None => times.push((&step.name, decoded)),
        }
    }
    let time = |(name, time): (&str, Histogram)| {
        Some(StepTime {
            name: name.to_owned(),
            count: time.count(),
            median_ns: time.quantile_ns(0.5)?,
            mean_ns: time.mean_ns()?,
        })
    };
    times.into_iter().filter_map(time).collect()
}

fn quantiles(samples: &[Sample]) -> Option<Quantiles> {
    let mut trials: BTreeMap<u32, Histogram> = BTreeMap::new();
    for sample in samples {
        let Some(each) = &sample.each else { continue };
        trials.entry(sample.trial).or_default().merge(&each.iterations.decode());
    }
    let mut all = Histogram::new();
    trials.values().for_each(|trial| all.merge(trial));
    Some(Quantiles {
        p50_ns: all.quantile_ns(0.5)?,
        p90_ns: all.quantile_ns(0.9)?,
        p99_ns: all.quantile_ns(0.99)?,
        p999_ns: all.quantile_ns(0.999)?,
        max_ns: all.max_ns()?,
        p99_interval_ns: quantile_interval_ns(&all, &trials, 0.99),
    })
}

/// The 95% interval of a quantile of all iterations, of clusters that are trials: from the error of the share that is above it (Woodruff 1952).
fn quantile_interval_ns(
    all: &Histogram,
    trials: &BTreeMap<u32, Histogram>,
    quantile: f64,
) -> Option<(u64, u64)> {
    let middle_ns = all.quantile_ns(quantile).filter(|_| trials.len() >= FEWEST_TRIALS)?;
    let excess = |trial: &Histogram| {
        let above = trial.buckets().filter(|(ns, _)| *ns > middle_ns).map(|(_, count)| count).sum::<u64>();
        above as f64 - (1.0 - quantile) * trial.count() as f64
    };
    let excesses: Vec<f64> = trials.values().map(excess).collect();
    let count = excesses.len() as f64;
    let error = (stats::squares(&excesses) * count / (count - 1.0)).sqrt() / all.count() as f64;
    let half = student_quantile(TAIL, count - 1.0) * error;
    let at = |share: f64| all.quantile_ns(share.clamp(0.0, 1.0));
    Some((at(quantile - half)?.min(middle_ns), at(quantile + half)?.max(middle_ns)))
}

fn per_iteration(usages: impl Iterator<Item = Usage>, iterations: u64) -> PerIteration {
    let sum: Usage = usages.sum();
    let per = |count: u64| count as f64 / iterations as f64;
    PerIteration {
        cpu_ns: per(sum.cpu_ns),
        user_ns: per(sum.user_ns),
        system_ns: per(sum.system_ns),
        voluntary_switches: per(sum.voluntary_switches),
        involuntary_switches: per(sum.involuntary_switches),
        faults: per(sum.minor_faults.saturating_add(sum.major_faults)),
    }
}

/// What `samples` of `case` say by themselves: of a run of this case alone.
pub fn summarise_alone(case: &Case, samples: &[Sample]) -> Option<Summary> {
    summarise(case, samples, &RunModel::of_records([(case, samples)]))
}

/// Replaces whatever of `results` follows from samples by what this build makes of them: summaries, their warnings, and which cases are
/// settled.
pub fn recompute(results: &mut Results) {
    let model = RunModel::of_results(results);
    let precision = &results.header.settings.precision;
    for record in &mut results.records {
        record.summary = summarise(&record.case, &record.samples, &model);
        let Some(summary) = &record.summary else { continue };
        let precision = precision.for_case(&record.case).0;
        record.warnings.retain(|warning| !warning.is_of_summary());
        record.warnings.splice(0..0, warnings(&record.case, summary, &record.settings, precision));
        let is_settled = stopping::is_settled(&record.samples, precision, || Some(summary.iteration_ns));
        record.outcome = match std::mem::replace(&mut record.outcome, Outcome::Unsettled) {
            Outcome::Settled | Outcome::Unsettled if is_settled => Outcome::Settled,
            Outcome::Settled => Outcome::Unsettled,
            other => other,
        };
    }
}

/// Whether the interval of `summary` is as narrow as `precision` asks.
pub fn settled(summary: &Summary, precision: f64) -> bool {
    summary.iteration_ns.half_width().is_some_and(|half| half <= precision)
}

/// What a reader of `summary` must know.
pub fn warnings(case: &Case, summary: &Summary, settings: &[Setting], precision: f64) -> Vec<Warning> {
    /// Below this effect, percentiles can be read as they stand.
    const EFFECT_WORTH_SAYING: f64 = 0.1;
    /// Spinning endpoints that lose their CPU more often than once in this many iterations.
    const PREEMPTIONS_WORTH_SAYING: f64 = 1e-3;

    let mut warnings = Vec::new();
    if !settled(summary, precision) {
        warnings.push(Warning::Unsettled { reached: summary.iteration_ns.half_width(), asked: precision });
    }
    if let Some(modes) = summary.modes {
        warnings.push(Warning::TwoModes {
            fast_ns: modes.fast,
            slow_ns: modes.slow,
            fast_share: modes.fast_share,
            slow_speed: modes.slow_speed,
        });
    }
    if let Some(Stalls { slices, longest_ns }) = summary.stalls {
        warnings.push(Warning::Stalled { slices, of: summary.slices, longest_ns });
    }
    warnings.extend(totals(case, summary));
    warnings.extend(settings.iter().filter_map(Setting::warning));
    if let Some(effect) = summary.each_over_total
        && (effect.median - 1.0).abs() > EFFECT_WORTH_SAYING
    {
        warnings.push(Warning::InstrumentEffect { ratio: effect.median });
    }
    let involuntary = summary.client.involuntary_switches
        + summary.server.map_or(0.0, |server| server.involuntary_switches);
    if case.spec.params.spins() && involuntary > PREEMPTIONS_WORTH_SAYING {
        warnings.push(Warning::Preempted { per_iteration: involuntary });
    }
    warnings
}

/// What is to be said of all slices together, where that differs much from the median of the slices as they were measured. Nobody has much of
/// an operation in a row.
fn totals(case: &Case, summary: &Summary) -> Option<Warning> {
    const MUCH: f64 = 1.25;
    let median_ns = summary.speed.and_then(|speed| speed.as_found_ns).unwrap_or(summary.iteration_ns.median);
    let total_ns = summary.total_ns?;
    let ratio = total_ns / median_ns;
    let bytes_per_s = summary.bytes_per_s.map(|rate| rate.median * summary.iteration_ns.median / total_ns);
    (case.workload != Workload::Cost && !(1.0 / MUCH..=MUCH).contains(&ratio)).then_some(Warning::Totals {
        median_ns,
        total_ns,
        bytes_per_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Spec;
    use model::floor;
    use model::histogram::Histogram;
    use model::record::{Each, ScheduleSample};
    use model::testing;
    use model::units::Size;

    fn case(workload: Workload, size_bytes: u64) -> Case {
        Case {
            workload,
            size_bytes: Some(Size(size_bytes)),
            spec: Spec::plain("pipe"),
            ..floor::operation("", 1)
        }
    }

    /// Trials of 100, 110, 120, … ns per iteration on a floor of 50 ns, 1000 iterations each.
    fn trials(count: u32) -> Vec<Sample> {
        (0..count).map(|n| testing::sample(n, 100.0 + 10.0 * f64::from(n * 4 % 9), Some(50.0))).collect()
    }

    fn summary_of(workload: Workload, samples: &[Sample]) -> Summary {
        summarise_alone(&case(workload, 1000), samples).unwrap()
    }

    #[test]
    fn steps_of_all_trials_are_put_together_in_the_order_of_the_first() {
        let step = |name: &str, times: &[u64]| {
            let mut time = Histogram::new();
            times.iter().for_each(|ns| time.record(*ns));
            StepSample { name: name.to_owned(), time: time.encode() }
        };
        let mut samples = trials(2);
        let server = vec![step("recvmsg", &[7])];
        samples[0].steps = Some(StepSamples {
            client: vec![step("write", &[100, 200]), step("close", &[5])],
            server: server.clone(),
        });
        samples[1].steps =
            Some(StepSamples { client: vec![step("close", &[5]), step("write", &[300])], server });
        let steps = summary_of(Workload::Latency, &samples).steps.unwrap();
        let client: Vec<_> = steps.client.iter().map(|s| (s.name.as_str(), s.count, s.median_ns)).collect();
        assert_eq!(client, [("write", 3, 200), ("close", 2, 5)]);
        assert!((steps.client[0].mean_ns - 200.0).abs() < 0.5);
        assert_eq!((steps.server[0].count, summary_of(Workload::Latency, &trials(2)).steps), (2, None));
    }

    #[test]
    fn a_rate_that_was_not_achieved_is_missed() {
        let with = |late_ns| {
            let schedule = Some(ScheduleSample { span_ns: 1e6, late_ns, backlog_slope: None });
            let samples: Vec<_> = trials(9).into_iter().map(|sample| Sample { schedule, ..sample }).collect();
            summary_of(Workload::Latency, &samples)
        };
        assert_eq!((with(0.0).achieved, with(0.0).missed()), (Some(1.0), None));
        assert_eq!(with(1e6).missed(), Some(0.5));
        // One iteration that is late is no queue.
        assert_eq!(with(1e4).missed(), None);
        assert_eq!(summary_of(Workload::Latency, &trials(9)).achieved, None);
    }

    #[test]
    fn times_and_multiples_are_middles_of_trials() {
        let summary = summary_of(Workload::Latency, &trials(9));
        assert_eq!((summary.trials, summary.iterations), (9, 9000));
        let (low, high) = summary.iteration_ns.interval.unwrap();
        let middle_ns = summary.iteration_ns.median;
        assert!((middle_ns - 140.0).abs() < 4.0, "{middle_ns}");
        assert!(low < 130.0 && low > 110.0 && high > 150.0 && high < 180.0, "{low} to {high}");
        let multiple = summary.floor_multiple.unwrap();
        assert!((multiple.median - 2.8).abs() < 0.05);
        let (low, high) = multiple.interval.unwrap();
        assert!(low < 2.6 && low > 2.0 && high > 3.0 && high < 3.8, "{low} to {high}");
        assert_eq!((summary.bytes_per_s, summary.quantiles, summary.each_over_total), (None, None, None));
        assert_eq!(summarise_alone(&case(Workload::Latency, 1), &[]), None);
    }

    #[test]
    fn few_trials_have_no_interval_and_are_not_settled() {
        let summary = summary_of(Workload::Latency, &trials(5));
        assert_eq!(summary.iteration_ns.interval, None);
        assert!(!settled(&summary, 1.0));
        let warnings = warnings(&case(Workload::Latency, 1), &summary, &[], 0.02);
        assert_eq!(warnings, [Warning::Unsettled { reached: None, asked: 0.02 }]);
    }

    #[test]
    fn a_rate_is_the_size_over_the_time_and_its_interval_is_in_order() {
        for workload in [Workload::Throughput, Workload::Transfer] {
            let summary = summary_of(workload, &trials(9));
            let (rate, (low_ns, high_ns)) =
                (summary.bytes_per_s.unwrap(), summary.iteration_ns.interval.unwrap());
            assert_eq!(rate.median, 1000.0 / summary.iteration_ns.median * 1e9);
            assert_eq!(rate.interval, Some((1000.0 / high_ns * 1e9, 1000.0 / low_ns * 1e9)));
        }
    }

    #[test]
    fn messages_without_bytes_have_no_rate_of_bytes() {
        for workload in [Workload::Throughput, Workload::Transfer] {
            let summary = summarise_alone(&case(workload, 0), &trials(9)).unwrap();
            assert_eq!(summary.bytes_per_s, None);
        }
    }

    #[test]
    fn what_is_lost_is_no_part_of_the_rate() {
        let samples: Vec<Sample> =
            trials(9).into_iter().map(|sample| Sample { lost: Some(250), ..sample }).collect();
        let summary = summary_of(Workload::Throughput, &samples);
        assert_eq!((summary.lost, summary_of(Workload::Throughput, &trials(9)).lost), (Some(0.25), None));
        let (low, high) = summary.lost_interval.unwrap();
        assert!((low - 0.25).abs() < 1e-9 && (high - 0.25).abs() < 1e-9);
        let rate = summary.bytes_per_s.unwrap().median;
        // The time is that of a message sent.
        assert!((rate / (0.75 * 1000.0 / summary.iteration_ns.median * 1e9) - 1.0).abs() < 1e-12, "{rate}");
    }

    #[test]
    fn several_clients_add_up_and_are_fair_by_their_shares() {
        let shared = |shares: [u64; 2]| -> Vec<Sample> {
            trials(9).into_iter().map(|s| Sample { shares: Some(shares.to_vec()), ..s }).collect()
        };
        let peers = |peers| Case { peers, ..case(Workload::Transfer, 1000) };
        let summary = |shares, of| summarise_alone(&peers(of), &shared(shares)).unwrap();
        let fair = summary([500, 500], Peers::Pairs(2));
        assert_eq!(fair.fairness, Some(Fairness { jain: 1.0, least: 1.0, most: 1.0 }));
        assert_eq!(fair.bytes_per_s.unwrap().median, 2.0 * 1000.0 / fair.iteration_ns.median * 1e9);
        let greedy = summary([1000, 0], Peers::FanIn(2)).fairness;
        assert_eq!(greedy, Some(Fairness { jain: 0.5, least: 0.0, most: 2.0 }));
        assert_eq!(summary_of(Workload::Latency, &trials(9)).fairness, None);
    }

    #[test]
    fn usage_is_all_of_it_over_all_iterations() {
        let mut samples = trials(2);
        for (sample, cpu_ns) in samples.iter_mut().zip([1000, 3000]) {
            sample.client =
                Usage { cpu_ns, user_ns: 400, system_ns: cpu_ns - 400, minor_faults: 1, ..Usage::default() };
            sample.server = Some(Usage { cpu_ns: 6000, voluntary_switches: 1000, ..Usage::default() });
        }
        let summary = summary_of(Workload::Latency, &samples);
        assert_eq!(
            (summary.client.cpu_ns, summary.client.user_ns, summary.client.system_ns),
            (2.0, 0.4, 1.6)
        );
        assert_eq!((summary.client.faults, summary.server.unwrap().cpu_ns), (0.001, 6.0));
        assert_eq!((summary.cpu_ns(), summary.switches()), (8.0, 1.0));
        samples.iter_mut().for_each(|sample| sample.server = None);
        assert_eq!(summary_of(Workload::Cost, &samples).cpu_ns(), 2.0);
    }

    #[test]
    fn quantiles_are_of_all_iterations_and_the_99th_has_an_interval() {
        let mut samples = trials(3);
        for (sample, slow_ns) in samples.iter_mut().zip([1000, 2000, 3000]) {
            let mut iterations = Histogram::new();
            (0..98).for_each(|_| iterations.record(100));
            (0..2).for_each(|_| iterations.record(slow_ns));
            sample.each =
                Some(Each { mean_ns: 1.2 * sample.iteration_ns(), iterations: iterations.encode() });
        }
        let summary = summary_of(Workload::Latency, &samples);
        let quantiles = summary.quantiles.unwrap();
        assert_eq!((quantiles.p50_ns, quantiles.p90_ns), (100, 100));
        // 294 of 300 iterations take 100 ns, then two each take 1, 2 and 3 µs.
        assert!((1990..=2010).contains(&quantiles.p99_ns), "{quantiles:?}");
        assert!((2990..=3010).contains(&quantiles.max_ns), "{quantiles:?}");
        assert_eq!(quantiles.p99_interval_ns, None);
        let mut many: Vec<Sample> = (0..8).flat_map(|_| samples.clone()).collect();
        many.iter_mut().zip(0..).for_each(|(sample, trial)| sample.trial = trial);
        let (low_ns, high_ns) =
            summary_of(Workload::Latency, &many).quantiles.unwrap().p99_interval_ns.unwrap();
        assert!(low_ns <= quantiles.p99_ns && quantiles.p99_ns <= high_ns, "{low_ns} to {high_ns}");
        assert!(low_ns >= 100 && high_ns <= 3010, "{low_ns} to {high_ns}");
        let effect = summary.each_over_total.unwrap();
        assert!((effect.median - 1.2).abs() < 1e-12);
        let warnings = warnings(&case(Workload::Latency, 1), &summary, &[], 0.02);
        assert!(warnings.iter().any(|warning| matches!(warning, Warning::InstrumentEffect { .. })));
    }

    #[test]
    fn slices_that_stall_are_counted_and_the_total_stands_beside_the_median() {
        // A third of the slices, of 1000 iterations each, stood still for 260 ms.
        let sample = |n: u32| {
            testing::sample(
                n,
                1000.0 + f64::from(n % 7) + if n.is_multiple_of(3) { 260e3 } else { 0.0 },
                None,
            )
        };
        let samples: Vec<Sample> = (0..30).map(sample).collect();
        let summary = summary_of(Workload::Throughput, &samples);
        let stalls = summary.stalls.unwrap();
        assert!(stalls.slices == 10 && (stalls.longest_ns - 260e6).abs() < 1e5, "{stalls:?}");
        assert!(summary.iteration_ns.median < 1010.0, "{summary:?}");
        assert!((summary.total_ns.unwrap() - (1003.0 + 260e3 / 3.0)).abs() < 10.0, "{summary:?}");
        let said = warnings(&case(Workload::Throughput, 1000), &summary, &[], 1.0);
        let said: Vec<String> = said.iter().map(ToString::to_string).collect();
        assert!(
            said.iter().any(|said| said.starts_with("10 of 30 slices stalled, the longest for 260 ms")),
            "{said:?}"
        );
        assert!(said.iter().any(|said| said.contains("together they reach 11.4 MB/s")), "{said:?}");
        // What other work on the CPU takes is no stall, and slices that differ little need no total.
        let busy: Vec<Sample> =
            (0..30).map(|n| testing::sample(n, 1000.0 + f64::from(n % 3) * 100.0, None)).collect();
        let summary = summary_of(Workload::Throughput, &busy);
        assert_eq!(summary.stalls, None);
        assert!(totals(&case(Workload::Throughput, 1000), &summary).is_none());
    }

    #[test]
    fn two_modes_and_clamped_settings_are_warned_of() {
        let samples: Vec<Sample> = (0..20)
            .map(|n| testing::sample(n, if n % 2 == 0 { 100.0 } else { 150.0 } + f64::from(n) * 0.01, None))
            .collect();
        let summary = summary_of(Workload::Latency, &samples);
        let modes = summary.modes.unwrap();
        assert!((modes.fast - 100.0).abs() < 1.0 && (modes.slow - 150.0).abs() < 1.0);
        assert_eq!(modes.fast_share, 0.5);
        let setting = |clamped| Setting {
            name: "SO_SNDBUF".to_owned(),
            asked: Some("1M".to_owned()),
            got: "208K".to_owned(),
            clamped,
            usual: None,
        };
        let warnings = warnings(&case(Workload::Latency, 1), &summary, &[setting(true), setting(false)], 0.5);
        let kinds: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(kinds.len(), 2, "{kinds:?}");
        assert!(kinds[0].starts_with("two modes: 100 ns in 50%"), "{kinds:?}");
        assert_eq!(kinds[1], "SO_SNDBUF: asked for 1M, got 208K");
        assert_eq!(summary.floor_multiple, None);
    }
}
