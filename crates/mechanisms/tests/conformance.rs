//! The conformance suite: one set of checks, run over every row of the table and every way of waiting.
//!
//! It checks the contract of `Mechanism`, not the workings of any one; speed is no part of it.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(clippy::disallowed_macros, reason = "what is not tested is said")]

use mechanisms::registry::{CARDS, probe, visit};
use mechanisms::{Endpoint, Mechanism, Operation, Shape, Trial, Unnoted, Visitor};
use model::card::{Card, CardKind, Framing, Payload, Support};
use model::{Domain, Params, Session, Workload};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, wait};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;
use sys::signal::{Signal, SignalSender, ThreadId, handle};

/// A test that hangs is a test that fails: the longest that one check may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Parameters that meet in the same code, so that each alone does not suffice.
const TOGETHER: &[(&str, &str)] = &[
    ("shm-ring", "access=in-place,wait=spin"),
    ("shm-ring", "access=none,wait=spin,capacity=4K"),
    ("shm-ring", "access=in-place,wait=eventfd,capacity=4K"),
    ("shm-ring", "looks=1,wait=spin-then-block"),
    ("shm-ring", "memory=posix,wait=sysv-sem"),
    ("shm-ring", "memory=sysv,wait=sysv-sem,access=in-place"),
    ("shm-ring", "memory=file,wait=spin"),
    ("shm-queue", "locking=when-needed,lock=mutex,capacity=4K"),
    ("shm-queue", "locking=when-needed,lock=sysv-sem,memory=sysv,capacity=100"),
];

/// Every way of setting up a row by the parameters that are choices, one at a time, the rest at their defaults; and
/// [`TOGETHER`].
///
/// With `IPCMARK_TEST_ROWS=pipe,udp` in the environment, of these rows alone.
fn variants() -> Vec<(&'static Card, Params)> {
    let only = std::env::var("IPCMARK_TEST_ROWS").ok();
    let chosen =
        |card: &&Card| only.as_ref().is_none_or(|only| only.split(',').any(|name| name == card.name));
    let mut variants = Vec::new();
    for card in CARDS.iter().filter(chosen) {
        variants.push((card, Params::default()));
        for param in card.params {
            let Domain::Choice(words) = param.domain else { continue };
            for word in words.iter().filter(|word| param.default != Some(**word)) {
                variants.push((card, Params::parse(&format!("{}={word}", param.name), card).unwrap()));
            }
        }
        for (_, params) in TOGETHER.iter().filter(|(name, _)| *name == card.name) {
            variants.push((card, Params::parse(params, card).unwrap()));
        }
    }
    variants
}

/// Whether these are a row's defaults, or only say how it waits: the variants that get the most iterations.
fn is_main(params: &Params) -> bool {
    params.is_empty() || params.to_string().starts_with("wait=")
}

/// Runs `check` on every mechanism in every variant, each under a deadline.
fn each_mechanism<C>(check: C)
where
    C: Visitor<Output = ()> + Clone + WithParams + Send + 'static,
{
    // Ends that spin take the CPUs from one another: one check at a time.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _iteration = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for (card, params) in variants().into_iter().filter(|(card, _)| card.kind != CardKind::Operation) {
        if let Some(Support::No { reason, .. }) = probe(card.name, &params) {
            eprintln!("{} is not tested: {reason}", card.name);
            continue;
        }
        let name = format!("{}:{params}", card.name);
        let check = check.clone().with(params);
        let (done, ended) = mpsc::channel();
        let checking = std::thread::Builder::new().name(name.clone()).spawn(move || {
            visit(card.name, check).unwrap();
            done.send(()).unwrap();
        });
        match ended.recv_timeout(TIMEOUT) {
            Ok(()) => checking.unwrap().join().unwrap(),
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("{name} hangs"),
            Err(mpsc::RecvTimeoutError::Disconnected) => panic!("{name} failed"),
        }
    }
}

trait WithParams {
    fn with(self, params: Params) -> Self;
}

