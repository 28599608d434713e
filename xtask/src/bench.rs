//! `cargo xtask bench`: how ipcmark stands against the bare thing, as ratios measured in turn.
//!
//! Nothing here passes or fails: these hosts are shared, and a number is for people to judge.

use crate::steps::{cargo, root, step};
use analysis::compare::{ComparisonVerdict, round_log_ratios};
use analysis::stats::{median, median_interval};
use harness::endpoint::Sizing;
use harness::in_turn::{self, Pair};
use harness::measure::{Calibration, Timer};
use harness::run_directory::RunDirectory;
use harness::trial::Launcher;
use mechanisms::registry::CARDS;
use model::estimate::Estimate;
use model::topology::Topology;
use model::units::format_ns;
use model::{Case, Endpoints, Pace, Peers, Placement, Sample, Size, Spec, Workload};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{read, write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use sys::Errno;
use sys::shared_memory::SharedMemory;

/// The hidden task by which this program becomes an end of a hand-written loop.
pub const BARE: &str = "__bare";
/// Set in the environment of the optimised build of this very program, which measures.
const OPTIMISED: &str = "IPCMARK_BENCH_OPTIMISED";

/// The time that one ratio may take, and how well it is to be known.
const TIME: Duration = Duration::from_secs(15);
const PRECISION: f64 = 0.005;
/// What one trial measures.
const SLICE: Duration = Duration::from_millis(6);

/// Runs the benchmark `name`, in an optimised build of this program; of other programs, those whose name begins with
/// `program`.
pub fn run(name: &str, program: &str) -> Result<(), String> {
    if std::env::var_os(OPTIMISED).is_none() {
        let words = ["run", "--quiet", "--release", "--package", "xtask", "--", "bench", name, program];
        let given = words.len() - usize::from(program.is_empty());
        let mut optimised = cargo(&words[..given]);
        return step(&format!("bench {name}"), optimised.env(OPTIMISED, "1"));
    }
    if name == "page" {
        return crate::page::bench();
    }
    let bench = Bench::new()?;
    match name {
        "bare" => bench.bare(),
        "ring" => bench.ring(),
        "trial" => bench.trial_cost(),
        "same" => same_suite_twice(),
        "others" => crate::others::run(&bench, program),
        "probes" => crate::probes::run(&bench),
        _ => Err("known benchmarks: bare, ring, trial, same, others, probes, page".to_owned()),
    }
}

/// What every benchmark needs of the harness.
pub struct Bench {
    directory: RunDirectory,
    calibration: Calibration,
    topology: Topology,
    interrupted: AtomicBool,
}

/// A loop written by hand, and the case of ipcmark that does the same work.
const LOOPS: [(&str, &str, Workload, u64); 6] = [
    ("pipe", "pipe", Workload::Latency, 1),
    ("unix-stream", "unix-stream", Workload::Latency, 1),
    ("tcp", "tcp", Workload::Latency, 1),
    ("futex", "context-switch", Workload::Latency, 1),
    ("pipe", "pipe", Workload::Throughput, 65_536),
    ("unix-stream", "unix-stream", Workload::Throughput, 65_536),
];

impl Bench {
    pub fn new() -> Result<Self, String> {
        let root = Path::new("/");
        Ok(Self {
            directory: RunDirectory::create().map_err(|failure| failure.to_string())?,
            calibration: Calibration::choose(root),
            topology: harness::host::read(root).topology,
            interrupted: AtomicBool::new(false),
        })
    }

    pub fn launcher(&self) -> Launcher<'_> {
        Launcher {
            clock: self.calibration.record.source,
            directory: &self.directory,
            check: false,
            interrupted: &self.interrupted,
            timeout: Duration::from_secs(5),
        }
    }

    pub fn case(
        &self,
        spec: &str,
        workload: Workload,
        size: u64,
        placement: Placement,
    ) -> Result<Case, String> {
        Ok(Case {
            workload,
            size_bytes: Some(Size(size)),
            placement,
            cpus: self.topology.place(placement)?,
            endpoints: Endpoints::Processes,
            pace: Pace::BackToBack,
            peers: Peers::Pair,
            spec: Spec::parse(spec, CARDS).map_err(|invalid| invalid.to_string())?,
        })
    }

    /// What an iteration of `case` takes in trial `number`, which measures for `slice`.
    pub fn iteration_ns(&self, case: &Case, slice: Duration, number: u64) -> Result<f64, String> {
        let size = Sizing::Slice { slice_ns: slice.as_nanos() as u64, hint_ns: None };
        let yielded =
            self.launcher().trial(case, size, number).map_err(|ended| format!("{case}: {ended:?}"))?;
        Ok(yielded.sample.iteration_ns())
    }

    /// ipcmark against a loop written by hand.
    fn bare(&self) -> Result<(), String> {
        println!("ipcmark over a minimal loop written by hand, fresh processes each, in ABBA order");
        println!("{:<34} {:>11} {:>11}  ratio (95% interval), rounds", "", "by hand", "ipcmark");
        for placement in [Placement::SameCore, Placement::SameLlc] {
            for (bare, spec, workload, size) in LOOPS {
                // Two CPUs need no context switch: the floor is of one CPU alone.
                if bare == "futex" && placement != Placement::SameCore {
                    continue;
                }
                match self.case(spec, workload, size, placement) {
                    Ok(case) => self.against_bare(bare, &case)?,
                    Err(reason) => println!("{reason}"),
                }
            }
        }
        Ok(())
    }

    fn against_bare(&self, bare: &str, case: &Case) -> Result<(), String> {
        let mut hint_ns = None;
        let mut number = 0;
        // The loop by hand has as many iterations as ipcmark's last trial timed: what disturbs comes with time.
        let mut iterations = 100;
        let (mut logs, mut by_hand, mut ours) = (Vec::new(), Vec::new(), Vec::new());
        let timer = Timer::start();
        for round in 0.. {
            let order = if round % 2 == 0 { [false, true, true, false] } else { [true, false, false, true] };
            let mut log = 0.0;
            for is_bare in order {
                if is_bare {
                    let ns = bare_trial(bare, case, iterations)?;
                    log -= ns.ln() / 2.0;
                    by_hand.push(ns);
                    continue;
                }
                number += 1;
                let size = Sizing::Slice { slice_ns: SLICE.as_nanos() as u64, hint_ns };
                let yielded = self
                    .launcher()
                    .trial(case, size, number)
                    .map_err(|ended| format!("{case}: {ended:?}"))?;
                let ns = yielded.sample.iteration_ns();
                (hint_ns, iterations) = (Some(ns), yielded.sample.iterations);
                log += ns.ln() / 2.0;
                ours.push(ns);
            }
            logs.push(log);
            if is_known(&logs, 12) || timer.elapsed() > TIME {
                break;
            }
        }
        let time = |values: &[f64]| format_ns(median(values).unwrap_or(f64::NAN));
        let ratio = median_interval(&logs).map(|estimate| estimate.map(f64::exp));
        println!(
            "{:<34} {:>11} {:>11}  {}, {}",
            case.key(),
            time(&by_hand),
            time(&ours),
            shown(ratio),
            logs.len()
        );
        Ok(())
    }

    /// The ring against the cache line and against memcpy.
    fn ring(&self) -> Result<(), String> {
        let two = Placement::SameLlc;
        let spin = "shm-ring:wait=spin";
        let copy =
            Case { placement: Placement::SameCore, ..self.case("memcpy", Workload::Cost, 65_536, two)? };
        let mut pairs = [
            Pair::new(
                self.case("cache-line", Workload::Latency, 1, two)?,
                self.case(spin, Workload::Latency, 1, two)?,
            ),
            Pair::new(copy, self.case(spin, Workload::Throughput, 65_536, two)?),
            Pair::new(
                self.case("cache-line", Workload::Latency, 1, two)?,
                self.case(spin, Workload::Throughput, 32, two)?,
            ),
        ];
        let settled = |a: &[Sample], b: &[Sample]| is_known(&round_log_ratios(a, b), 8);
        in_turn::measure(&mut pairs, &self.launcher(), SLICE, &settled, 3 * TIME, |_| {});
        for pair in &pairs {
            if let Some(failure) = &pair.failure {
                return Err(failure.clone());
            }
            let ns = |which: usize| {
                let iterations: Vec<f64> = pair.samples[which].iter().map(Sample::iteration_ns).collect();
                (median(&iterations).unwrap_or(f64::NAN), analysis::stats::mean(&iterations))
            };
            let log_ratios = round_log_ratios(&pair.samples[0], &pair.samples[1]);
            let ratio = median_interval(&log_ratios).map(|estimate| estimate.map(f64::exp));
            let ((a, a_mean), (b, b_mean)) = (ns(0), ns(1));
            println!("{} over {}", pair.cases[1], pair.cases[0]);
            println!(
                "  median {} over {}, mean {} over {}: ratio {} in {} rounds",
                format_ns(b),
                format_ns(a),
                format_ns(b_mean),
                format_ns(a_mean),
                shown(ratio),
                log_ratios.len()
            );
            match (pair.cases[1].workload, pair.cases[1].size_bytes) {
                (Workload::Throughput, Some(Size(32))) => println!(
                    "  {:.1} million messages a second, where a hand-over one way takes {}",
                    1e3 / b,
                    format_ns(a / 2.0)
                ),
                (Workload::Throughput, _) => println!(
                    "  {:.2} of what two copies by memcpy allow",
                    2.0 / ratio.map_or(f64::NAN, |ratio| ratio.median)
                ),
                _ => {}
            }
        }
        Ok(())
    }

    /// What a trial costs beyond what it measures.
    fn trial_cost(&self) -> Result<(), String> {
        const TRIALS: u64 = 200;
        for placement in [Placement::SameCore, Placement::SameLlc] {
            let case = self.case("pipe", Workload::Latency, 1, placement)?;
            let (mut whole, mut timed) = (Vec::new(), Vec::new());
            let mut hint_ns = None;
            for number in 0..TRIALS {
                let timer = Timer::start();
                let size = Sizing::Slice { slice_ns: SLICE.as_nanos() as u64, hint_ns };
                let sample =
                    self.launcher().trial(&case, size, number).map_err(|ended| format!("{ended:?}"))?.sample;
                whole.push(timer.elapsed().as_nanos() as f64);
                timed.push(sample.trial_iterations as f64 * sample.iteration_ns());
                hint_ns = Some(sample.iteration_ns());
            }
            let overhead: Vec<f64> = whole.iter().zip(&timed).map(|(whole, timed)| whole - timed).collect();
            let time = |values: &[f64]| format_ns(median(values).unwrap_or(f64::NAN));
            println!(
                "{case}: a trial takes {}, of which iterations {}, the rest {}",
                time(&whole),
                time(&timed),
                time(&overhead)
            );
        }
        Ok(())
    }
}

