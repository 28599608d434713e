//! One connection of virtual sockets: between a guest and its host where a command reaches the other side, else over the host's
//! own loopback.

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
use rustix::net::{Protocol, SocketAddrAny, SocketType};
use sys::{Failure, vsock};

/// vsock(7); of one host `VMADDR_CID_LOCAL`.
#[derive(Debug)]
pub(crate) struct Vsock;

impl Connection for Vsock {
    const TYPE: SocketType = SocketType::STREAM;
    const PROTOCOL: Option<Protocol> = None;
    type End = DescriptorEndpoint;
    const CARD: Card = Card {
        name: "vsock",
        summary: "a connection of virtual sockets, over loopback or between guest and host",
        reach: Reach::Guest,
        params: &[WAIT, SERVER],
        limits: "any message size; a buffer of 256 KiB (SO_VM_SOCKETS_BUFFER_SIZE), which is not set here; CONFIG_VSOCKETS_LOOPBACK: 'modprobe vsock_loopback'",
        semantics: OF_NETWORK,
        man: &["vsock(7)"],
        ..CONNECTION
    };

    fn probe(params: &Params) -> Support {
        match support_of(try_connection::<Self>(loopback().into(), params)) {
            // A guest has virtual sockets to its host, but loopback needs another module.
            Support::No { reason, .. } => Support::No {
                reason,
                remedy: "'modprobe vsock_loopback', or a kernel with CONFIG_VSOCKETS_LOOPBACK".to_owned(),
            },
            works => works,
        }
    }

    fn listener_address(trial: &TrialContext<'_>) -> Result<ListenerAddress, Failure> {
        Ok(trial.network.map_or_else(loopback, |network| network.own_address()).into())
    }
}

/// Any free port of the host's own loopback.
fn loopback() -> SocketAddrAny {
    vsock::address(vsock::LOCAL, vsock::ANY_PORT)
}
