//! Comparisons, as snapshots.

use super::PLAIN;
use crate::text::compared::{of_pairs, of_runs};
use crate::{comparison, comparison_html, fixture, paired, paired_html, planned};
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
            sides: ["pipe", name.split(' ').next().unwrap_or_default()].map(str::to_owned),
            what: "latency 4K same-core".to_owned(),
            median_ns: [4e3, 4e3 * f64::exp(log_ratio)].map(Some),
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
fn pages_say_their_answers_once() {
    let (compared, pairs, margin) = (compared(), pairs(), Percent(0.01));
    let pages = [
        (of_runs(&compared), comparison_html(&compared, &[])),
        (of_pairs(&pairs, margin), paired_html(&pairs, margin, &[])),
    ];
    for (sentences, page) in pages {
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        for sentence in sentences {
            assert_eq!(words.matches(&sentence).count(), 1, "{sentence}");
        }
    }
}

#[test]
fn a_ratio_that_its_times_do_not_have_is_said_to_be_of_one_speed() {
    let mut ratios = ratios();
    let said = |ratios: &[compare::PairedRatios]| {
        let pairs = compare::compare_paired(ratios, 34e9, compare::ComparisonOptions::interleaved());
        of_pairs(&pairs, Percent(0.01)).concat()
    };
    assert!(!said(&ratios).contains("had the host been as fast for both"));
    ratios[0].median_ns = [Some(4e3); 2];
    assert!(said(&ratios).contains("times), had the host been as fast for both."), "{}", said(&ratios));
}

