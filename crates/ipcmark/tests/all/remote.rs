//! Two hosts: two network namespaces with a pair of virtual Ethernet devices, and a real sshd. What a machine does not allow is
//! skipped with the reason.

use crate::common::{
    AS_ROOT, GONE_WITHIN, IPCMARK, Place, Process, Running, asked, assert_none_failed, error, read, run,
    skip, tool_is_missing, wait_until,
};
use mechanisms::registry;
use model::card::Support;
use model::record::Results;
use model::{Params, Placement};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Two namespaces, `a` and `b`, with a link between them. They are removed when this is dropped.
pub struct TwoHosts {
    pub a: String,
    pub b: String,
    /// The third byte of their addresses.
    pub net: u32,
}

impl TwoHosts {
    /// Fresh ones; `None`, and a word, where this machine does not allow them.
    pub fn new(untested: &str) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        if !ip("-V").0 {
            tool_is_missing("ip", "iproute2", untested);
            return None;
        }
        let net = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |side| format!("ipcmark-{}-{net}{side}", std::process::id());
        let hosts = Self { a: name("a"), b: name("b"), net };
        let (a, b) = (&hosts.a, &hosts.b);
        for command in [
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("link add eth0 netns {a} type veth peer name eth0 netns {b}"),
            format!("-n {a} addr add 10.213.{net}.1/24 dev eth0"),
            format!("-n {b} addr add 10.213.{net}.2/24 dev eth0"),
            format!("-n {a} addr add fd00:213:{net}::1/64 dev eth0 nodad"),
            format!("-n {b} addr add fd00:213:{net}::2/64 dev eth0 nodad"),
            format!("-n {a} link set lo up"),
            format!("-n {b} link set lo up"),
            format!("-n {a} link set eth0 up"),
            format!("-n {b} link set eth0 up"),
        ] {
            let (done, said) = ip(&command);
            if !done {
                skip(&format!("ip {command}: {said}; {AS_ROOT}"), untested);
                return None;
            }
        }
        Some(hosts)
    }

    /// `ipcmark ARGUMENTS` in `a`.
    pub fn ipcmark(&self, place: &Place, arguments: &[&str]) -> Command {
        let mut command = place.command("ip");
        command.args(["netns", "exec", &self.a, IPCMARK]).args(arguments);
        command
    }

    /// The command that reaches `b`.
    pub fn via(&self) -> String {
        format!("ip netns exec {}", self.b)
    }

    /// The address of `b`.
    pub fn address_of_b(&self) -> String {
        format!("10.213.{}.2", self.net)
    }
}

impl Drop for TwoHosts {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.a));
        ip(&format!("netns del {}", self.b));
    }
}

/// Whether `ip ARGUMENTS` did it, and what it said.
pub fn ip(arguments: &str) -> (bool, String) {
    match Command::new("ip").args(arguments.split_whitespace()).stdin(Stdio::null()).output() {
        Ok(output) => (output.status.success(), String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => (false, error.to_string()),
    }
}

/// Whether `process` is an endpoint that a command has reached: it has no further words.
pub fn is_elsewhere(process: &Process) -> bool {
    process.is_endpoint() && process.command.get(2).is_none_or(String::is_empty)
}

/// The results of `ipcmark run ARGUMENTS` in `a`, with the server in `b`.
pub fn results(hosts: &TwoHosts, place: &Place, name: &str, arguments: &[&str]) -> Results {
    let (output, via) = (place.path(name), hosts.via());
    let mut all = vec!["run", "--server-via", &via, "--via-program", IPCMARK, "-o", output.to_str().unwrap()];
    all.extend(arguments);
    run(&mut hosts.ipcmark(place, &all)).expect(0);
    place.assert_nothing_is_left(&format!("a run of {arguments:?}"));
    read(&output)
}

#[test]
fn two_namespaces_are_measured_as_two_hosts_and_what_does_not_reach_so_far_is_dropped() {
    let Some(hosts) = TwoHosts::new("measuring between two hosts is not tested") else { return };
    let place = Place::new();
    let arguments = "tcp udp tcp-zerocopy pipe -w latency,throughput,connect -s 64 --rounds 2 --check";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let results = results(&hosts, &place, "one.jsonl", &arguments);
    assert_none_failed(&results);
    let mut keys: Vec<String> = asked(&results).map(|record| record.case.key()).collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "tcp connect remote",
            "tcp latency 64 remote",
            "tcp throughput 64 remote",
            "tcp-zerocopy connect remote",
            "tcp-zerocopy latency 64 remote",
            "tcp-zerocopy throughput 64 remote",
            "udp latency 64 remote",
            "udp throughput 64 remote",
        ]
    );
    let dropped = |name: &str| {
        let found = results.header.plan.dropped.iter().find(|dropped| dropped.case.starts_with(name));
        &found.unwrap().reason
    };
    assert!(dropped("pipe").contains("sent a descriptor"));
    let remote = results.header.remote.as_ref().unwrap();
    assert_eq!(remote.server_address, hosts.address_of_b());
    assert!(remote.client.is_none() && remote.server.as_ref().unwrap().via == hosts.via());
    for record in asked(&results) {
        assert_eq!(record.case.placement, Placement::Remote);
        for sample in &record.samples {
            let speed = sample.speed.unwrap();
            assert!(
                sample.server.is_some() && speed.server.is_some() && speed.pair.is_none(),
                "{}",
                record.case
            );
            let network = sample.network.as_ref().unwrap();
            assert_eq!(
                (network.client.link.as_deref(), network.client.mtu_bytes),
                (Some("eth0"), Some(1500))
            );
            assert_eq!(network.server.host_retransmitted, Some(0), "{}", record.case);
            let (is_connect, is_udp) =
                (record.case.workload == model::Workload::Connect, record.case.spec.name == "udp");
            for side in [&network.client, &network.server] {
                assert_eq!(side.retransmitted.is_some(), !is_connect && !is_udp, "{}", record.case);
                assert_eq!(side.dropped.is_some(), !is_connect, "{}", record.case);
            }
        }
    }
}

