//! A program that writes a message in two parts over TCP and does not switch Nagle's algorithm off.

use super::{Place, may, player, read};
use crate::common::run;

/// Slow: it records a program by each way.
#[test]
fn what_waits_for_an_acknowledgement_is_said_and_not_predicted_through() {
    // By the other ways it is not known what a connection is that a process with several threads has.
    if !may("bpf") {
        return;
    }
    for (role, waits) in [("parts", true), ("parts-at-once", false)] {
        let place = Place::new();
        let player = player(role);
        let mut command =
            place.ipcmark(["record", "--time", "60s", "--by", "bpf", "-o", "scenario.toml", "--"]);
        command.arg(player.get_program()).args(player.get_args());
        command.envs(player.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let said = run(&mut command).expect(0);
        assert_eq!(said.out.contains("TCP_NODELAY"), waits, "{said}");
        if waits {
            let scenario = read(&place);
            let held = scenario.flows.iter().find(|flow| flow.recorded.as_ref().unwrap().held_back.is_some());
            let flow = held.unwrap_or_else(|| panic!("{scenario:#?}")).name.as_str();
            let set = format!("{flow}=unix-stream");
            let refused = run(&mut place.ipcmark(["predict", "scenario.toml", "--set", &set])).expect(2);
            for word in [flow, "Nagle", "TCP_NODELAY"] {
                assert!(refused.err.contains(word), "{word}: {refused}");
            }
            let flat = |said: &str| said.split_whitespace().collect::<Vec<_>>().join(" ");
            let advise = ["advise", "scenario.toml", "tcp", "unix-stream", "--time", "20s"];
            let advised = run(&mut place.ipcmark(advise)).expect(0);
            for words in ["The wait belongs to TCP", "TCP_NODELAY would give"] {
                assert!(flat(&advised.out).contains(words), "{words}: {advised}");
            }
            let replayed = run(&mut place.ipcmark(["replay", "scenario.toml", "--time", "5s"])).expect(0);
            let remedy = format!("TCP_NODELAY, which a replay with --set {flow}=tcp has");
            assert!(flat(&replayed.out).contains(&remedy), "{replayed}");
        }
    }
}
