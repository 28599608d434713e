//! By what calls of other programs can be recorded. It records none.

use std::fmt;
use std::str::FromStr;

/// By what calls are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordBy {
    /// By programs in the kernel, at its tracepoints.
    Bpf,
    /// By what the tracepoints themselves record.
    Tracepoints,
    /// By stopping threads at their calls.
    Ptrace,
}

impl RecordBy {
    /// The first that may be used is taken.
    pub(super) const ALL: [RecordBy; 3] = [RecordBy::Bpf, RecordBy::Tracepoints, RecordBy::Ptrace];

    /// The name that the command line takes.
    pub fn name(self) -> &'static str {
        match self {
            RecordBy::Bpf => "bpf",
            RecordBy::Tracepoints => "tracepoints",
            RecordBy::Ptrace => "ptrace",
        }
    }
}

impl fmt::Display for RecordBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for RecordBy {
    type Err = model::Invalid;

    fn from_str(text: &str) -> Result<Self, model::Invalid> {
        let found = RecordBy::ALL.into_iter().find(|by| by.name() == text);
        found.ok_or_else(|| {
            model::Invalid::unknown("way of recording", text, RecordBy::ALL.map(RecordBy::name))
        })
    }
}
