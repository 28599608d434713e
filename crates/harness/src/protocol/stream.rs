//! What a stream of bytes from a peer that may be hostile is taken for: message by message, without a channel. Fuzzing and the
//! tests of damaged messages read by it; endpoints and coordinators read from channels.

use super::frame::{LENGTH_BYTES, body_bytes, frame, message};
use super::message::{CoordinatorMessage, EndpointMessage};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Who is listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// A coordinator, by an endpoint.
    Coordinator,
    /// An endpoint, by a coordinator.
    Endpoint,
}

/// How many messages of `speaker` lie at the begin of `bytes`, before the first that is cut short or is none.
///
/// What was read can be written, and what is written then is read as the same: a message that was passed on changes no further.
pub fn messages(bytes: &[u8], speaker: Speaker) -> usize {
    match speaker {
        Speaker::Coordinator => count::<CoordinatorMessage>(bytes),
        Speaker::Endpoint => count::<EndpointMessage>(bytes),
    }
}

fn count<T: DeserializeOwned + Serialize>(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() {
        let Ok(body) = body_bytes(*length).and_then(|length| {
            let refuse = || sys::Failure::from_errno("read", "a message", sys::Errno::PIPE);
            rest.get(..length).ok_or_else(refuse)
        }) else {
            break;
        };
        let Ok(read) = message::<T>(body) else { break };
        assert!(is_kept(&read), "a message is read in another way than it was written");
        bytes = &rest[body.len()..];
        count += 1;
    }
    count
}

/// Whether `read`, written and read again, is written as the same.
fn is_kept<T: DeserializeOwned + Serialize>(read: &T) -> bool {
    let Ok(written) = frame(read) else { return true };
    let again = message::<T>(&written[LENGTH_BYTES..]).and_then(|again| frame(&again));
    again.is_ok_and(|again| again == written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::hello::Hello;
    use proptest::prelude::*;

    fn said() -> Vec<u8> {
        let messages = [CoordinatorMessage::Hello(Hello::own()), CoordinatorMessage::Alive];
        messages.iter().flat_map(|message| frame(message).unwrap()).collect()
    }

    #[test]
    fn messages_are_counted_up_to_the_first_that_is_none() {
        let said = said();
        assert_eq!(messages(&said, Speaker::Coordinator), 2);
        assert_eq!(messages(&said[..said.len() - 1], Speaker::Coordinator), 1);
        // An endpoint says hello, too, and never that it is alive.
        assert_eq!(messages(&said, Speaker::Endpoint), 1);
        assert_eq!(messages(b"GET / HTTP/1.1\r\n\r\n", Speaker::Endpoint), 0);
        assert_eq!(messages(&[], Speaker::Endpoint), 0);
    }

    proptest! {
        #[test]
        fn damage_panics_nowhere(places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8), cut in any::<prop::sample::Index>()) {
            let mut bytes = said();
            for (place, byte) in places {
                let at = place.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(cut.index(bytes.len() + 1));
            for speaker in [Speaker::Coordinator, Speaker::Endpoint] {
                prop_assert!(messages(&bytes, speaker) <= 2);
            }
        }

        #[test]
        fn noise_is_no_message(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for speaker in [Speaker::Coordinator, Speaker::Endpoint] {
                prop_assert_eq!(messages(&bytes, speaker), 0);
            }
        }
    }
}
