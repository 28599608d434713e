//! Results files with summaries in them: what is written is read back, and no damage panics in reading or summarising.

use crate::summary::{recompute, summarise_alone};
use model::histogram::Histogram;
use model::observation::profile::CallProfile;
use model::record::{CallCounts, Each, Fact, Outcome, Setting, Usage};
use model::record::{Results, TimedCalls};
use model::results::*;
use model::testing::{self, HEADER};
use model::topology::CpuPair;
use model::warning::Warning;
use model::{Case, Invalid, Line, Record, Sample, Size};
use model::{Endpoints, Placement, Spec, Workload};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::{BufReader, Read};

const END: &str = concat!(
    r#"{"type":"end","interrupted":false,"rounds":8,"elapsed_ns":1000,"stolen":{"unknown":"no field"},"#,
    r#""clock_drift":1e-6}"#,
    "\n"
);

fn read(text: impl AsRef<[u8]>) -> Result<Results, Invalid> {
    parse(text.as_ref(), "r.jsonl")
}

fn problem(text: impl AsRef<[u8]>) -> String {
    let invalid = read(text).unwrap_err();
    assert!(!invalid.remedy.is_empty(), "{invalid}");
    invalid.problem
}

fn text_of(results: &Results) -> String {
    let mut text = to_line(&Line::Header(Box::new(results.header.clone())));
    let records = results.records.iter().map(|record| to_line(&Line::Record(Box::new(record.clone()))));
    text.extend(records);
    text.extend(results.end.iter().map(|end| to_line(&Line::End(end.clone()))));
    text
}

/// As a run writes it.
fn streamed(results: &Results) -> String {
    testing::lines(results).iter().map(to_line).collect()
}

fn record(name: &str, samples: Vec<Sample>) -> Record {
    Record { summary: summarise_alone(&case(name), &samples), ..testing::record(case(name), samples) }
}

fn case(name: &str) -> Case {
    Case {
        workload: Workload::Latency,
        size_bytes: Some(Size(64)),
        placement: Placement::SameCore,
        cpus: Some(CpuPair { client: 1, server: 1 }),
        endpoints: Endpoints::Processes,
        pace: model::Pace::BackToBack,
        inject: None,
        peers: model::Peers::Pair,
        spec: Spec::plain(name),
    }
}

fn sample(round: u32, elapsed_ns: f64) -> Sample {
    Sample { iterations: 1000, elapsed_ns, ..testing::sample(round, 1.0, Some(700.0)) }
}

fn small() -> Results {
    let samples: Vec<Sample> = (0..8).map(|round| sample(round, 1e6 + f64::from(round))).collect();
    let mut results = read(HEADER).unwrap();
    results.records = vec![record("pipe", samples), record("fifo", Vec::new())];
    results.header.plan.cases = vec![case("fifo"), case("pipe"), case("tcp")];
    results.end = read([HEADER, END].concat()).unwrap().end;
    results
}

