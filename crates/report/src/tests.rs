//! Every format over the fixture, as snapshots, and over content that nobody would want to print.

use crate::{Chart, Format, Style, comparison, fixture, markdown, paired, table};
use analysis::compare;
use model::estimate::Estimate;
use model::record::{Fact, Outcome, Results};
use model::warning::Warning;
use model::{Endpoints, Placement, Size, Workload};
use proptest::prelude::*;

const PLAIN: Style = Style { width: 80, color: false };

fn bytes(format: Format, results: &Results) -> String {
    let mut out = Vec::new();
    format.write(results, &PLAIN, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn columns(line: &str) -> usize {
    textwrap::core::display_width(line)
}

/// The lines of the fixture's table that concern latency with 4K, to keep a snapshot short.
fn one_block(text: &str) -> String {
    let from = text.find("latency, 4K").unwrap();
    let block = &text[from..];
    block[..block.find("\n\n").unwrap()].to_owned()
}

#[test]
fn the_table_in_80_columns() {
    insta::assert_snapshot!(table(&fixture::results(), &PLAIN), @r#"
    ipcmark 0.1.0, suite default, run 4f2a, 2025-11-21T20:47:00Z
      host        vm-1, Intel(R) Xeon(R) Platinum 8481C, 2 CPUs, kvm guest
      kernel      6.12.8 #1 SMP PREEMPT_DYNAMIC Fri Jan 10 12:00:00 UTC 2025
      run         34 rounds in 118 s; 8 of 14 cases settled to ±2%, 1 failed; 1.3%
                  of CPU time stolen
      instrument  clock tsc, precision 0.370 ns, read 21.0 ns; a reading per iteration
                  adds 1.2% (median over cases)
      note        the last line was cut off; it is left out

    latency, no payload, same-core (cpu 1), per round trip
      mechanism                  round trip      p99      cpu  switches
      eventfd                 2.34 µs ±0.7%  3.79 µs  2.29 µs      2.00
      floor: context-switch = 1.89 µs

    latency, 1 byte, same-core (cpu 1), per round trip
      mechanism                  round trip      p99      cpu  switches  ×floor
      shm-ring:wait=futex     2.14 µs ±0.7%  3.46 µs  2.10 µs      2.00    ×1.4
      pipe                    2.83 µs  ±25%  4.58 µs  3.32 µs      2.00    ×1.8  !m
      unix-stream             4.78 µs  ±14%  7.58 µs  4.68 µs      2.00    ×3.1  !
      floor: context-switch + 4 × memcpy = 1.89 µs
      m two modes: pipe 2.82 µs in 60% of trials, else 4.23 µs

    latency, 4K, same-core (cpu 1), per round trip
      mechanism                  round trip      p99      cpu  switches  ×floor
      pipe                    3.32 µs  ±25%  5.38 µs  3.90 µs      2.00    ×1.7  !m
      fifo                    3.45 µs  ±25%  5.58 µs  4.04 µs      2.00    ×1.8  !m
      unix-stream:buffer=8M,  4.45 µs ±0.7%  7.20 µs  4.36 µs      2.00    ×2.3  c
        wait=spin-then-block
      posix-mq                       failed        -        -         -       -
      floor: context-switch + 4 × memcpy = 2.22 µs
      m two modes: pipe 3.31 µs in 60% of trials, else 4.97 µs; fifo 3.44 µs in
        60% of trials, else 5.15 µs
      c clamped: unix-stream:buffer=8M,wait=spin-then-block SO_SNDBUF asked for 8M,
        got 416K
      posix-mq failed: mq_open /ipcmark-4f2a-0: too many open files (EMFILE); the
        queue's bytes are charged to RLIMIT_MSGQUEUE: raise it with ulimit -q

    throughput, 64K, same-llc (cpus 1,0), per message
      mechanism                          rate     time      cpu  switches  ×floor
      shm-ring:wait=spin      4.78 GB/s  ±15%  13.7 µs  27.4 µs         0    ×1.5  !
      pipe:capacity=1M        2.10 GB/s ±0.7%  31.3 µs  30.7 µs      2.00    ×3.5
      floor: 1 × memcpy = 9.08 µs

    transfer, 64K, same-llc (cpus 1,0), per acknowledged message
      mechanism                          rate      p99      cpu  switches  ×floor
      shm-ring:wait=spin      5.11 GB/s ±0.7%  20.7 µs  25.6 µs         0    ×1.4
      pipe:capacity=1M        1.71 GB/s ±0.7%  62.0 µs  37.6 µs      2.00    ×4.3
      floor: cache-line + 1 × memcpy = 9.22 µs

    cost, same-core (cpu 1), per operation
      operation                        time      cpu  switches
      getpid                  58.5 ns ±0.7%  28.7 ns      1.00
      write-devnull 4K         214 ns ±0.7%   105 ns      1.00

    floors: the least that this machine takes
      floor                             time      of one        on
      null                    0.424 ns ±0.7%  round trip     cpu 1
      syscall                  61.5 ns ±0.7%   operation     cpu 1
      context-switch           1.89 µs  ±14%  round trip     cpu 1  !
      cache-line                143 ns ±0.7%  round trip  cpus 1,0
      memcpy 1                 1.61 ns ±0.7%   operation     cpu 1
      memcpy 4K                82.7 ns ±0.7%   operation     cpu 1
      memcpy 64K               9.08 µs ±0.7%   operation     cpu 1

    notes
      ±       half the 95% interval of the median over trials
      p99     99% of iterations take at most this, all trials together, each iteration timed
      cpu     CPU time of both ends; switches: context switches of both ends
      ×floor  the time over that of the floor in the same round, median over rounds
      !       unsettled: the 95% interval is wider than was asked for; give it more
              --time, or measure fewer cases
      m       two modes: the trials fall into a fast and a slow group; the fast
              mode is the mechanism undisturbed; quiet the host, or run again
      c       clamped: the kernel gave something else than was asked; ask for less,
              or raise the limit that 'ipcmark list' names

    not measured
      posix-mq latency 16K same-core, posix-mq latency 64K same-core, posix-mq
        latency 256K same-core and 1 more: its largest message here is 8192 bytes;
        /proc/sys/fs/mqueue/msgsize_max
      pipe latency smt: smt: this process may use no core with two hardware threads
        (CPUs 0,1)
      tcp latency 4K same-core: not done when the run ended
    "#);
}

#[test]
fn the_table_in_120_columns() {
    insta::assert_snapshot!(table(&fixture::results(), &Style { width: 120, color: false }), @r#"
    ipcmark 0.1.0, suite default, run 4f2a, 2025-11-21T20:47:00Z
      host        vm-1, Intel(R) Xeon(R) Platinum 8481C, 2 CPUs, kvm guest
      kernel      6.12.8 #1 SMP PREEMPT_DYNAMIC Fri Jan 10 12:00:00 UTC 2025
      run         34 rounds in 118 s; 8 of 14 cases settled to ±2%, 1 failed; 1.3% of CPU time stolen
      instrument  clock tsc, precision 0.370 ns, read 21.0 ns; a reading per iteration adds 1.2% (median over cases)
      note        the last line was cut off; it is left out

    latency, no payload, same-core (cpu 1), per round trip
      mechanism                              round trip    rtt/2      p99    p99.9      cpu  switches  faults
      eventfd                             2.34 µs ±0.7%  1.17 µs  3.79 µs  3.83 µs  2.29 µs      2.00       0
      floor: context-switch = 1.89 µs

    latency, 1 byte, same-core (cpu 1), per round trip
      mechanism                              round trip    rtt/2      p99    p99.9      cpu  switches  faults  ×floor
      shm-ring:wait=futex                 2.14 µs ±0.7%  1.07 µs  3.46 µs  3.50 µs  2.10 µs      2.00       0    ×1.4
      pipe                                2.83 µs  ±25%  1.42 µs  4.58 µs  6.89 µs  3.32 µs      2.00       0    ×1.8  !m
      unix-stream                         4.78 µs  ±14%  2.39 µs  7.58 µs  9.16 µs  4.68 µs      2.00       0    ×3.1  !
      floor: context-switch + 4 × memcpy = 1.89 µs
      m two modes: pipe 2.82 µs in 60% of trials, else 4.23 µs

    latency, 4K, same-core (cpu 1), per round trip
      mechanism                              round trip    rtt/2      p99    p99.9      cpu  switches  faults  ×floor
      pipe                                3.32 µs  ±25%  1.66 µs  5.38 µs  8.09 µs  3.90 µs      2.00       0    ×1.7  !m
      fifo                                3.45 µs  ±25%  1.72 µs  5.58 µs  8.38 µs  4.04 µs      2.00       0    ×1.8  !m
      unix-stream:buffer=8M,              4.45 µs ±0.7%  2.22 µs  7.20 µs  7.27 µs  4.36 µs      2.00       0    ×2.3  c
        wait=spin-then-block
      posix-mq                                   failed        -        -        -        -         -       -       -
      floor: context-switch + 4 × memcpy = 2.22 µs
      m two modes: pipe 3.31 µs in 60% of trials, else 4.97 µs; fifo 3.44 µs in 60% of trials, else 5.15 µs
      c clamped: unix-stream:buffer=8M,wait=spin-then-block SO_SNDBUF asked for 8M, got 416K
      posix-mq failed: mq_open /ipcmark-4f2a-0: too many open files (EMFILE); the queue's bytes are charged to
        RLIMIT_MSGQUEUE: raise it with ulimit -q

    throughput, 64K, same-llc (cpus 1,0), per message
      mechanism                                      rate     time      cpu  switches  faults  ×floor
      shm-ring:wait=spin                  4.78 GB/s  ±15%  13.7 µs  27.4 µs         0       0    ×1.5  !
      pipe:capacity=1M                    2.10 GB/s ±0.7%  31.3 µs  30.7 µs      2.00       0    ×3.5
      floor: 1 × memcpy = 9.08 µs

    transfer, 64K, same-llc (cpus 1,0), per acknowledged message
      mechanism                                      rate     time      p99    p99.9      cpu  switches  faults  ×floor
      shm-ring:wait=spin                  5.11 GB/s ±0.7%  12.8 µs  20.7 µs  20.9 µs  25.6 µs         0       0    ×1.4
      pipe:capacity=1M                    1.71 GB/s ±0.7%  38.3 µs  62.0 µs  62.7 µs  37.6 µs      2.00       0    ×4.3
      floor: cache-line + 1 × memcpy = 9.22 µs

    cost, same-core (cpu 1), per operation
      operation                                    time      cpu  switches  faults
      getpid                              58.5 ns ±0.7%  28.7 ns      1.00       0
      write-devnull 4K                     214 ns ±0.7%   105 ns      1.00       0

    floors: the least that this machine takes
      floor                                         time      of one        on
      null                                0.424 ns ±0.7%  round trip     cpu 1
      syscall                              61.5 ns ±0.7%   operation     cpu 1
      context-switch                       1.89 µs  ±14%  round trip     cpu 1  !
      cache-line                            143 ns ±0.7%  round trip  cpus 1,0
      memcpy 1                             1.61 ns ±0.7%   operation     cpu 1
      memcpy 4K                            82.7 ns ±0.7%   operation     cpu 1
      memcpy 64K                           9.08 µs ±0.7%   operation     cpu 1

    notes
      ±       half the 95% interval of the median over trials
      p99     99% of iterations take at most this, all trials together, each iteration timed
      cpu     CPU time of both ends; switches: context switches of both ends
      ×floor  the time over that of the floor in the same round, median over rounds
      !       unsettled: the 95% interval is wider than was asked for; give it more --time, or measure fewer cases
      m       two modes: the trials fall into a fast and a slow group; the fast mode is the mechanism undisturbed; quiet
              the host, or run again
      c       clamped: the kernel gave something else than was asked; ask for less, or raise the limit that 'ipcmark list'
              names

    not measured
      posix-mq latency 16K same-core, posix-mq latency 64K same-core, posix-mq latency 256K same-core and 1 more: its
        largest message here is 8192 bytes; /proc/sys/fs/mqueue/msgsize_max
      pipe latency smt: smt: this process may use no core with two hardware threads (CPUs 0,1)
      tcp latency 4K same-core: not done when the run ended
    "#);
}

#[test]
fn colour_adds_only_escapes() {
    let painted = table(&fixture::results(), &Style { width: 80, color: true });
    insta::assert_snapshot!(one_block(&painted).replace('\u{1b}', "ESC"), @r#"
    latency, 4K, same-core (cpu 1), per round tripESC[0m
    ESC[2m  mechanism                  round trip      p99      cpu  switches  ×floorESC[0m
      pipe                    3.32 µs  ±25%  5.38 µs  3.90 µs      2.00    ×1.7  ESC[33m!mESC[0m
      fifo                    3.45 µs  ±25%  5.58 µs  4.04 µs      2.00    ×1.8  ESC[33m!mESC[0m
      unix-stream:buffer=8M,  4.45 µs ±0.7%  7.20 µs  4.36 µs      2.00    ×2.3  ESC[33mcESC[0m
        wait=spin-then-block
    ESC[31m  posix-mq                       failed        -        -         -       -ESC[0m
      floor: context-switch + 4 × memcpy = 2.22 µs
      m two modes: pipe 3.31 µs in 60% of trials, else 4.97 µs; fifo 3.44 µs in
        60% of trials, else 5.15 µs
      c clamped: unix-stream:buffer=8M,wait=spin-then-block SO_SNDBUF asked for 8M,
        got 416K
      posix-mq failed: mq_open /ipcmark-4f2a-0: too many open files (EMFILE); the
        queue's bytes are charged to RLIMIT_MSGQUEUE: raise it with ulimit -q
    "#);
    let bare: Vec<&str> =
        painted.split('\u{1b}').map(|part| part.split_once('m').map_or(part, |(_, text)| text)).collect();
    let first = painted.split('\u{1b}').next().unwrap();
    assert_eq!(format!("{first}{}", bare[1..].concat()), table(&fixture::results(), &PLAIN));
}

#[test]
fn markdown_says_what_the_table_says() {
    insta::assert_snapshot!(markdown(&fixture::results()), @r#"
    ## ipcmark 0.1.0, suite default, run 4f2a, 2025-11-21T20:47:00Z

    - **host** vm-1, Intel(R) Xeon(R) Platinum 8481C, 2 CPUs, kvm guest
    - **kernel** 6.12.8 \#1 SMP PREEMPT\_DYNAMIC Fri Jan 10 12:00:00 UTC 2025
    - **run** 34 rounds in 118 s; 8 of 14 cases settled to ±2%, 1 failed; 1.3% of CPU time stolen
    - **instrument** clock tsc, precision 0.370 ns, read 21.0 ns; a reading per iteration adds 1.2% (median over cases)
    - **note** the last line was cut off; it is left out

    ### latency, no payload, same-core (cpu 1), per round trip

    | mechanism | round trip | rtt/2 | p99 | p99.9 | cpu | switches | faults |  |
    | :-- | --: | --: | --: | --: | --: | --: | --: | :-- |
    | eventfd | 2.34 µs ±0.7% | 1.17 µs | 3.79 µs | 3.83 µs | 2.29 µs | 2.00 | 0 |  |

    - floor: context-switch = 1.89 µs

    ### latency, 1 byte, same-core (cpu 1), per round trip

    | mechanism | round trip | rtt/2 | p99 | p99.9 | cpu | switches | faults | ×floor |  |
    | :-- | --: | --: | --: | --: | --: | --: | --: | --: | :-- |
    | shm-ring:wait=futex | 2.14 µs ±0.7% | 1.07 µs | 3.46 µs | 3.50 µs | 2.10 µs | 2.00 | 0 | ×1.4 |  |
    | pipe | 2.83 µs ±25% | 1.42 µs | 4.58 µs | 6.89 µs | 3.32 µs | 2.00 | 0 | ×1.8 | \!m |
    | unix-stream | 4.78 µs ±14% | 2.39 µs | 7.58 µs | 9.16 µs | 4.68 µs | 2.00 | 0 | ×3.1 | \! |

    - floor: context-switch + 4 × memcpy = 1.89 µs
    - m two modes: pipe 2.82 µs in 60% of trials, else 4.23 µs

    ### latency, 4K, same-core (cpu 1), per round trip

    | mechanism | round trip | rtt/2 | p99 | p99.9 | cpu | switches | faults | ×floor |  |
    | :-- | --: | --: | --: | --: | --: | --: | --: | --: | :-- |
    | pipe | 3.32 µs ±25% | 1.66 µs | 5.38 µs | 8.09 µs | 3.90 µs | 2.00 | 0 | ×1.7 | \!m |
    | fifo | 3.45 µs ±25% | 1.72 µs | 5.58 µs | 8.38 µs | 4.04 µs | 2.00 | 0 | ×1.8 | \!m |
    | unix-stream:buffer=8M,wait=spin-then-block | 4.45 µs ±0.7% | 2.22 µs | 7.20 µs | 7.27 µs | 4.36 µs | 2.00 | 0 | ×2.3 | c |
    | posix-mq | failed | - | - | - | - | - | - | - |  |

    - floor: context-switch + 4 × memcpy = 2.22 µs
    - m two modes: pipe 3.31 µs in 60% of trials, else 4.97 µs; fifo 3.44 µs in 60% of trials, else 5.15 µs
    - c clamped: unix-stream:buffer=8M,wait=spin-then-block SO\_SNDBUF asked for 8M, got 416K
    - posix-mq failed: mq\_open /ipcmark-4f2a-0: too many open files (EMFILE); the queue's bytes are charged to RLIMIT\_MSGQUEUE: raise it with ulimit -q

    ### throughput, 64K, same-llc (cpus 1,0), per message

    | mechanism | rate | time | cpu | switches | faults | ×floor |  |
    | :-- | --: | --: | --: | --: | --: | --: | :-- |
    | shm-ring:wait=spin | 4.78 GB/s ±15% | 13.7 µs | 27.4 µs | 0 | 0 | ×1.5 | \! |
    | pipe:capacity=1M | 2.10 GB/s ±0.7% | 31.3 µs | 30.7 µs | 2.00 | 0 | ×3.5 |  |

    - floor: 1 × memcpy = 9.08 µs

    ### transfer, 64K, same-llc (cpus 1,0), per acknowledged message

    | mechanism | rate | time | p99 | p99.9 | cpu | switches | faults | ×floor |  |
    | :-- | --: | --: | --: | --: | --: | --: | --: | --: | :-- |
    | shm-ring:wait=spin | 5.11 GB/s ±0.7% | 12.8 µs | 20.7 µs | 20.9 µs | 25.6 µs | 0 | 0 | ×1.4 |  |
    | pipe:capacity=1M | 1.71 GB/s ±0.7% | 38.3 µs | 62.0 µs | 62.7 µs | 37.6 µs | 2.00 | 0 | ×4.3 |  |

    - floor: cache-line + 1 × memcpy = 9.22 µs

    ### cost, same-core (cpu 1), per operation

    | operation | time | cpu | switches | faults |  |
    | :-- | --: | --: | --: | --: | :-- |
    | getpid | 58.5 ns ±0.7% | 28.7 ns | 1.00 | 0 |  |
    | write-devnull 4K | 214 ns ±0.7% | 105 ns | 1.00 | 0 |  |

    ### floors: the least that this machine takes

    | floor | time | of one | on |  |
    | :-- | --: | --: | --: | :-- |
    | null | 0.424 ns ±0.7% | round trip | cpu 1 |  |
    | syscall | 61.5 ns ±0.7% | operation | cpu 1 |  |
    | context-switch | 1.89 µs ±14% | round trip | cpu 1 | \! |
    | cache-line | 143 ns ±0.7% | round trip | cpus 1,0 |  |
    | memcpy 1 | 1.61 ns ±0.7% | operation | cpu 1 |  |
    | memcpy 4K | 82.7 ns ±0.7% | operation | cpu 1 |  |
    | memcpy 64K | 9.08 µs ±0.7% | operation | cpu 1 |  |

    ### notes

    - **±** half the 95% interval of the median over trials
    - **p99** 99% of iterations take at most this, all trials together, each iteration timed
    - **cpu** CPU time of both ends; switches: context switches of both ends
    - **×floor** the time over that of the floor in the same round, median over rounds
    - **\!** unsettled: the 95% interval is wider than was asked for; give it more --time, or measure fewer cases
    - **m** two modes: the trials fall into a fast and a slow group; the fast mode is the mechanism undisturbed; quiet the host, or run again
    - **c** clamped: the kernel gave something else than was asked; ask for less, or raise the limit that 'ipcmark list' names

    ### not measured

    - posix-mq latency 16K same-core, posix-mq latency 64K same-core, posix-mq latency 256K same-core and 1 more: its largest message here is 8192 bytes; /proc/sys/fs/mqueue/msgsize\_max
    - pipe latency smt: smt: this process may use no core with two hardware threads (CPUs 0,1)
    - tcp latency 4K same-core: not done when the run ended
    "#);
}

#[test]
fn csv_has_a_line_a_case() {
    let mut results = fixture::results();
    results
        .records
        .retain(|record| record.case.spec.name == "unix-stream" || record.case.spec.name == "posix-mq");
    insta::assert_snapshot!(bytes(Format::Csv, &results), @r#"
    run,workload,size_bytes,placement,cpu_client,cpu_server,endpoints,name,params,floor,outcome,trials,iterations,iteration_ns_median,iteration_ns_low,iteration_ns_high,rate_bytes_per_s_median,rate_bytes_per_s_low,rate_bytes_per_s_high,p50_ns,p90_ns,p99_ns,p999_ns,max_ns,p99_by_trial_ns_median,p99_by_trial_ns_low,p99_by_trial_ns_high,each_over_total_median,each_over_total_low,each_over_total_high,floor_multiple_median,floor_multiple_low,floor_multiple_high,client_cpu_ns,client_user_ns,client_system_ns,client_voluntary_switches,client_involuntary_switches,client_faults,server_cpu_ns,server_user_ns,server_system_ns,server_voluntary_switches,server_involuntary_switches,server_faults,fast_mode_ns,slow_mode_ns,fast_mode_share,warnings,error
    4f2a,latency,1,same-core,1,1,processes,unix-stream,,false,unsettled,10,10000,4777.5,4095,5460,,,,4835,5611,7579,9159,9159,7737,6631,8847,1.012,1.012,1.012,3.0895892615958584,2.6487710219922382,3.531694695989651,2340.975,0,0,1,0,0,2340.975,0,0,1,0,0,,,,"unsettled: the 95% interval is ±14.3%, asked for ±2.0%",
    4f2a,latency,4096,same-core,1,1,processes,unix-stream,"buffer=8M,wait=spin-then-block",false,settled,10,10000,4449.6900000000005,4418.82,4480.56,,,,4419,4455,7199,7271,7271,7207,7155,7255,1.012,1.012,1.012,2.3419409550881323,2.325694736842105,2.358189473684211,2180.3477,0,0,1,0,0,2180.3477,0,0,1,0,0,,,,"SO_SNDBUF: asked for 8M, got 416K",
    4f2a,latency,4096,same-core,1,1,processes,posix-mq,,false,failed,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,mq_open /ipcmark-4f2a-0: too many open files (EMFILE); the queue's bytes are charged to RLIMIT_MSGQUEUE: raise it with ulimit -q
    "#);
}

/// The results with a study of pipes: a table, a figure and a conclusion.
fn results_with_study() -> Results {
    let pipe = |sizes| serde_json::json!({ "spec": { "name": "pipe" }, "workload": "latency", "sizes": sizes, "placements": "same-core" });
    let study = serde_json::json!({
        "title": "A study",
        "source": "of 1996",
        "cases": { "pipe": pipe([1, 4096]) },
        "table": [{ "name": "Table 1", "title": "Round trips", "columns": ["1 byte", "words"], "rows": [
            { "name": "then", "published": true, "cells": ["3us", ""] },
            { "name": "here", "cells": ["time of pipe at 1", { "missing": "no words" }] },
        ] }],
        "figure": [{ "name": "Figure 1", "title": "Round trips", "y": "a round trip", "series": [
            { "name": "pipe", "of": "time of pipe" },
            { "name": "pipe", "published": [["4K", "4us"]] },
        ] }],
        "conclusion": [{ "claim": "Large messages take longer", "tests": [
            { "name": "4K over 1", "of": "time of pipe at 4K / time of pipe at 1", "at_least": "1", "published": "1.5" },
        ] }],
    });
    let mut results = fixture::results();
    results.header.study = Some(serde_json::from_value(study).unwrap());
    results
}

#[test]
fn a_reader_that_has_gone_is_known_as_such() {
    struct Gone;
    impl std::io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut results = results_with_study();
    results.records = vec![results.records; 20].concat();
    let study = results.header.study.as_mut().unwrap();
    study.conclusions = vec![study.conclusions[0].clone(); 150];
    for format in Format::ALL {
        let error = format.write(&results, &PLAIN, Gone).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "{format}: {error}");
    }
}

#[test]
fn csv_of_a_study_has_a_line_a_number() {
    insta::assert_snapshot!(bytes(Format::StudyCsv, &results_with_study()), @r#"
    run,part,name,row,column,x_bytes,published,value,low,high,unit,words,missing,at_least,at_most,verdict
    4f2a,table,Table 1,then,1 byte,,true,3000,,,ns,,,,,
    4f2a,table,Table 1,here,1 byte,,false,2831.075,2815.62,4240.29,ns,,,,,
    4f2a,table,Table 1,here,words,,false,,,,,,no words,,,
    4f2a,figure,Figure 1,pipe,a round trip,1,false,2831.075,2815.62,4240.29,ns,,,,,
    4f2a,figure,Figure 1,pipe,a round trip,4096,false,3324.75,3306.6,4979.700000000001,ns,,,,,
    4f2a,figure,Figure 1,pipe,a round trip,4096,true,4000,,,ns,,,,,
    4f2a,conclusion,Large messages take longer,4K over 1,,,true,1.5,,,number,,,1,,holds
    4f2a,conclusion,Large messages take longer,4K over 1,,,false,1.1743772241992882,1.1743772241992882,1.1743772241992885,number,,,1,,holds
    "#);
    // Without a study there are names alone.
    assert_eq!(bytes(Format::StudyCsv, &fixture::results()).lines().count(), 1);
}

#[test]
fn json_has_the_study_with_numbers_and_verdicts() {
    let json = |results: &Results| -> serde_json::Value {
        serde_json::from_str(&bytes(Format::Json, results)).unwrap()
    };
    let study = json(&results_with_study())["study"].take();
    let here = serde_json::json!({ "median": 2831.075, "interval": [2815.62, 4240.29], "unit": "ns" });
    assert_eq!(
        study["tables"][0]["rows"][1]["cells"],
        serde_json::json!([{ "value": here }, { "missing": "no words" }])
    );
    assert_eq!(study["tables"][0]["rows"][0]["cells"][1], "empty");
    let point = serde_json::json!({ "x": 4096.0, "y": { "median": 4000.0, "interval": null } });
    assert_eq!(
        study["figures"][0]["series"][1],
        serde_json::json!({ "name": "pipe", "published": true, "points": [point] })
    );
    let conclusion = &study["conclusions"][0];
    assert_eq!((&conclusion["verdict"], &conclusion["tests"][0]["at_least"]), (&"holds".into(), &1.0.into()));
    assert_eq!(conclusion["tests"][0]["numbers"][0]["interval"].as_array().map(Vec::len), Some(2));
    assert!(json(&fixture::results())["study"].is_null());
}

#[test]
fn json_has_summaries_and_no_samples() {
    let mut results = fixture::results();
    results.records.truncate(1);
    results.records[0].summary = None;
    let document: serde_json::Value = serde_json::from_str(&bytes(Format::Json, &results)).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&document["records"][0]).unwrap(), @r#"
    {
      "case": {
        "cpus": {
          "server": 1,
          "client": 1
        },
        "endpoints": "processes",
        "placement": "same-core",
        "size_bytes": 1,
        "spec": {
          "name": "unix-stream"
        },
        "workload": "latency"
      },
      "floor": false,
      "outcome": "unsettled",
      "settings": [],
      "summary": {
        "bytes_per_s": null,
        "each_over_total": {
          "interval": [
            1.012,
            1.012
          ],
          "median": 1.012
        },
        "server": {
          "cpu_ns": 2340.975,
          "faults": 0.0,
          "involuntary_switches": 0.0,
          "system_ns": 0.0,
          "user_ns": 0.0,
          "voluntary_switches": 1.0
        },
        "floor_multiple": {
          "interval": [
            2.6487710219922382,
            3.531694695989651
          ],
          "median": 3.0895892615958584
        },
        "trials": 10,
        "modes": null,
        "client": {
          "cpu_ns": 2340.975,
          "faults": 0.0,
          "involuntary_switches": 0.0,
          "system_ns": 0.0,
          "user_ns": 0.0,
          "voluntary_switches": 1.0
        },
        "quantiles": {
          "max_ns": 9159,
          "p50_ns": 4835,
          "p90_ns": 5611,
          "p999_ns": 9159,
          "p99_by_trial_ns": {
            "interval": [
              6631.0,
              8847.0
            ],
            "median": 7737.0
          },
          "p99_ns": 7579
        },
        "iteration_ns": {
          "interval": [
            4095.0,
            5460.0
          ],
          "median": 4777.5
        },
        "iterations": 10000
      },
      "warnings": [
        {
          "asked": 0.02,
          "kind": "unsettled",
          "reached": 0.14285714285714285
        }
      ]
    }
    "#);
    let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["end", "header", "notes", "records", "study"]);
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
    insta::assert_snapshot!(table(&results, &PLAIN), @r#"
    ipcmark 0.1.0, suite default, run 4f2a, 2025-11-21T20:47:00Z
      host        vm-1, Intel(R) Xeon(R) Platinum 8481C, 2 CPUs, kvm guest
      kernel      6.12.8 #1 SMP PREEMPT_DYNAMIC Fri Jan 10 12:00:00 UTC 2025
      run         cut off: no end line; 0 of 2 cases settled to ±2%
      instrument  clock tsc, precision 0.370 ns, read 21.0 ns; a reading per iteration
                  adds 1.2% (median over cases)
      floors      as first measured: null latency 1 same-core 0.424 ns, syscall cost
                  same-core 61.5 ns, context-switch latency 1 same-core 1.89 µs
      note        the last line was cut off; it is left out

    latency, 1 byte, same-core (cpu 1), per round trip
      mechanism       round trip    rtt/2      p99      cpu  switches  ×floor
      pipe         2.83 µs  ±25%  1.42 µs  4.58 µs  3.32 µs      2.00    ×1.8  !m
      unix-stream  4.78 µs  ±14%  2.39 µs  7.58 µs  4.68 µs      2.00    ×3.1  !
      floor: context-switch + 4 × memcpy
      m two modes: pipe 2.82 µs in 60% of trials, else 4.23 µs

    notes
      ±       half the 95% interval of the median over trials
      p99     99% of iterations take at most this, all trials together, each iteration timed
      cpu     CPU time of both ends; switches: context switches of both ends
      ×floor  the time over that of the floor in the same round, median over rounds
      !       unsettled: the 95% interval is wider than was asked for; give it more
              --time, or measure fewer cases
      m       two modes: the trials fall into a fast and a slow group; the fast
              mode is the mechanism undisturbed; quiet the host, or run again

    not measured
      posix-mq latency 16K same-core, posix-mq latency 64K same-core, posix-mq
        latency 256K same-core and 1 more: its largest message here is 8192 bytes;
        /proc/sys/fs/mqueue/msgsize_max
      pipe latency smt: smt: this process may use no core with two hardware threads
        (CPUs 0,1)
      shm-ring:wait=futex latency 1 same-core, eventfd latency same-core,
        unix-stream:buffer=8M,wait=spin-then-block latency 4K same-core and 17 more:
        not done when the run ended
    "#);
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

#[test]
fn formats_have_names_that_parse() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
    }
    assert!("tabel".parse::<Format>().unwrap_err().remedy.contains("'table'"));
}

fn compared() -> compare::Comparison {
    compare::compare(&fixture::results(), &fixture::later_results(), compare::ComparisonOptions::default())
}

fn pairs() -> Vec<compare::PairedComparison> {
    let pair = |name: &str, log_ratio: f64, rounds: u32| compare::PairedRatios {
        name: name.to_owned(),
        log_ratios: (0..rounds).map(|round| log_ratio + 0.01 * f64::from(round % 5)).collect(),
    };
    let pairs = [
        pair("unix-stream against pipe, latency 4K same-core", 0.3, 30),
        pair("fifo against pipe, latency 4K same-core", -0.02, 30),
        pair("tcp against pipe, latency 4K same-core", 1.0, 4),
    ];
    compare::compare_paired(&pairs, compare::ComparisonOptions::default())
}

#[test]
fn a_comparison_in_80_columns() {
    insta::assert_snapshot!(comparison(&compared(), &PLAIN), @r#"
    B against A, 13 cases: 1 faster, 0 slower, 6 no difference found, 6 cannot tell
      on average  time +1.8% ±8.4%, ×floor +1.7% ±12%, floors +1.0% ±2.2%
      differs     kernel: 6.12.8 #1 SMP PREEMPT_DYNAMIC Fri Jan 10 12:00:00 UTC 2025
                  in A, 6.13.1 #1 SMP PREEMPT_DYNAMIC in B

    latency, no payload, same-core (cpu 1), per round trip
      mechanism                     A         time       ×floor
      eventfd                 2.34 µs  +1.0% ±6.3%  +0.0% ±6.1%  no difference found

    latency, 1 byte, same-core (cpu 1), per round trip
      mechanism                     A         time       ×floor
      shm-ring:wait=futex     2.14 µs   -25% ±4.7%   -25% ±4.7%  faster
      pipe                    2.83 µs  +1.0%  ±58%  +1.0%  ±58%  cannot tell
      unix-stream             4.78 µs  +1.0% ±8.5%  +1.0% ±8.5%  cannot tell
      pipe, unix-stream: its interval reaches beyond ±5%: give both runs more time

    latency, 4K, same-core (cpu 1), per round trip
      mechanism                     A         time       ×floor
      pipe                    3.32 µs  +1.0%  ±58%  +1.0%  ±58%  cannot tell
      fifo                    3.45 µs   +50%  ±86%   +50%  ±86%  cannot tell
      unix-stream:buffer=8M,  4.45 µs  +1.0% ±6.3%  +1.0% ±6.3%  no difference found
        wait=spin-then-block
      posix-mq                      -            -            -  cannot tell
      pipe: its interval reaches beyond ±5%: give both runs more time
      fifo: the difference is within what two runs of 12 cases can differ by
        (±72.1%)
      posix-mq: A has 0 of the 6 trials needed (mq_open /ipcmark-4f2a-0: too many
        open files (EMFILE); the queue's bytes are charged to RLIMIT_MSGQUEUE: raise
        it with ulimit -q); B has 0 of the 6 trials needed (mq_open
        /ipcmark-4f2a-0: too many open files (EMFILE); the queue's bytes are charged
        to RLIMIT_MSGQUEUE: raise it with ulimit -q)

    throughput, 64K, same-llc (cpus 1,0), per message
      mechanism                     A         time       ×floor
      shm-ring:wait=spin      13.7 µs  +1.0% ±8.5%  +1.0% ±8.5%  cannot tell
      pipe:capacity=1M        31.3 µs  +1.0% ±6.3%  +1.0% ±6.3%  no difference found
      shm-ring:wait=spin: its interval reaches beyond ±5%: give both runs more time

    transfer, 64K, same-llc (cpus 1,0), per acknowledged message
      mechanism                     A         time       ×floor
      shm-ring:wait=spin      12.8 µs  +1.0% ±6.3%  +1.0% ±6.3%  no difference found
      pipe:capacity=1M        38.3 µs  +1.0% ±6.3%  +1.0% ±6.3%  no difference found

    cost, same-core (cpu 1), per operation
      operation                     A         time       ×floor
      getpid                  58.5 ns  +1.0% ±6.3%  +0.0% ±6.1%  no difference found

    floors: what became of the host
      floor                          A         time        on
      null                    0.424 ns  +1.0% ±6.0%     cpu 1  no difference found
      syscall                  61.5 ns  +1.0% ±6.0%     cpu 1  no difference found
      context-switch           1.89 µs  +1.0% ±7.9%     cpu 1  cannot tell
      cache-line                143 ns  +1.0% ±6.0%  cpus 1,0  no difference found
      memcpy 1                 1.61 ns  +1.0% ±6.0%     cpu 1  no difference found
      memcpy 4K                82.7 ns  +1.0% ±6.0%     cpu 1  no difference found
      memcpy 64K               9.08 µs  +1.0% ±6.0%     cpu 1  no difference found
      context-switch: its interval reaches beyond ±5%: give both runs more time

    notes
      time    of B over A; ± holds for all cases together and allows for what
              differs from run to run
      ×floor  the same of the multiples of the floor in each round (for operations,
              of a bare system call): the mechanism, not the host
      margin  no difference found: the 95% interval of the case alone lies within
              ±5%

    only in A
      write-devnull cost 4K same-core

    only in B
      tcp latency 4K same-core
    "#);
}

#[test]
fn pairs_in_80_columns() {
    insta::assert_snapshot!(paired(&pairs(), &PLAIN), @r#"
    B against A, measured in turn in every round
      pair                                rounds         time
      unix-stream against pipe, latency       30   +38% ±1.4%  slower
        4K same-core
      fifo against pipe, latency 4K           30  +0.0% ±1.0%  no difference found
        same-core
      tcp against pipe, latency 4K             4  +176%     -  cannot tell
        same-core
      tcp against pipe, latency 4K same-core: 4 rounds are too few for 2 pairs

    notes
      time  of B over A in the same round, median over rounds; ± holds for all pairs
            together
    "#);
}

/// The fixture with `text` wherever a file can put text, and `number` wherever it can put a number.
fn hostile(text: &str, number: f64, size: u64) -> Results {
    let mut results = results_with_study();
    let header = &mut results.header;
    if let Some(study) = &mut header.study {
        (study.title, study.source) = (text.to_owned(), text.to_owned());
        (study.tables[0].name, study.tables[0].columns[0]) = (text.to_owned(), text.to_owned());
        (study.figures[0].title, study.figures[0].series[0].name) = (text.to_owned(), text.to_owned());
        study.conclusions[0].claim = text.to_owned();
    }
    let known = || Fact::Known(text.to_owned());
    (header.host.name, header.host.kernel, header.host.cpu) =
        (known(), known(), Fact::Unknown(text.to_owned()));
    (header.host.virtualisation, header.tool.profile, header.run) =
        (known(), text.to_owned(), text.to_owned());
    (header.started_at, header.settings.suite) = (text.to_owned(), Some(text.to_owned()));
    (header.clock.precision_ns, header.clock.cost_ns, header.settings.precision.0) = (number, number, number);
    for dropped in &mut header.plan.dropped {
        (dropped.case, dropped.reason) = (text.to_owned(), text.to_owned());
    }
    results.notes = vec![text.to_owned()];
    let estimate = Estimate { median: number, interval: Some((number / 2.0, number)) };
    for (at, record) in results.records.iter_mut().enumerate() {
        if at % 2 == 0 {
            record.case.spec.name = text.to_owned();
            record.case.spec.params =
                serde_json::from_value(serde_json::json!({ text: text, "wait": text })).unwrap();
            record.case.size_bytes = record.case.size_bytes.map(|_| Size(size));
        }
        if let Some(summary) = &mut record.summary {
            (summary.iteration_ns, summary.client.cpu_ns, summary.client.faults) = (estimate, number, number);
            summary.client.voluntary_switches = number;
            summary.bytes_per_s = summary.bytes_per_s.map(|_| estimate);
            summary.floor_multiple = Some(estimate);
            summary.each_over_total = Some(estimate);
        }
        if let Outcome::Failed { error } = &mut record.outcome {
            *error = text.to_owned();
        }
        let (name, asked, got) = (text.to_owned(), text.to_owned(), text.to_owned());
        record.warnings.extend([
            Warning::Clamped { name, asked, got },
            Warning::TwoModes { fast_ns: number, slow_ns: number, fast_share: number },
            Warning::Preempted { per_iteration: number },
            Warning::InstrumentEffect { ratio: number },
            Warning::SampledCpuSplit { tick_ns: size },
        ]);
    }
    results
}

fn text() -> impl Strategy<Value = String> {
    let awkward = "[\\x00-\\x1f\\x7f-\\x9f\\u{200b}-\\u{202e}|`*<>\"',:=\\\\漢 a-z-]{0,120}";
    prop_oneof![any::<String>(), awkward.prop_map(|text: String| text), "[a-z]{300,500}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_content_breaks_a_format(text in text(), number in proptest::num::f64::ANY, size in any::<u64>(), width in 0..200usize) {
        let results = hostile(&text, number, size);
        let style = Style { width, color: false };
        let table = table(&results, &style);
        let compare = |other| comparison(&compare::compare(&results, other, compare::ComparisonOptions::default()), &style);
        let compared = compare(&results) + &compare(&fixture::results());
        let pair = compare::PairedRatios { name: text.clone(), log_ratios: vec![number; 10] };
        let paired = paired(&compare::compare_paired(&[pair], compare::ComparisonOptions::default()), &style);
        for line in [&table, &compared, &paired].into_iter().flat_map(|text| text.lines()) {
            prop_assert!(columns(line) <= width.max(80), "{} columns: {line}", columns(line));
            prop_assert_eq!(line, line.trim_end());
        }
        let csv = bytes(Format::Csv, &results);
        prop_assert_eq!(csv.lines().count(), results.records.len() + 1);
        for record in ::csv::Reader::from_reader(csv.as_bytes()).records() {
            record.unwrap();
        }
        let study_csv = bytes(Format::StudyCsv, &results);
        let numbers = ::csv::Reader::from_reader(study_csv.as_bytes()).into_records();
        prop_assert_eq!(study_csv.lines().count(), 1 + numbers.map(Result::unwrap).count());
        let json = bytes(Format::Json, &results);
        let document: serde_json::Value = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(document["notes"][0].as_str(), Some(text.as_str()));
        for shown in [table, compared, paired, markdown(&results), csv, study_csv, json] {
            let bad = shown.chars().find(|c| c.is_control() && *c != '\n');
            prop_assert_eq!(bad, None);
        }
    }
}

/// The fixture and a study-less input of it.
fn page(results: &Results) -> String {
    crate::html(&[crate::Input { results, study: None }], None, &["ipcmark".to_owned()]).unwrap()
}

/// The JSON that `page` carries.
fn island(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_page_of_a_metric_that_the_results_lack_is_refused() {
    let mut results = fixture::results();
    results.records.retain(|record| record.case.workload == Workload::Latency);
    let input = [crate::Input { results: &results, study: None }];
    let refused = crate::html(&input, Some("rate"), &[]).unwrap_err();
    assert_eq!(refused.problem, "unknown metric of these results 'rate'");
    assert!(refused.remedy.contains("known: cpu"), "{}", refused.remedy);
}

#[test]
fn a_page_is_one_file_that_fetches_nothing() {
    let page = page(&fixture::results());
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert!(page.contains("default-src 'none'"));
    // Three elements of scripts, of which two run, and none from elsewhere.
    assert_eq!(page.matches("<script").count(), 3);
    for elsewhere in ["src=", "href=\"http", "@import", "url("] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    assert!(!page.contains("{{"), "something was not filled in");
}

#[test]
fn a_page_says_what_the_sheet_says() {
    let results = fixture::results();
    let data = island(&page(&results));
    let run = &data["runs"][0];
    insta::assert_snapshot!(run["notices"].to_string(), @r#"["the hypervisor took 1.3% of the CPU time","1 of 14 cases failed","5 of 14 cases are not known to ±2%: they are marked !","the last line was cut off; it is left out"]"#);
    let blocks = run["blocks"].as_array().unwrap();
    assert_eq!(
        blocks.iter().map(|block| block["rows"].as_array().unwrap().len()).sum::<usize>(),
        results.records.len()
    );
    // One row in full: what it says, the same as numbers, and its percentiles.
    insta::assert_snapshot!(blocks[1]["rows"][0].to_string(), @r#"{"c":["2.14 µs ±0.7%","1.07 µs","3.46 µs","3.50 µs","2.10 µs","2.00","0","×1.4"],"n":[[2139.1,2124.2,2153.9],[1069.5,1062.1,1077.0],3461.0,3495.0,2096.3,2.0,0.0,[1.3836,1.374,1.3932]],"q":["2.10 µs","2.11 µs","2.12 µs","2.13 µs","2.14 µs","2.14 µs","3.46 µs","3.48 µs","3.50 µs"],"s":12}"#);
}

#[test]
fn two_runs_of_one_host_have_labels_of_their_own() {
    let (one, mut other) = (fixture::results(), fixture::later_results());
    other.header.run = "99aa".to_owned();
    let input = |results| crate::Input { results, study: None };
    let data = island(&crate::html(&[input(&one), input(&other)], None, &[]).unwrap());
    let labels: Vec<&str> =
        data["runs"].as_array().unwrap().iter().map(|run| run["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["vm-1 (4f2a)", "vm-1 (99aa)"]);
}

#[test]
fn figures_are_of_the_metric_asked_for_and_have_names_for_files() {
    let results = fixture::results();
    let inputs = [crate::Input { results: &results, study: None }];
    let drawings = crate::drawings(&inputs, Some("p99")).unwrap();
    let names: Vec<&str> = drawings.iter().map(|drawing| drawing.file_name.as_str()).collect();
    assert_eq!(names, ["latency-same-core", "latency-same-core-no-payload", "transfer-same-llc-64k"]);
    let Chart::Lines(figure) = &drawings[0].chart else { panic!("{drawings:?}") };
    let pipe = figure.series.iter().find(|series| series.name == "pipe").unwrap();
    let p99: Vec<f64> = pipe.points.iter().map(|point| point.y.median).collect();
    let expected = |at: usize| results.records[at].summary.as_ref().unwrap().quantiles.unwrap().p99_ns as f64;
    assert_eq!(p99, [expected(1), expected(5)]);
    assert!(crate::drawings(&inputs, Some("p9")).unwrap_err().remedy.contains("'p99'"));
    assert!(crate::drawings(&inputs, Some("user")).is_err(), "nothing here has that column");

    let svg = crate::svg(&drawings[0].chart);
    assert!(svg.contains("latency, same-core: p99 by message size") && svg.contains("unix-stream:buffer=8M"));
    let png = crate::png(&drawings[0].chart).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 10_000, "{} bytes", png.len());
}

/// The fixture, with empty messages in the place of those of one byte.
fn with_empty_messages() -> Results {
    let mut results = fixture::results();
    for record in &mut results.records {
        record.case.size_bytes =
            record.case.size_bytes.map(|Size(bytes)| Size(if bytes == 1 { 0 } else { bytes }));
        record.summary = analysis::summary::summarise(&record.case, &record.samples);
    }
    results
}

#[test]
fn empty_messages_are_in_every_format_and_beside_the_logarithmic_axes() {
    let results = with_empty_messages();
    let style = Style { width: 100, color: false };
    let table = table(&results, &style);
    assert!(table.contains("latency, 0 bytes, same-core"), "{table}");
    let all = [table, markdown(&results), bytes(Format::Csv, &results), bytes(Format::Json, &results)];
    for shown in all.iter().flat_map(|text| text.lines()) {
        let lower = shown.to_lowercase();
        assert!(
            !lower.split(|c: char| !c.is_alphanumeric()).any(|word| word == "nan" || word == "inf"),
            "{shown}"
        );
    }
    let drawings = crate::drawings(&[crate::Input { results: &results, study: None }], None).unwrap();
    let names: Vec<&str> = drawings.iter().map(|drawing| drawing.file_name.as_str()).collect();
    assert!(names.contains(&"latency-same-core-0-bytes"), "{names:?}");
    for drawing in &drawings {
        let svg = crate::svg(&drawing.chart);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

#[test]
fn what_has_one_size_or_none_is_drawn_side_by_side() {
    let results = fixture::results();
    let drawings = crate::drawings(&[crate::Input { results: &results, study: None }], None).unwrap();
    let names: Vec<&str> = drawings.iter().map(|drawing| drawing.file_name.as_str()).collect();
    assert_eq!(
        names,
        [
            "latency-same-core",
            "latency-same-core-no-payload",
            "throughput-same-llc-64k",
            "transfer-same-llc-64k",
            "cost-same-core"
        ]
    );
    let (mut study, nothing) =
        (analysis::study::evaluate_results(&results_with_study()).unwrap(), Vec::new());
    study.figures[0].series = nothing;
    let input = [crate::Input { results: &results, study: Some(&study) }];
    let with_study = crate::drawings(&input, None).unwrap();
    assert_eq!(with_study, drawings, "a figure of a study without lines is no file");

    let Chart::SideBySide(throughput) = &drawings[2].chart else { panic!("{drawings:?}") };
    let rows: Vec<&str> = throughput.rows.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(rows, ["shm-ring:wait=spin", "pipe:capacity=1M"], "the best first, as in the table");
    let summary = results.records.iter().find(|record| record.case.spec.to_string() == "pipe:capacity=1M");
    assert_eq!(throughput.rows[1].1, summary.unwrap().summary.as_ref().unwrap().bytes_per_s.unwrap());

    let svg = crate::svg(&drawings[2].chart);
    for words in ["throughput, same-llc, 64K: rate", "pipe:capacity=1M", "2.10 GB/s ±0.7%"] {
        assert!(svg.contains(words), "{words}\n{svg}");
    }
    let png = crate::png(&drawings[2].chart).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 5_000, "{} bytes", png.len());
}

#[test]
fn a_chart_for_the_terminal() {
    let results = fixture::results();
    let plot = crate::plot(&results, None, &PLAIN).unwrap();
    let two: Vec<&str> = plot.split_inclusive("\n\n").skip(1).take(2).collect();
    insta::assert_snapshot!(two.concat(), @r"
    round trip of latency, 1 byte, same-core (cpu 1), per round trip
      shm-ring:wait=futex                   2.14 µs   ●
      pipe                                  2.83 µs        ●───────┤
      unix-stream                           4.78 µs               ├──●──┤
                                                     ╵2 µs            ╵5 µs

    round trip of latency, 4K, same-core (cpu 1), per round trip
      pipe                                  3.32 µs           ●───────┤
      fifo                                  3.45 µs            ●───────┤
      unix-stream:buffer=8M,wait=spin-t…    4.45 µs                 ●
                                                     ╵2 µs            ╵5 µs
    ");
    assert!(crate::plot(&results, Some("zzz"), &PLAIN).is_err());
}

proptest! {
    // A page takes a while to search through, so that a failure is not made small for long.
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_text_stays_text(text in text(), number in proptest::num::f64::ANY, size in any::<u64>(), width in 0..200usize) {
        let results = hostile(&text, number, size);
        let page = page(&results);
        prop_assert_eq!(page.matches("<script").count(), 3);
        prop_assert_eq!(page.matches("</script").count(), 3);
        prop_assert_eq!(page.matches("<!--").count(), 0);
        let data = island(&page);
        prop_assert_eq!(data["runs"][0]["missing"][0].as_str().is_some(), true);
        let cleaned = crate::text::clean(&text);
        let notices = data["runs"][0]["notices"].as_array().unwrap();
        prop_assert_eq!(notices.last().unwrap().as_str(), Some(cleaned.as_str()));

        let style = Style { width, color: false };
        for line in crate::plot(&results, None, &style).unwrap().lines() {
            prop_assert!(columns(line) <= width.max(80), "{} columns: {line}", columns(line));
        }
        for drawing in crate::drawings(&[crate::Input { results: &results, study: None }], None).unwrap_or_default() {
            let svg = crate::svg(&drawing.chart);
            prop_assert!(!svg.contains("<script") && !svg.contains("<img"), "{}", svg);
            prop_assert!(drawing.file_name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        }
    }
}
