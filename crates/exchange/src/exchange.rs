//! Which sockets and pipes of a program are exchanged for what, as it is typed: `tcp:7777=unix-stream:sndbuf=1M`.

use crate::settings::Setting;
use crate::target::{TARGETS, Target};
use model::Invalid;
use model::invalid::printable;
use rustix::fd::AsFd;
use std::fmt;
use std::str::FromStr;

/// Sockets or pipes that a program sets up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// TCP connections over loopback: to a port, or to any.
    Tcp(Option<u16>),
    /// UDP sockets: bound or connected to a port, or all.
    Udp(Option<u16>),
    /// Unix stream sockets.
    UnixStream,
    /// Unix datagram sockets.
    UnixDgram,
    /// Pipes.
    Pipe,
}

/// One exchange.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramExchange {
    /// What is exchanged.
    pub source: Source,
    /// What takes its place.
    pub target: Target,
    pub(crate) settings: Vec<Setting>,
}

/// The exchanges that one variant of a program makes; with none, the program is as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramExchanges(pub Vec<ProgramExchange>);

const SOURCES: [&str; 5] = ["tcp", "udp", "unix-stream", "unix-dgram", "pipe"];

impl Source {
    /// What may take its place.
    pub fn targets(&self) -> &'static [Target] {
        match self {
            Source::Tcp(_) => &[Target::UnixStream, Target::Tcp, Target::Sockmap, Target::Mptcp, Target::Smc],
            Source::Udp(_) => &[Target::Udp],
            Source::UnixStream => &[Target::UnixStream],
            Source::UnixDgram => &[Target::UnixDgram],
            Source::Pipe => &[Target::Pipe, Target::UnixStream],
        }
    }

    /// The mechanism that it is.
    pub fn name(&self) -> &'static str {
        match self {
            Source::Tcp(_) => "tcp",
            Source::Udp(_) => "udp",
            Source::UnixStream => "unix-stream",
            Source::UnixDgram => "unix-dgram",
            Source::Pipe => "pipe",
        }
    }
}

impl FromStr for Source {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        };
        let number = port.map(|port| match port.parse() {
            Ok(0) | Err(_) => Err(Invalid::new(
                format!("'{}' is no port", printable(port)),
                "give a number from 1 to 65535",
            )),
            Ok(number) => Ok(number),
        });
        let source = match name {
            "tcp" => return Ok(Source::Tcp(number.transpose()?)),
            "udp" => return Ok(Source::Udp(number.transpose()?)),
            "unix-stream" => Source::UnixStream,
            "unix-dgram" => Source::UnixDgram,
            "pipe" => Source::Pipe,
            _ => return Err(Invalid::unknown("kind of socket or pipe that is exchanged", name, SOURCES)),
        };
        match port {
            None => Ok(source),
            Some(_) => Err(Invalid::new(
                format!("'{}' has no ports", printable(name)),
                format!("give {name} alone, for all that the program has"),
            )),
        }
    }
}

impl FromStr for ProgramExchange {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let Some((source, replacement)) = text.split_once('=') else {
            return Err(Invalid::new(
                format!("'{}' is no exchange", printable(text)),
                "give it as tcp:7777=unix-stream, or tcp=tcp:nodelay=on",
            ));
        };
        let source: Source = source.parse()?;
        let (name, settings) = match replacement.split_once(':') {
            Some((name, settings)) => (name, Some(settings)),
            None => (replacement, None),
        };
        let allowed =
            || TARGETS.iter().filter(|(_, target)| source.targets().contains(target)).map(|(name, _)| *name);
        let target = TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target);
        let Some(target) = target.filter(|target| source.targets().contains(target)) else {
            return Err(Invalid::unknown(&format!("replacement of {}", source.name()), name, allowed()));
        };
        let settings = settings.map_or(Ok(Vec::new()), |settings| {
            settings.split(',').map(|setting| Setting::parse(setting, target)).collect::<Result<Vec<_>, _>>()
        })?;
        if target.name() == source.name() && settings.is_empty() {
            return Err(Invalid::new(
                format!("'{}' changes nothing", printable(text)),
                format!("give {target} a setting, such as {target}:sndbuf=1M, or name another mechanism"),
            ));
        }
        Ok(ProgramExchange { source, target, settings })
    }
}

impl ProgramExchange {
    /// What it is, in words: `Unix sockets instead of TCP on port 7777`.
    pub fn words(&self) -> String {
        let source = match &self.source {
            Source::Tcp(Some(port)) => format!("TCP on port {port}"),
            Source::Tcp(None) => "TCP over loopback".to_owned(),
            Source::Udp(Some(port)) => format!("UDP on port {port}"),
            Source::Udp(None) => "UDP".to_owned(),
            Source::UnixStream => "Unix stream sockets".to_owned(),
            Source::UnixDgram => "Unix datagram sockets".to_owned(),
            Source::Pipe => "pipes".to_owned(),
        };
        let settings: Vec<String> = self.settings.iter().map(Setting::to_string).collect();
        let with = if settings.is_empty() { String::new() } else { format!(" with {}", settings.join(", ")) };
        match self.target {
            target if target.name() == self.source.name() => format!("{source}{with}"),
            Target::UnixStream => format!("Unix sockets{with} instead of {source}"),
            Target::Sockmap => format!("a sockmap{with} under {source}"),
            Target::Mptcp => format!("MPTCP{with} instead of {source}"),
            Target::Smc => format!("SMC{with} instead of {source}"),
            target => format!("{target}{with} instead of {source}"),
        }
    }

