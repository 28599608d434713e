//! A study made by hand, with everything that a study can have in it. It tests nothing itself.

use crate::observed::{call_name, observation};
use analysis::study::evaluated::{
    EvaluatedBar, EvaluatedCell, EvaluatedConclusion, EvaluatedFigure, EvaluatedLayer, EvaluatedRow,
    EvaluatedSeries, EvaluatedStack, EvaluatedStudy, EvaluatedTable, EvaluatedTest, EvaluatedTimeline,
    FigureAxis, FigurePoint, StudyVerdict, UndrawnFigures,
};
use analysis::traces::timeline::chosen_iterations;
use model::estimate::Estimate;
use model::units::Unit;

/// Bandwidth by message size, published and measured, a table, and a conclusion of every kind.
pub fn study() -> EvaluatedStudy {
    let estimate = |median: f64| Estimate { median, interval: Some((median * 0.93, median * 1.12)) };
    let point = |x: f64, y: Estimate| FigurePoint { x, y };
    let published = |x: f64, y: f64| point(x, Estimate { median: y, interval: None });
    let rate = |name: &str, per_byte: f64| EvaluatedSeries {
        name: name.to_owned(),
        published: false,
        points: (6..=16)
            .map(|at| 2f64.powi(at))
            .map(|x| point(x, estimate(1e9 * x / (x + per_byte))))
            .collect(),
    };
    EvaluatedStudy {
        title: "An Example of a Study".to_owned(),
        source: "A. Author and B. Author, 1994, Proceedings of Examples".to_owned(),
        tables: vec![EvaluatedTable {
            name: "Table 7".to_owned(),
            title: "Round trips of one byte".to_owned(),
            columns: ["pipe", "TCP", "note"].map(str::to_owned).to_vec(),
            rows: vec![
                EvaluatedRow {
                    name: "SPARCstation 10".to_owned(),
                    published: true,
                    cells: vec![
                        EvaluatedCell::Value(Estimate { median: 278_000.0, interval: None }, Unit::Ns),
                        EvaluatedCell::Value(Estimate { median: 949_000.0, interval: None }, Unit::Ns),
                        EvaluatedCell::Words("as printed".to_owned()),
                    ],
                },
                EvaluatedRow {
                    name: "this host".to_owned(),
                    published: false,
                    cells: vec![
                        EvaluatedCell::Value(estimate(6_490.0), Unit::Ns),
                        EvaluatedCell::Missing("TCP is not permitted here".to_owned()),
                        EvaluatedCell::Empty,
                    ],
                },
            ],
            notes: vec!["The study calls half of this the latency.".to_owned()],
        }],
        figures: vec![
            EvaluatedFigure {
                name: "Figure 3".to_owned(),
                title: "Bandwidth by message size".to_owned(),
                x: FigureAxis {
                    title: "message size in bytes".to_owned(),
                    unit: Unit::Bytes,
                    logarithmic: true,
                },
                y: FigureAxis { title: "bandwidth".to_owned(), unit: Unit::BytesPerS, logarithmic: true },
                series: vec![
                    rate("pipe", 2000.0),
                    rate("unix-stream", 9000.0),
                    EvaluatedSeries {
                        name: "pipe".to_owned(),
                        published: true,
                        points: vec![
                            published(64.0, 1.1e6),
                            published(4096.0, 2.3e7),
                            published(65536.0, 3.1e7),
                        ],
                    },
                ],
                timeline: None,
                missing: vec!["mqueue: this kernel has none".to_owned()],
                notes: vec!["The study printed no intervals.".to_owned()],
            },
            EvaluatedFigure {
                name: "Figure 4".to_owned(),
                title: "Bandwidth between computers".to_owned(),
                x: FigureAxis {
                    title: "message size in bytes".to_owned(),
                    unit: Unit::Bytes,
                    logarithmic: true,
                },
                y: FigureAxis { title: "bandwidth".to_owned(), unit: Unit::Number, logarithmic: true },
                series: Vec::new(),
                timeline: None,
                missing: vec!["needs a second host".to_owned()],
                notes: Vec::new(),
            },
            EvaluatedFigure {
                name: "Figure 5".to_owned(),
                title: "Who runs when".to_owned(),
                x: FigureAxis {
                    title: "message size in bytes".to_owned(),
                    unit: Unit::Bytes,
                    logarithmic: true,
                },
                y: FigureAxis { title: String::new(), unit: Unit::Number, logarithmic: true },
                series: Vec::new(),
                timeline: Some(EvaluatedTimeline {
                    case: "pipe latency 64 same-core".to_owned(),
                    iterations: chosen_iterations(&observation(), 1, call_name),
                }),
                missing: Vec::new(),
                notes: vec!["The slow iteration has a page fault.".to_owned()],
            },
        ],
        stacks: vec![stack(estimate)],
        undrawn: vec![UndrawnFigures {
            names: vec!["Figure 42".to_owned(), "Figure 44".to_owned()],
            reason: "needs a second host".to_owned(),
        }],
        conclusions: vec![
            conclusion("Pipes move more than 10 MB/s.", StudyVerdict::Holds, &["pipe 680 MB/s ±9.5% at 4K"]),
            conclusion(
                "TCP is faster than pipes.",
                StudyVerdict::DoesNotHold,
                &["tcp 15.8 µs, pipe 6.49 µs"],
            ),
            conclusion("Sockets and pipes are alike.", StudyVerdict::NotTestedLongEnough, &[]),
            conclusion(
                "A remote call takes a millisecond.",
                StudyVerdict::CannotBeMeasured("one host".to_owned()),
                &[],
            ),
        ],
    }
}

