//! What a scenario leaves to chance, drawn so that sender and receiver of a flow draw the same: a draw depends on the seed, the flow and
//! the number of the message alone, not on what was drawn before.

use model::pace::{Arrivals, Rate};
use model::scenario::{Mix, MixValue};

/// What is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) enum DrawKind {
    Size,
    Reply,
    ClientWork,
    ServerWork,
    ThinkTime,
    Arrival,
}

/// The draws of one flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draws {
    seed: u64,
}

impl Draws {
    pub(super) fn of_flow(seed: u64, flow: usize) -> Self {
        Self { seed: scrambled(seed ^ scrambled(flow as u64)) }
    }

    /// A value of `mix` for the message `number`.
    pub(super) fn value<T: MixValue>(self, mix: &Mix<T>, what: DrawKind, number: u64) -> T {
        match mix.parts() {
            [(value, _)] => *value,
            _ => mix.at(self.share(what, number)),
        }
    }

    /// From when the message `number` is due to when the next one is, in nanoseconds.
    pub(super) fn distance_ns(self, rate: Rate, number: u64) -> f64 {
        rate.interval_ns()
            * match rate.arrivals {
                Arrivals::Uniform => 1.0,
                // The inverse of the exponential distribution; the argument of the logarithm is never 0.
                Arrivals::Poisson => -(1.0 - self.share(DrawKind::Arrival, number)).ln(),
            }
    }

    /// Evenly distributed from 0, inclusive, to 1, exclusive.
    fn share(self, what: DrawKind, number: u64) -> f64 {
        let bits = scrambled(self.seed ^ scrambled(number << 3 | what as u64));
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// SplitMix64: what of two numbers that differ in a bit comes out has nothing in common.
fn scrambled(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Size;

    #[test]
    fn shares_are_those_of_the_mix_and_draws_are_repeated() {
        let mix: Mix<Size> = "64:90%, 4K:10%".parse().unwrap();
        let draws = Draws::of_flow(7, 3);
        let sizes: Vec<u64> = (0..20_000).map(|number| draws.value(&mix, DrawKind::Size, number).0).collect();
        let large = sizes.iter().filter(|size| **size == 4096).count();
        assert!((1800..2200).contains(&large), "{large}");
        let again = (0..20_000).map(|number| Draws::of_flow(7, 3).value(&mix, DrawKind::Size, number).0);
        assert!(again.eq(sizes.iter().copied()));
        let other = (0..20_000).map(|number| Draws::of_flow(7, 4).value(&mix, DrawKind::Size, number).0);
        assert!(!other.eq(sizes));
    }

    #[test]
    fn random_arrivals_have_the_mean_of_their_rate() {
        let rate = Rate { per_s: 1000, arrivals: Arrivals::Poisson };
        let draws = Draws::of_flow(1, 0);
        let mean = (0..50_000).map(|number| draws.distance_ns(rate, number)).sum::<f64>() / 50_000.0;
        assert!((mean / 1e6 - 1.0).abs() < 0.03, "{mean}");
        let even = Rate { arrivals: Arrivals::Uniform, ..rate };
        assert_eq!(draws.distance_ns(even, 5), 1e6);
    }
}
