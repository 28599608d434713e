//! What is sent arrives: whole, in order, and with the descriptors that go with it.

use crate::common::{connected, content, empty, is_main, largest, receive_all, send_all, sizes, visit};
use mechanisms::{Endpoint, Mechanism, NoTrace, Operation, Shape, Visitor};
use model::card::{Framing, Payload, Support};
use model::{Params, Session, Workload};
use std::os::fd::AsFd;
use std::sync::{Barrier, mpsc};
use std::time::Duration;

// Slow: it visits every variant of every mechanism.
check!(what_is_sent_arrives_whole_and_in_order_both_ways, |params, M| {
    for size_bytes in sizes(&M::CARD, params) {
        // What spins waits for the scheduler in each round where CPUs are busy.
        let rounds = match (size_bytes > 10_000 || params.spins(), is_main(params)) {
            (true, _) => 5,
            (false, true) => 50,
            (false, false) => 12,
        };
        let framing = M::CARD.framing;
        let shape = Shape { size_bytes, workload: Workload::Latency };
        let client = |mut endpoint: M::End| {
            let mut answer = vec![0; size_bytes];
            for round in 0..rounds {
                send_all(&mut endpoint, &content(round, size_bytes), framing);
                receive_all(&mut endpoint, &mut answer, framing);
                if M::CARD.payload == Payload::Bytes {
                    assert!(
                        answer == content(round + 1, size_bytes),
                        "{size_bytes} bytes back, round {round}"
                    );
                }
            }
        };
        let server = |mut endpoint: M::End| {
            let mut question = vec![0; size_bytes];
            for round in 0..rounds {
                receive_all(&mut endpoint, &mut question, framing);
                if M::CARD.payload == Payload::Bytes {
                    assert!(question == content(round, size_bytes), "{size_bytes} bytes, round {round}");
                }
                send_all(&mut endpoint, &content(round + 1, size_bytes), framing);
            }
        };
        connected::<M>(params, shape, client, server);
    }
});

// Slow: it visits every variant of every mechanism.
check!(a_stream_of_messages_loses_none_though_the_server_is_slow, |params, M| {
    if M::CARD.workloads.contains(&Workload::Throughput) && !M::End::LOSES {
        let largest = largest(&M::CARD, params);
        // What the variants of a mechanism differ in is how they wait.
        let sizes = if is_main(params) { vec![1, 60, 4096, 65_000] } else { vec![largest.min(60), 65_000] };
        let sizes = sizes.into_iter().filter(|size| *size <= largest);
        for size_bytes in sizes.chain(empty(&M::CARD)) {
            let messages = match (size_bytes > 10_000, is_main(params)) {
                (true, true) => 200,
                (true, false) => 40,
                (false, true) => 3000,
                (false, false) => 1000,
            };
            let framing = M::CARD.framing;
            let client = |mut endpoint: M::End| {
                for number in 0..messages {
                    send_all(&mut endpoint, &content(number, size_bytes), framing);
                }
                receive_all(&mut endpoint, &mut [0], framing);
            };
            let server = |mut endpoint: M::End| {
                // Meanwhile the client fills every buffer.
                std::thread::sleep(Duration::from_millis(30));
                let mut message = vec![0; size_bytes];
                for number in 0..messages {
                    receive_all(&mut endpoint, &mut message, framing);
                    if M::CARD.payload == Payload::Bytes {
                        assert!(
                            message == content(number, size_bytes),
                            "{size_bytes} bytes, message {number}"
                        );
                    }
                }
                send_all(&mut endpoint, &[1], framing);
            };
            connected::<M>(params, Shape { size_bytes, workload: Workload::Throughput }, client, server);
        }
    }
});

check!(an_empty_message_is_one_of_its_own_between_others, |params, M| {
    if M::CARD.empty {
        // Fewer than the shallowest queue holds.
        const SIZES: [usize; 8] = [0, 5, 0, 0, 8, 1, 0, 3];
        let client = |mut endpoint: M::End| {
            for (number, size) in SIZES.into_iter().enumerate() {
                assert_eq!(endpoint.send(&content(number, size)), Ok(size));
            }
            receive_all(&mut endpoint, &mut [], M::CARD.framing);
        };
        let server = |mut endpoint: M::End| {
            // Room for the largest: where a message ends is known from the message.
            let mut message = [0; 8];
            for (number, size) in SIZES.into_iter().enumerate() {
                assert_eq!(endpoint.receive(&mut message), Ok(size), "message {number}");
                assert!(message[..size] == *content(number, size), "message {number}");
            }
            send_all(&mut endpoint, &[], M::CARD.framing);
        };
        connected::<M>(params, Shape { size_bytes: 8, workload: Workload::Latency }, client, server);
    }
});

check!(an_empty_message_is_answered_by_a_byte_and_the_other_way_round, |params, M| {
    // The workloads `transfer` and `throughput` do so with empty messages: an endpoint needs room for the answer, too.
    if M::CARD.empty && M::CARD.takes(Workload::Transfer) {
        let client = |mut endpoint: M::End| {
            for _ in 0..20 {
                send_all(&mut endpoint, &[], M::CARD.framing);
                let mut answer = [0];
                receive_all(&mut endpoint, &mut answer, M::CARD.framing);
                assert_eq!(answer, [7]);
            }
        };
        let server = |mut endpoint: M::End| {
            for _ in 0..20 {
                receive_all(&mut endpoint, &mut [], M::CARD.framing);
                send_all(&mut endpoint, &[7], M::CARD.framing);
            }
        };
        connected::<M>(params, Shape { size_bytes: 0, workload: Workload::Transfer }, client, server);
    }
});

