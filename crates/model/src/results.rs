//! Results files: from text to `Results` and back, one JSON value a line.
//!
//! A file may be cut off, foreign, hostile or from another version. What [`parse`] returns is safe to compute with: nothing
//! divides by zero, overflows or panics later. The binary opens the file; what the lines mean is in `record`.

use crate::case::Case;
use crate::estimate::Estimate;
use crate::fact::Fact;
use crate::invalid::{Invalid, printable};
use crate::observation::profile::{EndpointProfile, ProfileRecord};
use crate::observation::trial::Observation;
use crate::peers::Peers;
use crate::record::{FORMAT, Header, Line, Outcome, Record, Results, RunEnd, SampleLine, VERSION};
use crate::sample::{Sample, TimedCalls, TimerSample};
use crate::speed::SpeedReadings;
use crate::summary::{SpeedSummary, Summary};
use crate::units::Size;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Read};

/// The longest line that is read, in bytes. A record of a day of trials is below it.
pub const LONGEST_LINE_BYTES: u64 = 64 << 20;
/// The largest file that is read, in bytes: an endless one is refused here at the latest.
pub const LARGEST_FILE_BYTES: u64 = 4 << 30;
/// The most records that a file may have.
pub const MOST_RECORDS: usize = 1_000_000;
/// The largest count in a sample, and the longest time in nanoseconds (4.9 hours).
///
/// Of at most [`MOST_SAMPLES`] samples of a case, every sum fits in 64 bits.
pub const LARGEST_COUNT: u64 = 1 << 44;
/// The most samples that a case may have in lines of their own. A line of [`LONGEST_LINE_BYTES`] holds fewer.
pub const MOST_SAMPLES: usize = (1 << 20) - 1;
/// The latest moment of an event or a sample, in nanoseconds: 36 years, ten of which fit in 64 bits, as a trace file has them.
const LATEST_NS: u64 = 1 << 60;
/// The shortest time per iteration, in nanoseconds. A processor does nothing as fast as this; the bound
/// keeps quotients of two times finite.
pub const SHORTEST_NS: f64 = 1e-9;

/// Reads a results file. `name` is how errors call it.
///
/// A last line that was cut off is dropped with a note in `Results::notes`: a run that was killed
/// keeps all that it had written. Any other line that cannot be read is an error with its number.
/// Samples without a record are of a case that the run had not ended when it was cut off: they become
/// a record that is interrupted, without a summary, behind all others.
pub fn parse(reader: impl BufRead, name: &str) -> Result<Results, Invalid> {
    let mut lines = Lines { reader, name, number: 0, bytes_left: LARGEST_FILE_BYTES };
    let mut results = Results {
        header: lines.header()?,
        records: Vec::new(),
        profiles: Vec::new(),
        end: None,
        notes: Vec::new(),
    };
    let mut cases = Cases::from_header(&results.header);
    while let Some(line) = lines.next()? {
        match body(&line.bytes) {
            _ if results.end.is_some() => {
                return Err(lines.broken("it stands after the end of the results"));
            }
            Ok(Body::Sample(line)) => cases.add_sample(*line).map_err(|why| lines.broken(&why))?,
            Ok(Body::Record(mut record)) => {
                cases.end(&mut record, lines.number).map_err(|why| lines.broken(&why))?;
                if results.records.len() == MOST_RECORDS {
                    return Err(lines.broken(&format!("there are more than {MOST_RECORDS} records")));
                }
                results.records.push(*record);
            }
            Ok(Body::Profile(profile)) => {
                if results.profiles.len() == MOST_RECORDS {
                    return Err(lines.broken(&format!("there are more than {MOST_RECORDS} profiles")));
                }
                results.profiles.push(*profile);
            }
            Ok(Body::End(end)) => results.end = Some(end),
            Err(Broken::Text(_)) if line.last => results.notes.push(format!(
                "line {}, the last, was cut off and is left out: the run stopped while it wrote it",
                lines.number
            )),
            Err(Broken::Text(why) | Broken::Meaning(why)) => return Err(lines.broken(&why)),
        }
    }
    results.records.extend(cases.unfinished(&results.header));
    Ok(results)
}

