//! The loops written by hand: what one process of them does, slice by slice, as it is told over its standard error.
//!
//! A loop is what somebody would write who wants to time the mechanism and nothing else. It checks nothing that it receives.

use super::descriptors::{Io, WORDS_BYTES, read_all, write_all};
use harness::clock::Clock;
use harness::endpoint::injected::steps_per_ns;
use model::Workload;
use model::record::ClockSource;
use model::speed::SpeedReading;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::thread::futex;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use sys::Errno;
use sys::busy::multiply;
use sys::shared_memory::SharedMemory;

/// The hidden task by which this program becomes an endpoint of a loop written by hand.
pub const BY_HAND: &str = "__by_hand";

/// Iterations before the speed is read, between that and the timed ones, and after these, as ipcmark has them.
const LEAD_IN: u64 = 4;
const SETTLING: u64 = 1;
const LEAD_OUT: u64 = 2;

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Orders {
    /// How many iterations are timed.
    pub(super) iterations: u64,
    /// How many messages of a stream come before those, and after them.
    pub(super) run_up: u64,
}

impl fmt::Display for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.iterations, self.run_up)
    }
}

impl FromStr for Orders {
    type Err = String;

    fn from_str(said: &str) -> Result<Self, String> {
        let numbers: Vec<u64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [iterations, run_up] = numbers[..] else { return Err(format!("no orders: '{}'", said.trim())) };
        Ok(Self { iterations, run_up })
    }
}

/// What a process says of a slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Answer {
    /// Between its clock readings.
    pub(super) elapsed_ns: f64,
    /// Of its CPU, if it was to read that.
    pub(super) speed: Option<SpeedReading>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.elapsed_ns)?;
        self.speed.map_or(Ok(()), |speed| write!(f, " {} {}", speed.before_ns, speed.after_ns))
    }
}

impl FromStr for Answer {
    type Err = String;

    fn from_str(said: &str) -> Result<Self, String> {
        let numbers: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [elapsed_ns] => Ok(Self { elapsed_ns, speed: None }),
            [elapsed_ns, before_ns, after_ns] => {
                Ok(Self { elapsed_ns, speed: Some(SpeedReading { before_ns, after_ns }) })
            }
            _ => Err(format!("no answer: '{}'", said.trim())),
        }
    }
}

/// One process of a loop written by hand: iterations until nobody wants more.
pub fn main(arguments: &[&str]) -> Result<(), String> {
    let [role, mechanism, workload, size_bytes, cpu, reads_speed, delay_ns] = arguments else {
        return Err("too few arguments".to_owned());
    };
    let number = |text: &str| text.parse::<u64>().map_err(|error| error.to_string());
    sys::process::die_with_parent().map_err(|failure| failure.to_string())?;
    sys::process::pin_to(number(cpu)? as u32).map_err(|failure| failure.to_string())?;
    let clock = Clock::new(ClockSource::MonotonicRaw);
    let delay_ns = delay_ns.parse::<u64>().ok();
    let endpoint = Endpoint {
        is_client: *role == "client",
        is_stream: *workload == Workload::Throughput.name(),
        size_bytes: number(size_bytes)? as usize,
        reads_speed: number(reads_speed)? == 1,
        delay_steps: delay_ns.map(|ns| (ns as f64 * steps_per_ns(&clock)).round() as u64),
        clock,
    };
    let served = match *mechanism {
        "context-switch" => endpoint.over_futex(),
        _ => endpoint.over_descriptors(),
    };
    served.map_err(|error| error.to_string())
}

/// One process of a loop.
struct Endpoint {
    is_client: bool,
    is_stream: bool,
    size_bytes: usize,
    reads_speed: bool,
    /// By how many multiplications each message of a client is delayed, in the loops that have a delay.
    delay_steps: Option<u64>,
    clock: Clock,
}

impl Endpoint {
    fn over_descriptors(&self) -> Io<()> {
        let (input, output) = (std::io::stdin(), std::io::stdout());
        let (input, output) = (input.as_fd(), output.as_fd());
        let mut memory = vec![1; self.size_bytes + 4096];
        // A message is where ipcmark has it, too: a small one on a cache line, a large one on a page.
        let start = memory.as_ptr().align_offset(if self.size_bytes < 4096 { 64 } else { 4096 });
        let message = &mut memory[start..start + self.size_bytes];
        match (self.is_stream, self.is_client) {
            (false, true) => self.serve_round_trips(&mut |iterations| match self.delay_steps {
                None => ask(input, output, message, iterations, || {}),
                Some(steps) => ask(input, output, message, iterations, || multiply(steps)),
            }),
            (false, false) => {
                self.serve_round_trips(&mut |iterations| answer(input, output, message, iterations))
            }
            (true, true) => self
                .serve_stream(&mut |iterations| send(output, message, iterations), &mut || {
                    read_all(input, &mut [0])
                }),
            (true, false) => self
                .serve_stream(&mut |iterations| receive(input, message, iterations), &mut || {
                    write_all(output, &[1])
                }),
        }
    }

    fn over_futex(&self) -> Io<()> {
        let memory = SharedMemory::open(std::io::stdin().as_fd(), WORDS_BYTES)?;
        let word = memory.u32_at(0);
        match self.is_client {
            true => self.serve_round_trips(&mut |iterations| {
                ask_by_futex(word, iterations);
                Ok(())
            }),
            false => self.serve_round_trips(&mut |iterations| {
                answer_by_futex(word, iterations);
                Ok(())
            }),
        }
    }

