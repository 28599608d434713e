//! Numbers as the cells of tables show them. It decides no unit: that is `model::units`.
//!
//! `None` is a value that is missing or that is no number; it is printed as a dash, never as 0.

use crate::words::{clip, tight};
use analysis::interval::MeanEstimate;
use model::estimate::Estimate;
use model::units::{Size, Unit, format_ns, format_rate, three_digits};

/// No number worth reading is longer. A results file can hold any, and the table must keep its shape.
const LONGEST: usize = 9;

/// How the numbers of a column are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A time in nanoseconds with the half-width of its interval.
    SettledTime,
    /// A time in nanoseconds.
    Time,
    /// A difference of times in nanoseconds.
    SignedTime,
    /// A rate in bytes per second with the half-width of its interval.
    Rate,
    /// A count per iteration.
    Count,
    /// A multiple.
    Multiple,
    /// A part of a whole.
    Share,
    /// Between 0 and 1, where the last digits matter.
    Index,
}

impl Kind {
    /// In what the numbers are counted.
    pub(crate) const fn unit(self) -> Unit {
        match self {
            Kind::SettledTime | Kind::Time | Kind::SignedTime => Unit::Ns,
            Kind::Rate => Unit::BytesPerS,
            Kind::Count | Kind::Multiple | Kind::Share | Kind::Index => Unit::Number,
        }
    }

    /// `number` without its interval, with the digits that it has where its interval is so wide, as a fraction on either side.
    fn bare(self, number: f64, half_width: f64) -> Option<String> {
        let digits = digits_of(half_width);
        let number = significant(number, digits);
        let text = match self {
            Kind::SettledTime => time(number),
            Kind::Rate => rate(number),
            other => other.text(Estimate { median: number, interval: None }),
        };
        text.map(|text| if digits == 2 { without_third_digit(&text) } else { text })
    }

    /// `number` and what it is worth, for a cell of two columns: `4.07 µs` and `±3%`. What is wider than `widest` on either side is a
    /// range: `3.7-6.0 µs`, and nothing. A number without an interval that should have one has a question mark.
    pub(crate) fn with_worth(
        self,
        number: Estimate,
        unit: Option<RateUnit>,
        widest: f64,
    ) -> Option<(String, String)> {
        let bare = |number, half_width| match unit {
            Some(unit) => unit.bare(number, half_width),
            None => self.bare(number, half_width),
        };
        match (self, number.half_width()) {
            (Kind::SettledTime | Kind::Rate, Some(half)) if half <= widest => {
                Some((bare(number.median, half)?, format!("±{}", rounded_percent(half))))
            }
            (Kind::SettledTime | Kind::Rate, Some(half)) => {
                let (low, high) = number.interval?;
                let (low, high) = (bare(low, half)?, bare(high, half)?);
                Some((range(&low, &high), String::new()))
            }
            (Kind::SettledTime | Kind::Rate, None) => Some((bare(number.median, 0.0)?, "?".to_owned())),
            _ => Some((self.bare(number.median, 0.0)?, String::new())),
        }
    }

    /// `number` as a cell shows it.
    pub(crate) fn text(self, number: Estimate) -> Option<String> {
        match self {
            Kind::SettledTime => time_estimate(number),
            Kind::Time => time(number.median),
            Kind::SignedTime => signed_time(number.median),
            Kind::Rate => rate_estimate(number),
            Kind::Count => count(number.median),
            Kind::Multiple => multiple(number.median),
            Kind::Share => number.median.is_finite().then(|| percent(number.median)),
            Kind::Index => number.median.is_finite().then(|| clip(&format!("{:.3}", number.median), LONGEST)),
        }
    }
}

/// The unit of all rates of a table, so that no cell needs one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateUnit {
    /// A thousand bytes per second.
    Kilo,
    /// A million.
    Mega,
    /// A thousand million.
    Giga,
}

impl RateUnit {
    /// That in which the rate `most` is written.
    pub(crate) fn for_most(most: f64) -> Self {
        match most {
            most if most < 999.5e3 => RateUnit::Kilo,
            most if most < 999.5e6 => RateUnit::Mega,
            _ => RateUnit::Giga,
        }
    }

    /// How it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RateUnit::Kilo => "kB/s",
            RateUnit::Mega => "MB/s",
            RateUnit::Giga => "GB/s",
        }
    }

    /// `bytes_per_s` in this unit, with the digits that it has where its interval is so wide.
    fn bare(self, bytes_per_s: f64, half_width: f64) -> Option<String> {
        let per_unit = match self {
            RateUnit::Kilo => 1e3,
            RateUnit::Mega => 1e6,
            RateUnit::Giga => 1e9,
        };
        let digits = digits_of(half_width);
        let text = three_digits(significant(bytes_per_s / per_unit, digits));
        let text = if digits == 2 { without_third_digit(&text) } else { text };
        bytes_per_s.is_finite().then(|| clip(&text, LONGEST))
    }
}

