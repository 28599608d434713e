//! What a replay of a scenario came to, for a terminal: its flows and its processes, beside what was recorded of them.

use super::grid::Grid;
use super::layout::{DEEPER, INDENT, Style, finish, grid, section};
use super::marks::numbers;
use super::recording::held_back;
use crate::quantity::{change, percent, time};
use crate::words::{clean, wrap};
use analysis::interval::MeanEstimate;
use analysis::replay::{
    AnalysedReplay, KeptPace, RecordedBeside, ReplayPace, ReplayedBoth, ReplayedFlow, ReplayedProcess,
};
use model::record::Setting;
use model::units::three_digits;
use model::warning::Warning;

const NONE: &str = "—";

/// A replay for the terminal.
pub fn replay(one: &AnalysedReplay, style: &Style) -> String {
    let style = &style.for_tables();
    let waits = own_waits(std::slice::from_ref(one));
    let text = beside_recorded(one).into_iter().chain([introduction(one)]).chain(waits);
    let text = text.flat_map(|text| wrap(&text, style.width, INDENT, DEEPER)).collect();
    let mut lines = section(&clean(&one.scenario), text, style);
    lines.extend(tables(one, style));
    finish(&lines.into_iter().skip(1).collect::<Vec<_>>())
}

/// Two replays that were measured in turn: how the second differs, then what each came to.
pub fn replay_both(both: &ReplayedBoth, style: &Style) -> String {
    let style = &style.for_tables();
    let [first, second] = &both.replays;
    let begin = format!("{} Means with their 95% intervals, in turn.", introduction(first));
    let text = beside_recorded(first).into_iter().chain([begin]).chain(own_waits(&both.replays));
    let text = text.flat_map(|text| wrap(&text, style.width, INDENT, DEEPER)).collect();
    let heading = format!("{} against {}", clean(&second.scenario), clean(&first.scenario));
    let mut lines = section(&heading, text, style);
    let ratio = |of: Option<MeanEstimate>| {
        of.and_then(|of| change(of.mean, of.interval)).unwrap_or_else(|| NONE.to_owned())
    };
    let flows = both.flows.iter().map(|flow| {
        let [first, second] = &flow.mechanisms;
        let exchange = if first == second { first.clone() } else { format!("{second}, not {first}") };
        let name = clean(&format!("{} over {exchange}", flow.name));
        (name, vec![ratio(flow.rate), ratio(flow.round_trip)])
    });
    lines.extend(grid(
        &Grid {
            heading: "How the second differs".to_owned(),
            columns: vec!["rate".to_owned(), "round trip".to_owned()],
            rows: flows.collect(),
            below: Vec::new(),
        },
        style,
    ));
    let processes = both.processes.iter().map(|process| (clean(&process.name), vec![ratio(process.cpu)]));
    lines.extend(grid(
        &Grid {
            heading: "CPU time over time".to_owned(),
            columns: vec!["change".to_owned()],
            rows: processes.collect(),
            below: Vec::new(),
        },
        style,
    ));
    for (nth, one) in ["The first", "The second"].into_iter().zip(&both.replays) {
        lines.extend(section(&format!("{nth}: {}", clean(&one.scenario)), vec![String::new()], style));
        lines.extend(tables(one, style).into_iter().skip(1));
    }
    finish(&lines.into_iter().skip(1).collect::<Vec<_>>())
}

/// Of each flow of `replays`, once, what the program that was recorded waited for in it because it is over TCP.
fn own_waits(replays: &[AnalysedReplay]) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    for flow in replays.iter().flat_map(|replay| &replay.flows) {
        let Some(held) = flow.recorded.and_then(|recorded| recorded.held_back) else { continue };
        let text = format!(
            "{name}: as recorded, {} The wait belongs to TCP as the program uses it: another mechanism is without it, and so is TCP with \
             TCP_NODELAY, which a replay with --set {name}=tcp has.",
            held_back(held),
            name = clean(&flow.name)
        );
        if !said.contains(&text) {
            said.push(text);
        }
    }
    said
}

