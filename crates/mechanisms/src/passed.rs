//! Messages that lie in a file of their own, whose descriptor is sent in a message without bytes. Not a mechanism itself.

use crate::contract::{Arrived, Endpoint, Mechanism, Steps, Ticket, Trial, Unnoted};
use crate::descriptor::{DescriptorEnd, Fds};
use crate::fd_message::MOST_FDS;
use crate::socket::unix_pair;
use arrayvec::ArrayVec;
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::record::Setting;
use model::{Params, Session, Workload};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::SocketType;
use sys::{Errno, Failure};

/// A kind of file that holds one message.
pub trait Letter: Sized {
    /// What the row declares about itself.
    const CARD: Card;

    /// Whether it works here with `params`.
    fn probe(params: &Params) -> Support;

    /// What an end needs to make letters. `end` tells the names of client's from those of server's.
    fn prepare(trial: &Trial<'_>, end: &'static str) -> Result<Self, Failure>;

    /// A new file that holds `bytes`.
    fn write(&mut self, bytes: &[u8], steps: &mut impl Steps) -> Result<OwnedFd, Errno>;

    /// Copies what `file` holds to `into`, and says how much that was.
    fn read(file: &OwnedFd, into: &mut [u8], steps: &mut impl Steps) -> Result<usize, Errno>;

    /// What is to be said of where the letters are.
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }
}

/// The card of such a row, but for its name, summary, parameters, limits and manual pages.
pub(crate) const PASSED: Card = Card {
    name: "",
    kind: CardKind::Mechanism,
    summary: "",
    framing: Framing::Message,
    reach: Reach::Host,
    payload: Payload::Bytes,
    fds: true,
    hangup: false,
    polled: false,
    one_endpoint: false,
    empty: false,
    params: &[],
    workloads: &[
        Workload::Latency,
        Workload::Throughput,
        Workload::Transfer,
        Workload::Session(Session::DEFAULT),
    ],
    sized: true,
    limits: "",
    man: &[],
};

/// A [`Letter`] as a row of the table.
#[derive(Debug)]
pub struct Passed<L>(std::marker::PhantomData<L>);

/// An end of a pair of Unix datagram sockets, and what it makes letters from.
#[derive(Debug)]
pub struct PassedEnd<L> {
    socket: DescriptorEnd,
    letters: L,
}

impl<L: Letter> PassedEnd<L> {
    fn new(socket: OwnedFd, trial: &Trial<'_>, end: &'static str) -> Result<Self, Failure> {
        let fds = Fds::both_ways(socket, L::CARD.name)?;
        let socket = DescriptorEnd::new(fds, trial.params, &L::CARD, Vec::new())?;
        Ok(Self { socket, letters: L::prepare(trial, end)? })
    }
}

impl<L: Letter> Mechanism for Passed<L> {
    const CARD: Card = L::CARD;
    type Bound = PassedEnd<L>;
    type End = PassedEnd<L>;

    fn probe(params: &Params) -> Support {
        L::probe(params)
    }

    fn bind(trial: &Trial<'_>) -> Result<(PassedEnd<L>, Ticket), Failure> {
        let (client, server, _) = unix_pair(SocketType::DGRAM, trial.params, &L::CARD)?;
        let end = PassedEnd::new(client, trial, "client")?;
        Ok((end, Ticket { address: Vec::new(), fds: vec![server] }))
    }

    fn accept(bound: PassedEnd<L>) -> Result<PassedEnd<L>, Failure> {
        Ok(bound)
    }

    fn connect(trial: &Trial<'_>, ticket: Ticket) -> Result<PassedEnd<L>, Failure> {
        let [socket] = ticket.descriptors(L::CARD.name)?;
        PassedEnd::new(socket, trial, "server")
    }
}

impl<L: Letter> Endpoint for PassedEnd<L> {
    const PASSES_FDS: bool = true;

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.send_with(bytes, &[], &mut Unnoted)
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        self.receive_with(into, &mut Unnoted).map(|arrived| arrived.bytes)
    }

    fn settings(&self) -> Vec<Setting> {
        self.letters.settings()
    }

    #[inline(always)]
    fn send_with(
        &mut self,
        bytes: &[u8],
        fds: &[BorrowedFd<'_>],
        steps: &mut impl Steps,
    ) -> Result<usize, Errno> {
        let letter = self.letters.write(bytes, steps)?;
        {
            let mut all = ArrayVec::<BorrowedFd<'_>, MOST_FDS>::new();
            all.push(letter.as_fd());
            all.try_extend_from_slice(fds).map_err(|_| Errno::INVAL)?;
            self.socket.send_with(&[], &all, steps)?;
        }
        drop(letter);
        steps.done("close");
        Ok(bytes.len())
    }

    #[inline(always)]
    fn receive_with(&mut self, into: &mut [u8], steps: &mut impl Steps) -> Result<Arrived, Errno> {
        let mut came = ArrayVec::<OwnedFd, MOST_FDS>::new();
        self.socket.receive_message(&mut [], |fd| came.push(fd))?;
        steps.done("recvmsg");
        let fds = came.len().saturating_sub(1);
        let mut came = came.into_iter();
        let letter = came.next().ok_or(Errno::BADMSG)?;
        let bytes = L::read(&letter, into, steps)?;
        drop(letter);
        steps.done("close");
        if fds > 0 {
            drop(came);
            steps.done("close, all passed");
        }
        Ok(Arrived { bytes, fds })
    }
}
