//! Retired words: one thing has one word, in prose, messages and names alike. The list is in `retired.rs`, and for
//! people in docs/glossary.md.
//!
//! Text and names are read as a sequence of words: `far_end`, `FarEnd` and "far end" are the same two. That is not
//! grammar: what is ordinary English is told from a retired noun by the words around it.

use super::breach::Breach;
use super::retired::{PHRASES, Phrase, TYPES_AND_FUNCTIONS};
use super::source_file::SourceFile;
use proc_macro2::{TokenStream, TokenTree};

/// Files that must say retired words, and those that are made from other files.
const EXEMPT: [&str; 6] = [
    "docs/glossary.md",
    "docs/mechanisms.md",
    "xtask/src/tidy.rs",
    "xtask/src/tidy/",
    "crates/report/src/page/plotly",
    // The name of a function of Playwright.
    "python/tests/viewing.py",
];

/// Every retired word, with its place.
pub fn check(sources: &[SourceFile]) -> Vec<Breach> {
    let phrases: Vec<Pattern> = PHRASES.iter().map(Pattern::new).collect();
    let is_exempt = |source: &&SourceFile| EXEMPT.iter().any(|name| source.name.starts_with(name));
    let mut breaches = Vec::new();
    for source in sources.iter().filter(|source| !is_exempt(source)) {
        breaches.extend(in_words(source, &phrases));
        breaches.extend(in_identifiers(source));
    }
    breaches
}

/// A word of a text, in lower case, with its line; line 0 is the file's name.
#[derive(Debug, PartialEq, Eq)]
struct Word {
    text: String,
    line: usize,
    /// Whether something stands between it and the word before that parts a phrase, as a full stop does.
    apart: bool,
}

/// The words of `text`, the first line of which has the number `line`. Underscores and capitals within a name part words.
fn words(text: &str, line: usize) -> Vec<Word> {
    const JOIN: [char; 11] = [' ', '\t', '_', '-', '/', '!', '#', '*', '`', '\'', '’'];
    let mut words: Vec<Word> = Vec::new();
    let mut apart = true;
    for (at, line_text) in text.lines().enumerate() {
        // A word goes on where a letter follows a letter, unless a capital follows a small letter.
        let mut before = None;
        for letter in line_text.chars() {
            let goes_on = match before {
                Some(previous) => !(char::is_lowercase(previous) && letter.is_uppercase()),
                None => false,
            };
            before = letter.is_alphabetic().then_some(letter);
            match (before, goes_on, words.last_mut()) {
                (None, ..) => apart |= !JOIN.contains(&letter),
                (Some(_), true, Some(word)) => word.text.extend(letter.to_lowercase()),
                (Some(_), ..) => {
                    words.push(Word {
                        text: letter.to_lowercase().collect(),
                        line: line + at,
                        apart: std::mem::take(&mut apart),
                    });
                }
            }
        }
    }
    words
}

/// A retired phrase and the phrases in which it is ordinary English, each as its words.
struct Pattern<'a> {
    phrase: &'a Phrase,
    retired: Vec<Vec<&'a str>>,
    ordinary: Vec<Vec<&'a str>>,
}

impl<'a> Pattern<'a> {
    fn new(phrase: &'a Phrase) -> Self {
        let split = |texts: &'a [&str]| texts.iter().map(|text| text.split(' ').collect()).collect();
        Self { phrase, retired: split(phrase.retired), ordinary: split(phrase.ordinary) }
    }

    /// The retired phrase that begins at `at` in `words`, unless it stands in an ordinary one.
    fn at(&self, words: &[Word], at: usize) -> Option<String> {
        let is_phrase = |words: &[Word]| words[1..].iter().all(|word| !word.apart);
        let is_found =
            |retired: &&Vec<&str>| is_at(words, at, retired) && is_phrase(&words[at..at + retired.len()]);
        let retired = self.retired.iter().find(is_found)?;
        let is_ordinary = self.ordinary.iter().any(|ordinary| {
            let begins = ordinary.windows(retired.len()).enumerate().filter(|(_, part)| part == retired);
            begins.into_iter().any(|(within, _)| at >= within && is_at(words, at - within, ordinary))
        });
        (!is_ordinary).then(|| retired.join(" "))
    }
}

fn is_at(words: &[Word], at: usize, phrase: &[&str]) -> bool {
    words.get(at..at + phrase.len()).is_some_and(|words| words.iter().zip(phrase).all(|(a, b)| a.text == *b))
}

