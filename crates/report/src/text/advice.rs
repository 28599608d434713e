//! A recommendation for the terminal: the answer in one sentence, the candidates, what was not offered, where the answer changes,
//! and what to set.

use super::layout::{DEEPER, INDENT, Style, finish, section};
use super::marks::{MISSED_HEADING, missed};
use super::recording::held_back;
use crate::quantity::{change, multiple, percent, tight_estimate, time, time_estimate};
use crate::words::{clean, clip, width, wrap};
use analysis::advise::{Ranked, Recommendation, SizeChange, Standing};
use model::estimate::Estimate;
use model::need::{Cause, Objective, Pattern};
use model::units::{Size, Unit, three_digits};
use model::{Pace, Spec};

/// A longer name is cut off.
const LONGEST_NAME: usize = 26;
/// The most candidates of a table; the others are named under it.
const MOST_ROWS: usize = 12;

/// `answer` for a terminal. `flow` is the flow of the scenario that it is for.
pub fn advice(flow: Option<&str>, answer: &Recommendation, style: &Style) -> String {
    let tables = advice_tables(answer, style);
    let style = &style.for_tables();
    let flow = flow.map(|flow| format!("{}: ", clean(flow))).unwrap_or_default();
    let parts = [
        wrap(&format!("{flow}{}", need(answer)), style.width, "", INDENT),
        own_wait(answer)
            .map(|text| [vec![String::new()], wrap(&text, style.width, "", INDENT)].concat())
            .unwrap_or_default(),
        vec![String::new()],
        wrap(&sentence(answer), style.width, "", INDENT),
    ];
    finish(&parts.concat()) + &tables
}

/// What stands below the answer, an empty line first and last.
pub(crate) fn advice_tables(answer: &Recommendation, style: &Style) -> String {
    let style = &style.for_tables();
    let indented = |texts: Vec<String>| {
        texts.iter().flat_map(|text| wrap(text, style.width, INDENT, DEEPER)).collect::<Vec<_>>()
    };
    let parts = [
        section("candidates, * where nothing is better in one and nowhere worse", rows(answer), style),
        section(MISSED_HEADING, indented(missed(&answer.settings)), style),
        section("what to set", indented(knobs(answer)), style),
        section("at other sizes", indented(sizes(answer)), style),
        section("what another costs", indented(costs(answer)), style),
        section("not offered", indented(excluded(answer)), style),
        vec![String::new()],
    ];
    finish(&parts.concat())
}

/// What was asked.
pub(crate) fn need(answer: &Recommendation) -> String {
    let need = &answer.need;
    let size = if need.pattern == Pattern::Signal { String::new() } else { format!(" of {}", need.size) };
    let rate = need.rate.and_then(|rate| Pace::Rate(rate).in_words());
    let rate = rate.map(|rate| format!(", {rate}")).unwrap_or_default();
    let with: Vec<String> = need.requirements.iter().map(ToString::to_string).collect();
    let with = if with.is_empty() { String::new() } else { format!(", with {}", with.join(", ")) };
    format!("{}{size}{rate}{with}, best in {}", need.pattern, need.objective)
}

/// What the program that was recorded waits for, and no candidate does.
pub(crate) fn own_wait(answer: &Recommendation) -> Option<String> {
    let held = held_back(answer.held_back?);
    let is_at_once = |spec: &Spec| spec.name == "tcp" && spec.params.given("nodelay") != Some("off");
    let tcp = answer.ranked.iter().find(|ranked| is_at_once(&ranked.measured.spec));
    let given =
        tcp.map(|tcp| format!(" TCP_NODELAY would give {}, as {} below.", achieved(answer, tcp), name(tcp)));
    Some(format!(
        "As recorded, {held} The wait belongs to TCP as the program uses it: the candidates write each message at once and have none.{}",
        given.unwrap_or_default()
    ))
}

