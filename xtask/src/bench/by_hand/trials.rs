//! Trials of the loops written by hand: it starts their two processes and tells both, slice by slice, how many iterations come.
//!
//! Standard input and output of each process are its side of the mechanism; its standard error is its control channel.

use super::descriptors::{Io, open};
use super::endpoint::{Answer, BY_HAND, Orders};
use harness::coordinator::schedule::{Trial, Trials};
use harness::coordinator::trial_error::TrialError;
use harness::coordinator::trials::DISTURBANCE;
use harness::protocol::orders::{Sizing, SliceOrders};
use harness::protocol::report::SliceReport;
use model::observation::{CpuTrace, EventSet, ProbeRequest, RecordingWay};
use model::record::Usage;
use model::speed::SpeedReadings;
use model::{Case, Sample, Workload};
use rustix::fd::OwnedFd;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use sys::Failure;

/// The iterations of the first slice of a trial before it is known how long they take.
const FIRST_ITERATIONS: u64 = 8;
/// The least share of a slice that a trial warms up for.
const WARM_UP_SHARE: f64 = 0.2;
/// By how much more the next piece of a warm-up may have.
const GROWTH: u64 = 16;

/// The loops written by hand, as a source of trials.
#[derive(Default)]
pub(super) struct ByHandTrials {
    /// By how long each message of a client is delayed, in loops that have a delay; one of 0 is a loop that has one, too.
    pub(super) delay_ns: Option<u64>,
}

impl Trials for ByHandTrials {
    fn start<'s>(
        &'s self,
        case: &Case,
        _number: u64,
        _probe: Option<&ProbeRequest>,
    ) -> Result<Box<dyn Trial + 's>, TrialError> {
        let cpus = case.cpus.ok_or_else(|| failed("place", "the case has no CPUs"))?;
        let size_bytes = case.size_bytes.map_or(1, |size| size.0);
        let [client, server] = open(&case.spec.name).map_err(|error| failed("open", &error.to_string()))?;
        let start = |role: &str, cpu: u32, own_cpu: bool, sides: [OwnedFd; 2]| {
            let words = [role, &case.spec.name, case.workload.name()].map(str::to_owned);
            let numbers = [size_bytes, u64::from(cpu), u64::from(own_cpu)].map(|number| number.to_string());
            let delay = self.delay_ns.map_or_else(|| "none".to_owned(), |ns| ns.to_string());
            Process::start(words.into_iter().chain(numbers).chain([delay]), sides)
                .map_err(|error| failed("start", &error.to_string()))
        };
        Ok(Box::new(ByHandTrial {
            client: start("client", cpus.client, true, client)?,
            // Where both endpoints are on one CPU, the client alone reads its speed.
            server: start("server", cpus.server, cpus.server != cpus.client, server)?,
            workload: case.workload,
            iteration_ns: None,
            slices: 0,
        }))
    }

    // They make no names.
    fn first_number(&self) -> u64 {
        0
    }

    fn wait_out_disturbance(&self) {
        std::thread::sleep(DISTURBANCE);
    }

    fn is_interrupted(&self) -> bool {
        false
    }

    fn most_alive(&self) -> usize {
        usize::MAX
    }
}

fn failed(operation: &'static str, answer: &str) -> TrialError {
    Failure::new(operation, "a loop written by hand", answer, "report this bug").into()
}

/// The client and the server of one loop.
struct ByHandTrial {
    client: Process,
    server: Process,
    workload: Workload,
    iteration_ns: Option<f64>,
    slices: u64,
}

impl Trial for ByHandTrial {
    fn slice(&mut self, orders: SliceOrders) -> Result<SliceReport, TrialError> {
        let iterations = match orders.size {
            Sizing::Iterations(iterations) => iterations,
            Sizing::Slice { slice_ns, .. } => (slice_ns as f64 / self.warm(slice_ns as f64)?) as u64,
        };
        let sample = self.iterate(iterations.max(1))?;
        self.iteration_ns = Some(sample.iteration_ns());
        Ok(SliceReport::from_sample(sample))
    }

    fn traced_slice(
        &mut self,
        _: Sizing,
        _: &[EventSet],
        _: RecordingWay,
    ) -> Result<(SliceReport, CpuTrace), TrialError> {
        Err(failed("record", "it does not say when its iterations end"))
    }

    fn end(&mut self) -> Result<(), TrialError> {
        self.client.end().and_then(|()| self.server.end()).map_err(|error| failed("end", &error.to_string()))
    }
}

impl ByHandTrial {
    /// What an iteration takes. It warms up before the first slice.
    fn warm(&mut self, slice_ns: f64) -> Result<f64, TrialError> {
        if let Some(iteration_ns) = self.iteration_ns {
            return Ok(iteration_ns);
        }
        let (mut iterations, mut so_far_ns) = (FIRST_ITERATIONS, 0.0);
        loop {
            let sample = self.iterate(iterations)?;
            so_far_ns += sample.elapsed_ns;
            if so_far_ns >= WARM_UP_SHARE * slice_ns {
                return Ok(sample.iteration_ns());
            }
            iterations *= GROWTH;
        }
    }

    fn iterate(&mut self, iterations: u64) -> Result<Sample, TrialError> {
        let orders = Orders { iterations, run_up: self.run_up(iterations) };
        let mut both = || -> Io<[Answer; 2]> {
            self.server.tell(orders)?;
            self.client.tell(orders)?;
            Ok([self.client.answer()?, self.server.answer()?])
        };
        let [client, server] = both().map_err(|error| failed("iterate", &error.to_string()))?;
        self.slices += 1;
        let elapsed_ns =
            if self.workload == Workload::Throughput { server.elapsed_ns } else { client.elapsed_ns };
        let speed = client.speed.map(|client| SpeedReadings { client, server: server.speed, pair: None });
        let (used, used_by_server) = (Usage::default(), Some(Usage::default()));
        Ok(Sample { speed, ..Sample::new(iterations, elapsed_ns, used, used_by_server) })
    }

    /// How many messages of a stream come before those that are timed: from a quarter to three quarters of them, spread evenly
    /// over slices, so that the buffers are not at the same point of their cycle in each.
    fn run_up(&self, iterations: u64) -> u64 {
        const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;
        let share = (self.slices as f64 * GOLDEN_RATIO).fract();
        (iterations as f64 * (0.25 + 0.5 * share)) as u64
    }
}

/// One process of a loop. It is dead and reaped when this is dropped.
struct Process {
    child: Child,
    /// Absent when there is nothing more to say.
    control: Option<BufReader<UnixStream>>,
}

impl Process {
    fn start(words: impl Iterator<Item = String>, [input, output]: [OwnedFd; 2]) -> std::io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(BY_HAND).args(words).stdin(input).stdout(output).stderr(OwnedFd::from(theirs));
        Ok(Self { child: command.spawn()?, control: Some(BufReader::new(ours)) })
    }

    fn control(&mut self) -> Io<&mut BufReader<UnixStream>> {
        self.control.as_mut().ok_or_else(|| "it has ended".into())
    }

    fn tell(&mut self, orders: Orders) -> Io<()> {
        Ok(writeln!(self.control()?.get_mut(), "{orders}")?)
    }

    fn answer(&mut self) -> Io<Answer> {
        let mut said = String::new();
        self.control()?.read_line(&mut said)?;
        said.parse().map_err(|_| format!("it said '{}'", said.trim()).into())
    }

    /// It ends when its control channel does.
    fn end(&mut self) -> Io<()> {
        self.control = None;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(status.to_string().into()) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
