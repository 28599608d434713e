//! Trials of real endpoints: it starts the processes of one trial, has them measure slice by slice under a deadline, and ends
//! them.

use super::address_layout::AddressLayout;
use super::common_window::in_common_window;
use super::deadlines::{Deadlines, believable};
use super::driver::DriverSet;
use super::endpoint_process::{EndpointProcess, lost};
use super::endpoint_threads::endpoint_threads;
use super::led::{LedBounds, LedTrial};
use super::own_child::unless_closed;
use super::plain_times::PlainTimes;
use super::remote::Remote;
use super::run_directory::RunDirectory;
use super::schedule::{Trial, Trials};
use super::trial_error::TrialError;
use crate::clock::{Clock, Stamp, Timer};
use crate::host::limits;
use crate::host::steal::stolen_ns;
use crate::host::topology;
use crate::protocol::channel::{Channel, channel, wait_any};
use crate::protocol::error::{Blame, EndpointError};
use crate::protocol::message::{CoordinatorMessage, EndpointMessage};
use crate::protocol::orders::{NetworkOrders, Orders, Role, Singly, Sizing, SliceOrders};
use crate::protocol::report::{IterationTimes, SliceReport};
use crate::protocol::silence::ANSWER;
use mechanisms::registry;
use model::inject::InjectedAmount;
use model::observation::{CpuTrace, EventSet, ProbeRequest, RecordingWay, TracedClient};
use model::record::ClockSource;
use model::results::unsound;
use model::{Case, CpuPair, Endpoints, HostAddress, Peers, Placement, Reach, Sample};
use observe::cpu_trace::CpuRecorder;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sys::{Errno, Failure};

/// Trials of real endpoints, with what all trials of a run have in common.
#[derive(Debug)]
pub struct EndpointTrials<'a> {
    /// The clock that times iterations.
    pub clock: ClockSource,
    /// Where names in the file system go.
    pub directory: &'a RunDirectory,
    /// Whether every byte is checked in the timed iterations too.
    pub check: bool,
    /// Set from outside to end the run.
    pub interrupted: &'a AtomicBool,
    /// The time that a trial may take beyond the iterations that it was told to do.
    pub timeout: Duration,
    /// When the time of the run is up, of which no endpoint elsewhere that is silent takes much more.
    pub time: Option<(Timer, Duration)>,
    /// What cases take without the delay that is injected in them.
    pub plain_times: PlainTimes,
    /// The build that the endpoints are of, which [`super::other_build::check`] found to speak this protocol; this very program if absent.
    pub program: Option<&'a Path>,
    /// The sides that are reached by commands, for cases whose placement is remote.
    pub remote: Option<&'a Remote>,
    /// Where endpoints on this host have their memory.
    pub layout: AddressLayout,
    /// The drivers that cases may have, with what says to them that the coordinator is there.
    pub drivers: Option<&'a DriverSet>,
}

/// What one trial may need of descriptors in the coordinator: a channel to each endpoint, and links while it starts.
const FDS_A_TRIAL: usize = 4;
/// The descriptors that are left for everything else.
const FDS_BESIDE: usize = 64;
/// The most trials that are alive at once, so that endpoints take some hundred megabytes at most.
const MOST_ALIVE: usize = 256;
/// Likewise where endpoints are reached by commands: sshd takes ten connections that are not logged in yet, and as many sessions of one.
const MOST_ALIVE_REMOTE: usize = 8;

/// The processes of a trial of two endpoints, and those that are left for floors and everything else.
const PROCESSES_A_TRIAL: u64 = 2;
const PROCESSES_BESIDE: u64 = 8;
/// The memory of such a trial, at small sizes, and what is left for everything else.
const BYTES_A_TRIAL: u64 = 8 << 20;
const BYTES_BESIDE: u64 = 32 << 20;

/// How long it matters that processes have started or ended. The kernel has callbacks for them until RCU has seen every CPU several times,
/// and a CPU with callbacks keeps its timer tick while it is idle, so that it wakes sooner: on a virtual machine, a round trip
/// between two CPUs took 30 us in the first 40 ms after processes had started, and 40 us from 60 ms on, as in programs that run.
pub const DISTURBANCE: Duration = Duration::from_millis(60);

