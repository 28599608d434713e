//! Addresses of TCP and UDP sockets as they lie in a program's memory (ip(7), ipv6(7)): bytes to an address and back.

use rustix::net::AddressFamily;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The bytes of `sockaddr_in` and of `sockaddr_in6`.
const V4_BYTES: usize = 16;
const V6_BYTES: usize = 28;
/// The bytes of `sockaddr_in6` without the scope, which old programs leave out.
const V6_LEAST_BYTES: usize = 24;

/// The longest address of any family (`sockaddr_storage`).
pub(crate) const LONGEST_BYTES: usize = 128;

/// The address that `bytes` are; `None` for one of another family, or too short.
pub(crate) fn read(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    if family == AddressFamily::INET.as_raw() {
        bytes.get(..V4_BYTES)?;
        let ip: [u8; 4] = bytes[4..8].try_into().ok()?;
        return Some(SocketAddr::new(Ipv4Addr::from(ip).into(), port));
    }
    if family == AddressFamily::INET6.as_raw() {
        bytes.get(..V6_LEAST_BYTES)?;
        let ip: [u8; 16] = bytes[8..24].try_into().ok()?;
        return Some(SocketAddr::new(Ipv6Addr::from(ip).into(), port));
    }
    None
}

/// The bytes of `address`.
pub(crate) fn write(address: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(V6_BYTES);
    match address {
        SocketAddr::V4(v4) => {
            bytes.extend(AddressFamily::INET.as_raw().to_ne_bytes());
            bytes.extend(v4.port().to_be_bytes());
            bytes.extend(v4.ip().octets());
            bytes.resize(V4_BYTES, 0);
        }
        SocketAddr::V6(v6) => {
            bytes.extend(AddressFamily::INET6.as_raw().to_ne_bytes());
            bytes.extend(v6.port().to_be_bytes());
            bytes.extend(v6.flowinfo().to_be_bytes());
            bytes.extend(v6.ip().octets());
            bytes.extend(v6.scope_id().to_ne_bytes());
        }
    }
    bytes
}

/// `address` without what IPv6 adds to an IPv4 address.
pub(crate) fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// `address` as a socket of `family` has it: an IPv4 address is mapped on an IPv6 socket.
pub(crate) fn as_of(family: AddressFamily, address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(v4) if family == AddressFamily::INET6 => {
            SocketAddrV6::new(v4.to_ipv6_mapped(), address.port(), 0, 0).into()
        }
        _ => address,
    }
}

/// Where a connection to `address` goes: to whom all addresses are given, loopback.
pub(crate) fn destination(address: SocketAddr) -> SocketAddr {
    let address = plain(address);
    let ip = match address.ip() {
        IpAddr::V4(v4) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(v6) if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in ["127.0.0.1:80", "[::1]:65535", "[::ffff:1.2.3.4]:1", "0.0.0.0:0"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(read(&write(address)), Some(address));
        }
        let mut without_scope = write("[::1]:7".parse().unwrap());
        without_scope.truncate(V6_LEAST_BYTES);
        assert_eq!(read(&without_scope), Some("[::1]:7".parse().unwrap()));
        assert_eq!(read(&write("1.2.3.4:5".parse().unwrap())[..V4_BYTES - 1]), None);
    }

    #[test]
    fn an_address_is_that_of_the_socket_that_has_it() {
        let v4: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let mapped: SocketAddr = "[::ffff:127.0.0.1]:80".parse().unwrap();
        assert_eq!(as_of(AddressFamily::INET6, v4), mapped);
        assert_eq!(as_of(AddressFamily::INET, v4), v4);
        assert_eq!(destination(mapped), v4);
        assert_eq!(destination("0.0.0.0:80".parse().unwrap()), v4);
        assert_eq!(destination("[::]:80".parse().unwrap()), "[::1]:80".parse().unwrap());
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = read(&bytes);
        }
    }
}
