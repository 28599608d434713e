//! Results files: from text to `Results` and back, one JSON value a line.
//!
//! A file may be cut off, foreign, hostile or from another version. What is returned by [`parse`] is
//! safe to compute with: nothing divides by zero, overflows or panics later. Opening the file is the
//! binary's work; what the lines mean stands in `record`.

use crate::case::Case;
use crate::invalid::{Invalid, printable};
use crate::observation::Observation;
use crate::observation::profile::{EndpointProfile, ProfileRecord};
use crate::peers::Peers;
use crate::record::{Calls, End, FORMAT, Fact, Header, Line, Record, Results, Sample, TimerSample, VERSION};
use crate::stats::Estimate;
use crate::summary::{Summary, summarise};
use crate::units::Size;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::io::{BufRead, Read};

/// The longest line that is read, in bytes. A record of a day of trials is below it.
pub const LONGEST_LINE_BYTES: u64 = 64 << 20;
/// The largest file that is read, in bytes: an endless one is refused here at the latest.
pub const LARGEST_FILE_BYTES: u64 = 4 << 30;
/// The most records that a file may have.
pub const MOST_RECORDS: usize = 1_000_000;
/// The largest count in a sample, and the longest time in nanoseconds (4.9 hours).
///
/// A line of [`LONGEST_LINE_BYTES`] holds less than 2¹⁹ samples, so that every sum over the samples
/// of a record fits in 64 bits.
pub const LARGEST_COUNT: u64 = 1 << 44;
/// The latest moment of an event, in nanoseconds of a clock that starts with the kernel: 36 years, ten of which fit in 64
/// bits, as a trace file has them.
const LATEST_NS: u64 = 1 << 60;
/// The shortest time per iteration, in nanoseconds. A processor does nothing as fast as this; the bound
/// keeps quotients of two times finite.
pub const SHORTEST_NS: f64 = 1e-9;

/// Reads a results file. `name` is how errors call it.
///
/// A last line that was cut off is dropped with a note in `Results::notes`: a run that was killed
/// keeps all that it had finished. Any other line that cannot be read is an error with its number.
pub fn parse(reader: impl BufRead, name: &str) -> Result<Results, Invalid> {
    let mut lines = Lines { reader, name, number: 0, bytes_left: LARGEST_FILE_BYTES };
    let mut results = Results {
        header: lines.header()?,
        records: Vec::new(),
        looks: Vec::new(),
        end: None,
        notes: Vec::new(),
    };
    let mut line_of_case = HashMap::new();
    while let Some(line) = lines.next()? {
        match body(&line.bytes) {
            _ if results.end.is_some() => {
                return Err(lines.broken("it stands after the end of the results"));
            }
            Ok(Body::Record(record)) => {
                if let Some(earlier) = line_of_case.insert(record.case.clone(), lines.number) {
                    return Err(lines.broken(&format!(
                        "it repeats the case '{}' of line {earlier}",
                        printable(&record.case.key())
                    )));
                }
                if results.records.len() == MOST_RECORDS {
                    return Err(lines.broken(&format!("there are more than {MOST_RECORDS} records")));
                }
                results.records.push(*record);
            }
            Ok(Body::Look(look)) => {
                if results.looks.len() == MOST_RECORDS {
                    return Err(lines.broken(&format!("there are more than {MOST_RECORDS} looks")));
                }
                results.looks.push(*look);
            }
            Ok(Body::End(end)) => results.end = Some(end),
            Err(Broken::Text(_)) if line.last => results.notes.push(format!(
                "line {}, the last, was cut off and is left out: the run stopped while it wrote it",
                lines.number
            )),
            Err(Broken::Text(why) | Broken::Meaning(why)) => return Err(lines.broken(&why)),
        }
    }
    Ok(results)
}

/// One line of a results file, with its newline. Times must be finite: JSON has no other numbers.
pub fn to_line(line: &Line) -> String {
    let json = serde_json::to_string(line);
    #[expect(
        clippy::expect_used,
        reason = "every map of a line has text keys, and memory cannot fail to write"
    )]
    let mut text = json.expect("a line is representable in JSON");
    text.push('\n');
    text
}

/// Replaces every summary by what the samples say, as when the file is of another build.
pub fn recompute(results: &mut Results) {
    for record in &mut results.records {
        record.summary = summarise(&record.case, &record.samples);
    }
}

/// The lines of a file, read one at a time so that memory holds no more than the longest.
struct Lines<'a, R> {
    reader: R,
    name: &'a str,
    /// The number of the line read last, from 1.
    number: u64,
    bytes_left: u64,
}

/// One line without its newline.
struct OneLine {
    bytes: Vec<u8>,
    /// Whether nothing follows it.
    last: bool,
}