/// How many trials the limits of processes and memory leave room for. Asked once, before the first of them.
fn room_for_trials() -> usize {
    static ROOM: OnceLock<usize> = OnceLock::new();
    *ROOM.get_or_init(|| {
        let root = Path::new("/");
        let by_processes = limits::free_processes(root)
            .map(|free| free.saturating_sub(PROCESSES_BESIDE) / PROCESSES_A_TRIAL);
        let by_memory =
            limits::memory_bytes(root).map(|most| most.saturating_sub(BYTES_BESIDE) / BYTES_A_TRIAL);
        let least = by_processes.into_iter().chain(by_memory).min();
        least.map_or(usize::MAX, |trials| usize::try_from(trials).unwrap_or(usize::MAX))
    })
}

impl Trials for EndpointTrials<'_> {
    fn start<'s>(
        &'s self,
        case: &Case,
        number: u64,
        probe: Option<&ProbeRequest>,
    ) -> Result<Box<dyn Trial + 's>, TrialError> {
        if !case.spec.drivers.are_none() {
            return match probe {
                Some(_) => Err(TrialError::NotObservable(case.workload)),
                None => Ok(Box::new(LedTrial::new(self.led(), case, number)?)),
            };
        }
        let inject_ns = self.inject_ns(case)?;
        let orders = |role, pair| Orders {
            case: case.clone(),
            role,
            clock: self.clock,
            directory: self.directory.path().to_owned(),
            number,
            pair,
            inject_ns,
            check: self.check,
            probe: probe.cloned(),
            network: None,
        };
        let processes: Result<Vec<_>, Failure> = match self.remote {
            Some(remote) if case.placement == Placement::Remote => {
                let reach = registry::card(&case.spec.name).map_or(Reach::Network, |card| card.reach);
                // What meets by a name needs none.
                let none = HostAddress::Ip(Ipv4Addr::LOCALHOST.into());
                let server = *remote.server_addresses.for_reach(reach).as_ref().unwrap_or(&none);
                let network = Some(NetworkOrders { server, token: rand::random() });
                let both = [Role::Client, Role::Server].into_iter();
                both.map(|role| start_remote(remote, &Orders { network, ..orders(role, 0) })).collect()
            }
            _ => {
                let start = |(role, pair, links)| {
                    EndpointProcess::start(&orders(role, pair), links, self.program, self.layout)
                };
                processes(case)?.into_iter().map(start).collect()
            }
        };
        let processes = processes?;
        let mut trial =
            EndpointTrial { run: self, case: case.clone(), processes, is_warm: false, begun: Timer::start() };
        trial.converse(Until::Connected, self.limit(case))?;
        Ok(Box::new(trial))
    }

    fn first_number(&self) -> u64 {
        self.directory.first_number()
    }

    fn wait_out_disturbance(&self) {
        std::thread::sleep(DISTURBANCE);
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.remote.is_some_and(|remote| remote.lost().is_some())
    }

    fn most_alive(&self) -> usize {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let fds = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let most = if self.remote.is_some() { MOST_ALIVE_REMOTE } else { MOST_ALIVE };
        (fds.saturating_sub(FDS_BESIDE) / FDS_A_TRIAL).min(room_for_trials()).clamp(1, most)
    }
}

impl EndpointTrials<'_> {
    /// What trials have that are led.
    fn led(&self) -> LedBounds<'_> {
        let EndpointTrials { directory, check, interrupted, timeout, drivers, .. } = self;
        LedBounds { directory, check: *check, interrupted, timeout: *timeout, drivers: *drivers }
    }

    /// How long the endpoints of `case` may be silent. Over a network that loses everything they are for ever.
    fn limit(&self, case: &Case) -> Duration {
        let Some((timer, time)) = self.time.filter(|_| case.placement == Placement::Remote) else {
            return self.timeout;
        };
        self.timeout.min(timer.left_of(time).max(LEAST_LIMIT))
    }

    /// The delay of each iteration of `case`, in nanoseconds. One in percent is of what the case takes without, which is
    /// measured first.
    fn inject_ns(&self, case: &Case) -> Result<Option<f64>, TrialError> {
        /// What each of the trials without a delay measures.
        const SLICE_NS: u64 = 2_000_000;
        /// Trials of runs have lower numbers, so that no two have one number.
        const FIRST_NUMBER: u64 = 1 << 48;

        let plain = Case { inject: None, ..case.clone() };
        let measure = |hint_ns, number| -> Result<f64, TrialError> {
            let mut trial = self.start(&plain, FIRST_NUMBER + number, None)?;
            let size = Sizing::Slice { slice_ns: SLICE_NS, hint_ns };
            let report = trial.slice(SliceOrders { size, singly: Singly::Omitted })?;
            trial.end()?;
            Ok(report.sample.iteration_ns())
        };
        Ok(match case.inject.map(|inject| inject.amount) {
            None => None,
            Some(InjectedAmount::Ns(ns)) => Some(ns as f64),
            Some(share) => Some(share.delay_ns(self.plain_times.ns(&plain, measure)?)),
        })
    }
}

