//! A completion that each end's ring puts into the other's.

use crate::contract::{Mechanism, Ticket, Trial};
use crate::descriptor::supported;
use crate::wake::{WAKE_UP, WakeEnd, Waker};
use model::Params;
use model::card::{Card, Reach, Support};
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::io::{read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    PTracer, Pid, PidfdFlags, PidfdGetfdFlags, getpid, getppid, pidfd_getfd, pidfd_open, set_ptracer,
};
use sys::uring::Doorbell;
use sys::{Errno, Failure, OrFail};

/// `IORING_OP_MSG_RING`, io_uring_enter(2).
#[derive(Debug)]
pub struct UringMsg;

/// An end that rings its peer's ring and sleeps for its own.
#[derive(Debug)]
pub struct RingEnd {
    own: Doorbell,
    peer: OwnedFd,
}

impl Mechanism for UringMsg {
    const CARD: Card = Card {
        name: "uring-msg",
        summary: "a completion put into the peer's ring by IORING_OP_MSG_RING",
        reach: Reach::Host,
        limits: "each wake-up is a completion of its own; Linux 6.1, and kernel.io_uring_disabled=0; the peer's ring is got by pidfd_getfd, which kernel.yama.ptrace_scope may forbid",
        man: &["io_uring(7)", "io_uring_enter(2)", "pidfd_getfd(2)"],
        ..WAKE_UP
    };
    type Bound = (Doorbell, OwnedFd);
    type End = WakeEnd<RingEnd>;

    fn probe(_: &Params) -> Support {
        supported(attempt())
    }

    fn bind(_: &Trial<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let (answer, to_answer) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", "an introduction")?;
        let own = Doorbell::open()?;
        let ticket = Ticket { address: Place::of(&own).to_bytes().to_vec(), fds: vec![to_answer] };
        Ok(((own, answer), ticket))
    }

    fn accept((own, answer): Self::Bound) -> Result<Self::End, Failure> {
        let mut place = [0; 8];
        let count = read(&answer, &mut place).or_fail("read", "server's introduction")?;
        if count < place.len() {
            return Err(Failure::of("read", "server's introduction", Errno::PIPE));
        }
        Ok(WakeEnd(RingEnd { own, peer: Place::from_bytes(place).ring()? }))
    }

    fn connect(_: &Trial<'_>, ticket: Ticket) -> Result<Self::End, Failure> {
        let place = ticket.address.as_slice().try_into().map(Place::from_bytes);
        let place = place.map_err(|_| Failure::of("take the ticket of", Self::CARD.name, Errno::INVAL))?;
        let [to_client] = ticket.descriptors(Self::CARD.name)?;
        let (own, peer) = (Doorbell::open()?, place.ring()?);
        write(&to_client, &Place::of(&own).to_bytes()).or_fail("write", "an introduction")?;
        Ok(WakeEnd(RingEnd { own, peer }))
    }
}

/// Rings one ring from another through a descriptor that was got as the peer would get it.
fn attempt() -> Result<(), Failure> {
    let (mut client, mut server) = (Doorbell::open()?, Doorbell::open()?);
    client
        .ring(Place::of(&server).ring()?.as_fd())
        .or_fail("IORING_OP_MSG_RING", "a ring of this process")?;
    server.wait();
    // That a process may do it to itself does not say that it may to another.
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

/// Where a ring is: in which process, and under which number.
///
/// The kernel sends no ring over a Unix socket (`EINVAL` since Linux 6.7), so that a peer fetches it from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    pid: i32,
    descriptor: RawFd,
}

impl Place {
    /// Where `own` is; from now on the peer may fetch it, which is a descendant of the same coordinator.
    fn of(own: &Doorbell) -> Self {
        // Where Yama is not built in there is nothing to allow, and this fails.
        let _ = getppid().map(|coordinator| set_ptracer(PTracer::ProcessID(coordinator)));
        Self { pid: getpid().as_raw_nonzero().get(), descriptor: own.as_fd().as_raw_fd() }
    }

    /// A descriptor of the ring that is there (pidfd_getfd(2)).
    fn ring(self) -> Result<OwnedFd, Failure> {
        let Self { pid, descriptor } = self;
        let pid = Pid::from_raw(pid).ok_or_else(|| Failure::of("pidfd_open", pid, Errno::INVAL))?;
        let process = pidfd_open(pid, PidfdFlags::empty()).or_fail("pidfd_open", "the peer")?;
        pidfd_getfd(&process, descriptor, PidfdGetfdFlags::empty()).map_err(|errno| {
            let next = "a process may not take another's descriptor: see kernel.yama.ptrace_scope, and the container's seccomp profile";
            let failure = Failure::new("pidfd_getfd", "the peer's ring", errno.to_string(), next);
            Failure { errno: Some(errno), ..failure }
        })
    }

    /// As bytes for a ticket.
    fn to_bytes(self) -> [u8; 8] {
        let [a, b, c, d] = self.pid.to_ne_bytes();
        let [e, f, g, h] = self.descriptor.to_ne_bytes();
        [a, b, c, d, e, f, g, h]
    }

    /// What [`Self::to_bytes`] made.
    fn from_bytes([a, b, c, d, e, f, g, h]: [u8; 8]) -> Self {
        Self { pid: i32::from_ne_bytes([a, b, c, d]), descriptor: i32::from_ne_bytes([e, f, g, h]) }
    }
}

impl Waker for RingEnd {
    #[inline(always)]
    fn wake(&mut self) -> Result<(), Errno> {
        self.own.ring(self.peer.as_fd())
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
    fn a_place_survives_its_bytes() {
        let place = Place { pid: 4_194_303, descriptor: 77 };
        assert_eq!(Place::from_bytes(place.to_bytes()), place);
    }

    #[test]
    fn a_place_where_no_ring_is_is_refused() {
        let place = Place { pid: getpid().as_raw_nonzero().get(), descriptor: RawFd::MAX };
        assert_eq!(place.ring().map_err(|failure| failure.operation).unwrap_err(), "pidfd_getfd");
    }
}
