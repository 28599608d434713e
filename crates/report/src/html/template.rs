//! What both pages share: the style sheet, and how text comes into a template.

use crate::words::{clean, tight};

pub(crate) const STYLE: &str = include_str!("page.css");

/// `template` with each `{{name}}` replaced. What is put in is not searched again.
pub(crate) fn filled(template: &str, value: impl Fn(&str) -> String) -> String {
    let mut parts = template.split("{{");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |page, part| {
        let (name, rest) = part.split_once("}}").unwrap_or((part, ""));
        page + &value(name) + rest
    })
}

/// `text` as the content of an element.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A cell without the blanks that put it under others, and without the dash for an interval that it does not have.
pub(crate) fn tight_cell(cell: &str) -> String {
    let words = tight(cell);
    words.strip_suffix(" -").map(str::to_owned).unwrap_or(words)
}

/// `words` as a shell would take them.
pub(crate) fn shell_words(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    let word = |word: &String| match clean(word) {
        word if !word.is_empty() && word.chars().all(plain) => word,
        word => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}