macro_rules! check {
    ($name:ident, |$params:ident, $mechanism:ident| $body:block) => {
        #[test]
        fn $name() {
            #[derive(Clone, Default)]
            struct Check(Params);
            impl WithParams for Check {
                fn with(self, params: Params) -> Self {
                    Self(params)
                }
            }
            impl Visitor for Check {
                type Output = ();
                fn mechanism<$mechanism: Mechanism>(self) {
                    let $params = &self.0;
                    $body
                }
                fn operation<O: Operation>(self) {}
            }
            each_mechanism(Check::default());
        }
    };
}

/// Connects two ends of `M` in two threads and runs `client` and `server` with them.
fn connected<M: Mechanism>(
    params: &Params,
    shape: Shape,
    client: impl FnOnce(M::End) + Send,
    server: impl FnOnce(M::End) + Send,
) {
    let directory = run_directory();
    let trial = Trial { params, shape, directory: directory.path(), number: 1 };
    let (tickets, ticket) = mpsc::channel();
    // An end that is gone before the other has accepted is a death during set-up, which the deadline ends.
    let both_connected = std::sync::Barrier::new(2);
    std::thread::scope(|threads| {
        // Dropped when client fails before it has sent a ticket, so that server fails too instead of waiting.
        let tickets = tickets;
        let server_connected = &both_connected;
        threads.spawn(move || {
            let end = M::connect(&trial, ticket.recv().unwrap()).unwrap();
            server_connected.wait();
            server(end);
        });
        let (bound, ticket) = M::bind(&trial).unwrap();
        tickets.send(ticket).unwrap();
        let end = M::accept(bound).unwrap();
        both_connected.wait();
        client(end);
    });
    assert_empty(directory.path());
}

/// A directory whose name begins as that of every run does.
fn run_directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("ipcmark-test-").tempdir().unwrap()
}

fn assert_empty(directory: &Path) {
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0, "names are left in {}", directory.display());
}

fn send_all<E: Endpoint>(end: &mut E, bytes: &[u8], framing: Framing) {
    let mut sent = 0;
    let in_place = E::IN_PLACE && end.in_place().outgoing;
    if bytes.is_empty() {
        return assert_eq!(end.send(bytes), Ok(0));
    }
    while sent < bytes.len() {
        if in_place {
            let part = end.reserve(bytes.len() - sent).unwrap();
            let count = part.len();
            part.copy_from_slice(&bytes[sent..sent + count]);
            end.commit(count).unwrap();
            sent += count;
            continue;
        }
        let taken = end.send(&bytes[sent..]).unwrap();
        assert!(taken > 0 && taken <= bytes.len() - sent);
        assert!(framing != Framing::Message || taken == bytes.len(), "a message was split");
        sent += taken;
    }
}

fn receive_all<E: Endpoint>(end: &mut E, into: &mut [u8], framing: Framing) {
    let mut received = 0;
    let in_place = E::IN_PLACE && end.in_place().incoming;
    if into.is_empty() {
        return assert_eq!(end.receive(&mut [0]), Ok(0), "an empty message has bytes");
    }
    while received < into.len() {
        if in_place {
            let part = end.peek(into.len() - received).unwrap();
            let count = part.len();
            into[received..received + count].copy_from_slice(part);
            end.release(count).unwrap();
            received += count;
            continue;
        }
        let count = end.receive(&mut into[received..]).unwrap();
        assert!(count > 0 && count <= into.len() - received);
        assert!(framing != Framing::Message || count == into.len(), "a message arrived in pieces");
        received += count;
    }
}

/// Bytes that differ from message to message and from place to place.
fn content(number: usize, size: usize) -> Vec<u8> {
    (0..size).map(|at| (at.wrapping_mul(31) ^ number.wrapping_mul(131) ^ (at >> 8)) as u8).collect()
}

