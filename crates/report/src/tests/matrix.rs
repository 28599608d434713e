//! Results in short.

use super::{PLAIN, columns, matrix};
use crate::{Style, fixture};
use model::record::{Dropped, Outcome, Record, Results};
use model::topology::CpuPair;
use model::warning::Warning;
use model::{Case, CaseDrivers, Placement, Size, Spec, Workload};

const SAME_CORE: (Placement, CpuPair) = (Placement::SameCore, CpuPair { client: 1, server: 1 });
const TWO_CORES: (Placement, CpuPair) = (Placement::SameLlc, CpuPair { client: 1, server: 0 });

/// Results as large as those of the default suite. With `odd`, some cases have two signs.
fn as_large_as_the_default_suite(odd: bool) -> Results {
    const MECHANISMS: [&str; 8] = [
        "pipe",
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
    let [latency, throughput] = [Workload::Latency, Workload::Throughput].map(template);
    let mut records: Vec<Record> = results.records.iter().filter(|record| record.floor).cloned().collect();
    let mut add = |template: &Record, name: &str, size, (placement, cpus): (Placement, CpuPair)| {
        let (name, value) = name.split_once(":wait=").unwrap_or((name, ""));
        let mut record = template.clone();
        let params =
            if value.is_empty() { serde_json::json!({}) } else { serde_json::json!({ "wait": value }) };
        let spec = Spec { params: serde_json::from_value(params).unwrap(), ..Spec::plain(name) };
        record.case = Case { spec, size_bytes: size, placement, cpus: Some(cpus), ..record.case };
        let factor = 1.0 + 0.37 * (records.len() % 11) as f64 + size.map_or(0.0, |size| size.0 as f64 / 9e3);
        if let Some(summary) = &mut record.summary {
            summary.iteration_ns = summary.iteration_ns.map(|ns| ns * factor);
            summary.bytes_per_s = summary.bytes_per_s.map(|rate| rate.map(|rate| rate / factor));
        }
        record.samples.clear();
        record.outcome = Outcome::Settled;
        record.warnings.clear();
        if records.len().is_multiple_of(3) {
            record.warnings.push(Warning::Unsettled { reached: Some(0.2), asked: 0.05 });
        }
        if odd && records.len().is_multiple_of(9) {
            record.warnings.push(Warning::Stalled { slices: 1, of: 9, longest_ns: 1e9 });
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
    }
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
fn a_default_run_fits_50_lines_of_80_columns_and_narrower_terminals() {
    for odd in [false, true] {
        let results = as_large_as_the_default_suite(odd);
        assert!(results.records.iter().filter(|record| !record.floor).count() >= 70);
        let text = matrix(&results, &PLAIN);
        assert!(text.lines().count() <= 50, "{} lines:\n{text}", text.lines().count());
        for width in [60, 70, 80, 120] {
            let text = matrix(&results, &Style { width, ..PLAIN });
            assert!(text.lines().all(|line| columns(line) <= width), "{width}:\n{text}");
        }
    }
}

#[test]
fn places_stand_side_by_side_where_they_fit() {
    insta::assert_snapshot!(matrix(&as_large_as_the_default_suite(false), &PLAIN), @"
    Fastest round trip
      one core   udp up to 4 KiB (at 1 B: 1.3x unix-dgram, 3.2x pipe); pipe at
                 64 KiB (1.2x unix-dgram, 1.4x unix-seqpacket)
      two cores  udp up to 4 KiB (at 1 B: 1.3x unix-dgram, 3.2x shm-ring:wait=spin);
                 pipe and shm-ring:wait=spin tie at 64 KiB. Of those that sleep:
                 pipe at 64 KiB (1.2x unix-dgram, 1.4x unix-seqpacket)
    Highest rate
      one core   unix-seqpacket at 4 KiB (1.3x pipe, 3.5x tcp); tcp at 64 KiB
                 (1.04x unix-seqpacket, 1.4x shm-ring)
      two cores  unix-seqpacket at 4 KiB (1.3x pipe, 3.5x tcp); tcp at 64 KiB
                 (1.04x unix-seqpacket, 1.4x shm-ring)

    Round trip, one core           1 B        4 KiB       64 KiB  p99 1 B
      udp                 * 6.5 µs ±9% *  10 µs ±9%        -      7.58 µs
      unix-dgram            8.3 µs ±9%    12 µs ±9%    46 µs ±9%  7.58 µs
      unix-stream            10 µs ±9%    14 µs ±9%    48 µs ±9%  7.58 µs
      shm-ring               12 µs ±9%    16 µs ±9%    50 µs ±9%  7.58 µs
      tcp                    17 µs ±9%    21 µs ±9%    55 µs ±9%  7.58 µs
      unix-seqpacket         19 µs ±9%    23 µs ±9%    57 µs ±9%  7.58 µs
      pipe                   21 µs ±9%    25 µs ±9% *  39 µs ±9%  7.58 µs

    Round trip, two cores          1 B        4 KiB       64 KiB  p99 1 B
      udp                 * 6.5 µs ±9% *  10 µs ±9%        -      7.58 µs
      unix-dgram            8.3 µs ±9%    12 µs ±9%    46 µs ±9%  7.58 µs
      unix-stream            10 µs ±9%    14 µs ±9%    48 µs ±9%  7.58 µs
      shm-ring               12 µs ±9%    16 µs ±9%    50 µs ±9%  7.58 µs
      tcp                    17 µs ±9%    21 µs ±9%    55 µs ±9%  7.58 µs
      unix-seqpacket         19 µs ±9%    23 µs ±9%    57 µs ±9%  7.58 µs
      pipe                   21 µs ±9%    25 µs ±9% =  39 µs ±9%  7.58 µs
      shm-ring:wait=spin     21 µs ±9%    25 µs ±9% =  39 µs ±9%  7.58 µs

    Rate in GB/s           one core                    two cores
                                 4 KiB        64 KiB         4 KiB        64 KiB
      unix-seqpacket     *  1.44 ±0.4%   0.242 ±0.4% *  1.44 ±0.4%   0.242 ±0.4%
      pipe                  1.15 ±0.4%   0.232 ±0.4%    1.15 ±0.4%   0.232 ±0.4%
      udp                  0.817 ±0.4%       -         0.817 ±0.4%       -
      unix-dgram           0.634 ±0.4%   0.200 ±0.4%   0.634 ±0.4%   0.200 ±0.4%
      unix-stream          0.570 ±0.4%   0.193 ±0.4%   0.570 ±0.4%   0.193 ±0.4%
      shm-ring             0.518 ±0.4%   0.186 ±0.4%   0.518 ±0.4%   0.186 ±0.4%
      tcp                  0.406 ±0.4% * 0.253 ±0.4%   0.406 ±0.4% * 0.253 ±0.4%
      shm-ring:wait=spin       -             -          1.15 ±0.4%   0.232 ±0.4%

      *  fastest   =  too close to the fastest to call   ±  95% interval
      -  not measured (--detail says why)   2x pipe: pipe takes twice as long
    Host: noisy. Values of one core are good to ±9%, of two to ±9%; --time 20m would
      give about ±3% and ±3%. The hypervisor took 1.3% of the CPU time. See 'ipcmark
      doctor'.
    Note: the last line was cut off; it is left out
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
    insta::assert_snapshot!(text, @"
    Round trip, one core
                     1 B         1 KiB         1 MiB  p99 1 B
      pipe   3.3 µs ±15%   3.3 µs ±15%   3.3 µs ±15%  4.58 µs
      3 of 21 sizes; --detail shows all

      ±  95% interval
    Host: noisy. Values of one core are good to ±15%; --time 20m
      would give about ±5%. The hypervisor took 1.3% of the CPU
      time. See 'ipcmark doctor'.
    Note: the last line was cut off; it is left out
    ");
}

#[test]
fn of_drivers_it_is_not_said_how_they_wait() {
    for by_driver in ["shm-ring", "pipe"] {
        let mut results = fixture::results();
        for record in &mut results.records {
            if record.case.spec.name == by_driver {
                record.case.spec.drivers = CaseDrivers::parse("mpi").unwrap();
            }
        }
        let text = matrix(&results, &PLAIN);
        assert!(text.contains("mpi/") && !text.contains("that sleep"), "{text}");
    }
}

#[test]
fn what_spins_is_not_among_those_that_sleep_where_it_ties_with_one() {
    let mut results = fixture::results();
    let is_stream = |record: &&mut Record| record.case.workload == Workload::Throughput && !record.floor;
    let mut streams: Vec<&mut Record> = results.records.iter_mut().filter(is_stream).collect();
    streams.sort_by_key(|record| record.case.spec.name != "pipe");
    let [pipe, spins] = streams.as_mut_slice() else { panic!("{streams:?}") };
    (spins.samples, spins.summary) = (pipe.samples.clone(), pipe.summary.clone());
    results.records.sort_by_key(|record| record.case.spec.name != "pipe");
    let text = matrix(&results, &PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
    let answer = "two cores pipe:capacity=1M and shm-ring:wait=spin tie. Of those that sleep: pipe:capacity=1M Highest";
    assert!(text.contains(answer), "{text}");
}

#[test]
fn the_fixture_in_80_columns() {
    insta::assert_snapshot!(matrix(&fixture::results(), &PLAIN), @"
    Fastest round trip
      one core  shm-ring:wait=futex at 1 B (1.5x pipe, 2.2x unix-stream); pipe and
                fifo tie at 4 KiB
    Highest rate
      two cores  shm-ring:wait=spin (at 64 KiB: 2.3x pipe:capacity=1M). Of those
                 that sleep: pipe:capacity=1M
    Highest rate of a transfer
      two cores  shm-ring:wait=spin (at 64 KiB: 3.0x pipe:capacity=1M). Of those
                 that sleep: pipe:capacity=1M

    Round trip, one core               no payload              1 B            4 KiB
      shm-ring:wait=futex                 -        * 2.14 µs ±0.4%          -
      pipe                                -           3.3 µs ±15%   =  3.9 µs ±15%
      unix-stream                         -           4.8 µs ±9%            -
      fifo                                -                -        =  4.0 µs ±15%
      unix-stream:buffer=8M,              -                -          4.45 µs ±0.4%c
        wait=spin-then-block
      eventfd                       2.34 µs ±0.4%          -                -
      posix-mq                            -                -           failed

    Rate in GB/s, two cores                     64 KiB
      shm-ring:wait=spin                  *  4.8 ±9%
      pipe:capacity=1M                      2.10 ±0.4%

    Rate of a transfer in GB/s, two cores       64 KiB
      shm-ring:wait=spin                  * 5.11 ±0.4%
      pipe:capacity=1M                      1.71 ±0.4%

    Operation, one core
      getpid              58.5 ns ±0.4%
      write-devnull 4K     214 ns ±0.4%

    Not measured
      tcp, 1 case: not finished when the run ended
      posix-mq, 1 case: failed: mq_open /ipcmark-4f2a-0: too many open files
        (EMFILE); the queue's bytes are charged to RLIMIT_MSGQUEUE: raise it with
        ulimit -q

      *  fastest   =  too close to the fastest to call   ±  95% interval
      -  not measured (--detail says why)   2x pipe: pipe takes twice as long
      c  clamped: the kernel granted another value than was asked for:
         unix-stream:buffer=8M,wait=spin-then-block SO_SNDBUF asked for 8M, got 416K
    Host: noisy. Values of one core are good to ±15%, of two to ±6%; --time 20m
      would give about ±5% and ±2%. The hypervisor took 1.3% of the CPU time. See
      'ipcmark doctor'.
    Note: the last line was cut off; it is left out
    ");
}
