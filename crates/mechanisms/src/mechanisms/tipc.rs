//! Two connected sockets of TIPC, the protocol of clusters, within one node.

use crate::support::cards::OF_NETWORK;
use crate::support::cards::STREAM;
use crate::support::descriptor::Fds;
use crate::support::pair::Pair;
use crate::support::probe::support_of;
use crate::support::wait::WAIT;
use model::Params;
use model::card::{Card, Support};
use model::record::Setting;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use sys::{Failure, OrFail};

/// `AF_TIPC`, `SOCK_STREAM`.
#[derive(Debug)]
pub(crate) struct Tipc;

impl Pair for Tipc {
    const CARD: Card = Card {
        name: "tipc",
        summary: "connected TIPC stream sockets, within one node",
        params: &[WAIT],
        limits: "any message size; buffers within net.tipc.tipc_rmem; CONFIG_TIPC: 'modprobe tipc'",
        semantics: OF_NETWORK,
        man: &["https://docs.kernel.org/networking/tipc.html", "socketpair(2)"],
        ..STREAM
    };

    fn probe(params: &Params) -> Support {
        support_of(Self::open(params))
    }

    fn open(_: &Params) -> Result<(Fds, Fds, Vec<Setting>), Failure> {
        let name = Self::CARD.name;
        let (client, server) =
            socketpair(AddressFamily::TIPC, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .or_fail("socketpair", name)?;
        Ok((Fds::both_ways(client, name)?, Fds::both_ways(server, name)?, Vec::new()))
    }
}
