//! `cargo xtask docs` and `cargo xtask book`: documents that are generated, and the site of all.

pub mod book;
#[cfg(feature = "crates")]
pub mod generated;
