//! The value of a metric in given trials: in those of one round, or in all of them together.
//!
//! How values become an estimate is in `estimate`.

use crate::stats;
use model::case::Case;
use model::endpoint::EndpointRole;
use model::histogram::Histogram;
use model::observation::profile::{CallProfile, EndpointProfile, Profile, ScheduleProfile};
use model::observation::subsystem::Subsystem;
use model::sample::{CallCounts, Sample, StepSample, TimedCalls, TimerSample, Usage};
use model::study::metric::{
    CallDirection, CallQuantity, Metric, MetricEndpoints, ObservedQuantity, Quantile, ScheduledTime,
    TimerQuantity, UsedResource,
};

/// The trials that a metric is worked out of, of one round or of several.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trials<'a> {
    /// Those without probes.
    pub(crate) samples: Vec<&'a Sample>,
    /// Those with the metric's probe.
    pub(crate) profiles: Vec<&'a Profile>,
}

/// Why none of `profiles` has `metric`, where they say so themselves.
pub(crate) fn absence(metric: &Metric, profiles: &[&Profile]) -> Option<String> {
    let Metric::Counter(name, endpoints) = metric else { return None };
    let uncounted =
        profiles.iter().flat_map(|profile| of_endpoints(*endpoints, profile)).flat_map(|end| &end.uncounted);
    let mut of_it = uncounted.filter(|(_, names)| names.iter().any(|counter| is_counter(counter, name)));
    // Without its name: so the reason that several counters have in common is given once.
    of_it.next().map(|(reason, _)| reason.clone())
}

/// Its value in `trials` of `case`, all together; of calls only those that returned `returned` bytes, if given.
pub(crate) fn value(metric: &Metric, case: &Case, trials: &Trials<'_>, returned: Option<u64>) -> Option<f64> {
    let (samples, profiles) = (trials.samples.as_slice(), trials.profiles.as_slice());
    let value = match metric {
        Metric::Time => iteration_ns(samples),
        Metric::Rate => {
            let came: u64 = samples.iter().map(|sample| sample.came()).sum();
            let elapsed_ns: f64 = samples.iter().map(|sample| sample.elapsed_ns).sum();
            case.iteration_bytes()? / (elapsed_ns / came as f64) * 1e9
        }
        Metric::Size => case.size_bytes?.0 as f64,
        Metric::Floor => {
            let multiples = samples.iter().filter_map(|s| Some(s.iteration_ns() / s.floor_ns?));
            stats::median(&multiples.collect::<Vec<_>>())?
        }
        Metric::Lost => {
            let lost: u64 = samples.iter().map(|sample| sample.lost).sum::<Option<u64>>()?;
            lost as f64 / iterations(samples)
        }
        Metric::Memory => {
            let bytes: Vec<f64> =
                samples.iter().filter_map(|sample| Some(sample.memory_bytes? as f64)).collect();
            stats::median(&bytes)?
        }
        Metric::Quantile(quantile) => quantile_ns(*quantile, samples)?,
        Metric::Used(used, endpoints) => {
            let of_ends = samples.iter().map(|sample| usage_of(*used, sample, *endpoints));
            of_ends.sum::<Option<f64>>()? / iterations(samples)
        }
        Metric::Call(side, of) => of_calls(*of, *side, samples, returned)?,
        Metric::Step { endpoint, name, mean } => step(*endpoint, name, *mean, samples)?,
        Metric::Timer(of) => of_timer(*of, samples)?,
        Metric::Effect(_) => {
            let logs: Vec<f64> = profiles.iter().map(|profile| profile.effect.ln()).collect();
            stats::median(&logs)?.exp()
        }
        Metric::Scheduled(scheduled, endpoints) => scheduled_ns(*scheduled, *endpoints, profiles)?,
        Metric::ObservedCall { endpoint, name, quantity } => {
            of_observed_calls(*quantity, *endpoint, name, profiles)?
        }
        Metric::Counter(name, endpoints) => count_of(name, *endpoints, profiles)?,
        Metric::Subsystem(subsystem, endpoints) => {
            let subsystems = || {
                profiles
                    .iter()
                    .flat_map(|profile| of_endpoints(*endpoints, profile))
                    .flat_map(|end| &end.subsystems)
            };
            let samples = |of: Option<Subsystem>| -> f64 {
                let found = subsystems().filter(|(at, _)| of.is_none_or(|of| of == **at));
                found.map(|(_, samples)| *samples as f64).sum()
            };
            samples(Some(*subsystem)) / samples(None)
        }
    };
    // A sum of nothing is -0 in this language.
    value.is_finite().then_some(value + 0.0)
}

