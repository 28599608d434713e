//! What the coordinator and the endpoints say to each other, as data, and the channel that carries it. Nothing is done here.

pub(crate) mod channel;
pub mod error;
pub(crate) mod frame;
pub mod hello;
pub mod led;
pub(crate) mod message;
pub mod orders;
pub(crate) mod phase;
pub mod report;
pub(crate) mod scenario;
pub(crate) mod silence;
pub mod stream;
