//! The measured cases that predictions rest on, as costs by size: how long an iteration took, and what it cost each end.
//!
//! It takes records as a results file has them. What the costs mean for a flow is said in `flow_costs`.

use super::size_line::{SizeFit, SizeLine};
use super::spells::{Spells, usable};
use crate::missed_settings::{MissedSetting, missed_in_records};
use crate::stats::mean;
use model::inject::{Inject, InjectedAmount};
use model::record::Record;
use model::units::format_ns;
use model::{Case, EndpointRole, Endpoints, Pace, Peers, Sample, Spec, Workload};
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::fmt;

/// Where client and server of a case run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndPlace {
    /// On one CPU.
    OneCpu,
    /// Each on its own.
    TwoCpus,
    /// Where the kernel puts them.
    Anywhere,
}

/// Which end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowEnd {
    From,
    To,
}

/// What cases have in common that differ in the size alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CostCase {
    /// The mechanism.
    pub spec: Spec,
    /// What its endpoints do.
    pub workload: Workload,
    /// Where they run.
    pub place: EndPlace,
    /// How long the client waits before each iteration, in nanoseconds.
    pub think_time_ns: u64,
    /// Whether both endpoints fill their caches with something else meanwhile.
    pub has_cold_caches: bool,
    /// For how long the server computes before it answers, in nanoseconds.
    pub server_work_ns: u64,
}

impl CostCase {
    /// Back to back, with no work.
    pub fn plain(spec: Spec, workload: Workload, place: EndPlace) -> Self {
        Self { spec, workload, place, think_time_ns: 0, has_cold_caches: false, server_work_ns: 0 }
    }

    /// That of `case`; `None` of a case on which no prediction rests.
    pub fn of(case: &Case) -> Option<Self> {
        let think_time_ns = match case.pace {
            Pace::BackToBack => 0,
            Pace::ThinkTime(ns) | Pace::ColdThinkTime(ns) => ns,
            Pace::Rate(_) => return None,
        };
        let server_work_ns = match case.inject {
            None => 0,
            Some(Inject { side: EndpointRole::Server, is_asleep: false, amount: InjectedAmount::Ns(ns) }) => {
                ns
            }
            Some(_) => return None,
        };
        let is_plain = case.endpoints == Endpoints::Processes && case.peers == Peers::Pair;
        let place = match case.cpus {
            Some(cpus) if cpus.client == cpus.server => EndPlace::OneCpu,
            Some(_) => EndPlace::TwoCpus,
            None if case.placement == model::Placement::Unpinned => EndPlace::Anywhere,
            None => return None,
        };
        let is_priced = matches!(case.workload, Workload::Latency | Workload::Throughput);
        (is_plain && is_priced).then(|| Self {
            spec: case.spec.clone(),
            workload: case.workload,
            place,
            think_time_ns,
            has_cold_caches: case.pace.has_cold_caches(),
            server_work_ns,
        })
    }
}

impl fmt::Display for CostCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.place {
            EndPlace::OneCpu => "one CPU",
            EndPlace::TwoCpus => "two CPUs",
            EndPlace::Anywhere => "unpinned",
        };
        write!(f, "{} {}, {place}", self.spec, self.workload)?;
        if self.think_time_ns > 0 {
            write!(f, ", {} idle before", format_ns(self.think_time_ns as f64))?;
        }
        if self.has_cold_caches {
            f.write_str(", cold caches")?;
        }
        if self.server_work_ns > 0 {
            write!(f, ", {} until the server answers", format_ns(self.server_work_ns as f64))?;
        }
        Ok(())
    }
}

/// What one slice came to, for an iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaseSlice {
    /// How long it took.
    pub elapsed_ns: f64,
    /// The CPU time of the client.
    pub client_ns: f64,
    /// That of the server.
    pub server_ns: f64,
    /// The context switches of the client.
    pub client_switches: f64,
    /// Those of the server.
    pub server_switches: f64,
}

/// The costs of cases, by what they have in common and by size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasuredCosts {
    cases: BTreeMap<CostCase, BTreeMap<u64, Vec<CaseSlice>>>,
    /// How many slices were measured in slow spells and left out, and how many there were.
    left_out: (usize, usize),
    missed: Vec<MissedSetting>,
}

