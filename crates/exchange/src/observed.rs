//! What the supervisor saw of a program: which sockets and pipes it has, by which it is found what can be exchanged, and what could not be
//! kept from it.

use crate::exchange::ProgramExchange;
use std::collections::{BTreeMap, BTreeSet};
use sys::bpf_redirect::SocketRedirect;

/// What was seen of a program, all its processes together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// The TCP ports on this host that it listens on or connects to.
    pub tcp: BTreeMap<u16, ObservedPort>,
    /// The UDP ports that it binds.
    pub udp: BTreeSet<u16>,
    /// Whether it listens on a Unix stream socket of its own.
    pub listens_on_unix: bool,
    /// How many Unix stream connections it made to itself, pairs included.
    pub unix_stream: u64,
    /// How many Unix datagram sockets it bound, connected or made in pairs.
    pub unix_dgram: u64,
    /// How many pipes it made.
    pub pipes: u64,
    /// How many of all these were exchanged.
    pub exchanged: u64,
    /// How many of its calls the supervisor answered or let through.
    pub calls: u64,
    /// How often it did what an exchange cannot keep, by its name.
    pub not_kept: BTreeMap<String, u64>,
}

/// A TCP port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObservedPort {
    /// Whether the program itself listens there.
    pub listens: bool,
    /// How many connections it made to it.
    pub connections: u64,
    /// Whether it sets `TCP_NODELAY` on connections to it.
    pub sets_nodelay: bool,
}

impl Observed {
    /// Notes that the program did `what`, which an exchange cannot keep.
    pub(crate) fn cannot_keep(&mut self, what: &str) {
        *self.not_kept.entry(what.to_owned()).or_default() += 1;
    }

    pub(crate) fn port(&mut self, port: u16) -> &mut ObservedPort {
        self.tcp.entry(port).or_default()
    }
}

/// What can be exchanged of all that a program uses: for each, the replacements that may be faster by what the mechanisms are. A sockmap
/// takes privileges, and is one where they are there.
pub fn candidates(observed: &Observed) -> Vec<ProgramExchange> {
    of_observed(observed, SocketRedirect::new().is_ok())
}

fn of_observed(observed: &Observed, may_redirect: bool) -> Vec<ProgramExchange> {
    let mut texts = Vec::new();
    for (port, of) in &observed.tcp {
        if of.listens && of.connections > 0 {
            texts.push(format!("tcp:{port}=unix-stream"));
            texts.push(format!("tcp:{port}=unix-stream:sndbuf=1M"));
            if may_redirect {
                texts.push(format!("tcp:{port}=sockmap"));
            }
            if !of.sets_nodelay {
                texts.push(format!("tcp:{port}=tcp:nodelay=on"));
            }
        }
    }
    if observed.unix_stream > 0 {
        texts.push("unix-stream=unix-stream:sndbuf=1M".to_owned());
    }
    if observed.unix_dgram > 0 {
        texts.push("unix-dgram=unix-dgram:sndbuf=1M".to_owned());
    }
    if !observed.udp.is_empty() {
        texts.push("udp=udp:rcvbuf=4M".to_owned());
    }
    if observed.pipes > 0 {
        texts.push("pipe=pipe:capacity=1M".to_owned());
        texts.push("pipe=unix-stream".to_owned());
    }
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_what_can_be_exchanged() {
        let mut observed = Observed { pipes: 1, ..Observed::default() };
        *observed.port(80) = ObservedPort { listens: true, connections: 3, sets_nodelay: true };
        // Somebody else listens there.
        *observed.port(81) = ObservedPort { listens: false, connections: 3, sets_nodelay: false };
        let found = |may_redirect| -> Vec<String> {
            of_observed(&observed, may_redirect).iter().map(ProgramExchange::to_string).collect()
        };
        let mut expected = vec![
            "tcp:80=unix-stream",
            "tcp:80=unix-stream:sndbuf=1M",
            "pipe=pipe:capacity=1M",
            "pipe=unix-stream",
        ];
        assert_eq!(found(false), expected);
        expected.insert(2, "tcp:80=sockmap");
        assert_eq!(found(true), expected);
        assert_eq!(of_observed(&Observed::default(), true), []);
    }
}
