//! An endpoint with its message buffers: sends one message, receives one message, verifies it.
//!
//! An iteration's code is short and one piece, without a call into another function or library. Between two iterations of an
//! endpoint the kernel runs, and the peer: on one CPU what an iteration runs must come from the second-level cache again. Eight
//! more lines of code on either side made a pipe's round trip 0.9% longer, a function and its return 8%, and eight more pages
//! of data less than 0.5%. So everything here is inlined into the loops.

use super::loop_error::LoopError;
use super::messages::{Messages, Outgoing, Room};
use super::meters::{Meter, StepMeter};
use super::payload::{Check, MessageNumber, make, make_all, number_from, verify, verify_all};
use mechanisms::{Arrived, Endpoint, InPlace};
use rustix::fd::BorrowedFd;
use std::ops::Range;
use sys::Errno;

/// An endpoint of a mechanism, and the memory from which it sends and into which it receives.
///
/// It lives in one place of the heap with its small messages, and on a boundary of its own size, so that an iteration touches
/// one page of data beside its stack.
#[repr(align(512))]
pub(crate) struct BufferedEndpoint<E> {
    pub(crate) inner: E,
    messages: Messages,
    number: MessageNumber,
    check: Check,
    in_place: InPlace,
    /// How many messages of the last stream never came; only of endpoints that lose some.
    pub(crate) lost: u64,
    /// The message beyond the last stream that ended it; only of endpoints that lose some.
    pub(super) early: Option<u64>,
}

impl<E: Endpoint> BufferedEndpoint<E> {
    /// `inner` with room for messages of `sends_bytes` to send and of `receives_bytes` to receive.
    pub(crate) fn new(inner: E, sends_bytes: usize, receives_bytes: usize) -> Box<Self> {
        let in_place = if E::IN_PLACE { inner.in_place() } else { InPlace::default() };
        Box::new(Self {
            inner,
            messages: Messages::new(sends_bytes, receives_bytes),
            number: MessageNumber::for_size(0, Check::Nothing),
            check: Check::Nothing,
            in_place,
            lost: 0,
            early: None,
        })
    }

    /// Makes its memory cold.
    pub(crate) fn cool(&mut self) -> Result<(), LoopError> {
        self.messages.cool().map_err(|errno| LoopError::Call { name: "madvise", errno })
    }

    /// Where its messages lie.
    pub(crate) fn addresses(&self) -> Range<u64> {
        self.messages.addresses()
    }

    pub(crate) fn check(&mut self, check: Check) {
        self.check = check;
        self.number = MessageNumber::for_size(self.messages.incoming_bytes(), check);
    }
}

impl<E: Endpoint> BufferedEndpoint<E> {
    /// What iterations need of it.
    #[inline(always)]
    pub(super) fn iterating(&mut self) -> Iterating<'_, E> {
        let (outgoing, room) = self.messages.both();
        let Self { inner, number, check, in_place, .. } = self;
        Iterating { inner, outgoing, room, number: *number, check: *check, in_place: *in_place }
    }
}

/// An endpoint while it iterates. Where its messages lie, and what is checked, is looked up once for all iterations: what an
/// iteration runs is then half as long, and each line of code costs the round trip through a pipe some nanoseconds.
pub(super) struct Iterating<'a, E> {
    inner: &'a mut E,
    outgoing: Outgoing<'a>,
    room: Room<'a>,
    number: MessageNumber,
    check: Check,
    in_place: InPlace,
}

