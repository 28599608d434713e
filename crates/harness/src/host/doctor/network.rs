//! Rules about the network: loopback, what is between sockets and it, and limits of sockets.

use super::finding::{Finding, Severity};
use super::here::{Here, family};
use model::units::Size;

/// The kernel gives loopback its address when it is set up, which a new network namespace leaves to others: network_namespaces(7).
pub(super) fn loopback(here: &Here<'_>) -> Option<Finding> {
    here.text("proc/self/net/fib_trie").filter(|addresses| !addresses.contains("127.0.0.1"))?;
    let why = "nothing that reaches a network can be measured on this host, tcp and udp among it: it fails as unreachable";
    let finding = Finding::new(Severity::Limits, "loopback", "the interface lo is down", why);
    Some(finding.mended_by(here.as_root("ip link set lo up")))
}

/// Loopback has no queue unless it is given one: tc(8).
pub(super) fn loopback_queue(here: &Here<'_>) -> Option<Finding> {
    let discipline = here.host.queueing.known()?.get("lo").filter(|kind| *kind != "noqueue")?;
    let what = format!("the interface lo has the queueing discipline {discipline}");
    let why =
        "each message over loopback is queued, and may be delayed or dropped, as it is on no other host";
    let finding = Finding::new(Severity::Spoils, "loopback-queue", what, why);
    Some(finding.mended_by(here.as_root("tc qdisc del dev lo root")))
}

/// `tcp(7)`, `tcp_congestion_control`.
pub(super) fn congestion_control(here: &Here<'_>) -> Option<Finding> {
    const USUAL: [&str; 2] = ["cubic", "reno"];
    let used: String = here.limit("net/ipv4/tcp_congestion_control")?;
    if USUAL.contains(&used.as_str()) {
        return None;
    }
    let what = format!("TCP's congestion control is {used}");
    let why = "it has a part in when TCP sends, over loopback too: one that paces, as bbr does, may halve the rate there";
    let command = here.as_root("sysctl -w net.ipv4.tcp_congestion_control=cubic");
    Some(Finding::new(Severity::Limits, "congestion-control", what, why).mended_by(command))
}

