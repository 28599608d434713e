//! An endpoint of ipcmark over NATS, by its client async-nats: the server of a trial starts a nats-server, and both are
//! its clients. What the broker uses of the CPU counts for the endpoint that has started it.

mod broker;
mod endpoint;

use async_nats::{Client, Message as Heard, Subject, Subscriber, client::RequestErrorKind};
use endpoint::{ALL, Channel, IN_TURN, Message, Offered, Orders, Result, Trial, Workload};
use futures_util::StreamExt;
use std::time::Duration;

/// What they speak about.
const ASKED: Subject = Subject::from_static("asked");
const ANSWERED: Subject = Subject::from_static("answered");
const MEETING: Subject = Subject::from_static("meeting");
const CREDIT: Subject = Subject::from_static("credit");

/// How much of a stream may be under way, in messages and in bytes. A broker drops what a subscriber is late for;
/// and of what waits in the receiver when the clock starts, nobody could say when it came.
const MOST_MESSAGES: u64 = 1024;
const MOST_BYTES: u64 = 1 << 20;

fn main() -> ! {
    let broker = broker::version();
    let offered = Offered {
        program: "nats",
        libraries: &["async-nats"],
        besides: &broker,
        mechanisms: &[("nats-pubsub", ALL), ("nats-request", IN_TURN)],
        codecs: &[],
    };
    endpoint::run(&offered, endpoint::of_one_thread(), connect)
}

async fn connect(mut trial: Trial) -> Result<()> {
    let is_request = match trial.orders.mechanism.as_str() {
        "nats-request" => true,
        "nats-pubsub" => false,
        other => return Err(format!("this driver has no {other}").into()),
    };
    let is_client = trial.orders.is_client();
    let (broker, address) = if is_client {
        (None, trial.ticket_text().await?)
    } else {
        let (broker, address) = broker::start(&trial.orders).await?;
        (Some(broker), address)
    };
    let client = async_nats::connect(&address).await?;
    let (to, of) = if is_client { (ASKED, ANSWERED) } else { (ANSWERED, ASKED) };
    let incoming = client.subscribe(of).await?;
    let flow = Flow::new(&client, &trial.orders).await?;
    if is_client {
        meet(&client).await?;
    } else {
        let mut met = client.subscribe(MEETING).await?;
        trial.announce(&address)?;
        answer(&client, met.next().await, Vec::new()).await?;
    }
    match (is_request, is_client) {
        (false, _) => trial.phases(PubSub { client, to, incoming, flow }).await?,
        (true, true) => trial.phases(Asking { client, question: Vec::new() }).await?,
        (true, false) => trial.phases(Answering { client, incoming, asked: None }).await?,
    }
    drop(broker);
    Ok(())
}

/// Waits until the server has subscribed: what is published before that is lost.
async fn meet(client: &Client) -> Result<()> {
    loop {
        match client.request(MEETING, Vec::new().into()).await {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == RequestErrorKind::NoResponders => {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

async fn answer(client: &Client, asked: Option<Heard>, bytes: Vec<u8>) -> Result<()> {
    let reply = asked.and_then(|asked| asked.reply).ok_or("a request came that asks for no answer")?;
    Ok(client.publish(reply, bytes.into()).await?)
}

/// What came in a subscription, which ends when the connection is closed.
fn came(heard: Option<Heard>) -> Result<Heard> {
    heard.ok_or_else(|| "the broker has closed".into())
}

struct PubSub {
    client: Client,
    to: Subject,
    incoming: Subscriber,
    flow: Option<Flow>,
}

impl Channel for PubSub {
    async fn send(&mut self, message: Message) -> Result<()> {
        if let Some(Flow::Sends(window)) = &mut self.flow {
            window.wait().await?;
        }
        Ok(self.client.publish(self.to.clone(), message.to_vec().into()).await?)
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        message.verify(&came(self.incoming.next().await)?.payload)?;
        if let Some(Flow::Receives { half, count }) = &mut self.flow {
            *count += 1;
            if count.is_multiple_of(*half) {
                self.client.publish(CREDIT, Vec::new().into()).await?;
            }
        }
        Ok(())
    }
}

/// How a stream is kept from getting ahead of its receiver, which gives credit for each half of what may be under way.
enum Flow {
    Sends(Window),
    Receives { half: u64, count: u64 },
}

struct Window {
    credit: Subscriber,
    half: u64,
    count: u64,
}

impl Flow {
    async fn new(client: &Client, orders: &Orders) -> Result<Option<Self>> {
        if orders.workload != Workload::Throughput {
            return Ok(None);
        }
        let half = (MOST_BYTES / orders.size_bytes as u64).clamp(2, MOST_MESSAGES) / 2;
        Ok(Some(if orders.is_client() {
            Self::Sends(Window { credit: client.subscribe(CREDIT).await?, half, count: 0 })
        } else {
            Self::Receives { half, count: 0 }
        }))
    }
}

impl Window {
    /// Waits until one more message may be under way.
    async fn wait(&mut self) -> Result<()> {
        if self.count >= 2 * self.half && self.count.is_multiple_of(self.half) {
            came(self.credit.next().await)?;
        }
        self.count += 1;
        Ok(())
    }
}

/// The client of requests, each of which returns its answer.
struct Asking {
    client: Client,
    question: Vec<u8>,
}

impl Channel for Asking {
    async fn send(&mut self, message: Message) -> Result<()> {
        self.question = message.to_vec();
        Ok(())
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        let question = std::mem::take(&mut self.question);
        message.verify(&self.client.request(ASKED, question.into()).await?.payload)
    }
}

struct Answering {
    client: Client,
    incoming: Subscriber,
    asked: Option<Heard>,
}

impl Channel for Answering {
    async fn send(&mut self, message: Message) -> Result<()> {
        answer(&self.client, self.asked.take(), message.to_vec()).await
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        let asked = came(self.incoming.next().await)?;
        message.verify(&asked.payload)?;
        self.asked = Some(asked);
        Ok(())
    }
}
