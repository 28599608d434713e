//! Numbers and reasons of a study in words.

use model::estimate::Estimate;
use model::units::{Size, Unit, format_ns, format_rate, three_digits};

/// `value`, which is counted in `unit`.
pub(super) fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Ns => format_ns(value),
        Unit::BytesPerS => format_rate(value),
        Unit::Bytes if value >= 0.0 && value.fract() == 0.0 && value < 1e18 => Size(value as u64).to_string(),
        Unit::Bytes => format!("{} bytes", three_digits(value)),
        Unit::Number => three_digits(value),
    }
}

/// `estimate` with its interval, if it has one.
pub(super) fn with_interval(estimate: Estimate, unit: Unit) -> String {
    let median = number(estimate.median, unit);
    match estimate.interval {
        Some((low, high)) => format!("{median} ({} to {})", number(low, unit), number(high, unit)),
        None => median,
    }
}

/// Adds `note` to `notes` unless it is there.
pub(super) fn note_once(notes: &mut Vec<String>, note: String) {
    if !notes.contains(&note) {
        notes.push(note);
    }
}

/// What `text` says without the case of which it says that.
pub(super) fn reason_of(text: &str) -> &str {
    text.split_once(": ").map_or(text, |(_, reason)| reason)
}

/// `reasons`, where those that differ only in their case are one: `posix-mq latency 16K and 2 more: its largest message is
/// 8192 bytes`.
pub(super) fn grouped(reasons: Vec<String>) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for text in reasons {
        let (case, reason) =
            text.split_once(": ").map_or((text.as_str(), ""), |(case, reason)| (case, reason));
        match groups.iter_mut().find(|(known, _)| known == reason && !reason.is_empty()) {
            Some((_, cases)) => cases.push(case.to_owned()),
            None => groups.push((reason.to_owned(), vec![case.to_owned()])),
        }
    }
    let line = |(reason, cases): (String, Vec<String>)| match (cases.as_slice(), reason.as_str()) {
        ([case], "") => case.clone(),
        ([case], reason) => format!("{case}: {reason}"),
        (cases, reason) => format!("{} and {} more: {reason}", cases[0], cases.len() - 1),
    };
    groups.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_differ_only_in_their_case_are_one() {
        let reasons = ["a: too large", "b: too large", "c", "d: failed"].map(str::to_owned).to_vec();
        assert_eq!(grouped(reasons), ["a and 1 more: too large", "c", "d: failed"]);
    }
}
