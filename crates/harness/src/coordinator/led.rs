//! A trial of which one endpoint, or both, are drivers: the coordinator leads both from phase to phase, finds out how many iterations make a slice,
//! and makes the sample of what they report, which it holds against its own clock.

use super::deadlines::{Deadlines, believable};
use super::driver::{DriverSet, checked, descriptors, numbers, start};
use super::own_child::{OwnChild, unless_closed};
use super::run_directory::RunDirectory;
use super::schedule::Trial;
use super::speed_beside::SpeedNow;
use super::trial_error::TrialError;
use crate::clock::{Clock, Timer};
use crate::endpoint::meters::each;
use crate::endpoint::phase_iterations::{GROWTH, MOST_ITERATIONS, PhaseIterations};
use crate::host::steal::stolen_ns;
use crate::protocol::channel::{Channel, wait_any};
use crate::protocol::hello::DriverHello;
use crate::protocol::led::{ALIVE, EACH, FromLed, LedDone, LedOrders, LedPhase, ToLed};
use crate::protocol::orders::{NetworkOrders, Singly, Sizing, SliceOrders};
use crate::protocol::report::SliceReport;
use exchange::{memory_of_tree_bytes, of_tree};
use mechanisms::{NetworkToken, registry};
use model::observation::{CpuTrace, EventSet, RecordingWay};
use model::record::{Sample, Usage};
use model::units::format_ns;
use model::{Case, DriverName, EndpointRole, HostAddress, Pace, Peers, Placement, Size, Workload};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rustix::process::Pid;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sys::{Errno, Failure};

/// What a piece of the warm-up takes at least: a compiler that works beside the program takes some tens of milliseconds for its hot loops.
const LEAST_PIECE_NS: f64 = 25e6;
/// A program is warm when so many pieces in a row, and half of all, were none faster than the fastest before them by this factor: until then its
/// compiler, its caches and its collector change what is measured. Each of a compiler's steps takes longer than those before: V8 needs a second.
const STEADY_PIECES: u32 = 4;
const FASTER: f64 = 0.97;
/// A warm-up ends after so many pieces in any case.
const MOST_PIECES: u32 = 200;
/// The fewest iterations of the first piece of a warm-up.
const FIRST_ITERATIONS: u64 = 4;
/// How many iterations at most are timed one by one in a phase: their times come in one message.
const MOST_SINGLY: u64 = 1 << 16;
/// The longest that a failed endpoint's peer may take to say why, which may be the reason of both.
const GRACE: Duration = Duration::from_millis(300);
/// How many things an endpoint may have said that are not due.
const MOST_WAITING: usize = 4;
/// What an endpoint's failure says where it is a result of its peer's: of ipcmark's own, of the kernel's words, and of languages'.
const OF_A_PEER_GONE: [&str; 4] = ["closed", "Broken pipe", "reset by peer", "EOF"];
/// How long endpoints may take to end when nothing is left to do.
const END_WITHIN: Duration = Duration::from_secs(2);

/// One of the two endpoints.
struct LedEndpoint {
    control: Channel,
    child: OwnChild,
    /// What it is, in messages.
    name: String,
    hello: Option<DriverHello>,
    /// What it said while the other was waited for.
    said: VecDeque<FromLed>,
}

impl LedEndpoint {
    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }
}

/// What both endpoints did in a phase.
struct Measured {
    /// Of the timed messages, as the endpoints say.
    elapsed_ns: f64,
    /// The same as this side saw it, with what it waited for the endpoints beside.
    seen_ns: f64,
    client: LedDone,
    /// What their processes used in the timed messages' part of the phase.
    usage: [Usage; 2],
}

/// What all trials of a run have in common.
#[derive(Clone, Copy)]
pub(super) struct LedBounds<'a> {
    /// Where names in the file system go.
    pub(super) directory: &'a RunDirectory,
    /// Whether every byte is checked in the timed messages too.
    pub(super) check: bool,
    /// Set from outside to end the run.
    pub(super) interrupted: &'a AtomicBool,
    /// How long an endpoint may take for what is due, beyond the messages of a phase.
    pub(super) timeout: Duration,
    /// The drivers that there are.
    pub(super) drivers: Option<&'a DriverSet>,
}

