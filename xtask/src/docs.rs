//! Documentation that is made from the crates: docs/mechanisms.md from the cards, docs/results.schema.json from the types.

use crate::steps::root;
use mechanisms::registry::CARDS;
use model::card::{Card, CardKind, Framing};
use model::need::is_offered;
use std::fs;

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
        ("docs/mechanisms.md", mechanisms_page()),
        ("docs/results.schema.json", format!("{:#}\n", schema.as_value())),
    ]
}

#[test]
fn generated_documentation_is_what_the_repository_holds() {
    for (name, text) in generated() {
        let held = fs::read_to_string(root().join(name)).unwrap_or_default();
        assert!(held == text, "{name} is out of date: run `cargo xtask docs` and commit it");
    }
}

fn mechanisms_page() -> String {
    let mut page = "# Mechanisms and operations\n\n\
        Made from the cards by `cargo xtask docs`. `ipcmark list NAME` shows the same, and whether it works on this host.\n"
        .to_owned();
    for (title, kind) in [
        ("Mechanisms", CardKind::Mechanism),
        ("Floors", CardKind::Floor),
        ("Operations", CardKind::Operation),
    ] {
        page += &format!("\n## {title}\n");
        CARDS.iter().filter(|card| card.kind == kind).for_each(|card| page += &section(card));
    }
    page
}

fn section(card: &Card) -> String {
    let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let workloads = card.workloads.iter().map(|workload| workload.name()).collect::<Vec<_>>().join(", ");
    let mut text = format!("\n### `{}`\n\n{}.\n\n", card.name, capitalised(card.summary));
    let mut item = |label: &str, value: &str| text += &format!("- {label}: {value}\n");
    item("framing", &word(serde_json::json!(card.framing)));
    if card.framing == Framing::Message {
        item("empty messages", if card.empty { "yes" } else { "no" });
    }
    item("reach", &word(serde_json::json!(card.reach)));
    item("workloads", &workloads);
    if is_offered(card) {
        item("carries descriptors", if card.fds { "yes" } else { "no" });
        item("peer's death seen", if card.hangup { "yes" } else { "no" });
        card.semantics.lines().iter().for_each(|(label, words)| item(label, words));
    }
    item("limits", card.limits);
    if !card.man.is_empty() {
        item("see", &card.man.join(", "));
    }
    for param in card.params {
        let default = param.default.map_or("the kernel's own".to_owned(), |default| format!("`{default}`"));
        let domain = param.domain.to_string();
        item(&format!("`{}={domain}`", param.name), &format!("{}; default {default}", param.summary));
    }
    text
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}
