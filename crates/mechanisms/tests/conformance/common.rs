//! What every check needs: the variants of a mechanism, two connected endpoints, and messages with known content.

use crate::test_notes::skip;
use mechanisms::registry::{self, CARDS, SKELETON, visit_skeleton};
use mechanisms::{Endpoint, Mechanism, Operation, Shape, TrialContext, Visitor};
use model::card::{Card, CardKind, Framing, Support};
use model::{Domain, Params};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::Duration;

/// The longest that one check may take. It guards against a hang, and nothing else: emulated, the stream of
/// `sctp` takes more than a minute.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Parameters that affect the same code, so that testing each alone is not enough.
const TOGETHER: &[(&str, &str)] = &[
    ("shm-ring", "access=in-place,wait=spin"),
    ("shm-ring", "access=none,wait=spin,capacity=4K"),
    ("shm-ring", "access=in-place,wait=eventfd,capacity=4K"),
    ("shm-ring", "spins=1,wait=spin-then-block"),
    ("shm-ring", "memory=posix,wait=sysv-sem"),
    ("shm-ring", "memory=sysv,wait=sysv-sem,access=in-place"),
    ("shm-ring", "memory=file,wait=spin"),
    ("shm-queue", "locking=when-needed,lock=mutex,capacity=4K"),
    ("shm-queue", "locking=when-needed,lock=sysv-sem,memory=sysv,capacity=100"),
];

/// The mechanisms, floors and operations with each choice of each parameter, one parameter at a time, the others at their
/// defaults; and [`TOGETHER`]. The skeleton of a mechanism is among them.
///
/// With `IPCMARK_TEST_MECHANISMS=pipe,udp` in the environment, only those.
pub(crate) fn variants() -> Vec<(&'static Card, Params)> {
    let only = std::env::var("IPCMARK_TEST_MECHANISMS").ok();
    let chosen =
        |card: &&Card| only.as_ref().is_none_or(|only| only.split(',').any(|name| name == card.name));
    let mut variants = Vec::new();
    for card in CARDS.iter().chain([SKELETON]).filter(chosen) {
        variants.push((card, Params::default()));
        for param in card.params {
            let Domain::Choice(words) = param.domain else { continue };
            for word in words.iter().filter(|word| param.default != Some(**word)) {
                variants.push((card, Params::parse(&format!("{}={word}", param.name), card).unwrap()));
            }
        }
        for (_, params) in TOGETHER.iter().filter(|(name, _)| *name == card.name) {
            variants.push((card, Params::parse(params, card).unwrap()));
        }
    }
    assert!(!variants.is_empty(), "IPCMARK_TEST_MECHANISMS names nothing in the registry");
    variants
}

/// Whether these are the defaults, or say only how an endpoint waits: such variants get the most iterations.
pub(crate) fn is_main(params: &Params) -> bool {
    params.is_empty() || params.to_string().starts_with("wait=")
}

/// Visits the mechanism or operation of `card`, which may be the skeleton.
pub(crate) fn visit<V: Visitor>(card: &Card, visitor: V) -> V::Output {
    if card.name == SKELETON.name {
        visit_skeleton(visitor)
    } else {
        registry::visit(card.name, visitor).unwrap()
    }
}

/// Whether the mechanism or operation of `card` works here with `params`.
pub(crate) fn probe(card: &Card, params: &Params) -> Support {
    struct Probe<'a>(&'a Params);
    impl Visitor for Probe<'_> {
        type Output = Support;
        fn mechanism<M: Mechanism>(self) -> Support {
            M::probe(self.0)
        }
        fn operation<O: Operation>(self) -> Support {
            O::probe(self.0)
        }
    }
    visit(card, Probe(params))
}

/// Held while a check runs: endpoints that spin take the CPUs from one another.
pub(crate) fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `check` on every mechanism in every variant, each under a deadline.
pub(crate) fn each_mechanism<C>(check: C)
where
    C: Visitor<Output = ()> + Clone + WithParams + Send + 'static,
{
    let _guard = one_at_a_time();
    for (card, params) in variants().into_iter().filter(|(card, _)| card.kind != CardKind::Operation) {
        if let Support::No { reason, remedy } = probe(card, &params) {
            skip(&format!("{reason}; {remedy}"), &format!("the conformance of {}:{params}", card.name));
            continue;
        }
        let name = format!("{}:{params}", card.name);
        let check = check.clone().with(params);
        let (done, ended) = mpsc::channel();
        let checking = std::thread::Builder::new().name(name.clone()).spawn(move || {
            visit(card, check);
            done.send(()).unwrap();
        });
        match ended.recv_timeout(TIMEOUT) {
            Ok(()) => checking.unwrap().join().unwrap(),
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("{name} hangs"),
            Err(mpsc::RecvTimeoutError::Disconnected) => panic!("{name} failed"),
        }
    }
}

/// A check that is told its parameters.
pub(crate) trait WithParams {
    /// The check with `params`.
    fn with(self, params: Params) -> Self;
}

/// A test `name` whose body runs for every variant `params` of every `mechanism`.
macro_rules! check {
    ($name:ident, |$params:ident, $mechanism:ident| $body:block) => {
        #[test]
        fn $name() {
            #[derive(Clone, Default)]
            struct Check(model::Params);
            impl crate::common::WithParams for Check {
                fn with(self, params: model::Params) -> Self {
                    Self(params)
                }
            }
            impl mechanisms::Visitor for Check {
                type Output = ();
                fn mechanism<$mechanism: mechanisms::Mechanism>(self) {
                    let $params = &self.0;
                    $body
                }
                fn operation<O: mechanisms::Operation>(self) {}
            }
            crate::common::each_mechanism(Check::default());
        }
    };
}

