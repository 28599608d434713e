//! Messages with descriptors over Unix sockets (`SCM_RIGHTS`, unix(7)). Not a mechanism itself.

use rustix::cmsg_space;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::mem::MaybeUninit;
use sys::Errno;

/// The most descriptors that the kernel lets one message carry (`SCM_MAX_FD`).
pub(crate) const MOST_FDS: usize = 253;

/// Sends a first part of `bytes`, which may be empty, with copies of `fds`, at most 253.
#[inline(always)]
pub(crate) fn send_message(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::INVAL);
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)
}

/// Receives into `into`, and passes each descriptor that came to `take`. Returns the number of bytes and of
/// descriptors. Both are 0 at the end of a connection.
#[inline(always)]
pub(crate) fn receive_message(
    socket: &OwnedFd,
    into: &mut [u8],
    mut take: impl FnMut(OwnedFd),
) -> Result<(usize, usize), Errno> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(into)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut fds = 0;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            for fd in rights {
                fds += 1;
                take(fd);
            }
        }
    }
    Ok((received.bytes, fds))
}