#[test]
fn a_comparison_in_80_columns() {
    insta::assert_snapshot!(comparison(&compared(), &PLAIN), @"
    Of 13 cases B is slower in 0, faster in 1, no different in 2; 10 are undecided.
    shm-ring:wait=futex latency 1 same-core: B takes 1.60 µs, A 2.14 µs: 25% less
      (0.70 to 0.80 times).

      on average  time +1.8% ±7.6%, ×floor +1.7% ±16%, floors +1.0% ±2.2%
      run to run  time 0.8%, ×floor 0.8%, from the differences of all cases, most of
                  which are taken not to differ
      differs     kernel: 6.12.8 #1 SMP PREEMPT_DYNAMIC Fri Jan 10 12:00:00 UTC 2025
                  in A, 6.13.1 #1 SMP PREEMPT_DYNAMIC in B

    latency, no payload, same-core (cpu 1), per round trip
      mechanism                  A         time       ×floor  detects
      eventfd              2.34 µs  +1.0% ±5.8%  +0.0% ±4.1%     5.2%  no difference

    latency, 1 byte, same-core (cpu 1), per round trip
      mechanism                  A         time       ×floor  detects
      shm-ring:wait=futex  2.14 µs   -25% ±4.9%   -25% ±6.4%      11%  faster
      pipe                 3.31 µs  +1.0%  ±33%  +1.0%  ±84%     146%  undecided
      unix-stream          4.76 µs  +1.0%  ±19%  +1.0%  ±30%      42%  undecided
      pipe, unix-stream: its interval reaches beyond ±5%: give both runs more time,
        or more runs

    latency, 4K, same-core (cpu 1), per round trip
      mechanism                  A         time       ×floor  detects
      pipe                 3.89 µs  +1.0%  ±33%  +1.0%  ±84%     146%  undecided
      fifo                 4.03 µs   +50%  ±43%   +50%  ±98%     113%  undecided
      unix-stream:         4.45 µs  +1.0% ±6.3%  +1.0% ±8.2%      10%  undecided
        buffer=8M,
        wait=spin-then-bl
        ock
      posix-mq                   -            -            -        -  undecided
      pipe, unix-stream:buffer=8M,wait=spin-then-block: its interval reaches beyond
        ±5%: give both runs more time, or more runs
      fifo: its time changed; as a multiple of its floor that is not certain
      posix-mq: A has 0 of the 6 trials needed (mq_open /ipcmark-4f2a-0: too many
        open files (EMFILE); the queue's bytes are charged to RLIMIT_MSGQUEUE: raise
        it with ulimit -q); B has 0 of the 6 trials needed (mq_open /ipcmark-4f2a-0:
        too many open files (EMFILE); the queue's bytes are charged to
        RLIMIT_MSGQUEUE: raise it with ulimit -q)

    throughput, 64K, same-llc (cpus 1,0), per message
      mechanism                  A         time       ×floor  detects
      shm-ring:wait=spin   13.7 µs  +1.0%  ±19%  +1.0%  ±32%      45%  undecided
      pipe:capacity=1M     31.3 µs  +1.0% ±5.0%  +1.0% ±9.1%      11%  undecided
      shm-ring:wait=spin, pipe:capacity=1M: its interval reaches beyond ±5%: give
        both runs more time, or more runs

    transfer, 64K, same-llc (cpus 1,0), per acknowledged message
      mechanism                  A         time       ×floor  detects
      shm-ring:wait=spin   12.8 µs  +1.0% ±4.8%  +1.0% ±8.7%      11%  undecided
      pipe:capacity=1M     38.3 µs  +1.0% ±5.0%  +1.0% ±9.1%      11%  undecided
      shm-ring:wait=spin, pipe:capacity=1M: its interval reaches beyond ±5%: give
        both runs more time, or more runs

    cost, same-core (cpu 1), per operation
      operation                  A         time       ×floor  detects
      getpid               58.5 ns  +1.0% ±4.2%  +0.0% ±4.1%     5.2%  no difference

    floors: how the host changed
      floor                       A         time        on  detects
      null                 0.424 ns  +1.0% ±6.3%     cpu 1     8.2%  undecided
      syscall               61.5 ns  +1.0% ±4.4%     cpu 1     5.7%  no difference
      context-switch        1.88 µs  +1.0%  ±17%     cpu 1      24%  undecided
      cache-line             143 ns  +1.0% ±4.3%  cpus 1,0     5.7%  no difference
      remote-wake           20.2 µs  +1.0% ±4.3%  cpus 1,0     5.7%  no difference
      shared-copy 64K       9.08 µs  +1.0% ±4.6%  cpus 1,0     6.0%  no difference
      shared-copy 64K       9.18 µs  +1.0% ±4.6%  cpus 1,0     6.0%  no difference
      memcpy 1              1.61 ns  +1.0% ±4.7%     cpu 1     6.1%  no difference
      memcpy 4K             82.7 ns  +1.0% ±4.7%     cpu 1     6.1%  no difference
      null, context-switch: its interval reaches beyond ±5%: give both runs more
        time, or more runs

    notes
      time     time of B over that of A; intervals (±) have the variance between
               runs in them, and are such that few of the cases called faster or
               slower are neither
      ×floor   the same for the time over the floor in each round (where endpoints
               sleep on two CPUs: over the floor of a wake-up; for operations: over
               the speed readings), which leaves out how the host changed
      detects  the smallest difference that this comparison detects with a chance of
               80%
      margin   no difference: the 95% interval of the case alone lies within ±5%: of
               its ×floor, of its time where speed was read beside it, or of its
               time beside the other mechanisms on these CPUs, whichever is
               narrowest

    only in A
      write-devnull cost 4K same-core

    only in B
      tcp latency 4K same-core
    ");
}

#[test]
fn pairs_in_80_columns() {
    insta::assert_snapshot!(paired(&pairs(), Percent(0.01), &PLAIN), @"
    latency 4K same-core: unix-stream takes 5.40 µs, pipe 4.00 µs: 36% longer (1.35
      to 1.36 times).
    latency 4K same-core: fifo takes as long as pipe, 4.00 µs, within ±1%.
    latency 4K same-core: undecided: too few trials to tell.

    B against A, interleaved
      pair                               trials         time  detects
      unix-stream against pipe, latency      30   +36% ±0.4%     0.3%  slower
        4K same-core
      fifo against pipe, latency 4K          30  +0.0% ±0.3%     0.3%  no difference
        same-core
      tcp against pipe, latency 4K            4  +173%     -        -  undecided
        same-core
      tcp against pipe, latency 4K same-core: 4 pairs of trials allow no interval,
        which takes 8: give it --time 75s

    notes
      trials   pairs of trials alive at once
      time     time of B over that of A in slices side by side; intervals (±) hold
               at whatever time one stops
      detects  the smallest difference that this comparison detects with a chance of
               80%
    ");
}

#[test]
fn a_plan_in_80_columns() {
    let plan = compare::plan_paired(&ratios(), Percent(0.01), 2e8, compare::ComparisonOptions::interleaved());
    insta::assert_snapshot!(planned(&plan, &PLAIN), @r#"
    to find a difference of 1% with a chance of 80%
      pair                                trials    time  at most
      unix-stream against pipe, latency       11  2.20 s   2.60 s
        4K same-core
      fifo against pipe, latency 4K           11  2.20 s   2.60 s
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
