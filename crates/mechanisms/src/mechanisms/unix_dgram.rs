//! Unix sockets of type `SOCK_DGRAM`: a connected pair, or for each direction a socket with a name to which the other end is connected.

use crate::support::cards::OF_UNIX_SOCKET;
use crate::support::cards::{EXCHANGES_AND_SESSION, MESSAGE};
use crate::support::coded::CODEC;
use crate::support::descriptor::Fds;
use crate::support::pair::Pair;
use crate::support::socket::{RCVBUF, SNDBUF, largest_message, set_buffers, unix_pair};
use crate::support::wait::WAIT;
use model::card::{Card, Support};
use model::record::Setting;
use model::semantics::{Atomic, Semantics};
use model::{Domain, Param, Params};
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, getsockname, socket_with,
};
use sys::{Failure, OrFail};

/// The parameter that says whether the receivers have names.
const NAME: Param = Param {
    name: "name",
    summary: "none: a connected pair; abstract: each end receives from a socket with a name, of a server of anybody: it is connected to nobody, and queues some net.unix.max_dgram_qlen messages",
    domain: Domain::Choice(&["none", "abstract"]),
    default: Some("none"),
};
/// What net.unix.max_dgram_qlen is on a host that does not set it (`unix_net_init` of the kernel's `net/unix/af_unix.c`).
const USUAL_QUEUE: &str = "10";

/// The descriptors of two endpoints that send to each other's names.
fn named(params: &Params) -> Result<(Fds, Fds, Vec<Setting>), Failure> {
    let ((client_output, server_input), settings) = way(params)?;
    let ((server_output, client_input), _) = way(params)?;
    let queue = sys::sysctl::number("net/unix/max_dgram_qlen").map(|length| Setting {
        name: "datagram queue (max_dgram_qlen)".to_owned(),
        got: length.to_string(),
        usual: Some(USUAL_QUEUE.to_owned()),
        ..Setting::default()
    });
    let client = Fds { input: client_input, output: client_output };
    let server = Fds { input: server_input, output: server_output };
    Ok((client, server, settings.into_iter().chain(queue).collect()))
}

/// A socket that sends, and one with an abstract name of the kernel's choice ("autobind", unix(7)) to which it is connected.
fn way(params: &Params) -> Result<((OwnedFd, OwnedFd), Vec<Setting>), Failure> {
    let card = &UnixDgram::CARD;
    let fresh = || -> Result<OwnedFd, Failure> {
        socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
            .or_fail("socket", card.name)
    };
    let (output, input) = (fresh()?, fresh()?);
    bind(&input, &SocketAddrUnix::new_unnamed()).or_fail("bind", card.name)?;
    let address = getsockname(&input).or_fail("getsockname", card.name)?;
    connect(&output, &address).or_fail("connect", card.name)?;
    set_buffers(&input, params, card)?;
    let settings = set_buffers(&output, params, card)?;
    Ok(((output, input), settings))
}

/// unix(7), `SOCK_DGRAM`.
#[derive(Debug)]
pub(crate) struct UnixDgram;

impl Pair for UnixDgram {
    const CARD: Card = Card {
        name: "unix-dgram",
        summary: "connected Unix datagram sockets",
        fds: true,
        polled: true,
        params: &[NAME, SNDBUF, RCVBUF, WAIT, CODEC],
        workloads: EXCHANGES_AND_SESSION,
        limits: "a message fits in SO_SNDBUF less the kernel's overhead: raise sndbuf, and net.core.wmem_max above it; a connected pair queues what its buffers hold, a socket with a name some net.unix.max_dgram_qlen messages",
        semantics: Semantics { connected: false, atomic: Atomic::Message, ..OF_UNIX_SOCKET },
        man: &["unix(7)", "socketpair(2)"],
        ..MESSAGE
    };

    fn probe(params: &Params) -> Support {
        largest_message(|| {
            unix_pair(SocketType::DGRAM, params, &Self::CARD).map(|(client, server, _)| (client, server))
        })
    }

    fn open(params: &Params) -> Result<(Fds, Fds, Vec<Setting>), Failure> {
        if params.text(&Self::CARD, NAME.name) == Some("abstract") {
            return named(params);
        }
        let (client, server, settings) = unix_pair(SocketType::DGRAM, params, &Self::CARD)?;
        Ok((Fds::both_ways(client, Self::CARD.name)?, Fds::both_ways(server, Self::CARD.name)?, settings))
    }
}