/// The sizes worth trying: the ends of every class, nothing where a message may be empty, and the row's limit.
fn sizes(card: &Card, params: &Params) -> Vec<usize> {
    let mut sizes = vec![1, 2, 7, 8, 9, 55, 56, 57, 63, 64, 65, 4095, 4096, 4097, 65_536, 100_000, 1 << 20];
    let largest = largest(card, params);
    if largest < usize::MAX {
        sizes.retain(|size| *size < largest);
        sizes.extend([largest - 1, largest]);
        sizes.retain(|size| *size > 0);
    }
    sizes.extend(empty(card));
    sizes
}

/// The size of an empty message, if the row has them.
fn empty(card: &Card) -> Option<usize> {
    card.empty.then_some(0)
}

/// The largest message of the row, or `usize::MAX`.
fn largest(card: &Card, params: &Params) -> usize {
    match probe(card.name, params) {
        Some(Support::Yes { largest_bytes: Some(largest) }) => usize::try_from(largest).unwrap(),
        _ => usize::MAX,
    }
}

check!(what_is_sent_arrives_whole_and_in_order_both_ways, |params, M| {
    for size_bytes in sizes(&M::CARD, params) {
        let rounds = if size_bytes > 10_000 { 5 } else { 50 };
        let framing = M::CARD.framing;
        let shape = Shape { size_bytes, workload: Workload::Latency };
        let client = |mut end: M::End| {
            let mut answer = vec![0; size_bytes];
            for round in 0..rounds {
                send_all(&mut end, &content(round, size_bytes), framing);
                receive_all(&mut end, &mut answer, framing);
                if M::CARD.payload == Payload::Bytes {
                    assert!(
                        answer == content(round + 1, size_bytes),
                        "{size_bytes} bytes back, round {round}"
                    );
                }
            }
        };
        let server = |mut end: M::End| {
            let mut question = vec![0; size_bytes];
            for round in 0..rounds {
                receive_all(&mut end, &mut question, framing);
                if M::CARD.payload == Payload::Bytes {
                    assert!(question == content(round, size_bytes), "{size_bytes} bytes, round {round}");
                }
                send_all(&mut end, &content(round + 1, size_bytes), framing);
            }
        };
        connected::<M>(params, shape, client, server);
    }
});

check!(a_stream_of_messages_loses_none_however_slow_server_is, |params, M| {
    if M::CARD.workloads.contains(&Workload::Throughput) && !M::End::LOSES {
        let largest = largest(&M::CARD, params);
        let sizes = [1, 60, 4096, 65_000].into_iter().filter(|size| *size <= largest);
        for size_bytes in sizes.chain(empty(&M::CARD)) {
            let messages = if size_bytes > 10_000 { 200 } else { 3000 };
            let framing = M::CARD.framing;
            let client = |mut end: M::End| {
                for number in 0..messages {
                    send_all(&mut end, &content(number, size_bytes), framing);
                }
                receive_all(&mut end, &mut [0], framing);
            };
            let server = |mut end: M::End| {
                // Client runs server ahead: whatever can fill up is full.
                std::thread::sleep(Duration::from_millis(30));
                let mut message = vec![0; size_bytes];
                for number in 0..messages {
                    receive_all(&mut end, &mut message, framing);
                    if M::CARD.payload == Payload::Bytes {
                        assert!(
                            message == content(number, size_bytes),
                            "{size_bytes} bytes, message {number}"
                        );
                    }
                }
                send_all(&mut end, &[1], framing);
            };
            connected::<M>(params, Shape { size_bytes, workload: Workload::Throughput }, client, server);
        }
    }
});

check!(an_empty_message_is_one_of_its_own_between_others, |params, M| {
    if M::CARD.empty {
        // Fewer than the shallowest queue holds.
        const SIZES: [usize; 8] = [0, 5, 0, 0, 8, 1, 0, 3];
        let client = |mut end: M::End| {
            for (number, size) in SIZES.into_iter().enumerate() {
                assert_eq!(end.send(&content(number, size)), Ok(size));
            }
            receive_all(&mut end, &mut [], M::CARD.framing);
        };
        let server = |mut end: M::End| {
            // Whatever has room for the largest: it is the message that says where it ends.
            let mut message = [0; 8];
            for (number, size) in SIZES.into_iter().enumerate() {
                assert_eq!(end.receive(&mut message), Ok(size), "message {number}");
                assert!(message[..size] == *content(number, size), "message {number}");
            }
            send_all(&mut end, &[], M::CARD.framing);
        };
        connected::<M>(params, Shape { size_bytes: 8, workload: Workload::Latency }, client, server);
    }
});

