//! Options of sockets that `rustix` does not set: busy polling and which buffers are set (socket(7)), segmentation by the kernel
//! (udp(7)), and counters of losses (tcp(7)). All other options are set through `rustix`.

use crate::Errno;
use crate::libc_call::checked;
use rustix::fd::{AsFd, AsRawFd};
use std::ffi::c_int;
use std::time::Duration;

/// `UDP_SEGMENT` of linux/udp.h, which libc does not name.
const UDP_SEGMENT: c_int = 103;
/// `SO_BUF_LOCK` of asm-generic/socket.h, which libc does not name.
const SO_BUF_LOCK: c_int = 72;
/// `SCTP_NODELAY` of linux/sctp.h, which libc does not name.
const SCTP_NODELAY: c_int = 3;
/// `UDP_GRO` of linux/udp.h.
const UDP_GRO: c_int = 104;
/// What `SO_MEMINFO` gives: `SK_MEMINFO_VARS` numbers, of which the last counts drops (linux/sock_diag.h).
const MEMINFO_NUMBERS: usize = 9;
const MEMINFO_DROPS: usize = 8;

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

/// Whether an association sends small messages at once, rather than while nothing is unacknowledged (`SCTP_NODELAY`, sctp(7)).
pub fn set_sctp_nodelay(socket: impl AsFd, nodelay: bool) -> Result<(), Errno> {
    set(socket, libc::IPPROTO_SCTP, SCTP_NODELAY, c_int::from(nodelay))
}

/// How many segments the connection of `socket` has sent again (`TCP_INFO`, tcp(7)).
pub fn tcp_retransmissions(socket: impl AsFd) -> Result<u64, Errno> {
    // SAFETY: a tcp_info is plain numbers, for which zeros are valid.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let fd = socket.as_fd().as_raw_fd();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    let to = (&raw mut info).cast();
    // SAFETY: the kernel writes at most a tcp_info, as the length says, and it is valid through the call.
    checked(unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut length) })?;
    let needed = std::mem::offset_of!(libc::tcp_info, tcpi_total_retrans) + size_of::<u32>();
    if (length as usize) < needed { Err(Errno::NOPROTOOPT) } else { Ok(u64::from(info.tcpi_total_retrans)) }
}

/// How many messages `socket` has dropped because it had no room for them (`SO_MEMINFO`, socket(7)); Linux 4.12.
pub fn drops(socket: impl AsFd) -> Result<u64, Errno> {
    let (fd, mut numbers) = (socket.as_fd().as_raw_fd(), [0_u32; MEMINFO_NUMBERS]);
    let mut length = size_of_val(&numbers) as libc::socklen_t;
    let to = numbers.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most the numbers, as the length says, and they are valid through the call.
    checked(unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, to, &raw mut length) })?;
    if (length as usize) < size_of_val(&numbers) {
        return Err(Errno::NOPROTOOPT);
    }
    Ok(u64::from(numbers[MEMINFO_DROPS]))
}

/// Which buffers the program has set itself: 1 the send buffer, 2 the receive buffer (`SO_BUF_LOCK`, socket(7)); Linux 5.15.
pub fn locked_buffers(socket: impl AsFd) -> Result<i32, Errno> {
    get(socket, libc::SOL_SOCKET, SO_BUF_LOCK)
}

/// Sets the option `option` of `level` to these bytes, whatever they mean (setsockopt(2)).
pub fn set_bytes(socket: impl AsFd, level: c_int, option: c_int, bytes: &[u8]) -> Result<(), Errno> {
    let (fd, length) = (socket.as_fd().as_raw_fd(), bytes.len() as libc::socklen_t);
    // SAFETY: the bytes are valid through the call, and as many as the length says.
    checked(unsafe { libc::setsockopt(fd, level, option, bytes.as_ptr().cast(), length) }).map(drop)
}

/// Writes the option into `bytes`, as far as there is room (getsockopt(2)); how many bytes it wrote.
pub fn get_bytes(socket: impl AsFd, level: c_int, option: c_int, bytes: &mut [u8]) -> Result<usize, Errno> {
    let (fd, mut length) = (socket.as_fd().as_raw_fd(), bytes.len() as libc::socklen_t);
    // SAFETY: the kernel writes at most `length` bytes, for which there is room.
    checked(unsafe { libc::getsockopt(fd, level, option, bytes.as_mut_ptr().cast(), &raw mut length) })?;
    Ok(bytes.len().min(length as usize))
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

    #[test]
    fn what_finds_no_room_is_counted_by_the_socket_that_dropped_it() {
        let [from, to] = [0, 1].map(|_| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        from.connect(to.local_addr().unwrap()).unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&to, 1).unwrap();
        assert_eq!(drops(&to), Ok(0));
        for _ in 0..100 {
            from.send(&[0; 1000]).unwrap();
        }
        assert!(drops(&to).unwrap() > 50);
        assert_eq!(tcp_retransmissions(&to), Err(Errno::OPNOTSUPP));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(tcp_retransmissions(&stream), Ok(0));
    }
}