/// How the rates of the busiest flows of `one` compare with the program's, and what that means; nothing of a scenario that nobody recorded.
fn beside_recorded(one: &AnalysedReplay) -> Vec<String> {
    /// The others are in the table.
    const TOLD: usize = 3;
    let flows = one.recorded_flows();
    let told = &flows[..flows.len().min(TOLD)];
    let meaning =
        told.first().map(|(busiest, recorded)| format!("{} {}", pace(busiest), kept(recorded.keeps)));
    told.iter().map(|(flow, recorded)| rates(flow, recorded)).chain(meaning).collect()
}

/// `ask over tcp: replayed at 3000/s ±2.0%, the program was recorded at 1000/s: 3.00 times as many (2.94 to 3.06).`
fn rates(flow: &ReplayedFlow, recorded: &RecordedBeside) -> String {
    let [rate, spread] = cells(flow.per_s, |rate| Some(three_digits(rate)));
    let ratio = recorded.rate_ratio.map(|ratio| {
        let (times, interval) = (three_digits(ratio.mean), ratio.interval);
        let interval =
            interval.map(|(low, high)| format!(" ({} to {})", three_digits(low), three_digits(high)));
        format!(": {times} times as many{}", interval.unwrap_or_default())
    });
    format!(
        "{} over {}: replayed at {}, the program was recorded at {}/s{}.",
        clean(&flow.name),
        clean(&flow.mechanism),
        format!("{rate}/s {spread}").trim_end(),
        three_digits(recorded.per_s),
        ratio.unwrap_or_default()
    )
}

/// When the messages of `flow` begin, which is what its rate is made of.
fn pace(flow: &ReplayedFlow) -> String {
    let name = clean(&flow.name);
    match &flow.pace {
        ReplayPace::Closed { thought_ns } => {
            let thought = time(*thought_ns).unwrap_or_default();
            format!(
                "Each {name} begins when the one before is over and the sender has slept as the program did, {thought} in the mean."
            )
        }
        ReplayPace::BackToBack => {
            format!("Each {name} begins when the one before is over: the program did not sleep between them.")
        }
        ReplayPace::AtRate => format!("Each {name} begins when it is due, not when the one before is over."),
        ReplayPace::After(cause) => {
            format!("Each {name} is begun by {}, and is as often as that.", clean(cause))
        }
    }
}

/// What a rate beside the program's means.
fn kept(keeps: KeptPace) -> &'static str {
    match keeps {
        KeptPace::AsRecorded => "The replay keeps the program's pace.",
        KeptPace::Faster => {
            "The replay is faster than the program: it has its messages, sleeps and CPU time, but none of its caches, memory and \
             disks, nor what recording cost. Compare ratios (--against), not rates, with the program."
        }
        KeptPace::Slower => {
            "The replay is slower than the program: this host is slower or busier than when it was recorded, or the program does at \
             once what is replayed in turn. Compare ratios (--against), not rates, with the program."
        }
        KeptPace::NotKnown => "There are too few trials to tell more: give it more --time.",
    }
}

fn introduction(one: &AnalysedReplay) -> String {
    let early = if one.interrupted { ", then it was interrupted" } else { "" };
    match one.slices {
        0 => "No slice was measured: give it more with --time.".to_owned(),
        slices => format!("Measured in {slices} slices of {} trials{early}.", one.trials),
    }
}

fn tables(one: &AnalysedReplay, style: &Style) -> Vec<String> {
    let mut lines = flows(one, style);
    lines.extend(processes(one, style));
    lines
}

fn flows(one: &AnalysedReplay, style: &Style) -> Vec<String> {
    let mut rows = Vec::new();
    for flow in &one.flows {
        rows.push((clean(&format!("{} over {}", flow.name, flow.mechanism)), replayed(flow)));
        rows.extend(recorded(flow).map(|cells| ("  recorded".to_owned(), cells)));
    }
    let columns = ["per s", "", "round trip", "", "median", "p99"].map(str::to_owned).to_vec();
    let missed = one.flows.iter().flat_map(|flow| {
        let missed = flow.settings.iter().filter_map(Setting::warning);
        missed.filter_map(|warning| Some(format!("{}: {}", clean(&flow.name), numbers(&warning)?)))
    });
    let below = missed.flat_map(|text| wrap(&text, style.width, INDENT, DEEPER)).collect();
    grid(&Grid { heading: "Flows".to_owned(), columns, rows, below }, style)
}

