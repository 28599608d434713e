//! How long the timed stretch of a phase took, by the clock of the peer: what an endpoint says of it lies between two bounds, however slowly the
//! host runs either of them.
//!
//! Where messages are answered, the endpoint's stretch has begun when the first of them or its answer has come to the peer, and it has not
//! ended before the peer sends its part of the last. It begins no sooner than the peer sends its part of the message before, and has ended when
//! the next has come. In a stream nothing comes but acknowledgements: so much is sent before the pause that no buffer holds it.

use crate::clock::Timer;
use crate::protocol::led::{LedDone, LedPhase, Stretch};
use std::collections::BTreeMap;
use std::time::Duration;

/// By how much the clocks of two programs may differ in rate.
const DRIFT: f64 = 0.01;

/// When what happened in a phase, by the number of its message.
pub(super) struct Notes {
    timer: Timer,
    sent: BTreeMap<u64, Duration>,
    came: BTreeMap<u64, Duration>,
    /// When the peer began to wait before it sent a message.
    paused: BTreeMap<u64, Duration>,
}

/// Between what and what the time of a stretch lies, in nanoseconds, and that of its phase.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    least_ns: f64,
    most_ns: f64,
    phase_ns: f64,
}

impl Notes {
    pub(super) fn start() -> Self {
        Self { timer: Timer::start(), sent: BTreeMap::new(), came: BTreeMap::new(), paused: BTreeMap::new() }
    }

    /// The peer is about to send its part of `iteration`.
    pub(super) fn is_sent(&mut self, iteration: u64) {
        self.sent.insert(iteration, self.timer.elapsed());
    }

    /// The endpoint's part of `iteration` has come, or its acknowledgement.
    pub(super) fn has_come(&mut self, iteration: u64) {
        self.came.insert(iteration, self.timer.elapsed());
    }

    /// Waits for `pause` before the peer sends its part of `iteration`.
    pub(super) fn pause(&mut self, iteration: u64, pause: Duration) {
        self.paused.insert(iteration, self.timer.elapsed());
        std::thread::sleep(pause);
    }

    /// The window of `phase`, which is over; none where too little of it came back to the peer.
    pub(super) fn window(&self, phase: &LedPhase) -> Option<Window> {
        let numbers = timed(phase);
        let last = numbers.end - 1;
        let began = self.came.get(&numbers.start).or_else(|| self.paused.get(&last))?;
        let (_, ended) = self.came.range(numbers.end..).next()?;
        let least = self.sent.get(&last)?.saturating_sub(*began);
        let most = ended.saturating_sub(*self.sent.get(&numbers.start.checked_sub(1)?)?);
        let [least_ns, most_ns, phase_ns] =
            [least, most, self.timer.elapsed()].map(|time| time.as_nanos() as f64);
        Some(Window { least_ns, most_ns, phase_ns })
    }

    /// How long the peer waited within the timed stretch at least.
    pub(super) fn longest_ns(&self, phase: &LedPhase) -> Option<f64> {
        let last = timed(phase).end - 1;
        Some(self.sent.get(&last)?.saturating_sub(*self.paused.get(&last)?).as_nanos() as f64)
    }
}

impl Window {
    /// Whether the time that an endpoint says can be that of its stretch.
    pub(super) fn holds(self, done: &LedDone) -> Result<(), String> {
        let Self { least_ns, most_ns, phase_ns } = self;
        let elapsed_ns = done.elapsed_ns;
        let says = format!("elapsed_ns is {elapsed_ns}");
        if elapsed_ns < least_ns * (1.0 - DRIFT) {
            let is_in = |factor: f64| {
                let scaled = elapsed_ns * factor;
                least_ns / 2.0 < scaled && scaled < most_ns * 2.0
            };
            let units = [(1e3, "µs"), (1e6, "ms"), (1e9, "s")];
            let unit = units.into_iter().find(|(factor, _)| is_in(*factor));
            let hint = unit.map(|(_, unit)| format!(": is it in {unit}?")).unwrap_or_default();
            return Err(format!("{says} for a timed stretch that took {least_ns:.0} ns at least{hint}"));
        }
        if elapsed_ns > phase_ns * (1.0 + DRIFT) {
            return Err(format!("{says} for a phase that took {phase_ns:.0} ns in all: is it in ns?"));
        }
        if elapsed_ns > most_ns * (1.0 + DRIFT) {
            return Err(format!(
                "{says} for a timed stretch that took {most_ns:.0} ns at most: it has stretches in it that are not timed"
            ));
        }
        Ok(())
    }
}

/// The numbers of the timed messages of `phase`.
pub(super) fn timed(phase: &LedPhase) -> std::ops::Range<u64> {
    let before = phase.stretches.iter().take_while(|stretch| !stretch.timed);
    let start: u64 = before.map(|stretch: &Stretch| stretch.messages).sum();
    start..start + phase.timed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::led::Stretch;

    /// What is said of `elapsed_ns` where the stretch took between 50 and 60 ms, and its phase 200.
    fn said(elapsed_ns: f64) -> Result<(), String> {
        let window = Window { least_ns: 50e6, most_ns: 60e6, phase_ns: 200e6 };
        window.holds(&LedDone { elapsed_ns, each_ns: Vec::new() })
    }

    #[test]
    fn a_time_is_held_against_what_the_peer_saw() {
        for right in [50e6, 55e6, 60e6] {
            assert_eq!(said(right), Ok(()));
        }
        for (wrong, why) in [
            (
                51_300.0,
                "elapsed_ns is 51300 for a timed stretch that took 50000000 ns at least: is it in µs?",
            ),
            (51.3, "is it in ms?"),
            (0.0513, "is it in s?"),
            (25e6, "at least"),
            (150e6, "stretches in it that are not timed"),
            (51e9, "is it in ns?"),
        ] {
            let found = said(wrong).unwrap_err();
            assert!(found.contains(why), "{found}");
        }
    }

    #[test]
    fn a_window_is_of_what_surely_lay_within_the_stretch_and_around_it() {
        let stretch = |messages, timed| Stretch { messages, timed, acknowledged: false };
        let phase = LedPhase {
            check: false,
            each: false,
            stretches: vec![stretch(2, false), stretch(3, true), stretch(1, false)],
        };
        let mut notes = Notes::start();
        let mut at = |ms: u64, map: fn(&mut Notes) -> &mut BTreeMap<u64, Duration>, number| {
            map(&mut notes).insert(number, Duration::from_millis(ms));
        };
        for number in 0..6 {
            at(number * 10, |notes| &mut notes.sent, number);
            at(number * 10 + 4, |notes| &mut notes.came, number);
        }
        at(32, |notes| &mut notes.paused, 4);
        let Window { least_ns, most_ns, .. } = notes.window(&phase).unwrap();
        // From where message 2 has come to where 4 is sent; from where 1 is sent to where 5 has come.
        assert_eq!((least_ns, most_ns), (16e6, 44e6));
        assert_eq!(notes.longest_ns(&phase), Some(8e6));
        // Of a stream nothing comes but the acknowledgement.
        notes.came.retain(|number, _| *number == 5);
        let Window { least_ns, most_ns, .. } = notes.window(&phase).unwrap();
        assert_eq!((least_ns, most_ns), (8e6, 44e6));
    }
}
