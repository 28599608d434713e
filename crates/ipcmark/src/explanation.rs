//! How cases are explained: measured without probes beside control cases that differ by one thing, then observed by every probe;
//! the explanation is printed and its files are made. For `explain`, and for `run --explain`.

use crate::doses;
use crate::exit::{Error, Exit};
use crate::explanation_files;
use crate::measuring::measure;
use crate::output::{check_files, give_answer, style};
use crate::planning::works;
use crate::progress::{Doing, Progress};
use crate::request::ExplanationRequest;
use crate::session::RunSession;
use crate::streams::complain;
use analysis::analysed::AnalysedExplanation;
use analysis::explain::{CaseObservations, Explanation, Landmark, control_cases, explain, size_curves};
use harness::clock::Timer;
use harness::coordinator::profile::{self, A_SLICE, ENOUGH_ROUNDS, ObservedTrial, ProbePlan, ProbeSubject};
use harness::coordinator::schedule::{TimeBudget, Trials};
use harness::protocol::orders::Sizing;
use mechanisms::registry::CARDS;
use model::card::Support;
use model::floor::floor_of;
use model::observation::{Probe, SamplingRate};
use model::plan::Plan;
use model::record::{Host, Record};
use model::{Case, Invalid, Outcome, Pace, Peers};
use observe::symbols::Names;
use report::Style;
use std::time::Duration;

/// The time that each case may take when none is given, its control cases and all probes included.
const TIME_OF_A_CASE: Duration = Duration::from_secs(20);
/// The share of the time in which cases are measured without probes, and that in which the events of CPUs are recorded.
const BARE_SHARE: f64 = 0.3;
const EVENTS_SHARE: f64 = 0.45;

/// Why `case` cannot be explained and what to do about it; `None` if it can.
pub fn unexplainable(case: &Case) -> Option<Invalid> {
    let (why, remedy) = match case.peers {
        _ if case.pace != Pace::BackToBack => (
            "its iterations do not follow each other without a pause, and a pause is no part of an iteration's path",
            "leave out --think-time and --rate",
        ),
        Peers::Pairs(_) => (
            "its pairs have nothing in common but their CPUs, so that no path leads from one to another",
            "leave out --peers, for one pair, or give fan-in=N, for several clients of one server",
        ),
        Peers::FanIn(_) | Peers::FanOut(_) if !case.workload.is_answered() => (
            "its messages are not answered, so that there is no request whose path could be followed",
            "choose -w latency, or leave out --peers",
        ),
        Peers::Pair | Peers::FanIn(_) | Peers::FanOut(_) => return None,
    };
    Some(Invalid::new(format!("{case} cannot be explained: {why}"), remedy))
}

/// Why there are no probes of endpoints of which there are more than two, whose path has the events of CPUs alone.
fn unobservable(case: &Case) -> Option<Support> {
    (case.peers != Peers::Pair).then(|| Support::No {
        reason: "probes observe one client and one server; the path of several has the events of CPUs alone"
            .to_owned(),
        remedy: "leave out --peers".to_owned(),
    })
}

/// Explains `cases`, and prints and makes what is asked for.
pub fn explain_cases(
    cases: &[Case],
    request: &ExplanationRequest,
    host: &Host,
    session: &RunSession,
) -> Result<Exit, Error> {
    // Before the work is done: something else may be where the page is to go.
    check_files(&request.answer)?;
    let time = time_for(cases, request.time);
    let trials = session.trials(false, request.timeout, None);
    let mut gathered: Vec<CaseObservations> = cases
        .iter()
        .map(|case| {
            CaseObservations::new(
                case.clone(),
                control_cases(case, CARDS).into_iter().filter(|(_, case)| works(case)).collect(),
            )
        })
        .collect();
    let records = measure(&bare_plan(&gathered), &trials, time.mul_f64(BARE_SHARE), request.precision);
    record_events(&mut gathered, request, &trials, time.mul_f64(EVENTS_SHARE));
    observe_cases(&mut gathered, request, &trials, time.mul_f64(1.0 - BARE_SHARE - EVENTS_SHARE));

    let explanations: Vec<Explanation> =
        gathered.iter().filter_map(|gathered| explain(gathered, &records, observe::call_name)).collect();
    let size_curves = size_curves(cases, &records, &landmarks(host));
    // Files are made even if whoever reads the text closes it early, and the text is printed even if files cannot be made.
    let analysed: Vec<AnalysedExplanation<'_>> = explanations
        .iter()
        .map(|one| AnalysedExplanation::from_explanation(one, observe::call_name))
        .collect();
    let made = explanation_files::make(&request.files, &request.answer.page, &analysed, &size_curves);
    let text = report::explanations(&analysed, &size_curves, &Style { detail: request.detail, ..style() });
    let document = serde_json::json!({ "explanations": explanations, "curves": size_curves });
    give_answer(&request.answer, &text, &document, &["explanations", "path", "segments"])?;
    // Standard output may be read by a program.
    complain(&made?);
    let is_explained = |case: &Case| explanations.iter().any(|explanation| explanation.case == *case);
    let missing: Vec<&Case> = cases.iter().filter(|case| !is_explained(case)).collect();
    for case in &missing {
        complain(&format!("{case}: it could not be measured: {}\n", failure_of(case, &records)));
    }
    Ok(match () {
        () if session.is_stopped() => Exit::Interrupted,
        () if !missing.is_empty() => Exit::CaseFailed,
        () => Exit::Success,
    })
}

