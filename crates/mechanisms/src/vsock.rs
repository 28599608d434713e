//! One connection of virtual sockets, which are between a host and its guests, over the host's own loopback.

use crate::connecting::SERVER;
use crate::connection::{Connection, Place, try_connection};
use crate::contract::Trial;
use crate::descriptor::{DescriptorEnd, WAIT, supported};
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::{Params, Workload};
use rustix::net::{AddressFamily, Protocol, SocketType};
use sys::Failure;
use sys::address::vsock_loopback;

/// vsock(7), `VMADDR_CID_LOCAL`.
#[derive(Debug)]
pub struct Vsock;

impl Connection for Vsock {
    const FAMILY: AddressFamily = AddressFamily::VSOCK;
    const TYPE: SocketType = SocketType::STREAM;
    const PROTOCOL: Option<Protocol> = None;
    type End = DescriptorEnd;
    const CARD: Card = Card {
        name: "vsock",
        kind: CardKind::Mechanism,
        summary: "a connection of virtual sockets over the host's own loopback",
        framing: Framing::Stream,
        reach: Reach::Network,
        payload: Payload::Bytes,
        fds: false,
        hangup: true,
        polled: true,
        one_endpoint: false,
        empty: false,
        params: &[WAIT, SERVER],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer, Workload::Connect],
        sized: true,
        limits: "any message size; a buffer of 256 KiB (SO_VM_SOCKETS_BUFFER_SIZE), which is not set here; CONFIG_VSOCKETS_LOOPBACK: 'modprobe vsock_loopback'",
        man: &["vsock(7)"],
    };

    fn probe(params: &Params) -> Support {
        match supported(try_connection::<Self>(vsock_loopback().into(), params)) {
            // A guest has virtual sockets to its host, but no loopback: that is a module of its own.
            Support::No { reason, .. } => Support::No {
                reason,
                remedy: "'modprobe vsock_loopback', or a kernel with CONFIG_VSOCKETS_LOOPBACK".to_owned(),
            },
            works => works,
        }
    }

    fn place(_: &Trial<'_>) -> Result<Place, Failure> {
        Ok(vsock_loopback().into())
    }
}
