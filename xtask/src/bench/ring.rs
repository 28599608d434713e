//! `cargo xtask bench ring`: the ring beside its floor and beside other rings, as ratios of one interleaved run.
//!
//! All pairs of one size are alive at once, on the same two CPUs, and slices of a millisecond of each follow one another.
//! What the endpoints are is in `endpoints`, what they do in `loops`.

mod endpoints;
mod loops;

use super::setup::{Bench, shown};
use analysis::stats::{median, median_interval};
use endpoints::{Maker, OnLine, Pair};
use harness::clock::{Clock, Timer};
use loops::{Order, Outcome, Runs, Traffic};
use model::record::ClockSource;
use model::units::format_ns;
use model::{CpuPair, Placement};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use sys::shared_slots::LONGEST_IN_LINE;

/// The time that one line of the benchmark may take.
const TIME: Duration = Duration::from_secs(12);
/// What one slice measures.
const SLICE_NS: f64 = 1e6;
const CLOCK: ClockSource = ClockSource::MonotonicRaw;
/// How many rounds make one value of a ratio. Rounds near in time resemble each other; batches do less.
const ROUNDS_PER_BATCH: usize = 16;

/// The floor of a round trip of eight bytes. In the other lines it says how far apart the two CPUs were.
const CACHE_LINE: &str = "cache line";
/// The floor of larger messages: written where the other endpoint reads them, with one hand-over.
const SHARED_COPY: &str = "shared copy";
/// The floor of larger messages that are copied in and out of whole slots: two copies and one hand-over.
const BARE_COPIES: &str = "bare copies";

/// The lines of the benchmark.
const LINES: [(Traffic, usize); 5] = [
    (Traffic::RoundTrip, 8),
    (Traffic::RoundTrip, 4096),
    (Traffic::RoundTrip, 65_536),
    (Traffic::Stream, 32),
    (Traffic::Stream, 65_536),
];

/// Prints the time of the other rings over the ring's, and the ring's over its floor.
pub fn run(bench: &Bench) -> Outcome<()> {
    let cpus = bench.cpus(Placement::SameLlc)?;
    println!(
        "Both endpoints wait awake, as threads on CPU {} and CPU {} (rtrb shares no memory between processes).",
        cpus.client, cpus.server
    );
    println!(
        "Median time of a round trip or a message, and its ratio with a 95% interval over batches of rounds."
    );
    LINES.into_iter().try_for_each(|(traffic, size_bytes)| line(traffic, size_bytes, cpus))
}

/// Where the copied messages are made and read, as those in place are. What else is copied has a number and is not read.
const MADE_AND_READ: &str = "ring, made, read";
const IN_PLACE: &str = "ring, in place";

/// The pairs of one line: names, what they do, endpoints. The ring itself is the first, and [`MADE_AND_READ`] the second.
fn pairs(traffic: Traffic, size_bytes: usize) -> Outcome<Vec<(&'static str, Traffic, Pair)>> {
    let mut pairs = vec![
        ("ring", traffic, endpoints::ring(size_bytes)?),
        (MADE_AND_READ, traffic, endpoints::ring_made_and_read(size_bytes)?),
        (IN_PLACE, traffic, endpoints::ring_in_place(size_bytes)?),
        ("rtrb", traffic, rtrb(size_bytes)?),
        ("iceoryx2", traffic, endpoints::iceoryx2(size_bytes)),
        (CACHE_LINE, Traffic::RoundTrip, endpoints::cache_line()?),
    ];
    // What fits in a line has the line alone for its floor.
    if size_bytes > LONGEST_IN_LINE {
        pairs.push((SHARED_COPY, traffic, endpoints::shared_copy(traffic, size_bytes)?));
        pairs.push((BARE_COPIES, traffic, endpoints::bare_copies(traffic, size_bytes)?));
    }
    Ok(pairs)
}

/// rtrb has the size of its messages in its type.
fn rtrb(size_bytes: usize) -> Outcome<Pair> {
    match size_bytes {
        8 => Ok(endpoints::rtrb::<[u8; 8]>()),
        32 => Ok(endpoints::rtrb::<[u8; 32]>()),
        4096 => Ok(endpoints::rtrb::<OnLine<4096>>()),
        65_536 => Ok(endpoints::rtrb::<OnLine<65_536>>()),
        _ => Err(format!("no rtrb of {size_bytes} bytes")),
    }
}

fn line(traffic: Traffic, size_bytes: usize, cpus: CpuPair) -> Outcome<()> {
    let (mut names, mut clients, mut servers) = (Vec::new(), Vec::new(), Vec::new());
    for (name, traffic, [client, server]) in pairs(traffic, size_bytes)? {
        names.push(name);
        clients.push((traffic, client));
        servers.push(server);
    }
    let (orders, to_obey) = channel();
    let (answers, answered) = channel();
    let times = std::thread::scope(|threads| {
        threads.spawn(move || serve(servers, cpus.server, &to_obey, &answers));
        let client = threads.spawn(move || measure(clients, cpus.client, size_bytes, &orders, &answered));
        client.join().map_err(|_| "the client panicked".to_owned())?
    })?;
    println!("{} of {size_bytes} B", if traffic == Traffic::RoundTrip { "round trip" } else { "stream" });
    for (at, name) in names.iter().enumerate() {
        let ratio = |over, under| {
            shown(median_interval(&log_ratios(&times, over, under)).map(|estimate| estimate.map(f64::exp)))
        };
        let said = match *name {
            "ring" => String::new(),
            SHARED_COPY | BARE_COPIES => format!("the ring over it {}", ratio(0, at)),
            CACHE_LINE if size_bytes == 8 => format!("the ring over it {}", ratio(0, at)),
            IN_PLACE => format!("over the ring {}, made and read {}", ratio(at, 0), ratio(at, 1)),
            CACHE_LINE => format!("its round trip, 10% to 90% of the slices: {}", spread(&times, at)),
            _ => format!("over the ring {}", ratio(at, 0)),
        };
        println!("  {name:<16} {:>9}  {said}", shown_time(&times, at));
    }
    Ok(())
}

