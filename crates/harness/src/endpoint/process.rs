//! The process of an endpoint, from its orders to its report.
//!
//! It is `ipcmark endpoint`: started by a coordinator on this host, with its control channel on standard input, or reached
//! through a command, with the channel on standard input and output. It answers the coordinator's hello, takes its orders,
//! measures slice by slice, and ends.

use super::buffered::BufferedEndpoint;
use super::client::Client;
use super::control::{Control, Link, unexpected};
use super::fan_in::FanInServer;
use super::led;
use super::operation::OperationTrial;
use super::scenario;
use super::server::Server;
use super::session::{Outcome, Session};
use crate::host::reachable;
use crate::protocol::channel::Channel;
use crate::protocol::error::{Blame, EndpointError};
use crate::protocol::hello::Hello;
use crate::protocol::led::{ALIVE, EACH, LedOrders};
use crate::protocol::message::{CoordinatorMessage, EndpointMessage};
use crate::protocol::orders::{CLIENT_THREAD, Orders, Role, SERVER_THREAD};
use crate::protocol::report::EndpointResult;
use crate::protocol::scenario::{CAPABILITY, ScenarioOrders};
use mechanisms::{Mechanism, Operation, Visitor, registry};
use model::Size;
use model::card::Payload;
use rustix::fd::OwnedFd;
use sys::{Failure, OrFail};

/// Runs an endpoint over the socket on standard input. `coordinator` is the process id of its parent.
pub fn main(coordinator: &str) -> Result<(), Failure> {
    sys::process::die_with_parent()?;
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    if parent.as_deref() != Some(coordinator) {
        // The coordinator ended before the kernel was told to end this process with it.
        return Ok(());
    }
    let control = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3).or_fail("dup", "control channel")?;
    serve(&Control::over_socket(Channel::from(control)))
}

/// Runs an endpoint over standard input and output.
pub fn main_over_standard_streams() -> Result<(), Failure> {
    use std::io::IsTerminal;
    if std::io::stdin().is_terminal() {
        return Err(Failure::new(
            "start",
            "an endpoint",
            "its standard input is a terminal, and no coordinator",
            "name its command with --server-via; `ipcmark endpoint check COMMAND` tries one",
        ));
    }
    serve(&Control::over_standard_streams()?)
}

/// What endpoints of this program can beside the core of the protocol, of a scenario first.
const CAPABILITIES: &[&str] = &[CAPABILITY, EACH, ALIVE];

/// From the hello to the goodbye. What goes wrong before there are orders is told like what goes wrong after.
fn serve(control: &Control) -> Result<(), Failure> {
    // Endpoints of many cases are alive at once, and most of them sleep.
    sys::allocator::keep_little();
    let result = match greet(control) {
        Ok(None) => Ok(()),
        Ok(Some((Task::Led(orders), _))) => return be_led(*orders, control),
        Ok(Some((Task::Trial(orders), links))) => obey(*orders, links, control),
        Ok(Some((Task::Scenario(orders), _))) => scenario::process::take_part(&orders, control),
        Err(error) if error.blame == Blame::Coordinator => return Err(in_own_words(error)),
        Err(error) => Err(error),
    };
    match control.send(&result.into()) {
        // The coordinator has ended the trial, or is gone: nobody is left to be told.
        Err(error) if error.blame == Blame::Coordinator => Ok(()),
        sent => sent.map_err(in_own_words),
    }
}

/// Takes part in a trial that the coordinator leads. There is no last word unless it fails.
fn be_led(orders: LedOrders, control: &Control) -> Result<(), Failure> {
    match led::take_part(orders, control) {
        Ok(()) => Ok(()),
        // Nobody is left to be told.
        Err(error) if error.blame == Blame::Coordinator => Ok(()),
        // What to do about it depends on the peer, which is another program.
        Err(EndpointError { operation, object, answer, .. }) => {
            let why = format!("{operation} {object}: {answer}");
            control.send(&EndpointMessage::Failed(why)).map_err(in_own_words)
        }
    }
}

/// What an endpoint is to take part in.
#[derive(Debug)]
enum Task {
    Led(Box<LedOrders>),
    Trial(Box<Orders>),
    Scenario(Box<ScenarioOrders>),
}

