//! Trials of an endpoint whose peer is played here: what goes wrong is found where it begins, and told to whom it concerns.

use super::peer::{Mistake, Part, RawPeer};
use super::subject::{Heard, Subject};
use super::tested::{Finding, LARGE, SIZE, Tested, text};
use super::window::{Notes, timed};
use crate::coordinator::driver::{descriptors, numbers};
use crate::endpoint::payload::answer_bytes;
use crate::protocol::led::{EACH, FromLed, LedDone, LedOrders, LedPhase, Stretch, ToLed};
use crate::protocol::orders::NetworkOrders;
use model::{EndpointRole, HostAddress, Params, Workload};
use std::net::Ipv4Addr;
use std::time::Duration;

/// How long the peer waits within a timed stretch, and within others: much longer than it takes to be woken.
const PAUSE: Duration = Duration::from_millis(100);
/// How many large messages no buffer between two endpoints holds, and one.
const IN_NO_BUFFER: u64 = 65;

/// A trial over a stream, of which the peer is played.
#[derive(Debug, Clone, Copy)]
pub(super) struct Play {
    pub(super) stream: &'static str,
    /// That of the endpoint.
    pub(super) role: EndpointRole,
    pub(super) workload: Workload,
    pub(super) size_bytes: u64,
    /// Whether somebody else connects first, and shows another token or none.
    pub(super) strangers: bool,
    pub(super) mistake: Option<Mistake>,
    /// Whether the peer waits here and there, and holds what the endpoint says of its time against that.
    pub(super) is_timed: bool,
}

impl Play {
    /// One in which nothing is wrong.
    pub(super) fn new(stream: &'static str, role: EndpointRole, workload: Workload) -> Self {
        // A stream is timed by what no buffer holds.
        let size_bytes = if workload == Workload::Throughput { LARGE.0 } else { SIZE.0 };
        Self { stream, role, workload, size_bytes, strangers: false, mistake: None, is_timed: true }
    }

    /// Makes the trial, and finds what is wrong in it.
    pub(super) fn check(self, tested: &Tested<'_>) -> Finding {
        let (mut subject, mut peer) = self.connected(tested)?;
        if let Some(mistake) = self.mistake {
            return self.misled(subject, peer, mistake);
        }
        let first = self.phase(tested, &subject, &mut peer, true);
        first.map_err(|why| {
            if self.strangers {
                format!("it took a connection that showed a wrong token, or none: {why}")
            } else {
                why
            }
        })?;
        self.phase(tested, &subject, &mut peer, false).map_err(|why| match subject.has_ended() {
            true if !why.contains("it says that it failed") => {
                format!(
                    "it ended after its first phase, and should wait for the next one, or for goodbye: {why}"
                )
            }
            _ => why,
        })?;
        subject.say(&ToLed::Goodbye)?;
        subject.expect_end("goodbye")
    }

    /// The endpoint and its peer, when they are connected.
    fn connected<'a>(self, tested: &Tested<'a>) -> Result<(Subject<'a>, RawPeer), String> {
        let token = rand::random();
        let (mut peer, fds) = RawPeer::new(self.stream)?;
        let orders = LedOrders {
            workload: self.workload,
            size_bytes: self.size_bytes,
            ..orders(tested, self.stream, self.role, fds.len(), token)
        };
        let has_ticket = fds.is_empty();
        let subject = Subject::greeted(tested, self.role, fds)?;
        subject.say(&ToLed::Orders(Box::new(orders)))?;
        match self.role {
            EndpointRole::Server if has_ticket => {
                peer.connect(&ticket_of(&subject)?, token, self.strangers)?;
            }
            EndpointRole::Client if has_ticket => {
                subject.say(&ToLed::Ticket(peer.listen()?))?;
                peer.accept(token).map_err(|why| subject.with_own_words(why))?;
            }
            _ => {}
        }
        subject.expect("connected", |message| *message == FromLed::Connected)?;
        Ok((subject, peer))
    }

    /// A phase in which everything is checked, or one in which the peer knows how long the timed stretch takes.
    fn phase(self, tested: &Tested<'_>, subject: &Subject<'_>, peer: &mut RawPeer, check: bool) -> Finding {
        let has_each = tested.driver.hello.capabilities.iter().any(|name| name == EACH);
        let is_asked = self.role == EndpointRole::Client && self.workload != Workload::Throughput;
        let stretches = self.stretches(check);
        let phase = LedPhase { check, each: self.is_timed && !check && has_each && is_asked, stretches };
        self.begin(subject, &phase)?;
        let notes = peer.play(&self.part(&phase)).map_err(|why| {
            let why = subject.with_own_words(why);
            match self.size_bytes > SIZE.0 {
                true => format!("{why} (messages of {} bytes may come in parts)", self.size_bytes),
                false => why,
            }
        })?;
        let said = subject.expect("done", |message| matches!(message, FromLed::Done(_)))?;
        let FromLed::Done(done) = said else { return Ok(()) };
        if let Some(why) = done.impossible_time() {
            return Err(why);
        }
        if self.is_timed
            && !check
            && let Some(window) = notes.window(&phase)
        {
            window.holds(&done)?;
        }
        if phase.each { holds_each(&done, &phase, &notes) } else { Ok(()) }
    }

    /// Tells the endpoint of `phase`. The peer may begin when this returns.
    fn begin(self, subject: &Subject<'_>, phase: &LedPhase) -> Finding {
        subject.say(&ToLed::Phase(phase.clone()))?;
        if self.role == EndpointRole::Server {
            subject.expect("ready", |message| *message == FromLed::Ready)?;
        }
        Ok(())
    }

    /// The peer's part of `phase`.
    fn part(self, phase: &LedPhase) -> Part<'_> {
        let size_bytes = self.size_bytes as usize;
        let is_answered = self.workload != Workload::Throughput;
        Part {
            role: if self.role == EndpointRole::Client { EndpointRole::Server } else { EndpointRole::Client },
            size_bytes,
            answer_bytes: is_answered.then(|| answer_bytes(self.workload, size_bytes)),
            phase,
            mistake: self.mistake,
            pause: (self.is_timed && !phase.check).then_some(PAUSE),
        }
    }

    /// The stretches of a phase: the timed one has others before and after it. Large messages are few where every byte of them is made.
    fn stretches(self, check: bool) -> Vec<Stretch> {
        let stretch = |messages, timed, acknowledged| Stretch { messages, timed, acknowledged };
        let few = if check && self.size_bytes == LARGE.0 { 1 } else { 5 };
        if self.workload != Workload::Throughput {
            return vec![stretch(few, false, false), stretch(few * 4, true, false), stretch(2, false, false)];
        }
        let timed = if check { 2 } else { IN_NO_BUFFER };
        [(1, false, true), (few, false, false), (timed, true, false), (few, false, true), (2, false, false)]
            .map(|(messages, timed, acknowledged)| stretch(messages, timed, acknowledged))
            .to_vec()
    }

    /// A phase in which the peer makes `mistake`, which the endpoint notices.
    fn misled(self, subject: Subject<'_>, mut peer: RawPeer, mistake: Mistake) -> Finding {
        const MESSAGES: u64 = 20;
        let is_late = mistake == Mistake::Acknowledgement;
        let stretch = |messages, timed, acknowledged| Stretch { messages, timed, acknowledged };
        let stretches = vec![stretch(MESSAGES - 1, true, false), stretch(1, false, is_late)];
        let check = !matches!(mistake, Mistake::Number | Mistake::Acknowledgement);
        let phase = LedPhase { check, each: false, stretches };
        self.begin(&subject, &phase)?;
        // It may close at any point, and then there is nothing to send to.
        let _ = peer.play(&self.part(&phase));
        if is_late {
            if let Heard::Said(FromLed::Done(_)) = subject.hear(PAUSE)? {
                let last = MESSAGES - 1;
                return Err(format!(
                    "it says that the phase is done, and should wait for the acknowledgement after message {last}"
                ));
            }
            let _ = peer.acknowledge_wrongly(MESSAGES);
        }
        drop(peer);
        // Who finds its peer gone while it sends may have no word for it.
        subject.expect_failure(&mistake.words(self.size_bytes as usize), mistake != Mistake::Death)
    }
}

