//! The measured loops: what client and server do in each workload, compiled once for each kind of end.
//!
//! A part is a lead-in, which is not timed, iterations, which are, and a lead-out, which is not: when the
//! clock starts both ends are under way, and when it stops the peer still answers, so that what it does
//! after its last answer does not delay the one that reads the clock. Both ends know beforehand how
//! many iterations of each there are: no control traffic passes while a part runs.
//!
//! Each loop is compiled once for each kind of end and what watches it, whatever part calls it: there are many kinds.
//! An iteration's code is one piece, without a call into another function or library: on a virtual machine
//! such calls made a pipe's round trip an eighth slower than by hand, as if each switch of processes
//! emptied the translation cache and every page that an iteration touches were looked up anew.

use crate::measure::{Clock, Stamp};
use mechanisms::{Arrived, Endpoint, InPlace, Steps, Unnoted};
use model::record::{Sample, StepSample, Usage};
use model::{Histogram, Session, Workload};
use rustix::fd::BorrowedFd;
use std::ops::Range;
use sys::Errno;

/// What ended a part early.
#[derive(Debug)]
pub(crate) enum Broken {
    /// A call failed.
    Call { name: &'static str, errno: Errno },
    /// A message is not the one that was due.
    Payload { iteration: u64, at: usize },
    /// Another number of descriptors came with a message than was sent.
    Descriptors { iteration: u64, came: usize },
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Broken::Call { name, errno: Errno::PIPE | Errno::CONNRESET } => {
                write!(f, "{name}: the peer closed in the middle of a part; see the peer's own error")
            }
            Broken::Call { name, errno } => {
                write!(f, "{}", sys::Failure::of(name, "the mechanism", *errno))
            }
            Broken::Payload { iteration, at } => write!(
                f,
                "receive: message {iteration} differs from what was sent at byte {at}: one was lost, doubled or changed on its way"
            ),
            Broken::Descriptors { iteration, came } => write!(
                f,
                "receive: {came} descriptors came with message {iteration}, not as many as were sent; raise 'ulimit -n'"
            ),
        }
    }
}

/// How much of each payload is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// Nothing: the mechanism carries no payload.
    Nothing,
    /// The sequence number in the first eight bytes, or as much of it as the message holds.
    Sequence,
    /// Every byte.
    Everything,
}

/// An endpoint at work: its end, and its own memory, from which it sends and into which it receives.
///
/// It lives in one place of the heap with its messages beside it, so that an iteration touches few pages.
pub(crate) struct Station<E> {
    pub(crate) end: E,
    memory: Vec<u8>,
    outgoing: Range<usize>,
    incoming: Range<usize>,
    /// Where the room for an incoming message ends: with the message, unless that is empty. Then there is room for a
    /// byte, for a call that is given none may return at once, and a message that is not empty is to be seen.
    room_end: usize,
    check: Check,
    in_place: InPlace,
    /// How many messages of the last stream never came; only of ends that lose some.
    pub(crate) lost: u64,
}

impl<E: Endpoint> Station<E> {
    /// A station over `end` that sends messages of `sends_bytes` and receives messages of `receives_bytes`.
    ///
    /// Messages begin on a cache line, and where they are as large as a page on a page: how they lie
    /// moves a copy's speed by some percent, and would else be left to the allocator.
    pub(crate) fn new(end: E, sends_bytes: usize, receives_bytes: usize) -> Box<Self> {
        const LINE_BYTES: usize = 64;
        const PAGE_BYTES: usize = 4096;
        let align = if sends_bytes.max(receives_bytes) < PAGE_BYTES { LINE_BYTES } else { PAGE_BYTES };
        let incoming_offset = sends_bytes.next_multiple_of(align);
        // Written, not just reserved, so that no page is first touched inside an iteration.
        let memory = vec![0xa5; align + incoming_offset + receives_bytes.max(1)];
        let start = memory.as_ptr().align_offset(align);
        let in_place = if E::IN_PLACE { end.in_place() } else { InPlace::default() };
        let incoming_start = start + incoming_offset;
        Box::new(Self {
            end,
            memory,
            outgoing: start..start + sends_bytes,
            incoming: incoming_start..incoming_start + receives_bytes,
            room_end: incoming_start + receives_bytes.max(1),
            check: Check::Nothing,
            in_place,
            lost: 0,
        })
    }

