//! What all sockets share: buffer sizes, asked for and got, and the search for the largest message.

use crate::descriptor::{Fds, Pair, largest_below, supported};
use model::card::{Card, Support};
use model::record::Setting;
use model::{Domain, Param, Params, Size};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair, sockopt};
use sys::{Errno, Failure, OrFail};

/// `SO_SNDBUF`, socket(7).
pub(crate) const SNDBUF: Param = Param {
    name: "sndbuf",
    summary: "send buffer to ask for (SO_SNDBUF), or match for the message's size; the kernel doubles it and caps it at net.core.wmem_max",
    domain: Domain::SizeOrMatch,
    default: None,
};

/// `SO_RCVBUF`, socket(7).
pub(crate) const RCVBUF: Param = Param {
    name: "rcvbuf",
    summary: "receive buffer to ask for (SO_RCVBUF), or match for the message's size; the kernel doubles it and caps it at net.core.rmem_max",
    domain: Domain::SizeOrMatch,
    default: None,
};

/// Sets the buffers of `socket` as `params` ask, and says what it has.
pub(crate) fn set_buffers(socket: &OwnedFd, params: &Params, card: &Card) -> Result<Vec<Setting>, Failure> {
    set_buffers_to(socket, params.size(card, SNDBUF.name), params.size(card, RCVBUF.name), card)
}

/// Sets those buffers of `socket` that are asked for, and says what it has.
pub(crate) fn set_buffers_to(
    socket: &OwnedFd,
    send_asked: Option<Size>,
    receive_asked: Option<Size>,
    card: &Card,
) -> Result<Vec<Setting>, Failure> {
    if let Some(size) = send_asked {
        sockopt::set_socket_send_buffer_size(socket, size.as_usize())
            .or_fail("setsockopt(SO_SNDBUF)", card.name)?;
    }
    if let Some(size) = receive_asked {
        sockopt::set_socket_recv_buffer_size(socket, size.as_usize())
            .or_fail("setsockopt(SO_RCVBUF)", card.name)?;
    }
    let send_got = sockopt::socket_send_buffer_size(socket).or_fail("getsockopt(SO_SNDBUF)", card.name)?;
    let receive_got = sockopt::socket_recv_buffer_size(socket).or_fail("getsockopt(SO_RCVBUF)", card.name)?;
    // The kernel doubles what is asked, to cover its own overhead (socket(7)): twice is as asked.
    let setting = |name: &str, asked: Option<Size>, got: usize| Setting {
        name: name.to_owned(),
        asked: asked.map(|size| size.to_string()),
        got: got.to_string(),
        clamped: asked.is_some_and(|size| got != 2 * size.as_usize()),
    };
    Ok(vec![setting("SO_SNDBUF", send_asked, send_got), setting("SO_RCVBUF", receive_asked, receive_got)])
}

/// Two connected Unix sockets of `kind`, with buffers as `params` ask (socketpair(2)).
pub(crate) fn unix_pair(
    kind: SocketType,
    params: &Params,
    card: &Card,
) -> Result<(OwnedFd, OwnedFd, Vec<Setting>), Failure> {
    let (near, far) =
        socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).or_fail("socketpair", card.name)?;
    let settings = set_buffers(&near, params, card)?;
    set_buffers(&far, params, card)?;
    Ok((near, far, settings))
}

/// A Unix socket of one type, as a [`Pair`].
pub(crate) trait UnixPair {
    const CARD: Card;
    const TYPE: SocketType;
}

impl<U: UnixPair> Pair for U {
    const CARD: Card = U::CARD;

    fn probe(params: &Params) -> Support {
        match unix_pair(U::TYPE, params, &U::CARD) {
            Ok(_) if U::TYPE == SocketType::STREAM => Support::UNLIMITED,
            Ok(_) => {
                largest_message(|| unix_pair(U::TYPE, params, &U::CARD).map(|(near, far, _)| (near, far)))
            }
            failed => supported(failed),
        }
    }

    fn open(params: &Params) -> Result<(Fds, Fds, Vec<Setting>), Failure> {
        let (near, far, settings) = unix_pair(U::TYPE, params, &U::CARD)?;
        Ok((Fds::both_ways(near, U::CARD.name)?, Fds::both_ways(far, U::CARD.name)?, settings))
    }
}

/// The largest message that one socket of a fresh pair takes before it says `EMSGSIZE`, found by bisection.
pub(crate) fn largest_message(fresh_pair: impl Fn() -> Result<(OwnedFd, OwnedFd), Failure>) -> Support {
    let takes = |size: usize, bytes: &[u8]| -> Result<bool, Failure> {
        let (socket, _peer) = fresh_pair()?;
        Ok(send(&socket, &bytes[..size], SendFlags::DONTWAIT) != Err(Errno::MSGSIZE))
    };
    let search = || {
        // No message can be larger than the buffer that is charged for it.
        let (socket, _peer) = fresh_pair()?;
        let buffer = sockopt::socket_send_buffer_size(&socket).or_fail("getsockopt(SO_SNDBUF)", "socket")?;
        let bytes = vec![0; buffer + 1];
        largest_below(bytes.len(), |size| takes(size, &bytes))
    };
    match search() {
        Ok(largest) => Support::Yes { largest_bytes: Some(largest as u64) },
        failed => supported(failed),
    }
}
