//! The measured loops: what the client and the server do in each workload.
//!
//! A phase is a lead-in, which is not timed, iterations, which are, and a lead-out, which is not: when the clock starts both
//! endpoints are under way, and when it stops the peer still answers, so that what it does after its last answer does not
//! delay the one that reads the clock. Both know beforehand how many iterations of each there are: no control message passes
//! while a phase runs.
//!
//! Each loop is compiled once for each kind of endpoint and what notes it, whatever phase calls it: there are many kinds.

use super::buffered::BufferedEndpoint;
use super::loop_error::LoopError;
use super::meters::{IterationLog, Meter, StepMeter, Unmetered, Watch};
use mechanisms::Endpoint;
use model::Session;
use rustix::fd::BorrowedFd;
use std::ops::Range;
use sys::Errno;

impl<E: Endpoint> BufferedEndpoint<E> {
    /// The client's iterations of `latency`, `transfer` and `connect`: a message, and the answer to it.
    #[inline(never)]
    pub(crate) fn ask(&mut self, iterations: Range<u64>, watch: &mut impl Watch) -> Result<(), LoopError> {
        let mut end = self.iterating();
        for iteration in iterations {
            watch.before();
            end.send(iteration, &mut Unmetered)?;
            end.receive(iteration, &mut Unmetered)?;
            watch.after();
        }
        Ok(())
    }

    /// The server's iterations of `latency`, `transfer` and `connect`. `between` runs after each message and before the answer.
    #[inline(never)]
    pub(crate) fn answer(
        &mut self,
        iterations: Range<u64>,
        between: &mut (impl FnMut() + ?Sized),
    ) -> Result<(), LoopError> {
        let mut end = self.iterating();
        for iteration in iterations {
            end.receive(iteration, &mut Unmetered)?;
            between();
            end.send(iteration, &mut Unmetered)?;
        }
        Ok(())
    }

    /// The client's iterations of `throughput`: messages one after the other.
    #[inline(never)]
    pub(crate) fn stream(
        &mut self,
        iterations: Range<u64>,
        meter: &mut impl Meter,
        watch: &mut impl Watch,
    ) -> Result<(), LoopError> {
        let mut end = self.iterating();
        for iteration in iterations {
            watch.before();
            end.send(iteration, meter)?;
            watch.after();
        }
        Ok(())
    }

    /// Waits for the server's word that all messages up to `next` have come, which is numbered so.
    pub(crate) fn await_word(&mut self, next: u64) -> Result<(), LoopError> {
        self.iterating().receive(next, &mut Unmetered)
    }

    /// The server's iterations of `throughput`. `between` runs after each message.
    ///
    /// Where messages may be lost, a message beyond `iterations` ends them too, and is the first of the next.
    #[inline(never)]
    pub(crate) fn drain(
        &mut self,
        iterations: Range<u64>,
        meter: &mut impl Meter,
        between: &mut (impl FnMut() + ?Sized),
    ) -> Result<(), LoopError> {
        if E::LOSES {
            return self.receive_lossy(iterations, meter, between);
        }
        let mut end = self.iterating();
        for iteration in iterations {
            end.receive(iteration, meter)?;
            between();
        }
        Ok(())
    }

    /// Tells the client that all messages up to `next` have come, or were lost.
    pub(crate) fn send_word(&mut self, next: u64) -> Result<(), LoopError> {
        self.early = None;
        self.iterating().send(next, &mut Unmetered)
    }

    /// The messages of a stream of which some may be lost, but none doubled, changed or overtaken.
    #[inline(always)]
    fn receive_lossy(
        &mut self,
        iterations: Range<u64>,
        meter: &mut impl Meter,
        between: &mut (impl FnMut() + ?Sized),
    ) -> Result<(), LoopError> {
        let (mut next, mut came) = (iterations.start, 0);
        let all = iterations.end - iterations.start;
        let mut early = self.early.take();
        if let Some(number) = early.take_if(|number| iterations.contains(number)) {
            (next, came) = (number + 1, 1);
            between();
        }
        let mut end = self.iterating();
        while next < iterations.end && early.is_none() {
            let Some(iteration) = end.receive_any(next, meter)? else { break };
            if iteration >= iterations.end {
                early = Some(iteration);
                break;
            }
            between();
            (next, came) = (iteration + 1, came + 1);
        }
        self.early = early;
        self.lost = all - came;
        Ok(())
    }
}

