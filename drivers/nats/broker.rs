//! The nats-server of a trial: that which was built beside this program, or else the host's.

use crate::endpoint::{Orders, Result};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use serde::Deserialize;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A nats-server, which ends with this value.
pub struct Broker(Child);

impl Drop for Broker {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a nats-server writes of where it listens.
#[derive(Deserialize)]
struct Ports {
    nats: Vec<String>,
}

/// What is started: what was built here, or what PATH leads to, or else Debian's, which lies where an ordinary user's
/// PATH does not lead.
fn program() -> PathBuf {
    let beside = std::env::current_exe().ok().map(|this| this.with_file_name("nats-server"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|directory| directory.join("nats-server"));
    let mut all = beside.into_iter().chain(in_path);
    all.find(|path| path.is_file()).unwrap_or_else(|| "/usr/sbin/nats-server".into())
}

/// What it says of its version; nothing where there is none.
pub fn version() -> String {
    let output = Command::new(program()).arg("--version").stdin(Stdio::null()).output();
    let text =
        output.map(|output| String::from_utf8_lossy(&output.stdout).replace(": v", " ")).unwrap_or_default();
    text.trim().to_owned()
}

/// Starts one on a free port of this host that nobody else reaches, and returns its address.
pub async fn start(orders: &Orders) -> Result<(Broker, String)> {
    let directory = orders.path("nats");
    std::fs::create_dir(&directory)?;
    let mut command = Command::new(program());
    command.args(["--addr", "127.0.0.1", "--port", "-1", "--ports_file_dir"]).arg(&directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let this = rustix::process::getpid();
    let die_with_this = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // Whoever died before that sends no signal.
        if getppid() == Some(this) { Ok(()) } else { Err(std::io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: between fork and exec it makes two system calls, and nothing else.
    unsafe { command.pre_exec(die_with_this) };
    let mut broker = Broker(command.spawn()?);
    let address = loop {
        if let Some(address) = address_in(&directory, broker.0.id()) {
            break address;
        }
        if let Some(status) = broker.0.try_wait()? {
            return Err(format!("nats-server ended ({status})").into());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    std::fs::remove_dir_all(&directory)?;
    Ok((broker, address))
}

/// The address that the process `id` wrote there, if it has written all of it.
fn address_in(directory: &Path, id: u32) -> Option<String> {
    let text = std::fs::read(directory.join(format!("nats-server_{id}.ports"))).ok()?;
    let ports: Ports = serde_json::from_slice(&text).ok()?;
    ports.nats.into_iter().next()
}
