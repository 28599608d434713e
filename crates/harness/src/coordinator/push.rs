//! A copy of this program on the other side of a command, for one run. It is written and removed by what every host has: tee,
//! chmod and rm. Another process removes it when the run ends in whatever way, as the janitor does a run's directory.

use super::reexecution::reexecution;
use super::via::Via;
use crate::clock::Timer;
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use sys::{Errno, Failure, OrFail};

/// The hidden sub-command that removes a pushed copy when its standard input ends; the command and its words follow it.
pub const REMOVER: &str = "__unpush";
/// How long copying may take, removing, and comparing the last of what came back.
const COPY_WITHIN: Duration = Duration::from_secs(120);
const COMPARED_WITHIN: Duration = Duration::from_secs(10);
const REMOVE_WITHIN: Duration = Duration::from_secs(10);

/// A copy of this program elsewhere. It is removed when this is dropped.
#[derive(Debug)]
pub struct PushedProgram {
    path: String,
    /// The remover reads from the other end of this pipe, and wakes when it is closed.
    waker: Option<OwnedFd>,
    remover: Child,
}

impl PushedProgram {
    /// Copies this program by `via` to a name in /tmp that nobody can guess.
    pub fn push(via: &Via, interrupted: &AtomicBool) -> Result<Self, Failure> {
        let path = format!("/tmp/ipcmark-push-{:032x}", rand::random::<u128>());
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", "the remover's pipe")?;
        let mut remover = reexecution(REMOVER, None);
        remover.args(via.words()).args(["rm", "-f", &path]).stdin(theirs).stdout(Stdio::null());
        let remover = remover.spawn().or_fail("start", "the remover (/proc/self/exe)")?;
        let pushed = Self { path, waker: Some(ours), remover };
        copy_to(&pushed.path, via, interrupted)?;
        let mut chmod = via.command(&["chmod", "700", &pushed.path]);
        chmod.stdin(Stdio::null()).stdout(Stdio::null());
        finish(chmod, via, interrupted)?;
        Ok(pushed)
    }

    /// Its path there.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for PushedProgram {
    fn drop(&mut self) {
        drop(self.waker.take());
        // Where it cannot be removed any more, the remover has said so.
        let _ = wait_within(&mut self.remover, REMOVE_WITHIN + Duration::from_secs(1), || false);
    }
}

/// Copies this program by `via` to `path`, and compares what has arrived there.
fn copy_to(path: &str, via: &Via, interrupted: &AtomicBool) -> Result<(), Failure> {
    let own = || File::open("/proc/self/exe").or_fail("open", "/proc/self/exe");
    let (sent, expected) = (own()?, own()?);
    let (echo, to_echo) = pipe_with(PipeFlags::CLOEXEC).or_fail("pipe2", "the copy's output")?;
    // tee keeps its standard output open. dd and cat into a file have it closed, and containerd then takes a command for
    // done: it closes the input after some kilobytes, and no one says so. What tee writes there tells what has arrived.
    let mut copy = via.command(&["tee", path]);
    copy.stdin(sent).stdout(to_echo);
    let (tell, compared) = mpsc::channel();
    std::thread::spawn(move || {
        let mut echo = File::from(echo);
        let is_same = are_same(&echo, &expected);
        // A command whose output nobody reads would fail, and hide that it was wrong.
        let _ = std::io::copy(&mut echo, &mut std::io::sink());
        tell.send(is_same)
    });
    finish(copy, via, interrupted)?;
    if compared.recv_timeout(COMPARED_WITHIN).unwrap_or(false) {
        return Ok(());
    }
    let why = "what arrived there is another file, or a part of it";
    let next = "see whether the command passes its whole input on, and all output back, unchanged";
    Err(Failure::new("push", format!("this program by '{via}'"), why, next))
}

/// Whether `one` and `other` have the same bytes, up to their ends.
fn are_same(one: &File, other: &File) -> bool {
    const AT_ONCE: usize = 1 << 16;
    let [mut one, mut other] = [one, other].map(|file| BufReader::with_capacity(AT_ONCE, file));
    loop {
        let (Ok(here), Ok(there)) = (one.fill_buf(), other.fill_buf()) else { return false };
        let bytes = here.len().min(there.len());
        if here[..bytes] != there[..bytes] {
            return false;
        }
        if bytes == 0 {
            return here.len() == there.len();
        }
        one.consume(bytes);
        other.consume(bytes);
    }
}

/// Runs `command` to its end.
fn finish(mut command: Command, via: &Via, interrupted: &AtomicBool) -> Result<(), Failure> {
    let mut child = command.spawn().or_fail("start", format!("'{via}'"))?;
    // Its end of a pipe is the child's alone, so that the other end sees when it is closed.
    drop(command);
    let ended = wait_within(&mut child, COPY_WITHIN, || interrupted.load(Ordering::Relaxed));
    let next = "see what the command says; a copy needs tee, chmod and rm there, and a /tmp from which programs may run";
    match ended {
        Some(true) => Ok(()),
        Some(false) => {
            Err(Failure::new("push", format!("this program by '{via}'"), "the command failed", next))
        }
        None => {
            let _ = child.kill();
            let _ = child.wait();
            Err(Failure::of("push", format!("this program by '{via}'"), Errno::TIMEDOUT))
        }
    }
}

/// Whether `child` ended well; `None` when `limit` passed, or it is given up, before it ended.
fn wait_within(child: &mut Child, limit: Duration, is_given_up: impl Fn() -> bool) -> Option<bool> {
    let timer = Timer::start();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if timer.elapsed() < limit && !is_given_up() => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Ok(None) | Err(_) => return None,
        }
    }
}

/// The remover: sleeps until the coordinator has ended or is done, then runs the command of `words`.
pub fn remover(words: impl Iterator<Item = OsString>) {
    // The coordinator never writes: the read ends when its end of the pipe is closed.
    let _ = std::io::stdin().read(&mut [0]);
    let words: Vec<OsString> = words.collect();
    let Some((program, arguments)) = words.split_first() else { return };
    let child = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let removed = child.is_ok_and(|mut child| {
        let ended = wait_within(&mut child, REMOVE_WITHIN, || false);
        if ended.is_none() {
            let _ = child.kill();
        }
        ended == Some(true)
    });
    if !removed {
        let shown: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let remedy = format!("ipcmark: a pushed copy may be left behind; to remove it: {}", shown.join(" "));
        let _ = writeln!(std::io::stderr(), "{remedy}");
    }
}
