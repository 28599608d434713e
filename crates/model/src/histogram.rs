//! A histogram of times, lossless in its own buckets: HDR with three significant digits.
//!
//! It travels as base64 of the standard V2 encoding, which other HdrHistogram tools read too.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SIGNIFICANT_DIGITS: u8 = 3;
/// One hour: longer than any deadline.
const LARGEST_NS: u64 = 3_600_000_000_000;
/// Buckets come in halves of this many, each half twice as coarse as the one before: twice the power of ten of
/// the digits, rounded up to a power of two, and halved.
const HALF_BUCKETS: usize = 1024;
/// The longest text that is read back. A full histogram of ours is far below it.
const LONGEST_TEXT: usize = 1 << 20;

/// Counts of times in nanoseconds, each kept to 0.1%.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram with all its buckets allocated: recording never allocates.
    pub fn new() -> Self {
        Self::up_to(LARGEST_NS)
    }

    /// The same for times that are no longer than `largest_ns`: a quarter of a megabyte for an hour, and 64 KiB for 100 µs. A time
    /// above it counts as the longest.
    pub fn up_to(largest_ns: u64) -> Self {
        let largest_ns = largest_ns.clamp(2, LARGEST_NS);
        let inner = hdrhistogram::Histogram::new_with_bounds(1, largest_ns, SIGNIFICANT_DIGITS);
        #[expect(clippy::expect_used, reason = "the library accepts all bounds between these")]
        Self(inner.expect("bounds that are accepted"))
    }

    /// Counts one time. A time above an hour counts as an hour.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Adds every count of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        // Both have the same bounds, so that adding cannot fail.
        let _ = self.0.add(&other.0);
    }

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The time at or below which the fraction `quantile` (0 to 1) of the counts lies.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.0.value_at_quantile(quantile))
    }

    /// The mean of what was counted, to the histogram's precision.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.0.mean())
    }

    /// The largest time counted.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.0.max())
    }

    /// Each occupied bucket: its value and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// The histogram as text, for records and for memory: a hundredth of the live one's size.
    pub fn encode(&self) -> EncodedHistogram {
        let mut bytes = Vec::new();
        // Writing to memory fails only where the histogram is larger than its own bounds allow.
        let _ = V2Serializer::new().serialize(&self.0, &mut bytes);
        EncodedHistogram(STANDARD.encode(bytes).into_boxed_str())
    }
}

/// A histogram as text: base64 of HdrHistogram's V2 encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedHistogram(Box<str>);

impl EncodedHistogram {
    /// The histogram that the text stands for. An encoding was checked when it was read, so an
    /// empty histogram stands in only for what cannot occur.
    pub fn decode(&self) -> Histogram {
        let mut histogram = Histogram::new();
        for (at, count) in counts(&self.0).unwrap_or_default() {
            histogram.0.saturating_record_n(value_of(at), count);
        }
        histogram
    }
}

/// As [`Histogram::quantile_ns`] of all `histograms` together, for each of `quantiles`, and how many times they
/// count; nothing of nothing.
///
/// Only occupied buckets are read: a results file holds tens of thousands of histograms, each of which would
/// be a quarter of a megabyte in full.
pub fn quantiles_ns<'a>(
    histograms: impl IntoIterator<Item = &'a EncodedHistogram>,
    quantiles: &[f64],
) -> Option<(u64, Vec<u64>)> {
    let mut all: Vec<u64> = Vec::new();
    for (at, count) in histograms.into_iter().flat_map(|text| counts(&text.0).unwrap_or_default()) {
        all.resize(all.len().max(at + 1), 0);
        all[at] = all[at].saturating_add(count);
    }
    let total = all.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
    (total > 0).then_some(())?;
    let quantile = |quantile: f64| {
        let wanted = ((quantile * total as f64).ceil() as u64).clamp(1, total);
        let mut seen: u64 = 0;
        let at = all.iter().position(|count| {
            seen = seen.saturating_add(*count);
            seen >= wanted
        })?;
        // The largest value that falls in the bucket, as the library has it; the smallest for the least time.
        Some(if quantile == 0.0 { value_of(at) } else { value_of(at + 1) - 1 })
    };
    let values: Option<Vec<u64>> = quantiles.iter().map(|at| quantile(*at)).collect();
    Some((total, values?))
}

/// The least value of the bucket `at`.
fn value_of(at: usize) -> u64 {
    match at / HALF_BUCKETS {
        0 => at as u64,
        half => ((at % HALF_BUCKETS + HALF_BUCKETS) as u64) << (half - 1),
    }
}

/// The occupied buckets of an encoding, each with its count.
///
/// The library's own decoder allocates every bucket, which for a results file of many thousand histograms
/// takes longer than all else.
fn counts(text: &str) -> Result<Vec<(usize, u64)>, String> {
    if text.len() > LONGEST_TEXT {
        return Err(format!("a histogram of {} characters is too long to be one", text.len()));
    }
    let bytes = STANDARD.decode(text).map_err(|e| format!("a histogram is not base64: {e}"))?;
    let mut payload = payload(&bytes)?;
    let mut counts = Vec::new();
    let mut at: usize = 0;
    while !payload.is_empty() {
        let number = varint(&mut payload).ok_or("a histogram ends within a number")?;
        // Zigzag: even numbers are counts, odd ones runs of empty buckets.
        let run = usize::try_from(number.div_ceil(2)).unwrap_or(usize::MAX);
        match number % 2 {
            1 => at = at.saturating_add(run),
            _ => {
                (number > 0).then(|| counts.push((at, number / 2)));
                at += 1;
            }
        }
        if at > 1 + bucket_of(LARGEST_NS) {
            return Err("a histogram is out of bounds".to_owned());
        }
    }
    Ok(counts)
}

