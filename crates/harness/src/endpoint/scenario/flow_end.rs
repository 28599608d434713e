//! One side of a flow: an endpoint of its mechanism, and memory for messages of any of its sizes. It checks what comes.

use super::draws::{DrawKind, Draws};
use crate::endpoint::loop_error::LoopError;
use crate::endpoint::payload::{Check, make, number_from, verify};
use mechanisms::object::ObjectEndpoint;
use mechanisms::{Arrived, Shape};
use model::scenario::{Flow, Mix};
use model::{Card, Framing, Payload, Session, Size, Workload};
use rustix::fd::BorrowedFd;

/// One side of a flow.
pub(super) struct FlowEnd {
    endpoint: Box<dyn ObjectEndpoint>,
    draws: Draws,
    check: Check,
    /// One call may receive a part of a message.
    comes_in_parts: bool,
    /// How much is asked for at a time.
    read_bytes: Option<usize>,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// What has come of `incoming` and belongs to messages that were not taken yet.
    start: usize,
    end: usize,
}

/// The largest message of `flow`, either way.
pub(super) fn largest(flow: &Flow) -> Size {
    flow.reply.as_ref().map_or(flow.size.largest(), |reply| flow.size.largest().max(reply.largest()))
}

/// What `flow` has its mechanism carry.
pub(super) fn shape(flow: &Flow) -> Shape {
    let workload = match flow {
        Flow { fds: 1.., reply: Some(_), .. } => {
            Workload::Session(Session { messages: flow.messages, fds: flow.fds })
        }
        Flow { reply: None, .. } | Flow { messages: 2.., .. } => Workload::Throughput,
        _ => Workload::Latency,
    };
    Shape { size_bytes: largest(flow).as_usize().max(1), workload }
}

impl FlowEnd {
    pub(super) fn new(endpoint: Box<dyn ObjectEndpoint>, flow: &Flow, card: &Card, draws: Draws) -> Self {
        let room = largest(flow).as_usize().max(8);
        // A token is as long as was asked for.
        let comes_in_parts = card.framing != Framing::Message;
        // What is read beyond a message would hide an empty one.
        let read_bytes =
            flow.read.filter(|_| card.framing == Framing::Stream && !card.empty).map(Size::as_usize);
        Self {
            endpoint,
            draws,
            check: if card.payload == Payload::Bytes { Check::Sequence } else { Check::Nothing },
            comes_in_parts,
            read_bytes,
            outgoing: vec![0xa5; room],
            // Room for a message, of which the last part is read with as much of the next as a read takes.
            incoming: vec![0xa5; room + read_bytes.unwrap_or(0)],
            start: 0,
            end: 0,
        }
    }

