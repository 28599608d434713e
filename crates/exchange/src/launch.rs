//! Starts programs under a guard, with a supervisor that answers their calls, and ends them.

use crate::message::{Ended, FILTERED, GO, Message, STOP};
use crate::sockets::Sockets;
use crate::supervisor::Supervisor;
use crate::usage::{ProgramUsage, descendants, of_descendants};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketFlags, SocketType,
    recvmsg, send, socketpair,
};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getrlimit, kill_process, set_child_subreaper, setrlimit,
};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use sys::seccomp_listener::Listener;
use sys::{Errno, Failure, OrFail};

/// The guards of this process that have not ended. What has lost its guard comes back to this process, and is none of them.
static GUARDS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Whose calls are filtered.
#[derive(Debug, Clone)]
pub enum Calls {
    /// The supervisor answers them; the sockets are those of one start of a program, which its servers and clients share.
    Answered(Arc<Sockets>),
    /// Nobody's.
    Free,
}

/// A program that runs, or is about to. When this is dropped, it and all that it has started are killed.
#[derive(Debug)]
pub struct Launched {
    name: String,
    guard: Child,
    /// `None` as soon as the guard is to end.
    control: Option<OwnedFd>,
    supervisor: Option<JoinHandle<()>>,
}

impl Launched {
    /// Prepares to start `command`, which writes to these files.
    pub fn prepare(
        command: &[OsString],
        calls: Calls,
        output: Stdio,
        errors: Stdio,
    ) -> Result<Self, Failure> {
        let name = command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
        set_child_subreaper(Some(getpid())).or_fail("prctl(PR_SET_CHILD_SUBREAPER)", "this process")?;
        let (control, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .or_fail("socketpair", &name)?;
        let descriptors = raise_descriptors().to_string();
        let is_filtered = if matches!(calls, Calls::Answered(_)) { FILTERED } else { "free" };
        let guard = Command::new("/proc/self/exe")
            .arg0("ipcmark")
            .arg(crate::guard::COMMAND)
            .args([is_filtered, &descriptors])
            .args(command)
            .stdin(Stdio::from(theirs))
            .stdout(output)
            .stderr(errors)
            .spawn()
            .or_fail("start", &name)?;
        let mut launched = Self { name, guard, control: Some(control), supervisor: None };
        guards().insert(launched.guard_pid().as_raw_nonzero().get());
        launched.supervise(calls)?;
        Ok(launched)
    }

    /// Waits for the guard, and answers calls from now on.
    fn supervise(&mut self, calls: Calls) -> Result<(), Failure> {
        let (message, listener) = self.receive()?;
        match (message, listener, calls) {
            (Message::Listening, Some(listener), Calls::Answered(sockets)) => {
                let supervisor =
                    Supervisor::new(Listener::from_descriptor(listener), sockets, self.guard_pid());
                let thread = std::thread::Builder::new().name("supervisor".to_owned());
                let thread = thread.spawn(move || supervisor.run()).or_fail("start", "the supervisor")?;
                self.supervisor = Some(thread);
                Ok(())
            }
            (Message::Listening, None, Calls::Free) => Ok(()),
            (Message::Refused(answer, next), ..) => {
                Err(Failure::new("filter the calls of", &self.name, answer, next))
            }
            _ => Err(self.lost()),
        }
    }

    /// Starts the program.
    pub fn start(&self) -> Result<(), Failure> {
        self.tell(GO)?;
        match self.receive()?.0 {
            Message::Started => Ok(()),
            Message::NotStarted(why) => Err(Failure::new(
                "start",
                &self.name,
                why,
                "name a program that exists, with its path if need be",
            )),
            _ => Err(self.lost()),
        }
    }

    /// Asks the program to end (SIGTERM).
    pub fn stop(&self) -> Result<(), Failure> {
        self.tell(STOP)
    }

    /// Waits for the program to end, no longer than `limit`; `None` where it still runs.
    pub fn wait(&self, limit: Duration) -> Result<Option<Ended>, Failure> {
        let Some(control) = &self.control else { return Err(self.lost()) };
        let limit = Timespec::try_from(limit).ok();
        match poll(&mut [PollFd::new(control, PollFlags::IN)], limit.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            polled => polled.or_fail("poll", &self.name)?,
        };
        match self.receive()?.0 {
            Message::Ended(ended) => Ok(Some(ended)),
            _ => Err(self.lost()),
        }
    }

    /// What its processes that run have used until now.
    pub fn usage(&self) -> ProgramUsage {
        of_descendants(self.guard_pid())
    }

    /// Whether one of its processes listens on a socket.
    pub fn is_listening(&self) -> bool {
        let listening = listening_sockets();
        descendants(self.guard_pid()).iter().any(|pid| {
            let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            files.filter_map(|file| fs::read_link(file.path()).ok()).any(|to| {
                let inode =
                    to.to_str().and_then(|to| to.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
                inode.is_some_and(|inode: u64| listening.contains(&inode))
            })
        })
    }

    fn tell(&self, word: &[u8]) -> Result<(), Failure> {
        let control = self.control.as_ref().ok_or_else(|| self.lost())?;
        send(control, word, SendFlags::NOSIGNAL).map(drop).map_err(|_| self.lost())
    }

    /// The next message of the guard, with the descriptor that came with it.
    fn receive(&self) -> Result<(Message, Option<OwnedFd>), Failure> {
        let control = self.control.as_ref().ok_or_else(|| self.lost())?;
        let mut text = [0; 4096];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let into = &mut [IoSliceMut::new(&mut text)];
            match recvmsg(control, into, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                other => break other.or_fail("recvmsg", &self.name)?,
            }
        };
        let mut listener = None;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                listener = files.last();
            }
        }
        let text = String::from_utf8_lossy(&text[..received.bytes]);
        let message = Message::parse(&text).ok_or_else(|| self.lost())?;
        Ok((message, listener))
    }

    /// The process that has started the program, and ends when that does.
    pub fn guard_pid(&self) -> Pid {
        Pid::from_child(&self.guard)
    }

    fn lost(&self) -> Failure {
        Failure::new(
            "run",
            &self.name,
            "the process that guards it has ended",
            "see whether somebody, or a lack of memory, killed it",
        )
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // The guard ends all that it has started, and itself.
        self.control = None;
        let _ = self.guard.wait();
        guards().remove(&self.guard_pid().as_raw_nonzero().get());
        end_orphans();
        if let Some(supervisor) = self.supervisor.take() {
            // Whoever panicked has said so.
            let _ = supervisor.join();
        }
    }
}

