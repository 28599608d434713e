//! What a run reports while it goes on: each record is appended to the results file when it comes, and all are kept to be shown.
//!
//! It measures nothing, and does not show results.

use crate::progress::{Doing, Progress};
use crate::results_file::ResultsFile;
use crate::rules;
use harness::coordinator::run::{FinishedCase, RunEvent};
use model::Percent;
use model::observation::profile::ProfileRecord;
use model::record::{End, FloorReading, Header, Line, Record, Results};
use model::warning::Warning;
use std::sync::atomic::{AtomicBool, Ordering};

/// The results of a run under way, and its file.
pub struct Collector<'a> {
    results: Results,
    file: Option<ResultsFile>,
    header_written: bool,
    /// The first refusal to write, after which nothing more is written.
    refused: Option<sys::Failure>,
    stop: &'a AtomicBool,
    progress: Progress,
}

impl<'a> Collector<'a> {
    /// Of a run with `header`. Sets `stop` when `file` refuses: the run then ends, and its results are still shown.
    pub fn new(header: Header, file: Option<ResultsFile>, stop: &'a AtomicBool) -> Self {
        let results =
            Results { header, records: Vec::new(), profiles: Vec::new(), end: None, notes: Vec::new() };
        Self { results, file, header_written: false, refused: None, stop, progress: Progress::new() }
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
            RunEvent::Progress(progress) => self.progress.show(Doing::Cases, progress),
            RunEvent::Ended(finished) => self.add_record(*finished),
        }
    }

    fn add_record(&mut self, finished: FinishedCase) {
        let mut record = rules::record(finished, self.results.header.settings.precision.0);
        record.warnings.extend(self.cpu_split_warning(&record));
        self.append_header();
        self.append(&Line::Record(Box::new(record.clone())));
        self.results.records.push(record);
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
    pub fn finish(mut self, end: End) -> (Results, Option<sys::Failure>) {
        self.append_header();
        self.append(&Line::End(end.clone()));
        self.results.end = Some(end);
        if let Some(failure) = &self.refused {
            self.results.notes.push(format!("the results file is incomplete: {failure}"));
        } else if let Some(file) = &self.file {
            self.results.notes.push(format!("kept in {}", file.path().display()));
        }
        (self.results, self.refused)
    }

    /// The header is the first line, and is written when its floors are known.
    fn append_header(&mut self) {
        if !self.header_written {
            self.header_written = true;
            self.append(&Line::Header(Box::new(self.results.header.clone())));
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

/// The records of cases that are measured to be explained: no file is written of them.
pub struct Records {
    records: Vec<Record>,
    precision: Percent,
    progress: Progress,
}

impl Records {
    /// None yet, of cases of which `precision` is asked.
    pub fn new(precision: Percent) -> Self {
        Self { records: Vec::new(), precision, progress: Progress::new() }
    }

    /// Takes what the run reports.
    pub fn take(&mut self, event: RunEvent<'_>) {
        match event {
            RunEvent::Floors(_) => {}
            RunEvent::Progress(progress) => self.progress.show(Doing::Cases, progress),
            RunEvent::Ended(finished) => self.records.push(rules::record(*finished, self.precision.0)),
        }
    }

    /// All records.
    pub fn finish(self) -> Vec<Record> {
        self.progress.finish();
        self.records
    }
}
