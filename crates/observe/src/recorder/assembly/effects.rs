//! What calls that have ended did: they moved bytes, woke somebody, or made, connected, closed and copied descriptors.

use super::{Assembly, EndedCall, NEVER_FOUND, Through};
use crate::recorder::calls::CallMeaning;
use crate::recorder::descriptors::Referent;
use crate::recorder::objects::CLOEXEC;
use model::communication::{CommunicationCall, CommunicationKind};
use syscalls::Sysno;

/// Flags of fcntl(2), recv(2), close_range(2) and futex(2).
const F_DUPFD: u64 = 0;
const F_SETFD: u64 = 2;
const F_DUPFD_CLOEXEC: u64 = 1030;
const F_SETPIPE_SZ: u64 = 1031;
const MSG_PEEK: u64 = 2;
const CLOSE_RANGE_CLOEXEC: u64 = 4;
const FUTEX_PRIVATE: u64 = 128;
/// `EINPROGRESS`: a connection that will be made.
const IN_PROGRESS: i64 = -115;

impl EndedCall {
    /// What it returned, unless it failed.
    fn count(&self) -> Option<u64> {
        u64::try_from(self.value).ok()
    }

    /// The descriptor that it returned.
    fn new_descriptor(&self) -> Option<u32> {
        u32::try_from(self.value).ok()
    }

    /// An argument that is a number of 4 bytes, as a descriptor is.
    fn argument(&self, at: usize) -> u32 {
        self.entered.arguments[at] as u32
    }

    /// Whether the argument with its flags, if it has one, says that exec(2) closes what it makes.
    fn closes_on_exec(&self, flags: Option<usize>) -> bool {
        flags.is_some_and(|at| self.entered.arguments[at] & CLOEXEC != 0)
    }

    fn is(&self, call: Sysno) -> bool {
        self.entered.number == call.id() as u32
    }

    /// What it asked to receive, where it is said, and whether it only looked.
    fn asked(&self) -> (Option<u64>, bool) {
        let arguments = self.entered.arguments;
        match () {
            () if self.is(Sysno::read) => (Some(arguments[2]), false),
            () if self.is(Sysno::recvfrom) => (Some(arguments[2]), arguments[3] & MSG_PEEK != 0),
            () if self.is(Sysno::recvmsg) => (None, arguments[2] & MSG_PEEK != 0),
            () => (None, false),
        }
    }
}

impl Assembly {
    /// Does what a call means that has ended.
    pub(super) fn apply(&mut self, ended: &EndedCall) {
        use CallMeaning as M;
        match ended.meaning {
            M::Send
            | M::Receive
            | M::SendAll
            | M::SendMany
            | M::ReceiveMany
            | M::Move { .. }
            | M::Wait
            | M::QueueSend
            | M::QueueReceive => self.moved_bytes(ended),
            M::Semaphores | M::Futex | M::Signal | M::SignalWait | M::SignalReturn | M::Uring => {
                self.woke(ended);
            }
            M::Open { .. }
            | M::OpenProcess
            | M::Socket
            | M::Eventfd
            | M::Pipe { .. }
            | M::Socketpair
            | M::Accept { .. }
            | M::Connect
            | M::SetOption => self.made(ended),
            M::Close | M::CloseRange | M::Duplicate | M::DuplicateTo | M::Control => self.renumbered(ended),
        }
    }

    /// A call that moves bytes, or waits for some.
    fn moved_bytes(&mut self, ended: &EndedCall) {
        use CallMeaning as M;
        let EndedCall { pid, ref entered, ref call, .. } = *ended;
        let (count, third) = (ended.count(), entered.arguments[2]);
        match ended.meaning {
            M::Send => self.through(pid, (entered, 0), CommunicationKind::Send, count, call),
            M::Receive => {
                let (asked, only_looks) = ended.asked();
                let call = CommunicationCall { asked, ..*call };
                let count = count.filter(|_| !only_looks);
                self.through(pid, (entered, 0), CommunicationKind::Receive, count, &call);
            }
            M::SendAll => {
                self.through(pid, (entered, 0), CommunicationKind::Send, count.map(|_| third), call);
            }
            M::SendMany | M::ReceiveMany => {
                self.count("messages that sendmmsg and recvmmsg passed are in no flow", count);
            }
            M::Move { from, to } => {
                self.through(pid, (entered, from), CommunicationKind::Receive, count, call);
                let call = CommunicationCall { asleep_ns: 0, ..*call };
                self.through(pid, (entered, to), CommunicationKind::Send, count, &call);
            }
            M::QueueSend => self.queued(ended, (CommunicationKind::Send, 0), count.map(|_| third)),
            M::QueueReceive => self.queued(ended, (CommunicationKind::Receive, 1), count),
            _ => self.keep(*call),
        }
    }

