//! Names outside of the file system: recorded before the object is made, and removed with it. Not a mechanism itself.

use crate::contract::TrialContext;
use model::card::Support;
use rustix::fs::{Access, access};
use std::path::{Path, PathBuf};
use sys::name::ObjectName;
use sys::{Failure, OrFail};

impl TrialContext<'_> {
    /// Records in the directory of the run that `name` is about to be made. If this process is killed, whoever
    /// removes the directory removes the name too.
    pub(crate) fn register(&self, name: ObjectName) -> Result<Registered, Failure> {
        let mut note = self.path().into_os_string();
        note.push(format!(".{}.{NOTE}", name.to_string().replace([' ', '/'], "-")));
        let note = PathBuf::from(note);
        std::fs::write(&note, name.to_string()).or_fail("write", note.display())?;
        Ok(Registered { name, note })
    }

    /// A name for a POSIX object `what`, which no other trial of any run has.
    pub(crate) fn posix_name(&self, what: &str) -> String {
        // It begins with "ipcmark-", because the directory of every run does.
        let run = self.directory.file_name().unwrap_or_default().to_string_lossy();
        format!("/{run}-{}-{what}", self.number)
    }
}

/// The extension of the files that record names.
const NOTE: &str = "name";

/// A name that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Registered {
    name: ObjectName,
    note: PathBuf,
}

impl Drop for Registered {
    fn drop(&mut self) {
        if self.name.remove().is_ok() {
            // If the file remains, whoever removes the directory finds that the name is gone.
            let _ = std::fs::remove_file(&self.note);
        }
    }
}

/// The names that are recorded in `directory`.
pub fn recorded_names(directory: &Path) -> Vec<ObjectName> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let notes = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|endpoint| endpoint == NOTE));
    notes.filter_map(|note| std::fs::read_to_string(note).ok()?.parse().ok()).collect()
}

/// Whether a run can have a directory. Without one, no name can be recorded, and none may be made.
pub(crate) fn probe_names() -> Support {
    writable(&std::env::temp_dir(), "set TMPDIR to a directory that you may write")
}

/// Whether files can be made in `directory`. `remedy` says what to do if not.
pub(crate) fn writable(directory: &Path, remedy: &str) -> Support {
    match access(directory, Access::WRITE_OK | Access::EXEC_OK).or_fail("access", directory.display()) {
        Ok(()) => Support::UNLIMITED,
        Err(failure) => Support::No {
            reason: format!("{} {}: {}", failure.operation, failure.object, failure.answer),
            remedy: remedy.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Shape;
    use model::{Params, Workload};

    #[test]
    fn names_differ_between_trials_and_their_records_are_removed_with_them() {
        let directory = tempfile::Builder::new().prefix("ipcmark-test-").tempdir().unwrap();
        let shape = Shape { size_bytes: 1, workload: Workload::Latency };
        let params = Params::default();
        let trial = |number| TrialContext {
            params: &params,
            shape,
            directory: directory.path(),
            number,
            network: None,
        };
        let name = ObjectName::PosixMq(trial(1).posix_name("to-server"));
        assert_ne!(trial(1).posix_name("to-client"), trial(1).posix_name("to-server"));
        assert_ne!(trial(2).posix_name("to-server"), trial(1).posix_name("to-server"));
        let registered = trial(1).register(name.clone()).unwrap();
        assert_eq!(recorded_names(directory.path()), [name]);
        drop(registered);
        assert_eq!(recorded_names(directory.path()), []);
    }
}
