//! What something costs by the size of a message: straight lines in bytes that meet at some of the measured sizes, so that each has
//! a fixed part and a part by the byte.
//!
//! It knows nothing of mechanisms. The bends of logarithmic curves, which explanations name, are in `explain::knee`.

use crate::stats::{mean, quantile_of_sorted};
use rand::Rng;
use rand::rngs::SmallRng;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};

/// A line may bend at so many sizes.
const MOST_KNEES: usize = 3;
/// A residual below this is not worth another knee.
const GOOD_ENOUGH: f64 = 0.02;
/// Into so many parts a run is divided for drawing slices.
const MOMENTS: usize = 16;
/// The share of slices on each side that a mean is without.
const TRIMMED: f64 = 0.1;
/// The resamples of which the intervals of the parts are made, and what these miss on each side.
const RESAMPLES: usize = 200;
const TAIL: f64 = 0.05;

/// Straight lines that meet: the sizes at which they do, with the values there, ascending. The first and the last are its bounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeLine {
    nodes: Vec<(f64, f64)>,
}

impl SizeLine {
    /// The same value at each size.
    pub fn constant(value: f64) -> Self {
        Self { nodes: vec![(0.0, value)] }
    }

    /// The value at `bytes`. Beyond its bounds the first and the last line go on, but values do not fall with the size beyond the last,
    /// nor below half of the first before it.
    pub fn at(&self, bytes: f64) -> f64 {
        let [first, .., last] = self.nodes.as_slice() else { return self.nodes[0].1.max(0.0) };
        if bytes <= first.0 {
            let value = first.1 + self.slope(0) * (bytes - first.0);
            return value.clamp(first.1.max(0.0) / 2.0, f64::max(first.1, 0.0));
        }
        if bytes >= last.0 {
            let slope = self.slope(self.nodes.len() - 2).max(0.0);
            return (last.1 + slope * (bytes - last.0)).max(0.0);
        }
        let at = self.nodes.partition_point(|(size, _)| *size <= bytes) - 1;
        (self.nodes[at].1 + self.slope(at) * (bytes - self.nodes[at].0)).max(0.0)
    }

    /// The rise by the byte after node `at`.
    fn slope(&self, at: usize) -> f64 {
        let ((from, low), (until, high)) = (self.nodes[at], self.nodes[at + 1]);
        (high - low) / (until - from)
    }

    /// The same, each value multiplied by `factor`.
    fn scaled(mut self, factor: f64) -> Self {
        self.nodes.iter_mut().for_each(|(_, value)| *value *= factor);
        self
    }
}

/// A fitted line with what is known of its error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeFit {
    /// The line.
    pub line: SizeLine,
    /// What an empty message would cost, with its 90% interval.
    pub fixed: (f64, f64, f64),
    /// The lines between two knees.
    pub segments: Vec<SizeSegment>,
    /// How far the measured sizes are from the line: the root of the mean square, as a fraction.
    pub residual: f64,
    /// The measured values: sizes, ascending, with one value a slice, in the order in which they were measured.
    #[serde(skip)]
    points: Vec<(f64, Vec<f64>)>,
}

/// One of the lines of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SizeSegment {
    /// From this size on.
    pub from_bytes: f64,
    /// Up to this one.
    pub until_bytes: f64,
    /// The cost of a byte, with its 90% interval.
    pub per_byte: (f64, f64, f64),
}

