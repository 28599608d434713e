//! Server's side of a connected trial: it serves the parts that client announces.

use crate::control::Channel;
use crate::endpoint::{Outcome, Session, text};
use crate::measure::Clock;
use crate::part::{Iterations, Part, PartKind, ServerPart, call_counts};
use crate::together::CourseLog;
use crate::workload::{Broken, CallLog, Station, StepLog, Unmetered, usage_between};
use mechanisms::{Endpoint, NoTrace};
use model::Workload;
use std::ops::Range;
use sys::usage::of_this_thread;

/// Server's side of a connected trial.
pub(crate) struct Server<'a, E> {
    pub(crate) session: &'a Session,
    pub(crate) link: &'a Channel,
    pub(crate) clock: Clock,
    pub(crate) station: Box<Station<E>>,
}

impl<E: Endpoint> Server<'_, E> {
    /// Serves one part after the other until client says that there are no more.
    pub(crate) fn serve(mut self) -> Outcome<()> {
        loop {
            let (part, _): (Part, _) = self.link.receive().map_err(text)?;
            self.station.check(self.session.check(part.check));
            let done = match part.kind {
                PartKind::End => return Ok(()),
                PartKind::Total => self.total(part.iterations, None).map_err(text)?,
                PartKind::Course => {
                    let is_answered = self.session.workload().is_answered();
                    let log = (!is_answered).then(|| CourseLog::new(self.clock, part.iterations));
                    self.total(part.iterations, log).map_err(text)?
                }
                PartKind::Calls => self.calls(part.iterations).map_err(text)?,
                PartKind::Steps => self.steps(part.iterations).map_err(text)?,
                PartKind::Observed => self.observed(part.iterations)?,
            };
            self.link.send(&done, &[]).map_err(text)?;
        }
    }

    /// Server's usage is taken when the last message of the lead-in and the first of the lead-out have come:
    /// it is that of the timed iterations, and noting it delays none of them.
    ///
    /// Where iterations are not answered, server alone knows when a message came: it notes that in `log`.
    fn total(&mut self, iterations: u64, mut log: Option<CourseLog>) -> Result<ServerPart, Broken> {
        let Iterations { lead_in, timed, lead_out } = Iterations::of(iterations);
        let (mut before, mut after) = (of_this_thread(), None);
        // By reference to any closure: what the timed iterations run is compiled apart from what these do.
        let note_start: &mut dyn FnMut() = &mut || before = of_this_thread();
        let note_end: &mut dyn FnMut() = &mut || {
            after.get_or_insert_with(of_this_thread);
        };
        let (mut lost, station) = (None, &mut *self.station);
        match self.session.workload() {
            Workload::Throughput => {
                station.drain(lead_in, &mut Unmetered, note_start)?;
                match &mut log {
                    None => station.drain(timed, &mut Unmetered, &mut nothing)?,
                    Some(log) => {
                        log.start();
                        let note_arrival: &mut dyn FnMut() = &mut || log.arrived();
                        station.drain(timed, &mut Unmetered, note_arrival)?;
                    }
                }
                lost = E::LOSES.then_some(station.lost);
                station.drain(lead_out, &mut Unmetered, note_end)?;
            }
            Workload::Session(session) => {
                station.be_set_up(lead_in, session, &mut NoTrace, note_start)?;
                station.be_set_up(timed, session, &mut NoTrace, &mut nothing)?;
                station.be_set_up(lead_out, session, &mut NoTrace, note_end)?;
            }
            _ => {
                station.answer(lead_in, note_start)?;
                station.answer(timed, &mut nothing)?;
                station.answer(lead_out, note_end)?;
            }
        }
        let usage = usage_between(before, after.unwrap_or(before));
        let course = log.map(CourseLog::course);
        Ok(ServerPart { usage, course, lost, ..ServerPart::default() })
    }

    /// The part in which both ends are looked at: what server does in the timed iterations is seen, and no more.
    fn observed(&mut self, iterations: u64) -> Outcome<ServerPart> {
        let mut watching = self.session.attach(&self.station)?;
        // Client begins when server is ready.
        self.link.send(&(), &[]).map_err(text)?;
        let Iterations { lead_in, timed, lead_out } = Iterations::of(iterations);
        self.iterations(lead_in).map_err(text)?;
        watching.begin().map_err(text)?;
        self.iterations(timed).map_err(text)?;
        watching.end().map_err(text)?;
        self.iterations(lead_out).map_err(text)?;
        Ok(ServerPart { seen: Some(watching.seen().map_err(text)?), ..ServerPart::default() })
    }

    /// Server's side of `iterations`.
    fn iterations(&mut self, iterations: Range<u64>) -> Result<(), Broken> {
        let nothing: &mut dyn FnMut() = &mut nothing;
        match self.session.workload() {
            Workload::Throughput => self.station.drain(iterations, &mut Unmetered, nothing),
            Workload::Session(session) => self.station.be_set_up(iterations, session, &mut NoTrace, nothing),
            _ => self.station.answer(iterations, nothing),
        }
    }

    fn calls(&mut self, iterations: u64) -> Result<ServerPart, Broken> {
        let Iterations { lead_in, timed, lead_out } = Iterations::of(iterations);
        let mut log = CallLog::new(self.clock);
        self.station.drain(lead_in, &mut Unmetered, &mut nothing)?;
        self.station.drain(timed, &mut log, &mut nothing)?;
        self.station.drain(lead_out, &mut Unmetered, &mut nothing)?;
        Ok(ServerPart { calls: Some(call_counts(&log, &self.clock)), ..ServerPart::default() })
    }

    fn steps(&mut self, iterations: u64) -> Result<ServerPart, Broken> {
        let mut log = StepLog::new(self.clock);
        if let Workload::Session(session) = self.session.workload() {
            let Iterations { lead_in, timed, lead_out } = Iterations::of(iterations);
            self.station.be_set_up(lead_in, session, &mut NoTrace, &mut nothing)?;
            self.station.be_set_up(timed, session, &mut log, &mut nothing)?;
            self.station.be_set_up(lead_out, session, &mut NoTrace, &mut nothing)?;
        }
        Ok(ServerPart { steps: Some(log.by_name()), ..ServerPart::default() })
    }
}

/// What is done between the message and the answer of a timed iteration.
fn nothing() {}
