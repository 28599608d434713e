//! The ipcmark that a benchmark tries as people use it, by its command line, and where its results go.

use crate::steps::{cargo, root, step};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The exit status of a run in which cases failed, and the others were measured.
const CASE_FAILED: i32 = 1;

/// The ipcmark that is tried, and where its results go.
pub(super) struct Ipcmark {
    pub(super) program: PathBuf,
    directory: PathBuf,
}

impl Ipcmark {
    /// Builds it, unless IPCMARK names one. Results go to `directory` in the target directory, which is emptied.
    pub(super) fn build(directory: &str) -> Result<Self, String> {
        let _ = std::fs::remove_dir_all(root().join("target").join(directory));
        Self::build_again(directory)
    }

    /// The same, with the results that are in `directory`.
    pub(super) fn build_again(directory: &str) -> Result<Self, String> {
        let ours = std::env::current_exe().map_err(|error| error.to_string())?;
        let program = match std::env::var_os("IPCMARK") {
            Some(program) => program.into(),
            None => {
                step("build ipcmark", &mut cargo(&["build", "--release", "--package", "ipcmark"]))?;
                ours.with_file_name("ipcmark")
            }
        };
        let directory = root().join("target").join(directory);
        std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        Ok(Self { program, directory })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.jsonl"))
    }

    /// Measures into the file `name`.
    pub(super) fn run(&self, arguments: &[&str], name: &str) -> Result<(), String> {
        let file = self.file(name);
        // One of an earlier repetition may be there, and ipcmark overwrites none.
        let _ = std::fs::remove_file(&file);
        let mut command = Command::new(&self.program);
        command.arg("run").args(arguments).arg("--output").arg(file);
        self.said_by(&mut command).map(drop)
    }

    /// What `command` prints. Cases that fail are in it; what cannot be measured at all is an error.
    pub(super) fn said_by(&self, command: &mut Command) -> Result<String, String> {
        let output =
            command.stderr(Stdio::piped()).output().map_err(|error| format!("{command:?}: {error}"))?;
        match matches!(output.status.code(), Some(0 | CASE_FAILED)) {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!(
                "{command:?}: {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            )),
        }
    }
}