#[test]
fn the_client_may_be_the_one_that_a_command_reaches_and_addresses_may_be_of_ipv6() {
    let Some(hosts) = TwoHosts::new("clients on another host, and IPv6, are not tested") else { return };
    let place = Place::new();
    let server = format!("fd00:213:{}::1", hosts.net);
    let (output, via) = (place.path("six.jsonl"), hosts.via());
    let line = ["run", "tcp", "udp", "-s", "1", "--rounds", "1", "--client-via", &via, "--via-program"];
    let rest = [IPCMARK, "--server-address", &server, "-o", output.to_str().unwrap()];
    run(&mut hosts.ipcmark(&place, &[&line[..], &rest[..]].concat())).expect(0);
    let results = read(&output);
    assert_none_failed(&results);
    assert!(results.header.remote.unwrap().client.is_some());
    place.assert_nothing_is_left("a run with its client elsewhere");
}

/// Two hosts on one link that nobody gave addresses but their kernels.
#[test]
fn an_address_of_one_link_is_found_and_may_be_named_with_the_clients_interface() {
    let Some(hosts) = TwoHosts::new("addresses of one link are not tested") else { return };
    for (name, side) in [(&hosts.a, 1), (&hosts.b, 2)] {
        for command in
            ["addr flush dev eth0".to_owned(), format!("addr add fe80::{side}/64 dev eth0 scope link nodad")]
        {
            let (done, said) = ip(&format!("-n {name} {command}"));
            assert!(done, "{command}: {said}");
        }
    }
    let place = Place::new();
    let measured = ["tcp", "udp", "-w", "latency,connect", "-s", "1", "--rounds", "1"];
    let named = [&measured[..], &["--server-address", "fe80::2%eth0"]].concat();
    for (name, arguments) in [("found", &measured[..]), ("named", &named)] {
        let results = results(&hosts, &place, name, arguments);
        assert_none_failed(&results);
        assert_eq!(results.header.remote.as_ref().unwrap().server_address, "fe80::2%eth0");
        assert_eq!(asked(&results).filter(|record| !record.samples.is_empty()).count(), 3);
    }
}

