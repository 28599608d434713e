//! The figures of a study: lines with points, or some iterations from moment to moment.

use super::estimate::formula_number;
use super::evaluated::{
    EvaluatedFigure, EvaluatedSeries, EvaluatedTimeline, FigureAxis, FigurePoint, UndrawnFigures,
};
use super::metric_value::returned_bytes;
use super::select::{At, Selector};
use super::words::{grouped, note_once, reason_of};
use crate::interval::CONFIDENCE;
use crate::traces::timeline::chosen_iterations;
use model::estimate::Estimate;
use model::observation::Probe;
use model::sample::Sample;
use model::study::formula::Formula;
use model::study::metric::Metric;
use model::study::{FigureScale, FigureX, Literal, Measure, StudyFigure, StudySeries};
use model::units::{Size, Unit};

/// `figure` with its points.
pub(super) fn figure(selector: &Selector<'_>, figure: &StudyFigure) -> EvaluatedFigure {
    let mut missing: Vec<String> = figure.absent.iter().cloned().collect();
    let lines = figure.series.iter().filter_map(|series| line(selector, series, figure.x, &mut missing));
    let series: Vec<EvaluatedSeries> = lines.collect();
    let timeline = figure.timeline.as_ref().map(|case| timeline(selector, case));
    let timeline = timeline.and_then(|iterations| iterations.map_err(|why| missing.push(why)).ok());
    let logarithmic = figure.scale != FigureScale::Linear;
    if logarithmic && series.iter().flat_map(|series| &series.points).any(|point| point.x == 0.0) {
        missing.push("0 bytes: a logarithmic axis has no place for them".to_owned());
    }
    let x = match figure.x {
        FigureX::Size => "message size",
        FigureX::Returned => "bytes that a call returned",
    };
    EvaluatedFigure {
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
        notes: figure.notes.clone(),
    }
}

/// `figures` that have anything of this run, and the others by the reason why they have not. Figures that lack several things are
/// named with the reason of the last.
pub(super) fn undrawn(
    of_study: &[StudyFigure],
    figures: Vec<EvaluatedFigure>,
) -> (Vec<EvaluatedFigure>, Vec<UndrawnFigures>) {
    let is_drawn = |(_, figure): &(&StudyFigure, EvaluatedFigure)| {
        figure.timeline.is_some() || figure.series.iter().any(|series| !series.published)
    };
    let (drawn, others): (Vec<_>, Vec<_>) = of_study.iter().zip(figures).partition(is_drawn);
    let mut undrawn: Vec<UndrawnFigures> = Vec::new();
    for (of_study, figure) in others {
        let of_case = figure.missing.last().map_or("it has no line", |why| reason_of(why));
        let reason = of_study.absent.as_deref().unwrap_or(of_case).to_owned();
        match undrawn.iter_mut().find(|known| known.reason == reason) {
            Some(known) => known.names.push(figure.name),
            None => undrawn.push(UndrawnFigures { names: vec![figure.name], reason }),
        }
    }
    (drawn.into_iter().map(|(_, figure)| figure).collect(), undrawn)
}

/// Some iterations of the last trial of the case called `name` that kept its events.
fn timeline(selector: &Selector<'_>, name: &str) -> Result<EvaluatedTimeline, String> {
    /// How many typical iterations are drawn, beside a slow one.
    const TYPICAL: usize = 1;
    let case = &selector.only_record(name)?.case;
    let profiles = selector.profiles(case, Probe::Timeline)?;
    let kept = profiles.into_iter().rev().find_map(|(_, profile)| profile.timeline.as_ref());
    let kept = kept.ok_or_else(|| format!("{case}: the events of its iterations were not kept"))?;
    let iterations = chosen_iterations(&kept.observation, TYPICAL, |number| kept.call_name(number));
    if iterations.is_empty() {
        return Err(format!("{case}: too few iterations were observed"));
    }
    Ok(EvaluatedTimeline { case: case.key(), iterations })
}

fn line(
    selector: &Selector<'_>,
    series: &StudySeries,
    over: FigureX,
    missing: &mut Vec<String>,
) -> Option<EvaluatedSeries> {
    let published = series.of.is_none();
    let points = match &series.of {
        None => series.published.iter().map(published_point).collect(),
        Some(measure) => match points(selector, measure, over, missing) {
            Ok(points) => points,
            Err(why) => {
                note_once(missing, why);
                return None;
            }
        },
    };
    Some(EvaluatedSeries { name: series.name.clone(), published, points })
}

fn points(
    selector: &Selector<'_>,
    measure: &Measure,
    over: FigureX,
    missing: &mut Vec<String>,
) -> Result<Vec<FigurePoint>, String> {
    let formula = &measure.formula;
    let places: Vec<At> = match over {
        FigureX::Size => {
            let (sizes, not_measured) = selector.sizes(formula)?;
            let not_measured = grouped(not_measured.into_iter().map(|(_, why)| why.why).collect());
            not_measured.into_iter().for_each(|why| note_once(missing, why));
            sizes.into_iter().map(At::Size).collect()
        }
        FigureX::Returned => returned(selector, formula)?.into_iter().map(At::Returned).collect(),
    };
    let mut points = Vec::new();
    let mut without_value = Vec::new();
    for at in places {
        let (At::Size(Size(x)) | At::Returned(x)) = at else { continue };
        match formula_number(selector, formula, at, CONFIDENCE) {
            Ok(number) => points.push(FigurePoint { x: x as f64, y: number.estimate }),
            Err(missing) => without_value.push(missing.why),
        }
    }
    let mut without_value = grouped(without_value).into_iter();
    if points.is_empty() {
        // Where no size was measured, that has been said.
        let why = without_value.next().or(missing.last().cloned());
        return Err(why.unwrap_or_else(|| format!("{measure}: no size of it was measured")));
    }
    without_value.for_each(|why| note_once(missing, why));
    Ok(points)
}

/// The numbers of bytes that the calls of `formula` returned.
fn returned(selector: &Selector<'_>, formula: &Formula) -> Result<Vec<u64>, String> {
    /// More are not worth a line: the calls return anything.
    const MOST: usize = 64;
    let mut bytes = Vec::new();
    for of_case in formula.metrics() {
        if let Metric::Call(direction, _) = &of_case.metric {
            let operand = selector.operand(of_case, At::Nothing)?;
            let samples: Vec<&Sample> =
                operand.rounds.values().flat_map(|trials| trials.samples.iter().copied()).collect();
            bytes.extend(returned_bytes(*direction, &samples));
        }
    }
    bytes.sort_unstable();
    bytes.dedup();
    bytes.truncate(MOST);
    Ok(bytes)
}

fn published_point((x, y): &(Literal, Literal)) -> FigurePoint {
    FigurePoint { x: x.value, y: Estimate { median: y.value, interval: None } }
}
