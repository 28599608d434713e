//! The tables of an explanation: where the time goes, system calls, scheduling, page faults, counters, probes.

use super::grid::Grid;
use super::path::RESIDUAL;
use crate::quantity::{count, percent, signed_time, time, whole_interval};
use crate::words::clean;
use analysis::analysed::{AnalysedExplanation, TimeQuantiles};
use analysis::explain::{CounterRate, Explanation, FaultRate, ProbeUse, SubsystemShare};
use analysis::interval::MeanEstimate;
use analysis::path::{PathGroup, PathSum};
use analysis::traces::schedule::Overlap;
use model::Case;
use model::observation::profile::{CallProfile, ScheduleProfile};
use model::record::Fact;
use std::collections::BTreeSet;

/// The kinds of answers of a call that are shown.
const ANSWERS: usize = 3;

/// Every table of an explanation, in the order in which they are shown.
pub(crate) fn tables(analysed: &AnalysedExplanation<'_>) -> Vec<Grid> {
    let explanation = analysed.explanation;
    let tables = [
        explanation.calls.as_ref().map(|(probe, calls)| of_calls(calls, &analysed.call_times, probe.name())),
        explanation.schedule.as_ref().map(|ends| schedule(ends, &analysed.wake_ups, explanation.overlap)),
        explanation.faults.as_ref().map(|faults| of_faults(faults)),
        (!explanation.subsystems.is_empty()).then(|| places(explanation)),
        counters(&explanation.counters),
        Some(probes(&explanation.probes)),
    ];
    let tables = super::path::tables(explanation).into_iter().chain(tables.into_iter().flatten());
    match explanation.case.workload.is_alone() {
        true => tables.map(of_client_alone).collect(),
        false => tables.collect(),
    }
}

/// `grid` without its column of server: operations have no server.
fn of_client_alone(mut grid: Grid) -> Grid {
    if let Some(at) = grid.columns.iter().position(|column| column == "server") {
        grid.columns.remove(at);
        for (_, cells) in &mut grid.rows {
            cells.remove(at);
        }
    }
    grid
}

/// The paths of `all` side by side, a column each, in groups of segments.
pub(crate) fn side_by_side(all: &[&Explanation]) -> Grid {
    let paths = || all.iter().filter_map(|explanation| explanation.path.as_ref());
    let row = |name: &str, cell: &dyn Fn(&PathSum) -> Option<String>| {
        (name.to_owned(), paths().map(|path| cell(path).unwrap_or_default()).collect())
    };
    let occurring: BTreeSet<PathGroup> =
        paths().flat_map(|path| path.groups()).map(|(group, _)| group).collect();
    let of_group = |group: PathGroup| {
        row(group.name(), &|path| {
            let (_, ns) = path.groups().into_iter().find(|(of, _)| *of == group)?;
            time(ns.mean)
        })
    };
    let name = |case: &Case| {
        let size = case.size_bytes.map(|size| format!(" {size}")).unwrap_or_default();
        clean(&format!("{}{size}", case.spec))
    };
    let cases = all.iter().filter(|explanation| explanation.path.is_some());
    Grid {
        heading: "the same in numbers".to_owned(),
        columns: cases.map(|explanation| name(&explanation.case)).collect(),
        rows: [row("iteration without probes", &|path| time(path.bare_ns.mean))]
            .into_iter()
            .chain(occurring.into_iter().map(of_group))
            .chain([row(RESIDUAL, &|path| signed_time(path.residual_ns.mean))])
            .collect(),
        below: Vec::new(),
    }
}

fn of_calls(calls: &[Vec<CallProfile>; 2], times: &[Vec<TimeQuantiles>; 2], probe: &str) -> Grid {
    let row = |endpoint: &str, call: &CallProfile, times: &TimeQuantiles| {
        let cells = vec![
            count(call.per_iteration).unwrap_or_default(),
            times.median_ns.and_then(whole_ns).unwrap_or_default(),
            time(call.mean_ns).unwrap_or_default(),
            times.p99_ns.and_then(whole_ns).unwrap_or_default(),
            answers(call),
        ];
        (format!("{endpoint} {}", clean(&call.name)), cells)
    };
    let columns = ["per iteration", "median", "mean", "p99", "returned"].map(str::to_owned).to_vec();
    let endpoints = ["client", "server"].into_iter().zip(calls.iter().zip(times));
    let rows = endpoints.flat_map(|(endpoint, (calls, times))| {
        calls.iter().zip(times).map(move |(call, times)| row(endpoint, call, times))
    });
    let rows = rows.collect();
    let below = match calls.iter().all(Vec::is_empty) {
        true => format!("The endpoints made none (probe {probe})."),
        false => {
            format!(
                "Seen by probe {probe}. The time of a call runs from its start to its return, sleep included."
            )
        }
    };
    Grid { heading: "system calls".to_owned(), columns, rows, below: vec![below] }
}

