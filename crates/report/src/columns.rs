//! The columns of each workload's blocks: a title and how a cell comes out of a summary.
//!
//! The title of a block says what everything in it is per: a round trip, a message, an operation.

use crate::block::{Heading, place};
use crate::quantity::{count, multiple, percent, rate_estimate, signed_time, time, time_estimate};
use model::summary::Summary;
use model::units::three_digits;
use model::{Case, Peers, Workload};

/// One column of the blocks of a workload.
pub(crate) struct Column {
    /// Its head.
    pub(crate) heading: Heading,
    /// The cell of one row; `None` where the row has no such value.
    pub(crate) cell: fn(&Case, &Summary) -> Option<String>,
}

impl Column {
    const fn new(title: &'static str, cell: fn(&Case, &Summary) -> Option<String>) -> Self {
        Self { heading: Heading::new(title), cell }
    }

    const fn meaning(self, meaning: &'static str) -> Self {
        Self { heading: self.heading.meaning(meaning), ..self }
    }

    const fn spare(self) -> Self {
        Self { heading: self.heading.spare(), ..self }
    }
}

/// The columns of `workload`.
pub(crate) fn of(workload: Workload) -> &'static [Column] {
    match workload {
        Workload::Latency => LATENCY,
        Workload::Throughput => THROUGHPUT,
        Workload::Transfer => TRANSFER,
        Workload::Connect | Workload::Session(_) => SET_UP,
        Workload::Cost => COST,
        Workload::Accuracy => ACCURACY,
    }
}

const LATENCY: &[Column] = &[
    Column::new("round trip", |_, s| time_estimate(s.turn_ns)),
    Column::new("rtt/2", |case, s| time(s.turn_ns.median / 2.0).filter(|_| case.peers == Peers::Pair))
        .spare(),
    TURNS,
    P99,
    P999,
    CPU,
    SWITCHES,
    FAULTS,
    LEAST,
    MOST,
    JAIN,
    FLOOR,
];

const THROUGHPUT: &[Column] = &[RATE, TIME, LOST, CPU, SWITCHES, FAULTS, LEAST, MOST, JAIN, FLOOR];

const TRANSFER: &[Column] = &[RATE, TIME.spare(), P99, P999, CPU, SWITCHES, FAULTS, LEAST, MOST, JAIN, FLOOR];

/// Of what sets something up, where who pays for it matters as much as how long it takes.
const SET_UP: &[Column] = &[
    Column::new("time", |_, s| time_estimate(s.turn_ns)),
    P99,
    CPU,
    Column::new("user", |_, s| time(s.near.user_ns + s.far.map_or(0.0, |far| far.user_ns))),
    Column::new("system", |_, s| time(s.near.system_ns + s.far.map_or(0.0, |far| far.system_ns))),
    SWITCHES.spare(),
    FAULTS,
    FLOOR,
];

const COST: &[Column] = &[Column::new("time", |_, s| time_estimate(s.turn_ns)), CPU, SWITCHES, FAULTS];

const ACCURACY: &[Column] = &[
    Column::new("error", |_, s| s.timer.and_then(|timer| signed_time(timer.error_ns)))
        .meaning("what the timer says of an interval, less the length that was asked for"),
    Column::new("deviation", |_, s| s.timer.and_then(|timer| time(timer.deviation_ns))),
    Column::new("off clock", |_, s| s.timer.and_then(|timer| signed_time(timer.off_clock_ns)))
        .meaning("what the timer says, less what the run's clock says"),
    Column::new("resolution", |_, s| s.timer.and_then(|timer| time(timer.resolution_ns)))
        .meaning("the smallest step between two readings that differ"),
];

/// The columns of the floors, which are of several workloads: each row says what its time is of.
pub(crate) const FLOORS: &[Column] = &[
    Column::new("time", |_, s| time_estimate(s.turn_ns)),
    Column::new("of one", |case, _| Some(case.workload.turn().to_owned())),
    Column::new("on", |case, _| Some(place(case))),
];

const RATE: Column = Column::new("rate", |_, s| s.bytes_per_s.and_then(rate_estimate));
const TIME: Column = Column::new("time", |_, s| time(s.turn_ns.median));
const P99: Column = Column::new("p99", |_, s| s.quantiles.and_then(|q| time(q.p99_ns as f64)))
    .meaning("99% of turns take at most this, all launches together, each turn timed");
const P999: Column = Column::new("p99.9", |_, s| s.quantiles.and_then(|q| time(q.p999_ns as f64))).spare();
/// Of several peers, what all do together.
const TURNS: Column = Column::new("all/s", |case, s| {
    let nears = f64::from(case.peers.nears());
    (case.peers != Peers::Pair).then(|| three_digits(nears / s.turn_ns.median * 1e9))
})
.meaning("round trips a second of all peers together");
const LEAST: Column = Column::new("least", |_, s| s.fairness.and_then(|f| multiple(f.least)))
    .meaning("turns of the near with the fewest, and most: of the one with the most, over the mean")
    .spare();
const MOST: Column = Column::new("most", |_, s| s.fairness.and_then(|f| multiple(f.most))).spare();
const JAIN: Column = Column::new("fairness", |_, s| s.fairness.map(|f| format!("{:.3}", f.jain)))
    .meaning("Jain's index of fairness: 1 when all nears have as many turns, 1/n when one has all");
const LOST: Column = Column::new("lost", |_, s| s.lost.map(percent))
    .meaning("messages sent that never came; the rate is of those that came, the time of those sent");
const CPU: Column = Column::new("cpu", |_, s| time(s.cpu_ns()))
    .meaning("CPU time of both ends; switches: context switches of both ends");
const SWITCHES: Column = Column::new("switches", |_, s| count(s.switches()));
const FAULTS: Column =
    Column::new("faults", |_, s| count(s.near.faults + s.far.map_or(0.0, |far| far.faults))).spare();
const FLOOR: Column = Column::new("×floor", |_, s| s.floor_multiple.and_then(|m| multiple(m.median)))
    .meaning("the time over that of the floor in the same round, median over rounds");
