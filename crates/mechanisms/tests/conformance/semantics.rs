//! What cards claim of semantics, as far as it can be tried: order, loss, a full queue, whole writes, credentials, and what
//! outlives its makers.
//!
//! That messages arrive in order, whole and all of them is checked in `messages`, the death of a peer in `peers`.

use crate::common::{connected, content, largest, one_at_a_time, receive_all, run_directory, send_all};
use crate::test_notes::skip;
use mechanisms::registry::CARDS;
use mechanisms::{Endpoint, Shape};
use model::Workload;
use model::card::{CardKind, Framing, Payload, Reach};
use model::semantics::{Atomic, Credentials, Lifetime, Loss, Namespace, Naming, Order, OtherUsers, WhenFull};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::io::{read, write};
use rustix::net::sockopt::{set_socket_passcred, socket_peercred};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType, recvmsg,
    socketpair,
};
use std::sync::{Barrier, Mutex};
use std::time::Duration;
use sys::name::ObjectName;
use sys::posix_mq::PosixMessageQueue;
use sys::sysv::{SysvKey, SysvMessageQueue};

#[test]
fn what_a_card_claims_fits_together() {
    for card in CARDS.iter().filter(|card| card.kind == CardKind::Mechanism && card.name != "null") {
        let (name, semantics) = (card.name, &card.semantics);
        let is_message = card.framing == Framing::Message;
        assert!(!is_message || semantics.atomic == Atomic::Message, "{name}: messages arrive whole");
        assert_eq!(
            semantics.loss == Loss::Overflow,
            semantics.when_full == WhenFull::Drops,
            "{name}: what is dropped is lost"
        );
        assert!(semantics.loss != Loss::Merged || card.payload == Payload::None, "{name} merges messages");
        assert!(semantics.order != Order::Nothing || card.payload == Payload::None, "{name} has no order");
        let is_network = card.reach == Reach::Network;
        assert!(!is_network || semantics.namespace == Namespace::Net, "{name} is of the network");
        assert!(!is_network || semantics.naming == Naming::Address, "{name} has an address");
        assert!(!card.fds || semantics.credentials == Credentials::OfMessage, "{name} is a Unix socket");
        let is_signal = semantics.credentials == Credentials::OfSignal;
        assert!(!is_signal || semantics.other_users == OtherUsers::SameUser, "{name} is a signal");
        let has_name = matches!(semantics.naming, Naming::Path | Naming::Key | Naming::Name);
        let stays = semantics.lifetime != Lifetime::LastUser;
        assert!(!stays || has_name, "{name} has no name that could stay");
    }
}

check!(the_largest_message_is_no_larger_than_the_card_says, |params, M| {
    let carries = M::CARD.kind == CardKind::Mechanism && M::CARD.payload == Payload::Bytes;
    let most = M::CARD.semantics.most_bytes.filter(|_| carries);
    if let Some(most) = most {
        let largest = largest(&M::CARD, params);
        assert!(largest as u64 <= most, "{}: {largest} above {most}", M::CARD.name);
    }
});

/// Whether one more message may be sent; it has begun then.
fn begin_another(begun: &Mutex<(usize, usize)>) -> bool {
    let mut begun = begun.lock().unwrap();
    let may = begun.0 < begun.1;
    begun.0 += usize::from(may);
    may
}

/// Waits until no further message has begun in some naps: the sender waits, or has sent all.
fn wait_until_it_waits(begun: &Mutex<(usize, usize)>) {
    const NAP: Duration = Duration::from_millis(10);
    const NAPS: usize = 5;
    let (mut before, mut alike) = (usize::MAX, 0);
    while alike < NAPS {
        std::thread::sleep(NAP);
        let now = begun.lock().unwrap().0;
        alike = if now == before { alike + 1 } else { 0 };
        before = now;
    }
}