/// How many significant digits a number has whose interval is so wide, as a fraction on either side.
fn digits_of(half_width: f64) -> usize {
    /// With a wider interval the third digit is a matter of chance.
    const THREE_DIGITS: f64 = 0.055;
    if half_width <= THREE_DIGITS { 3 } else { 2 }
}

/// A time in nanoseconds, with its unit.
pub(crate) fn time(ns: f64) -> Option<String> {
    ns.is_finite().then(|| clip(&format_ns(ns), LONGEST))
}

/// A difference of times in nanoseconds, with its sign and unit.
pub(crate) fn signed_time(ns: f64) -> Option<String> {
    let sign = if ns < 0.0 { '-' } else { '+' };
    time(ns.abs()).map(|time| format!("{sign}{time}"))
}

/// A time in nanoseconds, with the half-width of its interval.
pub(crate) fn time_estimate(ns: Estimate) -> Option<String> {
    time(ns.median).map(|time| format!("{time:>7} {:>5}", spread(ns)))
}

/// A mean time in nanoseconds with the half-width of its interval as a time: `230 ns ±12 ns`.
pub(crate) fn mean_time(ns: MeanEstimate) -> Option<String> {
    Some(time(ns.mean)? + &half_of(ns))
}

/// A mean difference of times, with its sign: `+230 ns ±12 ns`.
pub(crate) fn signed_mean_time(ns: MeanEstimate) -> Option<String> {
    Some(signed_time(ns.mean)? + &half_of(ns))
}

fn half_of(ns: MeanEstimate) -> String {
    let half = ns.interval.and_then(|(low, high)| time((high - low) / 2.0));
    half.map(|half| format!(" ±{half}")).unwrap_or_default()
}

/// An interval of times: `200 ns to 230 ns`.
pub(crate) fn time_range((low, high): (f64, f64)) -> String {
    format!("{} to {}", time_or_signed(low), time_or_signed(high))
}

/// A time; below 0 with its sign.
pub(crate) fn time_or_signed(ns: f64) -> String {
    let text = if ns < 0.0 { signed_time(ns) } else { time(ns) };
    text.unwrap_or_default()
}

/// An interval of shares: `12% to 15%`.
pub(crate) fn whole_interval((low, high): (f64, f64)) -> String {
    format!("{} to {}", percent(low), percent(high))
}

/// A rate in bytes per second, with its unit.
fn rate(bytes_per_s: f64) -> Option<String> {
    bytes_per_s.is_finite().then(|| clip(&format_rate(bytes_per_s), LONGEST))
}

/// A rate in bytes per second, with the half-width of its interval.
pub(crate) fn rate_estimate(bytes_per_s: Estimate) -> Option<String> {
    rate(bytes_per_s.median).map(|rate| format!("{rate:>9} {:>5}", spread(bytes_per_s)))
}

/// A count per iteration.
pub(crate) fn count(per_iteration: f64) -> Option<String> {
    per_iteration.is_finite().then(|| clip(&three_digits(per_iteration), LONGEST))
}

/// A multiple: `×3.1`.
pub(crate) fn multiple(of: f64) -> Option<String> {
    of.is_finite().then(|| clip(&format!("×{}", two_digits(of)), LONGEST))
}

/// A ratio as the change that it is, with half of its interval: `+14% ±6.0%`.
pub(crate) fn change(ratio: f64, interval: Option<(f64, f64)>) -> Option<String> {
    let spread = half_width(interval.map(|(low, high)| (high - low) / 2.0));
    let sign = if ratio < 1.0 { '-' } else { '+' };
    let change = clip(&format!("{sign}{}", percent((ratio - 1.0).abs())), LONGEST);
    ratio.is_finite().then(|| format!("{change:>5} {spread:>5}"))
}

/// `low` to `high`, whose unit is written once where it is one.
fn range(low: &str, high: &str) -> String {
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((low, unit)), Some((_, of_high))) if unit == of_high => format!("{low}-{high}"),
        (None, None) => format!("{low}-{high}"),
        _ => format!("{low} - {high}"),
    }
}

/// A number that is known to two digits without the third, which would be a 0: `8.9 µs` of `8.90 µs`.
fn without_third_digit(text: &str) -> String {
    let (number, unit) = text.split_once(' ').map_or((text, ""), |(number, unit)| (number, unit));
    let number = match number.split_once('.') {
        Some((whole, decimals)) if decimals.ends_with('0') => {
            let kept = &decimals[..decimals.len() - 1];
            if kept.is_empty() { whole.to_owned() } else { format!("{whole}.{kept}") }
        }
        _ => number.to_owned(),
    };
    format!("{number} {unit}").trim_end().to_owned()
}

/// Half of the width of an interval in percent, whole from 1 on: `0.4%`, `3%`.
pub(crate) fn rounded_percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent < 0.95 { format!("{percent:.1}%") } else { format!("{percent:.0}%") }
}

