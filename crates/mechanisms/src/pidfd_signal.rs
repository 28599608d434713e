//! A signal through a descriptor of the peer, which cannot hit another process that got its number.

use crate::descriptor::supported;
use crate::wake::{BetweenThreads, WAKE_UP, WakeEnd, Waker};
use model::card::{Card, Reach, Support};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal as Number, pidfd_open, pidfd_send_signal};
use sys::signal::{Signal, Thread, Waiter};
use sys::{Errno, Failure, OrFail};

/// `PIDFD_THREAD` (Linux 6.9): the descriptor is that of a thread, which alone gets the signal.
const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(rustix::fs::OFlags::EXCL.bits());

/// pidfd_send_signal(2) and sigwaitinfo(2).
#[derive(Debug)]
pub struct PidfdSignal {
    peer: OwnedFd,
    waiter: Waiter,
}

impl BetweenThreads for PidfdSignal {
    const CARD: Card = Card {
        name: "pidfd-signal",
        summary: "SIGUSR1 by pidfd_send_signal, awaited in sigwaitinfo",
        reach: Reach::Host,
        limits: "a pending signal takes up the next; the same user only; Linux 5.1",
        man: &["pidfd_send_signal(2)", "pidfd_open(2)", "sigwaitinfo(2)"],
        one_endpoint: true,
        ..WAKE_UP
    };
    type Receiver = Waiter;
    type End = WakeEnd<Self>;

    fn probe() -> Support {
        supported(open(Thread::current()))
    }

    fn receiver() -> Result<Waiter, Failure> {
        Waiter::new(Signal::Standard)
    }

    fn end(receiver: Waiter, peer: Thread) -> Result<WakeEnd<Self>, Failure> {
        Ok(WakeEnd(Self { peer: open(peer)?, waiter: receiver }))
    }
}

fn open(thread: Thread) -> Result<OwnedFd, Failure> {
    let (number, flags) =
        if thread.is_of_this_process() { (thread.tid, THREAD) } else { (thread.pid, PidfdFlags::empty()) };
    let number = Pid::from_raw(number).ok_or_else(|| Failure::of("pidfd_open", number, Errno::INVAL))?;
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
