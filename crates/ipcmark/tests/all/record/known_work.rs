//! A program that works for a known time for each message: what is recorded of it must be that.

use super::{may, only_flow, player, recorded};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How many requests it makes.
pub(super) const WORKED_REQUESTS: u64 = 2000;
const WORK: Duration = Duration::from_micros(3);

/// A stream whose process works for [`WORK`] after whatever it has read.
pub(super) struct Working(pub(super) UnixStream);

impl Read for Working {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(bytes)?;
        let begun = Instant::now();
        while begun.elapsed() < WORK {}
        Ok(read)
    }
}

impl Write for Working {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn its_length_is_recovered() {
    /// What a call takes in a program that nobody has optimised is work, too.
    const WITHIN: std::ops::Range<f64> = 0.95..1.15;
    const TRIES: usize = 8;
    for way in ["bpf", "tracepoints"].into_iter().filter(|way| may(way)) {
        let mut seen = Vec::new();
        let is_recovered = (0..TRIES).any(|_| {
            let (_place, scenario) = recorded(way, &player("works"), "socket");
            let Some(flow) = only_flow(&scenario, "unix-stream") else { return false };
            let works = [&flow.client_work, &flow.server_work].map(|work| work.at(0.5));
            let shares = works.map(|work| work.0 as f64 / WORK.as_nanos() as f64);
            seen.push(shares);
            shares.iter().all(|share| WITHIN.contains(share))
        });
        assert!(is_recovered, "{way}: of {WORK:?} of work these shares were recorded: {seen:?}");
    }
}