/// How many times as long something takes: `1.03x`, `1.9x`, `12x`.
pub(crate) fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 1.095 => format!("{ratio:.2}x"),
        ratio if ratio < 9.95 => format!("{ratio:.1}x"),
        ratio => clip(&format!("{ratio:.0}x"), LONGEST),
    }
}

/// A fraction in percent, without a sign: `0.8%`, `12%`.
pub(crate) fn percent(fraction: f64) -> String {
    format!("{}%", two_digits(fraction * 100.0))
}

/// A number with the half-width of its interval, if it has one.
pub(crate) fn estimate(value: Estimate, unit: Unit) -> String {
    if value.interval.is_none() {
        let bytes = if unit == Unit::Bytes && value.median < 1024.0 { " B" } else { "" };
        return number(value.median, unit) + bytes;
    }
    let with_spread = match unit {
        Unit::Ns if value.median >= 0.0 => time_estimate(value),
        Unit::BytesPerS => rate_estimate(value),
        _ => None,
    };
    let half = value.half_width().filter(|half| half.is_finite() && *half > 0.0005);
    let spread = half.map(|half| format!(" ±{}", percent(half)));
    with_spread.unwrap_or_else(|| match spread {
        Some(spread) => number(significant(value.median, 3), unit) + &spread,
        None => number(value.median, unit),
    })
}

/// `value` to so many significant `digits`: 6260000 of 6264068 to three.
fn significant(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits - 1).parse().unwrap_or(value)
}

/// A number in the words of its unit.
pub(crate) fn number(value: f64, unit: Unit) -> String {
    /// A results file can hold any number; nothing worth reading is longer.
    const LONGEST: usize = 12;
    let text = match unit {
        Unit::Ns => format_ns(value),
        Unit::BytesPerS => format_rate(value),
        // What is measured of memory has no use for its last digits.
        Unit::Bytes if value > MIB && value % MIB != 0.0 => three_digits(value / MIB) + "M",
        Unit::Bytes if value >= 0.0 && value.fract() == 0.0 && value < 1e18 => Size(value as u64).to_string(),
        Unit::Bytes => three_digits(value),
        // A whole number is one that was counted, or published so.
        Unit::Number if value.fract() == 0.0 && value.abs() < 1e9 => format!("{value:.0}"),
        Unit::Number => three_digits(value),
    };
    clip(&text, LONGEST)
}

/// The bytes of a mebibyte.
const MIB: f64 = 1_048_576.0;

/// The same without the blanks that align columns.
pub(crate) fn tight_estimate(value: Estimate, unit: Unit) -> String {
    tight(&estimate(value, unit))
}

/// Half the width of the 95% interval: `±0.8%`.
fn spread(of: Estimate) -> String {
    half_width(of.half_width())
}

/// Half the width of an interval, as a fraction; a dash where there is none.
fn half_width(half: Option<f64>) -> String {
    match half.filter(|half| half.is_finite()) {
        Some(half) if half < 10.0 => format!("±{}", percent(half)),
        Some(_) => ">999%".to_owned(),
        None => "-".to_owned(),
    }
}

/// One decimal below 10, none above: what is left of a number that is known to some percent.
fn two_digits(value: f64) -> String {
    if value.abs() < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(median: f64, interval: Option<(f64, f64)>) -> Estimate {
        Estimate { median, interval }
    }

    #[test]
    fn an_estimate_shows_its_spread_and_a_missing_one_a_dash() {
        let cell = |median, interval| time_estimate(estimate(median, interval));
        assert_eq!(cell(2812.0, Some((2790.0, 2835.0))).as_deref(), Some("2.81 µs ±0.8%"));
        assert_eq!(cell(812.0, Some((700.0, 900.0))).as_deref(), Some(" 812 ns  ±12%"));
        assert_eq!(cell(812.0, None).as_deref(), Some(" 812 ns     -"));
        assert_eq!(cell(1.0, Some((1.0, 100.0))).as_deref(), Some("1.00 ns >999%"));
        assert_eq!(cell(f64::NAN, None), None);
    }

    #[test]
    fn a_ratio_is_shown_as_a_change() {
        assert_eq!(change(1.138, Some((1.08, 1.2))).as_deref(), Some(" +14% ±6.0%"));
        assert_eq!(change(0.75, None).as_deref(), Some(" -25%     -"));
        assert_eq!(change(f64::INFINITY, None), None);
    }

    #[test]
    fn a_number_beyond_reason_is_clipped() {
        assert_eq!(time(1e30).as_deref(), Some("10000000…"));
        assert_eq!(multiple(f64::INFINITY), None);
        assert_eq!(multiple(3.07).as_deref(), Some("×3.1"));
        assert_eq!(rate_estimate(estimate(2.81e9, None)).as_deref(), Some("2.81 GB/s     -"));
    }
}
