//! The peer of an endpoint that is checked, over a stream of bytes: it makes and verifies payload, makes one mistake or none, and knows when a
//! timed stretch began and ended.

use super::tested::{ANSWER_WITHIN, Finding, text};
use super::window::{Notes, timed};
use crate::clock::Timer;
use crate::coordinator::driver::descriptors;
use crate::endpoint::payload::{Check, make};
use crate::protocol::led::LedPhase;
use model::EndpointRole;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{read, write};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use sys::Errno;

/// The message at which a mistake is made.
const AT: u64 = 7;
/// The byte of its number that is damaged where nothing else is checked: one that is zero as long as there are few messages.
const NUMBER_BYTE: usize = 6;

/// What the peer does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mistake {
    /// It changes a byte.
    Damage,
    /// It changes a byte of the number, in a phase in which nothing else is checked.
    Number,
    /// It sends two messages in the wrong order.
    Order,
    /// It leaves a message out.
    Loss,
    /// It closes the connection.
    Death,
    /// It acknowledges late, and something else.
    Acknowledgement,
}

impl Mistake {
    /// What it does, in words.
    pub(super) fn words(self, size_bytes: usize) -> String {
        match self {
            Mistake::Damage => format!("byte {} of message {AT} was changed", size_bytes - 1),
            Mistake::Number => {
                format!("byte {NUMBER_BYTE} of message {AT}, which is of its number, was changed")
            }
            Mistake::Order => format!("message {} came before message {AT}", AT + 1),
            Mistake::Loss => format!("message {AT} never came"),
            Mistake::Death => format!("its peer closed the connection instead of sending message {AT}"),
            Mistake::Acknowledgement => "the acknowledgement has another number".to_owned(),
        }
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
}

/// What the peer does in a phase.
pub(super) struct Part<'a> {
    /// Its own role.
    pub(super) role: EndpointRole,
    /// The size of messages, and of answers where there are any.
    pub(super) size_bytes: usize,
    pub(super) answer_bytes: Option<usize>,
    pub(super) phase: &'a LedPhase,
    pub(super) mistake: Option<Mistake>,
    /// How long it waits within the timed stretch, and within others.
    pub(super) pause: Option<Duration>,
}

impl Part<'_> {
    /// The message of `iteration`, of so many bytes; `None` where the connection is to be closed.
    fn message(&self, iteration: u64, size_bytes: usize) -> Option<Vec<u8>> {
        let number = self.mistake.map_or(iteration, |mistake| mistake.number(iteration));
        let mut message = made(number, size_bytes, self.phase.check);
        match self.mistake {
            Some(Mistake::Death) if iteration == AT => return None,
            Some(Mistake::Damage) if iteration == AT => message[size_bytes - 1] ^= 1,
            Some(Mistake::Number) if iteration == AT => message[NUMBER_BYTE] ^= 1,
            _ => {}
        }
        Some(message)
    }
}

/// The message of `number`; all of it matters only where everything is checked.
fn made(number: u64, size_bytes: usize, check: bool) -> Vec<u8> {
    let mut message = vec![0; size_bytes];
    let check = if check { Check::Everything } else { Check::Sequence };
    make(&mut message, 0, number, check, false);
    message
}

/// The peer.
pub(super) struct RawPeer {
    /// What is received from, and what is sent to; none until there is a connection, and when it is closed.
    ends: Option<(OwnedFd, OwnedFd)>,
    listener: Option<TcpListener>,
}

impl RawPeer {
    /// The peer over a `stream`, and the descriptors of the endpoint, where it has such from its start.
    pub(super) fn new(stream: &str) -> Result<(Self, Vec<OwnedFd>), String> {
        let Some([mut own, endpoints]) = descriptors(stream).map_err(text)? else {
            return Ok((Self { ends: None, listener: None }, Vec::new()));
        };
        let output = own.pop();
        let input = match own.pop() {
            None => output.as_ref().map(OwnedFd::try_clone).transpose(),
            input => Ok(input),
        };
        let mut peer = Self { ends: None, listener: None };
        if let Some((input, output)) = input.map_err(text)?.zip(output) {
            peer.take_over(input, output)?;
        }
        Ok((peer, endpoints))
    }