/// A trial whose endpoints are led.
pub(super) struct LedTrial<'a> {
    run: LedBounds<'a>,
    case: Case,
    /// The client, and the server.
    endpoints: [LedEndpoint; 2],
    /// What an iteration took when it was last timed; absent until the trial is warm.
    iteration_ns: Option<f64>,
    iterations_so_far: u64,
    /// What the timed messages of each slice took, as the endpoints say, and as this side saw it, in nanoseconds.
    slices_ns: Vec<[f64; 2]>,
    /// What the client shows to the server of a network.
    token: NetworkToken,
    random: SmallRng,
}

impl<'a> LedTrial<'a> {
    /// Starts the endpoints of `case`, and has them connect.
    pub(super) fn new(run: LedBounds<'a>, case: &Case, number: u64) -> Result<Self, TrialError> {
        refuse_what_is_not_led(case)?;
        let held = descriptors(&case.spec.name)?;
        let numbers = numbers(held.as_ref().map_or(0, |[client, _]| client.len()));
        let [of_client, of_server] = held.unwrap_or_default();
        let started = |role, fds| -> Result<LedEndpoint, TrialError> {
            let name = match role {
                EndpointRole::Client => &case.spec.drivers.client,
                EndpointRole::Server => &case.spec.drivers.server,
            };
            let driver = name
                .as_ref()
                .map(|name| run.drivers.and_then(|drivers| drivers.get(name)).ok_or_else(|| missing(name)))
                .transpose()?;
            let (control, child) = start(driver, role, case.cpus, fds, Stdio::inherit())?;
            let name = name.as_ref().map_or("ipcmark", DriverName::as_str);
            let name = format!("the {} {name}", role.name());
            Ok(LedEndpoint { control, child, name, hello: None, said: VecDeque::new() })
        };
        let endpoints =
            [started(EndpointRole::Client, of_client)?, started(EndpointRole::Server, of_server)?];
        let random = SmallRng::seed_from_u64(number);
        let mut trial = Self {
            run,
            case: case.clone(),
            endpoints,
            iteration_ns: None,
            iterations_so_far: 0,
            slices_ns: Vec::new(),
            token: rand::random(),
            random,
        };
        trial.connect(&numbers, number)?;
        Ok(trial)
    }

    fn connect(&mut self, numbers: &[i32], number: u64) -> Result<(), TrialError> {
        for role in EndpointRole::ALL {
            let answer = self.next_of(role, "hello", self.run.timeout)?;
            let hello = checked(answer).map_err(TrialError::Refused)?;
            if hello.capabilities.iter().any(|name| name == ALIVE)
                && let Some(heartbeat) = self.run.drivers.and_then(|drivers| drivers.heartbeat.as_ref())
            {
                heartbeat.add(&self.endpoint(role).control);
            }
            self.endpoint(role).hello = Some(hello);
        }
        let orders = |role| self.orders(role, numbers, number);
        let (client, server) = (orders(EndpointRole::Client), orders(EndpointRole::Server));
        self.say(EndpointRole::Server, &ToLed::Orders(Box::new(server)))?;
        self.say(EndpointRole::Client, &ToLed::Orders(Box::new(client)))?;
        if numbers.is_empty() {
            match self.next_of(EndpointRole::Server, "its ticket", self.run.timeout)? {
                FromLed::Ticket(ticket) => self.say(EndpointRole::Client, &ToLed::Ticket(ticket))?,
                other => return Err(self.unexpected(EndpointRole::Server, &other, "its ticket")),
            }
        }
        for role in EndpointRole::ALL {
            match self.next_of(role, "that it is connected", self.run.timeout)? {
                FromLed::Connected => {}
                other => return Err(self.unexpected(role, &other, "that it is connected")),
            }
        }
        Ok(())
    }

    fn orders(&self, role: EndpointRole, descriptors: &[i32], number: u64) -> LedOrders {
        let leaves = registry::card(&self.case.spec.name).is_some_and(|card| card.reach.leaves_the_machine());
        let server = HostAddress::Ip(Ipv4Addr::LOCALHOST.into());
        LedOrders {
            role,
            mechanism: self.case.spec.name.clone(),
            parameters: self.case.spec.params.matched(self.size()),
            workload: self.case.workload,
            size_bytes: self.size().0,
            descriptors: descriptors.to_vec(),
            directory: self.run.directory.path().to_owned(),
            number,
            network: leaves.then_some(NetworkOrders { server, token: self.token }),
        }
    }

