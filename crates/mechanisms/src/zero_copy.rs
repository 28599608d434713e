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

use crate::connection::{Connection, ConnectionEnd};
use crate::contract::{Endpoint, InPlace, Mechanism, Shape, Ticket, TrialContext};
use crate::descriptor::{DescriptorEnd, Fds, OverDescriptors, tried};
use crate::inet_stream::InetStream;
use crate::pipe::pipe_pair;
use crate::socket::{Buffers, SNDBUF};
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

/// Memory that an end lends, and how it is handed over.
pub trait Outgoing {
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
pub struct ZeroCopyEnd<O> {
    end: DescriptorEnd,
    outgoing: O,
    in_place: InPlace,
}

impl<O> ZeroCopyEnd<O> {
    pub(crate) fn new(end: DescriptorEnd, outgoing: O, params: &Params, card: &Card) -> Self {
        Self { end, outgoing, in_place: InPlace::asked(params, card).outgoing() }
    }
}

impl<O: Outgoing> Endpoint for ZeroCopyEnd<O> {
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
pub trait Way: std::fmt::Debug + Sized {
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
pub struct ByRule<W> {
    pool: PagePool,
    places: Places,
    way: W,
}

impl<W: Way> ByRule<W> {
    /// A pool for an output that holds `buffer_bytes`.
    fn new(buffer_bytes: usize, params: &Params) -> Result<Self, Failure> {
        let places = Places::after(LAPS * buffer_bytes, W::ALIGN_BYTES);
        if places.end > MOST_POOL_BYTES {
            let answer = format!("twice the output buffer is more than {}", Size(MOST_POOL_BYTES as u64));
            let object = format!("{} for {}", Size(places.end as u64), W::CARD.name);
            return Err(Failure::new("make a pool of", object, answer, "ask for a smaller buffer"));
        }
        let pool = PagePool::create(&format!("ipcmark-{}", W::CARD.name), places.end)?;
        Ok(Self { pool, places, way: W::open(params)? })
    }
}

impl<W: Way> Outgoing for ByRule<W> {
    #[inline(always)]
    fn reserve(&mut self, most_bytes: usize, _: BorrowedFd<'_>) -> Result<&mut [u8], Errno> {
        Ok(self.pool.reserve(self.places.next(self.way.part_bytes(most_bytes))))
    }

    #[inline(always)]
    fn commit(&mut self, bytes: usize, output: BorrowedFd<'_>) -> Result<(), Errno> {
        let place = self.places.next(bytes);
        in_parts(place.clone(), |range| self.way.commit(&mut self.pool, range, output))?;
        self.places.handed_over(place);
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
struct Places {
    start: usize,
    end: usize,
    align_bytes: usize,
}

impl Places {
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
    fn handed_over(&mut self, place: Range<usize>) {
        self.start = place.end.next_multiple_of(self.align_bytes);
        if self.start == self.end {
            self.start = 0;
        }
    }
}

/// Has `take` take a first part of `range`, and of what is left, until nothing is.
#[inline(always)]
pub(crate) fn in_parts(
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
    in_parts(0..bytes, |left| splice(&from, None, &to, None, left.len(), SpliceFlags::empty()))
}

/// A `Way` over a TCP connection.
#[derive(Debug)]
pub struct OverTcp<W>(PhantomData<W>);

impl<W: Way> InetStream for OverTcp<W> {
    const CARD: Card = W::CARD;
    const PROTOCOL: Option<Protocol> = None;
    type End = ZeroCopyEnd<ByRule<W>>;
}

impl<W: Way> OverDescriptors for ZeroCopyEnd<ByRule<W>> {
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
        let outgoing = ByRule::new(send_buffer(&fds.output, card)?, params)?;
        let end = DescriptorEnd::new(fds, params, card, settings)?;
        Ok(Self::new(end, outgoing, params, card))
    }
}

fn send_buffer(socket: &OwnedFd, card: &Card) -> Result<usize, Failure> {
    sockopt::socket_send_buffer_size(socket).or_fail("getsockopt(SO_SNDBUF)", card.name)
}

/// A `Way` over two pipes, one for each direction, as a row of the table.
#[derive(Debug)]
pub struct OverPipes<W>(PhantomData<W>);

impl<W: Way> Mechanism for OverPipes<W> {
    const CARD: Card = W::CARD;
    type Bound = ZeroCopyEnd<ByRule<W>>;
    type End = ZeroCopyEnd<ByRule<W>>;

    fn probe(params: &Params) -> Support {
        tried::<Self>(params)
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

impl<W: Way> OverPipes<W> {
    fn end(fds: Fds, params: &Params, settings: Vec<Setting>) -> Result<ZeroCopyEnd<ByRule<W>>, Failure> {
        let capacity = fcntl_getpipe_size(&fds.output).or_fail("fcntl(F_GETPIPE_SZ)", W::CARD.name)?;
        let outgoing = ByRule::new(capacity, params)?;
        let end = DescriptorEnd::new(fds, params, &W::CARD, settings)?;
        Ok(ZeroCopyEnd::new(end, outgoing, params, &W::CARD))
    }
}

/// A row without the rule: it lends the same memory for every part, so that what is in flight changes. No row of
/// the table; it is there for the test that shows what the rule is for.
#[derive(Debug)]
pub struct AtOnce<M>(PhantomData<M>);

impl<M: Mechanism<End: ReservesAtOnce>> Mechanism for AtOnce<M> {
    const CARD: Card = M::CARD;
    type Bound = M::Bound;
    type End = M::End;

    fn probe(params: &Params) -> Support {
        M::probe(params)
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(M::Bound, Ticket), Failure> {
        M::bind(trial)
    }

    fn accept(bound: M::Bound) -> Result<M::End, Failure> {
        M::accept(bound).map(ReservesAtOnce::without_rule)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<M::End, Failure> {
        M::connect(trial, ticket).map(ReservesAtOnce::without_rule)
    }
}

/// An end whose rule can be taken from it.
pub trait ReservesAtOnce: Endpoint + Sized {
    /// It, lending the same memory for every part.
    fn without_rule(self) -> Self;
}

impl<W: Way> ReservesAtOnce for ZeroCopyEnd<ByRule<W>> {
    fn without_rule(mut self) -> Self {
        self.outgoing.places = Places::after(0, W::ALIGN_BYTES);
        self
    }
}

impl<C: Connection<End: ReservesAtOnce>> ReservesAtOnce for ConnectionEnd<C> {
    fn without_rule(self) -> Self {
        match self {
            Self::Lasting(end) => Self::Lasting(end.without_rule()),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            let mut places = Places::after(buffer_bytes, align_bytes);
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
                places.handed_over(place);
            }
        }
    }

    #[test]
    fn a_pool_is_not_larger_than_the_limit() {
        let refusal = ByRule::<crate::tcp_sendfile::TcpSendfile>::new(MOST_POOL_BYTES, &Params::default());
        assert!(refusal.unwrap_err().to_string().contains("more than 64M"));
    }
}
