//! Control cases: cases that differ from a case by one thing, so that the difference is what that thing costs.

use model::card::Card;
use model::floor::{NULL, SYSCALL, operation};
use model::param::Domain;
use model::{Case, Peers, Size, Spec, Workload};

/// What a control case differs in from its case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ControlDifference {
    /// Its messages have one byte.
    OneByte,
    /// Its endpoints spin while they wait.
    Spinning,
    /// The endpoints neither write nor read the bytes.
    Untouched,
    /// Its buffers are as large as the message.
    Matched,
    /// It sends at once what it has not sent in full segments (`nodelay=on`).
    AtOnce,
    /// It is a Unix socket instead of one of the network.
    Local,
    /// Its mechanism is `null`, which does nothing.
    Nothing,
    /// It is an empty system call alone.
    SystemCall,
}

/// The control cases of `case` that make sense, by the cards of the registry. Whether they work here is not known.
pub fn control_cases(case: &Case, cards: &[Card]) -> Vec<(ControlDifference, Case)> {
    let card = cards.iter().find(|card| card.name == case.spec.name);
    let with = |role, name: &str, value: &str| {
        let spec =
            card.filter(|card| takes(card, name, value)).and_then(|_| set(&case.spec, name, value, cards));
        spec.map(|spec| (role, Case { spec, ..case.clone() }))
    };
    let one_byte =
        case.size_bytes.filter(|size| size.0 > 1).map(|_| Case { size_bytes: Some(Size(1)), ..case.clone() });
    // Of several peers there are none that spin on CPUs which they share, and none without a mechanism.
    let is_pair = case.peers == Peers::Pair;
    let on_two_cpus = is_pair && case.cpus.is_some_and(|cpus| cpus.client != cpus.server);
    let spinning = if on_two_cpus { with(ControlDifference::Spinning, "wait", "spin") } else { None };
    let matched =
        ["rcvbuf", "capacity"].into_iter().find_map(|name| with(ControlDifference::Matched, name, "match"));
    let matched = matched.map(|(role, case)| match set(&case.spec, "sndbuf", "match", cards) {
        Some(spec) => (role, Case { spec, ..case }),
        None => (role, case),
    });
    let is_held_back = case.spec.params.given("nodelay") == Some("off");
    let at_once = if is_held_back { with(ControlDifference::AtOnce, "nodelay", "on") } else { None };
    let local = match case.spec.name.as_str() {
        "tcp" => Some("unix-stream"),
        "udp" => Some("unix-dgram"),
        _ => None,
    };
    let local = local.map(|name| Case { spec: Spec::plain(name), ..case.clone() });
    let has_nothing = matches!(case.workload, Workload::Latency | Workload::Throughput | Workload::Transfer);
    let nothing = (is_pair && has_nothing).then(|| {
        // It has no empty messages.
        let size = case.size_bytes.map_or(Size(1), |size| size.max(Size(1)));
        Case { spec: Spec::plain(NULL), size_bytes: Some(size), ..case.clone() }
    });
    let call = operation(SYSCALL, case.cpus.map_or(0, |cpus| cpus.client));
    let all = [
        one_byte.map(|case| (ControlDifference::OneByte, case)),
        spinning,
        with(ControlDifference::Untouched, "access", "none"),
        matched.filter(|_| case.size_bytes.is_some_and(|size| size.0 > 4096)),
        at_once,
        local.map(|case| (ControlDifference::Local, case)),
        nothing.map(|case| (ControlDifference::Nothing, case)),
        (!case.workload.is_alone()).then_some((ControlDifference::SystemCall, call)),
    ];
    all.into_iter().flatten().filter(|(_, control_case)| control_case != case).collect()
}

/// Whether `card` has a parameter `name` that may be `value`.
fn takes(card: &Card, name: &str, value: &str) -> bool {
    let param = card.params.iter().find(|param| param.name == name);
    param.is_some_and(|param| match param.domain {
        Domain::Choice(words) => words.contains(&value),
        Domain::SizeOrMatch => true,
        _ => false,
    })
}

/// `spec` with the parameter `name` set to `value`.
fn set(spec: &Spec, name: &str, value: &str, cards: &[Card]) -> Option<Spec> {
    let text = spec.params.to_string();
    let others = text.split(',').filter(|param| !param.is_empty() && !param.starts_with(&format!("{name}=")));
    let params: Vec<String> = others.map(str::to_owned).chain([format!("{name}={value}")]).collect();
    Spec::parse(&format!("{}:{}", spec.name, params.join(",")), cards).ok()
}
