//! What answering a call takes: who asks, what may be answered, and what is done to a program's descriptors. What each call means is not known
//! here.

use crate::caller::{Caller, CallersSocket};
use crate::sockets::{Sockets, Table};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::SocketFlags;
use std::net::SocketAddr;
use std::sync::Arc;
use sys::Errno;
use sys::epoll_entry;
use sys::seccomp_listener::{Listener, StoppedCall};

/// Whoever answers the calls of one process and of all that it starts.
pub(crate) struct Answering {
    pub(crate) listener: Listener,
    pub(crate) sockets: Arc<Sockets>,
}

/// A call, with who makes it.
pub(crate) struct Asked<'a> {
    pub(crate) call: StoppedCall,
    pub(crate) caller: &'a Caller,
}

/// How a call is answered.
pub(crate) enum Reply {
    /// By the kernel, as if nobody had looked.
    Kernel,
    /// With what it returns.
    Value(i64),
    /// With why it fails.
    Error(Errno),
    /// It was answered already, or nobody waits for it any more.
    Answered,
    /// Later: it waits for a connection.
    Accept(WaitingAccept),
    /// Later: it waits for room.
    Connect(WaitingConnect),
}

/// A call that waits for a connection.
pub(crate) struct WaitingAccept {
    pub(crate) call: StoppedCall,
    pub(crate) socket: CallersSocket,
    pub(crate) flags: SocketFlags,
    /// Ends the wait where the socket has a time for it (`SO_RCVTIMEO`).
    pub(crate) timer: Option<OwnedFd>,
}

/// A call that waits until the listener has room.
pub(crate) struct WaitingConnect {
    pub(crate) call: StoppedCall,
    pub(crate) socket: CallersSocket,
    pub(crate) to: SocketAddr,
}

impl Answering {
    pub(crate) fn cannot_keep(&self, what: &str) {
        self.sockets.table().observed.cannot_keep(what);
    }

    /// Puts `new` in the place of the caller's `socket`, at each number where it has it, and in its epoll sets. An error: the call is over.
    pub(crate) fn replace(
        &self,
        asked: &Asked<'_>,
        socket: &CallersSocket,
        new: BorrowedFd<'_>,
        table: &mut Table,
    ) -> Result<(), Errno> {
        for number in asked.caller.numbers_of(socket.inode, socket.number) {
            let entries = asked.caller.epoll_entries(number);
            let closes = asked.caller.closes_on_exec(number);
            self.listener.give(asked.call.id, new, Some(number), closes)?;
            for (set, entry) in entries {
                // Where it fails, the program does not hear of this socket by this set.
                if epoll_entry::exchange(set.as_fd(), entry, socket.file.as_fd(), new).is_err() {
                    table.observed.cannot_keep("an epoll set lost a socket that was exchanged");
                }
            }
        }
        Ok(())
    }

    /// Gives the caller two new descriptors, and writes their numbers where it wants them.
    pub(crate) fn give_two(
        &self,
        asked: &Asked<'_>,
        files: [&OwnedFd; 2],
        at: u64,
        closes: bool,
    ) -> Result<(), Errno> {
        // Before they are there, so that none is left where they cannot be told of.
        asked.caller.write(at, &[0; 8])?;
        let first = self.listener.give(asked.call.id, files[0].as_fd(), None, closes)?;
        let second = self.listener.give(asked.call.id, files[1].as_fd(), None, closes)?;
        let numbers = [first.to_ne_bytes(), second.to_ne_bytes()].concat();
        asked.caller.write(at, &numbers)
    }
}
