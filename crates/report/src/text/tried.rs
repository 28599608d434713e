//! What exchanges under a real program change, for a terminal: a sentence for each variant, the best first, then the numbers of all.

use super::grid::Grid;
use super::layout::{DEEPER, INDENT, Style, finish, grid, section};
use crate::quantity::{count, number, percent, rounded_percent, tight_estimate, time};
use crate::words::{clean, wrap};
use analysis::tried::{Better, Change, MeasureUnit, Tried, TriedConnection, TriedNumber, TriedVariant};
use model::estimate::Estimate;
use model::units::Unit;

/// How many variants have a sentence of their own.
const TOLD: usize = 5;

/// What came of trying, for the terminal.
pub fn tried(tried: &Tried, style: &Style) -> String {
    let tables = tried_tables(tried, style);
    let style = &style.for_tables();
    let words = sentences(tried).iter().flat_map(|text| wrap(text, style.width, INDENT, DEEPER)).collect();
    let answer = section(&clean(&tried.command), words, style);
    finish(&answer.into_iter().skip(1).collect::<Vec<_>>()) + &tables
}

/// What stands below the answer, an empty line first.
pub(crate) fn tried_tables(tried: &Tried, style: &Style) -> String {
    let style = &style.for_tables();
    let mut lines = grid(&numbers(tried), style);
    if tried.variants.iter().any(|variant| !variant.connections.is_empty()) {
        lines.extend(grid(&connections(tried), style));
    }
    finish(&lines)
}

/// The answer: what the best variants change.
pub(crate) fn sentences(tried: &Tried) -> Vec<String> {
    ranked(tried).into_iter().take(TOLD).map(|variant| sentence(variant, tried)).collect()
}

/// The variants without the program as it is, the best by the first number first; those that are undecided last.
fn ranked(tried: &Tried) -> Vec<&TriedVariant> {
    let key = |variant: &TriedVariant| {
        let first = variant.numbers.first();
        let log = first.and_then(|number| number.ratio).map_or(0.0, |ratio| ratio.median.ln());
        let gain = match first.map(|number| number.measure.better) {
            Some(Better::Less) => -log,
            _ => log,
        };
        (first.is_some_and(|number| number.change != Change::Undecided), gain)
    };
    let mut variants: Vec<&TriedVariant> = tried.variants.iter().skip(1).collect();
    variants.sort_by(|a, b| {
        let ((a_told, a), (b_told, b)) = (key(a), key(b));
        b_told.cmp(&a_told).then(b.total_cmp(&a))
    });
    variants
}

/// What a variant changes: the number that decides, and of the others those that surely change.
fn sentence(variant: &TriedVariant, tried: &Tried) -> String {
    let Some((first, others)) = variant.numbers.split_first() else { return String::new() };
    let decides = match first.change {
        Change::More | Change::Less => changed(first),
        Change::None => format!("no change of {} beyond ±{}", clean(&first.measure.name), tried.margin),
        Change::Undecided => undecided(first, tried),
    };
    let others = others.iter().filter(|number| matches!(number.change, Change::More | Change::Less));
    let all: Vec<String> = std::iter::once(decides).chain(others.map(changed)).collect();
    format!("{}: {}.", clean(&variant.title), all.join(", "))
}

/// `41% ±3% more rps`, and `5% to 85% more rps` where it is known no better than that.
fn changed(number: &TriedNumber) -> String {
    /// Half of an interval that is wider is no precision.
    const WIDE: f64 = 0.25;
    let direction = if number.change == Change::More { "more" } else { "less" };
    let Some(ratio) = number.ratio else { return String::new() };
    if let Some((low, high)) = ratio.interval.filter(|(low, high)| (high - low) / 2.0 > WIDE) {
        let [a, b] = [low, high].map(|end| (end - 1.0).abs());
        let name = clean(&number.measure.name);
        return format!("{} to {} {direction} {name}", percent(a.min(b)), percent(a.max(b)));
    }
    let spread = ratio.interval.map(|(low, high)| format!(" ±{}", rounded_percent((high - low) / 2.0)));
    format!(
        "{}{} {direction} {}",
        percent((ratio.median - 1.0).abs()),
        spread.unwrap_or_default(),
        clean(&number.measure.name)
    )
}

