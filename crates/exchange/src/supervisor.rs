//! Answers the calls of one process and of all that it starts, one after the other. What each call means is in a file of its own.

use crate::accept::{self, WaitingAccept};
use crate::caller::{Caller, CallersSocket};
use crate::connect::{self, WaitingConnect};
use crate::sockets::{Sockets, Table};
use crate::{listen, names, options, pairs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::Pid;
use std::sync::Arc;
use sys::Errno;
use sys::epoll_entry;
use sys::seccomp_listener::{Listener, StoppedCall};

/// The calls that are answered: those that set sockets and pipes up. None that carries data is among them.
pub(crate) const CALLS: &[i64] = &[
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_io_uring_setup,
    libc::SYS_listen,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_pipe,
    libc::SYS_pipe2,
    libc::SYS_seccomp,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_socketpair,
];

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

/// The supervisor of one process, with all that it starts.
pub(crate) struct Supervisor {
    pub(crate) listener: Listener,
    pub(crate) sockets: Arc<Sockets>,
    /// The process that starts the program: its own calls are left alone.
    starter: Pid,
    accepts: Vec<WaitingAccept>,
    connects: Vec<WaitingConnect>,
}

/// A call, with who makes it.
pub(crate) struct Asked<'a> {
    pub(crate) call: StoppedCall,
    pub(crate) caller: &'a Caller,
}

impl Supervisor {
    pub(crate) fn new(listener: Listener, sockets: Arc<Sockets>, starter: Pid) -> Self {
        Self { listener, sockets, starter, accepts: Vec::new(), connects: Vec::new() }
    }

    /// Answers until no process is left that could ask.
    pub(crate) fn run(mut self) {
        while self.wait() {
            self.retry();
        }
    }

    /// Waits for something to do, and does what is asked; `false` when there is nobody who could ask any more.
    fn wait(&mut self) -> bool {
        /// Who has been interrupted, or has died, is not told: so often it is looked whether those who wait still do.
        const OFTEN: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        let mut files = vec![PollFd::new(&self.listener, PollFlags::IN)];
        files.extend(self.accepts.iter().map(|waiting| PollFd::new(&waiting.socket.file, PollFlags::IN)));
        let timers = self.accepts.iter().filter_map(|waiting| waiting.timer.as_ref());
        files.extend(timers.map(|timer| PollFd::new(timer, PollFlags::IN)));
        let waits = !self.accepts.is_empty() || !self.connects.is_empty();
        let limit = waits.then_some(&OFTEN);
        if poll(&mut files, limit).is_err_and(|errno| errno != Errno::INTR) {
            return false;
        }
        let events = files[0].revents();
        if events.contains(PollFlags::IN) {
            match self.listener.receive() {
                Ok(Some(call)) => self.answer(call),
                Ok(None) => {}
                Err(_) => return false,
            }
            return true;
        }
        !events.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
    }

    /// Tries again what could not be answered at once.
    fn retry(&mut self) {
        for waiting in std::mem::take(&mut self.accepts) {
            if self.listener.is_waiting(waiting.call.id) {
                let (id, reply) = (waiting.call.id, accept::retry(self, waiting));
                self.reply(id, reply);
            }
        }
        for waiting in std::mem::take(&mut self.connects) {
            if self.listener.is_waiting(waiting.call.id) {
                let (id, reply) = (waiting.call.id, connect::retry(self, waiting));
                self.reply(id, reply);
            }
        }
    }

    fn answer(&mut self, call: StoppedCall) {
        let reply = self.decide(call);
        self.reply(call.id, reply);
    }

    fn reply(&mut self, id: u64, reply: Reply) {
        // Whoever has died, or was interrupted, needs no answer.
        let _ = match reply {
            Reply::Kernel => self.listener.go_on(id),
            Reply::Value(value) => self.listener.answer(id, Ok(value)),
            Reply::Error(errno) => self.listener.answer(id, Err(errno)),
            Reply::Answered => Ok(()),
            Reply::Accept(waiting) => {
                self.accepts.push(waiting);
                Ok(())
            }
            Reply::Connect(waiting) => {
                self.connects.push(waiting);
                Ok(())
            }
        };
    }

    fn decide(&self, call: StoppedCall) -> Reply {
        if call.thread == self.starter {
            return Reply::Kernel;
        }
        self.sockets.table().observed.calls += 1;
        let Some(number) = call.number else {
            self.cannot_keep("a program of another architecture keeps its sockets");
            return Reply::Kernel;
        };
        let caller = match Caller::open(call.thread) {
            Ok(caller) => caller,
            Err(_) => return Reply::Kernel,
        };
        // It may have died, and its id be another's: from here on the descriptor is of who is waiting.
        if !self.listener.is_waiting(call.id) {
            return Reply::Answered;
        }
        self.decide_for(&Asked { call, caller: &caller }, number)
    }

    fn decide_for(&self, asked: &Asked<'_>, number: i64) -> Reply {
        match number {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_pipe => return pairs::pipe(self, asked, 0),
            libc::SYS_pipe2 => return pairs::pipe(self, asked, asked.call.arguments[1]),
            libc::SYS_socketpair => return pairs::socketpair(self, asked),
            libc::SYS_io_uring_setup => {
                self.cannot_keep("what is connected or accepted through io_uring stays as it is");
                return Reply::Kernel;
            }
            libc::SYS_seccomp => {
                if asked.call.arguments[1] & libc::SECCOMP_FILTER_FLAG_NEW_LISTENER != 0 {
                    self.cannot_keep("a filter with a listener of its own (seccomp_unotify) is refused");
                }
                return Reply::Kernel;
            }
            _ => {}
        }
        let socket = match asked.caller.socket(asked.call.arguments[0]) {
            Ok(socket) => socket,
            Err(Errno::PERM) => {
                self.cannot_keep("a process that may not be looked at keeps its sockets");
                return Reply::Kernel;
            }
            // The kernel says what is wrong with it.
            Err(_) => return Reply::Kernel,
        };
        let arguments = &asked.call.arguments;
        let asked_of_table = match number {
            libc::SYS_bind => return listen::bind(self, asked, &socket),
            libc::SYS_listen => return listen::listen(self, asked, &socket),
            libc::SYS_connect => return connect::connect(self, asked, socket),
            libc::SYS_accept => return accept::accept(self, asked, socket, 0),
            libc::SYS_accept4 => return accept::accept(self, asked, socket, arguments[3]),
            libc::SYS_getsockname => names::own(self, asked, &socket),
            libc::SYS_getpeername => names::peer(self, asked, &socket),
            libc::SYS_setsockopt => options::set(self, asked, &socket),
            libc::SYS_getsockopt => options::get(self, asked, &socket),
            libc::SYS_shutdown => names::shutdown(self, asked, &socket),
            _ => None,
        };
        asked_of_table.unwrap_or(Reply::Kernel)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_that_carries_data_is_answered() {
        let carry = [
            libc::SYS_read,
            libc::SYS_write,
            libc::SYS_readv,
            libc::SYS_writev,
            libc::SYS_recvfrom,
            libc::SYS_sendto,
            libc::SYS_recvmsg,
            libc::SYS_sendmsg,
            libc::SYS_recvmmsg,
            libc::SYS_sendmmsg,
            libc::SYS_sendfile,
            libc::SYS_splice,
            libc::SYS_ppoll,
            libc::SYS_pselect6,
            libc::SYS_epoll_pwait,
            libc::SYS_epoll_ctl,
            libc::SYS_futex,
        ];
        assert!(carry.iter().all(|call| !CALLS.contains(call)));
    }
}
