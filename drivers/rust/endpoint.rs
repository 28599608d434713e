//! The core of an endpoint of ipcmark, by the document docs/reference/protocol.md, for drivers in Rust: messages,
//! phases and payload. What connects two endpoints is each driver's own.

// No driver needs all of it.
#![allow(dead_code)]

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;
use tokio::io::{AsyncReadExt, BufReader, Stdin};
use tokio::runtime::{Builder, Runtime};

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The most that the coordinator says at once.
const MOST_SAID_BYTES: usize = 16 << 20;
/// The only parameter that an endpoint may know.
const CODEC: &str = "codec";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    Latency,
    Transfer,
    Throughput,
}

/// What every stream can do, and what needs no more than one message at a time.
pub const ALL: &[Workload] = &[Workload::Latency, Workload::Transfer, Workload::Throughput];
pub const IN_TURN: &[Workload] = &[Workload::Latency, Workload::Transfer];

/// The mechanisms over which a message of a codec has its length before it.
const BYTE_STREAMS: [&str; 3] = ["pipe", "unix-stream", "tcp"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    Client,
    Server,
}

#[derive(Debug, Deserialize)]
pub struct Network {
    pub server: String,
    pub token: Vec<u8>,
}

#[derive(Debug, Deserialize)]
pub struct Orders {
    pub role: Role,
    pub mechanism: String,
    parameters: BTreeMap<String, String>,
    pub workload: Workload,
    pub size_bytes: usize,
    pub descriptors: Vec<i32>,
    pub directory: PathBuf,
    pub number: u64,
    pub network: Option<Network>,
}

impl Orders {
    pub fn is_client(&self) -> bool {
        self.role == Role::Client
    }

    /// The codec that makes bytes of messages, if one does.
    pub fn codec(&self) -> Option<&str> {
        self.parameters.get(CODEC).map(String::as_str)
    }

    /// A path of this trial's own, which ends with `what`.
    pub fn path(&self, what: &str) -> PathBuf {
        self.directory.join(format!("{}.{what}", self.number))
    }
}

#[derive(Debug, Deserialize)]
struct Stretch {
    messages: u64,
    timed: bool,
    acknowledged: bool,
}

#[derive(Debug, Deserialize)]
struct Phase {
    check: bool,
    each: bool,
    stretches: Vec<Stretch>,
}

/// What the coordinator says.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Heard {
    Hello(serde::de::IgnoredAny),
    Orders(Box<Orders>),
    Ticket(Vec<u8>),
    Phase(Phase),
    Goodbye,
}

#[derive(Debug, Serialize)]
struct Mechanism<'a> {
    name: &'a str,
    workloads: &'a [Workload],
    codecs: &'a [&'a str],
}

#[derive(Debug, Default, Serialize)]
struct Done {
    elapsed_ns: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    each_ns: Vec<u64>,
}

/// What the endpoint says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Said<'a> {
    Hello {
        protocol: &'a str,
        version: u32,
        program: &'a str,
        runtime: String,
        library: &'a str,
        capabilities: &'a [&'a str],
        mechanisms: Vec<Mechanism<'a>>,
    },
    Ticket(&'a [u8]),
    Connected,
    Ready,
    Done(Done),
    Failed(String),
}

fn say(message: &Said) -> Result<()> {
    let body = serde_json::to_vec(message)?;
    let mut output = std::io::stdout().lock();
    output.write_all(&u32::try_from(body.len())?.to_le_bytes())?;
    output.write_all(&body)?;
    Ok(output.flush()?)
}

/// A message of a phase: its bytes are made where they are sent from, and checked where they came.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    pub number: u64,
    pub size: usize,
    check: bool,
}

