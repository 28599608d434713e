//! The process of an endpoint, from its orders to its report.
//!
//! The coordinator starts it as a re-execution of the binary. It takes its orders from the control channel on its standard
//! input, measures once, reports, and ends.

use super::buffered::BufferedEndpoint;
use super::client::Client;
use super::fan_in::FanInServer;
use super::operation::OperationTrial;
use super::server::Server;
use super::session::{Outcome, Session};
use super::speed::SpeedReader;
use crate::clock::Clock;
use crate::protocol::channel::Channel;
use crate::protocol::error::EndpointError;
use crate::protocol::orders::{Orders, Role, VERSION};
use crate::protocol::report::{EndpointMessage, EndpointResult};
use mechanisms::{Mechanism, Operation, Visitor, registry};
use model::Size;
use model::card::Payload;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rustix::fd::OwnedFd;
use sys::{Failure, OrFail};

/// Runs an endpoint over the control channel on standard input. `coordinator` is the process id of its parent.
pub fn main(coordinator: &str) -> Result<(), Failure> {
    sys::process::die_with_parent()?;
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    if parent.as_deref() != Some(coordinator) {
        // The coordinator ended before the kernel was told to end this process with it.
        return Ok(());
    }
    let control = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3).or_fail("dup", "control channel")?;
    let control = Channel::from(control);
    let (orders, links): (serde_json::Value, Vec<OwnedFd>) = control.receive()?;
    let links = links.into_iter().map(Channel::from).collect();
    let result = understood(orders).and_then(|orders| obey(orders, links, &control));
    control.send(&EndpointMessage::Done(result), &[])
}

/// The orders, if they are of the version of the protocol that this build speaks. Those of another may have any form.
fn understood(orders: serde_json::Value) -> Result<Orders, EndpointError> {
    let refused = |answer: String| EndpointError {
        remedy: "compare results files of both builds instead".to_owned(),
        ..EndpointError::bug("take", "orders", &answer)
    };
    let version = orders.get("version").and_then(serde_json::Value::as_u64);
    if version != Some(u64::from(VERSION)) {
        let theirs = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
        return Err(refused(format!(
            "the coordinator speaks version {theirs} of the endpoint protocol, this build {VERSION}"
        )));
    }
    serde_json::from_value(orders).map_err(|error| refused(error.to_string()))
}

/// Does what `orders` say. The first failure ends it: a thread whose peer failed may wait forever.
fn obey(orders: Orders, links: Vec<Channel>, control: &Channel) -> EndpointResult {
    if orders.role != Role::Both {
        let control = control.try_clone()?;
        return take_part(orders.clone(), orders.role, links, Some(control));
    }
    let mut links = links.into_iter();
    let (results, outcomes) = std::sync::mpsc::channel();
    for (role, control) in [(Role::Client, Some(control.try_clone()?)), (Role::Server, None)] {
        let (orders, link, results) = (orders.clone(), links.next(), results.clone());
        std::thread::spawn(move || {
            // Nobody listens any more when the other endpoint has failed.
            let _ = results.send(take_part(orders, role, Vec::from_iter(link), control));
        });
    }
    drop(results);
    let panicked = |_| EndpointError::bug("run", "an endpoint", "it panicked");
    outcomes.recv().map_err(panicked)??;
    outcomes.recv().map_err(panicked)?
}

