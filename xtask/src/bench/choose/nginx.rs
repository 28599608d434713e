//! nginx that passes requests on to another nginx, over TCP on loopback: what a Unix socket between them would give is predicted, and
//! then tried. The load is ab's, of Apache's utilities, over TCP in both cases.
//!
//! It starts both servers in the temporary directory and stops them again.

use super::program::{ALL_CPUS, Program, hold, is_here, number_after, on, record_processes, said, tried};
use crate::bench::ipcmark::Ipcmark;
use model::Scenario;
use model::scenario::Flow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The ports of the front server, for an upstream over TCP and over a Unix socket, and the port of the upstream. The kernel gives
/// none of these to a client (ip_local_port_range).
const OVER_TCP: &str = "24330";
const OVER_UNIX: &str = "24331";
const UPSTREAM: &str = "24332";
/// Where the front server, with the load, and the upstream run when they are held, as taskset takes it.
const FRONT_CPU: &str = "0";
const UPSTREAM_CPU: &str = "1";
/// How many requests a run has, and one that is recorded.
const REQUESTS: &str = "20000";
const RECORDED_REQUESTS: &str = "200000";

/// Prints a line for each number of connections.
pub(super) fn run(ipcmark: &Ipcmark) -> Result<(), String> {
    if !is_here("nginx", "-v") || !is_here("ab", "-V") {
        println!("nginx: nginx or ab is missing; on Debian: apt-get install nginx-light apache2-utils");
        return Ok(());
    }
    let servers = Servers::start()?;
    for held in [false, true] {
        for (pid, cpu) in servers.pids().zip([FRONT_CPU, UPSTREAM_CPU]) {
            hold(pid?, if held { cpu } else { ALL_CPUS })?;
        }
        for connections in [1, 4] {
            tried(ipcmark, &Proxied { servers: &servers, connections, held })?;
        }
    }
    Ok(())
}

/// So many connections to the front server.
struct Proxied<'a> {
    servers: &'a Servers,
    connections: u32,
    /// Whether the front server and the load have a CPU of their own, and the upstream another.
    held: bool,
}

impl Proxied<'_> {
    fn load(&self, requests: &str, is_unix: bool) -> Command {
        let port = if is_unix { OVER_UNIX } else { OVER_TCP };
        let mut command = on(if self.held { FRONT_CPU } else { ALL_CPUS }, "ab");
        command.args(["-q", "-k", "-n", requests, "-c", &self.connections.to_string()]);
        command.arg(format!("http://127.0.0.1:{port}/"));
        command
    }
}

impl Program for Proxied<'_> {
    fn name(&self) -> String {
        let held = if self.held { ", held to a CPU, the upstream to another" } else { "" };
        format!("nginx to nginx, connections {}{held}", self.connections)
    }

    /// The load is of a process that is not recorded.
    fn is_exchanged(&self, scenario: &Scenario, flow: &Flow) -> bool {
        let is_nginx = |process: usize| scenario.processes[process].name.starts_with("nginx");
        flow.mechanism.name == "tcp" && is_nginx(flow.from) && is_nginx(flow.to)
    }

    fn after(&self) -> &str {
        "unix-stream"
    }

    fn record(&self, ipcmark: &Ipcmark, file: &Path) -> Result<(), String> {
        let mut command = self.load(RECORDED_REQUESTS, false);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|error| format!("{command:?}: {error}"))?;
        std::thread::sleep(Duration::from_millis(300));
        // Where the load runs is part of what is predicted.
        let pids: Result<Vec<u32>, String> = self.servers.pids().chain([Ok(child.id())]).collect();
        let recorded = pids.and_then(|pids| record_processes(ipcmark, &pids, file));
        let _ = child.kill();
        let _ = child.wait();
        recorded
    }

    fn rate(&self, is_after: bool) -> Result<f64, String> {
        number_after(&said(&mut self.load(REQUESTS, is_after))?, "Requests per second:")
    }
}

/// Both servers, in a directory of their own.
struct Servers {
    directory: PathBuf,
}

impl Servers {
    fn start() -> Result<Self, String> {
        let servers = Self { directory: std::env::temp_dir().join("ipcmark-bench-nginx") };
        let _ = std::fs::remove_dir_all(&servers.directory);
        std::fs::create_dir_all(&servers.directory).map_err(|error| error.to_string())?;
        let socket = servers.directory.join("upstream");
        let socket = socket.display();
        let answers = format!(
            "server {{ listen 127.0.0.1:{UPSTREAM}; listen unix:{socket}; location / {{ return 200 \"hello, world\\n\"; }} }}"
        );
        let passes = |port: &str, upstream: &str, name: &str| {
            format!(
                "upstream {name} {{ server {upstream}; keepalive 16; keepalive_requests 100000000; }}
                 server {{ listen 127.0.0.1:{port}; location / {{
                     proxy_pass http://{name}; proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }}"
            )
        };
        let front = [
            passes(OVER_TCP, &format!("127.0.0.1:{UPSTREAM}"), "by_tcp"),
            passes(OVER_UNIX, &format!("unix:{socket}"), "by_unix"),
        ];
        servers.start_one("upstream-server", &answers)?;
        servers.start_one("front-server", &front.concat())?;
        Ok(servers)
    }

    /// Starts the server `name`, whose part of the configuration that is not of every server is `http`.
    fn start_one(&self, name: &str, http: &str) -> Result<(), String> {
        let at = self.directory.display();
        let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|of| format!("{of}_temp_path {at}/{name}-{of}; "))
            .concat();
        // As root, workers would be of another user, who may not enter the directory.
        let user = if rustix::process::geteuid().is_root() { "user root; " } else { "" };
        let text = format!(
            "{user}daemon on; worker_processes 1; pid {at}/{name}.pid; error_log {at}/{name}.log;
             events {{ worker_connections 256; }}
             http {{ access_log off; keepalive_requests 100000000; {paths} {http} }}\n"
        );
        let file = self.directory.join(format!("{name}.conf"));
        std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        said(Command::new("nginx").arg("-c").arg(&file).arg("-p").arg(&self.directory)).map(drop)
    }

    /// The first process of each server that was started, which has started its worker.
    fn pids(&self) -> impl Iterator<Item = Result<u32, String>> {
        ["front-server", "upstream-server"].into_iter().map(|name| {
            let path = self.directory.join(name).with_extension("pid");
            let text =
                std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            text.trim().parse().map_err(|_| format!("{} names no process", path.display()))
        })
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for pid in self.pids().flatten() {
            let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
            let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
