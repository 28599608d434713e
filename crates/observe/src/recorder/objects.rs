//! From descriptors to what they refer to: pipes, sockets with their peers, queues and counters of the kernel. It asks /proc, the
//! kernel's socket diagnostics, and a copy of the descriptor itself (pidfd_getfd(2)).

use super::descriptors::Referent;
use super::holders::{End, Holder, Wanted, find_holders, process_name};
use super::shared_memory::{SharedPlace, place};
use super::socket_diagnostics::SocketDiagnostics;
use super::socket_params::{Sockets, params_of};
use model::communication::{Boundaries, KernelObject};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, fstat, statfs};
use rustix::net::{AddressFamily, SocketAddrAny, SocketType, getpeername, getsockname, sockopt};
use rustix::pipe::fcntl_getpipe_size;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::path::Path;
use std::str::FromStr;

/// `O_CLOEXEC`, which is `SOCK_CLOEXEC` and `EFD_CLOEXEC` too.
pub(super) const CLOEXEC: u64 = 0o2_000_000;
/// More objects are not told apart.
const MOST_OBJECTS: usize = 1 << 20;
/// What a pipe holds by default.
const PIPE_BYTES: usize = 64 << 10;
/// The file system of POSIX message queues (`MQUEUE_MAGIC`).
const QUEUES: i64 = 0x1980_0202;

/// By what an object is the same for every process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Pipe(u64),
    Fifo(u64, u64),
    Counter(u64),
    Queue(u64, u64),
    SystemQueue(u32),
    /// The signals to a process.
    Signals(u32),
    /// A word that threads sleep on.
    Word(SharedPlace),
    Unix(u64, u64),
    Inet {
        stream: bool,
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
    /// Words by process and address; `None` of private memory.
    words: HashMap<(u32, u64), Option<u32>>,
    diagnostics: Option<SocketDiagnostics>,
    /// The ports on which somebody listens, once they were read.
    listening: Option<BTreeSet<u16>>,
    /// What could not be found out, and how often.
    pub(super) refused: BTreeMap<String, u64>,
}

impl Objects {
    pub(super) fn new() -> Self {
        Self { diagnostics: SocketDiagnostics::open().ok(), ..Self::default() }
    }

    /// To what `fd` of the process `pid` refers now.
    pub(super) fn find(&mut self, pid: u32, fd: u32) -> Referent {
        let path = format!("/proc/{pid}/fd/{fd}");
        let Ok(link) = std::fs::read_link(&path) else { return Referent::Unknown };
        let link = link.to_string_lossy();
        let number_in = |before: &str| link.strip_prefix(before)?.strip_suffix(']')?.parse().ok();
        if let Some(inode) = number_in("pipe:[") {
            return self.pipe(pid, fd, Key::Pipe(inode), "pipe", format!("pipe {inode}"), End::Pipe(inode));
        }
        if let Some(inode) = number_in("socket:[") {
            return self.socket(pid, fd, inode);
        }
        if link == "anon_inode:[eventfd]" {
            return self.eventfd(pid, fd);
        }
        if link == "anon_inode:[signalfd]" {
            return self.signals(pid).map_or(Referent::Other, Referent::OneWay);
        }
        // Since Linux 6.9 they lie in a file system of their own.
        if link == "anon_inode:[pidfd]" || link.starts_with("pidfd:[") {
            return fd_info(pid, fd, "Pid:").map_or(Referent::Other, Referent::Process);
        }
        if !link.starts_with('/') || link.starts_with("/dev/") {
            return Referent::Other;
        }
        self.file(pid, fd, &path, &link)
    }

    /// A FIFO or a message queue has a name in a file system.
    fn file(&mut self, pid: u32, fd: u32, path: &str, link: &str) -> Referent {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let is_queue = || link.matches('/').count() == 1 && statfs(path).is_ok_and(|of| of.f_type == QUEUES);
        let Ok(metadata) = Path::new(path).metadata() else { return Referent::Other };
        let (device, inode) = (metadata.dev(), metadata.ino());
        if metadata.file_type().is_fifo() {
            let name = format!("FIFO {link}");
            return self.pipe(pid, fd, Key::Fifo(device, inode), "fifo", name, End::File(link.to_owned()));
        }
        if is_queue() {
            let end = End::File(link.to_owned());
            let name = format!("message queue {link}");
            return self.one_way(Key::Queue(device, inode), "posix-mq", name, Boundaries::Kept, end);
        }
        Referent::Other
    }

    fn pipe(&mut self, pid: u32, fd: u32, key: Key, mechanism: &str, name: String, end: End) -> Referent {
        if let Some(known) = self.known.get(&key) {
            return Referent::OneWay(*known);
        }
        let capacity = copy(pid, fd).and_then(|copy| fcntl_getpipe_size(copy).ok());
        let mechanism = match capacity.filter(|bytes| *bytes != PIPE_BYTES) {
            Some(bytes) => format!("{mechanism}:capacity={bytes}"),
            None => mechanism.to_owned(),
        };
        self.one_way(key, &mechanism, name, Boundaries::None, end)
    }