impl<E: Endpoint> Iterating<'_, E> {
    /// Makes the message of `iteration` and sends it.
    #[inline(always)]
    pub(super) fn send(&mut self, iteration: u64, meter: &mut impl Meter) -> Result<(), LoopError> {
        if E::IN_PLACE && self.in_place.outgoing {
            return self.send_in_place(iteration, meter);
        }
        self.make_message(iteration);
        // An empty message is sent, too: once, and then there is nothing left of it.
        let mut sent = 0;
        loop {
            let began = meter.start();
            let bytes = self.inner.send(self.outgoing.after(sent));
            let bytes = bytes.map_err(|errno| LoopError::Call { name: "send", errno })?;
            meter.end(began, bytes);
            sent += bytes;
            if sent >= self.outgoing.size_bytes {
                return Ok(());
            }
        }
    }

    /// Makes the message of `iteration` where it is sent from.
    #[inline(always)]
    fn make_message(&mut self, iteration: u64) {
        if self.check == Check::Everything {
            make_all(self.outgoing.after(0), 0, iteration);
        }
        self.outgoing.set_number(iteration);
    }

    #[inline(always)]
    fn send_in_place(&mut self, iteration: u64, meter: &mut impl Meter) -> Result<(), LoopError> {
        let size_bytes = self.outgoing.size_bytes;
        let mut sent = 0;
        while sent < size_bytes {
            let began = meter.start();
            let part = self.inner.reserve(size_bytes - sent);
            let part = part.map_err(|errno| LoopError::Call { name: "reserve", errno })?;
            let bytes = part.len();
            make(part, sent, iteration, self.check, self.in_place.touched);
            self.inner.commit(bytes).map_err(|errno| LoopError::Call { name: "commit", errno })?;
            meter.end(began, bytes);
            sent += bytes;
        }
        Ok(())
    }

    /// Receives the message of `iteration` and verifies that it is that.
    #[inline(always)]
    pub(super) fn receive(&mut self, iteration: u64, meter: &mut impl Meter) -> Result<(), LoopError> {
        if E::IN_PLACE && self.in_place.incoming {
            return self.receive_in_place(iteration, meter);
        }
        let mut received = 0;
        loop {
            let began = meter.start();
            let bytes = self.inner.receive(self.room.after(received));
            let bytes = bytes.map_err(|errno| LoopError::Call { name: "receive", errno })?;
            meter.end(began, bytes);
            received += bytes;
            if received >= self.room.size_bytes {
                return self.verify_received(received, iteration);
            }
        }
    }

    /// Receives the next message of a stream of which some may be lost, numbered `least` or more. Returns its number, or `None`
    /// where no more will come.
    #[inline(always)]
    pub(super) fn receive_any(
        &mut self,
        least: u64,
        meter: &mut impl Meter,
    ) -> Result<Option<u64>, LoopError> {
        let began = meter.start();
        let bytes = match self.inner.receive(self.room.after(0)) {
            Err(Errno::NODATA) => return Ok(None),
            answer => answer.map_err(|errno| LoopError::Call { name: "receive", errno })?,
        };
        meter.end(began, bytes);
        // Empty messages have no numbers: what was lost of them is taken for the last ones.
        let iteration = number_from(self.room.message(), least);
        self.verify_received(bytes, iteration)?;
        Ok(Some(iteration))
    }

    /// Verifies that the `received` bytes are the message of `iteration`.
    #[inline(always)]
    fn verify_received(&self, received: usize, iteration: u64) -> Result<(), LoopError> {
        let size_bytes = self.room.size_bytes;
        if received > size_bytes {
            return Err(LoopError::Payload { iteration, at: size_bytes });
        }
        if !self.number.is_that_of(iteration, self.room.number()) {
            return Err(LoopError::Payload { iteration, at: 0 });
        }
        if self.check == Check::Everything {
            return verify_all(self.room.message(), 0, iteration);
        }
        Ok(())
    }

    #[inline(always)]
    fn receive_in_place(&mut self, iteration: u64, meter: &mut impl Meter) -> Result<(), LoopError> {
        let size_bytes = self.room.size_bytes;
        let mut received = 0;
        while received < size_bytes {
            let began = meter.start();
            let part = self.inner.peek(size_bytes - received);
            let part = part.map_err(|errno| LoopError::Call { name: "peek", errno })?;
            let bytes = part.len();
            verify(part, received, iteration, self.check, self.in_place.touched)?;
            self.inner.release(bytes).map_err(|errno| LoopError::Call { name: "release", errno })?;
            meter.end(began, bytes);
            received += bytes;
        }
        Ok(())
    }

    /// Makes message `number` and sends it with `fds`.
    #[inline(always)]
    pub(super) fn send_with(
        &mut self,
        number: u64,
        mut fds: &[BorrowedFd<'_>],
        steps: &mut impl StepMeter,
    ) -> Result<(), LoopError> {
        self.make_message(number);
        let mut sent = 0;
        steps.begin();
        loop {
            let bytes = self.inner.send_with(self.outgoing.after(sent), fds, steps);
            sent += bytes.map_err(|errno| LoopError::Call { name: "send", errno })?;
            if sent >= self.outgoing.size_bytes {
                return Ok(());
            }
            // In a stream the descriptors go with the first bytes.
            fds = &[];
        }
    }

    /// Receives message `number` with `fds` descriptors, and verifies that it is that.
    #[inline(always)]
    pub(super) fn receive_with(
        &mut self,
        number: u64,
        fds: usize,
        steps: &mut impl StepMeter,
    ) -> Result<(), LoopError> {
        let (mut received, mut came) = (0, 0);
        steps.begin();
        loop {
            let arrived = self.inner.receive_with(self.room.after(received), steps);
            let Arrived { bytes, fds } =
                arrived.map_err(|errno| LoopError::Call { name: "receive", errno })?;
            received += bytes;
            came += fds;
            if received >= self.room.size_bytes {
                break;
            }
        }
        if came != fds {
            return Err(LoopError::Descriptors { iteration: number, came });
        }
        self.verify_received(received, number)
    }
}