impl SizeFit {
    /// The line with the fewest knees that misses the sizes by no more than their means may be off. `None` without a value.
    pub fn of(points: &[(f64, Vec<f64>)]) -> Option<Self> {
        let mut points: Vec<(f64, Vec<f64>)> = points.to_vec();
        points.iter_mut().for_each(|(_, values)| values.retain(|value| value.is_finite()));
        points.retain(|(bytes, values)| bytes.is_finite() && !values.is_empty());
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        points.dedup_by(|(later, values), (bytes, first)| {
            let is_same = later == bytes;
            if is_same {
                first.append(values);
            }
            is_same
        });
        let means = means(&points, |values| values.to_vec());
        let enough = noise(&points).max(GOOD_ENOUGH);
        let (line, residual) = (0..=MOST_KNEES.min(means.len().saturating_sub(2)))
            .filter_map(|count| best_line(&means, count))
            .try_fold(None, |best: Option<(SizeLine, f64)>, (line, residual)| {
                if best.as_ref().is_some_and(|(_, best)| *best <= enough) {
                    Err(best)
                } else {
                    Ok(Some((line, residual)))
                }
            })
            .unwrap_or_else(|best| best)?;
        let mut fit = Self { line, fixed: (0.0, 0.0, 0.0), segments: Vec::new(), residual, points };
        fit.describe();
        Some(fit)
    }

    /// A line as other slices might have given: of those `drawn`, one list of their numbers for each size, and off by as much as the
    /// residual.
    pub fn resampled(&self, drawn: &[Vec<usize>], random: &mut SmallRng) -> SizeLine {
        let mut sizes = drawn.iter();
        let means = means(&self.points, |values| match sizes.next() {
            Some(drawn) => drawn.iter().map(|slice| values[slice % values.len()]).collect(),
            None => values.to_vec(),
        });
        let knees: Vec<f64> = self.line.nodes.iter().map(|(bytes, _)| *bytes).collect();
        let line = line_with(&means, &knees).unwrap_or_else(|| self.line.clone());
        line.scaled((self.residual * standard_normal(random)).exp())
    }

    /// Slices drawn with replacement, for each of the sizes: those of some moments of the run, of which the same seed draws the same,
    /// whatever the size and the case. What is measured interleaved is off alike, and so are slices that follow each other.
    pub fn draw_slices(&self, moments: u64) -> Vec<Vec<usize>> {
        let draw = |(_, values): &(f64, Vec<f64>)| {
            let mut random: SmallRng = rand::SeedableRng::seed_from_u64(moments);
            let (slices, moments) = (values.len(), MOMENTS.min(values.len()));
            let of_moment = |at: usize| at * slices / moments..(at + 1) * slices / moments;
            let drawn = (0..moments).map(|_| (random.random_range(0.0..1.0) * moments as f64) as usize);
            drawn.flat_map(of_moment).collect()
        };
        self.points.iter().map(draw).collect()
    }

    /// Finds the intervals of the parts.
    fn describe(&mut self) {
        let mut random: SmallRng = rand::SeedableRng::seed_from_u64(0);
        let lines: Vec<SizeLine> = (0..RESAMPLES)
            .map(|_| {
                let drawn = self.draw_slices(random.random());
                self.resampled(&drawn, &mut random)
            })
            .collect();
        let of = |value: &dyn Fn(&SizeLine) -> f64| {
            let (low, high) = quantiles(lines.iter().map(value).collect(), TAIL);
            let middle = value(&self.line);
            (middle, low.min(middle), high.max(middle))
        };
        let nodes = &self.line.nodes;
        let segments: Vec<SizeSegment> = (1..nodes.len())
            .map(|at| SizeSegment {
                from_bytes: nodes[at - 1].0,
                until_bytes: nodes[at].0,
                per_byte: of(&|line| line.slope(at - 1)),
            })
            .collect();
        let fixed = of(&|line| match line.nodes.as_slice() {
            [first, _, ..] => first.1 - line.slope(0) * first.0,
            other => other[0].1,
        });
        (self.fixed, self.segments) = (fixed, segments);
    }
}

/// The values of which a share of `tail` lies below and above the interval.
pub(super) fn quantiles(mut values: Vec<f64>, tail: f64) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| quantile_of_sorted(&values, share).unwrap_or(f64::NAN);
    (at(tail), at(1.0 - tail))
}

/// A value of the standard normal distribution.
pub(super) fn standard_normal(random: &mut SmallRng) -> f64 {
    Normal::standard().inverse_cdf(random.random_range(1e-9..1.0 - 1e-9))
}

