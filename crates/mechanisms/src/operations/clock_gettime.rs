//! The kernel's clocks: what one reading costs.

use crate::contract::{Operation, TimerKind, TrialContext};
use crate::support::cards::TIMER;
use model::card::Card;
use model::{Domain, Param};
use rustix::time::{ClockId, clock_gettime};
use sys::{Errno, Failure};

/// clock_gettime(2).
#[derive(Debug)]
pub(crate) struct ClockGettime {
    clock: ClockId,
}

impl Operation for ClockGettime {
    const CARD: Card = Card {
        name: "clock_gettime",
        summary: "one reading of a kernel clock, through the vDSO where it has it",
        params: &[Param {
            name: "clock",
            summary: "which clock",
            domain: Domain::Choice(&[
                "monotonic",
                "monotonic-raw",
                "monotonic-coarse",
                "realtime",
                "realtime-coarse",
                "boottime",
                "process-cpu",
                "thread-cpu",
            ]),
            default: Some("monotonic"),
        }],
        man: &["clock_gettime(2)"],
        ..TIMER
    };

    fn prepare(trial: &TrialContext<'_>) -> Result<Self, Failure> {
        let clock = match trial.params.text(&Self::CARD, "clock") {
            Some("monotonic-raw") => ClockId::MonotonicRaw,
            Some("monotonic-coarse") => ClockId::MonotonicCoarse,
            Some("realtime") => ClockId::Realtime,
            Some("realtime-coarse") => ClockId::RealtimeCoarse,
            Some("boottime") => ClockId::Boottime,
            Some("process-cpu") => ClockId::ProcessCPUTime,
            Some("thread-cpu") => ClockId::ThreadCPUTime,
            _ => ClockId::Monotonic,
        };
        Ok(Self { clock })
    }

    #[inline(always)]
    #[expect(
        clippy::disallowed_methods,
        reason = "the reading itself is what is timed; its value is not used"
    )]
    fn call(&mut self) -> Result<(), Errno> {
        std::hint::black_box(clock_gettime(self.clock));
        Ok(())
    }

    fn timer(&self) -> Option<TimerKind> {
        let counts_cpu = matches!(self.clock, ClockId::ProcessCPUTime | ClockId::ThreadCPUTime);
        if counts_cpu { TimerKind::cpu(1.0) } else { TimerKind::wall(1.0) }
    }

    #[inline(always)]
    #[expect(clippy::disallowed_methods, reason = "the accuracy of the timer is what is measured")]
    fn read(&mut self) -> Result<u64, Errno> {
        let now = clock_gettime(self.clock);
        Ok(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }
}
