//! Pages and charts of results.

use super::{PLAIN, bytes, drawings, island, markdown, page, plot, results_with_study, table};
use crate::text::answer;
use crate::{Chart, Format, Style, fixture};
use analysis::analysed::AnalysedResults;
use model::record::Results;
use model::{Size, Workload};

#[test]
fn a_page_of_a_metric_that_the_results_lack_is_refused() {
    let mut results = fixture::results();
    results.records.retain(|record| record.case.workload == Workload::Latency);
    let refused = crate::html(&[AnalysedResults::from_results(&results)], Some("rate"), &[]).unwrap_err();
    assert_eq!(refused.problem, "unknown metric of these results 'rate'");
    assert!(refused.remedy.contains("known: cpu"), "{}", refused.remedy);
}

#[test]
fn a_page_is_one_file_that_fetches_nothing() {
    let page = page(&fixture::results());
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert!(page.contains("default-src 'none'"));
    // Three elements of scripts, of which two run, and none from elsewhere.
    assert_eq!(page.matches("<script").count(), 3);
    for elsewhere in ["href=\"http", "@import", "url("] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    // Pictures are on the page itself.
    assert!(page.split("src=").skip(1).all(|rest| rest.starts_with("\"data:image/svg+xml;base64,")));
    assert!(page.contains("<noscript>") && page.matches("src=").count() > 2);
    assert!(!page.contains("{{"), "something was not filled in");
}

/// What stands in `page` outside of its scripts, in words.
fn without_scripts(page: &str) -> String {
    let (text, _) = page.split_once("<script").unwrap();
    let texts = text.split('<').filter_map(|element| Some(element.split_once('>')?.1));
    let texts = texts.collect::<String>().replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    texts.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_page_without_its_scripts_says_everything_once() {
    let results = results_with_study();
    let analysed = AnalysedResults::from_results(&results);
    let page = page(&results);
    let said = without_scripts(&page);
    let answers = answer::fastest(&analysed).into_iter().flat_map(|(_, places)| places);
    let answers: Vec<String> = answers.map(|(_, what)| what).chain(answer::of_host(&analysed)).collect();
    assert!(answers.len() > 4, "{answers:?}");
    let others =
        ["Large messages take longer", "What a message costs on vm-1", "Made by ipcmark", "too close"];
    for text in answers.iter().map(String::as_str).chain(others) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(said.matches(&text).count(), 1, "{text}:\n{said}");
    }
    let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("{what}: {page}"));
    assert!(at("The answer") < at("<noscript><section>") && at("<img") < at("Large messages take longer"));
}

