//! A completion that each endpoint's ring puts into the ring of its peer.

use crate::contract::{Mechanism, Ticket, TrialContext};
use crate::support::cards::OF_WAKE_UP;
use crate::support::cards::WAKE_UP;
use crate::support::probe::support_of;
use crate::support::wake::{WakeEndpoint, Waker};
use model::Params;
use model::card::{Card, Reach, Support};
use model::semantics::{Namespace, Naming, OtherUsers, Semantics};
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::io::{read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    PTracer, Pid, PidfdFlags, PidfdGetfdFlags, getpid, getppid, pidfd_getfd, pidfd_open, set_ptracer,
};
use sys::uring::MessageRing;
use sys::{Errno, Failure, OrFail};

/// `IORING_OP_MSG_RING`, io_uring_enter(2).
#[derive(Debug)]
pub(crate) struct UringMsg;

/// An endpoint that posts to its peer's ring and sleeps for its own.
#[derive(Debug)]
pub(crate) struct RingEndpoint {
    own: MessageRing,
    peer: OwnedFd,
}

impl Mechanism for UringMsg {
    const CARD: Card = Card {
        name: "uring-msg",
        summary: "a completion put into the peer's ring by IORING_OP_MSG_RING",
        reach: Reach::Host,
        limits: "each wake-up is a completion of its own; Linux 6.1, and kernel.io_uring_disabled=0; the peer's ring is fetched by pidfd_getfd, which kernel.yama.ptrace_scope may forbid",
        semantics: Semantics {
            naming: Naming::ProcessId,
            other_users: OtherUsers::SameUser,
            namespace: Namespace::Pid,
            ..OF_WAKE_UP
        },
        man: &["io_uring(7)", "io_uring_enter(2)", "pidfd_getfd(2)"],
        ..WAKE_UP
    };
    type Bound = (MessageRing, OwnedFd);
    type End = WakeEndpoint<RingEndpoint>;

    fn probe(_: &Params) -> Support {
        support_of(attempt())
    }

    fn bind(_: &TrialContext<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let (answer, to_answer) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", "an introduction")?;
        let own = MessageRing::open()?;
        let ticket =
            Ticket { address: RingLocation::from_ring(&own).to_bytes().to_vec(), fds: vec![to_answer] };
        Ok(((own, answer), ticket))
    }

    fn accept((own, answer): Self::Bound) -> Result<Self::End, Failure> {
        let mut location = [0; 8];
        let count = read(&answer, &mut location).or_fail("read", "the server's introduction")?;
        if count < location.len() {
            return Err(Failure::from_errno("read", "the server's introduction", Errno::PIPE));
        }
        Ok(WakeEndpoint(RingEndpoint { own, peer: RingLocation::from_bytes(location).ring()? }))
    }

    fn connect(_: &TrialContext<'_>, ticket: Ticket) -> Result<Self::End, Failure> {
        let location = ticket.address.as_slice().try_into().map(RingLocation::from_bytes);
        let location =
            location.map_err(|_| Failure::from_errno("take the ticket of", Self::CARD.name, Errno::INVAL))?;
        let [to_client] = ticket.descriptors(Self::CARD.name)?;
        let (own, peer) = (MessageRing::open()?, location.ring()?);
        write(&to_client, &RingLocation::from_ring(&own).to_bytes()).or_fail("write", "an introduction")?;
        Ok(WakeEndpoint(RingEndpoint { own, peer }))
    }
}

/// Posts from one ring to another, through a descriptor that was obtained as the peer would obtain it.
fn attempt() -> Result<(), Failure> {
    let (mut client, mut server) = (MessageRing::open()?, MessageRing::open()?);
    client
        .notify(RingLocation::from_ring(&server).ring()?.as_fd())
        .or_fail("IORING_OP_MSG_RING", "a ring of this process")?;
    server.wait();
    // That a process may take its own descriptor does not mean that it may take another's.
    match sys::sysctl::number("kernel/yama/ptrace_scope") {
        Some(scope @ 2..) => Err(Failure::new(
            "pidfd_getfd",
            "the peer's ring",
            format!("kernel.yama.ptrace_scope is {scope}"),
            "sysctl kernel.yama.ptrace_scope=1, which a scope of 3 allows after a restart only",
        )),
        _ => Ok(()),
    }
}

/// Where a ring is: its process, and its descriptor in that process.
///
/// The kernel sends no ring over a Unix socket (`EINVAL` since Linux 6.7), so that the peer must fetch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RingLocation {
    pid: i32,
    descriptor: RawFd,
}

impl RingLocation {
    /// The location of `own`. From now on the peer, a descendant of the same coordinator, may fetch it.
    fn from_ring(own: &MessageRing) -> Self {
        // Without Yama there is nothing to allow, and this fails.
        let _ = getppid().map(|coordinator| set_ptracer(PTracer::ProcessID(coordinator)));
        Self { pid: getpid().as_raw_nonzero().get(), descriptor: own.as_fd().as_raw_fd() }
    }

    /// A descriptor of the ring at this location (pidfd_getfd(2)).
    fn ring(self) -> Result<OwnedFd, Failure> {
        let Self { pid, descriptor } = self;
        let pid = Pid::from_raw(pid).ok_or_else(|| Failure::from_errno("pidfd_open", pid, Errno::INVAL))?;
        let process = pidfd_open(pid, PidfdFlags::empty()).or_fail("pidfd_open", "the peer")?;
        pidfd_getfd(&process, descriptor, PidfdGetfdFlags::empty()).map_err(|errno| {
            let next = "a process may not take another's descriptor: see kernel.yama.ptrace_scope, and the container's seccomp profile";
            let failure = Failure::new("pidfd_getfd", "the peer's ring", errno.to_string(), next);
            Failure { errno: Some(errno), ..failure }
        })
    }

    /// The bytes for a ticket.
    fn to_bytes(self) -> [u8; 8] {
        let [a, b, c, d] = self.pid.to_ne_bytes();
        let [e, f, g, h] = self.descriptor.to_ne_bytes();
        [a, b, c, d, e, f, g, h]
    }

    /// The location in the bytes that [`Self::to_bytes`] returned.
    fn from_bytes([a, b, c, d, e, f, g, h]: [u8; 8]) -> Self {
        Self { pid: i32::from_ne_bytes([a, b, c, d]), descriptor: i32::from_ne_bytes([e, f, g, h]) }
    }
}

impl Waker for RingEndpoint {
    #[inline(always)]
    fn wake(&mut self) -> Result<(), Errno> {
        self.own.notify(self.peer.as_fd())
    }

    #[inline(always)]
    fn sleep(&mut self) -> Result<(), Errno> {
        self.own.wait();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_survives_its_bytes() {
        let location = RingLocation { pid: 4_194_303, descriptor: 77 };
        assert_eq!(RingLocation::from_bytes(location.to_bytes()), location);
    }

    #[test]
    fn a_location_without_a_ring_is_refused() {
        let location = RingLocation { pid: getpid().as_raw_nonzero().get(), descriptor: RawFd::MAX };
        assert_eq!(location.ring().map_err(|failure| failure.operation).unwrap_err(), "pidfd_getfd");
    }
}
