//! Formulas of studies, their metrics and constants: each is what its own text says.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::study::{Literal, Measure, Metric};

fuzz_target!(|text: &str| {
    if let Ok(measure) = text.parse::<Measure>() {
        assert_eq!(measure.to_string().parse::<Measure>().as_ref(), Ok(&measure));
        let _ = measure.formula.unit();
    }
    if let Ok(metric) = text.parse::<Metric>() {
        let _ = metric.unit();
        assert_eq!(metric.to_string().parse::<Metric>(), Ok(metric));
    }
    let _ = text.parse::<Literal>();
});