/// Whether the ratio of which `log_ratios` has one a round is known to within [`PRECISION`].
fn is_known(log_ratios: &[f64], least_rounds: usize) -> bool {
    let interval = median_interval(log_ratios).and_then(|estimate| estimate.interval);
    log_ratios.len() >= least_rounds && interval.is_some_and(|(low, high)| (high - low) / 2.0 <= PRECISION)
}

pub fn shown(ratio: Option<Estimate>) -> String {
    match ratio {
        Some(Estimate { median, interval: Some((low, high)) }) => {
            format!("{median:.3} ({low:.3} to {high:.3})")
        }
        Some(Estimate { median, interval: None }) => format!("{median:.3} (too few rounds for an interval)"),
        None => "-".to_owned(),
    }
}

/// Runs the default suite eleven times and compares each run with the next.
fn same_suite_twice() -> Result<(), String> {
    const RUNS: usize = 11;
    let directory = root().join("target/bench-same");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let file = |run: usize| directory.join(format!("{run}.jsonl"));
    let read = |run: usize| -> Result<model::record::Results, String> {
        let file = std::fs::File::open(file(run)).map_err(|error| error.to_string())?;
        model::results::parse(std::io::BufReader::new(file), "run").map_err(|invalid| invalid.to_string())
    };
    let (mut cases, mut different) = (0, 0);
    for run in 0..RUNS {
        let mut command =
            cargo(&["run", "--quiet", "--release", "--package", "ipcmark", "--", "run", "--output"]);
        step(&format!("run {run}"), command.arg(file(run)).stdout(Stdio::null()).stderr(Stdio::null()))?;
        if run == 0 {
            continue;
        }
        let compared = analysis::compare::compare(
            &read(run - 1)?,
            &read(run)?,
            analysis::compare::ComparisonOptions::default(),
        );
        let totals = &compared.totals;
        cases += compared.cases.len();
        different += (totals.faster + totals.slower) as usize;
        println!(
            "pair {run}: {} cases, {} faster, {} slower, {} no difference, {} cannot tell",
            compared.cases.len(),
            totals.faster,
            totals.slower,
            totals.no_difference,
            totals.cannot_tell
        );
        for case in compared
            .cases
            .iter()
            .filter(|case| matches!(case.verdict, ComparisonVerdict::Faster | ComparisonVerdict::Slower))
        {
            println!("  {} {} {}", case.key, case.verdict, case.ratio.map_or(f64::NAN, |ratio| ratio.ratio));
        }
    }
    println!(
        "{different} of {cases} cases called different: 1 in {:.0}",
        cases as f64 / different.max(1) as f64
    );
    Ok(())
}

