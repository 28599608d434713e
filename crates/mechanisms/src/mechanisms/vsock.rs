//! One connection of virtual sockets over the host's own loopback. Such sockets usually connect a host and its
//! guests.

use crate::contract::TrialContext;
use crate::support::cards::CONNECTION;
use crate::support::cards::OF_NETWORK;
use crate::support::connect_each::SERVER;
use crate::support::connection::{Connection, ListenerAddress, try_connection};
use crate::support::descriptor::DescriptorEndpoint;
use crate::support::probe::support_of;
use crate::support::wait::WAIT;
use model::Params;
use model::card::{Card, Reach, Support};
use rustix::net::{Protocol, SocketType};
use sys::Failure;
use sys::address::vsock_loopback;

/// vsock(7), `VMADDR_CID_LOCAL`.
#[derive(Debug)]
pub(crate) struct Vsock;

impl Connection for Vsock {
    const TYPE: SocketType = SocketType::STREAM;
    const PROTOCOL: Option<Protocol> = None;
    type End = DescriptorEndpoint;
    const CARD: Card = Card {
        name: "vsock",
        summary: "a connection of virtual sockets over the host's own loopback",
        reach: Reach::Host,
        params: &[WAIT, SERVER],
        limits: "any message size; a buffer of 256 KiB (SO_VM_SOCKETS_BUFFER_SIZE), which is not set here; CONFIG_VSOCKETS_LOOPBACK: 'modprobe vsock_loopback'",
        semantics: OF_NETWORK,
        man: &["vsock(7)"],
        ..CONNECTION
    };

    fn probe(params: &Params) -> Support {
        match support_of(try_connection::<Self>(vsock_loopback().into(), params)) {
            // A guest has virtual sockets to its host, but loopback needs another module.
            Support::No { reason, .. } => Support::No {
                reason,
                remedy: "'modprobe vsock_loopback', or a kernel with CONFIG_VSOCKETS_LOOPBACK".to_owned(),
            },
            works => works,
        }
    }

    fn listener_address(_: &TrialContext<'_>) -> Result<ListenerAddress, Failure> {
        Ok(vsock_loopback().into())
    }
}
