//! Figures: points of lines, and timelines.

use super::super::evaluated::{self, UndrawnFigures};
use super::fixture::*;
use model::Case;
use model::Workload;
use model::observation::Probe;
use model::suite::Suite;
use model::units::{Size, Unit};

#[test]
fn a_line_has_a_point_a_size_and_published_ones_stand_beside() {
    let drawn = evaluated(
        "[[study.figure]]\nname = 'f'\ntitle = 't'\ny = 'y'\nscale = 'log'\nseries = [\n\
         { name = 'pipe', of = 'time of pipe / 2' },\n\
         { name = 'old', published = [['1K', '3us'], ['4K', '4us']] },\n\
         { name = 'stream', of = 'time of stream' }]\n\
         [[study.figure]]\nname = 'g'\ntitle = 't'\nabsent = 'needs a second host'",
    );
    let figure = &drawn.figures[0];
    assert!(figure.x.logarithmic && !figure.y.logarithmic && figure.y.unit == Unit::Ns);
    let [pipe, old] = &figure.series[..] else { panic!("{figure:?}") };
    assert_eq!(pipe.points.iter().map(|point| point.x).collect::<Vec<_>>(), [1024.0, 2048.0, 4096.0]);
    assert!(!pipe.published && old.published && old.points[1].y.median == 4000.0);
    assert!(figure.missing.iter().any(|why| why.contains("not asked for")), "{figure:?}");
    let names = vec!["g".to_owned()];
    assert_eq!(drawn.undrawn, [UndrawnFigures { names, reason: "needs a second host".to_owned() }]);
}

#[test]
fn figures_without_a_line_are_named_once_with_their_reason() {
    let figure = |name: &str, of: &str| {
        format!(
            "[[study.figure]]\nname = '{name}'\ntitle = 't'\ny = 'y'\nseries = [{{ name = 'a', of = '{of}' }}]\n"
        )
    };
    let lost = figure("f", "counter.bus-cycles of pipe") + &figure("g", "counter.bus-cycles of pipe * 2");
    let more = lost + &figure("h", "time of pipe") + &figure("i", "time of stream");
    let mut results = results_with_profiles();
    results.records.retain(|record| record.case.size_bytes == Some(Size(1024)));
    let drawn = evaluate(&suite(&more).study.unwrap(), &results);
    let names: Vec<&str> = drawn.figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["h"]);
    let said: Vec<(String, &str)> =
        drawn.undrawn.iter().map(|of| (of.names.join(" "), of.reason.as_str())).collect();
    assert_eq!(
        said,
        [("f g".to_owned(), "this processor shows none"), ("i".to_owned(), "not asked for in this run")]
    );
}

#[test]
fn a_timeline_has_iterations_of_the_last_trial() {
    let figure = "[[study.figure]]\nname = 'n'\ntitle = 't'\ntimeline = 'small'";
    let text = SUITE.replace("pipe = ", "small = 'pipe latency 1K'\npipe = ") + figure;
    let study = Suite::parse(&text, CARDS).unwrap().study.unwrap();
    let drawn = evaluate(&study, &results_with_profiles());
    let timeline = drawn.figures[0].timeline.as_ref().unwrap();
    assert_eq!((timeline.case.as_str(), timeline.iterations.len()), ("pipe latency 1K same-core", 2));
    assert_eq!(timeline.iterations[0].tracks.client.calls[0].name, "readat");
    let none = evaluate(&study, &results());
    assert!(none.figures.is_empty() && none.undrawn[0].reason.contains("--observe"), "{:?}", none.undrawn);
    let pipe = case("pipe", Workload::Latency, Some(1024));
    assert_eq!(study.probes_of(&pipe), [Probe::Timeline]);
    assert_eq!(study.probes_of(&Case { size_bytes: Some(Size(2048)), ..pipe }), []);
}

#[test]
fn an_empty_message_has_no_place_on_a_logarithmic_axis_and_every_other_number() {
    let mut results = results();
    for record in results.records.iter_mut().filter(|record| record.case.size_bytes == Some(Size(1024))) {
        record.case.size_bytes = Some(Size(0));
    }
    let figure = |name: &str, scale: &str| {
        format!(
            "[[study.figure]]\nname = '{name}'\ntitle = 't'\ny = 'y'\nscale = '{scale}'\n\
             series = [{{ name = 's', of = 'time of pipe' }}]\n"
        )
    };
    let table = "[[study.table]]\nname = 't'\ntitle = 't'\ncolumns = ['a', 'b']\n\
                 rows = [{ name = 'r', cells = ['time of tcp at 0 / time of pipe at 0', 'flat 10% time of pipe'] }]\n";
    let text = SUITE.replace("1K,2K,4K", "0,2K,4K") + &figure("f", "log") + &figure("g", "linear") + table;
    let suite = Suite::parse(&text, CARDS).unwrap_or_else(|invalid| panic!("{invalid}"));
    let drawn = evaluate(&suite.study.unwrap(), &results);
    assert!(drawn.figures[0].missing.iter().any(|why| why.starts_with("0 bytes")), "{drawn:?}");
    assert_eq!(drawn.figures[1].missing, Vec::<String>::new());
    let points: Vec<f64> = drawn.figures[1].series[0].points.iter().map(|point| point.x).collect();
    assert_eq!(points, [0.0, 2048.0, 4096.0]);
    let cells = &drawn.tables[0].rows[0].cells;
    let median = |at: usize| match &cells[at] {
        evaluated::EvaluatedCell::Value(number, _) => number.median,
        other => panic!("{other:?}"),
    };
    assert!((median(0) - 2.0).abs() < 1e-9, "{cells:?}");
    assert_eq!(median(1), 2048.0);
}
