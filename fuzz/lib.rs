//! What the fuzz targets share: cards to parse against. They are made up, so that every domain occurs
//! and targets do not change when a mechanism does.

#![forbid(unsafe_code)]

use model::card::{Card, CardKind};
use model::testing::card;
use model::{Domain, Param, Workload};

const fn param(name: &'static str, domain: Domain, default: Option<&'static str>) -> Param {
    Param { name, summary: "made up", domain, default }
}

const fn with(params: &'static [Param], card: Card) -> Card {
    Card { params, ..card }
}

const TWO_ENDED: &[Workload] = &[Workload::Latency, Workload::Throughput, Workload::Transfer];

/// A registry: every kind of card, every domain, with defaults and without.
pub const CARDS: &[Card] = &[
    with(
        &[
            param("capacity", Domain::Size, None),
            param("buffer", Domain::SizeOrMatch, None),
            param("chunk", Domain::Size, Some("64K")),
            param("wait", Domain::Choice(&["block", "spin", "spin-then-block"]), Some("block")),
            param("spin", Domain::Duration, Some("10us")),
            param("depth", Domain::Count, Some("8")),
        ],
        card("pipe", CardKind::Mechanism, TWO_ENDED, true),
    ),
    card("context-switch", CardKind::Floor, &[Workload::Latency], true),
    card("cache-line", CardKind::Floor, &[Workload::Latency], true),
    card("remote-wake", CardKind::Floor, &[Workload::Latency], false),
    with(&[param("delay", Domain::Duration, None)], card("null", CardKind::Mechanism, TWO_ENDED, true)),
    card("memcpy", CardKind::Operation, &[Workload::Cost], true),
    card("syscall", CardKind::Operation, &[Workload::Cost], false),
];