    /// What poll(2) finds readable when something has come.
    pub(super) fn input(&self) -> Option<BorrowedFd<'_>> {
        self.endpoint.input()
    }

    /// Whether something has come already, so that there is nothing to wait for.
    pub(super) fn has_more(&self) -> bool {
        self.start < self.end
    }

    /// Sends the message `number`, of a size that is drawn from `sizes`. Returns its size.
    pub(super) fn send(
        &mut self,
        number: u64,
        (sizes, what): (&Mix<Size>, DrawKind),
        mut fds: &[BorrowedFd<'_>],
    ) -> Result<u64, LoopError> {
        let size = self.draws.value(sizes, what, number).as_usize();
        make(&mut self.outgoing[..size], 0, number, self.check, false);
        let mut sent = 0;
        loop {
            let bytes = self.endpoint.send(&self.outgoing[sent..size], fds);
            sent += bytes.map_err(|errno| LoopError::Call { name: "send", errno })?;
            if sent >= size {
                return Ok(size as u64);
            }
            // In a stream the descriptors go with the first bytes.
            fds = &[];
        }
    }

    /// Receives the message `number`, of a size that is drawn from `sizes`, with so many descriptors. Says `has_part` of what
    /// has come of it, before it waits for the rest: the number of the message, and what share of it the part is. Returns its number,
    /// which is a later one where messages were lost, and its size.
    pub(super) fn receive(
        &mut self,
        number: u64,
        (sizes, what): (&Mix<Size>, DrawKind),
        fds: u32,
        mut has_part: impl FnMut(u64, f64),
    ) -> Result<(u64, u64), LoopError> {
        let (number, size, came) = if self.comes_in_parts {
            let size = self.draws.value(sizes, what, number).as_usize();
            (number, size, self.receive_bytes(size, fds > 0, |share| has_part(number, share))?)
        } else {
            let Arrived { bytes, fds: came } = self.part(0, self.incoming.len(), fds > 0)?;
            let number = match self.endpoint.loses() {
                true => self.number_of_any(number, (sizes, what), bytes),
                false => number,
            };
            let size = self.draws.value(sizes, what, number).as_usize();
            if bytes != size && self.check != Check::Nothing {
                return Err(LoopError::Payload { iteration: number, at: bytes.min(size) });
            }
            (self.start, self.end) = (0, 0);
            has_part(number, 1.0);
            (number, size, came)
        };
        if came != fds as usize {
            return Err(LoopError::Descriptors { iteration: number, came });
        }
        verify(&self.incoming[self.start..self.start + size], 0, number, self.check, false)?;
        if self.comes_in_parts {
            self.start += size;
        }
        Ok((number, size as u64))
    }

    /// The number of the message of so many bytes that has come, where those from `least` on may have been lost. A message of few
    /// bytes carries a part of its number, so that after hundreds of lost ones its size has to say the rest.
    fn number_of_any(&self, least: u64, (sizes, what): (&Mix<Size>, DrawKind), bytes: usize) -> u64 {
        /// With more tries a size that is wrong would take long to be found so.
        const TRIES: u64 = 1000;
        let first = number_from(&self.incoming[..bytes], least);
        let period = if bytes < 8 { 1 << (8 * bytes) } else { 0 };
        let mut candidates = (0..TRIES).map(|nth| first.wrapping_add(nth * period));
        candidates.find(|number| self.draws.value(sizes, what, *number).as_usize() == bytes).unwrap_or(first)
    }

    /// Receives until there are `size` bytes, and says `has_part` before each read and at the end which share of them has come since.
    /// Returns how many descriptors came.
    fn receive_bytes(
        &mut self,
        size: usize,
        with_fds: bool,
        mut has_part: impl FnMut(f64),
    ) -> Result<usize, LoopError> {
        let mut came = 0;
        self.incoming.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let mut had = 0;
        let mut is_due = size == 0 || self.end < size;
        while is_due {
            if self.end > had {
                has_part((self.end - had) as f64 / size as f64);
                had = self.end;
            }
            let rest = size.saturating_sub(self.end).max(1);
            let most = self.read_bytes.unwrap_or(rest);
            let Arrived { bytes, fds } = self.part(self.end, self.end + most, with_fds)?;
            self.end += bytes;
            came += fds;
            is_due = self.end < size;
        }
        has_part(if size == 0 { 1.0 } else { (size - had) as f64 / size as f64 });
        Ok(came)
    }

    fn part(&mut self, from: usize, to: usize, with_fds: bool) -> Result<Arrived, LoopError> {
        let arrived = self.endpoint.receive(&mut self.incoming[from..to], with_fds);
        arrived.map_err(|errno| LoopError::Call { name: "receive", errno })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mechanisms::registry::{CARDS, card};
    use model::Scenario;
    use model::record::Setting;
    use std::cell::RefCell;
    use std::rc::Rc;
    use sys::Errno;

    /// An endpoint that gives so many bytes of the first message at a time.
    struct Gives {
        bytes: Vec<u8>,
        given: usize,
        at_a_time: usize,
        loses: bool,
        seen: Rc<RefCell<Vec<String>>>,
    }

    impl ObjectEndpoint for Gives {
        fn send(&mut self, bytes: &[u8], _: &[BorrowedFd<'_>]) -> Result<usize, Errno> {
            Ok(bytes.len())
        }

        fn receive(&mut self, into: &mut [u8], _: bool) -> Result<Arrived, Errno> {
            let bytes = into.len().min(self.at_a_time).min(self.bytes.len() - self.given);
            into[..bytes].copy_from_slice(&self.bytes[self.given..self.given + bytes]);
            self.given += bytes;
            self.seen.borrow_mut().push("read".to_owned());
            Ok(Arrived { bytes, fds: 0 })
        }

        fn settings(&self) -> Vec<Setting> {
            Vec::new()
        }

        fn input(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        fn loses(&self) -> bool {
            self.loses
        }
    }

    #[test]
    fn what_has_come_of_a_message_is_said_before_the_rest_is_waited_for() {
        let text = "name = \"n\"\n[[process]]\nname = \"a\"\n[[process]]\nname = \"b\"\n[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n\
                    mechanism = \"pipe:capacity=4K\"\nsize = \"10K\"\nread = \"32K\"\n";
        let flow = &Scenario::parse(text, CARDS).unwrap().flows[0];
        let mut bytes = vec![0xa5; 10_240];
        make(&mut bytes, 0, 0, Check::Sequence, false);
        let seen = Rc::<RefCell<Vec<String>>>::default();
        let pages = Gives { bytes, given: 0, at_a_time: 4096, loses: false, seen: seen.clone() };
        let mut end = FlowEnd::new(Box::new(pages), flow, card("pipe").unwrap(), Draws::of_flow(1, 0));
        let says = |number, share: f64| seen.borrow_mut().push(format!("{:.0}% of {number}", 100.0 * share));
        let came = end.receive(0, (&flow.size, DrawKind::Size), 0, says).unwrap();
        assert_eq!(came, (0, 10_240));
        assert_eq!(*seen.borrow(), ["read", "40% of 0", "read", "40% of 0", "read", "20% of 0"]);
    }

    #[test]
    fn a_short_message_is_known_though_hundreds_before_it_were_lost() {
        let text = "name = \"n\"\n[[process]]\nname = \"a\"\n[[process]]\nname = \"b\"\n[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n\
                    mechanism = \"udp\"\nsize = \"1:50%, 5000:50%\"\nrate = \"2k\"\n";
        let flow = &Scenario::parse(text, CARDS).unwrap().flows[0];
        for number in 300..600 {
            let draws = Draws::of_flow(1, 0);
            let size = draws.value(&flow.size, DrawKind::Size, number).as_usize();
            let mut bytes = vec![0xa5; size];
            make(&mut bytes, 0, number, Check::Sequence, false);
            let datagram = Gives { bytes, given: 0, at_a_time: usize::MAX, loses: true, seen: Rc::default() };
            let mut end = FlowEnd::new(Box::new(datagram), flow, card("udp").unwrap(), draws);
            let (found, came) = end.receive(0, (&flow.size, DrawKind::Size), 0, |_, _| {}).unwrap();
            // What two messages have in common cannot tell which of them it is.
            assert!(
                came == size as u64 && found <= number && (number - found) % 256 == 0,
                "{number}: {found}"
            );
        }
    }
}
