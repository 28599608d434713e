//! The endpoints of the workload `connect`: the client makes a new connection in each iteration, the server accepts
//! it and answers. Not a mechanism itself.
//!
//! An iteration is `socket`, `connect`, `write`, `read`, `read` and `close` in the client, and `accept4`, `read`,
//! `write` and `close` in the server. The server closes first, after it has written. The client reads until the
//! connection ends, as the client of such a server does. So an iteration contains the tear-down of the connection by
//! the server, and TCP keeps the server's side for a minute (TIME_WAIT), which takes none of the client's ports. If
//! the client closed first, it would run out of ports after some 28000 iterations (net.ipv4.ip_local_port_range)
//! where net.ipv4.tcp_tw_reuse is off. No socket is reset, and none lingers.
//!
//! An iteration consists of many system calls, so that one function for all loops is enough; it is not inlined into
//! each.
//!
//! A server whose client is gone waits for another, as servers do. The coordinator ends it.

use crate::support::connection::{Connection, Options, SocketFile, fresh_socket};
use crate::support::network::host_of;
use crate::support::wait::{Wait, read_after_hangup, set_blocking};
use arrayvec::ArrayVec;
use model::card::Card;
use model::record::Setting;
use model::{Domain, HostAddress, Param, Params};
use rustix::fd::OwnedFd;
use rustix::io::{read, write};
use rustix::net::{SocketAddrAny, SocketFlags, accept_with, acceptfrom_with, connect};
use std::marker::PhantomData;
use sys::fork::EchoChild;
use sys::{Errno, Failure, OrFail};

/// The parameter that says who answers in the workload `connect`.
pub(crate) const SERVER: Param = Param {
    name: "server",
    summary: "who answers in the workload connect: the server itself, one connection after the other, or a child that it forks for each connection, whose CPU time is not counted",
    domain: Domain::Choice(&["iterative", "fork"]),
    default: Some("iterative"),
};

/// The client's endpoint: it makes a new connection for each message of one byte, and waits for the answer.
#[derive(Debug)]
pub(crate) struct ConnectingClient<C> {
    address: SocketAddrAny,
    options: Options,
    wait: Wait,
    flags: SocketFlags,
    connection: Option<OwnedFd>,
    pub(crate) settings: Vec<Setting>,
    /// The name of the listener in the file system. It exists as long as the client does.
    _file: Option<SocketFile>,
    kind: PhantomData<C>,
}

impl<C: Connection> ConnectingClient<C> {
    pub(crate) fn new(
        address: SocketAddrAny,
        file: Option<SocketFile>,
        params: &Params,
        settings: Vec<Setting>,
    ) -> Result<Self, Failure> {
        let wait = Wait::new(params, &C::CARD)?;
        let flags = flags_of(&wait);
        let options = Options::from_params(params, &C::CARD);
        Ok(Self { address, options, wait, flags, connection: None, settings, _file: file, kind: PhantomData })
    }

    /// Connects, and sends the message.
    #[inline(never)]
    pub(crate) fn ask(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let socket = fresh_socket::<C>(self.address.address_family(), self.flags, &self.options)?;
        self.connect(&socket)?;
        self.wait.expect_input(&socket)?;
        // A new connection has room for a byte, so that this never waits.
        let sent = self.wait.until_written(|| write(&socket, bytes))?;
        self.connection = Some(socket);
        Ok(sent)
    }

