//! A need: what a program wants of a mechanism, before anything is measured; and which cards meet it.
//!
//! What the mechanisms that meet it cost is measured by the binary and ranked in `analysis`.

use crate::card::{Card, CardKind, Framing, Payload, Reach};
use crate::floor;
use crate::invalid::{Invalid, variant_named};
use crate::pace::{Pace, Rate};
use crate::semantics::{Atomic, Credentials, Lifetime, Loss, Namespace, Naming, Order, OtherUsers, WhenFull};
use crate::text::serde_as_text;
use crate::units::Size;
use crate::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use strum::{Display, EnumMessage, VariantArray};

/// What a program wants of a mechanism.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Need {
    /// How its processes talk.
    pub pattern: Pattern,
    /// The size of a message; of a signal 1, for the mechanisms that must send something.
    pub size: Size,
    /// How many round trips, messages or signals are due a second.
    #[serde(serialize_with = "as_pace")]
    pub rate: Option<Rate>,
    /// What the mechanism must have.
    pub requirements: Vec<Requirement>,
    /// What it must not have: for tables that sort mechanisms into classes.
    pub without: Vec<Requirement>,
    /// What it is to be best in.
    pub objective: Objective,
}

/// How processes talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Display, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Pattern {
    /// A message there, an answer of the same size back.
    RequestReply,
    /// Messages one way.
    Stream,
    /// A wake-up, whatever it carries.
    Signal,
}

/// What a mechanism is to be best in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Display, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Objective {
    /// The time of a round trip.
    Latency,
    /// The CPU time of both processes.
    Cpu,
    /// Messages a second.
    Throughput,
}

/// Something that a mechanism must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumMessage, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Requirement {
    /// Messages carry descriptors.
    #[strum(message = "carries no descriptors")]
    Descriptors,
    /// A message arrives as it was sent, neither split nor joined with others.
    #[strum(message = "keeps no boundaries between messages")]
    Boundaries,
    /// Messages arrive in the order in which they were sent.
    #[strum(message = "does not keep the order of messages")]
    Order,
    /// Nothing gets lost.
    #[strum(message = "may lose what was sent")]
    Reliable,
    /// Who sends faster than the other receives waits.
    #[strum(message = "does not make a fast sender wait")]
    BackPressure,
    /// The kernel says who sent.
    #[strum(message = "does not say who sent")]
    Credentials,
    /// A process that is no relative finds it, by a name or an address.
    #[strum(message = "has no name: a descriptor must be inherited or sent")]
    Named,
    /// Processes of several users use it.
    #[strum(message = "works between processes of one user")]
    OtherUsers,
    /// The processes are in containers with namespaces of their own, which share a directory or a network.
    #[strum(message = "needs one IPC or PID namespace")]
    Containers,
    /// The processes are on two hosts.
    #[strum(message = "stays on one host")]
    Hosts,
    /// Who waits learns that the other process has died.
    #[strum(message = "does not say that the other process has died")]
    PeerDeath,
    /// What was sent outlives the sender and waits for a receiver.
    #[strum(message = "is gone with the processes that use it")]
    Outlives,
    /// Several processes may write at once, and each message stays whole.
    #[strum(message = "may mix messages of this size of several writers")]
    Atomic,
    /// It can be waited for together with others, by poll(2) or epoll(7).
    #[strum(message = "cannot be waited for by poll(2)")]
    Poll,
    /// It needs no privilege.
    #[strum(message = "needs privileges")]
    Unprivileged,
    /// There is a connection.
    #[strum(message = "has no connection")]
    Connected,
    /// There is none.
    #[strum(message = "needs a connection")]
    Connectionless,
}

/// Why a mechanism is not offered for a need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exclusion {
    /// The mechanism, with parameters if it has any.
    pub mechanism: String,
    /// What kind of reason it is.
    pub cause: Cause,
    /// The reason in words.
    pub reason: String,
}

/// The kinds of reasons for which a mechanism is not offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Its card lacks what the pattern takes.
    Pattern,
    /// Its messages are too small.
    Size,
    /// Its card lacks what is required.
    Requirement,
    /// It does not work on this host, or not in this placement.
    Host,
    /// It was tried and failed.
    Failed,
    /// It cannot hold the rate.
    Rate,
    /// It was so much slower without a pause that it was not tried at the rate.
    Slower,
}

/// A rate as people type a pace.
fn as_pace<S: serde::Serializer>(rate: &Option<Rate>, serializer: S) -> Result<S::Ok, S::Error> {
    rate.map(Pace::Rate).serialize(serializer)
}

impl Pattern {
    /// All of them.
    pub const ALL: &[Pattern] = Pattern::VARIANTS;

