//! An endpoint that is checked: what it is told, what it says, and how it ends.

use super::tested::{ANSWER_WITHIN, END_WITHIN, Finding, Tested, text};
use crate::clock::Timer;
use crate::coordinator::driver::{self, checked};
use crate::coordinator::own_child::{OwnChild, is_closed, unless_closed};
use crate::coordinator::reexecution::nowhere;
use crate::protocol::channel::{Channel, wait_any};
use crate::protocol::led::{FromLed, ToLed};
use model::EndpointRole;
use rustix::fd::OwnedFd;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many things an endpoint says in a check at most.
const MOST_SAID: u32 = 1000;
/// How long one that has closed its channel may take to end, and one whose peer has found something wrong to say the same.
const GRACE: Duration = Duration::from_secs(1);

/// An endpoint that is checked.
pub(super) struct Subject<'a> {
    /// Closed when the coordinator is to be gone.
    control: Option<Channel>,
    child: OwnChild,
    interrupted: &'a AtomicBool,
    /// How many things it has said.
    said: Cell<u32>,
    /// What it was told last.
    told: Cell<&'static str>,
}

/// What comes of listening to an endpoint for a while.
pub(super) enum Heard {
    Said(FromLed),
    /// It has closed its channel, and how.
    Gone(String),
    Silent,
}

impl<'a> Subject<'a> {
    /// One that has said hello, with descriptors.
    pub(super) fn greeted(
        tested: &Tested<'a>,
        role: EndpointRole,
        fds: Vec<OwnedFd>,
    ) -> Result<Self, String> {
        let (control, child) =
            driver::start(Some(&tested.driver), role, None, fds, nowhere().map_err(text)?).map_err(text)?;
        let (said, told) = (Cell::new(0), Cell::new("hello"));
        let subject = Self { control: Some(control), child, interrupted: tested.interrupted, said, told };
        checked(subject.expect("hello", |message| matches!(message, FromLed::Hello(_)))?)?;
        Ok(subject)
    }

    /// Tells it `message`. One that is gone by now is found when it is listened to.
    pub(super) fn say(&self, message: &ToLed) -> Finding {
        self.told.set(match message {
            ToLed::Hello(_) => "hello",
            ToLed::Orders(_) => "its orders",
            ToLed::Ticket(_) => "the ticket",
            ToLed::Phase(_) => "the phase",
            ToLed::Alive | ToLed::Ping => "ping",
            ToLed::Goodbye => "goodbye",
        });
        unless_closed(self.control()?.send(message, &[])).map_err(text)
    }

    /// Sends it `bytes`, which are no message, and nothing more.
    pub(super) fn send_garbage(&mut self, bytes: &[u8]) -> Finding {
        if let Some(output) = self.control()?.stream_output() {
            output.try_send(bytes);
        }
        // No more comes of what may look like the begin of a long message.
        self.leave();
        Ok(())
    }

    /// Closes its standard input, and hears it no more.
    pub(super) fn leave(&mut self) {
        self.control = None;
    }

    fn control(&self) -> Result<&Channel, String> {
        self.control.as_ref().ok_or_else(|| "its channel is closed".to_owned())
    }

    /// What it says next within `limit`.
    pub(super) fn hear(&self, limit: Duration) -> Result<Heard, String> {
        self.said.set(self.said.get() + 1);
        if self.said.get() > MOST_SAID {
            return Err(format!("it says more than {MOST_SAID} things"));
        }
        let control = self.control()?;
        // A signal ends the wait.
        match wait_any(&[control], limit) {
            Ok(Some(_)) => match FromLed::heard(control) {
                Ok(message) => Ok(Heard::Said(message)),
                Err(failure) if is_closed(&failure) => Ok(Heard::Gone(self.how_it_ended())),
                Err(failure) => Err(format!("{} ({})", failure.answer, failure.next)),
            },
            Ok(None) => Ok(Heard::Silent),
            Err(errno) => Err(errno.to_string()),
        }
    }

