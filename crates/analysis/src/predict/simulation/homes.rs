//! Where threads are, if that was recorded: each has a home, the CPU on which it goes on whenever it is woken, and now and then all
//! homes change.
//!
//! So it was seen of PostgreSQL and nginx (docs/lab/choose.md): a thread that is woken goes on where it ran last, even if another CPU is
//! idle, and the load balancer moves some of them a few times a second. It is no load balancer: homes are drawn so that the receivers
//! of each flow are on their sender's CPU as often as they were recorded there.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// For how long threads keep their homes. It is shorter than in truth, so that a run, which is some 50 ms, has many homes, and long next to a
/// round trip.
const KEPT_NS: std::ops::Range<u64> = 250_000..750_000;

/// Two processes with a flow between them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Neighbours {
    pub(super) processes: [usize; 2],
    /// Messages a second: the home of a process depends on its busiest neighbour.
    pub(super) per_s: f64,
    /// How often they have one home, from 0 to 1.
    pub(super) together: f64,
}

/// How the home of a process is drawn.
#[derive(Debug, Clone, Copy)]
struct Draw {
    process: usize,
    /// The process, drawn before, beside which it is so often; `None` of one that is drawn alone.
    beside: Option<(usize, f64)>,
}

/// The homes of all processes.
#[derive(Debug)]
pub(super) struct Homes {
    draws: Vec<Draw>,
    /// The CPUs on which each process may run.
    allowed: Vec<Vec<usize>>,
    cpus: Vec<usize>,
    until_ns: u64,
    random: SmallRng,
}

impl Homes {
    /// Those of processes that may run on the CPUs `allowed`.
    pub(super) fn new(allowed: Vec<Vec<usize>>, neighbours: Vec<Neighbours>, seed: u64) -> Self {
        Self {
            draws: draws(allowed.len(), neighbours),
            cpus: allowed.iter().map(|cpus| cpus[0]).collect(),
            allowed,
            until_ns: 0,
            random: SmallRng::seed_from_u64(seed),
        }
    }

    /// The home of `process` at `now_ns`.
    pub(super) fn of(&mut self, process: usize, now_ns: u64) -> usize {
        if now_ns >= self.until_ns {
            self.change();
            self.until_ns = now_ns + self.random.random_range(KEPT_NS);
        }
        self.cpus[process]
    }

    fn change(&mut self) {
        for Draw { process, beside } in &self.draws {
            let allowed = &self.allowed[*process];
            let (stays, which) =
                (self.random.random_range(0.0..1.0), self.random.random_range(0..=usize::MAX));
            let neighbour = beside.map(|(neighbour, together)| (self.cpus[neighbour], stays < together));
            self.cpus[*process] = match neighbour {
                Some((cpu, true)) if allowed.contains(&cpu) => cpu,
                _ => {
                    let is_other = |cpu: &&usize| neighbour.is_none_or(|(taken, _)| **cpu != taken);
                    let others: Vec<&usize> = allowed.iter().filter(is_other).collect();
                    others.get(which % others.len().max(1)).map_or(allowed[0], |cpu| **cpu)
                }
            };
        }
    }
}

/// In which order homes are drawn: from the first process along the busiest flow to one that has none yet, until there is none, then from
/// another.
fn draws(processes: usize, mut neighbours: Vec<Neighbours>) -> Vec<Draw> {
    neighbours.sort_by(|a, b| b.per_s.total_cmp(&a.per_s));
    let mut draws: Vec<Draw> = Vec::new();
    let mut has_one = vec![false; processes];
    while draws.len() < processes {
        let next = neighbours.iter().find_map(|flow| {
            let [one, other] = flow.processes;
            let (known, process) = match (has_one[one], has_one[other]) {
                (true, false) => (one, other),
                (false, true) => (other, one),
                _ => return None,
            };
            Some(Draw { process, beside: Some((known, flow.together)) })
        });
        let alone = || Some(Draw { process: has_one.iter().position(|has| !has)?, beside: None });
        let Some(draw) = next.or_else(alone) else { break };
        has_one[draw.process] = true;
        draws.push(draw);
    }
    draws
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(from: usize, to: usize, per_s: f64, together: f64) -> Neighbours {
        Neighbours { processes: [from, to], per_s, together }
    }

    /// Of many homes, how often each of `pairs` had one.
    fn together<const N: usize>(homes: &mut Homes, pairs: [[usize; 2]; N]) -> [f64; N] {
        const TIMES: u64 = 4000;
        let mut counts = [0; N];
        for at in 0..TIMES {
            let now_ns = at * KEPT_NS.end;
            for (count, [one, other]) in counts.iter_mut().zip(pairs) {
                *count += u32::from(homes.of(one, now_ns) == homes.of(other, now_ns));
            }
        }
        counts.map(|count| f64::from(count) / TIMES as f64)
    }

    #[test]
    fn processes_have_one_home_as_often_as_they_were_seen_so() {
        let free = vec![vec![0, 1]; 4];
        let flows = vec![flow(0, 1, 10.0, 0.9), flow(0, 2, 5.0, 0.3), flow(3, 2, 1.0, 0.0)];
        let seen = together(&mut Homes::new(free, flows, 1), [[0, 1], [0, 2], [2, 3]]);
        for (seen, wanted) in seen.into_iter().zip([0.9, 0.3, 0.0]) {
            assert!((seen - wanted).abs() < 0.03, "{seen} for {wanted}");
        }
    }

    #[test]
    fn the_busiest_flow_says_where_a_process_of_several_is() {
        let free = vec![vec![0, 1, 2]; 3];
        let flows = vec![flow(0, 2, 1.0, 0.0), flow(1, 2, 10.0, 1.0), flow(0, 1, 5.0, 0.0)];
        assert_eq!(together(&mut Homes::new(free, flows, 1), [[1, 2], [0, 1], [0, 2]]), [1.0, 0.0, 0.0]);
    }

    #[test]
    fn who_is_held_to_a_cpu_has_its_home_there() {
        let held = vec![vec![0], vec![1], vec![0]];
        let flows = vec![flow(0, 1, 1.0, 1.0), flow(0, 2, 1.0, 0.0)];
        assert_eq!(together(&mut Homes::new(held, flows, 1), [[0, 1], [0, 2]]), [0.0, 1.0]);
    }

    #[test]
    fn homes_are_kept_for_a_while() {
        let mut homes = Homes::new(vec![vec![0, 1]; 2], vec![flow(0, 1, 1.0, 0.5)], 1);
        let first = homes.of(1, 0);
        assert!((0..KEPT_NS.start).step_by(1000).all(|now_ns| homes.of(1, now_ns) == first));
    }
}
