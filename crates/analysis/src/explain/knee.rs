//! Knees: message sizes at which the time of an iteration begins to grow faster, or slower. Found in a curve, each with an
//! interval.
//!
//! The curve is taken as straight pieces on logarithmic axes that meet at knees: least squares over the medians of
//! trials. How far medians are from the pieces is the noise, so that what trials differ in and what no straight
//! piece can follow both count against a knee. What a further knee must gain is not taken from a table such as BIC's or
//! F's, for those assume many sizes, or that it is known where the knee would be: straight lines with noise are made over
//! the very sizes that were measured, and the price of a knee is the least at which hardly any of these lines has one.
//! Wherever a knee could be as well, by the same least squares, is in its interval.

use crate::stats::{mean, median, squares};
use model::Case;
use model::record::Record;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal};

/// The share of straight noisy lines in which knees may be found.
const FALSE_ALARMS: f64 = 0.01;
/// How many such lines are made.
const LINES: usize = 1999;
/// With how much confidence a knee is in its interval.
const CONFIDENCE: f64 = 0.95;
/// The most knees that are searched for: the sizes of a suite could not tell more apart.
const MOST: usize = 3;
/// From one knee to the next, and to the end, there are at least so many steps: one size that is off is no knee.
const LEAST_STEPS: usize = 2;
/// There are at least so many more sizes than quantities that are fitted: the noise is known by them alone.
const LEAST_LEFT: usize = 2;
/// A smaller change of slope is not visible in a figure.
const LEAST_CHANGE: f64 = 0.1;

/// A size that something in the machine or kernel makes special.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Landmark {
    /// What it is, such as `page` or `L2`.
    pub name: String,
    /// The size.
    pub bytes: u64,
}

/// A change of slope.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Knee {
    /// The measured size at which the pieces fit best if they meet there.
    pub at_bytes: u64,
    /// The knee lies above this measured size.
    pub from_bytes: u64,
    /// And below this one.
    pub until_bytes: u64,
    /// The slope up to it on logarithmic axes: 0 where size does not matter, 1 where time is proportional to it.
    pub before: f64,
    /// The slope from there on.
    pub after: f64,
    /// The landmarks between the two sizes, and on them.
    pub within: Vec<Landmark>,
    /// The landmarks at most one measured size away from there.
    pub beside: Vec<Landmark>,
}

/// The curve of cases that differ in nothing but the size, and its knees.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeCurve {
    /// The case at the smallest size.
    pub case: Case,
    /// Where its slope changes; `None` with too few sizes to tell.
    pub knees: Option<Vec<Knee>>,
}

/// The knees of each curve that `cases` make, of whose plain trials `records` are.
pub fn size_curves(cases: &[Case], records: &[Record], landmarks: &[Landmark]) -> Vec<SizeCurve> {
    let unsized_case = |case: &Case| Case { size_bytes: None, ..case.clone() };
    let mut curves: Vec<Vec<&Case>> = Vec::new();
    for case in cases.iter().filter(|case| case.size_bytes.is_some()) {
        match curves.iter_mut().find(|curve| unsized_case(curve[0]) == unsized_case(case)) {
            Some(curve) => curve.push(case),
            None => curves.push(vec![case]),
        }
    }
    let bend = |curve: Vec<&Case>| {
        let point = |case: &&Case| {
            let record = records.iter().find(|record| record.case == **case)?;
            Some((case.size_bytes?.0, record.samples.iter().map(|sample| sample.iteration_ns()).collect()))
        };
        let points: Vec<(u64, Vec<f64>)> = curve.iter().filter_map(point).collect();
        let smallest = curve.iter().min_by_key(|case| case.size_bytes).unwrap_or(&curve[0]);
        SizeCurve { case: (*smallest).clone(), knees: knees(&points, landmarks) }
    };
    curves.into_iter().filter(|curve| curve.len() > 1).map(bend).collect()
}

/// The knees of a curve that has `iteration_ns` of each trial at each size, in the order of sizes. `None` with too few sizes
/// to tell. Values that have no logarithm are left out.
pub fn knees(curve: &[(u64, Vec<f64>)], landmarks: &[Landmark]) -> Option<Vec<Knee>> {
    let curve = Curve::from_curve(curve);
    Some(found(&curve, &Shapes::over(&curve.x)?, landmarks))
}

