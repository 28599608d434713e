//! A sleep of known length. What it takes beyond that is the lateness of the wake-up, and the call.

use crate::contract::{Operation, TrialContext};
use model::card::{Card, Support};
use model::{Domain, Param, Params};
use rustix::event::{epoll, poll};
use rustix::fd::OwnedFd;
use rustix::io::{read, retry_on_intr};
use rustix::thread::{NanosleepRelativeResult, nanosleep};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::time::Duration;
use sys::delay::sleep_absolute;
use sys::{Errno, Failure, OrFail};

/// nanosleep(2), and other calls that have a timeout.
#[derive(Debug)]
pub(crate) struct Sleep {
    duration: Duration,
    timespec: Timespec,
    by: By,
}

#[derive(Debug)]
enum By {
    Nanosleep,
    Absolute,
    Timerfd(OwnedFd),
    /// An epoll instance that watches nothing.
    Epoll(OwnedFd),
    Poll,
}

impl Operation for Sleep {
    const CARD: Card = Card {
        name: "sleep",
        summary: "sleep for a known time: what it takes beyond that is its error",
        params: &[
            Param {
                name: "for",
                summary: "how long; at least 1ns",
                domain: Domain::Duration,
                default: Some("1ms"),
            },
            Param {
                name: "by",
                summary: "nanosleep; absolute: clock_nanosleep until a time, after reading the clock; timerfd: a timerfd, set and read; epoll: the timeout of epoll_wait, in whole ms; poll: that of ppoll",
                domain: Domain::Choice(&["nanosleep", "absolute", "timerfd", "epoll", "poll"]),
                default: Some("nanosleep"),
            },
        ],
        limits: "all but a timerfd may also be late by the thread's timer slack (PR_SET_TIMERSLACK), usually 50 us",
        man: &["nanosleep(2)", "clock_nanosleep(2)", "timerfd_create(2)", "epoll_wait(2)", "ppoll(2)"],
        ..Card::OPERATION
    };

    fn probe(params: &Params) -> Support {
        let duration = params.duration(&Self::CARD, "for");
        let whole_ms = duration.subsec_nanos().is_multiple_of(1_000_000);
        let (reason, remedy) = match params.text(&Self::CARD, "by") {
            _ if duration.is_zero() => ("a sleep of 0 s is no sleep", "give for=1ns or more"),
            Some("epoll") if !whole_ms => {
                ("epoll_wait counts in milliseconds", "give for=1ms, 2ms or the like")
            }
            _ => return Support::UNLIMITED,
        };
        Support::No { reason: reason.to_owned(), remedy: remedy.to_owned() }
    }

    fn prepare(trial: &TrialContext<'_>) -> Result<Self, Failure> {
        let by = match trial.params.text(&Self::CARD, "by") {
            Some("absolute") => By::Absolute,
            Some("timerfd") => By::Timerfd(
                timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
                    .or_fail("timerfd_create", "sleep")?,
            ),
            Some("epoll") => {
                By::Epoll(epoll::create(epoll::CreateFlags::CLOEXEC).or_fail("epoll_create1", "sleep")?)
            }
            Some("poll") => By::Poll,
            _ => By::Nanosleep,
        };
        let duration = trial.params.duration(&Self::CARD, "for");
        Ok(Self { duration, timespec: timespec(duration), by })
    }

    #[inline(always)]
    fn call(&mut self) -> Result<(), Errno> {
        match &self.by {
            By::Nanosleep => relative(self.timespec),
            By::Absolute => sleep_absolute(self.duration),
            By::Timerfd(timer) => {
                let once = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: self.timespec };
                timerfd_settime(timer, TimerfdTimerFlags::empty(), &once)?;
                retry_on_intr(|| read(timer, &mut [0; 8])).map(drop)
            }
            By::Epoll(instance) => {
                let mut none =
                    [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }];
                retry_on_intr(|| epoll::wait(instance, &mut none, Some(&self.timespec))).map(drop)
            }
            By::Poll => retry_on_intr(|| poll(&mut [], Some(&self.timespec))).map(drop),
        }
    }
}

#[inline(always)]
fn relative(mut left: Timespec) -> Result<(), Errno> {
    loop {
        match nanosleep(&left) {
            NanosleepRelativeResult::Ok => return Ok(()),
            NanosleepRelativeResult::Interrupted(rest) => left = rest,
            NanosleepRelativeResult::Err(errno) => return Err(errno),
        }
    }
}

#[inline(always)]
fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: duration.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_that_the_call_cannot_sleep_are_refused() {
        for (text, works) in [
            ("for=0s", false),
            ("for=0s,by=timerfd", false),
            ("for=1500us,by=epoll", false),
            ("for=2ms,by=epoll", true),
            ("for=1s,by=epoll", true),
            ("for=1500us,by=poll", true),
            ("for=1ns", true),
        ] {
            let support = Sleep::probe(&Params::parse(text, &Sleep::CARD).unwrap());
            assert_eq!(matches!(support, Support::Yes { .. }), works, "{text}");
        }
    }
}
