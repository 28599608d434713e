//! Floors: the least that this machine allows for the same work as a case.
//!
//! A floor is a sum of cases that are measured beside it: a hand-over between the two endpoints, and what moves the bytes.
//! Only this file names the floors and operations that measure those.

use crate::case::Case;
use crate::endpoint::Endpoints;
use crate::pace::Pace;
use crate::peers::Peers;
use crate::placement::{CpuPair, Placement};
use crate::spec::Spec;
use crate::units::Size;
use crate::workload::Workload;

/// The floor that hands a token over between two processes on one CPU, by sleeping and waking.
pub const CONTEXT_SWITCH: &str = "context-switch";
/// The floor that hands one cache line over between two CPUs.
pub const CACHE_LINE: &str = "cache-line";
/// The floor that moves a message from one CPU to another, with one hand-over.
pub const SHARED_COPY: &str = "shared-copy";
/// The floor that wakes a process that sleeps on another CPU.
pub const REMOTE_WAKE: &str = "remote-wake";
/// The operation that copies n bytes.
pub const MEMCPY: &str = "memcpy";
/// The operation that enters the kernel and comes back.
pub const SYSCALL: &str = "syscall";
/// The mechanism that does nothing: it measures the instrument itself.
pub const NULL: &str = "null";

/// Whether `case` measures the host, to be compared with: a floor, or an operation.
pub fn measures_the_host(case: &Case) -> bool {
    let names = [CONTEXT_SWITCH, CACHE_LINE, SHARED_COPY, REMOTE_WAKE];
    case.workload == Workload::Cost || names.contains(&case.spec.name.as_str())
}

/// The longest message that moves with the cache line that hands it over: a line less the word that says so.
const LONGEST_IN_LINE: Size = Size(56);

/// From this size on, a stream on two CPUs has the floor that moves each message from one to the other. Shorter messages may go
/// several at a time, as a ring sends them, and then take less: their floor is one copy, which is the least but not a tight one.
const LEAST_STREAMED: Size = Size(64 << 10);

/// The floor of one case, per iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct Floor {
    terms: Vec<Term>,
    wake_terms: Option<Vec<Term>>,
}

/// A case in a sum, and how often it is in it; below 0 where it is taken away.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    case: Case,
    times: i32,
}

impl Floor {
    /// The cases of both sums, each once.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        let own =
            self.wake_terms.iter().flatten().filter(|term| !self.terms.iter().any(|t| t.case == term.case));
        self.terms.iter().chain(own).map(|term| &term.case)
    }

    /// Nanoseconds per iteration, from the nanoseconds of each case; `None` when one was not measured. On two CPUs both
    /// endpoints spin.
    pub fn iteration_ns(&self, ns_of: impl Fn(&Case) -> Option<f64>) -> Option<f64> {
        sum(&self.terms, ns_of)
    }

    /// The same where each endpoint sleeps until its peer on another CPU wakes it; `None` also for cases that do not sleep.
    pub fn wake_iteration_ns(&self, ns_of: impl Fn(&Case) -> Option<f64>) -> Option<f64> {
        sum(self.wake_terms.as_ref()?, ns_of)
    }

    /// What [`wake_iteration_ns`](Self::wake_iteration_ns) adds up, in words.
    pub fn wake_text(&self) -> Option<String> {
        self.wake_terms.as_ref().map(|terms| text(terms))
    }
}

/// The sum of `terms`, if it is a time: a difference of two measured times may be none.
fn sum(terms: &[Term], ns_of: impl Fn(&Case) -> Option<f64>) -> Option<f64> {
    let times = terms.iter().map(|term| Some(f64::from(term.times) * ns_of(&term.case)?));
    times.sum::<Option<f64>>().filter(|ns| *ns > 0.0)
}

fn text(terms: &[Term]) -> String {
    let mut text = String::new();
    for (at, Term { case, times }) in terms.iter().enumerate() {
        let sign = if *times < 0 { " - " } else { " + " };
        text += if at == 0 { "" } else { sign };
        if times.abs() != 1 || case.spec.name == MEMCPY {
            text += &format!("{} × ", times.abs());
        }
        text += &case.spec.name;
    }
    text
}