// ---- the loops written by hand ----

/// Trials both ends of the loop `bare` on the CPUs of `case`; nanoseconds per iteration.
///
/// Both are children of this process, client first, as the harness starts its endpoints.
fn bare_trial(bare: &str, case: &Case, iterations: u64) -> Result<f64, String> {
    let cpus = case.cpus.ok_or("the case has no CPUs")?;
    let size = case.size_bytes.map_or(1, |size| size.0);
    let [client, server] = open(bare).map_err(|error| error.to_string())?;
    let start = |role: &str, cpu: u32, [input, output]: [OwnedFd; 2], errors: Stdio| {
        Command::new("/proc/self/exe")
            .args([BARE, role, bare, case.workload.name()])
            .args([size, iterations, u64::from(cpu)].map(|number| number.to_string()))
            .stdin(input)
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|error| error.to_string())
    };
    // Client's output is the loop's, so that it says the result on standard error.
    let client = start("client", cpus.client, client, Stdio::piped())?;
    let mut server = start("server", cpus.server, server, Stdio::inherit())?;
    let said = client.wait_with_output().map_err(|error| error.to_string())?.stderr;
    server.wait().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&said);
    said.trim().parse().map_err(|_| format!("{bare} by hand: {said}"))
}

/// The input and the output of client, and those of server.
fn open(bare: &str) -> Io<[[OwnedFd; 2]; 2]> {
    Ok(match bare {
        "pipe" => {
            let ((server_input, client_output), (client_input, server_output)) =
                (std::io::pipe()?, std::io::pipe()?);
            [[client_input.into(), client_output.into()], [server_input.into(), server_output.into()]]
        }
        "unix-stream" => {
            let (client, server) = UnixStream::pair()?;
            [[client.try_clone()?.into(), client.into()], [server.try_clone()?.into(), server.into()]]
        }
        "tcp" => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let client = TcpStream::connect(listener.local_addr()?)?;
            let (server, _) = listener.accept()?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            [[client.try_clone()?.into(), client.into()], [server.try_clone()?.into(), server.into()]]
        }
        _ => {
            let (_, memory) = SharedMemory::create("by-hand", FUTEX_MEMORY_BYTES)?;
            [[memory.try_clone()?, memory.try_clone()?], [memory.try_clone()?, memory]]
        }
    })
}