/// One trial.
struct EndpointTrial<'a> {
    run: &'a EndpointTrials<'a>,
    case: Case,
    processes: Vec<EndpointProcess>,
    /// There was a slice, and before it the warm-up.
    is_warm: bool,
    begun: Timer,
}

impl Trial for EndpointTrial<'_> {
    fn slice(&mut self, orders: SliceOrders) -> Result<SliceReport, TrialError> {
        let (reports, stolen_ns) = self.reports(orders)?;
        self.together(orders.singly, reports, stolen_ns)
    }

    fn traced_slice(
        &mut self,
        size: Sizing,
        sets: &[EventSet],
        way: RecordingWay,
    ) -> Result<(SliceReport, CpuTrace), TrialError> {
        // The iterations of a warm-up would fill the room for the records.
        if !self.is_warm {
            self.slice(SliceOrders { size, singly: Singly::Omitted })?;
        }
        let of_endpoints = self.processes.iter().map(|process| (process.role, process.child.id()));
        let threads = endpoint_threads(of_endpoints)?;
        let cpus = match self.case.cpus {
            Some(CpuPair { client, server }) => BTreeSet::from([client, server]).into_iter().collect(),
            None => topology::allowed(),
        };
        let mut recorder = CpuRecorder::open(&cpus, threads, sets, way)?;
        let singly = Singly::Throughout;
        recorder.begin()?;
        let measured = self.reports(SliceOrders { size, singly });
        recorder.end()?;
        let (of_clients, stolen_ns) = measured?;
        // Several clients go on after their first phase until every one of them has had it.
        let first_phase = |one: &SliceReport| one.iteration_times.first().cloned();
        let phases: Option<Vec<IterationTimes>> = of_clients.iter().map(first_phase).collect();
        let phases = phases.ok_or(TrialError::NotObservable(self.case.workload))?;
        let from_ns = phases.iter().map(|phase| phase.start.ticks()).min().unwrap_or(0);
        let mut ends_ns: Vec<u64> = phases.iter().flat_map(IterationTimes::ends).map(Stamp::ticks).collect();
        ends_ns.sort_unstable();
        let mut trace = recorder.trace(from_ns, ends_ns)?;
        if matches!(self.case.peers, Peers::FanIn(_)) {
            let tids = self.processes.iter().map(|process| process.child.id());
            let clients = tids.zip(&of_clients).zip(&phases).map(|((tid, report), phase)| TracedClient {
                tid,
                served_on: report.served_on,
                from_ns: phase.start.ticks(),
                iteration_ends_ns: phase.ends().map(Stamp::ticks).collect(),
            });
            trace.clients = clients.collect();
        }
        Ok((self.together(singly, of_clients, stolen_ns)?, trace))
    }

    fn end(&mut self) -> Result<(), TrialError> {
        self.lead(&CoordinatorMessage::Goodbye)?;
        self.converse(Until::AllDone, self.run.limit(&self.case)).map(drop)
    }
}

/// What the coordinator waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Until {
    /// Every led endpoint is ready for its first slice.
    Connected,
    /// Every led endpoint has reported its slice, of this size.
    Slices(Sizing),
    /// Every endpoint has ended.
    AllDone,
}

