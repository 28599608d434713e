//! `ipcmark predict`: from the scenario and the exchanges to the costs, the prediction, and whether a replay shows the same.

use crate::cli::PredictArguments;
use crate::exit::{Error, Exit};
use crate::measuring::measure_until;
use crate::output::{show_answer, style};
use crate::planning::plan_here;
use crate::replay_failure::failure;
use crate::results_file;
use crate::scenario_file::{exchanged, read};
use crate::session::RunSession;
use analysis::predict::{Measured, MeasuredCosts, NeededCosts, PredictOptions, held, needed, predict};
use harness::coordinator::replay::{self, ReplayBounds};
use harness::coordinator::trial_error::TrialError;
use model::block::Block;
use model::floor::CONTEXT_SWITCH;
use model::plan::Plan;
use model::record::{Host, Record};
use model::scenario::{Behaviour, Flow};
use model::{Case, Endpoints, Invalid, Percent, Scenario};
use std::path::Path;
use std::time::Duration;
use sys::Failure;

/// How precise costs need to be: what an exchange saves is a tenth of a round trip, and wanted to within a tenth of that.
const PRECISION: Percent = Percent(0.005);
/// The same of cases that are before the exchange what they are after it: their time is better given to the others.
const ROUGH_PRECISION: Percent = Percent(0.02);
/// How many missing cases a refusal names.
const NAMED: usize = 4;

/// Predicts what the exchanges give.
pub fn run(arguments: PredictArguments) -> Result<Exit, Error> {
    let before = read(&arguments.scenario)?;
    let after = exchanged(&before, &arguments.exchanges)?;
    refuse_held_back(&before)?;
    if arguments.check.is_some() {
        [&before, &after].into_iter().try_for_each(replay::check)?;
    }
    let host = harness::host::facts::read(Path::new("/"));
    let cpus: Vec<u32> = host.topology.cpus.iter().map(|cpu| cpu.id).collect();
    let needs = needed([&before, &after], cpus.len());
    let needs = match arguments.check {
        // Of a replay it is not seen where its processes were.
        Some(_) => needs,
        None => needs.placed_as(&Measured::recorded(&before)),
    };
    let runs = runs(&arguments)?;
    let mut costs = MeasuredCosts::default();
    runs.iter().for_each(|records| costs.add_run(records));
    let missing = needs.missing(&costs);
    let time = arguments.measure.filter(|_| !missing.is_empty());
    if time.is_none() {
        refuse_missing(&missing, &remedy(&needs, arguments.measure))?;
    }
    let session = (time.is_some() || arguments.check.is_some()).then(RunSession::open).transpose()?;
    if let Some((time, session)) = time.zip(session.as_ref()) {
        let plan = missing_plan(&needs, &runs.concat(), &host);
        let trials = session.trials(false, arguments.timeout, None);
        let asked = |case: &Case| if needs.tells_the_change(case) { PRECISION } else { ROUGH_PRECISION };
        let records = measure_until(&plan, &trials, time, PRECISION.into(), |rules, case, samples| {
            rules.ends_early_at(asked(case), case, samples)
        });
        costs.add_run(&records);
        if session.is_stopped() {
            return Ok(Exit::Interrupted);
        }
        refuse_missing(&needs.missing(&costs), &why(&plan, &records))?;
    }
    let replays = arguments.check.zip(session.as_ref());
    let replays = replays.map(|(time, session)| session.replays(time, arguments.timeout));
    let replayed = replays.map(|bounds| replayed(&bounds, [&before, &after])).transpose()?.flatten();
    if session.as_ref().is_some_and(RunSession::is_stopped) {
        return Ok(Exit::Interrupted);
    }
    let measured = replayed.as_ref().and_then(|[before, _]| Measured::replayed(&before.concat()));
    let measured = measured.unwrap_or_else(|| Measured::recorded(&before));
    let options = PredictOptions { seed: arguments.seed, ..PredictOptions::default() };
    let prediction = predict(&before, &after, &costs, &measured, &cpus, options);
    let held = replayed.map(|trials| held(&prediction, [&before, &after], &trials));
    let text = report::prediction(&prediction, held.as_ref(), &style());
    let document = serde_json::json!({ "prediction": prediction, "held": held });
    show_answer(arguments.answer.format, &text, &document, &["prediction", "flows"])?;
    Ok(Exit::Success)
}

