//! From calls to messages: which read took what which write had sent, by the order in which the kernel passes bytes on.

use super::threads::{Before, before};
use model::communication::{Boundaries, Communication, CommunicationCall, CommunicationKind};
use std::collections::{HashMap, HashSet, VecDeque};

/// A message from one process to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    /// Through which object, and from which side.
    pub(super) object: u32,
    pub(super) side: u8,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bytes: u64,
    /// When the sender began to send it.
    pub(super) begun_ns: u64,
    /// When it was received whole.
    pub(super) received_ns: u64,
    /// How many reads it took.
    pub(super) reads: u32,
    /// How much the last of them asked for.
    pub(super) asked: Option<u64>,
    /// On which logical CPUs sending and receiving it ended, where that is known.
    pub(super) cpus: [Option<u32>; 2],
    /// What came before it at the sender, and before it was received at the receiver.
    pub(super) sender: Before,
    pub(super) receiver: Before,
}

impl Message {
    /// Whether it was received on the CPU on which it was sent; `None` where that is not known.
    pub(super) fn is_on_one_cpu(&self) -> Option<bool> {
        let [sent, received] = self.cpus;
        Some(sent? == received?)
    }
}

/// The messages, and what never became one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Messages {
    /// In the order in which they were begun.
    pub(super) all: Vec<Message>,
    /// How many each object has that nobody received. One in each direction may be under way when a recording ends, and is none of them.
    pub(super) unreceived: HashMap<u32, u64>,
}

/// A message on its way.
struct Sent {
    message: Message,
    until_ns: u64,
    left: u64,
}

/// The messages of `communication`.
pub(super) fn messages(communication: &Communication) -> Messages {
    let calls = &communication.calls;
    let before = before(communication);
    // A send counts when it begins, a receive when it ends: one write can take as long as many reads of it.
    let at = |call: &CommunicationCall| match call.kind {
        CommunicationKind::Send => call.from_ns,
        _ => call.until_ns,
    };
    let mut order: Vec<usize> = (0..calls.len()).filter(|index| calls[*index].object.is_some()).collect();
    order.sort_by_key(|index| (at(&calls[*index]), calls[*index].kind == CommunicationKind::Receive));
    let mut queues: Queues = HashMap::new();
    let mut found = Messages::default();
    for index in order {
        found.take(communication, &calls[index], before[index], &mut queues);
    }
    let received: HashSet<(u32, u8)> =
        found.all.iter().map(|message| (message.object, message.side)).collect();
    for ((object, side), queue) in queues {
        let left = queue.len().saturating_sub(usize::from(received.contains(&(object, side))));
        if left > 0 {
            *found.unreceived.entry(object).or_default() += left as u64;
        }
    }
    found.all.sort_by_key(|message| message.begun_ns);
    found
}

/// What was sent and not received yet, by object and the side from which it came.
type Queues = HashMap<(u32, u8), VecDeque<Sent>>;

impl Messages {
    /// Takes the next call, before which `before` happened.
    fn take(
        &mut self,
        communication: &Communication,
        call: &CommunicationCall,
        before: Before,
        queues: &mut Queues,
    ) {
        let (Some((object, side)), Some(bytes)) = (call.object, call.bytes) else { return };
        let Some(of) = communication.objects.get(object as usize) else { return };
        let message = message_of(call, (object, side), bytes);
        match (call.kind, of.outside[usize::from(1 - side.min(1))]) {
            (CommunicationKind::Send, Some(to)) => {
                self.all.push(Message { to, reads: 1, sender: before, ..message });
            }
            (CommunicationKind::Receive, Some(from)) => self.all.push(Message {
                from,
                side: 1 - side,
                begun_ns: call.until_ns,
                reads: 1,
                cpus: [None, call.cpu],
                asked: call.asked,
                receiver: before,
                ..message
            }),
            (CommunicationKind::Send, None) => {
                let message = Message { sender: before, ..message };
                let sent = Sent { message, until_ns: call.until_ns, left: bytes };
                queues.entry((object, side)).or_default().push_back(sent);
            }
            (CommunicationKind::Receive, None) => {
                let queue = queues.entry((object, 1 - side)).or_default();
                let missed = if of.boundaries == Boundaries::None { missed(queue, call, bytes) } else { 0 };
                if missed > 0 {
                    *self.unreceived.entry(object).or_default() += missed;
                }
                receive(queue, call, before, of.boundaries, bytes, &mut self.all);
            }
            (CommunicationKind::Wait, _) => {}
        }
    }
}

