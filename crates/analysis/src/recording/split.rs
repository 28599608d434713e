//! From processes with several threads to processes that do one thing at a time, which is what a scenario has: threads that use
//! the same side of an object stay one process, and any other thread becomes one of its own.

use super::unseen::Unseen;
use model::communication::{CommunicatingProcess, Communication, CommunicationCall};
use model::units::three_digits;
use std::collections::{BTreeMap, HashMap};

/// A thread with less than this share of what goes through a side of an object does it for the one that has most.
const SHARES_END: f64 = 0.05;
/// From so much CPU time over time on it is said what is left of a process.
const TOLD_CPU: f64 = 0.01;

/// What is added to the name of a process for one of its threads.
pub(super) const OF_THREAD: &str = "-thread";

/// A thread: its process, as an index, and its number.
type Thread = (u32, u32);
/// A side of an object, as a process has it.
type End = (u32, (u32, u8));

/// Gives each thread of `communication` that communicates by itself a process of its own. What is left of a process is said.
pub(super) fn split(communication: &mut Communication, unseen: &mut Unseen) {
    let is_signal = signals(communication);
    let users = users(communication, &is_signal);
    let places = places(communication, &leaders(&users), unseen);
    communication.calls.retain_mut(|call| {
        let user = end(call, &is_signal).and_then(|end| users.get(&end)).and_then(|tids| tids.first());
        let place = places.get(&(call.process, *user.unwrap_or(&call.tid)));
        call.process = *place.unwrap_or(&call.process);
        // Who waits and never gets anything waits for nothing that is recorded.
        call.object.is_some() || place.is_some()
    });
}

/// The threads that share each end, first the one that uses it most.
fn users(communication: &Communication, is_signal: &[bool]) -> HashMap<End, Vec<u32>> {
    let mut counts: HashMap<End, BTreeMap<u32, u64>> = HashMap::new();
    for call in communication.calls.iter().filter(|call| call.bytes.is_some()) {
        if let Some(end) = end(call, is_signal) {
            *counts.entry(end).or_default().entry(call.tid).or_default() += 1;
        }
    }
    let sharing = |counts: BTreeMap<u32, u64>| {
        let all: u64 = counts.values().sum();
        let mut users: Vec<(u32, u64)> = counts.into_iter().collect();
        users.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let most = users.first().map(|(_, count)| *count);
        users.retain(|(_, count)| Some(*count) == most || *count as f64 >= SHARES_END * all as f64);
        users.into_iter().map(|(tid, _)| tid).collect()
    };
    counts.into_iter().map(|(end, counts)| (end, sharing(counts))).collect()
}

/// Which objects are the signals of a process.
fn signals(communication: &Communication) -> Vec<bool> {
    communication.objects.iter().map(|object| object.mechanism.as_deref() == Some("signal")).collect()
}

/// What `call` uses; none of a wait. Any thread takes a signal to its process (signal(7)), whichever sends one: all of them are one user.
fn end(call: &CommunicationCall, is_signal: &[bool]) -> Option<End> {
    const ANY: (u32, u8) = (u32::MAX, 0);
    let object = call.object?;
    let is_signal = is_signal.get(object.0 as usize).is_some_and(|is_signal| *is_signal);
    Some((call.process, if is_signal { ANY } else { object }))
}

/// For each thread that uses an end, the one with the lowest number of those with which it shares some, directly or not.
fn leaders(users: &HashMap<End, Vec<u32>>) -> BTreeMap<Thread, u32> {
    let mut leaders: BTreeMap<Thread, u32> = users
        .iter()
        .flat_map(|((process, _), tids)| tids.iter().map(|tid| ((*process, *tid), *tid)))
        .collect();
    for ((process, _), tids) in users {
        let joined: Vec<u32> = tids.iter().map(|tid| leaders[&(*process, *tid)]).collect();
        let Some(first) = joined.iter().min() else { continue };
        for (_, leader) in leaders.range_mut((*process, 0)..=(*process, u32::MAX)) {
            if joined.contains(leader) {
                *leader = *first;
            }
        }
    }
    leaders
}