check!(an_empty_message_is_answered_by_a_byte_and_the_other_way_round, |params, M| {
    // As in `transfer` and `throughput`, of empty messages: what an end has room for must do for the answer, too.
    if M::CARD.empty && M::CARD.takes(Workload::Transfer) {
        let client = |mut end: M::End| {
            for _ in 0..20 {
                send_all(&mut end, &[], M::CARD.framing);
                let mut answer = [0];
                receive_all(&mut end, &mut answer, M::CARD.framing);
                assert_eq!(answer, [7]);
            }
        };
        let server = |mut end: M::End| {
            for _ in 0..20 {
                receive_all(&mut end, &mut [], M::CARD.framing);
                send_all(&mut end, &[7], M::CARD.framing);
            }
        };
        connected::<M>(params, Shape { size_bytes: 0, workload: Workload::Transfer }, client, server);
    }
});

check!(the_death_of_the_peer_ends_a_send, |params, M| {
    // MPTCP keeps what cannot be delivered, and a sender that waits for room, until it gives the peer up: there, and
    // where both spin on shared memory, the deadline serves.
    if M::CARD.hangup && M::CARD.payload == Payload::Bytes && M::CARD.name != "mptcp" && !params.spins() {
        let client = |mut end: M::End| {
            // Server has gone by the time that it has sent this.
            receive_all(&mut end, &mut [0], M::CARD.framing);
            std::thread::sleep(Duration::from_millis(20));
            let refused = (0..100_000).find_map(|_| end.send(&[1; 64]).err());
            let expected = [sys::Errno::PIPE, sys::Errno::CONNRESET];
            assert!(
                refused.is_some_and(|errno| expected.contains(&errno)),
                "{}:{params}: {refused:?}",
                M::CARD.name
            );
        };
        let server = |mut end: M::End| send_all(&mut end, &[1], M::CARD.framing);
        connected::<M>(params, Shape { size_bytes: 64, workload: Workload::Throughput }, client, server);
    }
});

check!(what_may_be_lost_comes_in_order_and_the_end_is_told, |params, M| {
    if M::End::LOSES {
        const MESSAGES: usize = 20_000;
        const SIZE: usize = 500;
        let client = |mut end: M::End| {
            (0..MESSAGES).for_each(|number| assert_eq!(end.send(&content(number, SIZE)), Ok(SIZE)));
            receive_all(&mut end, &mut [0], M::CARD.framing);
        };
        let server = |mut end: M::End| {
            // Client has filled whatever there is to fill.
            std::thread::sleep(Duration::from_millis(300));
            let (mut next, mut came, mut message) = (0, 0, vec![0; SIZE]);
            loop {
                match end.receive(&mut message) {
                    Err(sys::Errno::NODATA) => break,
                    count => assert_eq!(count, Ok(SIZE)),
                }
                let number = (next..MESSAGES).find(|&number| message == content(number, SIZE));
                next = number.unwrap_or_else(|| panic!("message after {next} is none that was sent")) + 1;
                came += 1;
            }
            assert!((1..MESSAGES).contains(&came), "{came} came: the buffer holds some, and not all");
            send_all(&mut end, &[1], M::CARD.framing);
        };
        connected::<M>(params, Shape { size_bytes: SIZE, workload: Workload::Throughput }, client, server);
    }
});