impl EndpointTrial<'_> {
    /// Has a slice measured. Returns what each client reported, in their order, and what the hypervisor stole meanwhile.
    fn reports(&mut self, orders: SliceOrders) -> Result<(Vec<SliceReport>, Option<u64>), TrialError> {
        // What is stolen of CPUs of another host is not known here.
        let cpus = self.case.cpus.filter(|_| self.case.placement != Placement::Remote);
        let stolen = || cpus.and_then(stolen_ns);
        let stolen_before = stolen();
        let timer = Timer::start();
        self.lead(&CoordinatorMessage::Slice(orders))?;
        let limit =
            self.run.limit(&self.case).saturating_add(expected_time(orders.size) * self.case.peers.pairs());
        let reports = self.converse(Until::Slices(orders.size), limit)?;
        if self.case.placement == Placement::Remote {
            reports.iter().try_for_each(|report| believable(report, timer.elapsed()))?;
        }
        let stolen_ns = stolen_before.zip(stolen()).map(|(before, after)| after.saturating_sub(before));
        Ok((reports, stolen_ns))
    }

    /// What all clients did together in the slice that they reported.
    fn together(
        &mut self,
        singly: Singly,
        reports: Vec<SliceReport>,
        stolen_ns: Option<u64>,
    ) -> Result<SliceReport, TrialError> {
        let elsewhere = reports.iter().find_map(|report| report.elsewhere);
        let report = match self.case.peers.clients() {
            1 => reports.into_iter().next().ok_or(TrialError::NoSample)?,
            _ => in_common_window(&self.case, &Clock::new(singly.clock(self.run.clock)), reports)?,
        };
        if let Some(why) = self.run.remote.and_then(|_| unsound(&report.sample)) {
            let failure =
                Failure::new("take", "a sample", format!("it has no {why}"), "see what the endpoint is");
            return Err(TrialError::Unreadable { failure });
        }
        self.is_warm = true;
        Ok(SliceReport { elsewhere, sample: Sample { stolen_ns, ..report.sample }, ..report })
    }

    /// Tells the led endpoints what comes next: a slice, or nothing more. One that is gone is found when it is listened to.
    fn lead(&self, message: &CoordinatorMessage) -> Result<(), Failure> {
        let mut led = self.processes.iter().filter(|process| process.is_led());
        led.try_for_each(|process| unless_closed(process.control.send(message, &[])))
    }

    fn led(&self) -> usize {
        self.processes.iter().filter(|process| process.is_led()).count()
    }

    /// Takes what the endpoints say, and has several clients begin together, until what is waited for has come. Each may be
    /// silent for `limit`, and for longer when it has said so. The first failure ends the trial. Reports are in the order of the
    /// endpoints.
    fn converse(&mut self, until: Until, limit: Duration) -> Result<Vec<SliceReport>, TrialError> {
        let (mut reports, mut waiting_clients, mut connected) = (Vec::new(), Vec::new(), 0);
        let mut deadlines = Deadlines::new(limit, self.processes.len());
        while let Some(alive) = alive(&self.processes) {
            let has_come = match until {
                Until::Connected => connected == self.led(),
                Until::Slices(_) => reports.len() == self.led(),
                Until::AllDone => false,
            };
            if has_come {
                return Ok(in_order(reports));
            }
            if self.run.is_interrupted() {
                return Err(TrialError::Interrupted);
            }
            let channels: Vec<&Channel> = alive.iter().map(|&at| &self.processes[at].control).collect();
            let ready = match wait_any(&channels, deadlines.left()) {
                Ok(Some(ready)) => alive[ready],
                Ok(None) => return Err(self.silent(deadlines.waited())),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(Failure::from_errno("poll", "control channels", errno).into()),
            };
            if !deadlines.hears() {
                return Err(self.lost(ready, &unexpected("one thing after the other, and made no report")));
            }
            let message = match self.processes[ready].control.receive::<EndpointMessage>() {
                Ok((message, _)) => message,
                Err(failure) => return Err(self.lost(ready, &failure)),
            };
            if !self.processes[ready].has_greeted {
                self.take_hello(ready, &message)?;
                continue;
            }
            match message {
                EndpointMessage::Connected => connected += 1,
                EndpointMessage::Expect { ns } => {
                    let expected = Duration::from_nanos(ns).min(self.longest_expected(until));
                    deadlines.wait_for(self.run.timeout.saturating_add(expected.saturating_mul(GENEROSITY)));
                }
                // No client says the second before all have said the first; one that did not wait has reported.
                EndpointMessage::Ready | EndpointMessage::MeasuredOnePhase => {
                    waiting_clients.push(ready);
                    if waiting_clients.len() == self.case.peers.clients() as usize {
                        let mut clients = waiting_clients.drain(..);
                        clients.try_for_each(|at| {
                            self.processes[at].control.send(&CoordinatorMessage::Go, &[])
                        })?;
                    }
                }
                EndpointMessage::Peer(message) => self.pass_on(ready, CoordinatorMessage::Peer(message))?,
                EndpointMessage::Slice(report) => reports.push((ready, *report)),
                EndpointMessage::Ended { error: None } => self.processes[ready].is_done = true,
                EndpointMessage::Ended { error: Some(error) } => {
                    self.processes.remove(ready);
                    return Err(root_cause(error, &mut self.processes));
                }
                EndpointMessage::Pong => {}
                EndpointMessage::Hello(_) => return Err(self.lost(ready, &unexpected("a second hello"))),
                EndpointMessage::FlowTicket(_) | EndpointMessage::Parked | EndpointMessage::Snapshot(_) => {
                    return Err(self.lost(ready, &unexpected("something of a scenario")));
                }
                EndpointMessage::Ticket(_) | EndpointMessage::Done(_) | EndpointMessage::Failed(_) => {
                    return Err(self.lost(ready, &unexpected("something of an endpoint that is led")));
                }
            }
        }
        Ok(in_order(reports))
    }

    /// The longest that the iterations of a phase may be expected to take. An endpoint that knows what one takes has done one since the
    /// trial began, so that none takes longer than that.
    fn longest_expected(&self, until: Until) -> Duration {
        let one = self.begun.elapsed();
        match until {
            Until::Slices(Sizing::Iterations(count)) => {
                one.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
            }
            Until::Slices(size @ Sizing::Slice { .. }) => {
                expected_time(size).saturating_add(one.saturating_mul(GENEROSITY))
            }
            Until::Connected | Until::AllDone => Duration::ZERO,
        }
    }

    /// Takes the first message of the endpoint at `at`, which must be its hello.
    fn take_hello(&mut self, at: usize, message: &EndpointMessage) -> Result<(), TrialError> {
        let EndpointMessage::Hello(hello) = message else {
            return Err(self.lost(at, &unexpected("no hello")));
        };
        self.processes[at].has_greeted = true;
        hello.refusal().map_or(Ok(()), |refusal| Err(TrialError::Refused(refusal)))
    }

    /// Passes what the endpoint at `from` says on to its peer, where the two have no link. A peer that is gone is found when it is
    /// listened to.
    fn pass_on(&self, from: usize, message: CoordinatorMessage) -> Result<(), TrialError> {
        let (Some(peer), 2) = (self.processes.get(1 - from.min(1)), self.processes.len()) else {
            return Err(TrialError::Unreadable {
                failure: unexpected("something for a peer that it does not have"),
            });
        };
        Ok(unless_closed(peer.control.send(&message, &[]))?)
    }

    /// What became of the endpoint at `at`, whose channel gave `failure` instead of a message.
    fn lost(&mut self, at: usize, failure: &Failure) -> TrialError {
        let process = &mut self.processes[at];
        let error = lost(&mut process.child, failure);
        if process.has_greeted || !process.child.is_command {
            return error;
        }
        self.unreachable(error.to_string())
    }

    /// Why the endpoints said nothing for `limit`: they wait for each other, or one of them cannot be reached.
    fn silent(&self, limit: Duration) -> TrialError {
        for process in self.processes.iter().filter(|process| process.child.is_command && !process.is_done) {
            if !process.has_greeted {
                return self.unreachable(format!("its command said nothing for {} s", limit.as_secs_f64()));
            }
            if !answers(&process.control) {
                let most_s = (limit + ANSWER).as_secs_f64();
                return self.unreachable(format!("nothing has come from it for {most_s} s"));
            }
        }
        TrialError::Silent { limit }
    }

    /// The error of a trial after which no other can be started.
    fn unreachable(&self, why: String) -> TrialError {
        let error = TrialError::Unreachable { why };
        if let Some(remote) = self.run.remote {
            remote.lose(error.to_string());
        }
        error
    }
}

