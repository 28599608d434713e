//! What to try: rules that are data (`rules.toml`), each fired by facts that it shows.

use super::facts::{Fact, Facts};
use model::Size;
use model::units::format_ns;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The most that is advised at once.
const MOST: usize = 3;

/// One piece of advice, with the evidence in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The rule's name.
    pub rule: String,
    /// What was found.
    pub says: String,
    /// What to try.
    pub r#try: String,
    /// The facts that fired it.
    pub evidence: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct Rules {
    rule: Vec<Rule>,
}

/// One rule; see the head of `rules.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    name: String,
    when: BTreeMap<String, Bounds>,
    /// It does not fire if this is known.
    unless: Option<String>,
    by: String,
    says: String,
    r#try: String,
}

/// Between which a fact must lie, with its whole interval.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    above: Option<f64>,
    below: Option<f64>,
}

#[expect(clippy::expect_used, reason = "a test parses it")]
static RULES: LazyLock<Rules> =
    LazyLock::new(|| toml::from_str(include_str!("rules.toml")).expect("rules.toml"));

/// The advice that `facts` give rise to, the most worthwhile first.
pub(crate) fn advise(facts: &Facts) -> Vec<Advice> {
    let mut fired: Vec<(f64, Advice)> =
        RULES.rule.iter().filter_map(|rule| Some((rule.worth(facts), rule.fire(facts)?))).collect();
    fired.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    fired.into_iter().map(|(_, advice)| advice).take(MOST).collect()
}

impl Rule {
    /// As a share of the iteration.
    fn worth(&self, facts: &Facts) -> f64 {
        let worth = facts.get(self.by.as_str()).map_or(0.0, |fact| fact.value);
        match facts.get("iteration_ns") {
            Some(Fact { value: iteration_ns, .. }) if self.by.ends_with("_ns") => worth / iteration_ns,
            _ => worth,
        }
    }

    fn fire(&self, facts: &Facts) -> Option<Advice> {
        let lies_within = |(name, bounds): (&String, &Bounds)| {
            facts.get(name.as_str()).is_some_and(|fact| {
                bounds.above.is_none_or(|above| fact.low > above)
                    && bounds.below.is_none_or(|below| fact.high < below)
            })
        };
        let excluded = self.unless.as_ref().is_some_and(|name| facts.contains_key(name.as_str()));
        if excluded || !self.when.iter().all(lies_within) {
            return None;
        }
        let mut evidence = BTreeMap::new();
        let says = filled(&self.says, |name| {
            let fact = facts.get(name)?.value;
            evidence.insert(name.to_owned(), fact);
            Some(shown(name, fact))
        })?;
        Some(Advice { rule: self.name.clone(), says, r#try: self.r#try.clone(), evidence })
    }
}

/// `template` with the names in braces replaced; `None` if one of them has no value.
fn filled(template: &str, mut value: impl FnMut(&str) -> Option<String>) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        text += before;
        text += &value(name)?;
        rest = after;
    }
    Some(text + rest)
}

/// A fact in the unit that its name ends in.
fn shown(name: &str, fact: f64) -> String {
    match name.rsplit('_').next() {
        Some("ns") => format_ns(fact),
        Some("bytes") => Size(fact.round() as u64).to_string(),
        Some("share") => format!("{:.0}%", fact * 100.0),
        _ if fact >= 10.0 => format!("{fact:.0}"),
        _ => format!("{fact:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(facts: &[(&'static str, f64)]) -> Facts {
        facts.iter().map(|(name, value)| (*name, Fact::exact(*value))).collect()
    }

    fn fired(facts: &[(&'static str, f64)]) -> Vec<String> {
        advise(&exact(facts)).into_iter().map(|advice| advice.rule).collect()
    }

    /// For each rule, facts that fire it and no other.
    fn evidence() -> Vec<(&'static str, Vec<(&'static str, f64)>)> {
        vec![
            (
                "sleeps",
                vec![
                    ("sleeping_share", 0.98),
                    ("spinning_saves_ns", 2900.0),
                    ("spinning_cpu_ns", 1000.0),
                    ("iteration_ns", 4000.0),
                    ("cpu_ns", 3000.0),
                ],
            ),
            (
                "short-receives",
                vec![
                    ("filled_share", 0.125),
                    ("receives", 16.0),
                    ("matching_saves_ns", 900.0),
                    ("asked_bytes", 65536.0),
                    ("came_bytes", 8192.0),
                    ("iteration_ns", 9000.0),
                ],
            ),
            (
                "short-receives-without-remedy",
                vec![
                    ("filled_share", 0.125),
                    ("receives", 16.0),
                    ("asked_bytes", 65536.0),
                    ("came_bytes", 8192.0),
                ],
            ),
            (
                "held-back",
                vec![
                    ("at_once_saves_ns", 87e6),
                    ("iteration_ns", 88e6),
                    ("delayed_acknowledgement_ns", 40e6),
                ],
            ),
            ("network", vec![("network_share", 0.4), ("local_saves_ns", 3000.0), ("iteration_ns", 9000.0)]),
            ("copies", vec![("copies_share", 0.5), ("size_bytes", 65536.0)]),
            ("system-calls", vec![("calls_share", 0.3), ("calls", 4.0)]),
            ("faults", vec![("faults", 2.0), ("faults_share", 0.1)]),
            ("failed-calls", vec![("failed_share", 0.5)]),
            ("migrations", vec![("migrations", 0.5)]),
            (
                "touching",
                vec![
                    ("touching_ns", 100.0),
                    ("size_bytes", 4096.0),
                    ("user_share", 0.6),
                    ("iteration_ns", 300.0),
                ],
            ),
        ]
    }

    #[test]
    fn every_rule_fires_on_its_evidence_and_on_nothing_less() {
        let evidence = evidence();
        assert_eq!(evidence.len(), RULES.rule.len(), "a rule has no test");
        for (name, facts) in evidence {
            assert_eq!(fired(&facts), [name]);
            for left_out in 0..facts.len() {
                let fewer: Vec<_> = facts
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| *at != left_out)
                    .map(|(_, fact)| *fact)
                    .collect();
                let others = fired(&fewer);
                assert!(
                    !others.iter().any(|other| other == name),
                    "{name} fires without {:?}",
                    facts[left_out]
                );
            }
        }
    }

    #[test]
    fn an_interval_that_reaches_over_the_bound_is_no_evidence() {
        let (_, facts) = evidence().remove(5);
        let mut facts = exact(&facts);
        assert_eq!(advise(&facts).len(), 1);
        let fact = facts.get_mut("copies_share").unwrap();
        fact.low = 0.29;
        assert!(advise(&facts).is_empty());
    }

    #[test]
    fn sentences_show_their_evidence_in_its_unit() {
        let (_, facts) = evidence().remove(1);
        let advice = advise(&exact(&facts));
        assert_eq!(
            advice[0].says,
            "a receive asks for 64K and gets 8K, 16 times an iteration; buffers as large as the message save 900 ns of 9.00 µs"
        );
        assert_eq!(advice[0].evidence["came_bytes"], 8192.0);
    }

    #[test]
    fn the_most_worthwhile_comes_first_and_no_more_than_three() {
        let all = evidence().into_iter().flat_map(|(_, facts)| facts);
        let facts: Vec<_> = all
            .chain([("spinning_saves_ns", 290.0), ("at_once_saves_ns", 290.0), ("iteration_ns", 300.0)])
            .collect();
        let fired = fired(&facts);
        assert_eq!((fired.len(), fired[0].as_str()), (MOST, "network"), "3000 ns of 300 are worth most");
        assert_eq!(fired[1], "short-receives");
    }
}
