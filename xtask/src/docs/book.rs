//! `cargo xtask book`: the documents as a site, by mdbook, with a page of the command line made by the program itself.

use crate::steps::{cargo, root, step, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The mdbook that it is written for.
const MDBOOK: &str = "^0.5";

const BOOK: &str = "\
[book]
title = \"ipcmark\"
language = \"en\"
src = \"src\"

[output.html]
no-section-label = true
";

/// The shelves, each with the folder that holds it.
const SHELVES: [(&str, &str); 3] =
    [("How to", "how-to"), ("Reference", "reference"), ("Explanation", "explanation")];

/// The page that is made here.
const COMMAND_LINE: &str = "reference/command-line.md";

/// Writes the site into `target/book`.
pub fn write() -> Result<(), String> {
    let directory = target("book");
    let said = |error: std::io::Error| format!("{}: {error}", directory.display());
    let _ = fs::remove_dir_all(&directory);
    let source = directory.join("src");
    copy_documents(&root().join("docs"), &source).map_err(said)?;
    step("build ipcmark", &mut cargo(&["build", "--package", "ipcmark"]))?;
    fs::write(source.join(COMMAND_LINE), command_line(&target("debug/ipcmark"))?).map_err(said)?;
    fs::write(source.join("SUMMARY.md"), summary(&source).map_err(said)?).map_err(said)?;
    fs::write(directory.join("book.toml"), BOOK).map_err(said)?;
    step("the site", Command::new(mdbook()?).arg("build").arg(&directory))?;
    println!("{}", directory.join("book/index.html").display());
    Ok(())
}

/// mdbook, of the target directory; it is installed there if it is missing.
fn mdbook() -> Result<PathBuf, String> {
    let place = target("mdbook");
    let program = place.join("bin/mdbook");
    if !program.exists() {
        let mut install = cargo(&["install", "--locked", "mdbook", "--version", MDBOOK, "--root"]);
        step("install mdbook", install.arg(&place))?;
    }
    Ok(program)
}

/// Copies the shelves, the tutorial and the pictures; the laboratory notes are no part of the site. Links that leave the documents are to files
/// of the repository: they become words.
fn copy_documents(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            if name != "lab" {
                copy_documents(&path, &to.join(name))?;
            }
        } else if path.extension().is_some_and(|end| end == "md") {
            fs::write(to.join(name), without_outer_links(&fs::read_to_string(&path)?))?;
        } else {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

/// `text` of a shelf with its links to the repository's root and to the laboratory notes as words.
fn without_outer_links(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once('[') {
        kept += before;
        let link = after.split_once("](").and_then(|(words, target)| Some((words, target.split_once(')')?)));
        match link {
            Some((words, (target, after)))
                if !words.contains('[')
                    && (target.starts_with("../../") || target.starts_with("../lab/")) =>
            {
                kept += words;
                rest = after;
            }
            _ => {
                kept.push('[');
                rest = after;
            }
        }
    }
    kept + rest
}

/// The table of contents.
fn summary(source: &Path) -> std::io::Result<String> {
    let mut text = String::from("# Summary\n\n[First five minutes](tutorial.md)\n");
    for (title, folder) in SHELVES {
        text += &format!("\n# {title}\n\n");
        let mut names: Vec<String> = fs::read_dir(source.join(folder))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(".md"))
            .collect();
        names.sort();
        for name in names {
            let page = fs::read_to_string(source.join(folder).join(&name))?;
            let heading = page.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(&name);
            text += &format!("- [{heading}]({folder}/{name})\n");
        }
    }
    Ok(text)
}

/// What `ipcmark help` says, of the program and of each of its commands.
fn command_line(program: &Path) -> Result<String, String> {
    let help = |arguments: &[&str]| -> Result<String, String> {
        let output = Command::new(program)
            .args(arguments)
            .output()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    };
    let whole = help(&["--help"])?;
    let commands = whole.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty()).filter_map(|line| {
        let is_command = line.starts_with("  ") && !line.starts_with("   ");
        is_command.then(|| line.split_whitespace().next()).flatten()
    });
    let mut text = format!("# Command line\n\n```text\n{whole}\n```\n");
    for command in commands.filter(|command| *command != "help") {
        text += &format!("\n## {command}\n\n```text\n{}\n```\n", help(&["help", command])?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_leave_the_site_become_words() {
        let text =
            "See [the map](../../ARCHITECTURE.md), [notes](../lab/x.md), [method](method.md) and [a] list.";
        let kept = "See the map, notes, [method](method.md) and [a] list.";
        assert_eq!(without_outer_links(text), kept);
    }
}
