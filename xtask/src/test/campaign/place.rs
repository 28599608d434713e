//! A command in a directory of its own, and what is wrong there after one of its processes was lost. It does not choose what is lost.

use crate::steps::target;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// When a command hangs that lost something.
const HANGS: Duration = Duration::from_secs(60);
/// Within what time its processes must be gone: an endpoint elsewhere misses its coordinator after 5 seconds.
const GONE_WITHIN: Duration = Duration::from_secs(10);
/// Within what time janitors have removed what has a name.
const CLEAN_WITHIN: Duration = Duration::from_secs(1);

/// What commands have to do with: a command in the middle, as ssh is, and something to record.
const PROGRAMS: [(&str, &str); 2] = [
    ("via", "#!/bin/sh\n\"$@\"\nexit $?\n"),
    ("pipeline", "#!/bin/sh\nhead -c 20000000 /dev/zero | cat | cat > /dev/null\n"),
];

/// A directory for one command, on a file system of its own where the disk is to be full.
pub struct Place {
    directory: tempfile::TempDir,
    is_mounted: bool,
}

impl Place {
    /// A fresh one; of 64 KiB if `is_small`.
    pub fn new(is_small: bool) -> Result<Self, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        if is_small {
            let mut mount = Command::new("mount");
            mount
                .args(["-t", "tmpfs", "-o", "size=64k,nr_inodes=24,mode=0700", "none"])
                .arg(directory.path());
            let status = mount.status().map_err(|error| error.to_string())?;
            status.success().then_some(()).ok_or("a small tmpfs cannot be mounted")?;
        }
        let place = Self { directory, is_mounted: is_small };
        fs::create_dir(place.tmp()).map_err(|error| error.to_string())?;
        for (name, text) in PROGRAMS {
            let path = place.path(name);
            let made = fs::write(&path, text)
                .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
            made.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(place)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The `TMPDIR` of what is started here.
    pub fn tmp(&self) -> PathBuf {
        self.path("tmp")
    }

    /// Starts `command` here.
    pub fn start(self, mut command: Command) -> Result<Started, String> {
        let output = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let streams = output.reopen().and_then(|out| Ok((out.try_clone()?, out)));
        let (out, err) = streams.map_err(|error| error.to_string())?;
        command.current_dir(self.directory.path()).env("TMPDIR", self.tmp());
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        let child = child.map_err(|error| format!("{command:?}: {error}"))?;
        Ok(Started { place: self, child, output })
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

/// A command that was started.
pub struct Started {
    place: Place,
    child: Child,
    output: tempfile::NamedTempFile,
}

/// What was seen after a loss.
#[derive(Default)]
pub struct Aftermath {
    /// What went wrong.
    pub wrong: Vec<String>,
    /// Whether `ipcmark clean` had to remove something, as where coordinator and janitor both died.
    pub is_cleaned: bool,
}

impl Started {
    /// Kills the process that `choose` takes; whether it could.
    pub fn kill_one(&self, choose: impl FnOnce(&[i32]) -> Option<i32>) -> bool {
        let victim = choose(&self.place.processes()).and_then(Pid::from_raw);
        victim.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
    }

    /// Kills the command itself; whether it was still there.
    pub fn kill(&mut self) -> bool {
        !self.has_ended() && self.child.kill().is_ok()
    }

    /// Waits until all is over. What is left then: of processes, of files, of what `others` counts, and of the results.
    pub fn aftermath(mut self, others: impl Fn() -> Vec<String>) -> Result<Aftermath, String> {
        let mut aftermath = Aftermath::default();
        if !wait_until(HANGS, || self.has_ended()) {
            aftermath.wrong.push(format!("it hangs, with the processes {:?}", self.place.processes()));
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        let place = &self.place;
        if !wait_until(GONE_WITHIN, || place.processes().is_empty()) {
            aftermath.wrong.push("processes are left".to_owned());
        }
        let left = || [place.leftovers(), others()].concat();
        if !wait_until(CLEAN_WITHIN, || left().is_empty()) {
            aftermath.is_cleaned = true;
            let cleaned = ipcmark().arg("clean").env("TMPDIR", place.tmp()).output();
            let is_clean = cleaned.map_err(|error| error.to_string())?.status.success();
            if !is_clean || !left().is_empty() {
                aftermath.wrong.push(format!("`clean` left {:?}", left()));
            }
        }
        let said = fs::read(self.output.path()).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        aftermath.wrong.extend(said.lines().find(|line| line.contains("panicked")).map(str::to_owned));
        aftermath.wrong.extend(unreadable(&place.path("results.jsonl")));
        Ok(aftermath)
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_some())
    }
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

/// The program that the campaign built.
pub fn ipcmark() -> Command {
    Command::new(target("debug/ipcmark"))
}

pub fn wait_until(limit: Duration, mut what: impl FnMut() -> bool) -> bool {
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