fn shown_time(rounds: &[Round], at: usize) -> String {
    let all: Vec<f64> = rounds.iter().flat_map(|round| round[at]).collect();
    format_ns(median(&all).unwrap_or(f64::NAN))
}

/// Between which times the middle four fifths of the slices of the pair at `at` lie. A hypervisor may now and then put both
/// CPUs on one core, where a line that changes hands takes a seventh of the time.
fn spread(rounds: &[Round], at: usize) -> String {
    let mut all: Vec<f64> = rounds.iter().flat_map(|round| round[at]).collect();
    all.sort_unstable_by(f64::total_cmp);
    let tenths =
        |tenths: usize| all.get(all.len() * tenths / 10).map_or_else(String::new, |ns| format_ns(*ns));
    format!("{} to {}", tenths(1), tenths(9))
}

/// The times of one round: two for each pair.
type Round = Vec<[f64; 2]>;

/// One logarithm of the ratio for each batch of rounds.
fn log_ratios(rounds: &[Round], over: usize, under: usize) -> Vec<f64> {
    let log = |times: [f64; 2]| times.iter().map(|ns| ns.ln() / 2.0).sum::<f64>();
    rounds
        .chunks_exact(ROUNDS_PER_BATCH)
        .filter_map(|batch| {
            let ratios: Vec<f64> = batch.iter().map(|round| log(round[over]) - log(round[under])).collect();
            median(&ratios)
        })
        .collect()
}

// ---- two threads ----

fn make(makers: Vec<Maker>, cpu: u32) -> Outcome<Vec<Box<dyn Runs>>> {
    sys::process::pin_to(cpu).map_err(|failure| failure.to_string())?;
    makers.into_iter().map(|make| make()).collect()
}

/// The thread of the servers. It sleeps between slices.
fn serve(makers: Vec<Maker>, cpu: u32, orders: &Receiver<Order>, answers: &Sender<Outcome<f64>>) {
    let made = make(makers, cpu);
    // Nobody listens any more when the client has failed.
    let (mut endpoints, _) = match made {
        Ok(endpoints) => (endpoints, answers.send(Ok(0.0))),
        Err(error) => (Vec::new(), answers.send(Err(error))),
    };
    let clock = Clock::new(CLOCK);
    for order in orders {
        let Some(endpoint) = endpoints.get_mut(order.pair) else { return };
        if answers.send(endpoint.run_server(order, clock)).is_err() {
            return;
        }
    }
}

/// The thread of the clients: rounds of slices, each pair twice, the second time in the opposite order.
fn measure(
    clients: Vec<(Traffic, Maker)>,
    cpu: u32,
    size_bytes: usize,
    orders: &Sender<Order>,
    answers: &Receiver<Outcome<f64>>,
) -> Outcome<Vec<Round>> {
    let gone = || "the server is gone".to_owned();
    let (traffics, makers): (Vec<_>, Vec<_>) = clients.into_iter().unzip();
    let mut endpoints = make(makers, cpu)?;
    answers.recv().map_err(|_| gone())??;
    let clock = Clock::new(CLOCK);
    // A stream is steady when its ring has filled, and as long as it does not drain.
    let lead = |traffic| match traffic {
        Traffic::RoundTrip => 16,
        Traffic::Stream => 2 * endpoints::capacity(size_bytes) as u64,
    };
    let count = endpoints.len();
    let (mut first, mut iterations) = (vec![1; count], vec![100; count]);
    let mut slice = |pair: usize| -> Outcome<f64> {
        let traffic = traffics[pair];
        let lead = lead(traffic);
        let order = Order { pair, traffic, first: first[pair], lead, iterations: iterations[pair] };
        orders.send(order).map_err(|_| gone())?;
        let own = endpoints[pair].run_client(order, clock)?;
        let servers = answers.recv().map_err(|_| gone())??;
        let ns = if traffic == Traffic::Stream { servers } else { own };
        first[pair] = order.end();
        iterations[pair] = ((SLICE_NS / ns) as u64).clamp(16, 1 << 20);
        Ok(ns)
    };
    let timer = Timer::start();
    let mut rounds = Vec::new();
    // The first rounds warm up, and size the slices.
    for round in -2.. {
        let mut times = vec![[f64::NAN; 2]; count];
        for (pair, times) in times.iter_mut().enumerate() {
            times[0] = slice(pair)?;
        }
        for (pair, times) in times.iter_mut().enumerate().rev() {
            times[1] = slice(pair)?;
        }
        if round >= 0 {
            rounds.push(times);
        }
        if timer.elapsed() > TIME {
            break;
        }
    }
    Ok(rounds)
}
