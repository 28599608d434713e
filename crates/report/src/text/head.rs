//! The head of a report: the tool, the host, the run and the clock.

use crate::quantity::percent;
use crate::words::clean;
use analysis::analysed::AnalysedResults;
use model::record::{
    ClockRecord, ClockSource, Fact, FloorReading, Header, Host, Outcome, Record, RemoteSide, RemoteSides,
    Results,
};
use model::units::format_ns;

/// The first line: the tool, and which run it is.
pub(crate) fn title(header: &Header) -> String {
    let tool = &header.tool;
    // A build that is not optimised measures something else: it must be seen at once.
    let profile = (tool.profile != "release").then(|| format!(" ({} build)", clean(&tool.profile)));
    let suite = header.settings.suite.as_deref().map(|suite| format!(", suite {}", clean(suite)));
    format!(
        "{} {}{}{}, run {}, {}",
        clean(&tool.name),
        clean(&tool.version),
        profile.unwrap_or_default(),
        suite.unwrap_or_default(),
        clean(&header.run),
        clean(&header.started_at)
    )
}

/// What the runs are called: the host, with the run's id where two are of one host.
pub(crate) fn labels(all: &[AnalysedResults<'_>]) -> Vec<String> {
    let host = |analysed: &AnalysedResults<'_>| match &analysed.results.header.host.name {
        Fact::Known(name) => clean(name),
        Fact::Unknown(_) => "unknown host".to_owned(),
    };
    let hosts: Vec<String> = all.iter().map(host).collect();
    let alone = |host: &String| hosts.iter().filter(|other| *other == host).count() == 1;
    let labels = all.iter().zip(&hosts).map(|(analysed, host)| {
        if alone(host) { host.clone() } else { format!("{host} ({})", clean(&analysed.results.header.run)) }
    });
    labels.collect()
}

/// The lines under the first, each with its label.
pub(crate) fn lines(analysed: &AnalysedResults<'_>) -> Vec<(&'static str, String)> {
    let results = analysed.results;
    let host = &results.header.host;
    let mut lines = vec![("host", self::host(host)), ("kernel", fact(&host.kernel))];
    lines.extend(results.header.remote.iter().flat_map(remote));
    lines.extend([
        ("run", run(results)),
        ("instrument", instrument(&results.header.clock, analysed.instrument_effect)),
    ]);
    if !results.records.iter().any(|record| record.floor) && !results.header.floors.is_empty() {
        lines.push(("floors", first_floors(&results.header.floors)));
    }
    lines.extend(results.notes.iter().map(|note| ("note", clean(note))));
    lines
}

fn host(host: &Host) -> String {
    let cpus = match host.topology.cpus.len() {
        1 => "1 CPU".to_owned(),
        n => format!("{n} CPUs"),
    };
    let guest = match &host.virtualisation {
        Fact::Known(hypervisor) if hypervisor == "none" => String::new(),
        Fact::Known(hypervisor) => format!(", {} guest", clean(hypervisor)),
        Fact::Unknown(_) => ", virtualisation unknown".to_owned(),
    };
    format!("{}, {}, {cpus}{guest}", fact(&host.name), fact(&host.cpu))
}

/// The sides that were reached by commands.
pub(crate) fn remote(sides: &RemoteSides) -> Vec<(&'static str, String)> {
    let line = |side: &RemoteSide| {
        format!("{}, kernel {}, by {}", host(&side.host), fact(&side.host.kernel), clean(&side.via))
    };
    let client = sides.client.iter().map(|side| ("client", line(side)));
    let server = sides.server.iter().map(|side| ("server", line(side)));
    client.chain(server).chain([("data", format!("to {}", clean(&sides.server_address)))]).collect()
}

fn fact(fact: &Fact<String>) -> String {
    match fact {
        Fact::Known(value) => clean(value),
        Fact::Unknown(reason) => format!("unknown ({})", clean(reason)),
    }
}

fn run(results: &Results) -> String {
    let cases: Vec<&Record> = results.records.iter().filter(|record| !record.floor).collect();
    let length = match &results.end {
        None => "cut off: no end line".to_owned(),
        Some(end) => {
            let interrupted = if end.interrupted { "interrupted after " } else { "" };
            let share = end.starting_ns.map(|ns| ns as f64 / end.elapsed_ns.max(1) as f64);
            let starting = share.map(|share| format!(", {} of it starting trials", percent(share)));
            let length = format_ns(end.elapsed_ns as f64);
            let rounds =
                if end.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", end.rounds) };
            format!("{interrupted}{rounds} in {length}{}", starting.unwrap_or_default())
        }
    };
    let precision = results.header.settings.precision.words();
    let count = |wanted: fn(&Outcome) -> bool| cases.iter().filter(|record| wanted(&record.outcome)).count();
    let settled = count(|outcome| *outcome == Outcome::Settled);
    let failed = match count(|outcome| matches!(outcome, Outcome::Failed { .. })) {
        0 => String::new(),
        n => format!(", {n} failed"),
    };
    let stolen = results.end.as_ref().and_then(|end| end.stolen.known()).filter(|share| **share >= 0.0005);
    let stolen = stolen.map(|share| format!("; {} of CPU time stolen", percent(*share))).unwrap_or_default();
    format!("{length}; {settled} of {} cases settled to {precision}{failed}{stolen}", cases.len())
}

/// The floors of a run that was cut off before it had records of them.
fn first_floors(floors: &[FloorReading]) -> String {
    let reading = |floor: &FloorReading| {
        let time = floor.iteration_ns.map_or("-".to_owned(), format_ns);
        format!("{} {time}", clean(&floor.case.key()))
    };
    format!("as first measured: {}", floors.iter().map(reading).collect::<Vec<_>>().join(", "))
}

/// The clock, and what reading it in every iteration does to them: `effect` is a factor.
fn instrument(clock: &ClockRecord, effect: Option<f64>) -> String {
    let source = match clock.source {
        ClockSource::Tsc { .. } => "tsc",
        ClockSource::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
    };
    let effect = effect.map(|ratio| {
        let changes = if ratio >= 1.0 { "adds" } else { "takes off" };
        format!(
            "; reading it in every iteration {changes} {} (median over cases)",
            percent((ratio - 1.0).abs())
        )
    });
    format!(
        "clock {source}, precision {}, read {}{}",
        format_ns(clock.precision_ns),
        format_ns(clock.cost_ns),
        effect.unwrap_or_default()
    )
}