fn in_words(source: &SourceFile, phrases: &[Pattern<'_>]) -> Vec<Breach> {
    let name = source.name.rsplit('/').next().unwrap_or_default();
    let mut breaches = Vec::new();
    for words in [words(name, 0), words(&source.text, 1)] {
        for at in 0..words.len() {
            let found =
                phrases.iter().find_map(|pattern| Some((pattern.at(&words, at)?, pattern.phrase.instead)));
            if let Some((retired, instead)) = found {
                let line = words[at].line;
                breaches.push(breach(source, (line > 0).then_some(line), &retired, instead));
            }
        }
    }
    breaches
}

fn in_identifiers(source: &SourceFile) -> Vec<Breach> {
    let Some(tokens) = source.is_rust().then(|| source.text.parse().ok()).flatten() else {
        return Vec::new();
    };
    let mut names = Vec::new();
    type_and_function_names(tokens, &mut names);
    let retired = names.into_iter().filter_map(|(name, line)| {
        let (_, instead) = TYPES_AND_FUNCTIONS.iter().find(|(retired, _)| *retired == name)?;
        Some(breach(source, Some(line), &name, instead))
    });
    retired.collect()
}

fn breach(source: &SourceFile, line: Option<usize>, retired: &str, instead: &str) -> Breach {
    Breach::new(source, line, format!("retired word \"{retired}\": say {instead}"))
}

/// The names in `tokens` that functions are given and those that types and constants have, with their lines. What
/// comments and strings say, and how variables are called, is not among them.
fn type_and_function_names(tokens: TokenStream, names: &mut Vec<(String, usize)>) {
    let mut after_fn = false;
    for token in tokens {
        let mut is_fn = false;
        match token {
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                is_fn = name == "fn";
                if after_fn || name.starts_with(char::is_uppercase) {
                    names.push((name, ident.span().start().line));
                }
            }
            TokenTree::Group(group) => type_and_function_names(group.stream(), names),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        after_fn = is_fn;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<String> {
        check(&[SourceFile::new(name, text)]).iter().map(ToString::to_string).collect()
    }

    fn count(text: &str) -> usize {
        found("docs/page.md", text).len()
    }

    #[test]
    fn a_finding_says_where_what_and_what_instead() {
        assert_eq!(
            found("docs/page.md", "The client\nhas no patience."),
            ["docs/page.md:2: retired word \"patience\": say timeout, --timeout"]
        );
    }

    #[test]
    fn words_are_found_in_prose_names_options_and_file_names() {
        for text in ["the far end", "far_end", "FarEnd", "FAR_END", "--far-end", "so\n/// the far", "far's"] {
            assert_eq!(count(text), 1, "{text}");
        }
        assert_eq!(found("crates/a/src/companion.rs", "").len(), 1);
        assert_eq!(found("crates/a/src/a.rs", "const GAP: u8 = 1; // a gap").len(), 2);
        assert_eq!(found("crates/a/src/a.rs", "const A: &str = \"give it back, far\";").len(), 1);
    }

    #[test]
    fn ordinary_english_stays() {
        for text in [
            "as far as the kernel",
            "so far",
            "how far apart",
            "each in turn",
            "it turns into",
            "in_turn",
            "return",
            "part of a message",
            "was seen",
            "look up",
            "looks like",
            "a table of results",
            "a table",
            "farther",
            "at the end of the file",
            "gapless",
            "produces",
            "turned off",
            "which consumes",
            "told apart",
            "rows",
            "if whole { part }",
            "of each. Part two",
            "gap: 1rem",
        ] {
            assert_eq!(count(text), 0, "{text}");
        }
    }

    #[test]
    fn retired_nouns_do_not() {
        for text in [
            "an iteration of the near and the far",
            "a turn",
            "of five turns",
            "row of the table",
            "table of mechanisms",
            "launches",
            "trials that nobody looked at",
            "what was looked at",
            "each look",
            "what the probe showed",
            "it lends its memory",
            "the ring's soil",
            "any Unix machine",
            "both ends",
            "companions",
        ] {
            assert!(count(text) > 0, "{text}");
        }
    }

    #[test]
    fn names_are_retired_as_names_alone() {
        assert_eq!(found("crates/a/src/a.rs", "fn told() {}").len(), 1);
        assert_eq!(found("crates/a/src/a.rs", "fn f(told: u8) { drawn; }").len(), 0, "variables");
        assert_eq!(found("crates/a/src/a.rs", "//! Nobody is told. \"told\"\nfn tell() {}").len(), 0);
        assert_eq!(
            found("crates/a/src/a.rs", "trait Lends { fn hand_over(); }").len(),
            3,
            "Lends is a word, too"
        );
    }

    #[test]
    fn the_list_of_people_and_this_list_are_exempt() {
        assert!(found("docs/glossary.md", "far").is_empty());
        assert!(found("xtask/src/tidy/retired.rs", "// far").is_empty());
    }
}
