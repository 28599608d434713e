//! A series has one colour: on the page, in its legend and its figures, in each SVG and in each PNG.

use super::{island, results_with_study};
use crate::svg::canvas::GRID;
use crate::{Chart, Drawing, fixture};
use analysis::analysed::AnalysedResults;
use analysis::study::evaluated::EvaluatedSeries;
use model::record::{Fact, Results};
use std::collections::{BTreeMap, BTreeSet};

/// The colour of each series of the page of `all`, those of its studies too.
fn of_page(all: &[AnalysedResults<'_>]) -> BTreeMap<String, String> {
    let data = island(&crate::html(all, None, &[]).unwrap());
    let rows = data["series"].as_array().unwrap().iter().map(|series| (&series[0], &series[1]));
    let runs = data["runs"].as_array().unwrap().iter().map(|run| &run["study"]);
    let studies = runs.chain(data["overlays"].as_array().unwrap());
    let figures = studies.filter_map(|study| study["figures"].as_array()).flatten();
    let lines = figures.flat_map(|figure| figure["series"].as_array().unwrap());
    let lines = lines.map(|line| (&line["name"], &line["color"]));
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let mut colors = BTreeMap::new();
    for (name, color) in rows.chain(lines) {
        let before = colors.insert(text(name), text(color));
        assert!(before.is_none_or(|before| before == *color), "{name} has two colours on the page");
    }
    colors
}

/// What is drawn, each with its name and with what stands beside its mark.
fn names(drawing: &Drawing) -> Vec<(String, String)> {
    match &drawing.chart {
        Chart::Lines(figure) => {
            let published = |line: &EvaluatedSeries| if line.published { ", published" } else { "" };
            let lines = figure.series.iter();
            lines.map(|line| (line.name.clone(), format!("{}{}", line.name, published(line)))).collect()
        }
        Chart::SideBySide(chart) => chart.rows.iter().map(|(name, _)| (name.clone(), name.clone())).collect(),
    }
}

/// The colour of the mark beside `words` in the SVG of `drawing`: before it in the key of lines, after it in a row.
fn in_svg(drawing: &Drawing, words: &str) -> String {
    let svg = crate::svg(drawing);
    let text = format!("\n{words}\n</text>");
    let (before, after) = svg.rsplit_once(&text).unwrap_or_else(|| panic!("{words}:\n{svg}"));
    let marks = |part: &str| -> Vec<String> {
        let strokes = part.split("<path").skip(1).filter_map(|path| path.split_once("stroke=\""));
        let colors = strokes.filter_map(|(_, rest)| Some(rest.split_once('"')?.0.to_owned()));
        colors.filter(|color| color != GRID).collect()
    };
    let found = match drawing.chart {
        Chart::Lines(_) => marks(before).pop(),
        Chart::SideBySide(_) => marks(after).into_iter().next(),
    };
    found.unwrap_or_else(|| panic!("nothing is drawn beside {words}:\n{svg}"))
}

/// All colours of the PNG of `drawing`.
fn in_png(drawing: &Drawing) -> BTreeSet<String> {
    let image = tiny_skia::Pixmap::decode_png(&crate::png(drawing).unwrap()).unwrap();
    let pixels = image.pixels().iter().map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]);
    let colors: BTreeSet<[u8; 3]> = pixels.collect();
    colors.into_iter().map(|[red, green, blue]| format!("#{red:02x}{green:02x}{blue:02x}")).collect()
}

/// Compares every series of every picture of `all` with the page; of several runs, a line is called by its run, too.
fn compare(all: &[AnalysedResults<'_>], labels: &[&str]) {
    let page = of_page(all);
    let mut seen = 0;
    for drawing in crate::drawings(all, None).unwrap() {
        let pixels = in_png(&drawing);
        for (name, words) in names(&drawing) {
            let alone = labels.iter().find_map(|label| name.strip_suffix(label)).unwrap_or(&name);
            assert_eq!(in_svg(&drawing, &words), page[alone], "{name} in {}", drawing.file_name);
            assert!(pixels.contains(&page[alone]), "{name} in the PNG of {}", drawing.file_name);
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen} series");
}

/// The results with a line of the study that a table has under another name, and one that no table has.
fn results() -> Results {
    let mut results = results_with_study();
    let mut study = serde_json::to_value(results.header.study.take().unwrap()).unwrap();
    let lines = study["figure"][0]["series"].as_array_mut().unwrap();
    for name in ["FIFO of 1996", "a system of 1996"] {
        lines.insert(0, serde_json::json!({ "name": name, "published": [["4K", "3us"], ["64K", "9us"]] }));
    }
    results.header.study = Some(serde_json::from_value(study).unwrap());
    results
}

#[test]
fn a_series_has_one_colour_on_the_page_in_svg_and_in_png() {
    let results = results();
    let all = [AnalysedResults::from_results(&results)];
    compare(&all, &[]);
    let page = of_page(&all);
    assert_eq!(page["FIFO of 1996"], page["fifo"]);
    assert_eq!(page["shm-ring:wait=spin"], page["shm-ring:wait=futex"]);
    let in_a_figure = ["pipe", "FIFO of 1996", "a system of 1996"];
    let in_a_table = ["pipe", "fifo", "unix-stream", "shm-ring:wait=futex", "eventfd"];
    for together in [&in_a_figure[..], &in_a_table] {
        let colors: BTreeSet<&str> = together.iter().map(|name| page[*name].as_str()).collect();
        assert_eq!(colors.len(), together.len(), "{together:?}: {page:?}");
    }
}

#[test]
fn two_runs_keep_the_colours_of_one() {
    let (one, mut other) = (fixture::results(), fixture::later_results());
    other.header.host.name = Fact::Known("metal-2".to_owned());
    let both = [AnalysedResults::from_results(&one), AnalysedResults::from_results(&other)];
    compare(&both, &[", vm-1", ", metal-2"]);
    let (alone, together) = (of_page(&both[..1]), of_page(&both));
    for (name, color) in &alone {
        assert_eq!(*color, together[name], "{name}");
    }
}

#[test]
fn colours_do_not_depend_on_what_was_fastest() {
    let one = fixture::results();
    let mut other = fixture::results();
    for record in &mut other.records {
        let factor = if record.case.spec.name == "shm-ring" { 50.0 } else { 1.0 };
        record.samples.iter_mut().for_each(|sample| sample.elapsed_ns *= factor);
        record.summary = analysis::summary::summarise_alone(&record.case, &record.samples);
    }
    assert_eq!(
        of_page(&[AnalysedResults::from_results(&one)]),
        of_page(&[AnalysedResults::from_results(&other)])
    );
}
