//! `ipcmark explain`: measures cases plainly beside those that differ from them by one thing, then looks at them by every
//! probe that works here, and says why they cost what they do.

use super::run::{by_hand, launcher, nothing_left, restrict, row, watch_signals};
use crate::cli::{Effort, Explain, Looks};
use crate::collector;
use crate::derived_file::{self, FileKind};
use crate::exit::{Error, Exit};
use crate::output::{command, print, style};
use crate::progress::Progress;
use crate::results_file;
use analysis::analysed::AnalysedExplanation;
use analysis::explain::{Bends, Explanation, Gathered, Landmark, bends, control_cases, explain};
use harness::endpoint::Sizing;
use harness::looking::{self, ENOUGH_ROUNDS, Looked, Subject};
use harness::measure::Timer;
use harness::run::{Bounds, Event, Run, slice_for};
use harness::run_directory::RunDirectory;
use harness::trial::Launcher;
use mechanisms::registry::CARDS;
use model::card::Support;
use model::floor::floor_of;
use model::observation::Probe;
use model::plan::{Plan, plan};
use model::record::{Record, Settings};
use model::suite::{Block, Suite};
use model::{Case, Invalid, Pace, Peers, Percent, Placements};
use observe::symbols::Names;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The time that each case may take when none is given, its control cases and all probes included.
const TIME_OF_A_CASE: Duration = Duration::from_secs(12);
/// The part of the time that goes to plain measuring.
const PLAIN_SHARE: f64 = 0.5;

/// Explains the cases that `arguments` ask for.
pub fn run(arguments: &Explain) -> Result<Exit, Error> {
    let Effort { time, precision, timeout, .. } = arguments.effort;
    for counter in &arguments.looks.counters {
        let refused = |failure: sys::Failure| {
            Invalid::new(format!("--counter {counter}: {}", failure.answer), failure.next)
        };
        observe::check_counter(counter).map_err(refused)?;
    }
    let cases = asked_for(arguments)?;
    if let Some(case) = cases.iter().find(|case| !can_be_looked_at(case)) {
        return Err(Invalid::new(
            format!("{case} cannot be looked at"),
            "leave out --peers, --think-time and --rate: one pair is looked at, iteration after iteration",
        )
        .into());
    }
    explained(&cases, time, precision, timeout, &arguments.looks)
}

/// Whether `case` is of one pair whose iterations follow at once on one another.
pub fn can_be_looked_at(case: &Case) -> bool {
    case.peers == Peers::Pair && case.pace == Pace::BackToBack
}

/// Explains `cases` in `time`.
pub fn explained(
    cases: &[Case],
    time: Option<Duration>,
    precision: Option<Percent>,
    timeout: Duration,
    looks: &Looks,
) -> Result<Exit, Error> {
    looks.html.iter().try_for_each(|path| derived_file::check(path, FileKind::PAGE))?;
    let mut gathered: Vec<Gathered> =
        cases.iter().map(|case| Gathered::new(case.clone(), beside(case))).collect();
    let probes = supported(&looks.probes, &mut gathered);
    let time = time.unwrap_or(TIME_OF_A_CASE * u32::try_from(cases.len()).unwrap_or(u32::MAX));

    let interrupted = watch_signals()?;
    let directory = RunDirectory::create()?;
    let launcher = launcher(&directory, &interrupted, timeout);
    // A control case that is settled would leave the rounds in which the others are compared with it.
    let precision = precision.unwrap_or(Percent(0.0));
    let records = measure(&gathered, &launcher, time.mul_f64(PLAIN_SHARE), precision);
    look(&mut gathered, &probes, &launcher, time.mul_f64(1.0 - PLAIN_SHARE), looks);

    let (mut explanations, mut unexplained): (Vec<Explanation>, Vec<&Case>) = Default::default();
    for gathered in &gathered {
        match explain(gathered, &records, observe::call_name) {
            Some(explanation) => explanations.push(explanation),
            None => unexplained.push(&gathered.case),
        }
    }
    let bends = bends(cases, &records, &landmarks());
    // Files are made even if nobody reads the text to its end, and the text is printed even if they cannot be.
    let analysed: Vec<AnalysedExplanation<'_>> =
        explanations.iter().map(|one| AnalysedExplanation::of(one, observe::call_name)).collect();
    let made = make(looks, &analysed, &bends);
    print(&match looks.json {
        true => format!("{:#}\n", serde_json::json!({ "explanations": explanations, "curves": bends })),
        false => report::explanations(&analysed, &bends, &style()),
    })?;
    // Beside what is printed, which may be read by a program.
    let _ = write!(anstream::stderr(), "{}", made?);
    for &case in &unexplained {
        let _ =
            writeln!(anstream::stderr(), "{case}: it could not be measured{}", failure_of(case, &records));
    }
    Ok(match () {
        () if interrupted.load(Ordering::Relaxed) => Exit::Interrupted,
        () if !unexplained.is_empty() => Exit::CaseFailed,
        () => Exit::Success,
    })
}