/// A container of its own processes, network, names of System V and POSIX, and mounts.
#[test]
fn the_wall_of_a_container_is_crossed_by_the_network_and_by_names_in_a_shared_directory() {
    let untested = "the wall of a container is not tested";
    let Some(hosts) = TwoHosts::new(untested) else { return };
    let inside = format!("{} unshare --pid --ipc --mount --fork", hosts.via());
    let tried = Command::new("sh").args(["-c", &format!("{inside} true")]).output();
    if !tried.as_ref().is_ok_and(|output| output.status.success()) {
        return skip(&format!("{inside}: {tried:?}; {AS_ROOT}"), untested);
    }
    let (place, output) = (Place::new(), "container.jsonl");
    let path = place.path(output);
    let line = ["run", "--server-via", &inside, "--via-program", IPCMARK, "-o", path.to_str().unwrap()];
    let mut arguments = [&line[..], &["-s", "1", "--rounds", "2"]].concat();
    let crossing = ["tcp", "udp", "unix-stream:name=path", "unix-seqpacket:name=path", "fifo"];
    let stopped = [
        ("unix-stream:name=abstract", "two network namespaces"),
        ("sysv-msg", "two IPC namespaces"),
        ("sysv-sem", "two IPC namespaces"),
        ("unix-stream", "give it a name"),
        ("posix-mq", "sent a descriptor"),
        ("pipe", "sent a descriptor"),
    ];
    for mechanism in crossing.into_iter().chain(stopped.map(|(name, _)| name)) {
        arguments.push(mechanism);
    }
    run(&mut hosts.ipcmark(&place, &arguments)).expect(0);
    place.assert_nothing_is_left("a run across a container's wall");
    let results = read(&path);
    assert_none_failed(&results);
    let measured: Vec<String> = asked(&results).map(|record| record.case.spec.to_string()).collect();
    assert_eq!(measured, crossing);
    for (name, says) in stopped {
        assert_dropped(&results, name, says);
    }

    // A side that does not see the directory of the run shares no name.
    let hidden = format!(
        "{inside} sh -c 'mount -t tmpfs none \"$1\" && shift && exec \"$@\"' sh {}",
        place.tmp().display()
    );
    let output = place.path("hidden.jsonl");
    let line = ["run", "--server-via", &hidden, "--via-program", IPCMARK, "-o", output.to_str().unwrap()];
    let rest = ["-s", "1", "--rounds", "2", "tcp", "fifo"];
    run(&mut hosts.ipcmark(&place, &[&line[..], &rest[..]].concat())).expect(0);
    let results = read(&output);
    assert_none_failed(&results);
    assert_dropped(&results, "fifo", "set TMPDIR");
}

/// A command in the same namespaces: whatever is found by its name is measured.
#[test]
fn names_are_found_by_a_side_in_the_same_namespaces() {
    let (place, output) = (Place::new(), "same.jsonl");
    let path = place.path(output);
    let mut arguments =
        vec!["run", "--server-via", "env", "--via-program", IPCMARK, "-s", "1", "--rounds", "2"];
    let named = ["unix-stream:name=path", "unix-stream:name=abstract", "fifo", "sysv-msg", "sysv-sem"];
    arguments.extend(named.iter());
    arguments.extend(["eventfd", "-w", "latency,connect", "-o", path.to_str().unwrap()]);
    run(&mut place.ipcmark(&arguments)).expect(0);
    place.assert_nothing_is_left("a run through a command");
    let results = read(&path);
    assert_none_failed(&results);
    let measured: Vec<String> = asked(&results).map(|record| record.case.spec.to_string()).collect();
    assert_eq!(measured, named);
    assert_dropped(&results, "eventfd", "sent a descriptor");
    assert_dropped(&results, "unix-stream:name=path connect", "makes the listener");
}

/// Virtual sockets of one host, by its loopback: as between a guest and its host, but for the context id.
#[test]
fn virtual_sockets_are_measured_through_a_command_or_dropped_with_the_reason() {
    let (place, output) = (Place::new(), "vsock.jsonl");
    let path = place.path(output);
    let via = ["run", "--server-via", "env", "--via-program", IPCMARK, "-o", path.to_str().unwrap()];
    let rest = "vsock tcp -w latency,throughput,connect -s 64 --rounds 2 --check";
    let rest: Vec<&str> = rest.split(' ').collect();
    run(&mut place.ipcmark([&via[..], &rest[..]].concat())).expect(0);
    place.assert_nothing_is_left("a run of virtual sockets through a command");
    let results = read(&path);
    assert_none_failed(&results);
    let addresses = results.header.remote.as_ref().unwrap().server_address.clone();
    let works = registry::probe("vsock", &Params::default());
    if !matches!(works, Some(Support::Yes { .. })) {
        assert_dropped(&results, "vsock", "modprobe vsock_loopback");
        assert!(!addresses.contains("vsock"), "{addresses}");
        return skip(
            &format!("{works:?}; modprobe vsock_loopback"),
            "virtual sockets through a command are not measured",
        );
    }
    assert!(addresses.ends_with(" and vsock:1"), "{addresses}");
    let of_vsock: Vec<_> = asked(&results).filter(|record| record.case.spec.name == "vsock").collect();
    assert_eq!(of_vsock.len(), 3);
    // The kernel counts nothing of them.
    assert!(of_vsock.iter().all(|record| record.samples.iter().all(|sample| sample.network.is_none())));
}

