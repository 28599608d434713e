//! What endpoints over a ring promise, on real rings. Where the kernel refuses a ring, a test says so and passes.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../../../../xtask/src/test_notes.rs"]
mod test_notes;

use super::descriptors::DescriptorKind;
use super::message_ring::MessageRing;
use super::queues::{Queues, SubmissionMode, refusal};
use super::stream::{UringBuffers, UringStream};
use super::zero_copy::{self, UringZeroCopy, ZeroCopySends};
use crate::signal::{Signal, SignalSender, ThreadId, handle};
use crate::{Errno, Failure, sysctl};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const SIZE_BYTES: usize = 8192;
const MODES: [SubmissionMode; 2] = [SubmissionMode::Caller, SubmissionMode::KernelThread];
const BUFFERS: [UringBuffers; 3] =
    [UringBuffers::Callers, UringBuffers::Registered(SIZE_BYTES), UringBuffers::Provided(SIZE_BYTES)];
const KINDS: [DescriptorKind; 2] = [DescriptorKind::Pipe, DescriptorKind::Socket];

/// Whether `tried` succeeded. If the kernel refused, the test says that it is skipped, and why.
fn is_available<T>(tried: Result<T, Failure>) -> bool {
    tried.inspect_err(|failure| test_notes::skip(&failure.to_string(), "io_uring is not tested")).is_ok()
}

fn kernel_has_rings() -> bool {
    is_available(Queues::open(SubmissionMode::Caller))
}

/// The descriptors of two connected endpoints: what each reads and writes.
fn descriptors(kind: DescriptorKind) -> [(OwnedFd, OwnedFd); 2] {
    match kind {
        DescriptorKind::Pipe => {
            let (server_input, client_output) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            let (client_input, server_output) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            [(client_input, client_output), (server_input, server_output)]
        }
        DescriptorKind::Socket => {
            let pair =
                socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
            [pair.0, pair.1].map(|socket| (socket.try_clone().unwrap(), socket))
        }
    }
}

/// Runs `check` in every setting that the kernel allows.
fn each_setting(check: impl Fn(DescriptorKind, UringBuffers, SubmissionMode)) {
    for mode in MODES {
        for buffers in BUFFERS {
            for kind in KINDS {
                let [(input, output), _] = descriptors(kind);
                if is_available(UringStream::open(input, output, kind, buffers, mode)) {
                    check(kind, buffers, mode);
                }
            }
        }
    }
}

fn open(
    (input, output): (OwnedFd, OwnedFd),
    kind: DescriptorKind,
    buffers: UringBuffers,
    mode: SubmissionMode,
) -> UringStream {
    UringStream::open(input, output, kind, buffers, mode).unwrap()
}

fn content(seed: usize, size_bytes: usize) -> Vec<u8> {
    (0..size_bytes).map(|at| (at.wrapping_mul(31) ^ (at >> 8) ^ seed.wrapping_mul(131)) as u8).collect()
}

fn send_all(endpoint: &mut UringStream, bytes: &[u8]) {
    let mut sent = 0;
    while sent < bytes.len() {
        sent += endpoint.send(&bytes[sent..]).unwrap();
    }
}

fn receive_all(endpoint: &mut UringStream, size_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0; size_bytes];
    let mut received = 0;
    while received < size_bytes {
        received += endpoint.receive(&mut bytes[received..]).unwrap();
    }
    bytes
}

#[test]
fn bytes_arrive_in_order_however_many_there_are() {
    each_setting(|kind, buffers, mode| {
        let [client, server] = descriptors(kind);
        thread::scope(|threads| {
            threads.spawn(move || {
                let mut server = open(server, kind, buffers, mode);
                for size_bytes in [1, 100, 4096, 300_000] {
                    let bytes = receive_all(&mut server, size_bytes);
                    send_all(&mut server, &bytes);
                }
            });
            let mut client = open(client, kind, buffers, mode);
            for size_bytes in [1, 100, 4096, 300_000] {
                let bytes = content(size_bytes, size_bytes);
                send_all(&mut client, &bytes);
                assert!(
                    receive_all(&mut client, size_bytes) == bytes,
                    "{kind:?} {buffers:?} {mode:?} {size_bytes}"
                );
            }
        });
    });
}

#[test]
fn bytes_that_arrive_while_an_endpoint_sends_are_kept() {
    each_setting(|kind, buffers, mode| {
        let [client, server] = descriptors(kind);
        let (mut client, mut server) = (open(client, kind, buffers, mode), open(server, kind, buffers, mode));
        // The first receive starts the multishot operation.
        send_all(&mut server, &[0]);
        receive_all(&mut client, 1);
        for number in 1..200 {
            send_all(&mut server, &[number]);
            send_all(&mut client, &[number]);
        }
        let expected: Vec<u8> = (1..200).collect();
        assert_eq!(receive_all(&mut client, 199), expected);
        assert_eq!(receive_all(&mut server, 199), expected);
    });
}

#[test]
fn an_endpoint_that_closes_is_visible_to_its_peer_at_once() {
    each_setting(|kind, buffers, mode| {
        let [client, server] = descriptors(kind);
        let input = client.0.try_clone().unwrap();
        let (mut client, mut server) = (open(client, kind, buffers, mode), open(server, kind, buffers, mode));
        send_all(&mut server, &[7]);
        send_all(&mut client, &[7]);
        receive_all(&mut server, 1);
        drop(server);
        // An operation that still used the server's buffers would keep the server's descriptors open.
        let mut polled = [PollFd::new(&input, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())).unwrap();
        assert!(polled[0].revents().contains(PollFlags::HUP), "{kind:?} {buffers:?} {mode:?}");
        assert_eq!(receive_all(&mut client, 1), [7]);
        assert_eq!(client.receive(&mut [0]), Err(Errno::PIPE), "{kind:?} {buffers:?} {mode:?}");
        assert_eq!(client.receive(&mut [0]), Err(Errno::PIPE), "{kind:?} {buffers:?} {mode:?}");
    });
}

