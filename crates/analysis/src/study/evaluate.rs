//! From a study and results to its tables, figures and conclusions with numbers in them.
//!
//! A formula is worked out **within each round** in which all its cases have a trial; its value is the median over
//! those rounds, of a ratio that of its logarithms, with the 95% interval of [`stats::median_interval`]. So a host that
//! wanders does so in all parts of a ratio alike. User and system time are told apart by the kernel's tick, too
//! coarse for one trial: a formula with them is worked out of all trials together, with an interval by the
//! jackknife over rounds. Where cases share too few rounds, each is taken on its own, the interval is what theirs
//! allow at worst, and a note says so.
//!
//! What probes saw is of other trials, in rounds of their own: these are shared by all cases and probes, and with plain
//! trials by none.
//!
//! A conclusion that is tested by many numbers is refuted only by an interval that allows for how many they are: of
//! fourteen 95% intervals one lies beyond its bound in every fourth run, though the claim is true.

use super::evaluated::{self, EvaluatedStudy, FigureAxis, FigurePoint, StudyVerdict};
use super::metric_value::{self, Trials, returned_bytes};
use crate::compare::student_quantile;
use crate::stats;
use crate::traces::timeline::chosen;
use model::case::{Case, Spec, Workload};
use model::estimate::Estimate;
use model::invalid::printable;
use model::observation::Probe;
use model::observation::profile::{Profile, ProfileRecord};
use model::record::{Fact, Host, Outcome, Record, Results, Sample};
use model::study::formula::{Formula, MeasureKind, MetricOfCase};
use model::study::metric::Metric;
use model::study::{
    Candidate, FigureScale, FigureX, HostFact, Literal, Measure, OtherCell, Selection, Study, StudyCell,
    StudyConclusion, StudyFigure, StudyRow, StudySeries, StudyTable, StudyTest,
};
use model::units::{Percent, Size, Unit, format_ns, format_rate, three_digits};
use std::collections::{BTreeMap, HashMap};

/// How surely an interval that is shown holds its number.
const CONFIDENCE: f64 = 0.95;
/// The fewest values of which there is a jackknife.
const FEWEST: usize = 6;

/// What the study of `results`, if they have one, shows with their numbers.
pub fn evaluate_results(results: &Results) -> Option<EvaluatedStudy> {
    results.header.study.as_ref().map(|study| evaluate(study, results))
}

/// What `study` shows, with the numbers of `results`. A study that fails [`Study::check`] has reasons where numbers
/// should stand.
pub fn evaluate(study: &Study, results: &Results) -> EvaluatedStudy {
    let drawing = Drawing::new(study, results);
    EvaluatedStudy {
        title: study.title.clone(),
        source: study.source.clone(),
        tables: study.tables.iter().map(|table| drawing.table(table)).collect(),
        figures: study.figures.iter().map(|figure| drawing.figure(figure)).collect(),
        conclusions: study.conclusions.iter().map(|conclusion| drawing.conclusion(conclusion)).collect(),
    }
}

struct Drawing<'a> {
    study: &'a Study,
    results: &'a Results,
    records: HashMap<(&'a Spec, Workload), Vec<&'a Record>>,
    profiles: HashMap<(&'a Case, Probe), Vec<&'a ProfileRecord>>,
}

/// A round: whether it is one of looking, and which.
type Round = (bool, u32);

/// What a line's point is at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Nothing,
    Size(Size),
    Returned(u64),
}

/// A formula at a point.
type Part<'f> = (&'f Formula, At);

/// A size that was not measured, and why.
type Lost = (Size, String);

/// What a formula takes of a case, with the trials of each round.
struct Leaf<'a> {
    taken: &'a MetricOfCase,
    at: At,
    record: &'a Record,
    rounds: BTreeMap<Round, Trials<'a>>,
}

/// What a measure comes to.
#[derive(Clone, Copy)]
struct Found {
    estimate: Estimate,
    /// Whether its cases share too few rounds, so that each was taken on its own.
    apart: bool,
}

impl Leaf<'_> {
    fn value(&self, trials: &Trials<'_>) -> Option<f64> {
        let returned = if let At::Returned(bytes) = self.at { Some(bytes) } else { None };
        metric_value::value(&self.taken.metric, &self.record.case, trials, returned)
    }

    /// Whether it is the same in every trial, seen or not.
    fn is_constant(&self) -> bool {
        self.taken.metric == Metric::Size
    }

    fn in_round(&self, round: Round) -> Option<f64> {
        if self.is_constant() { self.all() } else { self.value(self.rounds.get(&round)?) }
    }

    /// Its trials of `rounds` together.
    fn together(&self, rounds: &[Round]) -> Option<f64> {
        let of_rounds: Vec<_> = rounds.iter().filter_map(|round| self.rounds.get(round)).collect();
        let all = Trials {
            plain: of_rounds.iter().flat_map(|trials| trials.plain.iter().copied()).collect(),
            looked: of_rounds.iter().flat_map(|trials| trials.looked.iter().copied()).collect(),
        };
        if of_rounds.is_empty() { None } else { self.value(&all) }
    }

    fn all(&self) -> Option<f64> {
        self.together(&self.rounds.keys().copied().collect::<Vec<_>>())
    }

    /// Why it has no value, where all of its trials have none.
    fn absent(&self) -> Option<String> {
        let looked: Vec<&Profile> =
            self.rounds.values().flat_map(|trials| trials.looked.iter().copied()).collect();
        metric_value::absence(&self.taken.metric, &looked)
    }

    fn estimate(&self, confidence: f64) -> Option<Estimate> {
        let values: Vec<f64> = self.rounds.keys().filter_map(|round| self.in_round(*round)).collect();
        stats::median_interval_at(&values, confidence)
    }
}