    /// Where its messages lie.
    pub(crate) fn addresses(&self) -> Range<u64> {
        let start = self.memory.as_ptr().addr() as u64;
        start..start + self.memory.len() as u64
    }

    pub(crate) fn check(&mut self, check: Check) {
        self.check = check;
    }
}

/// Makes the part of the message of `iteration` that begins at `offset` of it: all of it, or its number alone.
#[inline(always)]
fn make(part: &mut [u8], offset: usize, iteration: u64, check: Check, whole: bool) {
    if check == Check::Everything {
        for (at, byte) in part.iter_mut().enumerate() {
            *byte = expected(iteration, offset + at);
        }
    } else if whole {
        part.fill(iteration as u8);
    }
    match part.first_chunk_mut::<8>().filter(|_| offset == 0) {
        Some(number) => *number = iteration.to_le_bytes(),
        None => {
            for (at, byte) in part.iter_mut().enumerate().take(8_usize.saturating_sub(offset)) {
                *byte = (iteration >> (8 * (offset + at))) as u8;
            }
        }
    }
}

/// Whether the part at `offset` of a received message is that of the message of `iteration`.
#[inline(always)]
fn verify(part: &[u8], offset: usize, iteration: u64, check: Check, whole: bool) -> Result<(), Broken> {
    if check == Check::Nothing {
        return Ok(());
    }
    let numbered = 8_usize.saturating_sub(offset).min(part.len());
    let right = match part.first_chunk::<8>().filter(|_| offset == 0) {
        Some(found) => u64::from_le_bytes(*found) == iteration,
        None => part[..numbered]
            .iter()
            .enumerate()
            .all(|(at, byte)| *byte == (iteration >> (8 * (offset + at))) as u8),
    };
    if !right {
        return Err(Broken::Payload { iteration, at: offset });
    }
    if check == Check::Everything {
        return verify_all(part, offset, iteration);
    }
    // Without a way out in the middle, so that it reads as fast as memory gives.
    if whole && part[numbered..].iter().fold(0, |differs, byte| differs | (byte ^ iteration as u8)) != 0 {
        return Err(Broken::Payload { iteration, at: offset + numbered });
    }
    Ok(())
}

#[cold]
fn verify_all(part: &[u8], offset: usize, iteration: u64) -> Result<(), Broken> {
    let bytes = part.iter().zip(offset..).skip_while(|(_, at)| *at < 8);
    let wrong = bytes.into_iter().find(|(byte, at)| **byte != expected(iteration, *at));
    wrong.map_or(Ok(()), |(_, at)| Err(Broken::Payload { iteration, at }))
}

/// The number that `message` carries, at least `least`: as much of it as there is room for, the rest as small as can be.
fn number_from(message: &[u8], least: u64) -> u64 {
    let mut bytes = [0; 8];
    let kept = message.len().min(bytes.len());
    bytes[..kept].copy_from_slice(&message[..kept]);
    let mask = u64::MAX.checked_shr(64 - 8 * kept as u32).unwrap_or(0);
    least + (u64::from_le_bytes(bytes).wrapping_sub(least) & mask)
}

