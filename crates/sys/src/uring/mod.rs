//! io_uring(7): queues that this process and the kernel share, and what is done through them. Not an event loop.
//!
//! The kernel may touch memory that an operation names until the operation has completed, however long that is after
//! it was submitted. Two things keep that sound. What names a caller's memory completes before the call returns, on
//! every way out (`Queues::run`). What goes on after the call names memory that the end of it owns, which outlives it.

mod descriptors;
mod message_ring;
mod provided;
mod queues;
mod registered;
mod stream;
#[cfg(all(test, not(miri), not(loom)))]
mod tests;
mod zero_copy;

pub use descriptors::DescriptorKind;
pub use message_ring::MessageRing;
pub use provided::COUNT as PROVIDED_BUFFERS;
pub use queues::{IDLE_MS, SubmissionMode};
pub use stream::{UringBuffers, UringStream};
pub use zero_copy::{COUNT as POOLED_BUFFERS, UringZeroCopy, ZeroCopySends};
