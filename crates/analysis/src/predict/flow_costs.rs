//! What the messages of one flow cost: the CPU time of each end, and how long it takes until the other end goes on.
//!
//! A measured round trip has two messages, and each end sends one and receives one. Half of an end's CPU time is counted for each.
//! What the round trip takes beside the CPU time of sender and receiver is waking, half of it for each message. How the costs depend on where
//! they run is measured; on which of these places they are at a moment is the simulation's affair.

use super::case_costs::{CaseLines, CostCase, CostDraw, EndPlace, FittedCase, FlowEnd, MeasuredCosts};
use crate::stats::mean;
use model::floor::CONTEXT_SWITCH;
use model::scenario::Flow;
use model::{Spec, Workload};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The bytes that a stream holds if nothing says how many (pipe(7)).
const DEFAULT_CAPACITY: u64 = 65_536;
/// What an end does in a round trip of so few bytes is hardly more than falling asleep and waking the other end.
const SMALL_BYTES: f64 = 64.0;
/// The part of a message's cost that is surely no sleep.
const LEAST_AWAKE: f64 = 0.1;
/// How much of what idle CPUs cost an end is interrupting the other one, which its own CPU time does not tell. By a program that timed the
/// call which wakes a process that sleeps on another CPU of a virtual machine it was 0.37 of a pipe, 0.41 of TCP and 0.45 of a Unix socket.
const INTERRUPT_SHARE: (f64, f64) = (0.35, 0.47);
/// How far a mechanism may be from what this share is of all.
const OWN_INTERRUPT_SHARE: f64 = 0.03;
/// The parameters that say how many bytes a stream holds.
const CAPACITIES: [&str; 3] = ["capacity", "sndbuf", "rcvbuf"];

/// The fitted costs of a flow.
#[derive(Debug, Clone)]
pub struct FlowCosts {
    is_stream: bool,
    /// Round trips, on one CPU, on two, and where the kernel puts the endpoints.
    answered: [Option<FittedCase>; 3],
    /// The same of a stream's messages.
    streamed: [Option<FittedCase>; 3],
    /// Round trips on two CPUs of the mechanisms that tell what longer sleep costs, back to back and after think times, in nanoseconds.
    slept: Vec<(u64, Vec<[FittedCase; 2]>)>,
    /// Round trips on one CPU and on two of the mechanisms that tell what an idle CPU costs.
    slept_once: Vec<[FittedCase; 2]>,
    /// Round trips that begin after a think time on two CPUs, with cold caches.
    cold: Vec<(u64, FittedCase)>,
    /// The token that two processes on one CPU pass to each other, each asleep while the other runs.
    switched: Option<FittedCase>,
    /// Round trips whose server works before it answers, for so many nanoseconds, on two CPUs.
    worked: Vec<(u64, FittedCase)>,
    /// How long a client may work when it is woken for nothing that it waits for: at most as long as it does for a message.
    most_idle_work_ns: f64,
    capacity_bytes: u64,
}

/// On how many CPUs sender and receiver of a message are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    Together,
    Apart,
}

impl Ends {
    /// Those of a message whose receiver is on the sender's CPU, or is not.
    pub(super) fn of(is_together: bool) -> Self {
        if is_together { Self::Together } else { Self::Apart }
    }
}

/// The costs of a flow as the simulation takes them: as measured, or as they might be.
#[derive(Debug, Clone)]
pub(super) struct DrawnCosts {
    together: Option<CaseLines>,
    apart: Option<CaseLines>,
    stream_together: Option<CaseLines>,
    stream_apart: Option<CaseLines>,
    /// For how long a CPU was idle, in nanoseconds, and by how much longer waking takes then; ascending.
    wakes: Vec<(f64, f64)>,
    /// What a round trip takes besides when the server works for so many nanoseconds before it answers; ascending, none where that was
    /// not measured.
    late_answers: Vec<(f64, LateAnswer)>,
    /// By how much longer a round trip takes for caches as cold as they are on CPUs that were idle. What messages cost more than back to back on
    /// one that was busy is told by the CPU time of the program (`calibrate`).
    cold_ns: f64,
    /// How often a receiver that sleeps is put on the sender's CPU though another is idle.
    pub(super) stay: f64,
    /// How far that share may be off.
    pub(super) stay_off: f64,
    /// The bytes that a stream holds.
    pub(super) capacity_bytes: u64,
    /// What it costs the client and the server that CPUs are idle, for each of their sleeps: by how much more a round trip costs them on two
    /// CPUs than on one, by the mechanism of which that is least.
    idle_ns: [f64; 2],
    /// How much of what idle CPUs cost an end is interrupting that of the other end. The rest is waking on its own.
    interrupt_share: f64,
    /// The CPU time of an end for falling asleep and going on again, in nanoseconds; 0 where that was not measured.
    sleep_ns: f64,
}

