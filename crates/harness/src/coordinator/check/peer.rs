//! The peer of an endpoint that is checked, over a plain TCP connection: it makes and verifies payload, and makes one mistake.

use crate::endpoint::payload::{Check, make, verify};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// How long the peer waits for the endpoint.
const WAIT: Duration = Duration::from_secs(5);
/// The iteration at which the mistake is made.
const AT: u64 = 7;

/// What the peer does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mistake {
    /// Nothing.
    None,
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
        !matches!(self, Mistake::None | Mistake::Stranger)
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

/// A client over a plain socket.
pub(super) struct RawClient(TcpStream);

impl RawClient {
    /// Connects to `port` of loopback, and shows `token`.
    pub(super) fn connect(port: &[u8], token: [u8; 16], mistake: Mistake) -> Result<Self, String> {
        let port = port.try_into().map(u16::from_be_bytes);
        let port = port.map_err(|_| "its ticket for tcp is no port of two bytes".to_owned())?;
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if mistake == Mistake::Stranger {
            let mut other = token;
            other[15] ^= 1;
            for shown in [&other[..], b"GET / HTTP/1.1\r\n\r\n", b""] {
                connected(server)?.write_all(shown).map_err(|error| error.to_string())?;
            }
        }
        let mut stream = connected(server)?;
        stream.write_all(&token).map_err(|error| error.to_string())?;
        Ok(Self(stream))
    }

    /// Asks `count` times, and verifies the answers.
    pub(super) fn ask(&mut self, count: u64, size_bytes: usize, mistake: Mistake) -> Result<(), String> {
        for iteration in 0..count {
            let Some(message) = mistake.message(iteration, size_bytes) else { return Ok(()) };
            self.0.write_all(&message).map_err(|error| format!("message {iteration}: {error}"))?;
            take(&mut self.0, iteration, size_bytes)?;
        }
        Ok(())
    }
}

/// A server over a plain socket.
pub(super) struct RawServer(TcpListener);

impl RawServer {
    /// Listens at a port of loopback, which the ticket has.
    pub(super) fn listen() -> Result<(Self, Vec<u8>), String> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        Ok((Self(listener), port.to_be_bytes().to_vec()))
    }

    /// Takes the client, which must show `token`.
    pub(super) fn accept(self, token: [u8; 16]) -> Result<RawConnection, String> {
        self.0.set_nonblocking(true).map_err(|error| error.to_string())?;
        let timer = crate::clock::Timer::start();
        let mut stream = loop {
            match self.0.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return Err(error.to_string()),
                Err(_) if timer.elapsed() > WAIT => return Err("it does not connect".to_owned()),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        stream.set_nonblocking(false).map_err(|error| error.to_string())?;
        with_limit(&stream)?;
        let mut shown = [0; 16];
        stream.read_exact(&mut shown).map_err(|error| format!("it shows no token: {error}"))?;
        if shown == token { Ok(RawConnection(stream)) } else { Err("it shows another token".to_owned()) }
    }
}

/// The server's side of a connection.
pub(super) struct RawConnection(TcpStream);

impl RawConnection {
    /// Verifies `count` messages, and answers them.
    pub(super) fn answer(&mut self, count: u64, size_bytes: usize, mistake: Mistake) -> Result<(), String> {
        for iteration in 0..count {
            take(&mut self.0, iteration, size_bytes)?;
            let Some(message) = mistake.message(iteration, size_bytes) else {
                // The endpoint sees the end of the connection, not a reset.
                return self.0.shutdown(std::net::Shutdown::Both).map_err(|error| error.to_string());
            };
            self.0.write_all(&message).map_err(|error| format!("answer {iteration}: {error}"))?;
        }
        Ok(())
    }
}

/// Receives the message of `iteration`, of which the number is right in every phase, and all bytes where they are checked.
fn take(stream: &mut TcpStream, iteration: u64, size_bytes: usize) -> Result<(), String> {
    let mut message = vec![0; size_bytes];
    stream.read_exact(&mut message).map_err(|error| format!("message {iteration}: {error}"))?;
    let check = Check::Everything;
    verify(&message, 0, iteration, check, false).map_err(|_| format!("message {iteration} has other bytes"))
}

fn connected(server: SocketAddr) -> Result<TcpStream, String> {
    let stream =
        TcpStream::connect_timeout(&server, WAIT).map_err(|error| format!("connect {server}: {error}"))?;
    with_limit(&stream)?;
    Ok(stream)
}

fn with_limit(stream: &TcpStream) -> Result<(), String> {
    let limits = stream.set_read_timeout(Some(WAIT)).and_then(|()| stream.set_write_timeout(Some(WAIT)));
    limits.and_then(|()| stream.set_nodelay(true)).map_err(|error| error.to_string())
}
