//! Tests of the recorder of CPUs: workloads of which it is known what happens, counted exactly.
//!
//! Where the kernel does not allow it, a test checks that the reason and what grants it are said instead.

use crate::cpu_trace::{CpuRecorder, EndpointThreads};
use crate::perf::now_ns;
use model::observation::{CpuEventKind, CpuTrace, EventSet, RecordingWay};
use rustix::pipe::pipe;
use rustix::thread::gettid;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use sys::usage::{ThreadUsage, of_this_thread};
use syscalls::Sysno;

const ITERATIONS: usize = 23;
const WAYS: [RecordingWay; 2] = [RecordingWay::Programs, RecordingWay::PerfRecords];

/// What a thread did between two moments, by its own account.
struct Done {
    from_ns: u64,
    ends_ns: Vec<u64>,
    /// When the kernel's account was as it is beside, before the iterations and after them.
    before: (u64, ThreadUsage),
    after: (u64, ThreadUsage),
}

/// The kernel's account of this thread, and a moment at which it was that.
fn accounted() -> (u64, ThreadUsage) {
    let switches = |usage: ThreadUsage| (usage.voluntary_switches, usage.involuntary_switches);
    loop {
        let (before, at_ns, after) = (of_this_thread(), now_ns(), of_this_thread());
        if switches(before) == switches(after) {
            return (at_ns, after);
        }
    }
}

