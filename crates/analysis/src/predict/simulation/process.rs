//! A process while it is simulated: what it is at, what it waits for, and what came for it.
//!
//! It is one thread that does one step after another. Each flow that it begins is an activity, and so is each request that it
//! received: an activity that waits for an answer or for its time lets others go on, except that a process that is at a request
//! takes no other before it has answered, unless it serves several at once (`serves`).

use crate::predict::flow_costs::EndCost;
use std::collections::VecDeque;

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadState {
    /// It waits for something.
    Asleep,
    /// It waits for a CPU, or will begin on one that it has.
    Ready,
    /// It has a CPU.
    Running,
}

/// One step of an activity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Step {
    /// Sleep until then.
    Sleep { until_ns: u64 },
    /// Sleep for so long.
    Pause { ns: u64 },
    /// Use the CPU; what is charged may differ from what it takes.
    Work { path_ns: u64, cpu_ns: f64 },
    /// Choose what is begun next, and when.
    NextRoot,
    /// Begin a request or a message of a flow.
    Begin { flow: usize },
    /// Begin so many of a flow that is after another.
    Cause { flow: usize, left: u64 },
    /// Send a message; so many follow that belong to the same request.
    Send { flow: usize, left: u32 },
    /// The message is sent.
    Sent { flow: usize, bytes: u64, is_together: bool, cpu: usize, left: u32 },
    /// Send the next part of a message of a stream, as much as the stream holds.
    SendPart { flow: usize, left_bytes: u64, whole_bytes: u64 },
    /// The part is sent; so much of the message is left.
    PartSent { part: Arrived, cpu: usize, left_bytes: u64 },
    /// The answer of a request was received.
    Answered { flow: usize },
    /// Answer a request of an activity of its sender.
    Answer { flow: usize, to: usize },
    /// The answer is sent, to the request of an activity of its sender that this process worked for so long for.
    AnswerSent { flow: usize, bytes: u64, is_together: bool, cpu: usize, to: usize, work_ns: u64 },
    /// The request is dealt with.
    Done,
}

/// Something that a process does step by step; the last step is the next.
#[derive(Debug)]
pub(super) struct Activity {
    pub(super) steps: Vec<Step>,
    /// Whether it deals with a message that was received.
    pub(super) serves: bool,
    /// When its last request began, or when it had received the request that it deals with.
    pub(super) began_ns: u64,
    /// The flows that it begins in turn, and which is next.
    pub(super) roots: Vec<usize>,
    pub(super) next_root: usize,
}

/// A message that waits for its receiver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Arrived {
    pub(super) flow: usize,
    pub(super) bytes: u64,
    /// The bytes of the message of which it is a part, or which it is.
    pub(super) whole_bytes: u64,
    pub(super) is_together: bool,
    /// The activity of the sender that waits for the answer.
    pub(super) answer_to: Option<usize>,
    /// Whether other flows follow from it, which is not so of the first messages of a request, or the first parts of one.
    pub(super) is_whole: bool,
}

impl Arrived {
    /// Which share of its message it is.
    pub(super) fn share(&self) -> f64 {
        if self.whole_bytes == 0 { 1.0 } else { self.bytes as f64 / self.whole_bytes as f64 }
    }
}

/// A process.
#[derive(Debug)]
pub(super) struct SimulatedProcess {
    pub(super) state: ThreadState,
    pub(super) cpu: usize,
    /// What is left of the step that uses the CPU.
    pub(super) left_ns: u64,
    /// How much of that the next event ends.
    pub(super) slice_ns: u64,
    /// For how long it has had the CPU.
    pub(super) had_ns: u64,
    pub(super) current: Option<usize>,
    activities: Vec<Option<Activity>>,
    free: Vec<usize>,
    ready: VecDeque<usize>,
    pub(super) inbox: VecDeque<Arrived>,
    /// The activity that deals with a request.
    pub(super) serving: Option<usize>,
    /// Whether it slept since it last received something.
    pub(super) slept: bool,
    /// What its last sleep costs it when it goes on.
    pub(super) sleep: EndCost,
    pub(super) cpu_ns: f64,
    /// The part of that for messages of round trips.
    pub(super) messages_ns: f64,
    pub(super) switches: f64,
}

impl SimulatedProcess {
    pub(super) fn new(cpu: usize) -> Self {
        Self {
            state: ThreadState::Asleep,
            cpu,
            left_ns: 0,
            slice_ns: 0,
            had_ns: 0,
            current: None,
            activities: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            inbox: VecDeque::new(),
            serving: None,
            slept: false,
            sleep: EndCost::default(),
            cpu_ns: 0.0,
            messages_ns: 0.0,
            switches: 0.0,
        }
    }

    /// Adds an activity with its `steps`, the last of which is the first.
    pub(super) fn add(&mut self, steps: Vec<Step>, serves: bool, roots: Vec<usize>) -> usize {
        let activity = Activity { steps, serves, began_ns: 0, roots, next_root: 0 };
        match self.free.pop() {
            Some(at) => {
                self.activities[at] = Some(activity);
                at
            }
            None => {
                self.activities.push(Some(activity));
                self.activities.len() - 1
            }
        }
    }

    /// The activity `at`, if it is not over.
    pub(super) fn activity(&mut self, at: usize) -> Option<&mut Activity> {
        self.activities.get_mut(at)?.as_mut()
    }

    /// Ends the activity `at`.
    pub(super) fn end(&mut self, at: usize) {
        if self.activities[at].take().is_some() {
            self.free.push(at);
        }
        if self.serving == Some(at) {
            self.serving = None;
        }
    }

    /// What the activity `at` waited for is there.
    pub(super) fn go_on(&mut self, at: usize) {
        self.ready.push_back(at);
    }

    /// Whether there is something that it can do.
    pub(super) fn has_work(&self) -> bool {
        self.current.is_some()
            || self.left_ns > 0
            || self.ready.iter().any(|at| self.may_go_on(*at))
            || (self.serving.is_none() && !self.inbox.is_empty())
    }

    /// The activity that goes on next, if any can.
    pub(super) fn next_ready(&mut self) -> Option<usize> {
        let at = self.ready.iter().position(|at| self.may_go_on(*at))?;
        self.ready.remove(at)
    }

    /// While it is at a request, what it begins by itself waits.
    fn may_go_on(&self, at: usize) -> bool {
        let serves = self.activities.get(at).and_then(Option::as_ref).is_some_and(|activity| activity.serves);
        serves || self.serving.is_none()
    }
}
