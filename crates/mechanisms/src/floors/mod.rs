//! The floors: the least that this machine allows for a hand-over between two endpoints. One file each.

pub(crate) mod cache_line;
pub(crate) mod context_switch;
pub(crate) mod remote_wake;
pub(crate) mod shared_copy;
