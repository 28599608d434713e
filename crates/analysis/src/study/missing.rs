//! Why there is no number where one was to be: in words, and what would give one.

/// What a number is missing for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// The run ended before it: more time gives it.
    Time,
    /// This run was not asked for it.
    NotAsked,
    /// No run of this host gives it as the host is.
    Host,
}

/// Why a number is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    /// In words.
    pub(super) why: String,
    /// What for.
    pub(super) cause: Cause,
}

impl Missing {
    pub(super) fn time(why: String) -> Self {
        Self { why, cause: Cause::Time }
    }

    pub(super) fn not_asked(why: impl Into<String>) -> Self {
        Self { why: why.into(), cause: Cause::NotAsked }
    }

    pub(super) fn host(why: impl Into<String>) -> Self {
        Self { why: why.into(), cause: Cause::Host }
    }
}

impl From<Missing> for String {
    fn from(missing: Missing) -> Self {
        missing.why
    }
}
