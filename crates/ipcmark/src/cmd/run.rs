//! `ipcmark run`: from the request to the plan, the trials, the results file and the table.

use crate::cli::RunArguments;
use crate::collector::Collector;
use crate::derived_file;
use crate::exit::{Error, Exit};
use crate::explanation::{explain_cases, unexplainable};
use crate::output::{check_page, command, print, show};
use crate::planning::{plan_between_hosts, plan_some, plan_with, requested};
use crate::profile;
use crate::remote::RemoteRun;
use crate::request::{ExplanationRequest, RunRequest};
use crate::results_file::ResultsFile;
use crate::rules::RunRules;
use crate::session::{RunSession, check_slice};
use crate::streams::complain;
use analysis::analysed::AnalysedResults;
use analysis::stopping::{LEAST_SPAN_NS, LEAST_TRIALS};
use harness::clock::{Timer, wall_clock};
use harness::coordinator::profile::ProbeSubject;
use harness::coordinator::remote::Remote;
use harness::coordinator::run::{self, RunBounds, RunFinish, TrialCost};
use harness::coordinator::schedule::TimeBudget;
use harness::coordinator::slices::{estimate, slice_for};
use harness::coordinator::trials::EndpointTrials;
use model::plan::Plan;
use model::record::{FORMAT, Header, Host, PlanRecord, Results, Settings, Tool, VERSION};
use model::units::format_ns;
use model::{Case, Outcome, Sample};
use std::path::Path;
use std::time::Duration;

/// Measures what is asked for and shows it.
pub fn run(arguments: RunArguments) -> Result<Exit, Error> {
    let timer = Timer::start();
    measure_and_show(&RunRequest::new(arguments)?, timer)
}

/// Does what `request` asks for, in a time that began with `timer`.
pub fn measure_and_show(request: &RunRequest, timer: Timer) -> Result<Exit, Error> {
    let suite = &request.suite;
    let host = harness::host::facts::read(Path::new("/"));
    let session = if request.dry_run && request.remote.is_none() { None } else { Some(RunSession::open()?) };
    let remote = request.remote.as_ref().zip(session.as_ref());
    let remote = remote
        .map(|(remote, session)| {
            RemoteRun::open(remote, request.timeout, &suite.blocks, session, own_cpu(&host))
        })
        .transpose()?;
    let endpoints = suite.endpoints.unwrap_or_default();
    let plan = match &remote {
        None => plan_some(plan_with(&suite.blocks, endpoints, &host.topology, &request.drivers))?,
        Some(remote) => {
            let cpus = remote.sides.cpus(own_cpu(&host));
            plan_between_hosts(&suite.blocks, cpus, &remote.sides, endpoints, &host.topology)?
        }
    };
    let plan = match request.inject {
        Some(inject) => plan_some(plan.injected(inject))?,
        None => plan,
    };
    // Probes observe endpoints of this host.
    let study = suite.study.as_ref().filter(|_| remote.is_none());
    let subjects = study.map_or_else(Vec::new, |study| profile::subjects(study, &plan, suite.total));
    let settings = settings(request, &plan, !subjects.is_empty());
    let Some(session) = session.as_ref().filter(|_| !request.dry_run) else {
        print(&dry_run(&plan, &settings, &subjects))?;
        return Ok(Exit::Success);
    };

    check_slice(settings.slice_ns, session.clock())?;
    // Made last: a run that is refused must not leave an empty file, which would stop the next one.
    check_page(&request.page)?;
    let file = request
        .output
        .as_deref()
        .map(|path| ResultsFile::create(path, request.page.existing.into()))
        .transpose()?;
    let header = header(request, settings.clone(), &plan, host, session, remote.as_ref());
    let rules = RunRules::new(settings.precision, slices_of_a_case(&settings, &plan), suite.time);
    let mut collector = Collector::new(header, &rules, file, session.stop());
    let sides = remote.as_ref().map(|remote| &remote.sides);
    let time = Some((timer, Duration::from_nanos(settings.time_ns)));
    let drivers = Some(&request.drivers);
    let trials = EndpointTrials { time, drivers, ..session.trials(request.check, request.timeout, sides) };
    let finish = measure(request, &settings, &plan, timer, &trials, &rules, &mut collector);
    if !session.is_stopped() && settings.observe_ns > 0 {
        let observe = Duration::from_nanos(settings.observe_ns);
        profile::observe(subjects, &trials, observe, |record| collector.add_profile(record));
    }
    let (results, refused) = collector.finish(session.end(finish));
    // The page is made even if whoever reads the table closes it early.
    let made = request.page.html.as_deref().map_or(Ok(()), |path| page(path, request, &results));
    show(&request.show, &results)?;
    made?;
    if let Some(why) = sides.and_then(Remote::lost) {
        let next = "what was measured by then is kept";
        return Err(sys::Failure::new("reach", "the other side", why, next).into());
    }
    match (refused, &request.explanation) {
        (Some(failure), _) => Err(failure.into()),
        (None, Some(explanation)) if exit_of(&results) == Exit::Success => {
            explain(&plan, explanation, &results.header.host, session)
        }
        (None, _) => Ok(exit_of(&results)),
    }
}

/// Makes the page of `results`, and says so on standard error: standard output may be read by a program.
fn page(path: &Path, request: &RunRequest, results: &Results) -> Result<(), Error> {
    let metric = request.show.metric.as_deref();
    let page = report::html(&[AnalysedResults::from_results(results)], metric, &command())?;
    derived_file::write(path, page.as_bytes(), request.page.existing.into())?;
    complain(&format!("wrote {}, {} bytes\n", path.display(), page.len()));
    Ok(())
}

