//! Trials of real endpoints: it starts the processes of one trial, has them measure slice by slice under a deadline, and ends
//! them.

use super::common_window::in_common_window;
use super::endpoint_threads::endpoint_threads;
use super::plain_times::PlainTimes;
use super::reexecution::reexecution;
use super::run_directory::RunDirectory;
use super::schedule::{Trial, Trials};
use super::trial_error::TrialError;
use crate::clock::{Clock, Stamp, Timer};
use crate::host::steal::stolen_ns;
use crate::host::topology;
use crate::protocol::channel::{Channel, channel, wait_any};
use crate::protocol::error::{Blame, EndpointError};
use crate::protocol::orders::{COMMAND, Orders, Role, Singly, Sizing, SliceOrders, VERSION};
use crate::protocol::report::{EndpointMessage, SliceReport};
use model::observation::{CpuTrace, EventSet, ProbeRequest};
use model::record::ClockSource;
use model::{Case, CpuPair, Endpoints, Inject, Peers, Sample};
use observe::cpu_trace::CpuRecorder;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sys::{Errno, Failure, OrFail};

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
    /// What cases take without the delay that is injected in them.
    pub plain_times: PlainTimes,
    /// The build that the endpoints are of, which [`super::other_build::check`] found to speak this protocol; this very program if absent.
    pub program: Option<&'a Path>,
}

/// What one trial may need of descriptors in the coordinator: a channel to each endpoint, and links while it starts.
const FDS_A_TRIAL: usize = 4;
/// The descriptors that are left for everything else.
const FDS_BESIDE: usize = 64;
/// The most trials that are alive at once, so that endpoints take some hundred megabytes at most.
const MOST_ALIVE: usize = 256;

impl Trials for EndpointTrials<'_> {
    fn start<'s>(
        &'s self,
        case: &Case,
        number: u64,
        probe: Option<&ProbeRequest>,
    ) -> Result<Box<dyn Trial + 's>, TrialError> {
        let inject_ns = self.inject_ns(case)?;
        let orders = |role, pair| Orders {
            version: VERSION,
            case: case.clone(),
            role,
            clock: self.clock,
            directory: self.directory.path().to_owned(),
            number,
            pair,
            inject_ns,
            check: self.check,
            probe: probe.cloned(),
        };
        let processes = processes(case)?;
        let processes =
            processes.into_iter().map(|(role, pair, links)| start(&orders(role, pair), links, self.program));
        let processes = processes.collect::<Result<_, _>>()?;
        let mut trial = EndpointTrial { run: self, case: case.clone(), processes, is_warm: false };
        trial.converse(Until::Connected, self.timeout)?;
        Ok(Box::new(trial))
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn most_alive(&self) -> usize {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let fds = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        (fds.saturating_sub(FDS_BESIDE) / FDS_A_TRIAL).clamp(1, MOST_ALIVE)
    }
}

impl EndpointTrials<'_> {
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
        Ok(match case.inject {
            None => None,
            Some(Inject::Ns(ns)) => Some(ns as f64),
            Some(share) => Some(share.delay_ns(self.plain_times.ns(&plain, measure)?)),
        })
    }
}

/// An endpoint process. Whatever happens, it is dead and reaped when this is dropped.
struct EndpointProcess {
    child: Child,
    control: Channel,
    role: Role,
    is_done: bool,
}

impl EndpointProcess {
    /// Whether the coordinator tells it when a slice begins: a client, both endpoints in one process, or an operation.
    fn is_led(&self) -> bool {
        self.role != Role::Server
    }
}