/// Answers the coordinator's hello; then takes its orders, or its goodbye.
fn greet(control: &Control) -> Outcome<Option<(Task, Vec<OwnedFd>)>> {
    let (CoordinatorMessage::Hello(theirs), _) = control.receive()? else {
        return Err(unexpected("hello", "the coordinator"));
    };
    let facts = theirs.wants_facts.then(|| Box::new(reachable::facts(theirs.witness.as_ref())));
    // A child of its coordinator is known to it.
    let is_stranger = !control.is_socket();
    let mechanisms = if is_stranger { led::mechanisms() } else { Vec::new() };
    let capabilities = if is_stranger { CAPABILITIES } else { &CAPABILITIES[..1] };
    let capabilities = capabilities.iter().map(|name| (*name).to_owned()).collect();
    control.send(&EndpointMessage::Hello(Hello { facts, capabilities, mechanisms, ..Hello::own() }))?;
    if let Some(refusal) = theirs.refusal() {
        return Err(EndpointError {
            remedy: "install the same version on both hosts, or give --push".to_owned(),
            ..EndpointError::bug("take", "orders", &refusal)
        });
    }
    match control.receive()? {
        (CoordinatorMessage::Orders(orders), _) => Ok(Some((Task::Led(orders), Vec::new()))),
        (CoordinatorMessage::Trial(orders), fds) => Ok(Some((Task::Trial(orders), fds))),
        (CoordinatorMessage::Scenario(orders), fds) => Ok(Some((Task::Scenario(orders), fds))),
        (CoordinatorMessage::Goodbye, _) => Ok(None),
        _ => Err(unexpected("orders", "the coordinator")),
    }
}

/// The failure of the channel to the coordinator, which can only be said to whoever started this process.
fn in_own_words(error: EndpointError) -> Failure {
    Failure::new(error.operation, error.object, error.answer, error.remedy)
}

/// Does what `orders` say. The first failure ends it: a thread whose peer failed may wait forever.
fn obey(orders: Orders, links: Vec<OwnedFd>, control: &Control) -> EndpointResult {
    let mut links: Vec<Link> = links.into_iter().map(|fd| Link::Direct(Channel::from(fd))).collect();
    if orders.role != Role::Both {
        if orders.network.is_some() {
            links = vec![Link::Relayed(control.try_clone()?)];
        }
        return take_part(orders.clone(), orders.role, links, Some(control.try_clone()?));
    }
    let mut links = links.into_iter();
    let (results, outcomes) = std::sync::mpsc::channel();
    let roles =
        [(Role::Client, CLIENT_THREAD, Some(control.try_clone()?)), (Role::Server, SERVER_THREAD, None)];
    for (role, name, control) in roles {
        let (orders, link, results) = (orders.clone(), links.next(), results.clone());
        // By their names the coordinator knows which thread is whose.
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Nobody listens any more when the other endpoint has failed.
            let _ = results.send(take_part(orders, role, Vec::from_iter(link), control));
        });
        thread.or_fail("start", "an endpoint's thread")?;
    }
    drop(results);
    let panicked = |_| EndpointError::bug("run", "an endpoint", "it panicked");
    outcomes.recv().map_err(panicked)??;
    outcomes.recv().map_err(panicked)?
}

fn take_part(mut orders: Orders, role: Role, links: Vec<Link>, control: Option<Control>) -> EndpointResult {
    let name = orders.case.spec.name.clone();
    let message = orders.case.size_bytes.unwrap_or(Size(1));
    orders.case.spec.params = orders.case.spec.params.matched(message);
    let carries_bytes = registry::card(&name).is_some_and(|card| card.payload == Payload::Bytes);
    let session = Session { orders, role, links, control, carries_bytes };
    registry::visit(&name, TakePart(session)).unwrap_or_else(|| {
        Err(EndpointError {
            remedy: "run one version of ipcmark only".to_owned(),
            ..EndpointError::bug("find", &name, "the registry has no such mechanism")
        })
    })
}

/// An endpoint's side of a trial, compiled once for each mechanism and operation.
struct TakePart(Session);

impl Visitor for TakePart {
    type Output = EndpointResult;

