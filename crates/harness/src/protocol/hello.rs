//! The first message of each side: which protocol, which version, which program; and, if it is asked for, what is known of the
//! endpoint's host. The form of a hello is the same in every version.

use super::error::short;
use crate::host::isolation::{Isolation, Witness};
use model::Workload;
use model::record::{ClockRecord, Host};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv6Addr};

/// What every hello says that it belongs to.
pub const PROTOCOL: &str = "ipcmark-endpoint";
/// The version of the protocol, which changes with any message between coordinator and endpoint.
pub const VERSION: u32 = 3;
/// The longest name of a program that is shown.
const LONGEST_NAME: usize = 100;

/// A hello.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// Always [`PROTOCOL`].
    pub protocol: String,
    /// The version that the sender speaks.
    pub version: u32,
    /// What the sender is, for people.
    #[serde(default)]
    pub program: String,
    /// From a coordinator: whether the endpoint's hello is to have facts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wants_facts: bool,
    /// From a coordinator: a file that it has made. The facts say whether the endpoint sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Witness>,
    /// From an endpoint: what it can do beside what every endpoint can. Names that are not known are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// From an endpoint that is no child of its coordinator: what it can be led through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mechanisms: Vec<DriverMechanism>,
    /// From an endpoint, if it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Box<EndpointFacts>>,
}

/// What an endpoint says of its host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointFacts {
    /// What bears on results.
    pub host: Host,
    /// The clock that was chosen there, and what it costs.
    pub clock: ClockRecord,
    /// The CPU that an endpoint there runs on.
    pub cpu: Option<u32>,
    /// The addresses by which the host may be reached, the likeliest first.
    pub addresses: Vec<IpAddr>,
    /// Those of IPv6 that mean nothing beyond their link, each with the interface.
    #[serde(default)]
    pub link_addresses: Vec<(Ipv6Addr, String)>,
    /// The context id of its virtual sockets (vsock(7)), if it has such.
    #[serde(default)]
    pub cid: Option<u32>,
    /// Its host, the namespaces that it is in, and whether it sees the coordinator's file.
    #[serde(default)]
    pub isolation: Isolation,
}

impl Hello {
    /// The hello of this build.
    pub(crate) fn own() -> Self {
        Self {
            protocol: PROTOCOL.to_owned(),
            version: VERSION,
            program: concat!("ipcmark ", env!("CARGO_PKG_VERSION")).to_owned(),
            wants_facts: false,
            witness: None,
            capabilities: Vec::new(),
            mechanisms: Vec::new(),
            facts: None,
        }
    }

    /// Why its sender cannot be talked to, in words, unless it speaks this version.
    pub(crate) fn refusal(&self) -> Option<String> {
        let program: String = self.program.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
        if self.protocol != PROTOCOL {
            return Some(format!("'{program}' speaks another protocol"));
        }
        (self.version != VERSION).then(|| {
            format!(
                "{program} speaks version {} of the endpoint protocol, and this build {VERSION}",
                self.version
            )
        })
    }
}

/// The hello of a coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CoordinatorHello {
    /// Always `ipcmark-endpoint`.
    pub protocol: String,
    /// The version of the protocol.
    pub version: u32,
    /// What the coordinator is, for people.
    #[serde(default)]
    pub program: String,
}

/// The hello of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "an object with protocol, version and program")]
pub struct DriverHello {
    /// Always `ipcmark-endpoint`.
    pub protocol: String,
    /// The version of the protocol that it speaks.
    pub version: u32,
    /// What it is, and perhaps its version after a blank: `python 3`. The first word is its name in results.
    #[serde(deserialize_with = "short")]
    pub program: String,
    /// What runs it: `CPython 3.11.2`.
    #[serde(default, deserialize_with = "short")]
    pub runtime: String,
    /// The library whose ways it goes, if it is about one: `pyzmq 26.0`.
    #[serde(default, deserialize_with = "short")]
    pub library: String,
    /// What it can measure.
    #[serde(default)]
    pub mechanisms: Vec<DriverMechanism>,
    /// `each`: it times iterations one by one where a phase asks for it. `alive`: it hears `alive` and `ping` while it works, and ends when nothing
    /// comes for 5 seconds. Others are ipcmark's own.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

/// What a driver can measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "an object with name and workloads")]
pub struct DriverMechanism {
    /// The name: that of one of ipcmark's, as `ipcmark list` has them, or one of its own.
    pub name: String,
    /// `latency`, `transfer`, `throughput`.
    pub workloads: Vec<Workload>,
    /// What it can make of a message that is an object, beside bytes as they are: the values of the parameter `codec`.
    #[serde(default)]
    pub codecs: Vec<String>,
    /// What it is, in a line; of one of its own.
    #[serde(default)]
    pub summary: String,
}

impl CoordinatorHello {
    /// That of this build.
    pub(crate) fn own() -> Self {
        Self {
            protocol: PROTOCOL.to_owned(),
            version: VERSION,
            program: concat!("ipcmark ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_of_any_later_version_is_read_and_refused() {
        let later =
            r#"{"protocol":"ipcmark-endpoint","version":99,"program":"ipcmark 7\u001b[2J","more":[1]}"#;
        let hello: Hello = serde_json::from_str(later).unwrap();
        let refusal = hello.refusal().unwrap();
        assert_eq!(refusal, "ipcmark 7[2J speaks version 99 of the endpoint protocol, and this build 3");
        assert_eq!(Hello::own().refusal(), None);
        let other = Hello { protocol: "http".to_owned(), ..Hello::own() };
        assert!(other.refusal().unwrap().contains("another protocol"));
    }
}
