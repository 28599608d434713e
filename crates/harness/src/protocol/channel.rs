//! The control channel: framed JSON over a Unix stream socket, with descriptors, or over two streams of bytes, without.
//!
//! It carries orders, tickets, phases and reports, before and after iterations: nothing passes on it during one.

use super::frame::{LENGTH_BYTES, as_text, body_bytes, frame, message, no_length};
use crate::clock::Timer;
use model::Peers;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{IoSlice, IoSliceMut, read, write};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sys::{Errno, Failure, OrFail};

/// The most descriptors that one message carries: a link to every peer.
const MOST_FDS: usize = Peers::MOST as usize;
/// How much of a message is read at a time, so that no more memory is taken than came.
const PIECE_BYTES: usize = 64 << 10;
/// How long a message may take on a byte stream, from its first byte to its last.
const LONGEST_TIME: Duration = Duration::from_secs(5);

/// One side of a control channel: to the coordinator, to an endpoint, or from an endpoint to its peer (a link).
#[derive(Debug)]
pub(crate) struct Channel(Way);

/// What carries the messages.
#[derive(Debug)]
enum Way {
    /// A Unix socket, over which descriptors go too.
    Socket(OwnedFd),
    /// A stream of bytes in, and another out.
    Stream { input: OwnedFd, output: Arc<StreamOutput> },
}

/// The outgoing stream of a channel, to which several threads write whole messages.
#[derive(Debug)]
pub(crate) struct StreamOutput(Mutex<OwnedFd>);

/// Both sides of a fresh channel (socketpair(2)).
pub(crate) fn channel() -> Result<(Channel, Channel), Failure> {
    let (a, b) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .or_fail("socketpair", "control channel")?;
    Ok((Channel::from(a), Channel::from(b)))
}

impl From<OwnedFd> for Channel {
    fn from(fd: OwnedFd) -> Self {
        Self(Way::Socket(fd))
    }
}

impl From<Channel> for OwnedFd {
    fn from(channel: Channel) -> Self {
        match channel.0 {
            Way::Socket(fd) => fd,
            Way::Stream { input, .. } => input,
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Way::Socket(fd) | Way::Stream { input: fd, .. } => fd.as_fd(),
        }
    }
}

impl Channel {
    /// A channel over two streams of bytes: what comes in, and what goes out.
    pub(crate) fn over_streams(input: OwnedFd, output: OwnedFd) -> Self {
        Self(Way::Stream { input, output: Arc::new(StreamOutput(Mutex::new(output))) })
    }

    /// The stream that goes out, unless this is a socket.
    pub(crate) fn stream_output(&self) -> Option<&Arc<StreamOutput>> {
        match &self.0 {
            Way::Socket(_) => None,
            Way::Stream { output, .. } => Some(output),
        }
    }

    /// The same channel over descriptors of its own (fcntl(2), F_DUPFD_CLOEXEC).
    pub(crate) fn try_clone(&self) -> Result<Self, Failure> {
        let clone = |fd: &OwnedFd| fd.try_clone().or_fail("dup", "control channel");
        Ok(Self(match &self.0 {
            Way::Socket(fd) => Way::Socket(clone(fd)?),
            Way::Stream { input, output } => Way::Stream { input: clone(input)?, output: Arc::clone(output) },
        }))
    }

