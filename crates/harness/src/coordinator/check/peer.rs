//! The peer of an endpoint that is checked, over a stream of bytes: it makes and verifies payload, and makes one mistake.

use crate::clock::Timer;
use crate::coordinator::driver::descriptors;
use crate::endpoint::payload::{Check, make, verify};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::{read, write};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use sys::Failure;

/// How long the peer waits for the endpoint.
const WAIT: Duration = Duration::from_secs(5);
/// The iteration at which the mistake is made.
const AT: u64 = 7;

/// What the peer does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mistake {
    /// Somebody else connects first, and shows another token.
    Stranger,
    /// It changes a byte.
    Damage,
    /// It sends two messages in the wrong order.
    Order,
    /// It leaves a message out.
    Loss,
    /// It closes the connection.
    Death,
}

impl Mistake {
    /// Whether the endpoint must end its trial for it.
    pub(super) fn is_noticed(self) -> bool {
        self != Mistake::Stranger
    }

    /// The number of the message that is sent in `iteration`.
    fn number(self, iteration: u64) -> u64 {
        match self {
            Mistake::Order if iteration == AT => AT + 1,
            Mistake::Order if iteration == AT + 1 => AT,
            Mistake::Loss if iteration >= AT => iteration + 1,
            _ => iteration,
        }
    }

    /// The message of `iteration`; `None` where the connection is to be closed.
    fn message(self, iteration: u64, size_bytes: usize) -> Option<Vec<u8>> {
        let mut message = vec![0; size_bytes];
        make(&mut message, 0, self.number(iteration), Check::Everything, false);
        match self {
            Mistake::Death if iteration == AT => return None,
            Mistake::Damage if iteration == AT => message[size_bytes - 1] ^= 1,
            _ => {}
        }
        Some(message)
    }
}

/// The peer.
pub(super) struct RawPeer {
    /// What is received from, and what is sent to; none until there is a connection, and when it is closed.
    ends: Option<(OwnedFd, OwnedFd)>,
    listener: Option<TcpListener>,
}

impl RawPeer {
    /// The peer over a `stream`, and the descriptors of the endpoint, where it has such from its start.
    pub(super) fn new(stream: &str) -> Result<(Self, Vec<OwnedFd>), Failure> {
        let Some([mut own, endpoints]) = descriptors(stream)? else {
            return Ok((Self { ends: None, listener: None }, Vec::new()));
        };
        let output = own.pop();
        let input = match own.pop() {
            None => output.as_ref().map(|socket| socket.try_clone()).transpose(),
            input => Ok(input),
        };
        let input =
            input.map_err(|error| Failure::new("dup", stream, error.to_string(), "report this bug"))?;
        Ok((Self { ends: input.zip(output), listener: None }, endpoints))
    }

    /// Connects to `port` of loopback, and shows `token`; before that, strangers do.
    pub(super) fn connect(&mut self, port: &[u8], token: [u8; 16], mistake: Mistake) -> Result<(), String> {
        let port = port.try_into().map(u16::from_be_bytes);
        let port = port.map_err(|_| "its ticket for tcp is no port of two bytes".to_owned())?;
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let connected = || {
            TcpStream::connect_timeout(&server, WAIT).map_err(|error| format!("connect {server}: {error}"))
        };
        if mistake == Mistake::Stranger {
            let mut other = token;
            other[15] ^= 1;
            for shown in [&other[..], b"GET / HTTP/1.1\r\n\r\n", b""] {
                connected()?.write_all(shown).map_err(|error| error.to_string())?;
            }
        }
        let mut stream = connected()?;
        stream.write_all(&token).map_err(|error| error.to_string())?;
        self.take_over(stream)
    }

    /// Listens at a port of loopback, which the ticket has.
    pub(super) fn listen(&mut self) -> Result<Vec<u8>, String> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        listener.set_nonblocking(true).map_err(|error| error.to_string())?;
        self.listener = Some(listener);
        Ok(port.to_be_bytes().to_vec())
    }

    /// Takes the client, which must show `token`.
    pub(super) fn accept(&mut self, token: [u8; 16]) -> Result<(), String> {
        let listener = self.listener.take().ok_or("nobody listens")?;
        let timer = Timer::start();
        let stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return Err(error.to_string()),
                Err(_) if timer.elapsed() > WAIT => return Err("it does not connect".to_owned()),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        stream.set_nonblocking(false).map_err(|error| error.to_string())?;
        self.take_over(stream)?;
        let shown = self.receive(token.len()).map_err(|error| format!("it shows no token: {error}"))?;
        if shown == token { Ok(()) } else { Err("it shows another token".to_owned()) }
    }

    fn take_over(&mut self, stream: TcpStream) -> Result<(), String> {
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let again = stream.try_clone().map_err(|error| error.to_string())?;
        self.ends = Some((stream.into(), again.into()));
        Ok(())
    }

    /// Asks `count` times, and verifies the answers.
    pub(super) fn ask(&mut self, count: u64, size_bytes: usize, mistake: Mistake) -> Result<(), String> {
        for iteration in 0..count {
            let Some(message) = mistake.message(iteration, size_bytes) else { return self.close() };
            self.send(&message).map_err(|error| format!("message {iteration}: {error}"))?;
            self.take(iteration, size_bytes)?;
        }
        Ok(())
    }

    /// Verifies `count` messages, and answers them.
    pub(super) fn answer(&mut self, count: u64, size_bytes: usize, mistake: Mistake) -> Result<(), String> {
        for iteration in 0..count {
            self.take(iteration, size_bytes)?;
            let Some(message) = mistake.message(iteration, size_bytes) else { return self.close() };
            self.send(&message).map_err(|error| format!("answer {iteration}: {error}"))?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        self.ends = None;
        Ok(())
    }

    /// Receives the message of `iteration` whole.
    fn take(&mut self, iteration: u64, size_bytes: usize) -> Result<(), String> {
        let message = self.receive(size_bytes).map_err(|error| format!("message {iteration}: {error}"))?;
        let checked = verify(&message, 0, iteration, Check::Everything, false);
        checked.map_err(|_| format!("message {iteration} has other bytes"))
    }

    fn receive(&mut self, count: usize) -> Result<Vec<u8>, String> {
        let (input, _) = self.ends.as_ref().ok_or("there is no connection")?;
        let (mut bytes, mut got) = (vec![0; count], 0);
        while got < count {
            wait_for(input, PollFlags::IN)?;
            match read(input, &mut bytes[got..]).map_err(|errno| errno.to_string())? {
                0 => return Err("it has closed".to_owned()),
                more => got += more,
            }
        }
        Ok(bytes)
    }

    fn send(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        let (_, output) = self.ends.as_ref().ok_or("there is no connection")?;
        while !bytes.is_empty() {
            wait_for(output, PollFlags::OUT)?;
            bytes = &bytes[write(output, bytes).map_err(|errno| errno.to_string())?..];
        }
        Ok(())
    }
}

/// Waits until the endpoint has done its part.
fn wait_for(fd: &OwnedFd, flags: PollFlags) -> Result<(), String> {
    let limit = Timespec { tv_sec: WAIT.as_secs() as i64, tv_nsec: 0 };
    match poll(&mut [PollFd::new(fd, flags)], Some(&limit)) {
        Ok(0) => Err(format!("nothing happens for {} s", WAIT.as_secs())),
        Ok(_) => Ok(()),
        Err(errno) => Err(errno.to_string()),
    }
}
