//! Comparisons, as snapshots.

use super::PLAIN;
use crate::{comparison, fixture, paired};
use analysis::compare;

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
      on average  time +1.8% ±8.4%, ×floor +1.7% ±12%, floors +1.0% ±2.0%
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
        it with ulimit -q); B has 0 of the 6 trials needed (mq_open /ipcmark-4f2a-0:
        too many open files (EMFILE); the queue's bytes are charged to
        RLIMIT_MSGQUEUE: raise it with ulimit -q)

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

    floors: how the host changed
      floor                          A         time        on
      null                    0.424 ns  +1.0% ±6.1%     cpu 1  no difference found
      syscall                  61.5 ns  +1.0% ±6.1%     cpu 1  no difference found
      context-switch           1.89 µs  +1.0% ±8.2%     cpu 1  cannot tell
      cache-line                143 ns  +1.0% ±6.1%  cpus 1,0  no difference found
      remote-wake              20.2 µs  +1.0% ±6.1%  cpus 1,0  no difference found
      shared-copy 64K          9.08 µs  +1.0% ±6.1%  cpus 1,0  no difference found
      shared-copy 64K          9.18 µs  +1.0% ±6.1%  cpus 1,0  no difference found
      memcpy 1                 1.61 ns  +1.0% ±6.1%     cpu 1  no difference found
      memcpy 4K                82.7 ns  +1.0% ±6.1%     cpu 1  no difference found
      context-switch: its interval reaches beyond ±5%: give both runs more time

    notes
      time    time of B over that of A; intervals (±) hold for all cases together
              and include the variance between runs
      ×floor  the same for the time over the floor in each round (for operations:
              over a bare system call), which leaves out how the host changed
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
    B against A, measured in the same rounds
      pair                                rounds         time
      unix-stream against pipe, latency       30   +38% ±1.4%  slower
        4K same-core
      fifo against pipe, latency 4K           30  +0.0% ±1.0%  no difference found
        same-core
      tcp against pipe, latency 4K             4  +176%     -  cannot tell
        same-core
      tcp against pipe, latency 4K same-core: 4 rounds are too few for 2 pairs

    notes
      time  time of B over that of A in the same round, median over rounds;
            intervals (±) hold for all pairs together
    "#);
}
