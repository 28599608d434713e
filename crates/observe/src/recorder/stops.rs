//! Events of processes by stopping them at each of their calls (ptrace), for users who may not use tracepoints. Two stops make a
//! call many times slower, and when threads sleep is not known.

use super::calls::meaning;
use super::clock::{now_ns, since};
use super::holders::process_name;
use super::privileged::loses_rights;
use super::raw::{RawEvent, RawKind};
use super::thread::ThreadId;
use rustix::thread::sched_yield;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::Duration;
use sys::tracees::{GoOn, ThreadStop, go_on, interrupt, next_stop, seize};
use sys::{Errno, Failure, OrFail};

/// How often it is asked at once whether a thread has stopped, before a sleep of [`NAP`].
const TRIES: u32 = 30;
const NAP: Duration = Duration::from_micros(100);
/// How long a thread that was made waits for its maker to say so. A maker that is killed never does.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// How long threads may take to stop before they are given up.
const LONGEST_STOP: Duration = Duration::from_secs(2);

/// Processes that are followed.
pub(super) struct Followed {
    threads: HashMap<u32, FollowedThread>,
    /// Threads that stopped for the first time before their maker did, which wakes them first: when that was, and why they stopped. They
    /// stay stopped until it is known whose descriptors they have.
    early: HashMap<u32, (u64, ThreadStop)>,
    /// The files of programs that did not get the rights that these give, and how often.
    deprived: BTreeMap<PathBuf, u64>,
}

/// A thread that is followed.
#[derive(Debug, Clone, Copy)]
struct FollowedThread {
    pid: u32,
    /// The call that it is in.
    number: Option<u32>,
}

impl Followed {
    /// Begins to follow `threads`. None is followed if one may not be.
    pub(super) fn seize(threads: &[ThreadId]) -> Result<Self, Failure> {
        let mut followed = Self { threads: HashMap::new(), early: HashMap::new(), deprived: BTreeMap::new() };
        for ThreadId { pid, tid } in threads.iter().copied() {
            let seized = seize(tid).and_then(|()| {
                followed.threads.insert(tid, FollowedThread { pid, number: None });
                interrupt(tid).or_fail("ptrace", format!("thread {tid}"))
            });
            if let Err(failure) = seized {
                followed.let_go();
                return Err(failure);
            }
        }
        Ok(followed)
    }

