//! Networks that drop or reject what endpoints send, and endpoints elsewhere that are silent or talk without end.

use crate::common::{
    GONE_WITHIN, IPCMARK, Place, Running, asked, error, has, read, run, skip, tool_is_missing, wait_until,
};
use crate::remote::TwoHosts;
use rustix::process::Signal;
use std::fs;
use std::process::{Command, Stdio};

/// A rule of the network namespace `b` for what comes from `a`; whether it could be made.
fn rule(hosts: &TwoHosts, rule: &str) -> bool {
    let words = format!("netns exec {} iptables -A INPUT -i eth0 {rule}", hosts.b);
    let done = Command::new("ip").args(words.split(' ')).stdin(Stdio::null()).output();
    done.is_ok_and(|output| output.status.success())
}

/// Two hosts where rules can be made.
fn with_firewall(untested: &str) -> Option<TwoHosts> {
    let has_tool = Command::new("iptables").arg("-V").output().is_ok_and(|output| output.status.success());
    if !has_tool {
        tool_is_missing("iptables", "iptables", untested);
        return None;
    }
    let hosts = TwoHosts::new(untested)?;
    if !rule(&hosts, "-p icmp -j ACCEPT") {
        skip("iptables makes no rule here; run `sudo cargo xtask test`", untested);
        return None;
    }
    Some(hosts)
}

/// The time of the run bounds what is lost to silence, and each case has a number or a reason.
#[test]
fn a_network_that_drops_everything_costs_no_more_than_the_time_and_is_named() {
    let Some(hosts) = with_firewall("a firewall that drops everything is not tested") else { return };
    assert!(rule(&hosts, "-j DROP"));
    let (place, via, address) = (Place::new(), hosts.via(), hosts.address_of_b());
    let line = ["run", "tcp", "udp", "-s", "1", "--time", "3s", "--timeout", "100s"];
    let rest = ["--server-via", &via, "--via-program", IPCMARK, "--server-address", &address];
    let said = run(&mut hosts.ipcmark(&place, &[&line[..], &rest[..]].concat())).expect(1);
    let what: String = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    // It would be 100 s for each case.
    assert!(what.contains("no report within 3.0 s") && what.contains("a firewall drops it"), "{said}");
    assert!(what.contains("no time; give more --time"), "{said}");
    place.assert_nothing_is_left("a run over a network that drops everything");
}

/// Slow: it waits until what is silent is given up.
#[test]
fn a_firewall_that_rejects_is_named() {
    let Some(hosts) = with_firewall("a firewall that rejects is not tested") else { return };
    assert!(rule(&hosts, "-j REJECT"));
    let (place, via, address) = (Place::new(), hosts.via(), hosts.address_of_b());
    let output = place.path("rejected.jsonl");
    let line = ["run", "tcp", "udp", "-s", "1", "--timeout", "60s", "-o", output.to_str().unwrap()];
    let rest = ["--server-via", &via, "--via-program", IPCMARK, "--server-address", &address];
    run(&mut hosts.ipcmark(&place, &[&line[..], &rest[..]].concat())).expect(1);
    let results = read(&output);
    assert_eq!(asked(&results).count(), 2);
    for record in asked(&results) {
        let error = error(record).unwrap();
        assert!(error.contains("Connection refused") && error.contains("a firewall rejects it"), "{error}");
    }
}

#[test]
fn what_was_measured_before_a_cut_is_in_the_reason() {
    let Some(hosts) = with_firewall("a cut by a firewall is not tested") else { return };
    let (place, via, address) = (Place::new(), hosts.via(), hosts.address_of_b());
    let output = place.path("cut.jsonl");
    let line = ["run", "tcp", "-s", "1", "--time", "60s", "--timeout", "3s", "--precision", "0.1%"];
    let rest = ["--server-via", &via, "--via-program", IPCMARK, "--server-address", &address];
    let all = [&line[..], &rest[..], &["-o", output.to_str().unwrap()]].concat();
    let running = Running::start(&mut hosts.ipcmark(&place, &all));
    let begun =
        || fs::read_to_string(&output).is_ok_and(|text| text.matches("\"type\":\"sample\"").count() > 2);
    assert!(wait_until(GONE_WITHIN, begun), "no sample came");
    assert!(rule(&hosts, "-j DROP"));
    let said = running.finish().expect(1);
    let what: String = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(what.contains("failed after slices of"), "{said}");
}

/// Endpoints that are none, as far as the coordinator meets them.
#[test]
fn who_says_nothing_at_all_is_waited_for_as_long_as_the_timeout() {
    let place = Place::new();
    let line = ["run", "tcp", "-s", "1", "--server-via", "sh -c 'exec sleep 600'", "--timeout", "1s"];
    let said = run(&mut place.ipcmark(line)).expect(2);
    assert!(said.err.contains("says nothing for 1 s") && said.err.contains("--timeout"), "{said}");
    place.assert_nothing_is_left("a command that is silent");
}

#[test]
fn a_check_that_a_signal_ends_leaves_no_endpoint() {
    let place = Place::new();
    let running = Running::start(&mut place.ipcmark(["endpoint", "check", "sleep", "600"]));
    let sleeps = || place.processes().iter().any(|process| process.command[0] == "sleep");
    assert!(wait_until(GONE_WITHIN, sleeps));
    running.signal(Signal::TERM);
    running.finish().expect(130);
    place.assert_nothing_is_left("a check that was ended");
}

/// What an endpoint says without end is shown in part.
/// Slow: it waits until what is silent is given up.
#[test]
fn a_text_without_end_is_shown_in_part() {
    let place = Place::new();
    let speaker = r#"
import json, struct, sys
def say(message):
    body = json.dumps(message).encode()
    sys.stdout.buffer.write(struct.pack("<I", len(body)) + body)
    sys.stdout.buffer.flush()
mechanisms = [{"name": "pipe", "workloads": ["latency"]}]
hello = {"protocol": "ipcmark-endpoint", "version": 3, "program": "speaker", "mechanisms": mechanisms}
say({"hello": hello} if sys.argv[1] == "error" else "x" * 1000000)
heard = b""
while b"goodbye" not in heard and (more := sys.stdin.buffer.read1(1000)):
    heard += more
    if b"orders" in heard:
        say({"failed": "x" * 1000000})
        break
"#;
    if !has("python3", "python3", "texts without end are not tested") {
        return;
    }
    let speaker = place.file("speaker.py", speaker);
    let line = ["endpoint", "check", "python3", speaker.to_str().unwrap(), "error"];
    let said = run(&mut place.ipcmark(line)).expect(1);
    assert!(said.out.contains("xxx") && said.out.len() + said.err.len() < 100_000, "{}", said.out.len());
    for way in ["error", "hello"] {
        let via = format!("python3 {} {way}", speaker.display());
        let said = run(&mut place.ipcmark(["run", "tcp", "--server-via", &via])).expect(2);
        assert!(said.out.len() + said.err.len() < 10_000, "{}", said.err.len());
    }
    place.assert_nothing_is_left("endpoints with long texts");
}
