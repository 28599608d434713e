//! What a rule finds on a host.

use serde::Serialize;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Results vary, or are of something else than they claim.
    Spoils,
    /// Something cannot be measured here, or only with a reservation.
    Limits,
    /// As it should be, and worth knowing.
    Fine,
}

/// One thing about the host that bears on measurements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// What it is about, in one word that does not change: `governor`.
    pub subject: String,
    /// What was found.
    pub what: String,
    /// What it does to measurements.
    pub why: String,
    /// What to type to mend it; absent where no one command does.
    pub command: Option<String>,
}

impl Finding {
    pub(super) fn new(
        severity: Severity,
        subject: &str,
        what: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self { severity, subject: subject.to_owned(), what: what.into(), why: why.into(), command: None }
    }

    pub(super) fn mended_by(self, command: impl Into<Option<String>>) -> Self {
        Self { command: command.into(), ..self }
    }
}