    /// Whether any is still there.
    pub(super) fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.early.is_empty()
    }

    /// Takes all events that there are, and those of the next `time`. A thread goes on when its event was taken.
    pub(super) fn run(&mut self, time: Duration, mut take: impl FnMut(RawEvent)) -> Result<(), Failure> {
        let start_ns = now_ns();
        let mut tries = 0;
        while since(start_ns) < time && !self.is_empty() {
            match next_stop() {
                Ok(Some((tid, stop))) => {
                    tries = 0;
                    self.stopped(tid, stop, &mut take);
                }
                Ok(None) if tries < TRIES => {
                    tries += 1;
                    sched_yield();
                }
                Ok(None) => {
                    self.adopt(&mut take);
                    std::thread::sleep(NAP);
                }
                Err(Errno::CHILD) => {
                    self.threads.clear();
                    self.early.clear();
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno).or_fail("waitpid", "the followed processes"),
            }
        }
        Ok(())
    }

    fn stopped(&mut self, tid: u32, stop: ThreadStop, take: &mut impl FnMut(RawEvent)) {
        let at_ns = now_ns();
        let Some(thread) = self.threads.get_mut(&tid) else {
            match stop {
                ThreadStop::Ended => self.early.remove(&tid),
                _ => self.early.insert(tid, (at_ns, stop)),
            };
            return;
        };
        let pid = thread.pid;
        let mut event = |what| take(RawEvent { at_ns, pid, tid, cpu: None, totals: None, what });
        let mut how = (GoOn::Followed, None);
        match stop {
            ThreadStop::Entry { number, arguments } => {
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                thread.number = Some(number);
                if meaning(number).is_some() {
                    event(RawKind::Enter { number, arguments });
                }
            }
            ThreadStop::Exit { value } => {
                if let Some(number) = thread.number.take().filter(|number| meaning(*number).is_some()) {
                    event(RawKind::Exit { number, value });
                }
            }
            ThreadStop::Made { tid: made } => {
                let pid = process_of(made);
                event(RawKind::Fork { pid, tid: made });
                self.threads.insert(made, FollowedThread { pid, number: None });
                if let Some((_, stop)) = self.early.remove(&made) {
                    self.stopped(made, stop, take);
                }
            }
            ThreadStop::Exec => {
                event(RawKind::Exec { name: process_name(pid) });
                self.note_rights(pid);
            }
            ThreadStop::Signal(signal) => how.1 = Some(signal),
            ThreadStop::Stopped => how.0 = GoOn::Listening,
            ThreadStop::Other => {}
            ThreadStop::Ended => {
                event(RawKind::End);
                self.threads.remove(&tid);
                return;
            }
        }
        // One that was killed meanwhile says so next.
        let _ = go_on(tid, how.0, how.1);
    }

    /// The process `pid`, which is stopped, has become another program.
    fn note_rights(&mut self, pid: u32) {
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        if let Some(program) = program.filter(|program| loses_rights(program)) {
            *self.deprived.entry(program).or_default() += 1;
        }
    }

    /// What was changed of what was followed, a sentence each, and how often.
    pub(super) fn changed(&self) -> impl Iterator<Item = (String, u64)> {
        let sentence = |(program, count): (&PathBuf, &u64)| {
            let program = program.display();
            let what = format!(
                "runs of {program} were without the rights that its file gives (setuid, setgid or capabilities): ptrace takes \
                 them"
            );
            (what, *count)
        };
        self.deprived.iter().map(sentence)
    }

    /// Follows threads whose maker has not said that it made them.
    fn adopt(&mut self, take: &mut impl FnMut(RawEvent)) {
        let late = |(_, (at_ns, _)): &(&u32, &(u64, ThreadStop))| since(*at_ns) >= LONGEST_WAIT;
        let late: Vec<(u32, ThreadStop)> =
            self.early.iter().filter(late).map(|(tid, (_, stop))| (*tid, *stop)).collect();
        for (tid, stop) in late {
            self.early.remove(&tid);
            self.threads.insert(tid, FollowedThread { pid: process_of(tid), number: None });
            self.stopped(tid, stop, take);
        }
    }

    /// Lets all go on unfollowed.
    pub(super) fn let_go(mut self) {
        for (tid, (_, stop)) in self.early.drain() {
            let signal = if let ThreadStop::Signal(signal) = stop { Some(signal) } else { None };
            let _ = go_on(tid, GoOn::Free, signal);
        }
        for tid in self.threads.keys() {
            let _ = interrupt(*tid);
        }
        let start_ns = now_ns();
        while !self.threads.is_empty() && since(start_ns) < LONGEST_STOP {
            let Ok(stop) = next_stop() else { break };
            match stop {
                None => std::thread::sleep(NAP),
                Some((tid, ThreadStop::Ended)) => {
                    self.threads.remove(&tid);
                }
                Some((tid, ThreadStop::Made { tid: made })) => {
                    self.threads.entry(made).or_insert(FollowedThread { pid: made, number: None });
                    let _ = go_on(tid, GoOn::Free, None);
                    self.threads.remove(&tid);
                }
                Some((tid, stop)) => {
                    let signal = if let ThreadStop::Signal(signal) = stop { Some(signal) } else { None };
                    let _ = go_on(tid, GoOn::Free, signal);
                    self.threads.remove(&tid);
                }
            }
        }
    }
}

/// The process of the thread `tid`, which is stopped, or was just made.
fn process_of(tid: u32) -> u32 {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(tid)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads that no machine has: what is asked of them fails, as of those that were killed.
    const MAKER: u32 = u32::MAX - 1;
    const MADE: u32 = u32::MAX - 2;

    fn followed() -> Followed {
        let maker = FollowedThread { pid: MAKER, number: None };
        Followed {
            threads: HashMap::from([(MAKER, maker)]),
            early: HashMap::new(),
            deprived: BTreeMap::new(),
        }
    }

    #[test]
    fn a_process_that_stops_before_its_maker_does_waits_for_it() {
        let mut followed = followed();
        let mut events = Vec::new();
        let mut take =
            |event: RawEvent| events.push((event.tid, matches!(event.what, RawKind::Fork { tid: MADE, .. })));
        followed.stopped(MADE, ThreadStop::Other, &mut take);
        followed.stopped(MAKER, ThreadStop::Made { tid: MADE }, &mut take);
        followed.stopped(MADE, ThreadStop::Exec, &mut take);
        followed.stopped(MADE, ThreadStop::Ended, &mut take);
        followed.stopped(MAKER, ThreadStop::Ended, &mut take);
        assert!(followed.is_empty());
        assert_eq!(events, [(MAKER, true), (MADE, false), (MADE, false), (MAKER, false)]);
    }

    #[test]
    fn a_process_whose_maker_says_nothing_is_followed_all_the_same() {
        let mut followed = followed();
        followed.stopped(MADE, ThreadStop::Other, &mut |_| {});
        followed.adopt(&mut |_| {});
        assert!(!followed.threads.contains_key(&MADE), "not at once");
        std::thread::sleep(LONGEST_WAIT);
        followed.adopt(&mut |_| {});
        assert!(followed.threads.contains_key(&MADE) && followed.early.is_empty());
    }

    #[test]
    fn a_process_that_ends_before_its_maker_stops_is_no_more_waited_for() {
        let mut followed = followed();
        followed.stopped(MADE, ThreadStop::Other, &mut |_| {});
        followed.stopped(MADE, ThreadStop::Ended, &mut |_| panic!("it was not followed"));
        followed.stopped(MAKER, ThreadStop::Ended, &mut |_| {});
        assert!(followed.is_empty());
    }
}
