//! `ipcmark replay`: from a scenario file to what its processes do when they are run for real, alone or in turn with another.

use crate::cli::ReplayArguments;
use crate::exit::{Error, Exit};
use crate::output::{check_files, command, give_answer_and_page, style};
use crate::replay_failure::failure;
use crate::scenario_file::{exchanged, read};
use crate::session::RunSession;
use analysis::alike::Alike;
use analysis::replay::{AnalysedReplay, ReplayedBoth};
use harness::coordinator::replay::{self, Replayed};
use harness::coordinator::trial_error::TrialError;
use model::Scenario;
use std::path::Path;
use sys::Failure;

/// Runs the scenario, and shows what it came to.
pub fn run(arguments: ReplayArguments) -> Result<Exit, Error> {
    let scenario = exchanged(&read(&arguments.scenario)?, &arguments.exchanges)?;
    replay::check(&scenario)?;
    let against = arguments.against.as_deref().map(|against| other(&scenario, against)).transpose()?;
    check_files(&arguments.answer)?;
    let session = RunSession::open()?;
    let bounds = session.replays(arguments.time, arguments.timeout);
    let ended = match against {
        None => replay::replay(&scenario, &bounds).map(|replayed| {
            let (scenario, replayed) = together(&scenario, &replayed);
            let analysed = analysed(&scenario, &replayed);
            let page = report::replay_html(&analysed, &command());
            let text = report::replay(&analysed, &style());
            (text, page, serde_json::json!(analysed), replayed.has_measured())
        }),
        Some(other) => replay::replay_both([&scenario, &other], &bounds).map(|[a, b]| {
            let ((scenario, a), (other, b)) = (together(&scenario, &a), together(&other, &b));
            let both = [analysed(&scenario, &a), analysed(&other, &b)];
            let both = ReplayedBoth::new(both, [&a.trials, &b.trials]);
            let page = report::replay_both_html(&both, &command());
            let text = report::replay_both(&both, &style());
            (text, page, serde_json::json!(both), a.has_measured() && b.has_measured())
        }),
    };
    match ended {
        Ok((text, page, document, has_measured)) => {
            give_answer_and_page(&arguments.answer, |_| page, &text, &document, &["flows"])?;
            if !has_measured && !session.is_stopped() {
                let answer = "no message went in the time that was measured";
                return Err(Failure::new("replay", "the scenario", answer, "give it more --time").into());
            }
        }
        Err(TrialError::Interrupted) => {}
        Err(error) => return Err(failure(&error).into()),
    }
    Ok(if session.is_stopped() { Exit::Interrupted } else { Exit::Success })
}

/// What `scenario` is measured in turn with: `against` names mechanisms for its flows, or a file.
fn other(scenario: &Scenario, against: &str) -> Result<Scenario, Error> {
    let is_file = against.contains('/') || against.ends_with(".toml") || !against.contains('=');
    let other = match is_file {
        true => read(Path::new(against))?,
        false => exchanged(scenario, &[against.to_owned()])?,
    };
    replay::check(&other)?;
    Ok(other)
}

/// The same of flows and processes that are alike, together.
fn together(scenario: &Scenario, replayed: &Replayed) -> (Scenario, Replayed) {
    let alike = Alike::from_scenarios(&[scenario]);
    let Replayed { trials, flows, elsewhere, interrupted } = replayed;
    let (trials, flows, elsewhere) = (alike.trials(trials), alike.totals(flows), alike.elsewhere(elsewhere));
    (alike.scenario(scenario), Replayed { trials, flows, elsewhere, interrupted: *interrupted })
}

fn analysed(scenario: &Scenario, replayed: &Replayed) -> AnalysedReplay {
    let Replayed { trials, flows, elsewhere, interrupted } = replayed;
    AnalysedReplay::from_trials(scenario, trials, flows, elsewhere, *interrupted)
}
