//! What every card must hold.

use mechanisms::registry::CARDS;
use model::Params;
use model::card::{Framing, Payload};

#[test]
fn cards_are_sound() {
    for (at, card) in CARDS.iter().enumerate() {
        assert!(
            CARDS[..at].iter().all(|other| other.name != card.name),
            "two entries are named {}",
            card.name
        );
        assert!(card.summary.len() < 75 && !card.summary.ends_with('.'), "{}: {}", card.name, card.summary);
        assert!(!card.workloads.is_empty(), "{} has no workload", card.name);
        let has_sessions = card.workloads.iter().any(|workload| workload.name() == "session");
        assert_eq!(
            card.fds, has_sessions,
            "{}: a mechanism that passes descriptors has the workload session",
            card.name
        );
        let may_be_empty = card.framing == Framing::Message && card.payload == Payload::Bytes && card.sized;
        assert!(!card.empty || may_be_empty, "{} has no messages that could be empty", card.name);
        assert!(card.name == "null" || !card.man.is_empty(), "{} names no manual page", card.name);
        for param in card.params {
            let Some(default) = param.default else { continue };
            let given = Params::parse(&format!("{}={default}", param.name), card).unwrap();
            assert!(given.is_empty(), "{}:{} is kept though it is the default", card.name, param.name);
        }
    }
}