/// What it takes until a thread goes on, on a CPU that was idle.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct WakeCost {
    /// How long it takes.
    pub(super) delay_ns: f64,
    /// The part of it that is CPU time of the thread: Linux counts it from when the CPU wakes.
    pub(super) cpu_ns: f64,
    /// What its sleep costs it besides, on any CPU.
    pub(super) slept: EndCost,
}

/// What one endpoint does for one message.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct EndCost {
    /// How much later the message is there, or the next thing is done.
    pub(super) path_ns: f64,
    /// The CPU time.
    pub(super) cpu_ns: f64,
    /// Context switches.
    pub(super) switches: f64,
}

/// What a round trip takes besides when its answer comes late, to a client that is woken meanwhile.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct LateAnswer {
    /// The CPU time of the server.
    pub(super) server_ns: f64,
    /// By how much longer the client takes to wake; negative where it has not been asleep for long.
    pub(super) longer_wake_ns: f64,
    /// The CPU time of the client.
    pub(super) client_ns: f64,
    /// The switches of the client.
    pub(super) client_switches: f64,
}

impl LateAnswer {
    /// So much of this one, and the rest of `other`.
    fn mixed(self, share: f64, other: Self) -> Self {
        let of = |own: f64, other: f64| share * own + (1.0 - share) * other;
        Self {
            server_ns: of(self.server_ns, other.server_ns),
            longer_wake_ns: of(self.longer_wake_ns, other.longer_wake_ns),
            client_ns: of(self.client_ns, other.client_ns),
            client_switches: of(self.client_switches, other.client_switches),
        }
    }
}

impl EndCost {
    /// That of such a share of a message, or of so many.
    pub(super) fn times(self, share: f64) -> Self {
        Self { path_ns: self.path_ns * share, cpu_ns: self.cpu_ns * share, switches: self.switches * share }
    }

    /// Both, one after the other.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            path_ns: self.path_ns + other.path_ns,
            cpu_ns: self.cpu_ns + other.cpu_ns,
            switches: self.switches + other.switches,
        }
    }
}

impl FlowCosts {
    /// Of `flow` with what `costs` has of its mechanism.
    pub fn of(flow: &Flow, costs: &MeasuredCosts) -> Self {
        let case = |workload, place| CostCase::plain(flow.mechanism.clone(), workload, place);
        let places = [EndPlace::OneCpu, EndPlace::TwoCpus, EndPlace::Anywhere];
        let fitted = |workload| places.map(|place| costs.fitted(&case(workload, place)));
        let apart = case(Workload::Latency, EndPlace::TwoCpus);
        let cold_apart = CostCase { has_cold_caches: true, ..apart.clone() };
        let cold = |ns| Some((ns, costs.fitted(&CostCase { think_time_ns: ns, ..cold_apart.clone() })?));
        Self {
            is_stream: flow.is_stream(),
            answered: fitted(Workload::Latency),
            streamed: if flow.is_stream() { fitted(Workload::Throughput) } else { [None, None, None] },
            slept: costs.think_times_ns(&apart).map(|ns| (ns, slept(&flow.mechanism, costs, ns))).collect(),
            slept_once: slept_once(costs),
            switched: costs.fitted(&switched()),
            cold: costs.think_times_ns(&cold_apart).filter_map(cold).collect(),
            worked: costs
                .server_works_ns(&apart)
                .filter_map(|ns| Some((ns, costs.fitted(&CostCase { server_work_ns: ns, ..apart.clone() })?)))
                .collect(),
            // A replay's client does nothing then.
            most_idle_work_ns: if flow.recorded.is_some() { flow.client_work.mean() } else { 0.0 },
            capacity_bytes: capacity(&flow.mechanism),
        }
    }

