//! Comparisons, as snapshots.

use super::PLAIN;
use crate::{comparison, fixture, paired, planned};
use analysis::compare;
use model::Percent;

fn compared() -> compare::Comparison {
    compare::compare(
        &[fixture::results()],
        &[fixture::later_results()],
        compare::ComparisonOptions::default(),
    )
}

fn ratios() -> Vec<compare::PairedRatios> {
    let pair = |name: &str, log_ratio: f64, trial_pairs: u32| {
        let quadruple = |nth: u32| compare::QuadrupleRatio {
            log_ratio: log_ratio + 0.002 * f64::from(nth % 5),
            speed: None,
        };
        compare::PairedRatios {
            name: name.to_owned(),
            mechanism: name.to_owned(),
            trial_pairs: (0..trial_pairs).map(|nth| vec![quadruple(nth)]).collect(),
        }
    };
    vec![
        pair("unix-stream against pipe, latency 4K same-core", 0.3, 30),
        pair("fifo against pipe, latency 4K same-core", -0.004, 30),
        pair("tcp against pipe, latency 4K same-core", 1.0, 4),
    ]
}

fn pairs() -> Vec<compare::PairedComparison> {
    compare::compare_paired(&ratios(), 34e9, compare::ComparisonOptions::interleaved())
}

