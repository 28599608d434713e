//! `cargo xtask bench bare`: ipcmark against minimal loops written by hand. The loops are no part of what users install.

use super::setup::{Bench, PRECISION, SLICE, TIME, shown};
use analysis::stats::{median, median_interval};
use harness::clock::Timer;
use harness::coordinator::schedule::Trials;
use harness::protocol::orders::Sizing;
use model::units::format_ns;
use model::{Case, Placement, Workload};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{read, write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use sys::Errno;
use sys::shared_memory::SharedMemory;

/// The hidden task by which this program becomes an endpoint of a loop written by hand.
pub const BARE: &str = "__bare";

/// A loop written by hand, and the case of ipcmark that does the same work.
const LOOPS: [(&str, &str, Workload, u64); 6] = [
    ("pipe", "pipe", Workload::Latency, 1),
    ("unix-stream", "unix-stream", Workload::Latency, 1),
    ("tcp", "tcp", Workload::Latency, 1),
    ("futex", "context-switch", Workload::Latency, 1),
    ("pipe", "pipe", Workload::Throughput, 65_536),
    ("unix-stream", "unix-stream", Workload::Throughput, 65_536),
];

/// Prints the time of ipcmark over that of each loop.
pub fn run(bench: &Bench) -> Result<(), String> {
    println!("ipcmark over a minimal loop written by hand, fresh processes each, in ABBA order");
    println!("{:<34} {:>11} {:>11}  ratio (95% interval), rounds", "", "by hand", "ipcmark");
    for placement in [Placement::SameCore, Placement::SameLlc] {
        for (bare, spec, workload, size) in LOOPS {
            // Two CPUs need no context switch, so that this floor exists on one CPU only.
            if bare == "futex" && placement != Placement::SameCore {
                continue;
            }
            match bench.case(spec, workload, size, placement) {
                Ok(case) => against_bare(bench, bare, &case)?,
                Err(reason) => println!("{reason}"),
            }
        }
    }
    Ok(())
}

fn against_bare(bench: &Bench, bare: &str, case: &Case) -> Result<(), String> {
    let mut hint_ns = None;
    let mut number = 0;
    // Disturbances grow with time, so that the loop by hand makes as many iterations as ipcmark's last trial timed.
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
            let yielded =
                bench.trials().measure(case, size, number).map_err(|error| format!("{case}: {error}"))?;
            let ns = yielded.sample.iteration_ns();
            (hint_ns, iterations) = (Some(ns), yielded.sample.iterations);
            log += ns.ln() / 2.0;
            ours.push(ns);
        }
        logs.push(log);
        let known = median_interval(&logs)
            .and_then(|estimate| estimate.interval)
            .is_some_and(|(low, high)| (high - low) / 2.0 < PRECISION);
        if (known && logs.len() >= 12) || timer.elapsed() > TIME {
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

// ---- the loops written by hand ----

/// Runs the client and the server of the loop `bare` on the CPUs of `case`; nanoseconds per iteration.
///
/// Both are children of this process, the client first, as the harness starts its endpoints.
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
    // The loop uses the client's standard output, so that the client writes the result to standard error.
    let client = start("client", cpus.client, client, Stdio::piped())?;
    let mut server = start("server", cpus.server, server, Stdio::inherit())?;
    let said = client.wait_with_output().map_err(|error| error.to_string())?.stderr;
    server.wait().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&said);
    said.trim().parse().map_err(|_| format!("{bare} by hand: {said}"))
}

/// The input and the output of the client, and those of the server.
pub(super) fn open(bare: &str) -> Io<[[OwnedFd; 2]; 2]> {
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

/// What an endpoint of a loop written by hand needs to know.
struct Bare<'a> {
    name: &'a str,
    streams: bool,
    size: usize,
    iterations: u64,
}

/// One endpoint of a loop written by hand, in a process of its own, over its standard input and output.
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

pub(super) type Io<T> = Result<T, Box<dyn std::error::Error>>;

impl Bare<'_> {
    fn client(&self) -> Io<f64> {
        let (input, output) = (std::io::stdin(), std::io::stdout());
        if self.name == "futex" {
            return self.over_futex(&input.as_fd().try_clone_to_owned()?, true);
        }
        let mut memory = vec![1; self.size + 4096];
        let message = self.message(&mut memory);
        let streams = self.streams;
        let mut phase = |iterations| {
            for _ in 0..iterations {
                write_all(&output, message)?;
                if !streams {
                    read_all(&input, message)?;
                }
            }
            if streams { read_all(&input, &mut [0]) } else { Ok(()) }
        };
        phase(self.warm_up())?;
        let start = Instant::now();
        phase(self.iterations)?;
        let elapsed = start.elapsed();
        phase(Self::LEAD_OUT)?;
        Ok(elapsed.as_nanos() as f64 / self.iterations as f64)
    }

    /// Iterations after the clock has stopped: without them the server might exit before the client reads the clock last.
    const LEAD_OUT: u64 = 8;

    /// A message where ipcmark has it, too: a small one on a cache line, a large one on a page.
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
            return self.over_futex(&input.as_fd().try_clone_to_owned()?, false).map(drop);
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

    /// Iterations over a futex word: the client may go on when it is even, the server when it is odd.
    fn over_futex(&self, memory: &OwnedFd, client: bool) -> Io<f64> {
        use rustix::thread::futex;
        let memory = SharedMemory::open(memory, FUTEX_MEMORY_BYTES)?;
        let word: &AtomicU32 = memory.u32_at(0);
        let mine = u32::from(!client);
        let wake_peer = || {
            word.fetch_add(1, Ordering::AcqRel);
            futex::wake(word, futex::Flags::empty(), 1).map(drop)
        };
        let phase = |iterations| -> Result<(), Errno> {
            for _ in 0..iterations {
                if client {
                    wake_peer()?;
                }
                loop {
                    let value = word.load(Ordering::Acquire);
                    if value % 2 == mine {
                        break;
                    }
                    let _ = futex::wait(word, futex::Flags::empty(), value, None);
                }
                if !client {
                    wake_peer()?;
                }
            }
            Ok(())
        };
        phase(self.warm_up())?;
        let start = Instant::now();
        phase(self.iterations)?;
        let elapsed = start.elapsed();
        phase(Self::LEAD_OUT)?;
        Ok(elapsed.as_nanos() as f64 / self.iterations as f64)
    }
}

#[inline(always)]
pub(super) fn write_all(output: impl AsFd, bytes: &[u8]) -> Result<(), Errno> {
    let mut sent = 0;
    while sent < bytes.len() {
        sent += write(&output, &bytes[sent..])?;
    }
    Ok(())
}

#[inline(always)]
pub(super) fn read_all(input: impl AsFd, into: &mut [u8]) -> Result<(), Errno> {
    let mut received = 0;
    while received < into.len() {
        match read(&input, &mut into[received..])? {
            0 => return Err(Errno::PIPE),
            count => received += count,
        }
    }
    Ok(())
}
