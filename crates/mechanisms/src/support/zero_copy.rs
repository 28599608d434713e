//! Endpoints that have the kernel refer to a sender's pages instead of copying them. Not a mechanism itself.
//!
//! Such a page must not be written again while the kernel still refers to it, and most calls never say when that
//! ends. So the *reuse rule* holds here: memory is reserved again only after twice the size of the output buffer was
//! committed behind it. By then everything that was in flight has been replaced. Why that is enough:
//!
//! - **A pipe** holds one page in each of its slots. No more than its capacity is in flight, so that once would be
//!   enough.
//! - **A TCP connection over loopback** passes the sender's own pages to the receiver, where they stay until they are
//!   read. In flight are the send buffer, which a segment of half a window may exceed, and the receive buffer. Twice
//!   the send buffer covers both only if the receive buffer is smaller: it is set to half of the send buffer. With
//!   two equal buffers 2.1 send buffers were observed in flight (Linux 6.18), with this setting 1.5. Both buffers are
//!   charged at least the bytes that they hold, and a size that was set is no longer tuned by the kernel.

use crate::contract::{Endpoint, InPlace, Mechanism, Shape, Ticket, TrialContext};
use crate::support::descriptor::{DescriptorEndpoint, Fds, OverDescriptors};
use crate::support::inet_stream::InetStream;
use crate::support::pipes::pipe_pair;
use crate::support::probe::try_message;
use crate::support::socket::{Buffers, SNDBUF};
use model::card::{Card, Support};
use model::record::Setting;
use model::{Domain, Param, Params, Size};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{Protocol, sockopt};
use rustix::pipe::{SpliceFlags, fcntl_getpipe_size, splice};
use std::marker::PhantomData;
use std::ops::Range;
use sys::page_pool::PagePool;
use sys::{Errno, Failure, OrFail};

/// The most that is reserved at once: what a pipe holds by default. A larger message goes in parts.
pub(crate) const PART_BYTES: usize = 64 << 10;

/// The size of the largest pool.
const MOST_POOL_BYTES: usize = 64 << 20;

/// The unit in which a pipe refers to memory.
pub(crate) const PAGE_BYTES: usize = 4096;

/// How many times the output buffer must be filled before memory is reserved again.
const LAPS: usize = 2;

/// The send buffer of connections that keep the reuse rule. The pool is sized by it, so that the kernel must not tune
/// it.
pub(crate) const FIXED_SNDBUF: Param = Param {
    summary: "send buffer to ask for (SO_SNDBUF), or match for the message's size; the receive buffer is set to half of it, the pool to twice",
    default: Some("128K"),
    ..SNDBUF
};

/// Who sets the buffers of such a connection.
pub(crate) const TUNING: Param = Param {
    name: "buffers",
    summary: "fixed: the send buffer as sndbuf says, the receive buffer half of it; tuned: both as the kernel tunes them, with a pool for the largest that it may choose (net.ipv4.tcp_wmem, tcp_rmem)",
    domain: Domain::Choice(&["fixed", "tuned"]),
    default: Some("fixed"),
};

/// The limits of mechanisms that keep the reuse rule over a connection.
pub(crate) const CONNECTION_LIMITS: &str = "any message size, in parts of 64K; SO_SNDBUF up to net.core.wmem_max, half of it up to net.core.rmem_max; a pool of at most 64M";

/// Memory in which an endpoint reserves room for messages, and how these are sent.
pub(crate) trait OutgoingPool {
    /// Whether the output, if it is the input too, is readable only when there is something to read.
    const POLLED: bool = true;

