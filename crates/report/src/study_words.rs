//! A study in words: its conclusions, its tables, and of its figures some points, as grids that any text can show.
//!
//! How grids are laid out is `layout`'s and `markdown`'s; what the numbers are is the model's.

use crate::quantity::{rate_estimate, time_estimate};
use crate::text::{clean, clip};
use analysis::study::evaluated::{
    EvaluatedCell, EvaluatedConclusion, EvaluatedFigure, EvaluatedRow, EvaluatedSeries, EvaluatedStudy,
    EvaluatedTable, EvaluatedTimeline, StudyVerdict,
};
use analysis::traces::schedule::SchedulerState;
use analysis::traces::timeline::Iteration;
use model::EndpointRole;
use model::estimate::Estimate;
use model::units::Unit;
use model::units::{Size, format_ns, format_rate, three_digits};

/// Beside rows that are the study's own.
pub(crate) const PUBLISHED: &str = "†";

/// A study in words.
pub(crate) struct Study {
    /// Its title and source.
    pub(crate) title: String,
    /// Its conclusions.
    pub(crate) conclusions: Vec<Concluded>,
    /// Its tables, then its figures.
    pub(crate) grids: Vec<Grid>,
}

impl Study {
    /// Whether any of its numbers are not of this run.
    pub(crate) fn has_published(&self) -> bool {
        let marked = |text: &String| text.ends_with(PUBLISHED);
        self.grids
            .iter()
            .any(|grid| grid.columns.iter().chain(grid.rows.iter().map(|(name, _)| name)).any(marked))
    }
}

/// A conclusion in words.
pub(crate) struct Concluded {
    /// Whether it holds here.
    pub(crate) verdict: &'static str,
    /// Whether it does, for the eye.
    pub(crate) holds: Option<bool>,
    /// What the study says.
    pub(crate) claim: String,
    /// Why.
    pub(crate) evidence: Vec<String>,
}

/// Words in rows and columns.
pub(crate) struct Grid {
    /// What it is.
    pub(crate) heading: String,
    /// The heads of the columns after the names.
    pub(crate) columns: Vec<String>,
    /// A name and as many cells as there are columns.
    pub(crate) rows: Vec<(String, Vec<String>)>,
    /// What is to be said under it.
    pub(crate) below: Vec<String>,
}

/// `drawn` in words.
pub(crate) fn study(drawn: &EvaluatedStudy) -> Study {
    let tables = drawn.tables.iter().map(table);
    let figures = drawn.figures.iter().map(figure);
    Study {
        title: format!("{}: {}", clean(&drawn.title), clean(&drawn.source)),
        conclusions: drawn.conclusions.iter().map(concluded).collect(),
        grids: tables.chain(figures).collect(),
    }
}

fn concluded(conclusion: &EvaluatedConclusion) -> Concluded {
    let (verdict, holds, why) = match &conclusion.verdict {
        StudyVerdict::Holds => ("holds", Some(true), None),
        StudyVerdict::DoesNotHold => ("does not hold", Some(false), None),
        StudyVerdict::Undecided => ("undecided", None, None),
        StudyVerdict::NotMeasured(why) => ("not measured", None, Some(why)),
    };
    // Where a test says why, it is not said twice.
    let why = why.filter(|_| conclusion.tests.is_empty());
    let evidence =
        conclusion.tests.iter().map(|test| &test.evidence).chain(why).map(|text| clean(text)).collect();
    Concluded { verdict, holds, claim: clean(&conclusion.claim), evidence }
}

fn table(table: &EvaluatedTable) -> Grid {
    /// A table of more columns is turned on its side, if it has few rows.
    const MOST_COLUMNS: usize = 5;
    const FEW_ROWS: usize = 4;

    let name = |row: &EvaluatedRow| {
        let mark = if row.published { format!(" {PUBLISHED}") } else { String::new() };
        clean(&row.name) + &mark
    };
    let rows: Vec<(String, Vec<String>)> =
        table.rows.iter().map(|row| (name(row), row.cells.iter().map(cell).collect())).collect();
    let columns: Vec<String> = table.columns.iter().map(|column| clean(column)).collect();
    let (columns, rows) = if columns.len() > MOST_COLUMNS && rows.len() <= FEW_ROWS {
        on_its_side(&columns, &rows)
    } else {
        (columns, rows)
    };
    let missing = missing(table);
    let below = table.notes.iter().map(|note| clean(note)).chain(missing).collect();
    Grid { heading: format!("{}: {}", clean(&table.name), clean(&table.title)), columns, rows, below }
}

fn on_its_side(
    columns: &[String],
    rows: &[(String, Vec<String>)],
) -> (Vec<String>, Vec<(String, Vec<String>)>) {
    let names = rows.iter().map(|(name, _)| name.clone()).collect();
    let row = |(at, column): (usize, &String)| {
        (column.clone(), rows.iter().map(|(_, cells)| cells.get(at).cloned().unwrap_or_default()).collect())
    };
    (names, columns.iter().enumerate().map(row).collect())
}