/// What a kind of call returned, the most frequent first.
fn answers(call: &CallProfile) -> String {
    let mut kinds: Vec<(String, u64)> =
        call.returned.iter().map(|(answer, times)| (answer.to_string(), *times)).collect();
    let name = |errno: i64| {
        let error = std::io::Error::from_raw_os_error(i32::try_from(errno).unwrap_or(i32::MAX)).to_string();
        error.split(" (os").next().unwrap_or_default().to_owned()
    };
    kinds.extend(call.errors.iter().map(|(errno, times)| (name(*errno), *times)));
    kinds.extend((call.restarts > 0).then(|| ("restarted".to_owned(), call.restarts)));
    kinds.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    let shown = kinds.iter().take(ANSWERS).map(|(answer, times)| {
        let share = *times as f64 / call.count as f64;
        if share > 0.9995 { answer.clone() } else { format!("{answer} {}", percent(share)) }
    });
    let more = if kinds.len() > ANSWERS { ", …" } else { "" };
    format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
}

fn schedule(
    ends: &[ScheduleProfile; 2],
    wake_ups: &[Option<TimeQuantiles>; 2],
    overlap: Option<Overlap>,
) -> Grid {
    let row = |name: &str, of: &dyn Fn(&ScheduleProfile) -> Option<String>| {
        (name.to_owned(), ends.iter().map(|end| of(end).unwrap_or_else(|| "-".to_owned())).collect())
    };
    let wake_up = |name: &str, of: fn(&TimeQuantiles) -> Option<u64>| {
        let cells = wake_ups.iter().map(|times| times.as_ref().and_then(of).and_then(whole_ns));
        (name.to_owned(), cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned())).collect())
    };
    let rows = vec![
        row("on a CPU", &|end| time(end.running_ns)),
        row("asleep", &|end| time(end.asleep_ns)),
        row("ready, but another task has the CPU", &|end| time(end.preempted_ns)),
        row("goes to sleep", &|end| count(end.sleeps)),
        row("loses the CPU", &|end| count(end.preemptions)),
        row("comes back on another CPU", &|end| count(end.migrations)),
        row("is woken by its peer", &|end| count(end.woken_by_peer?)),
        row("is woken by an interrupt", &|end| count(end.woken_by_interrupt?)),
        wake_up("from woken to running, median", |times| times.median_ns),
        wake_up("from woken to running, p99", |times| times.p99_ns),
    ];
    let parts = overlap.map(|overlap| {
        let [client, server, both, neither] =
            [overlap.client_ns, overlap.server_ns, overlap.both_ns, overlap.neither_ns].map(|ns| time(ns).unwrap_or_default());
        format!(
            "In an iteration the client alone ran for {client}, the server alone for {server}, both for {both}, neither \
             for {neither}."
        )
    });
    let below = parts
        .into_iter()
        .chain(["Seen by the scheduler's events; recording them makes iterations longer.".to_owned()])
        .collect();
    Grid {
        heading: "scheduling, per iteration".to_owned(),
        columns: vec!["client".to_owned(), "server".to_owned()],
        rows,
        below,
    }
}

fn of_faults(faults: &[FaultRate]) -> Grid {
    let row = |fault: &FaultRate| {
        let kind = if fault.major { ", waiting for a device" } else { "" };
        let end = if fault.of_client { "client" } else { "server" };
        (
            format!("{end}: {}{kind}", clean(&fault.mapping)),
            vec![count(fault.per_iteration).unwrap_or_default()],
        )
    };
    let below = match faults.is_empty() {
        true => "There were none.",
        false => {
            "The kernel reports when a page fault begins, not when it ends. Samples of the time in it are counted below, \
             by part of the kernel."
        }
    };
    Grid {
        heading: "page faults".to_owned(),
        columns: vec!["per iteration".to_owned()],
        rows: faults.iter().map(row).collect(),
        below: vec![below.to_owned()],
    }
}

