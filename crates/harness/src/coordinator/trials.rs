//! Trials of real endpoints: it starts the processes of one trial, takes their reports under a deadline, and ends them.

use super::common_window::in_common_window;
use super::plain_times::PlainTimes;
use super::reexecution::reexecution;
use super::run_directory::RunDirectory;
use super::schedule::Trials;
use super::trial_error::TrialError;
use crate::clock::{Clock, Timer};
use crate::protocol::channel::{Channel, channel, wait_any};
use crate::protocol::error::{Blame, EndpointError};
use crate::protocol::orders::{COMMAND, Orders, Role, Sizing};
use crate::protocol::report::{EndpointMessage, TrialReport};
use model::observation::{Observation, ProbeRequest};
use model::record::ClockSource;
use model::{Case, Endpoints, Inject, Peers};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
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
}

impl Trials for EndpointTrials<'_> {
    fn measure(&self, case: &Case, size: Sizing, number: u64) -> Result<TrialReport, TrialError> {
        self.trial(case, size, number, None)
    }

    fn observe(
        &self,
        case: &Case,
        size: Sizing,
        number: u64,
        request: &ProbeRequest,
    ) -> Result<Observation, TrialError> {
        let report = self.trial(case, size, number, Some(request))?;
        report.observation.ok_or(TrialError::NotObservable(case.workload))
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

/// An endpoint process. Whatever happens, it is dead and reaped when this is dropped.
struct EndpointProcess {
    child: Child,
    control: Channel,
    reported: bool,
}

impl Drop for EndpointProcess {
    fn drop(&mut self) {
        // It may hang, even after its report, which is the last that it is needed for; or it may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
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
        let measure = |hint_ns, number| {
            let size = Sizing::Slice { slice_ns: SLICE_NS, hint_ns };
            self.trial(&plain, size, FIRST_NUMBER + number, None).map(|report| report.sample.iteration_ns())
        };
        Ok(match case.inject {
            None => None,
            Some(Inject::Ns(ns)) => Some(ns as f64),
            Some(share) => Some(share.delay_ns(self.plain_times.ns(&plain, measure)?)),
        })
    }

    fn trial(
        &self,
        case: &Case,
        size: Sizing,
        number: u64,
        probe: Option<&ProbeRequest>,
    ) -> Result<TrialReport, TrialError> {
        let inject_ns = self.inject_ns(case)?;
        let orders = |role, pair| Orders {
            case: case.clone(),
            role,
            clock: self.clock,
            directory: self.directory.path().to_owned(),
            number,
            pair,
            size,
            inject_ns,
            check: self.check,
            probe: probe.cloned(),
        };
        let processes = processes(case)?;
        let processes = processes.into_iter().map(|(role, pair, links)| start(&orders(role, pair), links));
        let processes: Vec<_> = processes.collect::<Result<_, _>>()?;
        let limit = self.timeout.saturating_add(expected_time(size) * case.peers.pairs());
        let reports = take_reports(case, processes, limit, self.interrupted)?;
        if case.peers.clients() > 1 {
            return in_common_window(case, &Clock::new(self.clock), reports);
        }
        reports.into_iter().next().ok_or(TrialError::NoSample)
    }
}

/// Takes each process's report, and has several clients begin together. The first failure ends them all.
fn take_reports(
    case: &Case,
    mut processes: Vec<EndpointProcess>,
    limit: Duration,
    interrupted: &AtomicBool,
) -> Result<Vec<TrialReport>, TrialError> {
    let timer = Timer::start();
    let (mut reports, mut waiting_clients) = (Vec::new(), Vec::new());
    while let Some(unreported) = unreported(&processes) {
        if interrupted.load(Ordering::Relaxed) {
            return Err(TrialError::Interrupted);
        }
        let channels: Vec<&Channel> = unreported.iter().map(|&at| &processes[at].control).collect();
        let ready = match wait_any(&channels, timer.left_of(limit)) {
            Ok(Some(ready)) => unreported[ready],
            Ok(None) => return Err(TrialError::Silent { limit }),
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(Failure::of("poll", "control channels", errno).into()),
        };
        let process = &mut processes[ready];
        match process.control.receive::<EndpointMessage>() {
            // No client says the second before all have said the first; one that did not wait has ended.
            Ok((EndpointMessage::Ready | EndpointMessage::MeasuredOnePhase, _)) => {
                waiting_clients.push(ready);
                if waiting_clients.len() == case.peers.clients() as usize {
                    let mut alive = waiting_clients.drain(..).filter(|&at| !processes[at].reported);
                    alive.try_for_each(|at| processes[at].control.send(&(), &[]))?;
                }
            }
            Ok((EndpointMessage::Done(report), _)) => {
                process.reported = true;
                match *report {
                    Ok(report) => reports.extend(report),
                    Err(error) => {
                        processes.retain(|process| !process.reported);
                        return Err(root_cause(error, &mut processes));
                    }
                }
            }
            Err(_) => return Err(died(&mut process.child)),
        }
    }
    Ok(reports)
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
        let at = silent.remove(ready);
        match others[at].control.receive::<EndpointMessage>() {
            Ok((EndpointMessage::Done(report), _)) => {
                if let Err(theirs) = *report {
                    blames_a_peer = theirs.blame == Blame::Peer;
                    cause = TrialError::Endpoint(theirs);
                }
            }
            Ok(_) => {}
            Err(_) => return died(&mut others[at].child),
        }
    }
    cause
}