    fn size(&self) -> Size {
        self.case.size_bytes.unwrap_or(Size(1))
    }

    fn endpoint(&mut self, role: EndpointRole) -> &mut LedEndpoint {
        &mut self.endpoints[role as usize]
    }

    fn say(&mut self, role: EndpointRole, message: &ToLed) -> Result<(), TrialError> {
        // One that is gone is found when it is listened to.
        Ok(unless_closed(self.endpoint(role).control.send(message, &[]))?)
    }

    /// What the endpoint `role` says next, which should be `what`, within `limit`. The other one is listened to meanwhile: what it says is kept, and
    /// its failure is the trial's.
    fn next_of(&mut self, role: EndpointRole, what: &str, limit: Duration) -> Result<FromLed, TrialError> {
        let mut deadlines = Deadlines::new(limit, self.endpoints.len());
        loop {
            if let Some(message) = self.endpoint(role).said.pop_front() {
                return Ok(message);
            }
            if self.run.interrupted.load(Ordering::Relaxed) {
                return Err(TrialError::Interrupted);
            }
            let channels = self.endpoints.each_ref().map(|endpoint| &endpoint.control);
            let ready = match wait_any(&channels, deadlines.left()) {
                Ok(Some(ready)) => ready,
                Ok(None) => return Err(self.silent(role, what, deadlines.waited())),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(Failure::from_errno("poll", "control channels", errno).into()),
            };
            let endpoint = &mut self.endpoints[ready];
            match FromLed::heard(&endpoint.control) {
                Ok(FromLed::Failed(why)) => return Err(self.failed(ready, why)),
                Ok(FromLed::Pong) => {}
                Ok(message) => endpoint.said.push_back(message),
                Err(failure) => {
                    let why = self.gone(ready, &failure);
                    return Err(self.failed(ready, why));
                }
            }
            if !deadlines.hears() || self.endpoints[ready].said.len() > MOST_WAITING {
                return Err(self.failed(ready, "it says one thing after the other".to_owned()));
            }
        }
    }

    /// Why nothing but `failure` came from the endpoint `at`.
    fn gone(&mut self, at: usize, failure: &Failure) -> String {
        let child = &self.endpoints[at].child;
        child.wait_within(GRACE);
        match child.ended() {
            Ok(Some(status)) => {
                format!("it ended ({status}) before it said what was due; see its standard error")
            }
            _ => format!("what it says cannot be read: {}", failure.answer),
        }
    }

    /// The failure of the endpoint `at`, with that of the other if that has one, too: the cause first. An endpoint whose peer is gone knows no more
    /// than that.
    fn failed(&mut self, at: usize, why: String) -> TrialError {
        let mut all = vec![format!("{}: {why}", self.endpoints[at].name)];
        let other = &self.endpoints[1 - at];
        if let Ok(Some(_)) = wait_any(&[&other.control], GRACE)
            && let Ok(FromLed::Failed(why)) = FromLed::heard(&other.control)
        {
            all.push(format!("{}: {why}", other.name));
        }
        let is_result = |why: &String| OF_A_PEER_GONE.iter().any(|words| why.contains(words));
        all.sort_by_key(is_result);
        let next = "see docs/reference/protocol.md, and 'ipcmark endpoint check'";
        TrialError::Coordinator(Failure::new("lead", "a trial", all.join("; "), next))
    }

    /// The failure of the endpoint `role` that did not say `what`. Where it is ipcmark's own, the other one is looked at first.
    fn silent(&mut self, role: EndpointRole, what: &str, waited: Duration) -> TrialError {
        let waited = waited.as_secs_f64();
        let why = match self.is_own(role) {
            false => format!("it did not say {what} within {waited:.1} s, and was killed"),
            true => {
                let other = &self.endpoints[1 - role as usize].name;
                format!(
                    "it did not say {what} within {waited:.1} s, and was killed: it waited for a message of {other}"
                )
            }
        };
        self.failed(role as usize, why)
    }

