//! One TCP connection over loopback with `MSG_ZEROCOPY`: the kernel refers to the sender's pages, and reports when it
//! no longer does.
//!
//! A buffer is reserved again only after the completion of its send was read from the socket's error queue. The queue
//! is read when the buffer is needed next. A completion also says whether the kernel copied after all. Over loopback
//! it always does so when it delivers the bytes; `settings` counts that. It also counts the ordinary sends that
//! finish a message when the kernel takes no more without a copy.

use crate::contract::{ACCESS, Shape};
use crate::mechanisms::tcp::Tcp;
use crate::support::connection::NODELAY;
use crate::support::descriptor::{DescriptorEndpoint, Fds, OverDescriptors};
use crate::support::inet_stream::InetStream;
use crate::support::socket::{RCVBUF, SNDBUF};
use crate::support::zero_copy::{OutgoingPool, PART_BYTES, ZeroCopyEndpoint, pool_setting, transfer_all};
use model::Params;
use model::card::Card;
use model::record::Setting;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::BorrowedFd;
use rustix::io::retry_on_intr;
use rustix::net::{Protocol, SendFlags, sockopt};
use std::ops::Range;
use sys::page_pool::PagePool;
use sys::send_completion::{SendCompletion, ZEROCOPY, allow_zerocopy, next_completion};
use sys::{Errno, Failure, OrFail};

/// send(2) with `MSG_ZEROCOPY`.
#[derive(Debug)]
pub(crate) struct TcpZerocopy;

impl InetStream for TcpZerocopy {
    const CARD: Card = Card {
        name: "tcp-zerocopy",
        summary: "TCP over loopback with MSG_ZEROCOPY, which loopback turns into a copy",
        params: &[NODELAY, SNDBUF, RCVBUF, ACCESS],
        limits: "any message size, in parts of 64K; 64 sends in flight, or as net.core.optmem_max and 'ulimit -l' allow; beyond, copies",
        man: &["https://docs.kernel.org/networking/msg_zerocopy.html", "send(2)", "tcp(7)"],
        polled: false,
        ..Tcp::CARD
    };
    const PROTOCOL: Option<Protocol> = None;
    type End = ZeroCopyEndpoint<CompletionPool>;
}

impl OverDescriptors for ZeroCopyEndpoint<CompletionPool> {
    fn over(
        fds: Fds,
        params: &Params,
        _: Shape,
        card: &Card,
        settings: Vec<Setting>,
    ) -> Result<Self, Failure> {
        allow_zerocopy(&fds.output).or_fail("setsockopt(SO_ZEROCOPY)", card.name)?;
        let endpoint = DescriptorEndpoint::new(fds, params, card, settings)?;
        Ok(Self::new(endpoint, CompletionPool::new()?, params, card))
    }
}

/// The number of buffers: one for each bit of the set of buffers in use. Each send has a buffer of its own.
const BUFFERS: u64 = u64::BITS as u64;

/// Buffers that are reserved again, one after the other, when the kernel has completed them.
#[derive(Debug)]
pub(crate) struct CompletionPool {
    pool: PagePool,
    /// The number of sends so far. The kernel numbers them the same way, modulo 2^32. The buffer of a send is its
    /// number modulo `BUFFERS`.
    sends: u64,
    /// The set of buffers that the kernel may still read.
    in_flight: u64,
    /// The number of sends that the kernel copied after all.
    copied: u64,
    /// The number of ordinary sends, which copied what the kernel did not take otherwise.
    ordinary: u64,
}

impl CompletionPool {
    fn new() -> Result<Self, Failure> {
        let pool = PagePool::create("ipcmark-tcp-zerocopy", BUFFERS as usize * PART_BYTES)?;
        Ok(Self { pool, sends: 0, in_flight: 0, copied: 0, ordinary: 0 })
    }

