//! The sides of a run that are reached by commands: from what was asked for to what can be talked to. It starts no trial but
//! those that find the server's address.

use crate::exit::Error;
use crate::request::RemoteRequest;
use crate::session::RunSession;
use harness::coordinator::push::PushedProgram;
use harness::coordinator::remote::{Remote, RemoteHost, ServerAddresses};
use harness::coordinator::schedule::Trials;
use harness::coordinator::via::Via;
use harness::host::reachable;
use mechanisms::registry::card;
use model::record::{RemoteSide, RemoteSides};
use model::{
    Block, Case, CpuPair, HostAddress, InterfaceName, Invalid, Placement, Reach, Size, Spec, Workload, floor,
};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use sys::vsock;

/// How long it may take to try an address, with the command that reaches the server; half of the timeout where that is longer: who waits longer for a
/// trial has a busy host.
const TRY_WITHIN: Duration = Duration::from_secs(4);
/// How many addresses of a network are tried.
const MOST_TRIED: usize = 8;

/// The sides of a run, and the copies of this program that they use.
#[derive(Debug)]
pub struct RemoteRun {
    /// What trials are started by. Dropped before the copies, which it uses.
    pub sides: Remote,
    _pushed: Vec<PushedProgram>,
}

impl RemoteRun {
    /// Reaches the sides that `request` names, and finds where the client reaches the server for what `blocks` have. `here` is the
    /// CPU of endpoints on this host. A side that says nothing for `timeout` is not reached.
    pub fn open(
        request: &RemoteRequest,
        timeout: Duration,
        blocks: &[Block],
        session: &RunSession,
        here: u32,
    ) -> Result<Self, Error> {
        let mut pushed = Vec::new();
        let mut reach = |via: &Option<Via>| -> Result<Option<RemoteHost>, Error> {
            let Some(via) = via else { return Ok(None) };
            let programs = programs(request, via, session.stop(), &mut pushed)?;
            Ok(Some(RemoteHost::reach(via, &programs, timeout, Some(session.directory()), session.stop())?))
        };
        let (client, server) = (reach(&request.client)?, reach(&request.server)?);
        let mut sides = Remote::new(client, server)?;
        let specs = blocks.iter().flat_map(|block| &block.specs);
        let reaches: Vec<Reach> = specs.filter_map(|spec| Some(card(&spec.name)?.reach)).collect();
        for way in &WAYS {
            if reaches.iter().any(|reach| (*reach == Reach::Guest) == (way.reach == Reach::Guest)) {
                let found =
                    way.find(request.server_address, &mut sides, session, here, TRY_WITHIN.max(timeout / 2))?;
                *sides.server_addresses.of_mut(way.reach) = found;
            }
        }
        let ServerAddresses { ip, vsock } = &sides.server_addresses;
        // Virtual sockets take no network, and what takes one is dropped with the reason.
        if let (Err(why), Err(_)) = (ip, vsock)
            && reaches.iter().any(|reach| *reach != Reach::Guest)
        {
            return Err(why.clone().into());
        }
        Ok(Self { sides, _pushed: pushed })
    }

    /// What the results file says of the sides.
    pub fn record(&self) -> RemoteSides {
        let side = |host: &RemoteHost| RemoteSide {
            via: host.via_text(),
            host: host.facts.host.clone(),
            clock: host.facts.clock.clone(),
        };
        RemoteSides {
            client: self.sides.client.as_ref().map(side),
            server: self.sides.server.as_ref().map(side),
            server_address: self.addresses(),
        }
    }

    /// The addresses of the server, as text.
    fn addresses(&self) -> String {
        let ServerAddresses { ip, vsock } = &self.sides.server_addresses;
        let found: Vec<String> = [ip, vsock].into_iter().flatten().map(HostAddress::to_string).collect();
        found.join(" and ")
    }
}

/// The paths at which ipcmark may be on the other side of `via`, the likeliest first.
pub fn programs(
    request: &RemoteRequest,
    via: &Via,
    interrupted: &AtomicBool,
    pushed: &mut Vec<PushedProgram>,
) -> Result<Vec<String>, Error> {
    if request.push {
        let copy = PushedProgram::push(via, interrupted)?;
        let path = copy.path().to_owned();
        pushed.push(copy);
        return Ok(vec![path]);
    }
    if let Some(program) = &request.program {
        return Ok(vec![program.clone()]);
    }
    let own = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
    Ok(own.into_iter().chain(["ipcmark".to_owned()]).collect())
}

/// A way from the client to the server.
struct Way {
    /// How far a mechanism reaches that takes it.
    reach: Reach,
    /// The mechanism by which addresses are tried.
    tried_by: &'static str,
    /// The addresses at which the client of sides may reach the server, the likeliest first.
    candidates: fn(&Remote) -> Vec<HostAddress>,
    /// Why there are no candidates.
    no_candidates: &'static str,
    /// What to do where none is reached.
    remedy: &'static str,
}

