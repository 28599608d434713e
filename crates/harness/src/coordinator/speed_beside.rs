//! Speed readings beside slices of endpoints that take none themselves: threads of the coordinator take them on the CPUs of the endpoints, which
//! wait meanwhile to be told what is next.

use crate::clock::Clock;
use crate::endpoint::speed::SpeedReader;
use model::CpuPair;
use model::speed::{SpeedReading, SpeedReadings};
use std::thread;
use sys::Failure;
use sys::shared_memory::SharedMemory;

/// How often the speed of a CPU is read: a runtime that tidies up after a phase is not to be taken for a neighbour, so that the fastest counts.
const READINGS: usize = 3;
/// The memory of the line that goes to and fro: the least that can be mapped.
const MEMORY_BYTES: usize = 4096;

/// Readings at one moment, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpeedNow {
    client_ns: f64,
    server_ns: Option<f64>,
    pair_ns: Option<f64>,
}

impl SpeedNow {
    /// Reads the speed of `cpus`; `None` where this process may not run there.
    pub(super) fn read(cpus: CpuPair) -> Option<Self> {
        if cpus.client == cpus.server {
            let client_ns = on_cpu(cpus.client, || Some(fastest_ns(&reader(None))))?;
            return Some(Self { client_ns, server_ns: None, pair_ns: None });
        }
        let (client, server) = readers().ok()?;
        let (client, server) = thread::scope(|scope| {
            let server = scope.spawn(|| on_cpu(cpus.server, || Some(of_server(server))));
            let client = on_cpu(cpus.client, || Some(of_client(client)));
            Some((client?, server.join().ok()??))
        })?;
        Some(Self { client_ns: client.0, server_ns: Some(server), pair_ns: client.1 })
    }

    /// This before and `after` that.
    pub(super) fn and(self, after: Self) -> SpeedReadings {
        let both = |before: Option<f64>, after: Option<f64>| {
            let (before_ns, after_ns) = before.zip(after)?;
            Some(SpeedReading { before_ns, after_ns })
        };
        SpeedReadings {
            client: SpeedReading { before_ns: self.client_ns, after_ns: after.client_ns },
            server: both(self.server_ns, after.server_ns),
            pair: both(self.pair_ns, after.pair_ns),
        }
    }
}

/// Does `read` in a thread on `cpu`, so that the caller stays where it may run.
fn on_cpu<T: Send>(cpu: u32, read: impl FnOnce() -> Option<T> + Send) -> Option<T> {
    thread::scope(|scope| {
        let read = || sys::process::pin_to(cpu).ok().and_then(|()| read());
        thread::Builder::new().spawn_scoped(scope, read).ok()?.join().ok()?
    })
}

fn reader(line: Option<SharedMemory>) -> SpeedReader {
    SpeedReader::new(Clock::raw(), line)
}

/// Two readers of one line.
fn readers() -> Result<(SpeedReader, SpeedReader), Failure> {
    let (ours, fd) = SharedMemory::create("ipcmark-speed", MEMORY_BYTES)?;
    let theirs = SharedMemory::open(&fd, MEMORY_BYTES)?;
    Ok((reader(Some(ours)), reader(Some(theirs))))
}

/// The CPU was asleep: the first of the readings fills its caches and lets its clock rise.
fn fastest_ns(reader: &SpeedReader) -> f64 {
    (0..=READINGS).map(|_| reader.cpu_ns()).skip(1).fold(f64::INFINITY, f64::min)
}

/// Both begin at about the same time; where one does not come, the other waits for no longer than a reading may take.
fn of_client(mut reader: SpeedReader) -> (f64, Option<f64>) {
    let client_ns = fastest_ns(&reader);
    (client_ns, reader.pair_ns())
}

fn of_server(mut reader: SpeedReader) -> f64 {
    let server_ns = fastest_ns(&reader);
    reader.answer_pair();
    server_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_has_a_reading_and_where_none_can_run_there_is_none() {
        let cpus = crate::host::topology::allowed();
        let [client, server] = [cpus[0], cpus[cpus.len() - 1]];
        let one = SpeedNow::read(CpuPair { client, server: client }).unwrap();
        let readings = one.and(one);
        assert!(readings.client.before_ns > 0.0 && readings.server.is_none());
        if client != server {
            let both = SpeedNow::read(CpuPair { client, server }).unwrap();
            let readings = both.and(both);
            assert!(readings.server.unwrap().after_ns > 0.0);
        }
        // No kernel has this CPU.
        assert!(SpeedNow::read(CpuPair { client: u32::MAX, server: u32::MAX }).is_none());
    }
}
