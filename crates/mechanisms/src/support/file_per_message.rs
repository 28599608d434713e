//! Messages that lie in a file each, whose descriptor is sent in a message without bytes. Not a mechanism itself.

use crate::contract::{Arrived, Endpoint, Mechanism, NoTrace, StepTrace, Ticket, TrialContext};
use crate::support::descriptor::{DescriptorEndpoint, Fds};
use crate::support::fd_message::MOST_FDS;
use crate::support::socket::unix_pair;
use arrayvec::ArrayVec;
use model::card::{Card, Support};
use model::record::Setting;
use model::{Params, Workload};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::write;
use rustix::net::SocketType;
use sys::{Errno, Failure};

/// A kind of file that holds one message.
pub(crate) trait MessageFile: Sized + 'static {
    /// What the mechanism declares about itself.
    const CARD: Card;

    /// Whether the mechanism works here with `params`. Tries it for real.
    fn probe(params: &Params) -> Support;

    /// What an endpoint needs to make files. `endpoint` distinguishes the names of the client's files from the
    /// server's.
    fn prepare(trial: &TrialContext<'_>, endpoint: &'static str) -> Result<Self, Failure>;

    /// A new file that holds `bytes`.
    fn write(&mut self, bytes: &[u8], trace: &mut impl StepTrace) -> Result<OwnedFd, Errno>;

    /// Copies the content of `file` to `into`. Returns how many bytes that was.
    fn read(file: &OwnedFd, into: &mut [u8], trace: &mut impl StepTrace) -> Result<usize, Errno>;

    /// What the record shall say about the files.
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }
}

/// A [`MessageFile`] as a mechanism.
#[derive(Debug)]
pub(crate) struct FilePerMessage<F>(std::marker::PhantomData<F>);

/// An endpoint of a pair of Unix datagram sockets, and what it makes files with.
#[derive(Debug)]
pub(crate) struct FilePerMessageEndpoint<F> {
    socket: DescriptorEndpoint,
    files: F,
    /// The answer of a session is a datagram: only what [`Endpoint::send_with`] sends lies in files.
    answers_in_datagrams: bool,
}

impl<F: MessageFile> FilePerMessageEndpoint<F> {
    fn new(socket: OwnedFd, trial: &TrialContext<'_>, endpoint: &'static str) -> Result<Self, Failure> {
        let fds = Fds::both_ways(socket, F::CARD.name)?;
        let socket = DescriptorEndpoint::new(fds, trial.params, &F::CARD, Vec::new())?;
        let answers_in_datagrams = matches!(trial.shape.workload, Workload::Session(_));
        Ok(Self { socket, files: F::prepare(trial, endpoint)?, answers_in_datagrams })
    }
}

impl<F: MessageFile> Mechanism for FilePerMessage<F> {
    const CARD: Card = F::CARD;
    type Bound = FilePerMessageEndpoint<F>;
    type End = FilePerMessageEndpoint<F>;

    fn probe(params: &Params) -> Support {
        F::probe(params)
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(FilePerMessageEndpoint<F>, Ticket), Failure> {
        let (client, server, _) = unix_pair(SocketType::DGRAM, trial.params, &F::CARD)?;
        let endpoint = FilePerMessageEndpoint::new(client, trial, "client")?;
        Ok((endpoint, Ticket { address: Vec::new(), fds: vec![server] }))
    }

    fn accept(bound: FilePerMessageEndpoint<F>) -> Result<FilePerMessageEndpoint<F>, Failure> {
        Ok(bound)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<FilePerMessageEndpoint<F>, Failure> {
        let [socket] = ticket.descriptors(F::CARD.name)?;
        FilePerMessageEndpoint::new(socket, trial, "server")
    }
}

impl<F: MessageFile> Endpoint for FilePerMessageEndpoint<F> {
    const PASSES_FDS: bool = true;

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if self.answers_in_datagrams {
            self.socket.send(bytes)
        } else {
            self.send_with(bytes, &[], &mut NoTrace)
        }
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        if self.answers_in_datagrams {
            return self.socket.receive(into);
        }
        self.receive_with(into, &mut NoTrace).map(|arrived| arrived.bytes)
    }

    fn settings(&self) -> Vec<Setting> {
        self.files.settings()
    }

    #[inline(always)]
    fn send_with(
        &mut self,
        bytes: &[u8],
        fds: &[BorrowedFd<'_>],
        trace: &mut impl StepTrace,
    ) -> Result<usize, Errno> {
        let file = self.files.write(bytes, trace)?;
        {
            let mut all = ArrayVec::<BorrowedFd<'_>, MOST_FDS>::new();
            all.push(file.as_fd());
            all.try_extend_from_slice(fds).map_err(|_| Errno::INVAL)?;
            self.socket.send_with(&[], &all, trace)?;
        }
        drop(file);
        trace.step_ended("close");
        Ok(bytes.len())
    }

    #[inline(always)]
    fn receive_with(&mut self, into: &mut [u8], trace: &mut impl StepTrace) -> Result<Arrived, Errno> {
        let mut came = ArrayVec::<OwnedFd, MOST_FDS>::new();
        self.socket.receive_message(&mut [], |fd| came.push(fd), trace)?;
        let fds = came.len().saturating_sub(1);
        let mut came = came.into_iter();
        let file = came.next().ok_or(Errno::BADMSG)?;
        let bytes = F::read(&file, into, trace)?;
        drop(file);
        trace.step_ended("close");
        if fds > 0 {
            drop(came);
            trace.step_ended("close, all passed");
        }
        Ok(Arrived { bytes, fds })
    }
}

/// Writes all of `bytes` to `file`. Makes one call even if there are none.
#[inline(always)]
pub(crate) fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    loop {
        match write(file, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        }
        if bytes.is_empty() {
            return Ok(());
        }
    }
}