/// Reports in the order of the endpoints by which they are.
fn in_order(mut reports: Vec<(usize, SliceReport)>) -> Vec<SliceReport> {
    reports.sort_by_key(|(at, _)| *at);
    reports.into_iter().map(|(_, report)| report).collect()
}

/// Starts the endpoint of `orders` on its side of `remote`.
fn start_remote(remote: &Remote, orders: &Orders) -> Result<EndpointProcess, Failure> {
    let side = if orders.role == Role::Client { &remote.client } else { &remote.server };
    let process = match side {
        None => EndpointProcess::start(orders, Vec::new(), None, AddressLayout::Random)?,
        Some(host) => {
            let directory =
                if host.facts.isolation.sees_witness { orders.directory.clone() } else { PathBuf::new() };
            let orders = Orders { clock: host.clock(), directory, ..orders.clone() };
            EndpointProcess::start_on(host, &orders)?
        }
    };
    remote.heartbeat.add(&process.control);
    Ok(process)
}

/// Whether an endpoint says that it is still there.
fn answers(control: &Channel) -> bool {
    let timer = Timer::start();
    if control.send(&CoordinatorMessage::Ping, &[]).is_err() {
        return false;
    }
    while timer.elapsed() < ANSWER {
        match wait_any(&[control], timer.left_of(ANSWER)) {
            Ok(Some(_)) => match control.receive::<EndpointMessage>() {
                Ok((EndpointMessage::Pong, _)) => return true,
                Ok(_) => {}
                Err(_) => return false,
            },
            Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return false,
        }
    }
    false
}

