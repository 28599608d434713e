//! Results made by hand for the tests of this crate: a little of everything that can be in a file.

use analysis::missed_settings::MissedSetting;
use analysis::summary;
use model::Placement;
use model::elsewhere::Elsewhere;
use model::floor::{self, floor_of};
use model::record::{
    ClockRecord, ClockSource, Dropped, Each, Fact, Host, Outcome, PlanRecord, Results, RunEnd, Sample,
    Settings, Tool, Usage,
};
use model::speed::{SpeedReading, SpeedReadings};
use model::topology::{Cpu, CpuPair, Topology};
use model::warning::Warning;
use model::{Case, Endpoints, Header, Histogram, Pace, Peers, Percent, Record, Size, Spec, Workload};
use std::collections::BTreeMap;

/// What is to be said of a pipe that is smaller than usual.
pub(crate) fn small_pipe() -> MissedSetting {
    let warning = Warning::Unusual {
        name: "pipe capacity".to_owned(),
        usual: "65536".to_owned(),
        got: "8192".to_owned(),
    };
    MissedSetting { mechanism: Spec::plain("pipe"), warning }
}

/// Ten trials, and whether they have a server and timed iterations.
struct Measurement {
    case: Case,
    iteration_ns: [f64; 10],
    floor_ns: Option<f64>,
    server: bool,
    each: bool,
}

/// Two sizes of latency on one CPU, throughput and transfer on two, operations, floors, and every mishap.
pub(crate) fn results() -> Results {
    let steady = |ns: f64| std::array::from_fn(|i| ns * (1.0 + 0.002 * i as f64));
    let wandering = |ns: f64| std::array::from_fn(|i| ns * (1.0 + 0.05 * ((i * 7) % 10) as f64));
    let modal =
        |ns: f64| std::array::from_fn(|i| ns * (1.0 + 0.001 * i as f64) * if i % 3 == 0 { 1.5 } else { 1.0 });

    let latency = |name: &str, size, iteration_ns, floor_ns| {
        let (server, each) = (true, true);
        record(Measurement {
            case: pair(Workload::Latency, name, size, SAME),
            iteration_ns,
            floor_ns,
            server,
            each,
        })
    };
    let stream = |workload, name: &str, iteration_ns| {
        let each = workload == Workload::Transfer;
        let case = pair(workload, name, 65_536, APART);
        record(Measurement { case, iteration_ns, floor_ns: Some(9_000.0), server: true, each })
    };
    let cost = |case: Case, iteration_ns| {
        record(Measurement { case, iteration_ns, floor_ns: None, server: false, each: false })
    };

    let mut clamped =
        latency("unix-stream:buffer=8M,wait=spin-then-block", 4096, steady(4_410.0), Some(1_900.0));
    clamped.warnings.push(Warning::Clamped {
        name: "SO_SNDBUF".to_owned(),
        asked: "8M".to_owned(),
        got: "416K".to_owned(),
    });
    let failed = Record {
        outcome: Outcome::Failed {
            error: "mq_open /ipcmark-4f2a-0: too many open files (EMFILE); the queue's bytes are charged to \
                    RLIMIT_MSGQUEUE: raise it with ulimit -q"
                .to_owned(),
        },
        samples: Vec::new(),
        summary: None,
        warnings: Vec::new(),
        ..latency("posix-mq", 4096, steady(1.0), None)
    };
    let token = Record {
        case: Case { size_bytes: None, ..pair(Workload::Latency, "eventfd", 1, SAME) },
        ..latency("eventfd", 1, steady(2_320.0), None)
    };
    let on_client = |name| floor::operation(name, 1);
    let sized = |name, size| Case { size_bytes: Some(Size(size)), ..on_client(name) };
    let apart = |workload, name: &str, size, ns| {
        let case = pair(workload, name, size, APART);
        record(Measurement { case, iteration_ns: steady(ns), floor_ns: None, server: true, each: true })
    };
    let wake = apart(Workload::Latency, floor::REMOTE_WAKE, 1, 20_000.0);
    let floors = [
        cost(
            Case { workload: Workload::Latency, size_bytes: Some(Size(1)), ..on_client(floor::NULL) },
            steady(0.42),
        ),
        cost(on_client(floor::SYSCALL), steady(61.0)),
        latency(floor::CONTEXT_SWITCH, 1, wandering(1_540.0), None),
        cost(sized(floor::MEMCPY, 4096), steady(82.0)),
        cost(sized(floor::MEMCPY, 1), steady(1.6)),
        apart(Workload::Throughput, floor::SHARED_COPY, 65_536, 9_000.0),
        apart(Workload::Transfer, floor::SHARED_COPY, 65_536, 9_100.0),
        apart(Workload::Latency, floor::CACHE_LINE, 1, 142.0),
        Record { case: Case { size_bytes: None, ..wake.case.clone() }, ..wake },
    ]
    .map(|record| Record { floor: true, ..record });

    let mut records = vec![
        latency("unix-stream", 1, wandering(3_900.0), Some(1_546.0)),
        latency("pipe", 1, modal(2_810.0), Some(1_546.0)),
        latency("shm-ring:wait=futex", 1, steady(2_120.0), Some(1_546.0)),
        token,
        clamped,
        latency("pipe", 4096, modal(3_300.0), Some(1_900.0)),
        latency("fifo", 4096, modal(3_420.0), Some(1_900.0)),
        failed,
        stream(Workload::Throughput, "pipe:capacity=1M", steady(31_000.0)),
        stream(Workload::Throughput, "shm-ring:wait=spin", wandering(11_200.0)),
        stream(Workload::Transfer, "pipe:capacity=1M", steady(38_000.0)),
        stream(Workload::Transfer, "shm-ring:wait=spin", steady(12_700.0)),
        cost(sized("write-devnull", 4096), steady(212.0)),
        cost(on_client("getpid"), steady(58.0)),
    ];
    records.extend(floors);
    let unfinished = pair(Workload::Latency, "tcp", 4096, SAME);
    let cases = records.iter().map(|record| record.case.clone()).chain([unfinished]).collect();
    Results {
        header: header(PlanRecord { cases, dropped: dropped() }),
        records,
        profiles: Vec::new(),
        end: Some(RunEnd {
            interrupted: false,
            rounds: 34,
            elapsed_ns: 118_000_000_000,
            stolen: Fact::Known(0.013),
            starting_ns: Some(4_720_000_000),
            clock_drift: 2e-7,
        }),
        notes: vec!["the last line was cut off; it is left out".to_owned()],
    }
}

