//! Runs between two hosts that lose a process, or the link between them, at a random moment, and what is left on either side then.
//!
//! The hosts are network namespaces, and the command between them is ssh to a real sshd, whose own processes are not ours and are not
//! counted. Most of the time is spent in waiting for deadlines, so that several pairs of hosts are at work at once.

use super::place::{Aftermath, Place, ipcmark, wait_until};
use super::row::Row;
use crate::steps::target;
use crate::test::namespaces::Namespaces;
use rand::Rng;
use rand::seq::IndexedRandom;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many kills, and how many cuts, are enough.
const ENOUGH: u64 = 100;
/// How many pairs of hosts there are.
const PAIRS: usize = 4;
/// The longest that a run goes on before it loses something, in milliseconds. It begins by reaching the other host.
const LATEST_MS: u64 = 6000;
const SSHD: &str = "/usr/sbin/sshd";

/// What is on the other host: `{via}` reaches it.
const RUNS: [&str; 3] = [
    "--server-via {via}",
    "--client-via {via} --server-address {local}",
    "--client-via {via} --server-via {via}",
];

/// What is lost.
#[derive(Debug, Clone, Copy)]
enum Loss {
    Process,
    Link,
}

/// What was seen of one loss, by all pairs of hosts together.
#[derive(Default)]
struct Tally {
    losses: u64,
    cleaned: u64,
    wrong: Vec<String>,
}

/// Loses until it is enough, or `time` is over. One line for each loss.
pub(super) fn rows(time: Duration) -> Vec<Row> {
    const PARTS: [(Loss, &str); 2] = [
        (Loss::Process, "two hosts, by ssh: SIGKILL of any process at a random moment"),
        (Loss::Link, "two hosts, by ssh: the link is cut at a random moment"),
    ];
    if !Path::new(SSHD).exists() {
        return vec![Row::new("two hosts", "not run", "sshd is not installed; install openssh-server")];
    }
    let part = |(loss, name)| match lose(loss, time / PARTS.len() as u32) {
        Ok(Tally { losses, cleaned, wrong }) => {
            Row::found(name, format!("{losses} times; {cleaned} were left to `clean`"), &wrong)
        }
        Err(error) => Row::new(name, "not run", error),
    };
    PARTS.map(part).into()
}

/// Loses in every pair of hosts at once.
fn lose(loss: Loss, time: Duration) -> Result<Tally, String> {
    let (start, count) = (Instant::now(), AtomicU64::new(0));
    let in_a_pair = |number| -> Result<Tally, String> {
        let hosts = TwoHosts::new(number)?;
        let mut tally = Tally::default();
        while start.elapsed() < time && count.load(Ordering::Relaxed) < ENOUGH {
            let Some(aftermath) = hosts.one(loss)? else { continue };
            count.fetch_add(1, Ordering::Relaxed);
            tally.losses += 1;
            tally.cleaned += u64::from(aftermath.is_cleaned);
            tally.wrong.extend(aftermath.wrong);
        }
        Ok(tally)
    };
    let tallies = std::thread::scope(|scope| {
        let pairs: Vec<_> = (0..PAIRS).map(|number| scope.spawn(move || in_a_pair(number))).collect();
        pairs
            .into_iter()
            .map(|pair| pair.join().map_err(|_| "a thread of it panicked")?)
            .collect::<Result<Vec<_>, String>>()
    })?;
    Ok(tallies.into_iter().fold(Tally::default(), |mut all, tally| {
        all.losses += tally.losses;
        all.cleaned += tally.cleaned;
        all.wrong.extend(tally.wrong);
        all
    }))
}

/// Two network namespaces, of which the second has an sshd. All of it goes when this is dropped.
struct TwoHosts {
    namespaces: Namespaces,
    /// The keys of sshd and of its user.
    keys: tempfile::TempDir,
    sshd: Option<Child>,
}