impl<R: BufRead> Lines<'_, R> {
    /// The next line that is not blank; `None` at the end.
    fn next(&mut self) -> Result<Option<OneLine>, Invalid> {
        loop {
            let mut bytes = Vec::new();
            let most_bytes = LONGEST_LINE_BYTES.min(self.bytes_left);
            self.number += 1;
            // One byte more than allowed tells a line that is too long from one that just fits.
            let taken = self.reader.by_ref().take(most_bytes + 1).read_until(b'\n', &mut bytes);
            let taken_bytes = taken.map_err(|e| self.unreadable(&e))? as u64;
            if taken_bytes > most_bytes {
                return Err(self.too_long());
            }
            self.bytes_left -= taken_bytes;
            if bytes.is_empty() {
                return Ok(None);
            }
            let whole = bytes.ends_with(b"\n");
            if bytes.trim_ascii().is_empty() {
                continue;
            }
            let last = !whole || self.peek()?.is_none();
            return Ok(Some(OneLine { bytes, last }));
        }
    }

    /// The next byte, which stays where it is; `None` at the end.
    fn peek(&mut self) -> Result<Option<u8>, Invalid> {
        loop {
            match self.reader.fill_buf().map(|bytes| bytes.first().copied()) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                next => return next.map_err(|e| self.unreadable(&e)),
            }
        }
    }

    /// The first line, which says what the file is. Its first byte is looked at before the line is
    /// read, so that a binary file or an endless device is refused at once.
    fn header(&mut self) -> Result<Header, Invalid> {
        match self.peek()? {
            None => return Err(self.refused("is empty", "the run may have failed: measure again")),
            Some(b'{') => {}
            Some(_) => return Err(self.foreign("it does not begin with a JSON object")),
        }
        let Some(line) = self.next()? else {
            return Err(self.foreign("it is blank"));
        };
        let mark: Mark = match from_json(&line.bytes) {
            Ok(mark) => mark,
            Err(Broken::Text(_)) if line.last && line.bytes.starts_with(br#"{"type":"header""#) => {
                return Err(
                    self.refused("was cut off within its header", "nothing was measured: measure again")
                );
            }
            Err(Broken::Text(why) | Broken::Meaning(why)) => return Err(self.foreign(&why)),
        };
        match mark {
            Mark { kind: Some(kind), .. } if ["record", "look", "end"].contains(&kind.as_str()) => {
                return Err(self.refused(
                    "has no header: its first line is of a later part",
                    "restore the first line, or measure again",
                ));
            }
            Mark { format: Some(format), .. } if format != FORMAT => {
                return Err(self.foreign(&format!("its format is '{}'", printable(&format))));
            }
            Mark { format: None, .. } => return Err(self.foreign("its first line names no format")),
            Mark { version: None, .. } => return Err(self.foreign("its first line names no version")),
            Mark { version: Some(version), .. } if version != u64::from(VERSION) => {
                return Err(self.other_version(version));
            }
            Mark { .. } => {}
        }
        let header = from_json(&line.bytes).and_then(checked_header);
        header.map_err(|(Broken::Text(why) | Broken::Meaning(why))| self.broken(&why))
    }

    fn refused(&self, problem: &str, remedy: &str) -> Invalid {
        Invalid::new(format!("'{}' {problem}", printable(self.name)), remedy)
    }

    fn foreign(&self, why: &str) -> Invalid {
        self.refused(
            &format!("is not a results file of ipcmark: {why}"),
            "give a file that 'ipcmark run' wrote",
        )
    }

    fn other_version(&self, version: u64) -> Invalid {
        let remedy = if version > u64::from(VERSION) {
            "read it with the ipcmark that wrote it, or a later one"
        } else {
            "read it with the ipcmark that wrote it, or measure again with this one"
        };
        self.refused(
            &format!("has version {version} of the results format; this ipcmark reads version {VERSION}"),
            remedy,
        )
    }

    fn broken(&self, why: &str) -> Invalid {
        self.refused(
            &format!("is broken at line {}: {why}", self.number),
            "take the file from its source again, or remove that line if you can do without it",
        )
    }

    fn too_long(&self) -> Invalid {
        if self.bytes_left < LONGEST_LINE_BYTES {
            return self.refused(
                &format!("is longer than {} bytes", Size(LARGEST_FILE_BYTES)),
                "give a file that 'ipcmark run' wrote; split a run that long into several",
            );
        }
        self.refused(
            &format!(
                "is broken at line {}: the line is longer than {} bytes",
                self.number,
                Size(LONGEST_LINE_BYTES)
            ),
            "give a file that 'ipcmark run' wrote; end a run that long with --time or --rounds",
        )
    }

    fn unreadable(&self, why: &std::io::Error) -> Invalid {
        self.refused(
            &format!("cannot be read at line {}: {why}", self.number.max(1)),
            "check that it is a file, and that you may read it",
        )
    }
}

