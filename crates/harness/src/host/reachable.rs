//! What an endpoint tells a coordinator of its host: the facts, the clock, the CPU that it takes, and the addresses and the context
//! id by which it may be reached. It connects to nobody.

use super::facts;
use super::isolation::{Isolation, Witness};
use crate::clock::Calibration;
use crate::protocol::hello::EndpointFacts;
use model::Placement;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use sys::vsock;

/// The facts of this host, which take some 20 ms, and whether `witness` is seen here.
pub(crate) fn facts(witness: Option<&Witness>) -> EndpointFacts {
    let root = Path::new("/");
    let host = facts::read(root);
    let cpu = host.topology.place(Placement::SameCore).ok().flatten().map(|pair| pair.server);
    EndpointFacts {
        cpu,
        clock: Calibration::choose(root).record,
        addresses: addresses(),
        link_addresses: link_addresses(),
        cid: cid(),
        isolation: Isolation::own(witness),
        host,
    }
}

/// The context id of this machine's virtual sockets, if it has such.
pub fn cid() -> Option<u32> {
    vsock::own_cid().ok()
}

/// The addresses of this host in its network namespace but for loopback, that at which sshd was asked first.
pub fn addresses() -> Vec<IpAddr> {
    addresses_below(Path::new("/"))
}

/// The addresses of IPv6 that are of one link but for loopback, each with its interface.
pub fn link_addresses() -> Vec<(Ipv6Addr, String)> {
    v6_of_links(&std::fs::read_to_string("/proc/self/net/if_inet6").unwrap_or_default())
}

fn addresses_below(root: &Path) -> Vec<IpAddr> {
    let by_ssh = std::env::var("SSH_CONNECTION").ok();
    let by_ssh = by_ssh.iter().filter_map(|connection| connection.split_whitespace().nth(2)?.parse().ok());
    let read =
        |name: &str| std::fs::read_to_string(root.join("proc/self/net").join(name)).unwrap_or_default();
    let v4 = v4_addresses(&read("fib_trie")).into_iter().map(IpAddr::V4);
    let v6 = v6_addresses(&read("if_inet6")).into_iter().map(IpAddr::V6);
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in by_ssh.chain(v4).chain(v6).filter(|address| !address.is_loopback()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// The local addresses of a routing table as the kernel draws it: `|-- 10.0.0.2`, and below it `/32 host LOCAL`.
fn v4_addresses(fib_trie: &str) -> Vec<Ipv4Addr> {
    let mut last: Option<Ipv4Addr> = None;
    let mut addresses = Vec::new();
    for line in fib_trie.lines() {
        let line = line.trim();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse().ok();
        } else if line == "/32 host LOCAL" {
            addresses.extend(last);
        }
    }
    addresses
}

/// The addresses of /proc/net/if_inet6 that mean the same on every interface.
fn v6_addresses(if_inet6: &str) -> Vec<Ipv6Addr> {
    let lines = if_inet6.lines().filter_map(v6_line).filter(|(_, is_of_a_link, _)| !is_of_a_link);
    lines.map(|(address, ..)| address).collect()
}

/// Those of one link, each with its interface.
fn v6_of_links(if_inet6: &str) -> Vec<(Ipv6Addr, String)> {
    let lines = if_inet6.lines().filter_map(v6_line).filter(|(_, is_of_a_link, _)| *is_of_a_link);
    lines.map(|(address, _, interface)| (address, interface.to_owned())).collect()
}

/// The address of a line, whether it is of one link, whose scope is 20, and its interface.
fn v6_line(line: &str) -> Option<(Ipv6Addr, bool, &str)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [digits, _, _, scope, _, interface] = words[..] else { return None };
    let bits = u128::from_str_radix(digits, 16).ok()?;
    Some((Ipv6Addr::from_bits(bits), scope == "20", interface))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_are_read_from_what_the_kernel_draws() {
        let fib_trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     +-- 10.0.0.0/24 2 0 2\n\
                        \u{20}       |-- 10.0.0.0\n           /24 link UNICAST\nLocal:\n  |-- 10.0.0.7\n     /32 host LOCAL\n  |-- 10.0.0.255\n\
                        \u{20}    /32 link BROADCAST\n  |-- 127.0.0.1\n     /32 host LOCAL\n";
        assert_eq!(v4_addresses(fib_trie), [Ipv4Addr::new(10, 0, 0, 7), Ipv4Addr::LOCALHOST]);
        let if_inet6 = "fe800000000000000000000000000001 02 40 20 80 eth0\nfd000000000000000000000000000002 02 40 00 80 eth0\nnonsense\n";
        assert_eq!(v6_addresses(if_inet6), ["fd00::2".parse::<Ipv6Addr>().unwrap()]);
        assert_eq!(v6_of_links(if_inet6), [("fe80::1".parse().unwrap(), "eth0".to_owned())]);
        assert!(v4_addresses("|-- x\n/32 host LOCAL").is_empty());
    }

    #[test]
    fn loopback_is_no_address_by_which_a_host_is_reached() {
        assert!(addresses().iter().all(|address| !address.is_loopback()));
    }
}
