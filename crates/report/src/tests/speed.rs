//! The host's speed in every form that shows it.

use super::{PLAIN, columns, island, markdown, matrix, page, table};
use crate::{Style, fixture};

/// The lines of `text` that have `word`, with as many lines after each.
fn around(text: &str, word: &str, after: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let found = lines.iter().position(|line| line.contains(word)).unwrap();
    lines[found..=found + after].join("\n")
}

#[test]
fn what_the_host_did_to_each_case_fits_80_columns() {
    let results = fixture::on_a_shared_host(1.4);
    let text = table(&results, &PLAIN);
    assert!(text.lines().all(|line| columns(line) <= 80), "{text}");
    insta::assert_snapshot!(around(&text, "latency, 1 byte, same-core (cpu 1), per round trip: the host", 5), @"
    latency, 1 byte, same-core (cpu 1), per round trip: the host
      mechanism                               calm  as found   speed     CPU    wake
      shm-ring:wait=futex            2.13 µs ±9.3%   2.57 µs     86%    1.03       -
      pipe                           3.27 µs  ±13%   3.96 µs     86%    1.03       -
      unix-stream                    4.72 µs  ±11%   5.73 µs     86%    1.03       -
    ");
    insta::assert_snapshot!(around(&text, "the time that the tables show", 9), @"
    calm      the time that the tables show: at the speed of the CPUs in the
              calmest quarter of the run
    as found  the median slice as it was measured
    speed     of the CPUs beside the median slice, as a share of the fastest in
              the run
    CPU       how the time follows a slower CPU of the client: 1 as much as it
    wake      how the time follows what it takes to wake a sleeper on the other
              CPU
    times     at the speed of the CPUs in the calmest quarter of the run, as the
              model of the run has it
    ");
    assert!(markdown(&results).contains(": the host"));
    assert!(!table(&fixture::results(), &PLAIN).contains(": the host"));
}

#[test]
fn the_matrix_says_in_a_line_what_the_host_did() {
    let style = Style { detail: false, ..PLAIN };
    let text = matrix(&fixture::on_a_shared_host(1.4), &style);
    insta::assert_snapshot!(around(&text, "calmest", 1), @"
    times are of the calmest quarter of the run, the median slice took 21% longer.
    The hypervisor took 1.3% of the CPU time. See 'ipcmark doctor'.
    ");
    // A host that did nothing needs no word.
    assert!(!matrix(&fixture::on_a_shared_host(1.0), &style).contains("calmest"));
    assert!(!matrix(&fixture::results(), &style).contains("calmest"));
}

#[test]
fn the_page_has_what_the_host_did_and_a_picture_of_each_cases_slices() {
    let data = island(&page(&fixture::on_a_shared_host(1.4)));
    let speed = &data["runs"][0]["speed"];
    let chart = speed["chart"].as_str().unwrap();
    assert!(chart.contains("CPU 1") && chart.contains("100%"), "{chart}");
    let row = &speed["blocks"][0]["rows"][0];
    insta::assert_snapshot!(row["cells"].to_string(), @r#"[["2.33 µs ±9.3%",[2329.3,2122.0,2556.9]],["2.81 µs",2809.5],["86%",0.86124],["1.03",[1.0285,0.81997,1.2371]],[null,null]]"#);
    let slices = row["slices"].as_str().unwrap();
    // Five slices at full speed, five slower ones in the colour of their speed.
    assert!(slices.contains("undisturbed") && slices.contains("at 70% or more"), "{slices}");
    assert_eq!(slices.matches('M').count(), 10, "{slices}");
    assert!(island(&page(&fixture::results()))["runs"][0]["speed"].is_null());
}
