//! What the connections of a program that is tried do: one run of its command, recorded as `ipcmark record` does it, where that is allowed.

use analysis::alike::Alike;
use analysis::recording::scenario_of;
use analysis::tried::TriedConnection;
use harness::programs::started::{StartError, StartedProgram};
use mechanisms::registry::CARDS;
use model::Scenario;
use model::scenario::{Flow, Recording};
use observe::recorder::{RecordBy, RecorderOutcome, RecorderTarget, record};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sys::Failure;

/// A run that takes longer is recorded no further.
const LONGEST: Duration = Duration::from_secs(10);
/// So many connections, the busiest, are told.
const MOST: usize = 4;

/// Runs the command of `started` once, and says what its connections did; `None` where that cannot be recorded.
pub fn recorded_run(started: &StartedProgram<'_>) -> Result<Option<Vec<TriedConnection>>, StartError> {
    let run = started.prepare_run()?;
    let parents = started.server_parents().into_iter().chain([run.parent()]);
    let pids = parents.map(|parent| parent.as_raw_nonzero().get().cast_unsigned()).collect();
    let target = RecorderTarget::Processes(pids);
    let (has_begun, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    // It is asked for the first time when it records.
    let looks = || {
        has_begun.store(true, Ordering::Release);
        is_over.load(Ordering::Acquire)
    };
    std::thread::scope(|scope| {
        let recorder = scope.spawn(|| record(&target, Some(RecordBy::Bpf), LONGEST, &looks));
        while !has_begun.load(Ordering::Acquire) && !recorder.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let ran = started.run_prepared(run);
        is_over.store(true, Ordering::Release);
        let recorded = recorder.join();
        ran?;
        Ok(connections(recorded.ok().and_then(Result::<RecorderOutcome, Failure>::ok)))
    })
}

/// The busiest connections of what was recorded, those that are alike together; `None` where nothing was.
fn connections(outcome: Option<RecorderOutcome>) -> Option<Vec<TriedConnection>> {
    let outcome = outcome?;
    let recorded = Recording {
        command: String::new(),
        seconds: outcome.communication.seconds(),
        by: outcome.by.to_string(),
        host: String::new(),
        slowdown: None,
        slowdown_interval: None,
        unseen: Vec::new(),
    };
    // Processes that say nothing to each other have no scenario.
    let Ok(scenario) = scenario_of(outcome.communication, "try", recorded, CARDS) else {
        return Some(Vec::new());
    };
    let Scenario { flows, .. } = Alike::from_scenarios(&[&scenario]).scenario(&scenario);
    let mut connections: Vec<TriedConnection> = flows.iter().filter_map(connection).collect();
    connections.sort_by(|a, b| b.per_s.total_cmp(&a.per_s));
    connections.truncate(MOST);
    Some(connections)
}

fn connection(flow: &Flow) -> Option<TriedConnection> {
    let recorded = flow.recorded.as_ref()?;
    Some(TriedConnection {
        name: flow.name.clone(),
        mechanism: flow.mechanism.to_string(),
        per_s: recorded.per_s,
        round_trip_ns: recorded.round_trip.as_ref().map(|times| times.mean()),
    })
}
