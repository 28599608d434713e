//! The process itself: it takes its orders, starts its threads, and answers the coordinator while they go on.

use super::draws::Draws;
use super::flow_end::{FlowEnd, largest, shape};
use super::gate::Gate;
use super::meters::Meters;
use super::plan::{StrandPlan, strands};
use super::strand::{FlowError, Shared, Strand};
use crate::clock::Clock;
use crate::endpoint::control::{Control, unexpected};
use crate::endpoint::injected::steps_per_ns;
use crate::protocol::error::{EndpointError, Outcome};
use crate::protocol::message::{CoordinatorMessage, EndpointMessage};
use crate::protocol::scenario::{FlowTicket, ProcessSnapshot, ScenarioOrders};
use mechanisms::object::{self, ObjectEndpoint};
use mechanisms::{Ticket, TrialContext, registry};
use model::{Invalid, Scenario};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use sys::OrFail;

/// Takes part in a scenario as `orders` say, until the coordinator says goodbye.
pub(in crate::endpoint) fn take_part(orders: &ScenarioOrders, control: &Control) -> Outcome<()> {
    let scenario = Scenario::parse(&orders.scenario, registry::CARDS).map_err(refused)?;
    let process = scenario.processes.get(orders.process);
    let process =
        process.ok_or_else(|| EndpointError::bug("find", "the process", "it is not in the scenario"))?;
    let cpus = process.cpus.clone();
    if !cpus.is_empty() {
        sys::process::run_on(&cpus)?;
    }
    // A sleep is as long as was asked for, and not longer by what the kernel allows itself for other programs.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))
        .or_fail("prctl(PR_SET_TIMERSLACK)", "this process")?;
    sys::signal::block_all()?;
    let plans = strands(&scenario, orders.process);
    let clock = Clock::new(orders.clock);
    let passes = scenario.flows.iter().filter(|flow| flow.from == orders.process).map(|flow| flow.fds);
    let open = |_| std::fs::File::open("/dev/null").map(OwnedFd::from).or_fail("open", "/dev/null");
    let shared = Shared {
        cpus,
        clock,
        seed: orders.seed,
        gate: Gate::new(clock, plans.len())?,
        meters: Meters::new(&scenario, orders.process),
        work: (plans.len() > 1).then(|| Mutex::new(())),
        passed: (0..passes.max().unwrap_or(0)).map(open).collect::<Result<_, _>>()?,
        settings: Mutex::default(),
        scenario,
    };
    let (mut tickets, mut inboxes) = (BTreeMap::new(), BTreeMap::new());
    for flow in shared.scenario.received_by(orders.process) {
        let (to, from) = channel();
        tickets.insert(flow, to);
        inboxes.insert(flow, from);
    }
    let line = Mutex::new(control.try_clone()?);
    let unconnected = AtomicUsize::new(plans.len());
    std::thread::scope(|scope| {
        let (shared, line, unconnected) = (&shared, &line, &unconnected);
        let mut result = Ok(());
        for (at, plan) in plans.iter().enumerate() {
            let inboxes =
                plan.receives.iter().filter_map(|flow| Some((*flow, inboxes.remove(flow)?))).collect();
            let strand = StrandOrders { orders, shared, line, unconnected, at, plan };
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || strand.run(inboxes));
            result = result.and(thread.or_fail("start", "a thread of a scenario's process").map(drop));
        }
        let result = result.map_err(EndpointError::from);
        let result = result.and_then(|()| lead(control, line, shared, &plans, &tickets));
        // A coordinator that is gone needs no word. The threads wait for their peers, for as long as this process lives.
        let _ = tell(line, &result.into());
        std::process::exit(0)
    })
}

/// Does what the coordinator says, until that is goodbye.
fn lead(
    control: &Control,
    line: &Mutex<Control>,
    shared: &Shared,
    plans: &[StrandPlan],
    tickets: &BTreeMap<usize, Sender<Ticket>>,
) -> Outcome<()> {
    let beginning = plans.iter().filter(|plan| !plan.groups.is_empty()).count();
    loop {
        match control.receive()? {
            (CoordinatorMessage::FlowTicket(FlowTicket { flow, address }), fds) => {
                let to = tickets.get(&flow);
                let to =
                    to.ok_or_else(|| unexpected("a ticket of a flow that it receives", "the coordinator"))?;
                // A thread that has failed says so itself.
                let _ = to.send(Ticket { address, fds });
            }
            (CoordinatorMessage::Begin, _) => shared.gate.open(),
            (CoordinatorMessage::Pause, _) => {
                shared.gate.close(beginning);
                tell(line, &EndpointMessage::Parked)?;
            }
            (CoordinatorMessage::Snapshot { round_trips }, _) => {
                let snapshot = snapshot(shared, round_trips);
                tell(line, &EndpointMessage::Snapshot(Box::new(snapshot)))?;
            }
            (CoordinatorMessage::Goodbye, _) => return Ok(()),
            _ => return Err(unexpected("orders", "the coordinator")),
        }
    }
}

/// What the process has done so far, without this thread, which only listens.
fn snapshot(shared: &Shared, round_trips: bool) -> ProcessSnapshot {
    let (all, own) = (sys::usage::of_this_process(), sys::usage::of_this_thread());
    let switches = |usage: sys::usage::ThreadUsage| usage.voluntary_switches + usage.involuntary_switches;
    ProcessSnapshot {
        at: shared.clock.now(),
        cpu_ns: all.cpu_ns.saturating_sub(own.cpu_ns),
        switches: switches(all).saturating_sub(switches(own)),
        flows: shared.meters.read(round_trips),
        elsewhere: shared.elsewhere(),
        settings: if round_trips { shared.settings().clone() } else { Vec::new() },
    }
}

