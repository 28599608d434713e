//! `cargo xtask bench others`: independent programs that time the same work, over ipcmark, as ratios measured interleaved.
//!
//! Nothing else needs these programs; the list names those that are not installed. docs/lab/method.md says what each measures,
//! and why its result differs where it does.

use super::setup::{Bench, shown};
use analysis::stats::{median, median_interval};
use model::units::format_ns;
use model::{Case, Placement, Workload};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A program, and the case of ipcmark that does the same work.
struct Other {
    /// The program, as the printed list calls it.
    name: &'static str,
    /// The case: mechanism, workload, size, placement.
    case: (&'static str, Workload, u64, Placement),
    /// Runs it on the CPUs of the case; nanoseconds per iteration.
    run: fn(&Case) -> Result<f64, String>,
}

const SAME: Placement = Placement::SameCore;
const TWO: Placement = Placement::SameLlc;
const OTHERS: [Other; 9] = [
    Other { name: "perf bench sched pipe", case: ("pipe", Workload::Latency, 4, SAME), run: perf_pipe },
    Other { name: "hackbench -p", case: ("pipe", Workload::Throughput, 100, SAME), run: hackbench_pipe },
    Other {
        name: "hackbench",
        case: ("unix-stream", Workload::Throughput, 100, SAME),
        run: hackbench_socket,
    },
    Other { name: "stress-ng --pipe", case: ("pipe", Workload::Throughput, 512, SAME), run: stress_ng_pipe },
    Other { name: "sockperf ping-pong", case: ("udp", Workload::Latency, 14, SAME), run: sockperf_udp },
    Other { name: "sockperf ping-pong", case: ("udp", Workload::Latency, 14, TWO), run: sockperf_udp },
    Other { name: "sockperf ping-pong --tcp", case: ("tcp", Workload::Latency, 14, SAME), run: sockperf_tcp },
    Other { name: "iperf3 -l 64K -N", case: ("tcp", Workload::Throughput, 65_536, SAME), run: iperf3 },
    Other { name: "iperf3 -l 64K -N", case: ("tcp", Workload::Throughput, 65_536, TWO), run: iperf3 },
];

/// Rounds of one ratio: each program twice a round, in ABBA order.
const ROUNDS: usize = 8;
/// The same between two namespaces, where a message wakes another CPU and times vary by much.
pub(super) const REMOTE_ROUNDS: usize = 24;
/// How long one trial of ipcmark measures here: about as long as the others.
const SLICE: Duration = Duration::from_millis(100);

/// Prints the ratios of the programs whose name begins with `program`.
pub fn run(bench: &Bench, program: &str) -> Result<(), String> {
    println!("an independent program over ipcmark, in ABBA order; time per iteration");
    println!("{:<25} {:<38} {:>9} {:>9}  ratio (95% interval)", "program", "case", "program", "ipcmark");
    for other in OTHERS.into_iter().filter(|other| other.name.starts_with(program)) {
        let (spec, workload, size, placement) = other.case;
        match bench.case(spec, workload, size, placement).and_then(|case| beside(bench, &other, &case)) {
            Ok(line) => println!("{line}"),
            Err(reason) => println!("{:<25} {reason}", other.name),
        }
    }
    Ok(())
}

fn beside(bench: &Bench, other: &Other, case: &Case) -> Result<String, String> {
    let ours = |number| bench.iteration_ns(case, SLICE, number);
    in_abba_order(other.name, case, ROUNDS, || (other.run)(case), ours)
}

/// The line of the program `name`: what `theirs` takes over what `ours` takes in the trial of a number.
pub(super) fn in_abba_order(
    name: &str,
    case: &Case,
    rounds: usize,
    their_ns: impl Fn() -> Result<f64, String>,
    our_ns: impl Fn(u64) -> Result<f64, String>,
) -> Result<String, String> {
    let (mut logs, mut theirs, mut ours) = (Vec::new(), Vec::new(), Vec::new());
    let mut number = 0;
    // The first of each warms up.
    their_ns()?;
    our_ns(number)?;
    for round in 0..rounds {
        let order = if round % 2 == 0 { [false, true, true, false] } else { [true, false, false, true] };
        let mut log = 0.0;
        for is_other in order {
            number += 1;
            let ns = if is_other { their_ns()? } else { our_ns(number)? };
            log += if is_other { ns.ln() / 2.0 } else { -ns.ln() / 2.0 };
            if is_other {
                theirs.push(ns);
            } else {
                ours.push(ns);
            };
        }
        logs.push(log);
    }
    let time = |values: &[f64]| format_ns(median(values).unwrap_or(f64::NAN));
    let ratio = median_interval(&logs).map(|estimate| estimate.map(f64::exp));
    Ok(format!("{name:<25} {:<38} {:>9} {:>9}  {}", case.key(), time(&theirs), time(&ours), shown(ratio)))
}

fn perf_pipe(case: &Case) -> Result<f64, String> {
    let said = said_by(client(case, "perf", &["bench", "sched", "pipe", "--loop", "100000"])?)?;
    number_before(&said, "usecs/op").map(|us| us * 1e3)
}

fn hackbench_pipe(case: &Case) -> Result<f64, String> {
    hackbench(case, &["--pipe"])
}

fn hackbench_socket(case: &Case) -> Result<f64, String> {
    hackbench(case, &[])
}

/// One sender and one receiver, the smallest group of hackbench.
fn hackbench(case: &Case, further: &[&str]) -> Result<f64, String> {
    const LOOPS: f64 = 200_000.0;
    let arguments = ["--groups", "1", "--fds", "1", "--loops", "200000", "--datasize", "100"];
    let said = said_by(client(case, "hackbench", &[&arguments, further].concat())?)?;
    number_after(&said, "Time:").map(|s| s * 1e9 / LOOPS)
}

fn stress_ng_pipe(case: &Case) -> Result<f64, String> {
    const OPS: &str = "500000";
    let arguments = ["--pipe", "1", "--pipe-data-size", "512", "--pipe-ops", OPS, "--metrics-brief"];
    let said = said_by(client(case, "stress-ng", &arguments)?)?;
    // The line of metrics: name, operations, seconds of real time, …
    let line = said.lines().find(|line| line.contains("] pipe ") && !line.contains("MB per sec"));
    let words: Vec<f64> =
        line.unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match words.as_slice() {
        [operations, seconds, ..] if *operations > 0.0 => Ok(seconds * 1e9 / operations),
        _ => Err(format!("stress-ng said nothing that is known: {}", said.trim())),
    }
}

fn sockperf_udp(case: &Case) -> Result<f64, String> {
    sockperf(case, &[])
}

fn sockperf_tcp(case: &Case) -> Result<f64, String> {
    sockperf(case, &["--tcp"])
}

/// What sockperf calls latency is half of a round trip.
fn sockperf(case: &Case, further: &[&str]) -> Result<f64, String> {
    let port = free_port()?;
    let at = ["-i", "127.0.0.1", "-p", &port];
    let _server = Server::start(server(case, "sockperf", &[&["server"], &at[..], further].concat())?)?;
    let asked = ["--msg-size", "14", "-t", "1"];
    let said = said_by(client(case, "sockperf", &[&["ping-pong"], &at[..], &asked, further].concat())?)?;
    number_after(&said, "avg-lat=").or_else(|_| number_after(&said, "avg-latency=")).map(|us| 2.0 * us * 1e3)
}

fn iperf3(case: &Case) -> Result<f64, String> {
    let port = free_port()?;
    let _server = Server::start(server(case, "iperf3", &["--server", "--one-off", "--port", &port])?)?;
    let at = ["--client", "127.0.0.1", "--port", &port, "--time", "1"];
    iperf3_message_ns(&said_by(client(case, "iperf3", &[&at[..], &IPERF3_STREAM].concat())?)?)
}

/// How iperf3 sends what `tcp` sends in `throughput`: messages of 64 KiB, with TCP_NODELAY.
pub(super) const IPERF3_STREAM: [&str; 4] = ["--length", "65536", "--no-delay", "--json"];

/// The nanoseconds that one of these messages took, by what iperf3 `said`.
pub(super) fn iperf3_message_ns(said: &str) -> Result<f64, String> {
    let value: serde_json::Value = serde_json::from_str(said).map_err(|error| format!("iperf3: {error}"))?;
    let rate = value["end"]["sum_received"]["bits_per_second"].as_f64();
    let bits_per_s = rate.ok_or_else(|| format!("iperf3 said no rate: {}", value["error"]))?;
    Ok(65_536.0 * 8.0 / bits_per_s * 1e9)
}

/// `program` on the CPU of the client.
fn client(case: &Case, program: &str, arguments: &[&str]) -> Result<Command, String> {
    on(case.cpus.map(|pair| pair.client), program, arguments)
}

/// `program` on the CPU of the server.
fn server(case: &Case, program: &str, arguments: &[&str]) -> Result<Command, String> {
    on(case.cpus.map(|pair| pair.server), program, arguments)
}

fn on(cpu: Option<u32>, program: &str, arguments: &[&str]) -> Result<Command, String> {
    let cpu = cpu.ok_or("the case has no CPUs")?.to_string();
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|directory| directory.join(program).is_file()));
    if !found {
        return Err(format!("is not installed ({program}): not measured"));
    }
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu, program]).args(arguments).stdin(Stdio::null());
    Ok(command)
}

