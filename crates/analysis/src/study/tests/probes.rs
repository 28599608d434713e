//! Metrics of what probes observe, and which probes a study needs.

use super::super::evaluated::{self};
use super::fixture::*;
use model::Workload;
use model::observation::Probe;
use model::observation::profile::ProfileRecord;
use model::observation::subsystem::Subsystem;
use model::record::{Fact, Results};
use model::suite::Suite;

#[test]
fn what_probes_observe_is_counted_per_iteration() {
    let results = results_with_profiles();
    for (measure, expected) in [
        ("observed.client.read.calls", 1.0),
        ("observed.client.read.mean", 20.0),
        ("observed.client.read.bytes", 1024.0),
        ("asleep", 10.0),
        ("asleep.client", 10.0),
        ("asleep.server", 0.0),
        ("running", 90.0),
        ("counter.cycles", 200.0),
        ("counter.cycles:user.client", 50.0),
        ("in.copy", 0.75),
        ("4K / size of pipe at 1K * asleep", 40.0),
        ("in.scheduling.client", 0.25),
    ] {
        let cell = cell_in(&results, &format!("{measure} of pipe at 1K"));
        let evaluated::EvaluatedCell::Value(found, _) = cell else { panic!("{measure}: {cell:?}") };
        assert!(close(found.median, expected), "{measure}: {found:?}");
        assert!(found.interval.is_some(), "{measure}: eight rounds");
    }
    // A call that is not made is made 0 times, not -0.
    let evaluated::EvaluatedCell::Value(none, _) =
        cell_in(&results, "observed.server.lseek.calls of pipe at 1K")
    else {
        panic!()
    };
    assert!(none.median == 0.0 && none.median.is_sign_positive());
    let evaluated::EvaluatedCell::Value(effect, _) = cell_in(&results, "1 / effect.syscalls of pipe at 1K")
    else {
        panic!()
    };
    assert!((0.62..0.67).contains(&effect.median), "{effect:?}");
    assert_eq!(
        Subsystem::ALL.iter().map(|place| serde_json::to_value(place).unwrap()).collect::<Vec<_>>(),
        Subsystem::ALL.iter().map(|place| place.word()).collect::<Vec<_>>()
    );
}

#[test]
fn what_no_probe_observed_says_why() {
    let why = |results: &Results, measure: &str| match cell_in(results, measure) {
        evaluated::EvaluatedCell::Missing(why) => why,
        other => panic!("{other:?}"),
    };
    let mut results = results_with_profiles();
    let case_words = "pipe latency 1K same-core: ";
    let bus = why(&results, "counter.bus-cycles of pipe at 1K");
    assert_eq!(bus, format!("{case_words}this processor shows none"));
    let unknown = why(&results, "counter.tea of pipe at 1K");
    assert_eq!(unknown, format!("{case_words}it has no counter.tea"));
    results.profiles.retain(|record| record.probe != Probe::Scheduler);
    let none = why(&results, "asleep of pipe at 1K");
    assert!(none.ends_with("the run used no probes; give it time for them with --observe"), "{none}");
    results.header.settings.observe_ns = 1;
    let late = why(&results, "asleep of pipe at 1K");
    assert!(late.ends_with("give it more time with --observe"), "{late}");
    let refused = Fact::Unknown("no tracepoints; sudo".to_owned());
    results.profiles.push(ProfileRecord { profile: refused, ..profile_record(Probe::Scheduler, 1) });
    assert_eq!(why(&results, "asleep of pipe at 1K"), format!("{case_words}scheduler: no tracepoints; sudo"));
}

#[test]
fn trials_with_probes_and_without_share_no_rounds() {
    let evaluated::EvaluatedCell::Value(found, _) =
        cell_in(&results_with_profiles(), "asleep of pipe at 1K / time of pipe at 1K")
    else {
        panic!()
    };
    let (low, high) = found.interval.unwrap();
    assert!(
        low < found.median && found.median < high,
        "the time drifts tenfold, the sleep does not: {found:?}"
    );
}

#[test]
fn a_study_says_by_which_probes_it_wants_what_results_with_profiles() {
    let study = suite(
        "[[study.figure]]\nname = 'n'\ntitle = 't'\nseries = [{ name = 'l', of = 'asleep of pipe + asleep of tcp' }]\n\
         [[study.conclusion]]\nclaim = 'c'\ntests = [{ of = 'observed.server.read.calls of pipe at 2K', at_least = 1 }]",
    );
    let study = study.study.unwrap();
    let probes_of = |name, size| study.probes_of(&case(name, Workload::Latency, Some(size)));
    assert_eq!(probes_of("pipe", 1024), [Probe::Scheduler]);
    assert_eq!(probes_of("pipe", 2048), [Probe::Syscalls, Probe::Scheduler]);
    assert_eq!(probes_of("tcp", 4096), [Probe::Scheduler]);
    assert_eq!(probes_of("mq", 1024), []);
}

#[test]
fn probes_take_time_that_the_suite_must_give() {
    let table = "[[study.table]]\nname = 'n'\ntitle = 't'\ncolumns = ['c']\n\
                 rows = [{ name = 'r', cells = ['asleep of pipe at 1K'] }]";
    let suite = suite(table);
    // A run of half the time has half of it for probes, and a longer one has no more.
    let in_seconds = |seconds| suite.observe_in(std::time::Duration::from_secs(seconds)).as_secs();
    assert_eq!([30, 60, 600].map(in_seconds), [3, 6, 6]);
    let without = SUITE.replace("observe = \"6s\"\n", "");
    let said = Suite::parse(&format!("{without}{table}"), CARDS).unwrap_err();
    assert!(said.problem.contains("gives no time for them"), "{said}");
    assert!(said.remedy.contains("observe = "), "{said}");
    assert!(Suite::parse(&without, CARDS).is_ok());
}

#[test]
fn what_cannot_be_observed_is_refused() {
    let figure = |timeline: &str, more: &str| {
        format!("[[study.figure]]\nname = 'n'\ntitle = 't'\ntimeline = '{timeline}'\n{more}")
    };
    let (said, _) = refused(&figure("pipe", ""));
    assert!(said.contains("'pipe' is of several sizes"), "{said}");
    let (said, _) = refused(&figure("getpid", "series = [{ name = 'l', of = 'time of pipe' }]"));
    assert!(said.contains("lines or a timeline"), "{said}");
    let (said, _) = refused(&figure("tea", ""));
    assert!(said.contains("tea"), "{said}");
    let same_core = "placements = [\"same-core\"]\n";
    let paced = SUITE.replacen(same_core, &format!("{same_core}think_times = \"1us\"\n"), 1);
    let paced = paced.replace("stream = \"pipe throughput\"\n", "")
        + &figure("tcp", "").replace("timeline = 'tcp'", "series = [{ name = 'l', of = 'asleep of pipe' }]");
    let said = Suite::parse(&paced, CARDS).unwrap_err().problem;
    assert!(said.contains("'pipe' cannot be observed"), "{said}");
}
