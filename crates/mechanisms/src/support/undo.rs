//! `SEM_UNDO`: a parameter of whatever uses System V semaphores. Not a mechanism itself.

use crate::contract::TrialContext;
use model::card::Card;
use model::{Domain, Param};

/// `SEM_UNDO`, semop(2).
pub(crate) const UNDO: Param = Param {
    name: "undo",
    summary: "have the kernel undo what a process did when it ends (SEM_UNDO)",
    domain: Domain::Choice(&["off", "on"]),
    default: Some("off"),
};

/// Whether `trial`, of the mechanism or operation with `card`, asks for it.
pub(crate) fn undo(trial: &TrialContext<'_>, card: &Card) -> bool {
    trial.params.text(card, UNDO.name) == Some("on")
}