    /// The costs as measured, or, with `draw`, as they might be. `off` is how far the share of receivers that stay on the sender's
    /// CPU may be from what one pair of processes shows, or the scenario itself. `coldness` says how cold caches are: 0 as between
    /// messages back to back, 1 as when each end fills its own with something else.
    pub(super) fn draw(&self, mut draw: Option<CostDraw>, off: f64, coldness: f64) -> DrawnCosts {
        let mut lines =
            |fitted: &Option<FittedCase>| fitted.as_ref().map(|fitted| fitted.lines(draw.as_mut()));
        let [together, apart, anywhere] = [0, 1, 2].map(|at| lines(&self.answered[at]));
        let [stream_together, stream_apart, stream_anywhere] = [0, 1, 2].map(|at| lines(&self.streamed[at]));
        let mut after_think_times = |cases: &[(u64, FittedCase)]| -> Vec<(u64, CaseLines)> {
            cases.iter().map(|(ns, fitted)| (*ns, fitted.lines(draw.as_mut()))).collect()
        };
        let cold = after_think_times(&self.cold);
        let worked = after_think_times(&self.worked);
        let stay = match self.is_stream {
            true => stay([&stream_together, &stream_apart, &stream_anywhere]),
            false => stay([&together, &apart, &anywhere]),
        };
        let moments = draw.as_ref().map(|draw| draw.moments);
        let slept = self.slept.iter().map(|(ns, pairs)| (*ns, longer_ns(pairs, moments)));
        let slept: Vec<(u64, f64)> = slept.collect();
        let idle_ns = idle_ns(&self.slept_once, moments);
        let wakes = apart.as_ref().map(|apart| wakes(apart, &slept)).unwrap_or_default();
        let cold_ns = apart.as_ref().map_or(0.0, |apart| cold_ns(apart, &slept, &cold));
        let idle_work_ns =
            self.most_idle_work_ns * draw.as_mut().map_or(0.5, |draw| draw.random.random_range(0.0..=1.0));
        let sleep_ns = self.switched.as_ref().map_or(0.0, |fitted| sleep_ns(fitted, moments));
        let interrupt_share = interrupt_share(draw);
        let late_answers =
            apart.as_ref().map(|apart| late_answers(apart, &worked, idle_work_ns)).unwrap_or_default();
        DrawnCosts {
            together,
            apart,
            stream_together,
            stream_apart,
            wakes,
            late_answers,
            cold_ns: coldness * cold_ns,
            stay,
            stay_off: off,
            capacity_bytes: self.capacity_bytes,
            idle_ns,
            interrupt_share,
            sleep_ns,
        }
    }
}

/// The case that tells what falling asleep and going on again costs, whatever the mechanism.
pub(super) fn switched() -> CostCase {
    CostCase::plain(Spec::plain(CONTEXT_SWITCH), Workload::Latency, EndPlace::OneCpu)
}

/// What it costs an end to fall asleep and to go on again, as measured or as at other `moments`: each does so once in an iteration.
fn sleep_ns(switched: &FittedCase, moments: Option<u64>) -> f64 {
    common_lines(switched, moments).elapsed.at(SMALL_BYTES) / 2.0
}

/// The share of what idle CPUs cost that is interrupting one, as measured, or as it might be: it is the host's, and about the same for
/// all mechanisms.
fn interrupt_share(draw: Option<CostDraw>) -> f64 {
    let (least, most) = INTERRUPT_SHARE;
    let Some(CostDraw { mut random, moments }) = draw else { return (least + most) / 2.0 };
    let of_all = SmallRng::seed_from_u64(moments.rotate_left(32)).random_range(least..=most);
    of_all + random.random_range(-OWN_INTERRUPT_SHARE..=OWN_INTERRUPT_SHARE)
}

/// The share of wake-ups in which the receiver stays on the sender's CPU, from what it takes there, on two CPUs, and where the
/// kernel decides: `lines` in this order.
fn stay(lines: [&Option<CaseLines>; 3]) -> f64 {
    /// With times that are nearer than this, nothing can be told, and nothing depends on it.
    const LEAST_DIFFERENCE: f64 = 0.1;
    /// Of what is not known.
    const UNKNOWN: f64 = 0.5;
    let [Some(together), Some(apart), Some(anywhere)] = lines else { return UNKNOWN };
    let at = |lines: &CaseLines| lines.elapsed.at(64.0);
    let (together, apart, anywhere) = (at(together), at(apart), at(anywhere));
    match (together - apart).abs() > LEAST_DIFFERENCE * apart {
        true => ((anywhere - apart) / (together - apart)).clamp(0.0, 1.0),
        false => UNKNOWN,
    }
}