/// What of `profile` is meant by `endpoints`; nothing where it has no such endpoint.
fn of_endpoints(endpoints: MetricEndpoints, profile: &Profile) -> Vec<&EndpointProfile> {
    match endpoints {
        MetricEndpoints::Both => profile.endpoints().collect(),
        MetricEndpoints::One(EndpointRole::Client) => vec![&profile.client],
        MetricEndpoints::One(EndpointRole::Server) => profile.server.iter().collect(),
    }
}

fn iterations(samples: &[&Sample]) -> f64 {
    samples.iter().map(|sample| sample.iterations as f64).sum()
}

fn iteration_ns(samples: &[&Sample]) -> f64 {
    samples.iter().map(|sample| sample.elapsed_ns).sum::<f64>() / iterations(samples)
}

fn quantile_ns(quantile: Quantile, samples: &[&Sample]) -> Option<f64> {
    let mut all = Histogram::new();
    for each in samples.iter().filter_map(|sample| sample.each.as_ref()) {
        all.merge(&each.iterations.decode());
    }
    let ns = match quantile {
        Quantile::P50 => all.quantile_ns(0.5),
        Quantile::P90 => all.quantile_ns(0.9),
        Quantile::P99 => all.quantile_ns(0.99),
        Quantile::P999 => all.quantile_ns(0.999),
        Quantile::Max => all.max_ns(),
    };
    ns.map(|ns| ns as f64)
}

fn usage_of(used: UsedResource, sample: &Sample, endpoints: MetricEndpoints) -> Option<f64> {
    let amount = |usage: &Usage| match used {
        UsedResource::Cpu => usage.cpu_ns,
        UsedResource::User => usage.user_ns,
        UsedResource::System => usage.system_ns,
        UsedResource::Switches => usage.voluntary_switches + usage.involuntary_switches,
        UsedResource::Faults => usage.minor_faults + usage.major_faults,
    } as f64;
    match endpoints {
        MetricEndpoints::Both => Some(amount(&sample.client) + sample.server.as_ref().map_or(0.0, amount)),
        MetricEndpoints::One(EndpointRole::Client) => Some(amount(&sample.client)),
        MetricEndpoints::One(EndpointRole::Server) => sample.server.as_ref().map(amount),
    }
}

fn of_calls(
    what: CallQuantity,
    side: CallDirection,
    samples: &[&Sample],
    returned: Option<u64>,
) -> Option<f64> {
    let calls: Vec<_> = samples.iter().filter_map(|sample| sample.calls.as_ref()).collect();
    let counts_of = |calls: &TimedCalls| -> CallCounts {
        match side {
            CallDirection::Send => calls.send.clone(),
            CallDirection::Receive => calls.receive.clone(),
        }
    };
    let counts: Vec<CallCounts> = calls.iter().map(|calls| counts_of(calls)).collect();
    let sum = |value: &dyn Fn(&CallCounts) -> f64| counts.iter().map(value).sum::<f64>();
    let among = |counts: &CallCounts, weight: fn(u64, u64) -> u64| -> f64 {
        let kept = counts.returned_bytes.iter().filter(|(bytes, _)| returned.is_none_or(|r| r == *bytes));
        kept.map(|(bytes, calls)| weight(*bytes, *calls) as f64).sum()
    };
    if counts.is_empty() {
        return None;
    }
    Some(match what {
        CallQuantity::Calls => {
            let messages: f64 = calls.iter().map(|calls| calls.messages as f64).sum();
            match returned {
                None => sum(&|counts| counts.count as f64) / messages,
                // Single calls are noted up to a number; beyond it they are only counted.
                Some(_) => {
                    let noted = sum(&|c| c.returned_bytes.iter().map(|(_, calls)| *calls as f64).sum());
                    let share = sum(&|counts| among(counts, |_, calls| calls)) / noted;
                    share * sum(&|counts| counts.count as f64) / messages
                }
            }
        }
        CallQuantity::Bytes => {
            sum(&|counts| among(counts, |bytes, calls| bytes.saturating_mul(calls)))
                / sum(&|counts| among(counts, |_, calls| calls))
        }
        CallQuantity::Time => {
            let mut all = Histogram::new();
            counts.iter().for_each(|counts| all.merge(&counts.time.decode()));
            all.mean_ns()?
        }
    })
}

/// How many bytes calls of `side` returned in `samples`, each count once.
pub(crate) fn returned_bytes(side: CallDirection, samples: &[&Sample]) -> Vec<u64> {
    let calls = samples.iter().filter_map(|sample| sample.calls.as_ref());
    let counts = calls.map(|calls| match side {
        CallDirection::Send => &calls.send,
        CallDirection::Receive => &calls.receive,
    });
    let mut bytes: Vec<u64> = counts.flat_map(|c| c.returned_bytes.iter().map(|(bytes, _)| *bytes)).collect();
    bytes.sort_unstable();
    bytes.dedup();
    bytes
}