    /// 1 to `most_bytes` bytes to which the kernel no longer refers on behalf of `output`.
    fn reserve(&mut self, most_bytes: usize, output: BorrowedFd<'_>) -> Result<&mut [u8], Errno>;

    /// Sends the first `bytes` of what was reserved, all of them, to `output`.
    fn commit(&mut self, bytes: usize, output: BorrowedFd<'_>) -> Result<(), Errno>;

    /// What was asked of the kernel, and what it gave.
    fn settings(&self) -> Vec<Setting>;
}

/// An endpoint whose outgoing messages lie in memory to which the kernel refers. It receives by read(2).
#[derive(Debug)]
pub(crate) struct ZeroCopyEndpoint<O> {
    endpoint: DescriptorEndpoint,
    outgoing: O,
    in_place: InPlace,
}

impl<O> ZeroCopyEndpoint<O> {
    pub(crate) fn new(endpoint: DescriptorEndpoint, outgoing: O, params: &Params, card: &Card) -> Self {
        Self { endpoint, outgoing, in_place: InPlace::from_params(params, card).outgoing() }
    }
}

impl<O: OutgoingPool> Endpoint for ZeroCopyEndpoint<O> {
    const IN_PLACE: bool = true;

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let part = self.outgoing.reserve(bytes.len(), self.endpoint.output())?;
        let count = part.len();
        part.copy_from_slice(&bytes[..count]);
        self.commit(count)?;
        Ok(count)
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        self.endpoint.receive(into)
    }

    fn settings(&self) -> Vec<Setting> {
        self.endpoint.settings().into_iter().chain(self.outgoing.settings()).collect()
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        self.endpoint.input().filter(|_| O::POLLED)
    }

    fn in_place(&self) -> InPlace {
        self.in_place
    }

    #[inline(always)]
    fn reserve(&mut self, most_bytes: usize) -> Result<&mut [u8], Errno> {
        self.outgoing.reserve(most_bytes, self.endpoint.output())
    }

    #[inline(always)]
    fn commit(&mut self, bytes: usize) -> Result<(), Errno> {
        self.outgoing.commit(bytes, self.endpoint.output())
    }
}

/// A way to have the kernel refer to bytes of a pool, which never says when the kernel no longer does.
pub(crate) trait PageTransfer: std::fmt::Debug + Sized + 'static {
    /// What the mechanism declares about itself.
    const CARD: Card;
    /// Each message begins at a multiple of this. 1 packs them.
    const ALIGN_BYTES: usize = 1;

    /// Makes what the transfer needs besides the pool and the output.
    fn open(params: &Params) -> Result<Self, Failure>;

    /// How many bytes to reserve where `most_bytes` could be.
    #[inline(always)]
    fn part_bytes(&self, most_bytes: usize) -> usize {
        most_bytes
    }

    /// Sends a first part of the bytes in `range` of `pool` to `output`. Returns how many, at least 1.
    fn commit(
        &mut self,
        pool: &mut PagePool,
        range: Range<usize>,
        output: BorrowedFd<'_>,
    ) -> Result<usize, Errno>;
}

/// A pool whose memory is reused by the rule.
#[derive(Debug)]
pub(crate) struct ReusedPool<W> {
    pool: PagePool,
    cursor: PoolCursor,
    transfer: W,
}

impl<W: PageTransfer> ReusedPool<W> {
    /// A pool for an output that holds `buffer_bytes`.
    fn new(buffer_bytes: usize, params: &Params) -> Result<Self, Failure> {
        let cursor = PoolCursor::after(LAPS * buffer_bytes, W::ALIGN_BYTES);
        if cursor.len_bytes > MOST_POOL_BYTES {
            let answer = format!("twice the output buffer is more than {}", Size(MOST_POOL_BYTES as u64));
            let object = format!("{} for {}", Size(cursor.len_bytes as u64), W::CARD.name);
            return Err(Failure::new("make a pool of", object, answer, "ask for a smaller buffer"));
        }
        let pool = PagePool::create(&format!("ipcmark-{}", W::CARD.name), cursor.len_bytes)?;
        Ok(Self { pool, cursor, transfer: W::open(params)? })
    }
}

impl<W: PageTransfer> OutgoingPool for ReusedPool<W> {
    #[inline(always)]
    fn reserve(&mut self, most_bytes: usize, _: BorrowedFd<'_>) -> Result<&mut [u8], Errno> {
        Ok(self.pool.reserve(self.cursor.next(self.transfer.part_bytes(most_bytes))))
    }

