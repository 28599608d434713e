//! Addresses of virtual sockets, for which rustix has no type, and this machine's own context id (vsock(7)). Not sockets.

use crate::Errno;
use crate::libc_call::checked;
use rustix::fd::AsRawFd;
use rustix::fs::{Mode, OFlags, open};
use rustix::net::SocketAddrAny;

/// Of every context id that this machine has: where a server binds.
pub const ANY: u32 = libc::VMADDR_CID_ANY;
/// The host of a guest.
pub const HOST: u32 = libc::VMADDR_CID_HOST;
/// This machine itself, by its own loopback.
pub const LOCAL: u32 = libc::VMADDR_CID_LOCAL;
/// Any free port.
pub const ANY_PORT: u32 = libc::VMADDR_PORT_ANY;

/// `IOCTL_VM_SOCKETS_GET_LOCAL_CID` of linux/vm_sockets.h.
const GET_LOCAL_CID: u32 = 0x7b9;

/// The address of `port` at `cid`.
pub fn address(cid: u32, port: u32) -> SocketAddrAny {
    let address = libc::sockaddr_vm {
        svm_family: libc::AF_VSOCK as libc::sa_family_t,
        svm_reserved1: 0,
        svm_port: port,
        svm_cid: cid,
        svm_zero: [0; 4],
    };
    // SAFETY: a `sockaddr_vm` is an address, has no padding, and is smaller than the storage that receives it.
    unsafe { SocketAddrAny::read((&raw const address).cast(), size_of_val(&address) as u32) }
}

/// The context id and the port of `address`; `None` if it is of another family.
pub fn cid_and_port(address: &SocketAddrAny) -> Option<(u32, u32)> {
    let is_vsock = i32::from(address.address_family().as_raw()) == libc::AF_VSOCK
        && address.addr_len() as usize >= size_of::<libc::sockaddr_vm>();
    // SAFETY: the address has as many initialised bytes as a `sockaddr_vm`, for which any bytes are valid, wherever they lie.
    let address =
        is_vsock.then(|| unsafe { address.as_ptr().cast::<libc::sockaddr_vm>().read_unaligned() })?;
    Some((address.svm_cid, address.svm_port))
}

/// The context id by which others reach this machine, if there are any: its own in a guest, [`HOST`] where it may have guests,
/// else [`LOCAL`] or [`ANY`], whatever the kernel says.
pub fn own_cid() -> Result<u32, Errno> {
    let device = open("/dev/vsock", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut cid = ANY;
    // SAFETY: the call writes the one number that it is given, which outlives it.
    checked(unsafe { libc::ioctl(device.as_raw_fd(), GET_LOCAL_CID as _, &raw mut cid) })?;
    Ok(cid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{from_bytes, to_bytes};
    use rustix::net::AddressFamily;
    use std::net::{Ipv4Addr, SocketAddrV4};

    #[test]
    fn an_address_is_made_as_the_kernel_wants_it_and_taken_apart_again() {
        let address = address(LOCAL, ANY_PORT);
        assert_eq!(address.address_family(), AddressFamily::VSOCK);
        assert_eq!(to_bytes(&address)[4..12], [0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0]);
        assert_eq!(cid_and_port(&address), Some((LOCAL, ANY_PORT)));
    }

    #[test]
    fn an_address_of_another_family_or_cut_short_has_no_context_id() {
        let other = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7).into();
        let cut_short = from_bytes(&to_bytes(&address(3, 7))[..8]).unwrap();
        assert_eq!((cid_and_port(&other), cid_and_port(&cut_short)), (None, None));
    }

    /// Without the device there is nothing to ask; with it the kernel has an answer, whichever.
    #[test]
    fn the_own_context_id_is_asked_of_the_device() {
        match own_cid() {
            Ok(cid) => assert!(cid != 0, "{cid} is of no machine"),
            Err(errno) => assert_ne!(errno, Errno::NOTTY, "/dev/vsock does not know the call"),
        }
    }
}
