//! Who else holds a pipe or a socket: processes that were not recorded, found in /proc by what their descriptors refer to.

use super::cpus::held_cpus;
use model::communication::{CommunicatingProcess, CommunicatingThread};
use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;

/// How many processes are searched at most.
const MOST_PROCESSES: usize = 1 << 16;

/// How the side of an object is found in /proc.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// Not at all.
    Unknown,
    /// A pipe, by its inode.
    Pipe(u64),
    /// A FIFO or a queue, by its path.
    File(String),
    /// A Unix socket, by its inode.
    Socket(u64),
    /// An internet socket, by its own address.
    Address(SocketAddr),
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

/// Finds who holds what is `wanted`, of the processes of which `is_recorded` does not hold.
pub(super) fn find_holders(
    wanted: Vec<Wanted>,
    is_recorded: impl Fn(u32) -> bool,
) -> Vec<((u32, u8), Holder)> {
    let inodes = internet_sockets(&wanted);
    // What a link of /proc/PID/fd says, and which side that is.
    let mut links: HashMap<String, Vec<(u32, u8)>> = HashMap::new();
    let mut found: HashMap<(u32, u8), Holder> = HashMap::new();
    for Wanted { object, side, end } in &wanted {
        let link = match end {
            End::Unknown => continue,
            End::Pipe(inode) => format!("pipe:[{inode}]"),
            End::File(path) => path.clone(),
            End::Socket(inode) => format!("socket:[{inode}]"),
            End::Address(address) => {
                // Until somebody of this host is found to have it.
                found.insert((*object, *side), Holder::Address(address.to_string()));
                match inodes.get(address) {
                    Some(inode) => format!("socket:[{inode}]"),
                    None => continue,
                }
            }
        };
        links.entry(link).or_default().push((*object, *side));
    }
    if links.is_empty() {
        return found.into_iter().collect();
    }
    let own = std::process::id();
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).take(MOST_PROCESSES);
    for pid in pids.filter(|pid| *pid != own && !is_recorded(*pid)) {
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            let Ok(link) = fs::read_link(entry.path()) else { continue };
            let Some(sides) = links.get(&*link.to_string_lossy()) else { continue };
            let access = access(pid, &entry.file_name().to_string_lossy());
            for (object, side) in sides {
                let one_way = wanted.iter().any(|wanted| {
                    wanted.object == *object && matches!(wanted.end, End::Pipe(_) | End::File(_))
                });
                // Who sends holds the end for writing, and is side 0.
                let other_end = u32::from(*side == 1);
                if one_way && access == Some(other_end) {
                    continue;
                }
                let holder = Holder::Process { pid, name: process_name(pid) };
                let place = found.entry((*object, *side)).or_insert_with(|| holder.clone());
                if matches!(place, Holder::Address(_)) {
                    *place = holder;
                }
            }
        }
    }
    found.into_iter().collect()
}

/// What the process `pid` is called.
pub(super) fn process_name(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = name.trim_end_matches('\n');
    if name.is_empty() { format!("pid-{pid}") } else { name.to_owned() }
}

/// For what `fd` of `pid` is open: 0 reading, 1 writing, 2 both.
fn access(pid: u32, fd: &str) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    Some(u32::from_str_radix(flags.trim(), 8).ok()? & 3)
}

/// The inodes of the internet sockets of this host by their own addresses, of those that are wanted.
fn internet_sockets(wanted: &[Wanted]) -> HashMap<SocketAddr, u64> {
    let addresses: Vec<SocketAddr> = wanted
        .iter()
        .filter_map(|wanted| if let End::Address(address) = wanted.end { Some(address) } else { None })
        .collect();
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
        let found = internet_sockets(&[Wanted { object: 0, side: 0, end: End::Address(local) }]);
        assert_eq!(found.get(&local), Some(&rustix::fs::fstat(&stream).unwrap().st_ino));
    }

    proptest::proptest! {
        #[test]
        fn no_address_panics(text in ".{0,40}") {
            let _ = address(&text);
        }
    }
}