/// The slices of each trial of both scenarios, which are replayed in turn; `None` where a signal ended that.
fn replayed(
    bounds: &ReplayBounds<'_>,
    scenarios: [&Scenario; 2],
) -> Result<Option<[Vec<Vec<Behaviour>>; 2]>, Failure> {
    match replay::replay_both(scenarios, bounds) {
        Ok(both) => Ok(Some(both.map(|replayed| replayed.trials))),
        Err(TrialError::Interrupted) => Ok(None),
        Err(error) => Err(failure(&error)),
    }
}

/// The records of each file with costs.
fn runs(arguments: &PredictArguments) -> Result<Vec<Vec<Record>>, Error> {
    arguments.costs.iter().map(|path| Ok(results_file::read(path)?.records)).collect()
}

/// The plan of the cases that are needed and of which there is no record. Of their floors it has what tells the cost of sleep; the others
/// tell nothing of a scenario, and would take as much time as the cases do.
fn missing_plan(needs: &NeededCosts, records: &[Record], host: &Host) -> Plan {
    let planned = |blocks: &[Block]| plan_here(blocks, Endpoints::default(), &host.topology);
    let mut plan = planned(&needs.blocks());
    let floors = std::mem::take(&mut plan.floors);
    plan.cases.extend(floors.into_iter().filter(|floor| floor.spec.name == CONTEXT_SWITCH));
    for (block, work) in needs.worked() {
        plan.cases.extend(planned(&[block]).injected(work).cases);
    }
    plan.cases.retain(|case| records.iter().all(|record| record.case != *case || record.samples.is_empty()));
    plan
}

/// Refuses a scenario with a flow that waits for acknowledgements: no measured case waits so, and what is simulated would not either.
fn refuse_held_back(scenario: &Scenario) -> Result<(), Invalid> {
    let held = |flow: &&Flow| flow.recorded.as_ref().is_some_and(|recorded| recorded.held_back.is_some());
    match scenario.flows.iter().find(held) {
        Some(flow) => Err(Invalid::new(
            format!(
                "the flow {} waits for acknowledgements of TCP (Nagle's algorithm), which no prediction has: whatever it is exchanged \
                 for, its times would be wrong",
                flow.name
            ),
            "set TCP_NODELAY in the program, or have it write a message at once, and record it again",
        )),
        None => Ok(()),
    }
}

fn refuse_missing(missing: &[String], remedy: &str) -> Result<(), Invalid> {
    if missing.is_empty() {
        return Ok(());
    }
    let more = missing.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let named = missing.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    Err(Invalid::new(format!("the prediction needs measured cases that are missing: {named}{more}"), remedy))
}

/// How the missing cases can be had.
fn remedy(needs: &NeededCosts, tried: Option<Duration>) -> String {
    let mut mechanisms: Vec<String> =
        needs.blocks().iter().flat_map(|block| &block.specs).map(ToString::to_string).collect();
    mechanisms.dedup();
    match tried {
        Some(_) => "give --measure more time".to_owned(),
        None => format!(
            "--measure 60s measures them; or name a results file that has them with --costs, as 'ipcmark run {} -w latency,throughput -p \
             same-core,same-llc,unpinned -o FILE' makes",
            mechanisms.join(" ")
        ),
    }
}

/// Why cases are missing after they were to be measured.
fn why(plan: &Plan, records: &[Record]) -> String {
    let dropped = plan.dropped.iter().map(|dropped| format!("{}: {}", dropped.case, dropped.reason));
    let failed = records.iter().filter_map(|record| match &record.outcome {
        model::Outcome::Failed { error } => Some(format!("{}: {error}", record.case)),
        _ => None,
    });
    let reasons: Vec<String> = dropped.chain(failed).take(NAMED).collect();
    if reasons.is_empty() { "give --measure more time".to_owned() } else { reasons.join("\n  ") }
}
