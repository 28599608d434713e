//! How fast the host was over a run, and beside the slices of one case, as pictures show it.
//!
//! What a reading says is in `host_speed`; what it does to times is in `run`.

use crate::host_speed::FullSpeed;
use model::record::{Record, Results, Sample};
use std::collections::BTreeMap;

/// Into how many spans of equal length a run is divided.
const SPANS: u64 = 240;
/// A picture can show no more slices of a case.
const MOST_SLICES: usize = 200;
/// So many tell at least how the case went.
const FEWEST_SLICES: usize = 20;
/// A page would be full of more, all cases together.
const SLICES_OF_ALL: usize = 40_000;

/// The speed of one CPU over the run.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuSpeed {
    /// Which CPU.
    pub cpu: u32,
    /// Spans of equal length in the order of time; those without a reading are left out.
    pub spans: Vec<SpeedSpan>,
}

/// What the readings of one CPU in one span of the run say, as fractions of full speed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeedSpan {
    /// When the span began, in nanoseconds since the start of the run.
    pub from_ns: u64,
    /// When it ended.
    pub until_ns: u64,
    /// A tenth of the readings are of this speed or a lower one.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// A tenth of the readings are of this speed or a higher one.
    pub high: f64,
}

/// A slice of a case with the speed of the host beside it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnalysedSlice {
    /// When it began, in nanoseconds since the start of the run.
    pub started_ns: u64,
    /// Nanoseconds per iteration.
    pub iteration_ns: f64,
    /// The speed of the slowest of what it used, as a fraction of full speed.
    pub speed: f64,
    /// Whether all that it used was at full speed.
    pub undisturbed: bool,
}

/// The speed of each CPU of which readings were taken.
pub(super) fn cpu_speeds(results: &Results, full_speed: &FullSpeed) -> Vec<CpuSpeed> {
    let samples = || results.records.iter().flat_map(|record| &record.samples);
    let run_ns = samples().map(|sample| sample.started_ns).max().unwrap_or_default() + 1;
    let span_of = |sample: &Sample| {
        u64::try_from(u128::from(sample.started_ns) * u128::from(SPANS) / u128::from(run_ns))
            .unwrap_or_default()
    };
    let mut full_ns: BTreeMap<u32, Option<f64>> = BTreeMap::new();
    let mut speeds: BTreeMap<(u32, u64), Vec<f64>> = BTreeMap::new();
    for record in &results.records {
        for sample in &record.samples {
            let Some((speed, cpus)) = sample.speed.zip(record.case.cpus) else { continue };
            let readings = [Some((cpus.client, speed.client)), speed.server.map(|of| (cpus.server, of))];
            for (cpu, reading) in readings.into_iter().flatten() {
                let full_ns = full_ns.entry(cpu).or_insert_with(|| full_speed.cpu_ns(cpu));
                let fraction = full_ns.map(|full_ns| full_ns / reading.mean_ns());
                let fraction = fraction.filter(|fraction| fraction.is_finite() && *fraction > 0.0);
                speeds.entry((cpu, span_of(sample))).or_default().extend(fraction);
            }
        }
    }
    let mut cpus: BTreeMap<u32, Vec<SpeedSpan>> = BTreeMap::new();
    for ((cpu, span), mut fractions) in speeds {
        fractions.sort_by(f64::total_cmp);
        let moment = |span: u64| (u128::from(span) * u128::from(run_ns) / u128::from(SPANS)) as u64;
        let Some(last) = fractions.len().checked_sub(1) else { continue };
        cpus.entry(cpu).or_default().push(SpeedSpan {
            from_ns: moment(span),
            until_ns: moment(span + 1),
            low: fractions[last / 10],
            median: fractions[last / 2],
            high: fractions[last - last / 10],
        });
    }
    cpus.into_iter().map(|(cpu, spans)| CpuSpeed { cpu, spans }).collect()
}