/// The places of the processes that have not reported; `None` when all have.
fn unreported(processes: &[EndpointProcess]) -> Option<Vec<usize>> {
    let waiting: Vec<usize> = (0..processes.len()).filter(|&at| !processes[at].reported).collect();
    (!waiting.is_empty()).then_some(waiting)
}

/// What the iterations themselves should take, generously.
fn expected_time(size: Sizing) -> Duration {
    match size {
        Sizing::Slice { slice_ns, .. } => Duration::from_nanos(slice_ns) * 10,
        Sizing::Iterations(iterations) => Duration::from_micros(iterations),
    }
}

/// What became of a process that closed its channel without a report.
fn died(child: &mut Child) -> TrialError {
    let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
    TrialError::Died { status }
}

/// Starts this very program as an endpoint, and gives it its orders.
fn start(orders: &Orders, links: Vec<Channel>) -> Result<EndpointProcess, Failure> {
    let (ours, theirs) = channel()?;
    let mut command = reexecution(COMMAND);
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
    let child = command.spawn().or_fail("start", "an endpoint (/proc/self/exe)")?;
    let process = EndpointProcess { child, control: ours, reported: false };
    let fds: Vec<BorrowedFd<'_>> = links.iter().map(AsFd::as_fd).collect();
    process.control.send(orders, &fds)?;
    Ok(process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::sample::sample;
    use crate::protocol::report::EndpointReport;
    use model::record::Usage;
    use model::{Workload, floor};
    use std::process::Command;

    /// A process that sleeps, and the channel that is its own in the coordinator's eyes.
    fn sleeper() -> (EndpointProcess, Channel) {
        let (ours, theirs) = channel().unwrap();
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        (EndpointProcess { child, control: ours, reported: false }, theirs)
    }

    fn done(channel: &Channel, report: EndpointReport) {
        channel.send(&EndpointMessage::Done(Box::new(report)), &[]).unwrap();
    }

    fn error(answer: &str, blame: Blame) -> EndpointError {
        EndpointError { blame, ..EndpointError::bug("send", "the mechanism", answer) }
    }

    fn report() -> TrialReport {
        let sample = sample(5, 100.0, Usage::default(), None);
        TrialReport { sample, settings: Vec::new(), iteration_times: Vec::new(), observation: None }
    }

    fn case(peers: Peers) -> Case {
        Case { peers, workload: Workload::Latency, ..floor::operation("pipe", 1) }
    }

    /// What the coordinator makes of `processes` within `limit`.
    fn reports_of(
        limit: Duration,
        interrupted: bool,
        case: &Case,
        processes: Vec<EndpointProcess>,
    ) -> Result<Vec<TrialReport>, TrialError> {
        take_reports(case, processes, limit, &AtomicBool::new(interrupted))
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn reports_come_from_all_processes_and_a_server_adds_none() {
        let ((client, client_says), (server, server_says)) = (sleeper(), sleeper());
        done(&client_says, Ok(Some(report())));
        done(&server_says, Ok(None));
        let reports = reports_of(LONG, false, &case(Peers::Pair), vec![client, server]).unwrap();
        assert_eq!((reports.len(), reports[0].sample.iterations), (1, 5));
    }

    #[test]
    fn of_two_failures_the_one_that_does_not_blame_its_peer_is_reported() {
        let ((client, client_says), (server, server_says)) = (sleeper(), sleeper());
        done(&client_says, Err(error("the peer closed", Blame::Peer)));
        done(&server_says, Err(error("no memory", Blame::Host)));
        let failure = reports_of(LONG, false, &case(Peers::Pair), vec![client, server]).unwrap_err();
        assert_eq!(failure, TrialError::Endpoint(error("no memory", Blame::Host)));
    }

    #[test]
    fn a_death_comes_before_the_failure_that_it_caused() {
        let ((client, client_says), (mut server, server_says)) = (sleeper(), sleeper());
        server.child.kill().unwrap();
        done(&client_says, Err(error("the peer closed", Blame::Peer)));
        drop(server_says);
        let failure = root_cause(error("the peer closed", Blame::Peer), &mut [server]);
        assert!(matches!(&failure, TrialError::Died { status } if status.contains("SIGKILL")), "{failure}");
        drop(client);
    }

    #[test]
    fn a_failure_that_blames_no_peer_is_reported_at_once() {
        let (client, _silent) = sleeper();
        let own = error("the word peer blames nobody", Blame::Itself);
        assert_eq!(root_cause(own.clone(), &mut [client]), TrialError::Endpoint(own));
    }

    #[test]
    fn where_all_blame_a_peer_the_first_is_reported() {
        let (other, other_says) = sleeper();
        done(&other_says, Err(error("second", Blame::Peer)));
        let first = error("first", Blame::Peer);
        assert_eq!(root_cause(first.clone(), &mut [other]), TrialError::Endpoint(first));
    }

    #[test]
    fn endpoints_that_say_nothing_are_killed_when_time_is_up() {
        let (client, _silent) = sleeper();
        let failure = reports_of(Duration::ZERO, false, &case(Peers::Pair), vec![client]).unwrap_err();
        assert_eq!(failure, TrialError::Silent { limit: Duration::ZERO });
        let said = failure.to_string();
        assert!(
            said.starts_with("the endpoints made no report within 0.0 s") && said.contains("--timeout"),
            "{said}"
        );
    }

    #[test]
    fn an_interrupted_run_waits_for_no_report() {
        let (client, _silent) = sleeper();
        let failure = reports_of(LONG, true, &case(Peers::Pair), vec![client]).unwrap_err();
        assert_eq!(failure, TrialError::Interrupted);
    }

    #[test]
    fn several_clients_go_on_together_when_all_are_ready() {
        let ((one, one_says), (two, two_says)) = (sleeper(), sleeper());
        let client = |says: Channel| {
            std::thread::spawn(move || {
                for message in [EndpointMessage::Ready, EndpointMessage::MeasuredOnePhase] {
                    says.send(&message, &[]).unwrap();
                    says.receive::<()>().unwrap();
                }
                done(&says, Ok(Some(report())));
            })
        };
        let clients = [client(one_says), client(two_says)];
        let reports = reports_of(LONG, false, &case(Peers::Pairs(2)), vec![one, two]).unwrap();
        assert_eq!(reports.len(), 2);
        clients.into_iter().for_each(|client| client.join().unwrap());
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
