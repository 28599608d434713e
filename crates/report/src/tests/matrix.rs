//! Results in short.

use super::{PLAIN, columns, matrix};
use crate::{Style, fixture};
use model::record::{Dropped, Outcome, Record, Results};
use model::topology::CpuPair;
use model::warning::Warning;
use model::{Case, Placement, Size, Spec, Workload};

const SAME_CORE: (Placement, CpuPair) = (Placement::SameCore, CpuPair { client: 1, server: 1 });
const TWO_CORES: (Placement, CpuPair) = (Placement::SameLlc, CpuPair { client: 1, server: 0 });

/// Results as large as those of the default suite. With `odd`, some cases have two signs.
fn as_large_as_the_default_suite(odd: bool) -> Results {
    const MECHANISMS: [&str; 9] = [
        "pipe",
        "fifo",
        "unix-stream",
        "unix-seqpacket",
        "unix-dgram",
        "tcp",
        "udp",
        "shm-ring",
        "shm-ring:wait=spin",
    ];
    let mut results = fixture::results();
    let template = |workload| {
        let of =
            |record: &&Record| !record.floor && record.case.workload == workload && record.summary.is_some();
        results.records.iter().find(of).unwrap().clone()
    };
    let [latency, throughput, cost] = [Workload::Latency, Workload::Throughput, Workload::Cost].map(template);
    let mut records: Vec<Record> = results.records.iter().filter(|record| record.floor).cloned().collect();
    let mut add = |template: &Record, name: &str, size, (placement, cpus): (Placement, CpuPair)| {
        let (name, value) = name.split_once(":wait=").unwrap_or((name, ""));
        let mut record = template.clone();
        let params =
            if value.is_empty() { serde_json::json!({}) } else { serde_json::json!({ "wait": value }) };
        let spec = Spec { name: name.to_owned(), params: serde_json::from_value(params).unwrap() };
        record.case = Case { spec, size_bytes: size, placement, cpus: Some(cpus), ..record.case };
        let factor = 1.0 + 0.37 * (records.len() % 11) as f64 + size.map_or(0.0, |size| size.0 as f64 / 9e3);
        if let Some(summary) = &mut record.summary {
            summary.iteration_ns = summary.iteration_ns.map(|ns| ns * factor);
            summary.bytes_per_s = summary.bytes_per_s.map(|rate| rate.map(|rate| rate / factor));
        }
        record.samples.clear();
        record.warnings.clear();
        if records.len().is_multiple_of(3) {
            record.warnings.push(Warning::Unsettled { reached: Some(0.2), asked: 0.05 });
            record.outcome = Outcome::Unsettled;
        }
        if odd && records.len().is_multiple_of(9) {
            record.warnings.push(Warning::TwoModes {
                fast_ns: 1.0,
                slow_ns: 2.0,
                fast_share: 0.5,
                slow_speed: None,
            });
        }
        records.push(record);
    };
    for place in [SAME_CORE, TWO_CORES] {
        for name in MECHANISMS.into_iter().filter(|name| place == TWO_CORES || !name.ends_with("spin")) {
            let sizes = |all: &[u64]| {
                all.iter().copied().filter(|size| name != "udp" || *size < 65_536).collect::<Vec<_>>()
            };
            sizes(&[1, 4096, 65_536])
                .into_iter()
                .for_each(|size| add(&latency, name, Some(Size(size)), place));
            sizes(&[4096, 65_536])
                .into_iter()
                .for_each(|size| add(&throughput, name, Some(Size(size)), place));
        }
        [1, 4096, 65_536].into_iter().for_each(|size| add(&latency, "null", Some(Size(size)), place));
    }
    let operations = ["syscall", "tsc", "tsc:wait=bare", "clock_gettime", "clock_gettime:wait=monotonic-raw"];
    let clocks = ["monotonic-coarse", "realtime", "boottime", "process-cpu", "thread-cpu"];
    let clocks = clocks.map(|clock| format!("clock_gettime:wait={clock}"));
    operations
        .into_iter()
        .chain(clocks.iter().map(String::as_str))
        .for_each(|name| add(&cost, name, None, SAME_CORE));
    let dropped = |case: &str, reason: &str| Dropped { case: case.to_owned(), reason: reason.to_owned() };
    let datagram = "its largest message here is 65507 bytes; 65507 bytes a datagram (IPv4), and SO_SNDBUF less the \
                    kernel's overhead";
    let spin = "two endpoints that spin on one CPU only move at the scheduler's tick";
    results.header.plan.cases.clear();
    results.header.plan.dropped =
        ["udp latency 64K same-core", "udp latency 64K same-llc", "udp throughput 64K same-core"]
            .map(|case| dropped(case, datagram))
            .into_iter()
            .chain([dropped("shm-ring:wait=spin latency same-core", spin)])
            .collect();
    results.records = records;
    results
}

