//! What two processes share beside a network: the host, its namespaces, and a directory. It reads and compares; which mechanisms that is
//! enough for, the plan says.

use crate::protocol::hello::{EndpointFacts, Witness};
use model::plan::Shared;
use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Read;
use std::path::Path;

/// The host and the namespaces of a process (namespaces(7)); empty where the kernel does not tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// `/proc/sys/kernel/random/boot_id`, which is one for all containers of a host.
    boot_id: String,
    /// The IPC namespace.
    ipc: String,
    /// The network namespace.
    net: String,
}

impl Isolation {
    /// That of this process.
    pub(crate) fn own() -> Self {
        let namespace = |name: &str| {
            let link = fs::read_link(Path::new("/proc/self/ns").join(name)).unwrap_or_default();
            link.to_string_lossy().into_owned()
        };
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self { boot_id: boot_id.trim().to_owned(), ipc: namespace("ipc"), net: namespace("net") }
    }
}

/// What `client` and `server` share; `None` is a side on this host, in the namespaces of this process.
pub(crate) fn shared(client: Option<&EndpointFacts>, server: Option<&EndpointFacts>) -> Shared {
    let own = Isolation::own();
    let [a, b] = [client, server].map(|side| side.map_or(&own, |facts| &facts.isolation));
    let is_one = |of: fn(&Isolation) -> &str| !of(a).is_empty() && of(a) == of(b);
    // Namespaces of two hosts may have the same numbers.
    let host = is_one(|isolation| &isolation.boot_id);
    Shared {
        host,
        directory: host && [client, server].into_iter().flatten().all(|facts| facts.sees_witness),
        ipc: host && is_one(|isolation| &isolation.ipc),
        net: host && is_one(|isolation| &isolation.net),
    }
}

/// Whether this process reads at the path of `witness` what the coordinator wrote there.
pub(crate) fn sees(witness: &Witness) -> bool {
    // Whatever stands there: it is not followed, and nobody is waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = open(&witness.path, flags, Mode::empty()) else { return false };
    let mut content = Vec::new();
    let most = witness.token.len() as u64 + 1;
    fs::File::from(file).take(most).read_to_end(&mut content).is_ok() && content == witness.token.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::reachable::facts;

    #[test]
    fn sides_of_one_host_share_what_is_one_for_both() {
        let directory = tempfile::tempdir().unwrap();
        let witness = Witness { path: directory.path().join("witness"), token: "seen".to_owned() };
        assert!(!facts(Some(&witness)).sees_witness);
        fs::write(&witness.path, "unseen").unwrap();
        assert!(!facts(Some(&witness)).sees_witness);
        fs::write(&witness.path, "seen").unwrap();
        let here = facts(Some(&witness));
        assert_eq!(shared(None, Some(&here)), Shared { host: true, directory: true, ipc: true, net: true });
        let unshared = EndpointFacts { sees_witness: false, ..here.clone() };
        assert!(!shared(Some(&unshared), None).directory);

        let isolation = Isolation { net: "net:[1]".to_owned(), ..here.isolation.clone() };
        let contained = EndpointFacts { isolation, ..here.clone() };
        assert_eq!(
            shared(None, Some(&contained)),
            Shared { host: true, directory: true, ipc: true, net: false }
        );
        let elsewhere = EndpointFacts { isolation: Isolation::default(), ..here.clone() };
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
        assert!(sees(&at("file")) && !sees(&at("fifo")) && !sees(&at("link")) && !sees(&at("")));
    }
}
