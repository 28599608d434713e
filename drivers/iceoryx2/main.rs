//! An endpoint of ipcmark over iceoryx2: publishers and subscribers of slices of bytes in shared memory, which is
//! polled; and events, for which a receiver sleeps.

mod cleaner;
mod endpoint;

use cleaner::Cleaner;
use endpoint::{ALL, Channel, IN_TURN, Message, Offered, Orders, Result, Trial};
use iceoryx2::node::Node;
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::{
    BackpressureStrategy, Config, FileName, LogLevel, NodeBuilder, Path, SemanticString,
};
use iceoryx2::prelude::{SignalHandlingMode, ipc, set_log_level};
use iceoryx2::sample::Sample;

const OFFERED: Offered = Offered {
    program: "iceoryx2",
    libraries: &["iceoryx2"],
    besides: "",
    mechanisms: &[("iceoryx2-copied", ALL), ("iceoryx2-loaned", ALL), ("iceoryx2-event", IN_TURN)],
    codecs: &[],
};

/// How much of a stream may be under way, in messages and in bytes.
const MOST_MESSAGES: usize = 256;
const MOST_BYTES: usize = 1 << 20;
/// How often a receiver looks before it lets others have its CPU each time.
const LOOKS: u32 = 100;

fn main() -> ! {
    if let Some(places) = cleaner::asked() {
        cleaner::clean_up_after_parent(&places);
    }
    // What one of both has removed at the end, the other misses.
    set_log_level(LogLevel::Fatal);
    endpoint::run(&OFFERED, endpoint::of_one_thread(), connect)
}

async fn connect(mut trial: Trial) -> Result<()> {
    let mechanism = trial.orders.mechanism.clone();
    if !OFFERED.mechanisms.iter().any(|(name, _)| *name == mechanism) {
        return Err(format!("this driver has no {mechanism}").into());
    }
    let is_client = trial.orders.is_client();
    let prefix = if is_client {
        trial.ticket_text().await?
    } else {
        format!("{}-{}-iox2_", trial.orders.number, std::process::id())
    };
    let directory = trial.orders.path("iox2");
    let cleaner = (!is_client).then(|| cleaner::start(&prefix, &directory)).transpose()?;
    let node = node(&directory, &prefix)?;
    let samples = Samples::new(&node, &trial.orders)?;
    let events = (mechanism == "iceoryx2-event").then(|| events(&node, is_client)).transpose()?;
    if !is_client {
        trial.announce(&prefix)?;
    }
    let size = trial.orders.size_bytes;
    match (events, mechanism.as_str()) {
        (Some((notifier, listener)), _) => trial.phases(Event { samples, notifier, listener }).await?,
        (None, "iceoryx2-loaned") => trial.phases(Loaned(samples)).await?,
        (None, _) => {
            trial.phases(Copied { samples, outgoing: vec![0; size], incoming: vec![0; size] }).await?
        }
    }
    drop(node);
    cleaner.map_or(Ok(()), Cleaner::end)
}

/// A node whose files are this trial's own: those that have a path lie in `directory`, and the names of those of shared
/// memory begin with `prefix`.
fn node(directory: &std::path::Path, prefix: &str) -> Result<Node<ipc::Service>> {
    let mut config = Config::default();
    config.global.set_root_path(&Path::new(directory.as_os_str().as_encoded_bytes())?);
    config.global.prefix = FileName::new(prefix.as_bytes())?;
    Ok(NodeBuilder::new().config(&config).signal_handling_mode(SignalHandlingMode::Disabled).create()?)
}

/// What this endpoint sends by, and what it receives by.
fn names(is_client: bool) -> (&'static str, &'static str) {
    if is_client { ("asked", "answered") } else { ("answered", "asked") }
}

/// Slices of bytes each way, none of which is lost: a publisher waits for room.
struct Samples {
    publisher: Publisher<ipc::Service, [u8], ()>,
    subscriber: Subscriber<ipc::Service, [u8], ()>,
}

