//! An endpoint with its message buffers: sends one message, receives one message, verifies it.
//!
//! An iteration's code is one piece, without a call into another function or library: on a virtual machine such calls made a
//! pipe's round trip an eighth slower than a loop written by hand, as if each switch of processes emptied the translation
//! cache and every page that an iteration touches were looked up anew. So everything here is inlined into the loops.

use super::loop_error::LoopError;
use super::messages::Messages;
use super::meters::{Meter, StepMeter};
use super::payload::{Check, MessageNumber, make, make_all, verify, verify_all};
use mechanisms::{Arrived, Endpoint, InPlace};
use rustix::fd::BorrowedFd;
use std::ops::Range;

/// An endpoint of a mechanism, and the memory from which it sends and into which it receives.
///
/// It lives in one place of the heap with its small messages, and on a boundary of its own size, so that an iteration touches
/// one page of data beside its stack.
#[repr(align(512))]
pub(crate) struct BufferedEndpoint<E> {
    pub(crate) inner: E,
    pub(super) messages: Messages,
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
            number: MessageNumber::of(0, Check::Nothing),
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
        self.number = MessageNumber::of(self.messages.incoming.len(), check);
    }
}

impl<E: Endpoint> BufferedEndpoint<E> {
    /// Makes the message of `iteration` and sends it.
    #[inline(always)]
    pub(super) fn send(&mut self, iteration: u64, meter: &mut impl Meter) -> Result<(), LoopError> {
        let Range { mut start, end } = self.messages.outgoing;
        if E::IN_PLACE && self.in_place.outgoing {
            let size_bytes = end - start;
            return self.send_in_place(size_bytes, iteration, meter);
        }
        self.make_message(iteration);
        // An empty message is sent, too: once, and then there is nothing left of it.
        loop {
            let began = meter.start();
            let bytes = self.inner.send(&self.messages.bytes()[start..end]);
            let bytes = bytes.map_err(|errno| LoopError::Call { name: "send", errno })?;
            meter.end(began, bytes);
            start += bytes;
            if start >= end {
                return Ok(());
            }
        }
    }

    /// Makes the message of `iteration` where it is sent from.
    #[inline(always)]
    fn make_message(&mut self, iteration: u64) {
        if self.check == Check::Everything {
            let outgoing = self.messages.outgoing.clone();
            make_all(&mut self.messages.bytes_mut()[outgoing], 0, iteration);
        }
        self.messages.set_number(iteration);
    }

    #[inline(always)]
    fn send_in_place(
        &mut self,
        size_bytes: usize,
        iteration: u64,
        meter: &mut impl Meter,
    ) -> Result<(), LoopError> {
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
        let Range { mut start, end } = self.messages.incoming;
        if E::IN_PLACE && self.in_place.incoming {
            let size_bytes = end - start;
            return self.receive_in_place(size_bytes, iteration, meter);
        }
        let room_end = self.messages.room_end;
        loop {
            let began = meter.start();
            let bytes = self.inner.receive(&mut self.messages.bytes_mut()[start..room_end]);
            let bytes = bytes.map_err(|errno| LoopError::Call { name: "receive", errno })?;
            meter.end(began, bytes);
            start += bytes;
            if start >= end {
                break;
            }
        }
        self.verify_received(start, iteration)
    }

    /// Verifies that what was received, up to `received_end`, is the message of `iteration`.
    #[inline(always)]
    pub(super) fn verify_received(&self, received_end: usize, iteration: u64) -> Result<(), LoopError> {
        let Range { start, end } = self.messages.incoming;
        if received_end > end {
            return Err(LoopError::Payload { iteration, at: end - start });
        }
        if !self.number.is_that_of(iteration, self.messages.number()) {
            return Err(LoopError::Payload { iteration, at: 0 });
        }
        if self.check == Check::Everything {
            return verify_all(&self.messages.bytes()[start..end], 0, iteration);
        }
        Ok(())
    }

    #[inline(always)]
    fn receive_in_place(
        &mut self,
        size_bytes: usize,
        iteration: u64,
        meter: &mut impl Meter,
    ) -> Result<(), LoopError> {
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
}

impl<E: Endpoint> BufferedEndpoint<E> {
    #[inline(always)]
    pub(super) fn send_with(
        &mut self,
        number: u64,
        mut fds: &[BorrowedFd<'_>],
        steps: &mut impl StepMeter,
    ) -> Result<(), LoopError> {
        let Range { mut start, end } = self.messages.outgoing;
        self.make_message(number);
        steps.begin();
        loop {
            let bytes = self.inner.send_with(&self.messages.bytes()[start..end], fds, steps);
            start += bytes.map_err(|errno| LoopError::Call { name: "send", errno })?;
            if start >= end {
                return Ok(());
            }
            // In a stream the descriptors go with the first bytes.
            fds = &[];
        }
    }

    #[inline(always)]
    pub(super) fn receive_with(
        &mut self,
        number: u64,
        fds: usize,
        steps: &mut impl StepMeter,
    ) -> Result<(), LoopError> {
        let Range { mut start, end } = self.messages.incoming;
        let (mut came, room_end) = (0, self.messages.room_end);
        steps.begin();
        loop {
            let arrived = self.inner.receive_with(&mut self.messages.bytes_mut()[start..room_end], steps);
            let Arrived { bytes, fds } =
                arrived.map_err(|errno| LoopError::Call { name: "receive", errno })?;
            start += bytes;
            came += fds;
            if start >= end {
                break;
            }
        }
        if came != fds {
            return Err(LoopError::Descriptors { iteration: number, came });
        }
        self.verify_received(start, number)
    }
}