fn undecided(number: &TriedNumber, tried: &Tried) -> String {
    let name = clean(&number.measure.name);
    let so_far = number.ratio.map(|ratio| format!(", so far {}", signed(ratio))).unwrap_or_default();
    let needs = tried.needs.as_ref().map(|needs| format!("; give it {needs}")).unwrap_or_default();
    format!("undecided for {name}{so_far}{needs}")
}

/// `+41% ±3%`.
fn signed(ratio: Estimate) -> String {
    let sign = if ratio.median < 1.0 { '-' } else { '+' };
    let spread = ratio.interval.map(|(low, high)| format!(" ±{}", rounded_percent((high - low) / 2.0)));
    format!("{sign}{}{}", percent((ratio.median - 1.0).abs()), spread.unwrap_or_default())
}

/// All numbers: of the program as it is, and how each variant differs.
fn numbers(tried: &Tried) -> Grid {
    let names = tried
        .variants
        .first()
        .map(|variant| variant.numbers.iter().map(|number| clean(&number.measure.name)).collect::<Vec<_>>());
    let row = |variant: &TriedVariant| {
        let cells = variant.numbers.iter().map(|number| match number.ratio {
            Some(ratio) => signed(ratio),
            None => number.value.map(|value| value_of(number, value)).unwrap_or_else(|| "-".to_owned()),
        });
        let name =
            if variant.exchanges.is_empty() { variant.title.clone() } else { variant.exchanges.join(" ") };
        (clean(&name), cells.collect())
    };
    let rows = tried.variants.iter().take(1).chain(ranked(tried)).map(row);
    Grid {
        heading: "Numbers".to_owned(),
        columns: names.unwrap_or_default(),
        rows: rows.collect(),
        below: below(tried),
    }
}

/// What went through the connections of each variant.
fn connections(tried: &Tried) -> Grid {
    let each = tried.variants.iter().take(1).chain(ranked(tried)).flat_map(|variant| {
        let title = if variant.exchanges.is_empty() { &variant.title } else { &variant.exchanges[0] };
        variant.connections.iter().map(move |connection| (title, connection))
    });
    let row = |(title, connection): (&String, &TriedConnection)| {
        let trip = connection.round_trip_ns.and_then(time).unwrap_or_else(|| "-".to_owned());
        let per_s = count(connection.per_s).unwrap_or_default();
        (clean(title), vec![clean(&connection.name), per_s, trip])
    };
    Grid {
        heading: "Connections".to_owned(),
        columns: ["from and to", "a second", "round trip"].map(str::to_owned).to_vec(),
        rows: each.map(row).collect(),
        below: vec!["Recorded in one run that warmed each up, which slows it.".to_owned()],
    }
}

fn value_of(number: &TriedNumber, value: f64) -> String {
    let unit = match number.measure.unit {
        MeasureUnit::Nanoseconds => Unit::Ns,
        MeasureUnit::Bytes => Unit::Bytes,
        MeasureUnit::Count | MeasureUnit::Printed => Unit::Number,
    };
    number_or_estimate(value, unit)
}

fn number_or_estimate(value: f64, unit: Unit) -> String {
    let whole = if unit == Unit::Bytes { value.round() } else { value };
    let text = number(whole, unit);
    if text.is_empty() { tight_estimate(Estimate { median: value, interval: None }, unit) } else { text }
}