/// The memory that holds the futex word.
const FUTEX_MEMORY_BYTES: usize = 4096;

/// What an end of a hand-written loop is told.
struct Bare<'a> {
    name: &'a str,
    streams: bool,
    size: usize,
    iterations: u64,
}

/// One end of a hand-written loop, in a process of its own, over its standard input and output.
pub fn bare_peer(arguments: &[&str]) -> Result<(), String> {
    let [role, name, workload, numbers @ ..] = arguments else { return Err("too few arguments".to_owned()) };
    let number = |at: usize| numbers.get(at).and_then(|text| text.parse::<u64>().ok()).ok_or("not a number");
    let streams = *workload == Workload::Throughput.name();
    let bare = Bare { name, streams, size: number(0)? as usize, iterations: number(1)? };
    sys::process::pin_to(number(2)? as u32).map_err(|failure| failure.to_string())?;
    match *role {
        "client" => bare.client().map(|ns| eprintln!("{ns}")),
        _ => bare.server(),
    }
    .map_err(|error| error.to_string())
}

type Io<T> = Result<T, Box<dyn std::error::Error>>;

impl Bare<'_> {
    fn client(&self) -> Io<f64> {
        let (input, output) = (std::io::stdin(), std::io::stdout());
        if self.name == "futex" {
            return self.hand_over(&input.as_fd().try_clone_to_owned()?, true);
        }
        let mut memory = vec![1; self.size + 4096];
        let message = self.message(&mut memory);
        let streams = self.streams;
        let mut part = |iterations| {
            for _ in 0..iterations {
                write_all(&output, message)?;
                if !streams {
                    read_all(&input, message)?;
                }
            }
            if streams { read_all(&input, &mut [0]) } else { Ok(()) }
        };
        part(self.warm_up())?;
        let start = Instant::now();
        part(self.iterations)?;
        let elapsed = start.elapsed();
        part(Self::LEAD_OUT)?;
        Ok(elapsed.as_nanos() as f64 / self.iterations as f64)
    }

    /// Iterations after the clock has stopped, for server's exit may come before client's last look at the clock.
    const LEAD_OUT: u64 = 8;

    /// A message as ipcmark lays it: a small one on a cache line, a large one on a page.
    fn message<'a>(&self, memory: &'a mut [u8]) -> &'a mut [u8] {
        let start = memory.as_ptr().align_offset(if self.size < 4096 { 64 } else { 4096 });
        &mut memory[start..start + self.size]
    }

    fn warm_up(&self) -> u64 {
        self.iterations / 5 + 8
    }

    fn server(&self) -> Io<()> {
        let (input, output) = (std::io::stdin(), std::io::stdout());
        if self.name == "futex" {
            return self.hand_over(&input.as_fd().try_clone_to_owned()?, false).map(drop);
        }
        let mut memory = vec![1; self.size + 4096];
        let message = self.message(&mut memory);
        let streams = self.streams;
        for iterations in [self.warm_up(), self.iterations, Self::LEAD_OUT] {
            for _ in 0..iterations {
                read_all(&input, message)?;
                if !streams {
                    write_all(&output, message)?;
                }
            }
            if streams {
                write_all(&output, &[1])?;
            }
        }
        Ok(())
    }

    /// A futex word that is client's iteration when even and server's when odd.
    fn hand_over(&self, memory: &OwnedFd, client: bool) -> Io<f64> {
        use rustix::thread::futex;
        let memory = SharedMemory::open(memory, FUTEX_MEMORY_BYTES)?;
        let word: &AtomicU32 = memory.u32_at(0);
        let mine = u32::from(!client);
        let give = || {
            word.fetch_add(1, Ordering::AcqRel);
            futex::wake(word, futex::Flags::empty(), 1).map(drop)
        };
        let part = |iterations| -> Result<(), Errno> {
            for _ in 0..iterations {
                if client {
                    give()?;
                }
                loop {
                    let value = word.load(Ordering::Acquire);
                    if value % 2 == mine {
                        break;
                    }
                    let _ = futex::wait(word, futex::Flags::empty(), value, None);
                }
                if !client {
                    give()?;
                }
            }
            Ok(())
        };
        part(self.warm_up())?;
        let start = Instant::now();
        part(self.iterations)?;
        let elapsed = start.elapsed();
        part(Self::LEAD_OUT)?;
        Ok(elapsed.as_nanos() as f64 / self.iterations as f64)
    }
}

#[inline(always)]
fn write_all(output: impl AsFd, bytes: &[u8]) -> Result<(), Errno> {
    let mut sent = 0;
    while sent < bytes.len() {
        sent += write(&output, &bytes[sent..])?;
    }
    Ok(())
}

#[inline(always)]
fn read_all(input: impl AsFd, into: &mut [u8]) -> Result<(), Errno> {
    let mut received = 0;
    while received < into.len() {
        match read(&input, &mut into[received..])? {
            0 => return Err(Errno::PIPE),
            count => received += count,
        }
    }
    Ok(())
}
