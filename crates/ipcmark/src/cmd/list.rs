//! `ipcmark list`: every mechanism and operation of the registry, and whether it works on this host.

use crate::cli::ListArguments;
use crate::exit::{Error, Exit};
use crate::output::{show_answer, style};
use mechanisms::absent::{ABSENT, Absent, absent};
use mechanisms::registry::{self, CARDS};
use model::card::{Card, Framing, Support};
use model::need::is_offered;
use model::{Invalid, Params};
use report::Format;
use serde_json::Value;

/// Lists what is named in full, or everything with a line each.
pub fn run(arguments: ListArguments) -> Result<Exit, Error> {
    let named = arguments.names.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?;
    let (text, entries) = match named.is_empty() {
        true => (short(), CARDS.iter().map(Entry::Card).collect()),
        false => (named.iter().map(Entry::full).collect::<Vec<_>>().join("\n"), named),
    };
    let document: Value = match arguments.answer.format {
        Format::Table | Format::Markdown => Value::Null,
        Format::Csv | Format::Json => entries.iter().map(Entry::json).collect(),
    };
    show_answer(arguments.answer.format, &text, &document, &[])?;
    Ok(Exit::Success)
}

/// What can be listed.
enum Entry {
    Card(&'static Card),
    Absent(&'static Absent),
}

impl Entry {
    fn full(&self) -> String {
        match self {
            Entry::Card(card) => full(card),
            Entry::Absent(absent) => full_absent(absent),
        }
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Entry::Card(card) => serde_json::json!({ "card": card, "support": support(card) }),
            Entry::Absent(absent) => serde_json::json!({ "absent": absent }),
        }
    }
}

fn find(name: &str) -> Result<Entry, Invalid> {
    let found = registry::card(name).map(Entry::Card).or_else(|| absent(name).map(Entry::Absent));
    found.ok_or_else(|| {
        Invalid::unknown_mechanism("mechanism or operation", name, CARDS.iter().map(|card| card.name))
    })
}

/// Whether what `card` describes works here with every parameter at its default.
fn support(card: &Card) -> Support {
    registry::probe(card.name, &Params::default()).unwrap_or(Support::UNLIMITED)
}

fn short() -> String {
    let longest = CARDS.iter().map(|card| card.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for card in CARDS {
        text += &format!("{:longest$}  {}\n", card.name, card.summary);
        if let Support::No { reason, remedy } = support(card) {
            text += &format!("{:longest$}  not here: {reason}; {remedy}\n", "");
        }
    }
    text += "\nNot measured:\n";
    for absent in ABSENT {
        text += &format!("{:longest$}  {}; see {}\n", absent.name, absent.why, absent.instead);
    }
    text + "\n`ipcmark list NAME` shows one in full: its parameters, limits and manual pages.\n"
}

fn full(card: &Card) -> String {
    let mut text = format!("{}: {}\n", card.name, card.summary);
    let mut line = |label: &str, value: &str| text += &field(label, value);
    line("kind", &kebab(&card.kind));
    line(
        "works here",
        &match support(card) {
            Support::Yes { largest_bytes: Some(largest) } => {
                format!("yes, with messages of up to {largest} bytes")
            }
            Support::Yes { largest_bytes: None } => "yes".to_owned(),
            Support::No { reason, remedy } => format!("no: {reason}; {remedy}"),
        },
    );
    line("framing", &kebab(&card.framing));
    line("reach", &kebab(&card.reach));
    if card.framing == Framing::Message {
        line("empty messages", if card.empty { "yes" } else { "no" });
    }
    line("carries descriptors", if card.fds { "yes" } else { "no" });
    if is_offered(card) {
        line("peer's death seen", if card.hangup { "yes" } else { "no" });
        card.semantics.lines().iter().for_each(|(label, words)| line(label, words));
    }
    line("workloads", &card.workloads.iter().map(|w| w.name()).collect::<Vec<_>>().join(", "));
    line("limits", card.limits);
    if !card.man.is_empty() {
        line("see", &card.man.join(", "));
    }
    for param in card.params {
        let default = param.default.map_or("the kernel's".to_owned(), ToOwned::to_owned);
        line(&format!("{}={}", param.name, param.domain), &format!("{} [default: {default}]", param.summary));
    }
    text
}

fn full_absent(absent: &Absent) -> String {
    let mut text = format!("{}: {}\n", absent.name, absent.summary);
    let mut line = |label: &str, value: &str| text += &field(label, value);
    line("kind", "not measured");
    if let Some(is_here) = absent.is_here() {
        line("is here", if is_here { "yes" } else { "no" });
    }
    line("why", absent.why);
    line("see instead", absent.instead);
    text
}

/// `label` and `value` in two columns; a long label has a line of its own, a long value is wrapped.
fn field(label: &str, value: &str) -> String {
    const LABEL: usize = 22;
    let mut lines = vec![String::new()];
    for word in value.split(' ') {
        let last = lines.len() - 1;
        if !lines[last].is_empty()
            && lines[last].chars().count() + word.chars().count() + LABEL + 1 > style().width
        {
            lines.push(word.to_owned());
        } else {
            let space = if lines[last].is_empty() { "" } else { " " };
            lines[last] += space;
            lines[last] += word;
        }
    }
    let value = lines.join(&format!("\n{:LABEL$}", ""));
    if label.len() + 3 > LABEL {
        format!("  {label}\n{:LABEL$}{value}\n", "")
    } else {
        format!("  {label:<width$}{value}\n", width = LABEL - 2)
    }
}

/// The word by which results and JSON spell `value`.
fn kebab(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(ToOwned::to_owned))
        .unwrap_or_default()
}