    /// Makes its settings on a socket, as far as the kernel takes them.
    pub(crate) fn apply(&self, socket: impl AsFd) {
        for setting in &self.settings {
            // The same call by the program may fail too, and programs go on.
            let _ = setting.apply(&socket);
        }
    }

    /// Whether it sets this option of a socket, so that the program's own setting of it must not undo it.
    pub(crate) fn sets(&self, level: i32, option: i32) -> bool {
        self.settings.iter().filter_map(Setting::option).any(|of| (of.0, of.1) == (level, option))
    }
}

impl ProgramExchanges {
    /// The exchange of TCP connections to `port`: the one that names it, else the one of all.
    pub(crate) fn of_tcp(&self, port: u16) -> Option<&ProgramExchange> {
        self.of_port(port, |source| match source {
            Source::Tcp(port) => Some(*port),
            _ => None,
        })
    }

    /// The exchange of UDP sockets of `port`.
    pub(crate) fn of_udp(&self, port: u16) -> Option<&ProgramExchange> {
        self.of_port(port, |source| match source {
            Source::Udp(port) => Some(*port),
            _ => None,
        })
    }

    fn of_port(&self, port: u16, port_of: fn(&Source) -> Option<Option<u16>>) -> Option<&ProgramExchange> {
        let of =
            |wanted: Option<u16>| self.0.iter().find(|exchange| port_of(&exchange.source) == Some(wanted));
        of(Some(port)).or_else(|| of(None))
    }

    /// The exchange of what has no ports.
    pub(crate) fn for_source(&self, source: &Source) -> Option<&ProgramExchange> {
        self.0.iter().find(|exchange| exchange.source == *source)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Tcp(Some(port)) | Source::Udp(Some(port)) => write!(f, "{}:{port}", self.name()),
            _ => f.write_str(self.name()),
        }
    }
}

impl fmt::Display for ProgramExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.source, self.target)?;
        for (at, setting) in self.settings.iter().enumerate() {
            write!(f, "{}{setting}", if at == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exchanges_are_printed_as_they_are_typed() {
        for text in [
            "tcp:7777=unix-stream:sndbuf=1M",
            "tcp=tcp:nodelay=on,congestion=cubic",
            "tcp=mptcp",
            "tcp:7777=sockmap",
            "tcp=sockmap:nodelay=on",
            "udp:53=udp:rcvbuf=4M",
            "pipe=pipe:capacity=1M",
            "pipe=unix-stream",
            "unix-stream=unix-stream:sndbuf=64K",
            "tcp:1=tcp:busy-poll=50us",
        ] {
            assert_eq!(text.parse::<ProgramExchange>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_exchange_is_a_phrase() {
        let words = |text: &str| text.parse::<ProgramExchange>().unwrap().words();
        assert_eq!(words("tcp:7777=unix-stream"), "Unix sockets instead of TCP on port 7777");
        assert_eq!(words("tcp:80=sockmap"), "a sockmap under TCP on port 80");
        assert_eq!(words("pipe=pipe:capacity=1M"), "pipes with capacity=1M");
        assert_eq!(words("tcp=mptcp:nodelay=on"), "MPTCP with nodelay=on instead of TCP over loopback");
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        for (text, part) in [
            ("tcp", "give it as"),
            ("tcp=pipe", "replacement of tcp"),
            ("tcp=tcp", "changes nothing"),
            ("pipe:3=unix-stream", "no ports"),
            ("tcp:0=unix-stream", "no port"),
            ("tcp:70000=unix-stream", "no port"),
            ("tcp=unix-stream:nodelay=on", "setting of unix-stream"),
            ("tcp=tcp:nodelay=maybe", "on or off"),
            ("tcp=tcp:congestion=../x", "a name"),
            ("tcp=tcp:sndbuf=4G", "at most"),
            ("fifo=pipe", "unknown kind"),
        ] {
            let words = text.parse::<ProgramExchange>().unwrap_err().to_string();
            assert!(words.contains(part), "{text}: {words}");
        }
    }

    #[test]
    fn the_exchange_that_names_a_port_is_taken_before_that_of_all() {
        let exchanges =
            ProgramExchanges(["tcp=mptcp", "tcp:80=unix-stream"].map(|text| text.parse().unwrap()).to_vec());
        assert_eq!(exchanges.of_tcp(80).unwrap().target, Target::UnixStream);
        assert_eq!(exchanges.of_tcp(81).unwrap().target, Target::Mptcp);
        assert_eq!(exchanges.of_udp(80), None);
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in ".{0,40}") {
            let _ = text.parse::<ProgramExchange>();
        }
    }
}
