//! A prediction in words: the bounds, which is which, then what messages and processes cost. What is so is decided in `analysis::predict`.

use super::grid::Grid;
use super::layout::{DEEPER, INDENT, Style, finish, grid};
use super::marks::missed;
use crate::quantity::{count, percent, time};
use crate::words::{clean, wrap};
use analysis::predict::{FlowPrediction, Limit, LimitOn, MessageCost, Prediction, ProcessPrediction};

/// The prediction for the terminal.
pub fn prediction(prediction: &Prediction, style: &Style) -> String {
    let style = &style.for_tables();
    let sentences = sentences(prediction);
    let mut lines: Vec<String> =
        sentences.iter().flat_map(|sentence| wrap(sentence, style.width, "", INDENT)).collect();
    lines.extend(grid(&messages(&prediction.flows), style));
    lines.extend(grid(&processes(&prediction.processes), style));
    let notes = prediction.notes.iter().map(|note| clean(note)).chain(missed(&prediction.settings));
    for note in notes {
        lines.extend(wrap(&format!("note: {note}"), style.width, INDENT, DEEPER));
    }
    finish(&lines)
}

/// The answer; where nothing is exchanged, that nothing changes.
fn sentences(prediction: &Prediction) -> Vec<String> {
    let exchanged: Vec<&FlowPrediction> =
        prediction.flows.iter().filter(|flow| flow.before != flow.after).collect();
    let Some(first) = exchanged.first() else {
        return vec!["Every flow keeps its mechanism: nothing changes.".to_owned()];
    };
    let more = match exchanged.len() {
        1 => String::new(),
        all => format!(" (and {} more)", all - 1),
    };
    let [name, before, after] = [&first.name, &first.before, &first.after].map(|text| clean(text));
    let (low, high) = prediction.ratio_bounds;
    vec![
        format!(
            "'{name}'{more} over {after} instead of {before}: between {} and {} requests a second.",
            change(low),
            change(high)
        ),
        format!("{}; {}.", limit(&prediction.alone), limit(&prediction.busiest)),
        "These are bounds from what messages cost alone, and programs may leave them, mostly upwards: 'ipcmark try' measures it under \
         the program itself."
            .to_owned(),
    ]
}

/// A ratio as a change: `+12%`.
fn change(ratio: f64) -> String {
    let sign = if ratio < 1.0 { '-' } else { '+' };
    format!("{sign}{}", percent((ratio - 1.0).abs()))
}

fn limit(limit: &Limit) -> String {
    let if_so = match &limit.on {
        LimitOn::Path => "If requests wait for nobody else".to_owned(),
        LimitOn::Process(name) => format!("if they wait for '{}' alone, which is busiest", clean(name)),
        LimitOn::Cpus => "if they wait for the CPUs alone, which are busiest".to_owned(),
    };
    let (low, high) = limit.interval;
    format!("{if_so}, {} ({} to {})", change(limit.ratio), change(low), change(high))
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

fn messages(flows: &[FlowPrediction]) -> Grid {
    let change = |[before, after]: [MessageCost; 2], of: fn(&MessageCost) -> f64| {
        let time = |cost: &MessageCost| time(of(cost)).unwrap_or_else(|| "0".to_owned());
        format!("{} → {}", time(&before), time(&after))
    };
    let row = |flow: &FlowPrediction| {
        let costs = match flow.costs {
            Some(costs) => vec![
                change(costs, |cost| cost.elapsed_ns),
                change(costs, |cost| cost.client_ns),
                change(costs, |cost| cost.server_ns),
            ],
            None => vec!["as it is".to_owned()],
        };
        (clean(&flow.name), std::iter::once(flow.per_s.map(rate).unwrap_or_default()).chain(costs).collect())
    };
    Grid {
        heading: "a message, measured alone".to_owned(),
        columns: ["a second", "takes", "CPU of sender", "receiver"].map(str::to_owned).to_vec(),
        rows: flows.iter().map(row).collect(),
        below: Vec::new(),
    }
}

fn processes(processes: &[ProcessPrediction]) -> Grid {
    let row = |process: &ProcessPrediction| {
        (clean(&process.name), vec![percent(process.cpu), percent(process.cpu_after)])
    };
    Grid {
        heading: "CPU at the same rate".to_owned(),
        columns: ["recorded", "after"].map(str::to_owned).to_vec(),
        rows: processes.iter().map(row).collect(),
        below: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::small_pipe;

    fn predicted() -> Prediction {
        let cost =
            |elapsed_ns| MessageCost { elapsed_ns, client_ns: 4000.0, server_ns: 3000.0, error_ns: 80.0 };
        let flow = |name: &str, after: &str, costs| FlowPrediction {
            name: name.to_owned(),
            before: "tcp".to_owned(),
            after: after.to_owned(),
            per_s: Some(30_000.0),
            costs,
        };
        Prediction {
            scenario: "proxy".to_owned(),
            flows: vec![
                flow("query", "unix-stream", Some([cost(12_000.0), cost(8000.0)])),
                flow("log", "tcp", None),
            ],
            alone: Limit { on: LimitOn::Path, ratio: 1.24, interval: (1.2, 1.28) },
            busiest: Limit {
                on: LimitOn::Process(
                    "a-process-whose-name-is-as-long-as-a-name-of-a-scenario-may-be".to_owned(),
                ),
                ratio: 1.1,
                interval: (1.08, 1.12),
            },
            ratio_bounds: (1.08, 1.28),
            processes: vec![ProcessPrediction { name: "server".to_owned(), cpu: 0.5, cpu_after: 0.41 }],
            settings: vec![small_pipe()],
            notes: vec!["something to know".to_owned()],
        }
    }

    #[test]
    fn the_first_line_is_the_answer() {
        let text = prediction(&predicted(), &Style::default());
        let first = "'query' over unix-stream instead of tcp: between +8.0% and +28% requests a second.";
        assert!(text.replace("\n  ", " ").starts_with(first), "{text}");
        for words in ["'ipcmark try' measures it", "12.0 µs → 8.00 µs", "as it is", "50%", "41%"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(text.contains("note: something to know"), "{text}");
        assert!(text.contains("note: pipe: pipe capacity usually 65536, here 8192;"), "{text}");
        assert!(text.lines().all(|line| crate::words::width(line) <= 80), "{text}");
    }
}
