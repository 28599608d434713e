//! Processes of ipcmark killed at random moments, and what is left then: of processes, files, kernel objects and results.

use super::row::Row;
use crate::steps::{root, target};
use rand::Rng;
use rand::seq::IndexedRandom;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How many kills are enough.
const ENOUGH: u64 = 1000;
/// The longest that a command waits before it is killed, in milliseconds.
const LATEST_MS: u64 = 1500;
/// When a command hangs that lost a process, and within what time what it had must be gone.
const HANGS: Duration = Duration::from_secs(60);
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// Every command that starts processes or writes files, with endpoints that make names of every kind. `{root}` is this repository, and
/// the programs of [`PROGRAMS`] are beside it.
const COMMANDS: [&str; 15] = [
    "run -m pipe -m fifo -m sysv-msg -m posix-mq -m sysv-sem --time 2s -o results.jsonl",
    "run -m shm-ring:memory=posix,wait=sysv-sem -m shm-ring:memory=sysv -m shm-ring:memory=file --time 2s",
    "run -m unix-stream:name=path -m file-pass -m shm-queue:lock=sysv-sem --time 2s -o results.jsonl",
    "run -m shm -m semop -m memory:memory=sysv -m process --time 2s",
    "run -m tcp -m unix-seqpacket --peers fan-in=3 --time 2s",
    "run -m pipe --explain --time 1s -o results.jsonl",
    "compare fifo unix-stream --time 2s",
    "explain -m fifo --time 1s",
    "doctor",
    "run -m tcp -m udp -m unix-stream:name=path -m sysv-msg --server-via ./via --time 2s -o results.jsonl",
    "run -m tcp -m fifo --client-via ./via --server-via ./via -s 1 --time 2s -o results.jsonl",
    "record --time 1s -o scenario.toml -- ./pipeline",
    "replay {root}/scenarios/barefoot-datagram.toml --time 2s",
    "predict {root}/scenarios/pgbench.toml --set pgbench-postgres=unix-stream --measure 2s",
    "advise --pattern request-reply --size 64 --needs descriptors --time 2s",
];

/// What commands have to do with: a command in the middle, as ssh is, and something to record.
const PROGRAMS: [(&str, &str); 2] = [
    ("via", "#!/bin/sh\n\"$@\"\nexit $?\n"),
    ("pipeline", "#!/bin/sh\nhead -c 20000000 /dev/zero | cat | cat > /dev/null\n"),
];

/// What the command has to do with beside the kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mishap {
    None,
    /// `TMPDIR` and results on a file system of 64 KiB.
    FullDisk,
    FewDescriptors,
    LittleMemory,
}

impl Mishap {
    const ALL: [Mishap; 4] = [Mishap::None, Mishap::FullDisk, Mishap::FewDescriptors, Mishap::LittleMemory];

    fn name(self) -> &'static str {
        match self {
            Mishap::None => "SIGKILL of any process at a random moment",
            Mishap::FullDisk => "the same on a full disk",
            Mishap::FewDescriptors => "the same with 12 to 64 descriptors",
            Mishap::LittleMemory => "the same with 16 to 64 MB of address space",
        }
    }
}

/// What was seen under one mishap.
#[derive(Default)]
struct Tally {
    commands: u64,
    kills: u64,
    /// Coordinator and janitor both died, so that `ipcmark clean` had to do it.
    cleaned: u64,
    wrong: Vec<String>,
}

/// Kills until it is enough, or `time` is over. One line for each mishap.
pub(super) fn rows(time: Duration) -> Result<Vec<Row>, String> {
    let start = Instant::now();
    let mut tallies: Vec<Tally> = Mishap::ALL.map(|_| Tally::default()).into();
    while start.elapsed() < time && tallies.iter().map(|tally| tally.kills).sum::<u64>() < ENOUGH {
        for (mishap, tally) in Mishap::ALL.into_iter().zip(&mut tallies) {
            one(mishap, tally)?;
        }
    }
    let row = |(mishap, tally): (Mishap, Tally)| {
        let Tally { commands, kills, cleaned, wrong } = tally;
        wrong.iter().for_each(|wrong| eprintln!("{}: {wrong}", mishap.name()));
        let found =
            wrong.first().map_or("nothing".to_owned(), |first| format!("**{} times**: {first}", wrong.len()));
        Row::new(
            mishap.name(),
            format!("{kills} kills in {commands} commands; {cleaned} were left to `clean`"),
            found,
        )
    };
    Ok(Mishap::ALL.into_iter().zip(tallies).map(row).collect())
}

/// A directory for one command, on a file system of its own where the disk is to be full.
struct Place {
    directory: tempfile::TempDir,
    is_mounted: bool,
}

impl Place {
    fn new(mishap: Mishap) -> Result<Self, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let is_mounted = mishap == Mishap::FullDisk;
        if is_mounted {
            let mut mount = Command::new("mount");
            mount
                .args(["-t", "tmpfs", "-o", "size=64k,nr_inodes=24,mode=0700", "none"])
                .arg(directory.path());
            let status = mount.status().map_err(|error| error.to_string())?;
            status.success().then_some(()).ok_or("a small tmpfs cannot be mounted")?;
        }
        let place = Self { directory, is_mounted };
        fs::create_dir(place.tmp()).map_err(|error| error.to_string())?;
        for (name, text) in PROGRAMS {
            let path = place.directory.path().join(name);
            let made = fs::write(&path, text)
                .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
            made.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(place)
    }

