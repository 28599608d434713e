//! What a descriptor refers to, as it was looked up: in the kernel's memory by a program there, or through /proc while the process is stopped.
//! Which object that is for all who use it is in `objects`.

use std::net::SocketAddr;

/// The file systems of pipes, of POSIX message queues and of pidfds (`PIPEFS_MAGIC`, `MQUEUE_MAGIC`, `PID_FS_MAGIC`).
pub(super) const PIPES: u64 = 0x5049_5045;
pub(super) const QUEUES: u64 = 0x1980_0202;
pub(super) const PROCESSES: u64 = 0x5049_4446;

/// What a file is that a descriptor refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DescribedFile {
    pub(super) kind: FileKind,
    pub(super) at: Inode,
}

/// An inode, which everybody has who has the file open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Inode {
    pub(super) device: u64,
    pub(super) number: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileKind {
    /// A pipe, which holds so much, where that is known.
    Pipe {
        capacity_bytes: Option<usize>,
    },
    /// One with a name.
    Fifo {
        name: String,
        capacity_bytes: Option<usize>,
    },
    /// A POSIX message queue.
    Queue {
        name: String,
    },
    /// An eventfd, by its number.
    Eventfd(u64),
    /// Takes the signals to the process that has it.
    Signals,
    /// A process, to which signals are sent through it.
    Process(u32),
    Unix(UnixEnd),
    Internet(InternetEnd),
    /// A socket of another family.
    OtherSocket {
        family: u16,
    },
    /// Something else, which is called so. Memory that processes share is such a file.
    Other {
        name: String,
    },
}

/// A Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnixEnd {
    /// Its type, as in socket(2).
    pub(super) kind: u32,
    /// The inode of the socket that it is connected to, where there is one.
    pub(super) peer: Option<u64>,
    /// Its name, or that of its peer, and whose it is: a path, or an abstract name, which begins with a zero byte.
    pub(super) name: Option<Vec<u8>>,
    pub(super) is_name_own: bool,
    pub(super) has_peer_name: bool,
    /// What the program has set of it, as parameters.
    pub(super) params: Vec<String>,
}

/// A socket of TCP or UDP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InternetEnd {
    pub(super) is_stream: bool,
    pub(super) own: SocketAddr,
    pub(super) peer: Option<SocketAddr>,
    /// What the program has set of it, as parameters.
    pub(super) params: Vec<String>,
}

impl DescribedFile {
    /// What it is called, if it is anything else than what processes communicate through.
    pub(super) fn name(&self) -> String {
        match &self.kind {
            FileKind::Other { name } => name.clone(),
            _ => String::new(),
        }
    }
}
