//! The columns of each workload's blocks: a title and how a cell comes out of a summary.
//!
//! The title of a block says what everything in it is per: a round trip, a message, an operation.

use super::block::{Heading, place};
use crate::quantity::Kind;
use model::estimate::Estimate;
use model::summary::{Quantiles, Summary};
use model::{Case, Invalid, Workload};
use std::collections::BTreeSet;

/// One column of the blocks of a workload.
pub(crate) struct Column {
    /// Its head.
    pub(crate) heading: Heading,
    /// What its cells show.
    value: Value,
}

/// What the cells of a column show; `None` where the row has no such value.
enum Value {
    /// A number, which charts can draw too.
    Number(Kind, fn(&Summary) -> Option<Estimate>),
    /// Words of the case.
    Words(fn(&Case) -> String),
}

impl Column {
    const fn number(title: &'static str, kind: Kind, value: fn(&Summary) -> Option<Estimate>) -> Self {
        Self { heading: Heading::new(title).unit(kind.unit()), value: Value::Number(kind, value) }
    }

    const fn words(title: &'static str, words: fn(&Case) -> String) -> Self {
        Self { heading: Heading::new(title), value: Value::Words(words) }
    }

    const fn meaning(self, meaning: &'static str) -> Self {
        Self { heading: self.heading.meaning(meaning), ..self }
    }

    const fn spare(self) -> Self {
        Self { heading: self.heading.spare(), ..self }
    }

    /// The number of a row, and how it is shown; `None` of words, and where the row has no such number.
    pub(crate) fn number_of(&self, summary: &Summary) -> Option<(Kind, Estimate)> {
        match self.value {
            Value::Number(kind, value) => Some((kind, value(summary)?)),
            Value::Words(_) => None,
        }
    }

    /// The cell of a row: what it says, and the number that it says, if it is one.
    pub(crate) fn cell(&self, case: &Case, summary: &Summary) -> Option<(String, Option<Estimate>)> {
        match self.value {
            Value::Number(kind, value) => {
                let number = value(summary)?;
                Some((kind.text(number)?, Some(number)))
            }
            Value::Words(words) => Some((words(case), None)),
        }
    }
}

/// The columns of `workload`.
pub(crate) fn shown_of(workload: Workload) -> &'static [Column] {
    match workload {
        Workload::Latency => LATENCY,
        Workload::Throughput => THROUGHPUT,
        Workload::Transfer => TRANSFER,
        Workload::Connect | Workload::Session(_) => SET_UP,
        Workload::Cost => COST,
        Workload::Accuracy => ACCURACY,
    }
}

/// The title of a column of numbers, or which it may have meant.
pub fn parse_metric(metric: &str) -> Result<String, Invalid> {
    let known: Vec<&str> = numbers().collect();
    if known.contains(&metric) {
        Ok(metric.to_owned())
    } else {
        Err(Invalid::unknown("metric", metric, known))
    }
}

/// The titles of all columns of numbers, each once.
fn numbers() -> impl Iterator<Item = &'static str> {
    let all = Workload::ALL.into_iter().flat_map(shown_of).filter(|column| column.heading.unit.is_some());
    let titles: BTreeSet<&str> = all.map(|column| column.heading.title).collect();
    titles.into_iter()
}

const LATENCY: &[Column] = &[
    Column::number("round trip", Kind::SettledTime, |s| Some(s.iteration_ns)),
    Column::number("rtt/2", Kind::Time, |s| {
        Some(s.iteration_ns.map(|ns| ns / 2.0)).filter(|_| s.iterations_per_s.is_none())
    })
    .spare(),
    ITERATIONS,
    P99,
    P999,
    CPU,
    SWITCHES,
    FAULTS,
    LEAST,
    MOST,
    JAIN,
    FLOOR,
    WAKE_FLOOR,
];

const THROUGHPUT: &[Column] =
    &[RATE, TIME, LOST, CPU, SWITCHES, FAULTS, LEAST, MOST, JAIN, FLOOR, WAKE_FLOOR];

const TRANSFER: &[Column] =
    &[RATE, TIME.spare(), P99, P999, CPU, SWITCHES, FAULTS, LEAST, MOST, JAIN, FLOOR, WAKE_FLOOR];

