//! The machine types that there are binaries for, and how one is built. It packs nothing.

use super::files::said;
use crate::steps::{cargo, step, target};
use std::path::PathBuf;
use std::process::Command;

/// A machine type for which there is a static binary.
pub struct Platform {
    /// Rust's name of it.
    pub triple: &'static str,
    /// Debian's name of it, and an image's.
    pub debian: &'static str,
    /// The C compiler, for one of the codecs, and the package that it comes with.
    compiler: (&'static str, &'static str),
    /// The program that runs its binaries on another machine type, and its package.
    pub emulator: (&'static str, &'static str),
}

pub const PLATFORMS: [Platform; 2] = [
    Platform {
        triple: "x86_64-unknown-linux-musl",
        debian: "amd64",
        compiler: ("musl-gcc", "musl-tools"),
        emulator: ("qemu-x86_64", "qemu-user"),
    },
    Platform {
        triple: "aarch64-unknown-linux-musl",
        debian: "arm64",
        compiler: ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
        emulator: ("qemu-aarch64", "qemu-user"),
    },
];

impl Platform {
    pub fn is_native(&self) -> bool {
        self.triple.starts_with(std::env::consts::ARCH)
    }

    /// What this machine lacks to build for it, and what to install. The standard library is fetched, if that can be done.
    pub fn lack(&self) -> Option<String> {
        if said(Command::new("rustup").args(["target", "add", self.triple])).is_none() {
            return Some(format!("its standard library; run `rustup target add {}`", self.triple));
        }
        let (compiler, package) = self.compiler;
        said(Command::new(compiler).arg("--version"))
            .is_none()
            .then(|| format!("{compiler}; install {package}"))
    }

    /// A cargo command whose target is this platform.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = cargo(arguments);
        let variable = self.triple.replace('-', "_");
        command.args(["--target", self.triple]).env(format!("CC_{variable}"), self.compiler.0);
        // Headers of the GNU C library would ask for functions that musl has not.
        command.env(format!("CFLAGS_{variable}"), "-U_FORTIFY_SOURCE");
        if !self.is_native() {
            let variable = variable.to_uppercase();
            // The linker that comes with Rust; the libraries that it needs come with the target.
            command.env(format!("CARGO_TARGET_{variable}_LINKER"), "rust-lld");
            command.env(format!("CARGO_TARGET_{variable}_RUNNER"), self.emulator.0);
        }
        command
    }

    /// Its binary, built with `profile`.
    pub fn binary(&self, profile: &str) -> Result<PathBuf, String> {
        let mut build = self.cargo(&["build", "--package", "ipcmark", "--locked", "--profile", profile]);
        step(&format!("a static binary for {}", self.debian), &mut build)?;
        let directory = if profile == "dev" { "debug" } else { profile };
        Ok(target(&format!("{}/{directory}/ipcmark", self.triple)))
    }
}

/// The platform of this machine, which can be built for.
pub fn native() -> Result<&'static Platform, String> {
    let native = PLATFORMS.iter().find(|platform| platform.is_native());
    let native = native.ok_or_else(|| format!("nothing is made for {}", std::env::consts::ARCH))?;
    match native.lack() {
        None => Ok(native),
        Some(lack) => Err(format!("{} is not built: this machine lacks {lack}", native.triple)),
    }
}
