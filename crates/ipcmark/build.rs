//! How the program is linked. It makes no code.

use std::env::var;

/// A program that may lie at any address has half a megabyte of addresses to correct whenever it starts, in memory of its own:
/// for each of some two hundred endpoints of a run.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| var(name).is_ok_and(|is| is == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
