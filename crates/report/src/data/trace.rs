//! A timeline as a trace file, for those who want to move about in it: ui.perfetto.dev and Chrome's own viewer open it.
//!
//! It is in the trace event format, which is JSON: Perfetto's own format says no more of what is in here, and other
//! viewers do not read it. Nothing is chosen here; every iteration that was seen is in the file.

use crate::words::clean;
use analysis::analysed::AnalysedTimeline;
use analysis::traces::schedule::{SchedulerState, StateSpan};
use analysis::traces::timeline::{Track, WakeUp};
use model::endpoint::EndpointRole;
use model::observation::Observation;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;

/// `timeline` as a trace.
pub fn trace(timeline: &AnalysedTimeline<'_>) -> String {
    let AnalysedTimeline { case, observation, tracks, iterations: _ } = timeline;
    let tid = |end| tracks.endpoints().find(|(at, _)| *at == end).map_or(0, |(_, track)| track.tid);
    let origin_ns = observation.endpoints().map(|seen| seen.from_ns).min().unwrap_or_default();

    let mut events = iterations(observation, tid(EndpointRole::Client));
    for (_, track) in tracks.endpoints() {
        events.extend(slices(track));
        events.extend(faults(track));
    }
    let woken = |wake_up: &WakeUp| {
        tracks.endpoints().find(|(end, _)| *end == wake_up.waker.other()).map(|(_, track)| track)
    };
    for (number, wake_up) in tracks.wake_ups.iter().enumerate() {
        events.extend(wakes(wake_up, number, tid(wake_up.waker), woken(wake_up)));
    }
    events.sort_by_key(|event| (event.at_ns, event.order, Reverse(event.took_ns)));

    let names = tracks.endpoints().flat_map(|(end, track)| names(end, track, case));
    let events = events.into_iter().map(|event| event.written(origin_ns));
    let file = File {
        trace_events: names.chain(events).collect(),
        display_time_unit: "ns",
        other_data: json!({
            "case": clean(case),
            "iterations": observation.iterations,
            "lost records": observation.endpoints().map(|seen| seen.lost).sum::<u64>(),
        }),
    };
    serde_json::to_string(&file).unwrap_or_default()
}

/// The file, as the format has it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File {
    trace_events: Vec<Written>,
    display_time_unit: &'static str,
    other_data: Value,
}

/// An event, as the format has it.
#[derive(Serialize)]
struct Written {
    name: String,
    cat: &'static str,
    ph: char,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// The places of events of the same moment, as tenths of a nanosecond: so far apart are they written, for viewers that
/// see as much must not let an iteration go on into the next, or an arrow end in the sleep before the wait that it means.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    /// An iteration ends.
    Ends = 1,
    /// An iteration or a slice begins.
    Begins = 2,
    /// Something happens, or an arrow starts.
    Happens = 3,
    /// An arrow arrives in what has begun.
    Arrives = 4,
}

/// An event that is on its way into the file.
struct Event {
    at_ns: u64,
    /// Its place among events of the same moment.
    order: Order,
    /// What encloses others must come before them.
    took_ns: Option<u64>,
    name: String,
    category: &'static str,
    phase: char,
    tid: u32,
    more: Value,
}

impl Event {
    /// Viewers bind the tracks of threads to processes. An endpoint is a process of its own, or may as well be one.
    fn written(self, origin_ns: u64) -> Written {
        let more = match self.more {
            Value::Object(more) => more,
            _ => Map::new(),
        };
        Written {
            name: self.name,
            cat: self.category,
            ph: self.phase,
            pid: self.tid,
            tid: self.tid,
            ts: Some(microseconds(self.at_ns.saturating_sub(origin_ns), self.order as u64)),
            dur: self.took_ns.map(|took_ns| microseconds(took_ns, 1)),
            more,
        }
    }
}

/// The format counts microseconds. Perfetto multiplies by a thousand and cuts off what is left: without some `tenths` of a
/// nanosecond more, a call could end up one nanosecond shorter than the sleep within it, which it then would not enclose.
fn microseconds(ns: u64, tenths: u64) -> f64 {
    (10 * ns + tenths) as f64 / 10_000.0
}

/// What a track is called, and where it stands.
fn names(end: EndpointRole, track: &Track, case: &str) -> [Written; 3] {
    let named = |name: &str, args: Value| Written {
        name: name.to_owned(),
        cat: "__metadata",
        ph: 'M',
        pid: track.tid,
        tid: track.tid,
        ts: None,
        dur: None,
        more: Map::from_iter([("args".to_owned(), args)]),
    };
    [
        named("process_name", json!({ "name": format!("{}: {}", end.name(), clean(case)) })),
        named("thread_name", json!({ "name": end.name() })),
        named("process_sort_index", json!({ "sort_index": if end == EndpointRole::Client { 0 } else { 1 } })),
    ]
}

