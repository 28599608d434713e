//! A trial: fresh endpoints that measure one case once, under a deadline.

use crate::control::{Channel, channel, wait_any};
use crate::endpoint::{COMMAND, Orders, Role, Said, Sizing, Yield};
use crate::measure::{Clock, Timer};
use crate::run_directory::RunDirectory;
use crate::together::together;
use model::observation::{Observation, ProbeRequest};
use model::record::ClockSource;
use model::{Case, Endpoints, Peers};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sys::{Errno, Failure, OrFail};

/// What every trial of a run has in common.
#[derive(Debug)]
pub struct Launcher<'a> {
    /// The clock that times iterations.
    pub clock: ClockSource,
    /// Where names in the file system go.
    pub directory: &'a RunDirectory,
    /// Whether every byte of the timed part is checked.
    pub check: bool,
    /// Set from outside to end the run.
    pub interrupted: &'a AtomicBool,
    /// The time that a trial may take beyond the iterations that it was told to make.
    pub timeout: Duration,
}

/// Why a trial yielded nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// The run is to end.
    Interrupted,
    /// In words for the record.
    Failed(String),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Ended::Failed(failure.to_string())
    }
}

/// An endpoint process. Whatever happens, it is dead and buried when this is dropped.
struct Process {
    child: Child,
    control: Channel,
    reported: bool,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may hang, even after its report, which is the last that anybody wants of it; or be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Launcher<'_> {
    /// Trials `case`. `number` tells this trial's names from those of others, and its parity the order of its parts.
    pub fn trial(&self, case: &Case, size: Sizing, number: u64) -> Result<Yield, Ended> {
        self.start(case, size, number, None)
    }

    /// Trials `case` to look at it. Such a trial yields no sample: looking takes its time.
    pub fn observe(
        &self,
        case: &Case,
        size: Sizing,
        number: u64,
        look: &ProbeRequest,
    ) -> Result<Observation, Ended> {
        let yielded = self.start(case, size, number, Some(look))?;
        yielded.observation.ok_or_else(|| {
            Ended::Failed(format!(
                "{} cannot be looked at: its workload has no iterations of one kind",
                case.workload
            ))
        })
    }

    fn start(
        &self,
        case: &Case,
        size: Sizing,
        number: u64,
        look: Option<&ProbeRequest>,
    ) -> Result<Yield, Ended> {
        let orders = |role, pair| Orders {
            case: case.clone(),
            role,
            clock: self.clock,
            directory: self.directory.path().to_owned(),
            number,
            pair,
            size,
            check: self.check,
            look: look.cloned(),
        };
        if case.workload.is_alone() {
            return self.await_reports(case, vec![start(&orders(Role::Alone, 0), vec![])?], size);
        }
        let (mut clients, mut servers) = (Vec::new(), Vec::new());
        for _ in 0..case.peers.pairs() {
            let (client, server) = channel()?;
            clients.push(client);
            servers.push(server);
        }
        let one_each = |role, links: Vec<Channel>| {
            links.into_iter().zip(0..).map(move |(link, pair)| (role, pair, vec![link]))
        };
        let starts: Vec<(Role, u32, Vec<Channel>)> = match (case.endpoints, case.peers) {
            (Endpoints::Threads, _) => {
                vec![(Role::Both, 0, clients.into_iter().chain(servers).collect())]
            }
            (_, Peers::Pair | Peers::Pairs(_)) => {
                one_each(Role::Client, clients).chain(one_each(Role::Server, servers)).collect()
            }
            (_, Peers::FanIn(_)) => {
                one_each(Role::Client, clients).chain([(Role::Server, 0, servers)]).collect()
            }
            (_, Peers::FanOut(_)) => {
                one_each(Role::Server, servers).chain([(Role::Client, 0, clients)]).collect()
            }
        };
        let processes = starts.into_iter().map(|(role, pair, links)| start(&orders(role, pair), links));
        self.await_reports(case, processes.collect::<Result<_, _>>()?, size)
    }