/// Tells the coordinator something, a thread at a time.
fn tell(line: &Mutex<Control>, message: &EndpointMessage) -> Outcome<()> {
    line.lock().unwrap_or_else(PoisonError::into_inner).send(message)
}

/// What one thread is to do.
#[derive(Clone, Copy)]
struct StrandOrders<'a> {
    orders: &'a ScenarioOrders,
    shared: &'a Shared,
    line: &'a Mutex<Control>,
    unconnected: &'a AtomicUsize,
    at: usize,
    plan: &'a StrandPlan,
}

impl StrandOrders<'_> {
    /// Connects its endpoints of flows, and takes part. The coordinator hears what goes wrong.
    fn run(self, inboxes: BTreeMap<usize, Receiver<Ticket>>) {
        let result = self.connect(&inboxes).and_then(|strand| {
            if self.unconnected.fetch_sub(1, Ordering::AcqRel) == 1 {
                tell(self.line, &EndpointMessage::Connected)?;
            }
            strand.run().map_err(|error| self.in_words(error))
        });
        if let Err(error) = result {
            // A coordinator that is gone needs no word.
            let _ = tell(self.line, &Err(error).into());
        }
    }

    /// Connects its endpoints in the order of the file. So do all, and whoever is behind waits for nobody who is further.
    fn connect(&self, inboxes: &BTreeMap<usize, Receiver<Ticket>>) -> Outcome<Strand<'_>> {
        let steps_per_ns = steps_per_ns(&self.shared.clock);
        let scenario = &self.shared.scenario;
        let sends = self.plan.sends(scenario);
        let mut ends: Vec<Option<FlowEnd>> = scenario.flows.iter().map(|_| None).collect();
        for (flow, end) in ends.iter_mut().enumerate() {
            let described = &scenario.flows[flow];
            let endpoint = if sends.contains(&flow) {
                self.sender(flow)
            } else if let Some(inbox) = inboxes.get(&flow) {
                self.receiver(flow, inbox)
            } else {
                continue;
            };
            let endpoint = endpoint.map_err(|error| self.of_flow(flow, error))?;
            self.shared.settings().extend(endpoint.settings().into_iter().map(|setting| (flow, setting)));
            let card = registry::card(&described.mechanism.name)
                .ok_or_else(|| no_mechanism(&described.mechanism.name))?;
            let draws = Draws::of_flow(self.orders.seed, flow);
            *end = Some(FlowEnd::new(endpoint, described, card, draws));
        }
        Ok(Strand::new(self.shared, self.at, self.plan, steps_per_ns, ends))
    }

    /// Makes the endpoint that sends `flow`, and has the coordinator give its ticket to the receiver.
    fn sender(&self, flow: usize) -> Outcome<Box<dyn ObjectEndpoint>> {
        let give = |Ticket { address, fds }: Ticket| {
            let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
            let ticket = EndpointMessage::FlowTicket(FlowTicket { flow, address });
            self.line.lock().unwrap_or_else(PoisonError::into_inner).send_with(&ticket, &fds)
        };
        let name = &self.shared.scenario.flows[flow].mechanism.name;
        let made = self.in_context(flow, |trial| object::client(name, trial, give));
        made.unwrap_or_else(|| Err(no_mechanism(name)))
    }

    /// Makes the endpoint that receives `flow`, when its ticket has come.
    fn receiver(&self, flow: usize, inbox: &Receiver<Ticket>) -> Outcome<Box<dyn ObjectEndpoint>> {
        let name = &self.shared.scenario.flows[flow].mechanism.name;
        let gone = |_| EndpointError::bug("receive", "the ticket", "nobody listens for it any more");
        let ticket = inbox.recv().map_err(gone)?;
        let made = self.in_context(flow, |trial| object::server(name, trial, ticket));
        Ok(made.ok_or_else(|| no_mechanism(name))??)
    }

    /// What `make` makes of what the mechanism of `flow` is given.
    fn in_context<T>(&self, flow: usize, make: impl FnOnce(&TrialContext<'_>) -> T) -> T {
        let described = &self.shared.scenario.flows[flow];
        let mechanism = described.mechanism.clone();
        let params = mechanism.params.matched(largest(described));
        let directory: &Path = &self.orders.directory;
        let number = self.orders.number + flow as u64;
        make(&TrialContext { params: &params, shape: shape(described), directory, number, network: None })
    }

    fn in_words(&self, (flow, error): FlowError) -> EndpointError {
        self.of_flow(flow, error.into())
    }

    /// `error` with the name of the flow that it is of.
    fn of_flow(&self, flow: usize, error: EndpointError) -> EndpointError {
        let scenario = &self.shared.scenario;
        let (of, process) = (&scenario.flows[flow], &scenario.processes[self.orders.process]);
        let object =
            format!("{}, in process '{}', flow '{}' ({})", error.object, process.name, of.name, of.mechanism);
        EndpointError { object, ..error }
    }
}

fn no_mechanism(name: &str) -> EndpointError {
    EndpointError {
        remedy: "run one version of ipcmark only".to_owned(),
        ..EndpointError::bug("find", name, "the registry has no such mechanism")
    }
}

/// A scenario that this build does not read.
fn refused(invalid: Invalid) -> EndpointError {
    EndpointError {
        remedy: "run one version of ipcmark only".to_owned(),
        ..EndpointError::bug("read", "the scenario", &invalid.to_string())
    }
}