/// Lets this process have as many descriptors as it may, for it keeps one of each socket that is exchanged. Returns how many it might have before,
/// which programs are to have.
fn raise_descriptors() -> u64 {
    static BEFORE: OnceLock<u64> = OnceLock::new();
    *BEFORE.get_or_init(|| {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        // Where it is refused, there are as many as before.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
        current.unwrap_or(u64::MAX)
    })
}

fn guards() -> std::sync::MutexGuard<'static, BTreeSet<i32>> {
    GUARDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills what a guard that was killed itself has left: it came back to this process, which has started nothing but guards.
fn end_orphans() {
    let own = getpid();
    let guarded: BTreeSet<i32> = {
        let guards = guards();
        let of_guards = guards.iter().filter_map(|guard| Pid::from_raw(*guard)).flat_map(descendants);
        of_guards.chain(guards.iter().copied()).collect()
    };
    for pid in descendants(own).difference(&guarded).filter_map(|pid| Pid::from_raw(*pid)) {
        // It may have ended.
        let _ = kill_process(pid, Signal::KILL);
        let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
    }
}

/// The inodes of all sockets of this network namespace that listen (/proc/net/tcp, /proc/net/unix).
fn listening_sockets() -> BTreeSet<u64> {
    /// The state of a TCP socket that listens, and the flag of a Unix socket that accepts connections (`__SO_ACCEPTCON`).
    const TCP_LISTEN: &str = "0A";
    const ACCEPTS: u32 = 1 << 16;
    let mut found = BTreeSet::new();
    for table in ["tcp", "tcp6", "unix"] {
        let said = fs::read(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        for line in String::from_utf8_lossy(&said).lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (listens, inode) = match table {
                "unix" => {
                    let flags = words.get(3).and_then(|flags| u32::from_str_radix(flags, 16).ok());
                    (flags.is_some_and(|flags| flags & ACCEPTS != 0), words.get(6))
                }
                _ => (words.get(3) == Some(&TCP_LISTEN), words.get(9)),
            };
            found.extend(inode.filter(|_| listens).and_then(|inode| inode.parse::<u64>().ok()));
        }
    }
    found
}