    fn how_it_ended(&self) -> String {
        self.child.wait_within(GRACE);
        match self.child.ended() {
            Ok(Some(status)) => format!("it ended ({status})"),
            _ => "it closed its standard output".to_owned(),
        }
    }

    /// Whether it says next what `is_due`, which is called `what`.
    pub(super) fn expect(&self, what: &str, is_due: impl Fn(&FromLed) -> bool) -> Result<FromLed, String> {
        match self.hear(ANSWER_WITHIN)? {
            Heard::Said(message) if is_due(&message) => Ok(message),
            Heard::Said(FromLed::Failed(why)) => {
                Err(format!("it says that it failed, and should say \"{what}\": {why}"))
            }
            Heard::Said(other) => Err(format!("it says {}, and should say \"{what}\"", other.as_said())),
            Heard::Gone(how) => Err(format!("{how} without saying \"{what}\" or why it failed")),
            Heard::Silent => Err(format!(
                "it does not say \"{what}\" within {} s of {}; is what it writes flushed?",
                ANSWER_WITHIN.as_secs(),
                self.told.get()
            )),
        }
    }

    /// `error`, which its peer has found, with what it says of that itself.
    pub(super) fn with_own_words(&self, error: String) -> String {
        match self.hear(GRACE) {
            Ok(Heard::Said(FromLed::Failed(why))) => format!("{error}; it says that it failed: {why}"),
            Ok(Heard::Said(other)) => format!("{error}; it says {}", other.as_said()),
            Ok(Heard::Gone(how)) => format!("{error}; {how} without saying why it failed"),
            Ok(Heard::Silent) => error,
            Err(why) => format!("{error}; {why}"),
        }
    }

    /// Whether it says that it failed within the time for an answer, for `cause`, or just ends, unless it `must_say` so. Not that all is done.
    pub(super) fn expect_failure(mut self, cause: &str, must_say: bool) -> Finding {
        loop {
            match self.hear(ANSWER_WITHIN)? {
                Heard::Said(FromLed::Failed(_)) => return self.expect_end("it said that it failed"),
                Heard::Said(FromLed::Done(_)) => {
                    return Err(format!(
                        "it says that the phase is done, though {cause}: it should say that it failed"
                    ));
                }
                // What it had begun to say before.
                Heard::Said(_) => {}
                Heard::Gone(how) if must_say => {
                    return Err(format!("{how} without saying that it failed, though {cause}"));
                }
                Heard::Gone(_) => return self.expect_end("it closed its standard output"),
                Heard::Silent => {
                    return Err(format!(
                        "it does not say that it failed within {} s, though {cause}",
                        ANSWER_WITHIN.as_secs()
                    ));
                }
            }
        }
    }

    /// Whether it has ended by itself.
    pub(super) fn has_ended(&self) -> bool {
        self.child.wait_within(GRACE)
    }

    /// Whether it ends in time, with all that have its streams, after what it was told or did.
    pub(super) fn expect_end(&mut self, after: &str) -> Finding {
        let (timer, mut others) = (Timer::start(), None);
        while timer.elapsed() < END_WITHIN && !self.interrupted.load(Ordering::Relaxed) {
            if self.child.ended().map_err(text)?.is_some() {
                others = Some(self.child.holders());
                if others.as_ref().is_some_and(Vec::is_empty) {
                    return Ok(());
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let limit_s = END_WITHIN.as_secs();
        Err(match others.as_deref() {
            Some([other, ..]) => {
                format!("it ends, but process {} has its streams for {limit_s} s", other.as_raw_nonzero())
            }
            _ => format!("it lives on for {limit_s} s after {after}"),
        })
    }
}

impl Drop for Subject<'_> {
    fn drop(&mut self) {
        self.child.kill();
        self.child.kill_holders();
    }
}