/// The client's iterations of `latency` and `transfer` with several servers: a message to every one, and the answers of all.
#[inline(never)]
pub(crate) fn ask_all<E: Endpoint>(
    endpoints: &mut [Box<BufferedEndpoint<E>>],
    iterations: Range<u64>,
    mut log: Option<&mut IterationLog>,
) -> Result<(), LoopError> {
    for iteration in iterations {
        for endpoint in endpoints.iter_mut() {
            endpoint.iterating().send(iteration, &mut Unmetered)?;
        }
        for endpoint in endpoints.iter_mut() {
            endpoint.iterating().receive(iteration, &mut Unmetered)?;
        }
        if let Some(log) = &mut log {
            log.after();
        }
    }
    Ok(())
}

/// The client's iterations of `throughput` with several servers: each message to every one, then the word of all that the last
/// has come. A slow server delays the others when its buffers are full, as it would in any program.
#[inline(never)]
pub(crate) fn stream_to_all<E: Endpoint>(
    endpoints: &mut [Box<BufferedEndpoint<E>>],
    iterations: Range<u64>,
) -> Result<(), LoopError> {
    let end_of_iterations = iterations.end;
    for iteration in iterations {
        for endpoint in endpoints.iter_mut() {
            endpoint.iterating().send(iteration, &mut Unmetered)?;
        }
    }
    endpoints
        .iter_mut()
        .try_for_each(|endpoint| endpoint.iterating().receive(end_of_iterations, &mut Unmetered))
}

impl<E: Endpoint> BufferedEndpoint<E> {
    /// One message of one of several clients, on the server's side: it receives the message of `iteration`, and sends the answer
    /// numbered `answer` if one is due. `between` runs after the message and before the answer.
    #[inline(never)]
    pub(crate) fn serve(
        &mut self,
        iteration: u64,
        answer: Option<u64>,
        between: &mut impl FnMut(),
    ) -> Result<(), LoopError> {
        let mut end = self.iterating();
        end.receive(iteration, &mut Unmetered)?;
        between();
        answer.map_or(Ok(()), |number| end.send(number, &mut Unmetered))
    }
}

impl<E: Endpoint> BufferedEndpoint<E> {
    /// The client's iterations of `session`: its messages, each with `fds`, and the answer to the last.
    #[inline(never)]
    pub(crate) fn send_sessions(
        &mut self,
        iterations: Range<u64>,
        Session { messages, .. }: Session,
        fds: &[BorrowedFd<'_>],
        steps: &mut impl StepMeter,
        watch: &mut impl Watch,
    ) -> Result<(), LoopError> {
        if !E::PASSES_FDS {
            return Err(LoopError::Call { name: "send", errno: Errno::OPNOTSUPP });
        }
        let mut end = self.iterating();
        for iteration in iterations {
            watch.before();
            for message in 0..u64::from(messages) {
                end.send_with(iteration * u64::from(messages) + message, fds, steps)?;
            }
            end.receive(iteration, &mut Unmetered)?;
            watch.after();
        }
        Ok(())
    }

    /// The server's iterations of `session`. `between` runs before each answer.
    #[inline(never)]
    pub(crate) fn receive_sessions(
        &mut self,
        iterations: Range<u64>,
        Session { messages, fds }: Session,
        steps: &mut impl StepMeter,
        between: &mut (impl FnMut() + ?Sized),
    ) -> Result<(), LoopError> {
        if !E::PASSES_FDS {
            return Err(LoopError::Call { name: "receive", errno: Errno::OPNOTSUPP });
        }
        let mut end = self.iterating();
        for iteration in iterations {
            for message in 0..u64::from(messages) {
                end.receive_with(iteration * u64::from(messages) + message, fds as usize, steps)?;
            }
            between();
            end.send(iteration, &mut Unmetered)?;
        }
        Ok(())
    }
}