fn means(points: &[(f64, Vec<f64>)], mut of: impl FnMut(&[f64]) -> Vec<f64>) -> Vec<(f64, f64)> {
    points.iter().map(|(bytes, values)| (*bytes, trimmed_mean(of(values)))).collect()
}

/// The mean without the smallest and the largest values. What a program does in a second depends on means, but stalls of the host are
/// no cost of a mechanism.
fn trimmed_mean(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len() as f64;
    let (from, until) = (TRIMMED * count, (1.0 - TRIMMED) * count);
    // A value at the edge counts in part.
    let weight = |at: usize| ((at as f64 + 1.0).min(until) - (at as f64).max(from)).max(0.0);
    values.iter().enumerate().map(|(at, value)| weight(at) * value).sum::<f64>() / (until - from)
}

/// How far the means can be from those of many more slices: the root of the mean square over sizes, as a fraction.
fn noise(points: &[(f64, Vec<f64>)]) -> f64 {
    let squares = points.iter().filter(|(_, values)| values.len() > 1).map(|(_, values)| {
        let (count, middle) = (values.len() as f64, mean(values));
        let square = values.iter().map(|value| (value - middle).powi(2)).sum::<f64>() / (count - 1.0) / count;
        square / weight_of(middle)
    });
    let squares: Vec<f64> = squares.collect();
    if squares.is_empty() { 0.0 } else { mean(&squares).sqrt() }
}

/// Errors count as fractions of the value; one that is about nothing is not worth more than a nanosecond is.
fn weight_of(value: f64) -> f64 {
    value.abs().max(1.0).powi(2)
}

/// The line with `count` knees that misses `points` least, and by how much.
fn best_line(points: &[(f64, f64)], count: usize) -> Option<(SizeLine, f64)> {
    let [(first, value), .., (last, _)] = points else {
        return points.first().map(|(_, value)| (SizeLine::constant(*value), 0.0));
    };
    debug_assert!(first < last, "sizes are ascending, of which {value} is the first's");
    let inner: Vec<f64> = points[1..points.len() - 1].iter().map(|(bytes, _)| *bytes).collect();
    let lines = choices(inner.len(), count).into_iter().filter_map(|chosen| {
        let nodes: Vec<f64> =
            [*first].into_iter().chain(chosen.iter().map(|at| inner[*at])).chain([*last]).collect();
        let line = line_with(points, &nodes)?;
        let left: f64 =
            points.iter().map(|(bytes, value)| (line.raw(*bytes) - value).powi(2) / weight_of(*value)).sum();
        let free = points.len().saturating_sub(nodes.len());
        Some((line, if free == 0 { 0.0 } else { (left / free as f64).sqrt() }))
    });
    lines.min_by(|(_, a), (_, b)| a.total_cmp(b))
}

impl SizeLine {
    /// The value at a size between the bounds, which may be below 0.
    fn raw(&self, bytes: f64) -> f64 {
        let at = self.nodes.partition_point(|(size, _)| *size <= bytes).clamp(1, self.nodes.len() - 1) - 1;
        self.nodes[at].1 + self.slope(at) * (bytes - self.nodes[at].0)
    }
}

/// Every choice of `count` of the numbers below `of`.
fn choices(of: usize, count: usize) -> Vec<Vec<usize>> {
    let mut chosen: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..count {
        let longer = chosen.iter().flat_map(|known| {
            let first = known.last().map_or(0, |last| last + 1);
            (first..of).map(move |next| known.iter().copied().chain([next]).collect())
        });
        chosen = longer.collect();
    }
    chosen
}

