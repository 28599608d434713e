//! A prediction in words: one sentence for each exchange, then what becomes of flows and of processes, what it rests on, and whether
//! a replay had the same. What is so is decided in `analysis::predict`.

use super::grid::Grid;
use super::layout::{DEEPER, INDENT, Style, finish, grid};
use super::marks::missed;
use crate::quantity::{count, percent, time};
use crate::words::{clean, wrap};
use analysis::predict::{Basis, Change, FlowPrediction, Held, HeldChange, Prediction, ProcessPrediction};
use model::Size;

/// The prediction for the terminal, with how it `held` where that was tried.
pub fn prediction(prediction: &Prediction, held: Option<&Held>, style: &Style) -> String {
    let style = &style.for_tables();
    let mut lines: Vec<String> =
        sentences(prediction).iter().flat_map(|sentence| wrap(sentence, style.width, "", INDENT)).collect();
    lines.extend(grid(&flows(prediction), style));
    lines.extend(grid(&processes(prediction), style));
    if let Some(held) = held {
        lines.extend(grid(&replayed(held), style));
    }
    lines.extend(grid(&basis(&prediction.basis), style));
    let notes = prediction.notes.iter().map(|note| clean(note)).chain(missed(&prediction.settings));
    for note in notes {
        lines.extend(wrap(&format!("note: {note}"), style.width, INDENT, DEEPER));
    }
    finish(&lines)
}

/// What each exchange gives; where nothing is exchanged, that nothing changes.
pub(crate) fn sentences(prediction: &Prediction) -> Vec<String> {
    let exchanged: Vec<String> =
        prediction.flows.iter().filter(|flow| flow.before != flow.after).map(sentence).collect();
    if exchanged.is_empty() {
        let nothing = "Every flow keeps its mechanism: nothing changes.".to_owned();
        return vec![nothing];
    }
    let together = prediction.together_per_s.as_ref().map(|per_s| {
        let (before, after) = (rate(per_s.before), rate(per_s.after));
        let all = exchanged.len();
        format!("All {all} together: {before} → {after} messages a second ({})", change(per_s))
    });
    exchanged.into_iter().chain(together).collect()
}

fn sentence(flow: &FlowPrediction) -> String {
    let [name, before, after] = [&flow.name, &flow.before, &flow.after].map(|text| clean(text));
    let trip = flow.round_trip_ns.as_ref().and_then(|trip| {
        Some(format!("round trip {} → {} ({})", time(trip.before)?, time(trip.after)?, change(trip)))
    });
    let rate = flow.per_s.as_ref().map(|per_s| match trip {
        Some(_) => format!("rate {}", change(per_s)),
        None => {
            format!("{} → {} messages a second ({})", rate(per_s.before), rate(per_s.after), change(per_s))
        }
    });
    let gives: Vec<String> = [trip, rate].into_iter().flatten().collect();
    let gives =
        if gives.is_empty() { "it has no message in the simulation".to_owned() } else { gives.join(", ") };
    format!("'{name}' over {after} instead of {before}: {gives}")
}

/// A change with half of its 90% interval: `-23% ± 4%`.
fn change(change: &Change) -> String {
    ratio(change.ratio, change.ratio_interval)
}

fn ratio(ratio: f64, (low, high): (f64, f64)) -> String {
    let sign = if ratio < 1.0 { '-' } else { '+' };
    format!("{sign}{} ± {}", percent((ratio - 1.0).abs()), percent((high - low) / 2.0))
}

/// How many a second: `950`, `31k`, `1.2M`.
fn rate(per_s: f64) -> String {
    let text = |value: f64, unit: &str| count(value).map(|text| text + unit);
    let text = match per_s {
        per_s if per_s >= 999.5e3 => text(per_s / 1e6, "M"),
        per_s if per_s >= 9995.0 => text(per_s / 1e3, "k"),
        _ => text(per_s, ""),
    };
    text.unwrap_or_default()
}

fn row(name: &str, change_of: &Change, words: impl Fn(f64) -> String) -> (String, Vec<String>) {
    let (low, high) = change_of.interval;
    let interval = format!("{} to {}", words(low), words(high));
    (clean(name), vec![words(change_of.before), words(change_of.after), interval, change(change_of)])
}

fn columns() -> Vec<String> {
    ["before", "after", "90% interval", "change"].map(str::to_owned).to_vec()
}

fn flows(prediction: &Prediction) -> Grid {
    let trip = |ns: f64| time(ns).unwrap_or_default();
    let rows = prediction.flows.iter().flat_map(|flow| {
        let trips = flow.round_trip_ns.iter().map(|ns| row(&format!("{} round trip", flow.name), ns, trip));
        let rates = flow.per_s.iter().map(|per_s| row(&format!("{} a second", flow.name), per_s, rate));
        let none = flow.per_s.is_none().then(|| (clean(&flow.name), vec!["no message".to_owned()]));
        trips.chain(rates).chain(none).collect::<Vec<_>>()
    });
    let is_measured = if prediction.is_calibrated { "measured" } else { "computed" };
    Grid {
        heading: format!("flows: before as {is_measured}, after as predicted"),
        columns: columns(),
        rows: rows.collect(),
        below: Vec::new(),
    }
}

fn processes(prediction: &Prediction) -> Grid {
    let cpu = |process: &ProcessPrediction| {
        let cpu = process.cpu.as_ref().map(|cpu| row(&format!("{} CPU", process.name), cpu, percent));
        let switches = process.switches_per_s.as_ref();
        let switches =
            switches.map(|switches| row(&format!("{} switches a second", process.name), switches, rate));
        cpu.into_iter().chain(switches).collect::<Vec<_>>()
    };
    Grid {
        heading: "processes".to_owned(),
        columns: columns(),
        rows: prediction.processes.iter().flat_map(cpu).collect(),
        below: Vec::new(),
    }
}

