//! What the coordinator makes of what endpoints say, and of what they do not say: without endpoints, but with processes that can be
//! killed.

use super::*;
use crate::coordinator::endpoint_process::testing::sleeper;
use crate::protocol::message::PeerMessage;
use model::record::Usage;
use model::{Workload, floor};
use rustix::fd::OwnedFd;

fn say(channel: &Channel, message: EndpointMessage) {
    channel.send(&message, &[]).unwrap();
}

fn fail(channel: &Channel, error: EndpointError) {
    say(channel, EndpointMessage::Ended { error: Some(error) });
}

fn error(answer: &str, blame: Blame) -> EndpointError {
    EndpointError { blame, ..EndpointError::bug("send", "the mechanism", answer) }
}

fn report() -> EndpointMessage {
    let sample = Sample::new(5, 100.0, Usage::default(), None);
    let report = SliceReport::from_sample(sample);
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
        time: None,
        plain_times: PlainTimes::default(),
        program: None,
        remote: None,
        layout: AddressLayout::Random,
        drivers: None,
    };
    EndpointTrial { run: &run, case, processes, is_warm: false, begun: Timer::start() }.converse(until, limit)
}

fn slices(processes: Vec<EndpointProcess>) -> Result<Vec<SliceReport>, TrialError> {
    converse(SLICES, LONG, false, case(Peers::Pair), processes)
}

const LONG: Duration = Duration::from_secs(600);
const SLICES: Until = Until::Slices(Sizing::Iterations(1_000_000));

/// What never ends: promises, signs of life, and words for a peer.
#[test]
fn an_endpoint_that_talks_without_end_is_ended() {
    type Say = fn() -> EndpointMessage;
    let endless: [Say; 3] = [
        || EndpointMessage::Expect { ns: u64::MAX },
        || EndpointMessage::Pong,
        || EndpointMessage::Peer(Box::new(PeerMessage::Ready)),
    ];
    for say_it in endless {
        let ((client, client_says), (server, server_hears)) = (sleeper(true), sleeper(false));
        let talks = std::thread::spawn(move || while client_says.send(&say_it(), &[]).is_ok() {});
        let hears = std::thread::spawn(move || while server_hears.receive::<CoordinatorMessage>().is_ok() {});
        let failure = converse(SLICES, LONG, false, case(Peers::Pair), vec![client, server]).unwrap_err();
        assert!(failure.to_string().contains("one thing after the other"), "{failure}");
        talks.join().unwrap();
        hears.join().unwrap();
    }
}

/// It is waited for as long as its iterations can take that were asked for, by how long the trial has lasted.
#[test]
fn an_endpoint_that_promises_and_is_silent_is_not_waited_for_without_end() {
    let (client, client_says) = sleeper(true);
    say(&client_says, EndpointMessage::Expect { ns: u64::MAX });
    let one = Until::Slices(Sizing::Iterations(1));
    let failure =
        converse(one, Duration::from_millis(1), false, case(Peers::Pair), vec![client]).unwrap_err();
    assert!(matches!(failure, TrialError::Silent { .. }), "{failure}");
}

#[test]
fn a_slice_is_believed_as_far_as_the_clock_of_this_side_bears_it_out() {
    let within = Duration::from_millis(10);
    let believed = |iterations, elapsed_ns| {
        let sample = Sample::new(iterations, elapsed_ns, Usage::default(), None);
        believable(&SliceReport::from_sample(sample), within).map_err(|error| error.to_string())
    };
    assert_eq!((believed(1000, 5e6), believed(1, 1e7)), (Ok(()), Ok(())));
    let refused = believed(20, 1.0).unwrap_err();
    assert!(refused.contains("no processor does 20 iterations in that time"), "{refused}");
    let refused = believed(1000, 2e7).unwrap_err();
    assert!(refused.contains("it took 10000000 ns by the clock of this host"), "{refused}");
}

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
    say(&client_says, EndpointMessage::Ended { error: None });
    say(&server_says, EndpointMessage::Ended { error: None });
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
    server.child.kill();
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
    let failure = converse(SLICES, Duration::ZERO, false, case(Peers::Pair), vec![client]);
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
    let reports = converse(SLICES, limit, false, case(Peers::Pair), vec![client]);
    assert_eq!(reports.unwrap().len(), 1);
    drop(later.join().unwrap());
}

#[test]
fn an_interrupted_run_waits_for_no_report() {
    let (client, _silent) = sleeper(true);
    let failure = converse(SLICES, LONG, true, case(Peers::Pair), vec![client]).unwrap_err();
    assert_eq!(failure, TrialError::Interrupted);
}

#[test]
fn several_clients_go_on_together_when_all_are_ready() {
    let ((one, one_says), (two, two_says)) = (sleeper(true), sleeper(true));
    let client = |says: Channel| {
        std::thread::spawn(move || {
            for message in [EndpointMessage::Ready, EndpointMessage::MeasuredOnePhase] {
                says.send(&message, &[]).unwrap();
                says.receive::<CoordinatorMessage>().unwrap();
            }
            say(&says, report());
            // A channel that closes is a death.
            says
        })
    };
    let clients = [client(one_says), client(two_says)];
    let reports = converse(SLICES, LONG, false, case(Peers::Pairs(2)), vec![one, two]).unwrap();
    assert_eq!(reports.len(), 2);
    clients.into_iter().for_each(|client| drop(client.join().unwrap()));
}

#[test]
fn processes_are_as_many_as_endpoints_and_linked_to_their_peers() {
    let started = |case: &Case| -> Vec<(Role, u32, usize)> {
        let processes = processes(case).unwrap();
        processes.into_iter().map(|(role, pair, links)| (role, pair, links.len())).collect()
    };
    assert_eq!(started(&case(Peers::Pair)), [(Role::Client, 0, 1), (Role::Server, 0, 1)]);
    assert_eq!(
        started(&case(Peers::Pairs(2))),
        [(Role::Client, 0, 1), (Role::Client, 1, 1), (Role::Server, 0, 1), (Role::Server, 1, 1)]
    );
    assert_eq!(
        started(&case(Peers::FanIn(2))),
        [(Role::Client, 0, 1), (Role::Client, 1, 1), (Role::Server, 0, 2)]
    );
    assert_eq!(
        started(&case(Peers::FanOut(2))),
        [(Role::Server, 0, 1), (Role::Server, 1, 1), (Role::Client, 0, 2)]
    );
    let threads = Case { endpoints: Endpoints::Threads, ..case(Peers::Pair) };
    assert_eq!(started(&threads), [(Role::Both, 0, 2)]);
    assert_eq!(started(&floor::operation("getpid", 1)), [(Role::Alone, 0, 0)]);
}