impl Drop for EndpointProcess {
    fn drop(&mut self) {
        // It may hang, even after its last word; or it may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One trial.
struct EndpointTrial<'a> {
    run: &'a EndpointTrials<'a>,
    case: Case,
    processes: Vec<EndpointProcess>,
    /// There was a slice, and before it the warm-up.
    is_warm: bool,
}

impl Trial for EndpointTrial<'_> {
    fn slice(&mut self, orders: SliceOrders) -> Result<SliceReport, TrialError> {
        let stolen = || self.case.cpus.and_then(|cpus| stolen_ns(Path::new("/"), cpus));
        let stolen_before = stolen();
        self.lead(&Some(orders))?;
        let limit = self.run.timeout.saturating_add(expected_time(orders.size) * self.case.peers.pairs());
        let reports = self.converse(Until::Slices, limit)?;
        let report = match self.case.peers.clients() {
            1 => reports.into_iter().next().ok_or(TrialError::NoSample)?,
            _ => in_common_window(&self.case, &Clock::new(self.run.clock), reports)?,
        };
        let stolen = || self.case.cpus.and_then(|cpus| stolen_ns(Path::new("/"), cpus));
        let stolen_ns = stolen_before.zip(stolen()).map(|(before, after)| after.saturating_sub(before));
        self.is_warm = true;
        Ok(SliceReport { sample: Sample { stolen_ns, ..report.sample }, ..report })
    }

    fn traced_slice(
        &mut self,
        size: Sizing,
        sets: &[EventSet],
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
        let mut recorder = CpuRecorder::open(&cpus, threads, sets)?;
        recorder.begin()?;
        let report = self.slice(SliceOrders { size, singly: Singly::Throughout });
        recorder.end()?;
        let mut report = report?;
        let times = report.iteration_times.pop().ok_or(TrialError::NotObservable(self.case.workload))?;
        let ends_ns = times.ends().map(Stamp::ticks).collect();
        Ok((report, recorder.trace(times.start.ticks(), ends_ns)?))
    }

    fn end(&mut self) -> Result<(), TrialError> {
        self.lead(&None)?;
        self.converse(Until::AllDone, self.run.timeout).map(drop)
    }
}

/// What the coordinator waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Every led endpoint is ready for its first slice.
    Connected,
    /// Every led endpoint has reported its slice.
    Slices,
    /// Every endpoint has ended.
    AllDone,
}