/// What tells how much longer a round trip takes after `think_time_ns`: that is the idle CPU's affair, so that all mechanisms that were
/// measured tell it together. One that is woken more often then, such as a Unix socket whose reader sleeps in read(2), speaks for itself.
fn slept(mechanism: &Spec, costs: &MeasuredCosts, think_time_ns: u64) -> Vec<[FittedCase; 2]> {
    /// So many more switches of an end are more than chance.
    const MORE_SWITCHES: f64 = 0.2;
    let is_woken_more = |[plain, after]: &[FittedCase; 2]| {
        (0..2).any(|end| after.switches[end] > plain.switches[end] + MORE_SWITCHES)
    };
    let pairs: Vec<(&Spec, [FittedCase; 2])> = costs.after_sleep(think_time_ns).collect();
    let is_alone = pairs.iter().any(|(spec, pair)| *spec == mechanism && is_woken_more(pair));
    let tells = |(spec, pair): &(&Spec, [FittedCase; 2])| match is_alone {
        true => *spec == mechanism,
        false => !is_woken_more(pair),
    };
    pairs.into_iter().filter(tells).map(|(_, pair)| pair).collect()
}

/// What tells what an idle CPU costs: that is the CPU's affair, too, whatever the mechanism, as long as each end sleeps once in a round trip.
fn slept_once(costs: &MeasuredCosts) -> Vec<[FittedCase; 2]> {
    /// So many switches of an end are one sleep.
    const ONE: std::ops::RangeInclusive<f64> = 0.9..=1.1;
    let is_once = |[_, apart]: &[FittedCase; 2]| apart.switches.iter().all(|switches| ONE.contains(switches));
    costs.on_one_and_two_cpus().map(|(_, pair)| pair).filter(is_once).collect()
}

/// What idle CPUs cost client and server for a sleep, as measured or as at other `moments`: the least of all `pairs`. What a mechanism
/// costs beyond that on two CPUs are caches that move between them, and these do so between busy CPUs as well.
fn idle_ns(pairs: &[[FittedCase; 2]], moments: Option<u64>) -> [f64; 2] {
    let lines = pairs.iter().map(|pair| pair.each_ref().map(|fitted| common_lines(fitted, moments)));
    let lines: Vec<[CaseLines; 2]> = lines.collect();
    [FlowEnd::From, FlowEnd::To].map(|end| {
        let more = |[together, apart]: &[CaseLines; 2]| {
            apart.cpu_ns(end, SMALL_BYTES) - together.cpu_ns(end, SMALL_BYTES)
        };
        lines.iter().map(more).fold(f64::INFINITY, f64::min)
    })
}

/// The lines of `fitted`, as measured or as at other `moments`: all flows have the same draw of them.
fn common_lines(fitted: &FittedCase, moments: Option<u64>) -> CaseLines {
    let mut draw = moments.map(|moments| CostDraw { random: SmallRng::seed_from_u64(moments), moments });
    fitted.lines(draw.as_mut())
}

/// By how much longer round trips take after sleep, in the mean of `pairs`, as measured or as at other `moments`.
fn longer_ns(pairs: &[[FittedCase; 2]], moments: Option<u64>) -> f64 {
    let elapsed_ns = |fitted: &FittedCase| common_lines(fitted, moments).elapsed.at(SMALL_BYTES);
    mean(&pairs.iter().map(|[plain, after]| elapsed_ns(after) - elapsed_ns(plain)).collect::<Vec<_>>())
        .max(0.0)
}

/// By how much longer waking takes after how long: nothing after as long as back to back, and what think times add.
fn wakes(apart: &CaseLines, slept: &[(u64, f64)]) -> Vec<(f64, f64)> {
    let shortest = (apart.elapsed.at(SMALL_BYTES) / 2.0, 0.0);
    let of = |(ns, longer_ns): &(u64, f64)| (*ns as f64 + shortest.0, *longer_ns);
    std::iter::once(shortest).chain(slept.iter().map(of)).collect()
}

/// How often a client is woken for nothing that it waits for, as its switches tell of late answers.
fn woken_for_nothing(apart: &CaseLines, worked: &[(u64, CaseLines)]) -> f64 {
    worked.iter().map(|(_, lines)| more_switches(apart, lines)).fold(0.0, f64::max)
}

