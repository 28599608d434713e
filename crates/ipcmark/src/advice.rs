//! How the candidates for a need are measured: all of them at first, at the rate those that are near the best, then the best with
//! other settings and at other sizes. What it means is for `analysis::advise` to say.

use crate::advice_request::{PlacedNeed, specs};
use crate::exit::Error;
use crate::measuring::measure_until;
use crate::planning::plan_here;
use crate::rules::RunRules;
use crate::session::RunSession;
use analysis::advise::{Recommendation, are_told_apart, best_of, is_hopeless, is_surely_worse, recommend};
use analysis::stopping::{LEAST_TRIALS, is_narrow};
use harness::clock::Timer;
use harness::coordinator::trials::EndpointTrials;
use mechanisms::registry::{self, CARDS};
use model::block::Block;
use model::card::Support;
use model::estimate::Estimate;
use model::need::{Cause, Exclusion, Need, Pattern};
use model::plan::Plan;
use model::record::Record;
use model::topology::Topology;
use model::{Case, Domain, Endpoints, Pace, Peers, Percent, Placements, Sample, Size, Spec, Workload};
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

/// Until when, as a share of the time, all candidates are measured; of a need with a rate, and of one without.
const FIRST_UNTIL_PACED: f64 = 0.25;
const FIRST_UNTIL: f64 = 0.7;
/// Until when candidates are measured at the rate.
const PACED_UNTIL: f64 = 0.85;
/// How many are measured at the rate, and with other settings and at other sizes.
const MOST_PACED: usize = 4;
const MOST_VARIED: usize = 3;
/// What is further from the best is neither.
const NEAR: f64 = 2.0;
/// The trials after which a candidate may be hopeless.
const FIRST_TRIALS: u32 = 3;
/// How well it is enough to know what is not ranked.
const PRECISION: Percent = Percent(0.03);
/// The most settings that are tried.
const MOST_SETTINGS: usize = 8;
/// The parameters that say how much room there is, and how much is tried.
const ROOM: [&str; 3] = ["capacity", "sndbuf", "queue"];
const MORE_ROOM: &str = "1M";
/// The parameter that says how an endpoint waits.
const WAIT: &str = "wait";

/// What to take for `placed`, among the mechanisms named; measured in `time`.
pub fn advise(
    placed: &PlacedNeed,
    among: &[String],
    time: Duration,
    timeout: Duration,
    topology: &Topology,
    session: &RunSession,
) -> Result<Recommendation, Error> {
    let need = &placed.need;
    let (met, mut excluded) = specs(need, among);
    let mut field = Field { need, placements: &placed.placements, topology, placement: String::new() };
    let (mut candidates, mut cases) = (Vec::new(), Vec::new());
    for spec in met {
        match field.first_cases(&spec) {
            Ok(of_spec) => {
                candidates.push(spec);
                cases.extend(of_spec);
            }
            Err((cause, reason)) => {
                excluded.push(Exclusion { mechanism: spec.to_string(), cause, reason });
            }
        }
    }
    let timer = Timer::start();
    let trials = session.trials(false, timeout, None);
    let measure = |cases: &[Case], until: f64, watch: Watch| -> Vec<Record> {
        let left = time.mul_f64(until).saturating_sub(timer.elapsed());
        if cases.is_empty() || left.is_zero() || session.is_stopped() {
            return Vec::new();
        }
        measure(cases, &trials, left, watch)
    };
    let paced = need.pace() != Pace::BackToBack;
    let first_until = if paced { FIRST_UNTIL_PACED } else { FIRST_UNTIL };
    let mut records = measure(&cases, first_until, Watch::Ranking(need.workload()));
    // The order without the rate says which are worth a trial at the rate, whose slices are long.
    let unpaced = Need { rate: need.rate.filter(|_| !paced), ..need.clone() };
    let best = |need: &Need, records: &[Record], most: usize| -> Vec<Spec> {
        let ranked = recommend(need, "", &candidates, records, Vec::new()).ranked;
        let near = ranked.into_iter().filter(|ranked| ranked.over_best.median <= NEAR);
        near.map(|ranked| ranked.measured.spec).take(most).collect()
    };
    if paced {
        let near = best(&unpaced, &records, MOST_PACED);
        let cases: Vec<Case> = near
            .iter()
            .flat_map(|spec| field.cases(spec, need.pattern.workload(), need.size, need.pace()))
            .collect();
        records.extend(measure(&cases, PACED_UNTIL, Watch::Ranking(need.pattern.workload())));
    }
    let leaders = best(need, &records, MOST_VARIED);
    let varied = field.varied_cases(&leaders, &mut excluded);
    records.extend(measure(&varied, 1.0, Watch::Numbers));
    let answer = recommend(need, &field.placement, &candidates, &records, excluded);
    Ok(Recommendation { held_back: placed.held_back, ..answer })
}