/// What the server's ticket is.
pub(super) fn ticket_of(subject: &Subject<'_>) -> Result<Vec<u8>, String> {
    match subject.expect("ticket", |message| matches!(message, FromLed::Ticket(_)))? {
        FromLed::Ticket(ticket) => Ok(ticket),
        other => Err(format!("it says {}, and should say its ticket", other.as_said())),
    }
}

/// Orders for a trial of `mechanism`, in which nothing but the mechanism's own ways is left open.
pub(super) fn orders(
    tested: &Tested<'_>,
    mechanism: &str,
    role: EndpointRole,
    descriptors: usize,
    token: [u8; 16],
) -> LedOrders {
    let server = HostAddress::Ip(Ipv4Addr::LOCALHOST.into());
    LedOrders {
        role,
        mechanism: mechanism.to_owned(),
        parameters: Params::default(),
        workload: tested.workload_of(mechanism),
        size_bytes: SIZE.0,
        descriptors: numbers(descriptors),
        directory: tested.directory.path().to_owned(),
        number: tested.next_number(),
        network: (mechanism == "tcp").then_some(NetworkOrders { server, token }),
    }
}

/// Whether the times of single messages can be those of `phase`, in which the peer waited before it answered one.
fn holds_each(done: &LedDone, phase: &LedPhase, notes: &Notes) -> Finding {
    let (count, due) = (done.each_ns.len(), timed(phase).count());
    if count != due {
        return Err(format!("each_ns has {count} times, and should have {due}, one for each timed message"));
    }
    let longest_ns = done.each_ns.iter().copied().max().unwrap_or_default();
    match notes.longest_ns(phase) {
        Some(waited_ns) if (longest_ns as f64) < waited_ns * 0.99 => Err(format!(
            "the longest time of each_ns is {longest_ns}, and an answer came after {waited_ns:.0} ns: are they in ns?"
        )),
        _ => Ok(()),
    }
}

/// Whether a trial of an endpoint with itself ends when nothing is left to do; for one that has no stream.
pub(super) fn ends_with_itself(tested: &Tested<'_>) -> Finding {
    let Some(offered) = tested.driver.hello.mechanisms.first() else {
        return Err("its hello has no mechanisms".to_owned());
    };
    let name = offered.name.as_str();
    let [of_client, of_server] = descriptors(name).map_err(text)?.unwrap_or_default();
    let count = of_client.len();
    let mut server = Subject::greeted(tested, EndpointRole::Server, of_server)?;
    let mut client = Subject::greeted(tested, EndpointRole::Client, of_client)?;
    let (token, number) = (rand::random(), tested.next_number());
    for (subject, role) in [(&server, EndpointRole::Server), (&client, EndpointRole::Client)] {
        let orders = LedOrders { number, ..orders(tested, name, role, count, token) };
        subject.say(&ToLed::Orders(Box::new(orders)))?;
    }
    if count == 0 {
        client.say(&ToLed::Ticket(ticket_of(&server)?))?;
    }
    for subject in [&client, &server] {
        subject.expect("connected", |message| *message == FromLed::Connected)?;
    }
    for subject in [&client, &server] {
        subject.say(&ToLed::Goodbye)?;
    }
    client.expect_end("goodbye")?;
    server.expect_end("goodbye")
}