/// Makes the files that are asked for, and says which.
fn make(looks: &Looks, explanations: &[AnalysedExplanation<'_>], bends: &[Bends]) -> Result<String, Error> {
    let mut made = String::new();
    let mut write = |path: &Path, content: &[u8], kind: FileKind| -> Result<(), Error> {
        made += &format!("wrote {}, {} bytes\n", path.display(), content.len());
        derived_file::write(path, content, kind)
    };
    // Where there are no explanations, an earlier page stays.
    if let (Some(path), [_, ..]) = (&looks.html, explanations) {
        let page = report::explanation_html(explanations, bends, &command());
        write(path, page.as_bytes(), FileKind::PAGE)?;
    }
    for AnalysedExplanation { explanation, timeline, .. } in explanations {
        let key = explanation.case.key();
        let name = report::file_name(&key);
        let path = |directory: &Path, of: &str, ending: &str| directory.join(format!("{name}{of}.{ending}"));
        if let (Some(directory), Some(timeline)) = (&looks.traces, timeline) {
            let trace = report::trace(timeline);
            write(&path(directory, "", "json"), trace.as_bytes(), FileKind::TRACE)?;
        }
        if let (Some(directory), Some(timeline)) = (&looks.timelines, timeline) {
            for (number, iteration) in timeline.iterations.iter().enumerate() {
                let svg = report::timeline(iteration, &key);
                write(
                    &path(directory, &format!("-iteration-{}", number + 1), "svg"),
                    svg.as_bytes(),
                    FileKind::SVG,
                )?;
            }
        }
        if let Some(directory) = &looks.flames {
            for (end, stacks) in ["client", "server"].into_iter().zip(&explanation.stacks) {
                if let Some(svg) = report::flame_graph(stacks, &format!("{end}, {key}")) {
                    write(&path(directory, &format!("-{end}"), "svg"), svg.as_bytes(), FileKind::FLAMES)?;
                    let folded = report::folded(stacks);
                    write(
                        &path(directory, &format!("-{end}"), "folded"),
                        folded.as_bytes(),
                        FileKind::STACKS,
                    )?;
                }
            }
        }
    }
    if let (Some(directory), [before, after]) = (&looks.flames, explanations) {
        for (end, at) in [("client", 0), ("server", 1)] {
            let [before, after] = [before.explanation, after.explanation];
            let whose = [before, after].map(|explanation| format!("{end}, {}", explanation.case));
            let difference =
                report::flame_graph_difference(&before.stacks[at], &after.stacks[at], [&whose[0], &whose[1]]);
            if let Some(svg) = difference {
                write(&directory.join(format!("difference-{end}.svg")), svg.as_bytes(), FileKind::FLAMES)?;
            }
        }
    }
    Ok(made)
}

/// The sizes at which something in this machine or its kernel changes.
fn landmarks() -> Vec<Landmark> {
    let host = harness::host::read(Path::new("/"));
    let mut landmarks = vec![Landmark { name: "page".to_owned(), bytes: 4096 }];
    let mut add = |name: &str, bytes: u64| landmarks.push(Landmark { name: name.to_owned(), bytes });
    // What the kernel gives unless it is asked for more (pipe(7)).
    add("pipe capacity", 65_536);
    let limit = |name: &str, field: usize| {
        host.limits.get(name)?.known()?.split_whitespace().nth(field)?.parse().ok()
    };
    for (name, limit) in [
        ("socket receive buffer", limit("net/core/rmem_default", 0)),
        ("TCP receive buffer", limit("net/ipv4/tcp_rmem", 1)),
    ] {
        limit.into_iter().for_each(|bytes| add(name, bytes));
    }
    for (name, bytes) in host.caches_bytes.known().into_iter().flatten() {
        add(name, *bytes);
    }
    landmarks
}

/// The cases to explain, as they are on this host.
fn asked_for(arguments: &Explain) -> Result<Vec<Case>, Error> {
    let suite = match (&arguments.file, &arguments.case) {
        (Some(file), Some(key)) => of_file(file, key)?,
        _ => {
            let mut suite = by_hand(&arguments.mechanisms, &arguments.axes.workloads)?;
            restrict(&mut suite, &arguments.axes)?;
            suite
        }
    };
    let endpoints = arguments.effort.endpoints.map(model::Endpoints::from).unwrap_or_default();
    let topology = harness::host::read(Path::new("/")).topology;
    let plan = plan(&suite.blocks, endpoints, &topology, row);
    let cases: Vec<Case> = plan.cases.iter().chain(&plan.awaited).cloned().collect();
    if cases.is_empty() {
        return Err(nothing_left(&plan).into());
    }
    Ok(cases)
}

/// The case called `key` of a results file, to be planned anew: its CPUs are those of this host.
fn of_file(file: &Path, key: &str) -> Result<Suite, Error> {
    let results = results_file::read(file)?;
    let keys: Vec<String> = results.records.iter().map(|record| record.case.key()).collect();
    let found = results.records.iter().find(|record| record.case.key() == key);
    let case = &found.ok_or_else(|| Invalid::unknown("case", key, keys.iter().map(String::as_str)))?.case;
    let mut suite = by_hand(&[case.spec.to_string()], &[case.workload])?;
    for block in &mut suite.blocks {
        *block = Block {
            sizes: case.size_bytes.into_iter().collect(),
            placements: vec![case.placement.to_string().parse::<Placements>()?],
            paces: vec![case.pace],
            peers: vec![case.peers],
            ..block.clone()
        };
    }
    Ok(suite)
}

/// The control cases of `case` that work here.
fn beside(case: &Case) -> Vec<(analysis::explain::Role, Case)> {
    let works = |case: &Case| matches!(row(&case.spec).support, Support::Yes { .. });
    control_cases(case, CARDS).into_iter().filter(|(_, case)| works(case)).collect()
}

/// Those of `asked` probes, or of all, that work here; notes of each whether it does.
fn supported(asked: &[Probe], gathered: &mut [Gathered]) -> Vec<Probe> {
    let asked = if asked.is_empty() { &Probe::ALL[..] } else { asked };
    let mut supported = Vec::new();
    for &probe in asked {
        let support = observe::support(probe);
        if matches!(support, Support::Yes { .. }) {
            supported.push(probe);
        }
        gathered.iter_mut().for_each(|gathered| gathered.note_support(probe, support.clone()));
    }
    supported
}

/// Measures the cases plainly, beside their control cases and floors.
fn measure(
    gathered: &[Gathered],
    launcher: &Launcher<'_>,
    time: Duration,
    precision: Percent,
) -> Vec<Record> {
    let mut plan = Plan::default();
    let add = |cases: &mut Vec<Case>, case: &Case| {
        if !cases.contains(case) {
            cases.push(case.clone());
        }
    };
    for gathered in gathered {
        add(&mut plan.cases, &gathered.case);
        gathered.control_cases().iter().for_each(|(_, case)| add(&mut plan.cases, case));
        floor_of(&gathered.case)
            .iter()
            .flat_map(|floor| floor.cases())
            .for_each(|case| add(&mut plan.floors, case));
    }
    plan.cases.retain(|case| !plan.floors.contains(case));
    let slice = slice_for(time, plan.cases.len() + plan.floors.len());
    let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let settled = |iteration_ns: &[f64]| collector::is_settled(iteration_ns, precision.0);
    let bounds = Bounds {
        settled: &settled,
        settings: Settings {
            suite: None,
            precision,
            time_ns: ns(time),
            rounds: None,
            slice_ns: ns(slice),
            check: false,
            total_bytes: None,
            observe_ns: 0,
        },
        iterations: None,
    };
    let (mut records, mut progress) = (Vec::new(), Progress::new());
    Run::new(&plan, launcher, &bounds, Timer::start(), |event| match event {
        Event::Floors(_) => {}
        Event::Progress { round, done, cases, share, left } => progress.show(round, done, cases, share, left),
        Event::Ended(finished) => records.push(collector::record(*finished, precision.0)),
    })
    .finish();
    progress.finish();
    records
}

/// Looks at the cases by `probes`, and gathers what is seen.
fn look(gathered: &mut [Gathered], probes: &[Probe], launcher: &Launcher<'_>, time: Duration, looks: &Looks) {
    let size = looks.iterations.map_or(looking::A_SLICE, Sizing::Iterations);
    let subject =
        |gathered: &Gathered| Subject { case: gathered.case.clone(), probes: probes.to_vec(), size };
    let subjects: Vec<Subject> = gathered.iter().map(subject).collect();
    let plan = looking::Plan { subjects: &subjects, counters: &looks.counters, rounds: ENOUGH_ROUNDS, time };
    let (mut names, mut progress, timer) = (Names::default(), Progress::new(), Timer::start());
    looking::look(&plan, launcher, |Looked { at, probe, outcome, ratio, round, .. }| {
        progress.look(probe, round, timer.elapsed(), time);
        match (outcome, ratio) {
            (Err(failure), _) => gathered[at].note_failure(probe, failure),
            // The first round warms up.
            (Ok(_), None) => {}
            (Ok(mut observation), Some(ratio)) => {
                names.name(&mut observation);
                gathered[at].add(probe, observation, ratio);
            }
        }
    });
    progress.finish();
}

/// Why `case` has no result, behind a colon.
fn failure_of(case: &Case, records: &[Record]) -> String {
    let record = records.iter().find(|record| record.case == *case);
    match record.map(|record| &record.outcome) {
        Some(model::Outcome::Failed { error }) => format!(": {error}"),
        _ => ": there was no time; give it more with --time".to_owned(),
    }
}
