//! How an endpoint talks to its coordinator and to its peer: over a socket of its own for each, or over one stream of bytes on
//! standard input and output, where the coordinator passes on what is for the peer.
//!
//! Over a stream a thread listens beside the iterations, so that the endpoint ends when the coordinator is gone: when its
//! standard input ends, or when nothing has come for some seconds. On one host the kernel ends it instead.

use crate::protocol::channel::{Channel, wait_any};
use crate::protocol::error::{Blame, EndpointError, Outcome};
use crate::protocol::message::{CoordinatorMessage, EndpointMessage, PeerMessage};
use crate::protocol::silence::SILENCE;
use model::visible::{Commands, visible};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sys::{Errno, Failure, OrFail};

/// The most messages that wait to be taken: a coordinator never says more than two things in a row.
const MOST_WAITING: usize = 16;
/// How long the endpoint may go on when the coordinator has said goodbye.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The way to the coordinator.
#[derive(Debug)]
pub(crate) struct Control {
    channel: Channel,
    /// What the listening thread has received, of a stream.
    inbox: Option<Arc<Mutex<Receiver<CoordinatorMessage>>>>,
}

impl Control {
    /// Over a socket.
    pub(crate) fn over_socket(channel: Channel) -> Self {
        Self { channel, inbox: None }
    }

    /// Over standard input and output, with the thread that listens.
    pub(crate) fn over_standard_streams() -> Result<Self, Failure> {
        let input = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3).or_fail("dup", "standard input")?;
        let output =
            rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3).or_fail("dup", "standard output")?;
        let channel = Channel::over_streams(input, output);
        let (to, inbox) = sync_channel(MOST_WAITING);
        let incoming = channel.try_clone()?;
        std::thread::Builder::new()
            .spawn(move || listen(&incoming, &to))
            .or_fail("start", "the thread that listens to the coordinator")?;
        Ok(Self { channel, inbox: Some(Arc::new(Mutex::new(inbox))) })
    }

    /// Whether it is a socket, over which descriptors go too.
    pub(crate) fn is_socket(&self) -> bool {
        self.inbox.is_none()
    }

    /// The same way, for another part of the endpoint.
    pub(crate) fn try_clone(&self) -> Result<Self, Failure> {
        Ok(Self { channel: self.channel.try_clone()?, inbox: self.inbox.clone() })
    }

    /// Tells the coordinator something.
    pub(crate) fn send(&self, message: &EndpointMessage) -> Outcome<()> {
        self.channel.send(message, &[]).map_err(by_coordinator)
    }

    /// The same with descriptors, over a socket.
    pub(crate) fn send_with(&self, message: &EndpointMessage, fds: &[BorrowedFd<'_>]) -> Outcome<()> {
        self.channel.send(message, fds).map_err(by_coordinator)
    }

    /// What the coordinator says next; sleeps until it does.
    pub(crate) fn receive(&self) -> Outcome<(CoordinatorMessage, Vec<OwnedFd>)> {
        let Some(inbox) = &self.inbox else { return self.channel.receive().map_err(by_coordinator) };
        let message = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let message = message.map_err(|_| {
            by_coordinator(Failure::new(
                "receive",
                "control channel",
                "nobody listens to it",
                "report this bug",
            ))
        })?;
        Ok((message, Vec::new()))
    }

    /// Whether something has come over a socket.
    pub(crate) fn has_news(&self) -> Outcome<bool> {
        match wait_any(&[&self.channel], Duration::ZERO) {
            Err(Errno::INTR) => Ok(false),
            ready => Ok(ready.or_fail("poll", "control channel")?.is_some()),
        }
    }
}

/// The way to one peer.
#[derive(Debug)]
pub(crate) enum Link {
    /// A socket of its own.
    Direct(Channel),
    /// By way of the coordinator.
    Relayed(Control),
}

