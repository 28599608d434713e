//! Where a host is reached, whatever the port: by an address of a network, or by a context id of virtual sockets. Not a socket
//! address, and not a way of finding one.

use crate::invalid::{Invalid, printable};
use crate::text::serde_as_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Where a host is reached. As text an address of IPv4 or IPv6, or `vsock:CID`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostAddress {
    /// Over a network.
    Ip(IpAddr),
    /// By virtual sockets (vsock(7)), which connect a host and its guests: the context id of the machine.
    Vsock(u32),
}

/// What stands before a context id.
const VSOCK: &str = "vsock:";

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Vsock(cid) => write!(f, "{VSOCK}{cid}"),
        }
    }
}

impl FromStr for HostAddress {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let parsed = match text.strip_prefix(VSOCK) {
            Some(cid) => cid.parse().ok().map(Self::Vsock),
            None => text.parse().ok().map(Self::Ip),
        };
        parsed.ok_or_else(|| {
            Invalid::new(
                format!("'{}' is no address of a host", printable(text)),
                "give one of IPv4 or IPv6, as 10.0.0.2, or the context id of virtual sockets, as vsock:3",
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
        for text in ["10.0.0.2", "fd00::2", "vsock:3", "vsock:4294967295"] {
            let address: HostAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(serde_json::to_string(&address).unwrap(), format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<HostAddress>(&format!("\"{text}\"")).unwrap(), address);
        }
        assert_eq!("vsock:2".parse(), Ok(HostAddress::Vsock(2)));
        for text in ["", "vsock:", "vsock:-1", "vsock:host", "vsock:4294967296", "10.0.0.2:80", "host", "3"] {
            assert!(text.parse::<HostAddress>().unwrap_err().remedy.contains("vsock:3"), "{text}");
        }
    }
}
