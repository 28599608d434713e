//! The sockets that are exchanged, of all processes of one start of a program: what each would be if it were of TCP.
//!
//! A socket is known by its inode, so that it is recognised through whatever descriptor of whatever process. Of each the TCP socket that it
//! replaced is kept, unconnected: it holds the port, and answers what is asked of options.

use crate::address::{as_of, plain};
use crate::exchange::ProgramExchanges;
use crate::observed::Observed;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketAddrUnix, sockopt};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use sys::Failure;
use sys::bpf_redirect::SocketRedirect;

/// The sockets of one start of a program, which all supervisors of its processes share.
#[derive(Debug)]
pub struct Sockets {
    pub(crate) exchanges: ProgramExchanges,
    table: Mutex<Table>,
    /// Made for the first listener whose connections are to have it.
    redirect: OnceLock<Result<SocketRedirect, Failure>>,
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    listeners: Vec<ExchangedListener>,
    ends: HashMap<u64, ConnectionEnd>,
    /// How many ends were left when those that are gone were last looked for.
    left: usize,
    pub(crate) observed: Observed,
}

/// A Unix socket that listens in the place of one of TCP.
#[derive(Debug)]
pub(crate) struct ExchangedListener {
    pub(crate) inode: u64,
    /// The address that the program bound.
    pub(crate) address: SocketAddr,
    pub(crate) family: AddressFamily,
    /// By which it is connected to.
    pub(crate) name: SocketAddrUnix,
    pub(crate) tcp: OwnedFd,
    /// Who has connected and was not accepted yet, in order.
    pub(crate) waiting: VecDeque<Addresses>,
    /// Connections that were accepted for a call that a signal interrupted.
    pub(crate) returned: VecDeque<(OwnedFd, Addresses)>,
}

/// The addresses that a connection would have over TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
}

/// One end of a connection that is exchanged.
#[derive(Debug)]
pub(crate) struct ConnectionEnd {
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    pub(crate) family: AddressFamily,
    pub(crate) tcp: OwnedFd,
    /// Whether connect(2) has said that it is under way, and the program was not told yet that it is there.
    pub(crate) is_under_way: bool,
    /// Whether it was accepted, so that its port is the listener's.
    pub(crate) is_accepted: bool,
}

impl Sockets {
    /// None yet, of a program with these `exchanges`.
    pub fn new(exchanges: ProgramExchanges) -> Self {
        Self { exchanges, table: Mutex::default(), redirect: OnceLock::new() }
    }

    /// What was seen until now.
    pub fn observed(&self) -> Observed {
        self.table().observed.clone()
    }

    /// Whether a process of the program listens on this TCP port.
    pub fn is_listening(&self, port: u16) -> bool {
        self.table().observed.tcp.get(&port).is_some_and(|port| port.listens)
    }

    /// Has connections to `port` go past the TCP stack.
    pub(crate) fn redirect(&self, port: u16) -> Result<(), Failure> {
        match self.redirect.get_or_init(SocketRedirect::new) {
            Ok(redirect) => redirect.add_port(port),
            Err(failure) => Err(failure.clone()),
        }
    }

    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        // Whoever panicked has left the table as it was: each change is one insertion.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExchangedListener {
    /// Whether only IPv6 reaches it (`IPV6_V6ONLY`).
    fn is_v6_only(&self) -> bool {
        self.family == AddressFamily::INET6 && sockopt::ipv6_v6only(&self.tcp).unwrap_or(true)
    }

    fn shares_its_port(&self) -> bool {
        sockopt::socket_reuseport(&self.tcp).unwrap_or(false)
    }

    /// How well it fits a connection to `address`; `None` where it takes none of it.
    fn fit(&self, address: SocketAddr) -> Option<u8> {
        let own = plain(self.address);
        if own.port() != address.port() {
            return None;
        }
        match () {
            () if own.ip() == address.ip() => Some(2),
            () if !own.ip().is_unspecified() => None,
            () if own.is_ipv4() == address.is_ipv4() => Some(1),
            () if address.is_ipv4() && !self.is_v6_only() => Some(0),
            () => None,
        }
    }
}

impl ConnectionEnd {
    /// An address of it as a socket of its family has it.
    pub(crate) fn seen(&self, address: SocketAddr) -> SocketAddr {
        as_of(self.family, address)
    }
}

impl Table {
    pub(crate) fn listener(&mut self, inode: u64) -> Option<&mut ExchangedListener> {
        self.listeners.iter_mut().find(|listener| listener.inode == inode)
    }

    pub(crate) fn end(&mut self, inode: u64) -> Option<&mut ConnectionEnd> {
        self.ends.get_mut(&inode)
    }

    pub(crate) fn add_listener(&mut self, listener: ExchangedListener) {
        self.listeners.push(listener);
    }

    pub(crate) fn add_end(&mut self, inode: u64, end: ConnectionEnd) {
        /// So many at the least before those that are gone are looked for.
        const MANY: usize = 256;
        if self.ends.len() > MANY + 2 * self.left {
            self.forget_gone();
        }
        self.ends.insert(inode, end);
    }

    /// The listener that takes a connection to `address` next. Those that share a port take turns.
    pub(crate) fn listener_for(&mut self, address: SocketAddr) -> Option<&mut ExchangedListener> {
        let best = self.listeners.iter().filter_map(|listener| listener.fit(address)).max()?;
        let at = self.listeners.iter().position(|listener| listener.fit(address) == Some(best))?;
        let taken = self.listeners.remove(at);
        self.listeners.push(taken);
        self.listeners.last_mut()
    }

