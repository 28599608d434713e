//! The control channel: framed JSON and descriptors over a Unix stream socket.
//!
//! It carries orders, tickets, phases and reports, before and after iterations: nothing passes on it during one.

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
use std::time::Duration;
use sys::{Errno, Failure, OrFail};

/// The most descriptors that one message carries: a link to every peer.
const MOST_FDS: usize = Peers::MOST as usize;
/// The longest message: a sample with full histograms is far below it.
const LONGEST_BYTES: usize = 16 << 20;

/// One side of a control channel: to the coordinator, to an endpoint, or from an endpoint to its peer (a link).
#[derive(Debug)]
pub(crate) struct Channel(OwnedFd);

/// Both sides of a fresh channel (socketpair(2)).
pub(crate) fn channel() -> Result<(Channel, Channel), Failure> {
    let (a, b) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .or_fail("socketpair", "control channel")?;
    Ok((Channel(a), Channel(b)))
}

impl From<OwnedFd> for Channel {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl From<Channel> for OwnedFd {
    fn from(channel: Channel) -> Self {
        channel.0
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Channel {
    /// The same channel over a descriptor of its own (fcntl(2), F_DUPFD_CLOEXEC).
    pub(crate) fn try_clone(&self) -> Result<Self, Failure> {
        self.0.try_clone().map(Self).or_fail("dup", "control channel")
    }

    /// Sends `message` with `fds`: a length of four bytes, then JSON; the descriptors go with the first byte.
    pub(crate) fn send(&self, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> Result<(), Failure> {
        let body = serde_json::to_vec(message).map_err(|error| {
            Failure::new("encode", "a control message", error.to_string(), "report this bug")
        })?;
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let frame = [&length.to_le_bytes(), body.as_slice()].concat();

        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        // The buffer may have room for one more than it was made for.
        let has_room = fds.len() <= MOST_FDS;
        let attached = fds.is_empty() || has_room && ancillary.push(SendAncillaryMessage::ScmRights(fds));
        if !attached {
            return Err(Failure::new(
                "sendmsg",
                "control channel",
                "too many descriptors",
                "report this bug",
            ));
        }
        let sent = sendmsg(&self.0, &[IoSlice::new(&frame)], &mut ancillary, SendFlags::NOSIGNAL)
            .or_fail("sendmsg", "control channel")?;
        let mut rest = &frame[sent..];
        while !rest.is_empty() {
            match write(&self.0, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Failure::of("write", "control channel", errno)),
            }
        }
        Ok(())
    }

    /// Receives one message with its descriptors; sleeps until it comes.
    pub(crate) fn receive<T: DeserializeOwned>(&self) -> Result<(T, Vec<OwnedFd>), Failure> {
        let mut length = [0; 4];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let got = loop {
            match recvmsg(
                &self.0,
                &mut [IoSliceMut::new(&mut length)],
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            ) {
                Err(Errno::INTR) => {}
                answer => break answer.or_fail("recvmsg", "control channel")?,
            }
        };
        if got.bytes == 0 {
            return Err(closed());
        }
        if got.flags.contains(ReturnFlags::CTRUNC) {
            return Err(Failure::of("recvmsg", "the descriptors of a ticket", Errno::MFILE));
        }
        let fds = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        let fds: Vec<OwnedFd> = fds.flatten().collect();

        self.fill(&mut length[got.bytes..])?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST_BYTES {
            return Err(Failure::of("recvmsg", "control channel", Errno::MSGSIZE));
        }
        let mut body = vec![0; length];
        self.fill(&mut body)?;
        let message = serde_json::from_slice(&body).map_err(|error| {
            Failure::new("decode", "a control message", error.to_string(), "run one version of ipcmark only")
        })?;
        Ok((message, fds))
    }

    fn fill(&self, mut into: &mut [u8]) -> Result<(), Failure> {
        while !into.is_empty() {
            match read(&self.0, &mut *into) {
                Ok(0) => return Err(closed()),
                Ok(count) => into = &mut into[count..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Failure::of("read", "control channel", errno)),
            }
        }
        Ok(())
    }
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
    let tv_sec = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
    let limit = Timespec { tv_sec, tv_nsec: i64::from(limit.subsec_nanos()) };
    poll(&mut fds, Some(&limit))?;
    Ok(fds.iter().position(|fd| !fd.revents().is_empty()))
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
