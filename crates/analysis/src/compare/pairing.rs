//! Which records of the runs of two sides are of the same case.

use model::case::Case;
use model::record::{Record, Results};
use std::collections::HashMap;

/// The records of one case in the runs of one side, each with the number of its run.
#[derive(Clone)]
pub(super) struct CaseRuns<'a> {
    pub(super) records: Vec<(usize, &'a Record)>,
}

impl<'a> CaseRuns<'a> {
    /// The case as the first run that has it names it.
    pub(super) fn case(&self) -> &'a Case {
        &self.records[0].1.case
    }

    fn is_floor(&self) -> bool {
        self.records.iter().any(|(_, record)| record.floor)
    }
}

/// One case in both sides.
#[derive(Clone)]
pub(super) struct CasePair<'a> {
    pub(super) a: CaseRuns<'a>,
    pub(super) b: CaseRuns<'a>,
}

impl CasePair<'_> {
    pub(super) fn is_floor(&self) -> bool {
        self.a.is_floor() || self.b.is_floor()
    }
}

/// The pairs in A's order, and the keys that only A and only B have.
pub(super) fn pair<'a>(a: &'a [Results], b: &'a [Results]) -> (Vec<CasePair<'a>>, Vec<String>, Vec<String>) {
    let (a, b) = (of_side(a), of_side(b));
    let cases = |side: &[CaseRuns<'a>]| side.iter().map(CaseRuns::case).collect::<Vec<_>>();
    let partners = partners(&cases(&a), &cases(&b));
    let keys_of = |side: &[CaseRuns<'_>], is_alone: &dyn Fn(usize) -> bool| {
        (0..side.len()).filter(|at| is_alone(*at)).map(|at| side[at].case().key()).collect()
    };
    let only_in_a = keys_of(&a, &|at| partners[at].is_none());
    let only_in_b = keys_of(&b, &|at| !partners.contains(&Some(at)));
    let both = a.iter().zip(&partners).filter_map(|(a, at)| Some((a, &b[(*at)?])));
    (both.map(|(a, b)| CasePair { a: a.clone(), b: b.clone() }).collect(), only_in_a, only_in_b)
}

/// The cases of the runs of one side: those of the first run, and after them what later runs add.
fn of_side(runs: &[Results]) -> Vec<CaseRuns<'_>> {
    let mut side: Vec<CaseRuns<'_>> = Vec::new();
    for (run, results) in runs.iter().enumerate() {
        let known: Vec<&Case> = side.iter().map(CaseRuns::case).collect();
        let of_run: Vec<&Case> = results.records.iter().map(|record| &record.case).collect();
        for (record, at) in results.records.iter().zip(partners(&of_run, &known)) {
            match at {
                Some(at) => side[at].records.push((run, record)),
                None => side.push(CaseRuns { records: vec![(run, record)] }),
            }
        }
    }
    side
}

/// For each of `cases` the place of its partner in `others`.
///
/// A key names no CPUs unless they were asked for, so that a run can have two cases of one key, such
/// as the same copy on two CPUs. These pair by CPUs first, and what is left in order. What has no partner then pairs with a case
/// that differs by an injected delay alone.
fn partners(cases: &[&Case], others: &[&Case]) -> Vec<Option<usize>> {
    let mut partners: Vec<Option<usize>> = vec![None; cases.len()];
    for key_of in [|case: &Case| case.key(), |case: &Case| Case { inject: None, ..case.clone() }.key()] {
        let mut left: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, other) in others.iter().enumerate().rev().filter(|(at, _)| !partners.contains(&Some(*at))) {
            left.entry(key_of(other)).or_default().push(at);
        }
        for any_cpus in [false, true] {
            for (case, partner) in cases.iter().zip(&mut partners).filter(|(_, partner)| partner.is_none()) {
                let Some(candidates) = left.get_mut(&key_of(case)) else { continue };
                let found = candidates.iter().rposition(|at| any_cpus || others[*at].cpus == case.cpus);
                *partner = found.map(|at| candidates.remove(at));
            }
        }
    }
    partners
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{floor, testing};

    fn run(cases: &[(&str, u32)]) -> Results {
        let record = |(name, cpu): &(&str, u32)| testing::record(floor::operation(name, *cpu), Vec::new());
        Results { records: cases.iter().map(record).collect(), ..testing::results() }
    }

    fn clients(side: &CaseRuns<'_>) -> Vec<(usize, u32)> {
        side.records.iter().map(|(run, record)| (*run, record.case.cpus.unwrap().client)).collect()
    }

    #[test]
    fn pairs_are_made_by_key_then_by_cpus() {
        let a = [run(&[("x", 0), ("memcpy", 7), ("memcpy", 3), ("old", 0), ("y", 1)])];
        let b = [run(&[("memcpy", 3), ("new", 0), ("memcpy", 7), ("y", 9), ("x", 0)])];
        let (pairs, only_in_a, only_in_b) = pair(&a, &b);
        let cpus: Vec<(&str, u32, u32)> = pairs
            .iter()
            .map(|pair| (pair.a.case().spec.name.as_str(), clients(&pair.a)[0].1, clients(&pair.b)[0].1))
            .collect();
        assert_eq!(cpus, [("x", 0, 0), ("memcpy", 7, 7), ("memcpy", 3, 3), ("y", 1, 9)]);
        assert_eq!(only_in_a, ["old cost same-core"]);
        assert_eq!(only_in_b, ["new cost same-core"]);
    }

    #[test]
    fn a_case_with_a_delay_pairs_with_the_same_without_unless_it_has_its_own_partner() {
        let on = |name: &str, inject: Option<&str>| Case {
            inject: inject.map(|text| text.parse().unwrap()),
            ..floor::operation(name, 0)
        };
        let a = [on("x", None), on("y", None), on("y", Some("5%")), on("z", Some("5%"))];
        let b = [on("y", Some("5%")), on("x", Some("5%")), on("y", None), on("w", Some("5%"))];
        assert_eq!(partners(&a.each_ref(), &b.each_ref()), [Some(1), Some(2), Some(0), None]);
    }

    #[test]
    fn the_runs_of_one_side_are_put_together_and_what_a_later_run_adds_counts() {
        let a = [run(&[("memcpy", 3), ("memcpy", 7)]), run(&[("late", 0), ("memcpy", 7), ("memcpy", 3)])];
        let b = [run(&[("late", 0), ("memcpy", 7)])];
        let (pairs, only_in_a, only_in_b) = pair(&a, &b);
        let found: Vec<_> = pairs.iter().map(|pair| (clients(&pair.a), clients(&pair.b))).collect();
        assert_eq!(found, [(vec![(0, 7), (1, 7)], vec![(0, 7)]), (vec![(1, 0)], vec![(0, 0)])]);
        assert_eq!(only_in_a, ["memcpy cost same-core"]);
        assert!(only_in_b.is_empty());
    }
}
