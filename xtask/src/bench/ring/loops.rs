//! What the endpoints of `bench ring` do in a slice: round trips or a stream, and the clock around them.

use harness::clock::Clock;

/// What went wrong, in words.
pub(super) type Outcome<T> = Result<T, String>;

/// An endpoint that sends and receives messages of one size. Each carries its number in its first eight bytes.
pub(super) trait Messenger {
    /// Sends the message of `number`.
    fn send(&mut self, number: u64) -> Outcome<()>;
    /// Receives a message, and verifies that it is that of `number`.
    fn receive(&mut self, number: u64) -> Outcome<()>;
}

/// What the endpoints do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Traffic {
    /// A message, and an answer as long.
    RoundTrip,
    /// Messages one after the other.
    Stream,
}

/// What both endpoints of a pair do next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    /// Which pair.
    pub(super) pair: usize,
    pub(super) traffic: Traffic,
    /// The number of the first message.
    pub(super) first: u64,
    /// How many messages or round trips come before those that are timed, and how many after.
    pub(super) lead: u64,
    pub(super) iterations: u64,
}

impl Order {
    pub(super) fn end(&self) -> u64 {
        self.first + self.lead + self.iterations + self.lead
    }
}

/// An endpoint of any kind: one call for a slice, so that its loops are compiled for its kind.
pub(super) trait Runs {
    /// The client's part. Nanoseconds of an iteration, of round trips.
    fn run_client(&mut self, order: Order, clock: Clock) -> Outcome<f64>;
    /// The server's part. Nanoseconds of an iteration, of a stream.
    fn run_server(&mut self, order: Order, clock: Clock) -> Outcome<f64>;
}

impl<E: Messenger> Runs for E {
    fn run_client(&mut self, order: Order, clock: Clock) -> Outcome<f64> {
        if order.traffic == Traffic::Stream {
            (order.first..order.end()).try_for_each(|number| self.send(number))?;
            return Ok(f64::NAN);
        }
        timed(order, clock, |number| {
            self.send(number)?;
            self.receive(number)
        })
    }

    fn run_server(&mut self, order: Order, clock: Clock) -> Outcome<f64> {
        if order.traffic == Traffic::Stream {
            // Where messages arrive, the rate is the steady one: the ring has filled by then and does not drain yet.
            return timed(order, clock, |number| self.receive(number));
        }
        for number in order.first..order.end() {
            self.receive(number)?;
            self.send(number)?;
        }
        Ok(f64::NAN)
    }
}

/// Nanoseconds of an iteration between the lead-in and the lead-out.
#[inline(always)]
fn timed(order: Order, clock: Clock, mut iteration: impl FnMut(u64) -> Outcome<()>) -> Outcome<f64> {
    let start_at = order.first + order.lead;
    let end_at = start_at + order.iterations;
    (order.first..start_at).try_for_each(&mut iteration)?;
    let start = clock.now();
    (start_at..end_at).try_for_each(&mut iteration)?;
    let end = clock.now();
    (end_at..order.end()).try_for_each(&mut iteration)?;
    Ok(clock.ns_between(start, end) / order.iterations as f64)
}
