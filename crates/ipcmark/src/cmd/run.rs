//! `ipcmark run`: from the request to the plan, the trials, the results file and the table.

use super::{explain, looks};
use crate::cli::{Axes, Effort, Looks, Run};
use crate::collector::{self, LEAST_TRIALS};
use crate::exit::{Error, Exit};
use crate::output::{command, print, show};
use crate::progress::Progress;
use crate::results_file::ResultsFile;
use crate::suites;
use harness::looking::Subject;
use harness::measure::{Calibration, Timer};
use harness::run::{Bounds, Event, Finish, estimate, slice_for};
use harness::run_directory::RunDirectory;
use harness::trial::Launcher;
use mechanisms::registry::{self, CARDS};
use model::block::Block;
use model::card::{Card, CardKind, Support};
use model::plan::{Plan, PlanEntry};
use model::record::{
    FORMAT, Fact, FloorReading, Header, Line, PlanRecord, Results, RunEnd, Settings, Tool, VERSION,
};
use model::suite::Suite;
use model::warning::Warning;
use model::{Case, Invalid, Outcome, Pace, Peers, Percent, Size, Spec, Workload};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The precision of cases given by hand.
const PRECISION: Percent = Percent(0.02);
/// The time of a run of cases given by hand.
const TIME: Duration = Duration::from_secs(60);

/// Measures what is asked for and shows it.
pub fn run(arguments: &Run) -> Result<Exit, Error> {
    let timer = Timer::start();
    let suite = requested(arguments)?;
    let host = harness::host::read(Path::new("/"));
    let plan = model::plan::plan(&suite.blocks, suite.endpoints.unwrap_or_default(), &host.topology, row);
    if plan.cases.is_empty() && plan.awaited.is_empty() {
        return Err(nothing_left(&plan).into());
    }
    let subjects = suite.study.as_ref().map_or_else(Vec::new, |s| looks::subjects(s, &plan, suite.total));
    let settings = settings(arguments, &suite, &plan, !subjects.is_empty());
    if arguments.dry_run {
        print(&dry_run(&plan, &settings, &subjects))?;
        return Ok(Exit::Success);
    }

    let interrupted = watch_signals()?;
    let directory = RunDirectory::create()?;
    let calibration = Calibration::choose(Path::new("/"));
    refuse_short_slices(&settings, &calibration)?;
    // Made last: a run that is refused must not leave an empty file in the way of the next.
    let file = arguments.output.as_deref().map(ResultsFile::create).transpose()?;
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        tool: tool(),
        run: directory.id().to_owned(),
        started_at: jiff::Timestamp::now().to_string(),
        command: command(),
        host,
        clock: calibration.record.clone(),
        settings: settings.clone(),
        plan: PlanRecord {
            cases: [plan.floors.clone(), plan.cases.clone()].concat(),
            dropped: plan.dropped.clone(),
        },
        floors: Vec::new(),
        study: suite.study,
    };
    let launcher = Launcher {
        clock: calibration.record.source,
        directory: &directory,
        check: arguments.check,
        interrupted: &interrupted,
        timeout: arguments.effort.timeout,
    };
    let observe = Duration::from_nanos(settings.observe_ns);
    let precision = settings.precision.0;
    let settled = |iteration_ns: &[f64]| collector::is_settled(iteration_ns, precision);
    let bounds = Bounds { settings, settled: &settled, iterations: arguments.iterations };
    let mut collector = Collector::new(header, file, &interrupted);
    let steal_before = harness::host::steal_ticks(Path::new("/"));
    let finish =
        harness::run::Run::new(&plan, &launcher, &bounds, timer, |event| collector.take(event)).finish();
    if !observe.is_zero() {
        collector.look(subjects, &launcher, observe);
    }
    let finish = Finish { interrupted: interrupted.load(Ordering::Relaxed), ..finish };
    let (results, refused) = collector.finish(end(finish, steal_before, &calibration));
    show(&arguments.show, &results)?;
    match refused {
        Some(failure) => Err(failure.into()),
        None if arguments.explain => explain_all(&plan, arguments, exit_of(&results)),
        None => Ok(exit_of(&results)),
    }
}

/// Explains the cases of `plan` after they were measured, unless that came to no good end.
fn explain_all(plan: &Plan, arguments: &Run, measured: Exit) -> Result<Exit, Error> {
    if measured != Exit::Success {
        return Ok(measured);
    }
    let (cases, others): (Vec<Case>, Vec<Case>) =
        plan.cases.iter().chain(&plan.awaited).cloned().partition(explain::can_be_looked_at);
    for case in others {
        print(&format!("\n{case}: not explained: one pair is looked at, iteration after iteration\n"))?;
    }
    print("\n")?;
    explain::explained(&cases, None, None, arguments.effort.timeout, &Looks::default())
}

