//! Why a replay has no result, as a refusal. Replays are `harness`'s work.

use harness::coordinator::trial_error::TrialError;
use sys::Failure;

/// Why a replay has no result.
pub fn failure(error: &TrialError) -> Failure {
    match error {
        TrialError::Coordinator(failure) => failure.clone(),
        TrialError::Endpoint(error) => {
            let error = error.clone();
            Failure::new(error.operation, error.object, error.answer, error.remedy)
        }
        TrialError::Silent { limit } => Failure::new(
            "replay",
            "the scenario",
            format!("nothing happened for {:.1} s, and its processes were killed", limit.as_secs_f64()),
            "give --timeout a longer time if a message takes longer than that",
        ),
        other => Failure::new("replay", "the scenario", other.to_string(), "run it again"),
    }
}
