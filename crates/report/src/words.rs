//! Text that comes from a results file, made fit to print, and wrapped. It knows nothing of results.
//!
//! A results file may come from anywhere. What it says must neither command a terminal nor push a
//! table out of shape, so that every text passes through [`clean`] before it is laid out.

use textwrap::core::{Word, display_width};
use textwrap::{Options, WordSeparator, WordSplitter};

/// More characters of one text than this are cut off with an ellipsis. The JSON document has them all.
const LONGEST: usize = 400;

/// `text` with every character that takes no column escaped, cut to a length that fits a report.
///
/// Control characters take no column, and neither do the marks that reverse or hide text.
pub(crate) fn clean(text: &str) -> String {
    let mut shown = escape(text.chars().take(LONGEST));
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

/// `characters` with every one that takes no column escaped.
pub(crate) fn escape(characters: impl Iterator<Item = char>) -> String {
    let mut shown = String::new();
    for character in characters {
        if hidden(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Whether `character` takes no column, or ends a line.
pub(crate) fn hidden(character: char) -> bool {
    let separates_lines = matches!(character, '\u{2028}' | '\u{2029}');
    separates_lines || width(character.encode_utf8(&mut [0; 4])) == 0
}

/// How many columns `text` takes.
pub(crate) fn width(text: &str) -> usize {
    display_width(text)
}

/// `text` on lines of at most `width` columns: the first opens with `first`, every other with `other`.
pub(crate) fn wrap(text: &str, width: usize, first: &str, other: &str) -> Vec<String> {
    let options = options(width).initial_indent(first).subsequent_indent(other);
    textwrap::wrap(text, options).into_iter().map(String::from).collect()
}

/// The name of a row on lines of at most `width` columns, broken where one parameter ends and the next begins.
pub(crate) fn wrap_name(name: &str, width: usize) -> Vec<String> {
    let options = options(width).subsequent_indent("  ").word_separator(WordSeparator::Custom(parameters));
    textwrap::wrap(name, options).into_iter().map(String::from).collect()
}

/// A hyphen is part of a name here: no line is broken after one.
fn options<'a>(width: usize) -> Options<'a> {
    Options::new(width).word_splitter(WordSplitter::NoHyphenation)
}

/// The pieces of `row:name=value,name=value`, each with the mark that ends it.
fn parameters(name: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    Box::new(name.split_inclusive([':', ',', ' ']).map(Word::from))
}

/// `text` with runs of blanks made one: a cell in running text.
pub(crate) fn tight(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `text` cut to `columns` with an ellipsis.
pub(crate) fn clip(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut clipped = String::new();
    for character in text.chars() {
        if width(&clipped) + width(character.encode_utf8(&mut [0; 4])) >= columns {
            break;
        }
        clipped.push(character);
    }
    clipped + "…"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_takes_no_column_is_shown_escaped() {
        assert_eq!(
            clean("a\u{1b}[31m\n\u{202e}b\u{2028}c\u{300}"),
            "a\\u{1b}[31m\\n\\u{202e}b\\u{2028}c\\u{300}"
        );
        assert_eq!(clean("µs ± × 漢"), "µs ± × 漢");
        assert!(clean(&"x".repeat(10_000)).chars().count() <= LONGEST + 1);
    }

    #[test]
    fn names_break_between_parameters() {
        assert_eq!(
            wrap_name("unix-stream:buffer=1M,wait=spin-then-block", 22),
            ["unix-stream:buffer=1M,", "  wait=spin-then-block"]
        );
        assert_eq!(wrap_name("pipe", 24), ["pipe"]);
    }

    proptest! {
        #[test]
        fn lines_keep_their_width(text in any::<String>(), columns in 12..100usize) {
            let clean = clean(&text);
            for line in wrap(&clean, columns, "  a ", "    ").into_iter().chain(wrap_name(&clean, columns)) {
                prop_assert!(width(&line) <= columns, "{line:?}");
            }
            prop_assert!(width(&clip(&clean, columns)) <= columns);
        }
    }
}
