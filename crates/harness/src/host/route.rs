//! By which network interface a peer is reached, and what the kernel counts of its whole network namespace. It asks /proc alone,
//! and connects to nobody.

use super::reachable;
use model::network::NetworkReadings;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The flags of a route: it can be used; it refuses.
const UP: u32 = 0x1;
const REJECT: u32 = 0x200;

/// The interface by which `peer` is reached, as the main routing table says; that table is not the only one a host may have.
pub(crate) fn link_to(peer: IpAddr) -> Option<String> {
    if peer.is_loopback() || reachable::addresses().contains(&peer) {
        return Some("lo".to_owned());
    }
    match peer {
        IpAddr::V4(peer) => v4_link(&net("route"), peer),
        IpAddr::V6(peer) => v6_link(&net("ipv6_route"), peer),
    }
}

/// What the kernel counts of all sockets in the network namespace.
pub(crate) fn host_counters() -> NetworkReadings {
    counters(&net("snmp"), &net("snmp6"))
}

fn net(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/self/net/{name}")).unwrap_or_default()
}

/// Of /proc/net/route: the interface of the longest prefix that has `peer`, and of those the route with the lowest metric.
fn v4_link(routes: &str, peer: Ipv4Addr) -> Option<String> {
    let route = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [link, destination, _, flags, _, _, metric, mask, ..] = words[..] else { return None };
        let hex = |text: &str| u32::from_str_radix(text, 16).ok();
        // Addresses are printed as the number that their bytes make in memory.
        let bits = |text: &str| hex(text).map(|number| u32::from_be_bytes(number.to_ne_bytes()));
        let (mask, metric) = (bits(mask)?, metric.parse::<u32>().ok()?);
        let is_that = is_usable(hex(flags)?) && peer.to_bits() & mask == bits(destination)?;
        is_that.then(|| ((mask.count_ones(), std::cmp::Reverse(metric)), link.to_owned()))
    };
    routes.lines().filter_map(route).max_by_key(|(rank, _)| *rank).map(|(_, link)| link)
}

/// The same of /proc/net/ipv6_route.
fn v6_link(routes: &str, peer: Ipv6Addr) -> Option<String> {
    let route = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [destination, length, _, _, _, metric, _, _, flags, link] = words[..] else { return None };
        let hex = |text: &str| u32::from_str_radix(text, 16).ok();
        let (destination, length) = (u128::from_str_radix(destination, 16).ok()?, hex(length)?);
        let mask = u128::MAX.checked_shl(128_u32.checked_sub(length)?).unwrap_or(0);
        let is_that = is_usable(hex(flags)?) && peer.to_bits() & mask == destination & mask;
        is_that.then(|| Some(((length, std::cmp::Reverse(hex(metric)?)), link.to_owned())))?
    };
    routes.lines().filter_map(route).max_by_key(|(rank, _)| *rank).map(|(_, link)| link)
}

const fn is_usable(flags: u32) -> bool {
    flags & UP != 0 && flags & REJECT == 0
}

/// The counters of /proc/net/snmp, in which a line of names stands before one of numbers, and /proc/net/snmp6, in which each
/// has a line of its own.
fn counters(snmp: &str, snmp6: &str) -> NetworkReadings {
    let v4 = |protocol: &str, name: &str| {
        let mut lines = snmp.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(": "));
        let (names, numbers) = (lines.next()?, lines.next()?);
        let at = names.split_whitespace().position(|known| known == name)?;
        numbers.split_whitespace().nth(at)?.parse::<u64>().ok()
    };
    let v6 = |name: &str| {
        let mut words = snmp6.lines().map(str::split_whitespace);
        words.find_map(|mut words| (words.next()? == name).then(|| words.next()?.parse::<u64>().ok())?)
    };
    let both = |v4: Option<u64>, v6: Option<u64>| v4.map(|v4| v4.saturating_add(v6.unwrap_or(0)));
    NetworkReadings {
        host_retransmitted: v4("Tcp", "RetransSegs"),
        host_udp_errors: both(v4("Udp", "InErrors"), v6("Udp6InErrors")),
        host_udp_no_room: both(v4("Udp", "RcvbufErrors"), v6("Udp6RcvbufErrors")),
        ..NetworkReadings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_and_then_the_lowest_metric_names_the_interface() {
        let word = |a: u8, b: u8, c: u8, d: u8| format!("{:08X}", u32::from_ne_bytes([a, b, c, d]));
        let line = |link: &str, to: String, mask: String, flags: &str, metric: u32| {
            format!("{link}\t{to}\t00000000\t{flags}\t0\t0\t{metric}\t{mask}\t0\t0\t0\n")
        };
        let routes = [
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n".to_owned(),
            line("wlan0", word(0, 0, 0, 0), word(0, 0, 0, 0), "0003", 600),
            line("eth0", word(0, 0, 0, 0), word(0, 0, 0, 0), "0003", 100),
            line("eth1", word(10, 2, 0, 0), word(255, 255, 0, 0), "0001", 0),
            line("down0", word(10, 2, 3, 0), word(255, 255, 255, 0), "0000", 0),
            line("deny0", word(10, 2, 3, 0), word(255, 255, 255, 0), "0201", 0),
        ]
        .concat();
        assert_eq!(v4_link(&routes, Ipv4Addr::new(10, 2, 3, 4)).as_deref(), Some("eth1"));
        assert_eq!(v4_link(&routes, Ipv4Addr::new(10, 3, 3, 4)).as_deref(), Some("eth0"));
        assert_eq!(v4_link("nonsense\n", Ipv4Addr::LOCALHOST), None);
    }

    #[test]
    fn routes_of_ipv6_are_read() {
        let line = |to: &str, length: &str, flags: &str, link: &str| {
            let zero = "0".repeat(32);
            format!("{to} {length} {zero} 00 {zero} 00000400 00000001 00000000 {flags} {link}\n")
        };
        let routes = [
            line("fd000213000100000000000000000000", "40", "00000001", "eth0"),
            line(&"0".repeat(32), "00", "00000003", "eth1"),
            line(&"0".repeat(32), "00", "00200200", "lo"),
            line(&"0".repeat(32), "ff", "00000001", "bad0"),
        ]
        .concat();
        assert_eq!(v6_link(&routes, "fd00:213:1::2".parse().unwrap()).as_deref(), Some("eth0"));
        assert_eq!(v6_link(&routes, "2001:db8::1".parse().unwrap()).as_deref(), Some("eth1"));
    }

    #[test]
    fn an_own_address_is_reached_by_loopback() {
        assert_eq!(link_to(Ipv4Addr::LOCALHOST.into()).as_deref(), Some("lo"));
    }

    #[test]
    fn counters_are_found_by_their_names_and_those_of_ipv6_are_added() {
        let snmp = "Tcp: RtoAlgorithm RetransSegs InErrs\nTcp: 1 77 2\nUdp: InDatagrams InErrors RcvbufErrors\nUdp: 5 4 3\n\
                    UdpLite: InDatagrams InErrors RcvbufErrors\nUdpLite: 9 9 9\n";
        let snmp6 = "Udp6InDatagrams 6\nUdp6InErrors\t10\nUdp6RcvbufErrors 20\n";
        let counted = counters(snmp, snmp6);
        assert_eq!(
            (counted.host_retransmitted, counted.host_udp_errors, counted.host_udp_no_room),
            (Some(77), Some(14), Some(23))
        );
        assert_eq!(counters("Tcp: A\n", ""), NetworkReadings::default());
        assert!(host_counters().host_retransmitted.is_some());
    }
}
