//! Sizes, durations and percentages: what is read is what its own text says.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::units::{format_ns, format_rate, parse_duration, parse_sizes};
use model::{Percent, Size};

fuzz_target!(|text: &str| {
    if let Ok(size) = text.parse::<Size>() {
        assert_eq!(size.to_string().parse(), Ok(size));
    }
    if let Ok(sizes) = parse_sizes(text) {
        assert!(sizes.is_sorted_by(|a, b| a < b), "{sizes:?}");
        // The limit of a spec is no size of its own.
        let sizes: Vec<Size> = sizes.into_iter().filter(|size| *size != Size::LIMIT).collect();
        assert!(sizes.iter().all(|size| *size <= Size::LARGEST), "{sizes:?}");
        let list: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        assert_eq!(parse_sizes(&list.join(",")), Ok(sizes));
    }
    if let Ok(duration) = parse_duration(text) {
        assert_eq!(parse_duration(&humantime::format_duration(duration).to_string()), Ok(duration));
    }
    if let Ok(percent) = text.parse::<Percent>() {
        assert!(percent.0 > 0.0 && percent.0 <= 1.0, "{percent:?}");
        let shown: Percent = percent.to_string().parse().expect("a percentage that is shown can be read");
        // Three decimals are shown; what was shown once is shown the same again.
        assert!((shown.0 - percent.0).abs() <= 0.000_005_1, "{percent:?} is shown as {shown:?}");
        assert_eq!(shown.to_string(), percent.to_string());
    }
    if let Ok(number) = text.trim().parse::<f64>() {
        assert!(!format_ns(number).is_empty() && !format_rate(number).is_empty());
    }
});
