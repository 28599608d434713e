//! The mechanism udp: datagrams of tokio's UdpSocket, in a window, so that none is lost.

use crate::endpoint::{Channel, Message, Network, Result, Trial, Workload};
use socket2::SockRef;
use tokio::net::UdpSocket;

/// A connected socket. Of a stream an endpoint sends or receives: the server acknowledges each half of what its buffer
/// holds, and so much is on its way at most.
pub struct Datagrams {
    socket: UdpSocket,
    waits: bool,
    acknowledges: bool,
    half: u32,
    most: u32,
    open: u32,
    outgoing: Vec<u8>,
    /// A byte more than is due tells a datagram that is too long.
    incoming: Vec<u8>,
}

impl Datagrams {
    pub async fn connected(trial: &mut Trial) -> Result<Self> {
        let network = trial.orders.network.take().ok_or("the orders lack a network")?;
        let is_client = trial.orders.is_client();
        let (socket, fitting) =
            if is_client { greet(trial, &network).await? } else { welcome(trial, &network).await? };
        let is_stream = trial.orders.workload == Workload::Throughput;
        let half = (fitting / 2).max(1);
        let size = trial.orders.size_bytes;
        Ok(Self {
            socket,
            waits: is_stream && is_client,
            acknowledges: is_stream && !is_client,
            half,
            most: if fitting < 2 { 1 } else { 2 * half },
            open: 0,
            outgoing: vec![0; size],
            incoming: vec![0; size + 1],
        })
    }

    /// Waits until no more messages than that are not acknowledged.
    async fn wait_for_room(&mut self, left: u32) -> Result<()> {
        while self.open > left {
            self.socket.recv(&mut [0]).await?;
            self.open -= self.half;
        }
        Ok(())
    }
}

impl Channel for Datagrams {
    async fn send(&mut self, message: Message) -> Result<()> {
        if self.waits {
            self.wait_for_room(self.most - 1).await?;
            self.open += 1;
        }
        let bytes = &mut self.outgoing[..message.size];
        message.write(bytes);
        self.socket.send(bytes).await?;
        Ok(())
    }

    async fn receive(&mut self, message: Message) -> Result<()> {
        if self.waits {
            self.wait_for_room(self.half - 1).await?;
        }
        let room = &mut self.incoming[..message.size + 1];
        let count = self.socket.recv(room).await.map_err(|error| format!("the peer has closed: {error}"))?;
        message.verify(&room[..count])?;
        if self.acknowledges {
            self.open += 1;
            if self.open == self.half {
                self.open = 0;
                self.socket.send(&[0]).await?;
            }
        }
        Ok(())
    }
}

/// What the endpoints say to each other before the first message.
fn word(network: &Network, kind: u8) -> Vec<u8> {
    [network.token.as_slice(), &[kind]].concat()
}

/// Connects a client. Returns its socket, and how many messages fit in its server's buffer.
async fn greet(trial: &mut Trial, network: &Network) -> Result<(UdpSocket, u32)> {
    let ticket = trial.ticket().await?;
    let (port, fitting) = ticket.split_last_chunk::<4>().ok_or("the ticket of udp has six bytes")?;
    let port = u16::from_be_bytes(port.try_into()?);
    let socket = UdpSocket::bind((network.server.as_str(), 0)).await?;
    socket.connect((network.server.as_str(), port)).await?;
    socket.send(&word(network, b'h')).await?;
    let mut room = [0; 64];
    loop {
        let count = socket.recv(&mut room).await?;
        if room[..count] == word(network, b'w') {
            break;
        }
    }
    socket.send(&word(network, b'r')).await?;
    Ok((socket, u32::from_be_bytes(*fitting)))
}

/// Connects a server. Returns its socket, and how many messages fit in its buffer.
async fn welcome(trial: &mut Trial, network: &Network) -> Result<(UdpSocket, u32)> {
    let socket = UdpSocket::bind((network.server.as_str(), 0)).await?;
    let of_message = 2 * trial.orders.size_bytes + 1024;
    let fitting = u32::try_from(SockRef::from(&socket).recv_buffer_size()? / 2 / of_message)?;
    let port = socket.local_addr()?.port();
    trial.announce([port.to_be_bytes().as_slice(), &fitting.to_be_bytes()].concat())?;
    let mut room = [0; 64];
    loop {
        let (count, client) = socket.recv_from(&mut room).await?;
        if room[..count] == word(network, b'h') {
            socket.connect(client).await?;
            break;
        }
    }
    socket.send(&word(network, b'w')).await?;
    loop {
        let count = socket.recv(&mut room).await?;
        if room[..count] == word(network, b'r') {
            return Ok((socket, fitting));
        }
        if room[..count] == word(network, b'h') {
            socket.send(&word(network, b'w')).await?;
        }
    }
}
