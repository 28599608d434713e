//! A sockmap: both ends of the TCP connections of this host to some ports, so that what one sends goes straight to where the other reads,
//! past the TCP stack (kernel: Documentation/bpf/map_sockmap.rst). It knows no program and no exchange.

use crate::bpf::{BpfInstruction, BpfLink, BpfMap, BpfProgram, bpf, refused};
use crate::bpf_assembler::Condition::{Equal, NotEqual};
use crate::bpf_assembler::Register::{R0, R1, R2, R3, R4, Stack};
use crate::bpf_assembler::Width::Four;
use crate::bpf_assembler::{Assembler, Helper, Register};
use crate::{Failure, OrFail};
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::ffi::c_long;

/// Commands of bpf(2).
const PROG_ATTACH: c_long = 8;
const LINK_CREATE: c_long = 28;
/// Types of maps, of programs, and of what these are attached to.
const MAP_TYPE_SOCKHASH: u32 = 18;
const PROG_TYPE_SOCK_OPS: u32 = 13;
const PROG_TYPE_SK_MSG: u32 = 16;
const CGROUP_SOCK_OPS: u32 = 3;
const SK_MSG_VERDICT: u32 = 7;
/// `BPF_F_INGRESS`: to where the other end reads.
const INGRESS: i32 = 1;
/// What a program of sockets is called for: a connection is there, at the end that connected and at the one that accepts.
const ACTIVE_ESTABLISHED: i32 = 4;
const PASSIVE_ESTABLISHED: i32 = 5;
/// What the key of a connection of ::1 has in the place of addresses: no address of IPv4 that is 127.0.0.0/8 or a host's own.
const LOOPBACK6: i32 = 6;
/// `SO_NETNS_COOKIE` (asm-generic/socket.h), which libc does not name.
const SO_NETNS_COOKIE: libc::c_int = 71;
const INET6: i32 = AddressFamily::INET6.as_raw() as i32;

/// The addresses of one end, and its port and the other's, 4 bytes each.
const KEY_BYTES: usize = 16;
/// So many connections at a time.
const CONNECTIONS: u32 = 65_536;

/// Where the members of `struct bpf_sock_ops` and of `struct sk_msg_md` lie (linux/bpf.h).
mod sock_ops {
    pub(super) const OP: i16 = 0;
    pub(super) const FAMILY: i16 = 20;
    pub(super) const REMOTE_IP4: i16 = 24;
    pub(super) const LOCAL_IP4: i16 = 28;
    pub(super) const REMOTE_IP6: i16 = 32;
    pub(super) const REMOTE_PORT: i16 = 64;
    pub(super) const LOCAL_PORT: i16 = 68;
}
mod sk_msg {
    pub(super) const FAMILY: i16 = 16;
    pub(super) const REMOTE_IP4: i16 = 20;
    pub(super) const LOCAL_IP4: i16 = 24;
    pub(super) const REMOTE_IP6: i16 = 28;
    pub(super) const REMOTE_PORT: i16 = 60;
    pub(super) const LOCAL_PORT: i16 = 64;
}

/// Connections whose data goes past the TCP stack, as long as this exists.
#[derive(Debug)]
pub struct SocketRedirect {
    ports: BpfMap,
    _sockets: BpfMap,
    _link: BpfLink,
}

#[repr(C)]
struct AttachAttributes {
    target_fd: u32,
    attach_bpf_fd: u32,
    attach_type: u32,
    attach_flags: u32,
}

#[repr(C)]
struct LinkAttributes {
    prog_fd: u32,
    target_fd: u32,
    attach_type: u32,
    flags: u32,
}

impl SocketRedirect {
    /// Of no port yet. It takes `CAP_BPF` and `CAP_NET_ADMIN`, and control groups of version 2 (Linux 5.14).
    pub fn new() -> Result<Self, Failure> {
        const PORTS: u32 = 1024;
        let ports = BpfMap::hash(4, 4, PORTS)?;
        let sockets = BpfMap::create(MAP_TYPE_SOCKHASH, KEY_BYTES, 4, CONNECTIONS, 0)?;
        let redirects = BpfProgram::load_kind(
            (PROG_TYPE_SK_MSG, SK_MSG_VERDICT),
            "redirects",
            &redirects(&sockets),
            0,
            &[],
        )?;
        let attributes = AttachAttributes {
            target_fd: number(&sockets),
            attach_bpf_fd: number(&redirects),
            attach_type: SK_MSG_VERDICT,
            attach_flags: 0,
        };
        // SAFETY: the attributes are those of this command. They name no memory.
        unsafe { bpf(PROG_ATTACH, &attributes) }.map_err(|errno| refused("a sockmap", errno, ""))?;
        let collects = collects(&sockets, &ports, network_cookie()?);
        let collects =
            BpfProgram::load_kind((PROG_TYPE_SOCK_OPS, CGROUP_SOCK_OPS), "collects", &collects, 0, &[])?;
        let link = attached_to_all(&collects)?;
        Ok(Self { ports, _sockets: sockets, _link: link })
    }

