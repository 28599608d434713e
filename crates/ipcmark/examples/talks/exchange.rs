//! What the program and the tests that record it both know: how a role is named, and what is said.
#![allow(dead_code, reason = "the program and its tests each use a part of it")]

/// The environment variables that name the role, and the peer.
pub(crate) const ROLE: &str = "IPCMARK_TEST_ROLE";
pub(crate) const PEER: &str = "IPCMARK_TEST_PEER";
/// How many requests are made, how long they are, and their answers.
pub(crate) const REQUESTS: u64 = 23;
pub(crate) const REQUEST_BYTES: usize = 64;
pub(crate) const REPLY_BYTES: usize = 128;
/// How many requests who works makes.
pub(crate) const WORKED_REQUESTS: u64 = 400;
/// What is set late, of a pipe and of a socket.
pub(crate) const CAPACITY_BYTES: usize = 8192;
pub(crate) const BUFFER_BYTES: usize = 50_000;
/// What says that who makes ends and locks goes on until it is told to end: there is a file of this name beside what it writes.
pub(crate) const END: &str = "end";