    /// Sends `message` with `fds`, which go with its first byte.
    pub(crate) fn send(&self, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> Result<(), Failure> {
        let frame = frame(message)?;
        match &self.0 {
            Way::Socket(fd) => send_with_descriptors(fd, &frame, fds),
            Way::Stream { output, .. } if fds.is_empty() => output.send(&frame, LONGEST_TIME),
            Way::Stream { .. } => Err(Failure::new(
                "send",
                "control channel",
                "it is a stream of bytes, which carries no descriptors",
                "report this bug",
            )),
        }
    }

    /// Receives one message with its descriptors; sleeps until it comes.
    pub(crate) fn receive<T: DeserializeOwned>(&self) -> Result<(T, Vec<OwnedFd>), Failure> {
        let mut length = [0; LENGTH_BYTES];
        let (got, fds) = match &self.0 {
            Way::Socket(fd) => receive_with_descriptors(fd, &mut length)?,
            Way::Stream { input, .. } => (read_some(input, &mut length)?, Vec::new()),
        };
        let timer = Timer::start();
        self.fill(&mut length[got..], timer)?;
        let bytes = body_bytes(length).map_err(|failure| self.no_message(length, failure))?;
        let mut body = Vec::new();
        while body.len() < bytes {
            let start = body.len();
            body.resize(bytes.min(start + PIECE_BYTES), 0);
            self.fill(&mut body[start..], timer)?;
        }
        Ok((message(&body)?, fds))
    }

    /// Fills all of `into`; on a stream, before [`LONGEST_TIME`] has passed by `timer`.
    fn fill(&self, mut into: &mut [u8], timer: Timer) -> Result<(), Failure> {
        while !into.is_empty() {
            if matches!(self.0, Way::Stream { .. }) {
                wait_for(self.as_fd(), PollFlags::IN, timer, LONGEST_TIME, "read")?;
            }
            let count = read_some(self, into)?;
            into = &mut into[count..];
        }
        Ok(())
    }

    /// The failure of a stream that begins with `start`, which is no length: what it says, if that is text.
    fn no_message(&self, start: [u8; LENGTH_BYTES], failure: Failure) -> Failure {
        /// How long the rest of its first line is waited for.
        const REST: Duration = Duration::from_millis(200);
        let Way::Stream { input, .. } = &self.0 else { return failure };
        if let Some(answer) = no_length(start) {
            let next = "see 'The channel' in docs/reference/protocol.md";
            return Failure { answer, next: next.to_owned(), ..failure };
        }
        let (mut bytes, timer) = (start.to_vec(), Timer::start());
        while bytes.len() < 200 && wait_for(input.as_fd(), PollFlags::IN, timer, REST, "read").is_ok() {
            let mut more = [0; 200];
            let Ok(count) = read_some(input, &mut more) else { break };
            bytes.extend_from_slice(&more[..count]);
        }
        let next = "the command must reach an endpoint, and all else must be printed on standard error";
        match as_text(&bytes) {
            None => failure,
            Some(text) => {
                let answer = format!("it printed '{text}' on standard output, which is for messages only");
                Failure { answer, next: next.to_owned(), ..failure }
            }
        }
    }
}

impl StreamOutput {
    /// Writes a whole frame within `limit`.
    fn send(&self, frame: &[u8], limit: Duration) -> Result<(), Failure> {
        let fd = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut rest, timer) = (frame, Timer::start());
        while !rest.is_empty() {
            wait_for(fd.as_fd(), PollFlags::OUT, timer, limit, "write")?;
            match write(&*fd, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(Failure::from_errno("write", "control channel", errno)),
            }
        }
        Ok(())
    }

    /// Writes a short frame if there is room for it at once; what nobody reads is not waited for.
    pub(crate) fn try_send(&self, frame: &[u8]) {
        let Ok(fd) = self.0.try_lock() else { return };
        let has_room = wait_for(fd.as_fd(), PollFlags::OUT, Timer::start(), Duration::ZERO, "write").is_ok();
        if has_room {
            // A pipe that has room takes this much whole; and whoever is gone needs no word.
            let _ = write(&*fd, frame);
        }
    }
}

/// Sends `frame` over a socket, with `fds`.
fn send_with_descriptors(socket: &OwnedFd, frame: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Failure> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    // The buffer may have room for one more than it was made for.
    let has_room = fds.len() <= MOST_FDS;
    let attached = fds.is_empty() || has_room && ancillary.push(SendAncillaryMessage::ScmRights(fds));
    if !attached {
        return Err(Failure::new("sendmsg", "control channel", "too many descriptors", "report this bug"));
    }
    let sent = sendmsg(socket, &[IoSlice::new(frame)], &mut ancillary, SendFlags::NOSIGNAL)
        .or_fail("sendmsg", "control channel")?;
    let mut rest = &frame[sent..];
    while !rest.is_empty() {
        match write(socket, rest) {
            Ok(written) => rest = &rest[written..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Failure::from_errno("write", "control channel", errno)),
        }
    }
    Ok(())
}

