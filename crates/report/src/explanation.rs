//! Why a case costs what it does, in words and tables, and these for the terminal. What is so is decided in `explain`; where
//! words stand, in `layout` for the terminal and in `explanation_page` for browsers.

use crate::layout::{DEEPER, INDENT, Style, finish, grid, labelled, section};
use crate::quantity::{count, multiple, percent, signed_time, time, time_estimate};
use crate::study_words::Grid;
use crate::text::{clean, wrap};
use analysis::explain::{
    Copies, CopyKind, CounterRate, Decomposition, Explanation, FaultRate, Knee, Landmark, ProbeUse,
    SizeCurve, SubsystemShare, Term, TermKind, TermSource,
};
use analysis::traces::schedule::Overlap;
use model::observation::profile::CallProfile;
use model::observation::profile::ScheduleProfile;
use model::record::Fact;
use model::{Case, Size};
use std::collections::{BTreeMap, BTreeSet};

/// The reasons that are put into words.
const REASONS: usize = 3;
/// A residual above this part of an iteration is explained.
const LARGE_RESIDUAL: f64 = 0.15;
/// The kinds of answers of a call that are shown.
const ANSWERS: usize = 3;

/// An explanation in words.
pub(crate) struct Told {
    /// The case that it is of.
    pub(crate) case: String,
    /// What an iteration takes.
    pub(crate) head: String,
    /// Why.
    pub(crate) reasons: Vec<String>,
    /// What to do about it.
    pub(crate) tries: Vec<String>,
    /// The decomposition, where there is one, and what else was seen.
    pub(crate) tables: Vec<Grid>,
    /// What could not be seen, and why.
    pub(crate) absences: Vec<(String, String)>,
}

/// What stands over the lists of [`Told`].
pub(crate) const REASONS_HEADING: &str = "why";
pub(crate) const TRIES_HEADING: &str = "what to try first";
pub(crate) const ABSENCES_HEADING: &str = "what could not be seen";
/// What stands over [`bends`].
pub(crate) const BENDS_HEADING: &str = "where time over size changes its slope";

