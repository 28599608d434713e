//! An endpoint of ipcmark in Rust: what tokio has for pipes and sockets, with codecs by serde and prost, a codec of
//! tokio-util over a socket, and the crate ipc-channel, which needs no runtime.

mod codec;
mod datagrams;
mod endpoint;

use codec::Codec;
use datagrams::Datagrams;
use endpoint::{ALL, Channel, Message, Network, Offered, Orders, Result, Trial};
use futures_util::{SinkExt, StreamExt};
use ipc_channel::ipc::{self, IpcBytesReceiver, IpcBytesSender, IpcOneShotServer, IpcSender};
use std::io::Read;
use std::net::TcpListener;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio_util::bytes::Bytes;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

const OFFERED: Offered = Offered {
    program: "rust",
    libraries: &["tokio-util", "ipc-channel", "serde_json", "rmp-serde", "prost"],
    besides: "",
    mechanisms: &[
        ("pipe", ALL),
        ("unix-stream", ALL),
        ("tcp", ALL),
        ("udp", ALL),
        ("rust-framed", ALL),
        ("rust-ipc-channel", ALL),
    ],
    codecs: codec::NAMES,
};

/// How long a stranger may take to show that it is one.
const TOKEN_WITHIN: Duration = Duration::from_secs(2);

fn main() -> ! {
    endpoint::run(&OFFERED, endpoint::of_one_thread(), connect)
}

async fn connect(mut trial: Trial) -> Result<()> {
    match trial.orders.mechanism.as_str() {
        "pipe" => {
            let reads = pipe::Receiver::from_owned_fd(descriptor(&trial.orders, 0)?)?;
            let writes = pipe::Sender::from_owned_fd(descriptor(&trial.orders, 1)?)?;
            over(trial, tokio::io::join(reads, writes)).await
        }
        "unix-stream" => {
            let socket = std::os::unix::net::UnixStream::from(descriptor(&trial.orders, 0)?);
            socket.set_nonblocking(true)?;
            over(trial, UnixStream::from_std(socket)?).await
        }
        "tcp" => {
            let socket = tcp(&mut trial).await?;
            socket.set_nodelay(true)?;
            over(trial, socket).await
        }
        "udp" => {
            let datagrams = Datagrams::connected(&mut trial).await?;
            trial.phases(datagrams).await
        }
        "rust-framed" => {
            let frames = Framed::new(unix(&mut trial).await?, LengthDelimitedCodec::new());
            trial.phases(Frames(frames)).await
        }
        "rust-ipc-channel" => {
            let channel = IpcChannel::new(&mut trial).await?;
            trial.phases(channel).await
        }
        other => Err(format!("this driver has no {other}").into()),
    }
}

