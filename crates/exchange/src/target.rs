//! What takes the place of a program's sockets and pipes, by the names of the mechanisms.

use std::fmt;

/// What takes their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// TCP, with other settings.
    Tcp,
    /// Multipath TCP with one path.
    Mptcp,
    /// SMC, which is TCP where there is no device for it.
    Smc,
    /// TCP whose data goes from one end to the other past the TCP stack, by a sockmap of the kernel.
    Sockmap,
    /// A Unix stream socket; of a pipe, one of a pair.
    UnixStream,
    /// A Unix datagram socket, with other settings.
    UnixDgram,
    /// UDP, with other settings.
    Udp,
    /// A pipe, with another capacity.
    Pipe,
}

/// Each target by its name.
pub(crate) const TARGETS: [(&str, Target); 8] = [
    ("tcp", Target::Tcp),
    ("mptcp", Target::Mptcp),
    ("smc", Target::Smc),
    ("sockmap", Target::Sockmap),
    ("unix-stream", Target::UnixStream),
    ("unix-dgram", Target::UnixDgram),
    ("udp", Target::Udp),
    ("pipe", Target::Pipe),
];

impl Target {
    /// The mechanism that it is.
    pub fn name(self) -> &'static str {
        TARGETS.iter().find(|(_, target)| *target == self).map_or("", |(name, _)| name)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
