//! Where a host is reached, whatever the port: by an address of a network, or by a context id of virtual sockets. Not a socket
//! address, and not a way of finding one.

use crate::invalid::{Invalid, printable};
use crate::text::serde_as_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// Where a host is reached. As text an address of IPv4 or IPv6, one of a link with the client's interface, or `vsock:CID`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostAddress {
    /// Over a network.
    Ip(IpAddr),
    /// Over one link, by an address of IPv6 that means nothing beyond it: through this interface of the client's host.
    Link(Ipv6Addr, InterfaceName),
    /// By virtual sockets (vsock(7)), which connect a host and its guests: the context id of the machine.
    Vsock(u32),
}

/// The name of a network interface.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InterfaceName {
    bytes: [u8; Self::MOST],
    length: usize,
}

impl InterfaceName {
    /// The longest that the kernel takes.
    const MOST: usize = 15;

    /// `name`, if an interface can have it.
    pub fn new(name: &str) -> Option<Self> {
        let is_one = |byte: u8| byte.is_ascii_graphic() && !b"/%:".contains(&byte);
        let can_be = (1..=Self::MOST).contains(&name.len()) && name.bytes().all(is_one);
        let mut bytes = [0; Self::MOST];
        can_be.then(|| bytes[..name.len()].copy_from_slice(name.as_bytes()))?;
        Some(Self { bytes, length: name.len() })
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        // It was made of text.
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl fmt::Debug for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// An address of IPv6 and an interface, parted by `%`; or, of any kind, one that needs none.
fn of_network(text: &str) -> Option<HostAddress> {
    let is_of_link = |address: &Ipv6Addr| address.is_unicast_link_local();
    match text.split_once('%') {
        Some((address, interface)) => {
            let address = address.parse().ok().filter(is_of_link)?;
            Some(HostAddress::Link(address, InterfaceName::new(interface)?))
        }
        None => match text.parse().ok()? {
            IpAddr::V6(address) if is_of_link(&address) => None,
            address => Some(HostAddress::Ip(address)),
        },
    }
}

/// What stands before a context id.
const VSOCK: &str = "vsock:";

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Link(address, interface) => write!(f, "{address}%{}", interface.as_str()),
            Self::Vsock(cid) => write!(f, "{VSOCK}{cid}"),
        }
    }
}

impl FromStr for HostAddress {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let parsed = match text.strip_prefix(VSOCK) {
            Some(cid) => cid.parse().ok().map(Self::Vsock),
            None => of_network(text),
        };
        parsed.ok_or_else(|| {
            Invalid::new(
                format!("'{}' is no address of a host", printable(text)),
                "give one of IPv4 or IPv6, as 10.0.0.2, one of a link with the client's interface, as fe80::1%eth0, or the context id \
                 of virtual sockets, as vsock:3",
            )
        })
    }
}

serde_as_text!(HostAddress, "10.0.0.2");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_a_network_or_a_context_id() {
        for text in ["10.0.0.2", "fd00::2", "fe80::1%eth0", "fe80::1%eth0.7", "vsock:3", "vsock:4294967295"] {
            let address: HostAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(serde_json::to_string(&address).unwrap(), format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<HostAddress>(&format!("\"{text}\"")).unwrap(), address);
        }
        assert_eq!("vsock:2".parse(), Ok(HostAddress::Vsock(2)));
        for text in [
            "",
            "vsock:",
            "vsock:-1",
            "vsock:host",
            "vsock:4294967296",
            "10.0.0.2:80",
            "host",
            "3",
            "fe80::1",
            "fe80::1%",
            "fd00::1%eth0",
            "10.0.0.2%eth0",
            "fe80::1%an-interface-too-long",
            "fe80::1%a/b",
        ] {
            assert!(text.parse::<HostAddress>().unwrap_err().remedy.contains("vsock:3"), "{text}");
        }
    }
}