fn found(curve: &Curve, shapes: &Shapes, landmarks: &[Landmark]) -> Vec<Knee> {
    let mut count = cheapest(&left_over(&shapes.all, &curve.y), curve.x.len(), shapes.price);
    loop {
        let knees = described(curve, &shapes.all, count, landmarks);
        if knees.iter().all(|knee| (knee.after - knee.before).abs() >= LEAST_CHANGE) {
            return knees;
        }
        count -= 1;
    }
}

/// A curve on logarithmic axes.
struct Curve {
    bytes: Vec<u64>,
    x: Vec<f64>,
    /// The medians over trials, with the mean of all of them as 0.
    y: Vec<f64>,
    /// How far the median of trials can be from what it would be over many, squared.
    trial_variance: f64,
}

impl Curve {
    fn from_curve(curve: &[(u64, Vec<f64>)]) -> Self {
        let mut sizes: Vec<(u64, Vec<f64>)> = curve
            .iter()
            .map(|(bytes, iteration_ns)| {
                let valid = iteration_ns.iter().filter(|ns| ns.is_finite() && **ns > 0.0);
                (*bytes, valid.map(|ns| ns.log2()).collect::<Vec<f64>>())
            })
            .filter(|(bytes, logs)| *bytes > 0 && !logs.is_empty())
            .collect();
        sizes.sort_by_key(|(bytes, _)| *bytes);
        sizes.dedup_by_key(|(bytes, _)| *bytes);
        let medians: Vec<f64> = sizes.iter().filter_map(|(_, logs)| median(logs)).collect();
        let centre = if medians.is_empty() { 0.0 } else { mean(&medians) };
        let variances: Vec<f64> =
            sizes.iter().filter(|(_, logs)| logs.len() > 1).map(|(_, logs)| median_variance(logs)).collect();
        Self {
            x: sizes.iter().map(|(bytes, _)| (*bytes as f64).log2()).collect(),
            bytes: sizes.into_iter().map(|(bytes, _)| bytes).collect(),
            y: medians.into_iter().map(|median| median - centre).collect(),
            trial_variance: if variances.is_empty() { 0.0 } else { mean(&variances) },
        }
    }
}

/// The variance of the median of `logs`: that of their mean, and as much more as medians of normal values vary more.
fn median_variance(logs: &[f64]) -> f64 {
    let n = logs.len() as f64;
    std::f64::consts::FRAC_PI_2 * squares(logs) / (n - 1.0) / n
}

/// What a curve over some sizes can look like.
struct Shapes {
    /// The straight line first.
    all: Vec<Shape>,
    /// What each knee must gain.
    price: f64,
}

impl Shapes {
    /// `None` where no knee could be told from noise.
    fn over(x: &[f64]) -> Option<Self> {
        let all = shapes(x);
        (all.len() > 1).then(|| Self { price: price(&all, x.len()), all })
    }
}

/// Straight pieces that meet at some of the sizes.
struct Shape {
    /// The indices of these sizes.
    knees: Vec<usize>,
    /// Orthonormal vectors that span all curves of this shape.
    basis: Vec<Vec<f64>>,
}

impl Shape {
    fn from_knees(knees: Vec<usize>, x: &[f64]) -> Self {
        let constant = vec![1.0; x.len()];
        let bends = knees.iter().map(|knee| x.iter().map(|x_i| (x_i - x[*knee]).max(0.0)).collect());
        let mut basis: Vec<Vec<f64>> = Vec::new();
        for mut vector in [constant, x.to_vec()].into_iter().chain(bends) {
            // Once leaves rounding errors, twice is enough (Giraud, Langou and Rozložník, 2005).
            for _ in 0..2 {
                for other in &basis {
                    let along = dot(&vector, other);
                    vector.iter_mut().zip(other).for_each(|(v, o)| *v -= along * o);
                }
            }
            let length = dot(&vector, &vector).sqrt();
            vector.iter_mut().for_each(|v| *v /= length);
            basis.push(vector);
        }
        Self { knees, basis }
    }