/// A thread on `cpu` that does `iteration` so many times when it is told to, and then stays until it is told that it may end.
struct Worker {
    tid: u32,
    go: Sender<()>,
    done: Receiver<Done>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn start(cpu: u32, iterations: usize, mut iteration: impl FnMut() + Send + 'static) -> Self {
        let (say, heard) = channel();
        let ((go, gone), (report, done)) = (channel(), channel());
        let thread = std::thread::spawn(move || {
            sys::process::pin_to(cpu).unwrap();
            say.send(gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
            gone.recv().unwrap();
            let mut ends_ns = Vec::with_capacity(iterations);
            let before = accounted();
            let from_ns = now_ns();
            for _ in 0..iterations {
                iteration();
                ends_ns.push(now_ns());
            }
            report.send(Done { from_ns, ends_ns, before, after: accounted() }).unwrap();
            let _ = gone.recv();
        });
        Self { tid: heard.recv().unwrap(), go, done, thread }
    }

    fn end(self) {
        drop(self.go);
        self.thread.join().unwrap();
    }
}

/// The CPUs that this process may use.
fn cpus() -> Vec<u32> {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    (0..1024).filter(|cpu| allowed.is_set(*cpu)).map(|cpu| cpu as u32).collect()
}

/// One of them.
fn cpu() -> u32 {
    cpus()[0]
}

/// A reader and a writer of a byte.
fn byte() -> (File, File) {
    let (reader, writer) = pipe().unwrap();
    (File::from(reader), File::from(writer))
}

/// What was recorded of `sets` while two threads on one CPU passed a byte to and fro, and what the first of them did, which wrote to
/// the first descriptor and read from the second.
fn ping_pong(sets: &[EventSet], way: RecordingWay) -> (CpuTrace, Done, [u64; 2]) {
    let (cpu, (mut there, mut to), (mut back, mut fro)) = (cpu(), byte(), byte());
    let descriptors = [to.as_raw_fd(), back.as_raw_fd()].map(|fd| u64::from(fd.cast_unsigned()));
    let client = Worker::start(cpu, ITERATIONS, move || {
        to.write_all(&[7]).unwrap();
        back.read_exact(&mut [0]).unwrap();
    });
    let server = Worker::start(cpu, ITERATIONS, move || {
        there.read_exact(&mut [0]).unwrap();
        fro.write_all(&[7]).unwrap();
    });
    let threads = EndpointThreads { client: vec![client.tid], server: vec![server.tid] };
    let mut recorder = CpuRecorder::open(&[cpu], threads, sets, way).unwrap();
    recorder.begin().unwrap();
    server.go.send(()).unwrap();
    client.go.send(()).unwrap();
    let done = client.done.recv().unwrap();
    server.done.recv().unwrap();
    recorder.end().unwrap();
    let trace = recorder.trace(done.from_ns, done.ends_ns.clone()).unwrap();
    client.end();
    server.end();
    (trace, done, descriptors)
}

/// Whether all sets could be opened; if not, each says why not and what grants it.
fn is_whole(trace: &CpuTrace) -> bool {
    for reason in &trace.unavailable {
        assert!(reason.contains("sudo") || reason.contains("; ") || reason.contains(" ("), "{reason}");
    }
    if let Some(reason) = &trace.no_programs {
        eprintln!("not tested here by programs in the kernel: {reason}");
    }
    if !trace.unavailable.is_empty() {
        eprintln!("not tested here: {}", trace.unavailable.join("; "));
    }
    trace.unavailable.is_empty()
}

fn count(trace: &CpuTrace, is_meant: impl Fn(u32, CpuEventKind) -> bool) -> usize {
    trace.timed().filter(|event| is_meant(event.tid, event.what)).count()
}

#[test]
fn twenty_three_iterations_of_a_pipe_are_twenty_three_reads_and_writes_of_each_end() {
    WAYS.into_iter().for_each(|way| {
        let (trace, _, [writes_to, reads_from]) = ping_pong(&[EventSet::Calls], way);
        if !is_whole(&trace) {
            return;
        }
        let (client, server) = (trace.client_tids[0], trace.server_tids[0]);
        let entered = |of: u32, call: Sysno| {
            count(&trace, |tid, what| {
                tid == of && matches!(what, CpuEventKind::Enter { number, .. } if number == call as u32)
            })
        };
        let returned = |of: u32, call: Sysno| {
            count(&trace, |tid, what| {
                tid == of && what == CpuEventKind::Exit { number: call as u32, value: 1 }
            })
        };
        for call in [Sysno::read, Sysno::write] {
            assert_eq!((entered(client, call), returned(client, call)), (ITERATIONS, ITERATIONS), "{call}");
            assert_eq!(returned(server, call), ITERATIONS, "{call}");
        }
        assert_eq!(entered(server, Sysno::write), ITERATIONS);
        // The server may begin to wait for the first message before the client begins to send it.
        assert!((ITERATIONS - 1..=ITERATIONS + 1).contains(&entered(server, Sysno::read)));
        assert_eq!(count(&trace, |tid, _| tid == client), 4 * ITERATIONS, "nothing else of the client");
        // Whatever the clock is by which they were stamped: each lies in its iteration.
        let mut begins_ns = trace.from_ns;
        for ends_ns in &trace.iteration_ends_ns {
            let events = trace
                .events
                .iter()
                .filter(|event| event.tid == client && (begins_ns..=*ends_ns).contains(&event.at_ns));
            let calls: Vec<_> = events.map(|event| event.what).collect();
            let enter_and_exit = |call: Sysno, first| {
                let number = call as u32;
                [CpuEventKind::Enter { number, first }, CpuEventKind::Exit { number, value: 1 }]
            };
            assert_eq!(
                calls,
                [enter_and_exit(Sysno::write, writes_to), enter_and_exit(Sysno::read, reads_from)].concat()
            );
            begins_ns = *ends_ns;
        }
        assert_eq!(count(&trace, |tid, _| tid != client && tid != server), 0, "nothing of others");
        assert_eq!((trace.lost, trace.sets.as_slice()), (0, &[EventSet::Calls][..]));
    });
}

#[test]
fn switches_and_wake_ups_are_as_many_as_the_kernel_accounts_to_the_thread() {
    WAYS.into_iter().for_each(|way| {
    let (trace, done, _) = ping_pong(&[EventSet::Switches, EventSet::WakeUps], way);
    if !is_whole(&trace) {
        return;
    }
    let client = trace.client_tids[0];
    let ((from_ns, before), (until_ns, after)) = (done.before, done.after);
    let count = |is_meant: &dyn Fn(CpuEventKind) -> bool| {
        let between = trace.events.iter().filter(|event| (from_ns..until_ns).contains(&event.at_ns));
        between.filter(|event| is_meant(event.what)).count() as u64
    };
    let left = |is_preempted| {
        count(&|what| matches!(what, CpuEventKind::Switch { from, preempted, .. } if from == client && preempted == is_preempted))
    };
    let woken = count(&|what| matches!(what, CpuEventKind::Waking { woken, .. } if woken == client));
    let (voluntary, involuntary) = (
        after.voluntary_switches - before.voluntary_switches,
        after.involuntary_switches - before.involuntary_switches,
    );
    assert_eq!((left(false), left(true)), (voluntary, involuntary), "{way:?}");
    // It was awake at the beginning and at the end. Who is preempted on its way to sleep is woken without having slept.
    assert!((voluntary..=voluntary + involuntary).contains(&woken), "{woken} of {voluntary}, {involuntary}");
    assert!(voluntary + involuntary >= ITERATIONS as u64);
    let by_interrupt =
        count(&|what| matches!(what, CpuEventKind::Waking { by_interrupt: true, woken } if woken == client));
    assert!(by_interrupt <= 1, "the server wakes it");
    // Nothing is missing between two switches of a CPU: one leaves what the other came to. What endpoints do counts; the kernel was seen to
    // keep quiet about when a thread of process 1 left.
    let switches = trace.events.iter().filter_map(|event| match event.what {
        CpuEventKind::Switch { from, to, .. } => Some((from, to)),
        _ => None,
    });
    let switches: Vec<_> = switches.collect();
    let is_endpoint = |tid: Option<u32>| tid.is_some_and(|tid| [client, trace.server_tids[0]].contains(&tid));
    let is_whole = |pair: &[(u32, Option<u32>)]| !is_endpoint(pair[0].1) || pair[0].1 == Some(pair[1].0);
    assert!(switches.windows(2).all(is_whole), "{switches:?}");
    assert!(!trace.task_names.contains_key(&client), "{:?}", trace.task_names);
    assert!(trace.events.is_sorted_by_key(|event| event.at_ns));
    });
}

#[test]
fn idle_time_and_interrupts_have_a_beginning_and_an_end() {
    WAYS.into_iter().for_each(|way| {
        // The kernel may have the timer on any CPU.
        let cpus = cpus();
        let sleeper = Worker::start(cpus[0], 3, || std::thread::sleep(std::time::Duration::from_millis(2)));
        let threads = EndpointThreads { client: vec![sleeper.tid], server: Vec::new() };
        let sets = [EventSet::Interrupts, EventSet::Idle, EventSet::WakeUps];
        let mut recorder = CpuRecorder::open(&cpus, threads, &sets, way).unwrap();
        recorder.begin().unwrap();
        sleeper.go.send(()).unwrap();
        let done = sleeper.done.recv().unwrap();
        recorder.end().unwrap();
        let trace = recorder.trace(done.from_ns, done.ends_ns).unwrap();
        sleeper.end();
        if !is_whole(&trace) {
            return;
        }
        let count_of = |what: CpuEventKind| trace.events.iter().filter(|event| event.what == what).count();
        for (begins, ends) in [
            (CpuEventKind::InterruptIn, CpuEventKind::InterruptOut),
            (CpuEventKind::IdleIn, CpuEventKind::IdleOut),
        ] {
            assert!(
                count_of(begins).abs_diff(count_of(ends)) <= cpus.len(),
                "{begins:?} {} {}",
                count_of(begins),
                count_of(ends)
            );
        }
        // It was told to go, and a timer ended its sleeps: whoever is woken by that is woken by an interrupt.
        let woken: Vec<bool> = trace
            .events
            .iter()
            .filter_map(|event| match event.what {
                CpuEventKind::Waking { woken, by_interrupt } if woken == trace.client_tids[0] => {
                    Some(by_interrupt)
                }
                _ => None,
            })
            .collect();
        // Perf records of an idle CPU are few.
        if way == RecordingWay::Programs && trace.no_programs.is_none() {
            let by_others = woken.iter().filter(|by_interrupt| !**by_interrupt).count();
            assert!(by_others <= 1 && woken.len() > by_others, "{woken:?}");
        }
        assert!(count_of(CpuEventKind::InterruptIn) >= 3);
    });
}

#[test]
fn page_faults_are_as_many_as_the_kernel_accounts_to_the_thread() {
    WAYS.into_iter().for_each(|way| {
        // More than malloc(3) ever keeps: the pages are new each time.
        const BYTES: usize = 33 << 20;
        let toucher = Worker::start(cpu(), 3, || {
            let mut memory = Vec::<u8>::with_capacity(BYTES);
            memory.resize(BYTES, 1);
            std::hint::black_box(&memory);
        });
        let threads = EndpointThreads { client: vec![toucher.tid], server: Vec::new() };
        let mut recorder = CpuRecorder::open(&[cpu()], threads, &[EventSet::Faults], way).unwrap();
        recorder.begin().unwrap();
        toucher.go.send(()).unwrap();
        let Done { from_ns, ends_ns, before: (_, before), after: (_, after) } = toucher.done.recv().unwrap();
        recorder.end().unwrap();
        let trace = recorder.trace(from_ns, ends_ns).unwrap();
        if is_whole(&trace) {
            let accounted =
                after.minor_faults + after.major_faults - before.minor_faults - before.major_faults;
            let seen = count(&trace, |tid, what| {
                tid == toucher.tid && matches!(what, CpuEventKind::PageFault { address } if address != 0)
            });
            assert!(accounted > 0);
            assert_eq!((seen as u64, trace.counts()[&EventSet::Faults]), (accounted, accounted));
        }
        toucher.end();
    });
}

#[test]
fn what_finds_no_room_is_counted_as_lost() {
    WAYS.into_iter().for_each(|way| {
        const CALLS: usize = 60_000;
        let caller = Worker::start(cpu(), CALLS, || {
            let _ = rustix::process::getppid();
        });
        let threads = EndpointThreads { client: vec![caller.tid], server: Vec::new() };
        let mut recorder = CpuRecorder::open(&[cpu()], threads, &[EventSet::Calls], way).unwrap();
        recorder.begin().unwrap();
        caller.go.send(()).unwrap();
        let done = caller.done.recv().unwrap();
        recorder.end().unwrap();
        let trace = recorder.trace(done.from_ns, done.ends_ns).unwrap();
        caller.end();
        if !is_whole(&trace) {
            return;
        }
        let recorded = trace.events.len() as u64;
        let happened = 2 * CALLS as u64;
        assert!(trace.lost > 0 && recorded > 10_000, "{} {recorded}", trace.lost);
        // Beside the calls of the iterations there are a few: to be told to begin, to read the accounting, and to report.
        assert!((happened..happened + 40).contains(&(recorded + trace.lost)), "{} {recorded}", trace.lost);
    });
}

#[test]
fn events_that_are_not_switched_on_are_not_recorded() {
    WAYS.into_iter().for_each(|way| {
        let recorder = CpuRecorder::open(&[cpu()], EndpointThreads::default(), EventSet::ALL, way).unwrap();
        assert_eq!(recorder.trace(0, vec![u64::MAX]).unwrap().events, []);
    });
}

/// Who owns nothing, on every Linux. The thread alone becomes that, and ends.
fn as_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let nobody = rustix::process::Uid::from_raw(65_534);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            work()
        });
        thread.join().unwrap()
    })
}

