//! What a recorded program sees is what it would see unrecorded: the end of what somebody closed is there at once, and so is a lock that was
//! given up. Whoever examines a descriptor of a program that runs holds the file, and delays both.

use super::{GONE, Place, WAYS, may, player};
use crate::common::{Running, run, wait_until};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

/// What says that the player goes on until it is told to end: there is a file of this name beside what it writes.
const END: &str = "end";
/// By ptrace each call is many times slower.
const ROUNDS: u64 = 20_000;
const TRACED_ROUNDS: u64 = 400;
/// After so many rounds a child is made that has a pipe open when it ends.
const ROUNDS_OF_CHILD: u64 = 100;

/// Makes, uses and closes what has an end or a lock, until there is a file [`END`] in the directory `place`, or `rounds` are over, and writes
/// there what came late.
pub(super) fn end_and_lock(place: &Path, rounds: Option<u64>) {
    let locked = place.join("locked");
    let mut late: Vec<String> = Vec::new();
    let mut done = 0;
    let goes_on = |done: u64| rounds.map_or(!place.join(END).exists(), |rounds| done < rounds);
    while goes_on(done) {
        done += 1;
        let (from, to) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        check_end(from, to, "pipe", &mut late);
        let flags = SocketFlags::NONBLOCK;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        check_end(one, other, "socket", &mut late);
        let file = fs::File::options().write(true).create(true).truncate(false).open(&locked).unwrap();
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            late.push(format!("round {done}: the file was locked"));
        }
        write(&file, b"x").unwrap();
        if done % ROUNDS_OF_CHILD == 0 {
            let (from, to) = pipe_with(PipeFlags::NONBLOCK).unwrap();
            let said = Command::new("sh").args(["-c", "echo x"]).stdout(to).status().unwrap();
            assert!(said.success() && read(&from, &mut [0; 8]) == Ok(2));
            late.extend(is_late(&from).then(|| format!("round {done}: the end of a child")));
        }
    }
    // Whole, when it is there.
    fs::write(place.join("written"), format!("{done} rounds\n{}", late.join("\n"))).unwrap();
    fs::rename(place.join("written"), place.join("late")).unwrap();
}

fn check_end(from: OwnedFd, to: OwnedFd, what: &str, late: &mut Vec<String>) {
    write(&to, b"x").unwrap();
    assert_eq!(read(&from, &mut [0; 8]), Ok(1));
    drop(to);
    late.extend(is_late(&from).then(|| format!("the end of a {what}")));
}

/// Whether the end is not there, of what everybody has closed who could write.
fn is_late(from: &OwnedFd) -> bool {
    match read(from, &mut [0; 8]) {
        Ok(0) => false,
        Err(Errno::AGAIN) => true,
        other => panic!("{other:?}"),
    }
}

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
            run(command.env(super::PEER, place.path(".")));
        });
    }
}

#[test]
fn ends_and_locks_of_recorded_processes_are_never_late() {
    for way in WAYS.into_iter().filter(|way| may(way)) {
        assert_in_time(way, |place| {
            let playing = Running::start(player("ends").env(super::PEER, place.path(".")));
            assert!(wait_until(GONE, || place.path("locked").exists()), "the player did not begin");
            let pid = playing.pid().to_string();
            let time = if way == "ptrace" { "1s" } else { "3s" };
            run(&mut place.ipcmark(["record", "--time", time, "--by", way, "--pid", &pid]));
            place.file(END, "");
            playing.finish().expect(0);
        });
    }
}
