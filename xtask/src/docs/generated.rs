//! Documentation that is made from the crates: docs/reference/mechanisms.md from the cards, docs/reference/results.schema.json from the types.

use crate::steps::root;
use mechanisms::registry::CARDS;
use model::card::{Card, CardKind, Framing};
use model::need::is_offered;
use model::{Param, Semantics};
use serde_json::{Value, json};
use std::fs;
use textwrap::{Options, WordSplitter};

/// Writes it.
pub fn write() -> Result<(), String> {
    for (name, text) in generated() {
        fs::write(root().join(name), text).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

fn generated() -> [(&'static str, String); 2] {
    let schema = schemars::schema_for!(model::Line);
    [
        ("docs/reference/mechanisms.md", mechanisms_page()),
        ("docs/reference/results.schema.json", format!("{:#}\n", schema.as_value())),
    ]
}

#[test]
fn generated_documentation_is_what_the_repository_holds() {
    for (name, text) in generated() {
        let held = fs::read_to_string(root().join(name)).unwrap_or_default();
        assert!(held == text, "{name} is out of date: run `cargo xtask docs` and commit it");
    }
}

#[test]
fn every_word_of_the_promises_has_its_meaning() {
    let labels: Vec<&str> = Semantics::NONE.lines().iter().map(|(label, _)| *label).collect();
    for (label, _) in PROMISES {
        assert!(labels.contains(label), "{label} is no line of `Semantics`: {labels:?}");
    }
}

/// How the page begins.
const INTRODUCTION: &str = "\
# Mechanisms and operations

`ipcmark list NAME` shows one of them with its manual pages, and whether it works on this host. Each kind has a table of
facts, in which members that are alike share a row, then a section for each member; `-` stands where a fact does not
apply. `cargo xtask docs` makes this page.

- framing
  - `stream`: one call may transfer a part of a message
  - `message`: one call transfers one message
  - `token`: a wake-up, with at most a few bytes
- reach: between which processes it works
  - `related`: those that inherit a descriptor, or are sent one
  - `host`: any two of a host that agree on a name
  - `guest`: those of a host and of its virtual machines
  - `network`: those of two hosts
  - `process`: one process alone
- workloads: what `-w` can be
- empty: whether a message can be empty
- descriptors: whether a message can carry file descriptors
- death: whether an endpoint that waits learns that its peer has gone
- connection: whether an endpoint has one peer
- shared: parameters that several members have; they are explained [at the end](#shared-parameters)
";

/// What stands before the table of what mechanisms promise.
const PROMISED: &str = "\
What mechanisms promise to a program, by the manual pages; below the table is what its words mean.
";

/// What stands for a fact that a card does not have.
const NOTHING: &str = "-";
/// No line is wider, but for tables.
const WIDEST: usize = 119;

/// A column of a table: its title, and what it says of a card.
type Column = (&'static str, fn(&Card) -> String);
/// A promise: its label in the lines of `Semantics`, and its value.
type Promise = (&'static str, fn(&Semantics) -> Value);

/// The facts in which the members of a kind may differ.
const FACTS: &[Column] = &[
    ("framing", |card| word(json!(card.framing))),
    ("reach", |card| word(json!(card.reach))),
    ("workloads", workloads),
    ("empty", |card| yes_or_no((card.framing == Framing::Message).then_some(card.empty))),
    ("descriptors", |card| yes_or_no(is_offered(card).then_some(card.fds))),
    ("death", |card| yes_or_no(is_offered(card).then_some(card.hangup))),
    ("connection", |card| yes_or_no(is_offered(card).then_some(card.semantics.connected))),
];

/// What mechanisms promise, one word each.
const PROMISES: &[Promise] = &[
    ("order", |of| json!(of.order)),
    ("loss", |of| json!(of.loss)),
    ("when full", |of| json!(of.when_full)),
    ("credentials", |of| json!(of.credentials)),
    ("found by", |of| json!(of.naming)),
    ("other users", |of| json!(of.other_users)),
    ("containers", |of| json!(of.namespace)),
    ("whole writes", |of| json!(of.atomic)),
    ("outlives its makers", |of| json!(of.lifetime)),
];

fn mechanisms_page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for (title, kind) in [
        ("Mechanisms", CardKind::Mechanism),
        ("Floors", CardKind::Floor),
        ("Operations", CardKind::Operation),
    ] {
        let cards: Vec<&Card> = CARDS.iter().filter(|card| card.kind == kind).collect();
        page += &format!("\n## {title}\n\n{}", facts(&cards));
        if kind == CardKind::Mechanism {
            let offered: Vec<&Card> = cards.iter().copied().filter(|card| is_offered(card)).collect();
            page += &format!("\n{PROMISED}\n{}\n{}", promises(&offered), meanings(&offered));
        }
        cards.iter().for_each(|card| page += &section(card));
    }
    page + &shared_params()
}

/// The facts of `cards`: in which all are alike, once; in which they differ, as a table.
fn facts(cards: &[&Card]) -> String {
    let is_alike = |(_, value): &&Column| cards.windows(2).all(|two| value(two[0]) == value(two[1]));
    let (alike, columns): (Vec<&Column>, Vec<&Column>) = FACTS.iter().partition(is_alike);
    let of_all: Vec<String> = alike
        .iter()
        .filter_map(|(title, value)| Some((title, value(cards.first()?))))
        .filter(|(_, value)| value != NOTHING)
        .map(|(title, value)| format!("{title} `{value}`"))
        .collect();
    let of_all = if of_all.is_empty() { String::new() } else { format!("All: {}.\n\n", of_all.join(", ")) };
    let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    of_all + &table(&titles, cards, |card| columns.iter().map(|(_, value)| value(card)).collect())
}

/// What `cards` promise, one word each.
fn promises(cards: &[&Card]) -> String {
    let titles: Vec<&str> = PROMISES.iter().map(|(label, _)| *label).collect();
    table(&titles, cards, |card| PROMISES.iter().map(|(_, value)| word(value(&card.semantics))).collect())
}

/// A table of `cards`, of each of which `cells` says what stands under `titles`. Cards of which it says the same share a row.
fn table(titles: &[&str], cards: &[&Card], cells: impl Fn(&Card) -> Vec<String>) -> String {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for card in cards {
        let (facts, name) = (cells(card).join(" | "), format!("`{}`", card.name));
        match rows.iter_mut().find(|(of_row, _)| *of_row == facts) {
            Some((_, names)) => names.push(name),
            None => rows.push((facts, vec![name])),
        }
    }
    let mut text = format!("| name | {} |\n|{}\n", titles.join(" | "), "---|".repeat(titles.len() + 1));
    rows.iter().for_each(|(facts, names)| text += &format!("| {} | {facts} |\n", names.join(", ")));
    text
}

/// What the words of the promises of `cards` mean, where they do not say it themselves.
fn meanings(cards: &[&Card]) -> String {
    let mut text = String::new();
    for (label, value) in PROMISES {
        let mut items: Vec<String> = Vec::new();
        for card in cards {
            let (short, lines) = (word(value(&card.semantics)), card.semantics.lines());
            let words = lines.iter().find(|(of, _)| of == label).map_or("", |(_, words)| words.as_str());
            let item = wrapped(&format!("  - `{short}`: {words}"), "    ");
            if words != short.replace('-', " ") && !items.contains(&item) {
                items.push(item);
            }
        }
        text += &format!("- {label}\n{}", items.concat());
    }
    text
}

fn section(card: &Card) -> String {
    let mut text = format!("\n### `{}`\n\n{}.\n\n", card.name, capitalised(card.summary));
    let mut item = |line: &str| text += &wrapped(&format!("- {line}"), "  ");
    if !card.semantics.privileges.is_empty() {
        item(&format!("privileges: {}", card.semantics.privileges));
    }
    if card.limits != Card::OPERATION.limits {
        item(&format!("limits: {}", limits(card)));
    }
    let (shared, own): (Vec<&Param>, Vec<&Param>) = card.params.iter().partition(|param| is_shared(param));
    if !shared.is_empty() {
        let names: Vec<String> = shared.iter().map(|param| format!("`{}`", param.name)).collect();
        item(&format!("shared: {}", names.join(", ")));
    }
    own.iter().for_each(|param| item(&param_line(param)));
    text
}

/// The limits of `card`, or the name of the first that has the same.
fn limits(card: &Card) -> String {
    match CARDS.iter().find(|other| other.limits == card.limits) {
        Some(first) if first.name != card.name => format!("as [`{0}`](#{0})", first.name),
        _ => card.limits.to_owned(),
    }
}

/// The parameters that several cards have, each once; with the names of those where another has the same name.
fn shared_params() -> String {
    let mut shared: Vec<&Param> = Vec::new();
    for param in CARDS.iter().flat_map(|card| card.params).filter(|param| is_shared(param)) {
        if shared.iter().all(|other| param_line(other) != param_line(param)) {
            shared.push(param);
        }
    }
    let mut text = String::from("\n## Shared parameters\n\n");
    for param in &shared {
        let is_alone = shared.iter().filter(|other| other.name == param.name).count() == 1;
        let owners = if is_alone { String::new() } else { format!(". Of {}", having(param).join(", ")) };
        text += &wrapped(&format!("- {}{owners}", param_line(param)), "  ");
    }
    text
}

fn is_shared(param: &Param) -> bool {
    having(param).len() > 1
}

/// The names of those that have `param`, with the same values, meaning and default.
fn having(param: &Param) -> Vec<&'static str> {
    let line = param_line(param);
    let has = |card: &&Card| card.params.iter().any(|own| param_line(own) == line);
    CARDS.iter().filter(has).map(|card| card.name).collect()
}

fn param_line(param: &Param) -> String {
    let default = param.default.map_or("the kernel's own".to_owned(), |default| format!("`{default}`"));
    format!("`{}={}`: {}; default {default}", param.name, param.domain, param.summary)
}

fn workloads(card: &Card) -> String {
    card.workloads.iter().map(|workload| workload.name()).collect::<Vec<_>>().join(",")
}

/// Whether it is so; absent where that does not apply.
fn yes_or_no(fact: Option<bool>) -> String {
    fact.map_or(NOTHING, |fact| if fact { "yes" } else { "no" }).to_owned()
}

fn word(value: Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// `text` as lines, of which all but the first begin with `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let options = Options::new(WIDEST).subsequent_indent(indent).break_words(false);
    textwrap::fill(text, options.word_splitter(WordSplitter::NoHyphenation)) + "\n"
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}