impl<'a> Drawing<'a> {
    fn new(study: &'a Study, results: &'a Results) -> Self {
        let mut records: HashMap<(&Spec, Workload), Vec<&Record>> = HashMap::new();
        for record in &results.records {
            records.entry((&record.case.spec, record.case.workload)).or_default().push(record);
        }
        let mut profiles: HashMap<(&Case, Probe), Vec<&ProfileRecord>> = HashMap::new();
        for record in &results.profiles {
            profiles.entry((&record.case, record.probe)).or_default().push(record);
        }
        Self { study, results, records, profiles }
    }

    // ---- from a name to trials ----

    fn selection(&self, name: &str) -> Result<&'a Selection, String> {
        let missing = || format!("the study has no case '{}'", printable(name));
        self.study.cases.get(name).ok_or_else(missing)
    }

    /// The records of `selection`, in the best placement that was measured.
    fn records(&self, selection: &Selection) -> Vec<&'a Record> {
        let all = self.records.get(&(&selection.spec, selection.workload)).map_or(&[][..], Vec::as_slice);
        let of = |placement| {
            let is = move |record: &&&Record| {
                let case = &record.case;
                (case.placement, case.pace, case.peers) == (placement, selection.pace, selection.peers)
            };
            all.iter().filter(is).copied().collect::<Vec<_>>()
        };
        let placed = selection.placements.0.iter().map(|placement| of(*placement));
        placed.into_iter().find(|records| !records.is_empty()).unwrap_or_default()
    }

    /// The size at which `taken` is, at the point `at` of a line.
    fn size(selection: &Selection, taken: &MetricOfCase, at: At) -> Option<Size> {
        let only = if let [only] = selection.sizes[..] { Some(only) } else { None };
        let of_point = if let At::Size(size) = at { Some(size) } else { None };
        taken.at.or(only).or(of_point).filter(|_| !selection.sizes.is_empty())
    }

    fn leaf<'f>(&self, taken: &'f MetricOfCase, at: At) -> Result<Leaf<'f>, String>
    where
        'a: 'f,
    {
        let selection = self.selection(&taken.case)?;
        let size = Self::size(selection, taken, at);
        let found = self.records(selection).into_iter().find(|record| record.case.size_bytes == size);
        let record = found.ok_or_else(|| self.why_not(selection, size))?;
        if let Outcome::Failed { error } = &record.outcome {
            return Err(format!("{}: it failed: {error}", record.case));
        }
        let mut rounds: BTreeMap<Round, Trials<'_>> = BTreeMap::new();
        match taken.metric.probe() {
            None => {
                for sample in &record.samples {
                    rounds.entry((false, sample.round)).or_default().plain.push(sample);
                }
            }
            Some(probe) => {
                for (round, profile) in self.looked(&record.case, probe)? {
                    rounds.entry((true, round)).or_default().looked.push(profile);
                }
            }
        }
        if rounds.is_empty() {
            return Err(format!("{}: not launched before the run ended; give it more --time", record.case));
        }
        Ok(Leaf { taken, at, record, rounds })
    }

    /// What `probe` saw of `case`, with the round.
    fn looked(&self, case: &'a Case, probe: Probe) -> Result<Vec<(u32, &'a Profile)>, String> {
        let profiles = self.profiles.get(&(case, probe)).map_or(&[][..], Vec::as_slice);
        let profile = profiles.iter().filter_map(|record| Some((record.round, record.profile.known()?)));
        let profile: Vec<_> = profile.collect();
        if !profile.is_empty() {
            return Ok(profile);
        }
        let failure = profiles.iter().find_map(|record| match &record.profile {
            Fact::Unknown(reason) => Some(format!("{probe}: {reason}")),
            Fact::Known(_) => None,
        });
        let reason = failure.unwrap_or_else(|| match self.results.header.settings.observe_ns {
            0 => "the run looked at nothing; give it time with --observe".to_owned(),
            _ => "not looked at before the run ended; give it more time with --observe".to_owned(),
        });
        Err(format!("{case}: {reason}"))
    }

    /// Why there is no record of `selection` at `size`.
    fn why_not(&self, selection: &Selection, size: Option<Size>) -> String {
        let plan = &self.results.header.plan;
        let start = format!("{} {}", selection.spec, selection.workload);
        let sized = size.map(|size| format!("{start} {size} "));
        let alternatives = format!("{start} {}", selection.placements);
        let names = |case: &str| {
            case == start
                || case == alternatives
                || selection.placements.0.iter().any(|placement| case == format!("{start} {placement}"))
                || case == format!("{start} {}", selection.pace)
                || case == format!("{start} {}", selection.peers)
                || sized.as_ref().is_some_and(|sized| case.starts_with(sized.as_str()))
        };
        let name = sized.as_deref().unwrap_or(&start).trim_end();
        if let Some(dropped) = plan.dropped.iter().find(|dropped| names(&dropped.case)) {
            return format!("{name}: {}", dropped.reason);
        }
        let is_planned = plan.cases.iter().any(|case| {
            case.spec == selection.spec && case.workload == selection.workload && case.size_bytes == size
        });
        if is_planned {
            format!("{name}: not done when the run ended; give it more --time")
        } else {
            format!("{name}: not asked for in this run")
        }
    }

    // ---- from trials to estimates ----

    /// The estimate of what `combine` makes of the values of `parts`, within rounds that all of them share.
    fn found(
        &self,
        parts: &[Part<'_>],
        is_ratio: bool,
        confidence: f64,
        combine: impl Fn(&[f64]) -> f64,
    ) -> Result<Found, String> {
        let taken =
            parts.iter().flat_map(|(formula, at)| formula.taken().into_iter().map(|taken| (taken, *at)));
        let leaves = taken.map(|(taken, at)| self.leaf(taken, at)).collect::<Result<Vec<_>, _>>()?;
        let value = |of: &dyn Fn(&Leaf<'_>) -> Option<f64>| {
            let mut next = leaves.iter();
            let values = parts.iter().map(|(formula, _)| formula.value(&mut |_| next.next().and_then(of)));
            let value = combine(&values.collect::<Option<Vec<f64>>>()?);
            value.is_finite().then_some(value)
        };
        let Some(first) = leaves.first() else {
            let value = value(&|_| None).ok_or("the formula has no value")?;
            return Ok(Found { estimate: Estimate { median: value, interval: None }, apart: false });
        };
        let varies = |leaf: &&Leaf<'_>| !leaf.is_constant();
        let decides = leaves.iter().find(varies).unwrap_or(first);
        let is_shared =
            |round: &Round| leaves.iter().filter(varies).all(|leaf| leaf.rounds.contains_key(round));
        let shared: Vec<Round> = decides.rounds.keys().copied().filter(is_shared).collect();
        if parts.iter().any(|(formula, _)| formula.is_sampled()) {
            if shared.len() < FEWEST {
                let whole = value(&|leaf| leaf.all()).ok_or_else(|| lacking(&leaves))?;
                return Ok(Found { estimate: Estimate { median: whole, interval: None }, apart: false });
            }
            let whole = value(&|leaf| leaf.together(&shared)).ok_or_else(|| lacking(&leaves))?;
            let others = |at: usize| [&shared[..at], &shared[at + 1..]].concat();
            let without = (0..shared.len()).filter_map(|at| value(&|leaf| leaf.together(&others(at))));
            let interval = jackknife(whole, &without.collect::<Vec<_>>(), confidence);
            return Ok(Found { estimate: Estimate { median: whole, interval }, apart: false });
        }
        let values: Vec<f64> =
            shared.iter().filter_map(|round| value(&|leaf| leaf.in_round(*round))).collect();
        let fewest = stats::fewest_values(confidence);
        let is_enough = leaves.iter().all(|leaf| leaf.rounds.len() >= fewest);
        if values.len() < fewest
            && is_enough
            && let [(formula, _)] = parts
        {
            let estimates = leaves.iter().map(|leaf| leaf.estimate(confidence)).collect::<Option<Vec<_>>>();
            return apart(formula, &estimates.ok_or_else(|| lacking(&leaves))?)
                .ok_or_else(|| lacking(&leaves));
        }
        let estimate = if is_ratio && values.iter().all(|value| *value > 0.0) {
            let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
            stats::median_interval_at(&logs, confidence).map(|logs| logs.map(f64::exp))
        } else {
            stats::median_interval_at(&values, confidence)
        };
        Ok(Found { estimate: estimate.ok_or_else(|| lacking(&leaves))?, apart: false })
    }

    fn value(&self, formula: &Formula, at: At, confidence: f64) -> Result<Found, String> {
        self.found(&[(formula, at)], formula.is_ratio(), confidence, |values| values[0])
    }

    /// `formula` at `at` over itself at `to`.
    fn relative(&self, formula: &Formula, at: At, to: At, confidence: f64) -> Result<Found, String> {
        self.found(&[(formula, at), (formula, to)], true, confidence, |values| values[0] / values[1])
    }

    fn measure(&self, measure: &Measure, at: At, confidence: f64) -> Result<Found, String> {
        let formula = &measure.formula;
        match measure.kind {
            MeasureKind::Value => self.value(formula, at, confidence),
            MeasureKind::Peak => self.peak(formula, confidence),
            MeasureKind::Flat(within) => self.flat(formula, within, confidence),
        }
    }

    /// The size at which `formula` is best, with those that cannot be told from it.
    fn peak(&self, formula: &Formula, confidence: f64) -> Result<Found, String> {
        let rates = formula.unit().is_ok_and(|unit| unit == Unit::BytesPerS);
        let values = self.over_sizes(formula)?;
        let better = |a: &(Size, f64), b: &(Size, f64)| {
            if rates { a.1.total_cmp(&b.1) } else { b.1.total_cmp(&a.1) }
        };
        let best = values.iter().copied().max_by(better).ok_or("there is nothing to choose from")?.0;
        let mut equals = vec![best];
        let mut is_known = true;
        for &(size, _) in values.iter().filter(|(size, _)| *size != best) {
            let ratio = self.relative(formula, At::Size(size), At::Size(best), confidence)?;
            match ratio.estimate.interval {
                Some((low, high)) if low <= 1.0 && 1.0 <= high => equals.push(size),
                Some(_) => {}
                None => is_known = false,
            }
        }
        let bounds = equals.iter().min().zip(equals.iter().max());
        let interval = bounds.filter(|_| is_known).map(|(low, high)| (low.0 as f64, high.0 as f64));
        Ok(Found { estimate: Estimate { median: best.0 as f64, interval }, apart: false })
    }

    /// The largest size up to which `formula` is within `within` of its value at the smallest.
    fn flat(&self, formula: &Formula, within: Percent, confidence: f64) -> Result<Found, String> {
        let values = self.over_sizes(formula)?;
        let smallest = values.first().ok_or("there is nothing to start from")?.0;
        let most = 1.0 + within.0;
        // The largest sizes before which all are within: surely, by the median, and possibly.
        let mut reached = [Some(smallest); 3];
        let mut ended = [false; 3];
        let mut is_known = true;
        for &(size, _) in &values[1..] {
            let ratio = self.relative(formula, At::Size(size), At::Size(smallest), confidence)?.estimate;
            is_known &= ratio.interval.is_some();
            let (low, high) = ratio.interval.unwrap_or((ratio.median, ratio.median));
            for (nth, value) in [high, ratio.median, low].into_iter().enumerate() {
                ended[nth] |= value > most;
                if !ended[nth] {
                    reached[nth] = Some(size);
                }
            }
        }
        let [surely, median, possibly] = reached.map(|size| size.map_or(0.0, |size| size.0 as f64));
        let interval = is_known.then_some((surely, possibly));
        Ok(Found { estimate: Estimate { median, interval }, apart: false })
    }

    /// The sizes over which `formula` goes and that were measured, ascending, and why others were not.
    fn sizes(&self, formula: &Formula) -> Result<(Vec<Size>, Vec<Lost>), String> {
        let mut sizes: Option<Vec<Size>> = None;
        let mut missing = Vec::new();
        for taken in formula.taken().into_iter().filter(|taken| taken.at.is_none()) {
            let selection = self.selection(&taken.case)?;
            if selection.sizes.len() < 2 {
                continue;
            }
            let records = self.records(selection);
            let mut of_case: Vec<Size> = records.iter().filter_map(|record| record.case.size_bytes).collect();
            of_case.sort_unstable();
            // A run may have been asked for other sizes than the suite's; else another block's are not meant.
            if of_case.iter().any(|size| selection.sizes.contains(size)) {
                of_case.retain(|size| selection.sizes.contains(size));
            }
            let lost = selection.sizes.iter().filter(|size| !of_case.contains(size));
            missing.extend(lost.map(|size| (*size, self.why_not(selection, Some(*size)))));
            sizes = Some(match sizes {
                None => of_case,
                Some(known) => known.into_iter().filter(|size| of_case.contains(size)).collect(),
            });
        }
        missing.dedup();
        Ok((sizes.unwrap_or_default(), missing))
    }

    /// The values of `formula` at each size that has one.
    fn over_sizes(&self, formula: &Formula) -> Result<Vec<(Size, f64)>, String> {
        let (sizes, missing) = self.sizes(formula)?;
        let values = sizes.into_iter().filter_map(|size| {
            let found = self.value(formula, At::Size(size), CONFIDENCE).ok()?;
            Some((size, found.estimate.median))
        });
        let values: Vec<_> = values.collect();
        if values.is_empty() {
            Err(missing.into_iter().next().map_or_else(|| "no size was measured".to_owned(), |(_, why)| why))
        } else {
            Ok(values)
        }
    }

    // ---- tables ----

    fn table(&self, table: &StudyTable) -> evaluated::EvaluatedTable {
        let mut notes = table.notes.clone();
        notes.extend(table.absent.clone());
        let rows = table.rows.iter().map(|row| self.row(row, &mut notes)).collect();
        evaluated::EvaluatedTable {
            name: table.name.clone(),
            title: table.title.clone(),
            columns: table.columns.clone(),
            rows,
            notes,
        }
    }

    fn row(&self, row: &StudyRow, notes: &mut Vec<String>) -> evaluated::EvaluatedRow {
        let cells = row.cells.iter().map(|cell| self.cell(cell, notes)).collect();
        evaluated::EvaluatedRow { name: row.name.clone(), published: row.published, cells }
    }

    fn cell(&self, cell: &StudyCell, notes: &mut Vec<String>) -> evaluated::EvaluatedCell {
        let or_missing = |words: Result<String, String>| {
            words.map_or_else(evaluated::EvaluatedCell::Missing, evaluated::EvaluatedCell::Words)
        };
        match cell {
            StudyCell::Empty => evaluated::EvaluatedCell::Empty,
            StudyCell::Measure(measure) => {
                match (self.measure(measure, At::Nothing, CONFIDENCE), measure.unit()) {
                    (Ok(found), Ok(unit)) => {
                        if found.apart {
                            note_once(notes, apart_note(measure));
                        }
                        evaluated::EvaluatedCell::Value(found.estimate, unit)
                    }
                    (Err(why), _) => evaluated::EvaluatedCell::Missing(why),
                    (_, Err(invalid)) => evaluated::EvaluatedCell::Missing(invalid.problem),
                }
            }
            StudyCell::Other(OtherCell::Words(text)) => evaluated::EvaluatedCell::Words(text.clone()),
            StudyCell::Other(OtherCell::Missing(why)) => evaluated::EvaluatedCell::Missing(why.clone()),
            StudyCell::Other(OtherCell::Least(candidates)) => or_missing(self.choice(candidates, false)),
            StudyCell::Other(OtherCell::Most(candidates)) => or_missing(self.choice(candidates, true)),
            StudyCell::Other(OtherCell::Setting { name, of }) => or_missing(self.setting(name, of)),
            StudyCell::Other(OtherCell::Host(fact)) => or_missing(of_host(*fact, &self.results.header.host)),
        }
    }

    /// The name of the best of `candidates`, with its number, and those that cannot be told from it.
    fn choice(&self, candidates: &[Candidate], most: bool) -> Result<String, String> {
        let found = candidates
            .iter()
            .map(|candidate| (candidate, self.measure(&candidate.of, At::Nothing, CONFIDENCE)));
        let (found, missing): (Vec<_>, Vec<_>) = found.partition(|(_, found)| found.is_ok());
        let found: Vec<(&Candidate, Estimate)> = found
            .into_iter()
            .filter_map(|(candidate, found)| Some((candidate, found.ok()?.estimate)))
            .collect();
        let by = |a: &&(&Candidate, Estimate), b: &&(&Candidate, Estimate)| {
            let order = a.1.median.total_cmp(&b.1.median);
            if most { order.reverse() } else { order }
        };
        let Some((best, estimate)) = found.iter().min_by(by) else {
            let first = missing.into_iter().find_map(|(_, found)| found.err());
            return Err(first.unwrap_or_else(|| "there is nothing to choose from".to_owned()));
        };
        let parts = |other: &'_ Candidate| [other.of.formula.clone(), best.of.formula.clone()];
        let is_close = |other: &Candidate| {
            let [a, b] = parts(other);
            let both = [(&a, At::Nothing), (&b, At::Nothing)];
            let ratio = self.found(&both, true, CONFIDENCE, |values| values[0] / values[1]);
            ratio.is_ok_and(|ratio| {
                ratio.estimate.interval.is_none_or(|(low, high)| low <= 1.0 && 1.0 <= high)
            })
        };
        let others = found.iter().filter(|(other, _)| !std::ptr::eq(*other, *best));
        let close: Vec<&str> =
            others.filter(|(other, _)| is_close(other)).map(|(other, _)| other.name.as_str()).collect();
        let unit = best.of.unit().unwrap_or(Unit::Number);
        let close = if close.is_empty() {
            String::new()
        } else {
            format!("; not told from it: {}", close.join(", "))
        };
        let missing: Vec<&str> = missing.iter().map(|(candidate, _)| candidate.name.as_str()).collect();
        let missing = if missing.is_empty() {
            String::new()
        } else {
            format!("; not measured: {}", missing.join(", "))
        };
        Ok(format!("{} ({}){close}{missing}", best.name, shown(estimate.median, unit)))
    }

    fn setting(&self, name: &str, case: &str) -> Result<String, String> {
        let selection = self.selection(case)?;
        let records = self.records(selection);
        let size = selection.sizes.first().copied();
        let found = records.into_iter().find(|record| record.case.size_bytes == size);
        let record = found.ok_or_else(|| self.why_not(selection, size))?;
        let setting = record.settings.iter().find(|setting| setting.name == name);
        setting
            .map(|s| s.got.clone())
            .ok_or_else(|| format!("{} has no setting {}", record.case, printable(name)))
    }

    // ---- figures ----

    fn figure(&self, figure: &StudyFigure) -> evaluated::EvaluatedFigure {
        let mut missing: Vec<String> = figure.absent.iter().cloned().collect();
        let mut notes = figure.notes.clone();
        let lines =
            figure.series.iter().filter_map(|series| self.line(series, figure.x, &mut missing, &mut notes));
        let series: Vec<evaluated::EvaluatedSeries> = lines.collect();
        let timeline = figure.timeline.as_ref().map(|case| self.timeline(case));
        let timeline = timeline.and_then(|iterations| iterations.map_err(|why| missing.push(why)).ok());
        let logarithmic = figure.scale != FigureScale::Linear;
        if logarithmic && series.iter().flat_map(|series| &series.points).any(|point| point.x == 0.0) {
            missing.push("0 bytes: they have no place on a logarithmic axis".to_owned());
        }
        let x = match figure.x {
            FigureX::Size => "message size",
            FigureX::Returned => "bytes that a call returned",
        };
        evaluated::EvaluatedFigure {
            name: figure.name.clone(),
            title: figure.title.clone(),
            x: FigureAxis { title: x.to_owned(), unit: Unit::Bytes, logarithmic },
            y: FigureAxis {
                title: figure.y.clone(),
                unit: figure.unit().unwrap_or(Unit::Number),
                logarithmic: figure.scale == FigureScale::LogLog,
            },
            series,
            timeline,
            missing,
            notes,
        }
    }

    /// Some iterations of the last trial of `case` of which everything was seen.
    fn timeline(&self, case: &str) -> Result<evaluated::EvaluatedTimeline, String> {
        /// How many typical iterations are drawn, beside a slow one.
        const TYPICAL: usize = 1;
        let selection = self.selection(case)?;
        let size = selection.sizes.first().copied();
        let found = self.records(selection).into_iter().find(|record| record.case.size_bytes == size);
        let case = &found.ok_or_else(|| self.why_not(selection, size))?.case;
        let profiles = self.looked(case, Probe::Timeline)?;
        let kept = profiles.into_iter().rev().find_map(|(_, profile)| profile.timeline.as_ref());
        let kept = kept.ok_or_else(|| format!("{case}: its iterations were not kept"))?;
        let iterations = chosen(&kept.seen, TYPICAL, |number| kept.call_name(number));
        if iterations.is_empty() {
            return Err(format!("{case}: too few iterations were seen"));
        }
        Ok(evaluated::EvaluatedTimeline { case: case.key(), iterations })
    }

    fn line(
        &self,
        series: &StudySeries,
        over: FigureX,
        missing: &mut Vec<String>,
        notes: &mut Vec<String>,
    ) -> Option<evaluated::EvaluatedSeries> {
        let published = series.of.is_none();
        let points = match &series.of {
            None => series.published.iter().map(published_point).collect(),
            Some(measure) => match self.points(measure, over, missing, notes) {
                Ok(points) => points,
                Err(why) => {
                    missing.push(format!("{}: {why}", series.name));
                    return None;
                }
            },
        };
        Some(evaluated::EvaluatedSeries { name: series.name.clone(), published, points })
    }

    fn points(
        &self,
        measure: &Measure,
        over: FigureX,
        missing: &mut Vec<String>,
        notes: &mut Vec<String>,
    ) -> Result<Vec<FigurePoint>, String> {
        let formula = &measure.formula;
        let subsystems: Vec<At> = match over {
            FigureX::Size => {
                let (sizes, lost) = self.sizes(formula)?;
                missing.extend(together(lost.into_iter().map(|(_, why)| why).collect()));
                sizes.into_iter().map(At::Size).collect()
            }
            FigureX::Returned => self.returned(formula)?.into_iter().map(At::Returned).collect(),
        };
        let mut points = Vec::new();
        let mut lost = Vec::new();
        for at in subsystems {
            let (At::Size(Size(x)) | At::Returned(x)) = at else { continue };
            match self.value(formula, at, CONFIDENCE) {
                Ok(found) => {
                    if found.apart {
                        note_once(notes, apart_note(measure));
                    }
                    points.push(FigurePoint { x: x as f64, y: found.estimate });
                }
                Err(why) => lost.push(why),
            }
        }
        together(lost).into_iter().for_each(|why| note_once(missing, why));
        if points.is_empty() { Err("it has no point".to_owned()) } else { Ok(points) }
    }

    /// The numbers of bytes that the calls of `formula` returned.
    fn returned(&self, formula: &Formula) -> Result<Vec<u64>, String> {
        /// More are not worth a line: the calls return anything.
        const MOST: usize = 64;
        let mut bytes = Vec::new();
        for taken in formula.taken() {
            if let Metric::Call(side, _) = &taken.metric {
                let leaf = self.leaf(taken, At::Nothing)?;
                let trials = leaf.rounds.values().flat_map(|trials| trials.plain.iter().copied());
                let samples: Vec<&Sample> = trials.collect();
                bytes.extend(returned_bytes(*side, &samples));
            }
        }
        bytes.sort_unstable();
        bytes.dedup();
        bytes.truncate(MOST);
        Ok(bytes)
    }

    // ---- conclusions ----

    fn conclusion(&self, conclusion: &StudyConclusion) -> evaluated::EvaluatedConclusion {
        let tested: Vec<Tested> = conclusion.tests.iter().map(|test| self.tested(test)).collect();
        let numbers = tested.iter().map(|tested| tested.found.len()).sum();
        let tests = conclusion.tests.iter().zip(tested);
        let (tests, verdicts): (Vec<evaluated::EvaluatedTest>, Vec<StudyVerdict>) =
            tests.map(|(test, tested)| self.judged(test, tested, numbers)).unzip();
        let verdict = match &conclusion.absent {
            Some(why) => StudyVerdict::NotMeasured(why.clone()),
            None => all_of(&verdicts),
        };
        evaluated::EvaluatedConclusion { claim: conclusion.claim.clone(), verdict, tests }
    }

    /// What `tested` comes to, and whether `test` holds, in a conclusion with so many `numbers` in all.
    fn judged(
        &self,
        test: &StudyTest,
        tested: Tested,
        numbers: usize,
    ) -> (evaluated::EvaluatedTest, StudyVerdict) {
        let name = test.name.clone().unwrap_or_else(|| test.of.to_string());
        let unit = test.of.unit().unwrap_or(Unit::Number);
        let mut words = vec![in_words(&tested.found, unit)];
        if tested.found.iter().any(|(_, found)| found.apart) {
            words.push("not of the same rounds".to_owned());
        }
        let (mut verdicts, mut refuted, mut doubts) = (Vec::new(), Vec::new(), Vec::new());
        for (at, found) in &tested.found {
            let (verdict, doubt) = self.verdict(test, *at, found.estimate, numbers);
            if verdict == StudyVerdict::DoesNotHold {
                refuted.push(*at);
            }
            verdicts.push(verdict);
            doubt.into_iter().for_each(|doubt| note_once(&mut doubts, doubt));
        }
        if refuted.is_empty() {
            words.extend(doubts);
        } else if numbers > 1 {
            words.push(refuted_at(&refuted));
        }
        verdicts.extend(tested.missing.first().cloned().map(StudyVerdict::NotMeasured));
        words.extend(together(tested.missing).into_iter().map(|why| format!("not measured: {why}")));
        words.retain(|words| !words.is_empty());
        let of_number = |(at, found): &(At, Found)| evaluated::TestedNumber {
            size_bytes: if let At::Size(size) = at { Some(*size) } else { None },
            number: found.estimate,
        };
        let value = |literal: &Option<Literal>| literal.as_ref().map(|literal| literal.value);
        let drawn = evaluated::EvaluatedTest {
            evidence: format!("{name}: {}; wanted {}", words.join("; "), wanted(test)),
            name,
            unit,
            at_least: value(&test.at_least),
            at_most: value(&test.at_most),
            published: value(&test.published),
            numbers: tested.found.iter().map(of_number).collect(),
        };
        (drawn, all_of(&verdicts))
    }

    /// What follows from `shown`, one of so many `numbers` of a conclusion, and why nothing does where that is not
    /// plain to see.
    ///
    /// A conclusion holds when all of its numbers do, so that each may stand on its own interval: calling it true
    /// wrongly takes a mistake in the very number that is amiss. One number alone refutes it, and the more there are
    /// the more often one does by chance; so what refutes is an interval that holds for all together (Bonferroni).
    fn verdict(
        &self,
        test: &StudyTest,
        at: At,
        shown: Estimate,
        numbers: usize,
    ) -> (StudyVerdict, Option<String>) {
        let (least, most) = test.bounds();
        let is_within = |(low, high): (f64, f64)| low >= least && high <= most;
        let is_beyond = |(low, high): (f64, f64)| high < least || low > most;
        match shown.interval {
            Some(interval) if is_within(interval) => return (StudyVerdict::Holds, None),
            Some(interval) if !is_beyond(interval) => return (StudyVerdict::Undecided, None),
            _ => {}
        }
        let confidence = 1.0 - (1.0 - CONFIDENCE) / numbers as f64;
        let judged = match numbers {
            1 => "it".to_owned(),
            numbers => format!("one of {numbers} numbers"),
        };
        match self.measure(&test.of, at, confidence).ok().and_then(|found| found.estimate.interval) {
            Some(interval) if is_beyond(interval) => (StudyVerdict::DoesNotHold, None),
            Some(_) => (StudyVerdict::Undecided, Some(format!("too near a bound to judge {judged}"))),
            None => {
                let is_sampled = test.of.formula.is_sampled();
                let fewest = if is_sampled { FEWEST } else { stats::fewest_values(confidence) };
                let few = format!("too few trials to judge {judged}: it takes {fewest} of each case");
                (StudyVerdict::Undecided, Some(few))
            }
        }
    }

    /// What `test` comes to: one number, or one at each size, and why others are missing.
    fn tested(&self, test: &StudyTest) -> Tested {
        let nothing = |why| Tested { found: Vec::new(), missing: vec![why] };
        let (sizes, lost) = match self.sizes(&test.of.formula) {
            Ok(found) => found,
            Err(why) => return nothing(why),
        };
        let lost = lost.into_iter().filter(|(size, _)| test.is_of(*size));
        let mut missing: Vec<String> = lost.map(|(_, why)| why).collect();
        if test.of.kind != MeasureKind::Value || (sizes.is_empty() && missing.is_empty()) {
            return match self.measure(&test.of, At::Nothing, CONFIDENCE) {
                Ok(found) => Tested { found: vec![(At::Nothing, found)], missing: Vec::new() },
                Err(why) => nothing(why),
            };
        }
        let mut found = Vec::new();
        for at in sizes.into_iter().filter(|size| test.is_of(*size)).map(At::Size) {
            match self.measure(&test.of, at, CONFIDENCE) {
                Ok(value) => found.push((at, value)),
                Err(why) => missing.push(why),
            }
        }
        if found.is_empty() && missing.is_empty() {
            missing.push("none of its sizes was asked for in this run".to_owned());
        }
        Tested { found, missing }
    }
}

