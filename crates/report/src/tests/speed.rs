//! The host's speed in every form that shows it.

use super::{PLAIN, columns, island, markdown, matrix, page, table};
use crate::{Style, fixture};
use model::summary::HostView;

/// The lines of `text` that have `word`, with as many lines after each.
fn around(text: &str, word: &str, after: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let found = lines.iter().position(|line| line.contains(word)).unwrap();
    lines[found..=found + after].join("\n")
}

#[test]
fn the_views_of_each_case_fit_80_columns() {
    let results = fixture::on_a_shared_host(HostView::Adjusted, 0.03);
    let text = table(&results, &PLAIN);
    assert!(text.lines().all(|line| columns(line) <= 80), "{text}");
    insta::assert_snapshot!(around(&text, "latency, 1 byte, same-core (cpu 1), per round trip: views of the host", 5), @"
    latency, 1 byte, same-core (cpu 1), per round trip: views of the host
      mechanism                  undisturbed        adjusted        as found   share
      shm-ring:wait=futex     2.14 µs ±0.9%   2.18 µs ±0.9%*  2.59 µs ±0.9%     3.0%
      pipe                    2.83 µs  ±25%   2.89 µs  ±25%*  3.43 µs  ±25%     3.0%
      unix-stream             4.78 µs  ±15%   4.87 µs  ±15%*  5.78 µs  ±15%     3.0%
    ");
    insta::assert_snapshot!(around(&text, "undisturbed  slices", 6), @r"
    undisturbed  slices beside which the host was at full speed; * marks the time
                 that the tables show
    adjusted     all slices, reduced to full speed by the slope of time over speed
                 reading
    as found     all slices as they were measured
    share        the share of slices that were undisturbed
    times        of 22 cases adjusted, reduced to full speed by the slope of time
    ");
    assert!(markdown(&results).contains(": views of the host"));
    assert!(!table(&fixture::results(), &PLAIN).contains("views of the host"));
}

#[test]
fn the_matrix_says_in_a_line_how_fast_the_host_was() {
    let style = Style { detail: false, ..PLAIN };
    let note = |shown, share| {
        let text = matrix(&fixture::on_a_shared_host(shown, share), &style);
        around(&text, "full speed", 0).trim_start().to_owned()
    };
    insta::assert_snapshot!(note(HostView::Undisturbed, 0.4), @"times are of slices with the host at full speed");
    insta::assert_snapshot!(note(HostView::Adjusted, 0.03), @"the host was seldom at full speed: of 13 times 13 are adjusted to it");
    insta::assert_snapshot!(note(HostView::AsFound, 0.3), @"the host was not always at full speed: of 13 times 13 are as found");
    insta::assert_snapshot!(note(HostView::AsFound, 0.0), @"the host was never at full speed: of 13 times 13 are as found");
    assert!(!matrix(&fixture::results(), &style).contains("full speed"));
}

#[test]
fn the_page_has_the_views_and_a_picture_of_each_cases_slices() {
    let data = island(&page(&fixture::on_a_shared_host(HostView::AsFound, 0.0)));
    let speed = &data["runs"][0]["speed"];
    let chart = speed["chart"].as_str().unwrap();
    assert!(chart.contains("CPU 1") && chart.contains("100%"), "{chart}");
    let row = &speed["blocks"][0]["rows"][0];
    assert!(row["shown"].as_str().unwrap().starts_with("as-found: as they were measured"), "{row}");
    insta::assert_snapshot!(row["cells"].to_string(), @r#"[[null,null],[null,null],["2.83 µs ±0.9%*",[2832.5,2806.6,2858.4]],["0.0%",0.0]]"#);
    let slices = row["slices"].as_str().unwrap();
    // Five slices at full speed, five slower ones in the colour of their speed.
    assert!(slices.contains("undisturbed") && slices.contains("at 70% or more"), "{slices}");
    assert_eq!(slices.matches('M').count(), 10, "{slices}");
    assert!(island(&page(&fixture::results()))["runs"][0]["speed"].is_null());
}
