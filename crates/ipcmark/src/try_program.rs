//! One start of a program under `ipcmark try`: its servers, and the runs of its command.

use crate::try_metric::PrintedMetric;
use crate::try_ready::Ready;
use crate::try_request::TryRequest;
use analysis::tried::{Better, MeasureUnit, TriedMeasure};
use exchange::{Calls, Ended, Launched, Observed, ProgramExchanges, ProgramUsage, Sockets};
use harness::clock::Timer;
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, memfd_create};
use std::ffi::OsString;
use std::fs::File;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::FileExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sys::{Failure, OrFail};

/// How often it is looked whether something has happened of which nobody tells.
const OFTEN: Duration = Duration::from_millis(5);

/// The servers of one start, ready to be used.
pub struct StartedProgram<'a> {
    request: &'a TryRequest,
    stop: &'a AtomicBool,
    sockets: Option<Arc<Sockets>>,
    servers: Vec<Running>,
}

/// Why a start or a run came to nothing.
#[derive(Debug)]
pub enum TryError {
    /// A signal ended it.
    Interrupted,
    /// It failed.
    Failure(Failure),
}

impl From<Failure> for TryError {
    fn from(failure: Failure) -> Self {
        TryError::Failure(failure)
    }
}

/// A program that runs, with what it prints.
struct Running {
    name: String,
    launched: Launched,
    output: File,
    errors: File,
}

/// Whose calls are answered in a start.
#[derive(Debug, Clone)]
pub enum Variant {
    /// With these exchanges; with none, the program is as it is.
    Answered(ProgramExchanges),
    /// Nobody's: the filter itself is measured by it.
    Free,
}

/// What every run gives beside what the command prints: how long it took, and what it and the servers used meanwhile.
pub fn measures(metrics: &[PrintedMetric]) -> Vec<TriedMeasure> {
    let of = |name: &str, unit| TriedMeasure { name: name.to_owned(), unit, better: Better::Less };
    let own = [
        of("time", MeasureUnit::Nanoseconds),
        of("CPU", MeasureUnit::Nanoseconds),
        of("switches", MeasureUnit::Count),
        of("memory", MeasureUnit::Bytes),
    ];
    metrics.iter().map(|metric| metric.measure.clone()).chain(own).collect()
}

impl<'a> StartedProgram<'a> {
    /// Starts the servers, and waits until they can be used.
    pub fn new(request: &'a TryRequest, variant: &Variant, stop: &'a AtomicBool) -> Result<Self, TryError> {
        let sockets = match variant {
            Variant::Answered(exchanges) => Some(Arc::new(Sockets::new(exchanges.clone()))),
            Variant::Free => None,
        };
        let mut started = Self { request, stop, sockets, servers: Vec::new() };
        for server in &request.servers {
            let running = started.launch(server)?;
            started.servers.push(running);
            if request.ready == Ready::Listening {
                started.until("listens", |started| {
                    Ok(started.servers.iter().all(|server| server.launched.is_listening()))
                })?;
            }
        }
        if !request.servers.is_empty() && request.ready != Ready::Listening {
            started.until("is ready", Self::is_ready)?;
        }
        Ok(started)
    }

    fn launch(&self, command: &[OsString]) -> Result<Running, Failure> {
        let name = command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
        let [(output, theirs), (errors, their_errors)] = [kept_output(&name)?, kept_output(&name)?];
        let calls = match &self.sockets {
            Some(sockets) => Calls::Answered(Arc::clone(sockets)),
            None => Calls::Free,
        };
        let launched = Launched::prepare(command, calls, theirs, their_errors)?;
        launched.start()?;
        Ok(Running { name, launched, output, errors })
    }

    /// Whether the servers can be used.
    fn is_ready(&self) -> Result<bool, TryError> {
        match &self.request.ready {
            Ready::Listening => Ok(true),
            Ready::Port(port) => Ok(match &self.sockets {
                Some(sockets) => sockets.is_listening(*port),
                None => TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_ok(),
            }),
            Ready::Line(line) => Ok(self.servers.iter().any(|server| server.said().contains(line))),
            Ready::Command(command) => {
                let asked = self.launch(command)?;
                Ok(self.ended(&asked)?.status.success())
            }
        }
    }

    /// Waits until the servers do `what`, as long as they all run.
    fn until(&self, what: &str, is_so: impl Fn(&Self) -> Result<bool, TryError>) -> Result<(), TryError> {
        let timer = Timer::start();
        loop {
            self.check_servers("before it was ready")?;
            if is_so(self)? {
                return Ok(());
            }
            if timer.elapsed() > self.request.timeout {
                let names: Vec<&str> = self.servers.iter().map(|server| server.name.as_str()).collect();
                let answer = format!("none {what} after {} s", self.request.timeout.as_secs());
                let next = "say with --ready by what it is known, or give it more with --timeout";
                return Err(Failure::new("start", names.join(", "), answer, next).into());
            }
            self.pause()?;
        }
    }

