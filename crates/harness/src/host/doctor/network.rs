//! Rules about the network: limits of sockets.

use super::finding::{Finding, Severity};
use super::here::Here;
use model::units::Size;

/// `socket(7)`: what is asked for with `SO_SNDBUF` and `SO_RCVBUF` is capped by these, then doubled.
pub(super) fn socket_buffers(here: &Here<'_>) -> Option<Finding> {
    const WANTED: u64 = 4 << 20;
    const ENOUGH: u64 = 1 << 20;
    let small = |name: &&str| here.limit(&format!("net/core/{name}")).is_some_and(|max: u64| max < ENOUGH);
    let small: Vec<&str> = ["rmem_max", "wmem_max"].into_iter().filter(|name| small(name)).collect();
    let sizes: Vec<String> = small
        .iter()
        .filter_map(|name| Some(format!("{name} {}", Size(here.limit(&format!("net/core/{name}"))?))))
        .collect();
    if small.is_empty() {
        return None;
    }
    let what = format!("socket buffers are capped: {}", sizes.join(", "));
    let why = "unix datagrams and packets of more than twice wmem_max are refused, and buffers asked for above \
               the caps are cut to them";
    let settings: Vec<String> = small.iter().map(|name| format!("net.core.{name}={WANTED}")).collect();
    let command = here.as_root(&format!("sysctl -w {}", settings.join(" ")));
    Some(Finding::new(Severity::Limits, "socket-buffers", what, why).mended_by(command))
}

/// `unix_dgram_sendmsg` in the kernel's `net/unix/af_unix.c` reads the queue's length only where the receiver
/// is not connected back to the sender. Socket pairs are, so nothing is limited unless a receiver is shared.
pub(super) fn datagram_queue(here: &Here<'_>) -> Option<Finding> {
    let length: u64 = here.limit("net/unix/max_dgram_qlen").filter(|length| *length < 64)?;
    let what = format!("max_dgram_qlen is {length}");
    let why = "a unix datagram socket of a server queues about this many messages, however small, and then the \
               sender waits. Socket pairs are limited by their buffers alone";
    let command = here.as_root("sysctl -w net.unix.max_dgram_qlen=512");
    Some(Finding::new(Severity::Fine, "datagram-queue", what, why).mended_by(command))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_finds, finding, limit};
    use super::*;

    #[test]
    fn small_socket_buffers_are_raised_where_they_are_small() {
        let found = finding(socket_buffers, limit("net/core/wmem_max", "212992"), &[]);
        let command = Some("sudo sysctl -w net.core.wmem_max=4194304");
        assert_finds(found, Severity::Limits, "capped: wmem_max 208K", command);
    }

    #[test]
    fn a_short_datagram_queue_is_found() {
        let found = finding(datagram_queue, limit("net/unix/max_dgram_qlen", "10"), &[]);
        let command = Some("sudo sysctl -w net.unix.max_dgram_qlen=512");
        assert_finds(found, Severity::Fine, "max_dgram_qlen is 10", command);
    }
}
