//! From messages to requests with answers, or streams: by whether directions alternate between two processes.

use super::messages::Message;
use model::communication::Communication;
use std::collections::BTreeMap;

/// More messages before an answer are no request, but a stream that is acknowledged now and then.
const MOST_MESSAGES: f64 = 8.0;
/// The share of exchanges that must go in order: the answer after the request, the next request after the answer.
const IN_ORDER: f64 = 0.8;

/// What one process says to another, through one object or a pair of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Channel {
    pub(super) from: u32,
    pub(super) to: u32,
    /// An object of it.
    pub(super) object: u32,
    pub(super) talk: Talk,
}

/// What is said.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Talk {
    Exchanges(Vec<Exchange>),
    Stream(Vec<Message>),
}

/// A request and its answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Exchange {
    pub(super) requests: Vec<Message>,
    pub(super) replies: Vec<Message>,
}

impl Exchange {
    pub(super) fn begun_ns(&self) -> u64 {
        self.requests.first().map_or(0, |request| request.begun_ns)
    }

    /// When the server had the request.
    pub(super) fn asked_ns(&self) -> u64 {
        self.requests.iter().map(|request| request.received_ns).max().unwrap_or_default()
    }

    /// When the server began to answer.
    pub(super) fn answered_ns(&self) -> u64 {
        self.replies.first().map_or(0, |reply| reply.begun_ns)
    }

    pub(super) fn ended_ns(&self) -> u64 {
        self.replies.iter().map(|reply| reply.received_ns).max().unwrap_or_default()
    }
}

impl Channel {
    /// When it was first and last in use.
    pub(super) fn span(&self) -> (u64, u64) {
        let ends = |messages: &[Message]| {
            let last = messages.iter().map(|message| message.received_ns).max();
            Some((messages.first()?.begun_ns, last?))
        };
        let found = match &self.talk {
            Talk::Exchanges(all) => {
                let last = all.iter().map(Exchange::ended_ns).max();
                all.first().map(Exchange::begun_ns).zip(last)
            }
            Talk::Stream(all) => ends(all),
        };
        found.unwrap_or_default()
    }
}

/// The channels of `messages`, of which none goes from a process to itself.
pub(super) fn channels(communication: &Communication, messages: Vec<Message>) -> Vec<Channel> {
    let mut by_object: BTreeMap<(u32, [u32; 2]), Vec<Message>> = BTreeMap::new();
    for message in messages {
        let pair = [message.from.min(message.to), message.from.max(message.to)];
        by_object.entry((message.object, pair)).or_default().push(message);
    }
    let mut found = Vec::new();
    // Two objects that go one way each can be a pair.
    let mut one_way: BTreeMap<(&str, [u32; 2]), Vec<Vec<Message>>> = BTreeMap::new();
    for ((object, pair), messages) in by_object {
        let goes_both_ways = messages.iter().any(|message| message.from != messages[0].from);
        if goes_both_ways {
            let described = &communication.objects[object as usize];
            // Who was called is known, or the client is who speaks first.
            let client = described.server_side.and_then(|server| {
                let client = messages.iter().find(|message| message.side != server);
                client.map(|message| message.from)
            });
            let client = client.unwrap_or(messages[0].from);
            match exchanges(&messages, client) {
                Some(exchanges) => found.push(exchanging(exchanges)),
                None => found.extend(streams(messages)),
            }
        } else {
            let mechanism = communication.objects[object as usize].mechanism.as_deref().unwrap_or_default();
            let base = mechanism.split(':').next().unwrap_or_default();
            one_way.entry((base, pair)).or_default().push(messages);
        }
    }
    for groups in one_way.into_values() {
        let mut together: Vec<Message> = groups.iter().flatten().copied().collect();
        together.sort_by_key(|message| message.begun_ns);
        let client = together[0].from;
        let both = together.iter().any(|message| message.from != client);
        match exchanges(&together, client).filter(|_| both) {
            Some(exchanges) => found.push(exchanging(exchanges)),
            None => found.extend(groups.into_iter().flat_map(streams)),
        }
    }
    found
}

