//! Several runs of one study in one.

use super::super::evaluated::EvaluatedCell;
use super::super::overlaid;
use super::fixture::*;

const STUDY: &str = "[[study.figure]]\nname = 'f'\ntitle = 't'\ny = 'y'\nseries = [\n\
    { name = 'pipe', of = 'time of pipe' }, { name = 'old', published = [['1K', '3us']] }]\n\
    [[study.conclusion]]\nclaim = 'c'\ntests = [{ of = 'time of tcp at 1K / time of pipe at 1K', at_least = 1 }]\n";

#[test]
fn the_lines_of_several_runs_of_a_study_are_in_one_figure() {
    let study = suite(STUDY).study.unwrap();
    let mut slower = results();
    for record in slower.records.iter_mut().filter(|record| record.case.spec.name == "pipe") {
        record.samples.iter_mut().for_each(|sample| sample.elapsed_ns *= 4.0);
    }
    let (a, b) = (evaluate(&study, &results()), evaluate(&study, &slower));
    let other = super::super::evaluated::EvaluatedStudy { title: "another".to_owned(), ..a.clone() };
    let all = overlaid(&[("a", &a), ("b", &b), ("c", &other)]);
    let [both] = &all[..] else { panic!("{all:?}") };
    assert_eq!((both.title.as_str(), both.source.as_str()), ("T: all runs", "a, b"));
    let [figure] = &both.figures[..] else { panic!("{both:?}") };
    let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["pipe, a", "old", "pipe, b"]);
    assert_eq!(figure.series[2].points, b.figures[0].series[0].points);
    let words = |text: &str| EvaluatedCell::Words(text.to_owned());
    assert_eq!(both.tables[0].rows[0].cells, [words("holds"), words("does not hold")]);
    assert_eq!(overlaid(&[("a", &a), ("c", &other)]), []);
}