/// The iterations, beside the client's track: its clock bounds them. They share an id, so that they share a track.
fn iterations(observation: &Observation, tid: u32) -> Vec<Event> {
    let bounds = observation.iteration_ends_ns.windows(2).enumerate().filter(|(_, ends)| ends[0] < ends[1]);
    let iteration = |(number, ends): (usize, &[u64])| {
        let event = |at_ns, phase, order, more| Event {
            at_ns,
            order,
            took_ns: None,
            name: "iteration".to_owned(),
            category: "iteration",
            phase,
            tid,
            more,
        };
        [
            event(ends[0], 'b', Order::Begins, json!({ "id": 1, "args": { "number": number + 1 } })),
            event(ends[1], 'e', Order::Ends, json!({ "id": 1 })),
        ]
    };
    bounds.flat_map(iteration).collect()
}

/// What takes time: calls, and within them, or between them, the time without a CPU.
fn slices(track: &Track) -> impl Iterator<Item = Event> {
    let slice = |from_ns, until_ns: u64, name: &str, category, args: Value| Event {
        at_ns: from_ns,
        order: Order::Begins,
        took_ns: Some(until_ns - from_ns),
        name: clean(name),
        category,
        phase: 'X',
        tid: track.tid,
        more: json!({ "args": args }),
    };
    let calls = track.calls.iter().map(move |named| {
        let call = &named.call;
        let args = json!({ "returned": call.answer, "third argument": call.third });
        slice(call.from_ns, call.until_ns, &named.name, "call", args)
    });
    let off = track.spans.iter().filter(|span| span.state != SchedulerState::Runs);
    let off =
        off.map(move |span| slice(span.from_ns, span.until_ns, span.state.name(), "scheduler", json!({})));
    calls.chain(off)
}

fn faults(track: &Track) -> impl Iterator<Item = Event> {
    track.faults.iter().map(|fault| Event {
        at_ns: fault.at_ns,
        order: Order::Happens,
        took_ns: None,
        name: if fault.major { "major page fault" } else { "page fault" }.to_owned(),
        category: "fault",
        phase: 'i',
        tid: track.tid,
        more: json!({
            "s": "t",
            "args": {
                "address": format!("{:#x}", fault.address),
                "mapping": fault.mapping.as_deref().map(clean).unwrap_or_default(),
            },
        }),
    })
}