    fn mechanism<M: Mechanism>(self) -> EndpointResult {
        let session = &self.0;
        session.pin()?;
        let (message, answer) = (session.size_bytes(), session.answer_bytes());
        let links = session.links.iter().zip(session.orders.pair..);
        let mut endpoints = Vec::new();
        if session.role == Role::Client {
            for (link, pair) in links {
                endpoints.push(BufferedEndpoint::new(
                    session.client_endpoint::<M>(link, pair)?,
                    message,
                    answer,
                ));
            }
            return Client::new(session, Box::new(endpoints))?.serve();
        }
        for (link, pair) in links {
            endpoints.push(BufferedEndpoint::new(session.server_endpoint::<M>(link, pair)?, answer, message));
        }
        match (endpoints.pop(), session.links.as_slice()) {
            (Some(endpoint), [link]) => Server::new(session, link, endpoint)?.serve(),
            (Some(last), links) => {
                endpoints.push(last);
                FanInServer::new(session, links, endpoints)?.serve()
            }
            (None, _) => Err(EndpointError::bug("connect", "the endpoint", "it has no link to a peer")),
        }
    }

    fn operation<O: Operation>(self) -> EndpointResult {
        self.0.pin()?;
        let operation = O::prepare(&self.0.context(0))?;
        OperationTrial::new(&self.0, operation)?.serve()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::channel::channel;
    use crate::protocol::error::Blame;
    use crate::protocol::orders::{Singly, Sizing, SliceOrders};
    use crate::protocol::report::SliceReport;
    use model::inject::InjectedAmount;
    use model::record::ClockSource;
    use model::{Case, EndpointRole, Endpoints, Inject, Peers, Spec, Workload, floor};

    fn orders(case: Case, role: Role) -> Orders {
        Orders {
            case,
            role,
            clock: ClockSource::MonotonicRaw,
            directory: std::env::temp_dir(),
            number: 0,
            pair: 0,
            inject_ns: None,
            check: true,
            probe: None,
            network: None,
        }
    }

    /// What an endpoint with `orders` reports of `slices`, each of so many iterations, and what it came to.
    fn slices(orders: Orders, links: Vec<OwnedFd>, slices: &[u64]) -> (Vec<SliceReport>, EndpointResult) {
        let (coordinator, control) = channel().unwrap();
        let orders_of =
            |iterations| SliceOrders { size: Sizing::Iterations(iterations), singly: Singly::Last };
        let say = |message| coordinator.send(&message, &[]).unwrap();
        slices.iter().for_each(|iterations| say(CoordinatorMessage::Slice(orders_of(*iterations))));
        say(CoordinatorMessage::Goodbye);
        let control = Control::over_socket(control);
        let result = obey(orders, links, &control);
        drop(control);
        let mut reports = Vec::new();
        while let Ok((message, _)) = coordinator.receive::<EndpointMessage>() {
            if let EndpointMessage::Slice(report) = message {
                reports.push(*report);
            }
        }
        (reports, result)
    }

    fn connected(name: &str, workload: Workload, size_bytes: u64) -> Case {
        let spec = Spec::plain(name);
        let size_bytes = Some(Size(size_bytes));
        Case { spec, workload, size_bytes, endpoints: Endpoints::Threads, ..floor::operation(name, 1) }
    }

    /// What an endpoint makes of `messages`, and what it says.
    fn greeted(messages: &[CoordinatorMessage]) -> (Outcome<Option<Orders>>, Vec<EndpointMessage>) {
        let (coordinator, control) = channel().unwrap();
        messages.iter().for_each(|message| coordinator.send(message, &[]).unwrap());
        rustix::net::shutdown(&coordinator, rustix::net::Shutdown::Write).unwrap();
        let result = greet(&Control::over_socket(control));
        let said = std::iter::from_fn(|| coordinator.receive().ok()).map(|(message, _)| message);
        let orders = |(task, _)| match task {
            Task::Led(orders) => panic!("{orders:?}"),
            Task::Trial(orders) => *orders,
            Task::Scenario(orders) => panic!("{orders:?}"),
        };
        (result.map(|given| given.map(orders)), said.collect())
    }

    #[test]
    fn orders_come_after_a_hello_of_this_version_alone() {
        let hello = || CoordinatorMessage::Hello(Hello::own());
        let orders = || {
            let case = connected("pipe", Workload::Latency, 1);
            CoordinatorMessage::Trial(Box::new(orders(case, Role::Client)))
        };
        let (taken, said) = greeted(&[hello(), orders()]);
        assert!(taken.unwrap().is_some_and(|orders| orders.role == Role::Client));
        assert!(matches!(&said[..], [EndpointMessage::Hello(hello)] if hello.refusal().is_none()));
        assert!(greeted(&[hello(), CoordinatorMessage::Goodbye]).0.unwrap().is_none());

        let later = Hello { version: 99, ..Hello::own() };
        let (refused, said) = greeted(&[CoordinatorMessage::Hello(later), orders()]);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("speaks version 99") && refused.contains("--push"), "{refused}");
        // So that the coordinator knows the version of this side, too.
        assert_eq!(said.len(), 1);
        greeted(&[orders()]).0.unwrap_err();
        greeted(&[hello(), hello()]).0.unwrap_err();
        let closed = greeted(&[]).0.unwrap_err();
        assert_eq!(closed.blame, Blame::Coordinator, "{closed}");
    }