/// The numbers of a test, as they are shown, and why others are missing.
struct Tested {
    found: Vec<(At, Found)>,
    missing: Vec<String>,
}

/// All hold, or one does not, or it is not known.
fn all_of(verdicts: &[StudyVerdict]) -> StudyVerdict {
    let not_measured = verdicts.iter().find(|verdict| matches!(verdict, StudyVerdict::NotMeasured(_)));
    if verdicts.contains(&StudyVerdict::DoesNotHold) {
        StudyVerdict::DoesNotHold
    } else if let Some(not_measured) = not_measured {
        not_measured.clone()
    } else if verdicts.iter().all(|verdict| *verdict == StudyVerdict::Holds) {
        StudyVerdict::Holds
    } else {
        StudyVerdict::Undecided
    }
}

/// Half the width of Student's interval from what is left when each round is left out, around `whole`.
fn jackknife(whole: f64, without: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let n = without.len();
    if n < FEWEST {
        return None;
    }
    let variance = stats::squares(without) * (n as f64 - 1.0) / n as f64;
    let half = student_quantile((1.0 - confidence) / 2.0, n as f64 - 1.0) * variance.sqrt();
    // A time below 0 says nothing; the number may then be anything from 0.
    let low = if whole >= 0.0 { (whole - half).max(0.0) } else { whole - half };
    half.is_finite().then_some((low, whole + half))
}