    /// Whether the endpoint `role` is of this program.
    fn is_own(&self, role: EndpointRole) -> bool {
        let drivers = &self.case.spec.drivers;
        match role {
            EndpointRole::Client => drivers.client.is_none(),
            EndpointRole::Server => drivers.server.is_none(),
        }
    }

    fn unexpected(&mut self, role: EndpointRole, found: &FromLed, what: &str) -> TrialError {
        self.failed(role as usize, format!("it says {} instead of {what}", found.as_said()))
    }

    /// Leads both through a phase of so many timed iterations, which should take `expected`.
    fn phase(&mut self, iterations: u64, check: bool, each: bool) -> Result<Measured, TrialError> {
        let check = check || self.run.check;
        let phase = LedPhase::drawn(self.case.workload, iterations, check, each, &mut self.random);
        let (count, timed) = (phase.count(), phase.timed());
        self.iterations_so_far += count;
        let expected = Duration::from_nanos((self.iteration_ns.unwrap_or(0.0) * count as f64) as u64);
        let limit = self.run.timeout.saturating_add(expected.saturating_mul(GENEROSITY));
        let before = self.usage();
        self.say(EndpointRole::Server, &ToLed::Phase(phase.clone()))?;
        match self.next_of(EndpointRole::Server, "that it is ready", self.run.timeout)? {
            FromLed::Ready => {}
            other => return Err(self.unexpected(EndpointRole::Server, &other, "that it is ready")),
        }
        let timer = Timer::start();
        self.say(EndpointRole::Client, &ToLed::Phase(phase))?;
        let client = self.done(EndpointRole::Client, limit)?;
        let server = self.done(EndpointRole::Server, limit)?;
        let within = timer.elapsed();
        let after = self.usage();
        // When the last timed message of a stream came, the server alone knows.
        let (role, elapsed_ns) = match self.case.workload {
            Workload::Throughput => (EndpointRole::Server, server.elapsed_ns),
            _ => (EndpointRole::Client, client.elapsed_ns),
        };
        let report = SliceReport::from_sample(Sample::new(timed, elapsed_ns, Usage::default(), None));
        if believable(&report, within).is_err() {
            let what = format!("its done says elapsed_ns {elapsed_ns} for {timed} messages");
            let seen = format!("the whole phase took {} ns", within.as_nanos());
            let why = format!("{what}, which is impossible, as {seen}; is it in nanoseconds?");
            return Err(self.failed(role as usize, why));
        }
        let share = timed as f64 / count as f64;
        let seen_ns = within.as_nanos() as f64 * share;
        let used = |role: usize| used(&before[role], &after[role], share);
        Ok(Measured { elapsed_ns, seen_ns, client, usage: [used(0), used(1)] })
    }

    fn done(&mut self, role: EndpointRole, limit: Duration) -> Result<LedDone, TrialError> {
        match self.next_of(role, "that the phase is done", limit)? {
            FromLed::Done(done) => match done.impossible_time() {
                None => Ok(done),
                Some(why) => Err(self.failed(role as usize, why)),
            },
            other => Err(self.unexpected(role, &other, "that the phase is done")),
        }
    }

    /// What the processes of both have used so far.
    fn usage(&self) -> [Usage; 2] {
        self.endpoints.each_ref().map(|endpoint| endpoint.pid().map(of_tree).unwrap_or_default())
    }

    /// The memory that the processes of both have now.
    fn memory_bytes(&self) -> Option<u64> {
        self.endpoints.iter().map(|endpoint| endpoint.pid().and_then(memory_of_tree_bytes)).sum()
    }

    /// How many iterations the phases of a slice have. The first slice of a trial begins with a warm-up.
    fn iterations(&mut self, orders: SliceOrders) -> Result<PhaseIterations, TrialError> {
        match orders.size {
            Sizing::Iterations(iterations) => {
                if self.iteration_ns.is_none() {
                    self.time(iterations, true)?;
                }
                Ok(PhaseIterations { together: iterations, singly: iterations.min(MOST_SINGLY) })
            }
            Sizing::Slice { slice_ns, .. } => {
                let iteration_ns = match self.iteration_ns {
                    Some(iteration_ns) => iteration_ns,
                    None => self.warm_up(slice_ns as f64)?,
                };
                let filling =
                    PhaseIterations::filling(slice_ns, iteration_ns, Pace::BackToBack, orders.singly);
                Ok(PhaseIterations { singly: filling.singly.min(MOST_SINGLY), ..filling })
            }
        }
    }

