//! Scenarios at random, for tests and benchmarks: 2 to 8 processes in a chain, a tree or a fan.
//!
//! Each is valid for mechanisms that carry requests and streams of up to 16 KiB. The numbers come from whoever asks, so that a seed
//! makes the same scenario again.

use crate::pace::{Arrivals, Rate};
use crate::scenario::{Begin, Concurrency, Flow, Mix, Process, Scenario};
use crate::spec::Spec;
use crate::units::{Nanoseconds, Size};

/// A number below the one that is given.
pub type Draw<'a> = &'a mut dyn FnMut(u64) -> u64;

/// A scenario whose flows have some of `mechanisms`, of which there is one at least.
pub fn random_scenario(mechanisms: &[Spec], draw: Draw<'_>) -> Scenario {
    let count = 2 + draw(7) as usize;
    let shape = draw(4);
    let senders: Vec<(usize, usize)> = match shape {
        0 => (1..count).map(|at| (at - 1, at)).collect(),
        1 => (1..count).map(|at| (draw(at as u64) as usize, at)).collect(),
        2 => (1..count).map(|at| (0, at)).collect(),
        _ => (1..count).map(|at| (at, 0)).collect(),
    };
    let mut flows: Vec<Flow> = Vec::new();
    for (at, (from, to)) in senders.into_iter().enumerate() {
        let cause = flows.iter().position(|flow| flow.to == from && shape < 2);
        let is_stream = draw(5) == 0;
        let begin = match cause {
            Some(flow) => Begin::After { flow, per_message: [1.0, 1.0, 0.5, 2.0][draw(4) as usize] },
            None => begin(draw),
        };
        flows.push(Flow {
            name: format!("f{at}"),
            from,
            to,
            mechanism: mechanisms[draw(mechanisms.len() as u64) as usize].clone(),
            size: sizes(draw),
            reply: (!is_stream).then(|| sizes(draw)),
            messages: 1,
            fds: 0,
            read: None,
            begin,
            client_work: work(draw, 30),
            server_work: work(draw, 60),
            recorded: None,
        });
    }
    let process = |at: usize| Process {
        name: format!("p{at}"),
        cpus: Vec::new(),
        roots: if at.is_multiple_of(2) { Concurrency::InTurn } else { Concurrency::Together },
        serves: if at.is_multiple_of(3) { Concurrency::Together } else { Concurrency::InTurn },
        recorded: None,
    };
    Scenario {
        name: "random".to_owned(),
        summary: ["a chain", "a tree", "a fan-out", "a fan-in"][shape.min(3) as usize].to_owned(),
        recorded: None,
        processes: (0..count).map(process).collect(),
        flows,
    }
}

/// Back to back, after a think time, or at a rate.
fn begin(draw: Draw<'_>) -> Begin {
    let think_time = |us: u64| Begin::Closed { think_time: Mix::only(Nanoseconds(us * 1000)) };
    match draw(5) {
        0 => think_time(100 + draw(2000)),
        1 => Begin::Open(Rate { per_s: 100 + draw(1500) as u32, arrivals: Arrivals::Poisson }),
        _ => think_time(0),
    }
}

/// One size or two, from 16 bytes to 16 KiB.
fn sizes(draw: Draw<'_>) -> Mix<Size> {
    let mut size = || Size(16 << draw(11));
    let (first, second) = (size(), size());
    Mix::weighted([(first, 0.9), (second, 0.1)]).unwrap_or_else(|| Mix::only(first))
}

/// Up to so many microseconds, or none.
fn work(draw: Draw<'_>, most_us: u64) -> Mix<Nanoseconds> {
    Mix::only(Nanoseconds(if draw(3) == 0 { 0 } else { 1000 * draw(most_us) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::{Card, CardKind};
    use crate::testing::cards::card;
    use crate::workload::Workload;
    use proptest::prelude::*;

    const CARDS: &[Card] =
        &[card("pipe", CardKind::Mechanism, &[Workload::Latency, Workload::Throughput], true)];

    proptest! {
        #[test]
        fn each_is_valid(numbers in proptest::collection::vec(any::<u64>(), 1..50)) {
            let mut numbers = numbers.iter().cycle();
            let mut draw = |below: u64| numbers.next().map_or(0, |number| number % below);
            let scenario = random_scenario(&[Spec::plain("pipe")], &mut draw);
            prop_assert!((2..=8).contains(&scenario.processes.len()));
            let text = scenario.to_toml();
            let read = Scenario::parse(&text, CARDS);
            prop_assert!(read.is_ok(), "{:?}\n{}", read, text);
        }
    }
}
