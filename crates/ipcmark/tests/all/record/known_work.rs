//! A program that works for a known time for each message: what is recorded of it must be that.

use super::{may, only_flow, player, recorded_in};
use crate::common::Place;

/// Slow: it records a program by each way.
#[test]
fn its_length_is_recovered() {
    const WORKS_US: [u64; 2] = [3, 12];
    /// What a call takes in a program that nobody has optimised is work, too: 0.2 us, and 0.6 on a busy machine. What lies
    /// between two calls anyway, 1 us and more, is not.
    const MORE_US: f64 = 0.8;
    /// It is measured beforehand, and may then take longer than it does in the program.
    const SHARE: f64 = 0.93;
    const TRIES: usize = 8;
    for way in ["bpf", "tracepoints"].into_iter().filter(|way| may(way)) {
        for work_us in WORKS_US {
            let mut seen = Vec::new();
            let is_recovered = (0..TRIES).any(|_| {
                let (_place, scenario) =
                    recorded_in(Place::new(), way, &player("works"), &work_us.to_string());
                let Some(flow) = only_flow(&scenario, "unix-stream") else { return false };
                let works_us = [&flow.client_work, &flow.server_work].map(|work| work.at(0.5).0 as f64 / 1e3);
                seen.push(works_us);
                let within = SHARE * work_us as f64..work_us as f64 + MORE_US;
                works_us.iter().all(|us| within.contains(us))
            });
            assert!(is_recovered, "{way}: of {work_us} us of work these were recorded: {seen:?}");
        }
    }
}