    /// Connects `socket`. An interrupted call goes on in the background, or must be made again: that depends on the
    /// family. Another call shows which.
    #[inline(always)]
    fn connect(&self, socket: &OwnedFd) -> Result<(), Errno> {
        loop {
            match connect(socket, &self.address) {
                Ok(()) | Err(Errno::ISCONN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::INPROGRESS | Errno::ALREADY | Errno::AGAIN) => {
                    self.wait.until_connected(socket)?;
                }
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Receives the answer, and closes after the server has closed.
    #[inline(never)]
    pub(crate) fn take_answer(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let socket = self.connection.take().ok_or(Errno::NOTCONN)?;
        let count = match self.wait.until_read(|| read(&socket, &mut *into))? {
            0 => read_after_hangup(&socket, into)?,
            count => count,
        };
        if self.wait.until_read(|| read(&socket, &mut [0]))? != 0 {
            return Err(Errno::BADMSG);
        }
        self.wait.expect_no_more(&socket)?;
        Ok(count)
    }
}

/// Sockets that must not block are created so, which saves a system call.
fn flags_of(wait: &Wait) -> SocketFlags {
    if wait.blocks() { SocketFlags::empty() } else { SocketFlags::NONBLOCK }
}

/// The server's endpoint: it accepts a connection for each message of one byte, and answers on it.
#[derive(Debug)]
pub(crate) struct AcceptingServer {
    listener: OwnedFd,
    /// Whose connections are served, where the endpoints may be on two hosts; else everybody's.
    client: Option<HostAddress>,
    wait: Wait,
    flags: SocketFlags,
    by: By,
}

/// Who answers.
#[derive(Debug)]
enum By {
    /// The server itself, on the connection whose message it has received.
    Server(Option<OwnedFd>),
    /// A child for each connection. Holds the children that may not have ended yet.
    Children(Box<ArrayVec<EchoChild, MOST_CHILDREN>>),
}

/// How many children there may be at a time. The client waits for the end of its connection, which is almost the end
/// of its child.
const MOST_CHILDREN: usize = 64;

impl AcceptingServer {
    pub(crate) fn new(
        listener: OwnedFd,
        client: Option<HostAddress>,
        params: &Params,
        card: &Card,
    ) -> Result<Self, Failure> {
        let wait = Wait::new(params, card)?;
        wait.expect_input(&listener).or_fail("epoll_ctl", card.name)?;
        set_blocking(&listener, wait.blocks()).or_fail("fcntl(F_SETFL)", card.name)?;
        let (by, flags) = match params.text(card, SERVER.name) {
            // A child waits for one connection only, and sleeps in read.
            Some("fork") => (By::Children(Box::default()), SocketFlags::empty()),
            _ => (By::Server(None), flags_of(&wait)),
        };
        Ok(Self { listener, client, wait, flags, by })
    }

    /// The next connection of the client; those of others are closed.
    #[inline(always)]
    fn accept(&self) -> Result<OwnedFd, Errno> {
        let flags = self.flags | SocketFlags::CLOEXEC;
        let Some(client) = self.client else { return accept_with(&self.listener, flags) };
        let (connection, from) = acceptfrom_with(&self.listener, flags)?;
        let is_clients = from.as_ref().and_then(host_of) == Some(client);
        if is_clients { Ok(connection) } else { Err(Errno::CONNABORTED) }
    }

    /// Accepts a connection and receives its message, or leaves the message to a child: then `into` is not written.
    #[inline(never)]
    pub(crate) fn serve(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        loop {
            let connection = match self.wait.until_read(|| self.accept()) {
                Err(Errno::CONNABORTED) => continue,
                accepted => accepted?,
            };
            match &mut self.by {
                By::Children(children) => {
                    children.try_push(EchoChild::on(&connection)?).map_err(|_| Errno::AGAIN)?;
                    return Ok(into.len());
                }
                By::Server(current) => {
                    self.wait.expect_input(&connection)?;
                    match self.wait.until_read(|| read(&connection, &mut *into)) {
                        // The client was interrupted while it connected, and will connect again.
                        Ok(0) | Err(Errno::CONNRESET) => self.wait.expect_no_more(&connection)?,
                        received => {
                            *current = Some(connection);
                            return received;
                        }
                    }
                }
            }
        }
    }

    /// Answers and closes, or waits for the children that have ended.
    #[inline(never)]
    pub(crate) fn answer(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        match &mut self.by {
            By::Children(children) => {
                reap(children);
                Ok(bytes.len())
            }
            By::Server(current) => {
                let connection = current.take().ok_or(Errno::NOTCONN)?;
                let sent = self.wait.until_written(|| write(&connection, bytes))?;
                self.wait.expect_no_more(&connection)?;
                Ok(sent)
            }
        }
    }
}

/// Drops the children that have ended, and makes room: the oldest has answered long ago.
fn reap(children: &mut ArrayVec<EchoChild, MOST_CHILDREN>) {
    children.retain(|child| !child.has_ended());
    if children.is_full() {
        children.remove(0);
    }
}