    fn eventfd(&mut self, pid: u32, fd: u32) -> Referent {
        let Some(id) = fd_info(pid, fd, "eventfd-id:") else { return Referent::Other };
        let name = format!("eventfd {id}");
        self.one_way(Key::Counter(id), "eventfd", name, Boundaries::Counted, End::Unknown)
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

    /// The word at `address` of the process `pid`, if it lies in memory that processes share.
    pub(super) fn word(&mut self, pid: u32, address: u64) -> Option<u32> {
        if let Some(known) = self.words.get(&(pid, address)) {
            return *known;
        }
        let Ok(maps) = std::fs::read_to_string(format!("/proc/{pid}/maps")) else {
            let text = "wake-ups through futexes of processes that had ended before it was found out what memory they share";
            *self.refused.entry(text.to_owned()).or_default() += 1;
            return None;
        };
        let found = place(&maps, address).and_then(|place| {
            let name = format!("a word in {}", place.name);
            self.unheld(Key::Word(place), "futex", name, Boundaries::Kept)
        });
        self.words.insert((pid, address), found);
        found
    }

    /// The memory of the process `pid` is not what it was.
    pub(super) fn forget_words(&mut self, pid: u32) {
        self.words.retain(|(of, _), _| *of != pid);
    }

    /// An object that no descriptor refers to.
    fn unheld(&mut self, key: Key, mechanism: &str, name: String, boundaries: Boundaries) -> Option<u32> {
        let found = self.one_way(key, mechanism, name, boundaries, End::Unknown);
        if let Referent::OneWay(object) = found { Some(object) } else { None }
    }

    /// A pipe that was just made, whose descriptors should be `fds`: as /proc has it, or else one without an inode.
    pub(super) fn new_pipe(&mut self, pid: u32, fds: [u32; 2]) -> Referent {
        match fds.map(|fd| self.find(pid, fd)) {
            [found @ Referent::OneWay(_), other] if found == other => found,
            _ => self.nameless("pipe", "a short-lived pipe", Boundaries::None),
        }
    }

    /// An eventfd that was just made.
    pub(super) fn new_eventfd(&mut self, pid: u32, fd: u32) -> Referent {
        match self.find(pid, fd) {
            found @ Referent::OneWay(_) => found,
            _ => self.nameless("eventfd", "a short-lived eventfd", Boundaries::Counted),
        }
    }

    /// A pair of Unix sockets of `kind` that was just made.
    pub(super) fn new_pair(&mut self, pid: u32, fds: [u32; 2], kind: u64) -> [Referent; 2] {
        if let [Referent::Side(one, a), Referent::Side(other, b)] = fds.map(|fd| self.find(pid, fd))
            && one == other
            && a != b
        {
            return [Referent::Side(one, a), Referent::Side(other, b)];
        }
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

    fn socket(&mut self, pid: u32, fd: u32, inode: u64) -> Referent {
        let copy = match copy_or_refusal(pid, fd) {
            Ok(copy) => copy,
            Err(refusal) => {
                *self.refused.entry(format!("sockets could not be examined: {refusal}")).or_default() += 1;
                return Referent::Other;
            }
        };
        // Between the link and the copy the descriptor can have become another.
        if fstat(&copy).is_ok_and(|stat| {
            stat.st_ino != inode || FileType::from_raw_mode(stat.st_mode) != FileType::Socket
        }) {
            return Referent::Unknown;
        }
        match sockopt::socket_domain(&copy) {
            Ok(AddressFamily::UNIX) => self.unix(&copy, inode),
            Ok(AddressFamily::INET | AddressFamily::INET6) => self.inet(&copy),
            Ok(family) => {
                let name = match family {
                    AddressFamily::NETLINK => "netlink".to_owned(),
                    AddressFamily::VSOCK => "vsock".to_owned(),
                    other => format!("address family {}", other.as_raw()),
                };
                *self.refused.entry(format!("sockets of {name} are in no flow")).or_default() += 1;
                Referent::Other
            }
            Err(_) => Referent::Other,
        }
    }

    fn unix(&mut self, copy: &OwnedFd, inode: u64) -> Referent {
        let Some((mechanism, boundaries)) =
            sockopt::socket_type(copy).ok().and_then(|kind| unix_kind(kind.as_raw()))
        else {
            return Referent::Other;
        };
        let ask = |inode: u64| self.diagnostics.as_ref()?.unix(u32::try_from(inode).ok()?);
        let Some(own) = ask(inode) else { return Referent::Unknown };
        let Some(peer) = own.peer.map(u64::from).filter(|peer| *peer != 0) else {
            if mechanism == "unix-dgram" {
                let text = "datagrams of Unix sockets without a fixed peer are in no flow";
                *self.refused.entry(text.to_owned()).or_default() += 1;
                return Referent::Other;
            }
            return Referent::Unknown;
        };
        let (low, high) = (inode.min(peer), inode.max(peer));
        let side = u8::from(inode != low);
        let key = Key::Unix(low, high);
        if let Some(known) = self.known.get(&key).copied() {
            return self.end(known, side, params_of(copy));
        }
        let peers = ask(peer).and_then(|peer| peer.name);
        let server_side = match (&own.name, &peers) {
            (Some(_), None) => Some(side),
            (None, Some(_)) => Some(1 - side),
            _ => None,
        };
        let name = own.name.or(peers);
        let mut params = Vec::new();
        if mechanism != "unix-dgram" {
            match name.as_deref() {
                Some([0, ..]) => params.push("name=abstract".to_owned()),
                Some(_) => params.push("name=path".to_owned()),
                None => {}
            }
        }
        let name = match name {
            Some(name) => format!("Unix socket {}", String::from_utf8_lossy(&name).replace('\0', "@")),
            None => format!("Unix sockets {low} and {high}"),
        };
        let ends = [End::Socket(low), End::Socket(high)];
        match self.add(key, with(mechanism, &params), name, boundaries, ends) {
            Referent::OneWay(object) => {
                self.all[object as usize].server_side = server_side;
                self.end(object, side, params_of(copy))
            }
            other => other,
        }
    }

    /// The side `side` of the sockets that are `object`, of which the program has set `params`.
    fn end(&mut self, object: u32, side: u8, params: Vec<String>) -> Referent {
        let of = &mut self.all[object as usize];
        let plain = || Sockets::new(of.mechanism.clone().unwrap_or_default());
        let sockets = self.sockets.entry(object).or_insert_with(plain);
        of.mechanism = Some(sockets.with_end(side, params));
        Referent::Side(object, side)
    }

    fn inet(&mut self, copy: &OwnedFd) -> Referent {
        let (stream, mechanism, boundaries) = match sockopt::socket_type(copy) {
            Ok(SocketType::STREAM) => (true, "tcp", Boundaries::None),
            Ok(SocketType::DGRAM) => (false, "udp", Boundaries::Kept),
            _ => return Referent::Other,
        };
        let address = |address: SocketAddrAny| SocketAddr::try_from(address).ok().map(canonical);
        let Some(local) = getsockname(copy).ok().and_then(address) else { return Referent::Unknown };
        let Some(peer) = getpeername(copy).ok().flatten().and_then(address) else {
            if !stream {
                let text = "datagrams of UDP sockets without a fixed peer are in no flow";
                *self.refused.entry(text.to_owned()).or_default() += 1;
                return Referent::Other;
            }
            return Referent::Unknown;
        };
        let (low, high) = (local.min(peer), local.max(peer));
        let side = u8::from(local != low);
        let key = Key::Inet { stream, low, high };
        let params = params_of(copy);
        if let Some(known) = self.known.get(&key).copied() {
            return self.end(known, side, params);
        }
        let listening = self.listening.get_or_insert_with(listening_ports);
        let server_side = [low, high].iter().position(|end| stream && listening.contains(&end.port()));
        let ends = [End::Address(low), End::Address(high)];
        let name = format!("{} {local} and {peer}", if stream { "TCP" } else { "UDP" });
        match self.add(key, mechanism.to_owned(), name, boundaries, ends) {
            Referent::OneWay(object) => {
                self.all[object as usize].server_side = server_side.and_then(|side| u8::try_from(side).ok());
                self.end(object, side, params)
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

    fn nameless(&mut self, mechanism: &str, name: &str, boundaries: Boundaries) -> Referent {
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
            *self
                .refused
                .entry("there were more pipes and sockets than are told apart".to_owned())
                .or_default() += 1;
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

    /// Who else holds the sides of objects that are in `missing`. `is_recorded` says whose calls were recorded.
    pub(super) fn holders(
        &self,
        missing: &BTreeSet<(u32, u8)>,
        is_recorded: impl Fn(u32) -> bool,
    ) -> Vec<((u32, u8), Holder)> {
        let wanted = |&(object, side): &(u32, u8)| {
            let end = self.ends[object as usize][usize::from(side)].clone();
            Wanted { object, side, end }
        };
        find_holders(missing.iter().map(wanted).collect(), is_recorded)
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

/// Whether `fd` of `pid` is closed when the process becomes another program.
pub(super) fn closes_at_exec(pid: u32, fd: u32) -> bool {
    let flags = fd_info::<String>(pid, fd, "flags:");
    flags.and_then(|flags| u64::from_str_radix(&flags, 8).ok()).is_some_and(|flags| flags & CLOEXEC != 0)
}

/// What /proc/PID/fdinfo/FD says of `what`.
fn fd_info<T: FromStr>(pid: u32, fd: u32, what: &str) -> Option<T> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(what)?.trim().parse().ok())
}

/// A descriptor of this process for what `fd` of the process `pid` refers to. It is closed at once again.
fn copy(pid: u32, fd: u32) -> Option<OwnedFd> {
    copy_or_refusal(pid, fd).ok()
}

fn copy_or_refusal(pid: u32, fd: u32) -> rustix::io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid.cast_signed()).ok_or(rustix::io::Errno::SRCH)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    pidfd_getfd(process, RawFd::try_from(fd).unwrap_or(-1), PidfdGetfdFlags::empty())
}

/// An IPv4 address in its own form where it is written as one of IPv6.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
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
