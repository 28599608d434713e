//! Looking at an endpoint while it does its iterations: one probe a file.
//!
//! An endpoint looks at itself: it opens what the kernel offers for its own thread, switches it on after the lead-in
//! and off before the lead-out, and tells afterwards what was seen. Nothing here runs in a timed trial, and nothing
//! here says what it means: that is `model`'s.
#![forbid(unsafe_code)]

mod counters;
mod events;
mod mappings;
mod perf;
pub mod ptrace;
mod sampling;
pub mod symbols;
mod tracefs;

use events::{Kind, Recorder};
use model::card::Support;
use model::observation::{EndpointObservation, Probe, ProbeRequest};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::Command;
use sys::Failure;

/// Something that is opened, switched on around the timed iterations, and read afterwards.
trait Probing {
    /// Switches it on. The iterations follow at once.
    fn begin(&mut self) -> Result<(), Failure>;
    /// Switches it off. The iterations are just over.
    fn end(&mut self) -> Result<(), Failure>;
    /// What was seen.
    fn seen(self: Box<Self>) -> Result<EndpointObservation, Failure>;
}

/// A probe on the calling thread, or none.
pub struct Watching {
    probing: Option<Box<dyn Probing>>,
    from_ns: u64,
    until_ns: u64,
}

impl std::fmt::Debug for Watching {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watching").field("from_ns", &self.from_ns).finish_non_exhaustive()
    }
}

/// Gets ready to look at the calling thread. `payload` is where its messages lie, so that faults in them are known as such.
pub fn attach(look: &ProbeRequest, payload: Range<u64>) -> Result<Watching, Failure> {
    let probing = match look.probe {
        None => None,
        Some(probe) => Some(open(probe, look, payload)?),
    };
    Ok(Watching { probing, from_ns: 0, until_ns: 0 })
}

fn open(probe: Probe, look: &ProbeRequest, payload: Range<u64>) -> Result<Box<dyn Probing>, Failure> {
    Ok(match probe {
        Probe::Counters => Box::new(counters::open(&look.counters)?),
        Probe::Syscalls => Box::new(Recorder::open(&[Kind::Calls], &[], payload)?),
        Probe::Ptrace => Box::new(ptrace::open()?),
        Probe::Scheduler => Box::new(Recorder::open(&[Kind::Switches], &[Kind::WakeUps], payload)?),
        Probe::Faults => Box::new(Recorder::open(&[Kind::Faults], &[], payload)?),
        Probe::Sampling => Box::new(sampling::open()?),
        Probe::Timeline => {
            let kinds = [Kind::Switches, Kind::Calls, Kind::WakeUps, Kind::Faults];
            Box::new(Recorder::open(&kinds, &[], payload)?)
        }
    })
}

/// Whether `asked` is a counter's name, as the command line takes it. Whether it can be counted here is another matter.
pub fn check_counter(asked: &str) -> Result<(), Failure> {
    counters::group(asked).map(drop)
}

/// What the system call `number` is called, such as `read`.
pub fn call_name(number: u32) -> String {
    syscalls::Sysno::new(number as usize)
        .map_or_else(|| format!("call {number}"), |call| call.name().to_owned())
}

/// The hidden sub-command by which the binary tries a probe on itself; the probe's name follows it.
pub const TRY: &str = "__try_probe";

/// Tries the probe called `name` on this process, which is not to be used for anything else: a filter of its calls stays.
pub fn try_probe(name: &str) -> Result<(), Failure> {
    let probe = Probe::ALL.into_iter().find(|probe| probe.name() == name);
    let look = ProbeRequest { probe, counters: Vec::new() };
    let mut watching = attach(&look, 0..0)?;
    watching.begin()?;
    watching.end()?;
    watching.seen().map(drop)
}

/// Whether `probe` works here, as a process of its own found by trying.
pub fn support(probe: Probe) -> Support {
    let tried = Command::new("/proc/self/exe").arg0("ipcmark").args([TRY, probe.name()]).output();
    let (reason, remedy) = match tried {
        Ok(output) if output.status.success() => return Support::UNLIMITED,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let parts = said.rsplit_once(" (").map(|(reason, remedy)| (reason.to_owned(), remedy.to_owned()));
            parts.unwrap_or((said, "see perf_event_open(2)".to_owned()))
        }
        Err(error) => (format!("it cannot be tried: {error}"), "see 'ipcmark doctor'".to_owned()),
    };
    let reason = reason.trim_start_matches("ipcmark: ").to_owned();
    Support::No { reason, remedy: remedy.trim_end_matches(')').to_owned() }
}

impl Watching {
    /// Switches the probe on. The iterations follow at once.
    pub fn begin(&mut self) -> Result<(), Failure> {
        if let Some(probing) = &mut self.probing {
            probing.begin()?;
        }
        self.from_ns = perf::now_ns();
        Ok(())
    }

    /// Switches it off. The iterations are just over.
    pub fn end(&mut self) -> Result<(), Failure> {
        self.until_ns = perf::now_ns();
        self.probing.as_mut().map_or(Ok(()), |probing| probing.end())
    }

    /// What was seen from `begin` to `end`.
    pub fn seen(self) -> Result<EndpointObservation, Failure> {
        let (from_ns, until_ns) = (self.from_ns, self.until_ns);
        let seen = match self.probing {
            None => EndpointObservation::default(),
            Some(probing) => probing.seen()?,
        };
        Ok(EndpointObservation {
            tid: rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(),
            ..seen
        }
        .between(from_ns, until_ns))
    }
}