    /// Forgets the listener that nobody has any more.
    pub(crate) fn remove_listener(&mut self, inode: u64) {
        self.listeners.retain(|listener| listener.inode != inode);
    }

    /// Whether another listener has this `address`, and would not share it (listen(2), `EADDRINUSE`).
    pub(crate) fn is_in_use(&mut self, address: SocketAddr, shares: bool) -> bool {
        if self.has_port(address.port()) {
            self.forget_gone();
        }
        let overlaps = |listener: &ExchangedListener| {
            let (own, new) = (plain(listener.address), plain(address));
            own.port() == new.port()
                && own.is_ipv4() == new.is_ipv4()
                && (own.ip() == new.ip() || own.ip().is_unspecified() || new.ip().is_unspecified())
        };
        self.listeners.iter().any(|listener| overlaps(listener) && !(shares && listener.shares_its_port()))
    }

    /// Whether a connection that was accepted has this port.
    pub(crate) fn has_connections_of(&mut self, port: u16) -> bool {
        let has = |table: &Self| table.ends.values().any(|end| end.is_accepted && end.local.port() == port);
        has(self) && {
            self.forget_gone();
            has(self)
        }
    }

    /// Whether a listener had this port when it was last looked.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        self.listeners.iter().any(|listener| listener.address.port() == port)
    }

    /// Forgets the sockets that no process has any more, and gives back their ports.
    pub(crate) fn forget_gone(&mut self) {
        let Some(there) = unix_sockets() else { return };
        self.listeners.retain(|listener| there.contains(&listener.inode));
        self.ends.retain(|inode, _| there.contains(inode));
        self.left = self.ends.len();
    }

    /// Notes that the program sets `TCP_NODELAY` on a connection to `port`, if it is one that was seen.
    pub(crate) fn note_nodelay(&mut self, port: u16) {
        if let Some(port) = self.observed.tcp.get_mut(&port) {
            port.sets_nodelay = true;
        }
    }
}

/// The inodes of all Unix sockets of this network namespace (unix(7), /proc/net/unix); `None` where they cannot be read.
fn unix_sockets() -> Option<HashSet<u64>> {
    const INODE: usize = 6;
    let said = fs::read("/proc/thread-self/net/unix").ok()?;
    let said = String::from_utf8_lossy(&said);
    let lines = said.lines().skip(1);
    Some(lines.filter_map(|line| line.split_whitespace().nth(INODE)?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{SocketFlags, SocketType, bind, getsockname, listen, socket, socket_with};

    fn unix_listener() -> (OwnedFd, u64, SocketAddrUnix) {
        let unix = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        bind(&unix, &SocketAddrUnix::new_unnamed()).unwrap();
        listen(&unix, 8).unwrap();
        let name = getsockname(&unix).unwrap().try_into().unwrap();
        let inode = crate::caller::inode_of(&unix).unwrap();
        (unix, inode, name)
    }

    fn exchanged(address: &str, inode: u64, name: SocketAddrUnix) -> ExchangedListener {
        let address: SocketAddr = address.parse().unwrap();
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let tcp = socket(family, SocketType::STREAM, None).unwrap();
        if family == AddressFamily::INET6 {
            sockopt::set_ipv6_v6only(&tcp, false).unwrap();
        }
        let (waiting, returned) = Default::default();
        ExchangedListener { inode, address, family, name, tcp, waiting, returned }
    }

    #[test]
    fn a_connection_goes_to_the_listener_that_fits_best_and_those_that_share_take_turns() {
        let mut table = Table::default();
        let (_unix, _, name) = unix_listener();
        for (at, address) in
            ["[::]:80", "0.0.0.0:80", "127.0.0.2:80", "0.0.0.0:81", "0.0.0.0:81"].iter().enumerate()
        {
            table.add_listener(exchanged(address, at as u64, name.clone()));
        }
        let mut taken = |address: &str| table.listener_for(address.parse().unwrap()).map(|taken| taken.inode);
        assert_eq!(taken("127.0.0.1:80"), Some(1));
        assert_eq!(taken("127.0.0.2:80"), Some(2));
        assert_eq!(taken("[::1]:80"), Some(0));
        assert_eq!(
            [taken("127.0.0.1:81"), taken("127.0.0.1:81"), taken("127.0.0.1:81")].map(Option::unwrap),
            [3, 4, 3]
        );
        assert_eq!(taken("127.0.0.1:82"), None);
        assert_eq!(taken("[::1]:81"), None);
    }

    #[test]
    fn a_port_is_free_again_when_its_listener_has_gone() {
        let mut table = Table::default();
        let (unix, inode, name) = unix_listener();
        table.add_listener(exchanged("127.0.0.1:80", inode, name));
        assert!(table.is_in_use("0.0.0.0:80".parse().unwrap(), true));
        assert!(!table.is_in_use("0.0.0.0:81".parse().unwrap(), false));
        assert!(!table.is_in_use("[::]:80".parse().unwrap(), false));
        drop(unix);
        // A child of a test beside this one may have it until it executes its program.
        let mut left = 60_000;
        while table.is_in_use("0.0.0.0:80".parse().unwrap(), false) {
            left -= 1;
            assert!(left > 0, "the port is never free");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}
