//! What several mechanisms or operations share. No file here is a mechanism or an operation.

pub(crate) mod backing;
pub(crate) mod cards;
pub(crate) mod coded;
pub(crate) mod cold;
pub(crate) mod connect_each;
pub(crate) mod connected;
pub(crate) mod connection;
pub(crate) mod descriptor;
pub(crate) mod fd_message;
pub(crate) mod file_per_message;
pub(crate) mod inet_stream;
pub(crate) mod names;
pub(crate) mod network;
pub(crate) mod pair;
pub(crate) mod pipes;
pub(crate) mod probe;
pub(crate) mod segments;
pub(crate) mod sleeper;
pub(crate) mod socket;
pub(crate) mod token;
pub(crate) mod undo;
pub(crate) mod unix_name;
pub(crate) mod uring;
pub(crate) mod wait;
pub(crate) mod wake;
pub(crate) mod zero_copy;
