//! What a record has as CPU time between two calls of a thread that does nothing between them: recording takes it, and the kernel's way
//! out of one call and into the next. In the record of a program it looks like work.
//!
//! It is measured on a thread of the recorder's own, before the program is recorded. What recording costs the program in all is measured while
//! that runs.

use super::cpus::{allowed_cpus, online_cpus};
use super::process_events::ProcessEvents;
use super::raw::{RawCall, RawEvent, RawKind};
use super::thread::ThreadId;
use model::communication::BetweenCalls;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use sys::{Failure, OrFail};

/// How often the thread sleeps for it.
const SLEEPS: usize = 1000;
const SOCKETS: &str = "a socket pair of the recorder's own";

/// Measures it by the events that `open` gives for the threads that it is told.
pub(super) fn between_calls(
    open: impl FnOnce(&[ThreadId]) -> Result<Box<dyn ProcessEvents>, Failure> + Send,
) -> Result<BetweenCalls, Failure> {
    let pair = || {
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .or_fail("socketpair", SOCKETS)
    };
    let [(own, other), (note, noted)] = [pair()?, pair()?];
    let cpus = allowed_cpus(std::process::id(), &online_cpus()).unwrap_or_default();
    // Where there is only one, both are held to it.
    let (cpu, other_cpu) = (cpus.first().copied(), cpus.get(1).or(cpus.first()).copied());
    // Threads of their own, which may be held to CPUs: a thread that sleeps while its CPU is idle goes on with cold caches.
    std::thread::scope(|scope| {
        scope.spawn(move || {
            hold_to(other_cpu);
            while matches!(read(&other, &mut [0; 1]), Ok(1)) && write(&other, b"x").is_ok() {}
        });
        let measured = scope.spawn(move || {
            hold_to(cpu);
            let thread = ThreadId::own();
            let mut events = open(&[thread])?;
            events.switch(true)?;
            (0..SLEEPS).try_for_each(|_| ask(&own, [&note, &noted]))?;
            events.switch(false)?;
            let mut taken = Vec::new();
            events.fetch(true, &mut |event| taken.extend((event.tid == thread.tid).then_some(event)));
            Ok(medians_between(&taken))
        });
        measured.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Where a thread cannot be held, what is measured holds for where it ran.
fn hold_to(cpu: Option<u32>) {
    let _ = cpu.map(sys::process::pin_to);
}

/// A message whose answer is waited for asleep, and two calls that do not sleep.
fn ask(own: impl AsFd, [note, noted]: [&OwnedFd; 2]) -> Result<(), Failure> {
    write(&own, b"x").or_fail("write", SOCKETS)?;
    read(&own, &mut [0; 1]).or_fail("read", SOCKETS)?;
    write(note, b"x").or_fail("write", SOCKETS)?;
    read(noted, &mut [0; 1]).or_fail("read", SOCKETS).map(drop)
}

/// The medians of what lies between the calls in `events` of one thread; 0 of what was not seen. Where it gave its CPU to another between
/// two calls, as on the only CPU, the switch is no part of it.
fn medians_between(events: &[RawEvent]) -> BetweenCalls {
    let [mut after_sleep, mut awake] = [Vec::new(), Vec::new()];
    let mut last: Option<(u64, bool)> = None;
    let (mut has_slept, mut is_switched, mut switches) = (false, false, 0);
    for RawEvent { at_ns, totals, what, .. } in events {
        let (begun_ns, ended) = match what {
            RawKind::Call(RawCall { entered, cpu_ns, asleep_ns, .. }) => {
                let slept = *asleep_ns > entered.asleep_ns;
                let in_all = totals.map_or(0, |totals| totals.switches);
                is_switched = in_all > switches + u64::from(slept);
                switches = in_all;
                (Some(entered.cpu_ns), Some((*cpu_ns, slept)))
            }
            RawKind::Enter { .. } => {
                has_slept = false;
                (Some(*at_ns), None)
            }
            RawKind::Off { preempted } => {
                has_slept |= !preempted;
                is_switched = true;
                continue;
            }
            RawKind::Exit { .. } => {
                is_switched = false;
                (None, Some((*at_ns, has_slept)))
            }
            _ => continue,
        };
        if let (Some(begun_ns), Some((ended_ns, slept)), false) = (begun_ns, last, is_switched) {
            let same = if slept { &mut after_sleep } else { &mut awake };
            same.push(begun_ns.saturating_sub(ended_ns));
        }
        last = ended;
    }
    BetweenCalls { after_sleep_ns: median(after_sleep), awake_ns: median(awake) }
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::thread::{Entered, ThreadTotals};
    use super::*;

    fn event(at_ns: u64, what: RawKind) -> RawEvent {
        RawEvent { at_ns, pid: 1, tid: 1, cpu: None, totals: None, what }
    }

    #[test]
    fn what_lies_between_calls_is_told_apart_by_whether_the_first_slept() {
        let call = |begun_ns, ended_ns, asleep_ns: u64, switches| {
            let entered = Entered { cpu_ns: begun_ns, asleep_ns: 7, ..Entered::default() };
            let asleep_ns = 7 + asleep_ns;
            let what = RawKind::Call(RawCall { entered, value: 1, cpu_ns: ended_ns, asleep_ns });
            RawEvent { totals: Some(ThreadTotals { cpu_ns: ended_ns, switches }), ..event(0, what) }
        };
        let counted = event(0, RawKind::Counted);
        let calls = [call(10, 15, 0, 0), counted, call(18, 20, 500, 1), call(29, 31, 0, 1)];
        assert_eq!(medians_between(&calls), BetweenCalls { after_sleep_ns: 9, awake_ns: 3 });
        // The last call was no sleep: the switch was before it.
        let calls = [call(10, 15, 0, 0), call(18, 20, 500, 1), call(99, 103, 0, 2)];
        assert_eq!(medians_between(&calls), BetweenCalls { after_sleep_ns: 0, awake_ns: 3 });
        let enter = |at_ns| event(at_ns, RawKind::Enter { number: 0, arguments: [0; 4] });
        let exit = |at_ns| event(at_ns, RawKind::Exit { number: 0, value: 1 });
        let off = |at_ns, preempted| event(at_ns, RawKind::Off { preempted });
        let on = |at_ns| event(at_ns, RawKind::On);
        let slept = [exit(3), enter(5), off(6, false), on(80), exit(90), enter(98)];
        assert_eq!(medians_between(&slept), BetweenCalls { after_sleep_ns: 8, awake_ns: 2 });
        let preempted = [enter(5), off(6, true), on(80), exit(90), enter(98)];
        assert_eq!(medians_between(&preempted), BetweenCalls { after_sleep_ns: 0, awake_ns: 8 });
        let between = [enter(5), exit(9), off(10, true), on(80), enter(98)];
        assert_eq!(medians_between(&between), BetweenCalls::default());
        assert_eq!(medians_between(&[]), BetweenCalls::default());
    }
}
