//! From what descriptors refer to, to the objects that processes share: pipes, sockets with their peers, queues and counters of the kernel.
//! It examines no descriptor.

use super::described::{DescribedFile, FileKind, Inode, InternetEnd, UnixEnd};
use super::descriptors::Referent;
use super::holders::{End, HeldSide, Wanted, find_holders, process_name};
use super::shared_memory::SharedPlace;
use super::socket_params::Sockets;
use model::communication::{Boundaries, KernelObject};
use rustix::net::{AddressFamily, SocketType};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use sys::Failure;

/// `O_CLOEXEC`, which is `SOCK_CLOEXEC` and `EFD_CLOEXEC` too.
pub(super) const CLOEXEC: u64 = 0o2_000_000;
/// More objects are not distinguished.
const MOST_OBJECTS: usize = 1 << 20;
/// What a pipe holds by default.
const PIPE_BYTES: usize = 64 << 10;

/// By what an object is the same for every process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// A pipe, with or without a name.
    Pipe(Inode),
    Counter(u64),
    Queue(Inode),
    SystemQueue(u32),
    /// The signals to a process.
    Signals(u32),
    /// A word that threads sleep on.
    Word(SharedPlace),
    Unix(u64, u64),
    Internet {
        is_stream: bool,
        low: SocketAddr,
        high: SocketAddr,
    },
}

/// The objects that were found, and what could not be found out.
#[derive(Default)]
pub(super) struct Objects {
    all: Vec<KernelObject>,
    ends: Vec<[End; 2]>,
    known: HashMap<Key, u32>,
    /// What is known of objects that are two sockets.
    sockets: HashMap<u32, Sockets>,
    /// Which side a connected Unix socket is of what, by its inode: its peer may be gone before it is used for the first time.
    unix_sides: HashMap<u64, (u32, u8)>,
    /// The ports on which somebody listens, once they were read.
    listening: Option<BTreeSet<u16>>,
    /// What could not be found out, and how often.
    pub(super) refused: BTreeMap<String, u64>,
}

impl Objects {
    /// What `file`, which the process `pid` has, is of these objects now.
    pub(super) fn referent(&mut self, pid: u32, file: &DescribedFile) -> Referent {
        let at = file.at;
        match &file.kind {
            FileKind::Pipe { capacity_bytes } => {
                self.pipe(at, "pipe", format!("pipe {}", at.number), *capacity_bytes)
            }
            FileKind::Fifo { name, capacity_bytes } => {
                self.pipe(at, "fifo", format!("FIFO {name}"), *capacity_bytes)
            }
            FileKind::Queue { name } => {
                let name = format!("message queue {name}");
                self.one_way(Key::Queue(at), "posix-mq", name, Boundaries::Kept, End::Inode(at))
            }
            FileKind::Eventfd(id) => {
                let (key, name) = (Key::Counter(*id), format!("eventfd {id}"));
                self.one_way(key, "eventfd", name, Boundaries::Counted, End::Unknown)
            }
            FileKind::Signals => self.signals(pid).map_or(Referent::Other, Referent::OneWay),
            FileKind::Process(process) => Referent::Process(*process),
            FileKind::Unix(end) => self.unix(at, end),
            FileKind::Internet(end) => self.internet(at, end),
            FileKind::OtherSocket { family } => {
                let name = match AddressFamily::from_raw(*family) {
                    AddressFamily::NETLINK => "netlink".to_owned(),
                    AddressFamily::VSOCK => "vsock".to_owned(),
                    other => format!("address family {}", other.as_raw()),
                };
                self.refuse(format!("sockets of {name} are in no flow"));
                Referent::Other
            }
            FileKind::Other { .. } => Referent::Other,
        }
    }

    fn refuse(&mut self, what: impl Into<String>) {
        *self.refused.entry(what.into()).or_default() += 1;
    }

    fn pipe(&mut self, at: Inode, mechanism: &str, name: String, capacity: Option<usize>) -> Referent {
        let referent = self.one_way(Key::Pipe(at), mechanism, name, Boundaries::None, End::Inode(at));
        capacity.into_iter().for_each(|bytes| self.set_capacity(referent, bytes));
        referent
    }

