//! A network device whose packets a program reads and writes (tun(4)): tests of two hosts relay through a pair of them.

use crate::Errno;
use crate::libc_call::checked;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};

/// `TUNSETIFF` of linux/if_tun.h.
const TUNSETIFF: u32 = 0x4004_54ca;

/// Makes the device `name` in the network namespace of this thread. It carries packets of IP, one a read or write, and exists as
/// long as the descriptor.
pub fn make(name: &str) -> Result<OwnedFd, Errno> {
    // SAFETY: an ifreq is plain data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays 0.
    let room = request.ifr_name.len() - 1;
    if name.is_empty() || name.len() > room {
        return Err(Errno::INVAL);
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    let device = open("/dev/net/tun", OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
    // SAFETY: the request is valid through the call.
    checked(unsafe { libc::ioctl(device.as_raw_fd(), TUNSETIFF as _, &raw mut request) })?;
    Ok(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_device_can_have_is_refused() {
        assert_eq!(make("").unwrap_err(), Errno::INVAL);
        assert_eq!(make(&"x".repeat(64)).unwrap_err(), Errno::INVAL);
    }
}
