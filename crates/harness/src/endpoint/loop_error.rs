//! What ends the iterations of a phase early.

use crate::protocol::error::{Blame, EndpointError, blame_of};
use sys::{Errno, Failure};

/// Why the iterations of a phase ended early. It is made on the measured path, and put into words off it.
#[derive(Debug)]
pub(crate) enum LoopError {
    /// A call failed.
    Call { name: &'static str, errno: Errno },
    /// A message is not the one that was due.
    Payload { iteration: u64, at: usize },
    /// Another number of descriptors came with a message than was sent.
    Descriptors { iteration: u64, came: usize },
}

impl From<LoopError> for EndpointError {
    fn from(error: LoopError) -> Self {
        match error {
            LoopError::Call { name, errno } if blame_of(errno) == Blame::Peer => Self {
                operation: name.to_owned(),
                object: "the mechanism".to_owned(),
                answer: format!("{errno}: the peer closed in the middle of a phase"),
                remedy: "see the peer's own error".to_owned(),
                blame: Blame::Peer,
            },
            LoopError::Call { name, errno } => Failure::from_errno(name, "the mechanism", errno).into(),
            // Whether the message was lost, doubled or changed on its way, or never sent: it is the mechanism's doing, and
            // the endpoint that finds it out is the one to be heard.
            LoopError::Payload { iteration, at } => Self {
                operation: "receive".to_owned(),
                object: format!("message {iteration}"),
                answer: format!("it differs from what was sent at byte {at}"),
                remedy: "one was lost, doubled or changed on its way: report this bug".to_owned(),
                blame: Blame::Itself,
            },
            LoopError::Descriptors { iteration, came } => Self {
                operation: "receive".to_owned(),
                object: format!("message {iteration}"),
                answer: format!("{came} descriptors came with it, not as many as were sent"),
                remedy: "raise 'ulimit -n'".to_owned(),
                blame: Blame::Host,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_peer_that_is_gone_is_blamed() {
        let failed_with = |errno| EndpointError::from(LoopError::Call { name: "receive", errno });
        for errno in [Errno::PIPE, Errno::CONNRESET] {
            let error = failed_with(errno);
            assert_eq!(error.blame, Blame::Peer);
            assert!(error.to_string().contains("the peer closed in the middle of a phase"), "{error}");
        }
        assert_eq!(
            (failed_with(Errno::MFILE).blame, failed_with(Errno::INVAL).blame),
            (Blame::Host, Blame::Itself)
        );
        let wrong = EndpointError::from(LoopError::Payload { iteration: 7, at: 3 });
        assert_eq!(wrong.blame, Blame::Itself);
        assert!(wrong.to_string().starts_with("receive message 7: it differs"), "{wrong}");
    }
}