fn exchanging(exchanges: Vec<Exchange>) -> Channel {
    let first = exchanges[0].requests[0];
    Channel { from: first.from, to: first.to, object: first.object, talk: Talk::Exchanges(exchanges) }
}

/// `messages` as a stream in each direction in which there are some.
fn streams(messages: Vec<Message>) -> Vec<Channel> {
    let first = messages[0].from;
    let (there, back): (Vec<_>, Vec<_>) = messages.into_iter().partition(|message| message.from == first);
    let stream = |messages: Vec<Message>| {
        let Message { from, to, object, .. } = *messages.first()?;
        Some(Channel { from, to, object, talk: Talk::Stream(messages) })
    };
    [there, back].into_iter().filter_map(stream).collect()
}

/// `messages` as requests of `client` with their answers, if directions alternate so. What was said before the first request and
/// after the last answer belongs to exchanges that were not recorded whole.
fn exchanges(messages: &[Message], client: u32) -> Option<Vec<Exchange>> {
    let mut all: Vec<Exchange> = Vec::new();
    let mut now = Exchange { requests: Vec::new(), replies: Vec::new() };
    for message in messages {
        if message.from == client {
            if !now.replies.is_empty() {
                let next = Exchange { requests: Vec::new(), replies: Vec::new() };
                all.push(std::mem::replace(&mut now, next));
            }
            now.requests.push(*message);
        } else if !now.requests.is_empty() {
            now.replies.push(*message);
        }
    }
    if !now.replies.is_empty() {
        all.push(now);
    }
    let requests: usize = all.iter().map(|exchange| exchange.requests.len()).sum();
    if all.is_empty() || requests as f64 / all.len() as f64 > MOST_MESSAGES {
        return None;
    }
    let answered = all.iter().filter(|exchange| exchange.answered_ns() >= exchange.begun_ns()).count();
    let in_turn = all.windows(2).filter(|two| two[1].begun_ns() >= two[0].ended_ns()).count();
    let enough = |count: usize, of: usize| count as f64 >= IN_ORDER * of as f64;
    (enough(answered, all.len()) && enough(in_turn, all.len() - 1)).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::messages::messages;
    use crate::recording::tests::Script;

    fn found(script: &Script) -> Vec<Channel> {
        channels(&script.communication, messages(&script.communication).all)
    }

    #[test]
    fn directions_that_alternate_are_requests_and_answers() {
        let mut script = Script::default();
        (0..23).for_each(|_| script.exchange(0, 1, 64, 128));
        let [channel] = &found(&script)[..] else { panic!("{:?}", found(&script)) };
        let Talk::Exchanges(exchanges) = &channel.talk else { panic!("{channel:?}") };
        assert_eq!((channel.from, channel.to, exchanges.len()), (0, 1, 23));
    }

    #[test]
    fn who_accepted_is_the_server() {
        let mut script = Script::default();
        script.communication.objects[0].server_side = Some(0);
        script.send(0, (0, 0), 9).receive(1, (0, 1), 9, 0);
        (0..5).for_each(|_| script.exchange_on(0, 1, 0, 64, 128));
        let channels = found(&script);
        assert_eq!((channels[0].from, channels[0].to), (1, 0), "a greeting of the server is no request");
    }

    #[test]
    fn a_pair_of_pipes_is_one_channel() {
        let mut script = Script::default();
        for _ in 0..4 {
            script.send(0, (0, 0), 5).receive(1, (0, 1), 5, 10);
            script.send(1, (1, 0), 6).receive(0, (1, 1), 6, 10);
        }
        let channels = found(&script);
        assert!(
            matches!(&channels[..], [Channel { talk: Talk::Exchanges(all), .. }] if all.len() == 4),
            "{channels:?}"
        );
    }

    #[test]
    fn what_goes_on_in_one_direction_is_a_stream() {
        let mut script = Script::default();
        for _ in 0..40 {
            script.send(0, (0, 0), 5).receive(1, (0, 1), 5, 10);
        }
        script.send(1, (0, 1), 1).receive(0, (0, 0), 1, 0);
        let channels = found(&script);
        assert!(channels.iter().all(|channel| matches!(channel.talk, Talk::Stream(_))), "{channels:?}");
        assert_eq!(channels.len(), 2);
    }
}
