//! PostgreSQL and pgbench, select-only, over TCP on loopback: what a Unix socket would give is predicted, and then tried.
//!
//! It starts a server of its own in the temporary directory and stops it again.

use super::costs::slowed;
use super::program::{
    ALL_CPUS, Program, hold, in_pairs, is_here, number_after, on, record_processes, said, tried,
};
use crate::bench::ipcmark::Ipcmark;
use model::Scenario;
use model::scenario::Flow;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const PORT: &str = "24329";
/// How long a run of pgbench is, and one that is recorded.
const SECONDS: &str = "2";
const RECORDED_SECONDS: &str = "10";
/// How long a run is of which it is seen how much recording slows it: all of the recording and of what follows it is in it.
const SLOWED_SECONDS: &str = "7";
/// How long it takes until it has connected and prepared.
const CONNECTING: Duration = Duration::from_millis(500);
/// What stands before its transactions a second.
const TPS: &str = "tps = ";
/// Where pgbench and the server run when they are held, as taskset takes it.
const PGBENCH_CPU: &str = "0";
const SERVER_CPU: &str = "1";

/// Prints a line for each number of clients.
pub(super) fn run(ipcmark: &Ipcmark) -> Result<(), String> {
    let Some(server) = Server::start()? else { return Ok(()) };
    for held in [false, true] {
        hold(server.pid()?, if held { SERVER_CPU } else { ALL_CPUS })?;
        for clients in [1, 4] {
            tried(ipcmark, &Pgbench { server: &server, clients, held })?;
        }
    }
    Ok(())
}

/// Prints by how much recording slows the program, for each number of clients.
pub(super) fn slowed_by_recording(ipcmark: &Ipcmark) -> Result<(), String> {
    let Some(server) = Server::start()? else { return Ok(()) };
    println!(
        "\n| program | transactions a second while it is recorded over those while it is not | |\n| --- | --- | --- |"
    );
    for clients in [1, 4] {
        let pgbench = Pgbench { server: &server, clients, held: false };
        let file = ipcmark.file("slowed").with_extension("toml");
        let ratios = in_pairs(|is_recorded| {
            if !is_recorded {
                return number_after(&said(&mut pgbench.command(SLOWED_SECONDS, false))?, TPS);
            }
            let _ = std::fs::remove_file(&file);
            pgbench.recorded(ipcmark, SLOWED_SECONDS, &file)
        })?;
        println!("{}", slowed(&pgbench.name(), &ratios));
    }
    Ok(())
}

/// So many clients of a server.
struct Pgbench<'a> {
    server: &'a Server,
    clients: u32,
    /// Whether it has a CPU of its own, and the server another.
    held: bool,
}

impl Pgbench<'_> {
    /// `pgbench` for so many seconds.
    fn command(&self, seconds: &str, is_unix: bool) -> Command {
        let mut command = self.server.pgbench(is_unix, if self.held { PGBENCH_CPU } else { ALL_CPUS });
        command.args(["-S", "-n", "-c", &self.clients.to_string(), "-j", "1", "-T", seconds, "postgres"]);
        command
    }

    /// Records `pgbench` over TCP, for so many seconds, into `file`; its transactions a second.
    fn recorded(&self, ipcmark: &Ipcmark, seconds: &str, file: &Path) -> Result<f64, String> {
        let mut command = self.command(seconds, false);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|error| format!("{command:?}: {error}"))?;
        // It connects and prepares first.
        std::thread::sleep(CONNECTING);
        let recorded = record_processes(ipcmark, &[child.id(), self.server.pid()?], file);
        let mut said = String::new();
        child
            .stdout
            .take()
            .map_or(Ok(0), |mut out| out.read_to_string(&mut said))
            .map_err(|error| error.to_string())?;
        let _ = child.wait();
        recorded?;
        number_after(&said, TPS)
    }
}

impl Program for Pgbench<'_> {
    fn name(&self) -> String {
        let held = if self.held { ", held to a CPU, the server to another" } else { "" };
        format!("pgbench, clients {}{held}", self.clients)
    }

    fn is_exchanged(&self, _: &Scenario, flow: &Flow) -> bool {
        flow.mechanism.name == "tcp"
    }

    fn after(&self) -> &str {
        "unix-stream"
    }

    fn record(&self, ipcmark: &Ipcmark, file: &Path) -> Result<(), String> {
        self.recorded(ipcmark, RECORDED_SECONDS, file).map(drop)
    }

    fn rate(&self, is_after: bool) -> Result<f64, String> {
        number_after(&said(&mut self.command(SECONDS, is_after))?, TPS)
    }
}

/// A server in a directory of its own.
struct Server {
    directory: PathBuf,
}

impl Server {
    /// Makes a database in a directory of its own and starts a server; `None`, which it says, where the
    /// programs are missing.
    fn start() -> Result<Option<Self>, String> {
        if !["initdb", "pg_ctl", "pgbench"].into_iter().all(|program| is_here(program, "--version")) {
            println!(
                "PostgreSQL: initdb, pg_ctl or pgbench is missing; on Debian: apt-get install postgresql postgresql-contrib, and put \
                 /usr/lib/postgresql/*/bin into PATH"
            );
            return Ok(None);
        }
        // The server refuses to run as root.
        let server = Self { directory: std::env::temp_dir().join("ipcmark-bench-postgresql") };
        let _ = std::fs::remove_dir_all(&server.directory);
        std::fs::create_dir_all(&server.directory).map_err(|error| error.to_string())?;
        let at = server.directory.display();
        if is_root() {
            said(Command::new("chown").arg("postgres").arg(&server.directory))?;
        }
        server.as_user(&format!("initdb --auth trust --username postgres -D {at}/data"))?;
        let options = format!("-p {PORT} -c listen_addresses=127.0.0.1 -c unix_socket_directories={at}");
        server.as_user(&format!("pg_ctl -D {at}/data -w -l {at}/log -o '{options}' start"))?;
        said(server.pgbench(true, ALL_CPUS).args(["-i", "-q", "-s", "1", "postgres"]))?;
        Ok(Some(server))
    }

    /// Runs `command` as the user of the server, with the same programs in reach.
    fn as_user(&self, command: &str) -> Result<String, String> {
        let mut shell = if is_root() { Command::new("su") } else { Command::new("sh") };
        if is_root() {
            shell.args(["--preserve-environment", "postgres"]);
        }
        said(shell.arg("-c").arg(command).current_dir(&self.directory))
    }

    /// The first of its processes, which has started all others.
    fn pid(&self) -> Result<u32, String> {
        let path = self.directory.join("data/postmaster.pid");
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let first = text.lines().next().and_then(|line| line.trim().parse().ok());
        first.ok_or_else(|| format!("{} names no process", path.display()))
    }

    /// `pgbench` on `cpus` with the connection that it shall use.
    fn pgbench(&self, is_unix: bool, cpus: &str) -> Command {
        let host = if is_unix { self.directory.display().to_string() } else { "127.0.0.1".into() };
        let mut command = on(cpus, "pgbench");
        command.args(["-h", &host, "-p", PORT, "-U", "postgres"]);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let at = self.directory.display();
        let _ = self.as_user(&format!("pg_ctl -D {at}/data -m immediate stop"));
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
