//! Options of all sockets: buffer sizes, busy polling, and the search for the largest message. Not a mechanism
//! itself.

use crate::support::probe::{largest_below, support_of};
use model::card::{Card, Support};
use model::record::Setting;
use model::{Domain, Param, Params, Size};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair, sockopt};
use std::time::Duration;
use sys::{Errno, Failure, OrFail, socket_option};

/// `SO_SNDBUF`, socket(7).
pub(crate) const SNDBUF: Param = Param {
    name: "sndbuf",
    summary: "send buffer to ask for (SO_SNDBUF), or match for the message's size; the kernel doubles it, and caps it at net.core.wmem_max unless CAP_NET_ADMIN lifts that",
    domain: Domain::SizeOrMatch,
    default: None,
};

/// `SO_RCVBUF`, socket(7).
pub(crate) const RCVBUF: Param = Param {
    name: "rcvbuf",
    summary: "receive buffer to ask for (SO_RCVBUF), or match for the message's size; the kernel doubles it, and caps it at net.core.rmem_max unless CAP_NET_ADMIN lifts that",
    domain: Domain::SizeOrMatch,
    default: None,
};

/// `SO_BUSY_POLL`, socket(7).
pub(crate) const BUSY_POLL: Param = Param {
    name: "busy-poll",
    summary: "how long a reader polls the device's queue before it sleeps (SO_BUSY_POLL); loopback has no such queue, so that nothing should change",
    domain: Domain::Duration,
    default: None,
};

/// Sets how long a reader of `socket` polls, if `params` ask for it. Returns what the kernel gave, or `None` if
/// nothing is asked.
pub(crate) fn set_busy_polling(
    socket: &OwnedFd,
    params: &Params,
    card: &Card,
) -> Result<Option<Setting>, Failure> {
    let asked = params.duration(card, BUSY_POLL.name);
    if asked.is_zero() {
        return Ok(None);
    }
    socket_option::set_busy_poll(socket, asked).or_fail("setsockopt(SO_BUSY_POLL)", card.name)?;
    let got = socket_option::busy_poll(socket).or_fail("getsockopt(SO_BUSY_POLL)", card.name)?;
    let text = |duration: Duration| format!("{} us", duration.as_micros());
    let setting = |asked, got| Setting {
        name: "SO_BUSY_POLL".to_owned(),
        clamped: got != asked,
        usual: None,
        asked: Some(asked),
        got,
    };
    Ok(Some(setting(text(asked), text(got))))
}

/// The buffer sizes to ask for. `None` leaves the kernel's own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buffers {
    pub(crate) send: Option<Size>,
    pub(crate) receive: Option<Size>,
}

impl Buffers {
    /// What `params` ask for.
    pub(crate) fn from_params(params: &Params, card: &Card) -> Self {
        Self { send: params.size(card, SNDBUF.name), receive: params.size(card, RCVBUF.name) }
    }

    /// Asks the kernel for them: beyond its limits where it allows that, which takes `CAP_NET_ADMIN` (socket(7)).
    /// [`settings`](Self::settings) says what it gave.
    #[inline(always)]
    pub(crate) fn set(&self, socket: &OwnedFd) -> Result<(), Errno> {
        if let Some(size) = self.send {
            match sockopt::set_socket_send_buffer_size_force(socket, size.as_usize()) {
                Err(Errno::PERM) => sockopt::set_socket_send_buffer_size(socket, size.as_usize())?,
                forced => forced?,
            }
        }
        if let Some(size) = self.receive {
            match sockopt::set_socket_recv_buffer_size_force(socket, size.as_usize()) {
                Err(Errno::PERM) => sockopt::set_socket_recv_buffer_size(socket, size.as_usize())?,
                forced => forced?,
            }
        }
        Ok(())
    }