    /// Connects to the server of `ticket` on loopback, and shows `token`; before that, `strangers` do something else.
    pub(super) fn connect(&mut self, ticket: &[u8], token: [u8; 16], strangers: bool) -> Finding {
        let port = ticket.try_into().map(u16::from_be_bytes);
        let port =
            port.map_err(|_| format!("its ticket {ticket:?} is no port of tcp, which has two bytes"))?;
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let connected = || TcpStream::connect_timeout(&server, ANSWER_WITHIN);
        let nobody = |error| {
            format!(
                "its ticket {ticket:?} is the port {port} (two bytes, big-endian), where nobody listens: {error}"
            )
        };
        if strangers {
            let mut other = token;
            other[15] ^= 1;
            for shown in [&other[..], b"GET / HTTP/1.1\r\n\r\n", b""] {
                // It may have closed by now.
                let _ = connected().map_err(takes_strangers)?.write_all(shown);
            }
        }
        let mut stream =
            connected().map_err(|error| if strangers { takes_strangers(error) } else { nobody(error) })?;
        stream.write_all(&token).map_err(text)?;
        self.take_over_stream(stream)
    }

    /// Listens at a port of loopback, which the ticket has.
    pub(super) fn listen(&mut self) -> Result<Vec<u8>, String> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(text)?;
        let port = listener.local_addr().map_err(text)?.port();
        listener.set_nonblocking(true).map_err(text)?;
        self.listener = Some(listener);
        Ok(port.to_be_bytes().to_vec())
    }

    /// Takes the client, which must show `token`.
    pub(super) fn accept(&mut self, token: [u8; 16]) -> Finding {
        let listener = self.listener.take().ok_or("nobody listens")?;
        let timer = Timer::start();
        let stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return Err(error.to_string()),
                Err(_) if timer.elapsed() > ANSWER_WITHIN => {
                    let port = listener.local_addr().map_err(text)?.port();
                    return Err(format!(
                        "it does not connect within {} s to the port {port}, which is the ticket {:?} (two bytes, big-endian)",
                        seconds(),
                        port.to_be_bytes()
                    ));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        self.take_over_stream(stream)?;
        match self.receive("the token, which it sends first", token.len())? == token {
            true => Ok(()),
            false => Err("it shows another token than that of its orders".to_owned()),
        }
    }

    fn take_over_stream(&mut self, stream: TcpStream) -> Finding {
        stream.set_nodelay(true).map_err(text)?;
        let again = stream.try_clone().map_err(text)?;
        self.take_over(stream.into(), again.into())
    }

    /// Takes the ends of a connection, on which it never waits for longer than it means to.
    fn take_over(&mut self, input: OwnedFd, output: OwnedFd) -> Finding {
        for end in [&input, &output] {
            let flags = fcntl_getfl(end).map_err(text)?;
            fcntl_setfl(end, flags | OFlags::NONBLOCK).map_err(text)?;
        }
        self.ends = Some((input, output));
        Ok(())
    }

    /// Plays `part`. Returns when what happened.
    pub(super) fn play(&mut self, part: &Part<'_>) -> Result<Notes, String> {
        let mut notes = Notes::start();
        let mut number = 0;
        for stretch in &part.phase.stretches {
            let end = number + stretch.messages;
            for iteration in number..end {
                if !self.exchange(part, iteration, &mut notes)? {
                    self.ends = None;
                    return Ok(notes);
                }
            }
            number = end;
            let is_due = stretch.acknowledged && part.answer_bytes.is_none();
            if is_due && part.mistake != Some(Mistake::Acknowledgement) {
                self.acknowledge(part, number, &mut notes)?;
            }
        }
        Ok(notes)
    }

    /// A message and its answer, if it has one. Returns whether the connection is to stay.
    fn exchange(&mut self, part: &Part<'_>, iteration: u64, notes: &mut Notes) -> Result<bool, String> {
        let is_client = part.role == EndpointRole::Client;
        let check = part.phase.check;
        if !is_client {
            self.take(&format!("message {iteration}"), iteration, part.size_bytes, check)?;
            notes.has_come(iteration);
        }
        if let Some(bytes) = if is_client { Some(part.size_bytes) } else { part.answer_bytes } {
            if let Some(pause) = part.pause
                && waits_before(part.phase, iteration)
            {
                notes.pause(iteration, pause);
            }
            let Some(message) = part.message(iteration, bytes) else { return Ok(false) };
            notes.is_sent(iteration);
            let what = if is_client { "message" } else { "the answer to message" };
            self.send(&format!("{what} {iteration}"), &message)?;
        }
        if let Some(bytes) = part.answer_bytes.filter(|_| is_client) {
            self.take(&format!("the answer to message {iteration}"), iteration, bytes, check)?;
            notes.has_come(iteration);
        }
        Ok(true)
    }

    /// Acknowledges `count` messages, or has them acknowledged.
    fn acknowledge(&mut self, part: &Part<'_>, count: u64, notes: &mut Notes) -> Finding {
        let what = format!("the acknowledgement after message {}", count - 1);
        match part.role {
            EndpointRole::Client => self.take(&what, count, 1, false)?,
            EndpointRole::Server => self.send(&what, &made(count, 1, false))?,
        }
        notes.has_come(count - 1);
        Ok(())
    }

    /// Acknowledges another number of messages than `count`.
    pub(super) fn acknowledge_wrongly(&mut self, count: u64) -> Finding {
        self.send("an acknowledgement", &made(count + 1, 1, false))
    }

    /// Receives `what` whole, and verifies that it is the message of `number`.
    fn take(&mut self, what: &str, number: u64, size_bytes: usize, check: bool) -> Finding {
        let (found, wanted) = (self.receive(what, size_bytes)?, made(number, size_bytes, check));
        let held = if check { size_bytes } else { size_bytes.min(8) };
        let wrong = found[..held].iter().zip(&wanted).position(|(found, wanted)| found != wanted);
        wrong.map_or(Ok(()), |at| Err(difference(what, &found, &wanted, at)))
    }

    fn receive(&mut self, what: &str, count: usize) -> Result<Vec<u8>, String> {
        let (input, _) = self.ends.as_ref().ok_or("there is no connection")?;
        let (mut bytes, mut got) = (vec![0; count], 0);
        while got < count {
            if !wait_for(input, PollFlags::IN)? {
                return Err(format!(
                    "{got} of {count} bytes of {what} came, and nothing more for {} s",
                    seconds()
                ));
            }
            match read(input, &mut bytes[got..]) {
                Ok(0) | Err(Errno::CONNRESET) => {
                    return Err(format!(
                        "it closed the connection when {got} of {count} bytes of {what} had come"
                    ));
                }
                Ok(more) => got += more,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(errno.to_string()),
            }
        }
        Ok(bytes)
    }

    fn send(&mut self, what: &str, bytes: &[u8]) -> Finding {
        let (_, output) = self.ends.as_ref().ok_or("there is no connection")?;
        let mut sent = 0;
        while sent < bytes.len() {
            if !wait_for(output, PollFlags::OUT)? {
                let all = bytes.len();
                return Err(format!(
                    "it took {sent} of {all} bytes of {what}, and nothing more for {} s",
                    seconds()
                ));
            }
            match write(output, &bytes[sent..]) {
                Ok(more) => sent += more,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => {
                    return Err(format!("it closed the connection before it had {what}"));
                }
                Err(errno) => return Err(errno.to_string()),
            }
        }
        Ok(())
    }
}

