//! What was recorded, for a terminal: the processes, the flows, and what could not be recorded. The page says the same.

use super::grid::Grid;
use super::layout::{DEEPER, INDENT, Style, finish, grid, section};
use crate::quantity::{count, percent, time};
use crate::words::{clean, wrap};
use analysis::recording::AnalysedScenario;
use model::scenario::{Begin, Concurrency, Flow, HeldBack, Mix, MixValue, Process, Recording};
use model::units::{format_time_ratio, three_digits};

/// What stands for what was not recorded.
const NOTHING: &str = "-";
/// The heading of what was not recorded.
pub(crate) const UNSEEN_HEADING: &str = "What is not in it";

/// `analysed` for a terminal.
pub fn recording(analysed: &AnalysedScenario, style: &Style) -> String {
    let style = style.for_tables();
    let mut lines: Vec<String> = wrap(&head(analysed), style.width, "", INDENT);
    lines.extend(grids(analysed).iter().flat_map(|of| grid(of, &style)));
    let unseen = unseen(analysed).iter().flat_map(|text| wrap(text, style.width, INDENT, DEEPER)).collect();
    lines.extend(section(UNSEEN_HEADING, unseen, &style));
    finish(&lines)
}

/// What was recorded, how, and what that cost, in a sentence or two.
pub(crate) fn head(analysed: &AnalysedScenario) -> String {
    let scenario = &analysed.scenario;
    let mut text = clean(&scenario.summary);
    if let Some(recorded) = &scenario.recorded {
        let by = clean(&recorded.by);
        text += &format!(", recorded for {} by {by}", time(recorded.seconds * 1e9).unwrap_or_default());
        text += &cost(recorded);
    }
    text += ".";
    if let Some(share) = analysed.cpu_in_calls {
        text += &format!(" {} of the CPU time is in calls that communicate.", percent(share));
    }
    text
}

fn cost(recorded: &Recording) -> String {
    let Some(slowdown) = recorded.slowdown else { return String::new() };
    let took = |share: f64| format_time_ratio(1.0 + share);
    let interval =
        recorded.slowdown_interval.map(|[low, high]| format!(" ({} to {})", took(low), took(high)));
    format!("; what it does took {} while it was recorded{}", took(slowdown), interval.unwrap_or_default())
}

/// The sentences on what is not in the scenario.
pub(crate) fn unseen(analysed: &AnalysedScenario) -> Vec<String> {
    let recorded = analysed.scenario.recorded.iter();
    recorded.flat_map(|recorded| &recorded.unseen).map(|text| clean(text)).collect()
}

/// The processes and the flows.
pub(crate) fn grids(analysed: &AnalysedScenario) -> [Grid; 2] {
    let scenario = &analysed.scenario;
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let processes = Grid {
        heading: "Processes".to_owned(),
        columns: words(&["CPU", "in calls", "waited", "switches/s"]),
        rows: scenario
            .processes
            .iter()
            .map(|process| (clean(&process.name), process_cells(process)))
            .collect(),
        below: notes(analysed),
    };
    let flows = Grid {
        heading: "Flows".to_owned(),
        columns: words(&["per s", "size", "reply", "round trip", "waited"]),
        rows: scenario.flows.iter().map(|flow| (flow_name(flow), flow_cells(flow))).collect(),
        below: vec!["Sizes and round trips are means. Waited: the shares of the time that sender and receiver slept in its calls."
            .to_owned()],
    };
    [processes, flows]
}

/// What there is to say of processes and flows beside numbers.
fn notes(analysed: &AnalysedScenario) -> Vec<String> {
    let scenario = &analysed.scenario;
    let mut notes = Vec::new();
    for process in scenario.processes.iter().filter(|process| process.roots == Concurrency::Together) {
        notes.push(format!("{} makes its requests all at once.", clean(&process.name)));
    }
    for process in scenario.processes.iter().filter(|process| process.serves == Concurrency::Together) {
        notes.push(format!("{} serves several requests at once.", clean(&process.name)));
    }
    for flow in &scenario.flows {
        let held = flow.recorded.as_ref().and_then(|recorded| recorded.held_back);
        notes.extend(held.map(|held| format!("{}: {}", clean(&flow.name), held_back(held))));
        if let Begin::After { flow: before, per_message } = flow.begin {
            notes.push(format!(
                "{} comes after {}: {} for each.",
                clean(&flow.name),
                clean(&scenario.flows[before].name),
                three_digits(per_message)
            ));
        }
    }
    const MOST: usize = 12;
    if notes.len() > MOST {
        let more = notes.len() - MOST;
        notes.truncate(MOST);
        notes.push(format!("{more} more like these are in the scenario."));
    }
    notes
}

/// What a flow waits for that it need not.
pub(crate) fn held_back(held: HeldBack) -> String {
    format!(
        "in {} of its round trips, a message that is written in several parts waits {} for an acknowledgement (Nagle's algorithm). \
         TCP_NODELAY, or one write for all parts (writev), removes that wait.",
        percent(held.share),
        time(held.wait_ns as f64).unwrap_or_default()
    )
}

/// A flow by its name and mechanism.
pub(crate) fn flow_name(flow: &Flow) -> String {
    format!("{} {}", clean(&flow.name), clean(&flow.mechanism.to_string()))
}

fn process_cells(process: &Process) -> Vec<String> {
    match &process.recorded {
        Some(recorded) => vec![
            percent(recorded.cpu),
            percent(recorded.in_calls),
            percent(recorded.waited),
            three_digits(recorded.switches_per_s),
        ],
        None => [NOTHING; 4].map(str::to_owned).to_vec(),
    }
}

/// The cells of a flow: messages a second, sizes, round trip, waits.
pub(crate) fn flow_cells(flow: &Flow) -> Vec<String> {
    let recorded = flow.recorded.as_ref();
    let or_nothing = |cell: Option<String>| cell.unwrap_or_else(|| NOTHING.to_owned());
    let round_trip = recorded.and_then(|recorded| recorded.round_trip.as_ref());
    vec![
        or_nothing(recorded.and_then(|recorded| count(recorded.per_s))),
        mean(&flow.size),
        or_nothing(flow.reply.as_ref().map(mean)),
        or_nothing(round_trip.and_then(|mix| time(mix.mean()))),
        or_nothing(recorded.map(|of| format!("{}/{}", percent(of.client_waited), percent(of.server_waited)))),
    ]
}

/// The mean of a mix of sizes.
fn mean<T: MixValue>(mix: &Mix<T>) -> String {
    match mix.parts() {
        [(value, _)] => value.to_string(),
        _ => three_digits(mix.mean()),
    }
}
