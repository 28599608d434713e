//! System calls by stopping the thread at each of them, for users who may not use tracepoints. Two stops make a call many
//! times slower.
//!
//! A process of its own, a re-execution of the binary, traces the endpoint's thread and writes a log of its calls, which the
//! endpoint reads. It ends when the thread ends, in whatever way.

use crate::instrument::ProbeInstrument;
use crate::perf::now_ns;
use model::observation::{EndpointEvent, EndpointObservation, EventKind};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{PTracer, Pid, set_ptracer};
use rustix::thread::gettid;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use sys::tracee::{Tracee, TraceeStop, stop_at_calls};
use sys::{Failure, OrFail};

/// The hidden sub-command by which the binary becomes a tracer; the thread's id follows it.
pub const COMMAND: &str = "__tracer";

const TRACER: &str = "the tracer of this thread";
const LOG: &str = "the tracer's log";

pub(crate) fn open() -> Result<Stopping, Failure> {
    let log = memfd_create("ipcmark-calls", MemfdFlags::CLOEXEC).or_fail("memfd_create", LOG)?;
    let theirs = log.try_clone().or_fail("dup", LOG)?;
    let mut tracer = Command::new("/proc/self/exe")
        .arg0("ipcmark")
        .args([COMMAND, &gettid().as_raw_nonzero().to_string()])
        .stdin(Stdio::piped())
        .stdout(theirs)
        .stderr(Stdio::piped())
        .spawn()
        .or_fail("start", TRACER)?;
    // Where only ancestors may trace (Yama), a child may if it is named. Elsewhere there is nothing to be allowed.
    let _ = i32::try_from(tracer.id())
        .ok()
        .and_then(Pid::from_raw)
        .map(|pid| set_ptracer(PTracer::ProcessID(pid)));
    // It begins to trace when its input ends, and closes its error output when it does.
    drop(tracer.stdin.take());
    let mut said = String::new();
    if let Some(errors) = tracer.stderr.take() {
        BufReader::new(errors).read_line(&mut said).or_fail("read", TRACER)?;
    }
    if said.trim() != READY {
        let answer = if said.is_empty() { "it ended at once".to_owned() } else { said.trim().to_owned() };
        return Err(Failure::new(
            "start",
            TRACER,
            answer,
            "allow it: sudo sysctl kernel.yama.ptrace_scope=1",
        ));
    }
    stop_at_calls()?;
    Ok(Stopping { log: File::from(log) })
}

/// EventKind a tracer says when it holds the thread.
const READY: &str = "ready";

pub(crate) struct Stopping {
    log: File,
}

impl ProbeInstrument for Stopping {
    fn begin(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn observation(self: Box<Self>) -> Result<EndpointObservation, Failure> {
        // Read by position: the tracer, which goes on writing, shares the file's offset.
        let mut text = vec![0; self.log.metadata().or_fail("fstat", LOG)?.len() as usize];
        self.log.read_exact_at(&mut text, 0).or_fail("pread", LOG)?;
        let lines = text.split(|byte| *byte == b'\n');
        // A line that is not whole was written after the iterations.
        Ok(EndpointObservation {
            events: lines.map_while(|line| serde_json::from_slice(line).ok()).collect(),
            ..EndpointObservation::default()
        })
    }
}

/// Holds the thread `tid` until it ends, and writes its calls to standard output, one a line.
pub fn main(tid: &str) -> Result<(), Failure> {
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).or_fail("read", "standard input")?;
    let tid = tid
        .parse()
        .map_err(|_| Failure::new("trace", tid, "not a thread's id", "run 'ipcmark explain' instead"))?;
    let tracee = Tracee::seize(tid).inspect_err(|failure| eprintln!("{failure}"))?;
    eprintln!("{READY}");
    let mut number = 0;
    let mut out = std::io::stdout();
    loop {
        let stop = tracee.next().or_fail("waitpid", "the traced thread")?;
        let at_ns = now_ns();
        let what = match stop {
            TraceeStop::Ended => return Ok(()),
            TraceeStop::Entry { number: entered, arguments } => {
                number = u32::try_from(entered).unwrap_or(u32::MAX);
                Some(EventKind::Enter { number, first: arguments[0], third: arguments[2] })
            }
            TraceeStop::Exit { value } => Some(EventKind::Exit { number, value }),
            TraceeStop::Signal(_) | TraceeStop::Other => None,
        };
        if let Some(what) = what {
            let mut line = serde_json::to_vec(&EndpointEvent { at_ns, what }).unwrap_or_default();
            line.push(b'\n');
            out.write_all(&line).or_fail("write", LOG)?;
        }
        let resumed = match stop {
            TraceeStop::Entry { .. } => tracee.resume_to_exit(None),
            TraceeStop::Signal(signal) => tracee.resume(Some(signal)),
            _ => tracee.resume(None),
        };
        resumed.or_fail("ptrace", "the traced thread")?;
    }
}