fn takes_strangers(error: std::io::Error) -> String {
    format!("it took a connection that showed a wrong token, or none, and listens no more: {error}")
}

/// Whether the peer waits before it sends what is due in `iteration`: in the first stretch, in the last, and at the end of the timed one.
fn waits_before(phase: &LedPhase, iteration: u64) -> bool {
    let is_last = |count: u64| iteration + 1 == count;
    iteration == 0 || is_last(phase.count()) || is_last(timed(phase).end)
}

/// How `found`, which is `what`, differs from what is `wanted`, first of all at the byte `at`.
fn difference(what: &str, found: &[u8], wanted: &[u8], at: usize) -> String {
    if at >= 8 {
        return format!("byte {at} of {what} is {:#04x}, and should be {:#04x}", found[at], wanted[at]);
    }
    if found.len() == 1 {
        let [found, wanted] = [found[0], wanted[0]];
        return format!("{what} is the byte {found}, and should be {wanted} (the lowest of its number)");
    }
    let number =
        |bytes: &[u8]| bytes.iter().take(8).rev().fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    let [found_number, wanted_number] = [number(found), number(wanted)];
    let count = found.len().min(8);
    format!(
        "{what} begins with the number {found_number}, and should with {wanted_number} ({count} bytes, little-endian, \
         counted on through all stretches)"
    )
}

/// Waits until the endpoint has done its part; whether it has in time.
fn wait_for(fd: &OwnedFd, flags: PollFlags) -> Result<bool, String> {
    let limit = Timespec { tv_sec: seconds() as i64, tv_nsec: 0 };
    match poll(&mut [PollFd::new(fd, flags)], Some(&limit)) {
        Ok(ready) => Ok(ready > 0),
        Err(errno) => Err(errno.to_string()),
    }
}

fn seconds() -> u64 {
    ANSWER_WITHIN.as_secs()
}