/// The `asked` time for `cases`, or as much as each needs.
fn time_for(cases: &[Case], asked: Option<Duration>) -> Duration {
    asked.unwrap_or(TIME_OF_A_CASE * u32::try_from(cases.len()).unwrap_or(u32::MAX))
}

/// The plan of the cases, their control cases and their floors, each once.
fn bare_plan(gathered: &[CaseObservations]) -> Plan {
    let mut plan = Plan::default();
    let add = |cases: &mut Vec<Case>, case: &Case| {
        if !cases.contains(case) {
            cases.push(case.clone());
        }
    };
    for gathered in gathered {
        add(&mut plan.cases, &gathered.case);
        let control_cases = gathered.control_cases();
        control_cases.iter().for_each(|(_, case)| add(&mut plan.cases, case));
        // Of control cases too: the hand-over alone is the floor of one byte.
        for floor in std::iter::once(&gathered.case)
            .chain(control_cases.iter().map(|(_, case)| case))
            .filter_map(floor_of)
        {
            floor.cases().for_each(|case| add(&mut plan.floors, case));
        }
    }
    plan.cases.retain(|case| !plan.floors.contains(case));
    plan
}

/// Has the events of both CPUs recorded of one case after the other, unless probes were asked for that have nothing to do with them.
fn record_events(
    gathered: &mut [CaseObservations],
    request: &ExplanationRequest,
    trials: &dyn Trials,
    time: Duration,
) {
    if !request.probes.contains(&Probe::Scheduler) {
        return;
    }
    let time = time / u32::try_from(gathered.len().max(1)).unwrap_or(u32::MAX);
    for gathered in gathered {
        let case = std::slice::from_ref(&gathered.case);
        if let Some(dosed) = doses::record(case, request.iterations, &[trials], time).pop() {
            gathered.doses = dosed;
        }
    }
}

/// Has every probe that works here observe the cases, and gathers what each saw.
fn observe_cases(
    gathered: &mut [CaseObservations],
    request: &ExplanationRequest,
    trials: &dyn Trials,
    time: Duration,
) {
    let probes = supported(&request.probes, gathered);
    let size = request.iterations.map_or(A_SLICE, Sizing::Iterations);
    let subject = |gathered: &CaseObservations| ProbeSubject {
        case: gathered.case.clone(),
        probes: if unobservable(&gathered.case).is_none() { probes.clone() } else { Vec::new() },
        size,
    };
    let subjects: Vec<ProbeSubject> = gathered.iter().map(subject).collect();
    let plan = ProbePlan {
        subjects: &subjects,
        counters: &request.counters,
        sampling: &SamplingRate::ALL,
        rounds: ENOUGH_ROUNDS,
    };
    let budget = TimeBudget { clock: &Timer::start(), time };
    let (mut names, mut display) = (Names::default(), Progress::new());
    profile::observe(plan, trials, budget, |trial| {
        let ObservedTrial { at, probe, sampling, outcome, ratio, progress, .. } = trial;
        display.show(Doing::Probe(probe), progress);
        match (outcome, ratio) {
            (Err(failure), _) => gathered[at].note_failure(probe, failure),
            // The first round warms up.
            (Ok(_), None) => {}
            (Ok(mut observation), Some(ratio)) => {
                names.name(&mut observation);
                gathered[at].add(probe, sampling, observation, ratio);
            }
        }
    });
    display.finish();
}

