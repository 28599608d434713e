//! io_uring(7): queues that this process and the kernel share, and what is done through them. Not an event loop.
//!
//! The kernel may access the memory that an operation names until the operation has completed, however late that is.
//! Two rules keep that sound. An operation that names a caller's memory completes before the call returns, in every
//! case (`Queues::run`). An operation that goes on after the call names memory that the endpoint owns, and that
//! memory outlives the operation.

mod descriptors;
mod message_ring;
mod provided;
mod queues;
mod registered;
mod stream;
#[cfg(all(test, not(miri)))]
mod tests;
mod zero_copy;

pub use descriptors::DescriptorKind;
pub use message_ring::MessageRing;
pub use provided::COUNT as PROVIDED_BUFFERS;
pub use queues::{IDLE_MS, SubmissionMode};
pub use stream::{UringBuffers, UringStream};
pub use zero_copy::{COUNT as POOLED_BUFFERS, UringZeroCopy, ZeroCopySends};
