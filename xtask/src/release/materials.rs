//! What a binary is built from: every crate, with its version and licence, as CycloneDX has it, and the texts of the licences. It
//! judges no licence.

use super::files::{VERSION, said};
use crate::steps::cargo;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The bill of materials, and the texts.
pub struct Materials {
    /// CycloneDX 1.5 in JSON.
    pub bill: String,
    /// The texts of the libraries' licences, each under the crate's name.
    pub licences: String,
}

/// A crate in the binary for a platform.
struct Crate {
    name: String,
    version: String,
    licence: String,
    directory: String,
}

/// Those of the binary for `triple`.
pub fn listed(triple: &str) -> Result<Materials, String> {
    let crates = crates(triple)?;
    Ok(Materials { bill: bill(&crates), licences: licences(&crates) })
}

/// The crates that are compiled into ipcmark or make a part of it, as the page's script is; not ipcmark's own.
fn crates(triple: &str) -> Result<Vec<Crate>, String> {
    let tree =
        ["tree", "--package", "ipcmark", "--target", triple, "--edges", "normal,build", "--prefix", "none"];
    let listed = said(cargo(&tree).args(["--format", "{p}", "--locked"]));
    let listed = listed.ok_or("cargo tree failed")?;
    let metadata =
        said(&mut cargo(&["metadata", "--format-version", "1", "--locked", "--filter-platform", triple]));
    let metadata: Value =
        serde_json::from_str(&metadata.ok_or("cargo metadata failed")?).map_err(|error| error.to_string())?;
    let known: BTreeMap<(&str, &str), &Value> = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|package| !package["source"].is_null())
        .filter_map(|package| Some(((package["name"].as_str()?, package["version"].as_str()?), package)))
        .collect();
    let mut crates = BTreeMap::new();
    for line in listed.lines() {
        // NAME vVERSION, and words of how it is built.
        let mut words = line.split(' ');
        let (Some(name), Some(version)) =
            (words.next(), words.next().and_then(|word| word.strip_prefix('v')))
        else {
            continue;
        };
        let Some(package) = known.get(&(name, version)) else { continue };
        let directory = package["manifest_path"].as_str().and_then(|path| path.strip_suffix("Cargo.toml"));
        let directory = directory.ok_or_else(|| format!("cargo metadata has no path of {name}"))?.to_owned();
        let licence =
            package["license"].as_str().ok_or_else(|| format!("{name} {version} names no licence"))?;
        let (name, version) = (name.to_owned(), version.to_owned());
        crates.insert(
            (name.clone(), version.clone()),
            // Some write a slash where SPDX has OR.
            Crate { name, version, licence: licence.replace('/', " OR "), directory },
        );
    }
    if crates.is_empty() {
        Err("cargo tree names no crate".to_owned())
    } else {
        Ok(crates.into_values().collect())
    }
}

fn bill(crates: &[Crate]) -> String {
    let component = |of: &Crate| {
        json!({
            "type": "library",
            "name": of.name,
            "version": of.version,
            "purl": format!("pkg:cargo/{}@{}", of.name, of.version),
            "licenses": [{ "expression": of.licence }],
        })
    };
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application",
            "name": "ipcmark",
            "version": VERSION,
            "licenses": [{ "expression": "Apache-2.0 OR MIT" }],
        } },
        "components": crates.iter().map(component).collect::<Vec<_>>(),
    });
    format!("{bill:#}\n")
}

fn licences(crates: &[Crate]) -> String {
    let mut text = "The libraries in ipcmark, and their licences.\n".to_owned();
    for of in crates {
        text += &format!("\n{:=<80}\n{} {}: {}\n", "", of.name, of.version, of.licence);
        for file in licence_files(Path::new(&of.directory)) {
            text += &format!("\n{}\n", fs::read_to_string(file).unwrap_or_default().trim_end());
        }
    }
    text
}

/// The files with licences and notices in a crate's directory.
fn licence_files(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_licence = |name: &str| {
        let name = name.to_uppercase();
        ["LICEN", "COPYING", "NOTICE", "UNLICENSE"].iter().any(|word| name.starts_with(word))
    };
    let mut files: Vec<_> = entries
        .filter(|entry| is_licence(&entry.file_name().to_string_lossy()) && entry.path().is_file())
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}