    /// Takes each process's report, and has several clients begin together. The first failure ends them all.
    fn await_reports(&self, case: &Case, mut processes: Vec<Process>, size: Sizing) -> Result<Yield, Ended> {
        let timer = Timer::start();
        let limit = self.timeout.saturating_add(expected(size) * case.peers.pairs());
        let (mut yields, mut alike) = (Vec::new(), Vec::new());
        while let Some(waiting) = next(&processes) {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Ended::Interrupted);
            }
            let channels: Vec<&Channel> = waiting.iter().map(|&at| &processes[at].control).collect();
            let ready = match wait_any(&channels, timer.left_of(limit)) {
                Ok(Some(ready)) => waiting[ready],
                Ok(None) => return Err(Ended::Failed(no_progress(limit))),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(Failure::of("poll", "control channels", errno).into()),
            };
            let process = &mut processes[ready];
            match process.control.receive::<Said>() {
                // Nobody says the second thing before all have said the first; one that did not wait has gone.
                Ok((Said::Ready | Said::HadAPart, _)) => {
                    alike.push(ready);
                    if alike.len() == case.peers.clients() as usize {
                        let mut there = alike.drain(..).filter(|&at| !processes[at].reported);
                        there.try_for_each(|at| processes[at].control.send(&(), &[]))?;
                    }
                }
                Ok((Said::Done(report), _)) => {
                    process.reported = true;
                    match *report {
                        Ok(report) => yields.extend(report),
                        Err(error) => {
                            processes.retain(|process| !process.reported);
                            return Err(Ended::Failed(root_cause(error, &mut processes)));
                        }
                    }
                }
                Err(_) => return Err(Ended::Failed(death(&mut process.child))),
            }
        }
        if case.peers.clients() > 1 {
            return together(case, &Clock::new(self.clock), yields).map_err(Ended::Failed);
        }
        let only = yields.into_iter().next();
        only.ok_or_else(|| Ended::Failed("no endpoint measured anything; report this bug".to_owned()))
    }
}

/// The failure of an endpoint whose peer may have failed first: of several, the first that does not blame a peer.
fn root_cause(error: String, others: &mut [Process]) -> String {
    const GRACE: Duration = Duration::from_millis(100);
    let timer = Timer::start();
    let mut silent: Vec<usize> = (0..others.len()).collect();
    let mut cause = error.clone();
    while blames_a_peer(&cause) {
        let channels: Vec<&Channel> = silent.iter().map(|&at| &others[at].control).collect();
        let Ok(Some(ready)) = wait_any(&channels, timer.left_of(GRACE)) else { return error };
        let at = silent.remove(ready);
        cause = match others[at].control.receive::<Said>() {
            Ok((Said::Done(report), _)) => match *report {
                Err(theirs) => theirs,
                Ok(_) => continue,
            },
            Ok(_) => continue,
            Err(_) => death(&mut others[at].child),
        };
    }
    cause
}

fn blames_a_peer(error: &str) -> bool {
    error.contains("peer") || error.contains("the other side")
}

/// The processes that have not reported.
fn next(processes: &[Process]) -> Option<Vec<usize>> {
    let waiting: Vec<usize> = (0..processes.len()).filter(|&at| !processes[at].reported).collect();
    (!waiting.is_empty()).then_some(waiting)
}

/// What the iterations themselves should take, generously.
fn expected(size: Sizing) -> Duration {
    match size {
        Sizing::Slice { slice_ns, .. } => Duration::from_nanos(slice_ns) * 10,
        Sizing::Iterations(iterations) => Duration::from_micros(iterations),
    }
}

fn no_progress(limit: Duration) -> String {
    format!(
        "the endpoints made no report within {:.1} s and were killed: they wait for each other, or a message was lost \
         (try --timeout with a longer time, or a smaller size)",
        limit.as_secs_f64()
    )
}

/// What became of a process that closed its channel without a report.
fn death(child: &mut Child) -> String {
    let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
    format!("an endpoint died without a report ({status}); what it said is on standard error")
}

/// Starts this very program as an endpoint, and gives it its orders.
///
/// It is a group of its own, so that Ctrl-C reaches the coordinator alone, which ends it in order.
fn start(orders: &Orders, links: Vec<Channel>) -> Result<Process, Failure> {
    let (ours, theirs) = channel()?;
    let mut command = re_execution(COMMAND)?;
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
    let child = command.spawn().or_fail("start", "an endpoint (/proc/self/exe)")?;
    let process = Process { child, control: ours, reported: false };
    let fds: Vec<BorrowedFd<'_>> = links.iter().map(AsFd::as_fd).collect();
    process.control.send(orders, &fds)?;
    Ok(process)
}

/// A command that runs this very program as its hidden sub-command `name`.
pub(crate) fn re_execution(name: &str) -> Result<Command, Failure> {
    use std::os::unix::process::CommandExt;
    // The link in /proc stays right when the file was replaced while the run goes on.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("ipcmark").arg(name).arg(std::process::id().to_string()).process_group(0);
    Ok(command)
}
