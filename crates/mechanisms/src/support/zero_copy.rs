//! What rows share that have the kernel refer to a sender's pages instead of copying them. Not a mechanism itself.
//!
//! Such a page may not be written again before the kernel is done with it, and most calls never say when that is.
//! The rule that is kept here: bytes are lent again only after twice as many as the output buffer holds were handed
//! over behind them. All that is in flight has then been replaced. Why it suffices:
//!
//! - **A pipe** holds a page in each of its slots: no more than its capacity is in flight, so that once would do.
//! - **A TCP connection over loopback** hands the sender's very pages to the receiver, where they stay until they
//!   are read. So there are in flight the send buffer, which a segment of half a window may exceed, and the receive
//!   buffer. Twice the send buffer covers all that only where the receive buffer is smaller: it is set to half of the
//!   send buffer. With two that are equal, 2.1 send buffers were seen in flight (Linux 6.18), with this one 1.5.
//!   Both are charged at least the bytes that they hold, and a size that was set no longer tunes itself.

use crate::contract::{Endpoint, InPlace, Mechanism, Shape, Ticket, TrialContext};
use crate::support::descriptor::{DescriptorEndpoint, Fds, OverDescriptors};
use crate::support::inet_stream::InetStream;
use crate::support::pipes::pipe_pair;
use crate::support::probe::try_message;
use crate::support::socket::{Buffers, SNDBUF};
use model::card::{Card, Support};
use model::record::Setting;
use model::{Param, Params, Size};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{Protocol, sockopt};
use rustix::pipe::{SpliceFlags, fcntl_getpipe_size, splice};
use std::marker::PhantomData;
use std::ops::Range;
use sys::page_pool::PagePool;
use sys::{Errno, Failure, OrFail};

/// The most that is lent at once: what a pipe holds by default. A larger message goes in parts.
pub(crate) const PART_BYTES: usize = 64 << 10;

/// No pool is larger.
const MOST_POOL_BYTES: usize = 64 << 20;

/// The unit in which a pipe refers to memory.
pub(crate) const PAGE_BYTES: usize = 4096;

/// How many times the output buffer must be handed over before memory is lent again.
const LAPS: usize = 2;

/// The send buffer of connections that keep the rule: the pool is sized by it, so that it must not tune itself.
pub(crate) const FIXED_SNDBUF: Param = Param {
    summary: "send buffer to ask for (SO_SNDBUF), or match for the message's size; the receive buffer is set to half of it, the pool to twice",
    default: Some("128K"),
    ..SNDBUF
};

/// What limits the rows that keep the rule over a connection.
pub(crate) const CONNECTION_LIMITS: &str = "any message size, in parts of 64K; SO_SNDBUF up to net.core.wmem_max, half of it up to net.core.rmem_max; a pool of at most 64M";

/// Memory that an end lends, and how it is handed over.
pub(crate) trait OutgoingPool {
    /// Whether its output, if that is also the input, is ready for reading only where there is something to read.
    const POLLED: bool = true;