/// Connects two endpoints of `M` in two threads, and runs `client` and `server` with them.
pub(crate) fn connected<M: Mechanism>(
    params: &Params,
    shape: Shape,
    client: impl FnOnce(M::End) + Send,
    server: impl FnOnce(M::End) + Send,
) {
    let directory = run_directory();
    let trial = TrialContext { params, shape, directory: directory.path(), number: 1, network: None };
    let (tickets, ticket) = mpsc::channel();
    // An endpoint that is gone before its peer has accepted died during set-up, which a deadline ends in real use.
    let both_connected = std::sync::Barrier::new(2);
    std::thread::scope(|threads| {
        // Dropped if the client fails before it has sent a ticket, so that the server fails too instead of waiting.
        let tickets = tickets;
        let server_connected = &both_connected;
        threads.spawn(move || {
            let endpoint = M::connect(&trial, ticket.recv().unwrap()).unwrap();
            server_connected.wait();
            server(endpoint);
        });
        let (bound, ticket) = M::bind(&trial).unwrap();
        tickets.send(ticket).unwrap();
        let endpoint = M::accept(bound).unwrap();
        both_connected.wait();
        client(endpoint);
    });
    assert_empty(directory.path());
}

/// A directory whose name begins as that of every run does.
pub(crate) fn run_directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("ipcmark-test-").tempdir().unwrap()
}

pub(crate) fn assert_empty(directory: &Path) {
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0, "names are left in {}", directory.display());
}

pub(crate) fn send_all<E: Endpoint>(endpoint: &mut E, bytes: &[u8], framing: Framing) {
    let mut sent = 0;
    let in_place = E::IN_PLACE && endpoint.in_place().outgoing;
    if bytes.is_empty() {
        return assert_eq!(endpoint.send(bytes), Ok(0));
    }
    while sent < bytes.len() {
        if in_place {
            let part = endpoint.reserve(bytes.len() - sent).unwrap();
            let count = part.len();
            part.copy_from_slice(&bytes[sent..sent + count]);
            endpoint.commit(count).unwrap();
            sent += count;
            continue;
        }
        let taken = endpoint.send(&bytes[sent..]).unwrap();
        assert!(taken > 0 && taken <= bytes.len() - sent);
        assert!(framing != Framing::Message || taken == bytes.len(), "a message was split");
        sent += taken;
    }
}

pub(crate) fn receive_all<E: Endpoint>(endpoint: &mut E, into: &mut [u8], framing: Framing) {
    let mut received = 0;
    let in_place = E::IN_PLACE && endpoint.in_place().incoming;
    if into.is_empty() {
        return assert_eq!(endpoint.receive(&mut [0]), Ok(0), "an empty message has bytes");
    }
    while received < into.len() {
        if in_place {
            let part = endpoint.peek(into.len() - received).unwrap();
            let count = part.len();
            into[received..received + count].copy_from_slice(part);
            endpoint.release(count).unwrap();
            received += count;
            continue;
        }
        let count = endpoint.receive(&mut into[received..]).unwrap();
        assert!(count > 0 && count <= into.len() - received);
        assert!(framing != Framing::Message || count == into.len(), "a message arrived in pieces");
        received += count;
    }
}

/// Bytes that differ from message to message and from offset to offset.
///
/// They repeat after [`PERIOD`] bytes and 256 messages, so that each is computed once: tests send gigabytes of them, and are
/// not optimised.
pub(crate) fn content(number: usize, size: usize) -> Vec<u8> {
    static PERIODS: [OnceLock<Vec<u8>>; 256] = [const { OnceLock::new() }; 256];
    let of_message = number.wrapping_mul(131) as u8;
    let byte = |at: usize| (at.wrapping_mul(31) ^ (at >> 8)) as u8 ^ of_message;
    let period = PERIODS[usize::from(of_message)].get_or_init(|| (0..PERIOD).map(byte).collect());
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        bytes.extend_from_slice(&period[..PERIOD.min(size - bytes.len())]);
    }
    bytes
}

/// The offset at which the bytes of a message begin again.
const PERIOD: usize = 1 << 16;

/// The sizes worth trying: both sides of every boundary, 0 where a message may be empty, and the mechanism's limit.
pub(crate) fn sizes(card: &Card, params: &Params) -> Vec<usize> {
    let mut sizes = vec![1, 2, 7, 8, 9, 55, 56, 57, 63, 64, 65, 4095, 4096, 4097, 65_536, 100_000, 1 << 20];
    let largest = largest(card, params);
    if largest < usize::MAX {
        sizes.retain(|size| *size < largest);
        sizes.extend([largest - 1, largest]);
        sizes.retain(|size| *size > 0);
    }
    sizes.extend(empty(card));
    sizes
}

/// 0, if messages may be empty.
pub(crate) fn empty(card: &Card) -> Option<usize> {
    card.empty.then_some(0)
}

/// The largest message of the mechanism, or `usize::MAX`.
pub(crate) fn largest(card: &Card, params: &Params) -> usize {
    match probe(card, params) {
        Support::Yes { largest_bytes: Some(largest) } => usize::try_from(largest).unwrap(),
        _ => usize::MAX,
    }
}