const SAME: (Placement, CpuPair) = (Placement::SameCore, CpuPair { client: 1, server: 1 });
const APART: (Placement, CpuPair) = (Placement::SameLlc, CpuPair { client: 1, server: 0 });

/// A case of `spec`, such as `pipe:wait=spin`.
fn pair(workload: Workload, spec: &str, size: u64, (placement, cpus): (Placement, CpuPair)) -> Case {
    let (name, params) = spec.split_once(':').unwrap_or((spec, ""));
    let params: BTreeMap<&str, &str> = params.split(',').filter_map(|param| param.split_once('=')).collect();
    let params = serde_json::from_value(serde_json::json!(params)).unwrap();
    Case {
        workload,
        size_bytes: Some(Size(size)),
        placement,
        cpus: Some(cpus),
        endpoints: Endpoints::Processes,
        pace: Pace::BackToBack,
        inject: None,
        peers: Peers::Pair,
        spec: Spec { params, ..Spec::plain(name) },
    }
}

fn record(Measurement { case, iteration_ns, floor_ns, server, each }: Measurement) -> Record {
    const ITERATIONS: u64 = 1000;
    let spins = case.spec.params.spins();
    let wakes = floor_of(&case).is_some_and(|floor| floor.wake_text().is_some());
    let usage = |ns: f64| Usage {
        cpu_ns: (ns * ITERATIONS as f64 * if spins { 1.0 } else { 0.49 }) as u64,
        voluntary_switches: if spins { 0 } else { ITERATIONS },
        ..Usage::default()
    };
    let sample = |(round, ns): (u32, f64)| Sample {
        round,
        trial: round,
        floor_ns,
        // What a wake-up takes there and back, in the stead of a cache line.
        wake_floor_ns: floor_ns.filter(|_| wakes).map(|floor| floor + 20_000.0 - 142.0),
        each: each.then(|| timed(ns * 1.012)),
        ..Sample::new(ITERATIONS, ns * ITERATIONS as f64, usage(ns), server.then(|| usage(ns)))
    };
    let samples: Vec<Sample> = (0..).zip(iteration_ns).map(sample).collect();
    let summary = summary::summarise_alone(&case, &samples).unwrap();
    let precision = PRECISION.0;
    let settled = summary::settled(&summary, precision);
    Record {
        outcome: if settled { Outcome::Settled } else { Outcome::Unsettled },
        warnings: summary::warnings(&case, &summary, &[], precision),
        case,
        floor: false,
        samples,
        summary: Some(summary),
        settings: Vec::new(),
        elsewhere: Elsewhere::default(),
    }
}

const PRECISION: Percent = Percent(0.02);

/// Iterations with a tail, of which `ns` is the mean.
fn timed(ns: f64) -> Each {
    let mut iterations = Histogram::new();
    for i in 0..1000u32 {
        iterations.record((ns * if i % 50 == 0 { 1.6 } else { 0.98 }) as u64);
    }
    Each { mean_ns: ns, iterations: iterations.encode() }
}