    /// Slices of round trips.
    fn serve_round_trips(&self, iterate: &mut dyn FnMut(u64) -> Result<(), Errno>) -> Io<()> {
        serve(|orders| {
            iterate(LEAD_IN)?;
            let before_ns = self.speed_ns();
            iterate(SETTLING)?;
            let start = self.clock.now();
            iterate(orders.iterations)?;
            let end = self.clock.now();
            // Without a lead-out the peer might be about to sleep or to end when the clock is read.
            let after_ns = if self.is_client { self.speed_ns() } else { None };
            iterate(LEAD_OUT)?;
            let after_ns = after_ns.or_else(|| self.speed_ns());
            Ok(self.answer(self.clock.ns_between(start, end), before_ns, after_ns))
        })
    }

    /// Slices of a stream in its steady state. `word` tells the client, or the client is told, that all messages have come.
    fn serve_stream(
        &self,
        iterate: &mut dyn FnMut(u64) -> Result<(), Errno>,
        word: &mut dyn FnMut() -> Result<(), Errno>,
    ) -> Io<()> {
        serve(|orders| {
            iterate(LEAD_IN)?;
            word()?;
            let before_ns = self.speed_ns();
            iterate(orders.run_up)?;
            let start = self.clock.now();
            iterate(orders.iterations)?;
            let end = self.clock.now();
            iterate(orders.run_up)?;
            word()?;
            Ok(self.answer(self.clock.ns_between(start, end), before_ns, self.speed_ns()))
        })
    }

    fn answer(&self, elapsed_ns: f64, before_ns: Option<f64>, after_ns: Option<f64>) -> Answer {
        let speed = before_ns.zip(after_ns).map(|(before_ns, after_ns)| SpeedReading { before_ns, after_ns });
        Answer { elapsed_ns, speed }
    }

    /// What the mix of instructions takes on this CPU now, if this process is to read that.
    fn speed_ns(&self) -> Option<f64> {
        self.reads_speed.then(|| {
            let start = self.clock.now();
            sys::speed::run_mix();
            self.clock.ns_between(start, self.clock.now())
        })
    }
}

/// Does what each line on the control channel orders, until there is none.
fn serve(mut slice: impl FnMut(Orders) -> Result<Answer, Errno>) -> Io<()> {
    let control = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), 3)?);
    let mut answers = control.try_clone()?;
    for orders in BufReader::new(control).lines() {
        let answer = slice(orders?.parse()?)?;
        writeln!(answers, "{answer}")?;
    }
    Ok(())
}

// ---- the loops ----

/// `before` runs before each message; there are two such loops, one of which does nothing there.
#[inline(never)]
fn ask(
    input: BorrowedFd<'_>,
    output: BorrowedFd<'_>,
    message: &mut [u8],
    iterations: u64,
    before: impl Fn(),
) -> Result<(), Errno> {
    for _ in 0..iterations {
        before();
        write_all(output, message)?;
        read_all(input, message)?;
    }
    Ok(())
}

#[inline(never)]
fn answer(
    input: BorrowedFd<'_>,
    output: BorrowedFd<'_>,
    message: &mut [u8],
    iterations: u64,
) -> Result<(), Errno> {
    for _ in 0..iterations {
        read_all(input, message)?;
        write_all(output, message)?;
    }
    Ok(())
}

#[inline(never)]
fn send(output: BorrowedFd<'_>, message: &[u8], iterations: u64) -> Result<(), Errno> {
    (0..iterations).try_for_each(|_| write_all(output, message))
}

#[inline(never)]
fn receive(input: BorrowedFd<'_>, message: &mut [u8], iterations: u64) -> Result<(), Errno> {
    (0..iterations).try_for_each(|_| read_all(input, message))
}

/// The client may go on when the word is even.
#[inline(never)]
fn ask_by_futex(word: &AtomicU32, iterations: u64) {
    for _ in 0..iterations {
        wake_peer(word);
        await_parity(word, 0);
    }
}

/// The server may go on when the word is odd.
#[inline(never)]
fn answer_by_futex(word: &AtomicU32, iterations: u64) {
    for _ in 0..iterations {
        await_parity(word, 1);
        wake_peer(word);
    }
}

#[inline(always)]
fn wake_peer(word: &AtomicU32) {
    word.fetch_add(1, Ordering::AcqRel);
    // Nobody may be asleep, and nothing else can fail.
    let _ = futex::wake(word, futex::Flags::empty(), 1);
}

#[inline(always)]
fn await_parity(word: &AtomicU32, parity: u32) {
    loop {
        let value = word.load(Ordering::Acquire);
        if value % 2 == parity {
            return;
        }
        let _ = futex::wait(word, futex::Flags::empty(), value, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_answers_survive_their_own_text() {
        let orders = Orders { iterations: 1200, run_up: 7 };
        assert_eq!(orders.to_string().parse(), Ok(orders));
        let plain = Answer { elapsed_ns: 1_000_123.5, speed: None };
        assert_eq!(plain.to_string().parse(), Ok(plain));
        let speed = Some(SpeedReading { before_ns: 5.25, after_ns: 6.5 });
        let read = Answer { elapsed_ns: 3.0, speed };
        assert_eq!(read.to_string().parse(), Ok(read));
        assert!("5 words".parse::<Orders>().is_err() && "panicked at 3 4".parse::<Answer>().is_err());
    }
}
