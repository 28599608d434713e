//! How an endpoint of a ring waits for its peer: the two ways that need nothing but the ring, and the trait for
//! others.

use crate::Errno;

/// How an endpoint waits for its peer.
///
/// An endpoint has two flags in shared memory which say that it sleeps or is about to: one as a consumer and one as a
/// producer. It sleeps on the flag itself, unless its [`sleep`](Self::sleep) and [`wake`](Self::wake) use something
/// else. In that case it has one object of its own to sleep on, and its peer wakes it there, whichever flag is set.
pub trait WaitStrategy {
    /// Whether the endpoint sleeps in the kernel, so that the peer must check whether to wake it.
    const SLEEPS: bool;

    /// How often the endpoint polls before it prepares to sleep.
    #[inline(always)]
    fn polls(&self) -> u32 {
        0
    }

    /// Sleeps until the peer wakes this endpoint. `on_flag` sleeps on the flag in shared memory.
    ///
    /// It may return early, because its caller polls again. A wake-up that comes before the sleep must end it: an
    /// object other than the flag must keep the wake-up until somebody sleeps. An error says that the peer will never
    /// wake this endpoint.
    #[inline(always)]
    fn sleep(&self, on_flag: impl FnOnce()) -> Result<(), Errno> {
        on_flag();
        Ok(())
    }

    /// Wakes the peer, which sleeps, is about to, or has just stopped. `on_flag` wakes it on the flag.
    #[inline(always)]
    fn wake(&self, on_flag: impl FnOnce()) {
        on_flag();
    }
}

/// Polls and never enters the kernel. Both endpoints must spin.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpinWait;

impl WaitStrategy for SpinWait {
    const SLEEPS: bool = false;
}

/// Polls once, then sleeps on a futex until the peer wakes it.
#[derive(Debug, Clone, Copy, Default)]
pub struct FutexWait;

impl WaitStrategy for FutexWait {
    const SLEEPS: bool = true;
}
