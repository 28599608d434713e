//! System V message queues, semaphores and shared memory (sysvipc(7)). They outlive their makers: see
//! [`crate::name`].

mod key;
mod memory;
mod message_queue;
pub(crate) mod segment;
mod semaphores;

pub use key::{SysvKey, SysvKind, probe};
pub(crate) use memory::remove_memory;
pub use memory::{create_memory, open_memory};
pub use message_queue::SysvMessageQueue;
pub(crate) use message_queue::remove_queue;
pub use semaphores::SysvSemaphores;
pub(crate) use semaphores::remove_semaphores;