/// The line that bends at `nodes` alone and misses `points` least, by least squares of relative errors; `None` where a part of it
/// has no point.
fn line_with(points: &[(f64, f64)], nodes: &[f64]) -> Option<SizeLine> {
    let count = nodes.len();
    let mut rows = vec![vec![0.0; count + 1]; count];
    for (bytes, value) in points {
        let hats = hats(nodes, *bytes);
        let weight = 1.0 / weight_of(*value);
        for (row, a) in hats.iter().enumerate() {
            hats.iter().enumerate().for_each(|(column, b)| rows[row][column] += weight * a * b);
            rows[row][count] += weight * a * value;
        }
    }
    let values = rising(solve(rows)?);
    Some(SizeLine { nodes: nodes.iter().copied().zip(values).collect() })
}

/// `values`, where one that is below the one before it takes the mean of both with it: no larger message costs less, but noise may
/// say so.
fn rising(values: Vec<f64>) -> Vec<f64> {
    let mut groups: Vec<(f64, usize)> = Vec::new();
    for value in values {
        groups.push((value, 1));
        while let [.., (before, many), (after, few)] = groups.as_slice() {
            if before <= after {
                break;
            }
            let count = many + few;
            let mean = (before * *many as f64 + after * *few as f64) / count as f64;
            groups.truncate(groups.len() - 2);
            groups.push((mean, count));
        }
    }
    groups.into_iter().flat_map(|(value, count)| std::iter::repeat_n(value, count)).collect()
}

/// What each node counts at `bytes`: the two beside it by how near they are.
fn hats(nodes: &[f64], bytes: f64) -> Vec<f64> {
    let mut hats = vec![0.0; nodes.len()];
    if nodes.len() == 1 {
        hats[0] = 1.0;
        return hats;
    }
    let at = nodes.partition_point(|node| *node <= bytes).clamp(1, nodes.len() - 1) - 1;
    let share = (bytes - nodes[at]) / (nodes[at + 1] - nodes[at]);
    (hats[at], hats[at + 1]) = (1.0 - share, share);
    hats
}

