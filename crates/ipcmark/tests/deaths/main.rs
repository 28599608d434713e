//! The tests in which processes die. They are a program of their own because they count what is left on the whole host:
//! cargo runs one program of tests after the other, so that nothing else makes kernel objects meanwhile.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

mod at_calls;
mod at_random;
#[path = "../all/common.rs"]
mod common;

use std::sync::Mutex;

/// One test at a time: each counts on its share of two cores to get anywhere, and counts the kernel's objects.
static ALONE: Mutex<()> = Mutex::new(());