impl Link {
    /// Tells the peer something. Descriptors go over a link of its own alone.
    pub(crate) fn send(&self, message: PeerMessage, fds: &[BorrowedFd<'_>]) -> Outcome<()> {
        match self {
            Link::Direct(channel) => Ok(channel.send(&message, fds)?),
            Link::Relayed(control) if fds.is_empty() => {
                control.send(&EndpointMessage::Peer(Box::new(message)))
            }
            Link::Relayed(_) => {
                let answer = "it has descriptors, which do not reach an endpoint on another host";
                Err(EndpointError::bug("send", "the ticket", answer))
            }
        }
    }

    /// What the peer says next, if `take` finds it to be `what`; sleeps until it comes.
    pub(crate) fn receive<T>(
        &self,
        what: &str,
        take: impl FnOnce(PeerMessage) -> Option<T>,
    ) -> Outcome<(T, Vec<OwnedFd>)> {
        let (message, fds) = self.receive_any(what)?;
        let taken = take(message).ok_or_else(|| unexpected(what, "the peer").blaming(Blame::Peer))?;
        Ok((taken, fds))
    }

    /// What the peer says next, which should be `what`.
    fn receive_any(&self, what: &str) -> Outcome<(PeerMessage, Vec<OwnedFd>)> {
        match self {
            Link::Direct(channel) => Ok(channel.receive()?),
            Link::Relayed(control) => match control.receive()? {
                (CoordinatorMessage::Peer(message), fds) => Ok((*message, fds)),
                (CoordinatorMessage::Goodbye, _) => {
                    let gone = EndpointError::bug("receive", what, "the coordinator said goodbye");
                    Err(gone.blaming(Blame::Coordinator))
                }
                _ => Err(unexpected(what, "the coordinator").blaming(Blame::Coordinator)),
            },
        }
    }

    /// Whether the coordinator passes messages on.
    pub(crate) fn is_relayed(&self) -> bool {
        matches!(self, Link::Relayed(_))
    }

    /// The descriptor to wait for, of a link of its own.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Link::Direct(channel) => Some(channel.as_fd()),
            Link::Relayed(_) => None,
        }
    }
}

/// The failure of `who`, who said something else than `what` was due.
pub(crate) fn unexpected(what: &str, who: &str) -> EndpointError {
    EndpointError::bug("receive", what, &format!("{who} said something else"))
}

/// A failure on the channel to the coordinator: whoever closed that, it was not the peer.
fn by_coordinator(failure: Failure) -> EndpointError {
    let error = EndpointError::from(failure);
    if error.blame == Blame::Peer { error.blaming(Blame::Coordinator) } else { error }
}

/// Takes what comes over a stream and passes it on. Ends the process when the coordinator is gone, breaks the protocol or says
/// goodbye: whatever the endpoint does then, nobody wants it.
fn listen(incoming: &Channel, to: &SyncSender<CoordinatorMessage>) {
    loop {
        match wait_any(&[incoming], SILENCE) {
            Ok(Some(_)) => {}
            Ok(None) => leave(&format!("nothing has come from the coordinator for {} s", SILENCE.as_secs())),
            Err(Errno::INTR) => continue,
            Err(errno) => leave(&Failure::from_errno("poll", "control channel", errno).to_string()),
        }
        let message = match incoming.receive::<CoordinatorMessage>() {
            Ok((message, _)) => message,
            Err(failure) if failure.errno == Some(Errno::PIPE) => std::process::exit(1),
            Err(failure) => leave(&failure.to_string()),
        };
        match message {
            CoordinatorMessage::Alive => {}
            CoordinatorMessage::Ping => {
                // If it cannot be sent, nobody waits for it.
                let _ = incoming.send(&EndpointMessage::Pong, &[]);
            }
            message => {
                let is_last = matches!(message, CoordinatorMessage::Goodbye);
                match to.try_send(message) {
                    Ok(()) if is_last => break,
                    Ok(()) => {}
                    Err(TrySendError::Full(_)) => leave("the coordinator says more than can be listened to"),
                    // The endpoint has ended.
                    Err(TrySendError::Disconnected(_)) => break,
                }
            }
        }
    }
    std::thread::sleep(LAST_WORDS);
    std::process::exit(1);
}

/// Ends the process, with a word to whoever reads its standard error.
fn leave(why: &str) -> ! {
    // Whoever read that may be gone, too.
    let _ = writeln!(std::io::stderr(), "ipcmark endpoint: {}", visible(why, Commands::None));
    std::process::exit(1)
}