/// How it was measured, what the filter costs, and what could not be kept from the program.
fn below(tried: &Tried) -> Vec<String> {
    let (runs, starts) =
        tried.variants.iter().fold((0, 0), |(runs, starts), of| (runs + of.runs, starts + of.starts));
    let seconds = (tried.elapsed_ns / 1e9).round();
    let mut lines = vec![format!(
        "{} passes over {} variants, there and back, in {seconds} s: {starts} starts, {runs} runs. Intervals of 95%, however long it is \
         tried.",
        tried.passes,
        tried.variants.len()
    )];
    if let (Some(filter), Some(first)) =
        (tried.filter, tried.variants.first().and_then(|variant| variant.numbers.first()))
    {
        let name = clean(&first.measure.name);
        lines.push(format!(
            "The filter by which calls are answered is in both: {} of {name} by itself.",
            signed(filter)
        ));
    }
    if !tried.not_kept.is_empty() {
        let each: Vec<String> =
            tried.not_kept.iter().map(|(what, times)| format!("{} ({times}x)", clean(what))).collect();
        lines.push(format!("Not as over TCP: {}.", each.join("; ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::tried::TriedMeasure;
    use model::units::Percent;

    fn number_of(
        name: &str,
        unit: MeasureUnit,
        better: Better,
        ratio: Option<(f64, f64)>,
        change: Change,
    ) -> TriedNumber {
        let measure = TriedMeasure { name: name.to_owned(), unit, better };
        let ratio =
            ratio.map(|(median, half)| Estimate { median, interval: Some((median - half, median + half)) });
        TriedNumber { measure, value: Some(61_200.0), ratio, change }
    }

    fn example() -> Tried {
        let numbers = |rps: Option<(f64, f64)>, cpu: Option<(f64, f64)>, change: Change| {
            let of_cpu =
                if cpu.is_some_and(|(median, _)| median < 1.0) { Change::Less } else { Change::Undecided };
            vec![
                number_of("rps", MeasureUnit::Printed, Better::More, rps, change),
                number_of("CPU", MeasureUnit::Nanoseconds, Better::Less, cpu, of_cpu),
            ]
        };
        let variant = |title: &str, exchanges: &[&str], numbers| TriedVariant {
            title: title.to_owned(),
            exchanges: exchanges.iter().map(|text| (*text).to_owned()).collect(),
            numbers,
            starts: 24,
            runs: 48,
            connections: vec![TriedConnection {
                name: "redis-benchmark-redis-server".to_owned(),
                mechanism: "unix-stream:wait=epoll".to_owned(),
                per_s: 41_000.0,
                round_trip_ns: Some(21_600.0),
            }],
        };
        Tried {
            command: "redis-benchmark -p 7777 \u{1b}[31m".to_owned(),
            variants: vec![
                variant("as it is", &[], numbers(None, None, Change::Undecided)),
                variant(
                    "TCP on port 7777 with nodelay=on",
                    &["tcp:7777=tcp:nodelay=on"],
                    numbers(Some((1.002, 0.03)), Some((1.0, 0.01)), Change::Undecided),
                ),
                variant(
                    "Unix sockets instead of TCP on port 7777",
                    &["tcp:7777=unix-stream"],
                    numbers(Some((1.41, 0.03)), Some((0.72, 0.02)), Change::More),
                ),
            ],
            passes: 12,
            elapsed_ns: 60e9,
            margin: Percent(0.01),
            needs: Some("--time 5m".to_owned()),
            filter: Some(Estimate { median: 0.998, interval: Some((0.99, 1.006)) }),
            not_kept: vec![("TCP_INFO says nothing of the connection".to_owned(), 12)],
        }
    }

    #[test]
    fn what_is_hardly_known_is_a_range() {
        let words = |median, interval, change| {
            let number = number_of("rps", MeasureUnit::Printed, Better::More, None, change);
            changed(&TriedNumber { ratio: Some(Estimate { median, interval: Some(interval) }), ..number })
        };
        assert_eq!(words(1.39, (1.05, 1.85), Change::More), "5.0% to 85% more rps");
        assert_eq!(words(0.6, (0.35, 0.95), Change::Less), "5.0% to 65% less rps");
    }

    #[test]
    fn the_best_comes_first_in_a_sentence() {
        let text = tried(&example(), &Style { width: 80, color: false, detail: false });
        insta::assert_snapshot!(text);
    }
}
