//! One TCP connection over the loopback interface. io_uring sends without a copy as far as the kernel can.

use crate::contract::{ACCESS, Endpoint, InPlace, Shape};
use crate::mechanisms::tcp::Tcp;
use crate::support::connection::NODELAY;
use crate::support::descriptor::{Fds, OverDescriptors};
use crate::support::inet_stream::InetStream;
use crate::support::socket::{RCVBUF, SNDBUF};
use crate::support::uring::{MOST_BYTES, buffer_bytes, several};
use model::Params;
use model::card::Card;
use model::record::Setting;
use rustix::net::Protocol;
use sys::uring::{POOLED_BUFFERS, UringZeroCopy, ZeroCopySends};
use sys::{Errno, Failure};

/// tcp(7) on 127.0.0.1 with `IORING_OP_SEND_ZC`, io_uring_enter(2).
#[derive(Debug)]
pub(crate) struct TcpUringZc;

impl InetStream for TcpUringZc {
    const PROTOCOL: Option<Protocol> = None;
    type End = UringZcEndpoint;
    const CARD: Card = Card {
        name: "tcp-uring-zc",
        summary: "a TCP connection over loopback, with zero-copy sends by io_uring",
        params: &[ACCESS, NODELAY, SNDBUF, RCVBUF],
        limits: "any message size; over loopback the kernel copies after all, and the record says how often; in-place access for outgoing messages only; Linux 6.2, kernel.io_uring_disabled=0; rings and pages on their way count against RLIMIT_MEMLOCK",
        man: &["tcp(7)", "io_uring_enter(2)", "https://docs.kernel.org/networking/msg_zerocopy.html"],
        polled: false,
        ..Tcp::CARD
    };
}

/// An endpoint that sends from buffers of its own, and receives into the caller's memory.
#[derive(Debug)]
pub(crate) struct UringZcEndpoint {
    socket: UringZeroCopy,
    in_place: InPlace,
    settings: Vec<Setting>,
}

impl OverDescriptors for UringZcEndpoint {
    fn over(
        fds: Fds,
        params: &Params,
        shape: Shape,
        card: &Card,
        mut settings: Vec<Setting>,
    ) -> Result<Self, Failure> {
        let size_bytes = buffer_bytes(shape, MOST_BYTES);
        settings.push(several("zero-copy buffers", POOLED_BUFFERS, size_bytes));
        let in_place = InPlace::from_params(params, card).outgoing();
        Ok(Self { socket: UringZeroCopy::open(fds.output, size_bytes)?, in_place, settings })
    }
}

impl Endpoint for UringZcEndpoint {
    const IN_PLACE: bool = true;

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let part = self.socket.reserve(bytes.len());
        let count = part.len();
        part.copy_from_slice(&bytes[..count]);
        self.socket.commit(count)?;
        Ok(count)
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        self.socket.receive(into)
    }

    fn settings(&self) -> Vec<Setting> {
        let ZeroCopySends { sends, copied } = self.socket.sends();
        // The server's settings are read before its first send, and the client's after the last.
        let outcome = (sends > 0).then(|| Setting {
            name: "zero-copy sends".to_owned(),
            asked: Some(sends.to_string()),
            got: format!("{}, and {copied} that the kernel copied", sends - copied),
            clamped: copied > 0,
            usual: None,
        });
        self.settings.iter().cloned().chain(outcome).collect()
    }

    fn in_place(&self) -> InPlace {
        self.in_place
    }

    #[inline(always)]
    fn reserve(&mut self, most_bytes: usize) -> Result<&mut [u8], Errno> {
        Ok(self.socket.reserve(most_bytes))
    }

    #[inline(always)]
    fn commit(&mut self, bytes: usize) -> Result<(), Errno> {
        self.socket.commit(bytes)
    }
}