    #[inline(always)]
    fn commit(&mut self, bytes: usize, output: BorrowedFd<'_>) -> Result<(), Errno> {
        let range = self.cursor.next(bytes);
        transfer_all(range.clone(), |part| self.transfer.commit(&mut self.pool, part, output))?;
        self.cursor.committed(range);
        Ok(())
    }

    fn settings(&self) -> Vec<Setting> {
        vec![pool_setting(self.cursor.len_bytes)]
    }
}

/// The setting that says how large a pool is.
pub(crate) fn pool_setting(len_bytes: usize) -> Setting {
    let got = Size(len_bytes as u64).to_string();
    Setting { name: "zero-copy pool".to_owned(), asked: None, got, clamped: false, usual: None }
}

/// Where in a pool the next part lies: behind the one before, and never across the end of the pool.
#[derive(Debug)]
struct PoolCursor {
    start: usize,
    len_bytes: usize,
    align_bytes: usize,
}

impl PoolCursor {
    /// A pool so large that at least `bytes` are committed before a range is reserved again.
    fn after(bytes: usize, align_bytes: usize) -> Self {
        Self { start: 0, len_bytes: (bytes + PART_BYTES).next_multiple_of(PAGE_BYTES), align_bytes }
    }

    /// The next range, of at most `most_bytes`.
    #[inline(always)]
    fn next(&self, most_bytes: usize) -> Range<usize> {
        self.start..self.start + most_bytes.min(PART_BYTES).min(self.len_bytes - self.start)
    }

    #[inline(always)]
    fn committed(&mut self, range: Range<usize>) {
        self.start = range.end.next_multiple_of(self.align_bytes);
        if self.start == self.len_bytes {
            self.start = 0;
        }
    }
}

