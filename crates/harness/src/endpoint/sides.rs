//! The two sides of a trial, as what surrounds their loops sees them: the loops are compiled for each kind of endpoint, all
//! else once.
//!
//! Each call here is for all iterations of a range. None lies between two of them, where an indirect call would cost a round
//! trip on one CPU some percent: each switch of processes forgets where it leads.

use super::buffered::BufferedEndpoint;
use super::injected::{Injected, InjectedDelay};
use super::loop_error::LoopError;
use super::loops::{ask_all, stream_to_all};
use super::meters::{CallLog, IterationLog, StepLog, Unmetered, Unwatched, Watch};
use super::pacer::Pacer;
use super::payload::Check;
use mechanisms::{Endpoint, NoTrace};
use model::record::Setting;
use model::{Session, Workload};
use rustix::fd::BorrowedFd;
use std::ops::Range;
use sys::Errno;

/// One endpoint with its buffers, of whatever mechanism.
pub(crate) trait End {
    /// Has the payload checked so from now on.
    fn check(&mut self, check: Check);
    /// Makes its memory cold.
    fn cool(&mut self) -> Result<(), LoopError>;
    /// Where its messages lie.
    fn addresses(&self) -> Range<u64>;
    /// Its socket of a network, if it has one that lasts.
    fn network_socket(&self) -> Option<BorrowedFd<'_>>;
    /// What the kernel made of its settings.
    fn settings(&self) -> Vec<Setting>;
}

impl<E: Endpoint> End for BufferedEndpoint<E> {
    fn check(&mut self, check: Check) {
        BufferedEndpoint::check(self, check);
    }

    fn cool(&mut self) -> Result<(), LoopError> {
        BufferedEndpoint::cool(self)
    }

    fn addresses(&self) -> Range<u64> {
        BufferedEndpoint::addresses(self)
    }

    fn network_socket(&self) -> Option<BorrowedFd<'_>> {
        self.inner.network_socket()
    }

    fn settings(&self) -> Vec<Setting> {
        self.inner.settings()
    }
}

/// What the client does in each iteration beside what is measured.
#[derive(Clone, Copy)]
pub(crate) struct Extras<'a> {
    /// What goes with each message of a `session`.
    pub(crate) fds: &'a [BorrowedFd<'a>],
    /// What is injected, if anything is.
    pub(crate) delay: Option<InjectedDelay>,
}

/// What is noted of the iterations of a client.
pub(crate) enum Watched<'a> {
    /// Nothing.
    Nothing,
    /// When each ended.
    Logged(&'a mut IterationLog),
    /// What each took, after a wait before it.
    Paced(&'a mut Pacer),
}

impl Watched<'_> {
    /// The first iteration may begin.
    pub(crate) fn start(&mut self) {
        match self {
            Self::Nothing => {}
            Self::Logged(log) => log.start(),
            Self::Paced(pacer) => pacer.start(),
        }
    }
}

/// The loops of a client, with an endpoint to every server.
pub(crate) trait ClientSide {
    /// Its endpoints.
    fn ends(&mut self) -> Vec<&mut dyn End>;

    /// Its `iterations` of `workload`; where messages are not answered, until the word that all have come.
    fn run(
        &mut self,
        workload: Workload,
        iterations: Range<u64>,
        extras: Extras<'_>,
        watched: Watched<'_>,
    ) -> Result<(), LoopError>;

    /// The messages of a stream to one server, and no word after them.
    fn stream(
        &mut self,
        iterations: Range<u64>,
        delay: Option<InjectedDelay>,
        watched: Watched<'_>,
    ) -> Result<(), LoopError>;

    /// The messages of a stream to one server with every call noted in `log`, and the word after them.
    fn calls(&mut self, iterations: Range<u64>, log: &mut CallLog) -> Result<(), LoopError>;

    /// The sessions with one server with every step noted in `log`.
    fn steps(
        &mut self,
        iterations: Range<u64>,
        session: Session,
        fds: &[BorrowedFd<'_>],
        log: &mut StepLog,
    ) -> Result<(), LoopError>;
}

impl<E: Endpoint> ClientSide for Vec<Box<BufferedEndpoint<E>>> {
    fn ends(&mut self) -> Vec<&mut dyn End> {
        self.iter_mut().map(|endpoint| &mut **endpoint as &mut dyn End).collect()
    }

    fn run(
        &mut self,
        workload: Workload,
        iterations: Range<u64>,
        extras: Extras<'_>,
        watched: Watched<'_>,
    ) -> Result<(), LoopError> {
        match watched {
            Watched::Nothing => run(self, workload, iterations, extras, &mut Unwatched),
            Watched::Logged(log) => run(self, workload, iterations, extras, log),
            Watched::Paced(pacer) => run(self, workload, iterations, extras, pacer),
        }
    }

    fn stream(
        &mut self,
        iterations: Range<u64>,
        delay: Option<InjectedDelay>,
        watched: Watched<'_>,
    ) -> Result<(), LoopError> {
        let endpoint = only(self)?;
        match watched {
            Watched::Nothing => stream(endpoint, iterations, delay, &mut Unwatched),
            Watched::Logged(log) => stream(endpoint, iterations, delay, log),
            Watched::Paced(pacer) => stream(endpoint, iterations, delay, pacer),
        }
    }

    fn calls(&mut self, iterations: Range<u64>, log: &mut CallLog) -> Result<(), LoopError> {
        let (endpoint, next) = (only(self)?, iterations.end);
        endpoint.stream(iterations, log, &mut Unwatched)?;
        endpoint.await_word(next)
    }

