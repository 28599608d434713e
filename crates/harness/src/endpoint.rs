//! An endpoint: the process, or thread, that does client's or server's part of one trial.
//!
//! It is started by `trial` as a re-execution of the binary, takes its orders from the control
//! channel on its standard input, measures once, reports, and ends.

use crate::alone::{accuracy, cost, observed_cost};
use crate::client::Client;
use crate::control::{Channel, wait_any};
use crate::hub::Hub;
use crate::measure::Clock;
use crate::server::Server;
use crate::together::Course;
use crate::workload::{Check, Station, answer_bytes};
use mechanisms::{Endpoint, Mechanism, Operation, Shape, Ticket, Trial, Visitor, registry};
use model::card::Payload;
use model::observation::{Observation, Probe, ProbeRequest};
use model::record::{ClockSource, Sample, Setting};
use model::{Case, Peers, Size, Workload};
use rustix::fd::{AsFd, OwnedFd};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use sys::{Errno, Failure, OrFail};

/// The hidden sub-command by which the binary becomes an endpoint; the coordinator's process id follows it.
pub const COMMAND: &str = "__endpoint";

/// The least iterations of a warm-up.
pub(crate) const LEAST_WARM_UP_ITERATIONS: u64 = 16;
/// The part of a trial's slice that warm-up must fill.
pub(crate) const WARM_UP_SHARE: f64 = 0.1;
/// The most iterations of a trial of which each event is recorded: they must find room.
const MOST_RECORDED_ITERATIONS: u64 = 2000;
/// The fewest iterations that are looked at, though a warm-up that was disturbed may have allowed for less.
const LEAST_OBSERVED_ITERATIONS: u64 = 50;

/// How many iterations are looked at in a trial for which there would be time for `iterations`.
pub(crate) fn observed_iterations(iterations: u64, sizing: Sizing, look: &ProbeRequest) -> u64 {
    let most = match look.probe {
        None | Some(Probe::Counters | Probe::Sampling) => u64::MAX,
        Some(_) => MOST_RECORDED_ITERATIONS,
    };
    match sizing {
        Sizing::Iterations(iterations) => iterations.min(most),
        Sizing::Slice { .. } => iterations.clamp(LEAST_OBSERVED_ITERATIONS, most),
    }
}

/// What the coordinator has an endpoint do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) case: Case,
    pub(crate) role: Role,
    pub(crate) clock: ClockSource,
    pub(crate) directory: PathBuf,
    /// The number of the trial in its run. Its parity gives the order of the parts, so that drift within a trial cancels.
    pub(crate) number: u64,
    /// The number of the pair that the first link, if there are several, belongs to.
    pub(crate) pair: u32,
    pub(crate) size: Sizing,
    /// Every byte of the timed part is checked too.
    pub(crate) check: bool,
    /// How the endpoints are looked at, in the one part that such a trial has beside its warm-up.
    pub(crate) look: Option<ProbeRequest>,
}

/// Which part of a trial a process takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    Client,
    Server,
    /// Both, each in a thread of its own.
    Both,
    /// An operation, which has no peer.
    Alone,
}

/// How many iterations a trial has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Sizing {
    /// As many as fill a slice.
    Slice {
        /// What the timed iterations of all parts should take together, in nanoseconds.
        slice_ns: u64,
        /// What an iteration took in an earlier trial, to begin with.
        hint_ns: Option<f64>,
    },
    /// Exactly so many in each part.
    Iterations(u64),
}

/// What a trial yields.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Yield {
    /// What was measured. `round`, `started_ns` and `floor_ns` are the coordinator's to fill in.
    pub sample: Sample,
    /// What both ends set, and what the kernel made of it.
    pub settings: Vec<Setting>,
    /// When the iterations of each part were over; only of one of several clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) courses: Vec<Course>,
    /// What was seen of the iterations, if the trial was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) observation: Option<Observation>,
}

/// What an endpoint reports at its end.
pub(crate) type Report = Result<Option<Yield>, String>;

/// What an endpoint says to the coordinator.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Said {
    /// It is one of several clients, and is warm; it goes on when the coordinator says `()`, when all are.
    Ready,
    /// It is one of several clients, and has had a whole part; the coordinator says `()` when all have.
    HadAPart,
    /// It has done what it was told to do, or failed.
    Done(Box<Report>),
}

