//! A probe on the calling thread: which instrument it is, and when it was switched on and off.

use crate::events::{Kind, Recorder};
use crate::instrument::ProbeInstrument;
use crate::{counters, one_call, perf, ptrace, sampling};
use model::observation::{EndpointObservation, Probe, ProbeRequest};
use std::ops::Range;
use sys::Failure;

/// A probe on the calling thread, or none.
pub struct AttachedProbe {
    instrument: Option<Box<dyn ProbeInstrument>>,
    from_ns: u64,
    until_ns: u64,
}

impl std::fmt::Debug for AttachedProbe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AttachedProbe").field("from_ns", &self.from_ns).finish_non_exhaustive()
    }
}

/// Attaches the probe that `request` names to the calling thread. `payload` is where its messages lie, so that page faults in
/// them are known as such.
pub fn attach(request: &ProbeRequest, payload: Range<u64>) -> Result<AttachedProbe, Failure> {
    let instrument = match request.probe {
        None => None,
        Some(probe) => Some(open(probe, request, payload)?),
    };
    Ok(AttachedProbe { instrument, from_ns: 0, until_ns: 0 })
}

fn open(
    probe: Probe,
    request: &ProbeRequest,
    payload: Range<u64>,
) -> Result<Box<dyn ProbeInstrument>, Failure> {
    Ok(match probe {
        Probe::Counters => Box::new(counters::open(&request.counters)?),
        Probe::Syscalls => Box::new(Recorder::open(&[Kind::Calls], &[], payload)?),
        Probe::OneCall => Box::new(one_call::open()?),
        Probe::Ptrace => Box::new(ptrace::open()?),
        Probe::Scheduler => Box::new(Recorder::open(&[Kind::Switches], &[Kind::WakeUps], payload)?),
        Probe::Faults => Box::new(Recorder::open(&[Kind::Faults], &[], payload)?),
        Probe::Sampling => Box::new(sampling::open(request.sampling)?),
        Probe::Timeline => {
            let kinds = [Kind::Switches, Kind::Calls, Kind::WakeUps, Kind::Faults];
            Box::new(Recorder::open(&kinds, &[], payload)?)
        }
    })
}

impl AttachedProbe {
    /// Switches the probe on. The iterations follow at once.
    pub fn begin(&mut self) -> Result<(), Failure> {
        if let Some(instrument) = &mut self.instrument {
            instrument.begin()?;
        }
        self.from_ns = perf::now_ns();
        Ok(())
    }

    /// Switches it off. The iterations are just over.
    pub fn end(&mut self) -> Result<(), Failure> {
        self.until_ns = perf::now_ns();
        self.instrument.as_mut().map_or(Ok(()), |instrument| instrument.end())
    }

    /// What it saw from `begin` to `end`.
    pub fn observation(self) -> Result<EndpointObservation, Failure> {
        let (from_ns, until_ns) = (self.from_ns, self.until_ns);
        let observation = match self.instrument {
            None => EndpointObservation::default(),
            Some(instrument) => instrument.observation()?,
        };
        Ok(EndpointObservation {
            tid: rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(),
            ..observation
        }
        .between(from_ns, until_ns))
    }
}