    /// 1 to `most_bytes` bytes that the kernel, as far as they went to `output` before, is done with.
    fn reserve(&mut self, most_bytes: usize, output: BorrowedFd<'_>) -> Result<&mut [u8], Errno>;

    /// Hands over the first `bytes` of what was lent, all of them, to `output`.
    fn commit(&mut self, bytes: usize, output: BorrowedFd<'_>) -> Result<(), Errno>;

    /// What was asked of the kernel and what it gave.
    fn settings(&self) -> Vec<Setting>;
}

/// An end whose outgoing messages lie in memory that the kernel refers to, and that receives by read(2).
#[derive(Debug)]
pub(crate) struct ZeroCopyEndpoint<O> {
    end: DescriptorEndpoint,
    outgoing: O,
    in_place: InPlace,
}

impl<O> ZeroCopyEndpoint<O> {
    pub(crate) fn new(end: DescriptorEndpoint, outgoing: O, params: &Params, card: &Card) -> Self {
        Self { end, outgoing, in_place: InPlace::from_params(params, card).outgoing() }
    }
}

impl<O: OutgoingPool> Endpoint for ZeroCopyEndpoint<O> {
    const IN_PLACE: bool = true;

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let part = self.outgoing.reserve(bytes.len(), self.end.output())?;
        let count = part.len();
        part.copy_from_slice(&bytes[..count]);
        self.commit(count)?;
        Ok(count)
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        self.end.receive(into)
    }

    fn settings(&self) -> Vec<Setting> {
        self.end.settings().into_iter().chain(self.outgoing.settings()).collect()
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        self.end.input().filter(|_| O::POLLED)
    }

    fn in_place(&self) -> InPlace {
        self.in_place
    }

    #[inline(always)]
    fn reserve(&mut self, most_bytes: usize) -> Result<&mut [u8], Errno> {
        self.outgoing.reserve(most_bytes, self.end.output())
    }

    #[inline(always)]
    fn commit(&mut self, bytes: usize) -> Result<(), Errno> {
        self.outgoing.commit(bytes, self.end.output())
    }
}

/// A way to hand the kernel bytes of a pool that never says when it is done with them.
pub(crate) trait PageTransfer: std::fmt::Debug + Sized {
    /// What the row declares about itself.
    const CARD: Card;
    /// On a multiple of what each message begins: 1 packs them.
    const ALIGN_BYTES: usize = 1;

    /// Makes what it needs besides the pool and the output.
    fn open(params: &Params) -> Result<Self, Failure>;

    /// How much to lend where `most_bytes` could be.
    #[inline(always)]
    fn part_bytes(&self, most_bytes: usize) -> usize {
        most_bytes
    }

    /// Hands over a first part of the bytes in `range` of `pool` to `output`, at least 1, and says how many they are.
    fn commit(
        &mut self,
        pool: &mut PagePool,
        range: Range<usize>,
        output: BorrowedFd<'_>,
    ) -> Result<usize, Errno>;
}

/// A pool that is lent again by the rule.
#[derive(Debug)]
pub(crate) struct ReusedPool<W> {
    pool: PagePool,
    places: PoolCursor,
    way: W,
}

impl<W: PageTransfer> ReusedPool<W> {
    /// A pool for an output that holds `buffer_bytes`.
    fn new(buffer_bytes: usize, params: &Params) -> Result<Self, Failure> {
        let places = PoolCursor::after(LAPS * buffer_bytes, W::ALIGN_BYTES);
        if places.end > MOST_POOL_BYTES {
            let answer = format!("twice the output buffer is more than {}", Size(MOST_POOL_BYTES as u64));
            let object = format!("{} for {}", Size(places.end as u64), W::CARD.name);
            return Err(Failure::new("make a pool of", object, answer, "ask for a smaller buffer"));
        }
        let pool = PagePool::create(&format!("ipcmark-{}", W::CARD.name), places.end)?;
        Ok(Self { pool, places, way: W::open(params)? })
    }
}

impl<W: PageTransfer> OutgoingPool for ReusedPool<W> {
    #[inline(always)]
    fn reserve(&mut self, most_bytes: usize, _: BorrowedFd<'_>) -> Result<&mut [u8], Errno> {
        Ok(self.pool.reserve(self.places.next(self.way.part_bytes(most_bytes))))
    }

    #[inline(always)]
    fn commit(&mut self, bytes: usize, output: BorrowedFd<'_>) -> Result<(), Errno> {
        let place = self.places.next(bytes);
        transfer_all(place.clone(), |range| self.way.commit(&mut self.pool, range, output))?;
        self.places.committed(place);
        Ok(())
    }