/// What tells lines and files apart, read before the rest.
#[derive(Deserialize)]
struct Mark {
    #[serde(rename = "type")]
    kind: Option<String>,
    format: Option<String>,
    version: Option<u64>,
}

/// A line after the header.
enum Body {
    Record(Box<Record>),
    Look(Box<ProfileRecord>),
    End(End),
}

/// Why a line cannot be used.
enum Broken {
    /// It is not JSON: it may have been cut off.
    Text(String),
    /// It is JSON, and says something that cannot be.
    Meaning(String),
}

/// A line after the header. The tag is read first and on its own: serde's way with tagged enums
/// would hold the whole line as a tree, many times its size.
fn body(bytes: &[u8]) -> Result<Body, Broken> {
    let mark: Mark = from_json(bytes)?;
    match mark.kind.as_deref() {
        Some("record") => from_json(bytes).and_then(checked_record).map(Body::Record),
        Some("look") => from_json(bytes).and_then(checked_look).map(Body::Look),
        Some("end") => from_json(bytes).map(Body::End),
        Some("header") => Err(Broken::Meaning("there is a second header".to_owned())),
        Some(other) => Err(Broken::Meaning(format!("its type '{}' is unknown", printable(other)))),
        None => Err(Broken::Meaning("it has no type".to_owned())),
    }
}

fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Broken> {
    let text = std::str::from_utf8(bytes).map_err(|_| Broken::Text("it is not UTF-8".to_owned()))?;
    serde_json::from_str(text).map_err(|e| {
        // The library counts lines from this text, which is always one.
        let why = e.to_string().replace(" at line 1 column ", " at column ");
        if e.is_data() {
            Broken::Meaning(printable(&why))
        } else {
            Broken::Text(format!("it is not JSON: {}", printable(&why)))
        }
    })
}

fn checked_header(header: Header) -> Result<Header, Broken> {
    let precision = header.settings.precision.0;
    check(precision > 0.0 && precision <= 1.0, "settings.precision", "above 0 and at most 1")?;
    header.plan.cases.iter().try_for_each(checked_case)?;
    for reading in &header.floors {
        checked_case(&reading.case)?;
        check(reading.iteration_ns.is_none_or(is_time), "floors.iteration_ns", A_TIME)?;
    }
    if let Some(Err(fault)) = header.study.as_ref().map(|study| study.check()) {
        return Err(Broken::Meaning(format!("study: {}", fault.invalid.problem)));
    }
    Ok(header)
}

fn checked_record(record: Box<Record>) -> Result<Box<Record>, Broken> {
    checked_case(&record.case)?;
    if let crate::Outcome::Missed { achieved } = record.outcome {
        check((0.0..=1.0).contains(&achieved), "outcome.missed.achieved", "from 0 to 1")?;
    }
    record.samples.iter().try_for_each(checked_sample)?;
    record.summary.iter().try_for_each(checked_summary)?;
    Ok(record)
}

fn checked_look(look: Box<ProfileRecord>) -> Result<Box<ProfileRecord>, Broken> {
    checked_case(&look.case)?;
    let Fact::Known(showed) = &look.showed else { return Ok(look) };
    check((1..=LARGEST_COUNT).contains(&showed.iterations), "iterations", "from 1 to 17592186044416")?;
    check(is_time(showed.iteration_ns), "iteration_ns", A_TIME)?;
    check((1e-6..=1e6).contains(&showed.effect), "effect", "from a millionth to a million")?;
    showed.ends().try_for_each(checked_end)?;
    showed.timeline.as_ref().map_or(Ok(()), |timeline| checked_timeline(&timeline.seen))?;
    Ok(look)
}

fn checked_end(end: &EndpointProfile) -> Result<(), Broken> {
    let is_amount = |amount: f64| (0.0..=LARGEST_COUNT as f64).contains(&amount);
    for call in &end.calls {
        // What calls are asked for and return may be addresses, whose sums are of any size.
        check(call.count <= LARGEST_COUNT, "calls", A_COUNT)?;
        check(is_amount(call.per_iteration) && is_amount(call.mean_ns), "calls", A_COUNT)?;
    }
    if let Some(row) = &end.schedule {
        let amounts = [row.runs_ns, row.sleeps_ns, row.preempted_ns, row.sleeps, row.preemptions];
        check(amounts.into_iter().all(is_amount), "schedule", A_COUNT)?;
    }
    let counted = end.counters.iter().filter_map(|counter| counter.count.known());
    // What is counted may be more than a count of anything else: cycles of hours.
    check(counted.clone().all(|count| (0.0..=1e18).contains(count)), "counters", "from 0 to 1e18")?;
    check(end.places.values().all(|samples| *samples <= LARGEST_COUNT), "places", A_COUNT)
}

