//! What the rule is for by which memory that the kernel refers to is lent again: without it messages change on
//! their way, with it none does. That rows with the rule keep the contract is for the conformance suite.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use mechanisms::{
    AtOnce, Connected, Endpoint, Mechanism, OverPipes, OverTcp, PipeSplice, PipeVmsplice, Shape, TcpSendfile,
    TcpVmsplice, TcpZerocopy, Tee, TrialContext,
};
use model::{Params, Workload};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Two connected ends of `M`.
fn connected<M: Mechanism>(params: &str) -> (M::End, M::End) {
    let params = if params.is_empty() { Params::default() } else { Params::parse(params, &M::CARD).unwrap() };
    let directory = tempfile::tempdir().unwrap();
    let shape = Shape { size_bytes: 1, workload: Workload::Throughput };
    let trial = TrialContext { params: &params, shape, directory: directory.path(), number: 1 };
    let (bound, ticket) = M::bind(&trial).unwrap();
    let server = M::connect(&trial, ticket).unwrap();
    (M::accept(bound).unwrap(), server)
}

/// Streams `messages` of `size_bytes`, all bytes of which are the message's number, to a server that is slow to begin
/// and slow in between; says how many arrived changed.
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
                // Client runs ahead until all that can fill up is full.
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
    AtOnce<M>: Mechanism<End = M::End>,
{
    let name = M::CARD.name;
    for size_bytes in [1, 100, 4096, 5000, 65_536, 300_000] {
        let messages = if size_bytes > 10_000 { 200 } else { 2000 };
        let changed = changed::<M>(params, size_bytes, messages);
        assert_eq!(changed, 0, "{name}:{params}, {size_bytes} bytes, {messages} messages");
    }
    // A buffer as large as the message, and so the same one for every message.
    let changed = changed::<AtOnce<M>>(params, 65_536, 300);
    assert!(changed > 0, "{name}:{params}: nothing changed without the rule");
}

#[test]
fn pages_in_a_pipe_are_referred_to_until_they_are_read() {
    for capacity in ["", "capacity=4K"] {
        the_rule_is_needed_and_suffices::<OverPipes<PipeVmsplice>>(capacity);
        the_rule_is_needed_and_suffices::<OverPipes<PipeSplice>>(capacity);
        the_rule_is_needed_and_suffices::<OverPipes<Tee>>(capacity);
    }
    the_rule_is_needed_and_suffices::<OverPipes<PipeVmsplice>>("gift=on");
}

#[test]
fn pages_in_a_connection_are_referred_to_until_they_are_read() {
    for buffer in ["", "sndbuf=1K", "sndbuf=1M"] {
        the_rule_is_needed_and_suffices::<Connected<OverTcp<TcpVmsplice>>>(buffer);
        the_rule_is_needed_and_suffices::<Connected<OverTcp<TcpSendfile>>>(buffer);
    }
}

/// How many bytes client can hand over that server does not read, in messages of `size_bytes`, and client's send buffer.
fn in_flight<M: Mechanism>(params: &str, size_bytes: usize) -> (usize, usize)
where
    M::End: Send,
{
    let (mut client, server) = connected::<M>(params);
    let buffer = client.settings().into_iter().find(|setting| setting.name == "SO_SNDBUF").unwrap();
    let handed_over = AtomicUsize::new(0);
    let most = std::thread::scope(|threads| {
        threads.spawn(|| {
            let message = vec![1; size_bytes];
            // Until server is gone.
            while let Ok(count) = client.send(&message) {
                handed_over.fetch_add(count, Ordering::Relaxed);
            }
        });
        let mut most = 0;
        loop {
            std::thread::sleep(Duration::from_millis(100));
            let now = handed_over.load(Ordering::Relaxed);
            if now == most && now > 0 {
                break;
            }
            most = now;
        }
        drop(server);
        most
    });
    (most, buffer.got.parse().unwrap())
}

#[test]
fn no_more_is_in_flight_than_twice_the_send_buffer() {
    for params in ["sndbuf=1K", "sndbuf=8K", "", "sndbuf=1M"] {
        // What is larger than a small send buffer would never be handed over whole.
        for size_bytes in [100, 4096] {
            let (most, buffer) = in_flight::<Connected<OverTcp<TcpVmsplice>>>(params, size_bytes);
            assert!(most <= 2 * buffer, "{params}: {most} bytes with a send buffer of {buffer}");
        }
    }
}

#[test]
fn loopback_copies_what_is_sent_with_zerocopy_and_says_so() {
    let (mut client, mut server) = connected::<Connected<TcpZerocopy>>("");
    let sends = |end: &<Connected<TcpZerocopy> as Mechanism>::End| {
        end.settings().into_iter().find(|setting| setting.name == "MSG_ZEROCOPY sends")
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
    // Completions are taken when a buffer is needed again, so that those of the last sends were not.
    let counts: Vec<u32> = sends.got.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [without_copy, copied, not_told, ordinary] = counts[..] else { panic!("{}", sends.got) };
    assert_eq!(without_copy + copied + not_told, 1000, "{}", sends.got);
    assert_eq!((without_copy, ordinary), (0, 0), "{}", sends.got);
    assert!(not_told <= 64 && sends.clamped, "{}", sends.got);
}