    /// The pipe that `referent` is holds so much from now on.
    pub(super) fn set_capacity(&mut self, referent: Referent, bytes: usize) {
        let Referent::OneWay(object) = referent else { return };
        let Some(mechanism) = &mut self.all[object as usize].mechanism else { return };
        let plain = mechanism.split(':').next().unwrap_or_default().to_owned();
        if ["pipe", "fifo"].contains(&plain.as_str()) {
            *mechanism = if bytes == PIPE_BYTES { plain } else { format!("{plain}:capacity={bytes}") };
        }
    }

    /// A System V message queue, by its identifier.
    pub(super) fn system_queue(&mut self, id: u32) -> Option<u32> {
        self.unheld(Key::SystemQueue(id), "sysv-msg", format!("System V queue {id}"), Boundaries::Kept)
    }

    /// The signals to the process `pid`. Those that wait are taken together, for the same ones are merged.
    pub(super) fn signals(&mut self, pid: u32) -> Option<u32> {
        let key = Key::Signals(pid);
        match self.known.get(&key) {
            Some(known) => Some(*known),
            None => {
                let name = format!("signals to {}", process_name(pid));
                self.unheld(key, "signal", name, Boundaries::Counted)
            }
        }
    }

    /// A word in memory that processes share.
    pub(super) fn word(&mut self, place: SharedPlace) -> Option<u32> {
        let name = format!("a word in {}", place.name);
        self.unheld(Key::Word(place), "futex", name, Boundaries::Kept)
    }

    /// An object that no descriptor refers to.
    fn unheld(&mut self, key: Key, mechanism: &str, name: String, boundaries: Boundaries) -> Option<u32> {
        let found = self.one_way(key, mechanism, name, boundaries, End::Unknown);
        if let Referent::OneWay(object) = found { Some(object) } else { None }
    }

    /// A pair of Unix sockets of `kind`, of which nothing else is known.
    pub(super) fn nameless_pair(&mut self, kind: u64) -> [Referent; 2] {
        /// The bits of a socket's type that are no flags.
        const KIND: u64 = 0xf;
        let Some((mechanism, boundaries)) = unix_kind(u32::try_from(kind & KIND).unwrap_or_default()) else {
            return [Referent::Other; 2];
        };
        match self.nameless(mechanism, "a short-lived pair of sockets", boundaries) {
            Referent::OneWay(object) => [Referent::Side(object, 0), Referent::Side(object, 1)],
            other => [other; 2],
        }
    }

    fn unix(&mut self, at: Inode, socket: &UnixEnd) -> Referent {
        let Some((mechanism, boundaries)) = unix_kind(socket.kind) else { return Referent::Other };
        let Some(peer) = socket.peer else {
            if mechanism == "unix-dgram" {
                self.refuse("datagrams of Unix sockets without a fixed peer are in no flow");
                return Referent::Other;
            }
            let known = self.unix_sides.get(&at.number).copied();
            return known
                .map_or(Referent::Unknown, |(known, side)| self.end(known, side, socket.params.clone()));
        };
        let (low, high) = (at.number.min(peer), at.number.max(peer));
        let side = u8::from(at.number != low);
        let key = Key::Unix(low, high);
        if let Some(known) = self.known.get(&key).copied() {
            return self.end(known, side, socket.params.clone());
        }
        let server_side = match (socket.is_name_own, socket.has_peer_name) {
            (true, false) => Some(side),
            (false, true) => Some(1 - side),
            _ => None,
        };
        let mut params = Vec::new();
        if mechanism != "unix-dgram" {
            match socket.name.as_deref() {
                Some([0, ..]) => params.push("name=abstract".to_owned()),
                Some(_) => params.push("name=path".to_owned()),
                None => {}
            }
        }
        let name = match &socket.name {
            Some(name) => format!("Unix socket {}", String::from_utf8_lossy(name).replace('\0', "@")),
            None => format!("Unix sockets {low} and {high}"),
        };
        let ends = [low, high].map(|number| End::Inode(Inode { number, ..at }));
        match self.add(key, with(mechanism, &params), name, boundaries, ends) {
            Referent::OneWay(object) => {
                self.all[object as usize].server_side = server_side;
                // Any number of datagram sockets can have the same peer.
                if mechanism != "unix-dgram" {
                    self.unix_sides.extend([(low, (object, 0)), (high, (object, 1))]);
                }
                self.end(object, side, socket.params.clone())
            }
            other => other,
        }
    }

