//! Results files: from text to `Results` and back, one JSON value a line.
//!
//! A file may be cut off, foreign, hostile or from another version. What is returned by [`parse`] is
//! safe to compute with: nothing divides by zero, overflows or panics later. Opening the file is the
//! binary's work; what the lines mean stands in `record`.

use crate::case::Case;
use crate::invalid::{Invalid, printable};
use crate::record::{End, FORMAT, Header, Line, Record, Results, Sample, VERSION};
use crate::stats::Estimate;
use crate::summary::{Summary, summarise};
use crate::units::Size;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::io::{BufRead, Read};

/// The longest line that is read, in bytes. A record of a day of launches is below it.
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
/// The shortest time per turn, in nanoseconds. A processor does nothing as fast as this; the bound
/// keeps quotients of two times finite.
pub const SHORTEST_NS: f64 = 1e-9;

/// Reads a results file. `name` is how errors call it.
///
/// A last line that was cut off is dropped with a note in `Results::notes`: a run that was killed
/// keeps all that it had finished. Any other line that cannot be read is an error with its number.
pub fn parse(reader: impl BufRead, name: &str) -> Result<Results, Invalid> {
    let mut lines = Lines { reader, name, number: 0, bytes_left: LARGEST_FILE_BYTES };
    let mut results = Results { header: lines.header()?, records: Vec::new(), end: None, notes: Vec::new() };
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
    #[expect(clippy::expect_used, reason = "every map of a line has text keys, and memory cannot fail to write")]
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
            let last = !whole || self.reader.fill_buf().map_err(|e| self.unreadable(&e))?.is_empty();
            return Ok(Some(OneLine { bytes, last }));
        }
    }

    /// The first line, which says what the file is. Its first byte is looked at before the line is
    /// read, so that a binary file or an endless device is refused at once.
    fn header(&mut self) -> Result<Header, Invalid> {
        let first = self.reader.fill_buf().map_err(|e| self.unreadable(&e))?.first().copied();
        match first {
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
                return Err(self.refused("was cut off within its header", "nothing was measured: measure again"));
            }
            Err(Broken::Text(why) | Broken::Meaning(why)) => return Err(self.foreign(&why)),
        };
        match mark {
            Mark { kind: Some(kind), .. } if kind == "record" || kind == "end" => {
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
        self.refused(&format!("is not a results file of ipcmark: {why}"), "give a file that 'ipcmark run' wrote")
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
            &format!("is broken at line {}: the line is longer than {} bytes", self.number, Size(LONGEST_LINE_BYTES)),
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
        check(reading.turn_ns.is_none_or(is_time), "floors.turn_ns", A_TIME)?;
    }
    Ok(header)
}

fn checked_record(record: Box<Record>) -> Result<Box<Record>, Broken> {
    checked_case(&record.case)?;
    record.samples.iter().try_for_each(checked_sample)?;
    check(
        record.summary.is_some() != record.samples.is_empty(),
        "summary",
        "present where there are samples, and only there",
    )?;
    record.summary.iter().try_for_each(checked_summary)?;
    Ok(record)
}

fn checked_case(case: &Case) -> Result<(), Broken> {
    let key = case.key();
    check(
        case.size_bytes.is_none_or(|size| (1..=Size::LARGEST.0).contains(&size.0)),
        "size_bytes",
        "from 1 to 1073741824",
    )?;
    check(key.len() <= 1000 && !key.contains(char::is_control), "spec", "short, and without control characters")
}

fn checked_sample(sample: &Sample) -> Result<(), Broken> {
    check((1..=LARGEST_COUNT).contains(&sample.turns), "turns", A_COUNT)?;
    check(sample.turns_in_all <= LARGEST_COUNT, "turns_in_all", A_COUNT)?;
    check(is_time(sample.elapsed_ns) && is_time(sample.turn_ns()), "elapsed_ns", A_TIME)?;
    check(sample.floor_ns.is_none_or(is_time), "floor_ns", A_TIME)?;
    check(sample.each.as_ref().is_none_or(|each| is_time(each.mean_ns)), "each.mean_ns", A_TIME)?;
    for usage in std::iter::once(&sample.near).chain(&sample.far) {
        let counts = [
            usage.cpu_ns,
            usage.user_ns,
            usage.system_ns,
            usage.voluntary_switches,
            usage.involuntary_switches,
            usage.minor_faults,
            usage.major_faults,
        ];
        check(counts.iter().all(|count| *count <= LARGEST_COUNT), "near or far", A_COUNT)?;
    }
    for calls in &sample.calls {
        let returned = calls.send.returned_bytes.iter().chain(&calls.receive.returned_bytes);
        let counts = [calls.messages, calls.send.count, calls.receive.count];
        let mut all = returned.flat_map(|(bytes, calls)| [*bytes, *calls]).chain(counts);
        check(all.all(|count| count <= LARGEST_COUNT), "calls", A_COUNT)?;
    }
    Ok(())
}

fn checked_summary(summary: &Summary) -> Result<(), Broken> {
    let estimates = [
        Some(summary.turn_ns),
        summary.bytes_per_s,
        summary.each_over_total,
        summary.floor_multiple,
        summary.quantiles.map(|quantiles| quantiles.p99_by_launch_ns),
    ];
    check(estimates.into_iter().flatten().all(is_estimate), "summary", "of positive numbers in order")?;
    let modes = summary.modes.is_none_or(|modes| modes.fast > 0.0 && modes.slow >= modes.fast);
    check(modes, "summary.modes", "of positive times in order")
}

const A_TIME: &str = "a time above 0 and at most 4.9 hours, in nanoseconds";
const A_COUNT: &str = "a count of at most 17592186044416, and at least one turn";

fn is_time(ns: f64) -> bool {
    (SHORTEST_NS..=LARGEST_COUNT as f64).contains(&ns)
}

fn is_estimate(estimate: Estimate) -> bool {
    let (low, high) = estimate.interval.unwrap_or((estimate.median, estimate.median));
    estimate.median >= 0.0 && low >= 0.0 && low <= high && high.is_finite()
}

fn check(holds: bool, field: &str, must: &str) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken::Meaning(format!("{field} must be {must}"))) }
}