/// A message that `call` sends or receives, with what is known by that alone.
fn message_of(call: &CommunicationCall, (object, side): (u32, u8), bytes: u64) -> Message {
    Message {
        object,
        side,
        from: call.process,
        to: call.process,
        bytes,
        begun_ns: call.from_ns,
        received_ns: call.until_ns,
        reads: 0,
        asked: None,
        cpus: [call.cpu, None],
        sender: Before::default(),
        receiver: Before::default(),
    }
}

/// Takes out of `queue` what was received before, unrecorded: who got less than was asked for has got all that was sent before the
/// call, so that of more in the queue the first is not there any more. Without that, each message would be taken for an earlier one
/// from then on. Returns how many messages that were.
fn missed(queue: &mut VecDeque<Sent>, call: &CommunicationCall, bytes: u64) -> u64 {
    if call.asked.is_none_or(|asked| bytes >= asked) {
        return 0;
    }
    let sent_before = queue.iter().take_while(|sent| sent.until_ns < call.from_ns);
    let there: u64 = sent_before.map(|sent| sent.left).sum();
    let mut missing = there.saturating_sub(bytes);
    let mut missed = 0;
    while missing > 0
        && let Some(sent) = queue.front_mut()
    {
        let gone = sent.left.min(missing);
        sent.left -= gone;
        missing -= gone;
        if sent.left == 0 {
            missed += 1;
            queue.pop_front();
        }
    }
    missed
}