    fn steps(
        &mut self,
        iterations: Range<u64>,
        session: Session,
        fds: &[BorrowedFd<'_>],
        log: &mut StepLog,
    ) -> Result<(), LoopError> {
        only(self)?.send_sessions(iterations, session, fds, log, &mut Unwatched)
    }
}

/// The endpoint to the one server. The phases that need this are of one pair alone.
fn only<E>(endpoints: &mut [Box<BufferedEndpoint<E>>]) -> Result<&mut BufferedEndpoint<E>, LoopError> {
    match endpoints {
        [endpoint] => Ok(endpoint),
        _ => Err(LoopError::Call { name: "choose one of several servers", errno: Errno::INVAL }),
    }
}

/// The client's iterations of `workload`.
fn run<E: Endpoint>(
    endpoints: &mut [Box<BufferedEndpoint<E>>],
    workload: Workload,
    iterations: Range<u64>,
    extras: Extras<'_>,
    watch: &mut impl Watch,
) -> Result<(), LoopError> {
    let Extras { fds, delay } = extras;
    let watch = &mut Injected { delay, watch };
    match (workload, endpoints) {
        (Workload::Throughput, [endpoint]) => {
            let next = iterations.end;
            endpoint.stream(iterations, &mut Unmetered, watch)?;
            endpoint.await_word(next)
        }
        (Workload::Throughput, endpoints) => stream_to_all(endpoints, iterations),
        (Workload::Session(session), [endpoint]) => {
            endpoint.send_sessions(iterations, session, fds, &mut NoTrace, watch)
        }
        (_, [endpoint]) => endpoint.ask(iterations, watch),
        (_, endpoints) => ask_all(endpoints, iterations, watch.log()),
    }
}

fn stream<E: Endpoint>(
    endpoint: &mut BufferedEndpoint<E>,
    iterations: Range<u64>,
    delay: Option<InjectedDelay>,
    watch: &mut impl Watch,
) -> Result<(), LoopError> {
    endpoint.stream(iterations, &mut Unmetered, &mut Injected { delay, watch })
}

/// What a server does after each message and before its answer.
pub(crate) enum Between<'a> {
    /// It waits for the delay that is injected, if one is.
    Delay(Option<InjectedDelay>),
    /// It notes something.
    Note(&'a mut dyn FnMut()),
}

/// The loops of a server of one client.
pub(crate) trait ServerSide: End {
    /// Its `iterations` of `workload`. `between` runs after each message and before its answer; where messages are not
    /// answered, the client gets the word that all have come.
    fn run(
        &mut self,
        workload: Workload,
        iterations: Range<u64>,
        between: Between<'_>,
    ) -> Result<(), LoopError>;

    /// The messages of a stream, and no word after them. `between` runs after each.
    fn drain(&mut self, iterations: Range<u64>, between: Between<'_>) -> Result<(), LoopError>;

    /// Tells the client that all messages up to `next` have come, or were lost.
    fn send_word(&mut self, next: u64) -> Result<(), LoopError>;

    /// How many messages of the last stream never came, where that may be.
    fn lost(&self) -> Option<u64>;

    /// The messages of a stream with every call noted in `log`, and the word after them.
    fn calls(&mut self, iterations: Range<u64>, log: &mut CallLog) -> Result<(), LoopError>;

    /// The sessions with every step noted in `log`.
    fn steps(&mut self, iterations: Range<u64>, session: Session, log: &mut StepLog)
    -> Result<(), LoopError>;
}

impl<E: Endpoint> ServerSide for BufferedEndpoint<E> {
    fn run(
        &mut self,
        workload: Workload,
        iterations: Range<u64>,
        between: Between<'_>,
    ) -> Result<(), LoopError> {
        // What notes something shares one loop; that of timed iterations calls nothing.
        match between {
            Between::Delay(delay) => serve(self, workload, iterations, &mut || InjectedDelay::wait(&delay)),
            Between::Note(note) => serve(self, workload, iterations, note),
        }
    }

    fn drain(&mut self, iterations: Range<u64>, between: Between<'_>) -> Result<(), LoopError> {
        match between {
            Between::Delay(delay) => {
                self.drain(iterations, &mut Unmetered, &mut || InjectedDelay::wait(&delay))
            }
            Between::Note(note) => self.drain(iterations, &mut Unmetered, note),
        }
    }

    fn send_word(&mut self, next: u64) -> Result<(), LoopError> {
        self.send_word(next)
    }

    fn lost(&self) -> Option<u64> {
        E::LOSES.then_some(self.lost)
    }

    fn calls(&mut self, iterations: Range<u64>, log: &mut CallLog) -> Result<(), LoopError> {
        let next = iterations.end;
        self.drain(iterations, log, &mut nothing)?;
        self.send_word(next)
    }

    fn steps(
        &mut self,
        iterations: Range<u64>,
        session: Session,
        log: &mut StepLog,
    ) -> Result<(), LoopError> {
        self.receive_sessions(iterations, session, log, &mut nothing)
    }
}

fn serve<E: Endpoint, F: FnMut() + ?Sized>(
    endpoint: &mut BufferedEndpoint<E>,
    workload: Workload,
    iterations: Range<u64>,
    between: &mut F,
) -> Result<(), LoopError> {
    match workload {
        Workload::Throughput => {
            let next = iterations.end;
            endpoint.drain(iterations, &mut Unmetered, between)?;
            endpoint.send_word(next)
        }
        Workload::Session(session) => endpoint.receive_sessions(iterations, session, &mut NoTrace, between),
        _ => endpoint.answer(iterations, between),
    }
}

/// What is done between a message and its answer where each call or step is noted.
fn nothing() {}