fn assert_dropped(results: &Results, case: &str, says: &str) {
    let mut dropped = results.header.plan.dropped.iter();
    let is_said = dropped.any(|dropped| {
        let is_of_case =
            dropped.case.strip_prefix(case).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        is_of_case && dropped.reason.contains(says)
    });
    assert!(is_said, "{case}, {says}: {:?}", results.header.plan.dropped);
}

/// 100 Mbit/s of frames of 1514 bytes with 1448 bytes of payload in each.
/// Slow: it measures between two namespaces, or waits for what is silent.
#[test]
fn the_rate_of_a_link_is_recovered() {
    let untested = "the rate of a link of 100 Mbit/s is not measured";
    let Some(hosts) = TwoHosts::new(untested) else { return };
    let limit = format!("-n {} qdisc add dev eth0 root tbf rate 100mbit burst 16kb latency 20ms", hosts.a);
    let limited = Command::new("tc").args(limit.split(' ')).output();
    if !limited.as_ref().is_ok_and(|output| output.status.success()) {
        return skip(&format!("tc {limit}: {limited:?}; {AS_ROOT}"), untested);
    }
    let place = Place::new();
    let results = results(
        &hosts,
        &place,
        "rate.jsonl",
        &["tcp", "-w", "throughput", "-s", "64K", "--total", "4M", "--rounds", "3"],
    );
    let record = asked(&results).next().unwrap();
    let bytes: f64 = record.samples.iter().map(|sample| sample.iterations as f64 * 65_536.0).sum();
    let ns: f64 = record.samples.iter().map(|sample| sample.elapsed_ns).sum();
    let expected = 100e6 / 8.0 * 1448.0 / 1514.0;
    let ratio = bytes / (ns / 1e9) / expected;
    // Whoever has no CPU when there is room on the link sends less.
    assert!((0.5..1.02).contains(&ratio), "{ratio} of the rate of the link");
}

#[test]
fn whoever_is_killed_nothing_is_left_and_samples_are_kept() {
    let Some(hosts) = TwoHosts::new("deaths between two hosts are not tested") else { return };
    let (via, args) = (hosts.via(), ["run", "tcp", "-s", "1", "--time", "60s", "--timeout", "3s"]);
    let start = |place: &Place, output: &Path| {
        let more = ["--server-via", &via, "--via-program", IPCMARK, "-o", output.to_str().unwrap()];
        let running = Running::start(&mut hosts.ipcmark(place, &[&args[..], &more[..]].concat()));
        let begun = || fs::read_to_string(output).is_ok_and(|text| text.contains("\"type\":\"sample\""));
        assert!(wait_until(GONE_WITHIN, begun), "no sample came");
        running
    };
    for signal in [Signal::KILL, Signal::INT] {
        let place = Place::new();
        let output = place.path("killed.jsonl");
        let running = start(&place, &output);
        running.signal(signal);
        let _ =
            if signal == Signal::KILL { running.kill() } else { running.finish().expect(130).out.is_empty() };
        place.assert_nothing_is_left(&format!("the coordinator got {signal:?}"));
        assert!(asked(&read(&output)).any(|record| !record.samples.is_empty()));
    }
    // The server's endpoint: its case fails, and says so.
    let place = Place::new();
    let output = place.path("server.jsonl");
    let running = start(&place, &output);
    // Between two trials there is none for a moment.
    let kill = || {
        let server = place.processes().into_iter().find(is_elsewhere);
        server.is_some_and(|server| crate::common::send(server.pid, Signal::KILL))
    };
    assert!(wait_until(GONE_WITHIN, kill), "no endpoint of the server was found");
    running.finish().expect(1);
    place.assert_nothing_is_left("the server was killed");
    let results = read(&output);
    let record = asked(&results).next().unwrap();
    assert!(error(record).is_some_and(|error| error.contains("signal: 9")) && !record.samples.is_empty());
}

/// Slow: it measures between two namespaces, or waits for what is silent.
#[test]
fn a_stopped_coordinator_is_missed_by_the_endpoint_elsewhere() {
    let Some(hosts) = TwoHosts::new("the silence of a coordinator is not tested") else { return };
    let (place, via) = (Place::new(), hosts.via());
    let line = ["run", "tcp", "-s", "1", "--time", "60s", "--server-via", &via, "--via-program", IPCMARK];
    let running = Running::start(&mut hosts.ipcmark(&place, &line));
    let elsewhere = || place.processes().iter().filter(|process| is_elsewhere(process)).count();
    assert!(wait_until(GONE_WITHIN, || elsewhere() > 0));
    running.signal(Signal::STOP);
    assert!(wait_until(GONE_WITHIN, || elsewhere() == 0), "it does not miss its coordinator");
    running.signal(Signal::CONT);
    running.signal(Signal::INT);
    running.finish();
    place.assert_nothing_is_left("a coordinator that was stopped");
}

