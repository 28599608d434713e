//! Speed readings: how fast the CPU of an endpoint is at the moment, and how far it is from that of its peer. What they mean is
//! for `analysis` to say.

use super::control::Link;
use crate::clock::{Clock, Stamp};
use crate::protocol::error::Outcome;
use crate::protocol::message::PeerMessage;
use rustix::fd::AsFd;
use std::sync::atomic::Ordering;
use sys::shared_memory::SharedMemory;

/// The memory of the line: the least that can be mapped.
const MEMORY_BYTES: usize = 4096;
/// How often the line goes to and fro before it is timed: at first it may lie anywhere.
const WARM_UP_ROUND_TRIPS: u64 = 2;
/// How often it does while it is timed.
const TIMED_ROUND_TRIPS: u64 = 16;
/// How many values of the word belong to one reading.
const VALUES: u64 = 2 * (1 + WARM_UP_ROUND_TRIPS + TIMED_ROUND_TRIPS);
/// How long an endpoint waits for the other: one that is not there by then has lost its CPU, and there is no reading.
const LONGEST_WAIT_NS: f64 = 1e6;

/// Takes the readings of one endpoint.
pub(crate) struct SpeedReader {
    clock: Clock,
    /// The line that both endpoints share, where they have two CPUs.
    line: Option<SharedMemory>,
    /// The first value of the next pair reading. Both endpoints count on with every reading, also one that fails.
    base: u64,
}

impl SpeedReader {
    pub(crate) fn new(clock: Clock, line: Option<SharedMemory>) -> Self {
        Self { clock, line, base: 0 }
    }

    /// The client's reader of a pair: makes the line and sends it to the server.
    pub(crate) fn of_client(clock: Clock, link: &Link) -> Outcome<Self> {
        let (line, fd) = SharedMemory::create("ipcmark-speed", MEMORY_BYTES)?;
        link.send(PeerMessage::SpeedLine, &[fd.as_fd()])?;
        Ok(Self::new(clock, Some(line)))
    }

    /// The server's reader of a pair: receives the line.
    pub(crate) fn of_server(clock: Clock, link: &Link) -> Outcome<Self> {
        let is_line = |message| matches!(message, PeerMessage::SpeedLine).then_some(());
        let ((), fds) = link.receive("the memory of pair readings", is_line)?;
        let line = fds.first().map(|fd| SharedMemory::open(fd, MEMORY_BYTES)).transpose()?;
        Ok(Self::new(clock, line))
    }

    /// What the mix of instructions takes on this CPU now, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> f64 {
        let start = self.clock.now();
        sys::speed::run_mix();
        self.clock.ns_between(start, self.clock.now())
    }

    /// What the line takes to the server's CPU and back, in nanoseconds; `None` without a line, or when the server was not there.
    pub(crate) fn pair_ns(&mut self) -> Option<f64> {
        let base = self.next_base();
        let is_there = |value: u64| value == base + 1;
        self.wait_for(&is_there)?;
        self.pass_to_and_fro(base + 1, WARM_UP_ROUND_TRIPS)?;
        let start = self.clock.now();
        self.pass_to_and_fro(base + 1 + 2 * WARM_UP_ROUND_TRIPS, TIMED_ROUND_TRIPS)?;
        Some(self.clock.ns_between(start, self.clock.now()) / TIMED_ROUND_TRIPS as f64)
    }

    /// The server's side of a pair reading.
    pub(crate) fn answer_pair(&mut self) {
        let base = self.next_base();
        self.store(base + 1);
        let round_trips = WARM_UP_ROUND_TRIPS + TIMED_ROUND_TRIPS;
        for value in (1..=round_trips).map(|round_trip| base + 2 * round_trip) {
            if self.wait_for(&|found| found == value).is_none() {
                return;
            }
            self.store(value + 1);
        }
    }

    fn pass_to_and_fro(&self, last: u64, round_trips: u64) -> Option<()> {
        for value in (0..round_trips).map(|round_trip| last + 1 + 2 * round_trip) {
            self.store(value);
            self.wait_for(&|found| found == value + 1)?;
        }
        Some(())
    }

    fn next_base(&mut self) -> u64 {
        self.base += VALUES;
        self.base
    }

    fn store(&self, value: u64) {
        if let Some(line) = &self.line {
            line.u64_at(0).store(value, Ordering::Release);
        }
    }

    /// Waits, awake, until the word is as `wanted`; `None` when the other endpoint is not there.
    fn wait_for(&self, wanted: &dyn Fn(u64) -> bool) -> Option<()> {
        let word = self.line.as_ref()?.u64_at(0);
        let start: Stamp = self.clock.now();
        while !wanted(word.load(Ordering::Acquire)) {
            if self.clock.ns_between(start, self.clock.now()) > LONGEST_WAIT_NS {
                return None;
            }
            std::hint::spin_loop();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::channel::channel;
    use model::record::ClockSource;

    fn clock() -> Clock {
        Clock::new(ClockSource::MonotonicRaw)
    }

    #[test]
    fn both_endpoints_of_a_pair_pass_the_line_as_often() {
        let (ours, theirs) = channel().unwrap();
        // Each has a CPU of its own: the kernel may else put both on one, where they never see each other.
        let cpus = crate::host::topology::allowed();
        let [client_cpu, server_cpu] = [cpus[0], cpus[cpus.len() - 1]];
        sys::process::pin_to(client_cpu).unwrap();
        let server = std::thread::spawn(move || {
            sys::process::pin_to(server_cpu).unwrap();
            let theirs = Link::Direct(theirs);
            let mut reader = SpeedReader::of_server(clock(), &theirs).unwrap();
            while theirs.receive("a word", Some).is_ok() {
                reader.answer_pair();
                if theirs.send(PeerMessage::Ready, &[]).is_err() {
                    break;
                }
            }
        });
        let ours = Link::Direct(ours);
        let mut reader = SpeedReader::of_client(clock(), &ours).unwrap();
        // One that loses its CPU in the middle gives no reading; the next is read all the same. Both begin it together, as those of a
        // trial do: who was once behind would else be so for good. Where other tests have the CPUs, hardly one of a thousand is a reading.
        let mut reading = || {
            ours.send(PeerMessage::Ready, &[]).unwrap();
            let reading = reader.pair_ns();
            ours.receive("the server's word", Some).unwrap();
            reading
        };
        let readings: Vec<f64> =
            std::iter::repeat_with(&mut reading).take(50_000).flatten().take(2).collect();
        drop(ours);
        server.join().unwrap();
        assert!(readings.len() == 2 && readings.iter().all(|ns| *ns > 0.0), "{readings:?}");
    }

    #[test]
    fn without_a_line_or_a_peer_there_is_no_reading_of_a_pair() {
        let mut alone = SpeedReader::new(clock(), None);
        assert_eq!(alone.pair_ns(), None);
        alone.answer_pair();
        let (ours, _theirs) = channel().unwrap();
        assert_eq!(SpeedReader::of_client(clock(), &Link::Direct(ours)).unwrap().pair_ns(), None);
        assert!(alone.cpu_ns() > 0.0);
    }
}
