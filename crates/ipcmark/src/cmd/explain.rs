//! `ipcmark explain`: measures cases plainly beside those that differ from them by one thing, then looks at them by every
//! probe that works here, and says why they cost what they do.

use super::run::{by_hand, nothing_left, restrict, row, watch_signals};
use crate::cli::Explain;
use crate::derived_file::{self, Kind};
use crate::exit::{Error, Exit};
use crate::output::{command, print, style};
use crate::progress::Progress;
use crate::results_file;
use explain::{Explanation, Gathered, companions, explain};
use harness::endpoint::Sizing;
use harness::launch::Launcher;
use harness::looking::{self, ENOUGH_ROUNDS, Looked};
use harness::measure::{Calibration, Timer};
use harness::run::{Bounds, Event, Run, slice_for};
use harness::run_directory::RunDirectory;
use mechanisms::table::CARDS;
use model::card::Support;
use model::floor::floor_of;
use model::observation::Probe;
use model::plan::{Plan, plan};
use model::record::{Record, Settings};
use model::suite::{Block, Suite};
use model::{Case, Invalid, Pace, Peers, Percent, Placements};
use observe::symbols::Names;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The time that each case may take when none is given, its companions and all probes included.
const TIME_OF_A_CASE: Duration = Duration::from_secs(12);
/// The part of the time that goes to plain measuring.
const PLAIN_SHARE: f64 = 0.5;
/// What the turns of a launch that is looked at take.
const SLICE: Duration = Duration::from_millis(8);

/// Explains the cases that `arguments` ask for.
pub fn run(arguments: &Explain) -> Result<Exit, Error> {
    let cases = asked_for(arguments)?;
    arguments.html.iter().try_for_each(|path| derived_file::check(path, Kind::PAGE))?;
    let mut gathered: Vec<Gathered> =
        cases.iter().map(|case| Gathered::new(case.clone(), beside(case))).collect();
    let probes = supported(&arguments.probes, &mut gathered);
    let time =
        arguments.effort.time.unwrap_or(TIME_OF_A_CASE * u32::try_from(cases.len()).unwrap_or(u32::MAX));

    let interrupted = watch_signals()?;
    let directory = RunDirectory::create()?;
    let launcher = Launcher {
        clock: Calibration::choose(Path::new("/")).record.source,
        directory: &directory,
        check: false,
        interrupted: &interrupted,
        patience: arguments.effort.patience,
    };
    let records = measure(&gathered, &launcher, time.mul_f64(PLAIN_SHARE), arguments);
    look(&mut gathered, &probes, &launcher, time.mul_f64(1.0 - PLAIN_SHARE), arguments);

    let explained = |gathered: &Gathered| explain(gathered, &records, observe::call_name);
    let explanations: Vec<Explanation> = gathered.iter().filter_map(explained).collect();
    // The page is kept even if nobody reads the text to its end, and the text is printed even if the page cannot be kept.
    let kept = arguments.html.iter().try_for_each(|path| keep(path, &explanations));
    print(&match arguments.json {
        true => format!("{:#}\n", serde_json::json!(explanations)),
        false => report::explanations(&explanations, &style()),
    })?;
    let unexplained = gathered.iter().filter(|gathered| explained(gathered).is_none());
    for gathered in unexplained {
        print(&format!(
            "{}: it could not be measured{}\n",
            gathered.case,
            failure_of(&gathered.case, &records)
        ))?;
    }
    kept?;
    Ok(match () {
        () if interrupted.load(Ordering::Relaxed) => Exit::Interrupted,
        () if explanations.len() < gathered.len() => Exit::CaseFailed,
        () => Exit::Success,
    })
}

/// Writes the page of `explanations`; where there are none, an earlier page stays.
fn keep(path: &Path, explanations: &[Explanation]) -> Result<(), Error> {
    if explanations.is_empty() {
        return Ok(());
    }
    let page = report::explanation_html(explanations, &command(), observe::call_name);
    derived_file::write(path, page.as_bytes(), Kind::PAGE)
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
    if let Some(case) = cases.iter().find(|case| case.peers != Peers::Pair || case.pace != Pace::BackToBack) {
        return Err(Invalid::new(
            format!("{case} cannot be looked at"),
            "leave out --peers, --gap and --rate: one pair is looked at, turn after turn",
        )
        .into());
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

/// The companions of `case` that work here.
fn beside(case: &Case) -> Vec<(explain::Role, Case)> {
    let works = |case: &Case| matches!(row(&case.spec).support, Support::Yes { .. });
    companions(case, CARDS).into_iter().filter(|(_, case)| works(case)).collect()
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

/// Measures the cases plainly, beside their companions and floors.
fn measure(
    gathered: &[Gathered],
    launcher: &Launcher<'_>,
    time: Duration,
    arguments: &Explain,
) -> Vec<Record> {
    let mut plan = Plan::default();
    let add = |cases: &mut Vec<Case>, case: &Case| {
        if !cases.contains(case) {
            cases.push(case.clone());
        }
    };
    for gathered in gathered {
        add(&mut plan.cases, &gathered.case);
        gathered.companions().iter().for_each(|(_, case)| add(&mut plan.cases, case));
        floor_of(&gathered.case)
            .iter()
            .flat_map(|floor| floor.cases())
            .for_each(|case| add(&mut plan.floors, case));
    }
    plan.cases.retain(|case| !plan.floors.contains(case));
    let slice = slice_for(time, plan.cases.len() + plan.floors.len());
    let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let bounds = Bounds {
        settings: Settings {
            suite: None,
            // A companion that is settled would leave the rounds in which the others are compared with it.
            precision: arguments.effort.precision.unwrap_or(Percent(0.0)),
            time_ns: ns(time),
            rounds: None,
            slice_ns: ns(slice),
            check: false,
            total_bytes: None,
        },
        turns: None,
    };
    let (mut records, mut progress) = (Vec::new(), Progress::new());
    Run::new(&plan, launcher, &bounds, Timer::start(), |event| match event {
        Event::Floors(_) => {}
        Event::Progress { round, done, cases, share, left } => progress.show(round, done, cases, share, left),
        Event::Record(record) => records.push(*record),
    })
    .finish();
    progress.finish();
    records
}

/// Looks at the cases by `probes`, and gathers what is seen.
fn look(
    gathered: &mut [Gathered],
    probes: &[Probe],
    launcher: &Launcher<'_>,
    time: Duration,
    arguments: &Explain,
) {
    let cases: Vec<Case> = gathered.iter().map(|gathered| gathered.case.clone()).collect();
    let slice_ns = u64::try_from(SLICE.as_nanos()).unwrap_or(u64::MAX);
    let plan = looking::Plan {
        cases: &cases,
        probes,
        counters: &arguments.counters,
        size: arguments.turns.map_or(Sizing::Slice { slice_ns, hint_ns: None }, Sizing::Turns),
        rounds: ENOUGH_ROUNDS,
        time,
    };
    let mut names = Names::default();
    let mut progress = Progress::new();
    looking::look(&plan, launcher, |Looked { at, probe, outcome, ratio, round, .. }| {
        progress.look(probe, round, ENOUGH_ROUNDS);
        match (outcome, ratio) {
            (Err(failure), _) => gathered[at].note_failure(probe, failure),
            // The first round warms up.
            (Ok(_), None) => {}
            (Ok(mut observation), Some(ratio)) => {
                names.name(&mut observation.near);
                observation.far.iter_mut().for_each(|far| names.name(far));
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
