//! What an endpoint learns of its peer: that a message is there, or that the peer has gone.

use crate::common::{connected, receive_all, send_all, visit};
use mechanisms::{Endpoint, Mechanism, Operation, Shape, Visitor};
use model::card::{CardKind, Payload};
use model::{Params, Workload};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::Duration;

check!(an_endpoint_that_can_be_polled_is_ready_when_a_message_is_there, |params, M| {
    let ready = |endpoint: &M::End, limit_s: i64| {
        let mut input = [PollFd::from_borrowed_fd(endpoint.input().unwrap(), PollFlags::IN)];
        poll(&mut input, Some(&Timespec { tv_sec: limit_s, tv_nsec: 0 })).unwrap() == 1
    };
    let framing = M::CARD.framing;
    // An empty message makes an endpoint ready, too.
    let message: &[u8] = if M::CARD.empty { &[] } else { &[1] };
    let server = |mut endpoint: M::End| {
        assert_eq!(endpoint.input().is_some(), M::CARD.polled, "{}:{params}", M::CARD.name);
        // The client sends nothing before it has received.
        assert!(
            !M::CARD.polled || !ready(&endpoint, 0),
            "{}:{params} is ready before there is anything",
            M::CARD.name
        );
        send_all(&mut endpoint, &[1], framing);
        assert!(!M::CARD.polled || ready(&endpoint, 10), "{}:{params} is not ready", M::CARD.name);
        receive_all(&mut endpoint, &mut vec![0; message.len()], framing);
        assert!(!M::CARD.polled || !ready(&endpoint, 0), "{}:{params} stays ready", M::CARD.name);
        send_all(&mut endpoint, &[1], framing);
    };
    let client = |mut endpoint: M::End| {
        receive_all(&mut endpoint, &mut [0], framing);
        send_all(&mut endpoint, message, framing);
        // It does not close before the server has polled for the last time.
        receive_all(&mut endpoint, &mut [0], framing);
    };
    if M::CARD.kind == CardKind::Mechanism && M::CARD.name != "null" {
        connected::<M>(params, Shape { size_bytes: 1, workload: Workload::Latency }, client, server);
    }
});

// Slow: it visits every variant of every mechanism.
check!(the_death_of_the_peer_ends_a_send, |params, M| {
    // MPTCP keeps what it cannot deliver, and lets the sender wait for room, until it gives up the peer. There, and
    // where both endpoints spin on shared memory, the coordinator's deadline ends the wait.
    if M::CARD.hangup && M::CARD.payload == Payload::Bytes && M::CARD.name != "mptcp" && !params.spins() {
        let client = |mut endpoint: M::End| {
            // The server ends once it has sent this.
            receive_all(&mut endpoint, &mut [0], M::CARD.framing);
            std::thread::sleep(Duration::from_millis(20));
            let refused = (0..100_000).find_map(|_| endpoint.send(&[1; 64]).err());
            let expected = [sys::Errno::PIPE, sys::Errno::CONNRESET];
            assert!(
                refused.is_some_and(|errno| expected.contains(&errno)),
                "{}:{params}: {refused:?}",
                M::CARD.name
            );
        };
        let server = |mut endpoint: M::End| send_all(&mut endpoint, &[1], M::CARD.framing);
        connected::<M>(params, Shape { size_bytes: 64, workload: Workload::Throughput }, client, server);
    }
});

check!(the_death_of_the_peer_ends_a_receive, |params, M| {
    // An endpoint that spins on shared memory rarely checks whether its peer lives: the coordinator's deadline ends it.
    if M::CARD.hangup && !params.spins() {
        let client = |mut endpoint: M::End| {
            receive_all(&mut endpoint, &mut [0], M::CARD.framing);
            assert_eq!(endpoint.receive(&mut [0]), Err(sys::Errno::PIPE));
        };
        let server = |mut endpoint: M::End| send_all(&mut endpoint, &[1], M::CARD.framing);
        connected::<M>(params, Shape { size_bytes: 1, workload: Workload::Latency }, client, server);
    }
});

/// Slow: it visits every variant of every mechanism.
#[test]
fn the_last_message_of_a_peer_that_closes_is_not_lost() {
    struct LastMessage(Params);
    impl Visitor for LastMessage {
        type Output = ();
        fn mechanism<M: Mechanism>(self) {
            let shape = Shape { size_bytes: 1, workload: Workload::Latency };
            let client = |mut endpoint: M::End| assert_eq!(endpoint.receive(&mut [0]), Ok(1));
            connected::<M>(&self.0, shape, client, |mut endpoint: M::End| {
                assert_eq!(endpoint.send(&[1]), Ok(1));
            });
        }
        fn operation<O: Operation>(self) {}
    }
    for name in ["unix-seqpacket", "pty"] {
        let card = mechanisms::registry::card(name).unwrap();
        for _ in 0..3000 {
            visit(card, LastMessage(Params::parse("wait=spin", card).unwrap()));
        }
    }
}
