//! The programs that some tests need beside the toolchain. It installs what can be installed, and tests nothing.

#[path = "../../crates/report/tests/pages/viewer.rs"]
mod viewer;

use crate::steps::root;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A program that is needed: whether it is here, and its package in Debian and its kin.
type Needed = (fn() -> bool, &'static str);

/// What tests need.
pub const OF_TESTS: [Needed; 22] = [
    (|| any_runs(&["strace"]), "strace"),
    (|| any_runs(&["perf"]), "linux-perf"),
    (|| any_runs(&["chromium", "chromium-browser", "google-chrome"]), "chromium"),
    (|| viewer::directory().is_some(), viewer::PACKAGE),
    (
        || ["unshare", "setpriv", "prlimit", "taskset"].iter().all(|program| any_runs(&[program])),
        "util-linux",
    ),
    (|| any_runs(&["dbus-daemon"]), "dbus-daemon"),
    (|| any_runs(&["javac"]), "default-jdk-headless"),
    (|| any_runs(&["node"]), "nodejs"),
    // What the codecs of drivers in C and C++ need.
    (|| Path::new("/usr/include/cjson/cJSON.h").exists(), "libcjson-dev"),
    (|| Path::new("/usr/include/msgpack.h").exists(), "libmsgpack-dev"),
    (|| Path::new("/usr/include/nlohmann/json.hpp").exists(), "nlohmann-json3-dev"),
    (|| Path::new("/usr/include/openssl/evp.h").exists(), "libssl-dev"),
    (|| runs_with("go", "version"), "golang-go"),
    (|| any_runs(&["script"]), "bsdutils"),
    (|| is_here_or_unwanted("sshd"), "openssh-server"),
    (|| is_here_or_unwanted("munged"), "munge"),
    (|| is_here_or_unwanted("slurmctld"), "slurmctld"),
    (|| is_here_or_unwanted("slurmd"), "slurmd"),
    (|| is_here_or_unwanted("sinfo"), "slurm-client"),
    (|| runs_with("busybox", "true"), "busybox"),
    (|| runs_with("iptables", "-V"), "iptables"),
    (|| runs_with("ip", "-V") && runs_with("tc", "-V"), "iproute2"),
];
/// What a release needs.
pub const OF_A_RELEASE: [Needed; 9] = [
    (|| any_runs(&["lintian"]), "lintian"),
    (|| any_runs(&["musl-gcc"]), "musl-tools"),
    (|| any_runs(&["aarch64-linux-gnu-gcc"]), "gcc-aarch64-linux-gnu"),
    (|| any_runs(&["qemu-aarch64"]), "qemu-user"),
    (|| is_here_or_unwanted("redis-server"), "redis-server"),
    (|| is_here_or_unwanted("nats-server"), "nats-server"),
    (|| Path::new("/usr/include/boost").exists(), "libboost-dev"),
    (|| any_runs(&["mpicxx"]), "libopenmpi-dev"),
    (|| any_runs(&["mvn"]), "maven"),
];

/// Whether `program` is here, or is a service's, which is installed where `CI=true` alone: packages of services start them.
fn is_here_or_unwanted(program: &str) -> bool {
    let is_here =
        ["/usr/bin", "/usr/sbin"].iter().any(|directory| Path::new(directory).join(program).exists());
    is_here || std::env::var_os("CI").is_none_or(|ci| ci != "true")
}

/// Packages that are being installed, while cargo compiles.
pub struct Installing {
    needed: &'static [Needed],
    installer: Option<Child>,
}

impl Installing {
    /// Starts to install what is missing of `needed`, where that can be done. Tests that miss something say so themselves.
    pub fn start(needed: &'static [Needed]) -> Self {
        let missing = missing(needed);
        if missing.is_empty() || !is_root() || !any_runs(&["apt-get"]) {
            return Self { needed, installer: None };
        }
        let names = missing.join(", ");
        let installer = match install(&missing) {
            Ok(child) => {
                println!("== installing {names} meanwhile; target/packages.log has what apt-get says");
                Some(child)
            }
            Err(error) => {
                println!("not installed: {names}: {error}");
                None
            }
        };
        Self { needed, installer }
    }

    /// Waits until all is installed, and says what is still missing.
    pub fn finish(self) {
        let Some(mut child) = self.installer else { return };
        println!("== waiting for packages");
        // Each package succeeds or fails by itself: what counts is what is here afterwards.
        let _ = child.wait();
        let missing = missing(self.needed);
        if !missing.is_empty() {
            println!("not installed: {}; see target/packages.log", missing.join(", "));
        }
    }
}

/// The packages of those of `needed` that are not here.
fn missing(needed: &[Needed]) -> Vec<&'static str> {
    needed.iter().filter(|(is_here, _)| !is_here()).map(|(_, package)| *package).collect()
}

/// Starts to install `packages`, one by one: Debian's kin lack some of them. Without a network the tests run all the same.
fn install(packages: &[&str]) -> std::io::Result<Child> {
    std::fs::create_dir_all(root().join("target"))?;
    let log = File::create(root().join("target/packages.log"))?;
    let script = "apt-get update -q; for package; do apt-get install -qy $package; done";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).args(packages).env("DEBIAN_FRONTEND", "noninteractive");
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()
}

/// Whether this process may install packages.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn any_runs(names: &[&str]) -> bool {
    names.iter().any(|name| runs(name))
}

fn runs(program: &str) -> bool {
    runs_with(program, "--version")
}

fn runs_with(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
