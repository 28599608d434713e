//! The settings of sockets and pipes that an exchange can make: their names, what they may be, and the option that each is.

use crate::target::Target;
use libc::c_int;
use model::units::parse_duration;
use model::{Invalid, Size};
use rustix::fd::AsFd;
use std::fmt;
use sys::Errno;
use sys::socket_option::set_bytes;

/// `TCP_NOTSENT_LOWAT` of linux/tcp.h, which libc names for no target.
const TCP_NOTSENT_LOWAT: c_int = 25;

/// What a setting may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Domain {
    OnOff,
    Size,
    MicroSeconds,
    Name,
}

/// One entry of the table of settings.
struct SettingKind {
    name: &'static str,
    domain: Domain,
    /// The option of a socket that it is (setsockopt(2)); `None`: the capacity of a pipe (fcntl(2), `F_SETPIPE_SZ`).
    option: Option<(c_int, c_int)>,
    of: &'static [Target],
}

const TCP_ALIKE: &[Target] = &[Target::Tcp, Target::Sockmap, Target::Mptcp];
const SOCKETS: &[Target] = &[
    Target::Tcp,
    Target::Sockmap,
    Target::Mptcp,
    Target::Smc,
    Target::UnixStream,
    Target::UnixDgram,
    Target::Udp,
];

/// All settings. A new one is an entry here.
const SETTINGS: &[SettingKind] = &[
    SettingKind {
        name: "sndbuf",
        domain: Domain::Size,
        option: Some((libc::SOL_SOCKET, libc::SO_SNDBUF)),
        of: SOCKETS,
    },
    SettingKind {
        name: "rcvbuf",
        domain: Domain::Size,
        option: Some((libc::SOL_SOCKET, libc::SO_RCVBUF)),
        of: &[Target::Tcp, Target::Sockmap, Target::Mptcp, Target::Smc, Target::Udp],
    },
    SettingKind {
        name: "nodelay",
        domain: Domain::OnOff,
        option: Some((libc::IPPROTO_TCP, libc::TCP_NODELAY)),
        of: TCP_ALIKE,
    },
    SettingKind {
        name: "quickack",
        domain: Domain::OnOff,
        option: Some((libc::IPPROTO_TCP, libc::TCP_QUICKACK)),
        of: TCP_ALIKE,
    },
    SettingKind {
        name: "congestion",
        domain: Domain::Name,
        option: Some((libc::IPPROTO_TCP, libc::TCP_CONGESTION)),
        of: TCP_ALIKE,
    },
    SettingKind {
        name: "notsent-lowat",
        domain: Domain::Size,
        option: Some((libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT)),
        of: TCP_ALIKE,
    },
    SettingKind {
        name: "busy-poll",
        domain: Domain::MicroSeconds,
        option: Some((libc::SOL_SOCKET, libc::SO_BUSY_POLL)),
        of: &[Target::Tcp, Target::Mptcp, Target::Udp],
    },
    SettingKind { name: "capacity", domain: Domain::Size, option: None, of: &[Target::Pipe] },
];

/// A setting with its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Setting {
    /// Its place in the table.
    kind: usize,
    /// As it is printed.
    value: String,
    number: u64,
}

impl Setting {
    /// Parses `NAME=VALUE` of what `target` takes.
    pub(crate) fn parse(text: &str, target: Target) -> Result<Self, Invalid> {
        let known = || SETTINGS.iter().filter(|kind| kind.of.contains(&target)).map(|kind| kind.name);
        let Some((name, value)) = text.split_once('=') else {
            return Err(Invalid::new(
                format!("'{}' is no setting of {target}", model::invalid::printable(text)),
                "give settings as NAME=VALUE, separated by commas",
            ));
        };
        let kind = SETTINGS.iter().position(|kind| kind.name == name && kind.of.contains(&target));
        let Some(kind) = kind else {
            return Err(Invalid::unknown(&format!("setting of {target}"), name, known()));
        };
        let (value, number) = SETTINGS[kind].domain.parse(value)?;
        Ok(Self { kind, value, number })
    }

    /// The option of a socket that it is, with its bytes.
    pub(crate) fn option(&self) -> Option<(c_int, c_int, Vec<u8>)> {
        let SettingKind { domain, option, .. } = SETTINGS[self.kind];
        let (level, name) = option?;
        let bytes = match domain {
            Domain::Name => self.value.as_bytes().to_vec(),
            _ => c_int::try_from(self.number).unwrap_or(c_int::MAX).to_ne_bytes().to_vec(),
        };
        Some((level, name, bytes))
    }

    /// How many bytes a pipe is to hold.
    pub(crate) fn capacity_bytes(&self) -> Option<usize> {
        SETTINGS[self.kind].option.is_none().then(|| usize::try_from(self.number).unwrap_or(usize::MAX))
    }

    /// Makes it on a socket.
    pub(crate) fn apply(&self, socket: impl AsFd) -> Result<(), Errno> {
        match self.option() {
            Some((level, name, bytes)) => set_bytes(socket, level, name, &bytes),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", SETTINGS[self.kind].name, self.value)
    }
}

impl Domain {
    /// The value as it is printed, and as a number.
    fn parse(self, text: &str) -> Result<(String, u64), Invalid> {
        match self {
            Domain::OnOff => match text {
                "on" => Ok(("on".to_owned(), 1)),
                "off" => Ok(("off".to_owned(), 0)),
                _ => Err(refused(text, "on or off")),
            },
            Domain::Size => {
                let size: Size = text.parse()?;
                // The kernel takes an int.
                if size.0 > c_int::MAX as u64 {
                    return Err(refused(text, "at most 2G less one byte"));
                }
                Ok((size.to_string(), size.0))
            }
            Domain::MicroSeconds => {
                let duration = parse_duration(text)?;
                let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
                if us > c_int::MAX as u64 {
                    return Err(refused(text, "at most half an hour"));
                }
                Ok((format!("{us}us"), us))
            }
            Domain::Name => {
                // TCP_CA_NAME_MAX of linux/tcp.h, with the byte that ends it.
                let fits = !text.is_empty()
                    && text.len() < 16
                    && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
                if fits { Ok((text.to_owned(), 0)) } else { Err(refused(text, "a name such as cubic")) }
            }
        }
    }
}

fn refused(text: &str, wanted: &str) -> Invalid {
    Invalid::new(
        format!("'{}' is no value of this setting", model::invalid::printable(text)),
        format!("give {wanted}"),
    )
}
