//! The one error of everything that a person types or a file says: what is wrong, and what to do next.
//!
//! It is not for what the kernel answers; see `sys::Failure`.

use std::fmt;
use strum::VariantArray;

/// A refused input. Displays as `what is wrong: what to do next`; the binary exits with code 2.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Invalid {
    /// What was given and why it is refused.
    pub problem: String,
    /// What to give instead.
    pub remedy: String,
}

/// How many times as long as a name its misspelling may be.
const LONGEST_MISSPELLING: usize = 4;

/// A longer list of names says less than its beginning.
const MOST_LISTED: usize = 16;

impl Invalid {
    /// A refusal of `problem`, to be mended by `remedy`.
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into() }
    }

    /// A refusal of the name `given`, with the nearest of `known` as a suggestion.
    pub fn unknown<'a>(noun: &str, given: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        Self::unknown_of(noun, given, known.into_iter().collect(), "")
    }

    /// The same of a mechanism, or of what else may stand in its place.
    pub fn unknown_mechanism<'a>(noun: &str, given: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        Self::unknown_of(noun, given, known.into_iter().collect(), ", which 'ipcmark list' shows")
    }

    /// The same; `shown` says where the others are of a list that is too long.
    fn unknown_of(noun: &str, given: &str, known: Vec<&str>, shown: &str) -> Self {
        let (first, others) = known.split_at(known.len().min(MOST_LISTED));
        let remedy = match nearest(given, known.iter().copied()) {
            _ if known.is_empty() => "there are none".to_owned(),
            Some(name) => format!("did you mean '{name}'?"),
            None if others.is_empty() => format!("known: {}", first.join(", ")),
            None => format!("known: {} and {} more{shown}", first.join(", "), others.len()),
        };
        Self::new(format!("unknown {noun} '{}'", printable(given)), remedy)
    }
}

/// The variant of an enumeration that is written as `text`; `noun` is what the enumeration is of.
pub fn variant_named<T: fmt::Display + Copy + VariantArray>(noun: &str, text: &str) -> Result<T, Invalid> {
    let names: Vec<String> = T::VARIANTS.iter().map(T::to_string).collect();
    let found = names.iter().position(|name| name == text).map(|at| T::VARIANTS[at]);
    found.ok_or_else(|| Invalid::unknown(noun, text, names.iter().map(String::as_str)))
}

/// The one of `known` that `given` may be a misspelling of.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // None is a misspelling of a text many times as long, and comparing takes a time in proportion to both lengths.
    let known = known.into_iter().filter(|name| given.len() <= LONGEST_MISSPELLING * name.len());
    let alike = known.map(|name| (strsim::jaro_winkler(given, name), name));
    let alike = alike.filter(|(likeness, _)| *likeness > 0.7);
    alike.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  {}", self.problem, self.remedy)
    }
}

/// `text` cut to a length that fits a message, with control characters escaped, so that input
/// quoted in an error can neither flood nor command a terminal.
pub fn printable(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut out: String = text.chars().take(LONGEST).flat_map(escape).collect();
    if text.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    out
}

fn escape(c: char) -> Vec<char> {
    if c.is_control() { c.escape_default().collect() } else { vec![c] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_miss_is_suggested_and_a_far_one_is_not() {
        let client = Invalid::unknown("mechanism", "unix-steam", ["pipe", "unix-stream"]);
        assert!(client.remedy.starts_with("did you mean 'unix-stream'?"), "{client}");
        let server = Invalid::unknown("mechanism", "zzz", ["pipe", "unix-stream"]);
        assert!(server.remedy.starts_with("known:"), "{server}");
        let flood = Invalid::unknown("mechanism", &"pipe".repeat(5), ["pipe", "unix-stream"]);
        assert!(flood.remedy.starts_with("known:"), "{flood}");
    }

    #[test]
    fn a_long_list_is_cut_and_only_mechanisms_are_said_to_be_in_the_list() {
        let names: Vec<String> = (0..20).map(|nth| format!("name-{nth}")).collect();
        let names = || names.iter().map(String::as_str);
        let case = Invalid::unknown("case", "zzz", names());
        assert!(case.remedy.ends_with("name-15 and 4 more"), "{case}");
        let mechanism = Invalid::unknown_mechanism("mechanism", "zzz", names());
        assert!(mechanism.remedy.ends_with("and 4 more, which 'ipcmark list' shows"), "{mechanism}");
    }

    #[test]
    fn control_characters_and_floods_are_defused() {
        assert_eq!(printable("a\u{1b}[31m"), "a\\u{1b}[31m");
        assert!(printable(&"x".repeat(10_000)).chars().count() < 70);
    }
}
