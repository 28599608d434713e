//! The Markdown document: the sheet as GitHub's tables, for issues and read-mes.
//!
//! It says what the terminal table says, with every column: a page has room, a terminal may not.

use super::answer::{UNBROKEN, fastest, of_host};
use super::block::{Block, Row};
use super::grid::Grid;
use super::sheet::sheet_with_study;
use super::study::{Concluded, StudyWords};
use analysis::analysed::AnalysedResults;
use analysis::study::evaluated::StudyVerdict;

/// `results` as GitHub-flavoured Markdown.
pub fn markdown(results: &AnalysedResults<'_>) -> String {
    let sheet = sheet_with_study(results);
    let labelled = |(label, text): (String, String)| match label.is_empty() {
        true => format!("- {}", plain(&text)),
        false => format!("- **{}** {}", plain(&label), plain(&text)),
    };
    let head = sheet.head.into_iter().map(|(label, text)| labelled((label.to_owned(), text)));
    let missing = sheet.missing.iter().map(|case| format!("- {}", plain(case)));

    let mut parts = vec![format!("## {}", plain(&sheet.title))];
    parts.extend(answer(results));
    parts.push(list(head));
    parts.extend(sheet.study.iter().flat_map(study));
    parts.extend(sheet.blocks.iter().chain(&sheet.host_effects).flat_map(block));
    parts.extend(section("notes", list(sheet.notes.into_iter().map(labelled))));
    parts.extend(section("not measured", list(missing)));
    parts.join("\n\n") + "\n"
}

/// What is fastest, a list for each workload, and what the values are worth; nothing where nothing competes.
fn answer(results: &AnalysedResults<'_>) -> Vec<String> {
    let escaped = |text: &str| plain(&text.replace(UNBROKEN, " "));
    let places = |(heading, places): &(String, Vec<(String, String)>)| {
        let lines = places.iter().map(|(place, what)| format!("- {}: {}", escaped(place), escaped(what)));
        [format!("**{}**", escaped(heading)), list(lines)]
    };
    let fastest: Vec<String> = fastest(results).iter().flat_map(places).collect();
    let host: Vec<String> = of_host(results).iter().map(|text| escaped(text)).collect();
    if fastest.is_empty() { fastest } else { [fastest, host].concat() }
}

/// What the study of `results` concluded as a table of GitHub-flavoured Markdown, with how it was measured; nothing of results
/// without a study.
pub fn conclusions(results: &AnalysedResults<'_>) -> String {
    let sheet = sheet_with_study(results);
    let Some(study) = sheet.study else { return String::new() };
    let row = |conclusion: &Concluded| {
        let evidence: Vec<String> = conclusion.evidence.iter().map(|text| plain(text)).collect();
        line([plain(&conclusion.claim), conclusion.verdict.to_owned(), evidence.join("; ")].into_iter())
    };
    let titles = ["conclusion", "here", "what that stands on"].map(str::to_owned);
    let rule = [":--"; 3].map(str::to_owned);
    let rows = [titles, rule].map(|cells| line(cells.into_iter())).into_iter();
    let count = |verdict: &str| study.conclusions.iter().filter(|of| of.verdict == verdict).count();
    let counts = StudyVerdict::NAMES.iter().map(|verdict| format!("{verdict}: {}", count(verdict)));
    let head = sheet.head.iter().filter(|(label, _)| ["host", "kernel", "run"].contains(label));
    let head: Vec<String> = head.map(|(_, text)| plain(text)).collect();
    let parts = [
        format!("### {}", plain(&study.title)),
        format!("{}. {}.", plain(&sheet.title), head.join("; ")),
        format!("Conclusions: {}; {}.", study.conclusions.len(), counts.collect::<Vec<_>>().join(", ")),
        list(rows.chain(study.conclusions.iter().map(row))),
    ];
    parts.join("\n\n") + "\n"
}

/// A heading and its list; nothing when the list is empty.
fn section(heading: &str, list: String) -> Vec<String> {
    if list.is_empty() { Vec::new() } else { vec![format!("### {heading}"), list] }
}

fn list(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

/// A study: what it concluded, its tables, its figures.
fn study(study: &StudyWords) -> Vec<String> {
    let conclusions = study.conclusions.iter().map(|conclusion| {
        let evidence = conclusion.evidence.iter().map(|text| format!("\n  - {}", plain(text)));
        format!("- **{}** {}{}", conclusion.verdict, plain(&conclusion.claim), evidence.collect::<String>())
    });
    let mut parts = vec![format!("## {}", plain(&study.title))];
    parts.extend(section(
        "what each layer takes",
        list(study.sums.iter().map(|sum| format!("- {}", plain(sum)))),
    ));
    parts.extend(section("does it hold here?", list(conclusions)));
    parts.extend(study.grids.iter().flat_map(grid));
    parts
}

fn grid(grid: &Grid) -> Vec<String> {
    let titles = [""].into_iter().chain(grid.columns.iter().map(String::as_str));
    let rule = [":--"].into_iter().chain(grid.columns.iter().map(|_| "--:")).map(str::to_owned);
    let rows =
        grid.rows.iter().map(|(name, cells)| line([name].into_iter().chain(cells).map(|text| plain(text))));
    let lines = [line(titles.map(plain)), line(rule)].into_iter().chain(rows);
    let table = if grid.rows.is_empty() { String::new() } else { list(lines) };
    let below = list(grid.below.iter().map(|text| format!("- {}", plain(text))));
    let parts = [format!("### {}", plain(&grid.heading)), table, below];
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

pub(crate) fn block(block: &Block) -> Vec<String> {
    let titles = block.columns.iter().map(|column| column.title);
    let titles = line([block.rows_are].into_iter().chain(titles).chain([""]).map(plain));
    let rule = line(
        [":--"].into_iter().chain(block.columns.iter().map(|_| "--:")).chain([":--"]).map(str::to_owned),
    );
    let rows = block.rows.iter().map(row);
    let table = list([titles, rule].into_iter().chain(rows));
    let below = list(block.below.iter().map(|text| format!("- {}", plain(text))));
    let parts = [format!("### {}", plain(&block.heading)), table, below];
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

fn row(row: &Row) -> String {
    let cells = row.cells.iter().map(|cell| cell.as_deref().unwrap_or("-"));
    line([row.name.as_str()].into_iter().chain(cells).chain([row.tail.as_str()]).map(plain))
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

/// `text` with every character that Markdown could take for itself escaped, and runs of blanks made one.
fn plain(text: &str) -> String {
    let mut escaped = String::new();
    for word in text.split_whitespace() {
        if !escaped.is_empty() {
            escaped.push(' ');
        }
        for character in word.chars() {
            if r"\`*_[]<>|&~#!".contains(character) {
                escaped.push('\\');
            }
            escaped.push(character);
        }
    }
    escaped
}