/// The suite that `arguments` ask for, with its axes as they say.
fn requested(arguments: &Run) -> Result<Suite, Invalid> {
    let mut suite = if arguments.mechanisms.is_empty() {
        suites::find(&arguments.suite)?
    } else {
        by_hand(&arguments.mechanisms, &arguments.axes.workloads)?
    };
    let Effort { precision, time, endpoints, .. } = arguments.effort;
    suite.precision = precision.unwrap_or(suite.precision);
    let time = time.unwrap_or(if arguments.quick { quick_time(&suite)? } else { suite.time });
    suite.observe = Some(arguments.observe.unwrap_or(suite.observe_in(time)));
    suite.time = time;
    suite.rounds = arguments.rounds.or(suite.rounds);
    suite.total = arguments.total.or(suite.total);
    suite.endpoints = endpoints.map(Into::into).or(suite.endpoints);
    restrict(&mut suite, &arguments.axes)?;
    Ok(suite)
}

fn quick_time(suite: &Suite) -> Result<Duration, Invalid> {
    suite.quick.ok_or_else(|| {
        Invalid::new(
            format!("the suite '{}' has no quick time", suite.name),
            "give it one as quick = \"20s\", or say --time",
        )
    })
}

/// Narrows the workloads of `suite`, and replaces its other axes, where they are given.
pub fn restrict(suite: &mut Suite, axes: &Axes) -> Result<(), Invalid> {
    let Axes { workloads, sizes, placements, think_times, rates, peers } = axes;
    let paces = model::suite::paces(think_times.as_deref(), rates.as_deref())?;
    for block in &mut suite.blocks {
        if !workloads.is_empty() {
            let of_block = std::mem::take(&mut block.workloads);
            let kept = workloads.iter().filter(|asked| of_block.iter().any(|had| had.is_like(**asked)));
            block.workloads = kept.copied().collect();
        }
        if let Some(sizes) = sizes {
            block.sizes.clone_from(&sizes.0);
        }
        if !placements.is_empty() {
            block.placements.clone_from(placements);
        }
        if think_times.is_some() || rates.is_some() {
            block.paces.clone_from(&paces);
        }
        if !peers.is_empty() {
            block.peers.clone_from(peers);
        }
    }
    if suite.blocks.iter().all(|block| block.workloads.is_empty()) {
        let asked: Vec<&str> = workloads.iter().map(|workload| workload.name()).collect();
        return Err(Invalid::new(
            format!("the suite '{}' has no workload {}", suite.name, asked.join(" or ")),
            "name mechanisms with -m, or leave -w out",
        ));
    }
    Ok(())
}

/// What stands for every mechanism and operation.
const ALL: &str = "all";

/// A suite of the rows in `texts`: of `workloads`, or of each row's first; of all rows, in all of theirs.
pub fn by_hand(texts: &[String], workloads: &[Workload]) -> Result<Suite, Invalid> {
    let block = |spec: Spec, own: &[Workload]| -> Result<Block, Invalid> {
        Ok(Block {
            specs: vec![spec],
            workloads: if workloads.is_empty() { own.to_vec() } else { workloads.to_vec() },
            sizes: vec![Size(1)],
            placements: vec!["same-core".parse()?, "same-llc|cross-llc|cross-node|smt|unpinned".parse()?],
            paces: vec![Pace::BackToBack],
            peers: vec![Peers::Pair],
        })
    };
    let mut blocks = Vec::new();
    for text in texts {
        if text == ALL {
            let rows = CARDS.iter().filter(|card| card.kind != CardKind::Floor);
            let asked = |card: &&Card| workloads.is_empty() || workloads.iter().any(|w| card.takes(*w));
            let all = rows.filter(asked).map(|card| block(Spec::plain(card.name), card.workloads));
            blocks.extend(all.collect::<Result<Vec<_>, _>>()?);
        } else {
            let spec = Spec::parse(text, CARDS)?;
            let own = registry::card(&spec.name).map_or(&[][..], |card| card.workloads);
            blocks.push(block(spec, &own[..own.len().min(1)])?);
        }
    }
    Ok(Suite {
        name: "by hand".to_owned(),
        summary: String::new(),
        precision: PRECISION,
        time: TIME,
        quick: None,
        observe: None,
        slice: None,
        rounds: None,
        total: None,
        endpoints: None,
        study: None,
        blocks,
    })
}