#[test]
fn a_command_that_reaches_nothing_is_refused_with_what_it_says() {
    let place = Place::new();
    let said = run(&mut place.ipcmark(["run", "tcp", "--server-via", "echo Welcome to"])).expect(2);
    assert!(said.err.contains("Welcome to") && said.err.contains("--via-program"), "{said}");
    let said =
        run(&mut place.ipcmark(["run", "tcp", "--server-via", "sh -c 'echo no such host >&2; exit 255'"]));
    assert!(said.expect(2).err.contains("no such host"));
    place.assert_nothing_is_left("a command that reaches nothing");
}

/// Slow: it measures between two namespaces, or waits for what is silent.
#[test]
fn the_binary_keeps_the_protocol() {
    let place = Place::new();
    let said = run(&mut place.ipcmark(["endpoint", "check", IPCMARK, "endpoint"])).expect(0);
    assert!(said.out.lines().count() > 15 && !said.out.contains("failed"), "{said}");
}

/// A process that is killed when this is dropped.
struct KilledChild(std::process::Child);

impl Drop for KilledChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Slow: it measures between two namespaces, or waits for what is silent.
#[test]
fn a_cut_link_under_ssh_ends_both_sides() {
    let untested = "ssh, and a link that is cut, are not tested";
    if !Path::new("/usr/sbin/sshd").exists() {
        return tool_is_missing("sshd", "openssh-server", untested);
    }
    let Some(hosts) = TwoHosts::new(untested) else { return };
    let place = Place::new();
    let path = |name: &str| place.path(name).to_str().unwrap().to_owned();
    for key in ["host", "user"] {
        let made =
            Command::new("ssh-keygen").args(["-q", "-N", "", "-t", "ed25519", "-f", &path(key)]).status();
        assert!(made.unwrap().success());
    }
    // It refuses to start without this directory.
    fs::create_dir_all("/run/sshd").unwrap();
    let daemon = Command::new("ip")
        .args(["netns", "exec", &hosts.b, "/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", "-p", "2222"])
        .args(["-h", &path("host"), "-o", "StrictModes=no", "-o", "PidFile=none", "-o", "UsePAM=no"])
        .args(["-o", &format!("AuthorizedKeysFile={}", path("user.pub")), "-o", "PermitRootLogin=yes"])
        .args(["-o", &format!("SetEnv=TMPDIR={}", place.tmp().display())])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _daemon = KilledChild(daemon.unwrap());
    let via = format!(
        "ssh -p 2222 -i {} -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR {}",
        path("user"),
        hosts.address_of_b()
    );
    let line = ["--server-via", &via, "--via-program", IPCMARK];
    let reaches = || {
        let doctor = [&["doctor"][..], &line[..]].concat();
        run(&mut hosts.ipcmark(&place, &doctor)).out.contains("the server's host")
    };
    assert!(wait_until(GONE_WITHIN, reaches), "sshd cannot be reached");

    let output = place.path("cut.jsonl");
    let arguments =
        ["run", "tcp", "-s", "1", "--time", "60s", "--timeout", "20s", "-o", output.to_str().unwrap()];
    let pushed = ["--server-via", &via, "--push"];
    let running = Running::start(&mut hosts.ipcmark(&place, &[&arguments[..], &pushed[..]].concat()));
    let begun =
        || fs::read_to_string(&output).is_ok_and(|text| text.matches("\"type\":\"sample\"").count() > 2);
    if !wait_until(GONE_WITHIN, begun) {
        running.signal(Signal::INT);
        panic!("no sample came: {}", running.finish());
    }
    assert!(ip(&format!("-n {} link set eth0 down", hosts.a)).0);
    // It would run for a minute.
    let said = running.finish().expect(1);
    assert!(said.err.contains("cannot be reached any more"), "{said}");
    let gone = wait_until(GONE_WITHIN, || place.processes().iter().all(|process| !process.is_endpoint()));
    assert!(gone, "left behind are {:?}", place.processes());
    assert!(asked(&read(&output)).any(|record| !record.samples.is_empty()));
    // The copy there hears nothing more, and removes itself.
    let removed = wait_until(GONE_WITHIN, || place.leftovers().is_empty());
    assert!(removed, "left behind are {:?}", place.leftovers());
}
