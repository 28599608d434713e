//! Server's side where several clients talk to one server: an event loop that serves whoever is ready, one message at a time.
//!
//! Each client announces its parts on a link of its own and at its own time: the links are watched beside the ends, and
//! nothing passes on them while iterations are timed. What one client's messages are is no different from [`crate::server`].

use crate::control::Channel;
use crate::endpoint::{Outcome, Session, text};
use crate::measure::Clock;
use crate::part::{Iterations, Part, PartKind, ServerPart};
use crate::together::CourseLog;
use crate::workload::{Broken, Station, usage_between};
use mechanisms::Endpoint;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, OwnedFd};
use sys::usage::{ThreadUsage, of_this_thread};
use sys::{Errno, Failure, OrFail};

/// Server, with several clients.
pub(crate) struct Hub<'a, E> {
    session: &'a Session,
    clock: Clock,
    clients: Vec<Client<'a, E>>,
    /// Watches every client's link and end.
    epoll: OwnedFd,
}

/// One client, as server sees it.
struct Client<'a, E> {
    link: &'a Channel,
    station: Box<Station<E>>,
    /// The part that it has announced and not had in full.
    part: Option<Under>,
}

/// A part under way.
struct Under {
    iterations: Iterations,
    next: u64,
    before: ThreadUsage,
    usage: Option<model::record::Usage>,
    log: Option<CourseLog>,
}

/// What is ready, as epoll was told to call it.
enum Ready {
    Link(usize),
    End(usize),
}

impl Ready {
    fn data(&self) -> epoll::EventData {
        epoll::EventData::new_u64(match self {
            Ready::Link(at) => 2 * *at as u64,
            Ready::End(at) => 2 * *at as u64 + 1,
        })
    }

    fn of(data: epoll::EventData) -> Self {
        let at = (data.u64() / 2) as usize;
        if data.u64().is_multiple_of(2) { Ready::Link(at) } else { Ready::End(at) }
    }
}

impl<'a, E: Endpoint> Hub<'a, E> {
    /// A server of `session` with the client of each of `links` at the station beside it.
    pub(crate) fn new(
        session: &'a Session,
        links: &'a [Channel],
        stations: Vec<Box<Station<E>>>,
        clock: Clock,
    ) -> Result<Self, Failure> {
        let epoll =
            epoll::create(epoll::CreateFlags::CLOEXEC).or_fail("epoll_create1", "the ends of server")?;
        for (at, (link, station)) in links.iter().zip(&stations).enumerate() {
            let input = station.end.input();
            let input = input.ok_or(Errno::OPNOTSUPP).or_fail("watch", "an end that cannot be waited for")?;
            for (fd, ready) in [(link.as_fd(), Ready::Link(at)), (input, Ready::End(at))] {
                epoll::add(&epoll, fd, ready.data(), epoll::EventFlags::IN)
                    .or_fail("epoll_ctl", "an end of server")?;
            }
        }
        let clients = links.iter().zip(stations).map(|(link, station)| Client { link, station, part: None });
        Ok(Self { session, clock, clients: clients.collect(), epoll })
    }

    /// Serves every client until each has said that there is no further part.
    pub(crate) fn serve(mut self) -> Outcome<()> {
        let mut open = self.clients.len();
        // An end that spins asks the event loop again and again, and never sleeps in it.
        let timeout = self.session.spins().then_some(Timespec { tv_sec: 0, tv_nsec: 0 });
        let mut events = Vec::with_capacity(2 * open);
        while open > 0 {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(text(Failure::of("epoll_wait", "the ends of server", errno))),
            }
            for event in &events {
                match Ready::of(event.data) {
                    Ready::Link(at) => open -= usize::from(!self.begin(at)?),
                    Ready::End(at) => self.message(at)?,
                }
            }
        }
        Ok(())
    }

    /// Takes what the client at `at` announces; says whether there is more to come from it.
    fn begin(&mut self, at: usize) -> Outcome<bool> {
        let client = &mut self.clients[at];
        let (part, _): (Part, _) = client.link.receive().map_err(text)?;
        if part.kind == PartKind::End {
            let mut closed = [Some(client.link.as_fd()), client.station.end.input()].into_iter().flatten();
            closed.try_for_each(|fd| epoll::delete(&self.epoll, fd)).map_err(text)?;
            return Ok(false);
        }
        client.station.check(self.session.check(part.check));
        let noted = part.kind == PartKind::Course && !self.session.workload().is_answered();
        client.part = Some(Under {
            iterations: Iterations::of(part.iterations),
            next: 0,
            before: of_this_thread(),
            usage: None,
            log: noted.then(|| CourseLog::new(self.clock, part.iterations)),
        });
        Ok(true)
    }

    /// One message of the client at `at`, which is ready; one that has announced nothing has to wait until that is seen.
    fn message(&mut self, at: usize) -> Outcome<()> {
        let is_answered = self.session.workload().is_answered();
        let client = &mut self.clients[at];
        let Some(part) = &mut client.part else { return Ok(()) };
        let iteration = part.next;
        let Iterations { lead_in, timed, lead_out } = &part.iterations;
        let ends = [lead_in.end, timed.end, lead_out.end].contains(&(iteration + 1));
        let answer = if is_answered { Some(iteration) } else { ends.then_some(iteration + 1) };
        if iteration + 1 == timed.start {
            part.before = of_this_thread();
        }
        if iteration == lead_out.start {
            part.usage = Some(usage_between(part.before, of_this_thread()));
        }
        if iteration == timed.start
            && let Some(log) = &mut part.log
        {
            log.start();
        }
        client.station.serve(iteration, answer).map_err(|broken: Broken| text(broken))?;
        if timed.contains(&iteration)
            && let Some(log) = &mut part.log
        {
            log.arrived();
        }
        part.next += 1;
        if part.next == lead_out.end {
            let usage = part.usage.unwrap_or_default();
            let course = part.log.take().map(CourseLog::course);
            client.part = None;
            client.link.send(&ServerPart { usage, course, ..ServerPart::default() }, &[]).map_err(text)?;
        }
        Ok(())
    }
}
