//! The metrics of a case: its time, its rate, what its endpoints used, its calls, its steps.
//!
//! Only their names and units. Their values are worked out in `analysis`.

use crate::endpoint::EndpointRole;
use crate::invalid::{Invalid, printable};
use crate::observation::probe::{Probe, parse_probe};
use crate::observation::subsystem::Subsystem;
use crate::units::Unit;
use crate::workload::Workload;
use std::fmt;
use std::str::FromStr;

/// A metric of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metric {
    /// The time of an iteration.
    Time,
    /// Payload bytes per second, one way; of an operation with a size that many bytes over its time.
    Rate,
    /// The message's size.
    Size,
    /// The time as a multiple of the floor's in the same round.
    Floor,
    /// The share of the messages that were lost.
    Lost,
    /// The memory of the endpoints' processes.
    Memory,
    /// A quantile of single iterations of a trial.
    Quantile(Quantile),
    /// What the endpoints used in an iteration.
    Used(UsedResource, MetricEndpoints),
    /// Of the client's send calls or the server's receive calls.
    Call(CallDirection, CallQuantity),
    /// A system call of a session's messages.
    Step {
        /// Whose.
        endpoint: EndpointRole,
        /// The system call.
        name: String,
        /// The mean; else the median.
        mean: bool,
    },
    /// What a timer measured of intervals.
    Timer(TimerQuantity),
    /// The time of an iteration under a probe, over that of the same iterations without one.
    Effect(Probe),
    /// How the endpoints were scheduled.
    Scheduled(ScheduledTime, MetricEndpoints),
    /// An endpoint's system calls of one kind, as a probe observed them.
    ObservedCall {
        /// Whose.
        endpoint: EndpointRole,
        /// The system call.
        name: String,
        /// What of them.
        quantity: ObservedQuantity,
    },
    /// What a counter counted in an iteration.
    Counter(String, MetricEndpoints),
    /// The share of the samples in one subsystem.
    Subsystem(Subsystem, MetricEndpoints),
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

            fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.word() == word)
            }
        }
    };
}

words! {
    /// A quantile of the iterations of a trial.
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
    /// What an endpoint uses.
    UsedResource {
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
    /// A direction.
    CallDirection {
        /// The client's send calls.
        Send = "send",
        /// The server's receive calls.
        Receive = "receive",
    }
}

words! {
    /// What is measured of calls.
    CallQuantity {
        /// How many a message takes.
        Calls = "calls",
        /// How long one takes, on average.
        Time = "time",
        /// How many bytes one returns, on average.
        Bytes = "bytes",
    }
}

words! {
    /// What is measured of a timer.
    TimerQuantity {
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

words! {
    /// The time of an iteration in which an endpoint is in a state of the scheduler.
    ScheduledTime {
        /// It has a CPU.
        Running = "running",
        /// It waits for something.
        Asleep = "asleep",
        /// It could run, and another has the CPU.
        Preempted = "preempted",
    }
}

words! {
    /// What is measured of system calls that a probe observed.
    ObservedQuantity {
        /// How long one takes: the median.
        Time = "time",
        /// How long one takes: the mean.
        Mean = "mean",
        /// How many an iteration takes.
        Calls = "calls",
        /// How many bytes one returns, on average.
        Bytes = "bytes",
    }
}

/// Which endpoints are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricEndpoints {
    /// Both together.
    Both,
    /// One of them.
    One(EndpointRole),
}

impl MetricEndpoints {
    /// Splits `cpu.client` into the name and the endpoint after it; without an endpoint both are meant.
    fn split(text: &str) -> (&str, Self) {
        let after_endpoint = |endpoint: EndpointRole| {
            text.strip_suffix(endpoint.name())?
                .strip_suffix('.')
                .map(|name| (name, MetricEndpoints::One(endpoint)))
        };
        EndpointRole::ALL
            .iter()
            .find_map(|endpoint| after_endpoint(*endpoint))
            .unwrap_or((text, MetricEndpoints::Both))
    }

    fn suffix(self) -> &'static str {
        match self {
            MetricEndpoints::Both => "",
            MetricEndpoints::One(EndpointRole::Client) => ".client",
            MetricEndpoints::One(EndpointRole::Server) => ".server",
        }
    }
}

/// The endpoint called `name`.
fn endpoint_role(name: &str) -> Option<EndpointRole> {
    EndpointRole::ALL.into_iter().find(|role| role.name() == name)
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
            ("lost", None) => Some(Metric::Lost),
            ("memory", None) => Some(Metric::Memory),
            ("timer", Some(rest)) => TimerQuantity::from_word(rest).map(Metric::Timer),
            _ => None,
        };
        let quantile = || Quantile::from_word(text).map(Metric::Quantile);
        let used = || match (UsedResource::from_word(first)?, rest) {
            (used, None) => Some(Metric::Used(used, MetricEndpoints::Both)),
            (used, Some(endpoint)) => {
                Some(Metric::Used(used, MetricEndpoints::One(endpoint_role(endpoint)?)))
            }
        };
        let call = || Some(Metric::Call(CallDirection::from_word(first)?, CallQuantity::from_word(rest?)?));
        let step = || {
            let (endpoint, step) = (endpoint_role(first)?, rest?);
            let (name, mean) = step.strip_suffix(".mean").map_or((step, false), |name| (name, true));
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            is_name.then(|| Metric::Step { endpoint, name: name.to_owned(), mean })
        };
        let observed = || observed(first, rest, text);
        known.or_else(quantile).or_else(used).or_else(call).or_else(step).or_else(observed).ok_or_else(|| {
            Invalid::new(
                format!("'{}' is not a metric", printable(text)),
                "give time, rate, p50, p90, p99, p99.9, max, cpu, user, system, switches, faults (each also as cpu.client, \
                 cpu.server, …), send.calls, send.time, send.bytes, receive.…, client.STEP, server.STEP, client.STEP.mean, \
                 timer.error, timer.deviation, timer.off, timer.resolution, floor, lost, memory or size; or, of what probes observe, \
                 effect.PROBE, asleep, running, preempted, observed.client.CALL.time (mean, calls, bytes), counter.NAME or \
                 in.SUBSYSTEM; see docs/reference/suites.md",
            )
        })
    }
}