    /// The side `side` of the sockets that are `object`, of which the program has set `params`.
    fn end(&mut self, object: u32, side: u8, params: Vec<String>) -> Referent {
        let described = &mut self.all[object as usize];
        let plain = || Sockets::new(described.mechanism.clone().unwrap_or_default());
        let sockets = self.sockets.entry(object).or_insert_with(plain);
        described.mechanism = Some(sockets.with_end(side, params));
        Referent::Side(object, side)
    }

    fn internet(&mut self, at: Inode, socket: &InternetEnd) -> Referent {
        let InternetEnd { is_stream, own, peer, .. } = *socket;
        let (mechanism, boundaries) =
            if is_stream { ("tcp", Boundaries::None) } else { ("udp", Boundaries::Kept) };
        let Some(peer) = peer else {
            if !is_stream {
                self.refuse("datagrams of UDP sockets without a fixed peer are in no flow");
                return Referent::Other;
            }
            return Referent::Unknown;
        };
        let (low, high) = (own.min(peer), own.max(peer));
        let side = u8::from(own != low);
        let key = Key::Internet { is_stream, low, high };
        if let Some(known) = self.known.get(&key).copied() {
            return self.end(known, side, socket.params.clone());
        }
        let listening = self.listening.get_or_insert_with(listening_ports);
        let server_side = [low, high].iter().position(|end| is_stream && listening.contains(&end.port()));
        let ends = [low, high].map(|address| End::Address { address, device: at.device });
        let name = format!("{} {own} and {peer}", if is_stream { "TCP" } else { "UDP" });
        match self.add(key, mechanism.to_owned(), name, boundaries, ends) {
            Referent::OneWay(object) => {
                self.all[object as usize].server_side = server_side.and_then(|side| u8::try_from(side).ok());
                self.end(object, side, socket.params.clone())
            }
            other => other,
        }
    }

    fn one_way(
        &mut self,
        key: Key,
        mechanism: &str,
        name: String,
        boundaries: Boundaries,
        end: End,
    ) -> Referent {
        if let Some(known) = self.known.get(&key) {
            return Referent::OneWay(*known);
        }
        self.add(key, mechanism.to_owned(), name, boundaries, [end.clone(), end])
    }

    /// An object of which nothing else is known.
    pub(super) fn nameless(&mut self, mechanism: &str, name: &str, boundaries: Boundaries) -> Referent {
        self.push(mechanism.to_owned(), name.to_owned(), boundaries, [End::Unknown, End::Unknown])
    }

    fn add(
        &mut self,
        key: Key,
        mechanism: String,
        name: String,
        boundaries: Boundaries,
        ends: [End; 2],
    ) -> Referent {
        let added = self.push(mechanism, name, boundaries, ends);
        if let Referent::OneWay(object) = added {
            self.known.insert(key, object);
        }
        added
    }

    fn push(&mut self, mechanism: String, name: String, boundaries: Boundaries, ends: [End; 2]) -> Referent {
        let Some(object) = u32::try_from(self.all.len()).ok().filter(|_| self.all.len() < MOST_OBJECTS)
        else {
            self.refuse("there were more pipes and sockets than are distinguished");
            return Referent::Other;
        };
        let mechanism = Some(mechanism);
        self.all.push(KernelObject { mechanism, name, boundaries, server_side: None, outside: [None; 2] });
        self.ends.push(ends);
        Referent::OneWay(object)
    }

    /// The side that `referent` is was called by the other: it accepted, or the other connected.
    pub(super) fn is_server(&mut self, referent: Referent) {
        if let Referent::Side(object, side) = referent {
            self.all[object as usize].server_side = Some(side);
        }
    }

    /// What happens to boundaries in `object`.
    pub(super) fn boundaries(&self, object: u32) -> Boundaries {
        self.all.get(object as usize).map_or(Boundaries::None, |object| object.boundaries)
    }