/// A formula of estimates that have no rounds in common: its interval holds what theirs hold.
fn apart(formula: &Formula, estimates: &[Estimate]) -> Option<Found> {
    let mut next = estimates.iter();
    let median = formula.value(&mut |_| next.next().map(|estimate| estimate.median))?;
    let mut next = estimates.iter();
    let interval = formula.range(&mut |_| next.next().and_then(|estimate| estimate.interval));
    Some(Found { estimate: Estimate { median, interval }, apart: true })
}

fn lacking(leaves: &[Leaf<'_>]) -> String {
    let empty = leaves.iter().find(|leaf| leaf.all().is_none()).or(leaves.first());
    empty.map_or_else(String::new, |leaf| {
        let reason = leaf.absent().unwrap_or_else(|| format!("it has no {}", leaf.taken.metric));
        format!("{}: {reason}", leaf.record.case)
    })
}

fn apart_note(measure: &Measure) -> String {
    format!("{measure}: the cases share too few rounds, so that the interval is what each allows at worst")
}

fn note_once(notes: &mut Vec<String>, note: String) {
    if !notes.contains(&note) {
        notes.push(note);
    }
}

/// Reasons that differ in their case alone, said once: `posix-mq latency 16K, …: its largest message is 8192 bytes`.
fn together(reasons: Vec<String>) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for text in reasons {
        let (case, reason) =
            text.split_once(": ").map_or((text.as_str(), ""), |(case, reason)| (case, reason));
        match groups.iter_mut().find(|(known, _)| known == reason && !reason.is_empty()) {
            Some((_, cases)) => cases.push(case.to_owned()),
            None => groups.push((reason.to_owned(), vec![case.to_owned()])),
        }
    }
    let line = |(reason, cases): (String, Vec<String>)| match (cases.as_slice(), reason.as_str()) {
        ([case], "") => case.clone(),
        ([case], reason) => format!("{case}: {reason}"),
        (cases, reason) => format!("{} and {} more: {reason}", cases[0], cases.len() - 1),
    };
    groups.into_iter().map(line).collect()
}