/// Receives the first bytes of a frame into `length`, and the descriptors that come with them.
fn receive_with_descriptors(socket: &OwnedFd, length: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), Failure> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(length)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            answer => break answer.or_fail("recvmsg", "control channel")?,
        }
    };
    if got.bytes == 0 {
        return Err(closed());
    }
    if got.flags.contains(ReturnFlags::CTRUNC) {
        return Err(Failure::from_errno("recvmsg", "the descriptors of a ticket", Errno::MFILE));
    }
    let fds = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    Ok((got.bytes, fds.flatten().collect()))
}

/// Reads a first part of `into`, at least a byte.
fn read_some(fd: impl AsFd, into: &mut [u8]) -> Result<usize, Failure> {
    loop {
        match read(&fd, &mut *into) {
            Ok(0) => return Err(closed()),
            Ok(count) => return Ok(count),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Failure::from_errno("read", "control channel", errno)),
        }
    }
}

/// Waits until `fd` is ready for `flags`, no longer than until `limit` has passed by `timer`.
fn wait_for(
    fd: BorrowedFd<'_>,
    flags: PollFlags,
    timer: Timer,
    limit: Duration,
    operation: &str,
) -> Result<(), Failure> {
    loop {
        let left = timespec(timer.left_of(limit));
        match poll(&mut [PollFd::from_borrowed_fd(fd, flags)], Some(&left)) {
            Ok(0) => return Err(Failure::from_errno(operation, "control channel", Errno::TIMEDOUT)),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Failure::from_errno("poll", "control channel", errno)),
        }
    }
}

fn timespec(limit: Duration) -> Timespec {
    let tv_sec = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: i64::from(limit.subsec_nanos()) }
}

fn closed() -> Failure {
    let next = "see the other side's own error";
    let failure = Failure::new("receive", "control channel", "the other side closed it", next);
    Failure { errno: Some(Errno::PIPE), ..failure }
}

/// Which of `channels` has something to read or was closed, by index; `None` after `limit`.
///
/// A signal ends the wait with `Errno::INTR`, so that the caller can check its flags.
pub(crate) fn wait_any(channels: &[&Channel], limit: Duration) -> Result<Option<usize>, Errno> {
    let mut fds: Vec<PollFd<'_>> =
        channels.iter().map(|channel| PollFd::new(*channel, PollFlags::IN)).collect();
    poll(&mut fds, Some(&timespec(limit)))?;
    Ok(fds.iter().position(|fd| !fd.revents().is_empty()))
}

/// What comes first.
pub(crate) enum First {
    /// A message, or the end of the channel.
    Message,
    /// The run is interrupted.
    Interruption,
    /// The end of the time to wait.
    Silence,
}