    /// The sum of squares that the best curve of this shape leaves of `y`.
    fn left_over(&self, y: &[f64]) -> f64 {
        let all = dot(y, y);
        let explained: f64 = self.basis.iter().map(|vector| dot(vector, y).powi(2)).sum();
        // A perfect fit would be infinitely better than any other; nothing measured is known to twelve digits.
        (all - explained).max(all * 1e-12).max(f64::MIN_POSITIVE)
    }

    /// The best curve of this shape.
    fn fitted(&self, y: &[f64]) -> Vec<f64> {
        let mut fitted = vec![0.0; y.len()];
        for vector in &self.basis {
            let along = dot(vector, y);
            fitted.iter_mut().zip(vector).for_each(|(f, v)| *f += along * v);
        }
        fitted
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// What is left of `sizes` points after a line with so many knees: a place and a slope are fitted for each.
fn left(sizes: usize, knees: usize) -> Option<usize> {
    sizes.checked_sub(2 + 2 * knees)
}

/// Every shape with as many knees as so many sizes allow, those with fewer first.
fn shapes(x: &[f64]) -> Vec<Shape> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    let mut begun = 0;
    for knees in 1..=MOST {
        if left(x.len(), knees).is_none_or(|left| left < LEAST_LEFT) {
            break;
        }
        let last = begun..all.len();
        begun = all.len();
        let longer: Vec<Vec<usize>> = all[last]
            .iter()
            .flat_map(|known| {
                let first = known.last().copied().unwrap_or(0) + LEAST_STEPS;
                (first..x.len() - LEAST_STEPS).map(move |next| known.iter().copied().chain([next]).collect())
            })
            .collect();
        all.extend(longer);
    }
    all.into_iter().map(|knees| Shape::from_knees(knees, x)).collect()
}

/// The least sum of squares that is left of `y` with each number of knees from 0 on.
fn left_over(shapes: &[Shape], y: &[f64]) -> Vec<f64> {
    let alike = shapes.chunk_by(|a, b| a.knees.len() == b.knees.len());
    alike.map(|alike| alike.iter().map(|shape| shape.left_over(y)).fold(f64::INFINITY, f64::min)).collect()
}

/// How much better a fit with `knees` is than the straight line: twice the logarithm of the ratio of likelihoods.
fn gain(left_over: &[f64], sizes: usize, knees: usize) -> f64 {
    sizes as f64 * (left_over[0] / left_over[knees]).ln()
}

/// The number of knees whose gain is highest above their price.
fn cheapest(left_over: &[f64], sizes: usize, price: f64) -> usize {
    let worth = |knees: &usize| gain(left_over, sizes, *knees) - price * *knees as f64;
    (0..left_over.len()).rev().max_by(|a, b| worth(a).total_cmp(&worth(b))).unwrap_or(0)
}

/// What each knee must gain at least, so that straight lines with noise are found straight.
///
/// A slope, a height and the size of the noise change nothing of the gain, so that noise alone does.
fn price(shapes: &[Shape], sizes: usize) -> f64 {
    let mut random = SmallRng::seed_from_u64(0);
    let normal = Normal::standard();
    let mut prices: Vec<f64> = (0..LINES)
        .map(|_| {
            let noise: Vec<f64> =
                (0..sizes).map(|_| normal.inverse_cdf(random.random_range(1e-9..1.0 - 1e-9))).collect();
            let left_over = left_over(shapes, &noise);
            (1..left_over.len())
                .map(|knees| gain(&left_over, sizes, knees) / knees as f64)
                .fold(0.0, f64::max)
        })
        .collect();
    prices.sort_unstable_by(f64::total_cmp);
    prices[((LINES as f64 * (1.0 - FALSE_ALARMS)) as usize).min(LINES - 1)]
}

/// The `count` knees that fit `curve` best.
fn described(curve: &Curve, shapes: &[Shape], count: usize, landmarks: &[Landmark]) -> Vec<Knee> {
    let alike: Vec<(&Shape, f64)> = shapes
        .iter()
        .filter(|shape| shape.knees.len() == count)
        .map(|shape| (shape, shape.left_over(&curve.y)))
        .collect();
    let Some((best, least)) = alike.iter().min_by(|a, b| a.1.total_cmp(&b.1)) else { return Vec::new() };
    let most = least + tolerance(curve, *least, count);
    let fitted = best.fitted(&curve.y);
    let last = curve.x.len() - 1;
    let ends: Vec<usize> = std::iter::once(0).chain(best.knees.iter().copied()).chain([last]).collect();
    let slope = |from: usize, until: usize| (fitted[until] - fitted[from]) / (curve.x[until] - curve.x[from]);
    let knee = |(number, at): (usize, &usize)| {
        let as_good =
            alike.iter().filter(|(_, left_over)| *left_over <= most).map(|(shape, _)| shape.knees[number]);
        let (lowest, highest) =
            as_good.fold((*at, *at), |(low, high), place| (low.min(place), high.max(place)));
        let bytes = |place: usize| curve.bytes[place.min(last)];
        let (from_bytes, until_bytes) = (bytes(lowest - 1), bytes(highest + 1));
        let between = |low: u64, high: u64| {
            landmarks.iter().filter(move |landmark| (low..=high).contains(&landmark.bytes))
        };
        let is_within = |landmark: &&Landmark| (from_bytes..=until_bytes).contains(&landmark.bytes);
        let around = between(bytes(lowest.saturating_sub(2)), bytes(highest + 2));
        Knee {
            at_bytes: curve.bytes[*at],
            from_bytes,
            until_bytes,
            before: slope(ends[number], *at),
            after: slope(*at, ends[number + 2]),
            within: between(from_bytes, until_bytes).cloned().collect(),
            beside: around.filter(|landmark| !is_within(landmark)).cloned().collect(),
        }
    };
    best.knees.iter().enumerate().map(knee).collect()
}

/// How much more a shape may leave over than the best one, and still be as good, where one knee was moved.
///
/// With few sizes the pieces can come closer to the medians than trials allow; then the noise is that of trials.
fn tolerance(curve: &Curve, least: f64, knees: usize) -> f64 {
    let left = left(curve.x.len(), knees).unwrap_or(0).max(1) as f64;
    let noise = (least / left).max(curve.trial_variance);
    let ratio = FisherSnedecor::new(1.0, left).map_or(f64::INFINITY, |f| f.inverse_cdf(CONFIDENCE));
    noise * ratio
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};
    use std::sync::LazyLock;

