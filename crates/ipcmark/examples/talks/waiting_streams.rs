//! Streams whose readers wait in other calls than read(2), for the programs that tests record.

use rustix::event::{PollFd, PollFlags, poll};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// A socket that is waited for with poll(2) before each read.
pub(crate) struct Polling(pub(crate) UnixStream);

impl Read for Polling {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None)?;
        self.0.read(bytes)
    }
}

impl Write for Polling {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}