/// Of setting something up: user and system time are as important as how long it takes.
const SET_UP: &[Column] = &[
    SETTLED_TIME,
    P99,
    CPU,
    Column::number("user", Kind::Time, |s| {
        alone(s.client.user_ns + s.server.map_or(0.0, |server| server.user_ns))
    }),
    Column::number("system", Kind::Time, |s| {
        alone(s.client.system_ns + s.server.map_or(0.0, |server| server.system_ns))
    }),
    SWITCHES.spare(),
    FAULTS,
    FLOOR,
    WAKE_FLOOR,
];

const COST: &[Column] = &[SETTLED_TIME, CPU, SWITCHES, FAULTS];

const ACCURACY: &[Column] = &[
    Column::number("error", Kind::SignedTime, |s| s.timer.and_then(|timer| alone(timer.error_ns)))
        .meaning("what the timer says of an interval, less the length that was asked for"),
    Column::number("deviation", Kind::Time, |s| s.timer.and_then(|timer| alone(timer.deviation_ns))),
    Column::number("off clock", Kind::SignedTime, |s| s.timer.and_then(|timer| alone(timer.off_clock_ns)))
        .meaning("what the timer says, less what the run's clock says"),
    Column::number("resolution", Kind::Time, |s| s.timer.and_then(|timer| alone(timer.resolution_ns)))
        .meaning("the smallest step between two readings that differ"),
];

/// The columns of the floors. They belong to several workloads, so that each row says what its time is of.
pub(crate) const FLOORS: &[Column] = &[
    SETTLED_TIME,
    Column::words("of one", |case| case.workload.iteration().to_owned()),
    Column::words("on", place),
];

const SETTLED_TIME: Column = Column::number("time", Kind::SettledTime, |s| Some(s.iteration_ns));
const RATE: Column = Column::number("rate", Kind::Rate, |s| s.bytes_per_s);
const TIME: Column = Column::number("time", Kind::Time, |s| Some(s.iteration_ns));
const P99: Column = Column::number("p99", Kind::Time, |s| quantile(s, |q| q.p99_ns))
    .meaning("99% of iterations take at most this; every iteration timed, all trials together");
const P999: Column = Column::number("p99.9", Kind::Time, |s| quantile(s, |q| q.p999_ns)).spare();
/// What several peers do together.
const ITERATIONS: Column = Column::number("all/s", Kind::Count, |s| s.iterations_per_s.and_then(alone))
    .meaning("round trips a second of all peers together");
const LEAST: Column = Column::number("least", Kind::Multiple, |s| s.fairness.and_then(|f| alone(f.least)))
    .meaning("iterations of the client with the fewest, over the mean; most: of the client with the most")
    .spare();
const MOST: Column =
    Column::number("most", Kind::Multiple, |s| s.fairness.and_then(|f| alone(f.most))).spare();
const JAIN: Column = Column::number("fairness", Kind::Index, |s| s.fairness.and_then(|f| alone(f.jain)))
    .meaning("Jain's index of fairness: 1 when all clients have as many iterations, 1/n when one has all");
const LOST: Column = Column::number("lost", Kind::Share, |s| {
    s.lost.map(|lost| Estimate { median: lost, interval: s.lost_interval })
})
.meaning("part of the messages that never arrived; the rate counts those that did, the time all sent");
const CPU: Column = Column::number("cpu", Kind::Time, |s| alone(s.cpu_ns()))
    .meaning("CPU time of both endpoints; switches: context switches of both");
const SWITCHES: Column = Column::number("switches", Kind::Count, |s| alone(s.switches()));
const FAULTS: Column = Column::number("faults", Kind::Count, |s| {
    alone(s.client.faults + s.server.map_or(0.0, |server| server.faults))
})
.spare();
const FLOOR: Column = Column::number("×floor", Kind::Multiple, |s| s.floor_multiple)
    .meaning("time over that of the floor beside it; median over slices");

const WAKE_FLOOR: Column = Column::number("×wake", Kind::Multiple, |s| s.wake_floor_multiple)
    .meaning("time over that of the floor that wakes a sleeper on the other CPU; only of cases that sleep");

/// A number without an interval.
fn alone(value: f64) -> Option<Estimate> {
    Some(Estimate { median: value, interval: None })
}

fn quantile(summary: &Summary, which: fn(Quantiles) -> u64) -> Option<Estimate> {
    summary.quantiles.and_then(|quantiles| alone(which(quantiles) as f64))
}
