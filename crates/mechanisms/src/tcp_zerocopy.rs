//! One TCP connection over loopback with `MSG_ZEROCOPY`: the kernel refers to the sender's pages, and says when it
//! is done with them.
//!
//! A buffer is lent again only after the completion of its send came through the socket's error queue, which is
//! looked at when that buffer's iteration has come. A completion also says whether the kernel copied after all. Over
//! loopback it always does, when it hands the bytes to the receiver; `settings` counts it, and likewise the ordinary
//! sends by which a message is finished where the kernel takes no more without a copy.

use crate::connection::NODELAY;
use crate::contract::{ACCESS, Shape};
use crate::descriptor::{DescriptorEnd, Fds, OverDescriptors};
use crate::inet_stream::InetStream;
use crate::socket::{RCVBUF, SNDBUF};
use crate::tcp::Tcp;
use crate::zero_copy::{Outgoing, PART_BYTES, ZeroCopyEnd, in_parts, pool_setting};
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
pub struct TcpZerocopy;

impl InetStream for TcpZerocopy {
    const CARD: Card = Card {
        name: "tcp-zerocopy",
        summary: "TCP over loopback with MSG_ZEROCOPY, which loopback turns into a copy",
        params: &[NODELAY, SNDBUF, RCVBUF, ACCESS],
        limits: "any message size, in parts of 64K; 64 sends under way, or as net.core.optmem_max and 'ulimit -l' allow; beyond, copies",
        man: &["https://docs.kernel.org/networking/msg_zerocopy.html", "send(2)", "tcp(7)"],
        polled: false,
        ..Tcp::CARD
    };
    const PROTOCOL: Option<Protocol> = None;
    type End = ZeroCopyEnd<Completed>;
}

impl OverDescriptors for ZeroCopyEnd<Completed> {
    fn over(
        fds: Fds,
        params: &Params,
        _: Shape,
        card: &Card,
        settings: Vec<Setting>,
    ) -> Result<Self, Failure> {
        allow_zerocopy(&fds.output).or_fail("setsockopt(SO_ZEROCOPY)", card.name)?;
        let end = DescriptorEnd::new(fds, params, card, settings)?;
        Ok(Self::new(end, Completed::new()?, params, card))
    }
}

/// As many as there are bits in the set of those that are under way. Each send has its own.
const BUFFERS: u64 = u64::BITS as u64;

/// Buffers that are lent again, in turn, when the kernel says so.
#[derive(Debug)]
pub struct Completed {
    pool: PagePool,
    /// Sends so far. The kernel numbers them likewise, modulo 2^32; the buffer of each is its number modulo `BUFFERS`.
    sends: u64,
    /// The set of buffers that the kernel may still read.
    under_way: u64,
    /// Sends that the kernel copied after all.
    copied: u64,
    /// Ordinary sends, which copied what the kernel did not take without.
    ordinary: u64,
}

impl Completed {
    fn new() -> Result<Self, Failure> {
        let pool = PagePool::create("ipcmark-tcp-zerocopy", BUFFERS as usize * PART_BYTES)?;
        Ok(Self { pool, sends: 0, under_way: 0, copied: 0, ordinary: 0 })
    }

    /// The place of the next send.
    #[inline(always)]
    fn next(&self, bytes: usize) -> Range<usize> {
        let start = (self.sends % BUFFERS) as usize * PART_BYTES;
        start..start + bytes.min(PART_BYTES)
    }

    /// Takes note of a completion of `socket`, or sleeps until there may be one.
    fn complete(&mut self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        match retry_on_intr(|| next_completion(socket))? {
            Some(completion) => self.note(completion),
            None => {
                // Errors are waited for even where no event is asked for: a completion, or the connection's end.
                retry_on_intr(|| poll(&mut [PollFd::new(&socket, PollFlags::empty())], None))?;
                sockopt::socket_error(socket)??;
            }
        }
        Ok(())
    }

    fn note(&mut self, SendCompletion { first, last, copied }: SendCompletion) {
        let count = u64::from(last.wrapping_sub(first)) + 1;
        for number in (u64::from(first)..).take(count as usize) {
            self.under_way &= !bit(number);
        }
        self.copied += if copied { count } else { 0 };
    }
}

/// The bit of the buffer of the send with `number`.
#[inline(always)]
fn bit(number: u64) -> u64 {
    1 << (number % BUFFERS)
}

impl Outgoing for Completed {
    /// A completion that nobody has taken makes the socket ready too (`POLLERR`).
    const POLLED: bool = false;

    #[inline(always)]
    fn reserve(&mut self, most_bytes: usize, output: BorrowedFd<'_>) -> Result<&mut [u8], Errno> {
        while self.under_way & bit(self.sends) != 0 {
            self.complete(output)?;
        }
        Ok(self.pool.reserve(self.next(most_bytes)))
    }

    #[inline(always)]
    fn commit(&mut self, bytes: usize, output: BorrowedFd<'_>) -> Result<(), Errno> {
        let place = self.next(bytes);
        let taken = loop {
            match self.pool.send(place.clone(), output, ZEROCOPY) {
                Err(Errno::INTR) => {}
                // Completions that are not taken, or pages that are not released, use up what the kernel allows.
                Err(Errno::NOBUFS) if self.under_way != 0 => self.complete(output)?,
                // The kernel allows too little even for one; or another of this user's sockets has it.
                Err(Errno::NOBUFS) => break 0,
                answer => break answer?,
            }
        };
        if taken > 0 {
            self.under_way |= bit(self.sends);
            self.sends += 1;
        }
        if taken < bytes {
            self.ordinary += 1;
        }
        // A second send would have a number, and so a buffer, of its own.
        in_parts(place.start + taken..place.end, |left| self.pool.send(left, output, SendFlags::empty()))
    }

    fn settings(&self) -> Vec<Setting> {
        let mut settings = vec![pool_setting(BUFFERS as usize * PART_BYTES)];
        if self.sends + self.ordinary > 0 {
            let under_way = u64::from(self.under_way.count_ones());
            let without = self.sends - under_way - self.copied;
            settings.push(Setting {
                name: "MSG_ZEROCOPY sends".to_owned(),
                asked: Some(self.sends.to_string()),
                got: format!(
                    "{without} without a copy, {} copied after all, {under_way} not told yet, and {} ordinary sends",
                    self.copied, self.ordinary
                ),
                clamped: self.copied + self.ordinary > 0,
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
        let mut outgoing = Completed::new().unwrap();
        outgoing.under_way = bit(u64::from(u32::MAX)) | bit(0) | bit(1);
        outgoing.note(SendCompletion { first: u32::MAX, last: 0, copied: true });
        assert_eq!((outgoing.under_way, outgoing.copied), (bit(1), 2));
        outgoing.note(SendCompletion { first: 1, last: 1, copied: false });
        assert_eq!((outgoing.under_way, outgoing.copied), (0, 2));
    }
}
