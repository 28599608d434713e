//! From the record of a file to what it is. What programs read of files they read blindly: which of it means anything, is decided here.

use super::layout::{file, long, short};
use crate::recorder::described::{
    DescribedFile, FileKind, Inode, InternetEnd, PIPES, PROCESSES, QUEUES, UnixEnd,
};
use crate::recorder::socket_params::SetParams;
use rustix::fs::FileType;
use rustix::net::{AddressFamily, SocketType};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// `IPPROTO_TCP` and `IPPROTO_UDP`.
const TCP: u32 = 6;
const UDP: u32 = 17;

/// What the file is of which `bytes` are the record.
pub(super) fn described(bytes: &[u8]) -> Option<DescribedFile> {
    let at = Inode { device: u64::from(short(bytes, file::DEVICE)?), number: long(bytes, file::INODE)? };
    let system = long(bytes, file::FILE_SYSTEM)?;
    let number = short(bytes, file::NUMBER)?;
    let name = name(bytes)?;
    let kind = match FileType::from_raw_mode(short(bytes, file::MODE)?) {
        FileType::Socket => socket(bytes, number)?,
        FileType::Fifo => {
            let capacity_bytes = Some(number as usize * rustix::param::page_size());
            match system == PIPES {
                true => FileKind::Pipe { capacity_bytes },
                false => FileKind::Fifo { name, capacity_bytes },
            }
        }
        _ if system == QUEUES => FileKind::Queue { name },
        _ if system == PROCESSES || name == "[pidfd]" => FileKind::Process(short(bytes, file::FAMILY)?),
        _ if name == "[eventfd]" => FileKind::Eventfd(u64::from(number)),
        _ if name == "[signalfd]" => FileKind::Signals,
        _ => FileKind::Other { name },
    };
    Some(DescribedFile { kind, at })
}

fn name(bytes: &[u8]) -> Option<String> {
    let name = bytes.get(file::NAME as usize..)?.get(..file::NAME_BYTES as usize)?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Some(String::from_utf8_lossy(name).into_owned())
}

fn socket(bytes: &[u8], kind: u32) -> Option<FileKind> {
    let family = u16::try_from(short(bytes, file::FAMILY)?).ok()?;
    let protocol = short(bytes, file::PROTOCOL)?;
    let params = SetParams {
        buffers: short(bytes, file::SET_BUFFERS)?,
        send_bytes: short(bytes, file::SEND_BUFFER)?,
        receive_bytes: short(bytes, file::RECEIVE_BUFFER)?,
        nodelay: None,
    };
    let is_internet =
        [AddressFamily::INET, AddressFamily::INET6].map(AddressFamily::as_raw).contains(&family);
    if family == AddressFamily::UNIX.as_raw() {
        return unix(bytes, kind, &params);
    }
    if !is_internet {
        return Some(FileKind::OtherSocket { family });
    }
    let is_stream = kind == SocketType::STREAM.as_raw();
    if protocol != if is_stream { TCP } else { UDP } {
        return Some(FileKind::OtherSocket { family });
    }
    /// `TCP_NAGLE_OFF`.
    const SENDS_AT_ONCE: u32 = 1;
    let nodelay = Some(short(bytes, file::NODELAY)? & SENDS_AT_ONCE != 0).filter(|_| is_stream);
    let params = SetParams { nodelay, ..params }.params();
    let port = |at: i16| u16::try_from(short(bytes, at)?).ok();
    let is_sixth = family == AddressFamily::INET6.as_raw();
    let ip = |fourth: i16, sixth: i16| -> Option<IpAddr> {
        Some(match is_sixth {
            true => Ipv6Addr::from(*bytes.get(sixth as usize..)?.first_chunk::<16>()?).to_canonical(),
            false => IpAddr::from(*bytes.get(fourth as usize..)?.first_chunk::<4>()?),
        })
    };
    let own = SocketAddr::new(ip(file::OWN_IPV4, file::OWN_IPV6)?, port(file::OWN_PORT)?);
    let peer = SocketAddr::new(ip(file::PEER_IPV4, file::PEER_IPV6)?, u16::from_be(port(file::PEER_PORT)?));
    let peer = Some(peer).filter(|peer| peer.port() != 0);
    Some(FileKind::Internet(InternetEnd { is_stream, own, peer, params }))
}

fn unix(bytes: &[u8], kind: u32, params: &SetParams) -> Option<FileKind> {
    /// The family, before the name.
    const FAMILY_BYTES: usize = 2;
    let peer = Some(long(bytes, file::PEER_INODE)?).filter(|peer| *peer != 0);
    let own_bytes = short(bytes, file::OWN_NAME_BYTES)? as usize;
    let peer_bytes = short(bytes, file::PEER_NAME_BYTES)? as usize;
    let name_bytes = if own_bytes > 0 { own_bytes } else { peer_bytes };
    let name = bytes.get(file::SOCKET_NAME as usize..)?;
    let name = name.get(FAMILY_BYTES..name_bytes.min(file::SOCKET_NAME_BYTES as usize));
    let name = name.filter(|name| !name.is_empty()).map(without_end);
    Some(FileKind::Unix(UnixEnd {
        kind,
        peer,
        name,
        is_name_own: own_bytes > 0,
        has_peer_name: peer_bytes > 0,
        params: params.params(),
    }))
}

/// A name without what follows a path. An abstract name has its length, and may hold any bytes.
fn without_end(name: &[u8]) -> Vec<u8> {
    match name.first() {
        Some(0) | None => name.to_vec(),
        Some(_) => name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec(),
    }
}