// Slow: it visits every variant of every mechanism.
check!(who_sends_into_a_full_queue_waits_where_the_card_says_so, |params, M| {
    let claims = M::CARD.semantics.when_full == WhenFull::Blocks;
    let carries = M::CARD.kind == CardKind::Mechanism && M::CARD.payload == Payload::Bytes;
    if claims && carries && M::CARD.takes(Workload::Throughput) {
        const TOTAL_BYTES: usize = 64 << 20;
        let size_bytes = largest(&M::CARD, params).min(1 << 16);
        // Tiny messages fill a queue by their number.
        let messages = (TOTAL_BYTES / size_bytes).min(100_000);
        // How many messages the client has begun to send, and how many it may.
        let begun = Mutex::new((0, messages));
        let framing = M::CARD.framing;
        let client = |mut endpoint: M::End| {
            while begin_another(&begun) {
                send_all(&mut endpoint, &content(0, size_bytes), framing);
            }
            receive_all(&mut endpoint, &mut [0], framing);
        };
        let server = |mut endpoint: M::End| {
            wait_until_it_waits(&begun);
            let messages_sent = {
                let mut begun = begun.lock().unwrap();
                begun.1 = begun.0;
                begun.0
            };
            assert!(messages_sent < messages, "{}:{params} took all {messages} messages", M::CARD.name);
            let mut message = vec![0; size_bytes];
            (0..messages_sent).for_each(|_| receive_all(&mut endpoint, &mut message, framing));
            send_all(&mut endpoint, &[1], framing);
        };
        connected::<M>(params, Shape { size_bytes, workload: Workload::Throughput }, client, server);
    }
});

check!(a_mechanism_that_loses_says_so, |params, M| {
    assert!(
        !M::End::LOSES || M::CARD.semantics.loss == Loss::Overflow,
        "{}:{params} loses messages",
        M::CARD.name
    );
});

check!(wake_ups_that_nobody_has_taken_yet_are_not_lost, |params, M| {
    let claims = M::CARD.payload == Payload::None && M::CARD.semantics.loss == Loss::Never;
    // A read of an eventfd takes all wake-ups at once, and says how many.
    if claims && M::CARD.kind == CardKind::Mechanism && !matches!(M::CARD.name, "null" | "eventfd") {
        const WAKE_UPS: usize = 5;
        let all_sent = Barrier::new(2);
        let shape = Shape { size_bytes: 1, workload: Workload::Latency };
        let client = |mut endpoint: M::End| {
            (0..WAKE_UPS).for_each(|_| send_all(&mut endpoint, &[1], M::CARD.framing));
            all_sent.wait();
            receive_all(&mut endpoint, &mut [0], M::CARD.framing);
        };
        let server = |mut endpoint: M::End| {
            all_sent.wait();
            (0..WAKE_UPS).for_each(|_| receive_all(&mut endpoint, &mut [0], M::CARD.framing));
            send_all(&mut endpoint, &[1], M::CARD.framing);
        };
        connected::<M>(params, shape, client, server);
    }
});

/// Two writers at once into one pipe: writes of `PIPE_BUF` stay whole.
#[test]
fn writes_of_up_to_pipe_buf_stay_whole_though_two_write() {
    const PIPE_BUF: usize = 4096;
    const WRITES: usize = 2000;
    let _guard = one_at_a_time();
    let (from, to) = rustix::pipe::pipe().unwrap();
    std::thread::scope(|threads| {
        for writer in [1_u8, 2] {
            let to = &to;
            threads.spawn(move || {
                for _ in 0..WRITES {
                    assert_eq!(write(to, &[writer; PIPE_BUF]), Ok(PIPE_BUF));
                }
            });
        }
        let mut bytes = vec![0; PIPE_BUF];
        for number in 0..2 * WRITES {
            let mut filled = 0;
            while filled < PIPE_BUF {
                filled += read(&from, &mut bytes[filled..]).unwrap();
            }
            assert!(bytes.iter().all(|byte| *byte == bytes[0]), "write {number} is mixed with another");
        }
    });
}