/// A wake-up: a mark where it happened, and an arrow to the woken one's wait for a CPU, if it had to wait.
fn wakes(wake_up: &WakeUp, number: usize, waker: u32, woken: Option<&Track>) -> Vec<Event> {
    let name = format!("wakes {}", wake_up.waker.other().name());
    let event = |tid, phase, order, more| Event {
        at_ns: wake_up.at_ns,
        order,
        took_ns: None,
        name: name.clone(),
        category: "wake-up",
        phase,
        tid,
        more,
    };
    let begins = |span: &StateSpan| span.state == SchedulerState::Wakes && span.from_ns == wake_up.at_ns;
    let waits = woken.filter(|track| track.spans.iter().any(begins));
    let mark = event(
        waker,
        'i',
        Order::Happens,
        json!({ "s": "t", "args": { "by interrupt": wake_up.by_interrupt } }),
    );
    let mut events = vec![mark];
    if let Some(woken) = waits {
        events.push(event(waker, 's', Order::Happens, json!({ "id": number })));
        events.push(event(woken.tid, 'f', Order::Arrives, json!({ "id": number, "bp": "e" })));
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed;
    use proptest::prelude::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    /// The format as its document has it, read strictly: nothing is there that no viewer knows.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Trace {
        #[serde(rename = "traceEvents")]
        events: Vec<Read>,
        #[serde(rename = "displayTimeUnit")]
        unit: String,
        #[serde(rename = "otherData")]
        other: BTreeMap<String, Value>,
    }

    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Read {
        name: String,
        cat: String,
        ph: char,
        pid: u32,
        tid: u32,
        ts: Option<f64>,
        dur: Option<f64>,
        id: Option<u64>,
        bp: Option<String>,
        s: Option<String>,
        #[serde(default)]
        args: BTreeMap<String, Value>,
    }

    impl Read {
        /// As Perfetto takes them.
        fn begins_ns(&self) -> u64 {
            (self.ts.unwrap() * 1000.0) as u64
        }

        fn ends_ns(&self) -> u64 {
            self.begins_ns() + (self.dur.unwrap() * 1000.0) as u64
        }
    }

    fn read(case: &str) -> Trace {
        let observation = observed::observation();
        let timeline = AnalysedTimeline::from_observation(&observation, case.to_owned(), observed::call_name);
        serde_json::from_str(&trace(&timeline)).unwrap()
    }

    fn reads_of(trace: &Trace, phase: char) -> Vec<Read> {
        trace.events.iter().filter(|event| event.ph == phase).cloned().collect()
    }

    #[test]
    fn a_strict_reader_finds_everything_that_was_seen() {
        let trace = read("pipe, latency, 64");
        assert_eq!((trace.unit.as_str(), trace.other["iterations"].as_u64()), ("ns", Some(5)));
        let names: Vec<_> =
            reads_of(&trace, 'M').iter().map(|event| (event.tid, event.args.clone())).collect();
        assert_eq!(
            names[0],
            (201, BTreeMap::from([("name".to_owned(), json!("client: pipe, latency, 64"))]))
        );

        let calls: Vec<Read> =
            reads_of(&trace, 'X').into_iter().filter(|event| event.cat == "call").collect();
        assert_eq!(calls.len(), 20);
        let write = calls.iter().find(|call| call.tid == 201 && call.name == "write").unwrap();
        assert_eq!((write.begins_ns(), write.ends_ns()), (1_150, 4_050));
        assert_eq!(write.args["returned"], json!(64));

        let (begun, ended) = (reads_of(&trace, 'b'), reads_of(&trace, 'e'));
        assert_eq!((begun.len(), ended.len()), (5, 5));
        assert!(begun.iter().chain(&ended).all(|event| event.id == Some(1) && event.name == "iteration"));

        let marks = reads_of(&trace, 'i');
        assert!(marks.iter().all(|mark| mark.s.as_deref() == Some("t")));
        let fault = marks.into_iter().find(|event| event.cat == "fault").unwrap();
        assert_eq!(fault.args["mapping"], json!("[heap]"));
        assert!(trace.events.iter().all(|event| event.pid == event.tid && [201, 202].contains(&event.pid)));
    }

    #[test]
    fn an_arrow_goes_from_a_call_to_the_wait_of_the_woken_one() {
        let trace = read("pipe");
        let (starts, ends) = (reads_of(&trace, 's'), reads_of(&trace, 'f'));
        assert_eq!((starts.len(), ends.len()), (10, 10));
        let slices = reads_of(&trace, 'X');
        let around = |event: &Read| {
            let at = event.begins_ns();
            let inside =
                |slice: &&Read| slice.tid == event.tid && slice.begins_ns() <= at && at < slice.ends_ns();
            slices
                .iter()
                .filter(inside)
                .min_by_key(|slice| slice.ends_ns() - slice.begins_ns())
                .unwrap()
                .name
                .clone()
        };
        for (start, end) in starts.iter().zip(&ends) {
            assert_eq!(
                (start.id, &start.name, &start.cat),
                (end.id, &end.name, &end.cat),
                "viewers match all three"
            );
            assert_ne!(start.tid, end.tid);
            assert_eq!(end.bp.as_deref(), Some("e"));
            assert_eq!((around(start).as_str(), around(end).as_str()), ("write", "woken, waits for a CPU"));
        }
    }

    #[test]
    fn slices_of_a_track_enclose_one_another_or_are_apart() {
        let trace = read("pipe");
        let mut open: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for slice in reads_of(&trace, 'X') {
            let open = open.entry(slice.tid).or_default();
            open.retain(|until_ns| *until_ns > slice.begins_ns());
            assert!(open.iter().all(|until_ns| slice.ends_ns() <= *until_ns), "{slice:?}");
            open.push(slice.ends_ns());
        }
        let times: Vec<f64> = trace.events.iter().filter_map(|event| event.ts).collect();
        assert!(times.is_sorted());
    }

    #[test]
    fn words_from_outside_stay_words() {
        let hostile = "\"},{\"ph\":\"X\" \u{202e}\n";
        let name = reads_of(&read(hostile), 'M')[0].args["name"].clone();
        assert_eq!(name, json!(format!("client: {}", clean(hostile))));
    }

    proptest! {
        #[test]
        fn every_nanosecond_survives_the_way_there_and_back(ns in 0..1_000_000_000_000_u64, tenths in 1..=4_u64) {
            let text = serde_json::to_string(&microseconds(ns, tenths)).unwrap();
            let back: f64 = text.parse().unwrap();
            prop_assert_eq!((back * 1000.0) as u64, ns);
            prop_assert_eq!((back * 1000.0).round() as u64, ns);
            prop_assert!(text.len() <= 15, "{}", text);
        }
    }
}