/// Slices of `record`, one of `records`, in the order of time, evenly chosen where there are many; none where no readings were
/// taken.
pub(super) fn slices(record: &Record, records: usize, full_speed: &FullSpeed) -> Vec<AnalysedSlice> {
    let most = (SLICES_OF_ALL / records.max(1)).clamp(FEWEST_SLICES, MOST_SLICES);
    let mut samples: Vec<&Sample> = record.samples.iter().collect();
    samples.sort_by_key(|sample| sample.started_ns);
    let every = samples.len().div_ceil(most).max(1);
    let slice = |sample: &Sample| {
        let beside = full_speed.beside(&record.case, sample)?;
        Some(AnalysedSlice {
            started_ns: sample.started_ns,
            iteration_ns: sample.iteration_ns(),
            speed: beside.speed,
            undisturbed: beside.undisturbed,
        })
    };
    samples.into_iter().step_by(every).filter_map(slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_speed::FullSpeed;
    use model::Case;
    use model::placement::CpuPair;
    use model::speed::{SpeedReading, SpeedReadings};
    use model::testing;

    /// Slices a millisecond apart; CPU 0 is at half speed in the second half of them, CPU 1 never.
    fn results(count: u32) -> Results {
        let reading = |ns: f64| SpeedReading { before_ns: ns, after_ns: ns };
        let sample = |round: u32| {
            let slow = if round < count / 2 { 1.0 } else { 2.0 };
            Sample {
                speed: Some(SpeedReadings {
                    client: reading(5_000.0 * slow),
                    server: Some(reading(6_000.0)),
                    pair: None,
                }),
                ..testing::sample(round, 1_000.0 * slow, None)
            }
        };
        let mut results = testing::results();
        let case =
            Case { cpus: Some(CpuPair { client: 0, server: 1 }), ..model::floor::operation("getpid", 0) };
        results.records = vec![testing::record(case, (0..count).rev().map(sample).collect())];
        results
    }

    #[test]
    fn the_speed_of_each_cpu_is_told_in_the_order_of_time() {
        let results = results(1000);
        let speeds = cpu_speeds(&results, &FullSpeed::from_results(&results));
        assert_eq!(speeds.iter().map(|speed| speed.cpu).collect::<Vec<_>>(), [0, 1]);
        let near = |speed: f64, wanted: f64| (speed / wanted - 1.0).abs() < 0.01;
        let spans = &speeds[0].spans;
        assert_eq!(spans.len(), SPANS as usize);
        assert!(spans.windows(2).all(|pair| pair[0].until_ns == pair[1].from_ns), "{spans:?}");
        assert!(spans[..110].iter().all(|span| near(span.low, 1.0) && near(span.high, 1.0)), "{spans:?}");
        assert!(spans[130..].iter().all(|span| near(span.median, 0.5)), "{spans:?}");
        assert!(speeds[1].spans.iter().all(|span| near(span.median, 1.0)));
    }

    #[test]
    fn few_slices_are_all_there_and_of_many_some_from_the_whole_run() {
        let few = results(20);
        let full_speed = FullSpeed::from_results(&few);
        let slices = slices(&few.records[0], 1, &full_speed);
        assert_eq!(slices.len(), 20);
        assert!(slices.iter().take(10).all(|slice| slice.undisturbed && slice.iteration_ns == 1_000.0));
        assert!(slices.iter().skip(10).all(|slice| !slice.undisturbed && slice.speed < 0.51), "{slices:?}");

        let many = results(1001);
        let slices = super::slices(&many.records[0], 1, &FullSpeed::from_results(&many));
        assert!(slices.len() <= MOST_SLICES && slices.len() > MOST_SLICES / 2, "{}", slices.len());
        assert_eq!(slices[0].started_ns, 0);
        assert!(slices.last().is_some_and(|slice| slice.started_ns > 990_000_000), "{:?}", slices.last());
        let beside_others = super::slices(&many.records[0], 10_000, &FullSpeed::from_results(&many));
        assert!((10..=FEWEST_SLICES).contains(&beside_others.len()), "{}", beside_others.len());
    }

    #[test]
    fn without_readings_there_is_nothing_to_show() {
        let mut bare = results(5);
        bare.records[0].samples.iter_mut().for_each(|sample| sample.speed = None);
        let full_speed = FullSpeed::from_results(&bare);
        assert!(cpu_speeds(&bare, &full_speed).is_empty());
        assert!(slices(&bare.records[0], 1, &full_speed).is_empty());
    }
}
