//! A study in words.

use crate::quantity::estimate;
use crate::text::layout::{self, Style};
use crate::text::study::study;
use analysis::study::evaluated::{
    EvaluatedCell, EvaluatedConclusion, EvaluatedFigure, EvaluatedRow, EvaluatedSeries, EvaluatedStudy,
    EvaluatedTable, EvaluatedTest, FigureAxis, FigurePoint, StudyVerdict, UndrawnFigures,
};
use model::estimate::Estimate;
use model::units::Unit;

fn value(median: f64, unit: Unit) -> EvaluatedCell {
    EvaluatedCell::Value(Estimate { median, interval: None }, unit)
}

fn evaluated() -> EvaluatedStudy {
    let row = |name: &str, published, cells| EvaluatedRow { name: name.to_owned(), published, cells };
    let here = Estimate { median: 2_800.0, interval: Some((2_700.0, 2_900.0)) };
    let points =
        (0..17).map(|n| FigurePoint { x: f64::from(1 << n), y: Estimate { median: 100.0, interval: None } });
    let axis = |title: &str, unit| FigureAxis { title: title.to_owned(), unit, logarithmic: true };
    EvaluatedStudy {
        title: "A study".to_owned(),
        source: "of 1996".to_owned(),
        tables: vec![
            EvaluatedTable {
                name: "Table 20".to_owned(),
                title: "A call".to_owned(),
                columns: vec!["a call".to_owned(), "calls a second".to_owned()],
                rows: vec![
                    row("then", true, vec![value(3_200.0, Unit::Ns), value(312_500.0, Unit::Number)]),
                    row(
                        "here",
                        false,
                        vec![
                            EvaluatedCell::Value(here, Unit::Ns),
                            EvaluatedCell::Missing("no clock".to_owned()),
                        ],
                    ),
                ],
                notes: vec!["half of two".to_owned()],
            },
            EvaluatedTable {
                name: "Table 25".to_owned(),
                title: "What to use".to_owned(),
                columns: vec!["small".to_owned(), "big".to_owned()],
                rows: vec![row(
                    "connection-oriented, reliable",
                    false,
                    vec![
                        EvaluatedCell::Words(
                            "pipes, FIFOs, sockets and so on; not distinguished from it: queues".to_owned(),
                        ),
                        EvaluatedCell::Empty,
                    ],
                )],
                notes: Vec::new(),
            },
            EvaluatedTable {
                name: "Table 1".to_owned(),
                title: "On its side".to_owned(),
                columns: ["a", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec(),
                rows: vec![row("then", true, vec![EvaluatedCell::Words("x".to_owned()); 6])],
                notes: Vec::new(),
            },
        ],
        figures: vec![EvaluatedFigure {
            name: "Figure 32".to_owned(),
            title: "Throughput".to_owned(),
            x: axis("message size", Unit::Bytes),
            y: axis("rate", Unit::Ns),
            series: vec![EvaluatedSeries {
                name: "pipe".to_owned(),
                published: false,
                points: points.collect(),
            }],
            timeline: None,
            missing: vec!["mq: too large".to_owned()],
            notes: Vec::new(),
        }],
        stacks: Vec::new(),
        undrawn: vec![UndrawnFigures {
            names: vec!["Figure 42".to_owned(), "Figure 44".to_owned()],
            reason: "needs a second host".to_owned(),
        }],
        conclusions: vec![
            EvaluatedConclusion {
                claim: "Queues are slow".to_owned(),
                verdict: StudyVerdict::DoesNotHold,
                tests: vec![EvaluatedTest {
                    name: "queue over pipe".to_owned(),
                    unit: Unit::Number,
                    at_least: None,
                    at_most: Some(1.0),
                    published: None,
                    numbers: Vec::new(),
                    evidence: "queue over pipe: 1.20 (1.10 to 1.30); wanted at most 1".to_owned(),
                }],
                longer: None,
            },
            EvaluatedConclusion {
                claim: "Two hosts differ".to_owned(),
                verdict: StudyVerdict::CannotBeMeasured("needs a second host".to_owned()),
                tests: Vec::new(),
                longer: None,
            },
            EvaluatedConclusion {
                claim: "Pipes are fast".to_owned(),
                verdict: StudyVerdict::NotTestedLongEnough,
                tests: Vec::new(),
                longer: Some("a run with --time 2m would probably decide it".to_owned()),
            },
        ],
    }
}

const TEXT: &str = "
A study: of 1996

does it hold here?
  does not hold            Queues are slow
                             queue over pipe: 1.20 (1.10 to 1.30); wanted at
                               most 1
  cannot be measured here  Two hosts differ
                             needs a second host
  not tested long enough   Pipes are fast
                             a run with --time 2m would probably decide it

Table 20: A call
                 a call  calls a second
  then †        3.20 µs          312500
  here    2.80 µs ±3.6%               -
  half of two
  here, calls a second: no clock

Table 25: What to use
  connection-oriented, reliable
    small: pipes, FIFOs, sockets and so on; not distinguished from it: queues

Table 1: On its side
     then †
  a       x
  b       x
  c       x
  d       x
  e       x
  f       x

Figure 32: Throughput, rate
             1      16     256      4K     64K
  pipe  100 ns  100 ns  100 ns  100 ns  100 ns
  mq: too large

Not drawn
  Figure 42, Figure 44: needs a second host
";

#[test]
fn what_is_known_to_some_percent_has_three_digits() {
    let number = |median, interval| estimate(Estimate { median, interval }, Unit::Number);
    assert_eq!(number(6_264_068.3, Some((5.4e6, 7.2e6))), "6260000 ±14%");
    assert_eq!(number(65_536.0, Some((65_536.0, 65_536.0))), "65536", "counted, the same in every trial");
    assert_eq!(number(312_500.0, None), "312500", "published so");
}

#[test]
fn a_reason_that_several_conclusions_share_is_given_once() {
    let mut evaluated = evaluated();
    let lost = |claim: &str, case: &str| EvaluatedConclusion {
        claim: claim.to_owned(),
        verdict: StudyVerdict::CannotBeMeasured(format!("{case}: no counters; get them")),
        tests: vec![EvaluatedTest {
            name: "t".to_owned(),
            unit: Unit::Number,
            at_least: None,
            at_most: Some(1.0),
            published: None,
            numbers: Vec::new(),
            evidence: format!("t: not measured: {case}: no counters; get them; wanted at most 1"),
        }],
        longer: None,
    };
    evaluated.conclusions = vec![lost("a", "pipe 1K"), lost("b", "tcp 1K")];
    let evidence: Vec<String> =
        study(&evaluated).conclusions.into_iter().flat_map(|concluded| concluded.evidence).collect();
    let first = "t: not measured: pipe 1K: no counters; get them; wanted at most 1";
    assert_eq!(evidence, [first, "t: not measured: tcp 1K: as above; wanted at most 1"]);
}

#[test]
fn a_study_in_a_terminal() {
    let text = layout::finish(&layout::study(&study(&evaluated()), &Style::default()));
    assert_eq!(text, TEXT);
}

#[test]
fn without_evidence_what_would_decide_a_conclusion_stands_below_it() {
    let lines = layout::verdicts(&study(&evaluated()).conclusions[1..], false, &Style::default());
    let expected = [
        "  cannot be measured here  Two hosts differ",
        "                             needs a second host",
        "  not tested long enough   Pipes are fast",
        "                             a run with --time 2m would probably decide it",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_wide_terminal_and_colours_say_the_same() {
    let text = layout::finish(&layout::study(
        &study(&evaluated()),
        &Style { width: 120, color: true, detail: true },
    ));
    assert!(text.contains("\u{1b}[31m  does not hold"), "{text}");
    assert!(text.contains("not distinguished from it: queues"), "{text}");
}