fn more_switches(apart: &CaseLines, late: &CaseLines) -> f64 {
    (late.switches[0] - apart.switches[0]).clamp(0.0, 1.0)
}

/// What a round trip takes besides, by how long the server works: nothing where it answers at once. A client that is woken meanwhile,
/// as its switches tell of late answers, works for `idle_work_ns` then; answers that come before it sleeps again wait for that.
fn late_answers(apart: &CaseLines, worked: &[(u64, CaseLines)], idle_work_ns: f64) -> Vec<(f64, LateAnswer)> {
    let more_switches = |lines: &CaseLines| more_switches(apart, lines);
    let woken = woken_for_nothing(apart, worked);
    let of = |(work_ns, lines): &(u64, CaseLines)| {
        let work_ns = *work_ns as f64;
        let server_ns = lines.server.at(SMALL_BYTES) - work_ns - apart.server.at(SMALL_BYTES);
        let server_ns = server_ns.max(0.0);
        let longer_ns = lines.elapsed.at(SMALL_BYTES) - work_ns - apart.elapsed.at(SMALL_BYTES);
        let more_client_ns = (lines.client.at(SMALL_BYTES) - apart.client.at(SMALL_BYTES)).max(0.0);
        let answer = LateAnswer {
            server_ns,
            longer_wake_ns: longer_ns - server_ns + (woken - more_switches(lines)) * idle_work_ns,
            client_ns: more_client_ns + woken * idle_work_ns,
            client_switches: more_switches(lines),
        };
        (work_ns, answer)
    };
    if worked.is_empty() {
        return Vec::new();
    }
    std::iter::once((0.0, LateAnswer::default())).chain(worked.iter().map(of)).collect()
}

/// By how much longer a round trip takes after the same think time if caches are cold.
fn cold_ns(apart: &CaseLines, slept: &[(u64, f64)], cold: &[(u64, CaseLines)]) -> f64 {
    let longer = |(ns, cold): &(u64, CaseLines)| {
        let (_, slept_ns) = slept.iter().find(|(other, _)| other == ns)?;
        let warm_ns = apart.elapsed.at(SMALL_BYTES) + slept_ns;
        Some((cold.elapsed.at(SMALL_BYTES) - warm_ns).max(0.0))
    };
    cold.iter().find_map(longer).unwrap_or(0.0)
}

/// The bytes that a stream over `spec` holds.
fn capacity(spec: &Spec) -> u64 {
    let of = |name: &&str| spec.params.given(name)?.parse::<model::Size>().ok();
    let known: u64 = CAPACITIES.iter().filter_map(of).map(|size| size.0).fold(0, u64::saturating_add);
    if known == 0 { DEFAULT_CAPACITY } else { known }
}

impl DrawnCosts {
    /// What `end` does for a message of `bytes` of a round trip while it is awake, on as many CPUs as `ends` says. Half of its CPU time is
    /// counted for each of both messages. What it takes longer on two CPUs than on one is that it interrupts the other CPU when it
    /// sends, and wakes on its own, where they are idle: see [`Self::interrupt`] and [`Self::wake`]. Sleep is in [`Self::slept`].
    pub(super) fn answered(&self, end: FlowEnd, bytes: f64, ends: Ends) -> EndCost {
        let Some(lines) = self.lines(ends) else {
            return EndCost { path_ns: 1.0, cpu_ns: 1.0, switches: 0.0 };
        };
        let own_ns = lines.cpu_ns(end, bytes);
        let idle_ns = self.idle_cpus_ns(end, ends).min(own_ns);
        let sleep_ns = self.sleep_of(end, lines);
        let cpu_ns = (own_ns - idle_ns - sleep_ns).max(LEAST_AWAKE * own_ns) / 2.0;
        let path_ns = match ends {
            // On one CPU nothing goes on beside it: what no end is charged for is the switch.
            Ends::Together => {
                let elapsed_ns = lines.elapsed.at(bytes);
                let slept_ns = self.sleep_of(FlowEnd::From, lines) + self.sleep_of(FlowEnd::To, lines);
                (elapsed_ns - slept_ns).max(LEAST_AWAKE * elapsed_ns) / 4.0
            }
            Ends::Apart => cpu_ns * lines.path_share(bytes),
        };
        EndCost { path_ns, cpu_ns, switches: 0.0 }
    }