/// Makes a process of each group of threads that have one leader; the first keeps the place of its process. Returns the places of threads.
fn places(
    communication: &mut Communication,
    leaders: &BTreeMap<Thread, u32>,
    unseen: &mut Unseen,
) -> HashMap<Thread, u32> {
    let mut groups: BTreeMap<u32, BTreeMap<u32, Vec<u32>>> = BTreeMap::new();
    for ((process, tid), leader) in leaders {
        groups.entry(*process).or_default().entry(*leader).or_default().push(*tid);
    }
    let seconds = communication.seconds();
    let mut places = HashMap::new();
    for (process, groups) in groups {
        let whole = communication.processes[process as usize].clone();
        let mut rest = whole.clone();
        let is_one = groups.len() == 1;
        for (nth, tids) in groups.into_values().enumerate() {
            let threads =
                tids.iter().map(|tid| (*tid, rest.threads.remove(tid).unwrap_or_default())).collect();
            let name = if is_one { whole.name.clone() } else { whole.name.clone() + OF_THREAD };
            let mut part = CommunicatingProcess { name, threads, ..whole.clone() };
            if is_one && let Some(thread) = part.threads.values_mut().next() {
                // What the other threads compute is its affair too; where they may run is not.
                thread.cpu_ns += rest.cpu_ns();
                thread.switches += rest.switches();
            }
            let place = if nth == 0 { process } else { communication.processes.len() as u32 };
            places.extend(tids.iter().map(|tid| ((process, *tid), place)));
            match communication.processes.get_mut(place as usize) {
                Some(first) => *first = part,
                None => communication.processes.push(part),
            }
        }
        let cpu = rest.cpu_ns() as f64 / 1e9 / seconds;
        if !is_one && cpu >= TOLD_CPU {
            let (name, percent) = (&rest.name, three_digits(100.0 * cpu));
            let what = format!("threads of {name} that communicate with nobody, with {percent} % of a CPU");
            unseen.count(rest.threads.len() as u64, what);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::Script;

    /// The process of each call after the split, and what is said.
    fn after(script: &Script) -> (Communication, Vec<u32>, Vec<String>) {
        let (mut communication, mut unseen) = (script.communication.clone(), Unseen::default());
        split(&mut communication, &mut unseen);
        let processes = communication.calls.iter().map(|call| call.process).collect();
        (communication, processes, unseen.into_sentences())
    }

    #[test]
    fn threads_with_connections_of_their_own_are_processes() {
        let mut script = Script::default();
        script.thread(1, 70, 1_000_000).thread(1, 71, 2_000_000).thread(1, 72, 500_000);
        script.by(70).receive(1, (0, 1), 5, 10).wait(1, 50).send(1, (0, 1), 5);
        script.by(71).wait(1, 50).receive(1, (2, 0), 5, 10).by(72).wait(1, 10);
        let (communication, processes, unseen) = after(&script);
        assert_eq!(processes, [1, 1, 1, 4, 4], "the wait of a thread that gets nothing is no part of it");
        let names = [1, 4].map(|at| communication.processes[at].name.as_str());
        assert_eq!(names, ["proxy-thread", "proxy-thread"]);
        let cpu = [1, 4].map(|at| communication.processes[at].cpu_ns());
        assert_eq!(cpu, [1_000_000, 2_000_000]);
        let [said] = &unseen[..] else { panic!("{unseen:?}") };
        assert!(said.starts_with("1 × threads of proxy that communicate with nobody, with "), "{said}");
    }

    #[test]
    fn threads_that_share_an_end_are_one_process() {
        let mut script = Script::default();
        script.thread(1, 70, 1_000).thread(1, 71, 2_000).thread(1, 72, 3_000);
        for _ in 0..10 {
            // One receives for both connections, and either answers.
            script.by(70).receive(1, (0, 1), 5, 10).receive(1, (1, 1), 5, 10);
            script.by(71).send(1, (0, 1), 5).by(72).send(1, (1, 1), 5);
        }
        let (communication, processes, unseen) = after(&script);
        assert!(processes.iter().all(|process| *process == 1) && unseen.is_empty(), "{unseen:?}");
        assert_eq!((communication.processes.len(), communication.processes[1].cpu_ns()), (4, 6_000));
    }

    #[test]
    fn who_sends_signals_and_who_takes_them_are_one_process() {
        let mut script = Script::default();
        for object in [0, 1] {
            script.communication.objects[object].mechanism = Some("signal".to_owned());
        }
        script.thread(1, 70, 1_000).thread(1, 71, 2_000);
        script.by(70).send(1, (0, 0), 1).by(71).receive(1, (1, 1), 1, 10);
        let (_, processes, _) = after(&script);
        assert_eq!(processes, [1, 1]);
    }

    #[test]
    fn who_seldom_uses_an_end_does_it_for_who_has_it() {
        let mut script = Script::default();
        script.thread(1, 70, 1_000).thread(1, 71, 2_000);
        script.by(70).receive(1, (0, 1), 5, 10);
        for _ in 0..50 {
            script.by(71).receive(1, (0, 1), 5, 10).by(70).receive(1, (2, 0), 5, 10);
        }
        let (_, processes, _) = after(&script);
        assert_eq!(processes[..3], [4, 4, 1], "{processes:?}");
    }

    #[test]
    fn a_process_with_one_thread_that_communicates_is_as_it_was() {
        let mut script = Script::default();
        script.thread(1, 70, 1_000).thread(1, 71, 2_000);
        script.communication.processes[1].threads.get_mut(&71).unwrap().cpus = vec![3];
        script.by(71).receive(1, (0, 1), 5, 10);
        let (communication, processes, _) = after(&script);
        let one = &communication.processes[1];
        assert_eq!((processes, one.cpu_ns(), one.cpus()), (vec![1], 3_000, vec![3]));
    }
}
