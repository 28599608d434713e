//! A histogram of times, lossless in its own buckets: HDR with three significant digits.
//!
//! It travels as base64 of the standard V2 encoding, which other HdrHistogram tools read too.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SIGNIFICANT_DIGITS: u8 = 3;
/// One hour: longer than any deadline.
const LARGEST_NS: u64 = 3_600_000_000_000;
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
        let inner = hdrhistogram::Histogram::new_with_bounds(1, LARGEST_NS, SIGNIFICANT_DIGITS);
        #[expect(clippy::expect_used, reason = "the bounds are constants that the library accepts")]
        Self(inner.expect("constant bounds"))
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
        decode(&self.0).unwrap_or_default()
    }
}

fn decode(text: &str) -> Result<Histogram, String> {
    if text.len() > LONGEST_TEXT {
        return Err(format!("a histogram of {} characters is too long to be one", text.len()));
    }
    let bytes = STANDARD.decode(text).map_err(|e| format!("a histogram is not base64: {e}"))?;
    check_bounds(&bytes)?;
    let mut reader = bytes.as_slice();
    let inner: hdrhistogram::Histogram<u64> = Deserializer::new()
        .deserialize(&mut reader)
        .map_err(|e| format!("a histogram is not in HdrHistogram's V2 encoding: {e}"))?;
    let mut histogram = Histogram::new();
    histogram.0.add(&inner).map_err(|e| format!("a histogram is out of bounds: {e}"))?;
    Ok(histogram)
}

/// Refuses a header that would make the library allocate for bounds that ipcmark never writes.
///
/// The V2 header is big-endian: cookie, payload length, normalizing offset, digits (4 bytes each),
/// lowest value, highest value, conversion ratio (8 bytes each).
fn check_bounds(bytes: &[u8]) -> Result<(), String> {
    let field = |at: usize| bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_be_bytes);
    let digits = bytes.get(12..16).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes);
    match (digits, field(16), field(24)) {
        (Some(digits), Some(lowest), Some(highest))
            if digits == u32::from(SIGNIFICANT_DIGITS) && lowest == 1 && highest <= LARGEST_NS =>
        {
            Ok(())
        }
        (Some(_), Some(_), Some(_)) => Err("a histogram has bounds that ipcmark does not write".to_owned()),
        _ => Err("a histogram is too short".to_owned()),
    }
}

impl Serialize for EncodedHistogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for EncodedHistogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        decode(&text).map_err(serde::de::Error::custom)?;
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
        fn text_loses_nothing(values in proptest::collection::vec(0..10_000_000_000u64, 0..200)) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|value| histogram.record(*value));
            let back = decode(&histogram.encode().0).unwrap();
            prop_assert_eq!(back.count(), values.len() as u64);
            prop_assert!(back.buckets().eq(histogram.buckets()));
        }

        #[test]
        fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), genuine in any::<bool>()) {
            if genuine {
                // A genuine header in front, so that the body is reached.
                let mut header = STANDARD.decode(&*Histogram::new().encode().0).unwrap();
                header.truncate(40);
                header.append(&mut bytes);
                bytes = header;
            }
            let _ = decode(&STANDARD.encode(bytes));
        }
    }

    #[test]
    fn hostile_bounds_are_refused_before_they_cost_memory() {
        let mut bytes = STANDARD.decode(&*Histogram::new().encode().0).unwrap();
        bytes[24..32].copy_from_slice(&u64::MAX.to_be_bytes());
        assert!(decode(&STANDARD.encode(bytes)).is_err());
    }
}
