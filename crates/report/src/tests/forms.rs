//! Every other form of results, as snapshots.

use super::{PLAIN, bytes, markdown, results_with_study, study_bytes};
use crate::{Format, fixture};
use analysis::analysed::AnalysedResults;
use model::record::Results;

#[test]
fn markdown_says_what_the_table_says() {
    insta::assert_snapshot!(markdown(&fixture::results()), @r"
    ## ipcmark 0.1.0, suite default, run 4f2a, 2025-11-21T20:47:00Z

    **Fastest round trip**

    - one core: shm-ring:wait=futex at 1 B (1.5x pipe, 2.2x unix-stream); pipe and fifo tie at 4 KiB

    **Highest rate**

    - two cores: shm-ring:wait=spin (at 64 KiB: 2.3x pipe:capacity=1M). Of those that sleep: pipe:capacity=1M

    **Highest rate of a transfer**

    - two cores: shm-ring:wait=spin (at 64 KiB: 3.0x pipe:capacity=1M). Of those that sleep: pipe:capacity=1M

    Host: noisy. Values of one core are good to ±15%, of two to ±6%; --time 20m would give about ±5% and ±2%. The hypervisor took 1.3% of the CPU time. See 'ipcmark doctor'.

    Note: the last line was cut off; it is left out

    - **host** vm-1, Intel(R) Xeon(R) Platinum 8481C, 2 CPUs, kvm guest
    - **kernel** 6.12.8 \#1 SMP PREEMPT\_DYNAMIC Fri Jan 10 12:00:00 UTC 2025
    - **run** 34 rounds in 118 s, 4.0% of it starting trials; 8 of 14 cases settled to ±2%, 1 failed; 1.3% of CPU time stolen
    - **instrument** clock tsc, precision 0.370 ns, read 21.0 ns; reading it in every iteration adds 1.2% (median over cases)
    - **note** the last line was cut off; it is left out

    ### latency, no payload, same-core (cpu 1), per round trip

    | mechanism | round trip | rtt/2 | p99 | p99.9 | cpu | switches | faults |  |
    | :-- | --: | --: | --: | --: | --: | --: | --: | :-- |
    | eventfd | 2.34 µs ±0.4% | 1.17 µs | 3.79 µs | 3.83 µs | 2.29 µs | 2.00 | 0 |  |

    - floor: context-switch = 1.88 µs

    ### latency, 1 byte, same-core (cpu 1), per round trip

    | mechanism | round trip | rtt/2 | p99 | p99.9 | cpu | switches | faults | ×floor |  |
    | :-- | --: | --: | --: | --: | --: | --: | --: | --: | :-- |
    | shm-ring:wait=futex | 2.14 µs ±0.4% | 1.07 µs | 3.46 µs | 3.50 µs | 2.10 µs | 2.00 | 0 | ×1.4 |  |
    | pipe | 3.31 µs ±15% | 1.66 µs | 4.58 µs | 6.89 µs | 3.32 µs | 2.00 | 0 | ×2.1 | \!m |
    | unix-stream | 4.76 µs ±9.1% | 2.38 µs | 7.58 µs | 9.16 µs | 4.68 µs | 2.00 | 0 | ×3.1 | \! |

    - floor: context-switch + 4 × memcpy = 1.89 µs
    - m two modes: pipe 2.82 µs in 60% of slices, else 4.23 µs

    ### latency, 4K, same-core (cpu 1), per round trip

    | mechanism | round trip | rtt/2 | p99 | p99.9 | cpu | switches | faults | ×floor |  |
    | :-- | --: | --: | --: | --: | --: | --: | --: | --: | :-- |
    | pipe | 3.89 µs ±15% | 1.94 µs | 5.38 µs | 8.09 µs | 3.90 µs | 2.00 | 0 | ×2.0 | \!m |
    | fifo | 4.03 µs ±15% | 2.01 µs | 5.58 µs | 8.38 µs | 4.04 µs | 2.00 | 0 | ×2.1 | \!m |
    | unix-stream:buffer=8M,wait=spin-then-block | 4.45 µs ±0.4% | 2.22 µs | 7.20 µs | 7.27 µs | 4.36 µs | 2.00 | 0 | ×2.3 | c |
    | posix-mq | failed | - | - | - | - | - | - | - |  |

    - floor: context-switch + 4 × memcpy = 2.21 µs
    - m two modes: pipe 3.31 µs in 60% of slices, else 4.97 µs; fifo 3.44 µs in 60% of slices, else 5.15 µs
    - c clamped: unix-stream:buffer=8M,wait=spin-then-block SO\_SNDBUF asked for 8M, got 416K
    - posix-mq failed: mq\_open /ipcmark-4f2a-0: too many open files (EMFILE); the queue's bytes are charged to RLIMIT\_MSGQUEUE: raise it with ulimit -q

    ### throughput, 64K, same-llc (cpus 1,0), per message

    | mechanism | rate | time | cpu | switches | faults | ×floor |  |
    | :-- | --: | --: | --: | --: | --: | --: | :-- |
    | shm-ring:wait=spin | 4.79 GB/s ±9.1% | 13.7 µs | 27.4 µs | 0 | 0 | ×1.5 | \! |
    | pipe:capacity=1M | 2.10 GB/s ±0.4% | 31.3 µs | 30.7 µs | 2.00 | 0 | ×3.5 |  |

    - floor: shared-copy = 9.08 µs

    ### transfer, 64K, same-llc (cpus 1,0), per acknowledged message

    | mechanism | rate | time | p99 | p99.9 | cpu | switches | faults | ×floor | ×wake |  |
    | :-- | --: | --: | --: | --: | --: | --: | --: | --: | --: | :-- |
    | shm-ring:wait=spin | 5.11 GB/s ±0.4% | 12.8 µs | 20.7 µs | 20.9 µs | 25.6 µs | 0 | 0 | ×1.4 | - |  |
    | pipe:capacity=1M | 1.71 GB/s ±0.4% | 38.3 µs | 62.0 µs | 62.7 µs | 37.6 µs | 2.00 | 0 | ×4.3 | ×1.3 |  |

    - floor: shared-copy = 9.18 µs; of those that sleep: remote-wake + shared-copy - cache-line = 29.2 µs

    ### cost, same-core (cpu 1), per operation

    | operation | time | cpu | switches | faults |  |
    | :-- | --: | --: | --: | --: | :-- |
    | getpid | 58.5 ns ±0.4% | 28.7 ns | 1.00 | 0 |  |
    | write-devnull 4K | 214 ns ±0.4% | 105 ns | 1.00 | 0 |  |

    ### floors: the least that this machine takes

    | floor | time | of one | on |  |
    | :-- | --: | --: | --: | :-- |
    | null | 0.424 ns ±0.4% | round trip | cpu 1 |  |
    | syscall | 61.5 ns ±0.4% | operation | cpu 1 |  |
    | context-switch | 1.88 µs ±9.1% | round trip | cpu 1 | \! |
    | cache-line | 143 ns ±0.4% | round trip | cpus 1,0 |  |
    | remote-wake | 20.2 µs ±0.4% | round trip | cpus 1,0 |  |
    | shared-copy 64K | 9.08 µs ±0.4% | message | cpus 1,0 |  |
    | shared-copy 64K | 9.18 µs ±0.4% | acknowledged message | cpus 1,0 |  |
    | memcpy 1 | 1.61 ns ±0.4% | operation | cpu 1 |  |
    | memcpy 4K | 82.7 ns ±0.4% | operation | cpu 1 |  |

    ### notes

    - **±** half the 95% interval of the median
    - **p99** 99% of iterations take at most this; every iteration timed, all trials together
    - **cpu** CPU time of both endpoints; switches: context switches of both
    - **×floor** time over that of the floor beside it; median over slices
    - **×wake** time over that of the floor that wakes a sleeper on the other CPU; only of cases that sleep
    - **\!** unsettled: the 95% interval is wider than was asked for; give it more --time, or measure fewer cases
    - **m** two modes: the slices fall into a fast and a slow group; the fast mode is the mechanism undisturbed; quiet the host, or run again
    - **c** clamped: the kernel granted another value than was asked for; ask for less, or raise the limit that 'ipcmark list NAME' names

    ### not measured

    - posix-mq latency 16K same-core, posix-mq latency 64K same-core, posix-mq latency 256K same-core and 1 more: its largest message here is 8192 bytes; /proc/sys/fs/mqueue/msgsize\_max
    - pipe latency smt: smt: this process may use no core with two hardware threads (CPUs 0,1)
    - tcp latency 4K same-core: not finished when the run ended
    ");
}

#[test]
fn csv_has_a_line_a_case() {
    let mut results = fixture::results();
    results
        .records
        .retain(|record| record.case.spec.name == "unix-stream" || record.case.spec.name == "posix-mq");
    insta::assert_snapshot!(bytes(Format::Csv, &results), @r#"
    run,workload,size_bytes,placement,cpu_client,cpu_server,endpoints,name,params,floor,outcome,trials,slices,iterations,iteration_ns_median,iteration_ns_low,iteration_ns_high,as_found_ns,host_speed_median,client_speed_slope,server_speed_slope,pair_slope,wake_slope,rate_bytes_per_s_median,rate_bytes_per_s_low,rate_bytes_per_s_high,p50_ns,p90_ns,p99_ns,p99_low_ns,p99_high_ns,p999_ns,max_ns,each_over_total_median,each_over_total_low,each_over_total_high,floor_multiple_median,floor_multiple_low,floor_multiple_high,client_cpu_ns,client_user_ns,client_system_ns,client_voluntary_switches,client_involuntary_switches,client_faults,server_cpu_ns,server_user_ns,server_system_ns,server_voluntary_switches,server_involuntary_switches,server_faults,fast_mode_ns,slow_mode_ns,fast_mode_share,warnings,error,wake_floor_multiple_median,wake_floor_multiple_low,wake_floor_multiple_high,lost,lost_low,lost_high,client_link,client_link_mbit_per_s,client_mtu_bytes,client_retransmitted,client_dropped,client_host_retransmitted,client_host_udp_errors,client_host_udp_no_room,server_link,server_link_mbit_per_s,server_mtu_bytes,server_retransmitted,server_dropped,server_host_retransmitted,server_host_udp_errors,server_host_udp_no_room,total_ns,stalled_slices,longest_stall_ns,elsewhere_slices
    4f2a,latency,1,same-core,1,1,processes,unix-stream,,false,unsettled,10,10,10000,4763.191795112285,4351.517096284826,5213.812924323614,,,,,,,,,,4835,5611,7579,6631,8847,9159,9159,1.012,1.012,1.012,3.082702408059375,2.719596885216784,3.4942877704824125,2340.975,0,0,1,0,0,2340.975,0,0,1,0,0,,,,"unsettled: the 95% interval is ±9.1%, and ±2.0% was asked for",,,,,,,,,,,,,,,,,,,,,,,,4777.5,0,,0
    4f2a,latency,4096,same-core,1,1,processes,unix-stream,"buffer=8M,wait=spin-then-block",false,settled,10,10,10000,4449.658350230852,4430.263581244749,4469.13802546624,,,,,,,,,,4419,4455,7199,7155,7255,7271,7271,1.012,1.012,1.012,2.3419286864631412,2.2405631750607875,2.4478800836893044,2180.3477,0,0,1,0,0,2180.3477,0,0,1,0,0,,,,"SO_SNDBUF: asked for 8M, got 416K",,,,,,,,,,,,,,,,,,,,,,,,4449.69,0,,0
    4f2a,latency,4096,same-core,1,1,processes,posix-mq,,false,failed,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,mq_open /ipcmark-4f2a-0: too many open files (EMFILE); the queue's bytes are charged to RLIMIT_MSGQUEUE: raise it with ulimit -q,,,,,,,,,,,,,,,,,,,,,,,,,,0
    "#);
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
    for &format in Format::ALL {
        let error = format.write(&AnalysedResults::from_results(&results), &PLAIN, Gone).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "{format}: {error}");
    }
}

#[test]
fn csv_of_a_study_has_a_line_a_number() {
    insta::assert_snapshot!(study_bytes(Format::Csv, &results_with_study()), @"
    run,part,name,row,column,x_bytes,published,value,low,high,unit,words,missing,at_least,at_most,verdict
    4f2a,table,Table 1,then,1 byte,,true,3000,,,ns,,,,,
    4f2a,table,Table 1,here,1 byte,,false,3309.905231153277,2900.665452135052,3776.882518855108,ns,,,,,
    4f2a,table,Table 1,here,words,,false,,,,,,no words,,,
    4f2a,figure,Figure 1,pipe,a round trip,1,false,3309.905231153277,2900.665452135052,3776.882518855108,ns,,,,,
    4f2a,figure,Figure 1,pipe,a round trip,4096,false,3887.077317724486,3406.475442000148,4435.484808631574,ns,,,,,
    4f2a,figure,Figure 1,pipe,a round trip,4096,true,4000,,,ns,,,,,
    4f2a,conclusion,Large messages take longer,4K over 1,,,true,1.5,,,number,,,1,,not tested long enough
    4f2a,conclusion,Large messages take longer,4K over 1,,,false,1.1743772241992874,0.9804055934010429,1.4067258224564878,number,,,1,,not tested long enough
    ");
    // Without a study there are names alone.
    assert_eq!(study_bytes(Format::Csv, &fixture::results()).lines().count(), 1);
}

#[test]
fn json_has_the_study_with_numbers_and_verdicts() {
    let json = |results: &Results| -> serde_json::Value {
        serde_json::from_str(&bytes(Format::Json, results)).unwrap()
    };
    let study = json(&results_with_study())["study"].take();
    let cells = &study["tables"][0]["rows"][1]["cells"];
    assert_eq!(cells[0]["value"]["unit"], "ns");
    assert_eq!(cells[1], serde_json::json!({ "missing": "no words" }));
    assert_eq!(study["tables"][0]["rows"][0]["cells"][1], "empty");
    let point = serde_json::json!({ "x": 4096.0, "y": { "median": 4000.0, "interval": null } });
    assert_eq!(
        study["figures"][0]["series"][1],
        serde_json::json!({ "name": "pipe", "published": true, "points": [point] })
    );
    let conclusion = &study["conclusions"][0];
    assert_eq!(
        (&conclusion["verdict"], &conclusion["tests"][0]["at_least"]),
        (&"not-tested-long-enough".into(), &1.0.into())
    );
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
          "client": 1,
          "server": 1
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
        "client": {
          "cpu_ns": 2340.975,
          "faults": 0.0,
          "involuntary_switches": 0.0,
          "system_ns": 0.0,
          "user_ns": 0.0,
          "voluntary_switches": 1.0
        },
        "each_over_total": {
          "interval": [
            1.012,
            1.012
          ],
          "median": 1.012
        },
        "floor_multiple": {
          "interval": [
            2.719596885216784,
            3.4942877704824125
          ],
          "median": 3.082702408059375
        },
        "iteration_ns": {
          "interval": [
            4351.517096284826,
            5213.812924323614
          ],
          "median": 4763.191795112285
        },
        "iterations": 10000,
        "modes": null,
        "quantiles": {
          "max_ns": 9159,
          "p50_ns": 4835,
          "p90_ns": 5611,
          "p999_ns": 9159,
          "p99_interval_ns": [
            6631,
            8847
          ],
          "p99_ns": 7579
        },
        "server": {
          "cpu_ns": 2340.975,
          "faults": 0.0,
          "involuntary_switches": 0.0,
          "system_ns": 0.0,
          "user_ns": 0.0,
          "voluntary_switches": 1.0
        },
        "slices": 10,
        "total_ns": 4777.5,
        "trials": 10
      },
      "warnings": [
        {
          "asked": 0.02,
          "kind": "unsettled",
          "reached": 0.09051659739207091
        }
      ]
    }
    "#);
    let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["end", "header", "notes", "records", "study"]);
}

#[test]
fn formats_have_names_that_parse() {
    for &format in Format::ALL {
        assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
    }
    assert!("tabel".parse::<Format>().unwrap_err().remedy.contains("'table'"));
}