#[test]
fn a_comparison_in_80_columns() {
    insta::assert_snapshot!(comparison(&compared(), &PLAIN), @"
    B against A, 13 cases: 1 faster, 0 slower, 2 no difference found, 10 cannot tell
      on average  time +1.8% ±7.6%, ×floor +1.7% ±16%, floors +1.0% ±2.2%
      run to run  time 0.8%, ×floor 0.8%, from the differences of all cases, most of
                  which are taken not to differ
      differs     kernel: 6.12.8 #1 SMP PREEMPT_DYNAMIC Fri Jan 10 12:00:00 UTC 2025
                  in A, 6.13.1 #1 SMP PREEMPT_DYNAMIC in B

    latency, no payload, same-core (cpu 1), per round trip
      mechanism             A         time       ×floor   finds
      eventfd         2.34 µs  +1.0% ±5.8%  +0.0% ±4.1%    5.2%  no difference found

    latency, 1 byte, same-core (cpu 1), per round trip
      mechanism             A         time       ×floor   finds
      shm-ring:       2.14 µs   -25% ±4.9%   -25% ±6.4%     11%  faster
        wait=futex
      pipe            3.31 µs  +1.0%  ±33%  +1.0%  ±84%    146%  cannot tell
      unix-stream     4.76 µs  +1.0%  ±19%  +1.0%  ±30%     42%  cannot tell
      pipe, unix-stream: its interval reaches beyond ±5%: give both runs more time,
        or more runs

    latency, 4K, same-core (cpu 1), per round trip
      mechanism             A         time       ×floor   finds
      pipe            3.89 µs  +1.0%  ±33%  +1.0%  ±84%    146%  cannot tell
      fifo            4.03 µs   +50%  ±43%   +50%  ±98%    113%  cannot tell
      unix-stream:    4.45 µs  +1.0% ±6.3%  +1.0% ±8.2%     10%  cannot tell
        buffer=8M,
        wait=spin-th
        en-block
      posix-mq              -            -            -       -  cannot tell
      pipe, unix-stream:buffer=8M,wait=spin-then-block: its interval reaches beyond
        ±5%: give both runs more time, or more runs
      fifo: its time changed; as a multiple of its floor that is not certain
      posix-mq: A has 0 of the 6 trials needed (mq_open /ipcmark-4f2a-0: too many
        open files (EMFILE); the queue's bytes are charged to RLIMIT_MSGQUEUE: raise
        it with ulimit -q); B has 0 of the 6 trials needed (mq_open /ipcmark-4f2a-0:
        too many open files (EMFILE); the queue's bytes are charged to
        RLIMIT_MSGQUEUE: raise it with ulimit -q)

    throughput, 64K, same-llc (cpus 1,0), per message
      mechanism             A         time       ×floor   finds
      shm-ring:       13.7 µs  +1.0%  ±19%  +1.0%  ±32%     45%  cannot tell
        wait=spin
      pipe:           31.3 µs  +1.0% ±5.0%  +1.0% ±9.1%     11%  cannot tell
        capacity=1M
      shm-ring:wait=spin, pipe:capacity=1M: its interval reaches beyond ±5%: give
        both runs more time, or more runs

    transfer, 64K, same-llc (cpus 1,0), per acknowledged message
      mechanism             A         time       ×floor   finds
      shm-ring:       12.8 µs  +1.0% ±4.8%  +1.0% ±8.7%     11%  cannot tell
        wait=spin
      pipe:           38.3 µs  +1.0% ±5.0%  +1.0% ±9.1%     11%  cannot tell
        capacity=1M
      shm-ring:wait=spin, pipe:capacity=1M: its interval reaches beyond ±5%: give
        both runs more time, or more runs

    cost, same-core (cpu 1), per operation
      operation             A         time       ×floor   finds
      getpid          58.5 ns  +1.0% ±4.2%  +0.0% ±4.1%    5.2%  no difference found

    floors: how the host changed
      floor                  A         time        on   finds
      null            0.424 ns  +1.0% ±6.3%     cpu 1    8.2%  cannot tell
      syscall          61.5 ns  +1.0% ±4.4%     cpu 1    5.7%  no difference found
      context-switch   1.88 µs  +1.0%  ±17%     cpu 1     24%  cannot tell
      cache-line        143 ns  +1.0% ±4.3%  cpus 1,0    5.7%  no difference found
      remote-wake      20.2 µs  +1.0% ±4.3%  cpus 1,0    5.7%  no difference found
      shared-copy      9.08 µs  +1.0% ±4.6%  cpus 1,0    6.0%  no difference found
        64K
      shared-copy      9.18 µs  +1.0% ±4.6%  cpus 1,0    6.0%  no difference found
        64K
      memcpy 1         1.61 ns  +1.0% ±4.7%     cpu 1    6.1%  no difference found
      memcpy 4K        82.7 ns  +1.0% ±4.7%     cpu 1    6.1%  no difference found
      null, context-switch: its interval reaches beyond ±5%: give both runs more
        time, or more runs

    notes
      time    time of B over that of A; intervals (±) have the variance between runs
              in them, and are such that few of the cases called faster or slower
              are neither
      ×floor  the same for the time over the floor in each round (where endpoints
              sleep on two CPUs: over the floor of a wake-up; for operations: over
              the speed readings), which leaves out how the host changed
      finds   the smallest difference that this comparison finds with a chance of
              80%
      margin  no difference found: the 95% interval of the case alone lies within
              ±5%

    only in A
      write-devnull cost 4K same-core

    only in B
      tcp latency 4K same-core
    ");
}

#[test]
fn pairs_in_80_columns() {
    insta::assert_snapshot!(paired(&pairs(), &PLAIN), @r#"
    B against A, interleaved
      pair                          trials         time   finds
      unix-stream against pipe,         30   +36% ±0.4%    0.3%  slower
        latency 4K same-core
      fifo against pipe, latency        30  +0.0% ±0.3%    0.3%  no difference found
        4K same-core
      tcp against pipe, latency 4K       4  +173%     -       -  cannot tell
        same-core
      tcp against pipe, latency 4K same-core: 4 pairs of trials allow no interval,
        which takes 8: give it --time 75s

    notes
      trials  pairs of trials alive at once
      time    time of B over that of A in slices side by side; intervals (±) hold at
              whatever time one stops
      finds   the smallest difference that this comparison finds with a chance of
              80%
    "#);
}

#[test]
fn a_plan_in_80_columns() {
    let plan = compare::plan_paired(&ratios(), Percent(0.01), 2e8, compare::ComparisonOptions::interleaved());
    insta::assert_snapshot!(planned(&plan, &PLAIN), @r#"
    to find a difference of 1% with a chance of 80%
      pair                                trials    time  at most
      unix-stream against pipe, latency       13  2.60 s   3.20 s
        4K same-core
      fifo against pipe, latency 4K           13  2.60 s   3.20 s
        same-core
      tcp against pipe, latency 4K             -       -        -
        same-core

    notes
      trials   pairs of trials alive at once; absent where the pilot had too few of
               them
      time     what they take beside the other pairs, as the pilot went
      at most  the same if the pilot had an easy time: one in ten has a worse one
    "#);
}
