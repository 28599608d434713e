//! The control channel: framed JSON and descriptors over a Unix stream socket.
//!
//! It carries orders, tickets and reports, before and after iterations; nothing passes on it during one.

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

/// One end of a control channel.
#[derive(Debug)]
pub(crate) struct Channel(OwnedFd);

/// Two ends of a fresh channel (socketpair(2)).
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
        if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
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
    Failure::new("receive", "control channel", "the other side closed it", "see the other side's own error")
}

/// Which of `channels` has something to read or was closed, by index; `None` after `limit`.
///
/// A signal ends the wait with `Errno::INTR`, so that the caller looks at its flags.
pub(crate) fn wait_any(channels: &[&Channel], limit: Duration) -> Result<Option<usize>, Errno> {
    let mut fds: Vec<PollFd<'_>> =
        channels.iter().map(|channel| PollFd::new(*channel, PollFlags::IN)).collect();
    let tv_sec = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
    let limit = Timespec { tv_sec, tv_nsec: i64::from(limit.subsec_nanos()) };
    poll(&mut fds, Some(&limit))?;
    Ok(fds.iter().position(|fd| !fd.revents().is_empty()))
}