#[test]
fn no_call_returns_while_its_operation_goes_on_however_often_it_is_interrupted() {
    handle(Signal::Interruption).unwrap();
    each_setting(|kind, buffers, mode| {
        let [client, server] = descriptors(kind);
        let over = AtomicBool::new(false);
        thread::scope(|threads| {
            let here = ThreadId::current();
            let over = &over;
            threads.spawn(move || {
                let sender = SignalSender::new(here, Signal::Interruption);
                while !over.load(Ordering::Relaxed) {
                    sender.kill().unwrap();
                    thread::sleep(Duration::from_micros(20));
                }
            });
            threads.spawn(move || {
                let mut server = open(server, kind, buffers, mode);
                for number in 0..50 {
                    // The client sleeps meanwhile, and is interrupted.
                    thread::sleep(Duration::from_micros(200));
                    send_all(&mut server, &content(number, 64));
                }
            });
            let mut client = open(client, kind, buffers, mode);
            for number in 0..50 {
                assert!(receive_all(&mut client, 64) == content(number, 64), "{kind:?} {buffers:?} {mode:?}");
            }
            over.store(true, Ordering::Relaxed);
        });
    });
}

fn zero_copy_pair() -> (UringZeroCopy, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let server = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let client = listener.accept().unwrap().0;
    (UringZeroCopy::open(client.into(), SIZE_BYTES).unwrap(), server)
}

#[test]
fn a_buffer_is_reserved_again_when_the_kernel_is_done_with_it() {
    use std::io::Read;
    if !kernel_has_rings() {
        return;
    }
    let (mut client, mut server) = zero_copy_pair();
    const MESSAGES: usize = 500;
    thread::scope(|threads| {
        threads.spawn(move || {
            let mut bytes = vec![0; SIZE_BYTES];
            // The client runs ahead until its messages stay in its socket, so that the kernel holds every buffer.
            thread::sleep(Duration::from_millis(50));
            for number in 0..MESSAGES {
                server.read_exact(&mut bytes).unwrap();
                assert!(bytes == content(number, SIZE_BYTES), "message {number}");
            }
        });
        for number in 0..MESSAGES {
            client.reserve(usize::MAX).copy_from_slice(&content(number, SIZE_BYTES));
            client.commit(SIZE_BYTES).unwrap();
        }
    });
    assert_eq!(client.commit(SIZE_BYTES + 1), Err(Errno::INVAL));
    let ZeroCopySends { sends, copied } = client.sends();
    assert!(
        sends as usize >= MESSAGES - zero_copy::COUNT && copied <= sends,
        "{sends} sends, {copied} copied"
    );
}

#[test]
fn an_endpoint_may_be_dropped_while_the_kernel_still_sends_from_its_buffers() {
    use std::io::Read;
    if !kernel_has_rings() {
        return;
    }
    let (mut client, mut server) = zero_copy_pair();
    client.reserve(SIZE_BYTES).fill(9);
    client.commit(SIZE_BYTES).unwrap();
    drop(client);
    let mut bytes = Vec::new();
    server.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, vec![9; SIZE_BYTES]);
}

#[test]
fn notifications_that_arrive_while_nobody_waits_are_kept() {
    if !kernel_has_rings() {
        return;
    }
    let (mut client, mut server) = (MessageRing::open().unwrap(), MessageRing::open().unwrap());
    for _ in 0..100 {
        client.notify(server.as_fd()).unwrap();
    }
    // The server notifies too, while the client's completions are in its queue.
    server.notify(client.as_fd()).unwrap();
    client.wait();
    for _ in 0..100 {
        server.wait();
    }
    assert_eq!((client.received, server.received), (0, 0));
}

#[test]
fn a_notification_wakes_a_thread_that_sleeps() {
    if !kernel_has_rings() {
        return;
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::scope(|threads| {
        threads.spawn(move || {
            let mut server = MessageRing::open().unwrap();
            sender.send(server.as_fd().try_clone_to_owned().unwrap()).unwrap();
            (0..100).for_each(|_| server.wait());
        });
        let peer = receiver.recv().unwrap();
        let mut client = MessageRing::open().unwrap();
        for _ in 0..100 {
            client.notify(peer.as_fd()).unwrap();
            thread::sleep(Duration::from_micros(50));
        }
    });
}

#[test]
fn a_descriptor_that_is_not_a_ring_is_refused() {
    if kernel_has_rings() {
        let [(input, _output), _] = descriptors(DescriptorKind::Pipe);
        assert_eq!(MessageRing::open().unwrap().notify(input.as_fd()), Err(Errno::BADFD));
    }
}

#[test]
fn a_refusal_names_what_forbids_it() {
    let failure = refusal("io_uring_setup", &std::io::Error::from_raw_os_error(libc::EINVAL));
    assert!(failure.to_string().contains("io_uring_setup a ring"), "{failure}");
    if sysctl::number("kernel/io_uring_disabled") == Some(0) {
        assert!(failure.next.contains("Linux 6.1"), "{failure}");
    }
}