/// The failure of a channel over which `what` came.
pub(super) fn unexpected(what: &str) -> Failure {
    Failure::new("receive", "control channel", format!("it said {what}"), "run one version of ipcmark only")
}

/// The processes of a trial of `case`, each with its role, the number of its first pair, and its links.
fn processes(case: &Case) -> Result<Vec<(Role, u32, Vec<Channel>)>, Failure> {
    if case.workload.is_alone() {
        return Ok(vec![(Role::Alone, 0, Vec::new())]);
    }
    let links = (0..case.peers.pairs()).map(|_| channel()).collect::<Result<Vec<_>, _>>()?;
    let (clients, servers): (Vec<Channel>, Vec<Channel>) = links.into_iter().unzip();
    let one_each = |role, links: Vec<Channel>| {
        links.into_iter().zip(0..).map(move |(link, pair)| (role, pair, vec![link]))
    };
    Ok(match (case.endpoints, case.peers) {
        (Endpoints::Threads, _) => vec![(Role::Both, 0, clients.into_iter().chain(servers).collect())],
        (_, Peers::Pair | Peers::Pairs(_)) => {
            one_each(Role::Client, clients).chain(one_each(Role::Server, servers)).collect()
        }
        (_, Peers::FanIn(_)) => one_each(Role::Client, clients).chain([(Role::Server, 0, servers)]).collect(),
        (_, Peers::FanOut(_)) => {
            one_each(Role::Server, servers).chain([(Role::Client, 0, clients)]).collect()
        }
    })
}

/// Why a trial failed of which one endpoint reported `error`: that, unless it blames its peer and another endpoint of `others`
/// has a reason of its own.
pub(super) fn root_cause(error: EndpointError, others: &mut [EndpointProcess]) -> TrialError {
    let is_remote = others.iter().any(|process| process.child.is_command);
    let grace = if is_remote { ANSWER } else { Duration::from_millis(100) };
    let timer = Timer::start();
    let mut silent: Vec<usize> = (0..others.len()).collect();
    let mut blames_a_peer = error.blame == Blame::Peer;
    let mut cause = TrialError::Endpoint(error.clone());
    while blames_a_peer && timer.elapsed() < grace {
        let channels: Vec<&Channel> = silent.iter().map(|&at| &others[at].control).collect();
        let Ok(Some(ready)) = wait_any(&channels, timer.left_of(grace)) else {
            return TrialError::Endpoint(error);
        };
        let at = silent[ready];
        match others[at].control.receive::<EndpointMessage>() {
            Ok((EndpointMessage::Ended { error }, _)) => {
                silent.remove(ready);
                if let Some(theirs) = error {
                    blames_a_peer = theirs.blame == Blame::Peer;
                    cause = TrialError::Endpoint(theirs);
                }
            }
            Ok(_) => {}
            Err(failure) => return lost(&mut others[at].child, &failure),
        }
    }
    cause
}

/// The places of the processes that have not ended; `None` when all have.
fn alive(processes: &[EndpointProcess]) -> Option<Vec<usize>> {
    let alive: Vec<usize> = (0..processes.len()).filter(|&at| !processes[at].is_done).collect();
    (!alive.is_empty()).then_some(alive)
}

/// How many times as long as expected iterations may take.
const GENEROSITY: u32 = 10;
/// The shortest time that an endpoint elsewhere has for an answer, however short the run.
const LEAST_LIMIT: Duration = Duration::from_secs(3);

/// What the iterations themselves should take, generously. Of a number of iterations the endpoint says it when it knows.
fn expected_time(size: Sizing) -> Duration {
    match size {
        Sizing::Slice { slice_ns, .. } => Duration::from_nanos(slice_ns) * GENEROSITY,
        Sizing::Iterations(_) => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests;
