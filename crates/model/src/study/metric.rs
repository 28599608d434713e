//! What can be taken of a case: its time, its rate, what its ends used, its calls, its steps.
//!
//! A metric is worked out of any set of launches: of one, for a value a round, or of all of them together. How
//! values become an estimate is not decided here.

use crate::case::{Case, Workload};
use crate::drawn::Unit;
use crate::histogram::Histogram;
use crate::invalid::{Invalid, printable};
use crate::record::{CallCounts, Sample, Step, TimerSample, Usage};
use crate::stats;
use std::fmt;
use std::str::FromStr;

/// What is taken of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metric {
    /// The time of a turn.
    Time,
    /// Payload bytes per second, one way; of an operation with a size that many bytes over its time.
    Rate,
    /// The message's size.
    Size,
    /// The time as a multiple of the floor's in the same round.
    Floor,
    /// A quantile of single turns of a launch.
    Quantile(Quantile),
    /// What the ends used in a turn.
    Used(Used, Ends),
    /// Of near's send calls or far's receive calls.
    Call(Side, OfCall),
    /// A system call of a session's messages.
    Step {
        /// Whose.
        end: End,
        /// The system call.
        name: String,
        /// The mean; else the median.
        mean: bool,
    },
    /// What a timer said of intervals.
    Timer(OfTimer),
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            const ALL: &[$name] = &[$($name::$variant),+];

            fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            fn of(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.word() == word)
            }
        }
    };
}

words! {
    /// A quantile of the turns of a launch.
    Quantile {
        /// The median.
        P50 = "p50",
        /// 90% are at most this.
        P90 = "p90",
        /// 99% are at most this.
        P99 = "p99",
        /// 99.9% are at most this.
        P999 = "p99.9",
        /// The slowest.
        Max = "max",
    }
}

words! {
    /// What an end uses.
    Used {
        /// CPU time.
        Cpu = "cpu",
        /// The part in user mode.
        User = "user",
        /// The part in the kernel.
        System = "system",
        /// Context switches.
        Switches = "switches",
        /// Page faults.
        Faults = "faults",
    }
}

words! {
    /// One end.
    End {
        /// Which starts and keeps the clock.
        Near = "near",
        /// Which answers.
        Far = "far",
    }
}

words! {
    /// A direction.
    Side {
        /// Near's send calls.
        Send = "send",
        /// Far's receive calls.
        Receive = "receive",
    }
}

words! {
    /// Of calls.
    OfCall {
        /// How many a message takes.
        Calls = "calls",
        /// How long one takes, on average.
        Time = "time",
        /// How many bytes one returns, on average.
        Bytes = "bytes",
    }
}

words! {
    /// Of a timer.
    OfTimer {
        /// What it says, less the length asked for.
        Error = "error",
        /// The standard deviation of what it says.
        Deviation = "deviation",
        /// What it says, less what the run's clock says.
        Off = "off",
        /// The smallest step between readings that differ.
        Resolution = "resolution",
    }
}

/// Whose use is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// Both ends' together.
    Both,
    /// One end's.
    One(End),
}

impl FromStr for Metric {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (first, rest) = text.split_once('.').map_or((text, None), |(first, rest)| (first, Some(rest)));
        let known = match (first, rest) {
            ("time", None) => Some(Metric::Time),
            ("rate", None) => Some(Metric::Rate),
            ("size", None) => Some(Metric::Size),
            ("floor", None) => Some(Metric::Floor),
            ("timer", Some(rest)) => OfTimer::of(rest).map(Metric::Timer),
            _ => None,
        };
        let quantile = || Quantile::of(text).map(Metric::Quantile);
        let used = || match (Used::of(first)?, rest) {
            (used, None) => Some(Metric::Used(used, Ends::Both)),
            (used, Some(end)) => Some(Metric::Used(used, Ends::One(End::of(end)?))),
        };
        let call = || Some(Metric::Call(Side::of(first)?, OfCall::of(rest?)?));
        let step = || {
            let (end, step) = (End::of(first)?, rest?);
            let (name, mean) = step.strip_suffix(".mean").map_or((step, false), |name| (name, true));
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            is_name.then(|| Metric::Step { end, name: name.to_owned(), mean })
        };
        known.or_else(quantile).or_else(used).or_else(call).or_else(step).ok_or_else(|| {
            Invalid::new(
                format!("'{}' is not a metric", printable(text)),
                "give time, rate, p50, p90, p99, p99.9, max, cpu, user, system, switches, faults (each also as cpu.near, \
                 cpu.far, …), send.calls, send.time, send.bytes, receive.…, near.STEP, far.STEP, near.STEP.mean, \
                 timer.error, timer.deviation, timer.off, timer.resolution, floor or size; see docs/suites.md",
            )
        })
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Time => f.write_str("time"),
            Metric::Rate => f.write_str("rate"),
            Metric::Size => f.write_str("size"),
            Metric::Floor => f.write_str("floor"),
            Metric::Quantile(quantile) => f.write_str(quantile.word()),
            Metric::Used(used, Ends::Both) => f.write_str(used.word()),
            Metric::Used(used, Ends::One(end)) => write!(f, "{}.{}", used.word(), end.word()),
            Metric::Call(side, of) => write!(f, "{}.{}", side.word(), of.word()),
            Metric::Step { end, name, mean } => {
                write!(f, "{}.{name}{}", end.word(), if *mean { ".mean" } else { "" })
            }
            Metric::Timer(of) => write!(f, "timer.{}", of.word()),
        }
    }
}