check!(an_end_that_can_be_polled_is_ready_when_a_message_is_there, |params, M| {
    let ready = |end: &M::End, limit_s: i64| {
        let mut input = [PollFd::from_borrowed_fd(end.input().unwrap(), PollFlags::IN)];
        poll(&mut input, Some(&Timespec { tv_sec: limit_s, tv_nsec: 0 })).unwrap() == 1
    };
    let framing = M::CARD.framing;
    // Of an empty message, too, there is something to see.
    let message: &[u8] = if M::CARD.empty { &[] } else { &[1] };
    let server = |mut end: M::End| {
        assert_eq!(end.input().is_some(), M::CARD.polled, "{}:{params}", M::CARD.name);
        // Client sends nothing before it has received.
        assert!(
            !M::CARD.polled || !ready(&end, 0),
            "{}:{params} is ready before there is anything",
            M::CARD.name
        );
        send_all(&mut end, &[1], framing);
        assert!(!M::CARD.polled || ready(&end, 10), "{}:{params} is not ready", M::CARD.name);
        receive_all(&mut end, &mut vec![0; message.len()], framing);
        assert!(!M::CARD.polled || !ready(&end, 0), "{}:{params} stays ready", M::CARD.name);
        send_all(&mut end, &[1], framing);
    };
    let client = |mut end: M::End| {
        receive_all(&mut end, &mut [0], framing);
        send_all(&mut end, message, framing);
        // It does not close before server has looked a last time.
        receive_all(&mut end, &mut [0], framing);
    };
    if M::CARD.kind == CardKind::Mechanism && M::CARD.name != "null" {
        connected::<M>(params, Shape { size_bytes: 1, workload: Workload::Latency }, client, server);
    }
});

check!(a_message_above_the_limit_is_refused, |params, M| {
    if let Support::Yes { largest_bytes: Some(largest) } = M::probe(params)
        && M::CARD.framing == Framing::Message
        // What a codec makes of a message may be small enough all the same.
        && !params.to_string().contains("codec=")
    {
        let size_bytes = usize::try_from(largest).unwrap() + 1;
        let client = |mut end: M::End| {
            assert_eq!(end.send(&vec![1; size_bytes]), Err(sys::Errno::MSGSIZE));
            end.send(&[1]).unwrap();
            // A queue that is removed takes with it what nobody has read.
            receive_all(&mut end, &mut [0], M::CARD.framing);
        };
        let server = |mut end: M::End| {
            assert_eq!(end.receive(&mut [0; 8]), Ok(1), "the refused message left something behind");
            send_all(&mut end, &[1], M::CARD.framing);
        };
        connected::<M>(params, Shape { size_bytes, workload: Workload::Latency }, client, server);
    }
});

check!(descriptors_arrive_with_their_message_and_are_closed, |params, M| {
    if M::CARD.fds {
        let large = largest(&M::CARD, params).min(50_000);
        for size_bytes in [large].into_iter().chain(empty(&M::CARD)) {
            descriptors_arrive::<M>(params, size_bytes);
        }
    }
});

/// Some messages of `size_bytes` with more and more descriptors each.
fn descriptors_arrive<M: Mechanism>(params: &Params, size_bytes: usize) {
    let counts = [0, 1, 4, 100];
    let client = |mut end: M::End| {
        let file = std::fs::File::open("/dev/null").unwrap();
        for (number, fds) in counts.into_iter().enumerate() {
            let fds = vec![file.as_fd(); fds];
            let message = content(number, size_bytes);
            let mut sent = end.send_with(&message, &fds, &mut Unnoted).unwrap();
            while sent < size_bytes {
                sent += end.send_with(&message[sent..], &[], &mut Unnoted).unwrap();
            }
        }
        receive_all(&mut end, &mut [0], M::CARD.framing);
    };
    let server = |mut end: M::End| {
        for (number, fds) in counts.into_iter().enumerate() {
            // An end is never given no room.
            let mut message = vec![0; size_bytes.max(1)];
            let (mut received, mut came) = (0, 0);
            loop {
                let arrived = end.receive_with(&mut message[received..], &mut Unnoted).unwrap();
                received += arrived.bytes;
                came += arrived.fds;
                if received >= size_bytes {
                    break;
                }
            }
            assert_eq!((received, came), (size_bytes, fds));
            assert!(message[..size_bytes] == content(number, size_bytes), "message {number}");
        }
        send_all(&mut end, &[1], M::CARD.framing);
    };
    let session = Workload::Session(Session::DEFAULT);
    connected::<M>(params, Shape { size_bytes, workload: session }, client, server);
}

