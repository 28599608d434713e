//! Which records of two runs are of the same case.

use super::statistics::FEWEST_TRIALS;
use model::Case;
use model::record::Record;
use std::collections::HashMap;

/// One case in both runs.
#[derive(Clone, Copy)]
pub(super) struct RecordPair<'a> {
    pub(super) a: &'a Record,
    pub(super) b: &'a Record,
}

impl RecordPair<'_> {
    /// Whether both runs have enough trials of it.
    pub(super) fn is_comparable(&self) -> bool {
        self.a.samples.len() >= FEWEST_TRIALS && self.b.samples.len() >= FEWEST_TRIALS
    }
}

/// The pairs in A's order, and the keys that only A and only B have.
///
/// A key names no CPUs unless they were asked for, so that a run can have two cases of one key, such
/// as the same copy on two CPUs. These pair by CPUs first, and what is left in order. What has no partner then pairs
/// with a case that differs by an injected delay alone.
pub(super) fn pair<'a>(a: &'a [Record], b: &'a [Record]) -> (Vec<RecordPair<'a>>, Vec<String>, Vec<String>) {
    let mut left: Vec<&Record> = b.iter().collect();
    let mut partners: Vec<Option<&Record>> = vec![None; a.len()];
    for key_of in [|case: &Case| case.key(), |case: &Case| Case { inject: None, ..case.clone() }.key()] {
        let mut by_key: HashMap<String, Vec<&Record>> = HashMap::new();
        for record in left.iter().rev() {
            by_key.entry(key_of(&record.case)).or_default().push(record);
        }
        for any_cpus in [false, true] {
            for (record, partner) in a.iter().zip(&mut partners).filter(|(_, partner)| partner.is_none()) {
                let Some(candidates) = by_key.get_mut(&key_of(&record.case)) else { continue };
                let found = candidates.iter().rposition(|b| any_cpus || b.case.cpus == record.case.cpus);
                *partner = found.map(|at| candidates.remove(at));
            }
        }
        left.retain(|record| {
            let unpaired = by_key.get(&key_of(&record.case));
            unpaired.is_some_and(|unpaired| unpaired.iter().any(|other| std::ptr::eq(*other, *record)))
        });
    }
    let pairs = a.iter().zip(&partners).filter_map(|(a, b)| b.map(|b| RecordPair { a, b })).collect();
    let only_in_a = a.iter().zip(&partners).filter(|(_, b)| b.is_none()).map(|(a, _)| a.case.key()).collect();
    let only_in_b = left.iter().map(|record| record.case.key()).collect();
    (pairs, only_in_a, only_in_b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{floor, testing};

    #[test]
    fn pairs_are_made_by_key_then_by_cpus() {
        let on = |name: &str, cpu: u32| testing::record(floor::operation(name, cpu), Vec::new());
        let a = [on("x", 0), on("memcpy", 7), on("memcpy", 3), on("old", 0), on("y", 1)];
        let b = [on("memcpy", 3), on("new", 0), on("memcpy", 7), on("y", 9), on("x", 0)];
        let (pairs, only_in_a, only_in_b) = pair(&a, &b);
        let cpus: Vec<(&str, u32, u32)> = pairs
            .iter()
            .map(|pair| {
                let client = |record: &Record| record.case.cpus.unwrap().client;
                (pair.a.case.spec.name.as_str(), client(pair.a), client(pair.b))
            })
            .collect();
        assert_eq!(cpus, [("x", 0, 0), ("memcpy", 7, 7), ("memcpy", 3, 3), ("y", 1, 9)]);
        assert_eq!(only_in_a, ["old cost same-core"]);
        assert_eq!(only_in_b, ["new cost same-core"]);
    }
    #[test]
    fn a_case_with_a_delay_pairs_with_the_same_without_unless_it_has_its_own_partner() {
        let on = |name: &str, inject: Option<&str>| {
            let inject = inject.map(|text| text.parse().unwrap());
            testing::record(Case { inject, ..floor::operation(name, 0) }, Vec::new())
        };
        let a = [on("x", None), on("y", None), on("y", Some("5%")), on("z", Some("5%"))];
        let b = [on("y", Some("5%")), on("x", Some("5%")), on("y", None), on("w", Some("5%"))];
        let (pairs, only_in_a, only_in_b) = pair(&a, &b);
        let keys: Vec<_> = pairs.iter().map(|pair| (pair.a.case.key(), pair.b.case.key())).collect();
        let key = |key: &str| key.to_owned();
        assert_eq!(
            keys,
            [
                (key("x cost same-core"), key("x cost same-core inject=5%")),
                (key("y cost same-core"), key("y cost same-core")),
                (key("y cost same-core inject=5%"), key("y cost same-core inject=5%")),
            ]
        );
        assert_eq!(only_in_a, ["z cost same-core inject=5%"]);
        assert_eq!(only_in_b, ["w cost same-core inject=5%"]);
    }
}
