//! To what descriptors of a process refer that is stopped, with all its threads: by /proc and by a copy of the descriptor (pidfd_getfd(2)).
//!
//! Both have the file open for that time. Of a process that runs, it could be closed meanwhile, and whoever waits for that would see it late:
//! the end of a pipe, a lock that is given up. A process that is stopped closes nothing.

use super::described::{DescribedFile, FileKind, Inode, InternetEnd, UnixEnd};
use super::described::{PIPES, QUEUES};
use super::descriptors::{Descriptors, Referent};
use super::objects::{CLOEXEC, Objects};
use super::socket_diagnostics::SocketDiagnostics;
use super::socket_params::SetParams;
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, fstat, fstatfs};
use rustix::net::{AddressFamily, SocketAddrAny, SocketType, getpeername, getsockname, sockopt};
use rustix::pipe::fcntl_getpipe_size;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::str::FromStr;

/// To what descriptors below this refer is found out at once, and of others at their first use.
const SOON: u32 = 1024;

/// Whether the stopped thread of the process `pid` is its only one, so that the process is stopped.
pub(super) fn is_alone(pid: u32) -> bool {
    std::fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.count() == 1)
}

/// The descriptors of the stopped process `pid`, and to what they refer of `objects`.
pub(super) fn descriptors(pid: u32, objects: &mut Objects) -> Descriptors {
    let mut table = Descriptors::complete();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        if let Some(fd) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
            let referent = match examine(pid, fd).filter(|_| fd < SOON) {
                Some(file) => objects.referent(pid, &file),
                None => Referent::Unknown,
            };
            table.open(fd, referent, closes_at_exec(pid, fd));
        }
    }
    table
}

/// To what `fd` of the stopped process `pid` refers.
pub(super) fn examine(pid: u32, fd: u32) -> Option<DescribedFile> {
    let link = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
    let link = link.to_string_lossy().into_owned();
    let copy = copy(pid, fd)?;
    let stat = fstat(&copy).ok()?;
    let system = fstatfs(&copy).ok()?.f_type.cast_unsigned();
    let at = Inode { device: stat.st_dev, number: stat.st_ino };
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Socket => socket(&copy, at.number)?,
        FileType::Fifo => {
            let capacity_bytes = fcntl_getpipe_size(&copy).ok();
            match system == PIPES {
                true => FileKind::Pipe { capacity_bytes },
                false => FileKind::Fifo { name: link, capacity_bytes },
            }
        }
        _ if system == QUEUES => FileKind::Queue { name: link },
        _ if link == "anon_inode:[eventfd]" => FileKind::Eventfd(fd_info(pid, fd, "eventfd-id:")?),
        _ if link == "anon_inode:[signalfd]" => FileKind::Signals,
        // Since Linux 6.9 they lie in a file system of their own.
        _ if link == "anon_inode:[pidfd]" || link.starts_with("pidfd:[") => {
            FileKind::Process(fd_info(pid, fd, "Pid:")?)
        }
        _ => FileKind::Other { name: link },
    };
    Some(DescribedFile { kind, at })
}

fn socket(copy: &OwnedFd, inode: u64) -> Option<FileKind> {
    let kind = sockopt::socket_type(copy).ok()?;
    let params = SetParams::from_socket(copy).params();
    let family = sockopt::socket_domain(copy).ok()?;
    match family {
        AddressFamily::UNIX => {
            let ask = |inode: u64| SocketDiagnostics::open().ok()?.unix(u32::try_from(inode).ok()?);
            let own = ask(inode)?;
            let peer = own.peer.map(u64::from).filter(|peer| *peer != 0);
            let peer_name = peer.and_then(ask).and_then(|peer| peer.name);
            Some(FileKind::Unix(UnixEnd {
                kind: kind.as_raw(),
                peer,
                is_name_own: own.name.is_some(),
                has_peer_name: peer_name.is_some(),
                name: own.name.or(peer_name),
                params,
            }))
        }
        AddressFamily::INET | AddressFamily::INET6
            if [SocketType::STREAM, SocketType::DGRAM].contains(&kind) =>
        {
            let address = |address: SocketAddrAny| SocketAddr::try_from(address).ok().map(canonical);
            let own = getsockname(copy).ok().and_then(address)?;
            let peer = getpeername(copy).ok().flatten().and_then(address);
            let is_stream = kind == SocketType::STREAM;
            Some(FileKind::Internet(InternetEnd { is_stream, own, peer, params }))
        }
        other => Some(FileKind::OtherSocket { family: other.as_raw() }),
    }
}

/// Whether `fd` of `pid` is closed when the process becomes another program.
fn closes_at_exec(pid: u32, fd: u32) -> bool {
    let flags = fd_info::<String>(pid, fd, "flags:");
    flags.and_then(|flags| u64::from_str_radix(&flags, 8).ok()).is_some_and(|flags| flags & CLOEXEC != 0)
}

/// What /proc/PID/fdinfo/FD says of `what`.
fn fd_info<T: FromStr>(pid: u32, fd: u32, what: &str) -> Option<T> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(what)?.trim().parse().ok())
}

/// A descriptor of this process for what `fd` of the process `pid` refers to.
fn copy(pid: u32, fd: u32) -> Option<OwnedFd> {
    let process = pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::empty()).ok()?;
    pidfd_getfd(process, RawFd::try_from(fd).ok()?, PidfdGetfdFlags::empty()).ok()
}

/// An IPv4 address in its own form where it is written as one of IPv6.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
