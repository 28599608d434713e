//! The process whose call is answered: its descriptors and its memory. What is done with them is not known here.

use crate::address::LONGEST_BYTES;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::net::{AddressFamily, Protocol, SocketType, bind, getsockname, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use sys::Errno;
use sys::epoll_entry::EpollEntry;
use sys::process_vm;

/// `PIDFD_THREAD` of linux/pidfd.h: a descriptor of a thread (Linux 6.9).
const OF_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(OFlags::EXCL.bits());

/// `IPPROTO_TCP` and `IPPROTO_MPTCP` (linux/in.h).
const TCP: u32 = 6;
pub(crate) const MPTCP: u32 = 262;

/// The thread that made a call.
pub(crate) struct Caller {
    thread: Pid,
    pidfd: OwnedFd,
}

/// A socket of the caller's, of which this process has a descriptor too.
pub(crate) struct CallersSocket {
    /// Its number there.
    pub(crate) number: RawFd,
    /// The descriptor here.
    pub(crate) file: OwnedFd,
    /// By which it is known as long as it exists.
    pub(crate) inode: u64,
    pub(crate) family: AddressFamily,
    pub(crate) kind: SocketType,
    pub(crate) protocol: Option<Protocol>,
}

impl CallersSocket {
    /// Whether it is of TCP, or of MPTCP, which looks the same and which some languages take by themselves.
    pub(crate) fn is_tcp(&self) -> bool {
        let of_ip = [AddressFamily::INET, AddressFamily::INET6].contains(&self.family);
        let is_tcp = self.protocol.is_none_or(|protocol| [TCP, MPTCP].contains(&protocol.as_raw().get()));
        of_ip && self.kind == SocketType::STREAM && is_tcp
    }

    /// Whether it is of UDP.
    pub(crate) fn is_udp(&self) -> bool {
        let of_ip = [AddressFamily::INET, AddressFamily::INET6].contains(&self.family);
        of_ip && self.kind == SocketType::DGRAM
    }

    /// The address that it has.
    pub(crate) fn own_address(&self) -> Result<SocketAddr, Errno> {
        SocketAddr::try_from(getsockname(&self.file)?).map_err(|_| Errno::AFNOSUPPORT)
    }

    /// The same, after it was bound to a free port if it had none, as listen(2) and connect(2) do it. The address stays open, which is as they
    /// leave the options of the socket.
    pub(crate) fn bound_address(&self) -> Result<SocketAddr, Errno> {
        let address = self.own_address()?;
        if address.port() != 0 {
            return Ok(address);
        }
        bind(&self.file, &SocketAddr::new(address.ip(), 0))?;
        self.own_address()
    }

    /// Whether its calls do not wait.
    pub(crate) fn is_non_blocking(&self) -> bool {
        fcntl_getfl(&self.file).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK))
    }
}

/// By which number a socket is known as long as it exists.
pub(crate) fn inode_of(file: impl AsFd) -> Result<u64, Errno> {
    Ok(fstat(file)?.st_ino)
}

impl Caller {
    pub(crate) fn open(thread: Pid) -> Result<Self, Errno> {
        // Of a thread that is not the first of its process, older kernels have none: then of that process, by whose table of
        // descriptors its threads go as well.
        let pidfd = pidfd_open(thread, OF_THREAD)
            .or_else(|_| pidfd_open(thread, PidfdFlags::empty()))
            .or_else(|_| pidfd_open(process_of(thread)?, PidfdFlags::empty()))?;
        Ok(Self { thread, pidfd })
    }

    /// The file that it has at `number`.
    pub(crate) fn descriptor(&self, number: u64) -> Result<OwnedFd, Errno> {
        let number = RawFd::try_from(number as u32).map_err(|_| Errno::BADF)?;
        pidfd_getfd(&self.pidfd, number, PidfdGetfdFlags::empty())
    }

    /// The socket that it has at `number`; `Errno::NOTSOCK` where that is another file.
    pub(crate) fn socket(&self, number: u64) -> Result<CallersSocket, Errno> {
        let file = self.descriptor(number)?;
        Ok(CallersSocket {
            number: number as RawFd,
            inode: inode_of(&file)?,
            family: sockopt::socket_domain(&file)?,
            kind: sockopt::socket_type(&file)?,
            protocol: sockopt::socket_protocol(&file)?,
            file,
        })
    }