impl Message {
    fn byte(&self, k: usize) -> u8 {
        (self.number.wrapping_add(k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }

    /// Makes it of `bytes`, of which there are `size`. Those that nobody checks stay as they are.
    pub fn write(&self, bytes: &mut [u8]) {
        let number = self.number.to_le_bytes();
        let held = self.size.min(number.len());
        bytes[..held].copy_from_slice(&number[..held]);
        if self.check {
            bytes.iter_mut().enumerate().skip(8).for_each(|(k, byte)| *byte = self.byte(k));
        }
    }

    /// The same in memory of its own.
    pub fn to_vec(self) -> Vec<u8> {
        let mut bytes = vec![0; self.size];
        self.write(&mut bytes);
        bytes
    }

    /// Whether it is this one that came.
    pub fn verify(&self, bytes: &[u8]) -> Result<()> {
        let number = self.number.to_le_bytes();
        let held = self.size.min(number.len());
        let is_whole = bytes.len() == self.size && bytes[..held] == number[..held];
        if !is_whole
            || (self.check && bytes.iter().enumerate().skip(8).any(|(k, byte)| *byte != self.byte(k)))
        {
            return Err(format!("message {} came changed, or another came in its place", self.number).into());
        }
        Ok(())
    }
}

/// What connects the endpoints: it sends a message, and receives the one that is due.
pub trait Channel {
    async fn send(&mut self, message: Message) -> Result<()>;
    async fn receive(&mut self, message: Message) -> Result<()>;
}

/// A trial, of which the coordinator says what is next.
pub struct Trial {
    pub orders: Orders,
    input: Input,
}

struct Input(BufReader<Stdin>);

impl Input {
    /// The next message; goodbye where the coordinator is gone.
    async fn hear(&mut self) -> Result<Heard> {
        let Ok(length) = self.0.read_u32_le().await else { return Ok(Heard::Goodbye) };
        let length = usize::try_from(length)?;
        if length > MOST_SAID_BYTES {
            return Err(format!("the coordinator says {length} bytes at once").into());
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await?;
        Ok(serde_json::from_slice(&body)?)
    }
}

impl Trial {
    /// Tells the client how this server is reached.
    pub fn announce(&self, ticket: impl AsRef<[u8]>) -> Result<()> {
        say(&Said::Ticket(ticket.as_ref()))
    }

    /// How the server of this client is reached.
    pub async fn ticket(&mut self) -> Result<Vec<u8>> {
        match self.input.hear().await? {
            Heard::Ticket(ticket) => Ok(ticket),
            other => Err(format!("{other:?} came instead of the ticket").into()),
        }
    }

    /// The same as text.
    pub async fn ticket_text(&mut self) -> Result<String> {
        Ok(String::from_utf8(self.ticket().await?)?)
    }

    /// Does what the coordinator says, phase by phase, until it says goodbye.
    pub async fn phases(mut self, mut channel: impl Channel) -> Result<()> {
        say(&Said::Connected)?;
        loop {
            let phase = match self.input.hear().await? {
                Heard::Phase(phase) => phase,
                Heard::Goodbye => return Ok(()),
                other => return Err(format!("{other:?} came instead of a phase").into()),
            };
            if !self.orders.is_client() {
                say(&Said::Ready)?;
            }
            say(&Said::Done(exchange(&self.orders, &mut channel, &phase).await?))?;
        }
    }
}

async fn exchange(orders: &Orders, channel: &mut impl Channel, phase: &Phase) -> Result<Done> {
    let answer_size = if orders.workload == Workload::Latency { orders.size_bytes } else { 1 };
    let is_stream = orders.workload == Workload::Throughput;
    let mut done = Done::default();
    let mut number = 0;
    for stretch in &phase.stretches {
        let is_noted = phase.each && stretch.timed;
        if is_noted {
            done.each_ns.reserve_exact(usize::try_from(stretch.messages)?);
        }
        let start = Instant::now();
        let mut before = start;
        for _ in 0..stretch.messages {
            let message = Message { number, size: orders.size_bytes, check: phase.check };
            let answer = Message { size: answer_size, ..message };
            match (orders.role, is_stream) {
                (Role::Client, false) => {
                    channel.send(message).await?;
                    channel.receive(answer).await?;
                }
                (Role::Server, false) => {
                    channel.receive(message).await?;
                    channel.send(answer).await?;
                }
                (Role::Client, true) => channel.send(message).await?,
                (Role::Server, true) => channel.receive(message).await?,
            }
            number += 1;
            if is_noted {
                let now = Instant::now();
                done.each_ns.push(nanoseconds(before, now));
                before = now;
            }
        }
        if stretch.acknowledged {
            let word = Message { number, size: 1, check: false };
            match orders.role {
                Role::Client => channel.receive(word).await?,
                Role::Server => channel.send(word).await?,
            }
        }
        if stretch.timed {
            done.elapsed_ns += nanoseconds(start, Instant::now());
        }
    }
    Ok(done)
}

fn nanoseconds(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}

/// What a driver is.
pub struct Offered<'a> {
    pub program: &'a str,
    /// The crates whose ways it goes.
    pub libraries: &'a [&'a str],
    /// What it needs beside them, with its version, where it is no crate.
    pub besides: &'a str,
    pub mechanisms: &'a [(&'a str, &'a [Workload])],
    /// The codecs of its streams of bytes.
    pub codecs: &'a [&'a str],
}