    /// Fails if a server has ended, which is not to be `when` that is.
    fn check_servers(&self, when: &str) -> Result<(), TryError> {
        for server in &self.servers {
            if let Some(ended) = server.launched.wait(Duration::ZERO)? {
                return Err(server.failed(ended.status, when).into());
            }
        }
        Ok(())
    }

    fn pause(&self) -> Result<(), TryError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(TryError::Interrupted);
        }
        std::thread::sleep(OFTEN);
        Ok(())
    }

    /// Waits for a command to end.
    fn ended(&self, running: &Running) -> Result<Ended, TryError> {
        let timer = Timer::start();
        loop {
            if let Some(ended) = running.launched.wait(20 * OFTEN)? {
                return Ok(ended);
            }
            self.check_servers("while the command ran")?;
            if self.stop.load(Ordering::Relaxed) {
                return Err(TryError::Interrupted);
            }
            if timer.elapsed() > self.request.timeout {
                let answer = format!("it runs after {} s", self.request.timeout.as_secs());
                let next = "make it shorter, or give it more with --timeout";
                return Err(Failure::new("run", &running.name, answer, next).into());
            }
        }
    }

    /// Runs the command once: the values of all measures.
    pub fn run(&self) -> Result<Vec<Option<f64>>, TryError> {
        let before = self.used_by_servers();
        let timer = Timer::start();
        let running = self.launch(&self.request.command)?;
        let ended = self.ended(&running)?;
        let wall_ns = timer.elapsed().as_nanos() as f64;
        if !ended.status.success() {
            return Err(running.failed(ended.status, "").into());
        }
        let servers: Vec<ProgramUsage> =
            self.used_by_servers().into_iter().zip(before).map(|(after, before)| after - before).collect();
        let all = || servers.iter().chain([&ended.usage]);
        let cpu_ns: u64 = all().map(|usage| usage.cpu_ns).sum();
        let switches: u64 = all().map(|usage| usage.switches).sum();
        let peak_bytes: u64 = all().map(|usage| usage.peak_bytes).sum();
        let output = running.said();
        let printed = self.request.metrics.iter().map(|metric| metric.find(&output));
        let own = [wall_ns, cpu_ns as f64, switches as f64, peak_bytes as f64].map(Some);
        let values: Vec<Option<f64>> = printed.chain(own).collect();
        if values[0].is_none() {
            let metric = &self.request.metrics[0].measure.name;
            let answer = format!("its output has no {metric}: {}", running.last_words());
            return Err(Failure::new(
                "find",
                metric,
                answer,
                "see what the command prints, and mend --metric",
            )
            .into());
        }
        Ok(values)
    }

    fn used_by_servers(&self) -> Vec<ProgramUsage> {
        self.servers.iter().map(|server| server.launched.usage()).collect()
    }

    /// Ends the servers as an administrator does, and says what was seen of them and of the command.
    pub fn end(self) -> Result<Option<Observed>, TryError> {
        for server in self.servers.iter().rev() {
            server.launched.stop()?;
            let timer = Timer::start();
            while timer.elapsed() < self.request.timeout && server.launched.wait(20 * OFTEN)?.is_none() {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(TryError::Interrupted);
                }
            }
        }
        Ok(self.sockets.map(|sockets| sockets.observed()))
    }
}

impl Running {
    /// What it has printed until now.
    fn said(&self) -> String {
        [&self.output, &self.errors].map(contents).concat()
    }

    fn failed(&self, status: ExitStatus, when: &str) -> Failure {
        let answer = format!("{status} {when}").trim_end().to_owned();
        Failure::new("run", &self.name, format!("{answer}: {}", self.last_words()), "see what it says")
    }

    /// The last line that it has printed.
    fn last_words(&self) -> String {
        const LONGEST: usize = 200;
        let said = self.said();
        let line = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
        line.trim().chars().take(LONGEST).collect()
    }
}

/// A file in memory that keeps what a program prints, and the same for the program.
fn kept_output(name: &str) -> Result<(File, Stdio), Failure> {
    let file = memfd_create(c"ipcmark-try", MemfdFlags::CLOEXEC).or_fail("memfd_create", name)?;
    // Whoever opens it once more, as /dev/stdout, is not to overwrite what stands there.
    fcntl_setfl(&file, OFlags::APPEND).or_fail("fcntl", name)?;
    let theirs: OwnedFd = file.try_clone().or_fail("fcntl", name)?;
    Ok((File::from(file), Stdio::from(theirs)))
}

fn contents(file: &File) -> String {
    /// More than that of what a program prints is not looked at.
    const MOST_BYTES: u64 = 16 << 20;
    let length = file.metadata().map_or(0, |of| of.len());
    let from = length.saturating_sub(MOST_BYTES);
    let mut bytes = vec![0; usize::try_from(length - from).unwrap_or(0)];
    match file.read_exact_at(&mut bytes, from) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}
