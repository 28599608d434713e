//! The ring's own sources a second time, with loom's atomic types in place of the standard library's: every interleaving of
//! the real protocol is checked. Nothing else is here.
#![allow(clippy::duplicate_mod, reason = "the sources are to be the same")]
#![allow(dead_code, reason = "what only endpoints in mapped memory use")]

mod atomic;
#[path = "../consumer.rs"]
mod consumer;
#[path = "../layout.rs"]
mod layout;
#[path = "../memory.rs"]
mod memory;
#[path = "../producer.rs"]
mod producer;
#[path = "../protocol.rs"]
mod protocol;
mod tests;
#[path = "../wait.rs"]
mod wait;
