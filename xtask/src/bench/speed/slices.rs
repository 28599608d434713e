//! Slices of round trips and copies on one CPU, with one candidate timed directly before and directly after each.

use super::candidates::{Arena, CANDIDATES};
use crate::bench::by_hand::descriptors::{Io, open, read_all, write_all};
use harness::clock::{Clock, Timer};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rustix::fd::OwnedFd;
use std::hint::black_box;
use std::process::{Child, Command};
use std::time::Duration;

/// The hidden task by which this program becomes the server of round trips.
pub const ECHO: &str = "__echo";

/// What is measured in slices.
pub const MECHANISMS: [&str; 5] = ["pipe", "unix-stream", "tcp", "memcpy 4K", "memcpy 64K"];

const SLICE_NS: f64 = 1e6;

/// A slice and the readings beside it.
#[derive(Clone)]
pub struct Slice {
    /// Index into [`CANDIDATES`].
    pub candidate: usize,
    /// Index into [`MECHANISMS`].
    pub mechanism: usize,
    /// When it began, in seconds from the first.
    pub at_s: f64,
    pub iteration_ns: f64,
    pub before_ns: f64,
    pub after_ns: f64,
}

impl Slice {
    /// The mean of the readings.
    pub fn reading_ns(&self) -> f64 {
        self.before_ns.midpoint(self.after_ns)
    }
}

/// Measures on `cpu` for `time`, in random order and as often with each candidate.
pub fn measure(clock: Clock, cpu: u32, time: Duration) -> Io<Vec<Slice>> {
    sys::process::pin_to(cpu)?;
    let mut servers = Servers(Vec::new());
    let mut mechanisms = Vec::new();
    for name in MECHANISMS {
        let mut mechanism = match name {
            "memcpy 4K" => Mechanism::copies(4 * 1024),
            "memcpy 64K" => Mechanism::copies(64 * 1024),
            channel => Mechanism::round_trips(channel, cpu, &mut servers)?,
        };
        mechanism.iterate(1000)?;
        let start = clock.now();
        mechanism.iterate(1000)?;
        let iterations = 1000.0 * SLICE_NS / clock.ns_between(start, clock.now());
        mechanisms.push((mechanism, iterations as u64));
    }
    let mut arena = Arena::new()?;
    let mut order: Vec<(usize, usize)> =
        (0..CANDIDATES.len()).flat_map(|c| (0..MECHANISMS.len()).map(move |m| (c, m))).collect();
    let mut random = SmallRng::seed_from_u64(1);
    let mut slices = Vec::new();
    let timer = Timer::start();
    while timer.elapsed() < time {
        order.shuffle(&mut random);
        for &(candidate, index) in &order {
            let work = CANDIDATES[candidate].work;
            let (mechanism, iterations) = &mut mechanisms[index];
            let at_s = timer.elapsed().as_secs_f64();
            // The caches hold another mechanism's lines until here.
            mechanism.iterate(*iterations / 20)?;
            let before = clock.now();
            work(&mut arena);
            let start = clock.now();
            mechanism.iterate(*iterations)?;
            let end = clock.now();
            work(&mut arena);
            let after = clock.now();
            slices.push(Slice {
                candidate,
                mechanism: index,
                at_s,
                iteration_ns: clock.ns_between(start, end) / *iterations as f64,
                before_ns: clock.ns_between(before, start),
                after_ns: clock.ns_between(end, after),
            });
        }
    }
    Ok(slices)
}

enum Mechanism {
    /// Round trips of one byte with a process on the same CPU.
    RoundTrips { input: OwnedFd, output: OwnedFd },
    /// Copies within this process.
    Copies { from: Vec<u8>, to: Vec<u8> },
}

impl Mechanism {
    fn copies(bytes: usize) -> Self {
        Self::Copies { from: vec![1; bytes], to: vec![2; bytes] }
    }

    fn round_trips(channel: &str, cpu: u32, servers: &mut Servers) -> Io<Self> {
        let [[input, output], [server_input, server_output]] = open(channel)?;
        let mut server = Command::new("/proc/self/exe");
        server.args([ECHO, &cpu.to_string()]).stdin(server_input).stdout(server_output);
        servers.0.push(server.spawn()?);
        Ok(Self::RoundTrips { input, output })
    }

    fn iterate(&mut self, iterations: u64) -> Io<()> {
        match self {
            Self::RoundTrips { input, output } => {
                let mut byte = [1];
                for _ in 0..iterations {
                    write_all(&*output, &byte)?;
                    read_all(&*input, &mut byte)?;
                }
            }
            Self::Copies { from, to } => {
                for _ in 0..iterations {
                    black_box(&mut *to).copy_from_slice(black_box(from));
                }
            }
        }
        Ok(())
    }
}

/// The processes that answer round trips. They are killed, for one may wait where its peer is gone.
struct Servers(Vec<Child>);

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &mut self.0 {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Answers each byte of standard input on standard output, pinned to `cpu`, until the end of the input.
pub fn echo(cpu: &str) -> Result<(), String> {
    let cpu = cpu.parse().map_err(|_| format!("{cpu} is no CPU"))?;
    sys::process::pin_to(cpu).map_err(|failure| failure.to_string())?;
    let (input, output) = (std::io::stdin(), std::io::stdout());
    let mut byte = [0];
    while rustix::io::read(&input, &mut byte).map_err(|error| error.to_string())? > 0 {
        write_all(&output, &byte).map_err(|error| error.to_string())?;
    }
    Ok(())
}