    /// What it costs `end` besides to interrupt the CPU of the other end when it sends a message of `bytes`, where that is idle.
    pub(super) fn interrupt(&self, end: FlowEnd, bytes: f64, ends: Ends) -> EndCost {
        let Some(lines) = self.lines(ends) else { return EndCost::default() };
        let cpu_ns = self.interrupt_share * self.idle_cpus_ns(end, ends).min(lines.cpu_ns(end, bytes));
        EndCost { path_ns: cpu_ns * lines.path_share(bytes), cpu_ns, switches: 0.0 }
    }

    /// What it costs `end` to fall asleep and to go on again for a message of a round trip, as often as it does so in one.
    pub(super) fn slept(&self, end: FlowEnd, bytes: f64, ends: Ends) -> EndCost {
        let Some(lines) = self.lines(ends) else { return EndCost::default() };
        let cpu_ns = self.sleep_of(end, lines);
        let path_share = if ends == Ends::Apart { lines.path_share(bytes) } else { 1.0 };
        EndCost { path_ns: cpu_ns * path_share, cpu_ns, switches: lines.switches[end as usize] }
    }

    /// The CPU time of `end` for the sleep in a round trip that `lines` are of.
    fn sleep_of(&self, end: FlowEnd, lines: &CaseLines) -> f64 {
        self.sleep_ns * lines.switches[end as usize]
    }

    /// What it costs `end` that CPUs are idle, its own and that of the other end: for as often as it sleeps, and no more than what a round
    /// trip costs it more on two CPUs than on one.
    fn idle_cpus_ns(&self, end: FlowEnd, ends: Ends) -> f64 {
        match (ends, &self.together, &self.apart) {
            (Ends::Apart, Some(together), Some(apart)) => {
                let more_ns = apart.cpu_ns(end, SMALL_BYTES) - together.cpu_ns(end, SMALL_BYTES);
                more_ns.min(self.idle_ns[end as usize] * apart.switches[end as usize]).max(0.0)
            }
            _ => 0.0,
        }
    }

    /// What it takes until `end` goes on with a message of `bytes`, on a CPU that was idle for `idle_ns`.
    pub(super) fn wake(&self, end: FlowEnd, bytes: f64, idle_ns: f64) -> WakeCost {
        self.wake_with(end, bytes, self.longer_wake_ns(idle_ns))
    }

    /// The same where it takes so much longer than in a round trip.
    fn wake_with(&self, end: FlowEnd, bytes: f64, longer_ns: f64) -> WakeCost {
        let Some(lines) = &self.apart else { return WakeCost::default() };
        let beside_ns = lines.elapsed.at(bytes) - lines.client.at(bytes) - lines.server.at(bytes);
        let delay_ns = (beside_ns.max(0.0) / 2.0 + longer_ns).max(0.0);
        // Each end wakes once in a round trip, and then has half of what cold caches cost it.
        let cpu_ns = self.waking_ns(end, Ends::Apart) + self.cold_ns / 2.0;
        WakeCost { delay_ns: delay_ns + cpu_ns, cpu_ns, ..WakeCost::default() }
    }

    /// The CPU time of `end` for waking on its own CPU, where that is idle.
    fn waking_ns(&self, end: FlowEnd, ends: Ends) -> f64 {
        (1.0 - self.interrupt_share) * self.idle_cpus_ns(end, ends)
    }

    /// What a round trip takes besides if its answer comes after `work_ns`, in a straight line between measured ones; `None` where it
    /// was not measured.
    pub(super) fn late_answer(&self, work_ns: f64) -> Option<LateAnswer> {
        let (_, last) = self.late_answers.last()?;
        let after = self.late_answers.partition_point(|(ns, _)| *ns <= work_ns);
        let Some((until, high)) = self.late_answers.get(after) else { return Some(*last) };
        let (from, low) = self.late_answers[after.checked_sub(1)?];
        Some(high.mixed((work_ns - from) / (until - from), low))
    }

    /// What it takes until a process whose think time is over begins, on a CPU that was idle for `idle_ns`.
    pub(super) fn wake_for_time(&self, idle_ns: f64) -> WakeCost {
        let cpu_ns = self.cold_ns / 2.0;
        WakeCost { delay_ns: self.longer_wake_ns(idle_ns) + cpu_ns, cpu_ns, ..WakeCost::default() }
    }

    /// What it takes until the client goes on with an answer of `bytes`, on a CPU that is idle.
    pub(super) fn answer_wake(&self, bytes: f64, answer: LateAnswer) -> WakeCost {
        self.wake_with(FlowEnd::From, bytes, answer.longer_wake_ns)
    }