/// The solution of linear equations, each a row with its right side last, by elimination; `None` where there is no single one.
fn solve(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let count = rows.len();
    for at in 0..count {
        let pivot = (at..count).max_by(|a, b| rows[*a][at].abs().total_cmp(&rows[*b][at].abs()))?;
        rows.swap(at, pivot);
        if rows[at][at].abs() < f64::MIN_POSITIVE {
            return None;
        }
        let above = rows[at].clone();
        for row in rows.iter_mut().skip(at + 1) {
            let factor = row[at] / above[at];
            row.iter_mut().zip(&above).skip(at).for_each(|(value, above)| *value -= factor * above);
        }
    }
    let mut solution = vec![0.0; count];
    for at in (0..count).rev() {
        let known: f64 = (at + 1..count).map(|column| rows[at][column] * solution[column]).sum();
        solution[at] = (rows[at][count] - known) / rows[at][at];
    }
    solution.iter().all(|value| value.is_finite()).then_some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;

    /// Ten slices at each of `sizes`, off by `noise` of `cost`.
    fn measured(sizes: &[f64], noise: f64, seed: u64, cost: impl Fn(f64) -> f64) -> Vec<(f64, Vec<f64>)> {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut slice = |bytes: f64| cost(bytes) * (noise * standard_normal(&mut random)).exp();
        sizes.iter().map(|bytes| (*bytes, (0..10).map(|_| slice(*bytes)).collect())).collect()
    }

    const SIZES: [f64; 8] = [1.0, 64.0, 1024.0, 4096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0];

    #[test]
    fn the_fixed_part_and_that_by_the_byte_are_recovered_within_their_intervals() {
        let tries = 40;
        let mut within = [0, 0];
        for seed in 0..tries {
            let fit = SizeFit::of(&measured(&SIZES, 0.03, seed, |bytes| 3000.0 + 0.2 * bytes)).unwrap();
            let segment = fit.segments.last().unwrap();
            within[0] += u32::from((fit.fixed.1..=fit.fixed.2).contains(&3000.0));
            within[1] += u32::from((segment.per_byte.1..=segment.per_byte.2).contains(&0.2));
            assert!((fit.fixed.0 / 3000.0 - 1.0).abs() < 0.1, "{fit:?}");
        }
        // Intervals of 90%, of a bootstrap over ten slices.
        assert!(within.iter().all(|held| *held >= 28), "{within:?} of {tries}");
    }

    #[test]
    fn what_wandered_alike_is_drawn_alike() {
        // Two cases in one run, one of 32 slices and one of 16, whose host was slower in the middle of it.
        let of = |cost: f64, slices: u32| {
            let slower = |slice: u32| if (4..11).contains(&(16 * slice / slices)) { 1.5 } else { 1.0 };
            let values = (0..slices).map(|slice| cost * slower(slice)).collect();
            SizeFit::of(&[(64.0, values)]).unwrap()
        };
        let (few, many) = (of(1000.0, 16), of(3000.0, 32));
        let mut random = SmallRng::seed_from_u64(3);
        let mut drawn =
            |fit: &SizeFit, moments| fit.resampled(&fit.draw_slices(moments), &mut random).at(64.0);
        let seeds = 0..200;
        assert!(
            seeds
                .clone()
                .all(|moments: u64| (drawn(&many, moments) / drawn(&few, moments) - 3.0).abs() < 1e-9)
        );
        assert!(seeds.clone().any(|moments| drawn(&few, moments) > 1000.0));
    }

    #[test]
    fn a_knee_is_found_where_the_cost_of_a_byte_changes() {
        let cost = |bytes: f64| 2000.0 + 0.05 * bytes + 0.3 * (bytes - 65_536.0).max(0.0);
        let fit = SizeFit::of(&measured(&SIZES, 0.005, 7, cost)).unwrap();
        let last = fit.segments.last().unwrap();
        assert!((last.per_byte.0 - 0.35).abs() < 0.03 && last.from_bytes >= 16_384.0, "{fit:?}");
        for bytes in [10.0, 3000.0, 50_000.0, 500_000.0] {
            assert!((fit.line.at(bytes) / cost(bytes) - 1.0).abs() < 0.1, "{bytes}: {fit:?}");
        }
    }

    #[test]
    fn noise_does_not_make_larger_messages_cheaper() {
        let fit =
            SizeFit::of(&[(64.0, vec![90.0; 6]), (1024.0, vec![30.0; 6]), (4096.0, vec![100.0; 6])]).unwrap();
        assert!(
            (fit.line.at(64.0) - 60.0).abs() < 30.0 && fit.line.at(1024.0) >= fit.line.at(64.0),
            "{fit:?}"
        );
        assert_eq!(rising(vec![1.0, 3.0, 2.0, 4.0]), [1.0, 2.5, 2.5, 4.0]);
    }

    #[test]
    fn one_size_is_a_constant_and_none_is_nothing() {
        let fit = SizeFit::of(&[(64.0, vec![5.0, 7.0, 6.0])]).unwrap();
        assert_eq!((fit.line.at(1.0), fit.line.at(1e6), fit.segments.len()), (6.0, 6.0, 0));
        assert_eq!(SizeFit::of(&[]), None);
        assert_eq!(SizeFit::of(&[(1.0, vec![f64::NAN])]), None);
    }

    proptest! {
        #[test]
        fn no_values_give_a_negative_cost(
            points in proptest::collection::vec((0..1u64 << 30, proptest::collection::vec(0.0..1e9f64, 0..4)), 0..12),
            bytes in 0..1u64 << 31,
        ) {
            let points: Vec<(f64, Vec<f64>)> = points.into_iter().map(|(bytes, values)| (bytes as f64, values)).collect();
            let Some(fit) = SizeFit::of(&points) else { return Ok(()) };
            let mut random = SmallRng::seed_from_u64(1);
            let drawn = fit.draw_slices(1);
            for line in [&fit.line, &fit.resampled(&drawn, &mut random)] {
                prop_assert!(line.at(bytes as f64) >= 0.0);
            }
        }
    }
}
