//! A program that works for a known time for each message: what is recorded of it must be that.

use super::{may, only_flow, player, recorded_in};
use crate::common::Place;

/// Slow: it records a program by each way.
#[test]
fn its_length_is_recovered() {
    /// Much longer than any call, and shorter than what a busy CPU gives a program at a time.
    const WORKS_US: [f64; 2] = [300.0, 1200.0];
    /// What a call takes is measured beforehand and taken off; it may then take longer than it does in the program.
    const SHARES: std::ops::Range<f64> = 0.9..1.5;
    for way in ["bpf", "tracepoints"].into_iter().filter(|way| may(way)) {
        for work_us in WORKS_US {
            let (_place, scenario) = recorded_in(Place::new(), way, &player("works"), &work_us.to_string());
            let flow = only_flow(&scenario, "unix-stream").unwrap_or_else(|| panic!("{scenario:#?}"));
            for work in [&flow.client_work, &flow.server_work] {
                let share = work.at(0.5).0 as f64 / 1e3 / work_us;
                assert!(SHARES.contains(&share), "{way}: {share} of {work_us} us: {flow:#?}");
            }
        }
    }
}
