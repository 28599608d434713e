//! What a run reports while it goes on: each sample and each record is appended to the results file when it comes, and all are kept
//! to be shown.
//!
//! It measures nothing, and does not show results.

use crate::progress::{Doing, Progress};
use crate::results_file::ResultsFile;
use crate::rules::RunRules;
use analysis::summary::recompute;
use harness::coordinator::run::{FinishedCase, RunEvent};
use mechanisms::registry;
use model::card::CardKind;
use model::floor::NULL;
use model::observation::profile::ProfileRecord;
use model::record::{FloorReading, Header, Line, Record, Results, RunEnd, SampleLine};
use model::units::format_ns;
use model::warning::Warning;
use model::{Case, Sample};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// The results of a run under way, and its file.
pub struct Collector<'a> {
    results: Results,
    rules: &'a RunRules,
    file: Option<ResultsFile>,
    /// Where each case is in the plan.
    place_of: HashMap<Case, u32>,
    header_written: bool,
    /// The samples that came before the header, which waits for its floors.
    early: Vec<Line>,
    /// The first refusal to write, after which nothing more is written.
    refused: Option<sys::Failure>,
    stop: &'a AtomicBool,
    progress: Progress,
    /// The cases of which the progress display names the fastest.
    rivals: Vec<Case>,
}

impl<'a> Collector<'a> {
    /// Of a run with `header`, whose rules are `rules`. Sets `stop` when `file` refuses: the run then ends, and its results are still shown.
    pub fn new(header: Header, rules: &'a RunRules, file: Option<ResultsFile>, stop: &'a AtomicBool) -> Self {
        let results =
            Results { header, records: Vec::new(), profiles: Vec::new(), end: None, notes: Vec::new() };
        let place_of = results.header.plan.cases.iter().cloned().zip(0..).collect();
        let (early, progress) = (Vec::new(), Progress::new());
        let rivals = rivals(&results.header.plan.cases);
        Self {
            results,
            rules,
            file,
            place_of,
            header_written: false,
            early,
            refused: None,
            stop,
            progress,
            rivals,
        }
    }

    /// Takes what the run reports.
    pub fn take(&mut self, event: RunEvent<'_>) {
        match event {
            RunEvent::Floors(readings) => {
                let reading = |(case, iteration_ns): (&model::Case, Option<f64>)| FloorReading {
                    case: case.clone(),
                    iteration_ns,
                };
                self.results.header.floors = readings.into_iter().map(reading).collect();
                self.append_header();
            }
            RunEvent::Sample(case, sample) => {
                self.rules.take(case, sample);
                self.append_sample(case, sample);
            }
            RunEvent::Progress(progress) => {
                let (rules, rivals) = (self.rules, &self.rivals);
                self.progress.show_with(Doing::Cases, progress, || leading(rules, rivals));
            }
            RunEvent::Ended(finished) => self.add_record(*finished),
        }
    }

    fn add_record(&mut self, finished: FinishedCase) {
        let mut record = self.rules.record(finished);
        record.warnings.extend(self.cpu_split_warning(&record));
        self.append_header();
        // They are in the file already.
        let samples = std::mem::take(&mut record.samples);
        self.append(&Line::Record(Box::new(record.clone())));
        self.results.records.push(Record { samples, ..record });
    }

    /// A sample is in the file before its record. In memory it comes with that.
    fn append_sample(&mut self, case: &Case, sample: &Sample) {
        if self.file.is_none() {
            return;
        }
        let line = Line::Sample(Box::new(SampleLine { case: self.place_of[case], sample: sample.clone() }));
        if self.header_written { self.append(&line) } else { self.early.push(line) }
    }

    /// Where the scheduler's tick splits CPU time: true of every record of this host, and shown once in reports.
    fn cpu_split_warning(&self, record: &Record) -> Option<Warning> {
        let tick_ns = *self.results.header.host.tick_ns.known()?;
        (!record.samples.is_empty()).then_some(Warning::SampledCpuSplit { tick_ns })
    }

    /// Takes what a trial with a probe came to.
    pub fn add_profile(&mut self, record: ProfileRecord) {
        self.append(&Line::Profile(Box::new(record.clone())));
        self.results.profiles.push(record);
    }

    /// Removes the progress display: the run is over, and trials with probes have their own.
    pub fn finish_progress(&self) {
        self.progress.finish();
    }

