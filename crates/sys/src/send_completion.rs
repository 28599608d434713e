//! What the kernel reports about sends with `MSG_ZEROCOPY`: which it is done with, and whether it copied them after
//! all.
//!
//! The kernel numbers the sends of each socket from 0 and leaves out those that took no byte. See
//! <https://docs.kernel.org/networking/msg_zerocopy.html>. What was sent, and from where, is not known here.

use crate::Errno;
use crate::libc_call::checked;
use rustix::fd::{AsFd, AsRawFd};
use rustix::net::SendFlags;

/// `MSG_ZEROCOPY`, send(2): take references to the pages instead of copying them.
pub const ZEROCOPY: SendFlags = SendFlags::from_bits_retain(libc::MSG_ZEROCOPY as u32);

/// `SO_ZEROCOPY`, which libc lacks; asm-generic/socket.h.
const SO_ZEROCOPY: libc::c_int = 60;
/// linux/errqueue.h.
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
/// linux/errqueue.h.
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;

/// Sends whose memory the kernel no longer reads, so that it may be written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendCompletion {
    /// The number of the first.
    pub first: u32,
    /// The number of the last. It is smaller than the first if the numbers wrapped.
    pub last: u32,
    /// Whether the kernel copied them after all.
    pub copied: bool,
}

/// Allows sends with [`ZEROCOPY`] on `socket` (socket(7)).
pub fn allow_zerocopy(socket: impl AsFd) -> Result<(), Errno> {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is an int and is valid through the call.
    checked(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_ZEROCOPY,
            std::ptr::from_ref(&on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Room for one control message with a `sock_extended_err` and the address behind it, aligned as the kernel's are.
#[repr(C, align(8))]
struct ControlSpace([u8; 128]);

/// Takes the next completion from the error queue of `socket`, if there is one (recvmsg(2) with `MSG_ERRQUEUE`).
/// Never sleeps.
#[inline]
pub fn next_completion(socket: impl AsFd) -> Result<Option<SendCompletion>, Errno> {
    let mut control = ControlSpace([0; 128]);
    // SAFETY: a zeroed msghdr is valid: it has no name, payload and control space.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the header is valid, and its control space is valid for writes of its length.
    match checked(unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &mut message, flags) }) {
        Err(Errno::AGAIN) => return Ok(None),
        Err(errno) => return Err(errno),
        Ok(_) => {}
    }
    // SAFETY: the kernel filled in the header, whose control space still lives.
    let header = unsafe { libc::CMSG_FIRSTHDR(&message) };
    if header.is_null() {
        return Err(Errno::PROTO);
    }
    // SAFETY: it is not null. So it points to a whole header within the control space, which is aligned for one.
    let libc::cmsghdr { cmsg_len, cmsg_level, cmsg_type, .. } = unsafe { header.read() };
    // SAFETY: this computes a length and touches no memory.
    let enough = unsafe { libc::CMSG_LEN(size_of::<libc::sock_extended_err>() as u32) };
    if (cmsg_level, cmsg_type) != (libc::SOL_IP, libc::IP_RECVERR) || cmsg_len < enough as _ {
        return Err(Errno::PROTO);
    }
    // SAFETY: by its level, type and length the message holds such a struct, which need not be aligned.
    let error = unsafe { libc::CMSG_DATA(header).cast::<libc::sock_extended_err>().read_unaligned() };
    if error.ee_origin != SO_EE_ORIGIN_ZEROCOPY || error.ee_errno != 0 {
        return Err(Errno::PROTO);
    }
    let copied = error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED != 0;
    Ok(Some(SendCompletion { first: error.ee_info, last: error.ee_data, copied }))
}

#[cfg(all(test, not(miri)))]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use super::*;
    use crate::page_pool::PagePool;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn exchange(client: &TcpStream, server: &mut TcpStream, sends: usize) {
        let mut pool = PagePool::create("test", 4096).unwrap();
        for _ in 0..sends {
            assert_eq!(pool.send(0..100, client, ZEROCOPY), Ok(100));
            server.read_exact(&mut [0; 100]).unwrap();
        }
    }

    #[test]
    fn each_send_completes_once_and_in_order() {
        let (client, mut server) = connected();
        allow_zerocopy(&client).unwrap();
        assert_eq!(next_completion(&client), Ok(None));
        exchange(&client, &mut server, 10);
        let mut next = 0;
        while next < 10 {
            let Some(completion) = next_completion(&client).unwrap() else { continue };
            assert_eq!(completion.first, next);
            assert!(completion.copied, "loopback did not copy");
            next = completion.last + 1;
        }
        assert_eq!((next, next_completion(&client)), (10, Ok(None)));
    }

    #[test]
    fn a_socket_without_the_option_completes_nothing() {
        let (client, mut server) = connected();
        exchange(&client, &mut server, 3);
        assert_eq!(next_completion(&client), Ok(None));
    }
}
