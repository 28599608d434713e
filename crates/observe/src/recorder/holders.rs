//! Who else holds a pipe or a socket: processes that were not recorded. They are searched for in the kernel, where that may be done, for
//! to look at their descriptors through /proc would have their files open.

use super::bpf::{FoundFile, who_has};
use super::cpus::held_cpus;
use super::described::Inode;
use model::communication::{CommunicatingProcess, CommunicatingThread};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::net::SocketAddr;
use sys::Failure;

/// How the side of an object is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// Not at all.
    Unknown,
    /// A pipe, a queue or a Unix socket.
    Inode(Inode),
    /// An internet socket, by its own address, and the device of the inodes of sockets.
    Address { address: SocketAddr, device: u64 },
}

/// A side that is looked for.
pub(super) struct Wanted {
    pub(super) object: u32,
    pub(super) side: u8,
    pub(super) end: End,
}

/// Who holds it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    /// A process of this host.
    Process { pid: u32, name: String },
    /// Somebody at this address.
    Address(String),
}

/// A side of an object, and who holds it.
pub(super) type HeldSide = ((u32, u8), Holder);

impl Holder {
    /// As a process that was not recorded.
    pub(super) fn process(self) -> CommunicatingProcess {
        let (name, thread) = match self {
            Holder::Process { pid, name } => {
                let cpus = held_cpus(pid).unwrap_or_default();
                (name, Some((pid, CommunicatingThread { cpus, ..CommunicatingThread::default() })))
            }
            Holder::Address(name) => (name, None),
        };
        let threads = thread.into_iter().collect();
        CommunicatingProcess { outside: true, threads, ..CommunicatingProcess::new(name) }
    }
}

/// Finds who holds what is `wanted`, of the processes of which `is_recorded` does not hold: with `searches` in the kernel. Else, and where
/// nobody of this host has it, an address is all that is known.
pub(super) fn find_holders(
    wanted: Vec<Wanted>,
    searches: bool,
    is_recorded: impl Fn(u32) -> bool,
) -> Result<Vec<HeldSide>, Failure> {
    let mut found: HashMap<(u32, u8), Holder> = HashMap::new();
    for Wanted { object, side, end } in &wanted {
        if let End::Address { address, .. } = end {
            found.insert((*object, *side), Holder::Address(address.to_string()));
        }
    }
    if searches {
        let sides = sides_by_inode(&wanted);
        let files = who_has(&sides.keys().copied().collect())?;
        let own = std::process::id();
        for file in files.into_iter().filter(|file| file.pid != own && !is_recorded(file.pid)) {
            let holder = Holder::Process { pid: file.pid, name: process_name(file.pid) };
            for (object, side) in
                sides.get(&file.at).into_iter().flatten().filter(|(_, side)| has(file, *side))
            {
                let place = found.entry((*object, *side)).or_insert_with(|| holder.clone());
                if matches!(place, Holder::Address(_)) {
                    *place = holder.clone();
                }
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Whether `file` is open for what this side does: who sends is side 0. A socket is open for both.
fn has(file: FoundFile, side: u8) -> bool {
    if side == 0 { file.writes } else { file.reads }
}

/// The sides that are `wanted`, by the inodes that who holds them has open.
fn sides_by_inode(wanted: &[Wanted]) -> HashMap<Inode, Vec<(u32, u8)>> {
    let numbers = internet_sockets(wanted);
    let mut sides: HashMap<Inode, Vec<(u32, u8)>> = HashMap::new();
    for Wanted { object, side, end } in wanted {
        let inode = match end {
            End::Unknown => None,
            End::Inode(inode) => Some(*inode),
            End::Address { address, device } => {
                numbers.get(address).map(|number| Inode { device: *device, number: *number })
            }
        };
        inode.into_iter().for_each(|inode| sides.entry(inode).or_default().push((*object, *side)));
    }
    sides
}

/// What the process `pid` is called.
pub(super) fn process_name(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = name.trim_end_matches('\n');
    if name.is_empty() { format!("pid-{pid}") } else { name.to_owned() }
}

/// The inodes of the internet sockets of this host by their own addresses, of those that are wanted.
fn internet_sockets(wanted: &[Wanted]) -> HashMap<SocketAddr, u64> {
    let address_of = |wanted: &Wanted| match wanted.end {
        End::Address { address, .. } => Some(address),
        _ => None,
    };
    let addresses: BTreeSet<SocketAddr> = wanted.iter().filter_map(address_of).collect();
    if addresses.is_empty() {
        return HashMap::new();
    }
    let tables = ["tcp", "tcp6", "udp", "udp6"].map(|name| fs::read_to_string(format!("/proc/net/{name}")));
    let lines = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
    let entry = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, inode) = (address(fields.get(1)?)?, fields.get(9)?.parse().ok()?);
        (inode != 0 && addresses.contains(&local)).then_some((local, inode))
    };
    lines.filter_map(entry).collect()
}

/// An address as /proc/net/tcp writes it: words of 32 bits in the order of this host's memory, and a port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for word in ip.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let ip = match (<[u8; 4]>::try_from(bytes.as_slice()), <[u8; 16]>::try_from(bytes.as_slice())) {
        (Ok(four), _) => four.into(),
        (_, Ok(sixteen)) => std::net::IpAddr::from(sixteen).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let text = if cfg!(target_endian = "little") { "0100007F:1538" } else { "7F000001:1538" };
        assert_eq!(address(text), Some("127.0.0.1:5432".parse().unwrap()));
        assert_eq!(address("0100007F"), None);
        assert_eq!(address("01:99999"), None);
    }

    #[test]
    fn the_inode_of_a_socket_is_found_by_its_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let local = stream.local_addr().unwrap();
        let end = End::Address { address: local, device: 0 };
        let found = internet_sockets(&[Wanted { object: 0, side: 0, end }]);
        assert_eq!(found.get(&local), Some(&rustix::fs::fstat(&stream).unwrap().st_ino));
    }

    proptest::proptest! {
        #[test]
        fn no_address_panics(text in ".{0,40}") {
            let _ = address(&text);
        }
    }
}
