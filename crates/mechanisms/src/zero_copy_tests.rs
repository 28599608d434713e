//! The rule by which memory that the kernel refers to is reused: without it messages change on their way, with it none
//! does. That mechanisms with the rule keep the contract is for the conformance suite.

use crate::contract::{Endpoint, Mechanism, Shape, Ticket, TrialContext};
use crate::mechanisms::pipe_splice::PipeSplice;
use crate::mechanisms::pipe_vmsplice::PipeVmsplice;
use crate::mechanisms::tcp_sendfile::TcpSendfile;
use crate::mechanisms::tcp_vmsplice::TcpVmsplice;
use crate::mechanisms::tcp_zerocopy::TcpZerocopy;
use crate::mechanisms::tee::Tee;
use crate::support::connected::{Connected, ConnectionEndpoint};
use crate::support::connection::Connection;
use crate::support::zero_copy::{OverPipes, OverTcp, PageTransfer, ReusedPool, ZeroCopyEndpoint};
use model::card::{Card, Support};
use model::{Params, Workload};
use rustix::io::ioctl_fionread;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use sys::Failure;

/// `M` without the rule: it reserves the same memory for every part, so that messages on their way change.
#[derive(Debug)]
struct WithoutReuseRule<M>(PhantomData<M>);

impl<M: Mechanism<End: HasReuseRule>> Mechanism for WithoutReuseRule<M> {
    const CARD: Card = M::CARD;
    type Bound = M::Bound;
    type End = M::End;