impl MeasuredCosts {
    /// Adds the costs that `records` of one run tell, without what was measured in slow spells of its host.
    pub fn add_run(&mut self, records: &[Record]) {
        let spells = Spells::of(records.iter().filter(|record| wakes_another_cpu(record)));
        for record in records {
            let Some(case) = CostCase::of(&record.case) else { continue };
            let bytes = record.case.size_bytes.map_or(0, |size| size.0);
            let (slices, all) = (spells.calm_slices(record), usable(record).count());
            self.left_out.0 += all - slices.len();
            self.left_out.1 += all;
            slices.into_iter().for_each(|slice| self.add(case.clone(), bytes, CaseSlice::of(slice)));
        }
        let priced = records.iter().filter(|record| CostCase::of(&record.case).is_some());
        for missed in missed_in_records(priced) {
            if !self.missed.contains(&missed) {
                self.missed.push(missed);
            }
        }
    }

    /// The settings of `specs` that are not as asked, or not as usual, in what was measured.
    pub(super) fn missed(&self, specs: &[&Spec]) -> Vec<MissedSetting> {
        self.missed.iter().filter(|missed| specs.contains(&&missed.mechanism)).cloned().collect()
    }

    /// The share of slices that were measured in slow spells, from 0 to 1.
    pub(super) fn left_out(&self) -> f64 {
        self.left_out.0 as f64 / self.left_out.1.max(1) as f64
    }

    /// Adds what a slice of `bytes` came to, which was measured after those that were added before.
    pub fn add(&mut self, case: CostCase, bytes: u64, slice: CaseSlice) {
        self.cases.entry(case).or_default().entry(bytes).or_default().push(slice);
    }

    /// The sizes at which `case` was measured, ascending; none where it was not.
    pub fn sizes(&self, case: &CostCase) -> Vec<u64> {
        self.cases.get(case).map(|sizes| sizes.keys().copied().collect()).unwrap_or_default()
    }

    /// The cases of `spec` in `workload`, each with its sizes and the fit of its time.
    pub(super) fn basis<'a>(
        &'a self,
        spec: &'a Spec,
        workload: Workload,
    ) -> impl Iterator<Item = (&'a CostCase, Vec<u64>, SizeFit)> + 'a {
        let cases = self.cases.keys().filter(move |case| case.spec == *spec && case.workload == workload);
        cases.filter_map(|case| Some((case, self.sizes(case), self.fitted(case)?.elapsed)))
    }

    /// The think times with which cases that are `case` but for them were measured, ascending, 0 left out.
    pub(super) fn think_times_ns<'a>(&'a self, case: &'a CostCase) -> impl Iterator<Item = u64> + 'a {
        let is_like = |other: &&CostCase| CostCase { think_time_ns: 0, ..(*other).clone() } == *case;
        self.cases.keys().filter(is_like).map(|case| case.think_time_ns).filter(|ns| *ns > 0)
    }

    /// Round trips on two CPUs of one mechanism after the other, back to back and after `think_time_ns`, with warm caches.
    pub(super) fn after_sleep(&self, think_time_ns: u64) -> impl Iterator<Item = (&Spec, [FittedCase; 2])> {
        self.pairs(move |spec| {
            let plain = CostCase::plain(spec.clone(), Workload::Latency, EndPlace::TwoCpus);
            [plain.clone(), CostCase { think_time_ns, ..plain }]
        })
    }

    /// Round trips of one mechanism after the other, on one CPU and on two.
    pub(super) fn on_one_and_two_cpus(&self) -> impl Iterator<Item = (&Spec, [FittedCase; 2])> {
        self.pairs(|spec| {
            [EndPlace::OneCpu, EndPlace::TwoCpus]
                .map(|place| CostCase::plain(spec.clone(), Workload::Latency, place))
        })
    }

    /// The fits of two cases `of` each mechanism of which both were measured.
    fn pairs(&self, of: impl Fn(&Spec) -> [CostCase; 2]) -> impl Iterator<Item = (&Spec, [FittedCase; 2])> {
        let pair = move |case: &'_ CostCase| {
            let [one, other] = of(&case.spec);
            (*case == other).then_some(())?;
            Some([self.fitted(&one)?, self.fitted(&other)?])
        };
        self.cases.keys().filter_map(move |case| Some((&case.spec, pair(case)?)))
    }

    /// For how long servers worked in cases that are `case` but for that, ascending, 0 left out.
    pub(super) fn server_works_ns<'a>(&'a self, case: &'a CostCase) -> impl Iterator<Item = u64> + 'a {
        let is_like = |other: &&CostCase| CostCase { server_work_ns: 0, ..(*other).clone() } == *case;
        self.cases.keys().filter(is_like).map(|case| case.server_work_ns).filter(|ns| *ns > 0)
    }

    /// The fits of `case`; `None` where it was not measured.
    pub(super) fn fitted(&self, case: &CostCase) -> Option<FittedCase> {
        let sizes = self.cases.get(case)?;
        let fit = |of: fn(&CaseSlice) -> f64| {
            let points: Vec<(f64, Vec<f64>)> = sizes
                .iter()
                .map(|(bytes, slices)| (*bytes as f64, slices.iter().map(of).collect()))
                .collect();
            SizeFit::of(&points)
        };
        let switches =
            |of: fn(&CaseSlice) -> f64| mean(&sizes.values().flatten().map(of).collect::<Vec<f64>>());
        Some(FittedCase {
            elapsed: fit(|slice| slice.elapsed_ns)?,
            client: fit(|slice| slice.client_ns)?,
            server: fit(|slice| slice.server_ns)?,
            switches: [switches(|slice| slice.client_switches), switches(|slice| slice.server_switches)],
        })
    }
}