/// The cases of a file while it is read: the samples of those that have no record yet, and where the others had theirs.
struct Cases {
    /// In the plan.
    place_of: HashMap<Case, usize>,
    /// By place in the plan.
    waiting: Vec<WaitingCase>,
    /// Of each case that has a record.
    line_of_record: HashMap<Case, u64>,
}

/// A case of the plan.
#[derive(Default)]
struct WaitingCase {
    samples: Vec<Sample>,
    has_ended: bool,
}

impl Cases {
    fn from_header(header: &Header) -> Self {
        let places = header.plan.cases.iter().cloned().zip(0..);
        let waiting = header.plan.cases.iter().map(|_| WaitingCase::default());
        Self { place_of: places.collect(), waiting: waiting.collect(), line_of_record: HashMap::new() }
    }

    fn add_sample(&mut self, line: SampleLine) -> Result<(), String> {
        let cases = self.waiting.len();
        let Some(case) = self.waiting.get_mut(line.case as usize) else {
            return Err(format!("its case is at place {} of a plan of {cases} cases", line.case));
        };
        if case.has_ended {
            return Err("it is a sample of a case that had its record before".to_owned());
        }
        if case.samples.len() == MOST_SAMPLES {
            return Err(format!("there are more than {MOST_SAMPLES} samples of its case"));
        }
        case.samples.push(line.sample);
        Ok(())
    }

    /// Takes `record`, of line `number`, and gives it the samples of its case that stood before it.
    fn end(&mut self, record: &mut Record, number: u64) -> Result<(), String> {
        if let Some(earlier) = self.line_of_record.insert(record.case.clone(), number) {
            return Err(format!("it repeats the case '{}' of line {earlier}", printable(&record.case.key())));
        }
        let Some(&place) = self.place_of.get(&record.case) else { return Ok(()) };
        self.waiting[place].has_ended = true;
        let samples = std::mem::take(&mut self.waiting[place].samples);
        match (samples.is_empty(), record.samples.is_empty()) {
            (true, _) => Ok(()),
            (false, true) => {
                record.samples = samples;
                Ok(())
            }
            (false, false) => Err("it has samples, and its case had some in lines of their own".to_owned()),
        }
    }

    /// What was measured of the cases of `header` that have no record, in the order of the plan.
    fn unfinished(self, header: &Header) -> impl Iterator<Item = Record> {
        let is_floor = |case: &Case| header.floors.iter().any(|floor| floor.case == *case);
        let measured =
            header.plan.cases.iter().zip(self.waiting).filter(|(_, case)| !case.samples.is_empty());
        measured.map(move |(case, WaitingCase { samples, .. })| {
            Record::bare(case.clone(), is_floor(case), Outcome::Interrupted, samples)
        })
    }
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

