//! An endpoint of ipcmark over gRPC by tonic: calls with one answer each, and a call whose two streams are one
//! conversation. Messages are those of protobuf with a field of bytes.

mod endpoint;

use endpoint::{ALL, Channel, IN_TURN, Message, Offered, Result, Trial};
use exchange_client::ExchangeClient;
use exchange_server::{Exchange, ExchangeServer};
use std::path::Path;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};

// What build.rs generates.
include!(concat!(env!("OUT_DIR"), "/ipcmark.Exchange.rs"));

const OFFERED: Offered = Offered {
    program: "tonic",
    libraries: &["tonic", "prost"],
    besides: "",
    mechanisms: &[
        ("tonic-unary-unix", IN_TURN),
        ("tonic-unary-tcp", IN_TURN),
        ("tonic-stream-unix", ALL),
        ("tonic-stream-tcp", ALL),
    ],
    codecs: &[],
};

/// How many messages may wait before a stream of a call, and after it.
const WAITING: usize = 16;

/// How much a connection may have under way. Its streams have less, as they do without this; but h2 derives from it how
/// many small frames a server lets wait before it takes a client for an attacker, and closes the connection.
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;

/// message Payload { bytes data = 1; }
#[derive(Clone, PartialEq, prost::Message)]
pub struct Payload {
    #[prost(bytes = "vec", tag = "1")]
    data: Vec<u8>,
}

impl From<Message> for Payload {
    fn from(message: Message) -> Self {
        Self { data: message.to_vec() }
    }
}

fn main() -> ! {
    endpoint::run(&OFFERED, endpoint::of_one_thread(), connect)
}

async fn connect(mut trial: Trial) -> Result<()> {
    let mechanism = trial.orders.mechanism.as_str();
    let is_unary = match mechanism.strip_prefix("tonic-") {
        Some("unary-unix" | "unary-tcp") => true,
        Some("stream-unix" | "stream-tcp") => false,
        _ => return Err(format!("this driver has no {mechanism}").into()),
    };
    if trial.orders.is_client() {
        let address = Endpoint::from_shared(trial.ticket_text().await?)?;
        let client = ExchangeClient::new(address.connect().await?);
        return match is_unary {
            true => trial.phases(Asking { client, question: None }).await,
            false => converse(trial, client).await,
        };
    }
    let (calls, mut called) = mpsc::channel(1);
    let path = mechanism.ends_with("unix").then(|| trial.orders.path("tonic"));
    let address = listen(Service { calls }, path.as_deref()).await?;
    trial.announce(&address)?;
    let result = match is_unary {
        true => trial.phases(Answering { called, asked: None }).await,
        false => match called.recv().await {
            Some(Called::Conversation(both)) => trial.phases(*both).await,
            _ => Err("no conversation began".into()),
        },
    };
    path.map_or(Ok(()), std::fs::remove_file)?;
    result
}

/// Serves calls at `path`, or else at a free port of this host, and returns the address of that.
async fn listen(service: Service, path: Option<&Path>) -> Result<String> {
    let mut server = Server::builder().initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    let router = server.add_service(ExchangeServer::new(service));
    let Some(path) = path else {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}", listener.local_addr()?);
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        tokio::spawn(router.serve_with_incoming(incoming));
        return Ok(address);
    };
    let incoming = UnixListenerStream::new(UnixListener::bind(path)?);
    tokio::spawn(router.serve_with_incoming(incoming));
    Ok(format!("unix:{}", path.display()))
}

/// The client's end of a conversation, which begins with the connection.
async fn converse(trial: Trial, mut client: ExchangeClient<tonic::transport::Channel>) -> Result<()> {
    let (sends, outgoing) = mpsc::channel(WAITING);
    let incoming = client.converse(ReceiverStream::new(outgoing)).await?.into_inner();
    trial.phases(Conversation { sends: Sends::Asks(sends), incoming }).await
}

/// A call as the service hands it on.
enum Called {
    /// A question, and where its answer goes.
    Question(Vec<u8>, oneshot::Sender<Payload>),
    Conversation(Box<Conversation>),
}

/// The service: it hands calls to the server's phases, and their answers back.
struct Service {
    calls: mpsc::Sender<Called>,
}

impl Service {
    async fn hand_on(&self, call: Called) -> std::result::Result<(), Status> {
        self.calls.send(call).await.map_err(|_| Status::unavailable("the server ends"))
    }
}

type Answer<T> = std::result::Result<Response<T>, Status>;

#[tonic::async_trait]
impl Exchange for Service {
    type ConverseStream = ReceiverStream<std::result::Result<Payload, Status>>;

    async fn ask(&self, request: Request<Payload>) -> Answer<Payload> {
        let (answers, answer) = oneshot::channel();
        self.hand_on(Called::Question(request.into_inner().data, answers)).await?;
        answer.await.map(Response::new).map_err(|_| Status::data_loss("the question was another"))
    }

    async fn converse(&self, request: Request<Streaming<Payload>>) -> Answer<Self::ConverseStream> {
        let (sends, outgoing) = mpsc::channel(WAITING);
        let conversation = Conversation { sends: Sends::Answers(sends), incoming: request.into_inner() };
        self.hand_on(Called::Conversation(Box::new(conversation))).await?;
        Ok(Response::new(ReceiverStream::new(outgoing)))
    }
}

/// The client of calls, each of which returns its answer.
struct Asking {
    client: ExchangeClient<tonic::transport::Channel>,
    question: Option<Payload>,
}

impl Channel for Asking {
    async fn send(&mut self, message: Message) -> Result<()> {
        self.question = Some(message.into());
        Ok(())
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        let question = self.question.take().ok_or("there is no question")?;
        message.verify(&self.client.ask(question).await?.into_inner().data)
    }
}

struct Answering {
    called: mpsc::Receiver<Called>,
    asked: Option<oneshot::Sender<Payload>>,
}

impl Channel for Answering {
    async fn send(&mut self, message: Message) -> Result<()> {
        let answers = self.asked.take().ok_or("nothing was asked")?;
        answers.send(message.into()).map_err(|_| "whoever asked is gone".into())
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        let Some(Called::Question(data, answers)) = self.called.recv().await else {
            return Err("something else than a question came".into());
        };
        message.verify(&data)?;
        self.asked = Some(answers);
        Ok(())
    }
}

/// Where the messages of a conversation go.
enum Sends {
    Asks(mpsc::Sender<Payload>),
    Answers(mpsc::Sender<std::result::Result<Payload, Status>>),
}

struct Conversation {
    sends: Sends,
    incoming: Streaming<Payload>,
}

impl Channel for Conversation {
    async fn send(&mut self, message: Message) -> Result<()> {
        let is_sent = match &self.sends {
            Sends::Asks(sends) => sends.send(message.into()).await.is_ok(),
            Sends::Answers(sends) => sends.send(Ok(message.into())).await.is_ok(),
        };
        if is_sent { Ok(()) } else { Err("the peer has closed".into()) }
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        let payload = self.incoming.next().await.ok_or("the peer has closed")??;
        message.verify(&payload.data)
    }
}
