//! Answers the calls of one process and of all that it starts, one after the other. What each call means is in a file of its own.

use crate::answering::{Answering, Asked, Reply, WaitingAccept, WaitingConnect};
use crate::caller::Caller;
use crate::sockets::Sockets;
use crate::{accept, connect, listen, names, options, pairs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;
use std::sync::Arc;
use sys::Errno;
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

/// The supervisor of one process, with all that it starts.
pub(crate) struct Supervisor {
    at: Answering,
    /// The process that starts the program: its own calls are left alone.
    starter: Pid,
    accepts: Vec<WaitingAccept>,
    connects: Vec<WaitingConnect>,
}

impl Supervisor {
    pub(crate) fn new(listener: Listener, sockets: Arc<Sockets>, starter: Pid) -> Self {
        let at = Answering { listener, sockets };
        Self { at, starter, accepts: Vec::new(), connects: Vec::new() }
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
        let mut files = vec![PollFd::new(&self.at.listener, PollFlags::IN)];
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
            match self.at.listener.receive() {
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
            if self.at.listener.is_waiting(waiting.call.id) {
                let (id, reply) = (waiting.call.id, accept::retry(&self.at, waiting));
                self.reply(id, reply);
            }
        }
        for waiting in std::mem::take(&mut self.connects) {
            if self.at.listener.is_waiting(waiting.call.id) {
                let (id, reply) = (waiting.call.id, connect::retry(&self.at, waiting));
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
            Reply::Kernel => self.at.listener.go_on(id),
            Reply::Value(value) => self.at.listener.answer(id, Ok(value)),
            Reply::Error(errno) => self.at.listener.answer(id, Err(errno)),
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
        self.at.sockets.table().observed.calls += 1;
        let Some(number) = call.number else {
            self.at.cannot_keep("a program of another architecture keeps its sockets");
            return Reply::Kernel;
        };
        let caller = match Caller::open(call.thread) {
            Ok(caller) => caller,
            Err(_) => return Reply::Kernel,
        };
        // It may have died, and its id be another's: from here on the descriptor is of who is waiting.
        if !self.at.listener.is_waiting(call.id) {
            return Reply::Answered;
        }
        self.decide_for(&Asked { call, caller: &caller }, number)
    }

    fn decide_for(&self, asked: &Asked<'_>, number: i64) -> Reply {
        match number {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_pipe => return pairs::pipe(&self.at, asked, 0),
            libc::SYS_pipe2 => return pairs::pipe(&self.at, asked, asked.call.arguments[1]),
            libc::SYS_socketpair => return pairs::socketpair(&self.at, asked),
            libc::SYS_io_uring_setup => {
                self.at.cannot_keep("what is connected or accepted through io_uring stays as it is");
                return Reply::Kernel;
            }
            libc::SYS_seccomp => {
                if asked.call.arguments[1] & libc::SECCOMP_FILTER_FLAG_NEW_LISTENER != 0 {
                    self.at.cannot_keep("a filter with a listener of its own (seccomp_unotify) is refused");
                }
                return Reply::Kernel;
            }
            _ => {}
        }
        let socket = match asked.caller.socket(asked.call.arguments[0]) {
            Ok(socket) => socket,
            Err(Errno::PERM) => {
                self.at.cannot_keep("a process that may not be looked at keeps its sockets");
                return Reply::Kernel;
            }
            // The kernel says what is wrong with it.
            Err(_) => return Reply::Kernel,
        };
        let arguments = &asked.call.arguments;
        let asked_of_table = match number {
            libc::SYS_bind => return listen::bind(&self.at, asked, &socket),
            libc::SYS_listen => return listen::listen(&self.at, asked, &socket),
            libc::SYS_connect => return connect::connect(&self.at, asked, socket),
            libc::SYS_accept => return accept::accept(&self.at, asked, socket, 0),
            libc::SYS_accept4 => return accept::accept(&self.at, asked, socket, arguments[3]),
            libc::SYS_getsockname => names::own(&self.at, asked, &socket),
            libc::SYS_getpeername => names::peer(&self.at, asked, &socket),
            libc::SYS_setsockopt => options::set(&self.at, asked, &socket),
            libc::SYS_getsockopt => options::get(&self.at, asked, &socket),
            libc::SYS_shutdown => names::shutdown(&self.at, asked, &socket),
            _ => None,
        };
        asked_of_table.unwrap_or(Reply::Kernel)
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