#[test]
fn a_page_says_what_the_sheet_says() {
    let results = fixture::results();
    let data = island(&page(&results));
    let run = &data["runs"][0];
    insta::assert_snapshot!(run["notices"].to_string(), @r#"["the hypervisor took 1.3% of the CPU time","1 of 14 cases failed","5 of 14 cases are not known to ±2%: they are marked !","the last line was cut off; it is left out"]"#);
    let blocks = run["blocks"].as_array().unwrap();
    assert_eq!(
        blocks.iter().map(|block| block["rows"].as_array().unwrap().len()).sum::<usize>(),
        results.records.len()
    );
    // One row in full: what it says, the same as numbers, and its percentiles.
    insta::assert_snapshot!(blocks[1]["rows"][0].to_string(), @r#"{"c":["2.14 µs ±0.4%","1.07 µs","3.46 µs","3.50 µs","2.10 µs","2.00","0","×1.4"],"n":[[2139.1,2129.7,2148.4],[1069.5,1064.9,1074.2],3461.0,3495.0,2096.3,2.0,0.0,[1.3836,1.3237,1.4462]],"q":["2.10 µs","2.11 µs","2.12 µs","2.13 µs","2.14 µs","2.14 µs","3.46 µs","3.48 µs","3.50 µs"],"s":13}"#);
}

#[test]
fn two_runs_of_one_host_have_labels_of_their_own() {
    let (one, mut other) = (fixture::results(), fixture::later_results());
    other.header.run = "99aa".to_owned();
    let both = [&one, &other].map(AnalysedResults::from_results);
    let data = island(&crate::html(&both, None, &[]).unwrap());
    let labels: Vec<&str> =
        data["runs"].as_array().unwrap().iter().map(|run| run["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["vm-1 (4f2a)", "vm-1 (99aa)"]);
}

#[test]
fn figures_are_of_the_metric_asked_for_and_have_names_for_files() {
    let results = fixture::results();
    let all = [AnalysedResults::from_results(&results)];
    let drawings = crate::drawings(&all, Some("p99")).unwrap();
    let names: Vec<&str> = drawings.iter().map(|drawing| drawing.file_name.as_str()).collect();
    assert_eq!(names, ["latency-same-core", "latency-same-core-no-payload", "transfer-same-llc-64k"]);
    let Chart::Lines(figure) = &drawings[0].chart else { panic!("{drawings:?}") };
    let pipe = figure.series.iter().find(|series| series.name == "pipe").unwrap();
    let p99: Vec<f64> = pipe.points.iter().map(|point| point.y.median).collect();
    let expected = |at: usize| results.records[at].summary.as_ref().unwrap().quantiles.unwrap().p99_ns as f64;
    assert_eq!(p99, [expected(1), expected(5)]);
    assert!(crate::drawings(&all, Some("p9")).unwrap_err().remedy.contains("'p99'"));
    assert!(crate::drawings(&all, Some("user")).is_err(), "nothing here has that column");

    let svg = crate::svg(&drawings[0]);
    assert!(svg.contains("latency, same-core: p99 by message size") && svg.contains("unix-stream:buffer=8M"));
    let png = crate::png(&drawings[0]).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 10_000, "{} bytes", png.len());
}

/// The fixture, with empty messages in the place of those of one byte.
fn with_empty_messages() -> Results {
    let mut results = fixture::results();
    for record in &mut results.records {
        record.case.size_bytes =
            record.case.size_bytes.map(|Size(bytes)| Size(if bytes == 1 { 0 } else { bytes }));
        record.summary = analysis::summary::summarise_alone(&record.case, &record.samples);
    }
    results
}

#[test]
fn empty_messages_are_in_every_format_and_beside_the_logarithmic_axes() {
    let results = with_empty_messages();
    let style = Style { width: 100, color: false, detail: true };
    let table = table(&results, &style);
    assert!(table.contains("latency, 0 bytes, same-core"), "{table}");
    let all = [table, markdown(&results), bytes(Format::Csv, &results), bytes(Format::Json, &results)];
    for shown in all.iter().flat_map(|text| text.lines()) {
        let lower = shown.to_lowercase();
        assert!(
            !lower.split(|c: char| !c.is_alphanumeric()).any(|word| word == "nan" || word == "inf"),
            "{shown}"
        );
    }
    let drawings = drawings(&results, None).unwrap();
    let names: Vec<&str> = drawings.iter().map(|drawing| drawing.file_name.as_str()).collect();
    assert!(names.contains(&"latency-same-core-0-bytes"), "{names:?}");
    for drawing in &drawings {
        let svg = crate::svg(drawing);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

#[test]
fn what_has_one_size_or_none_is_drawn_side_by_side() {
    let results = fixture::results();
    let drawings = drawings(&results, None).unwrap();
    let names: Vec<&str> = drawings.iter().map(|drawing| drawing.file_name.as_str()).collect();
    assert_eq!(
        names,
        [
            "latency-same-core",
            "latency-same-core-no-payload",
            "throughput-same-llc-64k",
            "transfer-same-llc-64k",
            "cost-same-core"
        ]
    );
    let with_study = results_with_study();
    let mut analysed = AnalysedResults::from_results(&with_study);
    analysed.study.as_mut().unwrap().figures[0].series.clear();
    let with_study = crate::drawings(&[analysed], None).unwrap();
    assert_eq!(with_study, drawings, "a figure of a study without lines is no file");

    let Chart::SideBySide(throughput) = &drawings[2].chart else { panic!("{drawings:?}") };
    let rows: Vec<&str> = throughput.rows.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(rows, ["shm-ring:wait=spin", "pipe:capacity=1M"], "the best first, as in the table");
    let summary = results.records.iter().find(|record| record.case.spec.to_string() == "pipe:capacity=1M");
    assert_eq!(throughput.rows[1].1, summary.unwrap().summary.as_ref().unwrap().bytes_per_s.unwrap());

    let svg = crate::svg(&drawings[2]);
    for words in ["throughput, same-llc, 64K: rate", "pipe:capacity=1M", "2.10 GB/s ±0.4%"] {
        assert!(svg.contains(words), "{words}\n{svg}");
    }
    let png = crate::png(&drawings[2]).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 5_000, "{} bytes", png.len());
}

#[test]
fn a_chart_for_the_terminal() {
    let results = fixture::results();
    let chart = plot(&results, None, &PLAIN).unwrap();
    let two: Vec<&str> = chart.split_inclusive("\n\n").skip(1).take(2).collect();
    insta::assert_snapshot!(two.concat(), @"
    round trip of latency, 1 byte, same-core (cpu 1), per round trip
      shm-ring:wait=futex                   2.14 µs   ●
      pipe                                  3.31 µs         ├─●──┤
      unix-stream                           4.76 µs                ├─●─┤
                                                     ╵2 µs            ╵5 µs

    round trip of latency, 4K, same-core (cpu 1), per round trip
      pipe                                  3.89 µs                   ├────●────┤
      fifo                                  4.03 µs                    ├────●────┤
      unix-stream:buffer=8M,wait=spin-t…    4.45 µs                            ●
                                                     ╵2 µs  ╵2.5 µs         ╵4 µs
    ");
    assert!(plot(&results, Some("zzz"), &PLAIN).is_err());
}