    /// Connections to `port` that are made from now on.
    pub fn add_port(&self, port: u16) -> Result<(), Failure> {
        self.ports.set(&u32::from(port).to_ne_bytes(), &[0; 4])
    }
}

fn number(of: &impl AsFd) -> u32 {
    of.as_fd().as_raw_fd().cast_unsigned()
}

/// By which the kernel knows this network namespace (socket(7), `SO_NETNS_COOKIE`).
fn network_cookie() -> Result<u64, Failure> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let socket = socket.or_fail("socket", "AF_UNIX")?;
    let mut bytes = [0; 8];
    crate::socket_option::get_bytes(&socket, libc::SOL_SOCKET, SO_NETNS_COOKIE, &mut bytes)
        .or_fail("getsockopt", "SO_NETNS_COOKIE")?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Attaches `program` to all control groups, by the one around them, whose file system is looked for in /proc/mounts.
fn attached_to_all(program: &BpfProgram) -> Result<BpfLink, Failure> {
    let mounts = std::fs::read_to_string("/proc/thread-self/mounts").unwrap_or_default();
    let place = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let place = words.next()?;
        (words.next()? == "cgroup2").then(|| place.to_owned())
    });
    let place = place.ok_or_else(|| {
        let next = "mount control groups of version 2: mount -t cgroup2 none /sys/fs/cgroup/unified";
        Failure::new("attach", "a sockmap", "no cgroup2 is mounted", next)
    })?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let group = open(place.as_str(), flags, Mode::empty()).or_fail("open", &place)?;
    let attributes = LinkAttributes {
        prog_fd: number(program),
        target_fd: number(&group),
        attach_type: CGROUP_SOCK_OPS,
        flags: 0,
    };
    // SAFETY: the attributes are those of this command. They name no memory.
    let fd = unsafe { bpf(LINK_CREATE, &attributes) };
    let fd = fd.map_err(|errno| refused("a program of all sockets", errno, ""))?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(BpfLink::new(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Kept over calls: what the program is called with, a port, and both addresses.
const CONTEXT: Register = Register::R6;
const PORT: Register = Register::R7;
const LOCAL: Register = Register::R8;
const REMOTE: Register = Register::R9;

/// Where keys are on the stack, and the port that is looked up.
const KEY: i16 = -(KEY_BYTES as i16);
const LOOKED_UP: i16 = KEY - 4;

/// What puts each end of a connection of this host to one of `ports` into `sockets`, once it is there.
fn collects(sockets: &BpfMap, ports: &BpfMap, network: u64) -> Vec<BpfInstruction> {
    let mut code = Assembler::default();
    let [end, has_port, by_ipv4, is_of_this_host] = std::array::from_fn(|_| code.label());
    code.set(CONTEXT, R1);
    code.load(Four, R2, CONTEXT, sock_ops::OP);
    code.load(Four, PORT, CONTEXT, sock_ops::LOCAL_PORT);
    code.jump_if(R2, Equal, PASSIVE_ESTABLISHED, has_port);
    code.jump_if(R2, NotEqual, ACTIVE_ESTABLISHED, end);
    code.load(Four, PORT, CONTEXT, sock_ops::REMOTE_PORT);
    code.swap_from_network(PORT);
    code.put(has_port);
    code.load(Four, LOCAL, CONTEXT, sock_ops::LOCAL_IP4);
    code.load(Four, REMOTE, CONTEXT, sock_ops::REMOTE_IP4);
    code.load(Four, R2, CONTEXT, sock_ops::FAMILY);
    code.jump_if(R2, NotEqual, INET6, by_ipv4);
    // ::1, or an address of IPv4 in one of IPv6.
    for word in [0, 4] {
        code.load(Four, R2, CONTEXT, sock_ops::REMOTE_IP6 + word);
        code.jump_if(R2, NotEqual, 0, end);
    }
    code.load(Four, R2, CONTEXT, sock_ops::REMOTE_IP6 + 8);
    code.jump_if(R2, NotEqual, 0, by_ipv4);
    code.load(Four, R2, CONTEXT, sock_ops::REMOTE_IP6 + 12);
    code.swap_from_network(R2);
    code.jump_if(R2, NotEqual, 1, end);
    code.set(LOCAL, LOOPBACK6);
    code.set(REMOTE, LOOPBACK6);
    code.jump(is_of_this_host);
    code.put(by_ipv4);
    // To itself, or 127.0.0.0/8.
    code.jump_if(LOCAL, Equal, REMOTE, is_of_this_host);
    code.set(R2, REMOTE);
    code.swap_from_network(R2);
    code.shift_right(R2, 24);
    code.jump_if(R2, NotEqual, 127, end);
    code.put(is_of_this_host);
    code.store(Four, Stack, LOOKED_UP, PORT);
    code.refer(R1, ports);
    address(&mut code, R2, LOOKED_UP);
    code.call(Helper::MapLookup);
    code.jump_if(R0, Equal, 0, end);
    code.set(R1, CONTEXT);
    code.call(Helper::NetworkCookie);
    code.set_long(R2, network);
    code.jump_if(R0, NotEqual, R2, end);
    code.store(Four, Stack, KEY, LOCAL);
    code.store(Four, Stack, KEY + 4, REMOTE);
    code.load(Four, R2, CONTEXT, sock_ops::LOCAL_PORT);
    code.store(Four, Stack, KEY + 8, R2);
    code.load(Four, R2, CONTEXT, sock_ops::REMOTE_PORT);
    code.swap_from_network(R2);
    code.store(Four, Stack, KEY + 12, R2);
    code.set(R1, CONTEXT);
    code.refer(R2, sockets);
    address(&mut code, R3, KEY);
    code.set(R4, 0);
    code.call(Helper::SocketUpdate);
    code.put(end);
    code.exit();
    code.finish().0
}

/// What sends a message to where the other end reads, if that is one of `sockets`; else it goes through TCP.
fn redirects(sockets: &BpfMap) -> Vec<BpfInstruction> {
    let mut code = Assembler::default();
    let known = code.label();
    code.set(CONTEXT, R1);
    code.load(Four, LOCAL, CONTEXT, sk_msg::LOCAL_IP4);
    code.load(Four, REMOTE, CONTEXT, sk_msg::REMOTE_IP4);
    code.load(Four, R2, CONTEXT, sk_msg::FAMILY);
    code.jump_if(R2, NotEqual, INET6, known);
    code.load(Four, R2, CONTEXT, sk_msg::REMOTE_IP6 + 8);
    code.jump_if(R2, NotEqual, 0, known);
    code.set(LOCAL, LOOPBACK6);
    code.set(REMOTE, LOOPBACK6);
    code.put(known);
    // The other end's key: what is remote here is local there.
    code.store(Four, Stack, KEY, REMOTE);
    code.store(Four, Stack, KEY + 4, LOCAL);
    code.load(Four, R2, CONTEXT, sk_msg::REMOTE_PORT);
    code.swap_from_network(R2);
    code.store(Four, Stack, KEY + 8, R2);
    code.load(Four, R2, CONTEXT, sk_msg::LOCAL_PORT);
    code.store(Four, Stack, KEY + 12, R2);
    code.set(R1, CONTEXT);
    code.refer(R2, sockets);
    address(&mut code, R3, KEY);
    code.set(R4, INGRESS);
    code.call(Helper::MessageRedirect);
    code.exit();
    code.finish().0
}

/// `to` is where so many bytes below the end of the stack begin.
fn address(code: &mut Assembler, to: Register, at: i16) {
    code.set(to, Stack);
    code.add(to, i32::from(at));
}

#[cfg(all(test, not(miri)))]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use super::*;
    use crate::bpf::REMEDY;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// The redirect, and whether it may be had at all.
    fn redirect() -> Option<SocketRedirect> {
        match SocketRedirect::new() {
            Ok(redirect) => Some(redirect),
            Err(failure) => {
                let is_told = failure.next == REMEDY || failure.answer.contains("cgroup2");
                assert!(!rustix::process::geteuid().is_root() || is_told, "{failure}");
                None
            }
        }
    }

    /// How many segments with data the kernel has sent for `socket` (`TCP_INFO`, linux/tcp.h).
    fn data_segments_sent(socket: &TcpStream) -> u32 {
        const DATA_SEGS_OUT: usize = 156;
        let mut bytes = [0; 192];
        crate::socket_option::get_bytes(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes).unwrap();
        u32::from_ne_bytes(bytes[DATA_SEGS_OUT..DATA_SEGS_OUT + 4].try_into().unwrap())
    }

    fn echoed(address: &str, redirect: &SocketRedirect, is_added: bool) -> u32 {
        let listener = TcpListener::bind(address).unwrap();
        let to = listener.local_addr().unwrap();
        if is_added {
            redirect.add_port(to.port()).unwrap();
        }
        let server = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut bytes = [0; 5];
            for _ in 0..100 {
                connection.read_exact(&mut bytes).unwrap();
                connection.write_all(&bytes).unwrap();
            }
        });
        let mut client = TcpStream::connect(to).unwrap();
        for round in 0..100_u8 {
            let sent = [round, 1, 2, 3, 4];
            client.write_all(&sent).unwrap();
            let mut got = [0; 5];
            client.read_exact(&mut got).unwrap();
            assert_eq!(got, sent);
        }
        let segments = data_segments_sent(&client);
        server.join().unwrap();
        segments
    }

    #[test]
    fn what_is_sent_goes_past_tcp_on_the_ports_that_were_added_alone() {
        let Some(redirect) = redirect() else { return };
        for address in ["127.0.0.1:0", "[::1]:0"] {
            assert_eq!(echoed(address, &redirect, false), 100, "{address}, as it is");
            // The other end may not be known yet at the first.
            assert!(echoed(address, &redirect, true) <= 1, "{address}, redirected");
        }
    }
}
