//! Messages that the receiver copies straight from the sender's memory: one copy instead of two.
//!
//! The sender announces where its message lies over a Unix socket and waits until the receiver has copied it, for its
//! memory is its own again when `send` returns. So at most one message is under way each way: a stream goes in lock-step.

use crate::contract::{Endpoint, Mechanism, Ticket, Trial};
use crate::descriptor::{DescriptorEnd, Fds, WAIT, supported};
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::{Params, Workload};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use sys::process_vm::{self, Span};
use sys::signal::Thread;
use sys::{Errno, Failure, OrFail};

/// process_vm_readv(2).
#[derive(Debug)]
pub struct ProcessVm;

/// An end that announces over a socket, and reads the memory of its peer.
#[derive(Debug)]
pub struct ProcessVmEnd {
    socket: DescriptorEnd,
    peer: Thread,
}

impl Mechanism for ProcessVm {
    const CARD: Card = Card {
        name: "process-vm",
        kind: CardKind::Mechanism,
        summary: "the receiver copies from the memory of the sender, which waits for it",
        framing: Framing::Message,
        reach: Reach::Related,
        payload: Payload::Bytes,
        fds: false,
        hangup: true,
        polled: false,
        one_endpoint: false,
        empty: false,
        params: &[WAIT],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        sized: true,
        limits: "any message size, one at a time: a send ends when the receiver has copied; one user's processes, with \
                 kernel.yama.ptrace_scope at 0 or 1, or CAP_SYS_PTRACE",
        man: &["process_vm_readv(2)", "ptrace(2)", "unix(7)"],
    };
    type Bound = DescriptorEnd;
    type End = ProcessVmEnd;

    fn probe(_: &Params) -> Support {
        supported(process_vm::try_it())
    }

    fn bind(trial: &Trial<'_>) -> Result<(DescriptorEnd, Ticket), Failure> {
        let (client, server) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .or_fail("socketpair", "process-vm")?;
        let ticket = Ticket { address: Thread::current().to_bytes().to_vec(), fds: vec![server] };
        Ok((waiting(client, trial.params)?, ticket))
    }

    fn accept(mut socket: DescriptorEnd) -> Result<ProcessVmEnd, Failure> {
        let mut server = [0; 8];
        socket.receive(&mut server).or_fail("read", "server's introduction")?;
        let peer = Thread::from_bytes(server);
        process_vm::allow(peer)?;
        Ok(ProcessVmEnd { socket, peer })
    }

    fn connect(trial: &Trial<'_>, ticket: Ticket) -> Result<ProcessVmEnd, Failure> {
        let peer = ticket.address.as_slice().try_into().map(Thread::from_bytes);
        let peer = peer.map_err(|_| Failure::of("take the ticket of", "process-vm", Errno::INVAL))?;
        let [socket] = ticket.descriptors("process-vm")?;
        let mut socket = waiting(socket, trial.params)?;
        // Client may read this memory before it can be told of any message in it.
        process_vm::allow(peer)?;
        socket.send(&Thread::current().to_bytes()).or_fail("write", "an introduction")?;
        Ok(ProcessVmEnd { socket, peer })
    }
}

fn waiting(socket: OwnedFd, params: &Params) -> Result<DescriptorEnd, Failure> {
    DescriptorEnd::new(Fds::both_ways(socket, "process-vm")?, params, &ProcessVm::CARD, Vec::new())
}

impl Endpoint for ProcessVmEnd {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.socket.send(&Span::of(bytes).to_bytes())?;
        // The receiver has copied.
        self.socket.receive(&mut [0])?;
        Ok(bytes.len())
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let mut announced = [0; Span::BYTES];
        self.socket.receive(&mut announced)?;
        let count = process_vm::read(self.peer, Span::from_bytes(announced), into)?;
        self.socket.send(&[0])?;
        Ok(count)
    }
}
