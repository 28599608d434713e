//! Programs whose files give them rights: setuid, setgid, or capabilities. Under ptrace the kernel gives none, unless who traces could take
//! them anyway (ptrace(2), execve(2)).

use rustix::fs::getxattr;
use rustix::thread::{CapabilitySet, capabilities};
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// `S_ISUID`, and `S_ISGID` of what its group may run.
const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2010;

/// The file that `word` runs, as execvp(3) finds it.
pub fn program(word: &OsStr) -> Option<PathBuf> {
    if word.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(word));
    }
    let path = std::env::var_os("PATH")?;
    let may_run =
        |file: &PathBuf| file.metadata().is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0);
    std::env::split_paths(&path).map(|directory| directory.join(word)).find(may_run)
}

/// Whether `file` gives rights that it does not give under our ptrace.
pub(super) fn loses_rights(file: &Path) -> bool {
    let may_trace_all = capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::SYS_PTRACE));
    !may_trace_all && gives_rights(file)
}

/// Whether who runs `file` gets rights by that.
pub fn gives_rights(file: &Path) -> bool {
    let mode = file.metadata().map_or(0, |of| of.permissions().mode());
    let has_capabilities =
        || getxattr(file, "security.capability", &mut [0_u8; 0][..]).is_ok_and(|bytes| bytes > 0);
    mode & SETUID != 0 || mode & SETGID == SETGID || has_capabilities()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, Permissions};

    #[test]
    fn files_that_give_rights_are_told_from_others() {
        let path = std::env::temp_dir().join(format!("ipcmark-test-{}-rights", std::process::id()));
        let file = File::create(&path).unwrap();
        for (mode, gives) in [(0o755, false), (0o4755, true), (0o2755, true), (0o2644, false)] {
            file.set_permissions(Permissions::from_mode(mode)).unwrap();
            assert_eq!(gives_rights(&path), gives, "{mode:o}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(!gives_rights(&path));
    }

    #[test]
    fn a_program_is_found_as_the_shell_finds_it() {
        assert!(program(OsStr::new("sh")).is_some_and(|path| path.is_absolute()));
        assert_eq!(program(OsStr::new("./sh")), Some(PathBuf::from("./sh")));
        assert_eq!(program(OsStr::new("no-such-program")), None);
    }
}