impl TwoHosts {
    fn new(number: usize) -> Result<Self, String> {
        let keys = tempfile::tempdir().map_err(|error| error.to_string())?;
        let namespaces = Namespaces::new(&format!("ipcmark-campaign-{number}"), &format!("10.214.{number}"))?;
        let mut hosts = Self { namespaces, keys, sshd: None };
        hosts.start_sshd()?;
        Ok(hosts)
    }

    fn start_sshd(&mut self) -> Result<(), String> {
        // It refuses to start without this directory.
        fs::create_dir_all("/run/sshd").map_err(|error| error.to_string())?;
        for key in ["host", "user"] {
            let mut command = Command::new("ssh-keygen");
            let made = command.args(["-q", "-N", "", "-t", "ed25519", "-f", &self.key(key)]).status();
            made.is_ok_and(|status| status.success()).then_some(()).ok_or("ssh-keygen makes no key")?;
        }
        let mut command = self.inside(1);
        command.args([SSHD, "-D", "-e", "-f", "/dev/null", "-p", "2222", "-h", &self.key("host")]);
        for option in
            ["StrictModes=no", "PidFile=none", "UsePAM=no", "PermitRootLogin=yes", "MaxStartups=100"]
        {
            command.args(["-o", option]);
        }
        command.args(["-o", &format!("AuthorizedKeysFile={}", self.key("user.pub"))]);
        let sshd = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.sshd = Some(sshd.map_err(|error| format!("{SSHD}: {error}"))?);
        let reaches = || {
            let mut command = self.inside(0);
            let true_there = command.args(self.ssh().split(' ')).arg("true").stderr(Stdio::null()).status();
            true_there.is_ok_and(|status| status.success())
        };
        wait_until(Duration::from_secs(15), reaches).then_some(()).ok_or("sshd cannot be reached".to_owned())
    }

    fn key(&self, name: &str) -> String {
        self.keys.path().join(name).display().to_string()
    }

    /// The command that reaches the remote host.
    fn ssh(&self) -> String {
        format!(
            "ssh -p 2222 -i {} -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR {}",
            self.key("user"),
            self.namespaces.addresses[1]
        )
    }

    /// A command on the host of `side`, whose words follow.
    fn inside(&self, side: usize) -> Command {
        let [program, arguments @ ..] = self.namespaces.inside(side);
        let mut command = Command::new(program);
        command.args(arguments);
        command
    }

    /// One run, which has `loss`; `None` if it ended before.
    fn one(&self, loss: Loss) -> Result<Option<Aftermath>, String> {
        let mut random = rand::rng();
        let place = Place::new(false)?;
        let via = format!("{} env TMPDIR={}", self.ssh(), place.tmp().display());
        let sides = RUNS.choose(&mut random).copied().unwrap_or(RUNS[0]);
        let mut command = self.inside(0);
        command.arg(ipcmark().get_program()).args(["run", "tcp", "udp", "-s", "1,64K"]);
        command.args(["--time", "8s", "--timeout", "3s", "-o", "results.jsonl", "--via-program"]);
        command.arg(target("debug/ipcmark"));
        command.args(sides.split(' ').map(|word| match word {
            "{via}" => via.as_str(),
            "{local}" => self.namespaces.addresses[0].as_str(),
            word => word,
        }));
        let mut started = place.start(command)?;
        std::thread::sleep(Duration::from_millis(random.random_range(0..LATEST_MS)));
        let is_lost = match loss {
            Loss::Process => started.kill_one(|victims| victims.choose(&mut random).copied()),
            Loss::Link => {
                self.namespaces.link(false)?;
                !started.has_ended()
            }
        };
        let aftermath = started.aftermath(Vec::new)?;
        self.namespaces.link(true)?;
        let wrong = aftermath.wrong.into_iter().map(|what| format!("{loss:?}, `{sides}`: {what}")).collect();
        Ok(is_lost.then_some(Aftermath { wrong, ..aftermath }))
    }
}

impl Drop for TwoHosts {
    fn drop(&mut self) {
        if let Some(sshd) = &mut self.sshd {
            let _ = sshd.kill();
            let _ = sshd.wait();
        }
    }
}