/// Whether `record` is of round trips between two CPUs.
fn wakes_another_cpu(record: &Record) -> bool {
    CostCase::of(&record.case)
        .is_some_and(|cost| cost.workload == Workload::Latency && cost.place == EndPlace::TwoCpus)
}

impl CaseSlice {
    fn of(sample: &Sample) -> Self {
        let each = |of: f64| of / sample.iterations as f64;
        let switches = |usage: &model::sample::Usage| {
            usage.voluntary_switches.saturating_add(usage.involuntary_switches) as f64
        };
        Self {
            elapsed_ns: each(sample.elapsed_ns),
            client_ns: each(sample.client.cpu_ns as f64),
            server_ns: each(sample.server.map_or(0.0, |usage| usage.cpu_ns as f64)),
            client_switches: each(switches(&sample.client)),
            server_switches: each(sample.server.as_ref().map_or(0.0, switches)),
        }
    }
}

/// The fits of one case.
#[derive(Debug, Clone)]
pub(super) struct FittedCase {
    pub(super) elapsed: SizeFit,
    pub(super) client: SizeFit,
    pub(super) server: SizeFit,
    pub(super) switches: [f64; 2],
}

/// What costs are drawn with.
#[derive(Debug)]
pub(super) struct CostDraw {
    pub(super) random: SmallRng,
    /// The seed of the moments from which slices are drawn: of costs that were measured interleaved, the same.
    pub(super) moments: u64,
}

/// The lines of one case, as measured or as drawn.
#[derive(Debug, Clone)]
pub(super) struct CaseLines {
    pub(super) elapsed: SizeLine,
    pub(super) client: SizeLine,
    pub(super) server: SizeLine,
    pub(super) switches: [f64; 2],
}

impl CaseLines {
    /// The CPU time of `end` for an iteration of `bytes`.
    pub(super) fn cpu_ns(&self, end: FlowEnd, bytes: f64) -> f64 {
        match end {
            FlowEnd::From => self.client.at(bytes),
            FlowEnd::To => self.server.at(bytes),
        }
    }

    /// The part of the CPU time of client and server that a round trip of `bytes` on two CPUs takes: less than 1 where they do something at the same
    /// time, such as falling asleep and waking, or spinning.
    pub(super) fn path_share(&self, bytes: f64) -> f64 {
        let both = self.client.at(bytes) + self.server.at(bytes);
        (self.elapsed.at(bytes) / both).min(1.0)
    }
}