fn replayed(held: &Held) -> Grid {
    let cells = |change: &HeldChange| {
        let verdict = if change.held { "held" } else { "did not hold" };
        let predicted = ratio(change.predicted, change.interval);
        let replayed = match change.replayed_interval {
            Some(interval) => ratio(change.replayed, interval),
            None => format!("{:+.1}%", (change.replayed - 1.0) * 100.0),
        };
        vec![predicted, replayed, verdict.to_owned()]
    };
    let rows = held.flows.iter().flat_map(|flow| {
        let named =
            |what: &str, change: &HeldChange| (clean(&format!("{} {what}", flow.name)), cells(change));
        let trip = flow.round_trip_ns.iter().map(|change| named("round trip", change));
        let rate = flow.per_s.iter().map(|change| named("a second", change));
        trip.chain(rate).collect::<Vec<_>>()
    });
    let (all, good) = (held.changes().count(), held.changes().filter(|change| change.held).count());
    Grid {
        heading: "the change, predicted and replayed".to_owned(),
        columns: ["predicted", "replayed", ""].map(str::to_owned).to_vec(),
        rows: rows.collect(),
        below: vec![format!("{good} of {all} replayed changes lie in their predicted intervals")],
    }
}

fn basis(basis: &[Basis]) -> Grid {
    let rows = basis.iter().map(|basis| {
        let sizes: Vec<String> = basis.sizes.iter().map(|bytes| Size(*bytes).to_string()).collect();
        let by_the_byte = match basis.fit.segments.as_slice() {
            [] => String::new(),
            segments => {
                let slopes = segments.iter().map(|segment| segment.per_byte.0);
                let (low, high) =
                    slopes.fold((f64::MAX, f64::MIN), |(low, high), slope| (low.min(slope), high.max(slope)));
                let number = |slope: f64| count(1024.0 * slope).unwrap_or_default();
                if segments.len() == 1 { number(low) } else { format!("{} to {}", number(low), number(high)) }
            }
        };
        let fixed = time(basis.fit.fixed.0).unwrap_or_default();
        (clean(&basis.case), vec![sizes.join(","), fixed, by_the_byte, percent(basis.fit.residual)])
    });
    Grid {
        heading: "it rests on these measured cases: time of an iteration".to_owned(),
        columns: ["sizes", "fixed", "ns by KiB", "residual"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
        below: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::small_pipe;

    fn change_of(before: f64, ratio: f64, half: f64) -> Change {
        Change {
            before,
            after: before * ratio,
            interval: (before * (ratio - half), before * (ratio + half)),
            ratio,
            ratio_interval: (ratio - half, ratio + half),
        }
    }

    fn predicted() -> Prediction {
        Prediction {
            scenario: "proxy".to_owned(),
            flows: vec![
                FlowPrediction {
                    name: "query".to_owned(),
                    before: "tcp".to_owned(),
                    after: "unix-stream".to_owned(),
                    per_s: Some(change_of(30_000.0, 1.24, 0.05)),
                    round_trip_ns: Some(change_of(31_000.0, 0.77, 0.04)),
                },
                FlowPrediction {
                    name: "log".to_owned(),
                    before: "pipe".to_owned(),
                    after: "pipe".to_owned(),
                    per_s: None,
                    round_trip_ns: None,
                },
            ],
            together_per_s: None,
            processes: vec![ProcessPrediction {
                name: "a-process-whose-name-is-as-long-as-a-name-of-a-scenario-may-be".to_owned(),
                cpu: Some(change_of(0.5, 1.1, 0.02)),
                switches_per_s: Some(change_of(60_000.0, 1.24, 0.05)),
            }],
            is_calibrated: true,
            basis: Vec::new(),
            settings: vec![small_pipe()],
            notes: vec!["something to know".to_owned()],
        }
    }

    #[test]
    fn the_first_line_is_the_answer() {
        let text = prediction(&predicted(), None, &Style::default());
        let sentence = text.split("\n\n").next().unwrap().replace("\n  ", " ");
        assert_eq!(
            sentence,
            "'query' over unix-stream instead of tcp: round trip 31.0 µs → 23.9 µs (-23% ± 4.0%), rate +24% ± 5.0%"
        );
        let several = Prediction { together_per_s: Some(change_of(61_000.0, 1.2, 0.03)), ..predicted() };
        let last = sentences(&several).pop();
        assert_eq!(last.as_deref(), Some("All 1 together: 61.0k → 73.2k messages a second (+20% ± 3.0%)"));
        assert!(text.contains("no message") && text.contains("note: something to know"), "{text}");
        assert!(text.contains("note: pipe: pipe capacity usually 65536, here 8192;"), "{text}");
        assert!(text.lines().all(|line| crate::words::width(line) <= 80), "{text}");
    }

    #[test]
    fn a_check_says_what_held() {
        let change = |held| HeldChange {
            predicted: 0.77,
            interval: (0.73, 0.81),
            replayed: 0.8,
            replayed_interval: Some((0.79, 0.81)),
            held,
            error: -0.04,
        };
        let flow = analysis::predict::HeldFlow {
            name: "query".to_owned(),
            per_s: Some(change(false)),
            round_trip_ns: Some(change(true)),
        };
        let text = prediction(&predicted(), Some(&Held { flows: vec![flow] }), &Style::default());
        assert!(text.contains("1 of 2 replayed changes") && text.contains("did not hold"), "{text}");
    }
}
