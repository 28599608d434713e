//! The process of an endpoint, from its orders to its report.
//!
//! The coordinator starts it as a re-execution of the binary. It takes its orders from the control channel on its standard
//! input, measures once, reports, and ends.

use super::buffered::BufferedEndpoint;
use super::client::Client;
use super::fan_in::FanInServer;
use super::injected::InjectedDelay;
use super::operation::OperationTrial;
use super::server::Server;
use super::session::{Outcome, Session};
use super::speed::SpeedReader;
use crate::clock::Clock;
use crate::protocol::channel::Channel;
use crate::protocol::error::EndpointError;
use crate::protocol::orders::{CLIENT_THREAD, Orders, Role, SERVER_THREAD, VERSION};
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
                delay: session.orders.inject_ns.map(|ns| InjectedDelay::new(ns, &clock)),
                speed,
                iterations_so_far: 0,
                stretch: 1,
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
    use crate::protocol::orders::{Singly, Sizing, SliceOrders};
    use crate::protocol::report::SliceReport;
    use model::record::ClockSource;
    use model::{Case, Endpoints, Peers, Spec, Workload, floor};

    fn orders(case: Case, role: Role) -> Orders {
        Orders {
            version: VERSION,
            case,
            role,
            clock: ClockSource::MonotonicRaw,
            directory: std::env::temp_dir(),
            number: 0,
            pair: 0,
            inject_ns: None,
            check: true,
            probe: None,
        }
    }

    /// What an endpoint with `orders` reports of `slices`, each of so many iterations, and what it came to.
    fn slices(orders: Orders, links: Vec<Channel>, slices: &[u64]) -> (Vec<SliceReport>, EndpointResult) {
        let (coordinator, control) = channel().unwrap();
        let orders_of =
            |iterations| Some(SliceOrders { size: Sizing::Iterations(iterations), singly: Singly::Last });
        slices.iter().for_each(|iterations| coordinator.send(&orders_of(*iterations), &[]).unwrap());
        coordinator.send(&None::<SliceOrders>, &[]).unwrap();
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

    #[test]
    fn orders_of_another_version_are_refused_whatever_their_form() {
        let own =
            serde_json::to_value(orders(connected("pipe", Workload::Latency, 1), Role::Client)).unwrap();
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
    fn both(case: Case, iterations: &[u64]) -> (Vec<SliceReport>, EndpointResult) {
        let case = Case { cpus: None, ..case };
        let (client, server) = channel().unwrap();
        slices(orders(case, Role::Both), vec![client, server], iterations)
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

    /// The differences between slices with a delay of `inject_ns` and those without, trial by trial, which alternate.
    fn injected_ns(inject_ns: f64, trial: impl Fn(Option<f64>) -> Vec<SliceReport>) -> Vec<f64> {
        let iteration_ns = |inject| trial(inject)[0].sample.iteration_ns();
        let pair = |at| match at % 2 {
            0 => -iteration_ns(None) + iteration_ns(Some(inject_ns)),
            _ => iteration_ns(Some(inject_ns)) - iteration_ns(None),
        };
        (0..21).map(pair).collect()
    }

    /// The median of `values`, and the median of their distances from it.
    fn median_and_spread(values: &[f64]) -> (f64, f64) {
        let median = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let middle = median(values.to_vec());
        (middle, median(values.iter().map(|value| (value - middle).abs()).collect()))
    }

    #[test]
    fn an_injected_delay_is_found_in_what_an_iteration_takes() {
        let syscall = |inject_ns| {
            let case = Case { cpus: None, ..floor::operation(floor::SYSCALL, 1) };
            slices(Orders { inject_ns, ..orders(case, Role::Alone) }, Vec::new(), &[2000]).0
        };
        let pipe = |workload| {
            move |inject_ns| {
                let case = Case { cpus: None, ..connected("pipe", workload, 64) };
                let (client, server) = channel().unwrap();
                slices(Orders { inject_ns, ..orders(case, Role::Both) }, vec![client, server], &[300]).0
            }
        };
        let found = [
            (2_000.0, injected_ns(2_000.0, syscall)),
            (200_000.0, injected_ns(200_000.0, pipe(Workload::Latency))),
            // The client is what limits a stream that it delays by so much.
            (100_000.0, injected_ns(100_000.0, pipe(Workload::Throughput))),
        ];
        for (inject_ns, differences) in found {
            let (median, spread) = median_and_spread(&differences);
            // Of other work on the host, the spread knows. The calibration may be off by some percent.
            let bound = 5.0 * spread + 0.2 * inject_ns;
            assert!((median - inject_ns).abs() < bound, "{median} of {inject_ns}, spread {spread}");
            assert!(median > 0.3 * inject_ns, "{median} of {inject_ns}");
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
        let error = obey(orders(case, Role::Client), vec![client], &control).unwrap_err();
        assert_eq!(error.blame, Blame::Peer, "{error}");
    }

    #[test]
    fn a_server_blames_a_client_that_closes_in_the_middle_of_a_phase() {
        let (client, server) = channel().unwrap();
        let (_coordinator, control) = channel().unwrap();
        let case = Case { cpus: None, ..connected("pipe", Workload::Latency, 1) };
        let served = std::thread::spawn({
            let orders = orders(case.clone(), Role::Server);
            move || obey(orders, vec![server], &control)
        });
        // A client that announces a phase, and closes before its first message.
        let session = Session {
            orders: orders(case, Role::Client),
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
                self.1
                    .send(
                        &Phase { kind: PhaseKind::Total, iterations: 5, check: false, reads_speed: false },
                        &[],
                    )
                    .unwrap();
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
