//! The files that are checked. It checks none.

use std::fs;
use std::path::Path;
use syn::{Attribute, File, Ident};

/// Where they lie, below the root of the workspace.
const PLACES: [&str; 9] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs",
    "suites",
    "crates",
    "python",
    "xtask",
    "fuzz",
];
/// Folders within these that nobody wrote by hand.
const BUILT: [&str; 3] = ["target", "corpus", "artifacts"];
/// How the names of texts end.
const TEXTS: [&str; 9] = ["rs", "md", "toml", "txt", "js", "css", "html", "trycmd", "py"];

/// A text file.
pub struct SourceFile {
    /// Its path below the root of the workspace.
    pub name: String,
    /// What it holds.
    pub text: String,
    /// What it holds, where it is a Rust file that can be parsed. What cannot be parsed does not compile either.
    pub rust: Option<File>,
}

impl SourceFile {
    /// A source called `name` that holds `text`.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let (name, text) = (name.into(), text.into());
        let rust = is_rust(&name).then(|| syn::parse_file(&text).ok()).flatten();
        Self { name, text, rust }
    }

    /// Whether it is a Rust file.
    pub fn is_rust(&self) -> bool {
        is_rust(&self.name)
    }

    /// The folder of the crate that it belongs to, such as `crates/model`.
    pub fn crate_folder(&self) -> Option<&str> {
        let end = self.name.find("/src/")?;
        Some(&self.name[..end])
    }
}

fn is_rust(name: &str) -> bool {
    name.ends_with(".rs")
}

/// All sources below `root`, by name.
pub fn read(root: &Path) -> Result<Vec<SourceFile>, String> {
    let mut names = Vec::new();
    for place in PLACES {
        collect(root, place, &mut names)?;
    }
    names.sort();
    let mut sources = Vec::new();
    for name in names {
        let bytes = fs::read(root.join(&name)).map_err(|error| format!("{name}: {error}"))?;
        // What is no text is there to be refused by a test.
        sources.extend(String::from_utf8(bytes).ok().map(|text| SourceFile::new(name, text)));
    }
    Ok(sources)
}

/// Puts the texts at or below `root/name` into `names`.
fn collect(root: &Path, name: &str, names: &mut Vec<String>) -> Result<(), String> {
    let path = root.join(name);
    if path.is_dir() {
        for entry in fs::read_dir(&path).map_err(|error| format!("{name}: {error}"))? {
            let entry = entry.map_err(|error| format!("{name}: {error}"))?.file_name();
            let entry = entry.to_string_lossy();
            if !BUILT.contains(&entry.as_ref()) {
                collect(root, &format!("{name}/{entry}"), names)?;
            }
        }
    } else if path.extension().is_some_and(|end| TEXTS.iter().any(|text| end == *text)) {
        names.push(name.to_owned());
    }
    Ok(())
}

/// Whether `attributes` say that an item is compiled for tests alone.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is_test = |attribute: &Attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<Ident>().is_ok_and(|word| word == "test")
    };
    attributes.iter().any(is_test)
}
