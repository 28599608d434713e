//! What a recorded program sees is what it would see unrecorded: the end of what somebody closed is there at once, and so is a lock that was
//! given up. Whoever examines a descriptor of a program that runs holds the file, and delays both.

use super::exchange::{END, PEER};
use super::{Place, WAYS, may, player};
use crate::common::{GONE_WITHIN, Running, run, wait_until};
use std::fs;

/// By ptrace each call is many times slower.
const ROUNDS: u64 = 20_000;
const TRACED_ROUNDS: u64 = 400;

/// Fails if something comes late to the player each time that `play` has it played. Whoever else asks for its descriptors meanwhile, as
/// lsof(8) does of all processes, harms it too: that is once.
fn assert_in_time(how: &str, play: impl Fn(&Place)) {
    const TIMES: usize = 3;
    let mut texts = Vec::new();
    for _ in 0..TIMES {
        let place = Place::new();
        play(&place);
        let text = fs::read_to_string(place.path("late")).unwrap();
        match text.lines().nth(1) {
            None => return,
            Some(_) => texts.push(text[..text.len().min(500)].to_owned()),
        }
    }
    panic!("{how}: something was late in each of {TIMES} recordings: {texts:#?}");
}

/// Slow: it makes thousands of rounds while it is recorded.
#[test]
fn ends_and_locks_of_a_recorded_command_are_never_late() {
    for way in WAYS.into_iter().filter(|way| may(way)) {
        let rounds = if way == "ptrace" { TRACED_ROUNDS } else { ROUNDS };
        let player = player(&format!("ends {rounds}"));
        assert_in_time(way, |place| {
            let mut command = place.ipcmark(["record", "--time", "60s", "--by", way, "--"]);
            command.arg(player.get_program()).args(player.get_args());
            command.envs(player.get_envs().filter_map(|(name, value)| Some((name, value?))));
            // It may be that nobody says anything to another that a scenario can have.
            run(command.env(PEER, place.path(".")));
        });
    }
}

/// Slow: it makes thousands of rounds while it is recorded.
#[test]
fn ends_and_locks_of_recorded_processes_are_never_late() {
    for way in WAYS.into_iter().filter(|way| may(way)) {
        assert_in_time(way, |place| {
            let playing = Running::start(player("ends").env(PEER, place.path(".")));
            assert!(wait_until(GONE_WITHIN, || place.path("locked").exists()), "the player did not begin");
            let pid = playing.pid().to_string();
            let time = if way == "ptrace" { "1s" } else { "3s" };
            run(&mut place.ipcmark(["record", "--time", time, "--by", way, "--pid", &pid]));
            place.file(END, "");
            playing.finish().expect(0);
        });
    }
}