    /// Who else holds the sides of objects that are in `missing`. `is_recorded` says whose calls were recorded. With `searches`, processes of
    /// this host are searched for in the kernel.
    pub(super) fn holders(
        &self,
        missing: &BTreeSet<(u32, u8)>,
        searches: bool,
        is_recorded: impl Fn(u32) -> bool,
    ) -> Result<Vec<HeldSide>, Failure> {
        let wanted = |&(object, side): &(u32, u8)| {
            let end = self.ends[object as usize][usize::from(side)].clone();
            Wanted { object, side, end }
        };
        find_holders(missing.iter().map(wanted).collect(), searches, is_recorded)
    }

    /// All of them.
    pub(super) fn into_all(self) -> Vec<KernelObject> {
        self.all
    }
}

/// The mechanism of Unix sockets of a type, and what it does to boundaries.
fn unix_kind(kind: u32) -> Option<(&'static str, Boundaries)> {
    let kinds = [
        (SocketType::STREAM, "unix-stream", Boundaries::None),
        (SocketType::SEQPACKET, "unix-seqpacket", Boundaries::Kept),
        (SocketType::DGRAM, "unix-dgram", Boundaries::Kept),
    ];
    let found = kinds.into_iter().find(|(known, ..)| known.as_raw() == kind);
    found.map(|(_, mechanism, boundaries)| (mechanism, boundaries))
}

/// `mechanism` with `params`, as after `-m`.
fn with(mechanism: &str, params: &[String]) -> String {
    if params.is_empty() { mechanism.to_owned() } else { format!("{mechanism}:{}", params.join(",")) }
}

/// The ports on which somebody listens here.
fn listening_ports() -> BTreeSet<u16> {
    /// `TCP_LISTEN`, as /proc/net/tcp has it.
    const LISTEN: &str = "0A";
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().flat_map(std::fs::read_to_string);
    let port = |line: &str| {
        let mut fields = line.split_whitespace();
        let local = fields.nth(1)?;
        let state = fields.nth(1)?;
        let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
        (state == LISTEN).then_some(port)
    };
    tables.flat_map(|table| table.lines().filter_map(port).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(number: u64, kind: FileKind) -> DescribedFile {
        DescribedFile { kind, at: Inode { device: 7, number } }
    }

    fn unix(kind: SocketType, number: u64, peer: Option<u64>) -> DescribedFile {
        let (name, is_name_own, has_peer_name, params) = (None, false, false, Vec::new());
        let end = UnixEnd { kind: kind.as_raw(), peer, name, is_name_own, has_peer_name, params };
        file(number, FileKind::Unix(end))
    }

    #[test]
    fn a_socket_is_known_by_its_peer_when_that_is_gone() {
        let mut objects = Objects::default();
        let first = objects.referent(1, &unix(SocketType::STREAM, 20, Some(10)));
        assert_eq!(first, Referent::Side(0, 1));
        assert_eq!(objects.referent(2, &unix(SocketType::STREAM, 10, None)), Referent::Side(0, 0));
        assert_eq!(objects.referent(2, &unix(SocketType::STREAM, 30, None)), Referent::Unknown);
    }

    #[test]
    fn datagrams_of_several_senders_to_one_socket_are_told_apart_and_its_own_are_not_guessed() {
        let mut objects = Objects::default();
        let sends = |number| unix(SocketType::DGRAM, number, Some(10));
        for (number, object) in [(20, 0), (30, 1), (20, 0), (30, 1)] {
            assert_eq!(objects.referent(1, &sends(number)), Referent::Side(object, 1));
        }
        assert_eq!(objects.referent(2, &unix(SocketType::DGRAM, 10, None)), Referent::Other);
    }

    #[test]
    fn a_pipe_has_the_capacity_that_was_set_last() {
        let mut objects = Objects::default();
        for capacity in [PIPE_BYTES, 4096, 8192, PIPE_BYTES, 4096] {
            let pipe = file(5, FileKind::Pipe { capacity_bytes: Some(capacity) });
            assert_eq!(objects.referent(1, &pipe), Referent::OneWay(0));
        }
        let mechanism = objects.into_all().remove(0).mechanism;
        assert_eq!(mechanism.as_deref(), Some("pipe:capacity=4096"));
    }
}
