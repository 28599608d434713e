//! `ipcmark try`: a program with other mechanisms in the place of its own, run in turn with the program as it is, and what that changes.

use crate::cli::TryArguments;
use crate::exit::{Error, Exit};
use crate::output::{check_files, give_answer_and_page, style};
use crate::progress::{Doing, Progress};
use crate::session::watch_signals;
use crate::try_metric::{measures, values};
use crate::try_recording::recorded_run;
use crate::try_request::TryRequest;
use analysis::tried::{
    Tried, TriedConnection, TriedMeasure, TriedStart, VariantName, filter_ratio, is_known, needs,
    runs_per_start, variants_of, whole_passes,
};
use exchange::{Observed, ProgramExchange, ProgramExchanges, candidates};
use harness::clock::Timer;
use harness::coordinator::schedule::TrialProgress;
use harness::programs::started::{StartError, StartedProgram, Variant};
use model::invalid::printable;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use sys::Failure;

/// In so many of so many passes the filter itself is measured too: there and back, and then not.
const PASSES_WITH_FILTER: u32 = 2;
const OF_PASSES: u32 = 8;

/// What is known while it is tried.
struct Trying<'a> {
    request: &'a TryRequest,
    stop: &'a AtomicBool,
    timer: Timer,
    measures: Vec<TriedMeasure>,
    /// What each variant exchanges, none first.
    exchanges: Vec<Vec<ProgramExchange>>,
    starts: Vec<TriedStart>,
    /// What starting, warming up and ending took, and what runs took.
    start_ns: Vec<f64>,
    run_ns: Vec<f64>,
    /// What could not be kept from the program.
    not_kept: BTreeMap<String, u64>,
    /// What the connections of each variant did in the run that warmed it up first; nothing once that could not be recorded.
    connections: Option<BTreeMap<usize, Vec<TriedConnection>>>,
}

/// Tries the exchanges, and shows what they change.
pub fn run(arguments: TryArguments) -> Result<Exit, Error> {
    let answer = arguments.answer.clone();
    check_files(&answer)?;
    let request = TryRequest::new(arguments)?;
    let stop = watch_signals()?;
    let measures = measures(&request.metrics);
    let mut trying = Trying {
        request: &request,
        stop: &stop,
        timer: Timer::start(),
        measures,
        exchanges: Vec::new(),
        starts: Vec::new(),
        start_ns: Vec::new(),
        run_ns: Vec::new(),
        not_kept: BTreeMap::new(),
        connections: Some(BTreeMap::new()),
    };
    let ended = trying.try_all();
    match ended {
        Ok(()) | Err(StartError::Interrupted) => {}
        // What was measured before is shown.
        Err(StartError::Failure(failure)) if trying.starts.is_empty() => return Err(failure.into()),
        Err(StartError::Failure(_)) => {}
    }
    if !trying.starts.is_empty() {
        let tried = trying.tried();
        let page = |command: &[String]| report::tried_html(&tried, command);
        give_answer_and_page(&answer, page, &report::tried(&tried, &style()), &tried, &["variants"])?;
    }
    match ended {
        Ok(()) => Ok(Exit::Success),
        Err(StartError::Interrupted) => Ok(Exit::Interrupted),
        Err(StartError::Failure(failure)) => Err(failure.into()),
    }
}

