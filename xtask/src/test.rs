//! `cargo xtask test`: everything that must hold before a change lands.

use crate::steps::{cargo, root, step};
use crate::{programs, tidy};

/// Runs it all; the first failure ends it.
pub fn all() -> Result<(), String> {
    step("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    println!("== tidy");
    tidy::check()?;
    step("lints", &mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    step(
        "documentation",
        cargo(&["doc", "--workspace", "--no-deps", "--document-private-items"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    programs::install()?;
    step("tests", &mut cargo(&["test", "--workspace"]))?;
    // Under loom every atomic is loom's, so that nothing but the ring's own tests can be built with it.
    step(
        "the ring under every interleaving (loom)",
        cargo(&["test", "--package", "sys", "--release", "--lib", "ring"])
            .env("RUSTFLAGS", "--cfg loom")
            .env("CARGO_TARGET_DIR", root().join("target/loom")),
    )
}

pub fn quick() -> Result<(), String> {
    Ok(())
}