    fn probe(params: &Params) -> Support {
        M::probe(params)
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(M::Bound, Ticket), Failure> {
        M::bind(trial)
    }

    fn accept(bound: M::Bound) -> Result<M::End, Failure> {
        M::accept(bound).map(HasReuseRule::without_rule)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<M::End, Failure> {
        M::connect(trial, ticket).map(HasReuseRule::without_rule)
    }
}

/// An endpoint whose rule can be taken away.
trait HasReuseRule: Endpoint + Sized {
    /// The same endpoint, which reserves the same memory for every part.
    fn without_rule(self) -> Self;
}

impl<W: PageTransfer> HasReuseRule for ZeroCopyEndpoint<ReusedPool<W>> {
    fn without_rule(self) -> Self {
        self.without_reuse_rule()
    }
}

impl<C: Connection<End: HasReuseRule>> HasReuseRule for ConnectionEndpoint<C> {
    fn without_rule(self) -> Self {
        match self {
            Self::Lasting(endpoint, socket) => Self::Lasting(endpoint.without_rule(), socket),
            other => other,
        }
    }
}

/// Two connected endpoints of `M`.
fn connected<M: Mechanism>(params: &str) -> (M::End, M::End) {
    let params = if params.is_empty() { Params::default() } else { Params::parse(params, &M::CARD).unwrap() };
    let directory = tempfile::tempdir().unwrap();
    let shape = Shape { size_bytes: 1, workload: Workload::Throughput };
    let trial =
        TrialContext { params: &params, shape, directory: directory.path(), number: 1, network: None };
    let (bound, ticket) = M::bind(&trial).unwrap();
    let server = M::connect(&trial, ticket).unwrap();
    (M::accept(bound).unwrap(), server)
}

/// Streams `messages` of `size_bytes`, all bytes of which are the message's number, to a server that starts late
/// and pauses in between. Returns how many arrived changed.
fn changed<M: Mechanism>(params: &str, size_bytes: usize, messages: usize) -> usize
where
    M::End: Send,
{
    let (mut client, mut server) = connected::<M>(params);
    std::thread::scope(|threads| {
        threads.spawn(move || {
            for number in 0..messages {
                let message = vec![number as u8; size_bytes];
                let mut sent = 0;
                while sent < size_bytes {
                    sent += client.send(&message[sent..]).unwrap();
                }
            }
        });
        let mut message = vec![0; size_bytes];
        let mut changed = 0;
        for number in 0..messages {
            if number % 200 == 0 {
                // The client runs ahead until every buffer is full.
                std::thread::sleep(Duration::from_millis(10));
            }
            let mut received = 0;
            while received < size_bytes {
                received += server.receive(&mut message[received..]).unwrap();
            }
            changed += usize::from(message.iter().any(|byte| *byte != number as u8));
        }
        changed
    })
}

fn the_rule_is_needed_and_suffices<M>(params: &str)
where
    M: Mechanism,
    M::End: Send,
    WithoutReuseRule<M>: Mechanism<End = M::End>,
{
    let name = M::CARD.name;
    for size_bytes in [1, 100, 4096, 5000, 65_536, 300_000] {
        let messages = if size_bytes > 10_000 { 200 } else { 2000 };
        let changed = changed::<M>(params, size_bytes, messages);
        assert_eq!(changed, 0, "{name}:{params}, {size_bytes} bytes, {messages} messages");
    }
    // A buffer as large as the message, and so the same one for every message.
    let changed = changed::<WithoutReuseRule<M>>(params, 65_536, 300);
    assert!(changed > 0, "{name}:{params}: nothing changed without the rule");
}

/// Slow: it passes megabytes between threads.
#[test]
fn pages_in_a_pipe_are_referred_to_until_they_are_read() {
    for capacity in ["", "capacity=4K"] {
        the_rule_is_needed_and_suffices::<OverPipes<PipeVmsplice>>(capacity);
        the_rule_is_needed_and_suffices::<OverPipes<PipeSplice>>(capacity);
        the_rule_is_needed_and_suffices::<OverPipes<Tee>>(capacity);
    }
    the_rule_is_needed_and_suffices::<OverPipes<PipeVmsplice>>("gift=on");
}

/// Slow: it passes megabytes between threads.
#[test]
fn pages_in_a_connection_are_referred_to_until_they_are_read() {
    for buffer in ["", "sndbuf=1K", "sndbuf=1M", "buffers=tuned"] {
        the_rule_is_needed_and_suffices::<Connected<OverTcp<TcpVmsplice>>>(buffer);
        the_rule_is_needed_and_suffices::<Connected<OverTcp<TcpSendfile>>>(buffer);
    }
}

/// How many bytes the client can send that the server does not read, in messages of `size_bytes`, and the size of the
/// client's send buffer.
fn in_flight<M: Mechanism>(params: &str, size_bytes: usize) -> (usize, usize)
where
    M::End: Send,
{
    let (mut client, server) = connected::<M>(params);
    let buffer = client.settings().into_iter().find(|setting| setting.name == "SO_SNDBUF").unwrap();
    let sent_bytes = AtomicUsize::new(0);
    let most = std::thread::scope(|threads| {
        threads.spawn(|| {
            let message = vec![1; size_bytes];
            // Until the server is gone.
            while let Ok(count) = client.send(&message) {
                sent_bytes.fetch_add(count, Ordering::Relaxed);
            }
        });
        // Whether the client runs shows in what arrived: its first message may never be sent whole.
        let mut last = (0, 0);
        loop {
            std::thread::sleep(Duration::from_millis(100));
            let unread_bytes = ioctl_fionread(server.input().unwrap()).unwrap();
            let now = (sent_bytes.load(Ordering::Relaxed), unread_bytes);
            if now == last && unread_bytes > 0 {
                break;
            }
            last = now;
        }
        drop(server);
        last.0
    });
    (most, buffer.got.parse().unwrap())
}

#[test]
fn no_more_is_in_flight_than_twice_the_send_buffer() {
    for params in ["sndbuf=1K", "sndbuf=8K", "", "sndbuf=1M"] {
        for size_bytes in [100, 4096] {
            let (most, buffer) = in_flight::<Connected<OverTcp<TcpVmsplice>>>(params, size_bytes);
            assert!(most <= 2 * buffer, "{params}: {most} bytes with a send buffer of {buffer}");
        }
    }
}

#[test]
fn loopback_copies_what_is_sent_with_zerocopy_and_says_so() {
    let (mut client, mut server) = connected::<Connected<TcpZerocopy>>("");
    let sends = |endpoint: &<Connected<TcpZerocopy> as Mechanism>::End| {
        endpoint.settings().into_iter().find(|setting| setting.name == "MSG_ZEROCOPY sends")
    };
    assert!(sends(&client).is_none(), "nothing was sent");
    for iteration in 0..1000 {
        let message = [iteration as u8; 100];
        assert_eq!(client.send(&message), Ok(100));
        let mut got = [0; 100];
        assert_eq!(server.receive(&mut got), Ok(100));
        assert_eq!(got, message);
    }
    let sends = sends(&client).unwrap();
    assert_eq!(sends.asked.as_deref(), Some("1000"));
    // A completion is read when its buffer is needed again, so that those of the last sends are still unread.
    let counts: Vec<u32> = sends.got.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [without_copy, copied, not_told, ordinary] = counts[..] else { panic!("{}", sends.got) };
    assert_eq!(without_copy + copied + not_told, 1000, "{}", sends.got);
    assert_eq!((without_copy, ordinary), (0, 0), "{}", sends.got);
    assert!(not_told <= 64 && sends.clamped, "{}", sends.got);
}
