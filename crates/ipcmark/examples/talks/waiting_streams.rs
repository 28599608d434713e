//! Streams whose readers wait in other calls than read(2), for the programs that tests record.

use rustix::event::{PollFd, PollFlags, epoll, poll};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
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

/// Waits for any change of the stream, as nginx does.
pub(crate) struct WatchingForRoom {
    stream: UnixStream,
    instance: OwnedFd,
}

impl WatchingForRoom {
    pub(crate) fn new(stream: UnixStream) -> Self {
        let instance = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let changes = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        epoll::add(&instance, &stream, epoll::EventData::new_u64(0), changes).unwrap();
        Self { stream, instance }
    }
}

impl Read for WatchingForRoom {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let mut events =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }];
        while !{ events[0].flags }.contains(epoll::EventFlags::IN) {
            epoll::wait(&self.instance, &mut events, None)?;
        }
        self.stream.read(bytes)
    }
}

impl Write for WatchingForRoom {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}
