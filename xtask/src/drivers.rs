//! The drivers in other languages: their formats and lints, which compile little; and for a release, that each is built and keeps the protocol.
//! Those in Python are with the package's (`python`).

use crate::notes::Notes;
use crate::steps::{root, step, target};
use std::path::Path;
use std::process::{Command, Stdio};

/// A check of sources: of what, the program that it needs, and a script for a shell below `drivers/`, in which `$1` is a directory for what is compiled.
type Check = (&'static str, &'static str, &'static str);

const CHECKS: [Check; 6] = [
    (
        "drivers in C",
        "cc",
        "for file in c/driver.c c/template.c; do cc -fsyntax-only -Wall -Wextra -Werror $file || exit 1; done",
    ),
    (
        "drivers in C++",
        "c++",
        "for file in cpp/driver.cpp cpp/template.cpp; do c++ -std=c++17 -fsyntax-only -Wall -Wextra -Werror $file || exit 1; done",
    ),
    (
        "drivers in Go",
        "go",
        "unformatted=$(gofmt -l go) && test -z \"$unformatted\" || { echo \"gofmt -w $unformatted\"; exit 1; }
         cd go && go vet driver.go datagrams.go endpoint.go && go vet template.go endpoint.go",
    ),
    (
        "drivers in Java",
        "javac",
        // CodedDriver needs jars: it is compiled where the driver is built.
        "javac -Xlint:all -Werror -d \"$1\" java/Datagrams.java java/Driver.java java/Endpoint.java java/Template.java",
    ),
    (
        "drivers in Node",
        "node",
        "for file in node/*.js; do node --check $file || exit 1; done",
    ),
    (
        "drivers in Rust",
        "rustfmt",
        // From standard input, so that it does not look for the module that is beside each when it is built.
        "for file in */*.rs; do rustfmt --check --edition 2024 < $file || exit 1; done",
    ),
];

/// Makes every check whose program is here; `notes` keep what is left out.
pub fn lint(notes: &Notes) -> Result<(), String> {
    let compiled = root().join("target/drivers");
    std::fs::create_dir_all(&compiled).map_err(|error| format!("{}: {error}", compiled.display()))?;
    for (name, program, script) in CHECKS {
        if !is_here(program) {
            notes.tool_is_missing(&format!("{name} are not checked: {program} is not here"))?;
            continue;
        }
        step(
            name,
            Command::new("sh").args(["-c", script, "sh"]).arg(&compiled).current_dir(root().join("drivers")),
        )?;
    }
    Ok(())
}

fn is_here(program: &str) -> bool {
    let mut finds = Command::new("sh");
    finds.args(["-c", "command -v \"$1\"", "sh", program]).stdout(Stdio::null()).stderr(Stdio::null());
    finds.status().is_ok_and(|status| status.success())
}

/// Builds every driver that comes with the `program`, in a directory of its own, and checks each; `notes` keep which could not be built.
pub fn build_and_check(program: &Path, notes: &Notes) -> Result<(), String> {
    /// A registry that does not answer once may do so a moment later.
    const ATTEMPTS: usize = 2;
    let data = target("driver-data");
    // Those of another version may lie there.
    let _ = std::fs::remove_dir_all(&data);
    let ipcmark = |words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).env("XDG_DATA_HOME", &data);
        command
    };
    for name in names()? {
        println!("== the driver {name}");
        let is_built = |_| ipcmark(&["driver", "build", &name]).status().is_ok_and(|status| status.success());
        if (0..ATTEMPTS).any(is_built) {
            step(&format!("the driver {name}, checked"), &mut ipcmark(&["endpoint", "check", &name]))?;
        } else {
            notes.tool_is_missing(&format!("the driver {name} cannot be built here; it says why above"))?;
        }
    }
    Ok(())
}

/// The names of the drivers that come with the program.
fn names() -> Result<Vec<String>, String> {
    let all = std::fs::read_dir(root().join("drivers")).map_err(|error| format!("drivers: {error}"))?;
    let is_driver = |path: &Path| path.join("driver.toml").is_file();
    let named = all.flatten().filter(|entry| is_driver(&entry.path()));
    let mut names: Vec<String> =
        named.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    Ok(names)
}
