//! The messages of streams in a run: their parts on the way, reads that take several, and who waits for room.

use super::{Run, whole, work};
use crate::predict::case_costs::FlowEnd;
use crate::predict::flow_costs::{EndCost, Ends};
use crate::predict::simulation::events::Event;
use crate::predict::simulation::process::{Arrived, Step, ThreadState};

/// A sender that waits for room is woken when there are so many bytes of it, or as many as the stream holds: a page (pipe(7)).
const LEAST_ROOM_BYTES: u64 = 4096;

impl Run<'_> {
    /// What it costs process `at` to read the part of a stream that it takes: a call reads as much as its receiver asks for and is
    /// there, also of messages behind, which then cost no further call, and makes as much room.
    pub(super) fn read_cost(&mut self, at: usize, part: &Arrived, slept: bool) -> EndCost {
        let (costs, flow) = (&self.setup.costs[part.flow], &self.scenario.flows[part.flow]);
        let ends = Ends::of(part.is_together);
        let read_bytes = flow.read.map_or(part.whole_bytes, |read| read.0).max(1);
        let reads = part.whole_bytes.div_ceil(read_bytes).max(1) as f64;
        let bytes = part.whole_bytes.min(read_bytes) as f64;
        let copied = costs.streamed(FlowEnd::To, bytes, ends).times(reads * part.share());
        let known_bytes = self.channels[part.flow].read_ahead_bytes;
        if part.bytes > 0 && known_bytes >= part.bytes {
            self.channels[part.flow].read_ahead_bytes -= part.bytes;
            return copied;
        }
        let missing_bytes = part.bytes - known_bytes;
        let behind = self.processes[at].inbox.iter().filter(|other| other.flow == part.flow);
        let there_bytes = missing_bytes + behind.map(|other| other.bytes).sum::<u64>();
        let got_bytes = read_bytes.min(there_bytes).max(missing_bytes);
        let more_calls = missing_bytes.div_ceil(read_bytes).saturating_sub(1) as f64;
        self.channels[part.flow].read_ahead_bytes = got_bytes - missing_bytes;
        let wakes = self.make_room(part.flow, got_bytes);
        copied
            .and(costs.around_call(FlowEnd::To, ends, slept, wakes))
            .and(costs.around_call(FlowEnd::To, ends, false, false).times(more_calls))
    }

    /// Takes `bytes` out of a stream: a sender that waits goes on if that is room enough. Whether one does.
    fn make_room(&mut self, flow: usize, bytes: u64) -> bool {
        let (channel, capacity_bytes) = (&mut self.channels[flow], self.setup.costs[flow].capacity_bytes);
        channel.held_bytes = channel.held_bytes.saturating_sub(bytes);
        let room_bytes = capacity_bytes.saturating_sub(channel.held_bytes);
        let is_enough = room_bytes >= LEAST_ROOM_BYTES.min(capacity_bytes);
        let Some(activity) = channel.blocked.take_if(|_| is_enough) else { return false };
        let from = self.scenario.flows[flow].from;
        self.processes[from].go_on(activity);
        let cost = self.message_wake(flow, FlowEnd::From, 0, self.processes[from].cpu);
        self.wake(from, None, cost);
        true
    }

    /// Sends as much of a message of a stream as that holds, which waits while there is no room.
    pub(super) fn send_part(
        &mut self,
        at: usize,
        activity: usize,
        flow: usize,
        left_bytes: u64,
        whole_bytes: u64,
    ) {
        let costs = &self.setup.costs[flow];
        let channel = &mut self.channels[flow];
        let room_bytes = costs.capacity_bytes.max(1).saturating_sub(channel.held_bytes);
        let bytes = left_bytes.min(room_bytes);
        if room_bytes == 0 {
            channel.blocked = Some(activity);
            self.push(at, activity, [Step::SendPart { flow, left_bytes, whole_bytes }]);
            self.processes[at].current = None;
            return;
        }
        let left_bytes = left_bytes - bytes;
        let to = self.scenario.flows[flow].to;
        let wakes = self.processes[to].state == ThreadState::Asleep;
        let (cpu, ends) = self.receiver_place(at, to, flow);
        let is_together = ends == Ends::Together;
        let part =
            Arrived { flow, bytes, whole_bytes, is_together, answer_to: None, is_whole: left_bytes == 0 };
        let slept = std::mem::take(&mut self.processes[at].slept);
        let cost = costs.streamed(FlowEnd::From, whole_bytes as f64, ends).times(part.share());
        let cost = cost.and(costs.around_call(FlowEnd::From, ends, slept, wakes));
        self.processes[at].switches += cost.switches;
        self.push(at, activity, [Step::PartSent { part, cpu, left_bytes }, work(cost)]);
    }

    /// The part of a message is with the kernel. It comes no sooner than the stream is fast.
    pub(super) fn part_sent(&mut self, part: Arrived, cpu: usize) {
        let sleeps = self.processes[self.scenario.flows[part.flow].to].state == ThreadState::Asleep;
        let pace_ns = match part.is_together {
            true => 0.0,
            false => part.share() * self.setup.costs[part.flow].pace_ns(part.whole_bytes as f64, sleeps),
        };
        let channel = &mut self.channels[part.flow];
        channel.held_bytes += part.bytes;
        channel.last_arrival_ns = self.now_ns.max(channel.last_arrival_ns + whole(pace_ns));
        let arrival_ns = channel.last_arrival_ns;
        if arrival_ns > self.now_ns {
            channel.travelling.push_back(part);
            self.events.add(arrival_ns, Event::Arrives(part.flow));
        } else {
            let to = self.scenario.flows[part.flow].to;
            self.processes[to].inbox.push_back(part);
            let cost = self.message_wake(part.flow, FlowEnd::To, 0, cpu);
            self.wake(to, Some(cpu), cost);
        }
    }
}
