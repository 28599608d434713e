//! Signals that wake one thread: how they are sent to it, and how it sleeps until one comes. Not the handling of
//! signals that end the program.
//!
//! The receiver blocks the signal except while it sleeps, so that none is lost between two sleeps. A sender in
//! another process sends it to the process, a sender in the same process to the thread.

use crate::libc_call::checked;
use crate::{Errno, Failure, OrFail};
use rustix::fd::{FromRawFd, OwnedFd};
use rustix::io::retry_on_intr;
use std::cell::Cell;
use std::mem::MaybeUninit;

/// Which thread of which process: what a signal is sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadId {
    /// The number of its process.
    pub pid: i32,
    /// The number of the thread.
    pub tid: i32,
}

impl ThreadId {
    /// The calling thread (getpid(2), gettid(2)).
    pub fn current() -> Self {
        // SAFETY: neither call can fail, and neither touches memory of this process.
        unsafe { Self { pid: libc::getpid(), tid: libc::gettid() } }
    }

    /// Whether the thread is one of this process.
    pub fn is_of_this_process(self) -> bool {
        self.pid == Self::current().pid
    }

    /// The value as bytes for a ticket.
    pub fn to_bytes(self) -> [u8; 8] {
        let [a, b, c, d] = self.pid.to_ne_bytes();
        let [e, f, g, h] = self.tid.to_ne_bytes();
        [a, b, c, d, e, f, g, h]
    }

    /// The value that [`Self::to_bytes`] made bytes of.
    pub fn from_bytes([a, b, c, d, e, f, g, h]: [u8; 8]) -> Self {
        Self { pid: i32::from_ne_bytes([a, b, c, d]), tid: i32::from_ne_bytes([e, f, g, h]) }
    }
}

/// Which signal is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// `SIGUSR1`: while one is pending, a second is lost.
    Standard,
    /// `SIGRTMIN`: each is queued, with a value.
    Queued,
    /// `SIGUSR2`: wakes nobody, but interrupts a call that sleeps. Tests use it.
    Interruption,
}

impl Signal {
    fn number(self) -> libc::c_int {
        match self {
            Signal::Standard => libc::SIGUSR1,
            Signal::Queued => libc::SIGRTMIN(),
            Signal::Interruption => libc::SIGUSR2,
        }
    }

    fn set(self) -> libc::sigset_t {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set, and sigaddset takes an initialised one. Both succeed for a valid
        // set and signal.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), self.number());
            set.assume_init()
        }
    }
}

/// Sends one signal to one receiver. Whether that is a thread of this process is found out once, when this is made.
#[derive(Debug, Clone, Copy)]
pub struct SignalSender {
    receiver: ThreadId,
    signal: libc::c_int,
    within: bool,
}

impl SignalSender {
    /// A sender of `signal` to `receiver`.
    pub fn new(receiver: ThreadId, signal: Signal) -> Self {
        Self { receiver, signal: signal.number(), within: receiver.is_of_this_process() }
    }

    /// Sends the signal: kill(2), or tgkill(2) to a thread of this process.
    #[inline(always)]
    pub fn kill(&self) -> Result<(), Errno> {
        // SAFETY: the calls take numbers only.
        let sent = unsafe {
            if self.within {
                libc::syscall(libc::SYS_tgkill, self.receiver.pid, self.receiver.tid, self.signal)
            } else {
                libc::c_long::from(libc::kill(self.receiver.pid, self.signal))
            }
        };
        checked(sent).map(drop)
    }

    /// Queues the signal with `value`, as sigqueue(3) does: rt_sigqueueinfo(2), or rt_tgsigqueueinfo(2) to a thread
    /// of this process.
    #[inline(always)]
    pub fn queue(&self, value: u32) -> Result<(), Errno> {
        /// The layout of `siginfo_t` for `SI_QUEUE`.
        #[repr(C)]
        struct Info {
            signal: libc::c_int,
            errno: libc::c_int,
            code: libc::c_int,
            _pad: libc::c_int,
            pid: libc::pid_t,
            uid: libc::uid_t,
            value: u64,
            _rest: [u64; 12],
        }
        const { assert!(size_of::<Info>() == size_of::<libc::siginfo_t>()) };
        let (pid, tid) = (self.receiver.pid, self.receiver.tid);
        let info = Info {
            signal: self.signal,
            errno: 0,
            code: libc::SI_QUEUE,
            _pad: 0,
            pid,
            uid: 0,
            value: u64::from(value),
            _rest: [0; 12],
        };
        // SAFETY: `info` is as large as the siginfo_t that the kernel reads, and lives through the call.
        let sent = unsafe {
            if self.within {
                libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, self.signal, &raw const info)
            } else {
                libc::syscall(libc::SYS_rt_sigqueueinfo, pid, self.signal, &raw const info)
            }
        };
        checked(sent).map(drop)
    }
}

