//! A network with a delay and with losses that are known: a relay between two devices, each in a namespace of its own. What a
//! machine does not allow is skipped with the reason.

use crate::common::{AS_ROOT, IPCMARK, Place, asked, assert_none_failed, read, run, skip};
use crate::remote::{TwoHosts, ip};
use model::record::Results;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read as read_from, write};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space, set_current_timer_slack};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The devices' name, in each namespace.
const DEVICE: &str = "tun0";
/// For how long the relay holds a packet in turn: what else a packet takes is in both, and that is some milliseconds for each of four
/// that wait for a busy CPU.
const DELAYS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];
/// How many runs there are at most.
const TRIES: u32 = 5;
/// Of the datagrams with messages, one of so many is lost.
const ONE_OF: u64 = 100;

/// A relay: it takes the packets of each device and gives them to the other. It ends when this is dropped.
struct Relay {
    ends: Arc<AtomicBool>,
    counts: Arc<Counts>,
    threads: Vec<JoinHandle<()>>,
}

/// What passed from the client to the server in datagrams of the size that is lost.
#[derive(Default)]
struct Counts {
    came: AtomicU64,
    lost: AtomicU64,
}

/// What the relay does to packets.
#[derive(Clone, Copy)]
struct Way {
    delay: Duration,
    /// The bytes of the packets of which some are lost.
    lost_bytes: Option<usize>,
}

impl Relay {
    /// Between fresh devices of `hosts`; `None`, and a word, where this machine does not allow them.
    fn new(hosts: &TwoHosts, way: Way, untested: &str) -> Option<Self> {
        let devices = [&hosts.a, &hosts.b].map(|namespace| device_in(namespace));
        let [a, b] = match devices {
            [Ok(a), Ok(b)] => [Arc::new(a), Arc::new(b)],
            [a, b] => {
                skip(
                    &format!("a TUN device in a namespace: {:?} {:?}; {AS_ROOT}", a.err(), b.err()),
                    untested,
                );
                return None;
            }
        };
        for (namespace, own, peer) in [(&hosts.a, 1, 2), (&hosts.b, 2, 1)] {
            let net = hosts.net;
            let done = [
                format!("-n {namespace} addr add 10.214.{net}.{own} peer 10.214.{net}.{peer} dev {DEVICE}"),
                // A burst waits here and is not lost.
                format!("-n {namespace} link set {DEVICE} txqueuelen 100000 up"),
            ];
            done.iter().for_each(|command| assert!(ip(command).0, "{command}: {}", ip(command).1));
        }
        let (ends, counts) = (Arc::new(AtomicBool::new(false)), Arc::new(Counts::default()));
        let threads = [(a.clone(), b.clone(), way), (b, a, Way { lost_bytes: None, ..way })]
            .map(|(from, to, way)| {
                let (ends, counts) = (ends.clone(), counts.clone());
                std::thread::spawn(move || relay(&from, &to, way, &ends, &counts))
            })
            .into();
        Some(Self { ends, counts, threads })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// A device in the namespace that `ip netns` calls so. A thread alone can be in another namespace.
fn device_in(namespace: &str) -> Result<OwnedFd, Errno> {
    let namespace = File::open(format!("/run/netns/{namespace}")).map_err(|_| Errno::NOENT)?;
    let make = move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        sys::tun::make(DEVICE)
    };
    std::thread::spawn(make).join().unwrap()
}

/// Takes packets from one device and gives them to the other after a while.
fn relay(from: &OwnedFd, to: &OwnedFd, way: Way, ends: &AtomicBool, counts: &Counts) {
    /// How long before a packet is due nothing else is waited for.
    const AWAKE: Duration = Duration::from_micros(150);
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let mut held: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut packet = vec![0; 65_536];
    // Any sequence of numbers does that is no pattern of the messages'.
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    while !ends.load(Ordering::Relaxed) {
        while let Ok(bytes) = read_from(from, &mut packet) {
            let due = Instant::now() + way.delay;
            if way.lost_bytes == Some(bytes) {
                counts.came.fetch_add(1, Ordering::Relaxed);
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                if random.is_multiple_of(ONE_OF) {
                    counts.lost.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
            }
            held.push_back((due, packet[..bytes].to_vec()));
            if held.front().is_some_and(|(due, _)| *due <= Instant::now()) {
                break;
            }
        }
        while held.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            // A device that was taken down takes nothing.
            let _ = write(to, &held.pop_front().unwrap().1);
        }
        let left = held.front().map_or(Duration::from_millis(20), |(due, _)| {
            due.saturating_duration_since(Instant::now()).saturating_sub(AWAKE)
        });
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
        let _ = poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&timeout));
    }
}

/// The results of `ipcmark run ARGUMENTS` over the relay of `hosts`.
fn results(hosts: &TwoHosts, place: &Place, name: &str, arguments: &[&str]) -> Results {
    let (output, via) = (place.path(name), hosts.via());
    let address = format!("10.214.{}.2", hosts.net);
    let mut all = vec!["run", "--server-via", &via, "--via-program", IPCMARK, "--server-address", &address];
    all.extend(["-o", output.to_str().unwrap()]);
    all.extend(arguments);
    run(&mut hosts.ipcmark(place, &all)).expect(0);
    place.assert_nothing_is_left("a run over the relay");
    read(&output)
}