/// The row of `spec` on this host.
pub fn row(spec: &Spec) -> PlanEntry {
    let card = registry::card(&spec.name).copied();
    let support = registry::probe(&spec.name, &spec.params);
    // A spec was parsed against the table, so that its row exists.
    PlanEntry {
        spec: spec.clone(),
        card: card.unwrap_or(CARDS[0]),
        support: support.unwrap_or(Support::UNLIMITED),
    }
}

/// The error of a plan of which everything was dropped.
pub fn nothing_left(plan: &Plan) -> Invalid {
    let reasons: Vec<String> = plan.dropped.iter().map(|d| format!("{}: {}", d.case, d.reason)).collect();
    Invalid::new("nothing that was asked for can be measured here", reasons.join("\n  "))
}

fn settings(arguments: &Run, suite: &Suite, plan: &Plan, is_looked_at: bool) -> Settings {
    let trials = plan.cases.len() + plan.floors.len();
    let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    Settings {
        suite: arguments.mechanisms.is_empty().then(|| suite.name.clone()),
        precision: suite.precision,
        time_ns: ns(suite.time),
        rounds: suite.rounds,
        slice_ns: ns(suite.slice.unwrap_or_else(|| slice_for(suite.time, trials))),
        check: arguments.check,
        total_bytes: suite.total,
        observe_ns: if is_looked_at { ns(suite.observe.unwrap_or_default()) } else { 0 },
    }
}

/// Refuses to time less than 100 steps of the clock.
fn refuse_short_slices(settings: &Settings, calibration: &Calibration) -> Result<(), Invalid> {
    let least_ns = calibration.record.precision_ns * 100.0;
    if (settings.slice_ns as f64) < least_ns {
        return Err(Invalid::new(
            format!(
                "a trial would measure {} ns, and the clock here steps by {} ns",
                settings.slice_ns, calibration.record.precision_ns
            ),
            "give it more --time, or fewer cases",
        ));
    }
    Ok(())
}

/// What would be measured, and what would not.
fn dry_run(plan: &Plan, settings: &Settings, subjects: &[Subject]) -> String {
    let trials = plan.cases.len() + plan.floors.len();
    let mut text = format!(
        "{} cases and {} floors, {} of iterations in each trial, settled at ±{}, at most {} s\n",
        plan.cases.len(),
        plan.floors.len(),
        model::units::format_ns(settings.slice_ns as f64),
        settings.precision,
        settings.time_ns / 1_000_000_000,
    );
    let cpus = |case: &model::Case| {
        case.cpus.map(|c| format!("  (cpus {},{})", c.client, c.server)).unwrap_or_default()
    };
    let round_ns = estimate(trials, Duration::from_nanos(settings.slice_ns)).as_nanos() as f64;
    text += &format!(
        "one round is {trials} trials, about {}; nothing settles before {LEAST_TRIALS} rounds and a warm-up, about {}\n\n",
        model::units::format_ns(round_ns),
        model::units::format_ns(round_ns * (1 + LEAST_TRIALS) as f64)
    );
    for case in &plan.floors {
        text += &format!("floor  {case}{}\n", cpus(case));
    }
    for case in &plan.cases {
        text += &format!("case   {case}{}\n", cpus(case));
    }
    for dropped in &plan.dropped {
        text += &format!("not    {}: {}\n", dropped.case, dropped.reason);
    }
    if settings.observe_ns > 0 {
        text += &format!(
            "\nthen cases are looked at by probes: {}, at most {} s\n",
            subjects.len(),
            settings.observe_ns / 1_000_000_000
        );
    }
    for Subject { case, probes, .. } in subjects.iter().filter(|_| settings.observe_ns > 0) {
        let probes: Vec<&str> = probes.iter().map(|probe| probe.name()).collect();
        text += &format!("look   {case}: {}\n", probes.join(", "));
    }
    text
}

/// A flag that SIGINT, SIGTERM and SIGHUP set. A second SIGINT ends at once; the janitor then sweeps.
pub fn watch_signals() -> Result<Arc<AtomicBool>, Error> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::flag::{register, register_conditional_shutdown};
    let flag = Arc::new(AtomicBool::new(false));
    let refuse = |error: std::io::Error| {
        sys::Failure::new("sigaction", "SIGINT", error.to_string(), "report this bug")
    };
    register_conditional_shutdown(SIGINT, 130, Arc::clone(&flag)).map_err(refuse)?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        register(signal, Arc::clone(&flag)).map_err(refuse)?;
    }
    Ok(flag)
}

/// A launcher of trials whose payload is checked in the warm-up alone, by the best clock of this host.
pub fn launcher<'a>(
    directory: &'a RunDirectory,
    interrupted: &'a AtomicBool,
    timeout: Duration,
) -> Launcher<'a> {
    let clock = Calibration::choose(Path::new("/")).record.source;
    Launcher { clock, directory, check: false, interrupted, timeout }
}

