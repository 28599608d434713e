//! What the tests of the binary share: starting it, its processes, its files. It tests nothing itself.
//!
//! A run is told from every other process of the host by its own `TMPDIR`, which its endpoints and its
//! janitor inherit: whoever has it in its environment belongs to the run, and whatever stays in it was
//! left behind.
#![allow(dead_code, unused_imports, reason = "two programs of tests share it, and neither uses all of it")]

#[path = "../../../../xtask/src/test_notes.rs"]
mod test_notes;

use model::record::{Outcome, Record, Results};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

pub use test_notes::{AS_ROOT, skip, tool_is_missing};

/// The binary under test.
pub const IPCMARK: &str = env!("CARGO_BIN_EXE_ipcmark");

/// The path of `examples/NAME`, which cargo builds with all tests.
pub fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("/proc/self/exe");
    let path = tests.ancestors().nth(2).expect("target/debug").join("examples").join(name);
    let next = "run `cargo build --workspace --all-features --examples`";
    assert!(path.exists(), "{} is not built; {next}", path.display());
    path
}

/// How long a command may take that must end by itself: beyond it, it hangs. No measure of speed.
pub const TIMEOUT: Duration = Duration::from_secs(600);
/// After what time what a dead run had was left behind. No measure of speed.
pub const GONE_WITHIN: Duration = Duration::from_secs(180);
/// How often something that is awaited is polled.
const POLL: Duration = Duration::from_millis(5);

/// A place for one run: its directory for temporary files, and one for what it is to keep.
pub struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// A fresh one.
    pub fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().expect("a temporary directory") };
        fs::create_dir(place.tmp()).expect("a directory within it");
        place
    }

    /// What the run takes for `TMPDIR`.
    pub fn tmp(&self) -> PathBuf {
        self.directory.path().join("tmp")
    }

    /// A path for a file that is not in `TMPDIR`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A file `name` with `content`.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("a file in a temporary directory");
        path
    }

    /// `ipcmark` with `arguments`, in this place: current directory, `TMPDIR`, and no say of the caller's in how it looks.
    pub fn ipcmark<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, arguments: I) -> Command {
        let mut command = self.command(IPCMARK);
        command.args(arguments);
        command
    }

    /// `program` in this place.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.directory.path()).env("TMPDIR", self.tmp()).env("COLUMNS", "100");
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM"] {
            command.env_remove(name);
        }
        command
    }

    /// The names of what lies in `TMPDIR`.
    pub fn leftovers(&self) -> Vec<String> {
        let entries = fs::read_dir(self.tmp()).expect("the run's TMPDIR");
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// The living processes of the run.
    pub fn processes(&self) -> Vec<Process> {
        let wanted = [b"TMPDIR=", self.tmp().as_os_str().as_bytes()].concat();
        processes(|process| process.environment().split(|byte| *byte == 0).any(|entry| entry == wanted))
    }

    /// Fails unless, within `GONE_WITHIN`, no process of the run lives and its `TMPDIR` is empty.
    pub fn assert_nothing_is_left(&self, after: &str) {
        let gone = wait_until(GONE_WITHIN, || self.processes().is_empty() && self.leftovers().is_empty());
        assert!(
            gone,
            "{after}: left behind are processes {:?} and files {:?}",
            self.processes(),
            self.leftovers()
        );
    }
}

/// Polls `what` until it holds or `limit` has passed; says whether it held.
pub fn wait_until(limit: Duration, mut what: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if what() {
            return true;
        }
        if start.elapsed() > limit {
            return false;
        }
        sleep(POLL);
    }
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub struct Said {
    /// On standard output.
    pub out: String,
    /// On standard error.
    pub err: String,
    /// How it ended.
    pub status: ExitStatus,
}

impl Said {
    /// The exit code; fails when a signal ended it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal\n{self}"))
    }

    /// Itself, if the exit code is `code`.
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "exit code\n{self}");
        assert!(!self.err.contains("panicked"), "a panic\n{self}");
        self
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { out, err, status } = self;
        write!(f, "{status}\n--- standard output\n{out}\n--- standard error\n{err}\n---")
    }
}

/// A command under way. Dropped, it is killed: a test that fails leaves nothing running.
pub struct Running {
    child: Child,
    out: JoinHandle<Vec<u8>>,
    err: JoinHandle<Vec<u8>>,
    name: String,
}

/// Reads all of `stream` in a thread, so that its writer never waits for a reader.
fn collect(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // What cannot be read was said by a process that died in the middle of it.
            let _ = stream.read_to_end(&mut bytes);
        }
        bytes
    })
}

impl Running {
    /// Starts `command`. What it says is collected, unless the caller has sent it elsewhere with `out`.
    pub fn start(command: &mut Command) -> Self {
        Self::start_with(command.stdout(Stdio::piped()))
    }

    /// Starts `command` with standard output where it already points.
    pub fn start_with(command: &mut Command) -> Self {
        let name = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
        Self { child, out, err, name }
    }