const WAYS: [Way; 2] = [
    Way {
        reach: Reach::Network,
        tried_by: "tcp",
        candidates: |sides| {
            let addresses = match &sides.server {
                Some(server) => server.facts.addresses.clone(),
                None => reachable::addresses(),
            };
            let loopback = sides.shared().net.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
            let [of_client, of_server] = [&sides.client, &sides.server].map(|side| {
                side.as_ref().map_or_else(reachable::link_addresses, |host| host.facts.link_addresses.clone())
            });
            let links = over_links(&of_client, &of_server).into_iter().take(MOST_TRIED);
            let found = addresses.into_iter().take(MOST_TRIED).map(HostAddress::Ip);
            found.chain(links).chain(loopback.map(HostAddress::Ip)).collect()
        },
        no_candidates: "it has none but loopback",
        remedy: "name one with --server-address; between the hosts, any free port must be open",
    },
    Way {
        reach: Reach::Guest,
        tried_by: "vsock",
        candidates: |sides| {
            let [client, server] = [&sides.client, &sides.server]
                .map(|side| side.as_ref().map_or_else(reachable::cid, |host| host.facts.cid));
            cids(sides.shared().host, client, server).into_iter().map(HostAddress::Vsock).collect()
        },
        no_candidates: "neither side is a guest with virtual sockets, as /dev/vsock says there",
        remedy: "give the guest a device for them (QEMU: -device vhost-vsock-pci,guest-cid=3), or name the server's context id with \
                 --server-address vsock:CID; on one host, 'modprobe vsock_loopback'",
    },
];

/// The server's addresses of single links, each through every interface that the client has such on: which lies on the same link is
/// not known.
fn over_links(client: &[(Ipv6Addr, String)], server: &[(Ipv6Addr, String)]) -> Vec<HostAddress> {
    let interfaces: BTreeSet<&str> = client.iter().map(|(_, interface)| interface.as_str()).collect();
    let through = |address: Ipv6Addr| {
        let names = interfaces.iter().filter_map(|name| InterfaceName::new(name));
        names.map(move |name| HostAddress::Link(address, name))
    };
    server.iter().flat_map(|(address, _)| through(*address)).collect()
}

/// The context ids at which the client may reach the server, from what both sides say of their own.
fn cids(on_one_host: bool, client: Option<u32>, server: Option<u32>) -> Vec<u32> {
    if on_one_host {
        return vec![vsock::LOCAL];
    }
    let of_guest = |cid: Option<u32>| cid.filter(|cid| *cid > vsock::HOST && *cid != vsock::ANY);
    let host = of_guest(client).map(|_| vsock::HOST);
    of_guest(server).into_iter().chain(host).collect()
}

impl Way {
    /// The first address at which the client reaches the server, unless one of this way was `named`. An error is a side that was
    /// lost.
    fn find(
        &self,
        named: Option<HostAddress>,
        sides: &mut Remote,
        session: &RunSession,
        here: u32,
        limit: Duration,
    ) -> Result<Result<HostAddress, Invalid>, Error> {
        let is_of_guests = |address: &HostAddress| matches!(address, HostAddress::Vsock(_));
        if let Some(named) = named.filter(|named| is_of_guests(named) == (self.reach == Reach::Guest)) {
            return Ok(Ok(named));
        }
        let candidates = (self.candidates)(sides);
        let case = trial_case(self.tried_by, sides.cpus(here));
        let mut refusals = Vec::new();
        for candidate in candidates {
            *sides.server_addresses.of_mut(self.reach) = Ok(candidate);
            let trials = session.trials(false, limit, Some(sides));
            // Started, its endpoints are connected.
            match trials.start(&case, 0, None).and_then(|mut trial| trial.end()) {
                Ok(()) => return Ok(Ok(candidate)),
                Err(error) => refusals.push(format!("{candidate}: {error}")),
            }
            if let Some(why) = sides.lost() {
                return Err(Invalid::new(why, "see what the command says").into());
            }
        }
        let why = if refusals.is_empty() { self.no_candidates.to_owned() } else { refusals.join("; ") };
        let problem = format!("no address of the server's host can be reached from the client's: {why}");
        Ok(Err(Invalid::new(problem, self.remedy)))
    }
}

fn trial_case(mechanism: &str, cpus: CpuPair) -> Case {
    Case {
        workload: Workload::Latency,
        size_bytes: Some(Size(1)),
        placement: Placement::Remote,
        cpus: Some(cpus),
        spec: Spec::plain(mechanism),
        ..floor::operation(mechanism, cpus.client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_reached_by_its_own_context_id_and_its_host_by_2() {
        let (host, guest, other) = (Some(vsock::HOST), Some(3), Some(4));
        let none = [None, Some(vsock::ANY), Some(vsock::LOCAL)];
        for (client, server, found) in [
            (host, guest, vec![3]),
            (guest, host, vec![2]),
            (none[0], guest, vec![3]),
            // A guest and its sibling, or a guest and its own guest, or its host that is a guest itself.
            (guest, other, vec![4, 2]),
            (host, host, vec![]),
        ] {
            assert_eq!(cids(false, client, server), found, "{client:?} {server:?}");
            assert_eq!(cids(true, client, server), [vsock::LOCAL]);
        }
        for cid in none {
            assert!(cids(false, cid, cid).is_empty() && cids(false, cid, host).is_empty());
            assert_eq!(cids(false, guest, cid), [vsock::HOST]);
        }
    }
}
