//! Signals that interrupt calls lose nothing, and each connection of the workload `connect` is answered.

use crate::common::{connected, content, is_main, largest, receive_all, send_all};
use mechanisms::{Endpoint, Mechanism, Shape};
use model::card::Payload;
use model::{Params, Workload};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use sys::signal::{Signal, SignalSender, ThreadId, handle};

/// Does what [`connected`] does, and interrupts whatever both threads call, until the client is done.
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
        let client = |endpoint: M::End| {
            here.send(ThreadId::current()).unwrap();
            client(endpoint);
            over.store(true, Ordering::Relaxed);
        };
        let server = |endpoint: M::End| {
            there.send(ThreadId::current()).unwrap();
            server(endpoint);
        };
        connected::<M>(params, shape, client, server);
    });
}

// Slow: it visits every variant of every mechanism.
check!(calls_that_are_interrupted_lose_nothing, |params, M| {
    let iterations = if is_main(params) { 1500 } else { 150 };
    let size_bytes = largest(&M::CARD, params).min(64);
    let (framing, carries) = (M::CARD.framing, M::CARD.payload == Payload::Bytes);
    let client = |mut endpoint: M::End| {
        let mut answer = vec![0; size_bytes];
        for iteration in 0..iterations {
            send_all(&mut endpoint, &content(iteration, size_bytes), framing);
            receive_all(&mut endpoint, &mut answer, framing);
            assert!(!carries || answer == content(iteration + 1, size_bytes), "iteration {iteration}");
        }
    };
    let server = |mut endpoint: M::End| {
        let mut question = vec![0; size_bytes];
        for iteration in 0..iterations {
            receive_all(&mut endpoint, &mut question, framing);
            assert!(!carries || question == content(iteration, size_bytes), "iteration {iteration}");
            send_all(&mut endpoint, &content(iteration + 1, size_bytes), framing);
        }
    };
    in_a_storm::<M>(params, Shape { size_bytes, workload: Workload::Latency }, client, server);
});

/// The shape of the workload in which each iteration is a connection.
const CONNECT: Shape = Shape { size_bytes: 1, workload: Workload::Connect };

/// The client's iterations of that workload.
fn ask<E: Endpoint>(endpoint: &mut E, iterations: usize) {
    for iteration in 0..iterations {
        let mut answer = [!(iteration as u8)];
        assert_eq!(endpoint.send(&[iteration as u8]), Ok(1), "iteration {iteration}");
        assert_eq!(endpoint.receive(&mut answer), Ok(1), "iteration {iteration}");
        assert_eq!(answer, [iteration as u8], "iteration {iteration}");
    }
}

/// The server's iterations. They do not check what was received: a child of the server may have it.
fn echo<E: Endpoint>(endpoint: &mut E, iterations: usize) {
    let mut message = [0];
    for iteration in 0..iterations {
        assert_eq!(endpoint.receive(&mut message), Ok(1), "iteration {iteration}");
        assert_eq!(endpoint.send(&message), Ok(1), "iteration {iteration}");
    }
}

// Slow: it visits every variant of every mechanism.
check!(each_connection_is_answered, |params, M| {
    if M::CARD.takes(Workload::Connect) {
        const ITERATIONS: usize = 300;
        connected::<M>(
            params,
            CONNECT,
            |mut endpoint| ask(&mut endpoint, ITERATIONS),
            |mut endpoint| echo(&mut endpoint, ITERATIONS),
        );
        // The kernel gives an interrupted connect of virtual sockets up, though the server may have accepted by then. One that
        // answers itself reads nothing there and waits for the next; one that forks has counted it.
        if M::CARD.name == "vsock" && params.text(&M::CARD, "server") == Some("fork") {
            return;
        }
        in_a_storm::<M>(
            params,
            CONNECT,
            |mut endpoint| ask(&mut endpoint, ITERATIONS),
            |mut endpoint| echo(&mut endpoint, ITERATIONS),
        );
    }
});