impl EndpointTrial<'_> {
    /// Tells the led endpoints what comes next: a slice, or nothing.
    fn lead(&self, orders: &Option<SliceOrders>) -> Result<(), Failure> {
        let mut led = self.processes.iter().filter(|process| process.is_led());
        led.try_for_each(|process| process.control.send(orders, &[]))
    }

    fn led(&self) -> usize {
        self.processes.iter().filter(|process| process.is_led()).count()
    }

    /// Takes what the endpoints say, and has several clients begin together, until what is waited for has come. Each may be
    /// silent for `limit`, and for longer when it has said so. The first failure ends the trial.
    fn converse(&mut self, until: Until, mut limit: Duration) -> Result<Vec<SliceReport>, TrialError> {
        let mut timer = Timer::start();
        let (mut reports, mut waiting_clients, mut connected) = (Vec::new(), Vec::new(), 0);
        while let Some(alive) = alive(&self.processes) {
            let has_come = match until {
                Until::Connected => connected == self.led(),
                Until::Slices => reports.len() == self.led(),
                Until::AllDone => false,
            };
            if has_come {
                return Ok(reports);
            }
            if self.run.is_interrupted() {
                return Err(TrialError::Interrupted);
            }
            let channels: Vec<&Channel> = alive.iter().map(|&at| &self.processes[at].control).collect();
            let ready = match wait_any(&channels, timer.left_of(limit)) {
                Ok(Some(ready)) => alive[ready],
                Ok(None) => return Err(TrialError::Silent { limit }),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(Failure::of("poll", "control channels", errno).into()),
            };
            timer = Timer::start();
            match self.processes[ready].control.receive::<EndpointMessage>() {
                Ok((EndpointMessage::Connected, _)) => connected += 1,
                Ok((EndpointMessage::Expect { ns }, _)) => {
                    limit = self.run.timeout.saturating_add(Duration::from_nanos(ns) * GENEROSITY);
                }
                // No client says the second before all have said the first; one that did not wait has reported.
                Ok((EndpointMessage::Ready | EndpointMessage::MeasuredOnePhase, _)) => {
                    waiting_clients.push(ready);
                    if waiting_clients.len() == self.case.peers.clients() as usize {
                        let mut clients = waiting_clients.drain(..);
                        clients.try_for_each(|at| self.processes[at].control.send(&(), &[]))?;
                    }
                }
                Ok((EndpointMessage::Slice(report), _)) => reports.push(*report),
                Ok((EndpointMessage::Done(Ok(())), _)) => self.processes[ready].is_done = true,
                Ok((EndpointMessage::Done(Err(error)), _)) => {
                    self.processes.remove(ready);
                    return Err(root_cause(error, &mut self.processes));
                }
                Err(failure) => return Err(lost(&mut self.processes[ready].child, &failure)),
            }
        }
        Ok(reports)
    }
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
fn root_cause(error: EndpointError, others: &mut [EndpointProcess]) -> TrialError {
    const GRACE: Duration = Duration::from_millis(100);
    let timer = Timer::start();
    let mut silent: Vec<usize> = (0..others.len()).collect();
    let mut blames_a_peer = error.blame == Blame::Peer;
    let mut cause = TrialError::Endpoint(error.clone());
    while blames_a_peer {
        let channels: Vec<&Channel> = silent.iter().map(|&at| &others[at].control).collect();
        let Ok(Some(ready)) = wait_any(&channels, timer.left_of(GRACE)) else {
            return TrialError::Endpoint(error);
        };
        let at = silent[ready];
        match others[at].control.receive::<EndpointMessage>() {
            Ok((EndpointMessage::Done(result), _)) => {
                silent.remove(ready);
                if let Err(theirs) = result {
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

/// What the iterations themselves should take, generously. Of a number of iterations the endpoint says it when it knows.
fn expected_time(size: Sizing) -> Duration {
    match size {
        Sizing::Slice { slice_ns, .. } => Duration::from_nanos(slice_ns) * GENEROSITY,
        Sizing::Iterations(_) => Duration::ZERO,
    }
}

/// What became of a process whose control channel gave `failure` instead of a message: it has ended, or what it said cannot be
/// read, and then it is killed, for it may wait for ever for somebody who listens.
fn lost(child: &mut Child, failure: &Failure) -> TrialError {
    const GRACE: Duration = Duration::from_secs(1);
    let is_closed = matches!(failure.errno, Some(Errno::PIPE | Errno::CONNRESET));
    let timer = Timer::start();
    while timer.elapsed() < GRACE {
        match child.try_wait() {
            Ok(Some(status)) => return TrialError::Died { status: status.to_string() },
            Ok(None) if is_closed => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) => break,
            Err(error) => return TrialError::Died { status: error.to_string() },
        }
    }
    let _ = child.kill();
    TrialError::Unreadable { failure: failure.clone() }
}

/// Starts `program`, or this very program, as an endpoint, and gives it its orders.
fn start(orders: &Orders, links: Vec<Channel>, program: Option<&Path>) -> Result<EndpointProcess, Failure> {
    let (ours, theirs) = channel()?;
    let mut command = reexecution(COMMAND, program);
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
    let of = program.map_or_else(|| "/proc/self/exe".to_owned(), |path| path.display().to_string());
    let child = command.spawn().or_fail("start", format!("an endpoint ({of})"))?;
    let process = EndpointProcess { child, control: ours, role: orders.role, is_done: false };
    let fds: Vec<BorrowedFd<'_>> = links.iter().map(AsFd::as_fd).collect();
    process.control.send(orders, &fds)?;
    Ok(process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::sample::sample;
    use model::record::Usage;
    use model::{Workload, floor};
    use std::process::Command;

    /// A process that sleeps, and the channel that is its own in the coordinator's eyes.
    fn sleeper(is_led: bool) -> (EndpointProcess, Channel) {
        let (ours, theirs) = channel().unwrap();
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let role = if is_led { Role::Client } else { Role::Server };
        (EndpointProcess { child, control: ours, role, is_done: false }, theirs)
    }

    fn say(channel: &Channel, message: EndpointMessage) {
        channel.send(&message, &[]).unwrap();
    }

    fn fail(channel: &Channel, error: EndpointError) {
        say(channel, EndpointMessage::Done(Err(error)));
    }

    fn error(answer: &str, blame: Blame) -> EndpointError {
        EndpointError { blame, ..EndpointError::bug("send", "the mechanism", answer) }
    }

    fn report() -> EndpointMessage {
        let sample = sample(5, 100.0, Usage::default(), None);
        let report =
            SliceReport { sample, settings: Vec::new(), iteration_times: Vec::new(), observation: None };
        EndpointMessage::Slice(Box::new(report))
    }

    fn case(peers: Peers) -> Case {
        Case { peers, workload: Workload::Latency, cpus: None, ..floor::operation("pipe", 1) }
    }

    /// What the coordinator makes of what `processes` say within `limit`.
    fn converse(
        until: Until,
        limit: Duration,
        interrupted: bool,
        case: Case,
        processes: Vec<EndpointProcess>,
    ) -> Result<Vec<SliceReport>, TrialError> {
        let directory = RunDirectory::create().unwrap();
        let run = EndpointTrials {
            clock: ClockSource::MonotonicRaw,
            directory: &directory,
            check: false,
            interrupted: &AtomicBool::new(interrupted),
            timeout: limit,
            plain_times: PlainTimes::default(),
            program: None,
        };
        EndpointTrial { run: &run, case, processes, is_warm: false }.converse(until, limit)
    }

    fn slices(processes: Vec<EndpointProcess>) -> Result<Vec<SliceReport>, TrialError> {
        converse(Until::Slices, LONG, false, case(Peers::Pair), processes)
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn a_slice_is_over_when_the_client_has_reported_and_the_server_says_nothing() {
        let ((client, client_says), (server, _silent)) = (sleeper(true), sleeper(false));
        say(&client_says, report());
        let reports = slices(vec![client, server]).unwrap();
        assert_eq!((reports.len(), reports[0].sample.iterations), (1, 5));
    }

    #[test]
    fn a_trial_has_ended_when_all_endpoints_have() {
        let ((client, client_says), (server, server_says)) = (sleeper(true), sleeper(false));
        say(&client_says, EndpointMessage::Done(Ok(())));
        say(&server_says, EndpointMessage::Done(Ok(())));
        let processes = vec![client, server];
        assert!(converse(Until::AllDone, LONG, false, case(Peers::Pair), processes).unwrap().is_empty());
    }

    #[test]
    fn of_two_failures_the_one_that_does_not_blame_its_peer_is_reported() {
        let ((client, client_says), (server, server_says)) = (sleeper(true), sleeper(false));
        fail(&client_says, error("the peer closed", Blame::Peer));
        fail(&server_says, error("no memory", Blame::Host));
        let failure = slices(vec![client, server]).unwrap_err();
        assert_eq!(failure, TrialError::Endpoint(error("no memory", Blame::Host)));
    }

    #[test]
    fn a_death_comes_before_the_failure_that_it_caused() {
        let ((client, client_says), (mut server, server_says)) = (sleeper(true), sleeper(false));
        server.child.kill().unwrap();
        fail(&client_says, error("the peer closed", Blame::Peer));
        drop(server_says);
        let failure = root_cause(error("the peer closed", Blame::Peer), &mut [server]);
        assert!(matches!(&failure, TrialError::Died { status } if status.contains("SIGKILL")), "{failure}");
        drop(client);
    }

    #[test]
    fn a_failure_that_blames_no_peer_is_reported_at_once() {
        let (client, _silent) = sleeper(true);
        let own = error("the word peer blames nobody", Blame::Itself);
        assert_eq!(root_cause(own.clone(), &mut [client]), TrialError::Endpoint(own));
    }

    #[test]
    fn where_all_blame_a_peer_the_first_is_reported() {
        let (other, other_says) = sleeper(false);
        fail(&other_says, error("second", Blame::Peer));
        let first = error("first", Blame::Peer);
        assert_eq!(root_cause(first.clone(), &mut [other]), TrialError::Endpoint(first));
    }

    /// It waited for the process to end, which waits for ever: the test did not return.
    #[test]
    fn an_endpoint_whose_report_cannot_be_read_is_killed() {
        use std::io::Write;
        for garbage in [&b"\xff\xff\xff\xff too long"[..], b"\x04\0\0\0????"] {
            let (client, client_says) = sleeper(true);
            let mut stream = std::os::unix::net::UnixStream::from(OwnedFd::from(client_says));
            stream.write_all(garbage).unwrap();
            let failure = slices(vec![client]).unwrap_err();
            assert!(matches!(failure, TrialError::Unreadable { .. }), "{failure}");
        }
    }

    #[test]
    fn endpoints_that_say_nothing_are_killed_when_time_is_up() {
        let (client, _silent) = sleeper(true);
        let failure = converse(Until::Slices, Duration::ZERO, false, case(Peers::Pair), vec![client]);
        let failure = failure.unwrap_err();
        assert_eq!(failure, TrialError::Silent { limit: Duration::ZERO });
        let said = failure.to_string();
        assert!(
            said.starts_with("the endpoints made no report within 0.0 s") && said.contains("--timeout"),
            "{said}"
        );
    }

    /// A million slow iterations had a deadline of a second beside the timeout.
    #[test]
    fn an_endpoint_has_the_time_that_it_has_said_it_needs() {
        let (client, client_says) = sleeper(true);
        let limit = Duration::from_millis(50);
        let later = std::thread::spawn(move || {
            say(&client_says, EndpointMessage::Expect { ns: 60_000_000_000 });
            std::thread::sleep(4 * limit);
            say(&client_says, report());
            client_says
        });
        let reports = converse(Until::Slices, limit, false, case(Peers::Pair), vec![client]);
        assert_eq!(reports.unwrap().len(), 1);
        drop(later.join().unwrap());
    }

    #[test]
    fn an_interrupted_run_waits_for_no_report() {
        let (client, _silent) = sleeper(true);
        let failure = converse(Until::Slices, LONG, true, case(Peers::Pair), vec![client]).unwrap_err();
        assert_eq!(failure, TrialError::Interrupted);
    }

    #[test]
    fn several_clients_go_on_together_when_all_are_ready() {
        let ((one, one_says), (two, two_says)) = (sleeper(true), sleeper(true));
        let client = |says: Channel| {
            std::thread::spawn(move || {
                for message in [EndpointMessage::Ready, EndpointMessage::MeasuredOnePhase] {
                    says.send(&message, &[]).unwrap();
                    says.receive::<()>().unwrap();
                }
                say(&says, report());
                // A channel that closes is a death.
                says
            })
        };
        let clients = [client(one_says), client(two_says)];
        let reports = converse(Until::Slices, LONG, false, case(Peers::Pairs(2)), vec![one, two]).unwrap();
        assert_eq!(reports.len(), 2);
        clients.into_iter().for_each(|client| drop(client.join().unwrap()));
    }

    #[test]
    fn processes_are_as_many_as_endpoints_and_linked_to_their_peers() {
        let of = |case: &Case| -> Vec<(Role, u32, usize)> {
            let processes = processes(case).unwrap();
            processes.into_iter().map(|(role, pair, links)| (role, pair, links.len())).collect()
        };
        assert_eq!(of(&case(Peers::Pair)), [(Role::Client, 0, 1), (Role::Server, 0, 1)]);
        assert_eq!(
            of(&case(Peers::Pairs(2))),
            [(Role::Client, 0, 1), (Role::Client, 1, 1), (Role::Server, 0, 1), (Role::Server, 1, 1)]
        );
        assert_eq!(
            of(&case(Peers::FanIn(2))),
            [(Role::Client, 0, 1), (Role::Client, 1, 1), (Role::Server, 0, 2)]
        );
        assert_eq!(
            of(&case(Peers::FanOut(2))),
            [(Role::Server, 0, 1), (Role::Server, 1, 1), (Role::Client, 0, 2)]
        );
        let threads = Case { endpoints: Endpoints::Threads, ..case(Peers::Pair) };
        assert_eq!(of(&threads), [(Role::Both, 0, 2)]);
        assert_eq!(of(&floor::operation("getpid", 1)), [(Role::Alone, 0, 0)]);
    }
}