    /// All that was measured, and the refusal of the file, if it refused.
    pub fn finish(mut self, end: RunEnd) -> (Results, Option<sys::Failure>) {
        self.append_header();
        self.append(&Line::End(end.clone()));
        self.results.end = Some(end);
        // What is shown knows the full speed of the whole run, also of cases that ended early.
        recompute(&mut self.results);
        if let Some(failure) = &self.refused {
            self.results.notes.push(format!("the results file is incomplete: {failure}"));
        } else if let Some(file) = &self.file {
            self.results.notes.push(format!("kept in {}", file.path().display()));
        }
        (self.results, self.refused)
    }

    /// The header is the first line, and is written when its floors are known; the samples that waited for it follow.
    fn append_header(&mut self) {
        if !self.header_written {
            self.header_written = true;
            self.append(&Line::Header(Box::new(self.results.header.clone())));
            let early = std::mem::take(&mut self.early);
            early.iter().for_each(|line| self.append(line));
        }
    }

    fn append(&mut self, line: &Line) {
        let Some(file) = self.file.as_mut().filter(|_| self.refused.is_none()) else { return };
        if let Err(failure) = file.append(line) {
            self.refused = Some(failure);
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// The cases of `all` that do what the first of them does that is done by several mechanisms.
fn rivals(all: &[Case]) -> Vec<Case> {
    let is_rival = |a: &Case, b: &Case| Case { spec: a.spec.clone(), ..b.clone() } == *a;

    let is_mechanism = |case: &Case| {
        case.spec.name != NULL
            && registry::card(&case.spec.name).is_some_and(|card| card.kind == CardKind::Mechanism)
    };
    let rivals_of = |case: &Case| {
        let rivals = all.iter().filter(|other| is_mechanism(other) && is_rival(case, other));
        rivals.cloned().collect::<Vec<_>>()
    };
    let competes = |case: &&Case| is_mechanism(case) && rivals_of(case).len() > 1;
    all.iter().find(competes).map(rivals_of).unwrap_or_default()
}

/// The fastest of `rivals` so far, and how well that is known.
fn leading(rules: &RunRules, rivals: &[Case]) -> Option<String> {
    let times = rivals.iter().filter_map(|case| Some((case, rules.estimate(case)?)));
    let (case, time) = times.min_by(|(_, a), (_, b)| a.median.total_cmp(&b.median))?;
    let half = time.half_width()?;
    Some(format!("{} leads, {} ±{:.0}%", case.spec, format_ns(time.median), half * 100.0))
}

/// The records of cases that are measured to be explained: no file is written of them.
pub struct Records<'a> {
    records: Vec<Record>,
    rules: &'a RunRules,
    progress: Progress,
}

impl<'a> Records<'a> {
    /// None yet, of a run whose rules are `rules`.
    pub fn new(rules: &'a RunRules) -> Self {
        Self { records: Vec::new(), rules, progress: Progress::new() }
    }

    /// Takes what the run reports.
    pub fn take(&mut self, event: RunEvent<'_>) {
        match event {
            RunEvent::Floors(_) => {}
            RunEvent::Sample(case, sample) => self.rules.take(case, sample),
            RunEvent::Progress(progress) => self.progress.show(Doing::Cases, progress),
            RunEvent::Ended(finished) => self.records.push(self.rules.record(*finished)),
        }
    }

    /// All records.
    pub fn finish(self) -> Vec<Record> {
        self.progress.finish();
        self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derived_file::Existing;
    use model::elsewhere::Elsewhere;
    use model::record::{
        ClockRecord, ClockSource, FORMAT, Fact, Outcome, PlanRecord, Settings, Tool, VERSION,
    };
    use model::testing::sample;
    use model::{Percent, floor};
    use std::path::Path;

    fn header() -> Header {
        let placeholder = || "test".to_owned();
        Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            tool: Tool {
                name: placeholder(),
                version: placeholder(),
                profile: placeholder(),
                target: placeholder(),
                linked: placeholder(),
            },
            run: placeholder(),
            started_at: placeholder(),
            command: Vec::new(),
            // Of a root without files every fact is unknown, on every host.
            host: harness::host::facts::read(Path::new("/nonexistent")),
            clock: ClockRecord {
                source: ClockSource::MonotonicRaw,
                reason: placeholder(),
                precision_ns: 1.0,
                cost_ns: 1.0,
            },
            remote: None,
            settings: Settings {
                suite: None,
                precision: Percent(0.02).into(),
                time_ns: 1,
                rounds: None,
                slice_ns: 1,
                check: false,
                total_bytes: None,
                observe_ns: 0,
            },
            plan: PlanRecord { cases: Vec::new(), dropped: Vec::new() },
            floors: Vec::new(),
            study: None,
        }
    }

    fn rules() -> RunRules {
        RunRules::new(Percent(0.02).into(), 100, std::time::Duration::from_secs(60))
    }

    fn finished(case: &Case, samples: Vec<Sample>) -> FinishedCase {
        let outcome = Outcome::Failed { error: "no".to_owned() };
        FinishedCase {
            case: case.clone(),
            floor: false,
            outcome,
            samples,
            settings: Vec::new(),
            elsewhere: Elsewhere::default(),
        }
    }

    fn ended() -> RunEvent<'static> {
        RunEvent::Ended(Box::new(finished(&floor::operation("getpid", 0), Vec::new())))
    }

    fn end() -> RunEnd {
        let stolen = Fact::Unknown("no".to_owned());
        RunEnd { interrupted: false, rounds: 1, elapsed_ns: 1, starting_ns: None, stolen, clock_drift: 0.0 }
    }

    #[test]
    fn the_file_has_the_header_with_its_floors_then_what_came_and_then_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.jsonl");
        let stop = AtomicBool::new(false);
        let (rules, file) = (rules(), ResultsFile::create(&path, Existing::Kept).unwrap());
        let (case, getpid) = (floor::operation("syscall", 0), floor::operation("getpid", 0));
        let plan = PlanRecord { cases: vec![case.clone(), getpid.clone()], dropped: Vec::new() };
        let mut collector = Collector::new(Header { plan, ..header() }, &rules, Some(file), &stop);
        let samples: Vec<Sample> = (0..3).map(|round| sample(round, 7.0, Some(5.0))).collect();
        collector.take(RunEvent::Sample(&case, &samples[0]));
        collector.take(RunEvent::Sample(&getpid, &samples[0]));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        collector.take(RunEvent::Floors(vec![(&case, Some(5.0))]));
        collector.take(RunEvent::Sample(&getpid, &samples[1]));
        // What a run keeps that is killed now.
        let cut_off = crate::results_file::read(&path).unwrap();
        let kept: Vec<(&str, bool, &[Sample])> =
            cut_off.records.iter().map(|r| (r.case.spec.name.as_str(), r.floor, &r.samples[..])).collect();
        assert_eq!(kept, [("syscall", true, &samples[..1]), ("getpid", false, &samples[..2])]);
        assert!(cut_off.records.iter().all(|record| record.summary.is_some() && !record.warnings.is_empty()));
        collector.take(RunEvent::Sample(&getpid, &samples[2]));
        collector.take(RunEvent::Ended(Box::new(finished(&getpid, samples.clone()))));
        collector.take(RunEvent::Ended(Box::new(finished(&case, samples[..1].to_vec()))));
        let text = std::fs::read_to_string(&path).unwrap();
        let records = text.lines().filter(|line| line.starts_with(r#"{"type":"record""#));
        assert!(records.clone().count() == 2 && records.clone().all(|line| !line.contains(r#""samples""#)));
        let (results, refused) = collector.finish(end());
        assert!(refused.is_none() && !stop.load(Ordering::Relaxed));
        assert_eq!(results.notes, [format!("kept in {}", path.display())]);
        let read = crate::results_file::read(&path).unwrap();
        assert_eq!(read.header.floors, [FloorReading { case, iteration_ns: Some(5.0) }]);
        assert_eq!((read.records, read.end), (results.records, results.end));
    }

    #[test]
    fn a_file_that_refuses_stops_the_run_and_the_results_are_kept() {
        let stop = AtomicBool::new(false);
        let file = ResultsFile::create(Path::new("/dev/full"), Existing::Kept).unwrap();
        let rules = rules();
        let mut collector = Collector::new(header(), &rules, Some(file), &stop);
        collector.take(ended());
        assert!(stop.load(Ordering::Relaxed));
        let (results, refused) = collector.finish(end());
        assert_eq!(results.records.len(), 1);
        assert!(results.notes[0].starts_with("the results file is incomplete: "), "{:?}", results.notes);
        assert!(refused.is_some());
    }

    #[test]
    fn records_without_a_file_are_kept_in_their_order() {
        let rules = rules();
        let mut records = Records::new(&rules);
        records.take(ended());
        assert_eq!(records.finish().len(), 1);
    }
}
