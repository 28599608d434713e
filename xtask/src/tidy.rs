//! Invariants of the house that no compiler checks.

use crate::steps::root;
use std::fs;
use std::path::{Path, PathBuf};

/// Checks every source file; says all that is wrong.
pub fn check() -> Result<(), String> {
    let mut files = Vec::new();
    for folder in ["crates", "xtask", "fuzz"] {
        collect(&root().join(folder), &mut files)?;
    }
    let faults: Vec<String> = files.iter().flat_map(|file| faults_of(file)).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// The Rust files below `folder`, but for what was built there.
fn collect(folder: &Path, into: &mut Vec<PathBuf>) -> Result<(), String> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
    Ok(())
}

fn faults_of(file: &Path) -> Vec<String> {
    let Ok(text) = fs::read_to_string(file) else {
        return vec![format!("{}: cannot be read", file.display())];
    };
    let name = file.strip_prefix(root()).unwrap_or(file).display().to_string();
    let mut faults = Vec::new();
    let mut fault = |what: &str| faults.push(format!("{name}: {what}"));
    if !text.starts_with("//!") && !text.starts_with("#![") {
        fault("does not open with what it is and what it is not (//!)");
    }
    let is_crate_root = name.ends_with("src/lib.rs") || name.ends_with("src/main.rs");
    if is_crate_root && !name.contains("crates/sys/") && !text.contains("#![forbid(unsafe_code)]") {
        fault("does not forbid unsafe code");
    }
    let reads_clock = ["Instant::now", "SystemTime::now"].iter().any(|call| text.contains(call));
    let may_read_clock = ["harness/src/clock.rs", "/tests/", "xtask/"].iter().any(|part| name.contains(part));
    if reads_clock && !may_read_clock {
        fault("reads a clock; only harness/src/clock.rs does");
    }
    faults
}