impl FittedCase {
    /// The lines as measured, or, with `draw`, as other slices might have given them. The costs of a slice are drawn together.
    pub(super) fn lines(&self, draw: Option<&mut CostDraw>) -> CaseLines {
        let switches = self.switches;
        let Some(CostDraw { random, moments }) = draw else {
            let line = |fit: &SizeFit| fit.line.clone();
            return CaseLines {
                elapsed: line(&self.elapsed),
                client: line(&self.client),
                server: line(&self.server),
                switches,
            };
        };
        let slices = self.elapsed.draw_slices(*moments);
        CaseLines {
            elapsed: self.elapsed.resampled(&slices, random),
            client: self.client.resampled(&slices, random),
            server: self.server.resampled(&slices, random),
            switches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::sample::Usage;
    use model::testing::{record, sample};
    use model::{CpuPair, Placement, Size, floor};

    fn case(cpus: Option<CpuPair>, placement: Placement) -> Case {
        Case {
            workload: Workload::Latency,
            size_bytes: Some(Size(64)),
            placement,
            cpus,
            spec: Spec::plain("pipe"),
            ..floor::operation("getpid", 0)
        }
    }

    #[test]
    fn each_slice_is_a_cost_and_places_are_told_apart() {
        let usage = Usage { cpu_ns: 2_000_000, voluntary_switches: 1000, ..Usage::default() };
        let slice = |round, trial, ns| Sample {
            trial,
            client: usage,
            server: Some(usage),
            ..sample(round, ns, None)
        };
        let one = CpuPair { client: 1, server: 1 };
        let records = [
            record(
                case(Some(one), Placement::SameCore),
                vec![slice(0, 0, 20.0), slice(1, 0, 26.0), slice(2, 1, 40.0)],
            ),
            record(case(None, Placement::Unpinned), vec![slice(0, 0, 7.0)]),
            record(
                Case { peers: Peers::Pairs(2), ..case(None, Placement::Unpinned) },
                vec![slice(0, 0, 9.0)],
            ),
        ];
        // Sleep of a server is no work, and a client's delay is nothing that a prediction rests on.
        for text in ["server:10us", "server:sleep:10us", "10us"] {
            let inject = Some(text.parse().unwrap());
            let of = CostCase::of(&Case { inject, ..case(Some(one), Placement::SameCore) });
            assert_eq!(
                of.map(|case| case.server_work_ns),
                (text == "server:10us").then_some(10_000),
                "{text}"
            );
        }
        let mut costs = MeasuredCosts::default();
        costs.add_run(&records);
        let of = |place| CostCase::plain(Spec::plain("pipe"), Workload::Latency, place);
        assert_eq!(costs.sizes(&of(EndPlace::OneCpu)), [64]);
        assert!(costs.sizes(&of(EndPlace::TwoCpus)).is_empty());
        let lines = costs.fitted(&of(EndPlace::OneCpu)).unwrap().lines(None);
        assert_eq!(
            (lines.elapsed.at(64.0).round(), lines.client.at(64.0).round(), lines.switches),
            (28.0, 2000.0, [1.0, 1.0])
        );
        assert_eq!(costs.fitted(&of(EndPlace::Anywhere)).unwrap().lines(None).elapsed.at(1.0), 7.0);
    }

    #[test]
    fn costs_of_slow_spells_are_left_out_and_counted() {
        let two = CpuPair { client: 0, server: 1 };
        let slices = (0..100u32).map(|at| {
            let longer = if (30..50).contains(&at) { 4.0 } else { 1.0 };
            Sample { started_ns: u64::from(at) * 500_000_000, ..sample(at, 1000.0 * longer, None) }
        });
        let mut costs = MeasuredCosts::default();
        costs.add_run(&[record(case(Some(two), Placement::SameLlc), slices.collect())]);
        let of = CostCase::plain(Spec::plain("pipe"), Workload::Latency, EndPlace::TwoCpus);
        assert_eq!(costs.fitted(&of).unwrap().lines(None).elapsed.at(64.0).round(), 1000.0);
        assert!((costs.left_out() - 0.2).abs() < 1e-9);
    }
}
