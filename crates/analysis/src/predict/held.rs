//! Whether a prediction held: the change that was replayed beside the one that was predicted.

use super::prediction::{Change, FlowPrediction, Prediction};
use super::size_line::quantiles;
use crate::stats::median;
use model::scenario::{Behaviour, FlowBehaviour};
use serde::Serialize;

/// Rates and round trips are compared on logarithms; a replay of so few slices has no interval.
const FEWEST_SLICES: usize = 3;

/// How a prediction did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Held {
    /// As many as the scenario has flows.
    pub flows: Vec<HeldFlow>,
}

/// How the prediction of a flow did; what was not predicted or not replayed is absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeldFlow {
    /// Its name.
    pub name: String,
    /// Of its rate.
    pub per_s: Option<HeldChange>,
    /// Of its round trip.
    pub round_trip_ns: Option<HeldChange>,
}

/// A change that was predicted and replayed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HeldChange {
    /// The ratio that was predicted.
    pub predicted: f64,
    /// Its 90% interval.
    pub interval: (f64, f64),
    /// The ratio that was replayed.
    pub replayed: f64,
    /// What the replay may be off by: the 90% interval of its ratio over slices.
    pub replayed_interval: Option<(f64, f64)>,
    /// Whether the replayed ratio is in the predicted interval.
    pub held: bool,
    /// How far the predicted ratio is from the replayed one, as a fraction.
    pub error: f64,
}

/// Sets what `prediction` says beside replays of the scenario before and after, slices of each.
pub fn held(prediction: &Prediction, before: &[Behaviour], after: &[Behaviour]) -> Held {
    let flow = |(at, flow): (usize, &FlowPrediction)| {
        let ratio = |predicted: Option<Change>, of: fn(FlowBehaviour) -> Option<f64>| {
            let values = |slices: &[Behaviour]| -> Vec<f64> {
                let flows = slices.iter().filter_map(|slice| slice.flows.get(at).copied());
                flows.filter_map(of).filter(|value| *value > 0.0).map(f64::ln).collect()
            };
            HeldChange::of(predicted?, &values(before), &values(after))
        };
        HeldFlow {
            name: flow.name.clone(),
            per_s: ratio(flow.per_s, |flow| Some(flow.per_s)),
            round_trip_ns: ratio(flow.round_trip_ns, |flow| flow.round_trip_ns),
        }
    };
    Held { flows: prediction.flows.iter().enumerate().map(flow).collect() }
}

impl HeldChange {
    /// Of logarithms before and after, slice by slice; `None` where one side has none.
    fn of(predicted: Change, before: &[f64], after: &[f64]) -> Option<Self> {
        let replayed = (median(after)? - median(before)?).exp();
        let (low, high) = predicted.ratio_interval;
        let ratios: Vec<f64> =
            before.iter().flat_map(|before| after.iter().map(move |after| (after - before).exp())).collect();
        let is_enough = before.len().min(after.len()) >= FEWEST_SLICES;
        let spread = quantiles(ratios, 0.05);
        // The median of n slices varies less than one of them.
        let narrower = (before.len().min(after.len()) as f64).sqrt();
        let around = |bound: f64| replayed * (bound / replayed).powf(1.0 / narrower);
        Some(Self {
            predicted: predicted.ratio,
            interval: predicted.ratio_interval,
            replayed,
            replayed_interval: is_enough.then(|| (around(spread.0), around(spread.1))),
            held: (low..=high).contains(&replayed),
            error: predicted.ratio / replayed - 1.0,
        })
    }
}

impl Held {
    /// Every change that was predicted and replayed.
    pub fn changes(&self) -> impl Iterator<Item = &HeldChange> {
        self.flows.iter().flat_map(|flow| flow.per_s.iter().chain(&flow.round_trip_ns))
    }
}
