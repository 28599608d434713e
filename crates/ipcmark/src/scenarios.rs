//! Scenario files, and the exchange of mechanisms in them. What a scenario means is in `model`.

use crate::results_file::read_text;
use mechanisms::registry::CARDS;
use model::{Invalid, Scenario, Spec};
use std::path::Path;

/// The longest scenario file.
const LONGEST_BYTES: u64 = 1 << 20;

/// The scenario that the file at `path` holds.
pub fn read(path: &Path) -> Result<Scenario, Invalid> {
    let text = read_text(path, LONGEST_BYTES)?;
    let named = |Invalid { problem, remedy }| Invalid::new(format!("{}: {problem}", path.display()), remedy);
    Scenario::parse(&text, CARDS).map_err(named)
}

/// `scenario` with the mechanisms of `exchanges`, each of them FLOW=MECHANISM.
pub fn exchanged(scenario: &Scenario, exchanges: &[String]) -> Result<Scenario, Invalid> {
    let mut changed = scenario.clone();
    let mut known: Vec<&str> = Vec::new();
    for exchange in exchanges {
        let Some((name, mechanism)) = exchange.split_once('=') else {
            return Err(Invalid::new(
                format!("'{exchange}' is not an exchange"),
                "give it as FLOW=MECHANISM or FLOW=MECHANISM:key=value,…",
            ));
        };
        let names = || scenario.flows.iter().map(|flow| flow.name.as_str());
        let Some(flow) = changed.flows.iter_mut().find(|flow| flow.name == name) else {
            return Err(Invalid::unknown("flow", name, names()));
        };
        if known.contains(&name) {
            return Err(Invalid::new(format!("'{name}' is exchanged twice"), "give each flow one mechanism"));
        }
        known.push(name);
        flow.mechanism = Spec::parse(mechanism, CARDS)?;
    }
    // The file's rules hold for what it would say now: whether the mechanism carries the flow.
    changed.validate(CARDS)?;
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::testing::scenarios::random_scenario;

    #[test]
    fn an_exchange_changes_its_flow_alone_and_must_be_possible() {
        let scenario = random_scenario(&[Spec::plain("pipe")], &mut |below| below - 1);
        let of = |exchanges: &[&str]| {
            exchanged(&scenario, &exchanges.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        let changed = of(&["f1=tcp:sndbuf=64K"]).unwrap();
        assert_eq!(changed.flows[1].mechanism.to_string(), "tcp:sndbuf=64K");
        assert_eq!(changed.flows[0], scenario.flows[0]);
        for (exchanges, says) in [
            (&["tcp"][..], "not an exchange"),
            (&["f0=tcp", "f0=pipe"], "exchanged twice"),
            (&["f99=tcp"], "unknown flow"),
            (&["f0=tpc"], "unknown mechanism"),
            (&["f0=read"], "does not carry"),
            (&["f0=tcp:sndbuf=x"], "not a size"),
        ] {
            let invalid = of(exchanges).unwrap_err();
            assert!(invalid.problem.contains(says), "{exchanges:?}: {invalid}");
        }
    }
}