    /// Has both work until they get no faster. The first piece is checked byte by byte. Returns what an iteration takes then.
    fn warm_up(&mut self, slice_ns: f64) -> Result<f64, TrialError> {
        let piece_ns = slice_ns.max(LEAST_PIECE_NS);
        let (mut iterations, mut is_long) = (FIRST_ITERATIONS, false);
        // Short pieces say little of what an iteration takes, and grow.
        while !is_long {
            let iteration_ns = self.time(iterations, true)?;
            is_long = iteration_ns * iterations as f64 >= piece_ns / 2.0 || iterations == MOST_ITERATIONS;
            let fitting = (piece_ns / iteration_ns) as u64;
            iterations =
                fitting.clamp(FIRST_ITERATIONS, iterations.saturating_mul(GROWTH)).min(MOST_ITERATIONS);
        }
        let (mut fastest_ns, mut steady) = (f64::INFINITY, 0);
        for pieces in 1..=MOST_PIECES {
            let iteration_ns = self.time(iterations, false)?;
            steady = if iteration_ns < fastest_ns * FASTER { 0 } else { steady + 1 };
            fastest_ns = fastest_ns.min(iteration_ns);
            // What waited in buffers when the clock started makes a piece look short: no further piece is many times as long.
            let most = iterations.saturating_mul(GROWTH).min(MOST_ITERATIONS);
            iterations = ((piece_ns / iteration_ns) as u64).clamp(1, most);
            if steady >= STEADY_PIECES.max(pieces / 2) {
                break;
            }
        }
        Ok(self.iteration_ns.unwrap_or(fastest_ns))
    }

    /// What an iteration takes in a phase of so many.
    fn time(&mut self, iterations: u64, check: bool) -> Result<f64, TrialError> {
        let measured = self.phase(iterations, check, false)?;
        let iteration_ns = measured.elapsed_ns.max(1.0) / iterations as f64;
        self.iteration_ns = Some(iteration_ns);
        Ok(iteration_ns)
    }

    /// Refuses times that are a small part of what this side waited for the same messages, in every one of many long slices: what a busy host adds
    /// to a wait, it does not add to each.
    fn refuse_too_short_times(&mut self) -> Result<(), TrialError> {
        const MANY: usize = 10;
        const LONG_NS: f64 = 2e7;
        const LEAST_SHARE: f64 = 0.1;
        let is_short =
            |[claimed_ns, seen_ns]: &[f64; 2]| *seen_ns > LONG_NS && claimed_ns / seen_ns < LEAST_SHARE;
        if self.slices_ns.len() < MANY || !self.slices_ns.iter().all(is_short) {
            return Ok(());
        }
        let is_stream = self.case.workload == Workload::Throughput;
        let role = if is_stream { EndpointRole::Server } else { EndpointRole::Client };
        let [claimed, seen] = [0, 1].map(|at| format_ns(self.slices_ns.iter().map(|slice| slice[at]).sum()));
        let why = format!(
            "it says that its messages took {claimed}, and by the clock of the coordinator they took {seen}"
        );
        Err(self.failed(role as usize, why))
    }

    /// Whether the client times iterations one by one.
    fn times_each(&self) -> bool {
        let client = self.endpoints[0].hello.as_ref();
        self.case.workload != Workload::Throughput
            && client.is_some_and(|hello| hello.capabilities.iter().any(|name| name == EACH))
    }

    /// The phase in which each iteration is timed.
    fn singly(&mut self, iterations: u64) -> Result<Option<model::record::Each>, TrialError> {
        if !self.times_each() {
            return Ok(None);
        }
        let measured = self.phase(iterations, false, true)?;
        let each_ns = measured.client.each_ns;
        if each_ns.len() as u64 != iterations {
            let why = format!(
                "it was to time {iterations} iterations one by one, and says the times of {}",
                each_ns.len()
            );
            return Err(self.failed(EndpointRole::Client as usize, why));
        }
        Ok(Some(each(&Clock::raw(), &each_ns)))
    }
}