impl Samples {
    fn new(node: &Node<ipc::Service>, orders: &Orders) -> Result<Self> {
        let room = (MOST_BYTES / orders.size_bytes).clamp(2, MOST_MESSAGES);
        let service = |name: &str| -> Result<_> {
            let builder = node.service_builder(&name.try_into()?).publish_subscribe::<[u8]>();
            let builder = builder.max_publishers(1).max_subscribers(1).max_nodes(2).history_size(0);
            let builder = builder.enable_safe_overflow(false).subscriber_max_buffer_size(room);
            Ok(builder.subscriber_max_borrowed_samples(1).open_or_create()?)
        };
        let (to, of) = names(orders.is_client());
        let publisher = service(to)?
            .publisher_builder()
            .initial_max_slice_len(orders.size_bytes)
            .max_loaned_samples(1)
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .create()?;
        Ok(Self { publisher, subscriber: service(of)?.subscriber_builder().create()? })
    }

    /// Makes the message in the memory in which the other one reads it.
    fn send_loaned(&self, message: Message) -> Result<()> {
        let sample = self.publisher.loan_slice_uninit(message.size)?;
        // SAFETY: the memory is a file's, which has zeroes where nothing was written: bytes of any value.
        let mut sample = unsafe { sample.assume_init() };
        message.write(sample.payload_mut());
        delivered(sample.send()?)
    }

    fn send_copied(&self, bytes: &[u8]) -> Result<()> {
        let sample = self.publisher.loan_slice_uninit(bytes.len())?;
        delivered(sample.write_from_slice(bytes).send()?)
    }

    /// The next one: looks for it until it is there.
    fn poll(&self) -> Result<Sample<ipc::Service, [u8], ()>> {
        for looks in 0u32.. {
            if let Some(sample) = self.subscriber.receive()? {
                return Ok(sample);
            }
            if looks < LOOKS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        Err("no message came".into())
    }
}

fn delivered(receivers: usize) -> Result<()> {
    if receivers == 1 { Ok(()) } else { Err("the peer has closed".into()) }
}

/// Messages that are made and checked where they lie.
struct Loaned(Samples);

impl Channel for Loaned {
    async fn send(&mut self, message: Message) -> Result<()> {
        self.0.send_loaned(message)
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        message.verify(self.0.poll()?.payload())
    }
}

/// Messages that are copied from the sender's own memory, and into that of the receiver.
struct Copied {
    samples: Samples,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

impl Channel for Copied {
    async fn send(&mut self, message: Message) -> Result<()> {
        let bytes = &mut self.outgoing[..message.size];
        message.write(bytes);
        self.samples.send_copied(bytes)
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        let sample = self.samples.poll()?;
        let bytes =
            self.incoming.get_mut(..sample.payload().len()).ok_or("a message came that is too long")?;
        bytes.copy_from_slice(sample.payload());
        drop(sample);
        message.verify(bytes)
    }
}

/// Messages that are made and checked where they lie, with an event for each.
struct Event {
    samples: Samples,
    notifier: Notifier<ipc::Service>,
    listener: Listener<ipc::Service>,
}

fn events(
    node: &Node<ipc::Service>,
    is_client: bool,
) -> Result<(Notifier<ipc::Service>, Listener<ipc::Service>)> {
    let service = |name: &str| -> Result<_> {
        let builder = node.service_builder(&name.try_into()?).event();
        Ok(builder.max_notifiers(1).max_listeners(1).max_nodes(2).open_or_create()?)
    };
    let (to, of) = names(is_client);
    Ok((service(to)?.notifier_builder().create()?, service(of)?.listener_builder().create()?))
}

impl Channel for Event {
    async fn send(&mut self, message: Message) -> Result<()> {
        self.samples.send_loaned(message)?;
        delivered(self.notifier.notify()?)
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        loop {
            self.listener.blocking_wait(|_| {})?;
            if let Some(sample) = self.samples.subscriber.receive()? {
                return message.verify(sample.payload());
            }
        }
    }
}