fn processes(one: &AnalysedReplay, style: &Style) -> Vec<String> {
    let columns = ["CPU", "", "switches/s", "", "recorded CPU", "switches/s"];
    let rows = one.processes.iter().map(|process| (clean(&process.name), process_cells(process)));
    let moved = one.processes.iter().filter(|process| !process.elsewhere.is_nothing()).map(|process| {
        let advice = Warning::Elsewhere(process.elsewhere.clone()).advice();
        clean(&format!("{}: {}: they count all the same; {advice}", process.name, process.elsewhere))
    });
    grid(
        &Grid {
            heading: "Processes".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: rows.collect(),
            below: moved.collect(),
        },
        style,
    )
}

fn replayed(flow: &ReplayedFlow) -> Vec<String> {
    let [rate, rate_spread] = cells(flow.per_s, |rate| Some(three_digits(rate)));
    let [trip, trip_spread] = cells(flow.round_trip_ns, time);
    vec![rate, rate_spread, trip, trip_spread, optional(flow.median_ns, time), optional(flow.p99_ns, time)]
}

fn recorded(flow: &ReplayedFlow) -> Option<Vec<String>> {
    let recorded = flow.recorded?;
    let [trip, median, p99] =
        [recorded.round_trip_ns, recorded.median_ns, recorded.p99_ns].map(|ns| optional(ns, time));
    Some(vec![three_digits(recorded.per_s), String::new(), trip, String::new(), median, p99])
}

fn process_cells(process: &ReplayedProcess) -> Vec<String> {
    let [cpu, cpu_spread] = cells(process.cpu, |cpu| Some(percent(cpu)));
    let [switches, switches_spread] = cells(process.switches_per_s, |count| Some(three_digits(count)));
    let recorded_cpu = optional(process.recorded_cpu, |cpu| Some(percent(cpu)));
    let recorded_switches = optional(process.recorded_switches_per_s, |count| Some(three_digits(count)));
    vec![cpu, cpu_spread, switches, switches_spread, recorded_cpu, recorded_switches]
}

/// A mean, and half of its interval as a share of it.
fn cells(of: Option<MeanEstimate>, text: impl Fn(f64) -> Option<String>) -> [String; 2] {
    let spread = of.and_then(|MeanEstimate { mean, interval }| {
        let (low, high) = interval.filter(|_| mean > 0.0)?;
        Some(format!("±{}", percent((high - low) / 2.0 / mean)))
    });
    [optional(of.map(|of| of.mean), text), spread.unwrap_or_default()]
}

