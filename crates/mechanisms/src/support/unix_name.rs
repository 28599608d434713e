//! How Unix sockets find each other by name: a parameter that they share. Not a mechanism itself.

use crate::contract::TrialContext;
use crate::support::connection::{Connection, Ends, ListenerAddress, SocketFile, try_connection};
use crate::support::names::probe_names;
use crate::support::probe::support_of;
use crate::support::socket::{largest_message, unix_pair};
use model::card::{Card, Support};
use model::record::Setting;
use model::{Domain, Param, Params};
use rustix::net::{SocketAddrAny, SocketAddrUnix, SocketType};
use sys::{Errno, Failure, OrFail};

/// The parameter that says how Unix sockets are named.
pub(crate) const NAME: Param = Param {
    name: "name",
    summary: "how the endpoints find each other: as a pair without a name (in the workload connect, by an abstract name); by a socket file; or by an abstract name that the kernel chooses",
    domain: Domain::Choice(&["none", "path", "abstract"]),
    default: Some("none"),
};

/// How sockets are named.
enum Naming {
    None,
    Path,
    Abstract,
}

impl Naming {
    fn from_params(params: &Params, card: &Card) -> Self {
        match params.text(card, NAME.name) {
            Some("path") => Self::Path,
            Some("abstract") => Self::Abstract,
            _ => Self::None,
        }
    }
}

/// Whether sockets of `C` work with `params`, and their largest message.
pub(crate) fn probe<C: Connection>(params: &Params) -> Support {
    let named = match Naming::from_params(params, &C::CARD) {
        Naming::None => Support::UNLIMITED,
        // Does not make a file: it would remain if this process were killed.
        Naming::Path => probe_names(),
        Naming::Abstract => support_of(try_connection::<C>(abstract_name().into(), params)),
    };
    let fresh_pair = || unix_pair(C::TYPE, params, &C::CARD).map(|(client, server, _)| (client, server));
    match named {
        Support::No { .. } => named,
        Support::Yes { .. } if C::TYPE == SocketType::STREAM => support_of(fresh_pair()),
        Support::Yes { .. } => largest_message(fresh_pair),
    }
}

/// Both sockets of a pair that has no name.
pub(crate) fn pair<C: Connection>(params: &Params) -> Option<Result<Ends, Failure>> {
    match Naming::from_params(params, &C::CARD) {
        Naming::None => Some(unix_pair(C::TYPE, params, &C::CARD)),
        Naming::Path | Naming::Abstract => None,
    }
}

/// The address at which the listener of `trial` shall be bound.
pub(crate) fn listener_address<C: Connection>(trial: &TrialContext<'_>) -> Result<ListenerAddress, Failure> {
    match Naming::from_params(trial.params, &C::CARD) {
        Naming::None => {
            let setting = Setting {
                name: NAME.name.to_owned(),
                asked: None,
                got: "abstract: a pair has nothing to connect to".to_owned(),
                clamped: false,
                usual: None,
            };
            Ok(ListenerAddress { setting: Some(setting), ..abstract_name().into() })
        }
        Naming::Abstract => Ok(abstract_name().into()),
        Naming::Path => {
            let path = trial.path().with_extension("socket");
            let address = if path.as_os_str().len() > MOST_PATH_BYTES {
                Err(Errno::NAMETOOLONG)
            } else {
                SocketAddrUnix::new(&path)
            };
            let address = address.or_fail("bind", path.display()).map_err(|failure| Failure {
                next: "set TMPDIR to a directory with a short name".to_owned(),
                ..failure
            })?;
            Ok(ListenerAddress { file: Some(SocketFile(path)), ..SocketAddrAny::from(address).into() })
        }
    }
}

/// The longest path in an address, without the NUL that ends it (unix(7)).
const MOST_PATH_BYTES: usize = 107;

/// Any abstract name: the kernel chooses one that is free ("autobind", unix(7)).
fn abstract_name() -> SocketAddrAny {
    SocketAddrUnix::new_unnamed().into()
}
