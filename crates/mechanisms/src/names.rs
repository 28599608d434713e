//! Names outside of the file system: noted before the object is made, removed with it. Not a mechanism itself.

use crate::contract::Trial;
use model::card::Support;
use rustix::fs::{Access, access};
use std::path::{Path, PathBuf};
use sys::name::ObjectName;
use sys::{Failure, OrFail};

impl Trial<'_> {
    /// Notes in the run's directory that `name` is about to be made, so that whoever clears up after this process
    /// removes it too.
    pub(crate) fn register(&self, name: ObjectName) -> Result<Registered, Failure> {
        let mut note = self.path().into_os_string();
        note.push(format!(".{}.{NOTE}", name.to_string().replace([' ', '/'], "-")));
        let note = PathBuf::from(note);
        std::fs::write(&note, name.to_string()).or_fail("write", note.display())?;
        Ok(Registered { name, note })
    }

    /// The name of a POSIX object that no other trial of any run has, for `what`.
    pub(crate) fn posix_name(&self, what: &str) -> String {
        // It begins with "ipcmark-", as every run's directory does.
        let run = self.directory.file_name().unwrap_or_default().to_string_lossy();
        format!("/{run}-{}-{what}", self.number)
    }
}

/// How the file names of notes end.
const NOTE: &str = "name";

/// A name that is removed when this is dropped.
#[derive(Debug)]
pub struct Registered {
    name: ObjectName,
    note: PathBuf,
}

impl Drop for Registered {
    fn drop(&mut self) {
        if self.name.remove().is_ok() {
            // If it stays, whoever clears up finds nothing to remove.
            let _ = std::fs::remove_file(&self.note);
        }
    }
}

/// What the notes in `directory` name.
pub fn noted(directory: &Path) -> Vec<ObjectName> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let notes =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == NOTE));
    notes.filter_map(|note| std::fs::read_to_string(note).ok()?.parse().ok()).collect()
}

/// Whether a run can have a directory, without which nothing may have a name that outlives its maker.
pub(crate) fn names_have_a_place() -> Support {
    writable(&std::env::temp_dir(), "set TMPDIR to a directory that you may write")
}

/// Whether files can be made in `directory`; `remedy` is what to do where they cannot.
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
    fn names_are_ours_and_their_notes_go_with_them() {
        let directory = tempfile::Builder::new().prefix("ipcmark-test-").tempdir().unwrap();
        let shape = Shape { size_bytes: 1, workload: Workload::Latency };
        let params = Params::default();
        let trial = |number| Trial { params: &params, shape, directory: directory.path(), number };
        let name = ObjectName::PosixMq(trial(1).posix_name("to-server"));
        assert_ne!(trial(1).posix_name("to-client"), trial(1).posix_name("to-server"));
        assert_ne!(trial(2).posix_name("to-server"), trial(1).posix_name("to-server"));
        let registered = trial(1).register(name.clone()).unwrap();
        assert_eq!(noted(directory.path()), [name]);
        drop(registered);
        assert_eq!(noted(directory.path()), []);
    }
}