    /// The process id.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("process ids are positive i32")
    }

    /// Whether it has not ended.
    pub fn lives(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_none()
    }

    /// Sends `signal`.
    pub fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Waits for the end, at most `TIMEOUT`, and says what was said.
    pub fn finish(mut self) -> Said {
        let ended = wait_until(TIMEOUT, || !self.lives());
        if !ended {
            self.signal(Signal::KILL);
        }
        let status = self.child.wait().expect("a child can be waited for");
        let text = |thread: JoinHandle<Vec<u8>>| {
            String::from_utf8_lossy(&thread.join().expect("a reader does not panic")).into_owned()
        };
        let said = Said { out: text(self.out), err: text(self.err), status };
        assert!(ended, "{} did not end within {TIMEOUT:?}\n{said}", self.name);
        said
    }

    /// Kills it and waits; says whether the kill came before it ended by itself.
    pub fn kill(mut self) -> bool {
        self.signal(Signal::KILL);
        let status = self.child.wait().expect("a child can be waited for");
        status.signal() == Some(Signal::KILL.as_raw())
    }
}

/// Runs `command` to its end.
pub fn run(command: &mut Command) -> Said {
    Running::start(command).finish()
}

/// Sends `signal` to a process, which may be gone.
pub fn send(pid: i32, signal: Signal) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// A process as /proc shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its command line.
    pub command: Vec<String>,
}

impl Process {
    fn from_pid(pid: i32) -> Option<Self> {
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words = command.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        Some(Self { pid, command: words.collect() })
    }

    fn environment(&self) -> Vec<u8> {
        fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default()
    }

    /// Whether it is an endpoint.
    pub fn is_endpoint(&self) -> bool {
        self.command.get(1).is_some_and(|word| word == harness::coordinator::via::ENDPOINT)
    }

    /// Whether it is a janitor.
    pub fn is_janitor(&self) -> bool {
        self.command.get(1).is_some_and(|word| word == harness::coordinator::run_directory::JANITOR)
    }
}

/// The parent of process `pid`; `None` when it is gone.
fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so that what counts begins after the last of them.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// All processes of which `which` holds, by ascending id. Zombies have no environment and no command line.
fn processes(which: impl Fn(&Process) -> bool) -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("/proc");
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<Process> = pids.filter_map(Process::from_pid).filter(which).collect();
    found.sort_by_key(|process| process.pid);
    found
}

/// The endpoints that `coordinator` has now: client, then server, for client is started first.
pub fn endpoints(coordinator: i32) -> Vec<Process> {
    processes(|process| process.is_endpoint() && parent(process.pid) == Some(coordinator))
}

/// As [`endpoints`], where it is asked for often: of the children that the kernel lists, which may leave one out while
/// another ends. Without that list it is the same.
pub fn endpoints_at_once(coordinator: i32) -> Vec<Process> {
    let Ok(children) = fs::read_to_string(format!("/proc/{coordinator}/task/{coordinator}/children")) else {
        return endpoints(coordinator);
    };
    let pids = children.split_whitespace().filter_map(|pid| pid.parse().ok());
    let mut found: Vec<Process> = pids.filter_map(Process::from_pid).filter(Process::is_endpoint).collect();
    found.sort_by_key(|process| process.pid);
    found
}

/// The janitor of `coordinator`.
pub fn janitor(coordinator: i32) -> Option<Process> {
    let is_its_janitor = |process: &Process| process.is_janitor() && parent(process.pid) == Some(coordinator);
    processes(is_its_janitor).into_iter().next()
}

/// The System V objects of this host, its POSIX shared memory, and its POSIX queues where their file system is mounted.
pub fn kernel_objects() -> BTreeSet<String> {
    let sysv = ["msg", "sem", "shm"].into_iter().flat_map(|kind| {
        let table = fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap_or_default();
        let keys = table.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        keys.map(|key| format!("{kind} {key}")).collect::<Vec<_>>()
    });
    let posix = ["/dev/mqueue", "/dev/shm"].into_iter().flat_map(fs::read_dir).flatten().flatten();
    sysv.chain(posix.map(|entry| entry.path().display().to_string())).collect()
}

/// Fails unless all kernel objects of this host that were not there `before` are gone within [`GONE_WITHIN`]. Those that others make and
/// remove meanwhile do not matter.
pub fn assert_no_kernel_objects_are_left(before: &BTreeSet<String>) {
    let mut left: BTreeSet<String> = kernel_objects().difference(before).cloned().collect();
    let gone = wait_until(GONE_WITHIN, || {
        let now = kernel_objects();
        left.retain(|object| now.contains(object));
        left.is_empty()
    });
    assert!(gone, "left behind are the kernel objects {left:?}");
}

/// The results file at `path`.
pub fn read(path: &Path) -> Results {
    let file = fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    model::results::parse(BufReader::new(file), &path.display().to_string())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The records of what was asked for, without the floors.
pub fn asked(results: &Results) -> impl Iterator<Item = &Record> {
    results.records.iter().filter(|record| !record.floor)
}

/// The error of a record that failed.
pub fn error(record: &Record) -> Option<&str> {
    match &record.outcome {
        Outcome::Failed { error } => Some(error),
        _ => None,
    }
}

/// Fails unless no record failed.
pub fn assert_none_failed(results: &Results) {
    let mut failed = String::new();
    for record in &results.records {
        if let Some(error) = error(record) {
            let _ = writeln!(failed, "{}: {error}", record.case);
        }
    }
    assert!(failed.is_empty(), "failed cases:\n{failed}");
}

/// Whether `program`, of the Debian package `package`, can be run here. If not, says what is `untested`, or fails with `CI=true`.
pub fn has(program: &str, package: &str, untested: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        tool_is_missing(program, package, untested);
    }
    found
}
