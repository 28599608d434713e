//! From a name in a formula to trials: which record it means, at which size, and what was measured of it in each round.
//!
//! What cannot be found has a reason, which stands where the number would.

use super::metric_value::{self, Trials};
use super::missing::Missing;
use crate::interval::MeanError;
use crate::run::RunModel;
use crate::stats;
use crate::summary::rate;
use model::case::Case;
use model::fact::Fact;
use model::invalid::printable;
use model::observation::Probe;
use model::observation::profile::{Profile, ProfileRecord};
use model::record::{Outcome, Record, Results, Setting};
use model::spec::Spec;
use model::study::formula::{Formula, MetricOfCase};
use model::study::metric::Metric;
use model::study::{Selection, Study};
use model::units::Size;
use model::workload::Workload;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A round: whether its trials had probes, and its number. Trials with probes have rounds of their own.
pub(super) type Round = (bool, u32);

/// A size that was not measured, and why.
pub(super) type MissingSize = (Size, Missing);

/// Where a formula is evaluated: the point of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// The formula says itself at which size.
    Nothing,
    /// At this message size.
    Size(Size),
    /// Among the calls that returned so many bytes.
    Returned(u64),
}

/// A study and the results that it is evaluated with.
pub(super) struct Selector<'a> {
    pub(super) study: &'a Study,
    pub(super) results: &'a Results,
    /// Of all times and rates.
    pub(super) model: &'a RunModel,
    records: HashMap<(&'a Spec, Workload), Vec<&'a Record>>,
    profiles: HashMap<(&'a Case, Probe), Vec<&'a ProfileRecord>>,
}

/// A metric of a case, with the trials of each round.
pub(super) struct Operand<'a> {
    pub(super) of_case: &'a MetricOfCase,
    at: At,
    pub(super) record: &'a Record,
    pub(super) rounds: BTreeMap<Round, Trials<'a>>,
}

impl Operand<'_> {
    fn value(&self, trials: &Trials<'_>) -> Option<f64> {
        let returned = if let At::Returned(bytes) = self.at { Some(bytes) } else { None };
        metric_value::value(&self.of_case.metric, &self.record.case, trials, returned)
    }

    /// Whether it is the same in every trial, with probes or without.
    pub(super) fn is_constant(&self) -> bool {
        self.of_case.metric == Metric::Size
    }

    /// Its value in `round`.
    pub(super) fn in_round(&self, round: Round) -> Option<f64> {
        if self.is_constant() { self.in_all() } else { self.value(self.rounds.get(&round)?) }
    }

    /// Its value over all trials of `rounds` together.
    pub(super) fn in_rounds(&self, rounds: &[Round]) -> Option<f64> {
        let of_rounds: Vec<_> = rounds.iter().filter_map(|round| self.rounds.get(round)).collect();
        let all = Trials {
            samples: of_rounds.iter().flat_map(|trials| trials.samples.iter().copied()).collect(),
            profiles: of_rounds.iter().flat_map(|trials| trials.profiles.iter().copied()).collect(),
        };
        if of_rounds.is_empty() { None } else { self.value(&all) }
    }

    /// Its value over all trials together.
    pub(super) fn in_all(&self) -> Option<f64> {
        self.in_rounds(&self.rounds.keys().copied().collect::<Vec<_>>())
    }

    /// Why it has no value, where the trials say so.
    pub(super) fn absence(&self) -> Option<String> {
        let profiles: Vec<&Profile> =
            self.rounds.values().flat_map(|trials| trials.profiles.iter().copied()).collect();
        metric_value::absence(&self.of_case.metric, &profiles)
    }

    /// The trial that its slices of `round` are of. A trial with a probe has one round.
    pub(super) fn trial(&self, round: Round) -> Option<u32> {
        let trials = self.rounds.get(&round)?;
        trials.samples.first().map(|sample| sample.trial).or(Some(round.1))
    }

    /// How many trials its slices of `rounds` are of.
    pub(super) fn trials(&self, rounds: impl Iterator<Item = Round>) -> usize {
        rounds.filter_map(|round| self.trial(round)).collect::<BTreeSet<_>>().len()
    }

    /// Whether the model of the run says what it is.
    pub(super) fn is_modelled(&self) -> bool {
        matches!(self.of_case.metric, Metric::Time | Metric::Rate | Metric::Size)
    }

    /// What `model` says of it, and with which power of its time it goes.
    pub(super) fn modelled(&self, model: &RunModel) -> Option<(f64, f64)> {
        let Record { case, samples, .. } = self.record;
        match self.of_case.metric {
            Metric::Time => Some((model.time_ns(case)?.median, 1.0)),
            Metric::Rate => Some((rate(case, model.time_ns(case)?, samples)?.median, -1.0)),
            _ => Some((self.in_all()?, 0.0)),
        }
    }

    /// Its mean over trials by itself; `None` of fewer than two.
    pub(super) fn by_itself(&self) -> Option<MeanError> {
        let mut trials: BTreeMap<Option<u32>, Vec<f64>> = BTreeMap::new();
        for round in self.rounds.keys() {
            trials.entry(self.trial(*round)).or_default().extend(self.in_round(*round));
        }
        let medians: Vec<f64> = trials.values().filter_map(|values| stats::median(values)).collect();
        MeanError::of_trials(&medians)
    }
}