/// `socket(7)`: what sockets have that ask for nothing. TCP has its own, as the middle of three numbers: `tcp(7)`.
pub(super) fn default_buffers(here: &Here<'_>) -> Option<Finding> {
    /// What these are where cache lines have 64 bytes, and those of TCP everywhere.
    const LINES_OF_64: [&str; 2] = ["x86", "arm"];
    const USUAL: [(&str, u64); 2] = [("net/core/rmem_default", 212_992), ("net/core/wmem_default", 212_992)];
    const USUAL_OF_TCP: [(&str, u64); 2] = [("net/ipv4/tcp_rmem", 131_072), ("net/ipv4/tcp_wmem", 16_384)];
    let is_known = LINES_OF_64.contains(&family(&here.host.arch));
    let fixed = USUAL
        .iter()
        .filter(|_| is_known)
        .filter_map(|(name, usual)| Some((*name, here.limit(name)?, *usual)));
    let of_tcp = USUAL_OF_TCP.iter().filter_map(|(name, usual)| {
        let numbers: String = here.limit(name)?;
        Some((*name, numbers.split(' ').nth(1)?.parse().ok()?, *usual))
    });
    let unusual: Vec<(&str, u64, u64)> =
        fixed.chain(of_tcp).filter(|(_, value, usual)| value != usual).collect();
    let words = unusual.iter().map(|(name, value, usual)| {
        format!("{} is {}, usually {}", name.replace('/', "."), Size(*value), Size(*usual))
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() {
        return None;
    }
    let is_small = unusual.iter().any(|(_, value, usual)| value < usual);
    let severity = if is_small { Severity::Limits } else { Severity::Fine };
    let why = "sockets that ask for no size have other buffers than elsewhere: how many messages are on their way, and so \
               rates, depend on it";
    let fixed = unusual.iter().filter(|(name, ..)| !name.contains("tcp"));
    let sysctls: Vec<String> =
        fixed.map(|(name, _, usual)| format!("{}={usual}", name.replace('/', "."))).collect();
    let command = (!sysctls.is_empty()).then(|| here.as_root(&format!("sysctl -w {}", sysctls.join(" "))));
    Some(Finding::new(severity, "default-buffers", words.join(", "), why).mended_by(command))
}

/// `listen(2)`.
pub(super) fn connection_queue(here: &Here<'_>) -> Option<Finding> {
    const ENOUGH: u64 = 128;
    let length: u64 = here.limit("net/core/somaxconn").filter(|length| *length < ENOUGH)?;
    let what = format!("a server's socket queues {length} connections (somaxconn)");
    let why = "further ones wait, or are refused by Unix sockets, until the server has accepted some";
    let command = here.as_root("sysctl -w net.core.somaxconn=4096");
    Some(Finding::new(Severity::Limits, "connection-queue", what, why).mended_by(command))
}

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
    use super::super::testing::{AS_IS, assert_finds, finding, limit};
    use super::*;
    use model::record::{Fact, Host};

    #[test]
    fn small_socket_buffers_are_raised_where_they_are_small() {
        let found = finding(socket_buffers, limit("net/core/wmem_max", "212992"), &[]);
        let command = Some("sudo sysctl -w net.core.wmem_max=4194304");
        assert_finds(found, Severity::Limits, "capped: wmem_max 208K", command);
    }

    #[test]
    fn loopback_that_is_down_or_has_a_queue_is_found() {
        let trie = |text| [("proc/self/net/fib_trie", text)];
        let command = Some("sudo ip link set lo up");
        assert_finds(finding(loopback, AS_IS, &trie("\n")), Severity::Limits, "lo is down", command);
        assert_eq!(finding(loopback, AS_IS, &trie("|-- 127.0.0.1\n")), None);
        let queue = |kind: &'static str| {
            move |host: &mut Host| host.queueing = Fact::Known([("lo".to_owned(), kind.to_owned())].into())
        };
        let command = Some("sudo tc qdisc del dev lo root");
        assert_finds(
            finding(loopback_queue, queue("netem"), &[]),
            Severity::Spoils,
            "discipline netem",
            command,
        );
        assert_eq!(finding(loopback_queue, queue("noqueue"), &[]), None);
    }

    #[test]
    fn another_congestion_control_than_usual_is_found() {
        let uses = |name| finding(congestion_control, limit("net/ipv4/tcp_congestion_control", name), &[]);
        let command = Some("sudo sysctl -w net.ipv4.tcp_congestion_control=cubic");
        assert_finds(uses("bbr"), Severity::Limits, "is bbr", command);
        assert_eq!(uses("cubic"), None);
    }

    #[test]
    fn buffers_of_another_size_than_usual_are_found() {
        let found = finding(default_buffers, limit("net/core/wmem_default", "8192"), &[]);
        let command = Some("sudo sysctl -w net.core.wmem_default=212992");
        assert_finds(found, Severity::Limits, "net.core.wmem_default is 8K, usually 208K", command);
        let found = finding(default_buffers, limit("net/ipv4/tcp_rmem", "4096 262144 6291456"), &[]);
        assert_finds(found, Severity::Fine, "net.ipv4.tcp_rmem is 256K, usually 128K", None);
        assert_eq!(finding(default_buffers, limit("net/ipv4/tcp_wmem", "4096 16384 4194304"), &[]), None);
    }

    #[test]
    fn a_short_queue_of_connections_is_found() {
        let found = finding(connection_queue, limit("net/core/somaxconn", "8"), &[]);
        let command = Some("sudo sysctl -w net.core.somaxconn=4096");
        assert_finds(found, Severity::Limits, "queues 8 connections", command);
    }

    #[test]
    fn a_short_datagram_queue_is_found() {
        let found = finding(datagram_queue, limit("net/unix/max_dgram_qlen", "10"), &[]);
        let command = Some("sudo sysctl -w net.unix.max_dgram_qlen=512");
        assert_finds(found, Severity::Fine, "max_dgram_qlen is 10", command);
    }
}