    /// What `socket` has.
    pub(crate) fn settings(&self, socket: &OwnedFd, name: &str) -> Result<Vec<Setting>, Failure> {
        let send_got = sockopt::socket_send_buffer_size(socket).or_fail("getsockopt(SO_SNDBUF)", name)?;
        let receive_got = sockopt::socket_recv_buffer_size(socket).or_fail("getsockopt(SO_RCVBUF)", name)?;
        // The kernel doubles what is asked, to cover its own overhead (socket(7)). So twice the size means that the
        // kernel gave what was asked.
        let usual = usual_buffer_bytes(socket).or_fail("getsockopt(SO_DOMAIN)", name)?;
        let setting = |name: &str, asked: Option<Size>, got: usize| Setting {
            name: name.to_owned(),
            asked: asked.map(|size| size.to_string()),
            got: got.to_string(),
            clamped: asked.is_some_and(|size| got != 2 * size.as_usize()),
            usual: usual.filter(|_| asked.is_none()).map(|bytes| bytes.to_string()),
        };
        Ok(vec![setting("SO_SNDBUF", self.send, send_got), setting("SO_RCVBUF", self.receive, receive_got)])
    }
}

/// What the buffers of `socket` have on a host that sets neither net.core.rmem_default nor wmem_default; `None` where the kernel sizes
/// them by the connection, as TCP does, or that is not known of this architecture.
fn usual_buffer_bytes(socket: &OwnedFd) -> Result<Option<usize>, Errno> {
    /// `SK_WMEM_DEFAULT` of the kernel's `include/net/sock.h`, where cache lines have 64 bytes.
    const USUAL_BYTES: usize = 212_992;
    let has_such_lines = cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"));
    let domain = sockopt::socket_domain(socket)?;
    let is_datagram = sockopt::socket_type(socket)? == SocketType::DGRAM;
    let is_fixed = domain == AddressFamily::UNIX
        || (is_datagram && (domain == AddressFamily::INET || domain == AddressFamily::INET6));
    Ok((has_such_lines && is_fixed).then_some(USUAL_BYTES))
}

/// Sets the buffers of `socket` as `params` ask. Returns what it has, or nothing if the mechanism has no such
/// parameter.
pub(crate) fn set_buffers(socket: &OwnedFd, params: &Params, card: &Card) -> Result<Vec<Setting>, Failure> {
    if card.params.iter().all(|param| param.name != SNDBUF.name) {
        return Ok(Vec::new());
    }
    let asked = Buffers::from_params(params, card);
    asked.set(socket).or_fail("setsockopt(SO_SNDBUF, SO_RCVBUF)", card.name)?;
    asked.settings(socket, card.name)
}

/// Two connected Unix sockets of `kind`, with buffers as `params` ask (socketpair(2)).
pub(crate) fn unix_pair(
    kind: SocketType,
    params: &Params,
    card: &Card,
) -> Result<(OwnedFd, OwnedFd, Vec<Setting>), Failure> {
    let (client, server) =
        socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).or_fail("socketpair", card.name)?;
    let settings = set_buffers(&client, params, card)?;
    set_buffers(&server, params, card)?;
    Ok((client, server, settings))
}

/// The largest message that a socket of a new pair accepts before it returns `EMSGSIZE`, found by bisection.
pub(crate) fn largest_message(fresh_pair: impl Fn() -> Result<(OwnedFd, OwnedFd), Failure>) -> Support {
    let takes = |size: usize, bytes: &[u8]| -> Result<bool, Failure> {
        let (socket, _peer) = fresh_pair()?;
        Ok(send(&socket, &bytes[..size], SendFlags::DONTWAIT) != Err(Errno::MSGSIZE))
    };
    let search = || {
        // No message is larger than the buffer that it is charged to.
        let (socket, _peer) = fresh_pair()?;
        let buffer = sockopt::socket_send_buffer_size(&socket).or_fail("getsockopt(SO_SNDBUF)", "socket")?;
        let bytes = vec![0; buffer + 1];
        largest_below(bytes.len(), |size| takes(size, &bytes))
    };
    match search() {
        Ok(largest) => Support::Yes { largest_bytes: Some(largest as u64) },
        failed => support_of(failed),
    }
}