impl<'a> Selector<'a> {
    pub(super) fn new(study: &'a Study, results: &'a Results, model: &'a RunModel) -> Self {
        let mut records: HashMap<(&Spec, Workload), Vec<&Record>> = HashMap::new();
        for record in &results.records {
            records.entry((&record.case.spec, record.case.workload)).or_default().push(record);
        }
        let mut profiles: HashMap<(&Case, Probe), Vec<&ProfileRecord>> = HashMap::new();
        for record in &results.profiles {
            profiles.entry((&record.case, record.probe)).or_default().push(record);
        }
        Self { study, results, model, records, profiles }
    }

    /// The cases that the study calls `name`.
    pub(super) fn selection(&self, name: &str) -> Result<&'a Selection, Missing> {
        let missing = || Missing::host(format!("the study has no case '{}'", printable(name)));
        self.study.cases.get(name).ok_or_else(missing)
    }

    /// The records of `selection`, in the first of its placements that was measured.
    pub(super) fn records(&self, selection: &Selection) -> Vec<&'a Record> {
        let all = self.records.get(&(&selection.spec, selection.workload)).map_or(&[][..], Vec::as_slice);
        let placed_at = |placement| {
            let is = move |record: &&&Record| {
                let case = &record.case;
                (case.placement, case.pace, case.peers) == (placement, selection.pace, selection.peers)
            };
            all.iter().filter(is).copied().collect::<Vec<_>>()
        };
        let placed = selection.placements.0.iter().map(|placement| placed_at(*placement));
        placed.into_iter().find(|records| !records.is_empty()).unwrap_or_default()
    }

    /// The record of the case called `name`, which has at most one size.
    pub(super) fn only_record(&self, name: &str) -> Result<&'a Record, Missing> {
        let selection = self.selection(name)?;
        self.record(selection, selection.sizes.first().copied())
    }

    fn record(&self, selection: &Selection, size: Option<Size>) -> Result<&'a Record, Missing> {
        let found = self.records(selection).into_iter().find(|record| record.case.size_bytes == size);
        found.ok_or_else(|| self.why_not_measured(selection, size))
    }

    /// The metric `of_case` at the point `at` of a line, with its trials.
    pub(super) fn operand<'f>(&self, of_case: &'f MetricOfCase, at: At) -> Result<Operand<'f>, Missing>
    where
        'a: 'f,
    {
        let selection = self.selection(&of_case.case)?;
        let record = self.record(selection, size_of(selection, of_case, at))?;
        if let Outcome::Failed { error } = &record.outcome {
            return Err(Missing::host(format!("{}: it failed: {error}", record.case)));
        }
        // What was measured with smaller buffers than the study had says nothing of its claims.
        if let Some(setting) = record.settings.iter().find(|setting| is_small_buffer(setting)) {
            return Err(Missing::host(format!(
                "{}: the kernel gave less than was asked for as {}; raise the limit that 'ipcmark list {}' names, or run as root",
                record.case,
                printable(&setting.name),
                record.case.spec.name
            )));
        }
        let mut rounds: BTreeMap<Round, Trials<'_>> = BTreeMap::new();
        match of_case.metric.probe() {
            None => {
                for sample in &record.samples {
                    rounds.entry((false, sample.round)).or_default().samples.push(sample);
                }
            }
            Some(probe) => {
                for (round, profile) in self.profiles(&record.case, probe)? {
                    rounds.entry((true, round)).or_default().profiles.push(profile);
                }
            }
        }
        if rounds.is_empty() {
            let why = format!("{}: no trial of it before the run ended; give it more --time", record.case);
            return Err(Missing::time(why));
        }
        Ok(Operand { of_case, at, record, rounds })
    }

    /// What `probe` observed of `case`, with the round.
    pub(super) fn profiles(&self, case: &'a Case, probe: Probe) -> Result<Vec<(u32, &'a Profile)>, Missing> {
        let records = self.profiles.get(&(case, probe)).map_or(&[][..], Vec::as_slice);
        let known: Vec<(u32, &Profile)> =
            records.iter().filter_map(|record| Some((record.round, record.profile.known()?))).collect();
        if !known.is_empty() {
            return Ok(known);
        }
        let failure = records.iter().find_map(|record| match &record.profile {
            Fact::Unknown(reason) => Some(Missing::host(format!("{case}: {probe}: {reason}"))),
            Fact::Known(_) => None,
        });
        Err(failure.unwrap_or_else(|| match self.results.header.settings.observe_ns {
            0 => Missing::not_asked(format!(
                "{case}: the run used no probes; give it time for them with --observe"
            )),
            _ => Missing::time(format!(
                "{case}: the run ended before a trial with {probe}; give it more time with --observe"
            )),
        }))
    }

    /// Why there is no record of `selection` at `size`.
    fn why_not_measured(&self, selection: &Selection, size: Option<Size>) -> Missing {
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
            return Missing::host(format!("{name}: {}", dropped.reason));
        }
        let is_planned = plan.cases.iter().any(|case| {
            case.spec == selection.spec && case.workload == selection.workload && case.size_bytes == size
        });
        if is_planned {
            Missing::time(format!("{name}: not done when the run ended; give it more --time"))
        } else {
            Missing::not_asked(format!("{name}: not asked for in this run"))
        }
    }

    /// The sizes over which `formula` goes and that were measured, ascending, and why others were not.
    pub(super) fn sizes(&self, formula: &Formula) -> Result<(Vec<Size>, Vec<MissingSize>), Missing> {
        let mut sizes: Option<Vec<Size>> = None;
        let mut missing = Vec::new();
        for of_case in formula.metrics().into_iter().filter(|of_case| of_case.at.is_none()) {
            let selection = self.selection(&of_case.case)?;
            if selection.sizes.len() < 2 {
                continue;
            }
            let records = self.records(selection);
            let mut measured: Vec<Size> =
                records.iter().filter_map(|record| record.case.size_bytes).collect();
            measured.sort_unstable();
            // A run may have been asked for other sizes than the suite's; else another block's are not meant.
            if measured.iter().any(|size| selection.sizes.contains(size)) {
                measured.retain(|size| selection.sizes.contains(size));
            }
            let not_measured = selection.sizes.iter().filter(|size| !measured.contains(size));
            missing.extend(not_measured.map(|size| (*size, self.why_not_measured(selection, Some(*size)))));
            sizes = Some(match sizes {
                None => measured,
                Some(known) => known.into_iter().filter(|size| measured.contains(size)).collect(),
            });
        }
        missing.dedup();
        Ok((sizes.unwrap_or_default(), missing))
    }
}

/// Whether `setting` is of a buffer that is smaller than was asked for.
fn is_small_buffer(setting: &Setting) -> bool {
    /// The settings that are buffers, and how many times what is asked for the kernel gives (socket(7), fcntl(2)).
    const BUFFERS: [(&str, u64); 3] = [("SO_SNDBUF", 2), ("SO_RCVBUF", 2), ("pipe capacity", 1)];

    let bytes = |text: &str| text.parse::<Size>().map(|size| size.0).ok();
    let times = BUFFERS.iter().find(|(name, _)| *name == setting.name).map(|(_, times)| *times);
    let asked = setting.asked.as_deref().and_then(bytes).zip(times).map(|(asked, times)| asked * times);
    setting.clamped && asked.zip(bytes(&setting.got)).is_some_and(|(asked, got)| got < asked)
}

/// The size of `of_case` at the point `at` of a line.
fn size_of(selection: &Selection, of_case: &MetricOfCase, at: At) -> Option<Size> {
    let only = if let [only] = selection.sizes[..] { Some(only) } else { None };
    let of_point = if let At::Size(size) = at { Some(size) } else { None };
    of_case.at.or(only).or(of_point).filter(|_| !selection.sizes.is_empty())
}
