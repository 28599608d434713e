//! How often each byte of a message was copied, by whom, and what proves it: the counts that system calls returned.

use model::observation::profile::CallProfile;
use model::{Case, Workload};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// How often each byte of a message was copied on its way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Copies {
    /// How many times the kernel copied each byte, on average.
    pub by_kernel: f64,
    /// Each kind of call that moved bytes, and how.
    pub calls: Vec<MovedBytes>,
}

/// What one endpoint's calls of one kind did with bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MovedBytes {
    /// The client's, or the server's.
    pub of_client: bool,
    /// The call.
    pub call: String,
    /// What it does with them.
    pub kind: CopyKind,
    /// How many bytes it returned, per byte that the workload sends.
    pub per_byte: f64,
}

/// What a call does with bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyKind {
    /// The kernel copies them out of the caller's memory.
    In,
    /// The kernel copies them into the caller's memory.
    Out,
    /// The kernel copies them from one process to another.
    Across,
    /// No byte is copied.
    Moves,
}

#[derive(Deserialize)]
struct Table {
    r#in: Vec<String>,
    out: Vec<String>,
    across: Vec<String>,
    moves: Vec<String>,
}

#[expect(clippy::expect_used, reason = "a test parses it")]
static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("copies.toml")).expect("copies.toml"));

/// What the call `name` does with bytes; `None` if it moves none.
pub(crate) fn copy_kind(name: &str) -> Option<CopyKind> {
    let table = &*TABLE;
    let kinds = [
        (&table.r#in, CopyKind::In),
        (&table.out, CopyKind::Out),
        (&table.across, CopyKind::Across),
        (&table.moves, CopyKind::Moves),
    ];
    kinds.into_iter().find(|(names, _)| names.iter().any(|known| known == name)).map(|(_, kind)| kind)
}

/// Counts the copies of a case by its endpoints' calls; `None` where no payload was sent or no call observed.
pub(crate) fn count_copies(case: &Case, calls: Option<&[Vec<CallProfile>; 2]>) -> Option<Copies> {
    let size = case.size_bytes.filter(|size| size.0 > 0)?.0 as f64;
    let sent_an_iteration = match case.workload {
        Workload::Latency => 2.0 * size,
        Workload::Transfer => size + 1.0,
        Workload::Throughput => size,
        _ => return None,
    };
    let of_end = |(end, rows): (usize, &Vec<CallProfile>)| -> Vec<MovedBytes> {
        let moved = |row: &CallProfile| {
            let iterations = row.count as f64 / row.per_iteration;
            Some(MovedBytes {
                of_client: end == 0,
                call: row.name.clone(),
                kind: copy_kind(&row.name)?,
                per_byte: row.returned_sum as f64 / iterations / sent_an_iteration,
            })
        };
        rows.iter().filter_map(moved).filter(|moved| moved.per_byte > 0.0).collect()
    };
    let calls: Vec<MovedBytes> = calls?.iter().enumerate().flat_map(of_end).collect();
    let copied = calls.iter().filter(|moved| moved.kind != CopyKind::Moves);
    Some(Copies { by_kernel: copied.map(|moved| moved.per_byte).sum(), calls })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_and_names_no_call_twice() {
        let table = &*TABLE;
        let mut all: Vec<&String> =
            [&table.r#in, &table.out, &table.across, &table.moves].into_iter().flatten().collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
        assert_eq!(
            (copy_kind("write"), copy_kind("splice"), copy_kind("getpid")),
            (Some(CopyKind::In), Some(CopyKind::Moves), None)
        );
    }
}