    /// By how much longer waking takes after `idle_ns`: between measured think times in proportion to the logarithm of the time.
    fn longer_wake_ns(&self, idle_ns: f64) -> f64 {
        let after = self.wakes.partition_point(|(ns, _)| *ns <= idle_ns);
        match (after.checked_sub(1).map(|at| self.wakes[at]), self.wakes.get(after)) {
            (None, _) => 0.0,
            (Some((_, longer)), None) => longer,
            (Some((before, low)), Some((after, high))) => {
                let share = (idle_ns / before).ln() / (after / before).ln();
                low + (high - low) * share.clamp(0.0, 1.0)
            }
        }
    }

    /// What the sender or the receiver of a stream does for a message of `bytes`, without sleep and without waking the other end. In
    /// what was measured both have part: sender and receiver were as fast as they could, and small buffers had them sleep for each
    /// other.
    pub(super) fn streamed(&self, end: FlowEnd, bytes: f64, ends: Ends) -> EndCost {
        let Some(lines) = self.stream_lines(ends) else {
            return EndCost { switches: 0.0, ..self.answered(end, bytes, ends) };
        };
        let cpu_ns = lines.cpu_ns(end, bytes);
        let [own_switches, other_switches] = match end {
            FlowEnd::From => lines.switches,
            FlowEnd::To => [lines.switches[1], lines.switches[0]],
        };
        let [sleep_ns, wake_ns] = self.sleep_and_wake_ns(end, ends);
        let sleep_ns = sleep_ns + self.waking_ns(end, ends);
        let beside_ns = own_switches * sleep_ns + other_switches * wake_ns;
        let awake_ns = (cpu_ns - beside_ns).max(LEAST_AWAKE * cpu_ns);
        EndCost { path_ns: awake_ns, cpu_ns: awake_ns, switches: 0.0 }
    }

    /// What a call of `end` costs beside what it does for the bytes of a stream: more if that `slept` before, and if it `wakes` the
    /// other end.
    pub(super) fn around_call(&self, end: FlowEnd, ends: Ends, slept: bool, wakes: bool) -> EndCost {
        let [sleep_ns, wake_ns] = self.sleep_and_wake_ns(end, ends);
        let cpu_ns = f64::from(slept) * sleep_ns + f64::from(wakes) * wake_ns;
        EndCost { path_ns: cpu_ns, cpu_ns, switches: f64::from(slept) }
    }

    /// The CPU time of `end` for falling asleep and going on again, and for waking the other end. A round trip of few bytes has one of
    /// each. Without what idle CPUs cost, half of it is sleep.
    fn sleep_and_wake_ns(&self, end: FlowEnd, ends: Ends) -> [f64; 2] {
        let own_ns = self.lines(ends).map_or(0.0, |lines| lines.cpu_ns(end, SMALL_BYTES));
        let idle_ns = self.idle_cpus_ns(end, ends).min(own_ns);
        let sleep_ns = (own_ns - idle_ns) / 2.0;
        [sleep_ns, sleep_ns + self.interrupt_share * idle_ns]
    }

    /// The least time between two messages of a stream whose ends are on two CPUs. To a receiver that `sleeps` it is what the stream
    /// was measured to take, in which sender and receiver slept for each other; to one that is at work, what the slower of them does.
    pub(super) fn pace_ns(&self, bytes: f64, sleeps: bool) -> f64 {
        let Some(lines) = &self.stream_apart else { return 0.0 };
        let measured_ns = lines.elapsed.at(bytes);
        let awake_ns = |end| self.streamed(end, bytes, Ends::Apart).cpu_ns;
        if sleeps { measured_ns } else { measured_ns.min(awake_ns(FlowEnd::From).max(awake_ns(FlowEnd::To))) }
    }

    fn lines(&self, ends: Ends) -> Option<&CaseLines> {
        match ends {
            Ends::Together => self.together.as_ref().or(self.apart.as_ref()),
            Ends::Apart => self.apart.as_ref().or(self.together.as_ref()),
        }
    }

    fn stream_lines(&self, ends: Ends) -> Option<&CaseLines> {
        match ends {
            Ends::Together => self.stream_together.as_ref().or(self.stream_apart.as_ref()),
            Ends::Apart => self.stream_apart.as_ref().or(self.stream_together.as_ref()),
        }
    }
}