pub(super) fn said_by(mut command: Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    if output.status.success() {
        Ok(said)
    } else {
        Err(format!("{command:?}: {}: {}", output.status, said.trim()))
    }
}

/// A server that is ended when this is dropped.
pub(super) struct Server(Child);

impl Server {
    pub(super) fn start(mut command: Command) -> Result<Self, String> {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let server = Self(child.map_err(|error| format!("{command:?}: {error}"))?);
        // No output says that it listens.
        std::thread::sleep(Duration::from_millis(300));
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> Result<String, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    Ok(listener.local_addr().map_err(|error| error.to_string())?.port().to_string())
}

/// The number in `said` in front of `word`.
fn number_before(said: &str, word: &str) -> Result<f64, String> {
    let words: Vec<&str> = said.split_whitespace().collect();
    let number = words.windows(2).find(|pair| pair[1] == word).and_then(|pair| pair[0].parse().ok());
    number.ok_or_else(|| format!("no number before '{word}' in: {}", said.trim()))
}

/// The number in `said` behind `word`.
pub(super) fn number_after(said: &str, word: &str) -> Result<f64, String> {
    let rest = said.split_once(word).map(|(_, rest)| rest.trim_start());
    let digits =
        rest.map(|rest| rest.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default());
    let number = digits.and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| format!("no number after '{word}' in: {}", said.trim()))
}