    #[test]
    fn facts_are_given_to_whoever_asks() {
        let hello = Hello { wants_facts: true, ..Hello::own() };
        let (_, said) = greeted(&[CoordinatorMessage::Hello(hello), CoordinatorMessage::Goodbye]);
        let [EndpointMessage::Hello(Hello { facts: Some(facts), .. })] = &said[..] else {
            panic!("{said:?}")
        };
        assert!(facts.cpu.is_some() && facts.clock.cost_ns > 0.0, "{facts:?}");
    }

    /// Both endpoints of `case` as threads of this process, where nobody pins them.
    fn both(case: Case, iterations: &[u64]) -> (Vec<SliceReport>, EndpointResult) {
        let case = Case { cpus: None, ..case };
        let (client, server) = channel().unwrap();
        slices(orders(case, Role::Both), vec![client.into(), server.into()], iterations)
    }

    #[test]
    fn each_workload_yields_samples_of_the_iterations_that_were_asked_for() {
        for workload in [Workload::Latency, Workload::Throughput, Workload::Transfer] {
            let (reports, result) = both(connected("pipe", workload, 100), &[20, 30]);
            assert_eq!(result, Ok(()));
            let iterations: Vec<u64> = reports.iter().map(|report| report.sample.iterations).collect();
            assert_eq!(iterations, [20, 30], "{workload}");
            for SliceReport { sample, .. } in &reports {
                assert!(sample.elapsed_ns > 0.0 && sample.server.is_some() && sample.speed.is_some());
                let is_streamed = workload == Workload::Throughput;
                assert_eq!((sample.each.is_some(), sample.calls.is_some()), (!is_streamed, is_streamed));
            }
            if workload == Workload::Latency {
                // A warm-up in two pieces, 4 and 16, and two phases, each with 5 iterations before and 2 after; then two phases.
                let counts: Vec<u64> = reports.iter().map(|report| report.sample.trial_iterations).collect();
                assert_eq!(counts, [20 + 2 * 20 + 4 * 7, 2 * 30 + 2 * 7]);
            }
        }
    }

    /// That an iteration of `slice` has the delay that it is given in it, asleep, and has it once. However busy the host is, it is not in
    /// each of many slices half as long again, nor does the server of a stream always come when all was sent.
    fn assert_delayed_once(what: &str, slice: impl Fn(Option<f64>) -> f64) {
        const DELAY_NS: f64 = 10e6;
        const TRIES: usize = 50;
        let mut seen = Vec::new();
        while !seen.iter().any(|iteration_ns| (DELAY_NS..1.5 * DELAY_NS).contains(iteration_ns)) {
            assert!(seen.len() < TRIES, "{what}: a delay of {DELAY_NS} ns makes {seen:?}");
            seen.push(slice(Some(DELAY_NS)));
        }
        let is_short = || slice(None) < DELAY_NS / 2.0;
        assert!((0..TRIES).any(|_| is_short()), "{what}: as long without a delay");
    }

    /// `case`, not pinned, asleep for `inject_ns` in each iteration of `side`.
    fn delayed(case: Case, side: EndpointRole, inject_ns: Option<f64>) -> Case {
        let amount = |ns| InjectedAmount::Ns(ns as u64);
        let inject = inject_ns.map(|ns| Inject { side, is_asleep: true, amount: amount(ns) });
        Case { cpus: None, inject, ..case }
    }

