//! PostgreSQL and pgbench, select-only, over TCP on loopback: what a Unix socket would give is predicted, and then tried.
//!
//! It starts a server of its own in the temporary directory and stops it again.

use super::costs::{compared, measure_costs, predicted};
use crate::bench::ipcmark::Ipcmark;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const PORT: &str = "54329";
/// How many pairs of runs, and how long each run is.
const PAIRS: usize = 4;
const SECONDS: u32 = 5;
/// The bytes of a query and of its answer, as the protocol's messages add up (protocol version 3, simple query).
const QUERY_BYTES: u32 = 68;
const ANSWER_BYTES: u32 = 77;

/// Prints a line for each number of clients.
pub(super) fn run(ipcmark: &Ipcmark) -> Result<(), String> {
    let Some(server) = Server::start()? else {
        println!(
            "PostgreSQL: initdb, pg_ctl or pgbench is missing; on Debian: apt-get install postgresql postgresql-contrib"
        );
        return Ok(());
    };
    println!("PostgreSQL, pgbench select-only: tcp on loopback, and unix-stream");
    measure_costs(ipcmark, &["tcp", "unix-stream"], "64,128", 60)?;
    println!("| clients | predicted | measured | |\n| --- | --- | --- | --- |");
    for clients in [1, 4] {
        let found = server.record(ipcmark, clients)?;
        let exchanges: Vec<String> = (0..clients).map(|at| format!("query{at}=unix-stream")).collect();
        let found = predicted(ipcmark, &found, &exchanges, &[])?;
        let mut ratios = Vec::new();
        for pair in 0..PAIRS {
            let order = if pair % 2 == 0 { [true, false] } else { [false, true] };
            let tried = order.map(|is_tcp| server.bench(clients, is_tcp));
            let [first, second] = tried;
            let (first, second) = (first?.per_s, second?.per_s);
            ratios.push(if order[0] { second / first } else { first / second });
        }
        let rate = &found["prediction"]["flows"][0]["per_s"];
        println!("{}", compared(&format!("{clients}: transactions a second"), rate, &ratios));
    }
    Ok(())
}

/// A server in a directory of its own.
struct Server {
    directory: PathBuf,
}

/// What a run of pgbench says.
struct Found {
    per_s: f64,
    latency_ms: f64,
}

impl Server {
    /// Makes a database in a directory of its own and starts a server; `None` where the programs are missing.
    fn start() -> Result<Option<Self>, String> {
        let is_here = |program: &str| {
            let mut command = Command::new(program);
            command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        if !["initdb", "pg_ctl", "pgbench"].into_iter().all(is_here) {
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
        server.pgbench(&["-i", "-q", "-s", "1"], true)?;
        Ok(Some(server))
    }

    /// Runs `command` as the user of the server.
    fn as_user(&self, command: &str) -> Result<String, String> {
        let mut shell = if is_root() { Command::new("su") } else { Command::new("sh") };
        if is_root() {
            shell.arg("postgres");
        }
        said(shell.arg("-c").arg(command).current_dir(&self.directory))
    }

    fn pgbench(&self, arguments: &[&str], is_tcp: bool) -> Result<String, String> {
        let host = if is_tcp { "127.0.0.1".into() } else { self.directory.display().to_string() };
        let connection = ["-h", &host, "-p", PORT, "-U", "postgres"];
        said(Command::new("pgbench").args(connection).args(arguments).arg("postgres"))
    }

    /// Runs pgbench with so many clients.
    fn bench(&self, clients: u32, is_tcp: bool) -> Result<Found, String> {
        let (clients, seconds) = (clients.to_string(), SECONDS.to_string());
        let text = self.pgbench(&["-S", "-n", "-c", &clients, "-j", "1", "-T", &seconds], is_tcp)?;
        let number = |line: &str| {
            let said = text.lines().find_map(|text| text.strip_prefix(line))?;
            said.split_whitespace().next()?.parse::<f64>().ok()
        };
        let found = number("tps = ").zip(number("latency average = "));
        let found = found.map(|(per_s, latency_ms)| Found { per_s, latency_ms });
        found.ok_or_else(|| format!("pgbench says something else: {text}"))
    }

    /// The scenario of so many clients over TCP: one process, which asks as many backends.
    fn record(&self, ipcmark: &Ipcmark, clients: u32) -> Result<PathBuf, String> {
        let Found { per_s, latency_ms } = self.bench(clients, true)?;
        let mut text = format!(
            "name = \"pgbench\"\nsummary = \"select-only, {clients} clients\"\n[[process]]\nname = \"pgbench\"\nroots = \"together\"\n"
        );
        for at in 0..clients {
            text += &format!("[[process]]\nname = \"backend{at}\"\n");
        }
        for at in 0..clients {
            text += &format!(
                "[[flow]]\nname = \"query{at}\"\nfrom = \"pgbench\"\nto = \"backend{at}\"\nmechanism = \"tcp\"\nsize = \"{QUERY_BYTES}\"\n\
                 reply = \"{ANSWER_BYTES}\"\n[flow.recorded]\nmessages = {}\nper_s = {}\nround_trip = \"{}ns\"\nclient_waited = 0.0\n\
                 server_waited = 0.0\npartial_reads = 0.0\n",
                (per_s * f64::from(SECONDS)) as u64,
                per_s / f64::from(clients),
                (latency_ms * 1e6) as u64
            );
        }
        let file = ipcmark.file(&format!("pgbench-{clients}")).with_extension("toml");
        std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(file)
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

/// What `command` prints, or what it complains of.
fn said(command: &mut Command) -> Result<String, String> {
    // A server that goes on keeps no pipe of ours open.
    let log = tempfile::tempfile().map_err(|error| error.to_string())?;
    let copy = |file: &std::fs::File| file.try_clone().map_err(|error| error.to_string());
    let status = command.stdin(Stdio::null()).stdout(copy(&log)?).stderr(copy(&log)?).status();
    let status = status.map_err(|error| format!("{command:?}: {error}"))?;
    let mut text = String::new();
    let mut log = log;
    std::io::Seek::rewind(&mut log).map_err(|error| error.to_string())?;
    std::io::Read::read_to_string(&mut log, &mut text).map_err(|error| error.to_string())?;
    if status.success() { Ok(text) } else { Err(format!("{command:?}: {status}: {}", text.trim())) }
}