/// The reasons of the numbers that `table` lacks, each once.
fn missing(table: &EvaluatedTable) -> Vec<String> {
    let reasons = table.rows.iter().flat_map(|row| {
        row.cells.iter().zip(&table.columns).filter_map(move |(cell, column)| match cell {
            EvaluatedCell::Missing(why) => Some((clean(why), (row.name.as_str(), column.trim()))),
            _ => None,
        })
    });
    let line = |(why, places): (String, Vec<(&str, &str)>)| {
        let mut names: Vec<&str> = places.iter().map(|(row, _)| *row).collect();
        names.dedup();
        match places.as_slice() {
            [(row, column)] => format!("{}, {}: {why}", clean(row), clean(column)),
            _ => format!("{}: {why}", clean(&names.join(", "))),
        }
    };
    crate::block::grouped(reasons).into_iter().map(line).collect()
}

fn cell(cell: &EvaluatedCell) -> String {
    match cell {
        EvaluatedCell::Empty => String::new(),
        EvaluatedCell::Words(words) => clean(words),
        EvaluatedCell::Value(value, unit) => estimate(*value, *unit),
        EvaluatedCell::Missing(_) => "-".to_owned(),
    }
}

/// A number with the half-width of its interval, if it has one.
pub(crate) fn estimate(value: Estimate, unit: Unit) -> String {
    if value.interval.is_none() {
        let bytes = if unit == Unit::Bytes && value.median < 1024.0 { " B" } else { "" };
        return number(value.median, unit) + bytes;
    }
    let with_spread = match unit {
        Unit::Ns if value.median >= 0.0 => time_estimate(value),
        Unit::BytesPerS => rate_estimate(value),
        _ => None,
    };
    let half = value.half_width().filter(|half| half.is_finite() && *half > 0.0005);
    let spread = half.map(|half| format!(" ±{}", crate::quantity::percent(half)));
    with_spread.unwrap_or_else(|| match spread {
        Some(spread) => number(three_significant(value.median), unit) + &spread,
        None => number(value.median, unit),
    })
}

