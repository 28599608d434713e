//! Results case by case for the terminal, as snapshots.

use super::{PLAIN, table};
use crate::{Style, fixture};
use model::record::Outcome;
use model::{Endpoints, Placement};

/// The lines of the fixture's table that concern latency with 4K, to keep a snapshot short.
fn one_block(text: &str) -> String {
    let from = text.find("latency, 4K").unwrap();
    let block = &text[from..];
    block[..block.find("\n\n").unwrap()].to_owned()
}

#[test]
fn the_table_in_80_columns() {
    insta::assert_snapshot!(table(&fixture::results(), &PLAIN), @"
    ipcmark 0.1.0, suite default, run 4f2a, 2025-11-21T20:47:00Z
      host        vm-1, Intel(R) Xeon(R) Platinum 8481C, 2 CPUs, kvm guest
      kernel      6.12.8 #1 SMP PREEMPT_DYNAMIC Fri Jan 10 12:00:00 UTC 2025
      run         34 rounds in 118 s, 4.0% of it starting trials; 8 of 14 cases
                  settled to ±2%, 1 failed; 1.3% of CPU time stolen
      instrument  clock tsc, precision 0.370 ns, read 21.0 ns; reading it in every
                  iteration adds 1.2% (median over cases)
      note        the last line was cut off; it is left out

    latency, no payload, same-core (cpu 1), per round trip
      mechanism             round trip      p99      cpu  switches
      eventfd            2.34 µs ±0.4%  3.79 µs  2.29 µs      2.00
      floor: context-switch = 1.88 µs

    latency, 1 byte, same-core (cpu 1), per round trip
      mechanism             round trip      p99      cpu  switches  ×floor
      shm-ring:          2.14 µs ±0.4%  3.46 µs  2.10 µs      2.00    ×1.4
        wait=futex
      pipe               3.31 µs  ±15%  4.58 µs  3.32 µs      2.00    ×2.1  !m
      unix-stream        4.76 µs ±9.1%  7.58 µs  4.68 µs      2.00    ×3.1  !
      floor: context-switch + 4 × memcpy = 1.89 µs
      m two modes: pipe 2.82 µs in 60% of slices, else 4.23 µs

    latency, 4K, same-core (cpu 1), per round trip
      mechanism             round trip      p99      cpu  switches  ×floor
      pipe               3.89 µs  ±15%  5.38 µs  3.90 µs      2.00    ×2.0  !m
      fifo               4.03 µs  ±15%  5.58 µs  4.04 µs      2.00    ×2.1  !m
      unix-stream:       4.45 µs ±0.4%  7.20 µs  4.36 µs      2.00    ×2.3  c
        buffer=8M,
        wait=spin-then-
        block
      posix-mq                  failed        -        -         -       -
      floor: context-switch + 4 × memcpy = 2.21 µs
      m two modes: pipe 3.31 µs in 60% of slices, else 4.97 µs; fifo 3.44 µs in 60%
        of slices, else 5.15 µs
      c clamped: unix-stream:buffer=8M,wait=spin-then-block SO_SNDBUF asked for 8M,
        got 416K
      posix-mq failed: mq_open /ipcmark-4f2a-0: too many open files (EMFILE); the
        queue's bytes are charged to RLIMIT_MSGQUEUE: raise it with ulimit -q

    throughput, 64K, same-llc (cpus 1,0), per message
      mechanism                     rate     time      cpu  switches  ×floor
      shm-ring:          4.79 GB/s ±9.1%  13.7 µs  27.4 µs         0    ×1.5  !
        wait=spin
      pipe:capacity=1M   2.10 GB/s ±0.4%  31.3 µs  30.7 µs      2.00    ×3.5
      floor: shared-copy = 9.08 µs

    transfer, 64K, same-llc (cpus 1,0), per acknowledged message
      mechanism                     rate      p99      cpu  switches  ×floor   ×wake
      shm-ring:          5.11 GB/s ±0.4%  20.7 µs  25.6 µs         0    ×1.4       -
        wait=spin
      pipe:capacity=1M   1.71 GB/s ±0.4%  62.0 µs  37.6 µs      2.00    ×4.3    ×1.3
      floor: shared-copy = 9.18 µs; of those that sleep: remote-wake + shared-copy -
        cache-line = 29.2 µs

    cost, same-core (cpu 1), per operation
      operation                   time      cpu  switches
      getpid             58.5 ns ±0.4%  28.7 ns      1.00
      write-devnull 4K    214 ns ±0.4%   105 ns      1.00

    floors: the least that this machine takes
      floor                        time                of one        on
      null               0.424 ns ±0.4%            round trip     cpu 1
      syscall             61.5 ns ±0.4%             operation     cpu 1
      context-switch      1.88 µs ±9.1%            round trip     cpu 1  !
      cache-line           143 ns ±0.4%            round trip  cpus 1,0
      remote-wake         20.2 µs ±0.4%            round trip  cpus 1,0
      shared-copy 64K     9.08 µs ±0.4%               message  cpus 1,0
      shared-copy 64K     9.18 µs ±0.4%  acknowledged message  cpus 1,0
      memcpy 1            1.61 ns ±0.4%             operation     cpu 1
      memcpy 4K           82.7 ns ±0.4%             operation     cpu 1

    notes
      ±       half the 95% interval of the median
      p99     99% of iterations take at most this; every iteration timed, all trials
              together
      cpu     CPU time of both endpoints; switches: context switches of both
      ×floor  time over that of the floor beside it; median over slices
      ×wake   time over that of the floor that wakes a sleeper on the other CPU;
              only of cases that sleep
      !       unsettled: the 95% interval is wider than was asked for; give it more
              --time, or measure fewer cases
      m       two modes: the slices fall into a fast and a slow group; the fast mode
              is the mechanism undisturbed; quiet the host, or run again
      c       clamped: the kernel granted another value than was asked for; ask for
              less, or raise the limit that 'ipcmark list NAME' names

    not measured
      posix-mq latency 16K same-core, posix-mq latency 64K same-core, posix-mq
        latency 256K same-core and 1 more: its largest message here is 8192 bytes;
        /proc/sys/fs/mqueue/msgsize_max
      pipe latency smt: smt: this process may use no core with two hardware threads
        (CPUs 0,1)
      tcp latency 4K same-core: not finished when the run ended
    ");
}

#[test]
fn the_table_in_120_columns() {
    insta::assert_snapshot!(table(&fixture::results(), &Style { width: 120, color: false, detail: true }), @"
    ipcmark 0.1.0, suite default, run 4f2a, 2025-11-21T20:47:00Z
      host        vm-1, Intel(R) Xeon(R) Platinum 8481C, 2 CPUs, kvm guest
      kernel      6.12.8 #1 SMP PREEMPT_DYNAMIC Fri Jan 10 12:00:00 UTC 2025
      run         34 rounds in 118 s, 4.0% of it starting trials; 8 of 14 cases settled to ±2%, 1 failed; 1.3% of CPU time
                  stolen
      instrument  clock tsc, precision 0.370 ns, read 21.0 ns; reading it in every iteration adds 1.2% (median over cases)
      note        the last line was cut off; it is left out

    latency, no payload, same-core (cpu 1), per round trip
      mechanism                              round trip    rtt/2      p99    p99.9      cpu  switches
      eventfd                             2.34 µs ±0.4%  1.17 µs  3.79 µs  3.83 µs  2.29 µs      2.00
      floor: context-switch = 1.88 µs

    latency, 1 byte, same-core (cpu 1), per round trip
      mechanism                              round trip    rtt/2      p99    p99.9      cpu  switches  ×floor
      shm-ring:wait=futex                 2.14 µs ±0.4%  1.07 µs  3.46 µs  3.50 µs  2.10 µs      2.00    ×1.4
      pipe                                3.31 µs  ±15%  1.66 µs  4.58 µs  6.89 µs  3.32 µs      2.00    ×2.1  !m
      unix-stream                         4.76 µs ±9.1%  2.38 µs  7.58 µs  9.16 µs  4.68 µs      2.00    ×3.1  !
      floor: context-switch + 4 × memcpy = 1.89 µs
      m two modes: pipe 2.82 µs in 60% of slices, else 4.23 µs

    latency, 4K, same-core (cpu 1), per round trip
      mechanism                              round trip    rtt/2      p99    p99.9      cpu  switches  ×floor
      pipe                                3.89 µs  ±15%  1.94 µs  5.38 µs  8.09 µs  3.90 µs      2.00    ×2.0  !m
      fifo                                4.03 µs  ±15%  2.01 µs  5.58 µs  8.38 µs  4.04 µs      2.00    ×2.1  !m
      unix-stream:buffer=8M,              4.45 µs ±0.4%  2.22 µs  7.20 µs  7.27 µs  4.36 µs      2.00    ×2.3  c
        wait=spin-then-block
      posix-mq                                   failed        -        -        -        -         -       -
      floor: context-switch + 4 × memcpy = 2.21 µs
      m two modes: pipe 3.31 µs in 60% of slices, else 4.97 µs; fifo 3.44 µs in 60% of slices, else 5.15 µs
      c clamped: unix-stream:buffer=8M,wait=spin-then-block SO_SNDBUF asked for 8M, got 416K
      posix-mq failed: mq_open /ipcmark-4f2a-0: too many open files (EMFILE); the queue's bytes are charged to
        RLIMIT_MSGQUEUE: raise it with ulimit -q

    throughput, 64K, same-llc (cpus 1,0), per message
      mechanism                                      rate     time      cpu  switches  ×floor
      shm-ring:wait=spin                  4.79 GB/s ±9.1%  13.7 µs  27.4 µs         0    ×1.5  !
      pipe:capacity=1M                    2.10 GB/s ±0.4%  31.3 µs  30.7 µs      2.00    ×3.5
      floor: shared-copy = 9.08 µs

    transfer, 64K, same-llc (cpus 1,0), per acknowledged message
      mechanism                                      rate     time      p99    p99.9      cpu  switches  ×floor   ×wake
      shm-ring:wait=spin                  5.11 GB/s ±0.4%  12.8 µs  20.7 µs  20.9 µs  25.6 µs         0    ×1.4       -
      pipe:capacity=1M                    1.71 GB/s ±0.4%  38.3 µs  62.0 µs  62.7 µs  37.6 µs      2.00    ×4.3    ×1.3
      floor: shared-copy = 9.18 µs; of those that sleep: remote-wake + shared-copy - cache-line = 29.2 µs

    cost, same-core (cpu 1), per operation
      operation                                    time      cpu  switches
      getpid                              58.5 ns ±0.4%  28.7 ns      1.00
      write-devnull 4K                     214 ns ±0.4%   105 ns      1.00

    floors: the least that this machine takes
      floor                                         time                of one        on
      null                                0.424 ns ±0.4%            round trip     cpu 1
      syscall                              61.5 ns ±0.4%             operation     cpu 1
      context-switch                       1.88 µs ±9.1%            round trip     cpu 1  !
      cache-line                            143 ns ±0.4%            round trip  cpus 1,0
      remote-wake                          20.2 µs ±0.4%            round trip  cpus 1,0
      shared-copy 64K                      9.08 µs ±0.4%               message  cpus 1,0
      shared-copy 64K                      9.18 µs ±0.4%  acknowledged message  cpus 1,0
      memcpy 1                             1.61 ns ±0.4%             operation     cpu 1
      memcpy 4K                            82.7 ns ±0.4%             operation     cpu 1

    notes
      ±       half the 95% interval of the median
      p99     99% of iterations take at most this; every iteration timed, all trials together
      cpu     CPU time of both endpoints; switches: context switches of both
      ×floor  time over that of the floor beside it; median over slices
      ×wake   time over that of the floor that wakes a sleeper on the other CPU; only of cases that sleep
      !       unsettled: the 95% interval is wider than was asked for; give it more --time, or measure fewer cases
      m       two modes: the slices fall into a fast and a slow group; the fast mode is the mechanism undisturbed; quiet the
              host, or run again
      c       clamped: the kernel granted another value than was asked for; ask for less, or raise the limit that 'ipcmark
              list NAME' names

    not measured
      posix-mq latency 16K same-core, posix-mq latency 64K same-core, posix-mq latency 256K same-core and 1 more: its
        largest message here is 8192 bytes; /proc/sys/fs/mqueue/msgsize_max
      pipe latency smt: smt: this process may use no core with two hardware threads (CPUs 0,1)
      tcp latency 4K same-core: not finished when the run ended
    ");
}

#[test]
fn colour_adds_only_escapes() {
    let painted = table(&fixture::results(), &Style { width: 80, color: true, detail: true });
    insta::assert_snapshot!(one_block(&painted).replace('\u{1b}', "ESC"), @"
    latency, 4K, same-core (cpu 1), per round tripESC[0m
    ESC[2m  mechanism             round trip      p99      cpu  switches  ×floorESC[0m
      pipe               3.89 µs  ±15%  5.38 µs  3.90 µs      2.00    ×2.0  ESC[33m!mESC[0m
      fifo               4.03 µs  ±15%  5.58 µs  4.04 µs      2.00    ×2.1  ESC[33m!mESC[0m
      unix-stream:       4.45 µs ±0.4%  7.20 µs  4.36 µs      2.00    ×2.3  ESC[33mcESC[0m
        buffer=8M,
        wait=spin-then-
        block
    ESC[31m  posix-mq                  failed        -        -         -       -ESC[0m
      floor: context-switch + 4 × memcpy = 2.21 µs
      m two modes: pipe 3.31 µs in 60% of slices, else 4.97 µs; fifo 3.44 µs in 60%
        of slices, else 5.15 µs
      c clamped: unix-stream:buffer=8M,wait=spin-then-block SO_SNDBUF asked for 8M,
        got 416K
      posix-mq failed: mq_open /ipcmark-4f2a-0: too many open files (EMFILE); the
        queue's bytes are charged to RLIMIT_MSGQUEUE: raise it with ulimit -q
    ");
    let bare: Vec<&str> =
        painted.split('\u{1b}').map(|part| part.split_once('m').map_or(part, |(_, text)| text)).collect();
    let first = painted.split('\u{1b}').next().unwrap();
    assert_eq!(format!("{first}{}", bare[1..].concat()), table(&fixture::results(), &PLAIN));
}

#[test]
fn a_run_that_was_cut_off_says_so_and_shows_the_first_floors() {
    let mut results = fixture::results();
    let floors = results.records.iter().filter(|record| record.floor);
    results.header.floors = floors
        .map(|record| model::record::FloorReading {
            case: record.case.clone(),
            iteration_ns: record.summary.as_ref().map(|summary| summary.iteration_ns.median),
        })
        .take(3)
        .collect();
    results.records.truncate(2);
    results.end = None;
    insta::assert_snapshot!(table(&results, &PLAIN), @"
    ipcmark 0.1.0, suite default, run 4f2a, 2025-11-21T20:47:00Z
      host        vm-1, Intel(R) Xeon(R) Platinum 8481C, 2 CPUs, kvm guest
      kernel      6.12.8 #1 SMP PREEMPT_DYNAMIC Fri Jan 10 12:00:00 UTC 2025
      run         cut off: no end line; 0 of 2 cases settled to ±2%
      instrument  clock tsc, precision 0.370 ns, read 21.0 ns; reading it in every
                  iteration adds 1.2% (median over cases)
      floors      as first measured: null latency 1 same-core 0.424 ns, syscall cost
                  same-core 61.5 ns, context-switch latency 1 same-core 1.88 µs
      note        the last line was cut off; it is left out

    latency, 1 byte, same-core (cpu 1), per round trip
      mechanism       round trip    rtt/2      p99      cpu  switches  ×floor
      pipe         3.31 µs  ±15%  1.66 µs  4.58 µs  3.32 µs      2.00    ×2.1  !m
      unix-stream  4.76 µs ±9.1%  2.38 µs  7.58 µs  4.68 µs      2.00    ×3.1  !
      floor: context-switch + 4 × memcpy
      m two modes: pipe 2.82 µs in 60% of slices, else 4.23 µs

    notes
      ±       half the 95% interval of the median
      p99     99% of iterations take at most this; every iteration timed, all trials
              together
      cpu     CPU time of both endpoints; switches: context switches of both
      ×floor  time over that of the floor beside it; median over slices
      !       unsettled: the 95% interval is wider than was asked for; give it more
              --time, or measure fewer cases
      m       two modes: the slices fall into a fast and a slow group; the fast mode
              is the mechanism undisturbed; quiet the host, or run again

    not measured
      posix-mq latency 16K same-core, posix-mq latency 64K same-core, posix-mq
        latency 256K same-core and 1 more: its largest message here is 8192 bytes;
        /proc/sys/fs/mqueue/msgsize_max
      pipe latency smt: smt: this process may use no core with two hardware threads
        (CPUs 0,1)
      shm-ring:wait=futex latency 1 same-core, eventfd latency same-core,
        unix-stream:buffer=8M,wait=spin-then-block latency 4K same-core and 19 more:
        not finished when the run ended
    ");
}

#[test]
fn unpinned_endpoints_and_threads_are_named_and_have_no_floor() {
    let mut results = fixture::results();
    results.records.truncate(1);
    let case = &mut results.records[0].case;
    (case.placement, case.cpus, case.endpoints) = (Placement::Unpinned, None, Endpoints::Threads);
    let text = table(&results, &PLAIN);
    assert!(text.contains("latency, 1 byte, unpinned, threads, per round trip\n"), "{text}");
    assert!(text.contains("floor: none for endpoints that are not pinned\n"), "{text}");
}

#[test]
fn a_case_without_samples_is_a_row_that_says_how_it_ended() {
    let mut results = fixture::results();
    results.records.truncate(1);
    let record = &mut results.records[0];
    (record.outcome, record.summary) = (Outcome::Interrupted, None);
    record.samples.clear();
    record.warnings.clear();
    assert!(table(&results, &PLAIN).contains("unix-stream  interrupted\n"), "{}", table(&results, &PLAIN));
}
