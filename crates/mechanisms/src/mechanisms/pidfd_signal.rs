//! A signal through a descriptor of the peer. It cannot reach another process that was given the same process number.

use crate::support::cards::SIGNAL;
use crate::support::probe::support_of;
use crate::support::wake::{BetweenThreads, WakeEndpoint, Waker};
use model::card::{Card, Support};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal as Number, pidfd_open, pidfd_send_signal};
use sys::signal::{Signal, SignalWaiter, ThreadId};
use sys::{Errno, Failure, OrFail};

/// `PIDFD_THREAD` (Linux 6.9): the descriptor refers to a thread, and only that thread gets the signal.
const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(rustix::fs::OFlags::EXCL.bits());

/// pidfd_send_signal(2) and sigwaitinfo(2).
#[derive(Debug)]
pub(crate) struct PidfdSignal {
    peer: OwnedFd,
    waiter: SignalWaiter,
}

impl BetweenThreads for PidfdSignal {
    const CARD: Card = Card {
        name: "pidfd-signal",
        summary: "SIGUSR1 by pidfd_send_signal, awaited in sigwaitinfo",
        limits: "a signal that arrives while one is pending is merged with it; the same user only; Linux 5.1",
        man: &["pidfd_send_signal(2)", "pidfd_open(2)", "sigwaitinfo(2)"],
        ..SIGNAL
    };
    type Receiver = SignalWaiter;
    type End = WakeEndpoint<Self>;

    fn probe() -> Support {
        support_of(open(ThreadId::current()))
    }

    fn receiver() -> Result<SignalWaiter, Failure> {
        SignalWaiter::new(Signal::Standard)
    }

    fn endpoint(receiver: SignalWaiter, peer: ThreadId) -> Result<WakeEndpoint<Self>, Failure> {
        Ok(WakeEndpoint(Self { peer: open(peer)?, waiter: receiver }))
    }
}

fn open(thread: ThreadId) -> Result<OwnedFd, Failure> {
    let (number, flags) =
        if thread.is_of_this_process() { (thread.tid, THREAD) } else { (thread.pid, PidfdFlags::empty()) };
    let number =
        Pid::from_raw(number).ok_or_else(|| Failure::from_errno("pidfd_open", number, Errno::INVAL))?;
    pidfd_open(number, flags).or_fail("pidfd_open", format!("the peer, {number:?}"))
}

impl Waker for PidfdSignal {
    #[inline(always)]
    fn wake(&mut self) -> Result<(), Errno> {
        pidfd_send_signal(&self.peer, Number::USR1)
    }

    #[inline(always)]
    fn sleep(&mut self) -> Result<(), Errno> {
        self.waiter.wait().map(drop)
    }
}