/// Whether what is worked out of events can be, which trusts their order.
fn checked_timeline(seen: &Observation) -> Result<(), Broken> {
    check((1..=LARGEST_COUNT).contains(&seen.iterations), "timeline.iterations", "from 1 to 17592186044416")?;
    check(is_time(seen.elapsed_ns), "timeline.elapsed_ns", A_TIME)?;
    check(seen.iteration_ends_ns.is_sorted(), "timeline.iteration_ends_ns", "in the order of time")?;
    let ends = seen.iteration_ends_ns.first().into_iter().chain(seen.iteration_ends_ns.last());
    check(ends.into_iter().all(|at| *at <= LATEST_NS), "timeline.iteration_ends_ns", "moments")?;
    for end in seen.ends() {
        let window = end.from_ns..=end.until_ns;
        check(end.from_ns <= end.until_ns && end.until_ns <= LATEST_NS, "timeline", "a time that ends")?;
        let all_within = end.events.iter().all(|event| window.contains(&event.at_ns));
        let in_order = end.events.is_sorted_by_key(|event| event.at_ns);
        check(all_within && in_order, "timeline.events", "within their time, and in its order")?;
    }
    Ok(())
}

fn checked_case(case: &Case) -> Result<(), Broken> {
    let key = case.key();
    check(case.size_bytes.is_none_or(|size| size <= Size::LARGEST), "size_bytes", "from 0 to 1073741824")?;
    check(
        key.len() <= 1000 && !key.contains(char::is_control),
        "spec",
        "short, and without control characters",
    )
}

fn checked_sample(sample: &Sample) -> Result<(), Broken> {
    check((1..=LARGEST_COUNT).contains(&sample.iterations), "iterations", "from 1 to 17592186044416")?;
    check(sample.iterations_in_all <= LARGEST_COUNT, "iterations_in_all", A_COUNT)?;
    check(is_time(sample.elapsed_ns) && is_time(sample.iteration_ns()), "elapsed_ns", A_TIME)?;
    check(sample.floor_ns.is_none_or(is_time), "floor_ns", A_TIME)?;
    check(sample.each.as_ref().is_none_or(|each| is_time(each.mean_ns)), "each.mean_ns", A_TIME)?;
    for usage in std::iter::once(&sample.client).chain(&sample.server) {
        let counts = [
            usage.cpu_ns,
            usage.user_ns,
            usage.system_ns,
            usage.voluntary_switches,
            usage.involuntary_switches,
            usage.minor_faults,
            usage.major_faults,
        ];
        check(counts.iter().all(|count| *count <= LARGEST_COUNT), "client or server", A_COUNT)?;
    }
    let late = |ns: f64| ns == 0.0 || is_time(ns);
    let kept = sample.schedule.is_none_or(|schedule| is_time(schedule.span_ns) && late(schedule.late_ns));
    check(kept, "schedule", A_TIME)?;
    check(sample.lost.is_none_or(|lost| lost <= sample.iterations), "lost", "at most as many as iterations")?;
    let shares = sample.shares.iter().flatten();
    check(shares.clone().all(|iterations| *iterations <= LARGEST_COUNT), "shares", A_COUNT)?;
    check(shares.count() <= Peers::MOST as usize, "shares", "of at most 64 clients")?;
    check(sample.timer.is_none_or(is_timer), "timer", "of times of at most 4.9 hours, in nanoseconds")?;
    sample.calls.as_ref().map_or(Ok(()), checked_calls)
}

fn checked_calls(calls: &Calls) -> Result<(), Broken> {
    let returned = calls.send.returned_bytes.iter().chain(&calls.receive.returned_bytes);
    let counts = [calls.messages, calls.send.count, calls.receive.count];
    let mut all = returned.flat_map(|(bytes, calls)| [*bytes, *calls]).chain(counts);
    check(all.all(|count| count <= LARGEST_COUNT), "calls", A_COUNT)
}

fn checked_summary(summary: &Summary) -> Result<(), Broken> {
    let estimates = [
        Some(summary.iteration_ns),
        summary.bytes_per_s,
        summary.each_over_total,
        summary.floor_multiple,
        summary.quantiles.map(|quantiles| quantiles.p99_by_trial_ns),
    ];
    check(summary.iteration_ns.median > 0.0, "summary.iteration_ns", A_TIME)?;
    check(estimates.into_iter().flatten().all(is_estimate), "summary", "of numbers not below 0, in order")?;
    let is_part = |part: f64| (0.0..=1.0).contains(&part);
    check(summary.achieved.is_none_or(is_part), "summary.achieved", "from 0 to 1")?;
    let steps = summary.steps.iter().flat_map(|steps| steps.client.iter().chain(&steps.server));
    let mut means = steps.map(|step| step.mean_ns);
    check(means.all(|ns| ns == 0.0 || is_time(ns)), "summary.steps", A_TIME)?;
    check(
        summary.timer.is_none_or(is_timer),
        "summary.timer",
        "of times of at most 4.9 hours, in nanoseconds",
    )?;
    let modes = summary.modes.is_none_or(|modes| modes.fast > 0.0 && modes.slow >= modes.fast);
    check(modes, "summary.modes", "of positive times in order")
}

