//! Messages that the receiver copies straight from the sender's memory: one copy instead of two.
//!
//! The sender announces over a Unix socket where its message lies, and waits until the receiver has copied it,
//! because the memory belongs to the caller again when `send` returns. So at most one message is on its way in each
//! direction, and a stream advances in lock-step.

use crate::contract::{Endpoint, Mechanism, Ticket, TrialContext};
use crate::support::cards::BY_DESCRIPTOR;
use crate::support::cards::MESSAGE;
use crate::support::descriptor::{DescriptorEndpoint, Fds};
use crate::support::probe::support_of;
use crate::support::wait::WAIT;
use model::Params;
use model::card::{Card, Reach, Support};
use model::semantics::{Atomic, Namespace, Naming, OtherUsers, Semantics};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use sys::process_vm::{self, AddressRange};
use sys::signal::ThreadId;
use sys::{Errno, Failure, OrFail};

/// process_vm_readv(2).
#[derive(Debug)]
pub(crate) struct ProcessVm;

/// An endpoint that announces messages over a socket, and reads the memory of its peer.
#[derive(Debug)]
pub(crate) struct ProcessVmEndpoint {
    socket: DescriptorEndpoint,
    peer: ThreadId,
}

impl Mechanism for ProcessVm {
    const CARD: Card = Card {
        name: "process-vm",
        summary: "the receiver copies from the memory of the sender, which waits for it",
        reach: Reach::Related,
        hangup: true,
        empty: false,
        params: &[WAIT],
        limits: "any message size, one at a time: a send ends when the receiver has copied; one user's processes, with \
                 kernel.yama.ptrace_scope at 0 or 1, or CAP_SYS_PTRACE",
        semantics: Semantics {
            naming: Naming::ProcessId,
            other_users: OtherUsers::SameUser,
            namespace: Namespace::Pid,
            atomic: Atomic::Message,
            ..BY_DESCRIPTOR
        },
        man: &["process_vm_readv(2)", "ptrace(2)", "unix(7)"],
        ..MESSAGE
    };
    type Bound = DescriptorEndpoint;
    type End = ProcessVmEndpoint;

    fn probe(_: &Params) -> Support {
        support_of(process_vm::probe())
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(DescriptorEndpoint, Ticket), Failure> {
        let (client, server) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .or_fail("socketpair", "process-vm")?;
        let ticket = Ticket { address: ThreadId::current().to_bytes().to_vec(), fds: vec![server] };
        Ok((descriptor_endpoint(client, trial.params)?, ticket))
    }

    fn accept(mut socket: DescriptorEndpoint) -> Result<ProcessVmEndpoint, Failure> {
        let mut server = [0; 8];
        socket.receive(&mut server).or_fail("read", "the server's introduction")?;
        let peer = ThreadId::from_bytes(server);
        process_vm::allow(peer)?;
        Ok(ProcessVmEndpoint { socket, peer })
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<ProcessVmEndpoint, Failure> {
        let peer = ticket.address.as_slice().try_into().map(ThreadId::from_bytes);
        let peer = peer.map_err(|_| Failure::from_errno("take the ticket of", "process-vm", Errno::INVAL))?;
        let [socket] = ticket.descriptors("process-vm")?;
        let mut socket = descriptor_endpoint(socket, trial.params)?;
        // Allow the client to read this memory before any message is announced.
        process_vm::allow(peer)?;
        socket.send(&ThreadId::current().to_bytes()).or_fail("write", "an introduction")?;
        Ok(ProcessVmEndpoint { socket, peer })
    }
}

fn descriptor_endpoint(socket: OwnedFd, params: &Params) -> Result<DescriptorEndpoint, Failure> {
    DescriptorEndpoint::new(Fds::both_ways(socket, "process-vm")?, params, &ProcessVm::CARD, Vec::new())
}

impl Endpoint for ProcessVmEndpoint {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.socket.send(&AddressRange::from_slice(bytes).to_bytes())?;
        // The receiver answers when it has copied.
        self.socket.receive(&mut [0])?;
        Ok(bytes.len())
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let mut announced = [0; AddressRange::BYTES];
        self.socket.receive(&mut announced)?;
        let count = process_vm::read(self.peer, AddressRange::from_bytes(announced), into)?;
        self.socket.send(&[0])?;
        Ok(count)
    }
}