impl Metric {
    /// In what it is counted.
    pub fn unit(&self) -> Unit {
        match self {
            Metric::Rate => Unit::BytesPerS,
            Metric::Size | Metric::Call(_, OfCall::Bytes) => Unit::Bytes,
            Metric::Floor
            | Metric::Call(_, OfCall::Calls)
            | Metric::Used(Used::Switches | Used::Faults, _) => Unit::Number,
            _ => Unit::Ns,
        }
    }

    /// Whether one launch has too little of it to say anything: the kernel tells user from system time by its tick,
    /// which falls into a launch a few times or never.
    pub fn is_sampled(&self) -> bool {
        matches!(self, Metric::Used(Used::User | Used::System, _))
    }

    /// Why no case of `workload` has it, if none has.
    pub fn lacking(&self, workload: Workload) -> Option<&'static str> {
        let streams = matches!(workload, Workload::Throughput | Workload::Transfer);
        match self {
            Metric::Rate if !streams && workload != Workload::Cost => {
                Some("only throughput, transfer and cost have a rate")
            }
            Metric::Size if !workload.is_sized() => Some("its messages have no size"),
            Metric::Quantile(_) if !workload.is_answered() => {
                Some("its turns are not timed one by one, as no answer ends them")
            }
            Metric::Call(..) if workload != Workload::Throughput => {
                Some("only throughput times its send and receive calls")
            }
            Metric::Step { .. } if !matches!(workload, Workload::Session(_)) => {
                Some("only session times the steps of its messages")
            }
            Metric::Timer(_) if workload != Workload::Accuracy => Some("only accuracy asks a timer"),
            Metric::Floor if workload.is_alone() => Some("an operation has no floor"),
            _ => None,
        }
    }

    /// Its value in `samples` of `case`, all together; of calls only those that returned `returned` bytes, if given.
    pub(crate) fn value(&self, case: &Case, samples: &[&Sample], returned: Option<u64>) -> Option<f64> {
        let value = match self {
            Metric::Time => turn_ns(samples),
            Metric::Rate => {
                let came: u64 = samples.iter().map(|sample| sample.came()).sum();
                let elapsed_ns: f64 = samples.iter().map(|sample| sample.elapsed_ns).sum();
                case.turn_bytes()? / (elapsed_ns / came as f64) * 1e9
            }
            Metric::Size => case.size_bytes?.0 as f64,
            Metric::Floor => {
                let multiples = samples.iter().filter_map(|s| Some(s.turn_ns() / s.floor_ns?));
                stats::median(&multiples.collect::<Vec<_>>())?
            }
            Metric::Quantile(quantile) => quantile.value(samples)?,
            Metric::Used(used, ends) => {
                let of_ends = samples.iter().map(|sample| used.value(sample, *ends));
                of_ends.sum::<Option<f64>>()? / turns(samples)
            }
            Metric::Call(side, of) => of.value(*side, samples, returned)?,
            Metric::Step { end, name, mean } => step(*end, name, *mean, samples)?,
            Metric::Timer(of) => of.value(samples)?,
        };
        value.is_finite().then_some(value)
    }
}

fn turns(samples: &[&Sample]) -> f64 {
    samples.iter().map(|sample| sample.turns as f64).sum()
}

fn turn_ns(samples: &[&Sample]) -> f64 {
    samples.iter().map(|sample| sample.elapsed_ns).sum::<f64>() / turns(samples)
}

impl Quantile {
    fn value(self, samples: &[&Sample]) -> Option<f64> {
        let mut all = Histogram::new();
        for each in samples.iter().filter_map(|sample| sample.each.as_ref()) {
            all.merge(&each.turns.decode());
        }
        let ns = match self {
            Quantile::P50 => all.quantile_ns(0.5),
            Quantile::P90 => all.quantile_ns(0.9),
            Quantile::P99 => all.quantile_ns(0.99),
            Quantile::P999 => all.quantile_ns(0.999),
            Quantile::Max => all.max_ns(),
        };
        ns.map(|ns| ns as f64)
    }
}

