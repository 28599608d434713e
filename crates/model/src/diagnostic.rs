//! What is wrong in a document, and where: with line and column where its text is at hand.
//!
//! It knows places in TOML, not what should stand there.

use crate::invalid::Invalid;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// From the outermost table to what is wrong.
    pub place: Vec<PathStep>,
    /// What is wrong with it.
    pub invalid: Invalid,
}

/// One step of the way into a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// To the entry of this name.
    Key(String),
    /// To this item of a list, from 0.
    Item(usize),
}

impl From<&str> for PathStep {
    fn from(key: &str) -> Self {
        PathStep::Key(key.to_owned())
    }
}

impl From<String> for PathStep {
    fn from(key: String) -> Self {
        PathStep::Key(key)
    }
}

impl From<usize> for PathStep {
    fn from(at: usize) -> Self {
        PathStep::Item(at)
    }
}

impl From<Invalid> for Diagnostic {
    fn from(invalid: Invalid) -> Self {
        Self { place: Vec::new(), invalid }
    }
}

impl Diagnostic {
    /// What is wrong and what to give instead, at the place that [`under`](Self::under) will say.
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Invalid::new(problem, remedy).into()
    }

    /// The same diagnostic, one step further out.
    #[must_use]
    pub fn under(mut self, step: impl Into<PathStep>) -> Self {
        self.place.insert(0, step.into());
        self
    }

    /// What is wrong of something that no document says.
    pub(crate) fn without_place(self) -> Invalid {
        self.invalid
    }

    /// The refusal of the TOML document `text`, which people know as a `document` ("suite"), with the line that is wrong.
    pub fn in_text(self, document: &str, text: &str) -> Invalid {
        let span = span(text, &self.place).unwrap_or(0..0);
        at(document, text, span, self.invalid)
    }
}

/// The refusal of the TOML document `text`, a `document`, by its parser. `remedy` is for errors that have none of their own.
pub(crate) fn unreadable(document: &str, text: &str, error: &toml::de::Error, remedy: &str) -> Invalid {
    // What our own types refuse has its remedy on the line below.
    let invalid = match error.message().split_once("\n  ") {
        Some((problem, remedy)) => Invalid::new(problem, remedy),
        None => Invalid::new(error.message(), remedy),
    };
    at(document, text, error.span().unwrap_or(0..0), invalid)
}

/// Where `place` stands in `text`, as far in as the text has it.
fn span(text: &str, place: &[PathStep]) -> Option<Range<usize>> {
    let document = DeTable::parse(text).ok()?;
    let mut steps = place.iter();
    let Some(PathStep::Key(first)) = steps.next() else { return Some(document.span()) };
    let mut found = document.get_ref().get(first.as_str())?;
    for step in steps {
        let next = match (step, found.get_ref()) {
            (PathStep::Key(key), DeValue::Table(table)) => table.get(key.as_str()),
            (PathStep::Item(at), DeValue::Array(items)) => items.get(*at),
            _ => None,
        };
        let Some(next) = next else { break };
        found = next;
    }
    Some(found.span())
}

/// `invalid` with the line of `text` at which `span` begins.
fn at(document: &str, text: &str, span: Range<usize>, invalid: Invalid) -> Invalid {
    let start = floor_boundary(text, span.start);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line = text[line_start..].lines().next().unwrap_or_default();
    let number = text[..start].matches('\n').count() + 1;
    let column = text[line_start..start].chars().count();
    let end = floor_boundary(text, span.end.clamp(start, line_start + line.len().max(start - line_start)));
    let marked = text[start..end].chars().count().max(1);

    // A line can be as long as the file: only what surrounds the place is shown.
    const SHOWN: usize = 100;
    let from = column.saturating_sub(SHOWN / 2);
    let shown: String = line.chars().skip(from).take(SHOWN).map(visible).collect();
    let marks = "^".repeat(marked.min(SHOWN - (column - from)));
    let margin = " ".repeat(number.to_string().len());
    let Invalid { problem, remedy } = invalid;
    let problem = format!(
        "the {document} is not valid at line {number}, column {}\n{margin} |\n{number} | {shown}\n{margin} | {}{marks}\n{}",
        column + 1,
        " ".repeat(column - from),
        problem.chars().map(|c| if c == '\n' { c } else { visible(c) }).collect::<String>(),
    );
    Invalid::new(problem, remedy)
}

fn visible(c: char) -> char {
    if c.is_control() { '?' } else { c }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "a = 1\n[b]\nc = [\"x\", \"yy\"]\n[[d]]\ne = { f = 'µ', g = 2 }\n";

    fn said(place: &[PathStep]) -> String {
        Diagnostic { place: place.to_vec(), invalid: Invalid::new("bad", "good") }
            .in_text("suite", TEXT)
            .problem
    }

    #[test]
    fn a_place_is_a_line_and_a_column() {
        for (place, line, column, marked) in [
            (vec!["a".into()], 1, 5, "1"),
            (vec!["b".into(), "c".into(), 1.into()], 3, 11, "\"yy\""),
            (vec!["d".into(), 0.into(), "e".into(), "g".into()], 5, 20, "2"),
            // What is missing is shown where it should stand.
            (vec!["b".into(), "z".into()], 2, 1, "[b]"),
        ] {
            let said = said(&place);
            let start = format!("the suite is not valid at line {line}, column {column}\n");
            assert!(said.starts_with(&start), "{said}");
            let mark = format!("| {}{}\nbad", " ".repeat(column - 1), "^".repeat(marked.len()));
            assert!(said.contains(&mark), "{said}\n{mark}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,300}", from in 0..400usize, long in 0..400usize) {
            at("suite", &text, from..from + long, Invalid::new("", ""));
            Diagnostic::new("", "").under(1).under("a").in_text("suite", &text);
        }
    }
}