    /// What lies at `address` in its memory.
    pub(crate) fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        process_vm::read_at(self.thread, address, into)
    }

    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        process_vm::write_at(self.thread, address, bytes)
    }

    /// A length (`socklen_t`) in its memory.
    pub(crate) fn read_length(&self, address: u64) -> Result<u32, Errno> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    /// An address of a socket in its memory, as the kernel reads it.
    pub(crate) fn read_address(&self, address: u64, length: u64) -> Result<Vec<u8>, Errno> {
        let length = usize::try_from(length as u32).map_err(|_| Errno::INVAL)?;
        if length > LONGEST_BYTES {
            return Err(Errno::INVAL);
        }
        let mut bytes = vec![0; length];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes the bytes of an address where it wants them, as far as there is room, and its whole length (accept(2)).
    pub(crate) fn write_address(&self, at: u64, length_at: u64, bytes: &[u8]) -> Result<(), Errno> {
        let room = self.read_length(length_at)?;
        let room = i32::try_from(room).map_err(|_| Errno::INVAL)? as usize;
        self.write(at, &bytes[..bytes.len().min(room)])?;
        self.write(length_at, &(bytes.len() as u32).to_ne_bytes())
    }

    /// The numbers at which it has the socket with this `inode`, `first` before all others.
    pub(crate) fn numbers_of(&self, inode: u64, first: RawFd) -> Vec<RawFd> {
        let name = format!("socket:[{inode}]");
        let others = links(&format!("{}/fd", self.place()))
            .filter(|(number, to)| *number != first && *to.to_string_lossy() == name);
        std::iter::once(first).chain(others.map(|(number, _)| number)).collect()
    }

    /// Whether its parent or one of its children has the socket with this `inode` too.
    pub(crate) fn shares(&self, inode: u64) -> bool {
        let name = format!("socket:[{inode}]");
        let status = fs::read_to_string(format!("{}/status", self.place())).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).map(str::trim);
        let children =
            fs::read_to_string(format!("{0}/task/{1}/children", self.place(), self.thread.as_raw_nonzero()));
        let children = children.unwrap_or_default();
        parent
            .into_iter()
            .chain(children.split_whitespace())
            .any(|pid| links(&format!("/proc/{pid}/fd")).any(|(_, to)| *to.to_string_lossy() == name))
    }

    /// Whether the file at `number` is closed on exec(2).
    pub(crate) fn closes_on_exec(&self, number: RawFd) -> bool {
        let said = fs::read_to_string(format!("{}/fdinfo/{number}", self.place())).unwrap_or_default();
        let flags = said.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).unwrap_or_default();
        OFlags::from_bits_retain(flags).contains(OFlags::CLOEXEC)
    }

    /// The entries of its epoll sets for `number` (proc_pid_fdinfo(5)), each with a descriptor of its set.
    pub(crate) fn epoll_entries(&self, number: RawFd) -> Vec<(OwnedFd, EpollEntry)> {
        let sets = links(&format!("{}/fd", self.place()))
            .filter(|(_, to)| to.as_os_str() == "anon_inode:[eventpoll]");
        let mut found = Vec::new();
        for (set, _) in sets {
            let said = fs::read_to_string(format!("{}/fdinfo/{set}", self.place())).unwrap_or_default();
            let Some(entry) = said.lines().filter_map(epoll_entry).find(|entry| entry.number == number)
            else {
                continue;
            };
            if let Ok(file) = self.descriptor(set as u64) {
                found.push((file, entry));
            }
        }
        found
    }

    fn place(&self) -> String {
        format!("/proc/{}", self.thread.as_raw_nonzero())
    }
}

/// The descriptors' numbers with the names of their files, in a folder of /proc.
fn links(folder: &str) -> impl Iterator<Item = (RawFd, PathBuf)> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        Some((number, fs::read_link(entry.path()).ok()?))
    })
}

/// An entry as /proc/PID/fdinfo has it: `tfd: 5 events: 80000019 data: 7f00000005 pos:…`.
fn epoll_entry(line: &str) -> Option<EpollEntry> {
    let mut words = line.strip_prefix("tfd:")?.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut after = |name: &str| {
        (words.next()? == name).then_some(())?;
        u64::from_str_radix(words.next()?, 16).ok()
    };
    let events = u32::try_from(after("events:")?).ok()?;
    Some(EpollEntry { number, events, data: after("data:")? })
}

/// The process of a thread (proc_pid_status(5)).
fn process_of(thread: Pid) -> Result<Pid, Errno> {
    let said =
        fs::read_to_string(format!("/proc/{}/status", thread.as_raw_nonzero())).map_err(|_| Errno::SRCH)?;
    let line = said.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|id| Pid::from_raw(id.trim().parse().ok()?)).ok_or(Errno::SRCH)
}

/// Gives `new` the flags of `old` that belong to an open file: whether calls wait.
pub(crate) fn copy_file_flags(old: BorrowedFd<'_>, new: BorrowedFd<'_>) -> Result<(), Errno> {
    fcntl_setfl(new, fcntl_getfl(old)? & (OFlags::NONBLOCK | OFlags::ASYNC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_an_epoll_set_are_read_as_the_kernel_writes_them() {
        let line = "tfd:        5 events: 8000001d data:     7f0000000005  pos:0 ino:61 sdev:9";
        let expected = EpollEntry { number: 5, events: 0x8000_001d, data: 0x7f00_0000_0005 };
        assert_eq!(epoll_entry(line), Some(expected));
        assert_eq!(epoll_entry("pos:\t0"), None);
        assert_eq!(epoll_entry("tfd: x"), None);
    }
}
