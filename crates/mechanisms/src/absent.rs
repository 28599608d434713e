//! What users ask for and the registry does not have: the reason, and what answers the question instead.

use serde::Serialize;
use std::path::Path;

/// A way to communicate that is no mechanism here.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Absent {
    /// The name by which users ask for it.
    pub name: &'static str,
    /// What it is.
    pub summary: &'static str,
    /// Why it is no mechanism here.
    pub why: &'static str,
    /// What answers the question instead.
    pub instead: &'static str,
    /// The paths by which the kernel shows that this host has it. Empty if it does not show.
    pub shown_by: &'static [&'static str],
}

impl Absent {
    /// Whether this host has it, as far as the kernel shows.
    pub fn is_here(&self) -> Option<bool> {
        let shown = || self.shown_by.iter().any(|path| Path::new(path).exists());
        (!self.shown_by.is_empty()).then(shown)
    }
}

/// All that users are known to ask for.
pub const ABSENT: &[Absent] = &[
    Absent {
        name: "tli",
        summary: "the Transport Layer Interface (TLI, XTI) of System V",
        why: "made of STREAMS, which Linux does not have",
        instead: "tcp against tcp-uring: two interfaces to one transport",
        shown_by: &[],
    },
    Absent {
        name: "binder",
        summary: "the calls between processes of Android",
        why: "needs CONFIG_ANDROID_BINDER_IPC and a context manager, a service of its own",
        instead: "unix-seqpacket, which carries descriptors too",
        shown_by: &["/dev/binder", "/dev/binderfs/binder-control", "/sys/module/binder"],
    },
    Absent {
        name: "sockmap",
        summary: "TCP whose messages BPF moves from socket to socket",
        why: "is put under the TCP of a whole host by who may load BPF programs, and is no call of an endpoint's",
        instead: "tcp and unix-stream: with and without the network stack; 'ipcmark try --set tcp=sockmap' has a program use it",
        shown_by: &[],
    },
    Absent {
        name: "smc",
        summary: "TCP's interface over shared memory between hosts (AF_SMC)",
        why: "silently becomes TCP where there is no SMC device",
        instead: "tcp, under smc_run(8) where there is one; smcss(8) shows whether SMC is used",
        shown_by: &["/sys/module/smc"],
    },
];

/// The entry of `name`.
pub fn absent(name: &str) -> Option<&'static Absent> {
    ABSENT.iter().find(|absent| absent.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::CARDS;

    #[test]
    fn what_is_absent_is_not_in_the_registry() {
        for (at, entry) in ABSENT.iter().enumerate() {
            assert!(CARDS.iter().all(|card| card.name != entry.name), "{} is in the registry", entry.name);
            assert!(ABSENT[..at].iter().all(|other| other.name != entry.name), "{} twice", entry.name);
            assert!(CARDS.iter().any(|card| entry.instead.starts_with(card.name)), "{}", entry.instead);
            assert!(absent(entry.name).is_some());
        }
    }

    #[test]
    fn without_a_path_it_is_unknown_whether_the_host_has_it() {
        let entry = |shown_by| Absent { shown_by, ..ABSENT[0] };
        assert_eq!(entry(&[]).is_here(), None);
        assert_eq!(entry(&["/proc/self", "/nowhere"]).is_here(), Some(true));
        assert_eq!(entry(&["/nowhere"]).is_here(), Some(false));
    }
}
