//! A copy of this program on the other side of a command, for one run. One command there makes it, in a directory that nobody else
//! can enter, and holds it: it removes it when its input ends or falls silent, whatever became of this side. What is safe to
//! remove is for `leftovers` to say.

use super::heartbeat::Heartbeat;
use super::leftovers::{Found, PUSHED_PREFIX, find};
use super::own_child::{OwnChild, streams};
use super::via::Via;
use crate::clock::Timer;
use crate::protocol::channel::{Channel, wait_any};
use crate::protocol::frame::as_text;
use model::visible::{Commands, visible};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::{read, write};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sys::{Errno, Failure, OrFail};

/// The hidden sub-command by which a copy holds its own directory, and removes it at the end.
pub const HOLDER: &str = "__hold";
/// How long copying may take, from the start of the command.
const COPY_WITHIN: Duration = Duration::from_secs(120);
/// How long removing may take.
const REMOVE_WITHIN: Duration = Duration::from_secs(10);
/// How long a holder goes on without a word: longer than endpoints do, for without it there is no other trial.
const SILENCE: Duration = Duration::from_secs(30);
/// The first word of the line that has the path.
const COPIED_TO: &str = "ipcmark-push";
/// What a holder says when the copy is its own.
const HELD: &str = "held";
/// The longest line that is read.
const LONGEST_LINE: usize = 4096;

/// What the shell on the other side does. It reads this from its input, so that no quoting and no command line is in the way, and to its
/// end before it begins: it is one group. Nobody can foresee the name that mktemp gives, or enter the directory. `tee` keeps its
/// output open, which a file would not: containerd takes a command that closes it for done, and closes its input.
const SCRIPT: &str = r#"{
umask 077
fail() { echo "ipcmark: $*" >&2; exit 1; }
parent=$(cd -- "${TMPDIR:-/tmp}" && pwd -P) || exit
user=$(id -u) || exit
set -- $(ls -nd "$parent")
case "$1 $3" in
d????????[tT]*) ;;
d????-??-*" 0" | d????-??-*" $user") ;;
*) fail "others may rename what lies in $parent: set TMPDIR to a directory of your own" ;;
esac
# A signal between the directory and the line that sees to it would leave it.
trap '' HUP INT TERM PIPE
made=$(mktemp -d "$parent/$prefix"XXXXXX) || exit
trap 'rm -f "$made/ipcmark"; rmdir "$made"' EXIT
trap 'exit 1' HUP INT TERM PIPE
set -- $(ls -nd "$made")
case "$1 $3" in
drwx--[S-]---*" $user") ;;
*) fail "$made is not a directory of this user's alone" ;;
esac
echo "$copied_to $made/ipcmark"
timeout "$limit_s" head -c "$bytes" | tee "$made/ipcmark"
[ "$(timeout "$limit_s" head -c 3)" = run ] || exit
chmod 700 "$made/ipcmark"
"$made/ipcmark" "$holder" && trap - EXIT
exit
}
"#;

/// A copy of this program elsewhere. It is removed when this is dropped.
#[derive(Debug)]
pub struct PushedProgram {
    path: String,
    via: Via,
    /// What the holder listens to.
    channel: Option<Channel>,
    holder: OwnChild,
    _heartbeat: Heartbeat,
}

impl PushedProgram {
    /// Copies this program by `via` into a fresh directory there.
    pub fn push(via: &Via, interrupted: &AtomicBool) -> Result<Self, Failure> {
        let program = std::fs::read("/proc/self/exe").or_fail("read", "/proc/self/exe")?;
        let heartbeat = Heartbeat::start()?;
        let (input, output, holder) = streams(&mut via.command(&["sh"]), via)?;
        let copying = Copying { input, output, via, interrupted, timer: Timer::start() };
        match copying.copy(&program) {
            Ok(path) => {
                let channel = Channel::over_streams(copying.input, copying.output);
                heartbeat.add(&channel);
                let via = via.clone();
                Ok(Self { path, via, channel: Some(channel), holder, _heartbeat: heartbeat })
            }
            Err(failure) => {
                // The other side removes what there is when its input ends.
                drop(copying);
                holder.wait_within(REMOVE_WITHIN);
                Err(failure)
            }
        }
    }

    /// Its path there.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for PushedProgram {
    fn drop(&mut self) {
        drop(self.channel.take());
        if !self.holder.wait_within(REMOVE_WITHIN) {
            let Self { via, path, .. } = self;
            let silence_s = SILENCE.as_secs();
            let text = format!(
                "ipcmark: '{via}' does not end: {path} removes itself there within {silence_s} s, or else 'ipcmark clean' does"
            );
            let _ = writeln!(std::io::stderr(), "{}", visible(&text, Commands::None));
        }
    }
}

/// A copy under way.
struct Copying<'a> {
    input: OwnedFd,
    output: OwnedFd,
    via: &'a Via,
    interrupted: &'a AtomicBool,
    timer: Timer,
}