/// Blocks `signal` in the calling thread (pthread_sigmask(3)), and returns which signals were blocked before.
fn block(signal: Signal) -> Result<libc::sigset_t, Failure> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: the first set is initialised, the second is written when the call succeeds.
    let error = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &signal.set(), before.as_mut_ptr()) };
    match error {
        // SAFETY: the call succeeded and so wrote the set.
        0 => Ok(unsafe { before.assume_init() }),
        error => {
            Err(Failure::from_errno("pthread_sigmask", "the wake-up signal", Errno::from_raw_os_error(error)))
        }
    }
}

/// Blocks every wake-up signal in the calling thread, and in the threads that it starts: one that is sent to the process then
/// reaches whoever waits for it.
pub fn block_all() -> Result<(), Failure> {
    [Signal::Standard, Signal::Queued].into_iter().try_for_each(|signal| block(signal).map(drop))
}

/// A thread that sleeps in sigsuspend(2).
#[derive(Debug)]
pub struct SignalSuspender {
    /// The signals that are blocked during the sleep.
    mask: libc::sigset_t,
}

thread_local! {
    /// Whether the wake-up signal has come. It has no destructor, so that a handler may access it.
    static WOKEN: Cell<bool> = const { Cell::new(false) };
}

extern "C" fn wake(signal: libc::c_int) {
    if signal == libc::SIGUSR1 {
        WOKEN.set(true);
    }
}

/// Installs a handler for `signal` that does next to nothing, so that the signal interrupts calls (sigaction(2)
/// without `SA_RESTART`).
pub fn handle(signal: Signal) -> Result<(), Failure> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a zeroed sigaction is valid: it has an empty mask and no flags. The handler sets one thread-local cell,
    // which a handler may do.
    let installed = unsafe {
        (*action.as_mut_ptr()).sa_sigaction = wake as *const () as usize;
        libc::sigaction(signal.number(), action.as_ptr(), std::ptr::null_mut())
    };
    checked(installed).or_fail("sigaction", "the wake-up signal").map(drop)
}

impl SignalSuspender {
    /// Blocks `SIGUSR1` in the calling thread, and installs a handler for it.
    pub fn new() -> Result<Self, Failure> {
        let signal = Signal::Standard;
        let mut mask = block(signal)?;
        handle(signal)?;
        // SAFETY: the set is initialised.
        unsafe { libc::sigdelset(&raw mut mask, signal.number()) };
        Ok(Self { mask })
    }

    /// Sleeps until the signal has come.
    #[inline(always)]
    pub fn sleep(&self) -> Result<(), Errno> {
        loop {
            // SAFETY: the set is initialised. The call always ends with EINTR, after a handler has run.
            match checked(unsafe { libc::sigsuspend(&self.mask) }) {
                Ok(_) | Err(Errno::INTR) if WOKEN.replace(false) => return Ok(()),
                // Another signal.
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// A thread that takes signals with sigwaitinfo(2), without a handler.
#[derive(Debug)]
pub struct SignalWaiter {
    set: libc::sigset_t,
}

impl SignalWaiter {
    /// Blocks `signal` in the calling thread.
    pub fn new(signal: Signal) -> Result<Self, Failure> {
        block(signal)?;
        Ok(Self { set: signal.set() })
    }

    /// Sleeps until the signal has come, and returns the value that was queued with it.
    #[inline(always)]
    pub fn wait(&self) -> Result<u32, Errno> {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: the set is initialised and `info` is valid for writes.
        retry_on_intr(|| checked(unsafe { libc::sigwaitinfo(&self.set, info.as_mut_ptr()) }))?;
        // SAFETY: the call succeeded and wrote the information. It was zeroed before, so that a signal without a
        // value has the value zero.
        Ok(unsafe { info.assume_init().si_value().sival_ptr.addr() as u32 })
    }
}

/// Blocks `signal` in the calling thread and makes a descriptor from which it is read (signalfd(2)).
pub fn descriptor(signal: Signal) -> Result<OwnedFd, Failure> {
    block(signal)?;
    // SAFETY: the set is initialised; -1 asks for a fresh descriptor.
    let fd = checked(unsafe { libc::signalfd(-1, &signal.set(), libc::SFD_CLOEXEC) })
        .or_fail("signalfd", "the wake-up signal")?;
    // SAFETY: the kernel has just made it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_id_survives_its_bytes() {
        let thread = ThreadId { pid: 1234, tid: -5 };
        assert_eq!(ThreadId::from_bytes(thread.to_bytes()), thread);
        assert!(ThreadId::current().is_of_this_process());
    }

    #[test]
    fn queued_signals_arrive_each_with_its_value() {
        let waiter = SignalWaiter::new(Signal::Queued).unwrap();
        let sender = SignalSender::new(ThreadId::current(), Signal::Queued);
        for value in [7, u32::MAX, 0] {
            sender.queue(value).unwrap();
        }
        assert_eq!([(); 3].map(|()| waiter.wait().unwrap()), [7, u32::MAX, 0]);
    }

    #[test]
    fn a_signal_that_came_before_the_sleep_ends_it() {
        let suspender = SignalSuspender::new().unwrap();
        SignalSender::new(ThreadId::current(), Signal::Standard).kill().unwrap();
        suspender.sleep().unwrap();
    }
}