    /// The range of the next send.
    #[inline(always)]
    fn next(&self, bytes: usize) -> Range<usize> {
        let start = (self.sends % BUFFERS) as usize * PART_BYTES;
        start..start + bytes.min(PART_BYTES)
    }

    /// Reads one completion of `socket`, or sleeps until there may be one.
    fn complete(&mut self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        match retry_on_intr(|| next_completion(socket))? {
            Some(completion) => self.note(completion),
            None => {
                // poll(2) reports errors even if no event is asked for: a completion, or the end of the connection.
                retry_on_intr(|| poll(&mut [PollFd::new(&socket, PollFlags::empty())], None))?;
                sockopt::socket_error(socket)??;
            }
        }
        Ok(())
    }

    fn note(&mut self, SendCompletion { first, last, copied }: SendCompletion) {
        let count = u64::from(last.wrapping_sub(first)) + 1;
        for number in (u64::from(first)..).take(count as usize) {
            self.in_flight &= !bit(number);
        }
        self.copied += if copied { count } else { 0 };
    }
}

/// The bit of the buffer of the send `number`.
#[inline(always)]
fn bit(number: u64) -> u64 {
    1 << (number % BUFFERS)
}

impl OutgoingPool for CompletionPool {
    /// A completion that was not read makes the socket ready, too (`POLLERR`).
    const POLLED: bool = false;

    #[inline(always)]
    fn reserve(&mut self, most_bytes: usize, output: BorrowedFd<'_>) -> Result<&mut [u8], Errno> {
        while self.in_flight & bit(self.sends) != 0 {
            self.complete(output)?;
        }
        Ok(self.pool.reserve(self.next(most_bytes)))
    }

    #[inline(always)]
    fn commit(&mut self, bytes: usize, output: BorrowedFd<'_>) -> Result<(), Errno> {
        let range = self.next(bytes);
        let taken = loop {
            match self.pool.send(range.clone(), output, ZEROCOPY) {
                Err(Errno::INTR) => {}
                // Completions that were not read, or pages that are still in use, exhaust what the kernel allows.
                Err(Errno::NOBUFS) if self.in_flight != 0 => self.complete(output)?,
                // The kernel does not allow even one, or other sockets of this user take it all.
                Err(Errno::NOBUFS) => break 0,
                answer => break answer?,
            }
        };
        if taken > 0 {
            self.in_flight |= bit(self.sends);
            self.sends += 1;
        }
        if taken < bytes {
            self.ordinary += 1;
        }
        // Not with ZEROCOPY: a second send would have a number, and so a buffer, of its own.
        transfer_all(range.start + taken..range.end, |left| self.pool.send(left, output, SendFlags::empty()))
    }

    fn settings(&self) -> Vec<Setting> {
        let mut settings = vec![pool_setting(BUFFERS as usize * PART_BYTES)];
        if self.sends + self.ordinary > 0 {
            let in_flight = u64::from(self.in_flight.count_ones());
            let without = self.sends - in_flight - self.copied;
            settings.push(Setting {
                name: "MSG_ZEROCOPY sends".to_owned(),
                asked: Some(self.sends.to_string()),
                got: format!(
                    "{without} without a copy, {} copied after all, {in_flight} not reported yet, and {} ordinary sends",
                    self.copied, self.ordinary
                ),
                clamped: self.copied + self.ordinary > 0, usual: None,
            });
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_release_buffers_across_the_wrap_of_the_numbers() {
        let mut outgoing = CompletionPool::new().unwrap();
        outgoing.in_flight = bit(u64::from(u32::MAX)) | bit(0) | bit(1);
        outgoing.note(SendCompletion { first: u32::MAX, last: 0, copied: true });
        assert_eq!((outgoing.in_flight, outgoing.copied), (bit(1), 2));
        outgoing.note(SendCompletion { first: 1, last: 1, copied: false });
        assert_eq!((outgoing.in_flight, outgoing.copied), (0, 2));
    }
}
