//! The checks of the Python package: format, lints, types, tests, in a virtual environment under `target`. It is made while
//! cargo compiles. Nothing here knows what the package does.

use crate::notes::Notes;
use crate::steps::{root, step};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// What is run in the package's directory: the name of the step, and the program with its arguments.
const STEPS: [(&str, &[&str]); 6] = [
    ("python: format", &["ruff", "format", "--check"]),
    ("python: lints", &["ruff", "check"]),
    ("python: format of drivers", &["ruff", "format", "--check", "../drivers"]),
    ("python: lints of drivers", &["ruff", "check", "../drivers"]),
    ("python: types", &["mypy"]),
    ("python: tests", &["pytest"]),
];
/// Makes the environment, or brings it up to date.
const MAKE: &str = "python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' && python3 -m venv \"$1\" && \
                    \"$1/bin/pip\" install --quiet --disable-pip-version-check --editable \"$2[test]\"";

/// The environment while it is being made.
pub struct Environment(Result<Child, String>);

impl Environment {
    /// Starts to make it.
    pub fn start() -> Self {
        Self(make().map_err(|error| error.to_string()))
    }

    /// Makes every check; `notes` keep what is left out.
    pub fn check(self, notes: &Notes) -> Result<(), String> {
        let made = self.0.and_then(|mut child| child.wait().map_err(|error| error.to_string()));
        if !made.is_ok_and(|status| status.success()) {
            return notes.tool_is_missing(
                "the Python package is not tested: it needs python3 of 3.11 or later with venv, and packages from PyPI; \
                 target/python.log has the error",
            );
        }
        for (name, words) in STEPS {
            let mut command = Command::new(environment().join("bin").join(words[0]));
            command.args(&words[1..]).current_dir(package()).env("IPCMARK_BINARY", binary());
            step(name, notes.noted_by(&mut command))?;
        }
        Ok(())
    }
}

fn make() -> std::io::Result<Child> {
    fs::create_dir_all(root().join("target"))?;
    let log = File::create(root().join("target/python.log"))?;
    let mut command = Command::new("sh");
    command.args(["-c", MAKE, "sh"]).arg(environment()).arg(package());
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()
}

fn package() -> PathBuf {
    root().join("python")
}

fn environment() -> PathBuf {
    root().join("target/python")
}

/// The program that cargo built for its own tests.
fn binary() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("debug/ipcmark")
}