    /// What is measured for it first.
    pub fn workload(self) -> Workload {
        match self {
            Pattern::RequestReply | Pattern::Signal => Workload::Latency,
            Pattern::Stream => Workload::Throughput,
        }
    }

    /// What a mechanism is to be best in where nobody says it.
    pub fn objective(self) -> Objective {
        match self {
            Pattern::RequestReply | Pattern::Signal => Objective::Latency,
            Pattern::Stream => Objective::Throughput,
        }
    }
}

impl Objective {
    /// All of them.
    pub const ALL: &[Objective] = Objective::VARIANTS;
}

impl Requirement {
    /// All of them, in the order of lists.
    pub const ALL: &[Requirement] = Requirement::VARIANTS;

    /// Whether what `card` describes has it, for messages of `size`.
    pub fn is_met(self, card: &Card, size: Size) -> bool {
        /// What a write to a pipe or FIFO transfers whole (pipe(7)).
        const PIPE_BUF: u64 = 4096;
        let semantics = &card.semantics;
        match self {
            Requirement::Descriptors => card.fds,
            Requirement::Boundaries => card.framing == Framing::Message,
            Requirement::Order => semantics.order == Order::Kept,
            Requirement::Reliable => semantics.loss == Loss::Never,
            Requirement::BackPressure => semantics.when_full == WhenFull::Blocks,
            Requirement::Credentials => {
                !matches!(semantics.credentials, Credentials::None | Credentials::LastUser)
            }
            Requirement::Named => semantics.naming != Naming::Inherited,
            Requirement::OtherUsers => semantics.other_users != OtherUsers::SameUser,
            Requirement::Containers => !matches!(semantics.namespace, Namespace::Ipc | Namespace::Pid),
            Requirement::Hosts => card.reach == Reach::Network,
            Requirement::PeerDeath => card.hangup,
            Requirement::Outlives => semantics.lifetime == Lifetime::UntilRemoved,
            Requirement::Atomic => match semantics.atomic {
                Atomic::Message => true,
                Atomic::PipeBuf => size.0 <= PIPE_BUF,
                Atomic::Nothing => false,
            },
            Requirement::Poll => card.polled,
            Requirement::Unprivileged => semantics.privileges.is_empty(),
            Requirement::Connected => semantics.connected,
            Requirement::Connectionless => !semantics.connected,
        }
    }

    /// What a mechanism lacks that does not have it.
    fn lack(self) -> &'static str {
        self.get_message().unwrap_or_default()
    }
}

impl Need {
    /// A need without requirements, best in what the pattern is about.
    pub fn new(pattern: Pattern, size: Size) -> Self {
        Self {
            pattern,
            size,
            rate: None,
            requirements: Vec::new(),
            without: Vec::new(),
            objective: pattern.objective(),
        }
    }

    /// What is measured of what it optimises.
    pub fn workload(&self) -> Workload {
        match self.objective {
            Objective::Throughput => Workload::Throughput,
            Objective::Latency | Objective::Cpu => self.pattern.workload(),
        }
    }

    /// When its messages are begun, where each is answered.
    pub fn pace(&self) -> Pace {
        match (self.pattern, self.rate) {
            (Pattern::RequestReply | Pattern::Signal, Some(rate)) => Pace::Rate(rate),
            _ => Pace::BackToBack,
        }
    }

    /// Refuses a need that contradicts itself.
    pub fn check(&self) -> Result<(), Invalid> {
        let has = |requirement| self.requirements.contains(&requirement);
        if has(Requirement::Connected) && has(Requirement::Connectionless) {
            return Err(Invalid::new(
                "nothing is both connected and connectionless",
                "leave out one of them",
            ));
        }
        if let Some(both) = self.requirements.iter().find(|requirement| self.without.contains(requirement)) {
            return Err(Invalid::new(
                format!("nothing both has and lacks '{both}'"),
                "leave it out of one of them",
            ));
        }
        if self.size.0 == 0 {
            return Err(Invalid::new("a message of 0 bytes", "give a size of 1 or more"));
        }
        if self.size > Size::LARGEST {
            return Err(Invalid::new(
                format!("a message of {} is too large", self.size),
                format!("give at most {}", Size::LARGEST),
            ));
        }
        match (self.pattern, self.objective) {
            (Pattern::Signal, Objective::Throughput) => Err(Invalid::new(
                "a signal carries nothing, so that it has no throughput",
                "optimise latency or cpu, or take the pattern stream",
            )),
            (Pattern::Stream, Objective::Latency) => Err(Invalid::new(
                "the messages of a stream are not answered, so that it has no latency",
                "optimise throughput or cpu, or take the pattern request-reply",
            )),
            _ => Ok(()),
        }
    }

