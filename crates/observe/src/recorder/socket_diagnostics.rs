//! What the kernel says of a Unix socket that no call on it says: the inode of its peer (sock_diag(7) over netlink).

use rustix::fd::OwnedFd;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, netlink, recv, sendto, socket_with};
use rustix::net::{SocketFlags, sockopt};
use std::time::Duration;
use sys::{Failure, OrFail};

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `UDIAG_SHOW_NAME | UDIAG_SHOW_PEER`.
const SHOW_NAME_AND_PEER: u32 = 0x1 | 0x4;
/// `UNIX_DIAG_NAME` and `UNIX_DIAG_PEER`.
const NAME: u16 = 0;
const PEER: u16 = 2;
/// The headers of a message and of what it says of a Unix socket.
const HEADER_BYTES: usize = 16;
const UNIX_BYTES: usize = 16;

/// A socket by which the kernel is asked about others.
pub(super) struct SocketDiagnostics(OwnedFd);

/// What the kernel says of a Unix socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct UnixSocket {
    /// Its name: a path, or an abstract one, which begins with a zero byte.
    pub(super) name: Option<Vec<u8>>,
    /// The inode of the socket that it is connected to.
    pub(super) peer: Option<u32>,
}

impl SocketDiagnostics {
    pub(super) fn open() -> Result<Self, Failure> {
        let opened = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        );
        let opened = opened.or_fail("socket", "socket diagnostics")?;
        // The kernel answers at once. If it ever does not, the recorder is not to wait.
        let _ =
            sockopt::set_socket_timeout(&opened, sockopt::Timeout::Recv, Some(Duration::from_millis(100)));
        Ok(Self(opened))
    }

    /// What the kernel says of the Unix socket `inode`; `None` if it is gone.
    pub(super) fn unix(&self, inode: u32) -> Option<UnixSocket> {
        sendto(&self.0, &request(inode), SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).ok()?;
        let mut answer = [0_u8; 1024];
        let (_, bytes) = recv(&self.0, &mut answer[..], RecvFlags::empty()).ok()?;
        parse(answer.get(..bytes)?, inode)
    }
}

/// The question about the Unix socket `inode`: `struct nlmsghdr`, then `struct unix_diag_req`.
fn request(inode: u32) -> Vec<u8> {
    const BYTES: u32 = 40;
    let mut text = Vec::with_capacity(BYTES as usize);
    text.extend(BYTES.to_ne_bytes());
    text.extend(BY_FAMILY.to_ne_bytes());
    text.extend(REQUEST.to_ne_bytes());
    text.extend([0; 8]);
    text.extend([u8::try_from(AddressFamily::UNIX.as_raw()).unwrap_or_default(), 0, 0, 0]);
    text.extend(u32::MAX.to_ne_bytes());
    text.extend(inode.to_ne_bytes());
    text.extend(SHOW_NAME_AND_PEER.to_ne_bytes());
    // Any cookie: the inode alone says which socket is meant.
    text.extend([0xff; 8]);
    text
}

/// What an answer says: `struct nlmsghdr`, `struct unix_diag_msg`, and attributes.
fn parse(answer: &[u8], inode: u32) -> Option<UnixSocket> {
    let number = |at: usize| answer.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let short = |at: usize| answer.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes);
    if short(4)? != BY_FAMILY || number(HEADER_BYTES + 4)? != inode {
        return None;
    }
    let mut found = UnixSocket::default();
    let mut at = HEADER_BYTES + UNIX_BYTES;
    while let (Some(length), Some(kind)) = (short(at), short(at + 2)) {
        let length = usize::from(length);
        if length < 4 {
            break;
        }
        match kind {
            NAME => found.name = answer.get(at + 4..at + length).map(|name| without_end(name).to_vec()),
            PEER => found.peer = number(at + 4),
            _ => {}
        }
        at += length.next_multiple_of(4);
    }
    Some(found)
}

/// A name without the zero byte that ends a path. An abstract name has its length, and may hold any.
fn without_end(name: &[u8]) -> &[u8] {
    match name {
        [path @ .., 0] if path.first().is_some_and(|first| *first != 0) => path,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn inode(socket: impl AsFd) -> u32 {
        u32::try_from(rustix::fs::fstat(socket).unwrap().st_ino).unwrap()
    }

    #[test]
    fn the_peer_of_a_socket_is_known() {
        let diagnostics = SocketDiagnostics::open().unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        let asked = diagnostics.unix(inode(&one));
        // A kernel without the module (CONFIG_UNIX_DIAG) says nothing.
        if let Some(found) = asked {
            assert_eq!(found, UnixSocket { name: None, peer: Some(inode(&other)) });
        }
        assert_eq!(diagnostics.unix(u32::MAX), None);
    }

    #[test]
    fn a_socket_by_path_has_its_name() {
        let diagnostics = SocketDiagnostics::open().unwrap();
        let path = std::env::temp_dir().join(format!("ipcmark-test-{}-diagnostics", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let asked = diagnostics.unix(inode(&listener));
        std::fs::remove_file(&path).unwrap();
        if let Some(found) = asked {
            assert_eq!(found.name.as_deref(), Some(path.as_os_str().as_encoded_bytes()));
        }
    }

    proptest! {
        #[test]
        fn no_answer_panics(answer: Vec<u8>) {
            let _ = parse(&answer, 1);
        }
    }
}