    /// A call on a System V queue.
    fn queued(&mut self, ended: &EndedCall, (kind, side): (CommunicationKind, u8), bytes: Option<u64>) {
        if let Some(object) = self.objects.system_queue(ended.argument(0)) {
            self.keep(CommunicationCall { kind, object: Some((object, side)), bytes, ..ended.call });
        }
    }

    /// A call that wakes somebody, or waits to be woken.
    fn woke(&mut self, ended: &EndedCall) {
        use CallMeaning as M;
        let EndedCall { pid, ref entered, value, ref call, .. } = *ended;
        match ended.meaning {
            M::Semaphores => {
                let once = ended.count().map(|_| 1);
                self.count("operations on System V semaphores are in no flow", once);
            }
            M::Futex if entered.arguments[1] & FUTEX_PRIVATE == 0 => self.futex(pid, entered, value, call),
            M::Signal if value == 0 => self.signal(pid, entered, call),
            M::SignalWait if value > 0 => self.signalled(pid, call),
            M::SignalReturn => self.signalled(pid, call),
            M::Uring => {
                self.count("calls of io_uring_enter: what passes through io_uring is not visible", Some(1));
            }
            _ => {}
        }
    }

    /// A call that makes descriptors, connects one, or sets an option of one.
    fn made(&mut self, ended: &EndedCall) {
        use CallMeaning as M;
        let EndedCall { pid, ref entered, value, .. } = *ended;
        let new = ended.new_descriptor();
        match ended.meaning {
            M::Open { flags } => self.open(pid, new, Referent::Opened, ended.closes_on_exec(flags)),
            M::OpenProcess => self.open(pid, new, Referent::Process(ended.argument(0)), true),
            M::Socket => self.open(pid, new, Referent::Unknown, ended.closes_on_exec(Some(1))),
            M::Eventfd => self.eventfd(pid, new, ended.closes_on_exec(Some(1))),
            M::Pipe { flags } if value == 0 => self.made_pipe(pid, ended.closes_on_exec(flags)),
            M::Socketpair if value == 0 => {
                self.made_pair(pid, entered.arguments[1], ended.closes_on_exec(Some(1)));
            }
            M::Accept { flags } => {
                let referent = self.made_connection(pid, entered, new, ended.closes_on_exec(flags));
                self.objects.is_server(referent);
            }
            M::Connect if value == 0 || value == IN_PROGRESS => {
                if let Referent::Side(object, side) = self.find_anew(pid, entered) {
                    self.objects.is_server(Referent::Side(object, 1 - side));
                }
            }
            M::SetOption if value == 0 => {
                self.find_anew(pid, entered);
            }
            _ => {}
        }
    }

    /// A call that closes descriptors, or copies them to other numbers.
    fn renumbered(&mut self, ended: &EndedCall) {
        use CallMeaning as M;
        let EndedCall { pid, value, .. } = *ended;
        let [first, second] = [0, 1].map(|at| ended.argument(at));
        let (new, third) = (ended.new_descriptor(), ended.entered.arguments[2]);
        match ended.meaning {
            M::Close => {
                let through = Through::Descriptor { pid, fd: first };
                let lost = self.pending.remove(&through).map_or(0, |calls| calls.len() as u64);
                self.count(NEVER_FOUND, Some(lost));
                self.table(pid).close(first, first);
            }
            M::CloseRange if value == 0 => match third & CLOSE_RANGE_CLOEXEC != 0 {
                true => self.table(pid).close_later(first, second, true),
                false => self.table(pid).close(first, second),
            },
            M::Duplicate => self.copy(pid, first, new, false),
            M::DuplicateTo => {
                self.copy(pid, first, new, third & CLOEXEC != 0 && ended.is(Sysno::dup3));
            }
            M::Control => self.controlled(ended),
            _ => {}
        }
    }

    /// fcntl(2).
    fn controlled(&mut self, ended: &EndedCall) {
        let EndedCall { pid, value, .. } = *ended;
        let (first, new) = (ended.argument(0), ended.new_descriptor());
        match u64::from(ended.argument(1)) {
            F_DUPFD => self.copy(pid, first, new, false),
            F_DUPFD_CLOEXEC => self.copy(pid, first, new, true),
            F_SETPIPE_SZ => {
                let referent = self.referent(pid, &ended.entered, 0);
                let bytes = ended.count().into_iter();
                bytes.for_each(|bytes| self.objects.set_capacity(referent, bytes as usize));
            }
            F_SETFD if value == 0 => {
                self.table(pid).close_later(first, first, ended.argument(2) & 1 != 0);
            }
            _ => {}
        }
    }
}
