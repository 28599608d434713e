//! An endpoint with its message buffers: sends one message, receives one message, verifies it.
//!
//! An iteration's code is one piece, without a call into another function or library: on a virtual machine such calls made a
//! pipe's round trip an eighth slower than a loop written by hand, as if each switch of processes emptied the translation
//! cache and every page that an iteration touches were looked up anew. So everything here is inlined into the loops.

use super::loop_error::LoopError;
use super::meters::{Meter, StepMeter};
use super::payload::{Check, make, verify};
use mechanisms::{Arrived, Endpoint, InPlace};
use rustix::fd::BorrowedFd;
use std::ops::Range;

/// An endpoint of a mechanism, and the memory from which it sends and into which it receives.
///
/// It lives in one place of the heap, so that an iteration touches few pages.
pub(crate) struct BufferedEndpoint<E> {
    pub(crate) inner: E,
    pub(super) memory: Vec<u8>,
    outgoing: Range<usize>,
    pub(super) incoming: Range<usize>,
    /// Where the room for an incoming message ends: with the message, unless that is empty. Then there is room for one byte:
    /// a call that is given none may return at once, and a message that is not empty would not be noticed.
    pub(super) room_end: usize,
    check: Check,
    in_place: InPlace,
    /// How many messages of the last stream never came; only of endpoints that lose some.
    pub(crate) lost: u64,
    /// The message beyond the last stream that ended it; only of endpoints that lose some.
    pub(super) early: Option<u64>,
}

impl<E: Endpoint> BufferedEndpoint<E> {
    /// `inner` with room for messages of `sends_bytes` to send and of `receives_bytes` to receive.
    ///
    /// Messages begin on a cache line, and where they are as large as a page on a page: their alignment changes the speed of
    /// a copy by some percent, and would else be left to the allocator.
    pub(crate) fn new(inner: E, sends_bytes: usize, receives_bytes: usize) -> Box<Self> {
        const LINE_BYTES: usize = 64;
        const PAGE_BYTES: usize = 4096;
        let align = if sends_bytes.max(receives_bytes) < PAGE_BYTES { LINE_BYTES } else { PAGE_BYTES };
        let incoming_offset = sends_bytes.next_multiple_of(align);
        // Written, not just reserved, so that no page is first touched inside an iteration.
        let memory = vec![0xa5; align + incoming_offset + receives_bytes.max(1)];
        let start = memory.as_ptr().align_offset(align);
        let in_place = if E::IN_PLACE { inner.in_place() } else { InPlace::default() };
        let incoming_start = start + incoming_offset;
        Box::new(Self {
            inner,
            memory,
            outgoing: start..start + sends_bytes,
            incoming: incoming_start..incoming_start + receives_bytes,
            room_end: incoming_start + receives_bytes.max(1),
            check: Check::Nothing,
            in_place,
            lost: 0,
            early: None,
        })
    }

    /// Where its messages lie.
    pub(crate) fn addresses(&self) -> Range<u64> {
        let start = self.memory.as_ptr().addr() as u64;
        start..start + self.memory.len() as u64
    }

    pub(crate) fn check(&mut self, check: Check) {
        self.check = check;
    }
}

impl<E: Endpoint> BufferedEndpoint<E> {
    /// Makes the message of `iteration` and sends it.
    #[inline(always)]
    pub(super) fn send(&mut self, iteration: u64, meter: &mut impl Meter) -> Result<(), LoopError> {
        let Range { mut start, end } = self.outgoing;
        if E::IN_PLACE && self.in_place.outgoing {
            let size_bytes = end - start;
            return self.send_in_place(size_bytes, iteration, meter);
        }
        make(&mut self.memory[start..end], 0, iteration, self.check, false);
        // An empty message is sent, too: once, and then there is nothing left of it.
        loop {
            let began = meter.start();
            let bytes = self.inner.send(&self.memory[start..end]);
            let bytes = bytes.map_err(|errno| LoopError::Call { name: "send", errno })?;
            meter.end(began, bytes);
            start += bytes;
            if start >= end {
                return Ok(());
            }
        }
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
        let Range { mut start, end } = self.incoming;
        if E::IN_PLACE && self.in_place.incoming {
            let size_bytes = end - start;
            return self.receive_in_place(size_bytes, iteration, meter);
        }
        loop {
            let began = meter.start();
            let bytes = self.inner.receive(&mut self.memory[start..self.room_end]);
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
        let Range { start, end } = self.incoming;
        if received_end > end {
            return Err(LoopError::Payload { iteration, at: end - start });
        }
        verify(&self.memory[start..end], 0, iteration, self.check, false)
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
        let Range { mut start, end } = self.outgoing;
        make(&mut self.memory[start..end], 0, number, self.check, false);
        steps.begin();
        loop {
            let bytes = self.inner.send_with(&self.memory[start..end], fds, steps);
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
        let Range { mut start, end } = self.incoming;
        let mut came = 0;
        steps.begin();
        loop {
            let arrived = self.inner.receive_with(&mut self.memory[start..self.room_end], steps);
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
