//! Links of documents lead to files that are there, and to headings that these have.

use super::breach::Breach;
use super::source_file::SourceFile;
use crate::steps::root;
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

/// The links of Markdown files below the root that lead nowhere.
pub fn check(sources: &[SourceFile]) -> Vec<Breach> {
    check_with(sources, |path| root().join(path).exists())
}

fn check_with(sources: &[SourceFile], exists: impl Fn(&Path) -> bool) -> Vec<Breach> {
    let documents = || sources.iter().filter(|source| source.name.ends_with(".md"));
    let anchors: HashMap<&str, HashSet<String>> =
        documents().map(|source| (source.name.as_str(), anchors(&source.text))).collect();
    let mut breaches = Vec::new();
    for source in documents() {
        for (line, target) in links(&source.text) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = beside(&source.name, path);
            let has_anchor = || {
                let known = anchors.get(file.to_str().unwrap_or_default());
                anchor.is_empty() || known.is_none_or(|known| known.contains(anchor))
            };
            if !exists(&file) {
                breaches.push(Breach::new(source, line, format!("{path} is not there")));
            } else if !has_anchor() {
                breaches.push(Breach::new(
                    source,
                    line,
                    format!("{} has no heading #{anchor}", file.display()),
                ));
            }
        }
    }
    breaches
}

/// The lines of `text` that are no code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((at + 1, line))
    })
}

/// The targets of the links in `text` that lead to files of the project, each with its line.
fn links(text: &str) -> Vec<(usize, &str)> {
    let is_elsewhere = |target: &str| target.contains("://") || target.starts_with("mailto:");
    prose(text).flat_map(links_of_line).filter(|(_, target)| !is_elsewhere(target)).collect()
}

fn links_of_line((number, line): (usize, &str)) -> Vec<(usize, &str)> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| (number, target)).collect()
}

/// The names of the headings of `text`, as those who show Markdown make them: small letters, digits, `-` and `_`, with a number where there are
/// several of one name.
fn anchors(text: &str) -> HashSet<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut anchors = HashSet::new();
    for (_, line) in prose(text).filter(|(_, line)| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        let name: String =
            heading.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect();
        let count = counts.entry(name.clone()).or_default();
        anchors.insert(if *count == 0 { name } else { format!("{name}-{count}") });
        *count += 1;
    }
    anchors
}

/// Where `path` leads from the document `name`; the document itself where it is empty.
fn beside(name: &str, path: &str) -> PathBuf {
    if path.is_empty() {
        return name.into();
    }
    let mut file: PathBuf = Path::new(name).parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => drop(file.pop()),
            part => file.push(part),
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_a_file_and_a_heading_that_are_there() {
        let sources = [
            SourceFile::new(
                "docs/a.md",
                "# A `b` c\n[x](how/b.md#two) [y](#a-b-c) [z](https://x.y)\n```\n[n](no)\n```\n",
            ),
            SourceFile::new(
                "docs/how/b.md",
                "# Two\n# Two\n[x](../a.md#a-b-c) [y](../a.md#d) [z](c.md) [w](#two-1)\n",
            ),
        ];
        let found = check_with(&sources, |path| sources.iter().any(|source| Path::new(&source.name) == path));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        let expected = ["docs/how/b.md:3: docs/a.md has no heading #d", "docs/how/b.md:3: c.md is not there"];
        assert_eq!(found, expected);
    }
}