/// When a case need not be measured any longer.
#[derive(Debug, Clone, Copy)]
enum Watch {
    /// When the ranking in this workload is told, or the case is hopeless.
    Ranking(Workload),
    /// When its own number is known.
    Numbers,
}

/// What cases there can be for a need.
struct Field<'a> {
    need: &'a Need,
    placements: &'a Placements,
    topology: &'a Topology,
    /// The placement that cases have.
    placement: String,
}

impl Field<'_> {
    /// The case of `spec`, if there is one.
    fn cases(&mut self, spec: &Spec, workload: Workload, size: Size, pace: Pace) -> Vec<Case> {
        let plan = self.plan(spec, workload, size, pace);
        if let Some(case) = plan.cases.first() {
            self.placement = case.placement.to_string();
        }
        plan.cases
    }

    fn plan(&self, spec: &Spec, workload: Workload, size: Size, pace: Pace) -> Plan {
        let block = Block {
            specs: vec![spec.clone()],
            workloads: vec![workload],
            sizes: vec![size],
            placements: vec![self.placements.clone()],
            paces: vec![pace],
            peers: vec![Peers::Pair],
        };
        plan_here(&[block], Endpoints::Processes, self.topology)
    }

    /// What is measured of every candidate, one message after the other: what it is ranked by, and the other of round trips and
    /// streams where it has that. Or why it is not measured.
    fn first_cases(&mut self, spec: &Spec) -> Result<Vec<Case>, (Cause, String)> {
        let first = self.need.pattern.workload();
        if let Some(Support::Yes { largest_bytes: Some(largest) }) = registry::probe(&spec.name, &spec.params)
            && self.need.pattern != Pattern::Signal
            && largest < self.need.size.0
        {
            return Err((Cause::Size, format!("its largest message here is {largest} bytes")));
        }
        let plan = self.plan(spec, first, self.need.size, Pace::BackToBack);
        if plan.cases.is_empty() {
            let reason = plan.dropped.into_iter().next().map(|dropped| dropped.reason);
            return Err((Cause::Host, reason.unwrap_or_else(|| "it cannot be measured here".to_owned())));
        }
        let mut cases = self.cases(spec, first, self.need.size, Pace::BackToBack);
        let other = match self.need.pattern {
            Pattern::RequestReply => Workload::Throughput,
            Pattern::Stream => Workload::Latency,
            Pattern::Signal => return Ok(cases),
        };
        cases.extend(self.cases(spec, other, self.need.size, Pace::BackToBack));
        Ok(cases)
    }

    /// The `leaders` again, with other settings, and at smaller and larger sizes. Settings that are not possible here are noted in
    /// `excluded`.
    fn varied_cases(&mut self, leaders: &[Spec], excluded: &mut Vec<Exclusion>) -> Vec<Case> {
        let (workload, size) = (self.need.workload(), self.need.size);
        let mut cases = Vec::new();
        for leader in leaders {
            cases.extend(self.cases(leader, workload, size, Pace::BackToBack));
        }
        for spec in leaders.iter().flat_map(settings).take(MOST_SETTINGS) {
            let plan = self.plan(&spec, workload, size, Pace::BackToBack);
            excluded.extend(plan.dropped.into_iter().map(|dropped| Exclusion {
                mechanism: spec.to_string(),
                cause: Cause::Host,
                reason: dropped.reason,
            }));
            cases.extend(plan.cases);
        }
        if self.need.pattern != Pattern::Signal {
            let sizes = [size.0 / 16, size.0 / 4, size.0.saturating_mul(4), size.0.saturating_mul(16)];
            for size in sizes.map(Size).into_iter().filter(|size| (1..=Size::LARGEST.0).contains(&size.0)) {
                for leader in leaders {
                    cases.extend(self.cases(leader, workload, size, Pace::BackToBack));
                }
            }
        }
        cases
    }
}