/// A trial over a stream of bytes.
async fn over(trial: Trial, stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<()> {
    match trial.orders.codec().map(Codec::named) {
        Some(codec) => trial.phases(Objects { stream, codec: codec?, incoming: Vec::new() }).await,
        None => {
            let stream = Stream::new(&trial.orders, stream);
            trial.phases(stream).await
        }
    }
}

/// A descriptor that is open since the endpoint's start.
fn descriptor(orders: &Orders, at: usize) -> Result<OwnedFd> {
    let number = *orders.descriptors.get(at).ok_or("the orders lack a descriptor")?;
    // SAFETY: whoever started the endpoint opened it for this, and nothing else here uses it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

async fn tcp(trial: &mut Trial) -> Result<TcpStream> {
    let is_client = trial.orders.is_client();
    let Some(Network { server, token }) = trial.orders.network.take() else {
        return Err("the orders lack a network".into());
    };
    if is_client {
        let ticket = trial.ticket().await?;
        let port = u16::from_be_bytes(ticket.as_slice().try_into()?);
        let mut socket = TcpStream::connect((server, port)).await?;
        socket.write_all(&token).await?;
        return Ok(socket);
    }
    // By calls that wait: a runtime with a clock would read it each time that it waits for a message.
    let listener = TcpListener::bind((server, 0))?;
    trial.announce(listener.local_addr()?.port().to_be_bytes())?;
    loop {
        let (mut socket, _) = listener.accept()?;
        socket.set_read_timeout(Some(TOKEN_WITHIN))?;
        let mut shown = vec![0; token.len()];
        // Whoever shows another, or none for a while, is a stranger.
        if socket.read_exact(&mut shown).is_ok() && shown == token {
            socket.set_nonblocking(true)?;
            return Ok(TcpStream::from_std(socket)?);
        }
    }
}

async fn unix(trial: &mut Trial) -> Result<UnixStream> {
    if trial.orders.is_client() {
        return Ok(UnixStream::connect(trial.ticket_text().await?).await?);
    }
    let path = trial.orders.path("framed");
    let listener = UnixListener::bind(&path)?;
    trial.announce(path.as_os_str().as_encoded_bytes())?;
    let (socket, _) = listener.accept().await?;
    std::fs::remove_file(&path)?;
    Ok(socket)
}

/// Messages of a known size over a stream of bytes.
struct Stream<S> {
    stream: S,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

impl<S> Stream<S> {
    fn new(orders: &Orders, stream: S) -> Self {
        Self { stream, outgoing: vec![0; orders.size_bytes], incoming: vec![0; orders.size_bytes] }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Channel for Stream<S> {
    async fn send(&mut self, message: Message) -> Result<()> {
        let bytes = &mut self.outgoing[..message.size];
        message.write(bytes);
        Ok(self.stream.write_all(bytes).await?)
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        let bytes = &mut self.incoming[..message.size];
        self.stream.read_exact(bytes).await.map_err(|error| format!("the peer has closed: {error}"))?;
        message.verify(bytes)
    }
}

/// Objects of which a codec makes bytes, with their length before them.
struct Objects<S> {
    stream: S,
    codec: Codec,
    incoming: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Channel for Objects<S> {
    async fn send(&mut self, message: Message) -> Result<()> {
        let mut frame = vec![0; 4];
        self.codec.encode(message.to_vec(), &mut frame)?;
        let length = u32::try_from(frame.len() - 4)?;
        frame[..4].copy_from_slice(&length.to_le_bytes());
        Ok(self.stream.write_all(&frame).await?)
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        let closed = |error| format!("the peer has closed: {error}");
        let length = self.stream.read_u32_le().await.map_err(closed)?;
        self.incoming.resize(usize::try_from(length)?, 0);
        self.stream.read_exact(&mut self.incoming).await.map_err(closed)?;
        message.verify(&self.codec.decode(&self.incoming)?)
    }
}

/// Messages with their length before them, each in memory of its own, as the codec has them.
struct Frames(Framed<UnixStream, LengthDelimitedCodec>);

impl Channel for Frames {
    async fn send(&mut self, message: Message) -> Result<()> {
        Ok(self.0.send(Bytes::from(message.to_vec())).await?)
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        let frame = self.0.next().await.ok_or("the peer has closed")?;
        message.verify(&frame?)
    }
}

/// A channel of bytes each way. It blocks the thread, which has nothing else to do.
struct IpcChannel {
    sends: IpcBytesSender,
    receives: IpcBytesReceiver,
    outgoing: Vec<u8>,
}

impl IpcChannel {
    async fn new(trial: &mut Trial) -> Result<Self> {
        type Client = (IpcBytesSender, IpcSender<IpcBytesSender>);
        let (to_this, receives) = ipc::bytes_channel()?;
        let sends = if trial.orders.is_client() {
            let (answer, answered) = ipc::channel()?;
            IpcSender::<Client>::connect(trial.ticket_text().await?)?.send((to_this, answer))?;
            answered.recv()?
        } else {
            // Where the crate makes the socket that it is reached by.
            let directory = trial.orders.path("ipc-channel");
            std::fs::create_dir(&directory)?;
            let _ = tempfile::env::override_temp_dir(&directory);
            let (server, name) = IpcOneShotServer::<Client>::new()?;
            trial.announce(&name)?;
            let (_, (to_client, answer)) = server.accept()?;
            answer.send(to_this)?;
            std::fs::remove_dir(&directory)?;
            to_client
        };
        Ok(Self { sends, receives, outgoing: vec![0; trial.orders.size_bytes] })
    }
}

impl Channel for IpcChannel {
    async fn send(&mut self, message: Message) -> Result<()> {
        let bytes = &mut self.outgoing[..message.size];
        message.write(bytes);
        Ok(self.sends.send(bytes)?)
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        message.verify(&self.receives.recv()?)
    }
}