/// The failures of an endpoint, in words for the record.
pub(crate) type Outcome<T> = Result<T, String>;

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Runs an endpoint over the control channel on standard input. `coordinator` is the process id of its parent.
pub fn main(coordinator: &str) -> Result<(), Failure> {
    sys::process::die_with_parent()?;
    if rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string()).as_deref() != Some(coordinator)
    {
        // The coordinator ended before the kernel was told to end this process with it.
        return Ok(());
    }
    let control = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3).or_fail("dup", "control channel")?;
    let control = Channel::from(control);
    let (orders, links): (Orders, Vec<OwnedFd>) = control.receive()?;
    let links = links.into_iter().map(Channel::from).collect();
    let report = obey(orders, links, &control);
    control.send(&Said::Done(Box::new(report)), &[])
}

/// Does what `orders` say. The first failure ends it: a thread whose peer failed may wait forever.
fn obey(orders: Orders, links: Vec<Channel>, control: &Channel) -> Report {
    if orders.role != Role::Both {
        let control = control.try_clone().map_err(text)?;
        return take_part(orders.clone(), orders.role, links, Some(control));
    }
    let mut links = links.into_iter();
    let (reports, outcomes) = std::sync::mpsc::channel();
    for role in [Role::Client, Role::Server] {
        let (orders, link, reports) = (orders.clone(), links.next(), reports.clone());
        std::thread::spawn(move || {
            // Nobody listens any more when the other endpoint has failed.
            let _ = reports.send(take_part(orders, role, Vec::from_iter(link), None));
        });
    }
    drop(reports);
    let panicked = |_| "an endpoint panicked; report this bug".to_owned();
    let first = outcomes.recv().map_err(panicked)??;
    let second = outcomes.recv().map_err(panicked)??;
    Ok(first.or(second))
}

fn take_part(mut orders: Orders, role: Role, links: Vec<Channel>, control: Option<Channel>) -> Report {
    let name = orders.case.spec.name.clone();
    let message = orders.case.size_bytes.unwrap_or(Size(1));
    orders.case.spec.params = orders.case.spec.params.matched(message);
    let carries = registry::card(&name).is_some_and(|card| card.payload == Payload::Bytes);
    registry::visit(&name, Session { orders, role, links, control, carries })
        .unwrap_or_else(|| Err(format!("there is no row named {name}; run one version of ipcmark only")))
}

/// One endpoint's part in a trial, compiled once for each row of the table.
pub(crate) struct Session {
    pub(crate) orders: Orders,
    role: Role,
    /// To every peer: one, unless there are several clients or servers.
    links: Vec<Channel>,
    /// To the coordinator, which has several clients begin together.
    control: Option<Channel>,
    /// The row carries bytes, so that they can be checked.
    carries: bool,
}

impl Visitor for Session {
    type Output = Report;

    fn mechanism<M: Mechanism>(self) -> Report {
        let case = &self.orders.case;
        let cpu = case.cpus.map(|pair| if self.role == Role::Client { pair.client } else { pair.server });
        cpu.map_or(Ok(()), sys::process::pin_to).map_err(text)?;
        let clock = Clock::new(self.orders.clock);
        if self.role == Role::Client {
            let ends =
                self.links.iter().zip(self.orders.pair..).map(|(link, pair)| self.accepted::<M>(link, pair));
            let ends = ends.collect::<Outcome<Vec<M::End>>>()?;
            let station = |end| Station::new(end, self.size_bytes(), self.answer_bytes());
            let client = Client {
                session: &self,
                links: &self.links,
                clock,
                stations: ends.into_iter().map(station).collect(),
                fds: self.fds().map_err(text)?,
                trial_iterations: 0,
            };
            return client.measure().map(Some);
        }
        let ends =
            self.links.iter().zip(self.orders.pair..).map(|(link, pair)| self.connected::<M>(link, pair));
        let ends = ends.collect::<Outcome<Vec<M::End>>>()?;
        let stations = ends.into_iter().map(|end| Station::new(end, self.answer_bytes(), self.size_bytes()));
        let mut stations: Vec<_> = stations.collect();
        match (stations.pop(), self.links.as_slice()) {
            (Some(station), [link]) => Server { session: &self, link, clock, station }.serve()?,
            (Some(last), links) => {
                stations.push(last);
                Hub::new(&self, links, stations, clock).map_err(text)?.serve()?;
            }
            (None, _) => return Err("the endpoint was given no link to its peer; report this bug".to_owned()),
        }
        Ok(None)
    }

    fn operation<O: Operation>(self) -> Report {
        self.orders.case.cpus.map_or(Ok(()), |pair| sys::process::pin_to(pair.client)).map_err(text)?;
        let operation = O::prepare(&self.trial(0)).map_err(text)?;
        let (sample, observation) = match (self.workload(), &self.orders.look) {
            (Workload::Accuracy, _) => (accuracy(&self.orders, operation).map_err(text)?, None),
            (_, None) => (cost(&self.orders, operation).map_err(text)?, None),
            (_, Some(look)) => observed_cost(&self.orders, operation, look)?,
        };
        Ok(Some(Yield { sample, settings: Vec::new(), courses: Vec::new(), observation }))
    }
}