#[test]
fn a_default_run_fits_70_lines_of_80_columns_and_narrower_terminals() {
    for odd in [false, true] {
        let results = as_large_as_the_default_suite(odd);
        assert!(results.records.iter().filter(|record| !record.floor).count() >= 95);
        let text = matrix(&results, &PLAIN);
        assert!(text.lines().count() <= 70, "{} lines:\n{text}", text.lines().count());
        for width in [60, 70, 80, 120] {
            let text = matrix(&results, &Style { width, ..PLAIN });
            assert!(text.lines().all(|line| columns(line) <= width), "{width}:\n{text}");
        }
    }
}

#[test]
fn places_stand_side_by_side_where_they_fit() {
    insta::assert_snapshot!(matrix(&as_large_as_the_default_suite(false), &PLAIN), @"
    ipcmark 0.1.0, suite default, run 4f2a, 2025-11-21T20:47:00Z
      host        vm-1, Intel(R) Xeon(R) Platinum 8481C, 2 CPUs, kvm guest
      kernel      6.12.8 #1 SMP PREEMPT_DYNAMIC Fri Jan 10 12:00:00 UTC 2025
      run         34 rounds in 118 s, 4.0% of it starting trials; 28 of 97 cases
                  settled to ±2%; 1.3% of CPU time stolen
      instrument  clock tsc, precision 0.370 ns, read 21.0 ns; reading it in every
                  iteration adds 1.2% (median over cases)
      note        the last line was cut off; it is left out

    at a glance: the fastest, smallest and largest messages (+n: n others as good)
      latency, same-core     1 byte tcp 6.53 µs; 64K pipe 39.4 µs
      latency, same-llc      1 byte fifo 4.76 µs; 64K tcp 39.4 µs
      throughput, same-core  4K unix-stream 1.44 GB/s; 64K unix-dgram 253 MB/s
      throughput, same-llc   4K and 64K tcp 1.15 GB/s and 232 MB/s

    latency: round trip   same-core (cpu 1)             same-llc (cpus 1,0)
                           1 byte        4K       64K    1 byte        4K       64K
      tcp                 6.53 µs   10.5 µs   44.7 µs!  20.6 µs!  24.6 µs   39.4 µs
      unix-seqpacket      8.29 µs!  12.2 µs   46.5 µs   22.4 µs   6.93 µs!  41.2 µs
      fifo                10.1 µs   14.0 µs!  48.3 µs   4.76 µs   8.69 µs   43.0 µs!
      udp                 15.3 µs!  19.3 µs         -   10.1 µs   14.0 µs!        -
      unix-dgram          17.1 µs   21.0 µs!  55.3 µs   11.8 µs   15.7 µs   50.0 µs!
      unix-stream         18.9 µs   22.8 µs   57.1 µs!  13.6 µs!  17.5 µs   51.8 µs
      pipe                20.6 µs!  24.6 µs   39.4 µs   15.3 µs   19.3 µs!  53.5 µs
      shm-ring            20.6 µs!  24.6 µs   39.4 µs   15.3 µs   19.3 µs!  53.5 µs
      shm-ring:wait=spin        -         -         -   4.76 µs   8.69 µs   43.0 µs!

    throughput: rate      same-core (cpu 1)       same-llc (cpus 1,0)
                                 4K         64K          4K         64K
      unix-stream         1.44 GB/s    242 MB/s    475 MB/s!   180 MB/s
      pipe                1.15 GB/s!   232 MB/s    438 MB/s    175 MB/s!
      shm-ring            1.15 GB/s!   232 MB/s    438 MB/s    175 MB/s!
      tcp                  714 MB/s    207 MB/s   1.15 GB/s!   232 MB/s
      unix-seqpacket       634 MB/s!   200 MB/s    954 MB/s    223 MB/s!
      fifo                 570 MB/s    193 MB/s!   817 MB/s    215 MB/s
      udp                  475 MB/s           -    634 MB/s           -
      unix-dgram           406 MB/s    253 MB/s!   518 MB/s    186 MB/s
      shm-ring:wait=spin          -           -    817 MB/s    215 MB/s

    cost, same-core (cpu 1): time
      clock_gettime 214 ns!   clock_gettime:wait=monotonic-raw 293 ns
      clock_gettime:wait=monotonic-coarse 372 ns
      clock_gettime:wait=realtime 451 ns!   clock_gettime:wait=boottime 530 ns
      clock_gettime:wait=process-cpu 610 ns   clock_gettime:wait=thread-cpu 689 ns!
      syscall 847 ns!   tsc 926 ns   tsc:wait=bare 1.01 µs

    floors: the least that this machine takes
      null 0.424 ns   syscall 61.5 ns   context-switch 1.88 µs!   cache-line 143 ns
      remote-wake 20.2 µs   shared-copy 64K (throughput) 9.08 µs
      shared-copy 64K (transfer) 9.18 µs   memcpy 1 1.61 ns   memcpy 4K 82.7 ns

    not measured
      udp, 3 cases: its largest message here is 65507 bytes; 65507 bytes a datagram
        (IPv4), and SO_SNDBUF less the kernel's overhead
      shm-ring:wait=spin, 1 case: two endpoints that spin on one CPU only move at
        the scheduler's tick
      pipe, fifo, unix-stream, unix-seqpacket…, 69 cases: no time; give more --time

      !  unsettled: the 95% interval is wider than was asked for
      --detail shows every case with intervals, percentiles and CPU time
    ");
}

#[test]
fn a_narrow_terminal_has_one_place_at_a_time_and_as_many_sizes_as_fit() {
    let mut results = fixture::results();
    let pipe = results.records.iter().find(|record| record.case.spec.name == "pipe").unwrap().clone();
    let of_size = |bits: u32| Record {
        case: Case { size_bytes: Some(Size(1u64 << bits)), ..pipe.case.clone() },
        ..pipe.clone()
    };
    results.records = (0..21u32).map(of_size).collect();
    results.header.plan.dropped.clear();
    results.header.plan.cases.clear();
    let text = matrix(&results, &Style { width: 60, ..PLAIN });
    insta::assert_snapshot!(text.split_once("latency, same-core (").unwrap().1, @"
    cpu 1): round trip
               1 byte     64 bytes           8K           1M
      pipe    3.31 µs!m    3.31 µs!m    3.31 µs!m    3.31 µs!m
      4 of 21 sizes; --detail shows all

      !  unsettled: the 95% interval is wider than was asked for
      m  two modes: the slices fall into a fast and a slow group
      --detail shows every case with intervals, percentiles and
        CPU time
    ");
}

#[test]
fn the_fixture_in_80_columns() {
    insta::assert_snapshot!(matrix(&fixture::results(), &PLAIN), @"
    ipcmark 0.1.0, suite default, run 4f2a, 2025-11-21T20:47:00Z
      host        vm-1, Intel(R) Xeon(R) Platinum 8481C, 2 CPUs, kvm guest
      kernel      6.12.8 #1 SMP PREEMPT_DYNAMIC Fri Jan 10 12:00:00 UTC 2025
      run         34 rounds in 118 s, 4.0% of it starting trials; 8 of 14 cases
                  settled to ±2%, 1 failed; 1.3% of CPU time stolen
      instrument  clock tsc, precision 0.370 ns, read 21.0 ns; reading it in every
                  iteration adds 1.2% (median over cases)
      note        the last line was cut off; it is left out

    at a glance: the fastest, smallest and largest messages (+n: n others as good)
      latency, same-core    1 byte shm-ring:wait=futex 2.14 µs; 4K pipe 3.89 µs (+1)
      throughput, same-llc  64K shm-ring:wait=spin 4.79 GB/s
      transfer, same-llc    64K shm-ring:wait=spin 5.11 GB/s

    latency, same-core (cpu 1): round trip  no payload        1 byte            4K
      shm-ring:wait=futex                            -       2.14 µs             -
      pipe                                           -       3.31 µs!m     3.89 µs!m
      unix-stream                                    -       4.76 µs!            -
      fifo                                           -             -       4.03 µs!m
      unix-stream:buffer=8M,                         -             -       4.45 µs c
        wait=spin-then-block
      eventfd                                  2.34 µs             -             -
      posix-mq                                       -             -        failed

    throughput, same-llc (cpus 1,0): rate         64K
      shm-ring:wait=spin                    4.79 GB/s!
      pipe:capacity=1M                      2.10 GB/s

    transfer, same-llc (cpus 1,0): rate           64K
      shm-ring:wait=spin                    5.11 GB/s
      pipe:capacity=1M                      1.71 GB/s

    cost, same-core (cpu 1): time
      getpid 58.5 ns   write-devnull 4K 214 ns

    floors: the least that this machine takes
      null 0.424 ns   syscall 61.5 ns   context-switch 1.88 µs!   cache-line 143 ns
      remote-wake 20.2 µs   shared-copy 64K (throughput) 9.08 µs
      shared-copy 64K (transfer) 9.18 µs   memcpy 1 1.61 ns   memcpy 4K 82.7 ns

    not measured
      posix-mq, 4 cases: its largest message here is 8192 bytes;
        /proc/sys/fs/mqueue/msgsize_max
      pipe, 1 case: smt: this process may use no core with two hardware threads
        (CPUs 0,1)
      tcp, 1 case: not finished when the run ended
      posix-mq, 1 case: failed: mq_open /ipcmark-4f2a-0: too many open files
        (EMFILE); the queue's bytes are charged to RLIMIT_MSGQUEUE: raise it with
        ulimit -q

      !  unsettled: the 95% interval is wider than was asked for
      m  two modes: the slices fall into a fast and a slow group
      c  clamped: the kernel granted another value than was asked for:
         unix-stream:buffer=8M,wait=spin-then-block SO_SNDBUF asked for 8M, got 416K
      --detail shows every case with intervals, percentiles and CPU time
    ");
}