    fn tmp(&self) -> PathBuf {
        self.directory.path().join("tmp")
    }

    /// The processes that have this place's `TMPDIR`.
    fn processes(&self) -> Vec<i32> {
        let wanted = format!("TMPDIR={}", self.tmp().display());
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let has = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
        };
        pids.filter(has).collect()
    }

    fn leftovers(&self) -> Vec<String> {
        let entries = fs::read_dir(self.tmp()).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = Command::new("umount").arg("--lazy").arg(self.directory.path()).status();
        }
    }
}

/// One command under `mishap`, which loses a process or ends before.
fn one(mishap: Mishap, tally: &mut Tally) -> Result<(), String> {
    let mut random = rand::rng();
    let place = Place::new(mishap)?;
    let arguments = COMMANDS.choose(&mut random).copied().unwrap_or("doctor");
    let before = kernel_objects();
    let output = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let streams = output.reopen().and_then(|out| Ok((out.try_clone()?, out)));
    let (out, err) = streams.map_err(|error| error.to_string())?;
    let mut command = limited(mishap);
    let arguments = arguments.replace("{root}", &root().display().to_string());
    command.args(arguments.split_whitespace()).current_dir(place.directory.path()).env("TMPDIR", place.tmp());
    let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
    let mut child = child.map_err(|error| error.to_string())?;
    tally.commands += 1;
    std::thread::sleep(Duration::from_millis(random.random_range(0..LATEST_MS)));
    let victims = place.processes();
    let victim = victims.choose(&mut random).copied();
    let is_killed = victim.and_then(Pid::from_raw).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok());
    tally.kills += u64::from(is_killed);
    // What goes on by itself is not waited for: it is killed too, and that is one more death to survive.
    if random.random_bool(0.7) {
        tally.kills += u64::from(child.try_wait().is_ok_and(|ended| ended.is_none()) && child.kill().is_ok());
    }
    let mut wrong = |what: String| tally.wrong.push(format!("`{arguments}`: {what}"));
    if !wait_until(HANGS, || has_ended(&mut child)) {
        wrong(format!("it hangs after the death of a process: {:?}", place.processes()));
        let _ = child.kill();
        let _ = child.wait();
    }
    if !wait_until(GONE_WITHIN, || place.processes().is_empty()) {
        wrong("processes are left".to_owned());
    }
    let is_clean = || place.leftovers().is_empty() && kernel_objects() == before;
    if !wait_until(Duration::from_secs(1), is_clean) {
        tally.cleaned += 1;
        let cleaned =
            ipcmark().arg("clean").env("TMPDIR", place.tmp()).output().map_err(|error| error.to_string())?;
        if !cleaned.status.success() || !is_clean() {
            let objects: Vec<String> = kernel_objects().difference(&before).cloned().collect();
            wrong(format!("`clean` left {:?} and {objects:?}", place.leftovers()));
        }
    }
    let said =
        fs::read(output.path()).map(|said| String::from_utf8_lossy(&said).into_owned()).unwrap_or_default();
    if let Some(line) = said.lines().find(|line| line.contains("panicked")) {
        wrong(line.to_owned());
    }
    if let Some(problem) = unreadable(&place.directory.path().join("results.jsonl")) {
        wrong(problem);
    }
    Ok(())
}

/// What is wrong with the results file of a run that was killed: `report` must show it, or say that nothing was measured.
fn unreadable(path: &Path) -> Option<String> {
    if !path.exists() {
        return None;
    }
    let output = ipcmark().arg("report").arg(path).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let nothing_yet = ["is empty", "was cut off within its header"].iter().any(|known| said.contains(known));
    (!output.status.success() && !nothing_yet).then(|| format!("its results cannot be read: {said}"))
}

fn ipcmark() -> Command {
    Command::new(target("debug/ipcmark"))
}

/// `ipcmark` under the limits of `mishap`.
fn limited(mishap: Mishap) -> Command {
    let limit = match mishap {
        Mishap::None | Mishap::FullDisk => return ipcmark(),
        Mishap::FewDescriptors => format!("--nofile={}", rand::rng().random_range(12..=64)),
        Mishap::LittleMemory => format!("--as={}", rand::rng().random_range(16..=64_u64) << 20),
    };
    let mut command = Command::new("prlimit");
    command.arg(limit).arg(target("debug/ipcmark"));
    command
}

fn has_ended(child: &mut Child) -> bool {
    child.try_wait().is_ok_and(|ended| ended.is_some())
}

fn wait_until(limit: Duration, mut what: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if what() {
            return true;
        }
        if start.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The System V objects, POSIX shared memory and POSIX queues of this namespace. The campaign has mounted the queues.
fn kernel_objects() -> BTreeSet<String> {
    let sysv = ["msg", "sem", "shm"].into_iter().flat_map(|kind| {
        let table = fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap_or_default();
        let keys = table.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        keys.map(|key| format!("{kind} {key}")).collect::<Vec<_>>()
    });
    let directories = [PathBuf::from("/dev/shm"), std::env::temp_dir().join("mqueue")];
    let posix = directories.into_iter().flat_map(fs::read_dir).flatten().flatten();
    sysv.chain(posix.map(|entry| entry.path().display().to_string())).collect()
}