impl Copying<'_> {
    /// Has `program` copied, compared and held. Returns its path.
    fn copy(&self, program: &[u8]) -> Result<String, Failure> {
        let (bytes, limit_s) = (program.len(), COPY_WITHIN.as_secs());
        let values = format!(
            "bytes={bytes} limit_s={limit_s} prefix={PUSHED_PREFIX} copied_to={COPIED_TO} holder={HOLDER}"
        );
        self.pass(format!("{values}\n{SCRIPT}").as_bytes(), &[])?;
        let line = self.line()?;
        let Some(path) = path_in(&line) else {
            return Err(self.failure(format!("it says '{}' instead of where the copy is", shown(&line))));
        };
        // What comes back tells what has arrived.
        self.pass(program, program)?;
        self.pass(b"run", &[])?;
        match self.line()? {
            line if line == HELD => Ok(path.to_owned()),
            line => Err(self.failure(format!("the copy says '{}' where it was started", shown(&line)))),
        }
    }

    /// Sends `rest`, and takes `echo` meanwhile and afterwards.
    fn pass(&self, mut rest: &[u8], mut echo: &[u8]) -> Result<(), Failure> {
        let other = || self.failure("what arrived there is another file, or a part of it");
        while !rest.is_empty() || !echo.is_empty() {
            let [comes, goes] = self.ready(!echo.is_empty(), !rest.is_empty())?;
            if comes {
                let mut came = [0; 1 << 16];
                let got = self.read(&mut came[..echo.len().min(1 << 16)])?;
                if got == 0 || came[..got] != echo[..got] {
                    return Err(other());
                }
                echo = &echo[got..];
            }
            if goes {
                match write(&self.output, rest) {
                    Ok(sent) => rest = &rest[sent..],
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(_) if echo.is_empty() => return Err(self.ended()),
                    Err(_) => return Err(other()),
                }
            }
        }
        Ok(())
    }

    /// The next line.
    fn line(&self) -> Result<String, Failure> {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') && line.len() < LONGEST_LINE {
            self.ready(true, false)?;
            let mut byte = [0];
            if self.read(&mut byte)? == 0 {
                return Err(self.ended());
            }
            line.push(byte[0]);
        }
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }

    fn read(&self, into: &mut [u8]) -> Result<usize, Failure> {
        loop {
            match read(&self.input, &mut *into) {
                Err(Errno::INTR) => {}
                answer => return answer.or_fail("read", format!("what '{}' says", self.via)),
            }
        }
    }

    /// Waits until something comes, or something may go, of what is wanted.
    fn ready(&self, wants_input: bool, wants_output: bool) -> Result<[bool; 2], Failure> {
        /// A signal that comes just before the wait is seen after this.
        const AT_ONCE: Duration = Duration::from_millis(200);
        let wanted = |is_wanted, flag| if is_wanted { flag } else { PollFlags::empty() };
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(self.failure("the run was interrupted"));
            }
            if self.timer.elapsed() >= COPY_WITHIN {
                return Err(Failure::from_errno(
                    "push",
                    format!("this program by '{}'", self.via),
                    Errno::TIMEDOUT,
                ));
            }
            let mut fds = [
                PollFd::new(&self.input, wanted(wants_input, PollFlags::IN)),
                PollFd::new(&self.output, wanted(wants_output, PollFlags::OUT)),
            ];
            let limit = AT_ONCE.try_into().ok();
            match poll(&mut fds, limit.as_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => {
                    let is_ready = [0, 1].map(|at| !fds[at].revents().is_empty());
                    return Ok([is_ready[0] && wants_input, is_ready[1] && wants_output]);
                }
                Err(errno) => return Err(Failure::from_errno("poll", format!("'{}'", self.via), errno)),
            }
        }
    }

    fn ended(&self) -> Failure {
        self.failure("the command ended before the copy was held")
    }

    fn failure(&self, answer: impl Into<String>) -> Failure {
        let next = "see what the command says; it must pass all input and output on unchanged, and a copy needs sh, mktemp, ls, id, \
                    timeout, head, tee, chmod and rm there, and a TMPDIR or /tmp from which programs may run";
        Failure::new("push", format!("this program by '{}'", self.via), answer, next)
    }
}

/// As much of `line` as may be shown.
fn shown(line: &str) -> String {
    as_text(line.as_bytes()).unwrap_or_default()
}

/// The path in the line that has it. It becomes a word of a command, which a shell may read once more.
fn path_in(line: &str) -> Option<&str> {
    let path = line.strip_prefix(COPIED_TO)?.strip_prefix(' ')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    (path.starts_with('/') && path.ends_with("/ipcmark") && path.chars().all(is_plain)).then_some(path)
}

/// The holder: locks the directory that this program lies in, and removes it when standard input ends or nothing comes any more.
pub fn hold() -> Result<(), Failure> {
    let program = std::env::current_exe().or_fail("readlink", "/proc/self/exe")?;
    let found = program.parent().map_or(Ok(Found::Foreign), find)?;
    let Found::Ours(own) = found else {
        let answer = "it is not in a directory of its own that nobody else holds";
        return Err(Failure::new("hold", program.display(), answer, "give --push once more"));
    };
    // Whoever does not hear this closes standard input.
    let _ = writeln!(std::io::stdout(), "{HELD}");
    let input = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3).or_fail("dup", "standard input")?;
    let input = Channel::from(input);
    loop {
        match wait_any(&[&input], SILENCE) {
            Ok(Some(_)) => match read(&input, &mut [0; 512]) {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => break,
            },
            Err(Errno::INTR) => {}
            Ok(None) | Err(_) => break,
        }
    }
    own.remove()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_only_if_no_shell_reads_anything_in_it() {
        assert_eq!(path_in("ipcmark-push /tmp/ipcmark-push-a/ipcmark"), Some("/tmp/ipcmark-push-a/ipcmark"));
        for line in [
            "Welcome",
            "ipcmark-push",
            "ipcmark-push /tmp/a",
            "ipcmark-push a/ipcmark",
            "ipcmark-push /tmp/$(id)/ipcmark",
            "ipcmark-push /tmp/a b/ipcmark",
            "ipcmark-push /tmp/a;b/ipcmark",
        ] {
            assert_eq!(path_in(line), None, "{line}");
        }
    }
}
