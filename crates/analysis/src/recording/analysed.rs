//! A recorded scenario with the sums that every form of report shows.

use crate::alike::Alike;
use model::Scenario;
use model::scenario::Flow;

/// A recorded scenario, and its sums.
#[derive(Debug, Clone)]
pub struct AnalysedScenario {
    /// The scenario, with one flow or process for those that are alike.
    pub scenario: Scenario,
    /// The share of the CPU time of its processes that went into calls of its flows; `None` where that is not
    /// known.
    pub cpu_in_calls: Option<f64>,
    /// For each flow, in their order.
    pub flows: Vec<FlowSums>,
    /// For each process, in their order, how far it is from those that begin by themselves.
    pub depths: Vec<usize>,
}

/// The sums of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowSums {
    /// Bytes a second, in both directions.
    pub bytes_per_s: f64,
    /// The larger of the shares of the time for which its sides slept in its calls.
    pub waited: f64,
}

impl AnalysedScenario {
    /// The sums of `scenario`.
    pub fn from_scenario(scenario: &Scenario) -> Self {
        let scenario = Alike::from_scenarios(&[scenario]).scenario(scenario);
        let recorded = scenario.processes.iter().filter_map(|process| process.recorded.as_ref());
        let (cpu, in_calls) =
            recorded.fold((0.0, 0.0), |sum, process| (sum.0 + process.cpu, sum.1 + process.in_calls));
        Self {
            cpu_in_calls: (cpu > 0.0 && in_calls > 0.0).then_some((in_calls / cpu).min(1.0)),
            flows: scenario.flows.iter().map(sums).collect(),
            depths: depths(&scenario),
            scenario,
        }
    }
}

fn sums(flow: &Flow) -> FlowSums {
    let recorded = flow.recorded.as_ref();
    let reply = flow.reply.as_ref().map_or(0.0, |reply| reply.mean());
    let bytes = flow.size.mean() * f64::from(flow.messages) + reply;
    FlowSums {
        bytes_per_s: recorded.map_or(0.0, |recorded| recorded.per_s) * bytes,
        waited: recorded.map_or(0.0, |recorded| recorded.client_waited.max(recorded.server_waited)),
    }
}

/// How many flows lie between each process and the ones that receive none, at least.
fn depths(scenario: &Scenario) -> Vec<usize> {
    let count = scenario.processes.len();
    let mut depths: Vec<Option<usize>> = vec![None; count];
    let receives = |process: usize| scenario.flows.iter().any(|flow| flow.to == process);
    (0..count).filter(|process| !receives(*process)).for_each(|process| depths[process] = Some(0));
    // In a circle somebody is first: who sends the first flow.
    while let Some(flow) = scenario.flows.iter().find(|flow| depths[flow.from].is_none()) {
        let reached = reach(scenario, &mut depths);
        if !reached && depths[flow.from].is_none() {
            depths[flow.from] = Some(0);
        }
    }
    reach(scenario, &mut depths);
    depths.into_iter().map(Option::unwrap_or_default).collect()
}

/// Gives a depth to all that is sent to by what has one; says whether there was any.
fn reach(scenario: &Scenario, depths: &mut [Option<usize>]) -> bool {
    let mut reached = false;
    loop {
        let next = scenario.flows.iter().find_map(|flow| {
            let depth = depths[flow.from]?;
            depths[flow.to].is_none().then_some((flow.to, depth + 1))
        });
        let Some((process, depth)) = next else { return reached };
        depths[process] = Some(depth);
        reached = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::Script;

    #[test]
    fn who_is_asked_stands_behind_who_asks() {
        let mut script = Script::default();
        script.exchange(0, 1, 5, 6);
        script.exchange_on(2, 1, 2, 5, 6);
        let scenario = script.scenario().unwrap();
        let analysed = AnalysedScenario::from_scenario(&scenario);
        assert_eq!(analysed.depths, [0, 1, 2]);
        assert_eq!(analysed.flows.len(), 2);
        assert!(analysed.flows[0].bytes_per_s > 0.0);
    }

    #[test]
    fn a_circle_has_a_beginning() {
        let mut script = Script::default();
        for _ in 0..20 {
            script.send(0, (0, 0), 5).receive(1, (0, 1), 5, 0).send(0, (0, 0), 5).receive(1, (0, 1), 5, 0);
        }
        script.send(1, (1, 0), 5).receive(0, (1, 1), 5, 0);
        let scenario = script.scenario().unwrap();
        assert_eq!(AnalysedScenario::from_scenario(&scenario).depths, [0, 1]);
    }
}