fn optional(value: Option<f64>, text: impl Fn(f64) -> Option<String>) -> String {
    value.and_then(text).unwrap_or_else(|| NONE.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::replay::FlowRatios;
    use model::scenario::HeldBack;

    fn replayed(mechanism: &str, held_back: Option<HeldBack>) -> AnalysedReplay {
        let recorded = RecordedBeside {
            per_s: 24.0,
            rate_ratio: None,
            keeps: KeptPace::NotKnown,
            round_trip_ns: Some(41e6),
            median_ns: Some(41e6),
            p99_ns: Some(42e6),
            held_back,
        };
        let small = Setting {
            name: "pipe capacity".to_owned(),
            got: "8192".to_owned(),
            usual: Some("65536".to_owned()),
            ..Setting::default()
        };
        let flow = ReplayedFlow {
            name: "ask".to_owned(),
            from: "a".to_owned(),
            to: "b".to_owned(),
            mechanism: mechanism.to_owned(),
            messages: 100,
            bytes: 10_400,
            per_s: None,
            round_trip_ns: None,
            median_ns: None,
            p99_ns: None,
            settings: vec![small],
            pace: ReplayPace::BackToBack,
            recorded: Some(recorded),
        };
        AnalysedReplay {
            scenario: "two".to_owned(),
            trials: 2,
            slices: 4,
            interrupted: false,
            flows: vec![flow],
            processes: Vec::new(),
        }
    }

    #[test]
    fn the_rate_beside_the_recorded_one_comes_first_with_what_it_means() {
        let beside = |ratio: f64, keeps, pace| {
            let mut one = replayed("tcp", None);
            let flow = &mut one.flows[0];
            let per_s = MeanEstimate { mean: 24.0 * ratio, interval: Some((23.0 * ratio, 25.0 * ratio)) };
            flow.per_s = Some(per_s);
            flow.pace = pace;
            let recorded = flow.recorded.as_mut().unwrap();
            (recorded.rate_ratio, recorded.keeps) = (Some(per_s.map(|per_s| per_s / 24.0)), keeps);
            let text = replay(&one, &Style::default());
            text.lines()
                .take_while(|line| !line.is_empty())
                .map(|line| format!("{line}\n"))
                .collect::<String>()
        };
        insta::assert_snapshot!(beside(3.0, KeptPace::Faster, ReplayPace::BackToBack), @r"
        two
          ask over tcp: replayed at 72.0/s ±4.2%, the program was recorded at 24.0/s:
            3.00 times as many (2.88 to 3.12).
          Each ask begins when the one before is over: the program did not sleep between
            them. The replay is faster than the program: it has its messages, sleeps and
            CPU time, but none of its caches, memory and disks, nor what recording cost.
            Compare ratios (--against), not rates, with the program.
          Measured in 4 slices of 2 trials.
        ");
        insta::assert_snapshot!(beside(0.5, KeptPace::Slower, ReplayPace::Closed { thought_ns: 21e6 }), @r"
        two
          ask over tcp: replayed at 12.0/s ±4.2%, the program was recorded at 24.0/s:
            0.500 times as many (0.479 to 0.521).
          Each ask begins when the one before is over and the sender has slept as the
            program did, 21.0 ms in the mean. The replay is slower than the program:
            this host is slower or busier than when it was recorded, or the program does
            at once what is replayed in turn. Compare ratios (--against), not rates,
            with the program.
          Measured in 4 slices of 2 trials.
        ");
        insta::assert_snapshot!(beside(1.0, KeptPace::AsRecorded, ReplayPace::After("query".to_owned())), @r"
        two
          ask over tcp: replayed at 24.0/s ±4.2%, the program was recorded at 24.0/s:
            1.00 times as many (0.958 to 1.04).
          Each ask is begun by query, and is as often as that. The replay keeps the
            program's pace.
          Measured in 4 slices of 2 trials.
        ");
        // Nothing is said of a scenario that somebody wrote.
        let mut by_hand = replayed("tcp", None);
        by_hand.flows[0].recorded = None;
        assert!(!replay(&by_hand, &Style::default()).contains("recorded at"));
    }

    #[test]
    fn what_the_program_waits_for_by_itself_is_said_once_before_what_a_replay_came_to() {
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let texts = |held_back| {
            let replays = ["tcp:nodelay=off", "unix-stream"].map(|mechanism| replayed(mechanism, held_back));
            let alone = replay(&replays[0], &Style::default());
            let ratios = FlowRatios {
                name: "ask".to_owned(),
                mechanisms: ["tcp:nodelay=off", "unix-stream"].map(str::to_owned),
                rate: None,
                round_trip: None,
            };
            let both = ReplayedBoth { replays, flows: vec![ratios], processes: Vec::new() };
            [alone, replay_both(&both, &Style::default())].map(|text| flat(&text))
        };
        for text in texts(Some(HeldBack { share: 0.98, wait_ns: 41_000_000 })) {
            let said = "ask: as recorded, in 98% of its round trips, a message that is written in several parts waits 41.0 ms";
            assert_eq!(text.matches(said).count(), 1, "{text}");
            assert!(text.contains("TCP_NODELAY") && text.contains("--set ask=tcp"), "{text}");
            assert!(text.find(said) < text.find("Flows"), "{text}");
            assert!(text.contains("ask: pipe capacity usually 65536, here 8192"), "{text}");
        }
        assert!(texts(None).iter().all(|text| !text.contains("TCP_NODELAY")));
    }
}
