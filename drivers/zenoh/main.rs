//! An endpoint of ipcmark over Zenoh: two peers without a router, which publish and subscribe over a Unix socket. What
//! comes is handed over by a thread of the library.

mod endpoint;

use endpoint::{ALL, Channel, Message, Offered, Orders, Result, Trial};
use serde_json::json;
use std::time::Duration;
use zenoh::handlers::{FifoChannel, FifoChannelHandler};
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::sample::Sample;
use zenoh::{Config, Session};

const OFFERED: Offered = Offered {
    program: "zenoh",
    libraries: &["zenoh"],
    besides: "",
    mechanisms: &[("zenoh-pubsub", ALL)],
    codecs: &[],
};

/// How much of a stream may wait in the receiver, in messages and in bytes.
const MOST_MESSAGES: usize = 256;
const MOST_BYTES: usize = 1 << 20;
/// How long a publisher may wait for room, in microseconds: longer than any trial.
const MOST_WAIT_US: u64 = 1_000_000_000;

fn main() -> ! {
    // Zenoh refuses to work beside a runtime of one thread; its own have their threads.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    endpoint::run(&OFFERED, runtime, connect)
}

async fn connect(mut trial: Trial) -> Result<()> {
    if trial.orders.mechanism != "zenoh-pubsub" {
        return Err(format!("this driver has no {}", trial.orders.mechanism).into());
    }
    let is_client = trial.orders.is_client();
    let address = if is_client {
        trial.ticket_text().await?
    } else {
        format!("unixsock-stream/{}", trial.orders.path("zenoh").display())
    };
    let session = zenoh::open(config(&address, is_client)?).await?;
    let channel = PubSub::new(&session, &trial.orders).await?;
    if !is_client {
        trial.announce(&address)?;
    }
    // What is published before the peer has subscribed is for nobody.
    while !channel.publisher.matching_status().await?.matching() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    trial.phases(channel).await?;
    session.close().await
}

/// That of a peer which looks for nobody: the client has the server's address.
fn config(address: &str, is_client: bool) -> Result<Config> {
    let (own, other) = if is_client { ("connect", "listen") } else { ("listen", "connect") };
    let mut config = Config::default();
    for (key, value) in [
        ("mode", json!("peer")),
        ("scouting/multicast/enabled", json!(false)),
        ("scouting/gossip/enabled", json!(false)),
        (&format!("{own}/endpoints"), json!([address])),
        (&format!("{other}/endpoints"), json!([])),
        ("transport/link/tx/queue/congestion_control/block/wait_before_close", json!(MOST_WAIT_US)),
    ] {
        config.insert_json5(key, &value.to_string())?;
    }
    Ok(config)
}

struct PubSub {
    publisher: Publisher<'static>,
    subscriber: Subscriber<FifoChannelHandler<Sample>>,
}

impl PubSub {
    async fn new(session: &Session, orders: &Orders) -> Result<Self> {
        let (to, of) = if orders.is_client() { ("asked", "answered") } else { ("answered", "asked") };
        // Where there is no room, the library stops reading from the socket.
        let room = FifoChannel::new((MOST_BYTES / orders.size_bytes).clamp(2, MOST_MESSAGES));
        let subscriber = session.declare_subscriber(of).with(room).await?;
        let publisher = session.declare_publisher(to).congestion_control(CongestionControl::Block).await?;
        Ok(Self { publisher, subscriber })
    }
}

impl Channel for PubSub {
    async fn send(&mut self, message: Message) -> Result<()> {
        self.publisher.put(message.to_vec()).await
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        message.verify(&self.subscriber.recv_async().await?.payload().to_bytes())
    }
}
