//! Calls that wake somebody and move no bytes: futexes in shared memory, and signals. What has a descriptor is in `assembly`.

use super::Assembly;
use crate::recorder::descriptors::Referent;
use crate::recorder::holders::process_name;
use crate::recorder::thread::Entered;
use model::communication::{CommunicationCall, CommunicationKind};
use syscalls::Sysno;

/// The bits of a futex's operation, of which these wake and those wait.
const OPERATION: u64 = 0x7f;
const WAKES: [u64; 2] = [1, 10];
const WAITS: [u64; 2] = [0, 9];

/// What a wake-up through a word is taken to pass on: a signal has no bytes, but a word has some.
const TOKEN_BYTES: u64 = 1;

impl Assembly {
    /// A call of futex(2) on a word that other processes can have too.
    pub(super) fn futex(&mut self, pid: u32, entered: &Entered, value: i64, call: &CommunicationCall) {
        let operation = entered.arguments[1] & OPERATION;
        let (kind, threads) = match value {
            woken @ 1.. if WAKES.contains(&operation) => (CommunicationKind::Send, woken),
            0 if WAITS.contains(&operation) => (CommunicationKind::Receive, 1),
            _ => return,
        };
        let Some(object) = self.word(pid, entered) else { return };
        self.wake_up(object, kind, TOKEN_BYTES, call);
        // The call took its time once, however many it woke.
        let again = CommunicationCall { asleep_ns: 0, cpu_from_ns: call.cpu_until_ns, ..*call };
        (1..threads).for_each(|_| self.wake_up(object, kind, TOKEN_BYTES, &again));
        if kind == CommunicationKind::Send {
            let what = "wake-ups through futexes in shared memory are in flows as messages of 1 byte; what \
                        processes pass each other in the memory is not visible";
            self.count(what, u64::try_from(threads).ok());
        }
    }

    /// The process `pid` begins to send a signal. Who gets it can have dealt with it before the call ends.
    pub(super) fn begins_to_signal(&mut self, pid: u32, entered: &Entered) {
        if let Some(to) = self.target(pid, entered).filter(|to| self.recorded.contains(to)) {
            self.signalled.insert(to);
        }
    }

    /// The process `pid` has sent a signal, by a call that began as `entered`.
    pub(super) fn signal(&mut self, pid: u32, entered: &Entered, call: &CommunicationCall) {
        let Some(to) = self.target(pid, entered) else { return };
        if self.recorded.contains(&to) {
            if let Some(object) = self.objects.signals(to) {
                self.wake_up(object, CommunicationKind::Send, 0, call);
            }
            return;
        }
        let from = self.by_pid.get(&pid).map(|index| self.processes[*index as usize].name.clone());
        let from = from.unwrap_or_else(|| process_name(pid));
        self.count(&format!("signals from {from} to {} are in no flow", process_name(to)), Some(1));
    }

    /// The process `pid` has taken a signal. It is the one of another process if there is one: the kernel sends signals too.
    pub(super) fn signalled(&mut self, pid: u32, call: &CommunicationCall) {
        if !self.signalled.remove(&pid) {
            return;
        }
        if let Some(object) = self.objects.signals(pid) {
            self.wake_up(object, CommunicationKind::Receive, 0, call);
        }
    }

    /// A message of `bytes` through `object`, which has no descriptor.
    fn wake_up(&mut self, object: u32, kind: CommunicationKind, bytes: u64, call: &CommunicationCall) {
        let side = u8::from(kind == CommunicationKind::Receive);
        self.keep(CommunicationCall { kind, object: Some((object, side)), bytes: Some(bytes), ..*call });
    }

    /// To which other process the call `entered` of `pid` sends a signal. Signal 0 only asks whether there is one.
    fn target(&mut self, pid: u32, entered: &Entered) -> Option<u32> {
        let is = |call: Sysno| call.id() as u32 == entered.number;
        let to = if is(Sysno::pidfd_send_signal) {
            match self.referent(pid, entered, 0) {
                Referent::Process(process) => process,
                _ => return None,
            }
        } else {
            u32::try_from(entered.arguments[0] as i32).ok()?
        };
        let is_to_thread = is(Sysno::tgkill) || is(Sysno::rt_tgsigqueueinfo);
        let signal = entered.arguments[1 + usize::from(is_to_thread)];
        (to != 0 && to != pid && signal != 0).then_some(to)
    }
}
