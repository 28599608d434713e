//! Fields and lines of CSV as bytes. What is in them is not known here.

use crate::words::escape;
use std::io;

/// `text` as a field. Control characters are escaped, so that a field is on one line whatever it says. A spreadsheet takes text that
/// begins as a formula for one, and runs it: an apostrophe before it says that it is text, as OWASP advises. A number stays one.
pub(crate) fn field(text: &str) -> String {
    const FORMULA: &[char] = &['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];
    let shown = escape(text.chars());
    let is_formula = shown.trim_start().starts_with(FORMULA) && shown.parse::<f64>().is_err();
    if is_formula { format!("'{shown}") } else { shown }
}

/// What `lines` hold. It is written in one go, for the library hides what kind of error a writer had, and that a reader
/// has gone is no failure.
pub(crate) fn written(lines: ::csv::Writer<Vec<u8>>) -> io::Result<Vec<u8>> {
    lines.into_inner().map_err(::csv::IntoInnerError::into_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_as_a_formula_is_text_and_numbers_are_numbers() {
        for text in ["=1+1", "+1+1", "-1+1", "@SUM(A1)", " =1", "-cmd|' /C calc'!A0", "\u{ff1d}1", "=\"", "-"]
        {
            assert_eq!(field(text), format!("'{text}"));
        }
        for text in ["-1.5", "+2", "-1e-9", "12", "", "pipe", "a=1", "'=1"] {
            assert_eq!(field(text), text);
        }
        // What is escaped begins with a backslash.
        assert_eq!(field("\t=1\r\n"), "\\t=1\\r\\n");
    }
}
