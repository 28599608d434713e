//! `ipcmark predict`: from a recorded scenario and the exchanges to what messages cost, and the bounds of what that can give.

use crate::cli::PredictArguments;
use crate::exit::{Error, Exit};
use crate::measuring::measure;
use crate::output::{show_answer, style};
use crate::planning::plan_here;
use crate::results_file;
use crate::scenario_file::{exchanged, read};
use crate::session::RunSession;
use analysis::predict::{MeasuredCosts, NeededCosts, needed, predict};
use model::plan::Plan;
use model::record::{Host, Record};
use model::scenario::Flow;
use model::{Endpoints, Invalid, Percent, Scenario};
use std::path::Path;
use sys::Failure;

/// How precise costs need to be: what an exchange saves is a tenth of a round trip, and wanted to within a tenth of that.
const PRECISION: Percent = Percent(0.005);
/// How many missing cases a refusal names.
const NAMED: usize = 4;

/// Predicts what the exchanges can give.
pub fn run(arguments: PredictArguments) -> Result<Exit, Error> {
    let before = read(&arguments.scenario)?;
    let after = exchanged(&before, &arguments.exchanges)?;
    refuse_unrecorded([&before, &after], &arguments.scenario)?;
    refuse_held_back(&before)?;
    let host = harness::host::facts::read(Path::new("/"));
    let cpus: Vec<u32> = host.topology.cpus.iter().map(|cpu| cpu.id).collect();
    let needs = needed([&before, &after], cpus.len());
    let mut costs = MeasuredCosts::default();
    for path in &arguments.costs {
        costs.add_run(&results_file::read(path)?.records);
    }
    if !needs.missing(&costs).is_empty() {
        let session = RunSession::open()?;
        let plan = missing_plan(&needs, &costs, &host);
        let trials = session.trials(false, arguments.timeout, None);
        let records = measure(&plan, &trials, arguments.time, PRECISION.into());
        costs.add_run(&records);
        if session.is_stopped() {
            return Ok(Exit::Interrupted);
        }
        refuse_missing(&needs.missing(&costs), &why(&plan, &records))?;
    }
    let prediction = predict(&before, &after, &costs, &cpus).ok_or_else(|| {
        let object = arguments.scenario.display().to_string();
        Failure::new("predict", object, "its recording has no CPU times", "record it again")
    })?;
    let text = report::prediction(&prediction, &style());
    let document = serde_json::json!({ "prediction": prediction });
    show_answer(arguments.answer.format, &text, &document, &["prediction", "flows"])?;
    Ok(Exit::Success)
}

/// The plan of the cases that are needed and that `costs` lack.
fn missing_plan(needs: &NeededCosts, costs: &MeasuredCosts, host: &Host) -> Plan {
    let mut plan = plan_here(&needs.blocks(), Endpoints::default(), &host.topology);
    plan.floors.clear();
    plan.cases.retain(|case| !costs.has(case));
    plan
}

/// Refuses a scenario of which it is not known how it does.
fn refuse_unrecorded([before, after]: [&Scenario; 2], path: &Path) -> Result<(), Invalid> {
    let mut flows = before.flows.iter().zip(&after.flows);
    let is_known = flows.all(|(old, new)| old.mechanism == new.mechanism || old.recorded.is_some())
        && before.processes.iter().any(|process| process.recorded.is_some());
    if is_known {
        return Ok(());
    }
    Err(Invalid::new(
        format!("{} was not recorded: nobody knows its rates and CPU times", path.display()),
        format!("'ipcmark replay {} --against FLOW=MECHANISM' measures a design", path.display()),
    ))
}

/// Refuses a scenario with a flow that waits for acknowledgements: no measured case waits so.
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

/// Why cases are missing after they were to be measured.
fn why(plan: &Plan, records: &[Record]) -> String {
    let dropped = plan.dropped.iter().map(|dropped| format!("{}: {}", dropped.case, dropped.reason));
    let failed = records.iter().filter_map(|record| match &record.outcome {
        model::Outcome::Failed { error } => Some(format!("{}: {error}", record.case)),
        _ => None,
    });
    let reasons: Vec<String> = dropped.chain(failed).take(NAMED).collect();
    if reasons.is_empty() { "give it more --time".to_owned() } else { reasons.join("\n  ") }
}
