//! What was recorded, as text, picture and page: nothing is wider than a terminal, and no name becomes markup.

use crate::text::layout::Style;
use crate::{recording, recording_html, recording_svg};
use analysis::recording::AnalysedScenario;
use model::Spec;
use model::scenario::{
    Begin, Concurrency, Flow, Mix, Process, RecordedFlow, RecordedProcess, Recording, Scenario,
};
use model::units::{Nanoseconds, Size};

/// A chain of processes, each of which asks the next; `text` stands wherever text can.
fn chain(count: usize, text: &str) -> Scenario {
    let process = |at: usize| Process {
        name: format!("{text}-{at}"),
        cpus: Vec::new(),
        roots: Concurrency::Together,
        serves: Concurrency::InTurn,
        recorded: (at > 0).then_some(RecordedProcess {
            cpu: 0.5,
            switches_per_s: 1e6,
            in_calls: 0.1,
            waited: 0.3,
        }),
    };
    let flow = |at: usize| Flow {
        name: format!("{text}-{at}-{}", at + 1),
        from: at,
        to: at + 1,
        mechanism: Spec::plain("unix-seqpacket"),
        size: Mix::only(Size(4096)),
        reply: at.is_multiple_of(2).then(|| Mix::only(Size(100))),
        messages: 1,
        fds: 0,
        read: None,
        begin: match at {
            0 => Begin::Closed { think_time: Mix::only(Nanoseconds(0)) },
            _ => Begin::After { flow: at - 1, per_message: 0.333 },
        },
        client_work: Mix::only(Nanoseconds(1)),
        server_work: Mix::only(Nanoseconds(1)),
        recorded: Some(RecordedFlow {
            messages: 1_000,
            per_s: 123_456.0,
            round_trip: Some(Mix::only(Nanoseconds(44_000))),
            client_waited: 0.77,
            server_waited: 0.02 * at as f64,
            partial_reads: 0.0,
            on_one_cpu: None,
            held_back: None,
        }),
    };
    Scenario {
        name: text.to_owned(),
        summary: format!("{text} and others"),
        recorded: Some(Recording {
            command: text.to_owned(),
            seconds: 8.0,
            by: "tracepoints".to_owned(),
            host: text.to_owned(),
            slowdown: Some(0.04),
            slowdown_interval: Some([-0.01, 0.09]),
            unseen: vec![format!("3 × messages of {text} to itself are in no flow"); 3],
        }),
        processes: (0..=count).map(process).collect(),
        flows: (0..count).map(flow).collect(),
    }
}

#[test]
fn the_summary_fits_80_columns_and_says_what_it_cost() {
    for (count, text) in
        [(1, "a"), (40, "postgres"), (3, "a-process-with-a-very-long-name-that-goes-on-and-on")]
    {
        let scenario = chain(count, text);
        let shown = recording(&AnalysedScenario::from_scenario(&scenario), &Style::default());
        assert!(shown.lines().all(|line| crate::words::width(line) <= 80), "{shown}");
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let cost = "took 4.0% more time while it was recorded (1.0% less time to 9.0% more time)";
        for says in [cost, "20% of the CPU time", "44.0 µs", "What is not in it"] {
            assert!(words.contains(says), "{says}: {shown}");
        }
    }
}

#[test]
fn the_summary_is_laid_out_so() {
    let scenario = chain(2, "node");
    insta::assert_snapshot!(recording(&AnalysedScenario::from_scenario(&scenario), &Style::default()));
}

#[test]
fn a_program_that_took_several_times_the_time_is_not_said_to_have_changed_by_percents() {
    let mut scenario = chain(1, "a");
    let recorded = scenario.recorded.as_mut().unwrap();
    (recorded.slowdown, recorded.slowdown_interval) = (Some(1.68), Some([1.5, 1.9]));
    let shown = recording(&AnalysedScenario::from_scenario(&scenario), &Style::default());
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let says = "took 2.68 times the time while it was recorded (2.50 times the time to 2.90 times the time)";
    assert!(words.contains(says), "{shown}");
}

#[test]
fn the_picture_has_every_process_and_every_flow() {
    let scenario = chain(5, "node");
    let svg = recording_svg(&AnalysedScenario::from_scenario(&scenario));
    (0..=5).for_each(|at| assert!(svg.contains(&format!("\nnode-{at}\n</text>")), "{at}: {svg}"));
    assert_eq!(svg.matches("per s, size").count(), 5);
    assert!(svg.contains("not recorded"));
}

#[test]
fn no_text_becomes_markup() {
    for text in ["<script>alert(1)</script>", "\"><img src=x>", "a\u{202e}b", "{{body}}"] {
        let scenario = chain(2, text);
        let analysed = AnalysedScenario::from_scenario(&scenario);
        for shown in [recording_svg(&analysed), recording_html(&analysed, &[text.to_owned()])] {
            assert!(
                !shown.contains("<script") && !shown.contains("<img") && !shown.contains('\u{202e}'),
                "{shown}"
            );
            assert!(shown.contains("and others"));
        }
        assert!(!recording(&analysed, &Style::default()).contains('\u{202e}'));
    }
}
