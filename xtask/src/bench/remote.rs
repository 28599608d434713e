//! `cargo xtask bench remote`: sockperf and iperf3 over ipcmark between two network namespaces, as ratios measured in ABBA order.
//!
//! Both go by `ip netns exec` over the same pair of devices. It needs root.

use super::others::{
    IPERF3_STREAM, REMOTE_ROUNDS, Server, in_abba_order, iperf3_message_ns, number_after, said_by,
};
use super::setup::{Bench, filling};
use crate::test::namespaces::Namespaces;
use harness::coordinator::remote::{Remote, RemoteHost};
use harness::coordinator::schedule::Trials;
use harness::coordinator::trial_error::TrialError;
use harness::coordinator::trials::EndpointTrials;
use harness::coordinator::via::Via;
use harness::protocol::orders::{Singly, SliceOrders};
use model::{Case, Invalid, Placement, Workload};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A port for the servers of others.
const PORT: &str = "11111";
/// How long one trial of ipcmark measures: about as long as the others.
const SLICE: Duration = Duration::from_millis(300);

/// A program, and the case of ipcmark that does the same work.
struct Other {
    name: &'static str,
    case: (&'static str, Workload, u64),
    /// Nanoseconds per iteration, on the CPUs of the case.
    run: fn(&Namespaces, &Case) -> Result<f64, String>,
}

const OTHERS: [Other; 3] = [
    Other {
        name: "sockperf ping-pong --tcp",
        case: ("tcp", Workload::Latency, 14),
        run: |hosts, case| sockperf(hosts, case, &["--tcp"]),
    },
    Other {
        name: "sockperf ping-pong",
        case: ("udp", Workload::Latency, 14),
        run: |hosts, case| sockperf(hosts, case, &[]),
    },
    Other { name: "iperf3 -l 64K -N", case: ("tcp", Workload::Throughput, 65_536), run: iperf3 },
];

/// Prints the ratios of the programs whose name begins with `program`.
pub fn run(bench: &Bench, program: &str) -> Result<(), String> {
    let hosts = Namespaces::new("ipcmark-bench", "10.215.0")?;
    let remote = remote(&hosts)?;
    let trials = EndpointTrials { remote: Some(&remote), ..bench.trials() };
    println!(
        "an independent program over ipcmark, between two namespaces, in ABBA order; time per iteration"
    );
    println!("{:<25} {:<38} {:>9} {:>9}  ratio (95% interval)", "program", "case", "program", "ipcmark");
    let cpus = bench.cpus(Placement::SameLlc)?;
    for other in OTHERS.iter().filter(|other| other.name.starts_with(program)) {
        let (spec, workload, size) = other.case;
        let case = bench.case(spec, workload, size, Placement::SameLlc)?;
        let case = Case { placement: Placement::Remote, cpus: Some(cpus), ..case };
        let ours = |number| iteration_ns(&trials, &case, number).map_err(|error| format!("{case}: {error}"));
        match in_abba_order(other.name, &case, REMOTE_ROUNDS, || (other.run)(&hosts, &case), ours) {
            Ok(line) => println!("{line}"),
            Err(reason) => println!("{:<25} {reason}", other.name),
        }
    }
    Ok(())
}

fn iteration_ns(trials: &EndpointTrials<'_>, case: &Case, number: u64) -> Result<f64, TrialError> {
    let mut trial = trials.start(case, number, None)?;
    let report = trial.slice(SliceOrders { size: filling(SLICE, None), singly: Singly::Omitted })?;
    trial.end()?;
    Ok(report.sample.iteration_ns())
}

/// What sockperf calls latency is half of a round trip.
fn sockperf(hosts: &Namespaces, case: &Case, further: &[&str]) -> Result<f64, String> {
    let at = ["-i", &hosts.addresses[1], "-p", PORT];
    let _server =
        Server::start(inside(hosts, case, 1, &[&["sockperf", "server"], &at[..], further].concat())?)?;
    let asked = [&["sockperf", "ping-pong"], &at[..], &["--msg-size", "14", "-t", "1"], further].concat();
    let said = said_by(inside(hosts, case, 0, &asked)?)?;
    number_after(&said, "avg-lat=").or_else(|_| number_after(&said, "avg-latency=")).map(|us| 2.0 * us * 1e3)
}

fn iperf3(hosts: &Namespaces, case: &Case) -> Result<f64, String> {
    let server = ["iperf3", "--server", "--one-off", "--port", PORT];
    let _server = Server::start(inside(hosts, case, 1, &server)?)?;
    // Its first second, in which the connection opens its windows, is not counted: ipcmark warms up, too.
    let at = ["iperf3", "--client", &hosts.addresses[1], "--port", PORT, "--time", "1", "--omit", "1"];
    iperf3_message_ns(&said_by(inside(hosts, case, 0, &[&at[..], &IPERF3_STREAM].concat())?)?)
}

/// `words` on the host of `side`, on the CPU of that side of `case`.
fn inside(hosts: &Namespaces, case: &Case, side: usize, words: &[&str]) -> Result<Command, String> {
    let cpus = case.cpus.ok_or("the case has no CPUs")?;
    let cpu = [cpus.client, cpus.server][side].to_string();
    let [program, arguments @ ..] = hosts.inside(side);
    let mut command = Command::new(program);
    command.args(arguments).args(["taskset", "-c", &cpu]).args(words).stdin(Stdio::null());
    Ok(command)
}

/// How long a side may take to answer for the first time.
const REACHED_WITHIN: Duration = Duration::from_secs(60);

/// Endpoints of this very program on both hosts.
fn remote(hosts: &Namespaces) -> Result<Remote, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let programs = [own.to_string_lossy().into_owned()];
    let reach = |side: usize| {
        let words = hosts.inside(side).map(str::to_owned).to_vec();
        let via = Via::from_words(words).map_err(|invalid| invalid.to_string())?;
        let host = RemoteHost::reach(&via, &programs, REACHED_WITHIN, None, &AtomicBool::new(false));
        host.map_err(|invalid| invalid.to_string())
    };
    let address = hosts.addresses[1].parse();
    let mut sides = Remote::new(Some(reach(0)?), Some(reach(1)?)).map_err(|failure| failure.to_string())?;
    sides.server_addresses.ip = Ok(address.map_err(|invalid: Invalid| invalid.to_string())?);
    Ok(sides)
}