fn take_part(
    mut orders: Orders,
    role: Role,
    links: Vec<Channel>,
    control: Option<Channel>,
) -> EndpointResult {
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
        let session = self.0;
        let is_client = session.role == Role::Client;
        let cpu = session.orders.case.cpus.map(|pair| if is_client { pair.client } else { pair.server });
        cpu.map_or(Ok(()), sys::process::pin_to)?;
        let clock = Clock::new(session.orders.clock);
        let (message, answer) = (session.size_bytes(), session.answer_bytes());
        let links = || session.links.iter().zip(session.orders.pair..);
        if is_client {
            let buffered = |endpoint| BufferedEndpoint::new(endpoint, message, answer);
            let endpoints = links().map(|(link, pair)| session.accept::<M>(link, pair).map(buffered));
            let endpoints = endpoints.collect::<Outcome<_>>()?;
            let speed = match session.links.as_slice() {
                [link] if session.reads_pair() => SpeedReader::of_client(clock, link)?,
                _ => SpeedReader::new(clock, None),
            };
            let client = Client {
                session: &session,
                links: &session.links,
                clock,
                endpoints,
                fds: session.fds()?,
                speed,
                iterations_so_far: 0,
                iteration_ns: None,
                random: SmallRng::seed_from_u64(session.orders.number),
            };
            return client.serve();
        }
        let buffered = |endpoint| BufferedEndpoint::new(endpoint, answer, message);
        let endpoints = links().map(|(link, pair)| session.connect::<M>(link, pair).map(buffered));
        let mut endpoints: Vec<_> = endpoints.collect::<Outcome<_>>()?;
        match (endpoints.pop(), session.links.as_slice()) {
            (Some(endpoint), [link]) => {
                let speed = match session.reads_pair() {
                    true => SpeedReader::of_server(clock, link)?,
                    false => SpeedReader::new(clock, None),
                };
                Server { session: &session, link, clock, endpoint, speed }.serve()
            }
            (Some(last), links) => {
                endpoints.push(last);
                FanInServer::new(&session, links, endpoints, clock)?.serve()
            }
            (None, _) => Err(EndpointError::bug("connect", "the endpoint", "it has no link to a peer")),
        }
    }

    fn operation<O: Operation>(self) -> EndpointResult {
        self.0.orders.case.cpus.map_or(Ok(()), |pair| sys::process::pin_to(pair.client))?;
        let operation = O::prepare(&self.0.context(0))?;
        OperationTrial::new(&self.0, operation).serve()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::channel::channel;
    use crate::protocol::error::Blame;
    use crate::protocol::orders::Sizing;
    use model::record::ClockSource;
    use model::{Case, Endpoints, Peers, Spec, floor};

    fn orders(case: Case, role: Role, iterations: u64) -> Orders {
        Orders {
            version: VERSION,
            case,
            role,
            clock: ClockSource::MonotonicRaw,
            directory: std::env::temp_dir(),
            number: 0,
            pair: 0,
            size: Sizing::Iterations(iterations),
            check: true,
            probe: None,
        }
    }

    fn connected(name: &str, workload: Workload, size_bytes: u64) -> Case {
        let spec = Spec::plain(name);
        let size_bytes = Some(Size(size_bytes));
        Case { spec, workload, size_bytes, endpoints: Endpoints::Threads, ..floor::operation(name, 1) }
    }

    #[test]
    fn orders_of_another_version_are_refused_whatever_their_form() {
        let own =
            serde_json::to_value(orders(connected("pipe", Workload::Latency, 1), Role::Client, 1)).unwrap();
        understood(own.clone()).unwrap();
        for (orders, theirs) in [
            (serde_json::json!({"version": VERSION + 1, "task": 3}), "version 2"),
            (serde_json::json!({}), "version none"),
        ] {
            let refused = understood(orders).unwrap_err().to_string();
            assert!(refused.contains(theirs) && refused.contains("this build 1"), "{refused}");
        }
        let mut damaged = own;
        damaged["role"] = serde_json::json!("spectator");
        understood(damaged).unwrap_err();
    }

    /// Both endpoints of `case` as threads of this process, where nobody pins them.
    fn both(case: Case, iterations: u64) -> EndpointResult {
        let case = Case { cpus: None, ..case };
        let (client, server) = channel().unwrap();
        let (_coordinator, control) = channel().unwrap();
        obey(orders(case, Role::Both, iterations), vec![client, server], &control)
    }

    #[test]
    fn each_workload_yields_a_sample_of_the_iterations_that_were_asked_for() {
        for workload in [Workload::Latency, Workload::Throughput, Workload::Transfer] {
            let report = both(connected("pipe", workload, 100), 20).unwrap().unwrap();
            assert_eq!(report.sample.iterations, 20, "{workload}");
            assert!(report.sample.elapsed_ns > 0.0 && report.sample.server.is_some(), "{workload}");
            let is_streamed = workload == Workload::Throughput;
            assert_eq!(
                (report.sample.each.is_some(), report.sample.calls.is_some()),
                (!is_streamed, is_streamed)
            );
            // A warm-up and two phases, each with its lead-in and its lead-out.
            assert_eq!(report.sample.trial_iterations, 3 * (20 + 16), "{workload}");
        }
    }

    #[test]
    fn an_operation_needs_no_peer() {
        let (_coordinator, control) = channel().unwrap();
        let case = Case { cpus: None, ..floor::operation(floor::SYSCALL, 1) };
        let report = obey(orders(case, Role::Alone, 30), Vec::new(), &control).unwrap().unwrap();
        assert_eq!((report.sample.iterations, report.sample.trial_iterations), (30, 60));
        assert!(report.sample.server.is_none());
    }

    #[test]
    fn a_name_that_is_unknown_is_refused_in_words() {
        let error = both(connected("carrier-pigeon", Workload::Latency, 1), 1).unwrap_err();
        assert!(error.to_string().contains("carrier-pigeon") && error.blame == Blame::Itself, "{error}");
    }

    #[test]
    fn a_client_blames_a_server_that_goes_away() {
        let (client, server) = channel().unwrap();
        let (_coordinator, control) = channel().unwrap();
        drop(server);
        let case = Case { cpus: None, peers: Peers::Pair, ..connected("pipe", Workload::Latency, 1) };
        let error = obey(orders(case, Role::Client, 1), vec![client], &control).unwrap_err();
        assert_eq!(error.blame, Blame::Peer, "{error}");
    }

    #[test]
    fn a_server_blames_a_client_that_closes_in_the_middle_of_a_phase() {
        let (client, server) = channel().unwrap();
        let (_coordinator, control) = channel().unwrap();
        let case = Case { cpus: None, ..connected("pipe", Workload::Latency, 1) };
        let served = std::thread::spawn({
            let orders = orders(case.clone(), Role::Server, 1);
            move || obey(orders, vec![server], &control)
        });
        // A client that announces a phase, and closes before its first message.
        let session = Session {
            orders: orders(case, Role::Client, 1),
            role: Role::Client,
            links: Vec::new(),
            control: None,
            carries_bytes: true,
        };
        struct Leave<'a>(Session, &'a Channel);
        impl Visitor for Leave<'_> {
            type Output = ();
            fn mechanism<M: Mechanism>(self) {
                use crate::protocol::phase::{Phase, PhaseKind};
                let endpoint = self.0.accept::<M>(self.1, 0).unwrap();
                let _: (Vec<model::record::Setting>, _) = self.1.receive().unwrap();
                self.1.send(&Phase { kind: PhaseKind::Total, iterations: 5, check: false }, &[]).unwrap();
                drop(endpoint);
            }
            fn operation<O: Operation>(self) {}
        }
        registry::visit("pipe", Leave(session, &client)).unwrap();
        let error = served.join().unwrap().unwrap_err();
        assert_eq!(error.blame, Blame::Peer, "{error}");
        assert!(error.to_string().contains("the peer closed in the middle of a phase"), "{error}");
    }
}