impl Session {
    /// What the trial gives the mechanism of its `pair`.
    fn trial(&self, pair: u32) -> Trial<'_> {
        let Orders { case, directory, number, .. } = &self.orders;
        Trial {
            params: &case.spec.params,
            shape: Shape { size_bytes: self.size_bytes(), workload: case.workload },
            directory,
            number: number * u64::from(Peers::MOST) + u64::from(pair),
        }
    }

    /// Client's end to the server of `link`.
    fn accepted<M: Mechanism>(&self, link: &Channel, pair: u32) -> Outcome<M::End> {
        let (bound, ticket) = M::bind(&self.trial(pair)).map_err(text)?;
        let fds: Vec<_> = ticket.fds.iter().map(AsFd::as_fd).collect();
        link.send(&ticket.address, &fds).map_err(text)?;
        // Client must not keep server's descriptors open: server's death would go unseen.
        drop(ticket);
        M::accept(bound).map_err(text)
    }

    /// Server's end to the client of `link`.
    fn connected<M: Mechanism>(&self, link: &Channel, pair: u32) -> Outcome<M::End> {
        let (address, fds): (Vec<u8>, _) = link.receive().map_err(text)?;
        let end = M::connect(&self.trial(pair), Ticket { address, fds }).map_err(text)?;
        link.send(&end.settings(), &[]).map_err(text)?;
        Ok(end)
    }

    /// Waits until every client is as server as this one, where there are several.
    pub(crate) fn wait_for_the_others(&self) -> Outcome<()> {
        let Some(control) = self.shared_control() else { return Ok(()) };
        control.send(&Said::Ready, &[]).map_err(text)?;
        control.receive::<()>().map(drop).map_err(text)
    }

    /// Tells the coordinator that this client has had a whole part, where there are several.
    pub(crate) fn tell_of_the_first_part(&self) -> Outcome<()> {
        self.shared_control().map_or(Ok(()), |control| control.send(&Said::HadAPart, &[])).map_err(text)
    }

    /// Whether there is no other client to go on for.
    pub(crate) fn is_the_only_client(&self) -> bool {
        self.shared_control().is_none()
    }

    /// Whether every client has had a whole part by now.
    pub(crate) fn others_are_done(&self) -> Outcome<bool> {
        let Some(control) = self.shared_control() else { return Ok(true) };
        match wait_any(&[control], Duration::ZERO) {
            Err(Errno::INTR) => Ok(false),
            ready => Ok(ready.map_err(text)?.is_some()),
        }
    }

    /// The channel to the coordinator, where it has several clients keep together.
    fn shared_control(&self) -> Option<&Channel> {
        self.control.as_ref().filter(|_| self.orders.case.peers.clients() > 1)
    }

    /// Gets ready to look at this endpoint, as the coordinator wants it.
    pub(crate) fn attach<E: Endpoint>(&self, station: &Station<E>) -> Outcome<observe::Watching> {
        let look =
            self.orders.look.as_ref().ok_or("the coordinator does not want to look; report this bug")?;
        observe::attach(look, station.addresses()).map_err(text)
    }

    /// Whether the endpoints wait awake.
    pub(crate) fn spins(&self) -> bool {
        self.orders.case.spec.params.spins()
    }

    fn size_bytes(&self) -> usize {
        self.orders.case.size_bytes.map_or(1, Size::as_usize)
    }

    pub(crate) fn workload(&self) -> Workload {
        self.orders.case.workload
    }

    fn answer_bytes(&self) -> usize {
        answer_bytes(self.workload(), self.size_bytes())
    }

    /// How the payload is checked in a part that asks for everything, or not.
    ///
    /// Of a connection, client alone checks the answer: a server may answer from a process of its own.
    pub(crate) fn check(&self, everything: bool) -> Check {
        match (self.carries, everything || self.orders.check) {
            (false, _) => Check::Nothing,
            _ if self.workload() == Workload::Connect && self.role == Role::Server => Check::Nothing,
            (true, false) => Check::Sequence,
            (true, true) => Check::Everything,
        }
    }

    /// The descriptors that go with each message of a session: of a file that costs nothing to close.
    fn fds(&self) -> Result<Vec<OwnedFd>, Failure> {
        let Workload::Session(session) = self.workload() else { return Ok(Vec::new()) };
        let open = || std::fs::File::open("/dev/null").map(OwnedFd::from).or_fail("open", "/dev/null");
        (0..session.fds).map(|_| open()).collect()
    }
}
