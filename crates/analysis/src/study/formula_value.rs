//! The value of a formula, given those of its metrics.

use model::study::formula::{Formula, MetricOfCase, Operator};
use model::study::metric::Metric;

/// The value of `formula`, with `value_of` for its metrics, which is asked from left to right.
pub(super) fn value(
    formula: &Formula,
    value_of: &mut dyn FnMut(&MetricOfCase) -> Option<f64>,
) -> Option<f64> {
    match formula {
        Formula::Literal(literal) => Some(literal.value),
        Formula::Metric(metric) => value_of(metric),
        Formula::Two(a, operator, b) => {
            let value = apply(*operator, value(a, value_of)?, value(b, value_of)?);
            value.is_finite().then_some(value)
        }
    }
}

fn apply(operator: Operator, a: f64, b: f64) -> f64 {
    match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
    }
}

/// Whether `formula` divides what is measured by what is measured.
pub(super) fn is_ratio(formula: &Formula) -> bool {
    match formula {
        Formula::Two(a, operator, b) => {
            let is_measured =
                |formula: &Formula| formula.metrics().iter().any(|of_case| of_case.metric != Metric::Size);
            *operator == Operator::Divide && is_measured(a) && is_measured(b) || is_ratio(a) || is_ratio(b)
        }
        _ => false,
    }
}

/// Whether `formula` adds nothing and takes nothing off.
pub(super) fn is_product(formula: &Formula) -> bool {
    match formula {
        Formula::Literal(_) | Formula::Metric(_) => true,
        Formula::Two(a, operator, b) => {
            matches!(operator, Operator::Multiply | Operator::Divide) && is_product(a) && is_product(b)
        }
    }
}

/// Whether `formula` has something in it that is used up.
pub(super) fn is_used_up(formula: &Formula) -> bool {
    formula.metrics().iter().any(|of_case| of_case.metric.is_used_up())
}

#[cfg(test)]
mod tests {
    use model::study::Measure;

    /// The value of `formula` where each metric is worth what `of` says of its case.
    fn value(formula: &str, of: fn(&str) -> f64) -> f64 {
        let measure: Measure = formula.parse().unwrap();
        super::value(&measure.formula, &mut |metric| Some(of(&metric.case))).unwrap()
    }

    #[test]
    fn signs_bind_as_in_arithmetic() {
        let time_of = |case: &str| if case == "a" { 12.0 } else { 3.0 };
        assert_eq!(value("time of a / time of b", time_of), 4.0);
        assert_eq!(value("time of a - time of b - time of b", time_of), 6.0);
        assert_eq!(value("time of a + time of b * 2", time_of), 18.0);
        assert_eq!(value("(time of a + time of b) * 2", time_of), 30.0);
        assert_eq!(value("time of a / time of b / 2", time_of), 2.0);
        assert_eq!(value("1s / time of a", time_of), 1e9 / 12.0);
    }
}
