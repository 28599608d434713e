//! A command that reaches another host or other namespaces, as `ssh host` does: what is to run there is appended to it. It runs
//! nothing itself.

use super::reexecution::nowhere;
use model::Invalid;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use sys::{Failure, OrFail};

/// The words that make the binary an endpoint over its standard streams.
pub const ENDPOINT: &str = "endpoint";

/// A command whose standard input and output reach a program elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Via(Vec<String>);

impl Via {
    /// The words of `text`, which are parted and quoted as in a shell; nothing in them is expanded.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let words = shlex::split(text).ok_or_else(|| {
            Invalid::new(
                format!("the command '{text}' ends within a quotation"),
                "close it, or quote the quote",
            )
        })?;
        Self::from_words(words)
    }

    /// Of words that are parted already.
    pub fn from_words(words: Vec<String>) -> Result<Self, Invalid> {
        if words.is_empty() {
            return Err(Invalid::new(
                "the command is empty",
                "give one such as 'ssh HOST' or 'ip netns exec NAME'",
            ));
        }
        Ok(Self(words))
    }

    /// The command with `words` appended, in a process group of its own, so that Ctrl-C reaches the coordinator alone.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.0[0]);
        command.args(&self.0[1..]).args(words).process_group(0);
        command
    }

    /// What the command with `words` appended says on standard output.
    pub fn output(&self, words: &[&str]) -> Result<String, Failure> {
        let output = self.command(words).stdin(nowhere()?).stderr(Stdio::inherit()).output();
        let output = output.or_fail("start", format!("the command '{self}'"))?;
        if !output.status.success() {
            let next = "see what it says on standard error";
            return Err(Failure::new(
                "run",
                format!("'{self} {}'", words.join(" ")),
                output.status.to_string(),
                next,
            ));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The words of the command.
    pub fn words(&self) -> &[String] {
        &self.0
    }
}

impl std::fmt::Display for Via {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parted_as_in_a_shell_and_nothing_is_expanded() {
        let via = Via::parse("ssh -o 'ProxyCommand=nc -x $HOME %h' host").unwrap();
        assert_eq!(via.words(), ["ssh", "-o", "ProxyCommand=nc -x $HOME %h", "host"]);
        let command = via.command(&["ipcmark", ENDPOINT]);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words[2..], ["host", "ipcmark", "endpoint"]);
        assert!(Via::parse("ssh 'host").unwrap_err().problem.contains("quotation"));
        assert!(Via::parse("  ").unwrap_err().problem.contains("empty"));
    }
}
