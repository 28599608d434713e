//! How often receivers may be put on the sender's CPU: how far that share may be off of what was seen, or of what one pair of
//! processes shows, before an exchange of mechanisms and after it. What it costs is not known here.

use super::measured::Measured;
use model::Scenario;
use model::scenario::Flow;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// How far the share of receivers that stay on the sender's CPU may be off: of half of them, where it was recorded, and less of a
/// smaller and of a larger share, down to the least; of a single pair; and of more processes, which replays show to go any way.
const SEEN_SPREAD: f64 = 0.1;
const LEAST_SPREAD: f64 = 0.005;
const CROWD_SPREAD: f64 = 1.0;
/// The same where a client that is woken twice for an answer gets another mechanism: of all messages together, and of the exchanged flows
/// against the others. The kernel moves a thread that waits while another CPU is idle, and such a client waits at other moments. Of nginx
/// and its load the second went any way, while the first changed by a third at most.
const MOVED_SPREAD: f64 = 0.3;
const MOVED_DIFFERENCE: f64 = 0.5;

/// By how much the share of each flow of both `scenarios` may be off. Flows of one mechanism are off alike. Where the kernel puts more
/// than two processes may change with the mechanism of one flow: then all are drawn anew.
pub(super) fn stays_off(scenarios: [&Scenario; 2], measured: &Measured, seed: u64) -> [Vec<f64>; 2] {
    let is_crowd = scenarios[0].processes.len() > 2;
    let moves = scenarios[0] != scenarios[1] && is_crowd;
    let moved = if moves { moved_shares(scenarios, measured, seed) } else { None };
    [0, 1].map(|which| {
        let off = |(at, (flow, seen)): (usize, (&Flow, &Option<f64>))| {
            let spread = match seen {
                Some(share) => SEEN_SPREAD * 4.0 * share * (1.0 - share) + LEAST_SPREAD,
                None if is_crowd => CROWD_SPREAD,
                None => SEEN_SPREAD,
            };
            let place = of_mechanism(flow, seed).wrapping_add(if moves { which as u64 + 1 } else { 0 });
            // What is before is brought to what was seen; what may differ is what comes of the exchange.
            let keeps = which == 0 || !moves && scenarios[0].flows[at].mechanism == flow.mechanism;
            match (seen, &moved) {
                (Some(_), _) if keeps => 0.0,
                (Some(share), Some(moved)) => moved[at] - share,
                _ => spread * SmallRng::seed_from_u64(place).random_range(-1.0..1.0),
            }
        };
        scenarios[which].flows.iter().zip(&measured.on_one_cpu).enumerate().map(off).collect()
    })
}

/// `seed` as it is for the mechanism of `flow`.
pub(super) fn of_mechanism(flow: &Flow, seed: u64) -> u64 {
    let name = flow.mechanism.to_string();
    name.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
}

/// The shares of all flows of the second of `scenarios`, as they might be, where a client is exchanged that is woken twice for an
/// answer, and where they are known of the first.
fn moved_shares(scenarios: [&Scenario; 2], measured: &Measured, seed: u64) -> Option<Vec<f64>> {
    let [before, after] = scenarios.map(|scenario| &scenario.flows);
    let is_exchanged: Vec<bool> =
        before.iter().zip(after).map(|(before, after)| before.mechanism != after.mechanism).collect();
    let is_woken_twice =
        |(flow, is_exchanged): (&Flow, &bool)| *is_exchanged && flow.mechanism.params.watches_for_room();
    if !after.iter().zip(&is_exchanged).any(is_woken_twice) {
        return None;
    }
    let seen: Vec<f64> = measured.on_one_cpu.iter().copied().collect::<Option<_>>()?;
    let rates: Vec<f64> = measured.flows.iter().map(|flow| flow.map_or(0.0, |flow| flow.per_s)).collect();
    let rate_of = |exchanged: bool| -> f64 {
        rates.iter().zip(&is_exchanged).filter(|(_, is)| **is == exchanged).map(|(rate, _)| rate).sum()
    };
    let (exchanged, others) = (rate_of(true), rate_of(false));
    let stayed: f64 = rates.iter().zip(&seen).map(|(rate, share)| rate * share).sum();
    let mut random = SmallRng::seed_from_u64(seed.rotate_left(16));
    let of_all = stayed / (exchanged + others) + random.random_range(-MOVED_SPREAD..=MOVED_SPREAD);
    let more = random.random_range(-MOVED_DIFFERENCE..=MOVED_DIFFERENCE);
    let less = more * exchanged / others.max(exchanged);
    let share = |is_exchanged: &bool| of_all + if *is_exchanged { more } else { -less };
    Some(is_exchanged.iter().map(|is_exchanged| share(is_exchanged).clamp(0.0, 1.0)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{flow, scenario};
    use super::*;
    use model::Spec;
    use model::scenario::FlowBehaviour;

    /// A load, a server that it asks, and another that this one asks, with the share of each flow that stayed.
    fn proxied(shares: [Option<f64>; 2]) -> (Scenario, Measured) {
        let scenario = scenario(&[&[0], &[], &[]], vec![flow(0, 1), flow(1, 2)]);
        let flows = vec![Some(FlowBehaviour { per_s: 1000.0, round_trip_ns: None }); 2];
        let measured = Measured { flows, on_one_cpu: shares.to_vec(), ..Measured::recorded(&scenario) };
        (scenario, measured)
    }

    fn exchanged(scenario: &Scenario, wait: &str) -> Scenario {
        let mut after = scenario.clone();
        let params = serde_json::from_value(serde_json::json!({ "wait": wait })).unwrap();
        after.flows[1].mechanism = Spec { params, ..Spec::plain("slow") };
        after
    }

    #[test]
    fn a_client_that_is_woken_twice_moves_who_is_beside_whom() {
        let (before, measured) = proxied([Some(0.9), Some(0.0)]);
        let after = exchanged(&before, "epoll-room");
        let shares: Vec<[f64; 2]> = (0..200)
            .map(|seed| {
                let [old, new] = stays_off([&before, &after], &measured, seed);
                assert_eq!(old, [0.0, 0.0], "what is before was seen");
                [0.9 + new[0], new[1]]
            })
            .collect();
        assert!(shares.iter().flatten().all(|share| (-1e-9..=1.0).contains(share)), "{shares:?}");
        // Their roles may change, but not how often all of them stay.
        assert!(shares.iter().any(|[load, upstream]| upstream > load), "{shares:?}");
        assert!(shares.iter().any(|[load, upstream]| upstream + 0.5 < *load), "{shares:?}");
        assert!(shares.iter().all(|[load, upstream]| load + upstream < 2.0 * (0.45 + MOVED_SPREAD) + 1e-9));
    }

    #[test]
    fn others_stay_about_as_often_as_they_did() {
        let (before, measured) = proxied([Some(0.9), Some(0.0)]);
        let after = exchanged(&before, "epoll");
        for seed in 0..200 {
            let [_, new] = stays_off([&before, &after], &measured, seed);
            assert!(new[0].abs() <= 0.1 * 0.36 + LEAST_SPREAD && new[1].abs() <= LEAST_SPREAD, "{new:?}");
        }
        let (_, unknown) = proxied([Some(0.9), None]);
        let after = exchanged(&before, "epoll-room");
        assert!(
            (0..200).any(|seed| stays_off([&before, &after], &unknown, seed)[1][1].abs() > 0.9),
            "of what is not known, anything may be"
        );
    }
}