/// `explanation` in words.
pub(crate) fn told(explanation: &Explanation) -> Told {
    let tries = explanation.advice.iter();
    let tries =
        tries.map(|advice| format!("{}. Try {}.", sentence(&clean(&advice.says)), clean(&advice.r#try)));
    Told {
        case: clean(&explanation.case.key()),
        head: head(explanation),
        reasons: reasons(explanation),
        tries: tries.collect(),
        tables: tables(explanation),
        absences: absences(explanation),
    }
}

/// Where each curve bends, behind its name.
pub(crate) fn bends(curves: &[SizeCurve]) -> Vec<(String, String)> {
    curves.iter().map(|curve| (clean(&curve.case.key()), bent(curve))).collect()
}

/// Where a curve bends, and what changes there.
fn bent(curve: &SizeCurve) -> String {
    let Some(knees) = &curve.knees else {
        return "too few sizes to tell; six at least, such as -s 64..64K".to_owned();
    };
    let one = |knee: &Knee| {
        let names =
            |of: &[Landmark]| of.iter().map(|landmark| clean(&landmark.name)).collect::<Vec<_>>().join(", ");
        let there = match (knee.within.as_slice(), knee.beside.as_slice()) {
            ([], []) => String::new(),
            ([], beside) => format!("; beside it: {}", names(beside)),
            (within, _) => format!("; there: {}", names(within)),
        };
        let [at, from, until] = [knee.at_bytes, knee.from_bytes, knee.until_bytes].map(Size);
        format!("at {at} ({from} to {until}) from {:.2} to {:.2}{there}", knee.before, knee.after)
    };
    match knees.is_empty() {
        true => "nowhere: one straight line on logarithmic axes".to_owned(),
        false => format!("{}.", knees.iter().map(one).collect::<Vec<_>>().join(". ")),
    }
}

/// Explanations for the terminal, one after the other, and where the curves over their sizes bend.
pub fn explanations(all: &[Explanation], curves: &[SizeCurve], style: &Style) -> String {
    let explained = all.iter().flat_map(|explanation| laid_out(told(explanation), style));
    let bends = section(BENDS_HEADING, labelled(&bends(curves), style), style);
    finish(&explained.chain(bends).skip(1).collect::<Vec<_>>())
}

fn laid_out(told: Told, style: &Style) -> Vec<String> {
    let words = |texts: Vec<String>| -> Vec<String> {
        texts.iter().flat_map(|text| wrap(text, style.width(), INDENT, DEEPER)).collect()
    };
    let parts = [
        section(&told.case, words(vec![told.head]), style),
        section(REASONS_HEADING, words(told.reasons), style),
        section(TRIES_HEADING, words(told.tries), style),
        told.tables.iter().flat_map(|table| grid(table, style)).collect(),
        section(ABSENCES_HEADING, labelled(&told.absences, style), style),
    ];
    parts.concat()
}

/// `text` with a capital.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

/// What an iteration takes, measured plainly.
fn head(explanation: &Explanation) -> String {
    let iteration = time_estimate(explanation.iteration_ns).unwrap_or_default();
    let floor = explanation.floor_multiple.and_then(|floor| multiple(floor.median));
    let floor = floor.map(|floor| format!(", {floor} of its floor")).unwrap_or_default();
    format!(
        "{iteration} an iteration{floor}: the median of {} trials that nobody looked at",
        explanation.trials
    )
}

/// The largest terms, in words.
fn reasons(explanation: &Explanation) -> Vec<String> {
    let Some(sum) = &explanation.decomposition else { return Vec::new() };
    let reason = |(at, (term, ns)): (usize, (&Term, f64))| {
        let source = match (sum.best, &term.difference) {
            (TermSource::Differences, Some(difference)) => clean(difference),
            _ => by(sum.best).to_owned(),
        };
        let took = time(ns).unwrap_or_default();
        format!(
            "{}. {} of an iteration, {took}, is {} ({source}).",
            at + 1,
            percent(ns / sum.iteration_ns),
            term.kind.name()
        )
    };
    let mut reasons: Vec<String> = sum.largest(REASONS).into_iter().enumerate().map(reason).collect();
    if let Some(copies) = &explanation.copies {
        reasons.push(copied(copies));
    }
    reasons
}

/// How often each byte was copied, and the proof.
fn copied(copies: &Copies) -> String {
    let mut by_call: BTreeMap<(&str, CopyKind), f64> = BTreeMap::new();
    for moved in &copies.calls {
        *by_call.entry((&moved.call, moved.kind)).or_default() += moved.per_byte;
    }
    let moved = by_call.into_iter().map(|((call, how), per_byte)| {
        let how = match how {
            CopyKind::In => "copied into the kernel",
            CopyKind::Out => "copied out of the kernel",
            CopyKind::Across => "copied from one process to the other",
            CopyKind::Moves => "moved without copying",
        };
        format!("{} of all bytes sent were {how}, as {} returned", percent(per_byte), clean(call))
    });
    let moved: Vec<String> = moved.collect();
    match moved.is_empty() {
        true => "No system call moved the payload: the kernel copied none of it.".to_owned(),
        false => format!("The kernel copied each byte {:.2} times: {}.", copies.by_kernel, moved.join(", ")),
    }
}

/// Every table of an explanation, in the order in which they are shown.
fn tables(explanation: &Explanation) -> Vec<Grid> {
    let tables = [
        explanation.decomposition.as_ref().map(decomposition),
        explanation.calls.as_ref().map(|(probe, calls)| of_calls(calls, probe.name())),
        explanation.schedule.as_ref().map(|ends| schedule(ends, explanation.overlap)),
        explanation.faults.as_ref().map(|faults| of_faults(faults)),
        (!explanation.subsystems.is_empty()).then(|| places(&explanation.subsystems)),
        counters(&explanation.counters),
        Some(probes(&explanation.probes)),
    ];
    let tables = tables.into_iter().flatten();
    match explanation.case.workload.is_alone() {
        true => tables.map(of_client_alone).collect(),
        false => tables.collect(),
    }
}

/// How the numbers of a decomposition came about.
pub(crate) fn by(source: TermSource) -> &'static str {
    match source {
        TermSource::Samples => "by samples",
        TermSource::Differences => "by difference",
    }
}

/// What no term stands for.
pub(crate) const RESIDUAL: &str = "residual";

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

fn decomposition(sum: &Decomposition) -> Grid {
    let share = |ns: f64| percent(ns / sum.iteration_ns);
    let row = |term: &Term| {
        let cells = vec![
            term.by_probes_ns.and_then(time).unwrap_or_default(),
            term.by_probes_ns.map(share).unwrap_or_default(),
            term.by_difference_ns.and_then(time_estimate).unwrap_or_default(),
            term.by_difference_ns.map(|ns| share(ns.median)).unwrap_or_default(),
            if term.contradicts { "!".to_owned() } else { String::new() },
        ];
        (term.kind.name().to_owned(), cells)
    };
    let residual = vec![
        sum.residual_by_probes_ns.and_then(signed_time).unwrap_or_default(),
        sum.residual_by_probes_ns.map(share).unwrap_or_default(),
        signed_time(sum.residual_by_difference_ns).unwrap_or_default(),
        share(sum.residual_by_difference_ns),
        String::new(),
    ];
    let rows = sum.terms.iter().map(row).chain([(RESIDUAL.to_owned(), residual)]).collect();
    let columns =
        [by(TermSource::Samples), "", by(TermSource::Differences), "", ""].map(str::to_owned).to_vec();
    Grid {
        heading: format!("where {} go", time(sum.iteration_ns).unwrap_or_default()),
        columns,
        rows,
        below: notes(sum),
    }
}

/// The decompositions of `all` side by side, a column each, by the better source.
pub(crate) fn side_by_side(all: &[&Explanation]) -> Grid {
    let sums = || all.iter().filter_map(|explanation| explanation.decomposition.as_ref());
    let row = |name: &str, cell: &dyn Fn(&Decomposition) -> Option<String>| {
        (name.to_owned(), sums().map(|sum| cell(sum).unwrap_or_default()).collect())
    };
    let of_kind = |kind: TermKind| {
        row(kind.name(), &|sum| {
            let term = sum.terms.iter().find(|term| term.kind == kind)?;
            time(sum.ns_of(term)?)
        })
    };
    let known = |sum: &Decomposition, term: &Term| sum.ns_of(term).map(|_| term.kind);
    let kinds: BTreeSet<TermKind> =
        sums().flat_map(|sum| sum.terms.iter().filter_map(move |term| known(sum, term))).collect();
    let name = |case: &Case| {
        let size = case.size_bytes.map(|size| format!(" {size}")).unwrap_or_default();
        clean(&format!("{}{size}", case.spec))
    };
    let cases = all.iter().filter(|explanation| explanation.decomposition.is_some());
    Grid {
        heading: "the same in numbers".to_owned(),
        columns: cases.map(|explanation| name(&explanation.case)).collect(),
        rows: [row("an iteration", &|sum| time(sum.iteration_ns))]
            .into_iter()
            .chain(kinds.into_iter().map(of_kind))
            .chain([
                row(RESIDUAL, &|sum| signed_time(sum.residual_ns())),
                row("", &|sum| Some(by(sum.best).to_owned())),
            ])
            .collect(),
        below: Vec::new(),
    }
}

/// What the numbers of a decomposition are.
fn notes(sum: &Decomposition) -> Vec<String> {
    let mut notes = Vec::new();
    if sum.samples > 0 {
        notes.push(format!(
            "by samples: the CPU time of both ends, measured plainly, split by where {} samples found the processor; \
             the time in which neither ran belongs to wake-ups.",
            sum.samples
        ));
    }
    let differences =
        sum.terms.iter().filter_map(|term| Some((term.kind.name(), term.difference.as_deref()?)));
    let differences: Vec<String> = differences.map(|(name, of)| format!("{name}: {}", clean(of))).collect();
    if !differences.is_empty() {
        notes.push(format!("by difference: {}.", differences.join("; ")));
    }
    if sum.terms.iter().any(|term| term.contradicts) {
        notes.push(
            "!  the two are more than a tenth of the iteration apart: a difference also changes what it leaves out, and \
             samples cannot tell what an instruction waits for."
                .to_owned(),
        );
    }
    if sum.residual_ns().abs() > LARGE_RESIDUAL * sum.iteration_ns {
        notes.push(match sum.best {
            TermSource::Samples => {
                "the residual is large: many samples lie in functions of the kernel that the table of \
                                places does not know."
                    .to_owned()
            }
            TermSource::Differences => {
                "the residual is large: what cannot be left out by itself is in it, such as the \
                                    mechanism's own code."
                    .to_owned()
            }
        });
    }
    notes
}

fn of_calls(calls: &[Vec<CallProfile>; 2], probe: &str) -> Grid {
    let row = |end: &str, call: &CallProfile| {
        let time_of = call.time.decode();
        let quantile = |q| time_of.quantile_ns(q).and_then(|ns| time(ns as f64)).unwrap_or_default();
        let cells = vec![
            count(call.per_iteration).unwrap_or_default(),
            quantile(0.5),
            time(call.mean_ns).unwrap_or_default(),
            quantile(0.99),
            answers(call),
        ];
        (format!("{end} {}", clean(&call.name)), cells)
    };
    let of_end =
        |(end, rows): (&str, &Vec<CallProfile>)| rows.iter().map(|call| row(end, call)).collect::<Vec<_>>();
    let columns = ["an iteration", "median", "mean", "p99", "returned"].map(str::to_owned).to_vec();
    let rows = ["client", "server"].into_iter().zip(calls).flat_map(of_end).collect();
    let below = match calls.iter().all(Vec::is_empty) {
        true => format!("none were made, as seen by {probe}."),
        false => {
            format!("seen by {probe}; the time of a call is from its beginning to its end, sleep included.")
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

fn schedule(ends: &[ScheduleProfile; 2], overlap: Option<Overlap>) -> Grid {
    let row = |name: &str, of: &dyn Fn(&ScheduleProfile) -> Option<String>| {
        (name.to_owned(), ends.iter().map(|end| of(end).unwrap_or_else(|| "-".to_owned())).collect())
    };
    let wake_up = |quantile: f64| {
        move |end: &ScheduleProfile| time(end.wake_up.as_ref()?.decode().quantile_ns(quantile)? as f64)
    };
    let rows = vec![
        row("on a CPU", &|end| time(end.running_ns)),
        row("asleep", &|end| time(end.asleep_ns)),
        row("ready, but another has the CPU", &|end| time(end.preempted_ns)),
        row("goes to sleep", &|end| count(end.sleeps)),
        row("loses the CPU", &|end| count(end.preemptions)),
        row("comes back on another CPU", &|end| count(end.migrations)),
        row("is woken by its peer", &|end| count(end.woken_by_peer?)),
        row("is woken by an interrupt", &|end| count(end.woken_by_interrupt?)),
        row("from woken to running, median", &wake_up(0.5)),
        row("from woken to running, p99", &wake_up(0.99)),
    ];
    let parts = overlap.map(|overlap| {
        let [client, server, both, neither] =
            [overlap.client_ns, overlap.server_ns, overlap.both_ns, overlap.neither_ns].map(|ns| time(ns).unwrap_or_default());
        format!("of an iteration client alone ran for {client}, server alone for {server}, both for {both}, neither for {neither}.")
    });
    let below = parts
        .into_iter()
        .chain(["seen by the scheduler's events, which make iterations longer.".to_owned()])
        .collect();
    Grid {
        heading: "scheduling, an iteration".to_owned(),
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
        true => "there were none.",
        false => {
            "the kernel says when a fault begins, not when it ends: samples in it are under where the processor was."
        }
    };
    Grid {
        heading: "page faults".to_owned(),
        columns: vec!["an iteration".to_owned()],
        rows: faults.iter().map(row).collect(),
        below: vec![below.to_owned()],
    }
}

fn places(places: &[SubsystemShare]) -> Grid {
    let row = |place: &SubsystemShare| {
        (
            place.subsystem.name().to_owned(),
            vec![percent(place.client), percent(place.server), place.samples.to_string()],
        )
    };
    Grid {
        heading: "where the processor was found".to_owned(),
        columns: ["client", "server", "samples"].map(str::to_owned).to_vec(),
        rows: places.iter().map(row).collect(),
        below: Vec::new(),
    }
}

/// What was counted; what could not be is under what could not be seen.
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
    let below = "counted in a part of the time only, as said, and scaled up.".to_owned();
    (!known.is_empty()).then(|| Grid {
        heading: "counters, an iteration".to_owned(),
        columns: ["client", "server", "ran"].map(str::to_owned).to_vec(),
        rows: known,
        below: if shared { vec![below] } else { Vec::new() },
    })
}

fn probes(probes: &[ProbeUse]) -> Grid {
    let row = |probe: &ProbeUse| {
        let effect = probe.effect.map_or("-".to_owned(), |effect| {
            let interval =
                effect.interval.map(|(low, high)| format!(" ({low:.2} to {high:.2})")).unwrap_or_default();
            format!("×{:.2}{interval}", effect.median)
        });
        let mut notes = Vec::new();
        notes.extend(probe.changes.then(|| "changes what it looks at".to_owned()));
        notes.extend((probe.lost > 0).then(|| format!("{} records lost", probe.lost)));
        notes.extend(probe.absent.is_some().then(|| "not seen".to_owned()));
        (probe.probe.name().to_owned(), vec![effect, notes.join(", ")])
    };
    Grid {
        heading: "what looking costs".to_owned(),
        columns: vec!["an iteration, over the same unseen".to_owned(), String::new()],
        rows: probes.iter().map(row).collect(),
        below: Vec::new(),
    }
}

/// What could not be seen, and what would grant it; what lacks for the same reason, together.
fn absences(explanation: &Explanation) -> Vec<(String, String)> {
    let of_probes = explanation.probes.iter().flat_map(|probe| {
        let absent = probe.absent.iter().map(|reason| (probe.probe.name().to_owned(), clean(reason)));
        absent.chain(probe.unavailable.iter().map(|what| (probe.probe.name().to_owned(), clean(what))))
    });
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for counter in &explanation.counters {
        if let Fact::Unknown(reason) = &counter.client {
            let names = by_reason.entry(clean(reason)).or_default();
            let name = counter.name.split(':').next().unwrap_or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let of_counters = by_reason
        .into_iter()
        .map(|(reason, names)| ("counters".to_owned(), format!("{}: {reason}", clean(&names.join(", ")))));
    of_probes.chain(of_counters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Workload;

    #[test]
    fn operations_have_no_server() {
        let mut one = crate::explained::explanation("pipe", 64, 2_800.0);
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