impl Trying<'_> {
    /// Runs passes over all variants until all are decided, or time is over.
    fn try_all(&mut self) -> Result<(), StartError> {
        self.exchanges = self.variants()?;
        let mut progress = Progress::new();
        let mut pass = 0;
        let ended = loop {
            self.show(&mut progress, pass);
            if let Err(error) = self.run_pass(pass) {
                break Err(error);
            }
            pass += 1;
            let variants = variants_of(&self.measures, &self.names(), &self.starts, self.request.margin);
            let is_over = pass > 1 && self.timer.elapsed() >= self.request.time;
            if is_known(&variants, self.request.margin) || is_over {
                break Ok(());
            }
        };
        progress.finish();
        ended
    }

    /// What is tried: what was asked for, or else what can be exchanged of all that the program uses. It is found by a run of the program as
    /// it is, which warms up everything besides.
    fn variants(&mut self) -> Result<Vec<Vec<ProgramExchange>>, StartError> {
        let observed = self.observe(&[])?;
        let mut variants = vec![Vec::new()];
        if self.request.variants.is_empty() {
            variants.extend(candidates(&observed).into_iter().map(|exchange| vec![exchange]));
            if variants.len() == 1 {
                return Err(nothing_to_exchange(self.request).into());
            }
            return Ok(variants);
        }
        for exchanges in &self.request.variants {
            let seen = self.observe(exchanges)?;
            if seen.exchanged == 0 {
                return Err(not_exchanged(exchanges, &observed).into());
            }
            variants.push(exchanges.clone());
        }
        Ok(variants)
    }

    /// What the program does with these exchanges, in one run.
    fn observe(&mut self, exchanges: &[ProgramExchange]) -> Result<Observed, StartError> {
        let started = StartedProgram::new(&self.request.programs, &answered(exchanges), self.stop)?;
        values(&self.request.metrics, &started.run()?)?;
        let observed = started.end()?.unwrap_or_default();
        for (what, times) in &observed.not_kept {
            *self.not_kept.entry(what.clone()).or_default() += times;
        }
        Ok(observed)
    }

    /// Runs every variant once, in every second pass in the opposite order.
    fn run_pass(&mut self, pass: u32) -> Result<(), StartError> {
        let mut order: Vec<usize> = (0..self.exchanges.len()).collect();
        if pass % OF_PASSES < PASSES_WITH_FILTER {
            order.push(self.free());
        }
        if !pass.is_multiple_of(2) {
            order.reverse();
        }
        for variant in order {
            // A pass that is not whole tells nothing; the first two, there and back, are waited for.
            if pass > 1 && self.timer.elapsed() >= self.request.time {
                break;
            }
            self.run_start(pass, variant)?;
        }
        Ok(())
    }

    /// The variant whose calls nobody answers.
    fn free(&self) -> usize {
        self.exchanges.len()
    }

    fn run_start(&mut self, pass: u32, variant: usize) -> Result<(), StartError> {
        let kind = match self.exchanges.get(variant) {
            Some(exchanges) => answered(exchanges),
            None => Variant::Free,
        };
        let has_servers = !self.request.programs.servers.is_empty();
        let starting = Timer::start();
        let started = StartedProgram::new(&self.request.programs, &kind, self.stop)?;
        if has_servers {
            // The first run after a start warms it up.
            self.warm_up(variant, &started)?;
        }
        let mut start_ns = starting.elapsed().as_nanos() as f64;
        // Without servers each run is a start of its own.
        let count = if has_servers { self.runs_per_start() } else { 1 };
        let mut runs = Vec::new();
        for _ in 0..count {
            let running = Timer::start();
            let run = started.run()?;
            self.run_ns.push(running.elapsed().as_nanos() as f64);
            runs.push(values(&self.request.metrics, &run)?);
        }
        let ending = Timer::start();
        started.end()?;
        start_ns += ending.elapsed().as_nanos() as f64;
        self.start_ns.push(start_ns);
        self.starts.push(TriedStart { variant, pass, runs });
        Ok(())
    }

    /// Runs the command once, recorded where this variant was not yet.
    fn warm_up(&mut self, variant: usize, started: &StartedProgram<'_>) -> Result<(), StartError> {
        let is_recorded = |known: &BTreeMap<usize, Vec<TriedConnection>>| known.contains_key(&variant);
        if variant == self.free() || self.connections.as_ref().is_none_or(is_recorded) {
            started.run()?;
            return Ok(());
        }
        match (recorded_run(started)?, &mut self.connections) {
            (Some(found), Some(known)) => drop(known.insert(variant, found)),
            _ => self.connections = None,
        }
        Ok(())
    }

    fn runs_per_start(&self) -> u32 {
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len().max(1) as f64;
        runs_per_start(&self.starts, mean(&self.start_ns), mean(&self.run_ns).max(1.0))
    }

    fn show(&self, progress: &mut Progress, pass: u32) {
        let (elapsed, time) = (self.timer.elapsed(), self.request.time);
        let reached = TrialProgress {
            round: Some(pass),
            done: 0,
            of: self.exchanges.len(),
            share: (elapsed.as_secs_f64() / time.as_secs_f64()).min(1.0),
            left: time.saturating_sub(elapsed),
        };
        progress.show(Doing::Variants, reached);
    }

    /// What each variant is called.
    fn names(&self) -> Vec<VariantName> {
        self.exchanges.iter().map(|exchanges| name_of(exchanges)).collect()
    }

    fn tried(&self) -> Tried {
        let margin = self.request.margin;
        let mut variants = variants_of(&self.measures, &self.names(), &self.starts, margin);
        for (variant, connections) in self.connections.iter().flatten() {
            variants[*variant].connections.clone_from(connections);
        }
        let elapsed_ns = self.timer.elapsed().as_nanos() as f64;
        Tried {
            command: self.request.programs.command_line(),
            passes: whole_passes(&self.starts, variants.len()),
            elapsed_ns,
            margin,
            needs: needs(&self.starts, &variants, elapsed_ns, margin),
            filter: filter_ratio(&self.starts, self.free()),
            not_kept: self.not_kept.iter().map(|(what, times)| (what.clone(), *times)).collect(),
            variants,
        }
    }
}

fn name_of(exchanges: &[ProgramExchange]) -> VariantName {
    let words: Vec<String> = exchanges.iter().map(ProgramExchange::words).collect();
    let title = if words.is_empty() { "as it is".to_owned() } else { words.join(", and ") };
    (title, exchanges.iter().map(ProgramExchange::to_string).collect())
}

fn answered(exchanges: &[ProgramExchange]) -> Variant {
    Variant::Answered(ProgramExchanges(exchanges.to_vec()))
}

fn nothing_to_exchange(request: &TryRequest) -> Failure {
    Failure::new(
        "try",
        printable(&request.programs.command_line()),
        "neither it nor its servers make connections over loopback, Unix sockets or pipes",
        "start its servers with --server: what runs already cannot be exchanged",
    )
}

/// Why a variant changes nothing.
fn not_exchanged(exchanges: &[ProgramExchange], observed: &Observed) -> Failure {
    let names: Vec<String> = exchanges.iter().map(ProgramExchange::to_string).collect();
    let mut used: Vec<String> =
        candidates(observed).iter().map(|exchange| exchange.source.to_string()).collect();
    used.dedup();
    let answer = match used.is_empty() {
        true => "the program uses nothing that can be exchanged".to_owned(),
        false => format!("the program uses no such thing; what it uses is {}", used.join(", ")),
    };
    Failure::new(
        "exchange",
        names.join(" "),
        answer,
        "name what it uses, or leave out --set to have it found",
    )
}
