//! Socket addresses as the bytes that the kernel uses for them. Not sockets.

use rustix::net::SocketAddrAny;
use rustix::net::addr::SocketAddrStorage;
use std::mem::MaybeUninit;

/// The bytes of `address`, its family first (struct sockaddr, sockaddr(3type)).
pub fn to_bytes(address: &SocketAddrAny) -> Vec<u8> {
    // SAFETY: an address has `addr_len` initialised bytes. It outlives the slice, which is copied.
    unsafe { std::slice::from_raw_parts(address.as_ptr().cast::<u8>(), address.addr_len() as usize) }.to_vec()
}

/// The address that `bytes` are. `None` if they are too few for a family, or more than any address has.
pub fn from_bytes(bytes: &[u8]) -> Option<SocketAddrAny> {
    if !(size_of::<libc::sa_family_t>()..=size_of::<SocketAddrStorage>()).contains(&bytes.len()) {
        return None;
    }
    let mut storage = MaybeUninit::<SocketAddrStorage>::zeroed();
    // SAFETY: the storage holds as many bytes as the check above allows, and nobody else refers to it.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), storage.as_mut_ptr().cast::<u8>(), bytes.len());
    }
    // SAFETY: all of the storage is initialised. Whether the bytes name anything is for the kernel to check, which
    // reads no more of them than the length says.
    Some(unsafe { SocketAddrAny::new(storage, bytes.len() as u32) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustix::net::SocketAddrUnix;
    use std::net::{Ipv4Addr, SocketAddrV4};

    proptest! {
        #[test]
        fn an_address_survives_its_own_bytes(octets: [u8; 4], port: u16) {
            let address = SocketAddrV4::new(Ipv4Addr::from(octets), port);
            let again = from_bytes(&to_bytes(&address.into())).unwrap();
            prop_assert_eq!(SocketAddrV4::try_from(again), Ok(address));
        }

        #[test]
        fn bytes_that_can_be_an_address_are_kept_whole(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            match from_bytes(&bytes) {
                Some(address) => prop_assert_eq!(to_bytes(&address), bytes),
                None => prop_assert!(bytes.len() < 2 || bytes.len() > 128),
            }
        }
    }

    #[test]
    fn addresses_of_other_families_are_kept_whole() {
        let address = SocketAddrUnix::new_abstract_name(b"a name").unwrap();
        let again = from_bytes(&to_bytes(&address.clone().into())).unwrap();
        assert_eq!(SocketAddrUnix::try_from(again), Ok(address));
    }
}