const A_TIME: &str = "a time above 0 and at most 4.9 hours, in nanoseconds";
const A_COUNT: &str = "of counts of at most 17592186044416";

fn is_time(ns: f64) -> bool {
    (SHORTEST_NS..=LARGEST_COUNT as f64).contains(&ns)
}

fn is_timer(timer: TimerSample) -> bool {
    let TimerSample { error_ns, deviation_ns, off_clock_ns, resolution_ns } = timer;
    let all = [error_ns, deviation_ns, off_clock_ns, resolution_ns];
    all.iter().all(|ns| ns.abs() <= LARGEST_COUNT as f64) && deviation_ns >= 0.0 && resolution_ns >= 0.0
}

fn is_estimate(estimate: Estimate) -> bool {
    let (low, high) = estimate.interval.unwrap_or((estimate.median, estimate.median));
    estimate.median >= 0.0 && low >= 0.0 && low <= high && high.is_finite()
}

fn check(holds: bool, field: &str, must: &str) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken::Meaning(format!("{field} must be {must}"))) }
}

/// Small results, for the tests here and of what is computed from results.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::record::{Outcome, Usage};

    /// A header as it stands in a file.
    pub(crate) const HEADER: &str = concat!(
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
    pub(crate) fn results() -> Results {
        parse(HEADER.as_bytes(), "header").unwrap()
    }

    /// One trial of 1000 iterations.
    pub(crate) fn sample(round: u32, iteration_ns: f64, floor_ns: Option<f64>) -> Sample {
        Sample {
            round,
            started_ns: u64::from(round) * 1_000_000,
            iterations: 1000,
            iterations_in_all: 1200,
            elapsed_ns: iteration_ns * 1000.0,
            floor_ns,
            each: None,
            client: Usage::default(),
            server: Some(Usage::default()),
            calls: None,
            steps: None,
            timer: None,
            schedule: None,
            shares: None,
            lost: None,
        }
    }

    /// A settled record with its summary.
    pub(crate) fn record(case: Case, samples: Vec<Sample>) -> Record {
        let summary = summarise(&case, &samples);
        Record {
            case,
            floor: false,
            outcome: Outcome::Settled,
            samples,
            summary,
            settings: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::HEADER;
    use super::*;
    use crate::case::{Endpoints, Placement, Spec, Workload};
    use crate::histogram::Histogram;
    use crate::observation::calls::CallRow;
    use crate::record::{CallCounts, Each, Fact, Outcome, Setting, Usage};
    use crate::topology::CpuPair;
    use crate::warning::Warning;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::io::{BufReader, Cursor};

    const END: &str = concat!(
        r#"{"type":"end","interrupted":false,"rounds":8,"elapsed_ns":1000,"stolen":{"unknown":"no field"},"#,
        r#""clock_drift":1e-6}"#,
        "\n"
    );

    fn read(text: impl AsRef<[u8]>) -> Result<Results, Invalid> {
        parse(text.as_ref(), "r.jsonl")
    }

    fn problem(text: impl AsRef<[u8]>) -> String {
        let invalid = read(text).unwrap_err();
        assert!(!invalid.remedy.is_empty(), "{invalid}");
        invalid.problem
    }

    fn text_of(results: &Results) -> String {
        let mut text = to_line(&Line::Header(Box::new(results.header.clone())));
        let records = results.records.iter().map(|record| to_line(&Line::Record(Box::new(record.clone()))));
        text.extend(records);
        text.extend(results.end.iter().map(|end| to_line(&Line::End(end.clone()))));
        text
    }

    fn record(name: &str, samples: Vec<Sample>) -> Record {
        testing::record(case(name), samples)
    }

    fn case(name: &str) -> Case {
        Case {
            workload: Workload::Latency,
            size_bytes: Some(Size(64)),
            placement: Placement::SameCore,
            cpus: Some(CpuPair { client: 1, server: 1 }),
            endpoints: Endpoints::Processes,
            pace: crate::Pace::BackToBack,
            peers: crate::Peers::Pair,
            spec: Spec::plain(name),
        }
    }

    fn sample(round: u32, elapsed_ns: f64) -> Sample {
        Sample { iterations: 1000, elapsed_ns, ..testing::sample(round, 1.0, Some(700.0)) }
    }

    fn small() -> Results {
        let samples: Vec<Sample> = (0..8).map(|round| sample(round, 1e6 + f64::from(round))).collect();
        let mut results = read(HEADER).unwrap();
        results.records = vec![record("pipe", samples), record("fifo", Vec::new())];
        results.end = read([HEADER, END].concat()).unwrap().end;
        results
    }

    fn line_with(from: &str, to: &str) -> String {
        let text = text_of(&small());
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    }

    #[test]
    fn a_whole_file_is_read_back_as_it_was() {
        let results = small();
        assert_eq!(read(text_of(&results)).unwrap(), results);
        assert!(results.notes.is_empty());
    }

    #[test]
    fn a_file_cut_anywhere_keeps_every_complete_record() {
        let (whole, text) = (small(), text_of(&small()));
        let header_bytes = text.find('\n').unwrap();
        for cut in 0..text.len() {
            let part = &text.as_bytes()[..cut];
            if cut < header_bytes {
                let problem = problem(part);
                assert!(problem.contains("cut off") || problem.contains("not a results file") || cut == 0);
                continue;
            }
            let read = read(part).unwrap();
            // A line counts once all but its newline is there.
            let complete = text.match_indices('\n').filter(|(at, _)| *at <= cut).count() - 1;
            assert_eq!(read.records, whole.records[..complete.min(whole.records.len())], "cut at {cut}");
            assert_eq!(read.end.is_some(), complete > whole.records.len());
            let between = part.ends_with(b"\n") || text.as_bytes()[cut] == b'\n';
            assert_eq!(read.notes.is_empty(), between, "cut at {cut}: {:?}", read.notes);
        }
    }

    #[test]
    fn a_last_line_of_rubbish_is_dropped_with_a_note_and_one_in_the_middle_is_not() {
        let cut = read([HEADER, "{\"type\":\"rec\u{fffd}\n"].concat()).unwrap();
        assert!(cut.notes[0].starts_with("line 2, the last, was cut off"), "{:?}", cut.notes);
        let not_utf8 = [HEADER.as_bytes(), b"{\"type\":\"rec\xff"].concat();
        assert_eq!(read(&not_utf8).unwrap().notes.len(), 1);
        let middle = [&not_utf8[..], b"\"}\n", END.as_bytes()].concat();
        assert!(problem(middle).contains("broken at line 2: it is not UTF-8"));
        assert!(problem([HEADER, "{\"type\":\n", END].concat()).contains("line 2: it is not JSON: EOF"));
        assert!(problem([HEADER, "\n{}\n"].concat()).contains("line 3: it has no type"));
    }

    #[test]
    fn what_is_no_results_file_is_refused_by_what_it_is() {
        for (text, says) in [
            ("", "is empty"),
            ("\n\n", "is not a results file"),
            ("hello", "does not begin with a JSON object"),
            ("[1,2]\n", "does not begin with a JSON object"),
            ("{\n  \"type\": 1\n}", "it is not JSON"),
            ("{}", "names no format"),
            (r#"{"format":"other"}"#, "its format is 'other'"),
            (r#"{"format":7}"#, "is not a results file"),
            (r#"{"format":"ipcmark-results"}"#, "names no version"),
            (
                r#"{"format":"ipcmark-results","version":9}"#,
                "has version 9 of the results format; this ipcmark reads version 1",
            ),
            (r#"{"format":"ipcmark-results","version":0}"#, "has version 0"),
            (r#"{"type":"record"}"#, "has no header"),
            (END, "has no header"),
            (&HEADER[..100], "was cut off within its header"),
        ] {
            let found = problem(text);
            assert!(found.contains(says), "{text}: {found}");
            assert!(found.contains("'r.jsonl'"), "{found}");
        }
        let newer = read(r#"{"format":"ipcmark-results","version":2}"#).unwrap_err();
        assert!(newer.remedy.contains("or a later one"), "{newer}");
    }

    /// A look whose timeline is `events` of client's, which was looked at from 10 to 100.
    fn look(events: &str) -> String {
        let event = |at_ns| format!(r#"{{"t":{at_ns},"e":"o","p":false}}"#);
        let events: Vec<String> = events.split(' ').map(event).collect();
        format!(
            concat!(
                r#"{{"type":"look","case":{case},"probe":"timeline","round":1,"showed":{{"known":{{"iterations":2,"#,
                r#""iteration_ns":50.0,"effect":1.5,"client":{{}},"timeline":{{"call_names":{{}},"seen":{{"iterations":2,"#,
                r#""elapsed_ns":100.0,"client":{{"tid":1,"from_ns":10,"until_ns":100,"events":[{events}]}}}}}}}}}}}}"#,
                "\n"
            ),
            case = serde_json::to_string(&small().records[0].case).unwrap(),
            events = events.join(","),
        )
    }

    #[test]
    fn looks_are_read_back_and_kept_apart_from_records() {
        let results = read([HEADER, &look("10 50 100"), END].concat()).unwrap();
        assert_eq!((results.records.len(), results.looks.len()), (0, 1));
        let again = to_line(&Line::Profile(Box::new(results.looks[0].clone())));
        assert_eq!(read([HEADER, &again].concat()).unwrap().looks, results.looks);
        // The third argument of openat(2) is no count, and mmap(2) returns an address.
        let mut of_addresses = results.looks[0].clone();
        let Fact::Known(showed) = &mut of_addresses.showed else { panic!("{of_addresses:?}") };
        showed.client.calls.push(CallRow {
            name: "mmap".to_owned(),
            count: 2,
            per_iteration: 1.0,
            time: Histogram::new().encode(),
            mean_ns: 9.0,
            errors: BTreeMap::new(),
            restarts: 0,
            returned: Vec::new(),
            returned_sum: i64::MIN,
            asked_sum: u64::MAX,
        });
        let line = to_line(&Line::Profile(Box::new(of_addresses.clone())));
        assert_eq!(read([HEADER, &line].concat()).unwrap().looks, [of_addresses]);
        // What is worked out of events trusts their order.
        for events in ["50 10", "9 50", "50 101"] {
            let problem = problem([HEADER, &look(events), END].concat());
            assert!(problem.contains("line 2: timeline.events must be within their time"), "{problem}");
        }
        for (from, to) in [
            ("\"iteration_ns\":50.0", "\"iteration_ns\":0.0"),
            ("\"effect\":1.5", "\"effect\":0.0"),
            ("\"until_ns\":100", "\"until_ns\":9000000000000000000"),
            ("\"client\":{}", "\"client\":{\"places\":{\"copy\":99999999999999999}}"),
        ] {
            let problem = problem([HEADER, &look("50").replacen(from, to, 1), END].concat());
            assert!(problem.contains("must be"), "{to}: {problem}");
        }
    }

    #[test]
    fn order_and_repetition_are_checked() {
        let text = text_of(&small());
        let record = text.lines().nth(1).unwrap();
        assert!(problem([HEADER, HEADER].concat()).contains("line 2: there is a second header"));
        assert!(problem([HEADER, END, record].concat()).contains("line 3: it stands after the end"));
        assert!(problem([HEADER, record, "\n", record].concat()).contains("line 3: it repeats the case"));
        assert!(problem([HEADER, r#"{"type":"footer"}"#].concat()).contains("its type 'footer' is unknown"));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line() {
        for (from, to) in [
            (r#""iterations":1000,"#, r#""iterations":0,"#),
            (r#""iterations":1000,"#, r#""iterations":-1,"#),
            (r#""iterations":1000,"#, r#""iterations":18446744073709551615,"#),
            (r#""elapsed_ns":1000000.0"#, r#""elapsed_ns":0"#),
            (r#""elapsed_ns":1000000.0"#, r#""elapsed_ns":-1.5"#),
            (r#""elapsed_ns":1000000.0"#, r#""elapsed_ns":1e300"#),
            (r#""elapsed_ns":1000000.0"#, r#""elapsed_ns":1e999"#),
            (r#""elapsed_ns":1000000.0"#, r#""elapsed_ns":null"#),
            (r#""floor_ns":700.0"#, r#""floor_ns":0.0"#),
            (r#""cpu_ns":0"#, r#""cpu_ns":18446744073709551615"#),
            (r#""size_bytes":64"#, r#""size_bytes":1073741825"#),
            (r#""name":"pipe""#, r#""name":"\u001b[2J""#),
        ] {
            let found = problem(line_with(from, to));
            assert!(found.contains("broken at line 2"), "{to}: {found}");
            assert!(!found.contains('\u{1b}'), "{found:?}");
        }
        assert!(
            problem(line_with(r#""precision":0.02"#, r#""precision":0"#))
                .contains("line 1: settings.precision")
        );
        let deep = ["{\"type\":\"record\",\"case\":", &"[".repeat(100_000), "\n"].concat();
        assert!(problem([HEADER, &deep, END].concat()).contains("broken at line 2"));
    }

    #[test]
    fn endless_input_is_refused_soon() {
        let endless = |byte| BufReader::new(std::io::repeat(byte));
        let zeros = parse(endless(0), "/dev/zero").unwrap_err();
        assert!(zeros.problem.contains("does not begin with"), "{zeros}");
        let spaces = parse(HEADER.as_bytes().chain(endless(b' ')), "x").unwrap_err();
        assert!(spaces.problem.contains("line 2: the line is longer than 64M bytes"), "{spaces}");
        let braces = parse(endless(b'{'), "x").unwrap_err();
        assert!(braces.problem.contains("line 1: the line is longer"), "{braces}");
    }

    #[test]
    fn a_failing_reader_is_named() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("is a directory"))
            }
        }
        let error = parse(BufReader::new(Failing), "d").unwrap_err();
        assert!(error.problem.contains("'d' cannot be read at line 1: is a directory"), "{error}");
    }

    #[test]
    fn a_file_of_the_largest_size_is_not_read_further() {
        let mut lines = Lines { reader: Cursor::new("ab\ncdef\n"), name: "x", number: 0, bytes_left: 5 };
        assert!(lines.next().unwrap().is_some());
        let error = lines.next().err().unwrap();
        assert!(error.problem.contains("is longer than 4G bytes"), "{error}");
    }

    fn times() -> impl Strategy<Value = f64> {
        (-2.0..6.0f64).prop_map(|exponent| 10f64.powf(exponent))
    }

    fn histograms() -> impl Strategy<Value = Histogram> {
        proptest::collection::vec(1..1_000_000_000u64, 1..20).prop_map(|values| {
            let mut histogram = Histogram::new();
            values.iter().for_each(|value| histogram.record(*value));
            histogram
        })
    }

    fn usages() -> impl Strategy<Value = Usage> {
        proptest::array::uniform7(0..LARGEST_COUNT).prop_map(
            |[cpu_ns, user_ns, system_ns, voluntary, involuntary, minor_faults, major_faults]| Usage {
                cpu_ns,
                user_ns,
                system_ns,
                voluntary_switches: voluntary,
                involuntary_switches: involuntary,
                minor_faults,
                major_faults,
            },
        )
    }

    fn calls() -> impl Strategy<Value = Calls> {
        let counts = || {
            (0..LARGEST_COUNT, histograms(), proptest::collection::vec((1..9999u64, 1..99u64), 0..4))
                .prop_map(|(count, time, returned_bytes)| CallCounts {
                    count,
                    time: time.encode(),
                    returned_bytes,
                })
        };
        (1..LARGEST_COUNT, counts(), counts()).prop_map(|(messages, send, receive)| Calls {
            messages,
            send,
            receive,
        })
    }

    fn samples() -> impl Strategy<Value = Vec<Sample>> {
        let each = (times(), histograms())
            .prop_map(|(mean_ns, iterations)| Each { mean_ns, iterations: iterations.encode() });
        let one = (
            1..1_000_000u64,
            times(),
            proptest::option::of(times()),
            proptest::option::of(each),
            usages(),
            proptest::option::of(usages()),
            proptest::option::of(calls()),
        );
        let one = one.prop_map(|(iterations, iteration_ns, floor_ns, each, client, server, calls)| Sample {
            iterations,
            elapsed_ns: iteration_ns * iterations as f64,
            floor_ns,
            each,
            client,
            server,
            calls,
            ..sample(0, 1.0)
        });
        proptest::collection::vec(one, 0..10).prop_map(|mut samples| {
            samples.iter_mut().zip(0..).for_each(|(sample, round)| sample.round = round);
            samples
        })
    }

    fn outcomes() -> impl Strategy<Value = Outcome> {
        prop_oneof![
            Just(Outcome::Settled),
            Just(Outcome::Unsettled),
            Just(Outcome::Interrupted),
            (0.0..1.0).prop_map(|achieved| Outcome::Missed { achieved }),
            ".{0,30}".prop_map(|error| Outcome::Failed { error }),
        ]
    }

    fn files() -> impl Strategy<Value = Results> {
        let one = (samples(), outcomes(), any::<bool>(), ".{0,20}", times());
        (proptest::collection::vec(one, 0..4), any::<bool>()).prop_map(|(records, ended)| {
            let mut results = small();
            let records = records.into_iter().enumerate();
            results.records = records
                .map(|(nth, (samples, outcome, floor, text, ns))| Record {
                    outcome,
                    floor,
                    settings: vec![Setting {
                        name: text.clone(),
                        asked: Some(text.clone()),
                        got: text,
                        clamped: floor,
                    }],
                    warnings: vec![Warning::TwoModes { fast_ns: ns, slow_ns: ns * 1.5, fast_share: 0.3 }],
                    ..record(&format!("row-{nth}"), samples)
                })
                .collect();
            results.end = results.end.filter(|_| ended);
            if let Some(end) = &mut results.end {
                end.stolen = Fact::Known(0.1);
            }
            results
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_file_survives_its_own_text(results in files()) {
            let mut back = read(text_of(&results)).unwrap();
            prop_assert_eq!(&back, &results);
            recompute(&mut back);
            prop_assert_eq!(back, results);
        }

        #[test]
        fn no_damage_panics(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut text = text_of(&small()).into_bytes();
            let at = at.index(text.len());
            text[at] = byte;
            if let Ok(mut results) = read(&text) {
                recompute(&mut results);
            }
        }
    }
}