    /// What trials at each size take: `iteration_ns` of the size, with `noise` as a part of it, and half as much again in
    /// one trial of twenty.
    fn curve(
        sizes: &[u64],
        trials: usize,
        noise: f64,
        seed: u64,
        iteration_ns: impl Fn(f64) -> f64,
    ) -> Vec<(u64, Vec<f64>)> {
        let mut random = SmallRng::seed_from_u64(seed);
        let normal = Normal::standard();
        let mut trial = |bytes: u64| {
            let error: f64 = normal.inverse_cdf(random.random_range(1e-9..1.0 - 1e-9));
            let tail = if random.random_bool(0.05) { 1.5 } else { 1.0 };
            iteration_ns(bytes as f64) * (noise * error).exp() * tail
        };
        sizes.iter().map(|bytes| (*bytes, (0..trials).map(|_| trial(*bytes)).collect())).collect()
    }

    fn doubling(count: u32) -> Vec<u64> {
        (0..count).map(|exponent| 1 << exponent).collect()
    }

    static SHAPES: LazyLock<Shapes> =
        LazyLock::new(|| Shapes::over(&(0..21).map(f64::from).collect::<Vec<f64>>()).unwrap());

    /// Flat up to `at`, and with a slope from there on.
    fn bent(at: f64, slope: f64) -> impl Fn(f64) -> f64 {
        move |bytes| 3_000.0 * (bytes / at).max(1.0).powf(slope)
    }

    #[test]
    fn straight_noisy_lines_are_found_straight() {
        const TRIES: u64 = 300;
        for (sizes, trials, noise) in [
            (doubling(8), 6, 0.1),
            (doubling(21), 10, 0.02),
            (vec![1, 64, 100, 1024, 4096, 5000, 65_536, 1 << 20], 10, 0.05),
        ] {
            let shapes = Shapes::over(&Curve::from_curve(&curve(&sizes, 1, noise, 0, |_| 1.0)).x).unwrap();
            let alarms = (0..TRIES).filter(|seed| {
                let slope = *seed as f64 / TRIES as f64;
                let line = curve(&sizes, trials, noise, *seed, |bytes| 1_000.0 * bytes.powf(slope));
                !found(&Curve::from_curve(&line), &shapes, &[]).is_empty()
            });
            let alarms = alarms.count();
            assert!(alarms as f64 / (TRIES as f64) < 0.05, "{alarms} of {TRIES} with {} sizes", sizes.len());
        }
    }