fn published_point((x, y): &(Literal, Literal)) -> FigurePoint {
    FigurePoint { x: x.value, y: Estimate { median: y.value, interval: None } }
}

/// The numbers of a test: one, or the lowest and the highest of several.
fn in_words(found: &[(At, Found)], unit: Unit) -> String {
    let by = |a: &&(At, Found), b: &&(At, Found)| a.1.estimate.median.total_cmp(&b.1.estimate.median);
    let one = |(at, found): &(At, Found)| match at {
        At::Size(size) => format!("{} at {size}", with_interval(found.estimate, unit)),
        _ => with_interval(found.estimate, unit),
    };
    match (found.iter().min_by(by), found.iter().max_by(by)) {
        (Some(low), Some(high)) if found.len() > 1 => {
            format!("from {} to {}, {} sizes", one(low), one(high), found.len())
        }
        (Some(only), _) => one(only),
        _ => String::new(),
    }
}

/// Where a test fails: at which sizes, if it goes over any.
fn refuted_at(subsystems: &[At]) -> String {
    let size = |at: &At| if let At::Size(size) = at { Some(size.to_string()) } else { None };
    let sizes: Vec<String> = subsystems.iter().filter_map(size).collect();
    if sizes.is_empty() { "refuted".to_owned() } else { format!("refuted at {}", sizes.join(", ")) }
}