/// `value` without the digits that its interval makes idle: 6260000 of 6264068.
fn three_significant(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// A number in the words of its unit.
pub(crate) fn number(value: f64, unit: Unit) -> String {
    /// A results file can hold any number; nothing worth reading is longer.
    const LONGEST: usize = 12;
    let text = match unit {
        Unit::Ns => format_ns(value),
        Unit::BytesPerS => format_rate(value),
        Unit::Bytes if value >= 0.0 && value.fract() == 0.0 && value < 1e18 => Size(value as u64).to_string(),
        Unit::Bytes => three_digits(value),
        // A whole number is one that was counted, or published so.
        Unit::Number if value.fract() == 0.0 && value.abs() < 1e9 => format!("{value:.0}"),
        Unit::Number => three_digits(value),
    };
    clip(&text, LONGEST)
}

/// Some points of each line of `figure`; the page draws all.
fn figure(figure: &EvaluatedFigure) -> Grid {
    /// More columns do not fit a terminal.
    const SHOWN: usize = 5;

    let mut all: Vec<f64> = figure.series.iter().flat_map(|line| &line.points).map(|point| point.x).collect();
    all.sort_unstable_by(f64::total_cmp);
    all.dedup();
    let last = all.len().saturating_sub(1);
    let shown: Vec<f64> = match all.len() {
        0..=SHOWN => all,
        _ => (0..SHOWN).map(|nth| all[nth * last / (SHOWN - 1)]).collect(),
    };
    let row = |line: &EvaluatedSeries| {
        let at = |x: &f64| line.points.iter().find(|point| point.x == *x);
        let cell = |x| at(x).map_or("-".to_owned(), |point| number(point.y.median, figure.y.unit));
        let mark = if line.published { format!(" {PUBLISHED}") } else { String::new() };
        (clean(&line.name) + &mark, shown.iter().map(cell).collect())
    };
    if let Some(timeline) = &figure.timeline {
        return iterations(figure, timeline);
    }
    let y = if figure.y.title.is_empty() { String::new() } else { format!(", {}", clean(&figure.y.title)) };
    Grid {
        heading: format!("{}: {}{y}", clean(&figure.name), clean(&figure.title)),
        columns: shown.iter().map(|x| number(*x, figure.x.unit)).collect(),
        rows: figure.series.iter().map(row).collect(),
        below: figure.notes.iter().chain(&figure.missing).map(|text| clean(text)).collect(),
    }
}

/// What both ends did in the iterations of `timeline`; the page and SVG draw them.
fn iterations(figure: &EvaluatedFigure, timeline: &EvaluatedTimeline) -> Grid {
    let of_end = |iteration: &Iteration, end: EndpointRole| {
        let track = iteration.tracks.endpoints().find(|(at, _)| *at == end).map(|(_, track)| track);
        track.map_or("-".to_owned(), |track| {
            let mut names: Vec<(&str, usize)> = Vec::new();
            for call in &track.calls {
                match names.iter_mut().find(|(name, _)| *name == call.name) {
                    Some((_, times)) => *times += 1,
                    None => names.push((&call.name, 1)),
                }
            }
            let asleep = track.spans.iter().filter(|span| span.state == SchedulerState::Sleeps).count();
            let calls = names.into_iter().map(|(name, times)| format!("{times} {}", clean(name)));
            let asleep = (asleep > 0).then(|| format!("{asleep} asleep"));
            calls.chain(asleep).collect::<Vec<_>>().join(", ")
        })
    };
    let row = |iteration: &Iteration| {
        let took_ns = iteration.until_ns.saturating_sub(iteration.from_ns);
        let cells = vec![
            number(took_ns as f64, Unit::Ns),
            of_end(iteration, EndpointRole::Client),
            of_end(iteration, EndpointRole::Server),
        ];
        (iteration.choice.to_string(), cells)
    };
    let drawn = format!("{}: drawn with --html and --svg", clean(&timeline.case));
    Grid {
        heading: format!("{}: {}", clean(&figure.name), clean(&figure.title)),
        columns: ["took", "client", "server"].map(str::to_owned).to_vec(),
        rows: timeline.iterations.iter().map(row).collect(),
        below: [drawn].into_iter().chain(figure.notes.iter().map(|text| clean(text))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{self, Style};
    use analysis::study::evaluated::{EvaluatedTest, FigureAxis, FigurePoint};

    fn value(median: f64, unit: Unit) -> EvaluatedCell {
        EvaluatedCell::Value(Estimate { median, interval: None }, unit)
    }

    fn drawn() -> EvaluatedStudy {
        let row = |name: &str, published, cells| EvaluatedRow { name: name.to_owned(), published, cells };
        let here = Estimate { median: 2_800.0, interval: Some((2_700.0, 2_900.0)) };
        let points = (0..17)
            .map(|n| FigurePoint { x: f64::from(1 << n), y: Estimate { median: 100.0, interval: None } });
        let axis = |title: &str, unit| FigureAxis { title: title.to_owned(), unit, logarithmic: true };
        EvaluatedStudy {
            title: "A study".to_owned(),
            source: "of 1996".to_owned(),
            tables: vec![
                EvaluatedTable {
                    name: "EvaluatedTable 20".to_owned(),
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
                    name: "EvaluatedTable 25".to_owned(),
                    title: "What to use".to_owned(),
                    columns: vec!["small".to_owned(), "big".to_owned()],
                    rows: vec![row(
                        "connection-oriented, reliable",
                        false,
                        vec![
                            EvaluatedCell::Words(
                                "pipes, FIFOs, sockets and so on; not told from it: queues".to_owned(),
                            ),
                            EvaluatedCell::Empty,
                        ],
                    )],
                    notes: Vec::new(),
                },
                EvaluatedTable {
                    name: "EvaluatedTable 1".to_owned(),
                    title: "On its side".to_owned(),
                    columns: ["a", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec(),
                    rows: vec![row("then", true, vec![EvaluatedCell::Words("x".to_owned()); 6])],
                    notes: Vec::new(),
                },
            ],
            figures: vec![EvaluatedFigure {
                name: "EvaluatedFigure 32".to_owned(),
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
                },
                EvaluatedConclusion {
                    claim: "Two hosts differ".to_owned(),
                    verdict: StudyVerdict::NotMeasured("needs a second host".to_owned()),
                    tests: Vec::new(),
                },
            ],
        }
    }

    const TEXT: &str = "
A study: of 1996

does it hold here?
  does not hold  Queues are slow
                   queue over pipe: 1.20 (1.10 to 1.30); wanted at most 1
  not measured   Two hosts differ
                   needs a second host

EvaluatedTable 20: A call
                 a call  calls a second
  then †        3.20 µs          312500
  here    2.80 µs ±3.6%               -
  half of two
  here, calls a second: no clock

EvaluatedTable 25: What to use
  connection-oriented, reliable
    small: pipes, FIFOs, sockets and so on; not told from it: queues

EvaluatedTable 1: On its side
     then †
  a       x
  b       x
  c       x
  d       x
  e       x
  f       x

EvaluatedFigure 32: Throughput, rate
             1      16     256      4K     64K
  pipe  100 ns  100 ns  100 ns  100 ns  100 ns
  mq: too large
";

    #[test]
    fn what_is_known_to_some_percent_has_three_digits() {
        let number = |median, interval| estimate(Estimate { median, interval }, Unit::Number);
        assert_eq!(number(6_264_068.3, Some((5.4e6, 7.2e6))), "6260000 ±14%");
        assert_eq!(number(65_536.0, Some((65_536.0, 65_536.0))), "65536", "counted, the same in every trial");
        assert_eq!(number(312_500.0, None), "312500", "published so");
    }

    #[test]
    fn a_study_in_a_terminal() {
        let text = layout::finish(&layout::study(&study(&drawn()), &Style::default()));
        assert_eq!(text, TEXT);
    }

    #[test]
    fn a_wide_terminal_and_colours_say_the_same() {
        let text = layout::finish(&layout::study(&study(&drawn()), &Style { width: 120, color: true }));
        assert!(text.contains("\u{1b}[31m  does not hold"), "{text}");
        assert!(text.contains("not told from it: queues"), "{text}");
    }
}