fn step(endpoint: EndpointRole, name: &str, mean: bool, samples: &[&Sample]) -> Option<f64> {
    let steps = samples.iter().filter_map(|sample| sample.steps.as_ref());
    let of_end = steps.flat_map(|steps| match endpoint {
        EndpointRole::Client => &steps.client,
        EndpointRole::Server => &steps.server,
    });
    let mut all = Histogram::new();
    of_end.filter(|step: &&StepSample| step.name == name).for_each(|step| all.merge(&step.time.decode()));
    if mean { all.mean_ns() } else { all.quantile_ns(0.5).map(|ns| ns as f64) }
}

fn scheduled_ns(scheduled: ScheduledTime, endpoints: MetricEndpoints, profiles: &[&Profile]) -> Option<f64> {
    let time_in = |row: &ScheduleProfile| match scheduled {
        ScheduledTime::Running => row.running_ns,
        ScheduledTime::Asleep => row.asleep_ns,
        ScheduledTime::Preempted => row.preempted_ns,
    };
    let of_trial = |profile: &&Profile| -> Option<f64> {
        let rows = of_endpoints(endpoints, profile).into_iter().map(|end| end.schedule.as_ref().map(time_in));
        let per_iteration: Option<f64> = rows.sum();
        per_iteration.map(|per_iteration| per_iteration * profile.iterations as f64)
    };
    Some(profiles.iter().map(of_trial).sum::<Option<f64>>()? / observed_iterations(profiles))
}

fn of_observed_calls(
    what: ObservedQuantity,
    endpoint: EndpointRole,
    name: &str,
    profiles: &[&Profile],
) -> Option<f64> {
    let of_end = profiles.iter().flat_map(|profile| of_endpoints(MetricEndpoints::One(endpoint), profile));
    let rows: Vec<_> = of_end.flat_map(|end| &end.calls).filter(|row| is_call(&row.name, name)).collect();
    let sum = |value: &dyn Fn(&CallProfile) -> f64| rows.iter().map(|row| value(row)).sum::<f64>();
    let answered = |row: &CallProfile| {
        let failed = row.errors.values().fold(row.restarts, |sum, errors| sum.saturating_add(*errors));
        row.count.saturating_sub(failed)
    };
    // A trial in which no such call was made has none of it an iteration, and no time of it.
    Some(match what {
        ObservedQuantity::Calls => sum(&|row| row.count as f64) / observed_iterations(profiles),
        ObservedQuantity::Mean => sum(&|row| row.mean_ns * row.count as f64) / sum(&|row| row.count as f64),
        ObservedQuantity::Bytes => sum(&|row| row.returned_sum as f64) / sum(&|row| answered(row) as f64),
        ObservedQuantity::Time => {
            let mut all = Histogram::new();
            rows.iter().for_each(|row| all.merge(&row.time.decode()));
            all.quantile_ns(0.5)? as f64
        }
    })
}

/// Whether `call` is called `name`, or is that with an `at`, by which many machines have replaced it: `open`, `openat`.
fn is_call(call: &str, name: &str) -> bool {
    call == name || call.strip_suffix("at") == Some(name)
}

/// A counter's count of both sides, `cycles`, or of one, `cycles:user`.
fn is_counter(counter: &str, name: &str) -> bool {
    counter == name || counter.split_once(':').is_some_and(|(event, _)| event == name)
}

fn count_of(name: &str, endpoints: MetricEndpoints, profiles: &[&Profile]) -> Option<f64> {
    let of_trial = |profile: &&Profile| -> Option<f64> {
        let counters = of_endpoints(endpoints, profile).into_iter().flat_map(|end| &end.counters);
        let counts: Vec<_> = counters.filter(|counter| is_counter(&counter.name, name)).collect();
        if counts.is_empty() { None } else { counts.iter().map(|counter| counter.count.known()).sum() }
    };
    Some(profiles.iter().map(of_trial).sum::<Option<f64>>()? / observed_iterations(profiles))
}

fn observed_iterations(profiles: &[&Profile]) -> f64 {
    profiles.iter().map(|profile| profile.iterations as f64).sum()
}

fn of_timer(what: TimerQuantity, samples: &[&Sample]) -> Option<f64> {
    let timers: Vec<TimerSample> = samples.iter().filter_map(|sample| sample.timer).collect();
    let quantity = |timer: &TimerSample| match what {
        TimerQuantity::Error => timer.error_ns,
        TimerQuantity::Deviation => timer.deviation_ns,
        TimerQuantity::Off => timer.off_clock_ns,
        TimerQuantity::Resolution => timer.resolution_ns,
    };
    stats::median(&timers.iter().map(quantity).collect::<Vec<_>>())
}
