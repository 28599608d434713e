//! `ipcmark explain`: from the request to the cases, the trials and the explanations.

use crate::cli::ExplainArguments;
use crate::cmd::run::measure_and_show;
use crate::drivers;
use crate::exit::{Error, Exit};
use crate::explanation::{explain_cases, unexplainable};
use crate::explanation_against::{explain_pairs, pairs};
use crate::layers;
use crate::planning::{nothing_left, plan_here, plan_some, requested};
use crate::request::{Against, ExplainRequest};
use crate::session::RunSession;
use harness::clock::Timer;
use harness::coordinator::other_build;
use model::{Case, Invalid};
use std::path::Path;

/// Explains the cases that are asked for.
pub fn run(arguments: ExplainArguments) -> Result<Exit, Error> {
    drivers::register()?;
    if layers::are_asked_for(&arguments.what) {
        return measure_and_show(&layers::request(arguments)?, Timer::start());
    }
    let request = ExplainRequest::new(arguments)?;
    let host = harness::host::facts::read(Path::new("/"));
    let plan = plan_some(plan_here(&request.blocks, request.endpoints, &host.topology))?;
    let plan = match request.inject {
        Some(inject) => plan.injected(inject),
        None => plan,
    };
    let cases: Vec<Case> = requested(&plan).cloned().collect();
    if cases.is_empty() {
        return Err(nothing_left(&plan.dropped).into());
    }
    if let Some(invalid) = cases.iter().find_map(unexplainable) {
        return Err(invalid.into());
    }
    if let Some(Against::Build(program)) = &request.against {
        other_build::check(program)??;
        let pairs: Vec<[Case; 2]> = cases.into_iter().map(|case| [case.clone(), case]).collect();
        return explain_pairs(&pairs, Some(program), &request.explanation, &RunSession::open()?);
    }
    if let Some(Against::Cases(against)) = &request.against {
        let against = plan_some(plan_here(against, request.endpoints, &host.topology))?;
        let pairs = pairs(&cases, &requested(&against).cloned().collect::<Vec<Case>>());
        if pairs.is_empty() {
            return Err(Invalid::new(
                "no two cases differ in the mechanism, the size or an injected delay, and in nothing else",
                "name another mechanism, or one size, with --against; 'ipcmark run --dry-run' lists cases",
            )
            .into());
        }
        return explain_pairs(&pairs, None, &request.explanation, &RunSession::open()?);
    }
    let session = RunSession::open()?;
    explain_cases(&cases, &request.explanation, &host, &session)
}
