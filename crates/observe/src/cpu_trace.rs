//! Events of CPUs, recorded by the kernel into memory of each CPU and read out after the iterations.
//!
//! They are of CPUs and not of threads, so that the kernel has nothing to do with them when it switches threads; the endpoints' own
//! events are chosen in the kernel. Nobody is woken to read, and nothing is read meanwhile.
//! Whoever records is none of the endpoints: they do the same iterations with events and without.

use crate::cpu_bpf::CpuPrograms;
use crate::cpu_records::CpuRecords;
use model::observation::{CpuTrace, EventSet, RecordingWay};
use sys::Failure;

/// The threads of a pair of endpoints, as the kernel numbers them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointThreads {
    /// The client's.
    pub client: Vec<u32>,
    /// The server's.
    pub server: Vec<u32>,
}

impl EndpointThreads {
    fn all(&self) -> Vec<u32> {
        self.client.iter().chain(&self.server).copied().collect()
    }
}

/// Sets of events, open on the CPUs of a trial.
pub struct CpuRecorder {
    threads: EndpointThreads,
    by: Backend,
    /// Why programs do not record, where they were to.
    no_programs: Option<String>,
}

enum Backend {
    Programs(CpuPrograms),
    Records(CpuRecords),
}

impl std::fmt::Debug for CpuRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CpuRecorder").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl CpuRecorder {
    /// Opens `sets` on `cpus`, as far as that is permitted, of what `threads` do there.
    pub fn open(
        cpus: &[u32],
        threads: EndpointThreads,
        sets: &[EventSet],
        way: RecordingWay,
    ) -> Result<Self, Failure> {
        let tids = threads.all();
        let programs = match way {
            RecordingWay::Programs => Some(CpuPrograms::open(cpus, &tids, sets)),
            RecordingWay::PerfRecords => None,
        };
        let (by, no_programs) = match programs {
            Some(Ok(programs)) => (Backend::Programs(programs), None),
            refused => {
                let reason = refused.and_then(Result::err).map(|failure| failure.to_string());
                (Backend::Records(CpuRecords::open(cpus, tids, sets)?), reason)
            }
        };
        Ok(Self { threads, by, no_programs })
    }

    /// Switches the events on. The endpoints sleep meanwhile.
    pub fn begin(&mut self) -> Result<(), Failure> {
        match &mut self.by {
            Backend::Programs(programs) => {
                programs.begin();
                Ok(())
            }
            Backend::Records(records) => records.begin(),
        }
    }

    /// Switches them off.
    pub fn end(&mut self) -> Result<(), Failure> {
        match &mut self.by {
            Backend::Programs(programs) => {
                programs.end();
                Ok(())
            }
            Backend::Records(records) => records.end(),
        }
    }

    /// What was recorded, where the first timed iteration of the client began at `from_ns` and each ended when
    /// `iteration_ends_ns` says.
    pub fn trace(self, from_ns: u64, iteration_ends_ns: Vec<u64>) -> Result<CpuTrace, Failure> {
        let mut trace =
            CpuTrace { from_ns, iteration_ends_ns, no_programs: self.no_programs, ..CpuTrace::default() };
        (trace.sets, trace.unavailable) = match self.by {
            Backend::Programs(programs) => {
                programs.read(&mut trace);
                (programs.sets, Vec::new())
            }
            Backend::Records(mut records) => {
                records.read(&mut trace)?;
                (records.sets, records.unavailable)
            }
        };
        trace.events.sort_by_key(|event| event.at_ns);
        (trace.client_tids, trace.server_tids) = (self.threads.client, self.threads.server);
        Ok(trace)
    }
}
