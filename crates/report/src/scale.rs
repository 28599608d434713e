//! Axes: where a value comes to stand, and which values are marked. It draws nothing.
//!
//! The terminal's charts and all pictures share it, so that a time has the same marks everywhere.

use crate::quantity::number;
use model::units::Unit;

/// An axis from its least to its greatest value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// Its two limits: logarithms to base 10 where the axis is logarithmic.
    least: f64,
    most: f64,
    logarithmic: bool,
}

/// What powers of ten are multiplied by to be marks of a logarithmic axis, the coarsest first.
const STEPS: [&[f64]; 3] =
    [&[1.0], &[1.0, 2.0, 5.0], &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]];
/// A logarithmic axis has the coarsest marks of which it has at least so many.
const FEWEST_MARKS: usize = 3;

impl Scale {
    /// A linear axis with these ends.
    pub(crate) fn linear(least: f64, most: f64) -> Self {
        Self { least, most: most.max(least + f64::EPSILON), logarithmic: false }
    }

    /// An axis that holds `values`, with room at both ends: the part `margin` of its length. It begins at 0 where it is
    /// linear.
    pub(crate) fn around(values: impl Iterator<Item = f64>, logarithmic: bool, margin: f64) -> Self {
        let (mut least, mut most) = ends(values, logarithmic).unwrap_or((0.0, 1.0));
        if !logarithmic {
            least = least.min(0.0);
        }
        let room = ((most - least) * margin).max(1e-3 * most.abs()).max(1e-9);
        if least != 0.0 || logarithmic {
            least -= room;
        }
        most += room;
        Self { least, most, logarithmic }
    }

    /// A logarithmic axis that holds `values` and has a mark at both ends.
    pub(crate) fn between_marks(values: impl Iterator<Item = f64>) -> Self {
        let (least, most) = ends(values, true).unwrap_or((0.0, 1.0));
        let marks: Vec<f64> = powers(STEPS[1], least - 1.0, most + 1.0).map(f64::log10).collect();
        Self {
            least: marks.iter().copied().rfind(|mark| *mark <= least).unwrap_or(least - 1.0),
            most: marks.iter().copied().find(|mark| *mark > most).unwrap_or(most + 1.0),
            logarithmic: true,
        }
    }

    /// Where `value` stands: 0 at the beginning, 1 at the end, and never beyond them.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let along = if self.logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value };
        ((along - self.least) / (self.most - self.least)).clamp(0.0, 1.0)
    }

    /// The values that are marked: round ones, about `wanted` of them where the axis is linear.
    pub(crate) fn ticks(&self, wanted: f64) -> Vec<f64> {
        /// What rounding may take a mark beyond an end by.
        const ROUNDING: f64 = 1e-9;
        let room = ROUNDING * (self.most - self.least);
        let (least, most) = (self.least - room, self.most + room);
        if self.logarithmic {
            let inside = |tick: &f64| (least..=most).contains(&tick.log10());
            let ticks = STEPS.map(|steps| powers(steps, least, most).filter(inside).collect::<Vec<f64>>());
            let [_, _, finest] = &ticks;
            return ticks.iter().find(|ticks| ticks.len() >= FEWEST_MARKS).unwrap_or(finest).clone();
        }
        let step = round_step((self.most - self.least) / wanted);
        let first = (least / step).ceil() as i64;
        let ticks = (0..).map(|nth| (first + nth) as f64 * step);
        ticks.take_while(|tick| *tick <= most).take(3 * wanted as usize).collect()
    }
}

/// The ends of those of `values` that such an axis can show, as it counts them.
fn ends(values: impl Iterator<Item = f64>, logarithmic: bool) -> Option<(f64, f64)> {
    let shown = values.filter(|value| value.is_finite() && (!logarithmic || *value > 0.0));
    let along = shown.map(|value| if logarithmic { value.log10() } else { value });
    along.fold(None, |ends, at| {
        let (least, most) = ends.unwrap_or((at, at));
        Some((at.min(least), at.max(most)))
    })
}

/// `steps` times the powers of ten from 10 to the `least` to 10 to the `most`.
fn powers(steps: &[f64], least: f64, most: f64) -> impl Iterator<Item = f64> {
    // Beyond these powers there are no numbers.
    let powers = (least.floor() as i32).max(f64::MIN_10_EXP)..=(most.ceil() as i32).min(f64::MAX_10_EXP - 1);
    powers.flat_map(|exponent| steps.iter().map(move |step| step * 10f64.powi(exponent)))
}

/// The least of 1, 2 and 5 times a power of ten that is no less than `rough`.
fn round_step(rough: f64) -> f64 {
    let unit = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0].map(|step| step * unit).into_iter().find(|step| *step >= rough).unwrap_or(10.0 * unit)
}

/// A mark in words: a round value without the zeros that a measured one would have.
pub(crate) fn tick_text(tick: f64, unit: Unit) -> String {
    if tick == 0.0 {
        return "0".to_owned();
    }
    let text = number(tick, unit);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = match number.split_once('.') {
        Some((whole, decimals)) if decimals.bytes().all(|digit| digit == b'0') => whole,
        Some(_) => number.trim_end_matches('0'),
        None => number,
    };
    format!("{number} {unit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn marks_are_round_values() {
        assert_eq!(Scale::linear(0.0, 14_200.0).ticks(8.0), [0.0, 2e3, 4e3, 6e3, 8e3, 10e3, 12e3, 14e3]);
        let wide = Scale::between_marks([1_500.0, 400_000.0].into_iter());
        assert_eq!(wide.ticks(6.0).len(), 3, "powers of ten are enough: {:?}", wide.ticks(6.0));
        let narrow = Scale::between_marks([2_140.0, 4_780.0].into_iter());
        assert_eq!(narrow.ticks(6.0), [2_000.0, 2_500.0, 3_000.0, 4_000.0, 5_000.0]);
        assert_eq!((narrow.place(2_000.0), narrow.place(1.0), narrow.place(1e9)), (0.0, 0.0, 1.0));
    }

    #[test]
    fn words_of_marks_have_no_idle_zeros() {
        let text = |tick| tick_text(tick, Unit::Ns);
        assert_eq!([text(0.0), text(2_500.0), text(20_000.0)], ["0", "2.5 µs", "20 µs"]);
    }

    proptest! {
        #[test]
        fn every_value_has_a_place_and_every_axis_few_marks(values in proptest::collection::vec(any::<f64>(), 0..6), logarithmic: bool) {
            for scale in [Scale::around(values.iter().copied(), logarithmic, 0.05), Scale::between_marks(values.iter().copied())] {
                for value in values.iter().filter(|value| value.is_finite()) {
                    let place = scale.place(*value);
                    prop_assert!((0.0..=1.0).contains(&place) || place.is_nan(), "{place}");
                }
                prop_assert!(scale.ticks(6.0).len() < 800);
            }
        }
    }
}
