//! The sides of a run that are reached by commands: from what was asked for to what can be talked to. It starts no trial but
//! those that find the server's address.

use crate::exit::Error;
use crate::request::RemoteRequest;
use crate::session::RunSession;
use harness::coordinator::push::PushedProgram;
use harness::coordinator::remote::{Remote, RemoteHost};
use harness::coordinator::schedule::Trials;
use harness::coordinator::via::Via;
use harness::host::reachable;
use model::record::{RemoteSide, RemoteSides};
use model::{Case, CpuPair, Invalid, Placement, Size, Spec, Workload, floor};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The mechanism by which an address is tried, and how long each may take.
const TRIED_BY: &str = "tcp";
const TRY_WITHIN: Duration = Duration::from_secs(4);
/// How many addresses are tried.
const MOST_TRIED: usize = 8;

/// The sides of a run, and the copies of this program that they use.
#[derive(Debug)]
pub struct RemoteRun {
    /// What trials are started by. Dropped before the copies, which it uses.
    pub sides: Remote,
    _pushed: Vec<PushedProgram>,
}

impl RemoteRun {
    /// Reaches the sides that `request` names. `here` is the CPU of endpoints on this host.
    pub fn open(request: &RemoteRequest, session: &RunSession, here: u32) -> Result<Self, Error> {
        let mut pushed = Vec::new();
        let mut reach = |via: &Option<Via>| -> Result<Option<RemoteHost>, Error> {
            let Some(via) = via else { return Ok(None) };
            let programs = programs(request, via, session.stop(), &mut pushed)?;
            Ok(Some(RemoteHost::reach(via, &programs, Some(session.directory()), session.stop())?))
        };
        let (client, server) = (reach(&request.client)?, reach(&request.server)?);
        let mut candidates = match request.server_address {
            Some(address) => vec![address],
            None => match &server {
                Some(server) => server.facts.addresses.clone(),
                None => reachable::addresses(),
            },
        };
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let mut sides = Remote::new(client, server, candidates.first().copied().unwrap_or(loopback))?;
        if sides.shared().net {
            candidates.push(loopback);
        }
        if candidates.is_empty() {
            return Err(unreachable("it has none but loopback").into());
        }
        if request.server_address.is_none() {
            sides.server_address = find_address(&mut sides, &candidates, session, here)?;
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
            server_address: self.sides.server_address.to_string(),
        }
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

/// The first of `candidates` at which the client reaches the server.
fn find_address(
    sides: &mut Remote,
    candidates: &[IpAddr],
    session: &RunSession,
    here: u32,
) -> Result<IpAddr, Error> {
    let case = trial_case(sides.cpus(here));
    let mut refusals = Vec::new();
    for &candidate in candidates.iter().take(MOST_TRIED) {
        sides.server_address = candidate;
        let trials = session.trials(false, TRY_WITHIN, Some(sides));
        // Started, its endpoints are connected.
        match trials.start(&case, 0, None).and_then(|mut trial| trial.end()) {
            Ok(()) => return Ok(candidate),
            Err(error) => refusals.push(format!("{candidate}: {error}")),
        }
        if let Some(why) = sides.lost() {
            return Err(Invalid::new(why, "see what the command says").into());
        }
    }
    Err(unreachable(&refusals.join("; ")).into())
}

fn trial_case(cpus: CpuPair) -> Case {
    Case {
        workload: Workload::Latency,
        size_bytes: Some(Size(1)),
        placement: Placement::Remote,
        cpus: Some(cpus),
        spec: Spec::plain(TRIED_BY),
        ..floor::operation(TRIED_BY, cpus.client)
    }
}

fn unreachable(why: &str) -> Invalid {
    Invalid::new(
        format!("no address of the server's host can be reached from the client's: {why}"),
        "name one with --server-address; between the hosts, any free port must be open",
    )
}