    #[test]
    fn an_injected_delay_is_in_what_an_iteration_takes() {
        const ITERATIONS: u64 = 10;
        let sample = |orders, links| slices(orders, links, &[ITERATIONS]).0.remove(0).sample.iteration_ns();
        assert_delayed_once("a system call", |inject_ns| {
            let case = delayed(floor::operation(floor::SYSCALL, 1), EndpointRole::Client, inject_ns);
            sample(Orders { inject_ns, ..orders(case, Role::Alone) }, Vec::new())
        });
        for workload in [Workload::Latency, Workload::Throughput] {
            for side in EndpointRole::ALL {
                assert_delayed_once(&format!("{workload}, {side:?}"), |inject_ns| {
                    let case = delayed(connected("pipe", workload, 64), side, inject_ns);
                    let (client, server) = channel().unwrap();
                    let orders = Orders { inject_ns, ..orders(case, Role::Both) };
                    sample(orders, vec![client.into(), server.into()])
                });
            }
        }
    }

    #[test]
    fn an_operation_needs_no_peer() {
        let case = Case { cpus: None, ..floor::operation(floor::SYSCALL, 1) };
        let (reports, result) = slices(orders(case, Role::Alone), Vec::new(), &[30, 7]);
        assert_eq!(result, Ok(()));
        let counts: Vec<(u64, u64)> =
            reports.iter().map(|r| (r.sample.iterations, r.sample.trial_iterations)).collect();
        assert_eq!(counts, [(30, 60), (7, 7)]);
        assert!(reports.iter().all(|report| report.sample.server.is_none()));
    }

    #[test]
    fn a_name_that_is_unknown_is_refused_in_words() {
        let error = both(connected("carrier-pigeon", Workload::Latency, 1), &[1]).1.unwrap_err();
        assert!(error.to_string().contains("carrier-pigeon") && error.blame == Blame::Itself, "{error}");
    }

    #[test]
    fn a_client_blames_a_server_that_goes_away() {
        let (client, server) = channel().unwrap();
        let (_coordinator, control) = channel().unwrap();
        drop(server);
        let case = Case { cpus: None, peers: Peers::Pair, ..connected("pipe", Workload::Latency, 1) };
        let control = Control::over_socket(control);
        let error = obey(orders(case, Role::Client), vec![client.into()], &control).unwrap_err();
        assert_eq!(error.blame, Blame::Peer, "{error}");
    }

    #[test]
    fn a_server_blames_a_client_that_closes_in_the_middle_of_a_phase() {
        let (client, server) = channel().unwrap();
        let (_coordinator, control) = channel().unwrap();
        let case = Case { cpus: None, ..connected("pipe", Workload::Latency, 1) };
        let served = std::thread::spawn({
            let orders = orders(case.clone(), Role::Server);
            move || obey(orders, vec![server.into()], &Control::over_socket(control))
        });
        // A client that announces a phase, and closes before its first message.
        let session = Session {
            orders: orders(case, Role::Client),
            role: Role::Client,
            links: Vec::new(),
            control: None,
            carries_bytes: true,
        };
        struct Leave<'a>(Session, &'a Link);
        impl Visitor for Leave<'_> {
            type Output = ();
            fn mechanism<M: Mechanism>(self) {
                use crate::protocol::message::PeerMessage;
                use crate::protocol::phase::{Phase, PhaseKind};
                let endpoint = self.0.client_endpoint::<M>(self.1, 0).unwrap();
                self.1.receive("the settings", Some).unwrap();
                let kind = PhaseKind::Total;
                let phase = Phase { kind, iterations: 5, check: false, reads_speed: false };
                self.1.send(PeerMessage::Phase(phase), &[]).unwrap();
                drop(endpoint);
            }
            fn operation<O: Operation>(self) {}
        }
        registry::visit("pipe", Leave(session, &Link::Direct(client))).unwrap();
        let error = served.join().unwrap().unwrap_err();
        assert_eq!(error.blame, Blame::Peer, "{error}");
        assert!(error.to_string().contains("the peer closed in the middle of a phase"), "{error}");
    }
}
