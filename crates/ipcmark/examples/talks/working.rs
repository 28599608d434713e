//! A stream whose process works for a known time for each message.

use crate::exchange::PEER;
use rustix::time::{ClockId, clock_gettime};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A stream whose process works for a while after whatever it has read.
pub(crate) struct Working {
    stream: UnixStream,
    work: Duration,
}

impl Working {
    /// Works for as many microseconds as [`PEER`] says.
    pub(crate) fn new(stream: UnixStream) -> Self {
        let work_us = std::env::var(PEER).unwrap().parse().unwrap();
        Self { stream, work: Duration::from_micros(work_us) }
    }
}

impl Read for Working {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(bytes)?;
        // By the CPU's clock of this thread: when others have the CPU, it does not work.
        let worked = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
        let until = worked() + self.work;
        while worked() < until {}
        Ok(read)
    }
}

impl Write for Working {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
