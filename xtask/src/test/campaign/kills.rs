//! Processes of ipcmark killed at random moments, and what is left then: of processes, files, kernel objects and results.

use super::place::{Place, ipcmark};
use super::row::Row;
use crate::steps::{root, target};
use rand::Rng;
use rand::seq::IndexedRandom;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// How many kills are enough.
const ENOUGH: u64 = 1000;
/// The longest that a command waits before it is killed, in milliseconds.
const LATEST_MS: u64 = 1500;

/// Every command that starts processes or writes files, with endpoints that make names of every kind. `{root}` is this repository, and
/// the programs `via` and `pipeline` are beside it.
const COMMANDS: [&str; 15] = [
    "run pipe fifo sysv-msg posix-mq sysv-sem --time 2s -o results.jsonl",
    "run shm-ring:memory=posix,wait=sysv-sem shm-ring:memory=sysv shm-ring:memory=file --time 2s",
    "run unix-stream:name=path file-pass shm-queue:lock=sysv-sem --time 2s -o results.jsonl",
    "run shm semop memory:memory=sysv process --time 2s",
    "run tcp unix-seqpacket --peers fan-in=3 --time 2s",
    "run pipe --explain --time 1s -o results.jsonl",
    "compare fifo unix-stream --time 2s",
    "explain fifo --time 1s",
    "doctor",
    "run tcp udp unix-stream:name=path sysv-msg --server-via ./via --time 2s -o results.jsonl",
    "run tcp fifo --client-via ./via --server-via ./via -s 1 --time 2s -o results.jsonl",
    "record --time 1s -o scenario.toml -- ./pipeline",
    "replay {root}/scenarios/barefoot-datagram.toml --time 2s",
    "predict {root}/scenarios/pgbench.toml --set pgbench-postgres=unix-stream --measure 2s",
    "advise --pattern request-reply --size 64 --needs descriptors --time 2s",
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
        let done = format!("{kills} kills in {commands} commands; {cleaned} were left to `clean`");
        Row::found(mishap.name(), done, &wrong)
    };
    Ok(Mishap::ALL.into_iter().zip(tallies).map(row).collect())
}

/// One command under `mishap`, which loses a process or ends before.
fn one(mishap: Mishap, tally: &mut Tally) -> Result<(), String> {
    let mut random = rand::rng();
    let place = Place::new(mishap == Mishap::FullDisk)?;
    let arguments = COMMANDS.choose(&mut random).copied().unwrap_or("doctor");
    let arguments = arguments.replace("{root}", &root().display().to_string());
    let before = kernel_objects();
    let mut command = limited(mishap);
    command.args(arguments.split_whitespace());
    let mut started = place.start(command)?;
    tally.commands += 1;
    std::thread::sleep(Duration::from_millis(random.random_range(0..LATEST_MS)));
    tally.kills += u64::from(started.kill_one(|victims| victims.choose(&mut random).copied()));
    // What goes on by itself is not waited for: it is killed too, and that is one more death to survive.
    if random.random_bool(0.7) {
        tally.kills += u64::from(started.kill());
    }
    let aftermath = started.aftermath(|| kernel_objects().difference(&before).cloned().collect())?;
    tally.cleaned += u64::from(aftermath.is_cleaned);
    tally.wrong.extend(aftermath.wrong.into_iter().map(|what| format!("`{arguments}`: {what}")));
    Ok(())
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