/// `spec` with each setting that is tried.
fn settings(spec: &Spec) -> Vec<Spec> {
    let Some(card) = registry::card(&spec.name) else { return Vec::new() };
    let mut texts: Vec<String> = Vec::new();
    let then = if spec.params.is_empty() { ':' } else { ',' };
    for param in card.params {
        match param.domain {
            Domain::Choice(words) if param.name == WAIT => {
                let others = words.iter().filter(|word| param.default != Some(**word));
                texts.extend(others.map(|word| format!("{spec}{then}{WAIT}={word}")));
            }
            Domain::Size | Domain::SizeOrMatch if ROOM.contains(&param.name) => {
                texts.push(format!("{spec}{then}{}={MORE_ROOM}", param.name));
            }
            _ => {}
        }
    }
    texts.iter().filter_map(|text| Spec::parse(text, CARDS).ok()).filter(|other| other != spec).collect()
}

/// What is known of the cases of a run so far.
struct Known<'a> {
    watch: Watch,
    cases: &'a [Case],
    estimates: RefCell<HashMap<Case, Estimate>>,
}

impl Known<'_> {
    /// Whether `case` needs no further trial. It is asked after each trial of the case.
    fn ends(&self, rules: &RunRules, case: &Case, samples: &[Sample]) -> bool {
        let Some(estimate) = rules.estimate(case) else { return false };
        self.estimates.borrow_mut().insert(case.clone(), estimate);
        let trials = samples.last().map_or(0, |sample| sample.trial + 1);
        let is_known = trials as usize >= LEAST_TRIALS && is_narrow(estimate, PRECISION.0);
        let Watch::Ranking(workload) = self.watch else { return is_known };
        // Of what is not ranked, the first trials are enough.
        if case.workload != workload {
            return trials >= FIRST_TRIALS;
        }
        let times = self.times();
        let known: Vec<Estimate> = times.iter().flatten().copied().collect();
        let best = best_of(&known).map_or(estimate, |at| known[at]);
        if trials >= FIRST_TRIALS && is_hopeless(estimate, best.median) {
            return true;
        }
        if (trials as usize) < LEAST_TRIALS {
            return false;
        }
        let all: Option<Vec<Estimate>> = times.into_iter().collect();
        is_surely_worse(estimate, best)
            || all.is_some_and(|all| {
                let hopeful = all.into_iter().filter(|time| !is_hopeless(*time, best.median));
                are_told_apart(&hopeful.collect::<Vec<_>>())
            })
    }

    /// What is known of each case that is ranked.
    fn times(&self) -> Vec<Option<Estimate>> {
        let known = self.estimates.borrow();
        let Watch::Ranking(workload) = self.watch else { return Vec::new() };
        self.cases
            .iter()
            .filter(|case| case.workload == workload)
            .map(|case| known.get(case).copied())
            .collect()
    }
}

/// Measures `cases` interleaved, without floors, in at most `time`.
fn measure(cases: &[Case], trials: &EndpointTrials<'_>, time: Duration, watch: Watch) -> Vec<Record> {
    let plan = Plan { cases: cases.to_vec(), ..Plan::default() };
    let known = Known { watch, cases, estimates: RefCell::default() };
    measure_until(&plan, trials, time, PRECISION.into(), |rules, case, samples| {
        known.ends(rules, case, samples)
    })
}