    /// The first line, which says what the file is. Its first byte is checked before the line is
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
            Mark { kind: Some(kind), .. }
                if ["sample", "record", "profile", "end"].contains(&kind.as_str()) =>
            {
                return Err(self.refused(
                    "has no header: its first line is not the first line of a results file",
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
    Sample(Box<SampleLine>),
    Record(Box<Record>),
    Profile(Box<ProfileRecord>),
    End(RunEnd),
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
        Some("sample") => from_json(bytes).and_then(checked_sample_line).map(Body::Sample),
        Some("record") => from_json(bytes).and_then(checked_record).map(Body::Record),
        Some("profile") => from_json(bytes).and_then(checked_profile).map(Body::Profile),
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
    let asked = header.settings.precision;
    let mut precisions = [Some(asked.least), asked.on_two_cpus].into_iter().flatten();
    check(precisions.all(|of| of.0 > 0.0 && of.0 <= 1.0), "settings.precision", "above 0 and at most 1")?;
    header.plan.cases.iter().try_for_each(checked_case)?;
    let cases: HashSet<&Case> = header.plan.cases.iter().collect();
    check(cases.len() == header.plan.cases.len(), "plan.cases", "cases that differ")?;
    for reading in &header.floors {
        checked_case(&reading.case)?;
        check(reading.iteration_ns.is_none_or(is_time), "floors.iteration_ns", A_TIME)?;
    }
    if let Some(Err(diagnostic)) = header.study.as_ref().map(|study| study.check()) {
        return Err(Broken::Meaning(format!("study: {}", diagnostic.invalid.problem)));
    }
    Ok(header)
}

fn checked_sample_line(line: Box<SampleLine>) -> Result<Box<SampleLine>, Broken> {
    checked_sample(&line.sample)?;
    Ok(line)
}

fn checked_record(record: Box<Record>) -> Result<Box<Record>, Broken> {
    checked_case(&record.case)?;
    if let Outcome::Missed { achieved } = record.outcome {
        check((0.0..=1.0).contains(&achieved), "outcome.missed.achieved", "from 0 to 1")?;
    }
    record.samples.iter().try_for_each(checked_sample)?;
    record.summary.iter().try_for_each(checked_summary)?;
    Ok(record)
}

fn checked_profile(record: Box<ProfileRecord>) -> Result<Box<ProfileRecord>, Broken> {
    checked_case(&record.case)?;
    let Fact::Known(profile) = &record.profile else { return Ok(record) };
    check((1..=LARGEST_COUNT).contains(&profile.iterations), "iterations", "from 1 to 17592186044416")?;
    check(is_time(profile.iteration_ns), "iteration_ns", A_TIME)?;
    check((1e-6..=1e6).contains(&profile.effect), "effect", "from a millionth to a million")?;
    profile.endpoints().try_for_each(checked_end)?;
    profile.timeline.as_ref().map_or(Ok(()), |timeline| checked_timeline(&timeline.observation))?;
    Ok(record)
}

fn checked_end(end: &EndpointProfile) -> Result<(), Broken> {
    let is_amount = |amount: f64| (0.0..=LARGEST_COUNT as f64).contains(&amount);
    for call in &end.calls {
        // What calls are asked for and return may be addresses, whose sums are of any size.
        check(call.count <= LARGEST_COUNT, "calls", A_COUNT)?;
        check(is_amount(call.per_iteration) && is_amount(call.mean_ns), "calls", A_COUNT)?;
    }
    if let Some(row) = &end.schedule {
        let amounts = [row.running_ns, row.asleep_ns, row.preempted_ns, row.sleeps, row.preemptions];
        check(amounts.into_iter().all(is_amount), "schedule", A_COUNT)?;
    }
    let counted = end.counters.iter().filter_map(|counter| counter.count.known());
    // What is counted may be more than a count of anything else: cycles of hours.
    check(counted.clone().all(|count| (0.0..=1e18).contains(count)), "counters", "from 0 to 1e18")?;
    check(end.subsystems.values().all(|samples| *samples <= LARGEST_COUNT), "subsystems", A_COUNT)
}

/// Checks the order of events, which whatever is worked out of them relies on.
fn checked_timeline(seen: &Observation) -> Result<(), Broken> {
    check((1..=LARGEST_COUNT).contains(&seen.iterations), "timeline.iterations", "from 1 to 17592186044416")?;
    check(is_time(seen.elapsed_ns), "timeline.elapsed_ns", A_TIME)?;
    check(seen.iteration_ends_ns.is_sorted(), "timeline.iteration_ends_ns", "in the order of time")?;
    let ends = seen.iteration_ends_ns.first().into_iter().chain(seen.iteration_ends_ns.last());
    check(ends.into_iter().all(|at| *at <= LATEST_NS), "timeline.iteration_ends_ns", "moments")?;
    for end in seen.endpoints() {
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

/// Why `sample`, which somebody else measured, cannot be computed with, if it cannot.
pub fn unsound(sample: &Sample) -> Option<String> {
    checked_sample(sample).err().map(|(Broken::Text(why) | Broken::Meaning(why))| why)
}

fn checked_sample(sample: &Sample) -> Result<(), Broken> {
    check((sample.trial as usize) < MOST_SAMPLES, "trial", "below 1048575")?;
    check(sample.started_ns <= LATEST_NS, "started_ns", "a moment of at most 1152921504606846976 ns")?;
    check((1..=LARGEST_COUNT).contains(&sample.iterations), "iterations", "from 1 to 17592186044416")?;
    const SPEEDS: &str = "of times above 0 and at most 4.9 hours, in nanoseconds";
    check(sample.speed.is_none_or(is_speed), "speed", SPEEDS)?;
    check(sample.stolen_ns.is_none_or(|ns| ns <= LARGEST_COUNT), "stolen_ns", A_COUNT)?;
    check(sample.trial_iterations <= LARGEST_COUNT, "trial_iterations", A_COUNT)?;
    check(is_time(sample.elapsed_ns) && is_time(sample.iteration_ns()), "elapsed_ns", A_TIME)?;
    check(sample.floor_ns.is_none_or(is_time), "floor_ns", A_TIME)?;
    check(sample.wake_floor_ns.is_none_or(is_time), "wake_floor_ns", A_TIME)?;
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
    let slope = sample.schedule.and_then(|schedule| schedule.backlog_slope);
    check(slope.is_none_or(|of: f64| of.abs() <= LARGEST_COUNT as f64), "schedule.backlog_slope", "a slope")?;
    let kept = sample.schedule.is_none_or(|schedule| is_time(schedule.span_ns) && late(schedule.late_ns));
    check(kept, "schedule", A_TIME)?;
    check(sample.lost.is_none_or(|lost| lost <= sample.iterations), "lost", "at most as many as iterations")?;
    check(sample.network.as_ref().is_none_or(|of| of.is_within(LARGEST_COUNT)), "network", "of counts")?;
    let shares = sample.shares.iter().flatten();
    check(shares.clone().all(|iterations| *iterations <= LARGEST_COUNT), "shares", A_COUNT)?;
    check(shares.count() <= Peers::MOST as usize, "shares", "of at most 64 clients")?;
    check(sample.timer.is_none_or(is_timer), "timer", "of times of at most 4.9 hours, in nanoseconds")?;
    sample.calls.as_ref().map_or(Ok(()), checked_calls)
}

fn checked_calls(calls: &TimedCalls) -> Result<(), Broken> {
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
        summary.wake_floor_multiple,
    ];
    check(summary.iteration_ns.median > 0.0, "summary.iteration_ns", A_TIME)?;
    check(estimates.into_iter().flatten().all(is_estimate), "summary", "of numbers not below 0, in order")?;
    check(summary.total_ns.is_none_or(is_time), "summary.total_ns", A_TIME)?;
    let longest_ns = summary.stalls.map(|stalls| stalls.longest_ns);
    check(longest_ns.is_none_or(is_time), "summary.stalls.longest_ns", A_TIME)?;
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
    summary.speed.as_ref().map_or(Ok(()), checked_speed_summary)?;
    let modes = summary.modes.is_none_or(|modes| modes.fast > 0.0 && modes.slow >= modes.fast);
    check(modes, "summary.modes", "of positive times in order")?;
    let slow_speed = summary.modes.and_then(|modes| modes.slow_speed);
    check(
        slow_speed.is_none_or(|speed| speed > 0.0 && speed <= 1.0),
        "summary.modes.slow_speed",
        "above 0 and at most 1",
    )
}

fn checked_speed_summary(speed: &SpeedSummary) -> Result<(), Broken> {
    check(speed.as_found_ns.is_none_or(is_time), "summary.speed.as_found_ns", A_TIME)?;
    // No two speed readings are further apart.
    let most = LARGEST_COUNT as f64 / SHORTEST_NS;
    check(speed.median_speed > 0.0 && speed.median_speed <= most, "summary.speed.median_speed", "above 0")?;
    let slopes = [speed.client, speed.server, speed.pair, speed.wake];
    let are_slopes = slopes.iter().flatten().all(|of| of.interval.0 <= of.interval.1 && of.slope.is_finite());
    check(are_slopes, "summary.speed.slope", "a slope with its interval in order")
}

const A_TIME: &str = "a time above 0 and at most 4.9 hours, in nanoseconds";
const A_COUNT: &str = "of counts of at most 17592186044416";

fn is_time(ns: f64) -> bool {
    (SHORTEST_NS..=LARGEST_COUNT as f64).contains(&ns)
}

fn is_speed(speed: SpeedReadings) -> bool {
    let readings = [Some(speed.client), speed.server, speed.pair];
    readings.into_iter().flatten().all(|reading| is_time(reading.before_ns) && is_time(reading.after_ns))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_file_of_the_largest_size_is_not_read_further() {
        let mut lines = Lines { reader: Cursor::new("ab\ncdef\n"), name: "x", number: 0, bytes_left: 5 };
        assert!(lines.next().unwrap().is_some());
        let error = lines.next().err().unwrap();
        assert!(error.problem.contains("is longer than 4G bytes"), "{error}");
    }
}
