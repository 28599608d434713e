//! The probe of a single system call, which the endpoint makes before its iterations and after them, and which these do not make:
//! what tracing costs calls that are not traced. What the call does is of no interest.

use crate::events::{Kind, Recorder};
use crate::instrument::ProbeInstrument;
use model::observation::EndpointObservation;
use rustix::time::{ClockId, clock_getres};
use sys::Failure;

/// The records of the call, by the calling thread.
pub(crate) struct OneCall(Recorder);

/// Opens them.
pub(crate) fn open() -> Result<OneCall, Failure> {
    Ok(OneCall(Recorder::open(&[Kind::OneCall], &[], 0..0)?))
}

impl ProbeInstrument for OneCall {
    fn begin(&mut self) -> Result<(), Failure> {
        self.0.begin()?;
        call();
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        call();
        self.0.end()
    }

    fn observation(self: Box<Self>) -> Result<EndpointObservation, Failure> {
        Box::new(self.0).observation()
    }
}

/// clock_getres(2) enters the kernel always; clock_gettime(2), which the study traced, seldom does on Linux.
fn call() {
    std::hint::black_box(clock_getres(ClockId::Monotonic));
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::observation::EventKind;

    #[test]
    fn the_call_is_seen_before_and_after_and_no_other_is() {
        let mut probe = match open() {
            Ok(probe) => Box::new(probe),
            // Where it is not allowed, it is said what grants it.
            Err(failure) => return assert!(!failure.answer.is_empty() && !failure.next.is_empty()),
        };
        probe.begin().unwrap();
        for _ in 0..23 {
            std::hint::black_box(rustix::process::getppid());
        }
        probe.end().unwrap();
        let seen = probe.observation().unwrap();
        let enters = seen.events.iter().filter(|event| matches!(event.what, EventKind::Enter { .. })).count();
        let exits =
            seen.events.iter().filter(|event| matches!(event.what, EventKind::Exit { value: 0, .. })).count();
        assert_eq!((enters, exits, seen.events.len()), (2, 2, 4), "{seen:?}");
    }
}
