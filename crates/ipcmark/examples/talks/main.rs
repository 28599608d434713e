//! What tests record: a program of which it is known what it says to whom. It plays the role that its environment names, and starts itself
//! again for the other one. It tests nothing, and is no part of what users install.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a program that cannot go on fails by panicking")]

mod exchange;
mod held_back;
mod late_settings;
mod signals;
mod unharmed;
mod waiting_streams;
mod working;

use exchange::{PEER, REPLY_BYTES, REQUEST_BYTES, REQUESTS, ROLE, WORKED_REQUESTS};
use rustix::process::{Pid, Resource, getrlimit, setrlimit};
use rustix::thread::futex;
use signals::{signal_flag, signals_through};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;
use sys::shared_memory::SharedMemory;
use waiting_streams::Polling;
use working::Working;

/// The memory of a word on which processes sleep.
const WORD_BYTES: usize = 4096;

/// This program, to play `role`.
fn player(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, role);
    command
}

fn main() {
    let peer = std::env::var(PEER).unwrap_or_default();
    match std::env::var(ROLE).as_deref() {
        Ok("pair") => pair("answer", ask),
        Ok("ends") => unharmed::end_and_lock(Path::new(&peer), None),
        Ok(role) if role.starts_with("ends ") => {
            unharmed::end_and_lock(Path::new(&peer), role["ends ".len()..].parse().ok());
        }
        Ok("sets-capacity") => late_settings::set_capacity(late_settings::receiver()),
        Ok("parts") => held_back::answer_parts(false),
        Ok("parts-at-once") => held_back::answer_parts(true),
        Ok("asks-in-parts") => held_back::ask_in_parts(&peer, false),
        Ok("asks-in-parts-at-once") => held_back::ask_in_parts(&peer, true),
        Ok("takes-all") => late_settings::take_all(),
        Ok("sets-buffer") => pair("answer", |stream| late_settings::set_buffer(stream, ask_once)),
        // Two CPUs: of the one who asks, and of the one who answers.
        Ok("placed") => {
            let (own, other) = peer.split_once(' ').unwrap();
            sys::process::pin_to(other.parse().unwrap()).unwrap();
            pair("answer", |stream| {
                sys::process::pin_to(own.parse().unwrap()).unwrap();
                // More than a program's start has, after which it is looked up where it is held.
                ask_times(&stream, 4 * REQUESTS);
                // Where processes are held is looked up while they are there.
                std::thread::sleep(Duration::from_millis(800));
            });
        }
        Ok("polls") => pair("answer-polling", |stream| ask(Polling(stream))),
        Ok("works") => pair("answer-working", |stream| ask_times(Working::new(stream), WORKED_REQUESTS)),
        Ok("answer-working") => {
            answer(Working::new(UnixStream::from(std::io::stdin().lock().try_clone_fd())));
        }
        Ok("answer-polling") => {
            answer(Polling(UnixStream::from(std::io::stdin().lock().try_clone_fd())));
        }
        Ok("descriptors") => {
            let mut limit = getrlimit(Resource::Nofile);
            limit.current = limit.maximum;
            setrlimit(Resource::Nofile, limit).unwrap();
            let files: Vec<fs::File> = (0..10_000).map_while(|_| fs::File::open("/dev/null").ok()).collect();
            pair("answer", ask);
            drop(files);
        }
        Ok("answer") => answer(UnixStream::from(std::io::stdin().lock().try_clone_fd())),
        Ok("path") => {
            let listener = UnixListener::bind(&peer).unwrap();
            let child = player("connect-path").env(PEER, &peer).spawn().unwrap();
            answer(listener.accept().unwrap().0);
            ended(child);
        }
        Ok("connect-path") => ask(UnixStream::connect(peer).unwrap()),
        Ok("tcp") => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let child = player("connect-tcp").env(PEER, address).spawn().unwrap();
            answer(listener.accept().unwrap().0);
            ended(child);
        }
        Ok("connect-tcp") => ask(TcpStream::connect(peer).unwrap()),
        Ok("futexes") => {
            let memory = fs::File::options().read(true).write(true).create_new(true).open(&peer).unwrap();
            let memory = SharedMemory::create_file(memory, WORD_BYTES).unwrap();
            let child = player("answer-futexes").env(PEER, &peer).spawn().unwrap();
            futexes(&memory, true);
            ended(child);
        }
        Ok("answer-futexes") => {
            let memory = fs::File::options().read(true).write(true).open(&peer).unwrap();
            futexes(&SharedMemory::open_file(memory, WORD_BYTES).unwrap(), false);
        }
        Ok("pidfd") => {
            let came = signal_flag();
            let own = std::process::id().to_string();
            let child = player("answer-pidfd").env(PEER, own).spawn().unwrap();
            signals_through(Pid::from_child(&child), &came, false);
            ended(child);
        }
        Ok("answer-pidfd") => {
            let came = signal_flag();
            signals_through(Pid::from_raw(peer.parse().unwrap()).unwrap(), &came, true);
        }
        other => panic!("{ROLE} is {other:?}, which is no role"),
    }
}

/// A descriptor of its own for standard input.
trait CloneFd {
    fn try_clone_fd(&self) -> OwnedFd;
}

impl CloneFd for std::io::StdinLock<'_> {
    fn try_clone_fd(&self) -> OwnedFd {
        use std::os::fd::AsFd;
        self.as_fd().try_clone_to_owned().unwrap()
    }
}

/// Asks a child, which is to play `answerer`, through a pair of sockets.
fn pair(answerer: &str, asks: impl FnOnce(UnixStream)) {
    let (own, of_child) = UnixStream::pair().unwrap();
    let child = player(answerer).stdin(OwnedFd::from(of_child)).spawn().unwrap();
    asks(own);
    ended(child);
}

fn ended(mut child: Child) {
    assert!(child.wait().unwrap().success());
}

fn ask(stream: impl Read + Write) {
    ask_times(stream, REQUESTS);
}

fn ask_times(mut stream: impl Read + Write, requests: u64) {
    (0..requests).for_each(|_| ask_once(&mut stream));
}

fn ask_once(stream: &mut (impl Read + Write)) {
    stream.write_all(&[1; REQUEST_BYTES]).unwrap();
    stream.read_exact(&mut [0; REPLY_BYTES]).unwrap();
}

/// Wakes whoever sleeps on a word of `memory`, and sleeps there as often.
fn futexes(memory: &SharedMemory, begins: bool) {
    let word = memory.u32_at(0);
    // It is always 0, so that whoever comes sleeps until it is woken.
    let sleep = || while futex::wait(word, futex::Flags::empty(), 0, None).is_err() {};
    let wake = || {
        while futex::wake(word, futex::Flags::empty(), 1).unwrap() == 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
    };
    for _ in 0..REQUESTS {
        if begins {
            wake();
            sleep();
        } else {
            sleep();
            wake();
        }
    }
}

fn answer(mut stream: impl Read + Write) {
    while stream.read_exact(&mut [0; REQUEST_BYTES]).is_ok() {
        stream.write_all(&[2; REPLY_BYTES]).unwrap();
    }
}