pub fn tool() -> Tool {
    Tool {
        name: "ipcmark".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        linked: if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" }.to_owned(),
    }
}

fn end(finish: Finish, steal_before: Option<(u64, u64)>, calibration: &Calibration) -> RunEnd {
    let stolen = steal_before.zip(harness::host::steal_ticks(Path::new("/"))).map(
        |((steal, total), (steal_now, total_now))| {
            (steal_now - steal) as f64 / (total_now - total).max(1) as f64
        },
    );
    RunEnd {
        interrupted: finish.interrupted,
        rounds: finish.rounds,
        elapsed_ns: u64::try_from(finish.elapsed.as_nanos()).unwrap_or(u64::MAX),
        stolen: stolen.map_or(Fact::Unknown("/proc/stat cannot be read".to_owned()), Fact::Known),
        clock_drift: calibration.drift(),
    }
}

fn exit_of(results: &Results) -> Exit {
    let failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed { .. } | Outcome::Missed { .. });
    match &results.end {
        Some(end) if end.interrupted => Exit::Interrupted,
        _ if results.records.iter().any(|record| failed(&record.outcome)) => Exit::CaseFailed,
        _ => Exit::Success,
    }
}

/// Takes what a run tells: appends records to the file as they come, shows progress, keeps all for the table.
struct Collector<'a> {
    results: Results,
    file: Option<ResultsFile>,
    header_written: bool,
    /// The first refusal to write, after which nothing more is written.
    refused: Option<sys::Failure>,
    interrupted: &'a AtomicBool,
    progress: Progress,
}

impl<'a> Collector<'a> {
    fn new(header: Header, file: Option<ResultsFile>, interrupted: &'a AtomicBool) -> Self {
        let results =
            Results { header, records: Vec::new(), profiles: Vec::new(), end: None, notes: Vec::new() };
        Self { results, file, header_written: false, refused: None, interrupted, progress: Progress::new() }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Floors(readings) => {
                let reading = |(case, iteration_ns): (&model::Case, Option<f64>)| FloorReading {
                    case: case.clone(),
                    iteration_ns,
                };
                self.results.header.floors = readings.into_iter().map(reading).collect();
                self.append_header();
            }
            Event::Progress { round, done, cases, share, left } => {
                self.progress.show(round, done, cases, share, left);
            }
            Event::Ended(finished) => {
                let mut record = collector::record(*finished, self.results.header.settings.precision.0);
                record.warnings.extend(self.cpu_split_warning(&record));
                self.append_header();
                self.append(&Line::Record(Box::new(record.clone())));
                self.results.records.push(record);
            }
        }
    }

    /// Has `subjects` looked at, unless the run is to end.
    fn look(&mut self, subjects: Vec<Subject>, launcher: &Launcher<'_>, time: Duration) {
        if self.interrupted.load(Ordering::Relaxed) {
            return;
        }
        let mut progress = Progress::new();
        looks::look(subjects, launcher, time, &mut progress, |look| {
            self.append(&Line::Profile(Box::new(look.clone())));
            self.results.profiles.push(look);
        });
        progress.finish();
    }

    /// The scheduler's tick splits CPU time on this host: true of every record, and said once in reports.
    fn cpu_split_warning(&self, record: &model::Record) -> Option<Warning> {
        let tick_ns = *self.results.header.host.tick_ns.known()?;
        (!record.samples.is_empty()).then_some(Warning::SampledCpuSplit { tick_ns })
    }

    fn append_header(&mut self) {
        if !self.header_written {
            self.header_written = true;
            self.append(&Line::Header(Box::new(self.results.header.clone())));
        }
    }

    /// Appends `line`. When the file refuses, the run is ended: its results are still shown.
    fn append(&mut self, line: &Line) {
        let Some(file) = self.file.as_mut().filter(|_| self.refused.is_none()) else { return };
        if let Err(failure) = file.append(line) {
            self.refused = Some(failure);
            self.interrupted.store(true, Ordering::Relaxed);
        }
    }

    /// All that was measured, and the refusal of the file, if it refused.
    fn finish(mut self, end: RunEnd) -> (Results, Option<sys::Failure>) {
        self.append_header();
        self.append(&Line::End(end.clone()));
        self.results.end = Some(end);
        self.progress.finish();
        if let Some(failure) = &self.refused {
            self.results.notes.push(format!("the results file is incomplete: {failure}"));
        } else if let Some(file) = &self.file {
            self.results.notes.push(format!("kept in {}", file.path().display()));
        }
        (self.results, self.refused)
    }
}