    #[test]
    fn planted_knees_are_in_their_intervals_as_often_as_they_say() {
        const TRIES: u64 = 400;
        let mut random = SmallRng::seed_from_u64(7);
        let outside = (0..TRIES).filter(|seed| {
            let planted = f64::from(1u32 << random.random_range(4..16)) * 1.3;
            let (slope, noise) = (random.random_range(0.5..1.2), random.random_range(0.001..0.03));
            let line = curve(&doubling(21), 10, noise, *seed, bent(planted, slope));
            let found = found(&Curve::from_curve(&line), &SHAPES, &[]);
            assert!(found[0].before.abs() < 0.1, "{found:?}");
            assert!((found[found.len() - 1].after - slope).abs() < 0.1, "{slope}: {found:?}");
            !found.iter().any(|knee| (knee.from_bytes as f64..=knee.until_bytes as f64).contains(&planted))
        });
        let outside = outside.count();
        assert!(outside as f64 / TRIES as f64 <= 1.0 - CONFIDENCE, "{outside} of {TRIES}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn nothing_in_a_curve_is_out_of_reach(values in proptest::collection::vec((any::<u64>(), proptest::collection::vec(any::<f64>(), 0..4)), 0..12)) {
            for knee in knees(&values, &[]).into_iter().flatten() {
                prop_assert!(knee.from_bytes < knee.at_bytes && knee.at_bytes < knee.until_bytes);
            }
        }
    }

    #[test]
    fn landmarks_in_the_interval_and_next_to_it_are_told() {
        let landmarks =
            [("page", 4096), ("L1d", 32_768), ("pipe", 65_536), ("half", 16_384), ("L2", 1 << 20)];
        let landmarks = landmarks.map(|(name, bytes)| Landmark { name: name.to_owned(), bytes });
        let found = knees(&curve(&doubling(21), 10, 0.005, 1, bent(65_536.0, 1.0)), &landmarks).unwrap();
        let [knee] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((knee.from_bytes, knee.at_bytes, knee.until_bytes), (32_768, 65_536, 131_072));
        let names = |landmarks: &[Landmark]| landmarks.iter().map(|l| l.name.clone()).collect::<Vec<_>>();
        assert_eq!(
            (names(&knee.within), names(&knee.beside)),
            (vec!["L1d".to_owned(), "pipe".to_owned()], vec!["half".to_owned()])
        );
    }

    #[test]
    fn two_knees_are_found_though_they_bend_both_ways() {
        let steps =
            |bytes: f64| 1_000.0 * (bytes / 256.0).max(1.0).powf(0.9) / (bytes / 32_768.0).max(1.0).powf(0.6);
        let found = knees(&curve(&doubling(21), 10, 0.01, 3, steps), &[]).unwrap();
        assert_eq!(found.iter().map(|knee| knee.at_bytes).collect::<Vec<_>>(), [256, 32_768], "{found:?}");
    }

    #[test]
    fn a_soft_bend_has_knees_where_it_bends() {
        // A fixed cost and one by byte, which are the same at 10 kB.
        let found = knees(&curve(&doubling(21), 10, 0.01, 5, |bytes| 2_000.0 + 0.2 * bytes), &[]).unwrap();
        assert!(
            !found.is_empty() && found.iter().all(|knee| (512..=262_144).contains(&knee.at_bytes)),
            "{found:?}"
        );
    }

    #[test]
    fn too_few_sizes_tell_nothing() {
        assert_eq!(knees(&curve(&doubling(5), 10, 0.01, 1, bent(4.0, 1.0)), &[]), None);
        assert_eq!(knees(&[], &[]), None);
        assert_eq!(knees(&curve(&doubling(6), 10, 0.01, 1, |_| 1_000.0), &[]), Some(Vec::new()));
    }
}
