//! Why an endpoint failed, as data: what it tried, on what, what the answer was, what to do, and whom it blames.

use super::frame::shortened;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use sys::{Errno, Failure};

/// Whom an endpoint blames for its failure. It decides whose failure of several is recorded: an endpoint that blames its peer
/// is only believed when no other endpoint has a reason of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blame {
    /// The endpoint itself: its orders cannot be followed, or ipcmark has a bug.
    Itself,
    /// The other endpoint, which closed the connection or ended.
    Peer,
    /// The coordinator, which closed the control channel.
    Coordinator,
    /// The host, which is short of something, does not have something, or does not permit it.
    Host,
}

/// The failure of an endpoint. Displays as `operation object: answer (remedy)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointError {
    /// What was tried, by the name of the call.
    #[serde(deserialize_with = "short")]
    pub operation: String,
    /// On what.
    #[serde(deserialize_with = "short")]
    pub object: String,
    /// What the answer was.
    #[serde(deserialize_with = "short")]
    pub answer: String,
    /// What to do about it.
    #[serde(deserialize_with = "short")]
    pub remedy: String,
    /// Whom the endpoint blames.
    pub blame: Blame,
}

/// A text of an endpoint's, of which no more is kept than is shown.
pub(super) fn short<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(|text| shortened(&text))
}

/// What an endpoint came to, or its failure.
pub(crate) type Outcome<T> = Result<T, EndpointError>;

impl EndpointError {
    /// A state that no endpoint should ever be in.
    pub(crate) fn bug(operation: &str, object: &str, answer: &str) -> Self {
        Self {
            operation: operation.to_owned(),
            object: object.to_owned(),
            answer: answer.to_owned(),
            remedy: "report this bug".to_owned(),
            blame: Blame::Itself,
        }
    }

    /// The same failure, with another to blame.
    pub(crate) fn blaming(self, blame: Blame) -> Self {
        Self { blame, ..self }
    }
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, object, answer, remedy, .. } = self;
        write!(f, "{operation} {object}: {answer} ({remedy})")
    }
}

impl From<Failure> for EndpointError {
    fn from(failure: Failure) -> Self {
        let Failure { operation, object, answer, next, errno } = failure;
        Self { operation, object, answer, remedy: next, blame: errno.map_or(Blame::Itself, blame_of) }
    }
}

/// Whom an endpoint blames that got `errno`.
pub(crate) fn blame_of(errno: Errno) -> Blame {
    match errno {
        // What the calls of a connection say when its other side has closed; then what a process that has ended leaves, a lock
        // that it held, and a System V object that it removed.
        Errno::PIPE
        | Errno::CONNRESET
        | Errno::CONNREFUSED
        | Errno::CONNABORTED
        | Errno::NOTCONN
        | Errno::SHUTDOWN
        | Errno::SRCH
        | Errno::OWNERDEAD
        | Errno::IDRM => Blame::Peer,
        Errno::MFILE
        | Errno::NFILE
        | Errno::NOMEM
        | Errno::NOBUFS
        | Errno::NOSPC
        | Errno::AGAIN
        | Errno::ACCESS
        | Errno::PERM
        | Errno::ROFS
        | Errno::NOSYS
        | Errno::OPNOTSUPP
        | Errno::PROTONOSUPPORT
        | Errno::AFNOSUPPORT => Blame::Host,
        _ => Blame::Itself,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_connection_is_the_peers_doing_and_a_shortage_the_hosts() {
        for errno in
            [Errno::PIPE, Errno::CONNRESET, Errno::CONNREFUSED, Errno::NOTCONN, Errno::SRCH, Errno::IDRM]
        {
            assert_eq!(blame_of(errno), Blame::Peer, "{errno}");
        }
        for errno in [Errno::MFILE, Errno::NOMEM, Errno::PERM, Errno::NOSYS] {
            assert_eq!(blame_of(errno), Blame::Host, "{errno}");
        }
        for errno in [Errno::INVAL, Errno::MSGSIZE, Errno::NOENT] {
            assert_eq!(blame_of(errno), Blame::Itself, "{errno}");
        }
    }

    #[test]
    fn a_failure_keeps_its_words_and_is_judged_by_its_errno() {
        let failure = Failure::from_errno("sendmsg", "the link", Errno::PIPE);
        let error = EndpointError::from(failure.clone());
        assert_eq!((error.to_string(), error.blame), (failure.to_string(), Blame::Peer));
        // The word alone blames nobody.
        let named = Failure::from_errno("mmap", "the peer's memory", Errno::INVAL);
        assert_eq!(EndpointError::from(named).blame, Blame::Itself);
        let named = Failure::new("mmap", "the peer's memory", "too short", "see the peer's own error");
        assert_eq!(EndpointError::from(named).blame, Blame::Itself);
    }

    #[test]
    fn of_an_error_without_end_the_begin_is_kept() {
        let long = EndpointError::bug("read", &"x".repeat(1 << 20), "no");
        let read: EndpointError = serde_json::from_str(&serde_json::to_string(&long).unwrap()).unwrap();
        assert!(read.object.ends_with("x…") && read.to_string().len() < 1000);
    }

    #[test]
    fn an_error_crosses_the_channel_as_data() {
        let error = EndpointError::from(Failure::from_errno("open", "/dev/null", Errno::MFILE));
        let text = serde_json::to_string(&error).unwrap();
        assert!(text.contains(r#""blame":"host""#) && text.contains(r#""operation":"open""#), "{text}");
        assert_eq!(serde_json::from_str::<EndpointError>(&text).unwrap(), error);
    }
}
