//! Counters of the kernel and of the processor, over all timed iterations. They are read after the iterations, never within.
//!
//! What the kernel accounts to every thread anyway is read before and after. No event is opened for it: a thread that has events
//! makes the kernel work whenever it leaves its CPU or comes back.

use crate::accounted::Accounted;
use crate::instrument::ProbeInstrument;
use crate::perf::{on_this_thread, refused, switched};
use model::observation::{Counter, EndpointObservation};
use model::record::Fact;
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Dynamic, Hardware, Raw, Software};
use perf_event::{Builder, Counter as Open};
use sys::Failure;

/// What the kernel accounts to a thread anyway, as an event: for whoever asks for it in a group with others.
const OF_THE_KERNEL: [(&str, Software); 5] = [
    ("task-clock", Software::TASK_CLOCK),
    ("context-switches", Software::CONTEXT_SWITCHES),
    (MIGRATIONS, Software::CPU_MIGRATIONS),
    ("minor-faults", Software::PAGE_FAULTS_MIN),
    ("major-faults", Software::PAGE_FAULTS_MAJ),
];
const MIGRATIONS: &str = "cpu-migrations";

/// What the processor counts, of user code and of the kernel apart.
const OF_THE_PROCESSOR: [(&str, Hardware); 6] = [
    ("cycles", Hardware::CPU_CYCLES),
    ("instructions", Hardware::INSTRUCTIONS),
    ("cache-references", Hardware::CACHE_REFERENCES),
    ("cache-misses", Hardware::CACHE_MISSES),
    ("branch-misses", Hardware::BRANCH_MISSES),
    ("bus-cycles", Hardware::BUS_CYCLES),
];

/// What it counts of its caches. There is no common name for the second level: that is a raw event of each model.
const OF_CACHES: [(&str, CacheId, CacheResult); 6] = [
    ("l1d-loads", CacheId::L1D, CacheResult::ACCESS),
    ("l1d-load-misses", CacheId::L1D, CacheResult::MISS),
    ("llc-loads", CacheId::LL, CacheResult::ACCESS),
    ("llc-load-misses", CacheId::LL, CacheResult::MISS),
    ("dtlb-load-misses", CacheId::DTLB, CacheResult::MISS),
    ("node-loads", CacheId::NODE, CacheResult::ACCESS),
];

/// Opens those that are always read, and the further ones that `names` name: one of the above, a raw event as `r01c2`,
/// an event of a unit as `cpu/cache-misses/`, or several in braces, which are counted at the same times:
/// `{cycles,instructions}`.
pub(crate) fn open(names: &[String]) -> Result<Counters, Failure> {
    let accounted = Accounted::of_this_thread();
    let has_migrations = accounted.has_migrations();
    let mut counters = Counters { groups: Vec::new(), absent: Vec::new(), accounted };
    for (name, event) in OF_THE_PROCESSOR {
        counters.add(&[(name.to_owned(), Kind::Hardware(event))]);
    }
    for (name, which, result) in OF_CACHES {
        counters.add(&[(name.to_owned(), Kind::cache(which, result))]);
    }
    for asked in names {
        counters.add(&group(asked)?);
    }
    if !has_migrations {
        counters.add(&[(MIGRATIONS.to_owned(), Kind::Software(Software::CPU_MIGRATIONS))]);
    }
    Ok(counters)
}

/// The events that `asked` names: one, or several in braces.
pub(crate) fn group(asked: &str) -> Result<Vec<(String, Kind)>, Failure> {
    let names = asked.trim_start_matches('{').trim_end_matches('}').split(',');
    names.map(|name| Ok((name.to_owned(), Kind::named(name)?))).collect()
}

/// Where an event is counted.
pub(crate) enum Kind {
    Software(Software),
    Hardware(Hardware),
    Cache(Cache),
    Raw(Raw),
    OfUnit(Dynamic),
}

impl Kind {
    fn cache(which: CacheId, result: CacheResult) -> Self {
        Kind::Cache(Cache { which, operation: CacheOp::READ, result })
    }

