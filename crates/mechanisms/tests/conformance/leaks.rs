//! Trials leave nothing behind: no descriptor, mapping, name or child.

use crate::common::{
    assert_empty, connected, is_main, one_at_a_time, probe, receive_all, run_directory, send_all, variants,
    visit,
};
use mechanisms::{Endpoint, Mechanism, NoTrace, Operation, Shape, TrialContext, Visitor};
use model::card::{Card, Support};
use model::{Params, Workload};
use rustix::process::{WaitOptions, wait};
use std::os::fd::AsFd;
use std::time::Duration;

/// Slow: it visits every variant of every mechanism.
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
            let client = |mut endpoint: M::End| {
                let before = open_descriptors();
                let file = std::fs::File::open("/dev/null").unwrap();
                for iteration in 0..iterations {
                    if passes && iteration % 8 == 0 {
                        assert_eq!(endpoint.send_with(&[1], &[file.as_fd(); 2], &mut NoTrace), Ok(1));
                    } else {
                        send_all(&mut endpoint, &[1], framing);
                    }
                    receive_all(&mut endpoint, &mut [0], framing);
                }
                drop(file);
                // The server may have ended by now, or may be about to close what it has sent.
                let settled = (0..1000).any(|_| {
                    std::thread::sleep(Duration::from_millis(1));
                    open_descriptors() <= before
                });
                assert!(settled, "{iterations} iterations of {}:{params}", M::CARD.name);
            };
            let server = |mut endpoint: M::End| {
                for iteration in 0..iterations {
                    if passes && iteration % 8 == 0 {
                        assert_eq!(
                            endpoint.receive_with(&mut [0], &mut NoTrace).map(|arrived| arrived.fds),
                            Ok(2)
                        );
                    } else {
                        receive_all(&mut endpoint, &mut [0], framing);
                    }
                    send_all(&mut endpoint, &[1], framing);
                }
            };
            connected::<M>(&params, Shape { size_bytes: 1, workload }, client, server);
        }
        fn operation<O: Operation>(self) {
            let directory = run_directory();
            let shape = Shape { size_bytes: 4096, workload: Workload::Cost };
            let trial = TrialContext {
                params: &self.0,
                shape,
                directory: directory.path(),
                number: 1,
                network: None,
            };
            let mut operation = O::prepare(&trial).unwrap();
            operation.call().unwrap();
            let reads_a_timer = operation.timer().is_some();
            assert_eq!(
                O::CARD.takes(Workload::Accuracy),
                reads_a_timer,
                "{}: an operation that reads a timer has the workload accuracy",
                O::CARD.name
            );
            assert_eq!(operation.read().is_ok(), reads_a_timer, "{}", O::CARD.name);
            drop(operation);
            assert_empty(directory.path());
        }
    }
    // Other tests open and close descriptors in this process: count in a process of its own.
    const ALONE: &str = "IPCMARK_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let test = std::env::current_exe().unwrap();
        let _guard = one_at_a_time();
        let name = "leaks::trials_leak_no_descriptor_and_no_mapping";
        let output =
            std::process::Command::new(test).args(["--exact", name]).env(ALONE, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        return assert!(text.contains("1 passed"), "the test {name} did not run: {text}");
    }
    let shared = || std::fs::read_to_string("/proc/self/maps").unwrap().matches(" rw-s ").count();
    let works = |card: &Card, params: &Params| matches!(probe(card, params), Support::Yes { .. });
    for (card, params) in variants().into_iter().filter(|(card, params)| works(card, params)) {
        // In the server an iteration may be a process. What spins waits for the scheduler in each iteration where CPUs are busy. A
        // descriptor or a mapping that one iteration in eight leaves, or one trial, is found in few.
        let connects = card.takes(Workload::Connect).then_some((Workload::Connect, 100));
        let (many, some) = match (is_main(&params), params.spins()) {
            (_, true) => (50, 3),
            (true, false) => (500, 10),
            (false, false) => (100, 3),
        };
        for (workload, iterations) in [(Workload::Latency, many)].into_iter().chain(connects) {
            let cycle = |iterations| visit(card, Cycle(params.clone(), workload, iterations));
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
