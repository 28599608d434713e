//! A process that removes what iceoryx2 leaves when its endpoints are killed: files of shared memory, which lie
//! where the coordinator does not look, and directories. It outlives the server by a moment.

use crate::endpoint::Result;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Where the files of shared memory lie.
const PLACE: &str = "/dev/shm";
/// The word by which this program is asked to be a cleaner.
const WORD: &str = "clean-up-after-parent";

/// A cleaner, which begins when this value is gone, however that happens.
pub struct Cleaner {
    child: Child,
    is_alive: ChildStdin,
}

impl Cleaner {
    /// Waits until it has cleaned up.
    pub fn end(mut self) -> Result<()> {
        drop(self.is_alive);
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("what is in {PLACE} was not removed ({status})").into()) }
    }
}

/// Starts one for the files of shared memory whose names begin with `prefix`, and for what lies in `directory`.
pub fn start(prefix: &str, directory: &Path) -> Result<Cleaner> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([WORD, prefix]).arg(directory).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // The coordinator kills the endpoint's group.
    command.process_group(0);
    let mut child = command.spawn()?;
    let is_alive = child.stdin.take().ok_or("a cleaner has no standard input")?;
    Ok(Cleaner { child, is_alive })
}

/// The prefix and the directory for which this process is to be a cleaner, if it is.
pub fn asked() -> Option<[OsString; 2]> {
    let mut words = std::env::args_os().skip(1);
    words.next().filter(|word| word == WORD).and_then(|_| Some([words.next()?, words.next()?]))
}

/// Is one.
pub fn clean_up_after_parent([prefix, directory]: &[OsString; 2]) -> ! {
    // Nothing is written to it: it ends with the parent.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let files = std::fs::read_dir(PLACE).into_iter().flatten().flatten();
    for file in files.filter(|file| file.file_name().as_bytes().starts_with(prefix.as_bytes())) {
        // The client may remove its own meanwhile.
        let _ = std::fs::remove_file(file.path());
    }
    let _ = std::fs::remove_dir_all(directory);
    std::process::exit(0)
}
