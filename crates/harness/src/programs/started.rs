//! One start of a program: its servers, and the runs of its command.

use super::Programs;
use super::ready::Ready;
use crate::clock::Timer;
use exchange::{Calls, Ended, Launched, Observed, ProgramExchanges, ProgramUsage, Sockets};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, memfd_create};
use rustix::process::Pid;
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
#[derive(Debug)]
pub struct StartedProgram<'a> {
    programs: &'a Programs,
    stop: &'a AtomicBool,
    sockets: Option<Arc<Sockets>>,
    servers: Vec<Running>,
}

/// Why a start or a run came to nothing.
#[derive(Debug)]
pub enum StartError {
    /// A signal ended it.
    Interrupted,
    /// It failed.
    Failure(Failure),
}

impl From<Failure> for StartError {
    fn from(failure: Failure) -> Self {
        StartError::Failure(failure)
    }
}

/// A run of the command, with what the servers used meanwhile.
#[derive(Debug)]
pub struct ProgramRun {
    /// How long it took.
    pub wall_ns: u64,
    /// What all together used; of memory, the most that each had, added up.
    pub usage: ProgramUsage,
    /// What the command printed.
    pub output: String,
}

/// A run that has not begun.
#[derive(Debug)]
pub struct PreparedRun(Running);

impl PreparedRun {
    /// The process whose child, and its children, will be the command.
    pub fn parent(&self) -> Pid {
        self.0.launched.guard_pid()
    }
}

/// A program that runs, with what it prints.
#[derive(Debug)]
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

impl<'a> StartedProgram<'a> {
    /// Starts the servers, and waits until they can be used.
    pub fn new(programs: &'a Programs, variant: &Variant, stop: &'a AtomicBool) -> Result<Self, StartError> {
        let sockets = match variant {
            Variant::Answered(exchanges) => Some(Arc::new(Sockets::new(exchanges.clone()))),
            Variant::Free => None,
        };
        let mut started = Self { programs, stop, sockets, servers: Vec::new() };
        for server in &programs.servers {
            let running = started.launch(server)?;
            started.servers.push(running);
            if programs.ready == Ready::Listening {
                started.until("listens", |started| {
                    Ok(started.servers.iter().all(|server| server.launched.is_listening()))
                })?;
            }
        }
        if !programs.servers.is_empty() && programs.ready != Ready::Listening {
            started.until("is ready", Self::is_ready)?;
        }
        Ok(started)
    }

    fn launch(&self, command: &[OsString]) -> Result<Running, Failure> {
        let running = self.prepare(command)?;
        running.launched.start()?;
        Ok(running)
    }

    fn prepare(&self, command: &[OsString]) -> Result<Running, Failure> {
        let name = command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
        let [(output, theirs), (errors, their_errors)] = [kept_output(&name)?, kept_output(&name)?];
        let calls = match &self.sockets {
            Some(sockets) => Calls::Answered(Arc::clone(sockets)),
            None => Calls::Free,
        };
        let launched = Launched::prepare(command, calls, theirs, their_errors)?;
        Ok(Running { name, launched, output, errors })
    }

    /// Whether the servers can be used.
    fn is_ready(&self) -> Result<bool, StartError> {
        match &self.programs.ready {
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
    fn until(&self, what: &str, is_so: impl Fn(&Self) -> Result<bool, StartError>) -> Result<(), StartError> {
        let timer = Timer::start();
        loop {
            self.check_servers("before it was ready")?;
            if is_so(self)? {
                return Ok(());
            }
            if timer.elapsed() > self.programs.timeout {
                let names: Vec<&str> = self.servers.iter().map(|server| server.name.as_str()).collect();
                let answer = format!("none {what} after {} s", self.programs.timeout.as_secs());
                let next = "say with --ready by what it is known, or give it more with --timeout";
                return Err(Failure::new("start", names.join(", "), answer, next).into());
            }
            self.pause()?;
        }
    }

    /// Fails if a server has ended, which is not to be `when` that is.
    fn check_servers(&self, when: &str) -> Result<(), StartError> {
        for server in &self.servers {
            if let Some(ended) = server.launched.wait(Duration::ZERO)? {
                return Err(server.failed(ended.status, when).into());
            }
        }
        Ok(())
    }

    fn pause(&self) -> Result<(), StartError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(StartError::Interrupted);
        }
        std::thread::sleep(OFTEN);
        Ok(())
    }

    /// Waits for a command to end.
    fn ended(&self, running: &Running) -> Result<Ended, StartError> {
        let timer = Timer::start();
        loop {
            if let Some(ended) = running.launched.wait(20 * OFTEN)? {
                return Ok(ended);
            }
            self.check_servers("while the command ran")?;
            if self.stop.load(Ordering::Relaxed) {
                return Err(StartError::Interrupted);
            }
            if timer.elapsed() > self.programs.timeout {
                let answer = format!("it runs after {} s", self.programs.timeout.as_secs());
                let next = "make it shorter, or give it more with --timeout";
                return Err(Failure::new("run", &running.name, answer, next).into());
            }
        }
    }

    /// Runs the command once.
    pub fn run(&self) -> Result<ProgramRun, StartError> {
        self.run_prepared(self.prepare_run()?)
    }

    /// Prepares a run of the command, which does not begin yet.
    pub fn prepare_run(&self) -> Result<PreparedRun, StartError> {
        Ok(PreparedRun(self.prepare(&self.programs.command)?))
    }

    /// Has it begin, and waits until it has ended.
    pub fn run_prepared(&self, PreparedRun(running): PreparedRun) -> Result<ProgramRun, StartError> {
        let before = self.used_by_servers();
        let timer = Timer::start();
        running.launched.start()?;
        let ended = self.ended(&running)?;
        let wall_ns = u64::try_from(timer.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if !ended.status.success() {
            return Err(running.failed(ended.status, "").into());
        }
        let mut usage = ended.usage;
        for (after, before) in self.used_by_servers().into_iter().zip(before) {
            let server = after - before;
            usage.cpu_ns += server.cpu_ns;
            usage.switches += server.switches;
            usage.peak_bytes += server.peak_bytes;
        }
        Ok(ProgramRun { wall_ns, usage, output: running.said() })
    }

    /// The processes whose children, and theirs, are the servers.
    pub fn server_parents(&self) -> Vec<Pid> {
        self.servers.iter().map(|server| server.launched.guard_pid()).collect()
    }

    fn used_by_servers(&self) -> Vec<ProgramUsage> {
        self.servers.iter().map(|server| server.launched.usage()).collect()
    }

    /// Ends the servers as an administrator does, and says what was seen of them and of the command.
    pub fn end(self) -> Result<Option<Observed>, StartError> {
        for server in self.servers.iter().rev() {
            server.launched.stop()?;
            let timer = Timer::start();
            while timer.elapsed() < self.programs.timeout && server.launched.wait(20 * OFTEN)?.is_none() {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(StartError::Interrupted);
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
        last_line(&self.said())
    }
}

/// The last line of `output` that says something.
pub fn last_line(output: &str) -> String {
    const LONGEST: usize = 200;
    let line = output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
    line.trim().chars().take(LONGEST).collect()
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