/// The answer.
pub(crate) fn sentence(answer: &Recommendation) -> String {
    let Some(best) = answer.ranked.first() else {
        return "No mechanism meets this need here; what each lacks is listed as not offered.".to_owned();
    };
    let named = |standing: Standing| -> Vec<String> {
        let so_ranked = answer.ranked.iter().filter(move |ranked| ranked.standing == standing);
        so_ranked.map(name).collect()
    };
    let verb = |names: &[String]| if names.len() == 1 { "is" } else { "are" };
    let (close, unknown) = (named(Standing::Close), named(Standing::NotToldApart));
    let mut text = format!("Take {}: {}", name(best), achieved(answer, best));
    if !answer.placement.is_empty() {
        text += &format!(", {}", answer.placement);
    }
    if !unknown.is_empty() {
        text += &format!("; {} cannot be distinguished from it in this time", some(&unknown));
    }
    if !close.is_empty() {
        text += &format!("; {} {} within 5% of it", some(&close), verb(&close));
    }
    text + "." + &with_setting(answer).unwrap_or_default()
}

/// The setting that gives most, where that is much.
fn with_setting(answer: &Recommendation) -> Option<String> {
    /// A gain that is surely less than this is for the list of settings.
    const MUCH: f64 = 0.9;
    let best = &answer.ranked.first()?.measured.spec;
    let knob = answer.knobs.iter().find(|knob| knob.spec.name == best.name)?;
    let (_, high) = knob.time_ratio.interval?;
    let cpu = knob.cpu_ratio.map(|ratio| format!(", CPU time {}", more(ratio))).unwrap_or_default();
    (high < MUCH && answer.need.objective != Objective::Cpu).then(|| {
        format!(
            " As {} it takes {} of that time{cpu}.",
            clean(&knob.spec.to_string()),
            percent(knob.time_ratio.median)
        )
    })
}

/// The first of `names`, and how many others there are.
fn some(names: &[String]) -> String {
    const MOST: usize = 3;
    match names.len() {
        few if few <= MOST => names.join(", "),
        many => format!("{} and {} others", names[..MOST].join(", "), many - MOST),
    }
}

/// What the best reaches, in words.
fn achieved(answer: &Recommendation, best: &Ranked) -> String {
    let measured = &best.measured;
    let what = match answer.need.pattern {
        Pattern::RequestReply => "a round trip",
        Pattern::Stream => "a message",
        Pattern::Signal => "a signal and its answer",
    };
    let words = match answer.need.objective {
        Objective::Latency => {
            measured.round_trip_ns.map(|ns| format!("{} for {what}", tight_estimate(ns, Unit::Ns)))
        }
        Objective::Cpu => {
            measured.cpu_ns.map(|ns| format!("{} of CPU time for {what}", tight_estimate(ns, Unit::Ns)))
        }
        Objective::Throughput => {
            measured.message_ns.map(|ns| format!("{} messages a second", per_second(ns.median)))
        }
    };
    words.unwrap_or_default()
}

fn name(ranked: &Ranked) -> String {
    clean(&ranked.measured.spec.to_string())
}

/// How many of `ns` each there are in a second.
fn per_second(ns: f64) -> String {
    match 1e9 / ns {
        number if number >= 1e6 => format!("{}M", three_digits(number / 1e6)),
        number if number >= 1e3 => format!("{}k", three_digits(number / 1e3)),
        number => three_digits(number),
    }
}

/// The candidates in columns.
fn rows(answer: &Recommendation) -> Vec<String> {
    if answer.ranked.is_empty() {
        return Vec::new();
    }
    let dash = || "-".to_owned();
    let row = |name: &str, cells: [String; 4]| {
        let name = clip(name, LONGEST_NAME);
        let blanks = " ".repeat(LONGEST_NAME - width(&name).min(LONGEST_NAME));
        let cells: Vec<String> = cells
            .iter()
            .zip([13, 9, 10, 13])
            .map(|(cell, columns)| " ".repeat(columns - width(cell).min(columns)) + cell)
            .collect();
        format!("{INDENT}{name}{blanks} {}", cells.join(" "))
    };
    let heads = ["round trip", "CPU time", "messages/s", "over the best"].map(str::to_owned);
    let mut lines = vec![row("", heads)];
    let shown = |(at, ranked): &(usize, &Ranked)| *at < MOST_ROWS || ranked.on_front;
    for (_, ranked) in answer.ranked.iter().enumerate().filter(shown) {
        let measured = &ranked.measured;
        let over = match ranked.standing {
            Standing::Best => String::new(),
            Standing::NotToldApart | Standing::Close | Standing::Worse => more(ranked.over_best),
        };
        let star = if ranked.on_front { "* " } else { "  " };
        lines.push(row(
            &format!("{star}{}", name(ranked)),
            [
                measured.round_trip_ns.and_then(time_estimate).unwrap_or_else(dash),
                measured.cpu_ns.and_then(|ns| time(ns.median)).unwrap_or_else(dash),
                measured.message_ns.map_or_else(dash, |ns| per_second(ns.median)),
                over,
            ],
        ));
    }
    let left: Vec<String> =
        answer.ranked.iter().enumerate().filter(|one| !shown(one)).map(|(_, ranked)| name(ranked)).collect();
    if !left.is_empty() {
        lines.extend(wrap(&format!("slower: {}", left.join(", ")), 78, INDENT, DEEPER));
    }
    lines
}