check!(messages_that_may_be_lost_arrive_in_order_and_the_last_is_known, |params, M| {
    if M::End::LOSES {
        const MESSAGES: usize = 20_000;
        const SIZE: usize = 500;
        let all_sent = Barrier::new(2);
        let client = |mut endpoint: M::End| {
            (0..MESSAGES).for_each(|number| assert_eq!(endpoint.send(&content(number, SIZE)), Ok(SIZE)));
            all_sent.wait();
            receive_all(&mut endpoint, &mut [0], M::CARD.framing);
        };
        let server = |mut endpoint: M::End| {
            // By now the client has filled every buffer, and the rest is lost.
            all_sent.wait();
            let (mut next, mut came, mut message) = (0, 0, vec![0; SIZE]);
            loop {
                match endpoint.receive(&mut message) {
                    Err(sys::Errno::NODATA) => break,
                    count => assert_eq!(count, Ok(SIZE)),
                }
                let number = (next..MESSAGES).find(|&number| message == content(number, SIZE));
                next = number.unwrap_or_else(|| panic!("message after {next} is none that was sent")) + 1;
                came += 1;
            }
            assert!((1..MESSAGES).contains(&came), "{came} came: the buffer holds some, and not all");
            send_all(&mut endpoint, &[1], M::CARD.framing);
        };
        connected::<M>(params, Shape { size_bytes: SIZE, workload: Workload::Throughput }, client, server);
    }
});

check!(a_message_above_the_limit_is_refused, |params, M| {
    if let Support::Yes { largest_bytes: Some(largest) } = M::probe(params)
        && M::CARD.framing == Framing::Message
        // A codec may make the message small enough.
        && !params.to_string().contains("codec=")
    {
        let size_bytes = usize::try_from(largest).unwrap() + 1;
        let client = |mut endpoint: M::End| {
            assert_eq!(endpoint.send(&vec![1; size_bytes]), Err(sys::Errno::MSGSIZE));
            endpoint.send(&[1]).unwrap();
            // Messages that nobody has read go with a queue that is removed.
            receive_all(&mut endpoint, &mut [0], M::CARD.framing);
        };
        let server = |mut endpoint: M::End| {
            assert_eq!(endpoint.receive(&mut [0; 8]), Ok(1), "the refused message left something behind");
            send_all(&mut endpoint, &[1], M::CARD.framing);
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

/// Some messages of `size_bytes`, each with more descriptors than the one before.
fn descriptors_arrive<M: Mechanism>(params: &Params, size_bytes: usize) {
    let counts = [0, 1, 4, 100];
    let client = |mut endpoint: M::End| {
        let file = std::fs::File::open("/dev/null").unwrap();
        for (number, fds) in counts.into_iter().enumerate() {
            let fds = vec![file.as_fd(); fds];
            let message = content(number, size_bytes);
            let mut sent = endpoint.send_with(&message, &fds, &mut NoTrace).unwrap();
            while sent < size_bytes {
                sent += endpoint.send_with(&message[sent..], &[], &mut NoTrace).unwrap();
            }
        }
        receive_all(&mut endpoint, &mut [0], M::CARD.framing);
    };
    let server = |mut endpoint: M::End| {
        for (number, fds) in counts.into_iter().enumerate() {
            // `into` is never empty.
            let mut message = vec![0; size_bytes.max(1)];
            let (mut received, mut came) = (0, 0);
            loop {
                let arrived = endpoint.receive_with(&mut message[received..], &mut NoTrace).unwrap();
                received += arrived.bytes;
                came += arrived.fds;
                if received >= size_bytes {
                    break;
                }
            }
            assert_eq!((received, came), (size_bytes, fds));
            assert!(message[..size_bytes] == content(number, size_bytes), "message {number}");
        }
        send_all(&mut endpoint, &[1], M::CARD.framing);
    };
    let session = Workload::Session(Session::DEFAULT);
    connected::<M>(params, Shape { size_bytes, workload: session }, client, server);
}

#[test]
fn a_size_that_the_kernel_clamps_is_said_to_be_clamped() {
    struct Settings(Params);
    impl Visitor for Settings {
        type Output = bool;
        fn mechanism<M: Mechanism>(self) -> bool {
            let (sender, clamped) = mpsc::channel();
            let client =
                move |endpoint: M::End| sender.send(endpoint.settings().iter().any(|s| s.clamped)).unwrap();
            connected::<M>(&self.0, Shape { size_bytes: 1, workload: Workload::Latency }, client, drop);
            clamped.recv().unwrap()
        }
        fn operation<O: Operation>(self) -> bool {
            false
        }
    }
    // Root may exceed the limits of socket buffers, but not what an int holds when it is doubled.
    for (name, modest, immodest) in [
        ("pipe", "capacity=64K", "capacity=5000"),
        ("unix-stream", "sndbuf=64K", "sndbuf=1G"),
        ("tcp", "rcvbuf=64K", "rcvbuf=1G"),
    ] {
        let card = mechanisms::registry::card(name).unwrap();
        let clamped = |params| visit(card, Settings(Params::parse(params, card).unwrap()));
        assert!(!clamped(modest), "{name}:{modest}");
        assert!(clamped(immodest), "{name}:{immodest}");
    }
}
