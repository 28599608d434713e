//! Warnings as marks: a sign beside the row, its numbers under the block, its meaning once at the end.
//!
//! A sign always means the same, in every report. What to do about a warning is said in `model`.

use crate::quantity::percent;
use crate::words::clean;
use analysis::missed_settings::MissedSetting;
use model::Record;
use model::units::{format_ns, format_rate, format_time_ratio, three_digits};
use model::warning::Warning;

/// What stands over what [`missed`] says, where it has a place of its own.
pub(crate) const MISSED_HEADING: &str = "settings not as asked or not as usual";

/// What stands for one kind of warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Beside the row; absent where the warning is about the whole run.
    pub(crate) sign: Option<char>,
    /// Before the numbers under a block.
    pub(crate) title: &'static str,
    /// What happened.
    pub(crate) meaning: &'static str,
}

impl Mark {
    /// The sign with a blank, where there is one.
    pub(crate) fn prefix(self) -> String {
        self.sign.map(|sign| format!("{sign} ")).unwrap_or_default()
    }
}

/// The mark of `warning`'s kind.
pub(crate) fn mark(warning: &Warning) -> Mark {
    let (sign, title, meaning) = match warning {
        Warning::Unsettled { .. } => (Some('!'), "unsettled", "the 95% interval is wider than was asked for"),
        Warning::TwoModes { .. } => (Some('m'), "two modes", "the slices fall into a fast and a slow group"),
        Warning::Stalled { .. } => {
            (Some('s'), "stalled", "slices stood still for long, and most of their time is that")
        }
        Warning::Totals { .. } => (
            Some('t'),
            "totals",
            "the time of all slices over all their iterations is far from the median of the slices",
        ),
        Warning::Clamped { .. } => {
            (Some('c'), "clamped", "the kernel granted another value than was asked for")
        }
        Warning::Unusual { .. } => (
            Some('d'),
            "not default",
            "nothing was asked for, and the kernel gave another value than it usually does (see 'ipcmark doctor')",
        ),
        Warning::Elsewhere(_) => (
            Some('e'),
            "elsewhere",
            "an endpoint was moved away from its CPU; slices in which it was do not count",
        ),
        Warning::Preempted { .. } => {
            (Some('p'), "preempted", "an endpoint that spins lost its CPU to another task")
        }
        Warning::InstrumentEffect { .. } => (
            Some('i'),
            "instrument",
            "reading the clock in every iteration changed the iterations, and so their percentiles",
        ),
        Warning::SampledCpuSplit { .. } => (
            None,
            "cpu split",
            "the kernel splits CPU time into user and system time by the scheduler's tick only",
        ),
    };
    Mark { sign, title, meaning }
}

/// The numbers of `warning` for a line that names its mark and its row. `None`: the row itself shows them.
pub(crate) fn numbers(warning: &Warning) -> Option<String> {
    match warning {
        Warning::Unsettled { .. } | Warning::SampledCpuSplit { .. } => None,
        Warning::TwoModes { fast_ns, slow_ns, fast_share, slow_speed } => Some(format!(
            "{} in {:.0}% of slices, else {}{}",
            format_ns(*fast_ns),
            fast_share * 100.0,
            format_ns(*slow_ns),
            slow_speed
                .map_or(String::new(), |speed| format!(", the host then at {} of its speed", percent(speed)))
        )),
        Warning::Stalled { slices, of, longest_ns } => {
            Some(format!("{slices} of {of} slices, the longest for {}", format_ns(*longest_ns)))
        }
        Warning::Totals { total_ns, bytes_per_s, .. } => {
            let rate = bytes_per_s.map(|rate| format!(", {}", format_rate(rate)));
            Some(format!("{} an iteration in all{}", format_ns(*total_ns), rate.unwrap_or_default()))
        }
        Warning::Clamped { name, asked, got } => {
            Some(format!("{} asked for {}, got {}", clean(name), clean(asked), clean(got)))
        }
        Warning::Unusual { name, usual, got } => {
            Some(format!("{} usually {}, here {}", clean(name), clean(usual), clean(got)))
        }
        Warning::Elsewhere(elsewhere) => Some(elsewhere.to_string()),
        Warning::Preempted { per_iteration } => {
            Some(format!("{} times per iteration", three_digits(*per_iteration)))
        }
        Warning::InstrumentEffect { ratio } => Some(format_time_ratio(*ratio)),
    }
}

/// What is to be said of `settings` beside the numbers of their mechanisms.
pub(crate) fn missed(settings: &[MissedSetting]) -> Vec<String> {
    let said = |MissedSetting { mechanism, warning }: &MissedSetting| {
        let numbers = numbers(warning).unwrap_or_default();
        format!("{}: {numbers}; {}", clean(&mechanism.to_string()), warning.advice())
    };
    settings.iter().map(said).collect()
}

/// The signs of `record`, each once.
pub(crate) fn signs(record: &Record) -> String {
    let mut signs = String::new();
    for sign in record.warnings.iter().filter_map(|warning| mark(warning).sign) {
        if !signs.contains(sign) {
            signs.push(sign);
        }
    }
    signs
}
