//! An endpoint made of file descriptors. Not a mechanism itself.

use crate::contract::{Arrived, Endpoint, Shape, StepTrace};
use crate::support::fd_message::{MOST_FDS, receive_message, send_message};
use crate::support::socket::set_buffers;
use crate::support::wait::{Wait, read_after_hangup, set_blocking};
use arrayvec::ArrayVec;
use model::Params;
use model::card::Card;
use model::record::Setting;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{read, write};
use sys::{Errno, Failure, OrFail};

/// An endpoint that reads one descriptor and writes another, which may be the same.
///
/// It is public because `Mechanism` is implemented with it for every `Pair`.
#[derive(Debug)]
pub struct DescriptorEndpoint {
    input: OwnedFd,
    output: OwnedFd,
    wait: Wait,
    /// A read of 0 bytes is an empty message. If false, it means that the peer has closed.
    empty: bool,
    settings: Vec<Setting>,
}

/// The two descriptors of an endpoint: the one that it reads and the one that it writes.
#[derive(Debug)]
pub(crate) struct Fds {
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
}

impl Fds {
    /// The same descriptor for both directions.
    pub(crate) fn both_ways(fd: OwnedFd, name: &str) -> Result<Self, Failure> {
        let input = rustix::io::fcntl_dupfd_cloexec(&fd, 0).or_fail("dup", name)?;
        Ok(Self { input, output: fd })
    }
}

impl DescriptorEndpoint {
    /// The endpoint over `fds` of the mechanism with `card`, which waits as `params` say.
    pub(crate) fn new(
        fds: Fds,
        params: &Params,
        card: &Card,
        settings: Vec<Setting>,
    ) -> Result<Self, Failure> {
        let Fds { input, output } = fds;
        let wait = Wait::new(params, card)?;
        wait.expect_input(&input).or_fail("epoll_ctl", card.name)?;
        wait.expect_room(&output).or_fail("epoll_ctl", card.name)?;
        for fd in [&input, &output] {
            set_blocking(fd, wait.blocks()).or_fail("fcntl(F_SETFL)", card.name)?;
        }
        Ok(Self { input, output, wait, empty: card.empty, settings })
    }

    /// The descriptor that it writes, for endpoints that send by other calls than write(2).
    #[inline(always)]
    pub(crate) fn output(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }

    /// Receives by `receive`, which gets the descriptor that the endpoint reads, and waits likewise: for endpoints that receive by other
    /// calls than read(2).
    #[inline(always)]
    pub(crate) fn receive_by<T>(
        &self,
        mut receive: impl FnMut(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.wait.until_read(|| receive(self.input.as_fd()))
    }
}

/// An endpoint over connected descriptors, however they came about.
pub(crate) trait OverDescriptors: Endpoint + std::fmt::Debug + Sized + 'static {
    /// Sets the buffers of a socket before it is connected. Returns what the kernel gave.
    fn set_buffers(socket: &OwnedFd, params: &Params, card: &Card) -> Result<Vec<Setting>, Failure> {
        set_buffers(socket, params, card)
    }

    /// The endpoint over `fds` of the mechanism with `card`, set up as `params` say, for messages of `shape`.
    fn over(
        fds: Fds,
        params: &Params,
        shape: Shape,
        card: &Card,
        settings: Vec<Setting>,
    ) -> Result<Self, Failure>;
}

impl OverDescriptors for DescriptorEndpoint {
    fn over(
        fds: Fds,
        params: &Params,
        _: Shape,
        card: &Card,
        settings: Vec<Setting>,
    ) -> Result<Self, Failure> {
        Self::new(fds, params, card, settings)
    }
}

impl DescriptorEndpoint {
    /// Receives a message, and passes the descriptors that came with it to `take`. Where an endpoint waits in a call of its own,
    /// that is a step of its own.
    #[inline(always)]
    pub(crate) fn receive_message(
        &self,
        into: &mut [u8],
        mut take: impl FnMut(OwnedFd),
        trace: &mut impl StepTrace,
    ) -> Result<Arrived, Errno> {
        let receive = || receive_message(&self.input, &mut *into, &mut take);
        let (bytes, fds) = self.wait.until_read_traced(receive, trace)?;
        trace.step_ended("recvmsg");
        if bytes == 0 && fds == 0 && !self.empty { Err(Errno::PIPE) } else { Ok(Arrived { bytes, fds }) }
    }
}

impl DescriptorEndpoint {
    /// What it means that no bytes came, but `answer`. Out of the loops, so that what they run every time lies in few lines.
    #[cold]
    #[inline(never)]
    fn received_nothing(&self, answer: Result<usize, Errno>, into: &mut [u8]) -> Result<usize, Errno> {
        match answer {
            Ok(0) if self.empty => Ok(0),
            Ok(0) | Err(Errno::IO) => read_after_hangup(&self.input, into),
            // Some protocols report so that the peer has closed; all do if it left something unread.
            Err(Errno::CONNRESET) => Err(Errno::PIPE),
            received => received,
        }
    }
}

impl Endpoint for DescriptorEndpoint {
    const PASSES_FDS: bool = true;

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.wait.until_written(|| write(&self.output, bytes))
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        match self.wait.until_read(|| read(&self.input, &mut *into)) {
            Ok(bytes @ 1..) => Ok(bytes),
            nothing => self.received_nothing(nothing, into),
        }
    }

    fn settings(&self) -> Vec<Setting> {
        self.settings.clone()
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        Some(self.input.as_fd())
    }

    #[inline(always)]
    fn send_with(
        &mut self,
        bytes: &[u8],
        fds: &[BorrowedFd<'_>],
        trace: &mut impl StepTrace,
    ) -> Result<usize, Errno> {
        let sent = self.wait.until_written_traced(|| send_message(&self.output, bytes, fds), trace)?;
        trace.step_ended("sendmsg");
        Ok(sent)
    }

    #[inline(always)]
    fn receive_with(&mut self, into: &mut [u8], trace: &mut impl StepTrace) -> Result<Arrived, Errno> {
        let mut came = ArrayVec::<OwnedFd, MOST_FDS>::new();
        let arrived = self.receive_message(into, |fd| came.push(fd), trace)?;
        if arrived.fds > 0 {
            drop(came);
            trace.step_ended("close, all passed");
        }
        Ok(arrived)
    }
}
