//! CPUs with their run queues: where a thread that is woken goes if nobody saw where it was (`homes`), and which is next.
//!
//! As Linux does it, as far as it matters here: a thread keeps its CPU until it sleeps or its time is over; who is woken goes to an
//! idle CPU, or stays on the waker's; a CPU without a thread takes one that waits elsewhere.

use std::collections::VecDeque;

/// For how long a thread stays hot, and is left where it waits though another CPU is idle: what Linux takes migration to cost
/// (`migration_cost_ns` in /sys/kernel/debug/sched).
const HOT_NS: u64 = 500_000;

/// One CPU.
#[derive(Debug, Default)]
struct Cpu {
    /// The process whose thread has it, or is about to begin on it.
    occupant: Option<usize>,
    /// Those that wait for it.
    queue: VecDeque<usize>,
    idle_since_ns: u64,
}

/// All CPUs.
#[derive(Debug)]
pub(super) struct Cpus {
    cpus: Vec<Cpu>,
    /// Those on which the thread of each process may run.
    allowed: Vec<Vec<usize>>,
    /// When each process left its CPU for the last time.
    left_ns: Vec<u64>,
}

impl Cpus {
    /// So many, all idle.
    pub(super) fn new(count: usize, allowed: Vec<Vec<usize>>) -> Self {
        let left_ns = vec![0; allowed.len()];
        Self { cpus: (0..count).map(|_| Cpu::default()).collect(), allowed, left_ns }
    }

    /// Where a process that was last on `last` goes when it is woken from `waker`, whose CPU it gets where `stays` says so.
    pub(super) fn place(&self, process: usize, last: usize, waker: Option<usize>, stays: bool) -> usize {
        let allowed = &self.allowed[process];
        if let Some(waker) = waker.filter(|waker| stays && allowed.contains(waker)) {
            return waker;
        }
        let is_idle = |cpu: &usize| self.cpus[*cpu].occupant.is_none();
        if allowed.contains(&last) && is_idle(&last) {
            return last;
        }
        let shortest = || allowed.iter().copied().min_by_key(|cpu| self.cpus[*cpu].queue.len());
        allowed.iter().copied().find(is_idle).or_else(shortest).unwrap_or(last)
    }

    /// Whether nobody has `cpu`, and since when.
    pub(super) fn idle_since(&self, cpu: usize) -> Option<u64> {
        self.cpus[cpu].occupant.is_none().then_some(self.cpus[cpu].idle_since_ns)
    }

    /// Gives `cpu` to `process`.
    pub(super) fn occupy(&mut self, cpu: usize, process: usize) {
        self.cpus[cpu].occupant = Some(process);
    }

    /// Has `process` wait for `cpu`.
    pub(super) fn enqueue(&mut self, cpu: usize, process: usize) {
        self.cpus[cpu].queue.push_back(process);
    }

    /// Whether anybody waits for `cpu`.
    pub(super) fn is_wanted(&self, cpu: usize) -> bool {
        !self.cpus[cpu].queue.is_empty()
    }

    /// Takes `cpu` from its thread. Who has it next: the first that waits for it, else one that waits for the CPU with the
    /// longest queue.
    pub(super) fn next(&mut self, cpu: usize, now_ns: u64) -> Option<usize> {
        if let Some(process) = self.cpus[cpu].occupant {
            self.left_ns[process] = now_ns;
        }
        let own = self.cpus[cpu].queue.pop_front();
        let next = own.or_else(|| self.steal(cpu, now_ns));
        self.cpus[cpu].occupant = next;
        self.cpus[cpu].idle_since_ns = now_ns;
        next
    }

    /// The first that waits elsewhere, may run on `cpu`, and is not hot.
    fn steal(&mut self, cpu: usize, now_ns: u64) -> Option<usize> {
        let mut busiest: Vec<usize> = (0..self.cpus.len()).filter(|other| self.is_wanted(*other)).collect();
        busiest.sort_by_key(|other| std::cmp::Reverse(self.cpus[*other].queue.len()));
        let (allowed, left_ns) = (&self.allowed, &self.left_ns);
        let may_go =
            |process: &usize| allowed[*process].contains(&cpu) && now_ns - left_ns[*process] >= HOT_NS;
        busiest.into_iter().find_map(|other| {
            let queue = &mut self.cpus[other].queue;
            let at = queue.iter().position(may_go)?;
            queue.remove(at)
        })
    }
}