fn dropped() -> Vec<Dropped> {
    let large = |size| Dropped {
        case: format!("posix-mq latency {size} same-core"),
        reason: "its largest message here is 8192 bytes; /proc/sys/fs/mqueue/msgsize_max".to_owned(),
    };
    let smt = Dropped {
        case: "pipe latency smt".to_owned(),
        reason: "smt: this process may use no core with two hardware threads (CPUs 0,1)".to_owned(),
    };
    ["16K", "64K", "256K", "1M"].map(large).into_iter().chain([smt]).collect()
}

fn header(plan: PlanRecord) -> Header {
    let known = |text: &str| Fact::Known(text.to_owned());
    let unknown = || "/sys is not mounted".to_owned();
    let cpu = |id| Cpu { id, package: 0, core: id, llc: Some(0), node: 0 };
    Header {
        format: model::record::FORMAT.to_owned(),
        version: model::record::VERSION,
        tool: Tool {
            name: "ipcmark".to_owned(),
            version: "0.1.0".to_owned(),
            profile: "release".to_owned(),
            target: "x86_64-unknown-linux-gnu".to_owned(),
            linked: "dynamic".to_owned(),
        },
        run: "4f2a".to_owned(),
        started_at: "2025-11-21T20:47:00Z".to_owned(),
        command: vec!["ipcmark".to_owned(), "run".to_owned()],
        host: Host {
            name: known("vm-1"),
            kernel: known("6.12.8 #1 SMP PREEMPT_DYNAMIC Fri Jan 10 12:00:00 UTC 2025"),
            arch: "x86_64".to_owned(),
            cpu: known("Intel(R) Xeon(R) Platinum 8481C"),
            topology: Topology { cpus: vec![cpu(0), cpu(1)], unknown: None },
            caches_bytes: Fact::Unknown(unknown()),
            cache_line_bytes: Fact::Unknown(unknown()),
            governor: Fact::Unknown(unknown()),
            smt: Fact::Known(false),
            mitigations: Fact::Unknown(unknown()),
            virtualisation: known("kvm"),
            clocksource: known("tsc"),
            transparent_huge_pages: known("madvise"),
            tick_ns: Fact::Known(4_000_000),
            load: Fact::Known(0.2),
            memory_bytes: Fact::Known(8 << 30),
            limits: BTreeMap::new(),
            pipe_bytes: Fact::Unknown(unknown()),
            control_group: Fact::Unknown(unknown()),
            queueing: Fact::Unknown(unknown()),
            security_modules: Fact::Unknown(unknown()),
            bpf_programs: Fact::Unknown(unknown()),
        },
        clock: ClockRecord {
            source: ClockSource::Tsc { ns_per_tick: 0.37 },
            reason: "invariant".to_owned(),
            precision_ns: 0.37,
            cost_ns: 21.0,
        },
        remote: None,
        settings: Settings {
            suite: Some("default".to_owned()),
            precision: PRECISION.into(),
            time_ns: 120_000_000_000,
            rounds: None,
            slice_ns: 20_000_000,
            check: false,
            total_bytes: None,
            observe_ns: 0,
        },
        plan,
        floors: Vec::new(),
        study: None,
    }
}

/// The same on a host that slows down in the second half of the run, by which times grow to `factor` of what they are.
pub(crate) fn on_a_shared_host(factor: f64) -> Results {
    let reading = |ns: f64| SpeedReading { before_ns: ns, after_ns: ns * 1.01 };
    let mut results = results();
    for record in &mut results.records {
        let count = record.samples.len();
        for (at, sample) in record.samples.iter_mut().enumerate() {
            let is_slow = at >= count / 2;
            let client = reading(if is_slow { 7_700.0 } else { 5_500.0 });
            sample.speed = Some(SpeedReadings { client, server: None, pair: None });
            sample.started_ns = 100_000_000 * at as u64;
            sample.elapsed_ns *= if is_slow { factor } else { 1.0 };
        }
    }
    summary::recompute(&mut results);
    results
}

/// The same a day later: `fifo` is half as slow again, `shm-ring` by futex a quarter faster, and `tcp` is new.
pub(crate) fn later_results() -> Results {
    let mut later = results();
    for record in &mut later.records {
        let factor = match record.case.spec.to_string().as_str() {
            "fifo" => 1.5,
            "shm-ring:wait=futex" => 0.75,
            _ => 1.01,
        };
        for sample in &mut record.samples {
            sample.elapsed_ns *= factor;
        }
        record.summary = summary::summarise_alone(&record.case, &record.samples);
    }
    later.records.retain(|record| record.case.spec.name != "write-devnull");
    let tcp = Record { case: pair(Workload::Latency, "tcp", 4096, SAME), ..later.records[0].clone() };
    later.records.push(tcp);
    later.header.host.kernel = Fact::Known("6.13.1 #1 SMP PREEMPT_DYNAMIC".to_owned());
    later
}
