//! A program that makes, uses and closes what has an end or a lock, and tells what comes late.

use crate::exchange::END;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

/// After so many rounds a child is made that has a pipe open when it ends.
const ROUNDS_OF_CHILD: u64 = 100;

/// Makes, uses and closes what has an end or a lock, until there is a file [`END`] in the directory `place`, or `rounds` are over, and writes
/// there what came late.
pub(crate) fn end_and_lock(place: &Path, rounds: Option<u64>) {
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