    /// Why what `card` describes is not offered, if it is not. Floors, operations and `null` are never offered, see
    /// [`is_offered`].
    pub fn excludes(&self, card: &Card) -> Option<Exclusion> {
        let exclusion = |cause, reason: &str| {
            Some(Exclusion { mechanism: card.name.to_owned(), cause, reason: reason.to_owned() })
        };
        let carries = card.payload == Payload::Bytes;
        match self.pattern {
            Pattern::RequestReply | Pattern::Stream if !carries => {
                return exclusion(Cause::Pattern, "carries nothing but a wake-up");
            }
            Pattern::RequestReply | Pattern::Signal if !card.takes(Workload::Latency) => {
                return exclusion(Cause::Pattern, "has no answers");
            }
            Pattern::Stream if !card.takes(Workload::Throughput) => {
                return exclusion(Cause::Pattern, "carries a few bytes that must be answered, and no stream");
            }
            _ => {}
        }
        if let Some(most) = card.semantics.most_bytes.filter(|most| carries && *most < self.size.0) {
            return exclusion(Cause::Size, &format!("its largest message is {most} bytes"));
        }
        let missing = self.requirements.iter().find(|requirement| !requirement.is_met(card, self.size));
        if let Some(missing) = missing {
            return exclusion(Cause::Requirement, missing.lack());
        }
        let unwanted = self.without.iter().find(|requirement| requirement.is_met(card, self.size))?;
        exclusion(Cause::Requirement, &format!("has '{unwanted}', which it must not have"))
    }
}

/// Whether what `card` describes can be offered to a program at all.
pub fn is_offered(card: &Card) -> bool {
    card.kind == CardKind::Mechanism && card.name != floor::NULL
}

/// Those of `cards` that meet `need`, and the others with the reason.
pub fn candidates<'a>(need: &Need, cards: &'a [Card]) -> (Vec<&'a Card>, Vec<Exclusion>) {
    let (mut met, mut excluded) = (Vec::new(), Vec::new());
    for card in cards.iter().filter(|card| is_offered(card)) {
        match need.excludes(card) {
            None => met.push(card),
            Some(exclusion) => excluded.push(exclusion),
        }
    }
    (met, excluded)
}

impl FromStr for Pattern {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        variant_named("pattern", text)
    }
}

impl FromStr for Objective {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        variant_named("objective", text)
    }
}

impl FromStr for Requirement {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        variant_named("need", text)
    }
}

