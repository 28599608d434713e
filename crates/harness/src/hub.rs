//! Far's side where several nears talk to one far: an event loop that serves whoever is ready, one message at a time.
//!
//! Each near announces its parts on a link of its own and at its own time: the links are watched beside the ends, and
//! nothing passes on them while turns are timed. What one near's messages are is no different from [`crate::far`].

use crate::control::Channel;
use crate::endpoint::{Outcome, Session, text};
use crate::measure::Clock;
use crate::part::{FarPart, Part, PartKind, Turns};
use crate::together::CourseLog;
use crate::workload::{Broken, Station, usage_between};
use mechanisms::Endpoint;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, OwnedFd};
use sys::usage::{ThreadUsage, of_this_thread};
use sys::{Errno, Failure, OrFail};

/// Far, with several nears.
pub(crate) struct Hub<'a, E> {
    session: &'a Session,
    clock: Clock,
    nears: Vec<Near<'a, E>>,
    /// Watches every near's link and end.
    epoll: OwnedFd,
}

/// One near, as far sees it.
struct Near<'a, E> {
    link: &'a Channel,
    station: Box<Station<E>>,
    /// The part that it has announced and not had in full.
    part: Option<Under>,
}

/// A part under way.
struct Under {
    turns: Turns,
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
    /// A far of `session` with the near of each of `links` at the station beside it.
    pub(crate) fn new(
        session: &'a Session,
        links: &'a [Channel],
        stations: Vec<Box<Station<E>>>,
        clock: Clock,
    ) -> Result<Self, Failure> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).or_fail("epoll_create1", "the ends of far")?;
        for (at, (link, station)) in links.iter().zip(&stations).enumerate() {
            let input = station.end.input();
            let input = input.ok_or(Errno::OPNOTSUPP).or_fail("watch", "an end that cannot be waited for")?;
            for (fd, ready) in [(link.as_fd(), Ready::Link(at)), (input, Ready::End(at))] {
                epoll::add(&epoll, fd, ready.data(), epoll::EventFlags::IN)
                    .or_fail("epoll_ctl", "an end of far")?;
            }
        }
        let nears = links.iter().zip(stations).map(|(link, station)| Near { link, station, part: None });
        Ok(Self { session, clock, nears: nears.collect(), epoll })
    }

    /// Serves every near until each has said that there is no further part.
    pub(crate) fn serve(mut self) -> Outcome<()> {
        let mut open = self.nears.len();
        // An end that spins asks the event loop again and again, and never sleeps in it.
        let patience = self.session.spins().then_some(Timespec { tv_sec: 0, tv_nsec: 0 });
        let mut events = Vec::with_capacity(2 * open);
        while open > 0 {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), patience.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(text(Failure::of("epoll_wait", "the ends of far", errno))),
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

    /// Takes what the near at `at` announces; says whether there is more to come from it.
    fn begin(&mut self, at: usize) -> Outcome<bool> {
        let near = &mut self.nears[at];
        let (part, _): (Part, _) = near.link.receive().map_err(text)?;
        if part.kind == PartKind::End {
            let mut closed = [Some(near.link.as_fd()), near.station.end.input()].into_iter().flatten();
            closed.try_for_each(|fd| epoll::delete(&self.epoll, fd)).map_err(text)?;
            return Ok(false);
        }
        near.station.check(self.session.check(part.check));
        let noted = part.kind == PartKind::Course && !self.session.workload().is_answered();
        near.part = Some(Under {
            turns: Turns::of(part.turns),
            next: 0,
            before: of_this_thread(),
            usage: None,
            log: noted.then(|| CourseLog::new(self.clock, part.turns)),
        });
        Ok(true)
    }

    /// One message of the near at `at`, which is ready; one that has announced nothing has to wait until that is seen.
    fn message(&mut self, at: usize) -> Outcome<()> {
        let is_answered = self.session.workload().is_answered();
        let near = &mut self.nears[at];
        let Some(part) = &mut near.part else { return Ok(()) };
        let turn = part.next;
        let Turns { lead_in, timed, lead_out } = &part.turns;
        let ends = [lead_in.end, timed.end, lead_out.end].contains(&(turn + 1));
        let answer = if is_answered { Some(turn) } else { ends.then_some(turn + 1) };
        if turn + 1 == timed.start {
            part.before = of_this_thread();
        }
        if turn == lead_out.start {
            part.usage = Some(usage_between(part.before, of_this_thread()));
        }
        if turn == timed.start
            && let Some(log) = &mut part.log
        {
            log.start();
        }
        near.station.serve(turn, answer).map_err(|broken: Broken| text(broken))?;
        if timed.contains(&turn)
            && let Some(log) = &mut part.log
        {
            log.arrived();
        }
        part.next += 1;
        if part.next == lead_out.end {
            let usage = part.usage.unwrap_or_default();
            let course = part.log.take().map(CourseLog::course);
            near.part = None;
            near.link.send(&FarPart { usage, course, ..FarPart::default() }, &[]).map_err(text)?;
        }
        Ok(())
    }
}