#[test]
fn an_ordinary_user_sees_the_switches_of_their_own_threads_and_is_told_what_grants_the_rest() {
    let (trace, done, _) = as_nobody(|| ping_pong(EventSet::ALL, RecordingWay::default()));
    let missing = |set: EventSet| trace.unavailable.iter().find(|reason| reason.starts_with(set.name()));
    for set in EventSet::ALL.iter().filter(|set| !trace.sets.contains(set)) {
        let reason = missing(*set).unwrap();
        assert!(reason.contains("sudo"), "it has no next step: {reason}");
    }
    assert!(trace.sets.contains(&EventSet::Switches), "{:?}", trace.unavailable);
    if missing(EventSet::Switches).is_none() {
        return;
    }
    let client = trace.client_tids[0];
    let ((from_ns, before), (until_ns, after)) = (done.before, done.after);
    let between = || {
        let of_client = trace.events.iter().filter(|event| event.tid == client);
        of_client.filter(|event| (from_ns..until_ns).contains(&event.at_ns)).map(|event| event.what)
    };
    let left = between().filter(|what| matches!(what, CpuEventKind::Switch { to: None, .. })).count();
    let came = between().filter(|what| *what == CpuEventKind::On).count();
    let accounted = after.voluntary_switches + after.involuntary_switches
        - before.voluntary_switches
        - before.involuntary_switches;
    assert_eq!((left as u64, came as u64), (accounted, accounted));
}
