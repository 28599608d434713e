//! A stream whose process works for a known time for each message.

use crate::exchange::PEER;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

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
        let begun = Instant::now();
        while begun.elapsed() < self.work {}
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
