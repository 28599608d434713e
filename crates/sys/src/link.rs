//! What a network interface says of itself through `SIOCETHTOOL` (netdevice(7)). Addresses and routes are not asked for here.

use crate::Errno;
use crate::libc_call::checked;
use rustix::fd::AsRawFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// `SIOCETHTOOL` of linux/sockios.h.
const SIOCETHTOOL: u32 = 0x8946;
/// `ETHTOOL_GSET` of linux/ethtool.h.
const ETHTOOL_GSET: u32 = 1;
/// What an interface says that does not know its speed.
const SPEED_UNKNOWN: u32 = u32::MAX;

/// `struct ethtool_cmd` of linux/ethtool.h.
#[repr(C)]
#[derive(Default)]
struct EthtoolCommand {
    command: u32,
    supported: u32,
    advertising: u32,
    speed: u16,
    duplex: u8,
    port: u8,
    physical_address: u8,
    transceiver: u8,
    negotiates: u8,
    mdio_support: u8,
    most_sent: u32,
    most_received: u32,
    speed_high: u16,
    crossed: u8,
    crossed_control: u8,
    peer_advertising: u32,
    reserved: [u32; 2],
}

/// The speed of the interface `name` of this network namespace in megabits per second; `None` where it does not know that.
pub fn mbit_per_s(name: &str) -> Result<Option<u64>, Errno> {
    let mut command = EthtoolCommand { command: ETHTOOL_GSET, ..EthtoolCommand::default() };
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
    request.ifr_ifru.ifru_data = (&raw mut command).cast();
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: the request and the command that it points to are valid through the call, which writes no more than the command.
    let answered = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    match checked(answered) {
        // An interface of software alone.
        Err(Errno::OPNOTSUPP) => Ok(None),
        Err(errno) => Err(errno),
        Ok(_) => {
            let speed = u32::from(command.speed_high) << 16 | u32::from(command.speed);
            Ok(Some(u64::from(speed)).filter(|_| speed != SPEED_UNKNOWN && speed != 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_speed_and_what_is_not_there_is_refused() {
        assert_eq!(size_of::<EthtoolCommand>(), 44);
        assert_eq!(mbit_per_s("lo"), Ok(None));
        assert_eq!(mbit_per_s("nothere0"), Err(Errno::NODEV));
        assert_eq!(mbit_per_s(&"x".repeat(64)), Err(Errno::INVAL));
    }
}