/// Datagrams of UDP that find no room are dropped, and sending succeeds. The mechanism `udp` keeps a window so that this does not
/// happen to it.
#[test]
fn datagrams_that_find_no_room_are_dropped_in_silence() {
    const DATAGRAMS: usize = 20_000;
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    (0..DATAGRAMS).for_each(|_| assert_eq!(sender.send(&[1; 1000]).unwrap(), 1000));
    receiver.set_nonblocking(true).unwrap();
    let mut into = [0; 1000];
    let came = (0..DATAGRAMS).take_while(|_| receiver.recv(&mut into).is_ok()).count();
    assert!((1..DATAGRAMS).contains(&came), "{came} came");
}

#[test]
fn a_unix_socket_says_who_connected_and_who_sent_each_message() {
    let own = rustix::process::getpid();
    for kind in [SocketType::STREAM, SocketType::SEQPACKET, SocketType::DGRAM] {
        let (a, b) = socketpair(AddressFamily::UNIX, kind, SocketFlags::empty(), None).unwrap();
        assert_eq!(socket_peercred(&a).unwrap().pid, own);
        set_socket_passcred(&b, true).unwrap();
        write(&a, &[1]).unwrap();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let mut into = [std::io::IoSliceMut::new(&mut byte)];
        recvmsg(&b, &mut into, &mut control, RecvFlags::empty()).unwrap();
        let sender = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmCredentials(credentials) => Some(credentials.pid),
            _ => None,
        });
        assert_eq!(sender, Some(own), "{kind:?}");
    }
}

/// The name of a FIFO stays when nobody has it open, and what was not read is gone.
#[test]
fn a_fifo_outlives_its_makers_and_its_content_does_not() {
    let directory = run_directory();
    let path = directory.path().join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let both = open(&path, OFlags::RDWR, Mode::empty()).unwrap();
    assert_eq!(write(&both, b"unread"), Ok(6));
    drop(both);
    let again = open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
    assert_eq!(read(&again, &mut [0; 8]), Ok(0));
    std::fs::remove_file(&path).unwrap();
}

/// The path of a Unix socket stays when it is closed, and nobody can connect to it.
#[test]
fn the_path_of_a_unix_socket_outlives_it() {
    let directory = run_directory();
    let path = directory.path().join("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let refused = std::os::unix::net::UnixStream::connect(&path).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    std::fs::remove_file(&path).unwrap();
}

/// What was sent to a queue is there for who opens it when the sender has closed it.
#[test]
fn a_queue_outlives_its_makers_with_its_content() {
    const MOST_BYTES: usize = 64;
    let mut into = [0; MOST_BYTES];
    let name = format!("/ipcmark-test-{}-outlives", std::process::id());
    if let Ok(queue) = PosixMessageQueue::create(&name, 4, MOST_BYTES) {
        assert_eq!(queue.send(b"kept"), Ok(4));
        drop(queue);
        let received = PosixMessageQueue::open(&name, MOST_BYTES).unwrap().receive(&mut into);
        ObjectName::PosixMq(name).remove().unwrap();
        assert_eq!(received, Ok(4));
    } else {
        skip(
            "there are no POSIX queues here; take a kernel with CONFIG_POSIX_MQUEUE",
            "what outlives its makers is not tested of them",
        );
    }
    let key = SysvKey::hashed((std::process::id(), "outlives"));
    if let Ok(mut queue) = SysvMessageQueue::create(key, MOST_BYTES) {
        assert_eq!(queue.send(b"kept"), Ok(4));
        drop(queue);
        let received = SysvMessageQueue::open(key, MOST_BYTES).unwrap().receive(&mut into);
        ObjectName::SysvMsg(key).remove().unwrap();
        assert_eq!(received, Ok(4));
    } else {
        skip(
            "there are no System V queues here; take a kernel with CONFIG_SYSVIPC",
            "what outlives its makers is not tested of them",
        );
    }
}