impl Trial for LedTrial<'_> {
    fn slice(&mut self, orders: SliceOrders) -> Result<SliceReport, TrialError> {
        let stolen = || self.case.cpus.and_then(stolen_ns);
        let stolen_before = stolen();
        let counts = self.iterations(orders)?;
        let (mut total, mut one_by_one, mut speed) = (None, None, None);
        let order: &[bool] = match orders.singly {
            Singly::First => &[false, true],
            Singly::Last => &[true, false],
            Singly::Omitted | Singly::Throughout => &[true],
        };
        for is_total in order {
            match is_total {
                true => {
                    let before = self.case.cpus.and_then(SpeedNow::read);
                    total = Some(self.phase(counts.together, false, false)?);
                    let after = self.case.cpus.and_then(SpeedNow::read);
                    speed = before.zip(after).map(|(before, after)| before.and(after));
                }
                false => one_by_one = self.singly(counts.singly)?,
            }
        }
        let Measured { elapsed_ns, seen_ns, usage: [client, server], .. } =
            total.ok_or(TrialError::NoSample)?;
        self.slices_ns.push([elapsed_ns, seen_ns]);
        self.refuse_too_short_times()?;
        self.iteration_ns = Some(elapsed_ns / counts.together as f64);
        let stolen_ns = stolen_before.zip(self.case.cpus.and_then(stolen_ns));
        let sample = Sample {
            each: one_by_one,
            speed,
            trial_iterations: std::mem::take(&mut self.iterations_so_far),
            stolen_ns: stolen_ns.map(|(before, after)| after.saturating_sub(before)),
            memory_bytes: self.memory_bytes(),
            ..Sample::new(counts.together, elapsed_ns, client, Some(server))
        };
        Ok(SliceReport::from_sample(sample))
    }

    fn traced_slice(
        &mut self,
        _: Sizing,
        _: &[EventSet],
        _: RecordingWay,
    ) -> Result<(SliceReport, CpuTrace), TrialError> {
        Err(TrialError::NotObservable(self.case.workload))
    }

    fn end(&mut self) -> Result<(), TrialError> {
        for role in EndpointRole::ALL {
            self.say(role, &ToLed::Goodbye)?;
        }
        // One that does not end is killed when the trial is dropped.
        for endpoint in &self.endpoints {
            endpoint.child.wait_within(END_WITHIN);
        }
        Ok(())
    }
}

/// How many times as long as expected a phase may take.
const GENEROSITY: u32 = 10;

/// What a process used in the timed part of a phase, which is that `share` of its messages.
fn used(before: &Usage, after: &Usage, share: f64) -> Usage {
    let part = |before: u64, after: u64| (after.saturating_sub(before) as f64 * share).round() as u64;
    Usage {
        cpu_ns: part(before.cpu_ns, after.cpu_ns),
        user_ns: part(before.user_ns, after.user_ns),
        system_ns: part(before.system_ns, after.system_ns),
        voluntary_switches: part(before.voluntary_switches, after.voluntary_switches),
        involuntary_switches: part(before.involuntary_switches, after.involuntary_switches),
        minor_faults: part(before.minor_faults, after.minor_faults),
        major_faults: part(before.major_faults, after.major_faults),
    }
}

/// Refuses what the core of the protocol has no words for.
fn refuse_what_is_not_led(case: &Case) -> Result<(), TrialError> {
    let what = match case {
        Case { peers, .. } if *peers != Peers::Pair => "several peers",
        Case { pace, .. } if *pace != Pace::BackToBack => "think times and rates",
        Case { inject: Some(_), .. } => "an injected delay",
        Case { placement: Placement::Remote, .. } => "endpoints on two hosts",
        Case { workload: Workload::Latency | Workload::Transfer | Workload::Throughput, .. } => return Ok(()),
        _ => "this workload",
    };
    let answer = format!("{what} cannot be asked of a driver");
    Err(Failure::new("lead", case.spec.to_string(), answer, "name the mechanism without a driver").into())
}

fn missing(name: &DriverName) -> TrialError {
    let next = format!("build it with 'ipcmark driver build {name}'");
    Failure::new("start", format!("the driver {name}"), "it is not known here", next).into()
}