serde_as_text!(Pattern, "request-reply");
serde_as_text!(Objective, "latency");
serde_as_text!(Requirement, "boundaries");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semantics::Semantics;
    use crate::testing::cards::card;
    use proptest::prelude::*;

    const WORKLOADS: &[Workload] = &[Workload::Latency, Workload::Throughput];

    /// A card that has everything that is wanted of messages, and no connection.
    const RICH: Card = Card {
        framing: Framing::Message,
        reach: Reach::Network,
        fds: true,
        hangup: true,
        polled: true,
        semantics: Semantics {
            connected: false,
            order: Order::Kept,
            loss: Loss::Never,
            when_full: WhenFull::Blocks,
            credentials: Credentials::OfMessage,
            naming: Naming::Path,
            other_users: OtherUsers::Anyone,
            namespace: Namespace::None,
            atomic: Atomic::Message,
            most_bytes: None,
            lifetime: Lifetime::UntilRemoved,
            privileges: "",
        },
        ..card("rich", CardKind::Mechanism, WORKLOADS, true)
    };
    /// A card that has nothing of it, and a connection.
    const POOR: Card = Card {
        reach: Reach::Related,
        semantics: Semantics {
            connected: true,
            order: Order::NotKept,
            loss: Loss::Overflow,
            when_full: WhenFull::Drops,
            namespace: Namespace::Ipc,
            privileges: "CAP_NET_RAW",
            ..Semantics::NONE
        },
        ..card("poor", CardKind::Mechanism, WORKLOADS, true)
    };

    fn requiring(requirement: Requirement) -> Need {
        Need { requirements: vec![requirement], ..Need::new(Pattern::RequestReply, Size(64)) }
    }

    #[test]
    fn each_requirement_excludes_who_lacks_it_with_a_reason_of_its_own() {
        let mut reasons = std::collections::BTreeSet::new();
        for &requirement in Requirement::ALL {
            let (has, lacks) = match requirement {
                Requirement::Connected => (POOR, RICH),
                _ => (RICH, POOR),
            };
            assert_eq!(requiring(requirement).excludes(&has), None, "{requirement}");
            let exclusion = requiring(requirement).excludes(&lacks).unwrap();
            assert_eq!(exclusion.cause, Cause::Requirement);
            assert!(reasons.insert(exclusion.reason), "{requirement}");
            let without =
                Need { requirements: Vec::new(), without: vec![requirement], ..requiring(requirement) };
            assert!(without.excludes(&has).is_some() && without.excludes(&lacks).is_none(), "{requirement}");
        }
    }

    #[test]
    fn the_pattern_and_the_size_exclude_what_cannot_carry_the_message() {
        let wake_up = Card { payload: Payload::None, ..RICH };
        let cause =
            |pattern, size, card: &Card| Need::new(pattern, Size(size)).excludes(card).map(|e| e.cause);
        assert_eq!(cause(Pattern::RequestReply, 1, &wake_up), Some(Cause::Pattern));
        assert_eq!(cause(Pattern::Stream, 1, &wake_up), Some(Cause::Pattern));
        assert_eq!(cause(Pattern::Signal, 1, &wake_up), None);
        let one_way = Card { workloads: &[Workload::Throughput], ..RICH };
        assert_eq!(cause(Pattern::RequestReply, 1, &one_way), Some(Cause::Pattern));
        assert_eq!(cause(Pattern::Stream, 1, &one_way), None);
        let token = Card { workloads: &[Workload::Latency], ..RICH };
        assert_eq!(cause(Pattern::Stream, 1, &token), Some(Cause::Pattern));
        let small = Card { semantics: Semantics { most_bytes: Some(4), ..RICH.semantics }, ..RICH };
        assert_eq!(cause(Pattern::RequestReply, 4, &small), None);
        assert_eq!(cause(Pattern::RequestReply, 5, &small), Some(Cause::Size));
        let of_pipe = Card { semantics: Semantics { atomic: Atomic::PipeBuf, ..RICH.semantics }, ..RICH };
        assert!(Requirement::Atomic.is_met(&of_pipe, Size(4096)));
        assert!(!Requirement::Atomic.is_met(&of_pipe, Size(4097)));
    }

    #[test]
    fn floors_operations_and_null_are_not_offered() {
        let floor = Card { kind: CardKind::Floor, ..RICH };
        let null = Card { name: floor::NULL, ..RICH };
        let cards = [RICH, floor, null, Card { kind: CardKind::Operation, ..RICH }];
        let (met, excluded) = candidates(&Need::new(Pattern::Stream, Size(1)), &cards);
        assert_eq!((met.len(), excluded.len()), (1, 0));
    }

    #[test]
    fn a_need_that_contradicts_itself_is_refused() {
        let both = [Requirement::Connected, Requirement::Connectionless];
        let plain = Need::new(Pattern::Signal, Size(1));
        for wrong in [
            Need { requirements: both.to_vec(), ..plain.clone() },
            Need { requirements: vec![Requirement::Poll], without: vec![Requirement::Poll], ..plain.clone() },
            Need { size: Size(0), ..plain.clone() },
            Need { size: Size(u64::MAX), ..plain.clone() },
            Need { objective: Objective::Throughput, ..plain.clone() },
            Need { objective: Objective::Latency, ..Need::new(Pattern::Stream, Size(1)) },
        ] {
            wrong.check().unwrap_err();
        }
        plain.check().unwrap();
    }

    proptest! {
        #[test]
        fn who_is_offered_has_all_that_is_required(
            wanted in proptest::sample::subsequence(Requirement::ALL.to_vec(), 0..=17),
            size in 1..10_000_u64,
            poor in any::<[bool; 8]>(),
        ) {
            let pick = |at: usize, semantics: &Semantics, other: &Semantics| {
                if poor[at] { *other } else { *semantics }
            };
            let (rich, bare) = (RICH.semantics, POOR.semantics);
            let semantics = Semantics {
                order: pick(0, &rich, &bare).order,
                loss: pick(1, &rich, &bare).loss,
                when_full: pick(2, &rich, &bare).when_full,
                naming: pick(3, &rich, &bare).naming,
                namespace: pick(4, &rich, &bare).namespace,
                connected: poor[5],
                ..rich
            };
            let card = Card { semantics, fds: poor[6], hangup: poor[7], ..RICH };
            let need = Need { requirements: wanted.clone(), ..Need::new(Pattern::RequestReply, Size(size)) };
            let all_met = wanted.iter().all(|requirement| requirement.is_met(&card, Size(size)));
            prop_assert_eq!(need.excludes(&card).is_none(), all_met);
        }

        #[test]
        fn no_text_panics_and_names_survive(text in ".{0,20}") {
            let _ = (text.parse::<Pattern>(), text.parse::<Objective>(), text.parse::<Requirement>());
            for &requirement in Requirement::ALL {
                prop_assert_eq!(requirement.to_string().parse::<Requirement>().unwrap(), requirement);
            }
        }
    }
}
