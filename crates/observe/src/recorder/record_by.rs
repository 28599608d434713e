//! By what calls of other programs can be recorded. It records none.

use model::invalid::{Invalid, variant_named};
use std::str::FromStr;
use strum::{Display, VariantArray};

/// By what calls are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, VariantArray)]
#[strum(serialize_all = "kebab-case")]
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
    pub(super) const ALL: &[RecordBy] = RecordBy::VARIANTS;
}

impl FromStr for RecordBy {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        variant_named("way of recording", text)
    }
}
