//! Specs with parameters, placements, workloads, paces and peers: each survives its own text and its JSON.

#![no_main]

use fuzz::CARDS;
use libfuzzer_sys::fuzz_target;
use model::{Pace, Peers, Placements, Spec, Workload};

fuzz_target!(|text: &str| {
    if let Ok(spec) = Spec::parse(text, CARDS) {
        assert_eq!(Spec::parse(&spec.to_string(), CARDS), Ok(spec.clone()));
        let json = serde_json::to_string(&spec).expect("a spec has text keys");
        assert_eq!(serde_json::from_str::<Spec>(&json).expect("what was written can be read"), spec);
        let card = CARDS.iter().find(|card| card.name == spec.name).expect("only known names are accepted");
        for param in card.params {
            // A value that was accepted, or a default, is one that the accessors understand.
            let text = spec.params.text(card, param.name);
            assert!(text.is_some() || param.default.is_none());
            match param.domain {
                model::Domain::Size => {
                    assert_eq!(spec.params.size(card, param.name).is_some(), text.is_some())
                }
                model::Domain::SizeOrMatch => {
                    let is_size = text.is_some_and(|text| text != "match");
                    assert_eq!(spec.params.size(card, param.name).is_some(), is_size)
                }
                model::Domain::Count => {
                    assert_eq!(spec.params.count(card, param.name).is_some(), text.is_some())
                }
                model::Domain::Duration => assert!(spec.params.duration(card, param.name).as_secs() <= 1),
                model::Domain::Name => assert!(text.is_some_and(|text| !text.is_empty())),
                model::Domain::Choice(words) => assert!(text.is_none_or(|text| words.contains(&text))),
            }
        }
    }
    if let Ok(placements) = text.parse::<Placements>() {
        assert!(!placements.0.is_empty());
        assert_eq!(placements.to_string().parse(), Ok(placements));
    }
    if let Ok(workload) = text.parse::<Workload>() {
        assert_eq!(workload.to_string().parse(), Ok(workload));
    }
    for pace in [Pace::think_time(text), Pace::rate(text)].into_iter().flatten() {
        assert_eq!(pace.to_string().parse(), Ok(pace));
    }
    if let Ok(peers) = text.parse::<Peers>() {
        assert_eq!(peers.to_string().parse(), Ok(peers));
    }
});