/// A ratio as a change, or as a multiple where that is large.
fn more(ratio: Estimate) -> String {
    let text = if ratio.median < 2.0 { change(ratio.median, ratio.interval) } else { multiple(ratio.median) };
    let words = text.unwrap_or_default();
    words.split_whitespace().filter(|word| *word != "-").collect::<Vec<_>>().join(" ")
}

/// What settings change.
fn knobs(answer: &Recommendation) -> Vec<String> {
    let words = |knob: &analysis::advise::Knob| {
        let cpu = knob.cpu_ratio.map(more);
        let cpu = cpu.map(|cpu| format!(", CPU time {cpu}")).unwrap_or_default();
        format!("{}: time {}{cpu}", clean(&knob.spec.to_string()), more(knob.time_ratio))
    };
    answer.knobs.iter().map(words).collect()
}

/// Where the answer changes.
fn sizes(answer: &Recommendation) -> Vec<String> {
    let (Some(first), Some(last)) = (answer.sizes_tried.first(), answer.sizes_tried.last()) else {
        return Vec::new();
    };
    let bytes = |bytes: f64| Size(bytes.round().max(1.0) as u64).0;
    let words = |change: &SizeChange| {
        let interval = match change.size_bytes.interval {
            Some((low, high)) => format!(" ({} to {})", bytes(low), bytes(high)),
            None => String::new(),
        };
        format!(
            "below about {} bytes{interval} {}, above it {}; measured at {} and {}",
            bytes(change.size_bytes.median),
            clean(&change.below.to_string()),
            clean(&change.above.to_string()),
            change.between.0,
            change.between.1,
        )
    };
    if answer.changes.is_empty() {
        return vec![format!("no change of the best is sure from {} to {}", Size(*first), Size(*last))];
    }
    answer.changes.iter().map(words).collect()
}

/// What it costs to be wrong.
fn costs(answer: &Recommendation) -> Vec<String> {
    let words = |label: &str, cost: &Option<analysis::advise::CostOfAnother>| {
        let cost = cost.as_ref()?;
        Some(format!("{label}, {}: {}", clean(&cost.spec.to_string()), more(cost.over_best)))
    };
    [words("the second", &answer.second), words("the last", &answer.worst)].into_iter().flatten().collect()
}