check!(the_death_of_the_peer_ends_a_receive, |params, M| {
    // Spinning on shared memory looks for a death rarely: there the deadline serves.
    if M::CARD.hangup && !params.spins() {
        let client = |mut end: M::End| {
            receive_all(&mut end, &mut [0], M::CARD.framing);
            assert_eq!(end.receive(&mut [0]), Err(sys::Errno::PIPE));
        };
        let server = |mut end: M::End| send_all(&mut end, &[1], M::CARD.framing);
        connected::<M>(params, Shape { size_bytes: 1, workload: Workload::Latency }, client, server);
    }
});

/// As [`connected`], with both threads interrupted in all that they call, until client is done.
fn in_a_storm<M: Mechanism>(
    params: &Params,
    shape: Shape,
    client: impl FnOnce(M::End) + Send,
    server: impl FnOnce(M::End) + Send,
) {
    handle(Signal::Interruption).unwrap();
    let over = AtomicBool::new(false);
    let storm = |threads: &mpsc::Receiver<ThreadId>| {
        let pair = [threads.recv().unwrap(), threads.recv().unwrap()];
        let senders = pair.map(|thread| SignalSender::new(thread, Signal::Interruption));
        while !over.load(Ordering::Relaxed) {
            for sender in &senders {
                // The thread may have ended by now.
                let _ = sender.kill();
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    };
    let (here, threads) = mpsc::channel();
    let there = here.clone();
    std::thread::scope(|scope| {
        scope.spawn(move || storm(&threads));
        let client = |end: M::End| {
            here.send(ThreadId::current()).unwrap();
            client(end);
            over.store(true, Ordering::Relaxed);
        };
        let server = |end: M::End| {
            there.send(ThreadId::current()).unwrap();
            server(end);
        };
        connected::<M>(params, shape, client, server);
    });
}

check!(calls_that_are_interrupted_lose_nothing, |params, M| {
    let iterations = if is_main(params) { 1500 } else { 150 };
    let size_bytes = largest(&M::CARD, params).min(64);
    let (framing, carries) = (M::CARD.framing, M::CARD.payload == Payload::Bytes);
    let client = |mut end: M::End| {
        let mut answer = vec![0; size_bytes];
        for iteration in 0..iterations {
            send_all(&mut end, &content(iteration, size_bytes), framing);
            receive_all(&mut end, &mut answer, framing);
            assert!(!carries || answer == content(iteration + 1, size_bytes), "iteration {iteration}");
        }
    };
    let server = |mut end: M::End| {
        let mut question = vec![0; size_bytes];
        for iteration in 0..iterations {
            receive_all(&mut end, &mut question, framing);
            assert!(!carries || question == content(iteration, size_bytes), "iteration {iteration}");
            send_all(&mut end, &content(iteration + 1, size_bytes), framing);
        }
    };
    in_a_storm::<M>(params, Shape { size_bytes, workload: Workload::Latency }, client, server);
});

/// The shape of the workload in which each iteration is a connection.
const CONNECT: Shape = Shape { size_bytes: 1, workload: Workload::Connect };

/// Client's iterations of that workload.
fn ask<E: Endpoint>(end: &mut E, iterations: usize) {
    for iteration in 0..iterations {
        let mut answer = [!(iteration as u8)];
        assert_eq!(end.send(&[iteration as u8]), Ok(1), "iteration {iteration}");
        assert_eq!(end.receive(&mut answer), Ok(1), "iteration {iteration}");
        assert_eq!(answer, [iteration as u8], "iteration {iteration}");
    }
}

/// Server's. What it receives is not asked: a child of its may have it.
fn echo<E: Endpoint>(end: &mut E, iterations: usize) {
    let mut message = [0];
    for iteration in 0..iterations {
        assert_eq!(end.receive(&mut message), Ok(1), "iteration {iteration}");
        assert_eq!(end.send(&message), Ok(1), "iteration {iteration}");
    }
}

check!(each_connection_is_answered, |params, M| {
    if M::CARD.takes(Workload::Connect) {
        const ITERATIONS: usize = 300;
        connected::<M>(
            params,
            CONNECT,
            |mut end| ask(&mut end, ITERATIONS),
            |mut end| echo(&mut end, ITERATIONS),
        );
        in_a_storm::<M>(
            params,
            CONNECT,
            |mut end| ask(&mut end, ITERATIONS),
            |mut end| echo(&mut end, ITERATIONS),
        );
    }
});

#[test]
fn trials_leak_no_descriptor_and_no_mapping() {
    #[derive(Clone)]
    struct Cycle(Params, Workload, usize);
    impl Visitor for Cycle {
        type Output = ();
        fn mechanism<M: Mechanism>(self) {
            let Cycle(params, workload, iterations) = self;
            let framing = M::CARD.framing;
            let passes = M::CARD.fds && workload != Workload::Connect;
            let client = |mut end: M::End| {
                let before = open_descriptors();
                let file = std::fs::File::open("/dev/null").unwrap();
                for iteration in 0..iterations {
                    if passes && iteration % 8 == 0 {
                        assert_eq!(end.send_with(&[1], &[file.as_fd(); 2], &mut Unnoted), Ok(1));
                    } else {
                        send_all(&mut end, &[1], framing);
                    }
                    receive_all(&mut end, &mut [0], framing);
                }
                drop(file);
                // Server may be done and gone by now, or may be about to close what it has sent.
                let settled = (0..1000).any(|_| {
                    std::thread::sleep(Duration::from_millis(1));
                    open_descriptors() <= before
                });
                assert!(settled, "{iterations} iterations of {}:{params}", M::CARD.name);
            };
            let server = |mut end: M::End| {
                for iteration in 0..iterations {
                    if passes && iteration % 8 == 0 {
                        assert_eq!(
                            end.receive_with(&mut [0], &mut Unnoted).map(|arrived| arrived.fds),
                            Ok(2)
                        );
                    } else {
                        receive_all(&mut end, &mut [0], framing);
                    }
                    send_all(&mut end, &[1], framing);
                }
            };
            connected::<M>(&params, Shape { size_bytes: 1, workload }, client, server);
        }
        fn operation<O: Operation>(self) {
            let directory = run_directory();
            let shape = Shape { size_bytes: 4096, workload: Workload::Cost };
            let trial = Trial { params: &self.0, shape, directory: directory.path(), number: 1 };
            let mut operation = O::prepare(&trial).unwrap();
            operation.call().unwrap();
            let reads_a_timer = operation.timer().is_some();
            assert_eq!(
                O::CARD.takes(Workload::Accuracy),
                reads_a_timer,
                "{}: what reads a timer can be judged",
                O::CARD.name
            );
            assert_eq!(operation.read().is_ok(), reads_a_timer, "{}", O::CARD.name);
            drop(operation);
            assert_empty(directory.path());
        }
    }
    // The descriptors of other tests come and go in this process: count in one of its own.
    const ALONE: &str = "IPCMARK_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let test = std::env::current_exe().unwrap();
        let name = "trials_leak_no_descriptor_and_no_mapping";
        let status =
            std::process::Command::new(test).args(["--exact", name]).env(ALONE, "1").status().unwrap();
        return assert!(status.success());
    }
    let shared = || std::fs::read_to_string("/proc/self/maps").unwrap().matches(" rw-s ").count();
    let works = |card: &Card, params: &Params| matches!(probe(card.name, params), Some(Support::Yes { .. }));
    for (card, params) in variants().into_iter().filter(|(card, params)| works(card, params)) {
        // An iteration of server's may be a process.
        let connects = card.takes(Workload::Connect).then_some((Workload::Connect, 500));
        let (many, some) = if is_main(&params) { (10_000, 50) } else { (500, 5) };
        for (workload, iterations) in [(Workload::Latency, many)].into_iter().chain(connects) {
            let cycle = |iterations| visit(card.name, Cycle(params.clone(), workload, iterations)).unwrap();
            cycle(iterations);
            let before = (open_descriptors(), shared());
            (0..some).for_each(|_| cycle(0));
            assert_eq!((open_descriptors(), shared()), before, "{}:{params} {workload}", card.name);
            let child = wait(WaitOptions::NOHANG).err();
            assert_eq!(child, Some(sys::Errno::CHILD), "{}:{params} left a child", card.name);
        }
    }
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn cards_are_sound() {
    for (at, card) in CARDS.iter().enumerate() {
        assert!(CARDS[..at].iter().all(|other| other.name != card.name), "{} stands twice", card.name);
        assert!(card.summary.len() < 75 && !card.summary.ends_with('.'), "{}: {}", card.name, card.summary);
        assert!(!card.workloads.is_empty(), "{} has no workload", card.name);
        let has_sessions = card.workloads.iter().any(|workload| workload.name() == "session");
        assert_eq!(card.fds, has_sessions, "{}: what passes descriptors has sessions", card.name);
        let may_be_empty = card.framing == Framing::Message && card.payload == Payload::Bytes && card.sized;
        assert!(!card.empty || may_be_empty, "{} has no messages that could be empty", card.name);
        assert!(card.name == "null" || !card.man.is_empty(), "{} names no manual page", card.name);
        for param in card.params {
            let Some(default) = param.default else { continue };
            let given = Params::parse(&format!("{}={default}", param.name), card).unwrap();
            assert!(given.is_empty(), "{}:{} is kept though it is the default", card.name, param.name);
        }
    }
}

#[test]
fn a_size_that_the_kernel_clamps_is_said_to_be_clamped() {
    struct Settings(Params);
    impl Visitor for Settings {
        type Output = bool;
        fn mechanism<M: Mechanism>(self) -> bool {
            let (sender, clamped) = mpsc::channel();
            let client = move |end: M::End| sender.send(end.settings().iter().any(|s| s.clamped)).unwrap();
            connected::<M>(&self.0, Shape { size_bytes: 1, workload: Workload::Latency }, client, drop);
            clamped.recv().unwrap()
        }
        fn operation<O: Operation>(self) -> bool {
            false
        }
    }
    for (name, modest, immodest) in [
        ("pipe", "capacity=64K", "capacity=5000"),
        ("unix-stream", "sndbuf=64K", "sndbuf=512M"),
        ("tcp", "rcvbuf=64K", "rcvbuf=512M"),
    ] {
        let card = mechanisms::registry::card(name).unwrap();
        let clamped = |params| visit(name, Settings(Params::parse(params, card).unwrap())).unwrap();
        assert!(!clamped(modest), "{name}:{modest}");
        assert!(clamped(immodest), "{name}:{immodest}");
    }
}

#[test]
fn the_last_message_of_a_peer_that_closes_is_not_lost() {
    struct LastMessage(Params);
    impl Visitor for LastMessage {
        type Output = ();
        fn mechanism<M: Mechanism>(self) {
            let shape = Shape { size_bytes: 1, workload: Workload::Latency };
            let client = |mut end: M::End| assert_eq!(end.receive(&mut [0]), Ok(1));
            connected::<M>(&self.0, shape, client, |mut end: M::End| assert_eq!(end.send(&[1]), Ok(1)));
        }
        fn operation<O: Operation>(self) {}
    }
    for name in ["unix-seqpacket", "pty"] {
        let card = mechanisms::registry::card(name).unwrap();
        for _ in 0..3000 {
            visit(card.name, LastMessage(Params::parse("wait=spin", card).unwrap())).unwrap();
        }
    }
}
