//! Whether a prediction held: the change that was replayed beside the one that was predicted.

use super::prediction::{Change, FlowPrediction, Prediction};
use crate::alike::Alike;
use crate::interval::mean_over_trials;
use crate::stats::median;
use model::Scenario;
use model::scenario::{Behaviour, FlowBehaviour};
use serde::Serialize;

/// How a prediction did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Held {
    /// Those of the prediction.
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
    /// What the replay may be off by: the 95% interval of its ratio over trials.
    pub replayed_interval: Option<(f64, f64)>,
    /// Whether the replayed ratio is in the predicted interval.
    pub held: bool,
    /// How far the predicted ratio is from the replayed one, as a fraction.
    pub error: f64,
}

/// Sets what `prediction` says beside trials of replays of the `scenarios` before and after, with the slices of each.
pub fn held(prediction: &Prediction, scenarios: [&Scenario; 2], trials: &[Vec<Vec<Behaviour>>; 2]) -> Held {
    let alike = Alike::of(&scenarios);
    let [before, after] = trials.each_ref().map(|trials| alike.trials(trials));
    let flow = |(at, flow): (usize, &FlowPrediction)| {
        let ratio = |predicted: Option<Change>, of: fn(FlowBehaviour) -> Option<f64>| {
            let middle = |slices: &[Behaviour]| -> Option<f64> {
                let flows = slices.iter().filter_map(|slice| slice.flows.get(at).copied());
                let logs = flows.filter_map(of).filter(|value| *value > 0.0).map(f64::ln);
                median(&logs.collect::<Vec<_>>())
            };
            let trials = before.iter().zip(&after);
            let changes = trials.filter_map(|(before, after)| Some(middle(after)? - middle(before)?));
            HeldChange::of(predicted?, &changes.collect::<Vec<_>>())
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
    /// Of the logarithms of what each trial changed by; `None` of no trial.
    fn of(predicted: Change, changes: &[f64]) -> Option<Self> {
        let change = mean_over_trials(changes)?;
        let replayed = change.mean.exp();
        let (low, high) = predicted.ratio_interval;
        Some(Self {
            predicted: predicted.ratio,
            interval: predicted.ratio_interval,
            replayed,
            replayed_interval: change.interval.map(|(low, high)| (low.exp(), high.exp())),
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