/// Slow: a relay delays or loses what it measures.
#[test]
fn a_delay_of_the_network_is_recovered() {
    let untested = "a network with a delay is not measured";
    let Some(hosts) = TwoHosts::new(untested) else { return };
    let place = Place::new();
    let arguments = ["tcp", "udp", "-s", "1", "--iterations", "1", "--rounds", "30"];
    // Other work on this host only adds to a time: no round trip is shorter than both delays, and of the shorter delay the fastest is
    // shorter than any of the longer one.
    let mut fastest_ns = [const { BTreeMap::new() }; 2];
    for (delay, fastest_ns) in DELAYS.into_iter().zip(&mut fastest_ns) {
        let Some(_relay) = Relay::new(&hosts, Way { delay, lost_bytes: None }, untested) else { return };
        let results = results(&hosts, &place, &format!("delay-{delay:?}.jsonl"), &arguments);
        assert_none_failed(&results);
        for record in asked(&results) {
            let fastest: &mut f64 = fastest_ns.entry(record.case.key()).or_insert(f64::INFINITY);
            *fastest = record.samples.iter().map(model::Sample::iteration_ns).fold(*fastest, f64::min);
            assert!(
                *fastest >= 2.0 * delay.as_nanos() as f64,
                "{}: {fastest} ns over {delay:?}",
                record.case
            );
            let network = record.samples[0].network.as_ref().unwrap();
            assert_eq!(network.client.link.as_deref(), Some(DEVICE));
        }
    }
    let [short, long] = &fastest_ns;
    assert!(short.len() == 2 && short.keys().eq(long.keys()), "{fastest_ns:?}");
    assert!(short.iter().all(|(case, ns)| *ns < long[case]), "{fastest_ns:?}");
}

/// Slow: a relay delays or loses what it measures.
#[test]
fn the_share_that_a_network_loses_is_within_its_interval() {
    const SIZE: usize = 200;
    const HEADERS: usize = 28;
    let untested = "a network that loses 1% is not measured";
    let Some(hosts) = TwoHosts::new(untested) else { return };
    let way = Way { delay: Duration::ZERO, lost_bytes: Some(SIZE + HEADERS) };
    let Some(relay) = Relay::new(&hosts, way, untested) else { return };
    let place = Place::new();
    let mechanism = "udp-unacked:rcvbuf=8M";
    let size = SIZE.to_string();
    let arguments = [mechanism, "-w", "throughput", "-s", &size, "--total", "200K", "--rounds", "25"];
    // An interval that holds in 95% of runs holds in one of a few.
    let mut seen = Vec::new();
    while seen.len() < TRIES as usize {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let before = (count(&relay.counts.came), count(&relay.counts.lost));
        let results = results(&hosts, &place, &format!("loss-{}.jsonl", seen.len()), &arguments);
        assert_none_failed(&results);
        let record = asked(&results).next().unwrap();
        let (came, lost) = (count(&relay.counts.came) - before.0, count(&relay.counts.lost) - before.1);
        assert!(came > 20_000, "the relay saw {came} messages");
        let truth = lost as f64 / came as f64;
        let (low, high) = record.summary.as_ref().unwrap().lost_interval.unwrap();
        // What finds no room in the server's buffer is lost beside it, and counted there.
        let network = |sample: &model::Sample| sample.network.as_ref().unwrap().server.dropped.unwrap();
        let dropped: u64 = record.samples.iter().map(network).sum();
        if low <= truth && truth <= high && dropped == 0 {
            return;
        }
        seen.push((truth, low, high, dropped));
    }
    panic!("lost, reported from, to, and dropped by the server: {seen:?}");
}

/// Sends a datagram to every UDP port of `namespace`, at its own `address`, again and again until `ends`.
fn intrude(namespace: &str, address: Ipv4Addr, ends: &AtomicBool) {
    let namespace = File::open(format!("/run/netns/{namespace}")).unwrap();
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
    let socket = UdpSocket::bind((address, 0)).unwrap();
    let own_port = socket.local_addr().unwrap().port();
    while !ends.load(Ordering::Relaxed) {
        let sockets = std::fs::read_to_string("/proc/thread-self/net/udp").unwrap();
        for line in sockets.lines().skip(1) {
            let local = line.split_whitespace().nth(1).unwrap();
            let port = u16::from_str_radix(local.rsplit_once(':').unwrap().1, 16).unwrap();
            if port != own_port {
                // A port that has closed since refuses it.
                let _ = socket.send_to(b"stranger", (address, port));
            }
        }
    }
}

/// The delay of the network holds the client's first datagram back, so that others come before it.
/// Slow: a relay delays or loses what it measures.
#[test]
fn strangers_that_send_datagrams_are_counted() {
    const HELD: Duration = Duration::from_millis(20);
    let untested = "strangers between two hosts are not tested";
    let Some(hosts) = TwoHosts::new(untested) else { return };
    let Some(_relay) = Relay::new(&hosts, Way { delay: HELD, lost_bytes: None }, untested) else { return };
    let (place, ends) = (Place::new(), AtomicBool::new(false));
    let address: Ipv4Addr = format!("10.214.{}.2", hosts.net).parse().unwrap();
    let arguments = ["udp", "-s", "1", "--iterations", "1", "--rounds", "5"];
    let turned_away = |nth: u32| {
        let results = results(&hosts, &place, &format!("strangers-{nth}.jsonl"), &arguments);
        assert_none_failed(&results);
        let record = asked(&results).next().unwrap();
        let setting = record.settings.iter().find(|setting| setting.name == "strangers turned away");
        setting.is_some_and(|setting| setting.got.parse::<u64>().unwrap() > 0)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| intrude(&hosts.b, address, &ends));
        let _ended = EndsWhenDropped(&ends);
        // Where other work keeps the strangers from running for so long, they come too late.
        assert!((0..TRIES).any(turned_away), "nobody was turned away in {TRIES} runs");
    });
}

/// Says so to a thread when this is dropped, by a panic too: a scope waits for its threads.
struct EndsWhenDropped<'a>(&'a AtomicBool);

impl Drop for EndsWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
