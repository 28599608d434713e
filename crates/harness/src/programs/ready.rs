//! By what it is known that servers can be used, as it is typed, and commands as a shell has them.

use model::Invalid;
use model::invalid::printable;
use std::ffi::OsString;
use std::str::FromStr;

/// By what it is known that servers can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ready {
    /// Each listens somewhere.
    Listening,
    /// One listens on this TCP port.
    Port(u16),
    /// One has printed this.
    Line(String),
    /// This command succeeds.
    Command(Vec<OsString>),
}

impl FromStr for Ready {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if let Some(line) = text.strip_prefix("line=") {
            return Ok(Ready::Line(line.to_owned()));
        }
        match text.parse() {
            Ok(0) => Err(Invalid::new("'0' is no port", "give a number from 1 to 65535")),
            Ok(port) => Ok(Ready::Port(port)),
            Err(_) => words(text).map(Ready::Command),
        }
    }
}

/// The words of a command, as a shell splits them.
pub fn words(text: &str) -> Result<Vec<OsString>, Invalid> {
    match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(words.into_iter().map(OsString::from).collect()),
        _ => Err(Invalid::new(
            format!("'{}' is no command", printable(text)),
            "give a program and its arguments, with quotes as in a shell; for pipes and variables, sh -c '...'",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_ready_by_port_line_or_command() {
        assert_eq!("7777".parse(), Ok(Ready::Port(7777)));
        assert_eq!("line=Ready to accept".parse(), Ok(Ready::Line("Ready to accept".to_owned())));
        let command = ["pg_isready", "-p", "5 4"].map(OsString::from).to_vec();
        assert_eq!("pg_isready -p '5 4'".parse(), Ok(Ready::Command(command)));
        assert!(
            "".parse::<Ready>().is_err() && "'x".parse::<Ready>().is_err() && "0".parse::<Ready>().is_err()
        );
    }
}