/// Those of the `asked` probes that work here; notes of each whether it does.
fn supported(asked: &[Probe], gathered: &mut [CaseObservations]) -> Vec<Probe> {
    let mut supported = Vec::new();
    for &probe in asked {
        let support = observe::support(probe);
        if matches!(support, Support::Yes { .. }) {
            supported.push(probe);
        }
        for gathered in gathered.iter_mut() {
            let of_case = unobservable(&gathered.case).unwrap_or_else(|| support.clone());
            gathered.note_support(probe, of_case);
        }
    }
    supported
}

/// The sizes at which something in this machine or its kernel changes.
fn landmarks(host: &Host) -> Vec<Landmark> {
    let mut landmarks = vec![Landmark { name: "page".to_owned(), bytes: 4096 }];
    let mut add = |name: &str, bytes: u64| landmarks.push(Landmark { name: name.to_owned(), bytes });
    // What the kernel gives unless it is asked for more (pipe(7)).
    add("pipe capacity", 65_536);
    let limit = |name: &str, field: usize| {
        host.limits.get(name)?.known()?.split_whitespace().nth(field)?.parse().ok()
    };
    for (name, limit) in [
        ("socket receive buffer", limit("net/core/rmem_default", 0)),
        ("TCP receive buffer", limit("net/ipv4/tcp_rmem", 1)),
    ] {
        limit.into_iter().for_each(|bytes| add(name, bytes));
    }
    for (name, bytes) in host.caches_bytes.known().into_iter().flatten() {
        add(name, *bytes);
    }
    landmarks
}

/// Why `case` has no result.
fn failure_of(case: &Case, records: &[Record]) -> String {
    let record = records.iter().find(|record| record.case == *case);
    match record.map(|record| &record.outcome) {
        Some(Outcome::Failed { error }) => error.clone(),
        _ => "there was no time; give it more with --time".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Workload, floor};

    #[test]
    fn each_case_has_time_of_its_own_unless_a_time_is_given() {
        let cases = vec![floor::operation("getpid", 0); 3];
        assert_eq!(time_for(&cases, None), TIME_OF_A_CASE * 3);
        assert_eq!(time_for(&cases, Some(Duration::from_secs(1))), Duration::from_secs(1));
    }

    #[test]
    fn the_plan_has_every_case_and_floor_once_and_no_floor_as_a_case() {
        let case = |name: &str| floor::operation(name, 0);
        let gathered: Vec<CaseObservations> = ["getpid", "getpid", "syscall"]
            .iter()
            .map(|name| CaseObservations::new(case(name), Vec::new()))
            .collect();
        let plan = bare_plan(&gathered);
        assert_eq!(plan.cases.iter().filter(|planned| **planned == case("getpid")).count(), 1);
        assert!(plan.cases.iter().all(|case| !plan.floors.contains(case)), "{plan:?}");
        let mut floors = plan.floors.clone();
        floors.dedup();
        assert_eq!(floors, plan.floors);
    }

    #[test]
    fn what_has_no_path_of_a_request_cannot_be_explained() {
        let case = Case { workload: Workload::Latency, ..floor::operation("getpid", 0) };
        let is_refused = |case: Case| unexplainable(&case).is_some_and(|invalid| !invalid.remedy.is_empty());
        assert!(!is_refused(case.clone()));
        for (peers, of_latency) in
            [(Peers::Pairs(2), true), (Peers::FanIn(4), false), (Peers::FanOut(4), false)]
        {
            assert_eq!(is_refused(Case { peers, ..case.clone() }), of_latency, "{peers}");
            assert!(is_refused(Case { peers, workload: Workload::Throughput, ..case.clone() }), "{peers}");
        }
        assert!(!is_refused(Case { workload: Workload::Throughput, ..case.clone() }));
        assert!(is_refused(Case { pace: Pace::think_time("1us").unwrap(), ..case }));
    }

    #[test]
    fn a_case_without_a_result_has_the_reason_of_its_record_or_wants_time() {
        let case = floor::operation("getpid", 0);
        let failed = Outcome::Failed { error: "no".to_owned() };
        let record = Record::bare(case.clone(), false, failed, Vec::new());
        assert_eq!(failure_of(&case, &[record]), "no");
        assert!(failure_of(&case, &[]).contains("--time"));
    }
}