impl Offered<'_> {
    fn codecs_of(&self, mechanism: &str) -> &[&str] {
        if BYTE_STREAMS.contains(&mechanism) { self.codecs } else { &[] }
    }
}

/// A crate with the version of it that this was built with.
fn locked(name: &str) -> String {
    let mut lines = include_str!("Cargo.lock").lines();
    lines.find(|line| *line == format!("name = \"{name}\""));
    let version = lines.next().and_then(|line| line.strip_prefix("version = "));
    format!("{name} {}", version.unwrap_or_default().trim_matches('"'))
}

/// A runtime of one thread, which is that of the endpoint.
pub fn of_one_thread() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Takes part in a trial on `runtime`. `connect` connects as the orders say, and leads the trial through its phases.
pub fn run(
    offered: &Offered,
    runtime: std::io::Result<Runtime>,
    connect: impl AsyncFnOnce(Trial) -> Result<()>,
) -> ! {
    let result = runtime.map_err(Into::into).and_then(|runtime| {
        let result = runtime.block_on(take_part(offered, connect));
        // A thread of it waits for standard input.
        runtime.shutdown_background();
        result
    });
    let Err(error) = result else { std::process::exit(0) };
    // If nobody hears it, nobody is there any more.
    let _ = say(&Said::Failed(error.to_string()));
    std::process::exit(1)
}

async fn take_part(offered: &Offered<'_>, connect: impl AsyncFnOnce(Trial) -> Result<()>) -> Result<()> {
    let mut input = Input(BufReader::new(tokio::io::stdin()));
    let Heard::Hello(_) = input.hear().await? else { return Ok(()) };
    let besides = (!offered.besides.is_empty()).then(|| offered.besides.to_owned());
    let libraries: Vec<String> = offered.libraries.iter().map(|name| locked(name)).chain(besides).collect();
    let mechanisms = offered.mechanisms.iter().map(|&(name, workloads)| Mechanism {
        name,
        workloads,
        codecs: offered.codecs_of(name),
    });
    say(&Said::Hello {
        protocol: "ipcmark-endpoint",
        version: 3,
        program: offered.program,
        runtime: locked("tokio"),
        library: &libraries.join(", "),
        capabilities: &["each"],
        mechanisms: mechanisms.collect(),
    })?;
    let Heard::Orders(orders) = input.hear().await? else { return Ok(()) };
    let codecs = offered.codecs_of(&orders.mechanism);
    let is_known = |(name, value): (&String, &String)| name == CODEC && codecs.contains(&value.as_str());
    if !orders.parameters.iter().all(is_known) {
        return Err(format!("this driver has none of the parameters {:?}", orders.parameters).into());
    }
    connect(Trial { orders: *orders, input }).await
}
