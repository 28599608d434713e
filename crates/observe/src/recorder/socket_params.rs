//! What programs have set of two sockets that are connected, as parameters of the mechanism that they are.

use rustix::fd::OwnedFd;
use rustix::net::sockopt;

/// Nagle's algorithm, which is on until a program switches it off: our own sockets have it off.
const NAGLE: &str = "nodelay=off";

/// What a program has set of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SetParams {
    /// Which buffers it has set: bits of `SO_BUF_LOCK`.
    pub(super) buffers: u32,
    /// How long both are. The kernel says the double of what was asked for.
    pub(super) send_bytes: u32,
    pub(super) receive_bytes: u32,
    /// Whether it has switched Nagle's algorithm off, of sockets that have it.
    pub(super) nodelay: Option<bool>,
}

impl SetParams {
    /// As `socket` has them.
    pub(super) fn from_socket(socket: &OwnedFd) -> Self {
        let bytes = |found: rustix::io::Result<usize>| found.ok().and_then(|bytes| u32::try_from(bytes).ok());
        Self {
            buffers: sys::socket_option::locked_buffers(socket).unwrap_or(0).cast_unsigned(),
            send_bytes: bytes(sockopt::socket_send_buffer_size(socket)).unwrap_or(0),
            receive_bytes: bytes(sockopt::socket_recv_buffer_size(socket)).unwrap_or(0),
            nodelay: sockopt::tcp_nodelay(socket).ok(),
        }
    }

    /// As parameters of the mechanism.
    pub(super) fn params(self) -> Vec<String> {
        /// Bits of `SO_BUF_LOCK`.
        const SEND: u32 = 1;
        const RECEIVE: u32 = 2;
        let mut params = Vec::new();
        for (bit, name, bytes) in [(SEND, "sndbuf", self.send_bytes), (RECEIVE, "rcvbuf", self.receive_bytes)]
        {
            if self.buffers & bit != 0 && bytes > 0 {
                params.push(format!("{name}={}", bytes / 2));
            }
        }
        if self.nodelay == Some(false) {
            params.push(NAGLE.to_owned());
        }
        params
    }
}

/// Two sockets that are an object.
#[derive(Debug)]
pub(super) struct Sockets {
    /// The mechanism without what programs have set.
    plain: String,
    /// What the program of each side has set, where that is known.
    ends: [Option<Vec<String>>; 2],
}

impl Sockets {
    /// Of which it is not known yet what programs have set.
    pub(super) fn new(plain: String) -> Self {
        Self { plain, ends: [None, None] }
    }

    /// The mechanism, now that it is known that the program of `side` has set `params`.
    pub(super) fn with_end(&mut self, side: u8, params: Vec<String>) -> String {
        self.ends[usize::from(side)] = Some(params);
        self.mechanism()
    }

    /// The mechanism as both sides together have it. A parameter is of both, and programs set one: Nagle's algorithm waits where neither
    /// has switched it off, and a buffer has the length that one has set, that of the first side if they differ.
    fn mechanism(&self) -> String {
        let known: Vec<&Vec<String>> = self.ends.iter().flatten().collect();
        let key = |param: &str| param.split('=').next().unwrap_or_default().to_owned();
        let mut params: Vec<&str> = Vec::new();
        for param in known.iter().copied().flatten() {
            let is_new = params.iter().all(|before| key(before) != key(param));
            if is_new && (param != NAGLE || known.iter().all(|end| end.contains(param))) {
                params.push(param);
            }
        }
        match (params.is_empty(), self.plain.contains(':')) {
            (true, _) => self.plain.clone(),
            (false, true) => format!("{},{}", self.plain, params.join(",")),
            (false, false) => format!("{}:{}", self.plain, params.join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(plain: &str, ends: [&[&str]; 2]) -> String {
        let mut sockets = Sockets::new(plain.to_owned());
        let [first, second] = ends.map(|params| params.iter().map(|param| (*param).to_owned()).collect());
        sockets.with_end(1, second);
        sockets.with_end(0, first)
    }

    #[test]
    fn nagle_is_off_where_either_side_has_it_off() {
        let mut one = Sockets::new("tcp".to_owned());
        assert_eq!(one.with_end(1, vec![NAGLE.to_owned()]), "tcp:nodelay=off");
        assert_eq!(both("tcp", [&[], &["nodelay=off"]]), "tcp");
        assert_eq!(both("tcp", [&["nodelay=off"], &[]]), "tcp");
        assert_eq!(both("tcp", [&["nodelay=off"], &["nodelay=off"]]), "tcp:nodelay=off");
    }

    #[test]
    fn a_buffer_is_as_long_as_either_side_has_set_it() {
        let name = "unix-stream:name=path";
        assert_eq!(both(name, [&[], &[]]), name);
        assert_eq!(
            both(name, [&["sndbuf=4096"], &["rcvbuf=9", "sndbuf=8192"]]),
            format!("{name},sndbuf=4096,rcvbuf=9")
        );
    }

    #[test]
    fn what_a_program_has_set_is_found() {
        use std::net::{TcpListener, TcpStream};
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        sockopt::set_socket_send_buffer_size(&socket, 50_000).unwrap();
        let params = SetParams::from_socket(&OwnedFd::from(socket.try_clone().unwrap())).params();
        assert_eq!(params, ["sndbuf=50000", NAGLE]);
        socket.set_nodelay(true).unwrap();
        assert_eq!(SetParams::from_socket(&OwnedFd::from(socket)).params(), ["sndbuf=50000"]);
        let (unix, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(SetParams::from_socket(&OwnedFd::from(unix)).params().is_empty());
    }
}
