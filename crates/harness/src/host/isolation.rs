//! What two processes share beside a network: the host, its namespaces, and a directory. It reads and compares; which mechanisms that is
//! enough for, the plan says.

use model::plan::Shared;
use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A file of the coordinator's: who reads the same at its path sees the directory in which it lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// Its path.
    pub path: PathBuf,
    /// What is in it.
    pub token: String,
}

/// The host and the namespaces of a process (namespaces(7)), empty where the kernel does not tell, and whether it sees the
/// coordinator's file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// `/proc/sys/kernel/random/boot_id`, which is one for all containers of a host.
    boot_id: String,
    /// The IPC namespace.
    ipc: String,
    /// The network namespace.
    net: String,
    /// Whether this process reads what the coordinator wrote.
    pub sees_witness: bool,
}

impl Isolation {
    /// That of this process, which looks for `witness`.
    pub(crate) fn own(witness: Option<&Witness>) -> Self {
        let namespace = |name: &str| {
            let link = fs::read_link(Path::new("/proc/self/ns").join(name)).unwrap_or_default();
            link.to_string_lossy().into_owned()
        };
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self {
            boot_id: boot_id.trim().to_owned(),
            ipc: namespace("ipc"),
            net: namespace("net"),
            sees_witness: witness.is_some_and(Witness::is_seen),
        }
    }
}

/// What `client` and `server` share; `None` is a side on this host, in the namespaces of this process.
pub(crate) fn shared(client: Option<&Isolation>, server: Option<&Isolation>) -> Shared {
    let own = Isolation { sees_witness: true, ..Isolation::own(None) };
    let [a, b] = [client, server].map(|side| side.unwrap_or(&own));
    let is_one = |of: fn(&Isolation) -> &str| !of(a).is_empty() && of(a) == of(b);
    // Namespaces of two hosts may have the same numbers.
    let host = is_one(|isolation| &isolation.boot_id);
    Shared {
        host,
        directory: host && a.sees_witness && b.sees_witness,
        ipc: host && is_one(|isolation| &isolation.ipc),
        net: host && is_one(|isolation| &isolation.net),
    }
}

impl Witness {
    /// Whether this process reads at its path what the coordinator wrote there.
    fn is_seen(&self) -> bool {
        // Whatever stands there: it is not followed, and nobody is waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = open(&self.path, flags, Mode::empty()) else { return false };
        let mut content = Vec::new();
        let most = self.token.len() as u64 + 1;
        fs::File::from(file).take(most).read_to_end(&mut content).is_ok() && content == self.token.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_of_one_host_share_what_is_one_for_both() {
        let directory = tempfile::tempdir().unwrap();
        let witness = Witness { path: directory.path().join("witness"), token: "seen".to_owned() };
        assert!(!Isolation::own(Some(&witness)).sees_witness);
        fs::write(&witness.path, "unseen").unwrap();
        assert!(!Isolation::own(Some(&witness)).sees_witness);
        fs::write(&witness.path, "seen").unwrap();
        let here = Isolation::own(Some(&witness));
        assert_eq!(shared(None, Some(&here)), Shared { host: true, directory: true, ipc: true, net: true });
        let unshared = Isolation { sees_witness: false, ..here.clone() };
        assert!(!shared(Some(&unshared), None).directory);

        let contained = Isolation { net: "net:[1]".to_owned(), ..here.clone() };
        assert_eq!(
            shared(None, Some(&contained)),
            Shared { host: true, directory: true, ipc: true, net: false }
        );
        let elsewhere = Isolation::default();
        assert_eq!(shared(Some(&elsewhere), Some(&elsewhere)), Shared::default());
        assert_eq!(shared(None, Some(&elsewhere)), Shared::default());
    }

    #[test]
    fn what_stands_at_the_path_of_a_witness_cannot_hold_an_endpoint_up() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| Witness { path: directory.path().join(name), token: "seen".to_owned() };
        rustix::fs::mknodat(
            rustix::fs::CWD,
            directory.path().join("fifo"),
            rustix::fs::FileType::Fifo,
            Mode::RUSR,
            0,
        )
        .unwrap();
        fs::write(directory.path().join("file"), "seen").unwrap();
        std::os::unix::fs::symlink("file", directory.path().join("link")).unwrap();
        assert!(at("file").is_seen());
        for name in ["fifo", "link", ""] {
            assert!(!at(name).is_seen(), "{name}");
        }
    }
}