    fn named(name: &str) -> Result<Self, Failure> {
        let unknown = |answer: String| {
            Failure::new(
                "find",
                format!("the counter '{name}'"),
                answer,
                "name one that 'ipcmark explain' shows, a raw event such as r01c2, or one of a unit such as cpu/cache-misses/",
            )
        };
        if let Some((_, event)) = OF_THE_KERNEL.iter().find(|(known, _)| *known == name) {
            return Ok(Kind::Software(*event));
        }
        if let Some((_, event)) = OF_THE_PROCESSOR.iter().find(|(known, _)| *known == name) {
            return Ok(Kind::Hardware(*event));
        }
        if let Some((_, which, result)) = OF_CACHES.iter().find(|(known, _, _)| *known == name) {
            return Ok(Kind::cache(*which, *result));
        }
        if let Some((unit, event)) = name.strip_suffix('/').and_then(|name| name.split_once('/')) {
            let mut builder = Dynamic::builder(unit).map_err(|error| unknown(error.to_string()))?;
            builder.event(event).map_err(|error| unknown(error.to_string()))?;
            return builder.build().map(Kind::OfUnit).map_err(|error| unknown(error.to_string()));
        }
        let raw = name.strip_prefix('r').and_then(|digits| u64::from_str_radix(digits, 16).ok());
        raw.map(|config| Kind::Raw(Raw::new(config)))
            .ok_or_else(|| unknown("there is none of that name".to_owned()))
    }

    fn builder(&self) -> Builder<'static> {
        match self {
            Kind::Software(event) => on_this_thread(*event),
            Kind::Hardware(event) => on_this_thread(*event),
            Kind::Cache(event) => on_this_thread(event.clone()),
            Kind::Raw(event) => on_this_thread(*event),
            Kind::OfUnit(event) => on_this_thread(*event),
        }
    }

    /// The sides on which the event is counted apart, as what is put behind its name. The kernel's own events happen in
    /// the kernel.
    fn sides(&self) -> &'static [&'static str] {
        match self {
            Kind::Software(_) => &[""],
            _ => &[":user", ":kernel"],
        }
    }
}

pub(crate) struct Counters {
    /// What is counted at the same times, the leader first: the others are on when it is.
    groups: Vec<Vec<(String, Open)>>,
    /// What cannot be counted, and why.
    absent: Vec<(String, String)>,
    accounted: Accounted,
}

impl Counters {
    /// Adds events that are to be counted at the same times, as far as they can be had.
    fn add(&mut self, events: &[(String, Kind)]) {
        let mut group: Vec<(String, Open)> = Vec::new();
        for (name, kind) in events {
            for side in kind.sides() {
                let mut builder = kind.builder();
                builder.exclude_kernel(*side == ":user").exclude_user(*side == ":kernel");
                let opened = match group.first_mut() {
                    None => builder.build(),
                    Some((_, leader)) => builder.enabled(true).build_with_group(leader),
                };
                let name = format!("{name}{side}");
                match opened {
                    Ok(counter) => group.push((name, counter)),
                    // Without the name, so that the reason that several events have in common is noted once.
                    Err(error) => self.absent.push((name, refused("a counter", &error).to_string())),
                }
            }
        }
        self.groups.extend((!group.is_empty()).then_some(group));
    }
}

impl ProbeInstrument for Counters {
    fn begin(&mut self) -> Result<(), Failure> {
        let mut leaders = self.groups.iter_mut().filter_map(|group| group.first_mut());
        leaders.try_for_each(|(name, leader)| switched(leader.enable(), name))?;
        // Last, and first again at the end: so the switching itself is not counted.
        self.accounted.begin()
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.accounted.end()?;
        let mut leaders = self.groups.iter_mut().rev().filter_map(|group| group.first_mut());
        leaders.try_for_each(|(name, leader)| switched(leader.disable(), name))
    }

    fn observation(mut self: Box<Self>) -> Result<EndpointObservation, Failure> {
        let read = self.groups.iter_mut().flatten().map(|(name, open)| read(name, open));
        let absent = self.absent.iter().map(|(name, reason)| Counter {
            name: name.clone(),
            count: Fact::Unknown(reason.clone()),
            running: 0.0,
        });
        let accounted = self.accounted.counts().into_iter().map(|(name, count)| Counter {
            name: name.to_owned(),
            count: Fact::Known(count as f64),
            running: 1.0,
        });
        let counters = read.chain(absent).chain(accounted).collect();
        Ok(EndpointObservation { counters, ..EndpointObservation::default() })
    }
}

/// What `open` counted, scaled up if it shared its place in the processor with others.
fn read(name: &str, open: &mut Open) -> Counter {
    let said = |count, running| Counter { name: name.to_owned(), count, running };
    let data = match open.read_full() {
        Ok(data) => data,
        Err(error) => return said(Fact::Unknown(error.to_string()), 0.0),
    };
    let (Some(enabled), Some(running)) = (data.time_enabled(), data.time_running()) else {
        return said(Fact::Known(data.count() as f64), 1.0);
    };
    if running.is_zero() {
        let reason = "the processor had no counter free for it; ask for fewer with --counters".to_owned();
        return said(Fact::Unknown(reason), 0.0);
    }
    let share = running.as_secs_f64() / enabled.as_secs_f64();
    said(Fact::Known(data.count() as f64 / share), share)
}
