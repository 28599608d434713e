//! Results files: what is read can be computed with, compared, and written to be read as the same.

#![no_main]

use analysis::compare::{ComparisonOptions, ComparisonVerdict, PairedRatios, compare, compare_paired};
use analysis::run::RunModel;
use analysis::study::evaluate;
use analysis::summary::recompute;
use analysis::summary::{summarise, warnings};
use libfuzzer_sys::fuzz_target;
use model::record::{Line, Results};
use model::results::{parse, to_line};
use model::testing::lines;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut results) = parse(bytes, "fuzz") else { return };
    results.notes.clear();
    assert_eq!(parse(text_of(&results).as_bytes(), "again"), Ok(results.clone()));
    // As a run writes them.
    let streamed: String = lines(&results).iter().map(to_line).collect();
    assert_eq!(parse(streamed.as_bytes(), "streamed"), Ok(results.clone()));

    if let Some(study) = &results.header.study {
        let drawn = evaluate(study, &results, &RunModel::of_results(&results));
        assert_eq!(drawn.conclusions.len(), study.conclusions.len());
    }

    let comparison =
        compare(std::slice::from_ref(&results), std::slice::from_ref(&results), ComparisonOptions::default());
    assert_eq!(comparison.cases.len() + comparison.floors.len(), results.records.len());
    assert!(comparison.only_in_a.is_empty() && comparison.only_in_b.is_empty());
    for case in comparison.cases.iter().chain(&comparison.floors) {
        assert!(
            matches!(case.verdict, ComparisonVerdict::NoDifference | ComparisonVerdict::Undecided),
            "{case:?}"
        );
        assert!(case.ratio.is_none_or(|ratio| ratio.ratio == 1.0), "{case:?}");
    }
    let mut slower = results.clone();
    for sample in slower.records.iter_mut().flat_map(|record| &mut record.samples) {
        sample.elapsed_ns *= 2.0;
    }
    let twice =
        compare(std::slice::from_ref(&results), std::slice::from_ref(&slower), ComparisonOptions::default());
    for case in twice.cases.iter().chain(&twice.floors) {
        assert!(case.ratio.is_none_or(|ratio| (ratio.ratio - 2.0).abs() < 1e-9), "{case:?}");
        assert!(case.verdict != ComparisonVerdict::Faster, "{case:?}");
    }
    // JSON has no number for what is not finite: it would come out as null.
    let json = serde_json::to_string(&comparison).expect("a comparison has text keys");
    assert!(!json.contains("[null"), "{json}");

    let pairs = results.records.iter().zip(results.records.iter().skip(1));
    let pairs =
        pairs.map(|(a, b)| PairedRatios::new(a.case.key(), [&a.case, &b.case], [&a.samples, &b.samples]));
    let paired = compare_paired(&pairs.collect::<Vec<_>>(), 1e9, ComparisonOptions::default());
    let finite = |ratio: model::estimate::Estimate| ratio.median.is_finite() && ratio.median > 0.0;
    assert!(paired.iter().all(|pair| pair.ratio.is_none_or(finite)));

    let model = RunModel::of_results(&results);
    for record in &results.records {
        let Some(summary) = summarise(&record.case, &record.samples, &model) else { continue };
        assert_eq!(summary.slices as usize, record.samples.len());
        assert!(summary.iteration_ns.median > 0.0 && summary.iteration_ns.median.is_finite());
        assert!(
            summary
                .floor_multiple
                .is_none_or(|multiple| multiple.median > 0.0 && multiple.median.is_finite())
        );
        assert!(summary.cpu_ns().is_finite() && summary.switches().is_finite());
        let _ = warnings(&record.case, &summary, &record.settings, 0.02);
    }
    recompute(&mut results);
    assert_eq!(parse(text_of(&results).as_bytes(), "recomputed"), Ok(results));
});

fn text_of(results: &Results) -> String {
    let header = to_line(&Line::Header(Box::new(results.header.clone())));
    let records = results.records.iter().map(|record| to_line(&Line::Record(Box::new(record.clone()))));
    let end = results.end.iter().map(|end| to_line(&Line::End(end.clone())));
    let profiles = results.profiles.iter().map(|profile| to_line(&Line::Profile(Box::new(profile.clone()))));
    std::iter::once(header).chain(records).chain(profiles).chain(end).collect()
}
