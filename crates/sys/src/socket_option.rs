//! Options of sockets that `rustix` does not set: busy polling and which buffers are set (socket(7)), and segmentation by the
//! kernel (udp(7)). All other options are set through `rustix`.

use crate::Errno;
use crate::libc_call::checked;
use rustix::fd::{AsFd, AsRawFd};
use std::ffi::c_int;
use std::time::Duration;

/// `UDP_SEGMENT` of linux/udp.h, which libc does not name.
const UDP_SEGMENT: c_int = 103;
/// `SO_BUF_LOCK` of asm-generic/socket.h, which libc does not name.
const SO_BUF_LOCK: c_int = 72;
/// `UDP_GRO` of linux/udp.h.
const UDP_GRO: c_int = 104;

/// Makes a reader poll the device's queue for up to `duration`, in whole microseconds, before it sleeps
/// (`SO_BUSY_POLL`, socket(7)). More than `net.core.busy_read` needs CAP_NET_ADMIN.
pub fn set_busy_poll(socket: impl AsFd, duration: Duration) -> Result<(), Errno> {
    let us = c_int::try_from(duration.as_micros()).map_err(|_| Errno::INVAL)?;
    set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, us)
}

/// How long a reader polls the device's queue (`SO_BUSY_POLL`, socket(7)).
pub fn busy_poll(socket: impl AsFd) -> Result<Duration, Errno> {
    let us = get(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL)?;
    Ok(Duration::from_micros(u64::try_from(us).unwrap_or(0)))
}

/// Makes the kernel cut the bytes of one send into datagrams of `size_bytes` (`UDP_SEGMENT`, udp(7)); Linux 4.18.
pub fn set_udp_segment(socket: impl AsFd, size_bytes: u16) -> Result<(), Errno> {
    set(socket, libc::IPPROTO_UDP, UDP_SEGMENT, c_int::from(size_bytes))
}

/// Makes the kernel join datagrams of one sender, so that one receive takes several (`UDP_GRO`, udp(7)); Linux 5.0.
pub fn set_udp_gro(socket: impl AsFd) -> Result<(), Errno> {
    set(socket, libc::IPPROTO_UDP, UDP_GRO, 1)
}

/// Which buffers the program has set itself: 1 the send buffer, 2 the receive buffer (`SO_BUF_LOCK`, socket(7)); Linux 5.15.
pub fn locked_buffers(socket: impl AsFd) -> Result<i32, Errno> {
    get(socket, libc::SOL_SOCKET, SO_BUF_LOCK)
}

fn set(socket: impl AsFd, level: c_int, option: c_int, value: c_int) -> Result<(), Errno> {
    let (fd, length) = (socket.as_fd().as_raw_fd(), size_of::<c_int>() as libc::socklen_t);
    // SAFETY: the value is an int that is valid through the call, and the length is that of an int.
    checked(unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), length) }).map(drop)
}

fn get(socket: impl AsFd, level: c_int, option: c_int) -> Result<c_int, Errno> {
    let (fd, mut value) = (socket.as_fd().as_raw_fd(), 0);
    let mut length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most an int, as the length says, and the value is valid through the call.
    checked(unsafe { libc::getsockopt(fd, level, option, (&raw mut value).cast(), &raw mut length) })?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketType, socket};

    #[test]
    fn options_are_read_as_they_were_set() {
        let udp = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        let duration = Duration::from_micros(50);
        match set_busy_poll(&udp, duration) {
            Ok(()) => assert_eq!(busy_poll(&udp), Ok(duration)),
            // It needs a privilege, and a kernel that was built with it.
            Err(errno) => assert!([Errno::PERM, Errno::NOPROTOOPT].contains(&errno), "{errno}"),
        }
        set_udp_segment(&udp, 1000).unwrap();
        assert_eq!(get(&udp, libc::IPPROTO_UDP, UDP_SEGMENT), Ok(1000));
        set_udp_gro(&udp).unwrap();
        assert_eq!(get(&udp, libc::IPPROTO_UDP, UDP_GRO), Ok(1));
        assert_eq!(set_udp_gro(std::io::stdin()), Err(Errno::NOTSOCK));
    }
}
