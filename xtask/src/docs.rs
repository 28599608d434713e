//! Documentation that is made from the program: docs/mechanisms.md from the cards, docs/results.schema.json from the types.

use crate::steps::{cargo, root};
use mechanisms::registry::CARDS;
use model::card::{Card, CardKind, Framing};
use std::fs;

/// Writes it.
pub fn write() -> Result<(), String> {
    for (name, text) in generated()? {
        fs::write(root().join(name), text).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

/// Whether what stands in the repository is what would be written.
pub fn check() -> Result<(), String> {
    for (name, text) in generated()? {
        if fs::read_to_string(root().join(name)).ok().as_deref() != Some(text.as_str()) {
            return Err(format!("{name} is out of date: run `cargo xtask docs` and commit it"));
        }
    }
    Ok(())
}

fn generated() -> Result<[(&'static str, String); 2], String> {
    let schema = cargo(&["run", "--quiet", "--package", "ipcmark", "--", "schema"])
        .output()
        .map_err(|error| format!("ipcmark schema: {error}"))?;
    let schema = String::from_utf8(schema.stdout).map_err(|error| format!("ipcmark schema: {error}"))?;
    Ok([("docs/mechanisms.md", mechanisms_page()), ("docs/results.schema.json", schema)])
}

fn mechanisms_page() -> String {
    let mut page = "# Mechanisms and operations\n\n\
        Made from the cards by `cargo xtask docs`. `ipcmark list NAME` shows the same, and whether the row works on this host.\n"
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