impl std::fmt::Display for Floor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&text(&self.terms))
    }
}

/// The floor of `case`; `None` for operations, floors, several peers, unpinned and remote endpoints, and for a stream of empty
/// messages, which needs no copy and no hand-over in sequence. The floor of a wake-up without a payload, or with an empty
/// message, is the hand-over alone.
///
/// On one CPU every byte is copied out of the client's memory and into the server's, one copy after the other. On two CPUs
/// the least is that the client writes the message where the server reads it, with one hand-over; a message that fits in
/// the line of the hand-over moves with it. Where endpoints sleep, a wake-up takes the place of the hand-over.
pub fn floor_of(case: &Case) -> Option<Floor> {
    let cpus = case.cpus.filter(|_| case.placement != Placement::Remote)?;
    let measures_itself = [CONTEXT_SWITCH, CACHE_LINE, SHARED_COPY, REMOTE_WAKE, NULL];
    if measures_itself.contains(&case.spec.name.as_str()) || case.peers != Peers::Pair {
        return None;
    }
    let floor =
        if cpus.client == cpus.server { on_one_cpu(case, cpus.client) } else { on_two_cpus(case, cpus) }?;
    (!floor.terms.is_empty()).then_some(floor)
}

fn on_one_cpu(case: &Case, cpu: u32) -> Option<Floor> {
    let (handed_over, copies) = match case.workload {
        Workload::Latency => (true, 4),
        Workload::Transfer => (true, 2),
        Workload::Throughput => (false, 2),
        Workload::Connect => (true, 0),
        Workload::Session(session) => (true, 2 * session.messages),
        Workload::Cost | Workload::Accuracy => return None,
    };
    let switch = handed_over.then(|| once(between(CONTEXT_SWITCH, Workload::Latency, Some(Size(1)), case)));
    let copied = payload(case).filter(|_| copies > 0);
    let copied = copied.map(|size| Term { case: copy(case, cpu, size), times: copies.cast_signed() });
    Some(Floor { terms: switch.into_iter().chain(copied).collect(), wake_terms: None })
}

/// The copy of `size` bytes on `cpu`.
fn copy(case: &Case, cpu: u32, size: Size) -> Case {
    // CPUs that were asked for are in a case's key. Without them, copies on two CPUs would share one key.
    let placement = match case.placement {
        Placement::Cpus(_) => Placement::Cpus(CpuPair { client: cpu, server: cpu }),
        _ => Placement::SameCore,
    };
    Case { size_bytes: Some(size), placement, ..operation(MEMCPY, cpu) }
}

fn on_two_cpus(case: &Case, cpus: CpuPair) -> Option<Floor> {
    let line = || once(between(CACHE_LINE, Workload::Latency, Some(Size(1)), case));
    let moved = |workload, size| between(SHARED_COPY, workload, Some(size), case);
    let streamed = |messages: u32| {
        let moved = payload(case).map(|size| match size < LEAST_STREAMED {
            true => copy(case, cpus.client, size),
            false => moved(Workload::Throughput, size),
        });
        moved.map(|case| Term { case, times: messages.cast_signed() })
    };
    let (terms, in_turn) = match case.workload {
        Workload::Latency | Workload::Transfer => {
            let long = payload(case).filter(|size| *size > LONGEST_IN_LINE);
            (vec![long.map_or_else(line, |size| once(moved(case.workload, size)))], true)
        }
        Workload::Throughput => (streamed(1).into_iter().collect(), false),
        Workload::Connect => (vec![line()], true),
        Workload::Session(session) => {
            (std::iter::once(line()).chain(streamed(session.messages)).collect(), true)
        }
        Workload::Cost | Workload::Accuracy => return None,
    };
    let sleeps = in_turn && case.spec.params.sleeps();
    let wake_terms =
        sleeps.then(|| awakened(once(between(REMOTE_WAKE, Workload::Latency, None, case)), &terms, line()));
    debug_assert_ne!(cpus.client, cpus.server);
    Some(Floor { terms, wake_terms })
}

