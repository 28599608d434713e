//! What a guard and whoever started it say to each other: short texts over a pair of sockets that keep messages apart.

use crate::usage::ProgramUsage;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// The word by which a guard filters the calls of its program.
pub(crate) const FILTERED: &str = "filtered";
/// To the guard: start the program.
pub(crate) const GO: &[u8] = b"go";
/// To the guard: ask the program to end (SIGTERM).
pub(crate) const STOP: &[u8] = b"stop";

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// As wait(2) has it.
    pub status: ExitStatus,
    /// What it has used, with all that it waited for.
    pub usage: ProgramUsage,
}

/// What a guard says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// It is there; the listener comes with it, where calls are filtered.
    Listening,
    /// The kernel allows no filter: its answer, and what to do.
    Refused(String, String),
    /// The program runs.
    Started,
    /// It cannot be started, and why.
    NotStarted(String),
    /// It has ended.
    Ended(Ended),
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Listening => f.write_str("listening"),
            Message::Refused(answer, next) => write!(f, "refused {answer}\n{next}"),
            Message::Started => f.write_str("started"),
            Message::NotStarted(why) => write!(f, "not-started {why}"),
            Message::Ended(Ended { status, usage: ProgramUsage { cpu_ns, switches, peak_bytes } }) => {
                write!(f, "ended {} {cpu_ns} {switches} {peak_bytes}", status.into_raw())
            }
        }
    }
}

impl Message {
    /// What [`fmt::Display`] wrote; `None` of any other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "listening" => Some(Message::Listening),
            "refused" => {
                let (answer, next) = rest.split_once('\n')?;
                Some(Message::Refused(answer.to_owned(), next.to_owned()))
            }
            "started" => Some(Message::Started),
            "not-started" => Some(Message::NotStarted(rest.to_owned())),
            "ended" => {
                let numbers: Vec<u64> = rest.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
                let [status, cpu_ns, switches, peak_bytes] = numbers[..] else { return None };
                let status = ExitStatus::from_raw(i32::try_from(status).ok()?);
                Some(Message::Ended(Ended { status, usage: ProgramUsage { cpu_ns, switches, peak_bytes } }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_are_written() {
        let usage = ProgramUsage { cpu_ns: 5, switches: 6, peak_bytes: 7 };
        for message in [
            Message::Listening,
            Message::Refused("no such call".to_owned(), "take another kernel".to_owned()),
            Message::Started,
            Message::NotStarted("no such file or directory".to_owned()),
            Message::Ended(Ended { status: ExitStatus::from_raw(0x100), usage }),
        ] {
            assert_eq!(Message::parse(&message.to_string()), Some(message));
        }
        assert_eq!(Message::parse("ended 1 2"), None);
        assert_eq!(Message::parse(""), None);
    }
}