fn with_interval(estimate: Estimate, unit: Unit) -> String {
    let median = shown(estimate.median, unit);
    match estimate.interval {
        Some((low, high)) => format!("{median} ({} to {})", shown(low, unit), shown(high, unit)),
        None => median,
    }
}

fn wanted(test: &StudyTest) -> String {
    let bounds = match (&test.at_least, &test.at_most) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => "anything".to_owned(),
    };
    test.published.as_ref().map_or(bounds.clone(), |published| format!("{bounds}, published {published}"))
}

fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Ns => format_ns(value),
        Unit::BytesPerS => format_rate(value),
        Unit::Bytes if value >= 0.0 && value.fract() == 0.0 && value < 1e18 => Size(value as u64).to_string(),
        Unit::Bytes => format!("{} bytes", three_digits(value)),
        Unit::Number => three_digits(value),
    }
}

fn of_host(fact: HostFact, host: &Host) -> Result<String, String> {
    let text = |fact: &Fact<String>| match fact {
        Fact::Known(text) => Ok(text.clone()),
        Fact::Unknown(why) => Err(why.clone()),
    };
    let cache = |level: &str| match &host.caches_bytes {
        Fact::Known(caches) => match caches.get(level) {
            Some(bytes) => Ok(Size(*bytes).to_string()),
            None => Err(format!("the kernel says of no {level} cache")),
        },
        Fact::Unknown(why) => Err(why.clone()),
    };
    match fact {
        HostFact::Arch => Ok(host.arch.clone()),
        HostFact::Cpu => text(&host.cpu),
        HostFact::Cpus => Ok(host.topology.cpus.len().to_string()),
        HostFact::Smt => match &host.smt {
            Fact::Known(true) => Ok("more than 1".to_owned()),
            Fact::Known(false) => Ok("1".to_owned()),
            Fact::Unknown(why) => Err(why.clone()),
        },
        HostFact::Kernel => text(&host.kernel),
        HostFact::Virtualisation => text(&host.virtualisation),
        HostFact::L1d => cache("L1d"),
        HostFact::L1i => cache("L1i"),
        HostFact::L2 => cache("L2"),
        HostFact::L3 => cache("L3"),
        HostFact::Memory => match &host.memory_bytes {
            Fact::Known(bytes) => Ok(format!("{} MiB", bytes >> 20)),
            Fact::Unknown(why) => Err(why.clone()),
        },
    }
}