/// Calls `take`, which takes a first part of a range, until it has taken all of `range`.
#[inline(always)]
pub(crate) fn transfer_all(
    mut range: Range<usize>,
    mut take: impl FnMut(Range<usize>) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    while !range.is_empty() {
        match take(range.clone()) {
            // Do not wait for ever if nobody takes the bytes.
            Ok(0) => return Err(Errno::PIPE),
            Ok(count) => range.start += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Moves `bytes` from the pipe `from` to `to`, all of them (splice(2)).
#[inline(always)]
pub(crate) fn drain(from: impl AsFd, to: impl AsFd, bytes: usize) -> Result<(), Errno> {
    transfer_all(0..bytes, |left| splice(&from, None, &to, None, left.len(), SpliceFlags::empty()))
}

/// A [`PageTransfer`] over a TCP connection.
#[derive(Debug)]
pub(crate) struct OverTcp<W>(PhantomData<W>);

impl<W: PageTransfer> InetStream for OverTcp<W> {
    const CARD: Card = W::CARD;
    const PROTOCOL: Option<Protocol> = None;
    type End = ZeroCopyEndpoint<ReusedPool<W>>;
}

impl<W: PageTransfer> OverDescriptors for ZeroCopyEndpoint<ReusedPool<W>> {
    fn set_buffers(socket: &OwnedFd, params: &Params, card: &Card) -> Result<Vec<Setting>, Failure> {
        if is_tuned(params, card) {
            return Buffers { send: None, receive: None }.settings(socket, card.name);
        }
        let send = Buffers { send: params.size(card, SNDBUF.name), receive: None };
        send.set(socket).or_fail("setsockopt(SO_SNDBUF)", card.name)?;
        // The kernel doubles what is asked, so that a quarter yields the half that the rule needs.
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
        let buffer_bytes = match is_tuned(params, card) {
            true => tuned_buffer_bytes(card)?,
            false => send_buffer(&fds.output, card)?,
        };
        let outgoing = ReusedPool::new(buffer_bytes, params)?;
        let endpoint = DescriptorEndpoint::new(fds, params, card, settings)?;
        Ok(Self::new(endpoint, outgoing, params, card))
    }
}

fn is_tuned(params: &Params, card: &Card) -> bool {
    params.text(card, TUNING.name) == Some("tuned")
}

/// By what the pool of a connection is sized whose buffers the kernel tunes. In flight is at most what both may hold at their
/// largest, and a segment. The pool is half as large again.
fn tuned_buffer_bytes(card: &Card) -> Result<usize, Failure> {
    let largest = |path: &str| {
        sys::sysctl::last_number(path).ok_or_else(|| {
            let next = format!("leave out the parameter {}", TUNING.name);
            Failure::new(
                "read",
                format!("/proc/sys/{path} for {}", card.name),
                "there is no number".to_owned(),
                next,
            )
        })
    };
    let both = largest("net/ipv4/tcp_wmem")? + largest("net/ipv4/tcp_rmem")?;
    Ok((both * 3 / 2 / LAPS as u64) as usize)
}

fn send_buffer(socket: &OwnedFd, card: &Card) -> Result<usize, Failure> {
    sockopt::socket_send_buffer_size(socket).or_fail("getsockopt(SO_SNDBUF)", card.name)
}

/// A [`PageTransfer`] over two pipes, one for each direction, as a mechanism.
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
        let endpoint = Self::endpoint(client, trial.params, capacity)?;
        Ok((endpoint, Ticket { address: Vec::new(), fds: vec![server.input, server.output] }))
    }

    fn accept(bound: Self::Bound) -> Result<Self::End, Failure> {
        Ok(bound)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<Self::End, Failure> {
        let [input, output] = ticket.descriptors(W::CARD.name)?;
        Self::endpoint(Fds { input, output }, trial.params, Vec::new())
    }
}

impl<W: PageTransfer> OverPipes<W> {
    fn endpoint(
        fds: Fds,
        params: &Params,
        settings: Vec<Setting>,
    ) -> Result<ZeroCopyEndpoint<ReusedPool<W>>, Failure> {
        let capacity = fcntl_getpipe_size(&fds.output).or_fail("fcntl(F_GETPIPE_SZ)", W::CARD.name)?;
        let outgoing = ReusedPool::new(capacity, params)?;
        let endpoint = DescriptorEndpoint::new(fds, params, &W::CARD, settings)?;
        Ok(ZeroCopyEndpoint::new(endpoint, outgoing, params, &W::CARD))
    }
}

#[cfg(test)]
impl<W: PageTransfer> ZeroCopyEndpoint<ReusedPool<W>> {
    /// The same endpoint without the rule: it reserves the same memory for every part.
    pub(crate) fn without_reuse_rule(mut self) -> Self {
        self.outgoing.cursor = PoolCursor::after(0, W::ALIGN_BYTES);
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
        fn a_range_is_reserved_again_only_after_as_many_bytes_as_the_rule_says(
            buffer_bytes in 1_usize..100_000,
            paged in any::<bool>(),
            sizes in prop::collection::vec(1_usize..2 * PART_BYTES, 1..60),
        ) {
            let align_bytes = if paged { PAGE_BYTES } else { 1 };
            let mut cursor = PoolCursor::after(buffer_bytes, align_bytes);
            // For each byte of the pool, how many bytes had been committed with it. What is left of a page counts
            // too, because it takes a slot of the pipe.
            let mut committed_at = vec![None; cursor.len_bytes];
            let mut committed_bytes = 0;
            for size in sizes.iter().cycle().take(30) {
                let range = cursor.next(*size);
                prop_assert!(!range.is_empty() && range.len() <= *size && range.end <= cursor.len_bytes);
                prop_assert!(range.start.is_multiple_of(align_bytes));
                for before in committed_at[range.clone()].iter().flatten() {
                    prop_assert!(committed_bytes - before >= buffer_bytes);
                }
                for (count, at) in range.clone().enumerate() {
                    committed_at[at] = Some(committed_bytes + (count + 1).next_multiple_of(align_bytes));
                }
                committed_bytes += range.len().next_multiple_of(align_bytes);
                cursor.committed(range);
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
