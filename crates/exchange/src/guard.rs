//! The process that starts a program and outlives it: a re-execution of the binary. All that the program leaves comes back to it, and is
//! killed when it ends, which it does when nobody holds the other end of its standard input any more.

use crate::message::{Ended, FILTERED, GO, Message, STOP};
use crate::supervisor::CALLS;
use crate::usage::{ProgramUsage, descendants};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, send, sendmsg};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpid, getrlimit, kill_process,
    pidfd_open, set_child_subreaper, setrlimit, setsid, waitid,
};
use std::ffi::OsString;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::process::{Child, Command, Stdio};
use sys::seccomp_listener::{Listener, listen_to};
use sys::usage::of_ended_children;
use sys::{Errno, Failure, OrFail};

/// The hidden sub-command by which the binary becomes such a process; the program and its arguments follow it.
pub const COMMAND: &str = "__guard";

/// What a failure is of.
const SELF: &str = "the process that guards the program";

/// Starts the program that `words` say when it is told to, says how it ended, and ends with all that it left. The first word is whether its
/// calls are filtered, the second how many descriptors it may have.
pub fn main(mut words: impl Iterator<Item = OsString>) -> Result<(), Failure> {
    let is_filtered = words.next().is_some_and(|word| word == FILTERED);
    let descriptors = words.next().and_then(|word| word.to_str()?.parse::<u64>().ok());
    let words: Vec<OsString> = words.collect();
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let control = std::io::stdin().as_fd().try_clone_to_owned().or_fail("fcntl", SELF)?;
    // What a terminal sends to its foreground is for the supervisor, which ends everything.
    setsid().or_fail("setsid", SELF)?;
    set_child_subreaper(Some(getpid())).or_fail("prctl(PR_SET_CHILD_SUBREAPER)", SELF)?;
    match is_filtered.then(|| listen_to(CALLS)).transpose() {
        Ok(listener) => hand_over(&control, listener.as_ref())?,
        Err(failure) => return say(&control, &Message::Refused(failure.answer, failure.next)),
    }
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: descriptors, maximum }).or_fail("setrlimit", SELF)?;
    if !is_told(&control, GO) {
        return Ok(());
    }
    let started = Command::new(program).args(arguments).stdin(Stdio::null()).spawn();
    match started {
        Ok(mut child) => {
            let told = guard(&control, &mut child);
            end_all();
            told
        }
        Err(error) => say(&control, &Message::NotStarted(error.to_string())),
    }
}

/// Waits for the program to end, and says how; and then until nobody wants anything of it any more.
fn guard(control: &OwnedFd, child: &mut Child) -> Result<(), Failure> {
    let pid = Pid::from_child(child);
    let process = pidfd_open(pid, PidfdFlags::empty()).or_fail("pidfd_open", SELF)?;
    let mut runs = true;
    say(control, &Message::Started)?;
    loop {
        let mut files = vec![PollFd::new(control, PollFlags::IN)];
        files.extend(runs.then(|| PollFd::new(&process, PollFlags::IN)));
        match poll(&mut files, None) {
            Err(Errno::INTR) => continue,
            polled => polled.or_fail("poll", SELF)?,
        };
        if files.get(1).is_some_and(|process| !process.revents().is_empty()) {
            runs = false;
            let status = child.wait().or_fail("waitid", SELF)?;
            say(control, &Message::Ended(Ended { status, usage: used() }))?;
        } else if !is_told(control, STOP) {
            return Ok(());
        } else if runs {
            // It may be ending.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

/// What the children that have ended, and theirs, have used.
fn used() -> ProgramUsage {
    let usage = of_ended_children();
    ProgramUsage { cpu_ns: usage.cpu_ns, switches: usage.switches, peak_bytes: usage.peak_bytes }
}

/// Kills and reaps all descendants, until there is none: the children of those that are killed become this process's own.
fn end_all() {
    loop {
        for pid in descendants(getpid()).into_iter().filter_map(Pid::from_raw) {
            // It may have ended.
            let _ = kill_process(pid, Signal::KILL);
        }
        match waitid(WaitId::All, WaitIdOptions::EXITED) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Waits for the next word; whether it is this one.
fn is_told(control: &OwnedFd, word: &[u8]) -> bool {
    let mut bytes = [0; 16];
    loop {
        match recv(control, &mut bytes, RecvFlags::empty()) {
            Ok((length, _)) => return &bytes[..length] == word,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

fn say(control: &OwnedFd, message: &Message) -> Result<(), Failure> {
    match send(control, message.to_string().as_bytes(), SendFlags::NOSIGNAL) {
        // Nobody is there to hear it.
        Ok(_) | Err(Errno::PIPE) => Ok(()),
        Err(errno) => Err(Failure::from_errno("send", SELF, errno)),
    }
}

/// Sends the listener to whoever answers the calls.
fn hand_over(control: &OwnedFd, listener: Option<&Listener>) -> Result<(), Failure> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let files: Vec<BorrowedFd<'_>> = listener.iter().map(|listener| listener.as_fd()).collect();
    if !files.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
    }
    let text = Message::Listening.to_string();
    sendmsg(control, &[IoSlice::new(text.as_bytes())], &mut ancillary, SendFlags::NOSIGNAL)
        .or_fail("sendmsg", SELF)
        .map(drop)
}