/// What was not offered, those with the same reason together.
fn excluded(answer: &Recommendation) -> Vec<String> {
    let mut groups: Vec<(Cause, &str, Vec<String>)> = Vec::new();
    for exclusion in &answer.excluded {
        let name = clean(&exclusion.mechanism);
        match groups.iter_mut().find(|(_, reason, _)| *reason == exclusion.reason) {
            Some((_, _, names)) => names.push(name),
            None => groups.push((exclusion.cause, &exclusion.reason, vec![name])),
        }
    }
    groups.sort_by_key(|(cause, _, _)| *cause);
    groups.iter().map(|(_, reason, names)| format!("{}: {}", clean(reason), names.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::small_pipe;
    use analysis::advise::Measured;
    use model::need::{Exclusion, Need};
    use model::scenario::HeldBack;

    fn estimate(median: f64) -> Estimate {
        Estimate { median, interval: Some((0.98 * median, 1.02 * median)) }
    }

    fn candidate(name: &str, ns: f64, over: f64, standing: Standing) -> Ranked {
        Ranked {
            measured: Measured {
                spec: Spec::plain(name),
                round_trip_ns: Some(estimate(ns)),
                cpu_ns: Some(estimate(ns)),
                message_ns: Some(estimate(ns / 4.0)),
            },
            over_best: estimate(over),
            standing,
            on_front: standing == Standing::Best,
        }
    }

    fn answer(ranked: Vec<Ranked>) -> Recommendation {
        let exclusion = |mechanism: &str| Exclusion {
            mechanism: mechanism.to_owned(),
            cause: Cause::Requirement,
            reason: "carries no descriptors".to_owned(),
        };
        Recommendation {
            need: Need::new(Pattern::RequestReply, Size(4096)),
            placement: "same-llc".to_owned(),
            ranked,
            told_apart: true,
            excluded: vec![exclusion("pipe"), exclusion("fifo")],
            changes: Vec::new(),
            sizes_tried: vec![256, 65_536],
            knobs: Vec::new(),
            second: None,
            worst: None,
            settings: Vec::new(),
            held_back: None,
        }
    }

    #[test]
    fn the_sentence_names_the_best_and_who_is_as_good() {
        let ranked = vec![
            candidate("unix-stream", 4000.0, 1.0, Standing::Best),
            candidate("unix-dgram", 4100.0, 1.025, Standing::Close),
            candidate("unix-seqpacket", 4300.0, 1.08, Standing::NotToldApart),
            candidate("tcp", 9000.0, 2.25, Standing::Worse),
        ];
        assert_eq!(
            sentence(&answer(ranked)),
            "Take unix-stream: 4.00 µs ±2.0% for a round trip, same-llc; unix-seqpacket cannot be distinguished from it in this time; \
             unix-dgram is within 5% of it."
        );
        assert!(sentence(&answer(Vec::new())).starts_with("No mechanism meets this need here"));
    }

    #[test]
    fn what_the_program_waits_for_by_itself_is_said_before_any_mechanism() {
        let ranked = vec![
            candidate("unix-stream", 4000.0, 1.0, Standing::Best),
            candidate("tcp", 8000.0, 2.0, Standing::Worse),
        ];
        let held_back = Some(HeldBack { share: 0.98, wait_ns: 41_000_000 });
        let held = Recommendation { held_back, ..answer(ranked) };
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = flat(&advice(Some("query"), &held, &Style::default()));
        let page = crate::advice_html(&[(Some("query".to_owned()), held.clone())], &[]);
        for of in [text, flat(&page)] {
            assert_eq!(of.matches("Take unix-stream").count(), 1, "{of}");
            let wait = of.find("waits 41.0 ms for an acknowledgement").expect("the wait");
            assert!(wait < of.find("Take unix-stream").unwrap(), "{of}");
            assert!(
                of.contains("TCP_NODELAY would give 8.00 µs ±2.0% for a round trip, as tcp below."),
                "{of}"
            );
        }
        let free = advice(Some("query"), &Recommendation { held_back: None, ..held }, &Style::default());
        assert!(!free.contains("TCP_NODELAY"), "{free}");
    }

    #[test]
    fn settings_that_are_not_as_usual_are_told_beside_the_candidates() {
        let mut small = answer(vec![candidate("pipe", 4000.0, 1.0, Standing::Best)]);
        small.settings = vec![small_pipe()];
        let text = advice(None, &small, &Style::default());
        assert!(text.contains("pipe: pipe capacity usually 65536, here 8192;"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn the_text_fits_eighty_columns_and_groups_what_is_not_offered() {
        let ranked = vec![
            candidate("unix-stream", 4000.0, 1.0, Standing::Best),
            candidate("a-name-that-is-longer-than-any-column", 4e9, 2.5, Standing::Worse),
        ];
        let text = advice(Some("query"), &answer(ranked), &Style::default());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("carries no descriptors: pipe, fifo"), "{text}");
        assert!(text.starts_with("query: request-reply of 4K, best in latency\n"), "{text}");
        assert!(text.contains("no change of the best is sure from 256 to 64K"), "{text}");
        insta::assert_snapshot!(text);
    }
}
