//! The last thing that happens to text before a terminal may get it. Reports escape what they take from files where they lay it out;
//! this is for all text alike: names of files, errors of parsers, what the kernel and other programs say.

use std::borrow::Cow;
use std::fmt::Write;

/// What text may have of a terminal's commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commands {
    /// None.
    None,
    /// Colours: `ESC [ … m`.
    Colours,
}

/// `text` with each character that commands a terminal, or turns the order in which text is shown, written as its number. Line ends
/// and tabs stay.
pub fn visible(text: &str, allowed: Commands) -> Cow<'_, str> {
    if !text.contains(is_command) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(is_command) {
        let (plain, from) = rest.split_at(at);
        shown.push_str(plain);
        let colour = if allowed == Commands::Colours { colour_bytes(from) } else { 0 };
        let mut characters = from.chars();
        if colour > 0 {
            shown.push_str(&from[..colour]);
            rest = &from[colour..];
        } else if let Some(command) = characters.next() {
            // As JSON writes it, so that JSON that has it stays what it is.
            let _ = write!(shown, "\\u{:04x}", u32::from(command));
            rest = characters.as_str();
        }
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

fn is_command(c: char) -> bool {
    // The second: marks and overrides of the direction of writing.
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The length of the colour with which `text` begins; 0 if it begins with none.
fn colour_bytes(text: &str) -> usize {
    let Some(inner) = text.strip_prefix("\u{1b}[") else { return 0 };
    let numbers = inner.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    if inner.as_bytes().get(numbers) == Some(&b'm') { 2 + numbers + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_are_shown_as_numbers() {
        let text = "a\u{1b}]0;title\u{7}\u{9b}31m\r\n\tµ\u{202e}漢\u{1b}[1;31mred\u{1b}[2J";
        assert_eq!(
            visible(text, Commands::None),
            "a\\u001b]0;title\\u0007\\u009b31m\\u000d\n\tµ\\u202e漢\\u001b[1;31mred\\u001b[2J"
        );
        assert_eq!(
            visible(text, Commands::Colours),
            "a\\u001b]0;title\\u0007\\u009b31m\\u000d\n\tµ\\u202e漢\u{1b}[1;31mred\\u001b[2J"
        );
        assert!(matches!(visible("plain\n", Commands::None), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn no_text_has_commands_afterwards(text in any::<String>(), mixed in "[\\x00-\\x1f\\x7f-\\x9f\\[;0-9mA-Z\u{202e}漢]{0,80}") {
            for text in [text, mixed] {
                let shown = visible(&text, Commands::None);
                prop_assert!(!shown.contains(is_command), "{shown:?}");
                let colours = visible(&text, Commands::Colours);
                let left = colours.split("\u{1b}[").skip(1);
                // After each escape that was left: numbers, and the letter of colours.
                for after in left {
                    let end = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
                    prop_assert!(end.starts_with('m'), "{after:?}");
                }
                prop_assert!(!colours.replace("\u{1b}[", "").contains(is_command), "{colours:?}");
                prop_assert_eq!(visible(&shown, Commands::None), shown.clone());
            }
        }
    }
}
