//! Small values for the tests of this crate and of those that compute with it: a card, a header, a sample, a record.
//!
//! Each says no more than a test is about. Nothing that ships calls it.

use crate::case::Case;
use crate::record::{Line, Outcome, Record, Results, SampleLine};
use crate::results;
use crate::sample::{Sample, Usage};

pub mod cards;
pub mod scenarios;

pub use self::cards::card;

/// A header as it stands in a file.
pub const HEADER: &str = concat!(
    r#"{"type":"header","format":"ipcmark-results","version":1,"#,
    r#""tool":{"name":"ipcmark","version":"0.1.0","profile":"release","target":"x86_64-unknown-linux-gnu"},"#,
    r#""run":"k3x9","started_at":"2025-01-01T00:00:00Z","command":["ipcmark","run"],"#,
    r#""host":{"name":{"known":"h"},"kernel":{"known":"6.1"},"arch":"x86_64","cpu":{"known":"c"},"#,
    r#""topology":{"cpus":[{"id":0,"package":0,"core":0,"llc":0,"node":0}]},"#,
    r#""caches_bytes":{"known":{"L1d":32768}},"governor":{"unknown":"a guest has none"},"smt":{"known":false},"#,
    r#""mitigations":{"known":{}},"virtualisation":{"known":"kvm"},"clocksource":{"known":"tsc"},"#,
    r#""transparent_huge_pages":{"known":"madvise"},"tick_ns":{"known":4000000},"load":{"known":0.5},"#,
    r#""memory_bytes":{"known":1073741824},"limits":{"fs/pipe-max-size":{"known":"1048576"}}},"#,
    r#""clock":{"source":{"tsc":{"ns_per_tick":0.4}},"reason":"it is invariant","precision_ns":8.0,"cost_ns":9.5},"#,
    r#""settings":{"suite":"default","precision":0.02,"time_ns":60000000000,"rounds":null,"slice_ns":1000000,"#,
    r#""check":false},"plan":{"cases":[],"dropped":[{"case":"pipe latency smt","reason":"one thread"}]},"#,
    r#""floors":[]}"#,
    "\n"
);

/// Results of no case.
pub fn results() -> Results {
    #[expect(clippy::expect_used, reason = "the text above is a header")]
    results::parse(HEADER.as_bytes(), "header").expect("a header")
}

/// The lines of `results` as a run writes them: the samples of the cases of the plan before their records, one of each case after
/// the other.
pub fn lines(results: &Results) -> Vec<Line> {
    let place_of = |record: &Record| results.header.plan.cases.iter().position(|case| *case == record.case);
    let planned = results.records.iter().filter_map(|record| Some((place_of(record)?, &record.samples)));
    let mut samples: Vec<(usize, SampleLine)> = Vec::new();
    for (place, of_case) in planned {
        #[expect(clippy::expect_used, reason = "a plan with so many cases is longer than a line may be")]
        let case = u32::try_from(place).expect("a place");
        samples.extend(of_case.iter().cloned().map(|sample| SampleLine { case, sample }).enumerate());
    }
    samples.sort_by_key(|(nth, _)| *nth);
    let record = |record: &Record| match place_of(record) {
        Some(_) => Record { samples: Vec::new(), ..record.clone() },
        None => record.clone(),
    };
    let header = Line::Header(Box::new(results.header.clone()));
    let samples = samples.into_iter().map(|(_, line)| Line::Sample(Box::new(line)));
    let records = results.records.iter().map(|of| Line::Record(Box::new(record(of))));
    let profiles = results.profiles.iter().map(|profile| Line::Profile(Box::new(profile.clone())));
    let end = results.end.clone().map(Line::End);
    std::iter::once(header).chain(samples).chain(records).chain(profiles).chain(end).collect()
}

/// One trial of 1000 iterations.
pub fn sample(round: u32, iteration_ns: f64, floor_ns: Option<f64>) -> Sample {
    Sample {
        round,
        trial: round,
        started_ns: u64::from(round) * 1_000_000,
        trial_iterations: 1200,
        floor_ns,
        ..Sample::new(1000, iteration_ns * 1000.0, Usage::default(), Some(Usage::default()))
    }
}

/// A settled record without its summary.
pub fn record(case: Case, samples: Vec<Sample>) -> Record {
    Record::bare(case, false, Outcome::Settled, samples)
}