/// The CPU of an endpoint of this host whose peer may be on another: not the highest, which the other side takes if it is on this
/// host after all, in other namespaces.
fn own_cpu(host: &Host) -> u32 {
    let cpus = &host.topology.cpus;
    cpus.iter().rev().nth(1).or(cpus.last()).map_or(0, |cpu| cpu.id)
}

/// The settings of the run, as its results record them.
fn settings(request: &RunRequest, plan: &Plan, has_subjects: bool) -> Settings {
    let suite = &request.suite;
    let trials = plan.cases.len() + plan.floors.len();
    let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    Settings {
        suite: request.suite_name.clone(),
        precision: suite.precision,
        time_ns: ns(suite.time),
        rounds: suite.rounds,
        slice_ns: ns(suite.slice.unwrap_or_else(|| slice_for(suite.time, trials))),
        check: request.check,
        total_bytes: suite.total,
        observe_ns: if has_subjects { ns(suite.observe.unwrap_or_default()) } else { 0 },
    }
}

/// About how many slices a case has if it does not end early.
fn slices_of_a_case(settings: &Settings, plan: &Plan) -> u32 {
    let round = estimate(plan.cases.len() + plan.floors.len(), Duration::from_nanos(settings.slice_ns));
    let fitting = settings.time_ns as f64 / round.as_nanos().max(1) as f64;
    settings.rounds.unwrap_or(u32::MAX).min(fitting as u32)
}

/// What would be measured, and what would not.
fn dry_run(plan: &Plan, settings: &Settings, subjects: &[ProbeSubject]) -> String {
    let slices = plan.cases.len() + plan.floors.len();
    let mut text = format!(
        "{} cases and {} floors, {} of iterations in each slice, settled at {}, at most {} s\n",
        plan.cases.len(),
        plan.floors.len(),
        format_ns(settings.slice_ns as f64),
        settings.precision.words(),
        settings.time_ns / 1_000_000_000,
    );
    let round_ns = estimate(slices, Duration::from_nanos(settings.slice_ns)).as_nanos() as f64;
    text += &format!(
        "one round is {slices} slices, about {}; a case needs {} trials, and ends early after {} s at the least\n\n",
        format_ns(round_ns),
        LEAST_TRIALS,
        LEAST_SPAN_NS / 1_000_000_000
    );
    let cpus =
        |case: &Case| case.cpus.map(|c| format!("  (cpus {},{})", c.client, c.server)).unwrap_or_default();
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
        let most_s = settings.observe_ns / 1_000_000_000;
        text += &format!("\nthen probes observe {} cases, at most {most_s} s\n", subjects.len());
        for ProbeSubject { case, probes, .. } in subjects {
            let probes: Vec<&str> = probes.iter().map(|probe| probe.name()).collect();
            text += &format!("probe  {case}: {}\n", probes.join(", "));
        }
    }
    text
}

/// The first line of the results.
fn header(
    request: &RunRequest,
    settings: Settings,
    plan: &Plan,
    host: Host,
    session: &RunSession,
    remote: Option<&RemoteRun>,
) -> Header {
    Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        tool: tool(),
        run: session.id().to_owned(),
        started_at: wall_clock(),
        command: command(),
        host,
        clock: session.clock().clone(),
        remote: remote.map(RemoteRun::record),
        settings,
        plan: PlanRecord {
            cases: [plan.floors.clone(), plan.cases.clone()].concat(),
            dropped: plan.dropped.clone(),
        },
        floors: Vec::new(),
        study: request.suite.study.clone(),
    }
}

fn tool() -> Tool {
    Tool {
        name: "ipcmark".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        linked: if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" }.to_owned(),
    }
}

/// Measures `plan` without probes, in a time that began with `timer`.
fn measure(
    request: &RunRequest,
    settings: &Settings,
    plan: &Plan,
    timer: Timer,
    trials: &EndpointTrials<'_>,
    rules: &RunRules,
    collector: &mut Collector<'_>,
) -> RunFinish {
    let settled = |case: &Case, samples: &[Sample]| rules.is_settled(case, samples);
    let ends_early = |case: &Case, samples: &[Sample]| rules.ends_early(case, samples);
    let slices = |samples: &[Sample], cost: TrialCost| rules.slices(samples, cost);
    let bounds = RunBounds {
        settled: &settled,
        ends_early: &ends_early,
        slices: &slices,
        rounds: settings.rounds,
        slice_ns: settings.slice_ns,
        total: settings.total_bytes,
        iterations: request.iterations,
    };
    let budget = TimeBudget { clock: &timer, time: Duration::from_nanos(settings.time_ns) };
    let finish = run::measure(plan, trials, budget, bounds, |event| collector.take(event));
    collector.finish_progress();
    finish
}

/// Explains the cases of `plan` that can be explained, and prints why the others cannot.
fn explain(
    plan: &Plan,
    request: &ExplanationRequest,
    host: &Host,
    session: &RunSession,
) -> Result<Exit, Error> {
    let mut cases = Vec::new();
    for case in requested(plan) {
        match unexplainable(case) {
            None => cases.push(case.clone()),
            Some(invalid) => print(&format!("\n{}\n", invalid.problem))?,
        }
    }
    print("\n")?;
    explain_cases(&cases, request, host, session)
}

fn exit_of(results: &Results) -> Exit {
    let failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed { .. } | Outcome::Missed { .. });
    match &results.end {
        Some(end) if end.interrupted => Exit::Interrupted,
        _ if results.records.iter().any(|record| failed(&record.outcome)) => Exit::CaseFailed,
        _ => Exit::Success,
    }
}