impl Used {
    fn value(self, sample: &Sample, ends: Ends) -> Option<f64> {
        let of = |usage: &Usage| match self {
            Used::Cpu => usage.cpu_ns,
            Used::User => usage.user_ns,
            Used::System => usage.system_ns,
            Used::Switches => usage.voluntary_switches + usage.involuntary_switches,
            Used::Faults => usage.minor_faults + usage.major_faults,
        } as f64;
        match ends {
            Ends::Both => Some(of(&sample.near) + sample.far.as_ref().map_or(0.0, of)),
            Ends::One(End::Near) => Some(of(&sample.near)),
            Ends::One(End::Far) => sample.far.as_ref().map(of),
        }
    }
}

impl OfCall {
    fn value(self, side: Side, samples: &[&Sample], returned: Option<u64>) -> Option<f64> {
        let calls: Vec<_> = samples.iter().filter_map(|sample| sample.calls.as_ref()).collect();
        let of = |calls: &'_ crate::record::Calls| -> CallCounts {
            match side {
                Side::Send => calls.send.clone(),
                Side::Receive => calls.receive.clone(),
            }
        };
        let counts: Vec<CallCounts> = calls.iter().map(|calls| of(calls)).collect();
        let sum = |value: &dyn Fn(&CallCounts) -> f64| counts.iter().map(value).sum::<f64>();
        let among = |counts: &CallCounts, weight: fn(u64, u64) -> u64| -> f64 {
            let kept = counts.returned_bytes.iter().filter(|(bytes, _)| returned.is_none_or(|r| r == *bytes));
            kept.map(|(bytes, calls)| weight(*bytes, *calls) as f64).sum()
        };
        if counts.is_empty() {
            return None;
        }
        Some(match self {
            OfCall::Calls => {
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
            OfCall::Bytes => {
                sum(&|counts| among(counts, |bytes, calls| bytes.saturating_mul(calls)))
                    / sum(&|counts| among(counts, |_, calls| calls))
            }
            OfCall::Time => {
                let mut all = Histogram::new();
                counts.iter().for_each(|counts| all.merge(&counts.time.decode()));
                all.mean_ns()?
            }
        })
    }
}

/// How many bytes calls of `side` returned in `samples`, each count once.
pub(crate) fn returned_bytes(side: Side, samples: &[&Sample]) -> Vec<u64> {
    let calls = samples.iter().filter_map(|sample| sample.calls.as_ref());
    let counts = calls.map(|calls| match side {
        Side::Send => &calls.send,
        Side::Receive => &calls.receive,
    });
    let mut bytes: Vec<u64> = counts.flat_map(|c| c.returned_bytes.iter().map(|(bytes, _)| *bytes)).collect();
    bytes.sort_unstable();
    bytes.dedup();
    bytes
}

fn step(end: End, name: &str, mean: bool, samples: &[&Sample]) -> Option<f64> {
    let steps = samples.iter().filter_map(|sample| sample.steps.as_ref());
    let of_end = steps.flat_map(|steps| match end {
        End::Near => &steps.near,
        End::Far => &steps.far,
    });
    let mut all = Histogram::new();
    of_end.filter(|step: &&Step| step.name == name).for_each(|step| all.merge(&step.time.decode()));
    if mean { all.mean_ns() } else { all.quantile_ns(0.5).map(|ns| ns as f64) }
}

impl OfTimer {
    fn value(self, samples: &[&Sample]) -> Option<f64> {
        let timers: Vec<TimerSample> = samples.iter().filter_map(|sample| sample.timer).collect();
        let of = |timer: &TimerSample| match self {
            OfTimer::Error => timer.error_ns,
            OfTimer::Deviation => timer.deviation_ns,
            OfTimer::Off => timer.off_clock_ns,
            OfTimer::Resolution => timer.resolution_ns,
        };
        stats::median(&timers.iter().map(of).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_survive_their_own_text() {
        for text in [
            "time",
            "rate",
            "size",
            "floor",
            "p50",
            "p99.9",
            "max",
            "cpu",
            "user.near",
            "system.far",
            "switches",
            "faults.far",
            "send.calls",
            "receive.bytes",
            "send.time",
            "near.sendmsg",
            "far.close.mean",
            "timer.resolution",
        ] {
            assert_eq!(text.parse::<Metric>().unwrap().to_string(), text);
        }
        for wrong in ["", "tim", "time.near", "cpu.both", "near", "near.", "near.a b", "timer", "send", "p98"]
        {
            let invalid = wrong.parse::<Metric>().unwrap_err();
            assert!(invalid.problem.contains("is not a metric"), "{wrong}");
        }
    }

    #[test]
    fn a_metric_knows_which_workloads_have_it() {
        let lacks = |text: &str, workload| text.parse::<Metric>().unwrap().lacking(workload).is_some();
        assert!(lacks("rate", Workload::Latency) && !lacks("rate", Workload::Transfer));
        assert!(lacks("p99", Workload::Throughput) && !lacks("p99", Workload::Latency));
        assert!(lacks("send.calls", Workload::Latency) && lacks("near.write", Workload::Latency));
        assert!(!lacks("cpu", Workload::Cost) && lacks("timer.error", Workload::Cost));
    }
}