/// Waits for a message over `channel` for `limit`, or until `interrupted` says so.
pub(crate) fn wait_for_message(
    channel: &Channel,
    limit: Duration,
    interrupted: &AtomicBool,
) -> Result<First, Errno> {
    let timer = Timer::start();
    loop {
        if interrupted.load(Ordering::Relaxed) {
            return Ok(First::Interruption);
        }
        match wait_any(&[channel], timer.left_of(limit)) {
            Ok(Some(_)) => return Ok(First::Message),
            Ok(None) => return Ok(First::Silence),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::fcntl_getfd;

    /// A channel, and the plain socket to its other side.
    fn raw() -> (Channel, OwnedFd) {
        let (channel, socket) = channel().unwrap();
        (channel, socket.into())
    }

    fn frame(length: u32, body: &[u8]) -> Vec<u8> {
        [&length.to_le_bytes(), body].concat()
    }

    #[test]
    fn messages_come_whole_and_in_order() {
        let (a, b) = channel().unwrap();
        a.send(&"first", &[]).unwrap();
        a.send(&vec![1, 2, 3], &[]).unwrap();
        assert_eq!(b.receive::<String>().unwrap().0, "first");
        assert_eq!(b.receive::<Vec<u32>>().unwrap().0, [1, 2, 3]);
        b.send(&(), &[]).unwrap();
        a.receive::<()>().unwrap();
    }

    #[test]
    fn a_message_longer_than_any_socket_buffer_comes_whole() {
        let (a, b) = channel().unwrap();
        let long = "x".repeat(4 << 20);
        let sent = long.clone();
        let sender = std::thread::spawn(move || a.send(&sent, &[]).unwrap());
        assert!(b.receive::<String>().unwrap().0 == long);
        sender.join().unwrap();
    }

    #[test]
    fn descriptors_come_with_their_message_and_are_closed_on_exec() {
        let (a, b) = channel().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        a.send(&1, &[]).unwrap();
        a.send(&2, &[file.as_fd(); 3]).unwrap();
        a.send(&3, &[]).unwrap();
        let counts: Vec<(u32, usize)> = (0..3)
            .map(|_| b.receive::<u32>().unwrap())
            .inspect(|(_, fds)| {
                let closed = |fd: &OwnedFd| fcntl_getfd(fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC);
                assert!(fds.iter().all(closed));
            })
            .map(|(number, fds)| (number, fds.len()))
            .collect();
        assert_eq!(counts, [(1, 0), (2, 3), (3, 0)]);
    }

    #[test]
    fn as_many_descriptors_as_there_can_be_peers_go_and_no_more() {
        let (a, b) = channel().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        a.send(&(), &vec![file.as_fd(); MOST_FDS]).unwrap();
        assert_eq!(b.receive::<()>().unwrap().1.len(), MOST_FDS);
        let error = a.send(&(), &vec![file.as_fd(); MOST_FDS + 1]).unwrap_err();
        assert!(error.to_string().contains("too many descriptors"), "{error}");
    }

    #[test]
    fn a_frame_that_is_cut_off_is_a_closed_channel() {
        for cut in [frame(5, b""), frame(5, b"123"), vec![1, 0], vec![]] {
            let (channel, socket) = raw();
            let mut rest = &cut[..];
            while !rest.is_empty() {
                rest = &rest[write(&socket, rest).unwrap()..];
            }
            drop(socket);
            let error = channel.receive::<u32>().unwrap_err();
            assert_eq!((error.errno, error.answer.as_str()), (Some(Errno::PIPE), "the other side closed it"));
        }
    }

    #[test]
    fn a_frame_that_comes_byte_by_byte_is_put_together() {
        let (channel, socket) = raw();
        let sender = std::thread::spawn(move || {
            for byte in frame(4, b"1234") {
                write(&socket, &[byte]).unwrap();
            }
        });
        assert_eq!(channel.receive::<u32>().unwrap().0, 1234);
        sender.join().unwrap();
    }

    #[test]
    fn a_frame_longer_than_any_message_is_refused_before_it_is_read() {
        let (channel, socket) = raw();
        write(&socket, &frame(u32::MAX, b"")).unwrap();
        assert_eq!(channel.receive::<u32>().unwrap_err().errno, Some(Errno::MSGSIZE));
    }

    #[test]
    fn what_is_no_message_of_ours_says_so() {
        let (channel, socket) = raw();
        write(&socket, &frame(3, b"{{{")).unwrap();
        let error = channel.receive::<u32>().unwrap_err();
        assert!(error.to_string().contains("run one version of ipcmark only"), "{error}");
        write(&socket, &frame(5, br#""abc""#)).unwrap();
        assert!(channel.receive::<u32>().is_err());
    }

    #[test]
    fn sending_to_a_side_that_has_closed_fails_and_raises_no_signal() {
        let (a, b) = channel().unwrap();
        drop(b);
        assert_eq!(a.send(&(), &[]).unwrap_err().errno, Some(Errno::PIPE));
    }

    #[test]
    fn of_several_channels_the_one_with_news_is_found() {
        let (a, server_a) = channel().unwrap();
        let (b, server_b) = channel().unwrap();
        assert_eq!(wait_any(&[&a, &b], Duration::ZERO), Ok(None));
        server_b.send(&(), &[]).unwrap();
        assert_eq!(wait_any(&[&a, &b], Duration::from_secs(60)), Ok(Some(1)));
        drop(server_a);
        assert_eq!(wait_any(&[&a, &b], Duration::from_secs(60)), Ok(Some(0)));
    }
}
