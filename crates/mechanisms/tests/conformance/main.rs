//! The conformance suite: one set of checks for every mechanism, floor and operation, and every way of waiting.
//!
//! It checks the contract of `Mechanism`, not the inner workings of any one. Speed is no part of it.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(clippy::disallowed_macros, reason = "a test says what it skips")]

#[macro_use]
mod common;
mod cards;
mod interruptions;
mod leaks;
mod messages;
mod peers;
mod semantics;
#[path = "../../../../xtask/src/test_notes.rs"]
mod test_notes;