    fn settings(&self) -> Vec<Setting> {
        vec![pool_setting(self.places.end)]
    }
}

/// What is said of the size of a pool.
pub(crate) fn pool_setting(len_bytes: usize) -> Setting {
    let got = Size(len_bytes as u64).to_string();
    Setting { name: "zero-copy pool".to_owned(), asked: None, got, clamped: false }
}

/// Where in a pool the next part lies: behind the one before, and never across the end.
#[derive(Debug)]
struct PoolCursor {
    start: usize,
    end: usize,
    align_bytes: usize,
}

impl PoolCursor {
    /// So many that at least `bytes` are handed over before a place is lent again.
    fn after(bytes: usize, align_bytes: usize) -> Self {
        Self { start: 0, end: (bytes + PART_BYTES).next_multiple_of(PAGE_BYTES), align_bytes }
    }

    /// The next place, of at most `most_bytes`.
    #[inline(always)]
    fn next(&self, most_bytes: usize) -> Range<usize> {
        self.start..self.start + most_bytes.min(PART_BYTES).min(self.end - self.start)
    }

    #[inline(always)]
    fn committed(&mut self, place: Range<usize>) {
        self.start = place.end.next_multiple_of(self.align_bytes);
        if self.start == self.end {
            self.start = 0;
        }
    }
}

/// Has `take` take a first part of `range`, and of what is left, until nothing is.
#[inline(always)]
pub(crate) fn transfer_all(
    mut range: Range<usize>,
    mut take: impl FnMut(Range<usize>) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    while !range.is_empty() {
        match take(range.clone()) {
            // Bytes that nobody takes are not waited for for ever.
            Ok(0) => return Err(Errno::PIPE),
            Ok(count) => range.start += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Moves `bytes` that are in the pipe `from` to `to`, all of them (splice(2)).
#[inline(always)]
pub(crate) fn drain(from: impl AsFd, to: impl AsFd, bytes: usize) -> Result<(), Errno> {
    transfer_all(0..bytes, |left| splice(&from, None, &to, None, left.len(), SpliceFlags::empty()))
}

/// A `PageTransfer` over a TCP connection.
#[derive(Debug)]
pub(crate) struct OverTcp<W>(PhantomData<W>);

impl<W: PageTransfer> InetStream for OverTcp<W> {
    const CARD: Card = W::CARD;
    const PROTOCOL: Option<Protocol> = None;
    type End = ZeroCopyEndpoint<ReusedPool<W>>;
}

impl<W: PageTransfer> OverDescriptors for ZeroCopyEndpoint<ReusedPool<W>> {
    fn set_buffers(socket: &OwnedFd, params: &Params, card: &Card) -> Result<Vec<Setting>, Failure> {
        let send = Buffers { send: params.size(card, SNDBUF.name), receive: None };
        send.set(socket).or_fail("setsockopt(SO_SNDBUF)", card.name)?;
        // The kernel doubles what is asked: a quarter yields the half that the rule needs.
        let both = Buffers { receive: Some(Size(send_buffer(socket, card)? as u64 / 4)), ..send };
        both.set(socket).or_fail("setsockopt(SO_RCVBUF)", card.name)?;
        both.settings(socket, card.name)
    }

    fn over(
        fds: Fds,
        params: &Params,
        _: Shape,
        card: &Card,
        settings: Vec<Setting>,
    ) -> Result<Self, Failure> {
        let outgoing = ReusedPool::new(send_buffer(&fds.output, card)?, params)?;
        let end = DescriptorEndpoint::new(fds, params, card, settings)?;
        Ok(Self::new(end, outgoing, params, card))
    }
}

fn send_buffer(socket: &OwnedFd, card: &Card) -> Result<usize, Failure> {
    sockopt::socket_send_buffer_size(socket).or_fail("getsockopt(SO_SNDBUF)", card.name)
}

/// A `PageTransfer` over two pipes, one for each direction, as a row of the table.
#[derive(Debug)]
pub(crate) struct OverPipes<W>(PhantomData<W>);

impl<W: PageTransfer> Mechanism for OverPipes<W> {
    const CARD: Card = W::CARD;
    type Bound = ZeroCopyEndpoint<ReusedPool<W>>;
    type End = ZeroCopyEndpoint<ReusedPool<W>>;

    fn probe(params: &Params) -> Support {
        try_message::<Self>(params)
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let (client, server, capacity) = pipe_pair(trial.params, &W::CARD)?;
        let end = Self::end(client, trial.params, capacity)?;
        Ok((end, Ticket { address: Vec::new(), fds: vec![server.input, server.output] }))
    }

    fn accept(bound: Self::Bound) -> Result<Self::End, Failure> {
        Ok(bound)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<Self::End, Failure> {
        let [input, output] = ticket.descriptors(W::CARD.name)?;
        Self::end(Fds { input, output }, trial.params, Vec::new())
    }
}

impl<W: PageTransfer> OverPipes<W> {
    fn end(
        fds: Fds,
        params: &Params,
        settings: Vec<Setting>,
    ) -> Result<ZeroCopyEndpoint<ReusedPool<W>>, Failure> {
        let capacity = fcntl_getpipe_size(&fds.output).or_fail("fcntl(F_GETPIPE_SZ)", W::CARD.name)?;
        let outgoing = ReusedPool::new(capacity, params)?;
        let end = DescriptorEndpoint::new(fds, params, &W::CARD, settings)?;
        Ok(ZeroCopyEndpoint::new(end, outgoing, params, &W::CARD))
    }
}

#[cfg(test)]
impl<W: PageTransfer> ZeroCopyEndpoint<ReusedPool<W>> {
    /// The same endpoint without the rule: it reserves the same memory for every part.
    pub(crate) fn without_reuse_rule(mut self) -> Self {
        self.outgoing.places = PoolCursor::after(0, W::ALIGN_BYTES);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::cards::STREAM;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]
        #[test]
        fn a_place_is_lent_again_only_after_as_many_bytes_as_the_rule_says(
            buffer_bytes in 1_usize..100_000,
            paged in any::<bool>(),
            sizes in prop::collection::vec(1_usize..2 * PART_BYTES, 1..60),
        ) {
            let align_bytes = if paged { PAGE_BYTES } else { 1 };
            let mut places = PoolCursor::after(buffer_bytes, align_bytes);
            // For each byte of the pool, how many had been handed over with it; what is left of a page counts, for it
            // takes a slot of the pipe.
            let mut handed_over_at = vec![None; places.end];
            let mut handed_over = 0;
            for size in sizes.iter().cycle().take(30) {
                let place = places.next(*size);
                prop_assert!(!place.is_empty() && place.len() <= *size && place.end <= places.end);
                prop_assert!(place.start.is_multiple_of(align_bytes));
                for before in handed_over_at[place.clone()].iter().flatten() {
                    prop_assert!(handed_over - before >= buffer_bytes);
                }
                for (count, at) in place.clone().enumerate() {
                    handed_over_at[at] = Some(handed_over + (count + 1).next_multiple_of(align_bytes));
                }
                handed_over += place.len().next_multiple_of(align_bytes);
                places.committed(place);
            }
        }
    }

    /// Transfers nothing: the test needs none.
    #[derive(Debug)]
    struct Untransferable;

    impl PageTransfer for Untransferable {
        const CARD: Card = STREAM;

        fn open(_: &Params) -> Result<Self, Failure> {
            Ok(Self)
        }

        fn commit(&mut self, _: &mut PagePool, _: Range<usize>, _: BorrowedFd<'_>) -> Result<usize, Errno> {
            Err(Errno::OPNOTSUPP)
        }
    }

    #[test]
    fn a_pool_is_not_larger_than_the_limit() {
        let refusal = ReusedPool::<Untransferable>::new(MOST_POOL_BYTES, &Params::default());
        assert!(refusal.unwrap_err().to_string().contains("more than 64M"));
    }
}