/// A metric of what probes observe.
fn observed(first: &str, rest: Option<&str>, text: &str) -> Option<Metric> {
    let is_word = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-:/".contains(c))
    };
    match (first, rest) {
        ("effect", Some(probe)) => parse_probe(probe).ok().map(Metric::Effect),
        ("observed", Some(rest)) => {
            let (endpoint, rest) = rest.split_once('.')?;
            let (name, of) = rest.split_once('.')?;
            let (endpoint, quantity) = (endpoint_role(endpoint)?, ObservedQuantity::from_word(of)?);
            is_word(name).then(|| Metric::ObservedCall { endpoint, name: name.to_owned(), quantity })
        }
        ("counter", Some(rest)) => {
            let (name, endpoints) = MetricEndpoints::split(rest);
            is_word(name).then(|| Metric::Counter(name.to_owned(), endpoints))
        }
        ("in", Some(rest)) => {
            let (name, endpoints) = MetricEndpoints::split(rest);
            let subsystem = Subsystem::ALL.iter().copied().find(|subsystem| subsystem.word() == name)?;
            Some(Metric::Subsystem(subsystem, endpoints))
        }
        _ => {
            let (name, endpoints) = MetricEndpoints::split(text);
            ScheduledTime::from_word(name).map(|scheduled| Metric::Scheduled(scheduled, endpoints))
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Time => f.write_str("time"),
            Metric::Rate => f.write_str("rate"),
            Metric::Size => f.write_str("size"),
            Metric::Floor => f.write_str("floor"),
            Metric::Lost => f.write_str("lost"),
            Metric::Memory => f.write_str("memory"),
            Metric::Quantile(quantile) => f.write_str(quantile.word()),
            Metric::Used(used, MetricEndpoints::Both) => f.write_str(used.word()),
            Metric::Used(used, MetricEndpoints::One(endpoint)) => {
                write!(f, "{}.{}", used.word(), endpoint.name())
            }
            Metric::Call(side, of) => write!(f, "{}.{}", side.word(), of.word()),
            Metric::Step { endpoint, name, mean } => {
                write!(f, "{}.{name}{}", endpoint.name(), if *mean { ".mean" } else { "" })
            }
            Metric::Timer(of) => write!(f, "timer.{}", of.word()),
            Metric::Effect(probe) => write!(f, "effect.{probe}"),
            Metric::Scheduled(scheduled, endpoints) => {
                write!(f, "{}{}", scheduled.word(), endpoints.suffix())
            }
            Metric::ObservedCall { endpoint, name, quantity } => {
                write!(f, "observed.{}.{name}.{}", endpoint.name(), quantity.word())
            }
            Metric::Counter(name, endpoints) => write!(f, "counter.{name}{}", endpoints.suffix()),
            Metric::Subsystem(subsystem, endpoints) => {
                write!(f, "in.{}{}", subsystem.word(), endpoints.suffix())
            }
        }
    }
}