/// `terms` with `wake` in place of the hand-over `line`, of which each sum has one: as a term, or within another.
fn awakened(wake: Term, terms: &[Term], line: Term) -> Vec<Term> {
    let others = terms.iter().filter(|term| **term != line).cloned();
    let within = (!terms.contains(&line)).then(|| Term { times: -1, ..line.clone() });
    std::iter::once(wake).chain(others).chain(within).collect()
}

/// The size of the message, if it has any bytes.
fn payload(case: &Case) -> Option<Size> {
    case.size_bytes.filter(|size| size.0 > 0)
}

fn once(case: Case) -> Term {
    Term { case, times: 1 }
}

/// The floor `name` in `workload`, between the endpoints of `case`.
fn between(name: &str, workload: Workload, size_bytes: Option<Size>, case: &Case) -> Case {
    Case {
        workload,
        size_bytes,
        spec: Spec::plain(name),
        cpus: case.cpus,
        placement: case.placement,
        endpoints: case.endpoints,
        pace: Pace::BackToBack,
        peers: Peers::Pair,
        inject: None,
    }
}

/// The operation `name` alone on `cpu`.
pub fn operation(name: &str, cpu: u32) -> Case {
    Case {
        workload: Workload::Cost,
        size_bytes: None,
        placement: Placement::SameCore,
        cpus: Some(CpuPair { client: cpu, server: cpu }),
        endpoints: Endpoints::Processes,
        pace: Pace::BackToBack,
        peers: Peers::Pair,
        inject: None,
        spec: Spec::plain(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Session;

    fn case(workload: Workload, client: u32, server: u32) -> Case {
        Case {
            workload,
            size_bytes: Some(Size(4096)),
            placement: if client == server { Placement::SameCore } else { Placement::SameLlc },
            cpus: Some(CpuPair { client, server }),
            endpoints: Endpoints::Processes,
            pace: Pace::BackToBack,
            peers: Peers::Pair,
            inject: None,
            spec: Spec::plain("pipe"),
        }
    }

    #[test]
    fn a_floor_counts_hand_overs_and_copies_in_sequence() {
        for (workload, client, server, shown) in [
            (Workload::Latency, 1, 1, "context-switch + 4 × memcpy"),
            (Workload::Latency, 1, 0, "shared-copy"),
            (Workload::Transfer, 1, 1, "context-switch + 2 × memcpy"),
            (Workload::Transfer, 1, 0, "shared-copy"),
            (Workload::Throughput, 1, 1, "2 × memcpy"),
            (Workload::Throughput, 1, 0, "1 × memcpy"),
            (Workload::Session(Session::DEFAULT), 1, 1, "context-switch + 10 × memcpy"),
            (Workload::Session(Session::DEFAULT), 1, 0, "cache-line + 5 × memcpy"),
        ] {
            assert_eq!(floor_of(&case(workload, client, server)).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn a_wake_up_without_a_payload_is_measured_against_the_hand_over_alone() {
        let floor = floor_of(&Case { size_bytes: None, ..case(Workload::Latency, 1, 0) }).unwrap();
        assert_eq!(floor.to_string(), "cache-line");
        assert_eq!(floor.iteration_ns(|_| Some(250.0)), Some(250.0));
        assert_eq!(floor.wake_text().unwrap(), "remote-wake");
        assert_eq!(floor.cases().count(), 2);
    }

    #[test]
    fn an_empty_message_is_not_copied() {
        let floor_for = |workload| floor_of(&Case { size_bytes: Some(Size(0)), ..case(workload, 1, 1) });
        assert_eq!(floor_for(Workload::Latency).unwrap().to_string(), "context-switch");
        assert_eq!(floor_for(Workload::Session(Session::DEFAULT)).unwrap().to_string(), "context-switch");
        assert_eq!(floor_for(Workload::Throughput), None);
    }

    #[test]
    fn its_time_is_the_sum_or_nothing() {
        let floor = floor_of(&case(Workload::Latency, 1, 1)).unwrap();
        let ns_of = |case: &Case| Some(if case.spec.name == MEMCPY { 50.0 } else { 1000.0 });
        assert_eq!(floor.iteration_ns(ns_of), Some(1200.0));
        assert_eq!(floor.iteration_ns(|case| ns_of(case).filter(|_| case.spec.name != MEMCPY)), None);
        assert_eq!(floor.iteration_ns(|case| ns_of(case).filter(|_| case.spec.name == MEMCPY)), None);
        assert_eq!(floor.cases().count(), 2);
    }

    #[test]
    fn a_message_that_fits_in_the_line_moves_with_the_hand_over() {
        let floor_for = |workload, bytes| {
            floor_of(&Case { size_bytes: Some(Size(bytes)), ..case(workload, 1, 0) }).unwrap().to_string()
        };
        assert_eq!(
            (floor_for(Workload::Latency, 56), floor_for(Workload::Latency, 57)),
            ("cache-line".into(), "shared-copy".into())
        );
        assert_eq!(floor_for(Workload::Transfer, 1), "cache-line");
        // Short messages of a stream may go several at a time.
        assert_eq!(
            (floor_for(Workload::Throughput, 65_535), floor_for(Workload::Throughput, 65_536)),
            ("1 × memcpy".into(), "shared-copy".into())
        );
    }

    #[test]
    fn endpoints_that_sleep_on_two_cpus_have_a_floor_that_wakes_them() {
        let wake = |workload, client, server| floor_of(&case(workload, client, server)).unwrap().wake_text();
        assert_eq!(wake(Workload::Latency, 1, 0).unwrap(), "remote-wake + shared-copy - cache-line");
        assert_eq!(wake(Workload::Connect, 1, 0).unwrap(), "remote-wake");
        let session = wake(Workload::Session(Session::DEFAULT), 1, 0).unwrap();
        assert_eq!(session, "remote-wake + 5 × memcpy");
        // Nobody waits for a message of a stream, and on one CPU the hand-over sleeps already.
        assert_eq!(wake(Workload::Throughput, 1, 0), None);
        assert_eq!(wake(Workload::Latency, 1, 1), None);

        let floor = floor_of(&case(Workload::Latency, 1, 0)).unwrap();
        let ns_of = |case: &Case| match case.spec.name.as_str() {
            REMOTE_WAKE => Some(40_000.0),
            SHARED_COPY => Some(2400.0),
            CACHE_LINE => Some(400.0),
            _ => None,
        };
        assert_eq!(floor.iteration_ns(ns_of), Some(2400.0));
        assert_eq!(floor.wake_iteration_ns(ns_of), Some(42_000.0));
        assert_eq!(floor.wake_iteration_ns(|case| ns_of(case).filter(|ns| *ns < 10_000.0)), None);
        // A difference that came out below 0 is no time.
        assert_eq!(
            floor.wake_iteration_ns(|case| ns_of(case).map(|ns| if ns == 400.0 { 1e9 } else { ns })),
            None
        );
        let names: Vec<_> = floor.cases().map(|case| case.spec.name.as_str()).collect();
        assert_eq!(names, [SHARED_COPY, REMOTE_WAKE, CACHE_LINE]);
    }

    #[test]
    fn operations_floors_and_unpinned_endpoints_have_none() {
        assert_eq!(floor_of(&case(Workload::Cost, 1, 1)), None);
        assert_eq!(floor_of(&Case { cpus: None, ..case(Workload::Latency, 1, 1) }), None);
        for name in [CONTEXT_SWITCH, CACHE_LINE, SHARED_COPY, REMOTE_WAKE, NULL] {
            assert_eq!(floor_of(&Case { spec: Spec::plain(name), ..case(Workload::Latency, 1, 0) }), None);
        }
    }
}