/// The bucket of `value`.
fn bucket_of(value: u64) -> usize {
    let half = (u64::BITS - value.leading_zeros()).saturating_sub(HALF_BUCKETS.ilog2() + 1) as usize;
    half * HALF_BUCKETS + (value >> half) as usize
}

/// The counts of an encoding, after its header.
///
/// The V2 header is big-endian: cookie, payload length, normalizing offset, digits (4 bytes each),
/// lowest value, highest value, conversion ratio (8 bytes each).
fn payload(bytes: &[u8]) -> Result<&[u8], String> {
    const HEADER_BYTES: usize = 40;
    const COOKIE: u32 = 0x1c84_9303 | 0x10;
    let long = |at: usize| bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_be_bytes);
    let word = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes);
    let (Some(cookie), Some(length), Some(offset), Some(digits)) = (word(0), word(4), word(8), word(12))
    else {
        return Err("a histogram is too short".to_owned());
    };
    let (Some(lowest), Some(highest), Some(ratio)) = (long(16), long(24), long(32)) else {
        return Err("a histogram is too short".to_owned());
    };
    if cookie != COOKIE || offset != 0 || f64::from_bits(ratio) != 1.0 {
        return Err("a histogram is not in HdrHistogram's V2 encoding".to_owned());
    }
    if digits != u32::from(SIGNIFICANT_DIGITS) || lowest != 1 || highest > LARGEST_NS {
        return Err("a histogram has bounds that ipcmark does not write".to_owned());
    }
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    bytes[HEADER_BYTES..].get(..length).ok_or_else(|| "a histogram is cut off".to_owned())
}

/// Takes one number off `bytes`: seven bits a byte, the lowest first, and all eight of a ninth.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if at == 8 {
            return Some(number | u64::from(*byte) << 56);
        }
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number)
}

impl Serialize for EncodedHistogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for EncodedHistogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        counts(&text).map_err(serde::de::Error::custom)?;
        Ok(Self(text.into_boxed_str()))
    }
}

impl JsonSchema for EncodedHistogram {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Histogram".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "contentEncoding": "base64",
            "description": "HdrHistogram, V2 encoding, nanoseconds (or bytes where said), three significant digits"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn text_loses_nothing(values in proptest::collection::vec(0..LARGEST_NS, 0..200)) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|value| histogram.record(*value));
            let back = histogram.encode().decode();
            prop_assert_eq!(back.count(), values.len() as u64);
            prop_assert!(back.buckets().eq(histogram.buckets()));
        }

        #[test]
        fn the_library_reads_the_same(values in proptest::collection::vec(0..LARGEST_NS, 0..200)) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|value| histogram.record(*value));
            let bytes = STANDARD.decode(&*histogram.encode().0).unwrap();
            let theirs: hdrhistogram::Histogram<u64> =
                hdrhistogram::serialization::Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            prop_assert!(Histogram(theirs).buckets().eq(histogram.encode().decode().buckets()));
        }

        #[test]
        fn quantiles_of_many_are_those_of_all_together(
            trials in proptest::collection::vec(proptest::collection::vec(0..LARGEST_NS, 0..50), 0..5)
        ) {
            const QUANTILES: [f64; 5] = [0.0, 0.1, 0.5, 0.99, 1.0];
            let mut all = Histogram::new();
            let encoded: Vec<EncodedHistogram> = trials.iter().map(|values| {
                let mut trial = Histogram::new();
                values.iter().for_each(|value| trial.record(*value));
                all.merge(&trial);
                trial.encode()
            }).collect();
            let quantiles = quantiles_ns(&encoded, &QUANTILES);
            let expected: Option<Vec<u64>> = QUANTILES.iter().map(|at| all.quantile_ns(*at)).collect();
            prop_assert_eq!(quantiles.as_ref().map(|(_, values)| values.clone()), expected);
            prop_assert_eq!(quantiles.map_or(0, |(count, _)| count), all.count());
        }

        #[test]
        fn buckets_and_values_agree(value in 0..LARGEST_NS) {
            let at = bucket_of(value);
            prop_assert!(value_of(at) <= value && value < value_of(at + 1), "{at}");
        }

        #[test]
        fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), genuine in any::<bool>()) {
            if genuine {
                // A genuine header in front, with the length of what follows, so that the body is reached.
                let mut header = STANDARD.decode(&*Histogram::new().encode().0).unwrap();
                header.truncate(40);
                header[4..8].copy_from_slice(&(bytes.len() as u32).to_be_bytes());
                header.append(&mut bytes);
                bytes = header;
            }
            let _ = counts(&STANDARD.encode(bytes));
        }
    }

    #[test]
    fn hostile_bounds_are_refused_before_they_cost_memory() {
        let mut bytes = STANDARD.decode(&*Histogram::new().encode().0).unwrap();
        bytes[24..32].copy_from_slice(&u64::MAX.to_be_bytes());
        assert!(counts(&STANDARD.encode(bytes)).is_err());
    }
}