impl Metric {
    /// Its unit.
    pub fn unit(&self) -> Unit {
        match self {
            Metric::Rate => Unit::BytesPerS,
            Metric::Size
            | Metric::Memory
            | Metric::Call(_, CallQuantity::Bytes)
            | Metric::ObservedCall { quantity: ObservedQuantity::Bytes, .. } => Unit::Bytes,
            Metric::Floor
            | Metric::Lost
            | Metric::Effect(_)
            | Metric::Counter(..)
            | Metric::Subsystem(..)
            | Metric::ObservedCall { quantity: ObservedQuantity::Calls, .. }
            | Metric::Call(_, CallQuantity::Calls)
            | Metric::Used(UsedResource::Switches | UsedResource::Faults, _) => Unit::Number,
            _ => Unit::Ns,
        }
    }

    /// Whether it is used up, so that iterations that use much of it count as what they use: a collector that runs in one slice of five is in
    /// no median of slices. The kernel splits user from system time by its tick, too, which falls into a trial a few times or never.
    pub fn is_used_up(&self) -> bool {
        matches!(self, Metric::Used(..))
    }

    /// The probe that it needs; `None` if it needs none.
    pub fn probe(&self) -> Option<Probe> {
        match self {
            Metric::Effect(probe) => Some(*probe),
            Metric::Scheduled(..) => Some(Probe::Scheduler),
            Metric::ObservedCall { .. } => Some(Probe::Syscalls),
            Metric::Counter(..) => Some(Probe::Counters),
            Metric::Subsystem(..) => Some(Probe::Sampling),
            _ => None,
        }
    }

    /// Why cases of `workload` do not have it, if they do not.
    pub fn unavailable_in(&self, workload: Workload) -> Option<&'static str> {
        let streams = matches!(workload, Workload::Throughput | Workload::Transfer);
        match self {
            Metric::Rate if !streams && workload != Workload::Cost => {
                Some("only throughput, transfer and cost have a rate")
            }
            Metric::Size if !workload.is_sized() => Some("its messages have no size"),
            Metric::Quantile(_) if !workload.is_answered() => {
                Some("its iterations are not answered, so that they are not timed one by one")
            }
            Metric::Lost if workload != Workload::Throughput => Some("only throughput counts what is lost"),
            Metric::Call(..) if workload != Workload::Throughput => {
                Some("only throughput times its send and receive calls")
            }
            Metric::Step { .. } if !matches!(workload, Workload::Session(_)) => {
                Some("only session times the steps of its messages")
            }
            Metric::Timer(_) if workload != Workload::Accuracy => Some("only accuracy asks a timer"),
            Metric::Floor if workload.is_alone() => Some("an operation has no floor"),
            _ if self.probe().is_some() && workload == Workload::Accuracy => {
                Some("probes observe only iterations that are all alike")
            }
            _ => None,
        }
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
            "lost",
            "memory",
            "p50",
            "p99.9",
            "max",
            "cpu",
            "user.client",
            "system.server",
            "switches",
            "faults.server",
            "send.calls",
            "receive.bytes",
            "send.time",
            "client.sendmsg",
            "server.close.mean",
            "timer.resolution",
            "effect.syscalls",
            "asleep",
            "running.client",
            "observed.server.recvmsg.time",
            "observed.client.read.bytes",
            "counter.instructions",
            "counter.cycles:user.server",
            "in.copy",
            "in.io-uring.client",
        ] {
            assert_eq!(text.parse::<Metric>().unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "tim",
            "time.client",
            "cpu.both",
            "client",
            "client.",
            "client.a b",
            "timer",
            "send",
            "p98",
            "effect.x",
            "observed.client.read",
            "observed.read.time",
            "counter.",
            "in.kernel",
            "asleep.both",
        ] {
            let invalid = wrong.parse::<Metric>().unwrap_err();
            assert!(invalid.problem.contains("is not a metric"), "{wrong}");
        }
    }

    #[test]
    fn a_metric_knows_which_workloads_have_it() {
        let lacks = |text: &str, workload| text.parse::<Metric>().unwrap().unavailable_in(workload).is_some();
        assert!(lacks("rate", Workload::Latency) && !lacks("rate", Workload::Transfer));
        assert!(lacks("p99", Workload::Throughput) && !lacks("p99", Workload::Latency));
        assert!(lacks("send.calls", Workload::Latency) && lacks("client.write", Workload::Latency));
        assert!(!lacks("cpu", Workload::Cost) && lacks("timer.error", Workload::Cost));
    }
}