fn line_with(from: &str, to: &str) -> String {
    let text = text_of(&small());
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

#[test]
fn a_whole_file_is_read_back_as_it_was() {
    let results = small();
    assert_eq!(read(text_of(&results)).unwrap(), results);
    assert_eq!(read(streamed(&results)).unwrap(), results);
    assert!(results.notes.is_empty());
}

/// The lines of [`small`] as a run writes them: the header, eight samples, the records of pipe and fifo, the end.
fn streamed_lines() -> Vec<String> {
    let lines: Vec<String> = streamed(&small()).lines().map(|line| format!("{line}\n")).collect();
    assert_eq!(lines.len(), 12);
    lines
}

#[test]
fn a_run_that_was_cut_off_keeps_every_complete_sample() {
    let (whole, text) = (small(), streamed(&small()));
    let header_bytes = text.find('\n').unwrap();
    for cut in header_bytes..text.len() {
        let mut read = read(&text.as_bytes()[..cut]).unwrap();
        let complete = text.match_indices('\n').filter(|(at, _)| *at <= cut).count() - 1;
        let samples = &whole.records[0].samples[..complete.min(8)];
        assert_eq!(read.end.is_some(), complete == 11, "cut at {cut}");
        match (complete, read.records.as_slice()) {
            (0, []) => {}
            (1..=8, [unfinished]) => {
                assert_eq!(unfinished.case, case("pipe"));
                assert_eq!((&unfinished.outcome, unfinished.floor), (&Outcome::Interrupted, false));
                assert_eq!((&unfinished.samples[..], &unfinished.summary), (samples, &None));
            }
            (9.., records) => assert_eq!(records, &whole.records[..(complete - 8).min(2)], "cut at {cut}"),
            (_, records) => panic!("cut at {cut}, after {complete} lines: {records:?}"),
        }
        recompute(&mut read);
        let summaries = read.records.iter().filter_map(|record| record.summary.as_ref());
        assert!(summaries.map(|summary| summary.slices as usize).eq((complete > 0).then_some(samples.len())));
    }
}

#[test]
fn cases_without_a_record_come_last_in_the_order_of_the_plan_and_know_whether_they_are_floors() {
    let mut results = small();
    let floor = model::record::FloorReading { case: case("tcp"), iteration_ns: Some(5.0) };
    results.header.floors = vec![floor];
    let samples = |name: &str| testing::record(case(name), vec![sample(0, 1e6)]);
    results.records = vec![samples("tcp"), samples("pipe"), record("fifo", vec![sample(0, 2e6)])];
    let mut lines: Vec<String> = testing::lines(&results).iter().map(to_line).collect();
    // The records of tcp and pipe.
    lines.drain(4..6);
    let read = read(lines.concat()).unwrap();
    let records: Vec<_> =
        read.records.iter().map(|r| (r.case.spec.name.as_str(), r.floor, r.samples.len())).collect();
    assert_eq!(records, [("fifo", false, 1), ("pipe", false, 1), ("tcp", true, 1)]);
    assert!(read.end.is_some());
}

#[test]
fn samples_that_belong_to_no_case_or_come_twice_are_refused_with_their_line() {
    let lines = streamed_lines();
    let edited = |edit: &dyn Fn(&mut Vec<String>)| {
        let mut lines = lines.clone();
        edit(&mut lines);
        problem(lines.concat())
    };
    for place in ["3", "4294967295"] {
        let to = format!(r#""case":{place}"#);
        let found = edited(&|lines| lines[3] = lines[3].replacen(r#""case":1"#, &to, 1));
        assert!(found.contains("line 4: its case is at place"), "{found}");
        assert!(found.contains("of a plan of 3 cases"), "{found}");
    }
    for place in ["-1", "4294967296", "1.5", "null", "\"pipe\""] {
        let to = format!(r#""case":{place}"#);
        let found = edited(&|lines| lines[3] = lines[3].replacen(r#""case":1"#, &to, 1));
        assert!(found.contains("broken at line 4"), "{place}: {found}");
    }
    let after_its_record = edited(&|lines| {
        let sample = lines.remove(8);
        lines.insert(9, sample);
    });
    assert!(
        after_its_record.contains("line 10: it is a sample of a case that had its record"),
        "{after_its_record}"
    );
    let with_samples = text_of(&small()).lines().nth(1).unwrap().to_owned() + "\n";
    let twice = edited(&|lines| lines[9].clone_from(&with_samples));
    assert!(twice.contains("line 10: it has samples, and its case had some"), "{twice}");
    let no_header = problem(&lines[1]);
    assert!(no_header.contains("has no header"), "{no_header}");
    let found = edited(&|lines| lines[0] = lines[0].replacen(r#""name":"fifo""#, r#""name":"pipe""#, 1));
    assert!(found.contains("line 1: plan.cases must be cases that differ"), "{found}");
}

#[test]
fn a_sample_that_cannot_be_is_refused_wherever_it_stands() {
    let reading =
        |ns: &str| format!(r#""speed":{{"client":{{"before_ns":{ns},"after_ns":1.0}}}},"iterations":1000,"#);
    let pair = |ns: &str| {
        let good = r#"{"before_ns":1.0,"after_ns":2.0}"#;
        format!(
            r#""speed":{{"client":{good},"server":{good},"pair":{{"before_ns":1.0,"after_ns":{ns}}}}},"iterations":1000,"#
        )
    };
    let schedule = |slope: &str| {
        format!(r#""schedule":{{"span_ns":1.0,"late_ns":0.0,"backlog_slope":{slope}}},"iterations":1000,"#)
    };
    let iterations = r#""iterations":1000,"#;
    for good in [reading("1.0"), pair("3.0"), schedule("-0.5"), format!(r#""stolen_ns":7,{iterations}"#)] {
        for text in [text_of(&small()), streamed(&small())] {
            read(text.replacen(iterations, &good, 1)).unwrap();
        }
    }
    let bad_numbers = ["0.0", "-1.0", "1e300", "1e999", "null", "\"1\""];
    let speeds = bad_numbers.iter().flat_map(|ns| [reading(ns), pair(ns)]);
    let others = [
        schedule("1e300"),
        schedule("-1e999"),
        format!(r#""stolen_ns":18446744073709551615,{iterations}"#),
        format!(r#""stolen_ns":-1,{iterations}"#),
        format!(r#""wake_floor_ns":0.0,{iterations}"#),
        format!(r#""wake_floor_ns":-7.5,{iterations}"#),
        r#""iterations":0,"#.to_owned(),
    ];
    for bad in speeds.chain(others) {
        for text in [text_of(&small()), streamed(&small())] {
            let found = problem(text.replacen(iterations, &bad, 1));
            assert!(found.contains("broken at line 2"), "{bad}: {found}");
        }
    }
    let many_trials = streamed(&small()).replacen(r#""trial":0"#, r#""trial":4294967295"#, 1);
    assert!(problem(many_trials).contains("line 2: trial must be below"));
}

#[test]
fn a_summary_of_speeds_that_cannot_be_is_refused() {
    let mut results = small();
    let slope = model::summary::SpeedSlope { slope: 0.7, interval: (0.6, 0.8) };
    let summary = results.records[0].summary.as_mut().unwrap();
    summary.speed = Some(model::summary::SpeedSummary {
        as_found_ns: Some(160.5),
        median_speed: 0.75,
        client: Some(slope),
        server: None,
        pair: None,
        wake: None,
    });
    let modes = model::estimate::Modes { fast: 1.0, slow: 2.0, fast_share: 0.5, slow_speed: Some(0.625) };
    summary.modes = Some(modes);
    let text = text_of(&results);
    assert_eq!(read(&text).unwrap(), results);
    for (from, to) in [
        (r#""as_found_ns":160.5"#, r#""as_found_ns":0.0"#),
        (r#""median_speed":0.75"#, r#""median_speed":0.0"#),
        (r#""median_speed":0.75"#, r#""median_speed":1e300"#),
        (r#""interval":[0.6,0.8]"#, r#""interval":[0.8,0.6]"#),
        (r#""slow_speed":0.625"#, r#""slow_speed":0.0"#),
        (r#""slow_speed":0.625"#, r#""slow_speed":1.5"#),
    ] {
        assert!(text.contains(from), "{from}");
        let found = problem(text.replacen(from, to, 1));
        assert!(found.contains("line 2: summary."), "{to}: {found}");
    }
}

#[test]
fn a_file_cut_anywhere_keeps_every_complete_record() {
    let (whole, text) = (small(), text_of(&small()));
    let header_bytes = text.find('\n').unwrap();
    for cut in 0..text.len() {
        let part = &text.as_bytes()[..cut];
        if cut < header_bytes {
            let problem = problem(part);
            assert!(problem.contains("cut off") || problem.contains("not a results file") || cut == 0);
            continue;
        }
        let read = read(part).unwrap();
        // A line counts once all but its newline is there.
        let complete = text.match_indices('\n').filter(|(at, _)| *at <= cut).count() - 1;
        assert_eq!(read.records, whole.records[..complete.min(whole.records.len())], "cut at {cut}");
        assert_eq!(read.end.is_some(), complete > whole.records.len());
        let between = part.ends_with(b"\n") || text.as_bytes()[cut] == b'\n';
        assert_eq!(read.notes.is_empty(), between, "cut at {cut}: {:?}", read.notes);
    }
}

#[test]
fn a_last_line_of_rubbish_is_dropped_with_a_note_and_one_in_the_middle_is_not() {
    let cut = read([HEADER, "{\"type\":\"rec\u{fffd}\n"].concat()).unwrap();
    assert!(cut.notes[0].starts_with("line 2, the last, was cut off"), "{:?}", cut.notes);
    let not_utf8 = [HEADER.as_bytes(), b"{\"type\":\"rec\xff"].concat();
    assert_eq!(read(&not_utf8).unwrap().notes.len(), 1);
    let middle = [&not_utf8[..], b"\"}\n", END.as_bytes()].concat();
    assert!(problem(middle).contains("broken at line 2: it is not UTF-8"));
    assert!(problem([HEADER, "{\"type\":\n", END].concat()).contains("line 2: it is not JSON: EOF"));
    assert!(problem([HEADER, "\n{}\n"].concat()).contains("line 3: it has no type"));
}

#[test]
fn what_is_no_results_file_is_refused_by_what_it_is() {
    for (text, says) in [
        ("", "is empty"),
        ("\n\n", "is not a results file"),
        ("hello", "does not begin with a JSON object"),
        ("[1,2]\n", "does not begin with a JSON object"),
        ("{\n  \"type\": 1\n}", "it is not JSON"),
        ("{}", "names no format"),
        (r#"{"format":"other"}"#, "its format is 'other'"),
        (r#"{"format":7}"#, "is not a results file"),
        (r#"{"format":"ipcmark-results"}"#, "names no version"),
        (
            r#"{"format":"ipcmark-results","version":9}"#,
            "has version 9 of the results format; this ipcmark reads version 1",
        ),
        (r#"{"format":"ipcmark-results","version":0}"#, "has version 0"),
        (r#"{"type":"record"}"#, "has no header"),
        (END, "has no header"),
        (&HEADER[..100], "was cut off within its header"),
    ] {
        let found = problem(text);
        assert!(found.contains(says), "{text}: {found}");
        assert!(found.contains("'r.jsonl'"), "{found}");
    }
    let newer = read(r#"{"format":"ipcmark-results","version":2}"#).unwrap_err();
    assert!(newer.remedy.contains("or a later one"), "{newer}");
}

/// A profile whose timeline has `events` of the client, which was observed from 10 to 100.
fn profile_line(events: &str) -> String {
    let event = |at_ns| format!(r#"{{"t":{at_ns},"e":"o","p":false}}"#);
    let events: Vec<String> = events.split(' ').map(event).collect();
    format!(
        concat!(
            r#"{{"type":"profile","case":{case},"probe":"timeline","round":1,"profile":{{"known":{{"iterations":2,"#,
            r#""iteration_ns":50.0,"effect":1.5,"client":{{}},"timeline":{{"call_names":{{}},"observation":{{"iterations":2,"#,
            r#""elapsed_ns":100.0,"client":{{"tid":1,"from_ns":10,"until_ns":100,"events":[{events}]}}}}}}}}}}}}"#,
            "\n"
        ),
        case = serde_json::to_string(&small().records[0].case).unwrap(),
        events = events.join(","),
    )
}

#[test]
fn profiles_are_read_back_and_kept_apart_from_records() {
    let results = read([HEADER, &profile_line("10 50 100"), END].concat()).unwrap();
    assert_eq!((results.records.len(), results.profiles.len()), (0, 1));
    let again = to_line(&Line::Profile(Box::new(results.profiles[0].clone())));
    assert_eq!(read([HEADER, &again].concat()).unwrap().profiles, results.profiles);
    // The third argument of openat(2) is no count, and mmap(2) returns an address.
    let mut of_addresses = results.profiles[0].clone();
    let Fact::Known(profile) = &mut of_addresses.profile else { panic!("{of_addresses:?}") };
    profile.client.calls.push(CallProfile {
        name: "mmap".to_owned(),
        count: 2,
        per_iteration: 1.0,
        time: Histogram::new().encode(),
        mean_ns: 9.0,
        errors: BTreeMap::new(),
        restarts: 0,
        returned: Vec::new(),
        returned_sum: i64::MIN,
        asked_sum: u64::MAX,
    });
    let line = to_line(&Line::Profile(Box::new(of_addresses.clone())));
    assert_eq!(read([HEADER, &line].concat()).unwrap().profiles, [of_addresses]);
    // What is worked out of events trusts their order.
    for events in ["50 10", "9 50", "50 101"] {
        let problem = problem([HEADER, &profile_line(events), END].concat());
        assert!(problem.contains("line 2: timeline.events must be within their time"), "{problem}");
    }
    for (from, to) in [
        ("\"iteration_ns\":50.0", "\"iteration_ns\":0.0"),
        ("\"effect\":1.5", "\"effect\":0.0"),
        ("\"until_ns\":100", "\"until_ns\":9000000000000000000"),
        ("\"client\":{}", "\"client\":{\"subsystems\":{\"copy\":99999999999999999}}"),
    ] {
        let problem = problem([HEADER, &profile_line("50").replacen(from, to, 1), END].concat());
        assert!(problem.contains("must be"), "{to}: {problem}");
    }
}

#[test]
fn order_and_repetition_are_checked() {
    let text = text_of(&small());
    let record = text.lines().nth(1).unwrap();
    assert!(problem([HEADER, HEADER].concat()).contains("line 2: there is a second header"));
    assert!(problem([HEADER, END, record].concat()).contains("line 3: it stands after the end"));
    assert!(problem([HEADER, record, "\n", record].concat()).contains("line 3: it repeats the case"));
    assert!(problem([HEADER, r#"{"type":"footer"}"#].concat()).contains("its type 'footer' is unknown"));
}

#[test]
fn what_cannot_be_is_refused_with_its_line() {
    for (from, to) in [
        (r#""iterations":1000,"#, r#""iterations":0,"#),
        (r#""iterations":1000,"#, r#""iterations":-1,"#),
        (r#""iterations":1000,"#, r#""iterations":18446744073709551615,"#),
        (r#""elapsed_ns":1000000.0"#, r#""elapsed_ns":0"#),
        (r#""elapsed_ns":1000000.0"#, r#""elapsed_ns":-1.5"#),
        (r#""elapsed_ns":1000000.0"#, r#""elapsed_ns":1e300"#),
        (r#""elapsed_ns":1000000.0"#, r#""elapsed_ns":1e999"#),
        (r#""elapsed_ns":1000000.0"#, r#""elapsed_ns":null"#),
        (r#""floor_ns":700.0"#, r#""floor_ns":0.0"#),
        (r#""cpu_ns":0"#, r#""cpu_ns":18446744073709551615"#),
        (r#""size_bytes":64"#, r#""size_bytes":1073741825"#),
        (r#""name":"pipe""#, r#""name":"\u001b[2J""#),
    ] {
        // The plan of the header has cases too: this is of the records.
        let text = text_of(&small());
        let (header, records) = text.split_once('\n').unwrap();
        assert!(records.contains(from), "{from}");
        let found = problem([header, "\n", &records.replacen(from, to, 1)].concat());
        assert!(found.contains("broken at line 2"), "{to}: {found}");
        assert!(!found.contains('\u{1b}'), "{found:?}");
    }
    assert!(
        problem(line_with(r#""precision":0.02"#, r#""precision":0"#)).contains("line 1: settings.precision")
    );
    let deep = ["{\"type\":\"record\",\"case\":", &"[".repeat(100_000), "\n"].concat();
    assert!(problem([HEADER, &deep, END].concat()).contains("broken at line 2"));
}

#[test]
fn endless_input_is_refused_soon() {
    let endless = |byte| BufReader::new(std::io::repeat(byte));
    let zeros = parse(endless(0), "/dev/zero").unwrap_err();
    assert!(zeros.problem.contains("does not begin with"), "{zeros}");
    let spaces = parse(HEADER.as_bytes().chain(endless(b' ')), "x").unwrap_err();
    assert!(spaces.problem.contains("line 2: the line is longer than 64M bytes"), "{spaces}");
    let braces = parse(endless(b'{'), "x").unwrap_err();
    assert!(braces.problem.contains("line 1: the line is longer"), "{braces}");
}

#[test]
fn a_failing_reader_is_named() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("is a directory"))
        }
    }
    let error = parse(BufReader::new(Failing), "d").unwrap_err();
    assert!(error.problem.contains("'d' cannot be read at line 1: is a directory"), "{error}");
}

fn times() -> impl Strategy<Value = f64> {
    (-2.0..6.0f64).prop_map(|exponent| 10f64.powf(exponent))
}

fn histograms() -> impl Strategy<Value = Histogram> {
    proptest::collection::vec(1..1_000_000_000u64, 1..20).prop_map(|values| {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    })
}

fn usages() -> impl Strategy<Value = Usage> {
    proptest::array::uniform7(0..LARGEST_COUNT).prop_map(
        |[cpu_ns, user_ns, system_ns, voluntary, involuntary, minor_faults, major_faults]| Usage {
            cpu_ns,
            user_ns,
            system_ns,
            voluntary_switches: voluntary,
            involuntary_switches: involuntary,
            minor_faults,
            major_faults,
        },
    )
}

fn calls() -> impl Strategy<Value = TimedCalls> {
    let counts = || {
        (0..LARGEST_COUNT, histograms(), proptest::collection::vec((1..9999u64, 1..99u64), 0..4)).prop_map(
            |(count, time, returned_bytes)| CallCounts { count, time: time.encode(), returned_bytes },
        )
    };
    (1..LARGEST_COUNT, counts(), counts()).prop_map(|(messages, send, receive)| TimedCalls {
        messages,
        send,
        receive,
    })
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let each = (times(), histograms())
        .prop_map(|(mean_ns, iterations)| Each { mean_ns, iterations: iterations.encode() });
    let one = (
        1..1_000_000u64,
        times(),
        proptest::option::of(times()),
        proptest::option::of(each),
        usages(),
        proptest::option::of(usages()),
        proptest::option::of(calls()),
    );
    let one = one.prop_map(|(iterations, iteration_ns, floor_ns, each, client, server, calls)| Sample {
        iterations,
        elapsed_ns: iteration_ns * iterations as f64,
        wake_floor_ns: floor_ns.map(|ns| ns * 2.0),
        floor_ns,
        each,
        client,
        server,
        calls,
        ..sample(0, 1.0)
    });
    proptest::collection::vec(one, 0..10).prop_map(|mut samples| {
        samples.iter_mut().zip(0..).for_each(|(sample, round)| sample.round = round);
        samples
    })
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Settled),
        Just(Outcome::Unsettled),
        Just(Outcome::Interrupted),
        (0.0..1.0).prop_map(|achieved| Outcome::Missed { achieved }),
        ".{0,30}".prop_map(|error| Outcome::Failed { error }),
    ]
}

fn files() -> impl Strategy<Value = Results> {
    let one = (samples(), outcomes(), any::<bool>(), ".{0,20}", times());
    (proptest::collection::vec(one, 0..4), any::<bool>()).prop_map(|(records, ended)| {
        let mut results = small();
        // Of one case more the records have their samples themselves.
        results.header.plan.cases = (0..3).rev().map(|nth| case(&format!("row-{nth}"))).collect();
        let records = records.into_iter().enumerate();
        results.records = records
            .map(|(nth, (samples, outcome, floor, text, ns))| Record {
                outcome,
                floor,
                settings: vec![Setting {
                    name: text.clone(),
                    asked: Some(text.clone()),
                    got: text,
                    clamped: floor,
                    usual: None,
                }],
                warnings: vec![Warning::TwoModes {
                    fast_ns: ns,
                    slow_ns: ns * 1.5,
                    fast_share: 0.3,
                    slow_speed: None,
                }],
                ..record(&format!("row-{nth}"), samples)
            })
            .collect();
        results.end = results.end.filter(|_| ended);
        if let Some(end) = &mut results.end {
            end.stolen = Fact::Known(0.1);
        }
        results
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_file_survives_its_own_text(results in files()) {
        let mut back = read(text_of(&results)).unwrap();
        prop_assert_eq!(&back, &results);
        prop_assert_eq!(&read(streamed(&results)).unwrap(), &results);
        recompute(&mut back);
        let once = back.clone();
        recompute(&mut back);
        prop_assert_eq!(back, once);
    }

    #[test]
    fn no_damage_panics(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        for text in [text_of(&small()), streamed(&small())] {
            let mut text = text.into_bytes();
            let at = at.index(text.len());
            text[at] = byte;
            if let Ok(mut results) = read(&text) {
                recompute(&mut results);
            }
        }
    }
}