/// A queue in Python, and the pipe under it.
fn stack(estimate: impl Fn(f64) -> Estimate) -> EvaluatedStack {
    let value = |ns: f64| EvaluatedCell::Value(estimate(ns), Unit::Ns);
    let layer = |name: &str, adds_ns: f64, so_far_ns: f64| EvaluatedLayer {
        name: name.to_owned(),
        adds: value(adds_ns),
        so_far: value(so_far_ns),
        share: None,
    };
    let pipe = [layer("the mechanism", 4_000.0, 4_000.0), layer("the runtime", 6_000.0, 10_000.0)];
    let queue = [pipe[0].clone(), pipe[1].clone(), layer("pickle, a feeder thread", 30_000.0, 40_000.0)];
    let bar = |name: &str, layers: &[EvaluatedLayer]| EvaluatedBar {
        name: name.to_owned(),
        layers: layers.to_vec(),
    };
    EvaluatedStack {
        name: "The layers".to_owned(),
        title: "what each adds".to_owned(),
        bars: vec![bar("pipe in Python", &pipe), bar("a queue in Python", &queue)],
    }
}

fn conclusion(claim: &str, verdict: StudyVerdict, evidence: &[&str]) -> EvaluatedConclusion {
    let test = |evidence: &&str| EvaluatedTest {
        name: "a test".to_owned(),
        unit: Unit::Number,
        at_least: None,
        at_most: Some(1.0),
        published: None,
        numbers: Vec::new(),
        evidence: (*evidence).to_owned(),
    };
    EvaluatedConclusion {
        claim: claim.to_owned(),
        verdict,
        tests: evidence.iter().map(test).collect(),
        longer: None,
    }
}

/// The same study with `text` wherever it can have text.
pub fn hostile_study(text: &str) -> EvaluatedStudy {
    let mut study = study();
    let all = |texts: &mut Vec<String>| texts.iter_mut().for_each(|one| *one = text.to_owned());
    (study.title, study.source) = (text.to_owned(), text.to_owned());
    for table in &mut study.tables {
        (table.name, table.title) = (text.to_owned(), text.to_owned());
        all(&mut table.columns);
        all(&mut table.notes);
        for row in &mut table.rows {
            row.name = text.to_owned();
            row.cells[1] = EvaluatedCell::Missing(text.to_owned());
            row.cells[2] = EvaluatedCell::Words(text.to_owned());
        }
    }
    for stack in &mut study.stacks {
        (stack.name, stack.title) = (text.to_owned(), text.to_owned());
        for bar in &mut stack.bars {
            bar.name = text.to_owned();
            bar.layers.iter_mut().for_each(|layer| layer.name = text.to_owned());
        }
    }
    for figure in &mut study.figures {
        (figure.name, figure.title) = (text.to_owned(), text.to_owned());
        (figure.x.title, figure.y.title) = (text.to_owned(), text.to_owned());
        all(&mut figure.missing);
        all(&mut figure.notes);
        figure.series.iter_mut().for_each(|series| series.name = text.to_owned());
        if let Some(timeline) = &mut figure.timeline {
            timeline.case = text.to_owned();
            let tracks = timeline.iterations.iter_mut().map(|iteration| &mut iteration.tracks);
            for track in
                tracks.flat_map(|tracks| std::iter::once(&mut tracks.client).chain(&mut tracks.server))
            {
                track.calls.iter_mut().for_each(|call| call.name = text.to_owned());
                track.faults.iter_mut().for_each(|fault| fault.mapping = Some(text.to_owned()));
            }
        }
    }
    for figures in &mut study.undrawn {
        all(&mut figures.names);
        figures.reason = text.to_owned();
    }
    for conclusion in &mut study.conclusions {
        conclusion.longer = Some(text.to_owned());
        conclusion.claim = text.to_owned();
        conclusion.verdict = StudyVerdict::CannotBeMeasured(text.to_owned());
        for test in &mut conclusion.tests {
            (test.name, test.evidence) = (text.to_owned(), text.to_owned());
        }
    }
    study
}