fn places(explanation: &Explanation) -> Grid {
    let share = |of: Option<MeanEstimate>| {
        let Some(MeanEstimate { mean, interval }) = of else { return "-".to_owned() };
        let interval = interval.map(|bounds| format!(" ({})", whole_interval(bounds)));
        format!("{}{}", percent(mean), interval.unwrap_or_default())
    };
    let row = |place: &SubsystemShare| {
        let cells = vec![share(place.client), share(place.server), place.samples.to_string()];
        (place.subsystem.name().to_owned(), cells)
    };
    Grid {
        heading: "where samples found the processor".to_owned(),
        columns: ["client", "server", "samples"].map(str::to_owned).to_vec(),
        rows: explanation.subsystems.iter().map(row).collect(),
        below: vec![super::path::extrapolated(&explanation.sampling_rates)],
    }
}

/// What was counted; the counters that are missing are named among what could not be observed.
fn counters(counters: &[CounterRate]) -> Option<Grid> {
    let row = |counter: &CounterRate| {
        let cell = |fact: &Fact<f64>| match fact.known() {
            None => "-".to_owned(),
            Some(ns) if counter.name == "task-clock" => time(*ns).unwrap_or_default(),
            Some(per_iteration) => format!("{per_iteration:.2}"),
        };
        let shared = if counter.running < 0.995 { percent(counter.running) } else { String::new() };
        (clean(&counter.name), vec![cell(&counter.client), cell(&counter.server), shared])
    };
    let known: Vec<_> = counters.iter().filter(|counter| counter.client.known().is_some()).map(row).collect();
    let shared = known.iter().any(|(_, cells)| !cells[2].is_empty());
    let below = "A counter that ran for a part of the time only is scaled up.".to_owned();
    (!known.is_empty()).then(|| Grid {
        heading: "counters, per iteration".to_owned(),
        columns: ["client", "server", "counted for"].map(str::to_owned).to_vec(),
        rows: known,
        below: if shared { vec![below] } else { Vec::new() },
    })
}

/// A time in whole nanoseconds, with its unit.
fn whole_ns(ns: u64) -> Option<String> {
    time(ns as f64)
}

fn probes(probes: &[ProbeUse]) -> Grid {
    let times = |times: f64, interval: Option<(f64, f64)>| {
        let interval = interval.map(|(low, high)| format!(" ({low:.2} to {high:.2})"));
        format!("×{times:.2}{}", interval.unwrap_or_default())
    };
    let row = |probe: &ProbeUse| {
        let effect = probe.effect.map_or("-".to_owned(), |effect| times(effect.median, effect.interval));
        let mut notes = Vec::new();
        notes.extend(
            probe
                .effect_at_no_samples
                .map(|effect| format!("without samples {}", times(effect.mean, effect.interval))),
        );
        notes.extend(probe.changes.then(|| "changes what it observes".to_owned()));
        notes.extend((probe.lost > 0).then(|| format!("{} records lost", probe.lost)));
        notes.extend(probe.absent.is_some().then(|| "not available".to_owned()));
        (probe.probe.name().to_owned(), vec![effect, notes.join(", ")])
    };
    let at_highest_rate = probes.iter().any(|probe| probe.effect_at_no_samples.is_some()).then(|| {
        "That of samples is at their highest rate; without samples, extrapolated, it is what their open events cost.".to_owned()
    });
    Grid {
        heading: "cost of the probes".to_owned(),
        columns: vec!["iteration with over without".to_owned(), String::new()],
        rows: probes.iter().map(row).collect(),
        below: at_highest_rate.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Workload;

    #[test]
    fn operations_have_no_server() {
        let mut one = crate::explained::explanation("pipe", 64, 2_800.0);
        let tables =
            |of: &Explanation| tables(&AnalysedExplanation::from_explanation(of, crate::observed::call_name));
        let with_server = |of: &Explanation| {
            tables(of).iter().filter(|grid| grid.columns.iter().any(|c| c == "server")).count()
        };
        assert!(with_server(&one) > 0);
        one.case.workload = Workload::Cost;
        assert_eq!(with_server(&one), 0);
        for grid in tables(&one) {
            assert!(grid.rows.iter().all(|(_, cells)| cells.len() == grid.columns.len()), "{}", grid.heading);
        }
    }
}