/// Takes from `queue` what `call` received.
fn receive(
    queue: &mut VecDeque<Sent>,
    call: &CommunicationCall,
    mut before: Before,
    boundaries: Boundaries,
    mut bytes: u64,
    done: &mut Vec<Message>,
) {
    let take = |sent: &mut Sent, before: Before| {
        let message = &mut sent.message;
        message.to = call.process;
        message.reads += 1;
        message.asked = call.asked;
        message.received_ns = call.until_ns;
        message.cpus[1] = call.cpu;
        message.receiver.work_ns += before.work_ns;
        message.receiver.thought_ns += before.thought_ns;
        message.receiver.waited_ns += before.waited_ns;
        message.receiver.polled_ns += before.polled_ns;
    };
    // Who sleeps in a read found nothing there: what seems to be left of earlier messages was received before, unrecorded.
    while call.asleep_ns > 0
        && queue.front().is_some_and(|sent| sent.message.reads > 0 && sent.until_ns < call.from_ns)
    {
        done.extend(queue.pop_front().map(|sent| sent.message));
    }
    match boundaries {
        Boundaries::Kept => {
            if let Some(mut sent) = queue.pop_front() {
                take(&mut sent, before);
                done.push(sent.message);
            }
        }
        Boundaries::Counted => {
            for mut sent in queue.drain(..) {
                take(&mut sent, std::mem::take(&mut before));
                done.push(sent.message);
            }
        }
        Boundaries::None => {
            let (all_bytes, all_work_ns) = (bytes, before.work_ns);
            let work_until =
                |taken: u64| (u128::from(all_work_ns) * u128::from(taken) / u128::from(all_bytes)) as u64;
            while bytes > 0
                && let Some(sent) = queue.front_mut()
            {
                let taken = sent.left.min(bytes);
                let before_it = all_bytes - bytes;
                sent.left -= taken;
                bytes -= taken;
                // One read can take several messages. It slept before the first of them; work is as much as there are bytes: who
                // packs a file works for all of it, however much it reads at once.
                let work_ns = work_until(before_it + taken) - work_until(before_it);
                take(sent, Before { work_ns, ..std::mem::take(&mut before) });
                if sent.left == 0 {
                    done.extend(queue.pop_front().map(|sent| sent.message));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::Script;

    #[test]
    fn bytes_are_received_in_the_order_in_which_they_were_sent() {
        let mut script = Script::default();
        script.send(0, (0, 0), 10).send(0, (0, 0), 20).receive(1, (0, 1), 15, 0).receive(1, (0, 1), 15, 0);
        let found = messages(&script.communication).all;
        let like: Vec<_> = found.iter().map(|message| (message.bytes, message.reads)).collect();
        assert_eq!(like, [(10, 1), (20, 2)]);
        assert_eq!((found[0].from, found[0].to), (0, 1));
    }

    #[test]
    fn work_for_several_messages_is_spread_by_their_bytes() {
        let mut script = Script::default();
        script.send(0, (0, 0), 10).send(0, (0, 0), 30).receive(1, (0, 1), 20, 0);
        script.work(1, 401).receive(1, (0, 1), 20, 0).work(1, 100).send(0, (0, 0), 10).receive(
            1,
            (0, 1),
            10,
            0,
        );
        let found = messages(&script.communication).all;
        let works: Vec<u64> = found.iter().map(|message| message.receiver.work_ns).collect();
        assert_eq!(works, [0, 401, 100], "the second was read in two parts, the rest of it after the work");
        let mut script = Script::default();
        script.receive(1, (1, 1), 1, 0).work(1, 401).send(0, (0, 0), 10).send(0, (0, 0), 30);
        script.receive(1, (0, 1), 40, 0);
        let found = messages(&script.communication).all;
        let works: Vec<u64> = found.iter().map(|message| message.receiver.work_ns).collect();
        assert_eq!(works, [100, 301], "nothing of it is lost");
    }

    #[test]
    fn a_message_is_on_one_cpu_if_it_ends_where_it_was_sent() {
        let mut script = Script::default();
        script.send(0, (0, 0), 1).receive(1, (0, 1), 1, 0);
        for cpu in [4, 5] {
            script.on(4).send(0, (0, 0), 1).on(cpu).receive(1, (0, 1), 1, 0);
        }
        let found = messages(&script.communication).all;
        let of: Vec<Option<bool>> = found.iter().map(Message::is_on_one_cpu).collect();
        assert_eq!(of, [None, Some(true), Some(false)]);
    }

    #[test]
    fn messages_with_boundaries_are_received_one_by_one() {
        let mut script = Script::default();
        script.communication.objects[0].boundaries = Boundaries::Kept;
        script.send(0, (0, 0), 10).send(0, (0, 0), 20).receive(1, (0, 1), 8, 0).receive(1, (0, 1), 20, 0);
        let found = messages(&script.communication).all;
        assert_eq!(found.iter().map(|message| message.bytes).collect::<Vec<_>>(), [10, 20]);
    }

    #[test]
    fn what_was_there_before_does_not_shift_all_that_follows() {
        let mut script = Script::default();
        // Of the first read, five bytes were sent before the recording.
        script.send(0, (0, 0), 10).receive(1, (0, 1), 5, 0);
        for _ in 0..3 {
            script.send_while_asleep(0, 1, 10);
        }
        let found = messages(&script.communication).all;
        let reads: Vec<u32> = found.iter().map(|message| message.reads).collect();
        assert_eq!(reads, [1, 1, 1, 1], "{found:?}");
    }

    #[test]
    fn who_gets_less_than_was_asked_for_has_got_all_that_was_sent() {
        let mut script = Script::default();
        // The receiver waits in epoll_wait(2), and its first two reads were not recorded.
        script.send(0, (0, 0), 10).send(0, (0, 0), 10);
        for _ in 0..3 {
            script.send(0, (0, 0), 10).wait(1, 50).receive(1, (0, 1), 10, 0).having_asked(4096);
        }
        let found = messages(&script.communication);
        assert_eq!((found.all.len(), found.unreceived[&0]), (3, 2));
        for message in found.all {
            assert_eq!(message.received_ns - message.begun_ns, 350, "{message:?}");
        }
        // Who gets as much as was asked for may have left something.
        let mut script = Script::default();
        script.send(0, (0, 0), 10).send(0, (0, 0), 10).receive(1, (0, 1), 10, 0).receive(1, (0, 1), 10, 0);
        let found = messages(&script.communication);
        assert_eq!((found.all.len(), found.unreceived.len()), (2, 0));
    }

    #[test]
    fn who_is_outside_receives_at_once() {
        let mut script = Script::default();
        script.communication.objects[0].outside = [None, Some(2)];
        script.send(0, (0, 0), 10);
        let found = messages(&script.communication);
        assert_eq!((found.all[0].to, found.all.len(), found.unreceived.len()), (2, 1, 0));
    }

    #[test]
    fn what_is_under_way_at_the_end_is_not_said_to_be_unreceived() {
        let mut script = Script::default();
        script.send(0, (0, 0), 10).receive(1, (0, 1), 10, 0).send(0, (0, 0), 10);
        let found = messages(&script.communication);
        assert_eq!((found.all.len(), found.unreceived.len()), (1, 0));
        script.send(0, (0, 0), 10);
        assert_eq!(messages(&script.communication).unreceived[&0], 1);
    }

    #[test]
    fn what_nobody_received_is_counted() {
        let mut script = Script::default();
        script.send(0, (0, 0), 10).send(0, (0, 0), 10);
        let found = messages(&script.communication);
        assert_eq!((found.all.len(), found.unreceived[&0]), (0, 2));
    }
}