/// The low byte of a product with the golden ratio: neighbours in place and in turn differ.
fn expected(iteration: u64, at: usize) -> u8 {
    ((iteration.wrapping_add(at as u64)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// What is noted of single calls. (Not a closure around the call: the compiler may leave that out of line.)
pub(crate) trait Meter {
    /// What is known when a call begins.
    type Start;
    /// A call begins.
    fn start(&self) -> Self::Start;
    /// The call that began at `start` has returned `bytes`.
    fn end(&mut self, start: Self::Start, bytes: usize);
}

/// Notes nothing.
pub(crate) struct Unmetered;

impl Meter for Unmetered {
    type Start = ();

    #[inline(always)]
    fn start(&self) {}

    #[inline(always)]
    fn end(&mut self, _: (), _: usize) {}
}

/// Notes the time and the bytes of each call, in memory that was set aside before the iterations.
pub(crate) struct CallLog {
    clock: Clock,
    pub(crate) count: u64,
    pub(crate) calls: Vec<(u64, usize)>,
}

impl CallLog {
    /// How many calls are noted one by one; those beyond are only counted.
    pub(crate) const CAPACITY: usize = 1 << 15;

    pub(crate) fn new(clock: Clock) -> Self {
        let mut calls = vec![(1, 1); Self::CAPACITY];
        calls.clear();
        Self { clock, count: 0, calls }
    }
}

impl Meter for CallLog {
    type Start = Stamp;

    #[inline(always)]
    fn start(&self) -> Stamp {
        self.clock.now()
    }

    #[inline(always)]
    fn end(&mut self, start: Stamp, bytes: usize) {
        let end = self.clock.now();
        self.count += 1;
        if self.calls.len() < Self::CAPACITY {
            self.calls.push((Clock::ticks_between(start, end), bytes));
        }
    }
}

/// Who is told when an iteration of client's begins and ends.
pub(crate) trait Watch {
    /// The first iteration may begin.
    fn start(&mut self) {}
    /// The next iteration may begin when this returns.
    fn before(&mut self);
    /// The iteration is over.
    fn after(&mut self);
    /// Where the iterations are logged, if they are: what several peers do is compiled for that alone.
    fn log(&mut self) -> Option<&mut IterationLog> {
        None
    }
}

/// Nobody.
pub(crate) struct Unwatched;

impl Watch for Unwatched {
    #[inline(always)]
    fn before(&mut self) {}

    #[inline(always)]
    fn after(&mut self) {}
}

/// Who is told of the steps of messages, one message after the other.
pub(crate) trait StepMeter: Steps {
    /// A message begins.
    fn begin(&mut self);
}

impl StepMeter for Unnoted {
    #[inline(always)]
    fn begin(&mut self) {}
}

/// Notes the time of each step, in memory that was set aside before the iterations.
pub(crate) struct StepLog {
    clock: Clock,
    last: Stamp,
    steps: Vec<(&'static str, u64)>,
}

impl StepLog {
    /// How many steps are noted; those beyond are not.
    const CAPACITY: usize = 1 << 16;

    pub(crate) fn new(clock: Clock) -> Self {
        let mut steps = vec![("", 1); Self::CAPACITY];
        steps.clear();
        Self { clock, last: clock.now(), steps }
    }

    /// The steps by name, in the order in which they first came.
    pub(crate) fn by_name(&self) -> Vec<StepSample> {
        let mut times: Vec<(&str, Histogram)> = Vec::new();
        for (name, ticks) in &self.steps {
            let at = times.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                times.push((name, Histogram::new()));
                times.len() - 1
            });
            times[at].1.record(self.clock.ns(*ticks) as u64);
        }
        times
            .into_iter()
            .map(|(name, time)| StepSample { name: name.to_owned(), time: time.encode() })
            .collect()
    }
}

impl Steps for StepLog {
    #[inline(always)]
    fn done(&mut self, name: &'static str) {
        let now = self.clock.now();
        if self.steps.len() < Self::CAPACITY {
            self.steps.push((name, Clock::ticks_between(self.last, now)));
        }
        self.last = now;
    }
}

impl StepMeter for StepLog {
    #[inline(always)]
    fn begin(&mut self) {
        self.last = self.clock.now();
    }
}

/// How many bytes server answers to a message of `size_bytes`.
pub(crate) fn answer_bytes(workload: Workload, size_bytes: usize) -> usize {
    match workload {
        Workload::Latency | Workload::Connect => size_bytes,
        Workload::Transfer
        | Workload::Throughput
        | Workload::Session(_)
        | Workload::Cost
        | Workload::Accuracy => 1,
    }
}

impl<E: Endpoint> Station<E> {
    /// Makes the message of `iteration` and hands it over.
    #[inline(always)]
    fn send(&mut self, iteration: u64, meter: &mut impl Meter) -> Result<(), Broken> {
        let Range { mut start, end } = self.outgoing;
        if E::IN_PLACE && self.in_place.outgoing {
            let size_bytes = end - start;
            return self.send_in_place(size_bytes, iteration, meter);
        }
        make(&mut self.memory[start..end], 0, iteration, self.check, false);
        // An empty message is sent, too: once, and then there is nothing left of it.
        loop {
            let began = meter.start();
            let bytes = self.end.send(&self.memory[start..end]);
            let bytes = bytes.map_err(|errno| Broken::Call { name: "send", errno })?;
            meter.end(began, bytes);
            start += bytes;
            if start >= end {
                return Ok(());
            }
        }
    }

    #[inline(always)]
    fn send_in_place(
        &mut self,
        size_bytes: usize,
        iteration: u64,
        meter: &mut impl Meter,
    ) -> Result<(), Broken> {
        let mut sent = 0;
        while sent < size_bytes {
            let began = meter.start();
            let part = self.end.reserve(size_bytes - sent);
            let part = part.map_err(|errno| Broken::Call { name: "reserve", errno })?;
            let bytes = part.len();
            make(part, sent, iteration, self.check, self.in_place.touched);
            self.end.commit(bytes).map_err(|errno| Broken::Call { name: "hand over", errno })?;
            meter.end(began, bytes);
            sent += bytes;
        }
        Ok(())
    }

    /// Receives the message of `iteration` and verifies that it is that.
    #[inline(always)]
    fn receive(&mut self, iteration: u64, meter: &mut impl Meter) -> Result<(), Broken> {
        let Range { mut start, end } = self.incoming;
        if E::IN_PLACE && self.in_place.incoming {
            let size_bytes = end - start;
            return self.receive_in_place(size_bytes, iteration, meter);
        }
        loop {
            let began = meter.start();
            let bytes = self.end.receive(&mut self.memory[start..self.room_end]);
            let bytes = bytes.map_err(|errno| Broken::Call { name: "receive", errno })?;
            meter.end(began, bytes);
            start += bytes;
            if start >= end {
                break;
            }
        }
        self.verify_received(start, iteration)
    }

    /// Verifies that what was received, up to `received_end`, is the message of `iteration`.
    #[inline(always)]
    fn verify_received(&self, received_end: usize, iteration: u64) -> Result<(), Broken> {
        let Range { start, end } = self.incoming;
        if received_end > end {
            return Err(Broken::Payload { iteration, at: end - start });
        }
        verify(&self.memory[start..end], 0, iteration, self.check, false)
    }

    #[inline(always)]
    fn receive_in_place(
        &mut self,
        size_bytes: usize,
        iteration: u64,
        meter: &mut impl Meter,
    ) -> Result<(), Broken> {
        let mut received = 0;
        while received < size_bytes {
            let began = meter.start();
            let part = self.end.peek(size_bytes - received);
            let part = part.map_err(|errno| Broken::Call { name: "peek", errno })?;
            let bytes = part.len();
            verify(part, received, iteration, self.check, self.in_place.touched)?;
            self.end.release(bytes).map_err(|errno| Broken::Call { name: "release", errno })?;
            meter.end(began, bytes);
            received += bytes;
        }
        Ok(())
    }

    /// Client's iterations of `latency`, `transfer` and `connect`: a message, and the answer to it.
    #[inline(never)]
    pub(crate) fn ask(&mut self, iterations: Range<u64>, watch: &mut impl Watch) -> Result<(), Broken> {
        for iteration in iterations {
            watch.before();
            self.send(iteration, &mut Unmetered)?;
            self.receive(iteration, &mut Unmetered)?;
            watch.after();
        }
        Ok(())
    }

    /// Server's iterations of `latency`, `transfer` and `connect`. `between` runs after each message and before the answer to it.
    #[inline(never)]
    pub(crate) fn answer(
        &mut self,
        iterations: Range<u64>,
        between: &mut (impl FnMut() + ?Sized),
    ) -> Result<(), Broken> {
        for iteration in iterations {
            self.receive(iteration, &mut Unmetered)?;
            between();
            self.send(iteration, &mut Unmetered)?;
        }
        Ok(())
    }

    /// Client's iterations of `throughput`: messages one after the other, then server's word that the last byte has arrived.
    #[inline(never)]
    pub(crate) fn stream(
        &mut self,
        iterations: Range<u64>,
        meter: &mut impl Meter,
        watch: &mut impl Watch,
    ) -> Result<(), Broken> {
        let end_of_iterations = iterations.end;
        for iteration in iterations {
            watch.before();
            self.send(iteration, meter)?;
            watch.after();
        }
        self.receive(end_of_iterations, &mut Unmetered)
    }

    /// Server's iterations of `throughput`. `between` runs after each message, and so after the last before the answer.
    #[inline(never)]
    pub(crate) fn drain(
        &mut self,
        iterations: Range<u64>,
        meter: &mut impl Meter,
        between: &mut (impl FnMut() + ?Sized),
    ) -> Result<(), Broken> {
        let end_of_iterations = iterations.end;
        if E::LOSES {
            self.take_what_comes(iterations, meter, between)?;
        } else {
            for iteration in iterations {
                self.receive(iteration, meter)?;
                between();
            }
        }
        self.send(end_of_iterations, &mut Unmetered)
    }

    /// The messages of a stream of which some may be lost, but none doubled, changed or overtaken.
    #[inline(always)]
    fn take_what_comes(
        &mut self,
        iterations: Range<u64>,
        meter: &mut impl Meter,
        between: &mut (impl FnMut() + ?Sized),
    ) -> Result<(), Broken> {
        let (mut next, mut came) = (iterations.start, 0);
        let all = iterations.end - iterations.start;
        while next < iterations.end {
            let began = meter.start();
            let start = self.incoming.start;
            let bytes = match self.end.receive(&mut self.memory[start..self.room_end]) {
                Err(Errno::NODATA) => break,
                answer => answer.map_err(|errno| Broken::Call { name: "receive", errno })?,
            };
            meter.end(began, bytes);
            // Empty messages have no numbers: what was lost of them is taken for the last ones.
            let iteration = number_from(&self.memory[self.incoming.clone()], next);
            if iteration >= iterations.end {
                return Err(Broken::Payload { iteration: next, at: 0 });
            }
            self.verify_received(start + bytes, iteration)?;
            between();
            (next, came) = (iteration + 1, came + 1);
        }
        self.lost = all - came;
        Ok(())
    }
}

/// Client's iterations of `latency` and `transfer` with several servers: a message to every one, and the answers of all.
#[inline(never)]
pub(crate) fn ask_all<E: Endpoint>(
    stations: &mut [Box<Station<E>>],
    iterations: Range<u64>,
    mut log: Option<&mut IterationLog>,
) -> Result<(), Broken> {
    for iteration in iterations {
        for station in stations.iter_mut() {
            station.send(iteration, &mut Unmetered)?;
        }
        for station in stations.iter_mut() {
            station.receive(iteration, &mut Unmetered)?;
        }
        if let Some(log) = &mut log {
            log.after();
        }
    }
    Ok(())
}

/// Client's iterations of `throughput` with several servers: each message to every one, then the word of all that the last byte
/// has arrived. A server that is slow holds the others up when its buffers are full, as it would any program's.
#[inline(never)]
pub(crate) fn stream_to_all<E: Endpoint>(
    stations: &mut [Box<Station<E>>],
    iterations: Range<u64>,
) -> Result<(), Broken> {
    let end_of_iterations = iterations.end;
    for iteration in iterations {
        for station in stations.iter_mut() {
            station.send(iteration, &mut Unmetered)?;
        }
    }
    stations.iter_mut().try_for_each(|station| station.receive(end_of_iterations, &mut Unmetered))
}

impl<E: Endpoint> Station<E> {
    /// Server's side of one message of one of several clients: the message of `iteration`, and the answer numbered `answer`, if
    /// one is due.
    #[inline(never)]
    pub(crate) fn serve(&mut self, iteration: u64, answer: Option<u64>) -> Result<(), Broken> {
        self.receive(iteration, &mut Unmetered)?;
        answer.map_or(Ok(()), |number| self.send(number, &mut Unmetered))
    }
}

impl<E: Endpoint> Station<E> {
    /// Client's iterations of `session`: its messages, each with `fds`, and the answer to the last.
    #[inline(never)]
    pub(crate) fn set_up(
        &mut self,
        iterations: Range<u64>,
        Session { messages, .. }: Session,
        fds: &[BorrowedFd<'_>],
        steps: &mut impl StepMeter,
        watch: &mut impl Watch,
    ) -> Result<(), Broken> {
        if !E::PASSES_FDS {
            return Err(Broken::Call { name: "send", errno: Errno::OPNOTSUPP });
        }
        for iteration in iterations {
            watch.before();
            for message in 0..u64::from(messages) {
                self.send_with(iteration * u64::from(messages) + message, fds, steps)?;
            }
            self.receive(iteration, &mut Unmetered)?;
            watch.after();
        }
        Ok(())
    }

    /// Server's iterations of `session`. `between` runs before each answer.
    #[inline(never)]
    pub(crate) fn be_set_up(
        &mut self,
        iterations: Range<u64>,
        Session { messages, fds }: Session,
        steps: &mut impl StepMeter,
        between: &mut (impl FnMut() + ?Sized),
    ) -> Result<(), Broken> {
        if !E::PASSES_FDS {
            return Err(Broken::Call { name: "receive", errno: Errno::OPNOTSUPP });
        }
        for iteration in iterations {
            for message in 0..u64::from(messages) {
                self.receive_with(iteration * u64::from(messages) + message, fds as usize, steps)?;
            }
            between();
            self.send(iteration, &mut Unmetered)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn send_with(
        &mut self,
        number: u64,
        mut fds: &[BorrowedFd<'_>],
        steps: &mut impl StepMeter,
    ) -> Result<(), Broken> {
        let Range { mut start, end } = self.outgoing;
        make(&mut self.memory[start..end], 0, number, self.check, false);
        steps.begin();
        loop {
            let bytes = self.end.send_with(&self.memory[start..end], fds, steps);
            start += bytes.map_err(|errno| Broken::Call { name: "send", errno })?;
            if start >= end {
                return Ok(());
            }
            // In a stream the descriptors go with the first bytes.
            fds = &[];
        }
    }

    #[inline(always)]
    fn receive_with(&mut self, number: u64, fds: usize, steps: &mut impl StepMeter) -> Result<(), Broken> {
        let Range { mut start, end } = self.incoming;
        let mut came = 0;
        steps.begin();
        loop {
            let arrived = self.end.receive_with(&mut self.memory[start..self.room_end], steps);
            let Arrived { bytes, fds } = arrived.map_err(|errno| Broken::Call { name: "receive", errno })?;
            start += bytes;
            came += fds;
            if start >= end {
                break;
            }
        }
        if came != fds {
            return Err(Broken::Descriptors { iteration: number, came });
        }
        self.verify_received(start, number)
    }
}

/// A sample of `iterations` that took `elapsed_ns`. What else there is to say is for the caller.
pub(crate) fn sample(iterations: u64, elapsed_ns: f64, client: Usage, server: Option<Usage>) -> Sample {
    Sample {
        round: 0,
        started_ns: 0,
        iterations,
        trial_iterations: iterations,
        elapsed_ns,
        floor_ns: None,
        each: None,
        client,
        server,
        calls: None,
        steps: None,
        timer: None,
        schedule: None,
        shares: None,
        lost: None,
    }
}

/// What this thread used between two readings of its accounting.
pub(crate) fn usage_between(start: sys::usage::ThreadUsage, end: sys::usage::ThreadUsage) -> Usage {
    Usage {
        cpu_ns: end.cpu_ns.saturating_sub(start.cpu_ns),
        // The split of user and system is adjusted by the kernel as it learns and may step back a little.
        user_ns: end.user_ns.saturating_sub(start.user_ns),
        system_ns: end.system_ns.saturating_sub(start.system_ns),
        voluntary_switches: end.voluntary_switches - start.voluntary_switches,
        involuntary_switches: end.involuntary_switches - start.involuntary_switches,
        minor_faults: end.minor_faults - start.minor_faults,
        major_faults: end.major_faults - start.major_faults,
    }
}

/// The readings of the `each` part: one for every iteration, in memory set aside before the iterations.
pub(crate) struct IterationLog {
    clock: Clock,
    pub(crate) start: Stamp,
    last: Stamp,
    pub(crate) ticks: Vec<u64>,
}

impl IterationLog {
    /// How many iterations an `each` part may have.
    pub(crate) const CAPACITY: u64 = 1 << 15;

    pub(crate) fn new(clock: Clock, iterations: u64) -> Self {
        let mut ticks = vec![1; iterations as usize];
        ticks.clear();
        let now = clock.now();
        Self { clock, start: now, last: now, ticks }
    }

    /// When each iteration ended.
    pub(crate) fn ends(&self) -> impl Iterator<Item = Stamp> {
        self.ticks.iter().scan(self.start, |end, ticks| {
            *end = end.after(*ticks);
            Some(*end)
        })
    }
}

impl Watch for IterationLog {
    fn start(&mut self) {
        self.start = self.clock.now();
        self.last = self.start;
    }

    #[inline(always)]
    fn before(&mut self) {}

    #[inline(always)]
    fn after(&mut self) {
        let now = self.clock.now();
        self.ticks.push(Clock::ticks_between(self.last, now));
        self.last = now;
    }

    fn log(&mut self) -> Option<&mut IterationLog> {
        Some(self)
    }
}
