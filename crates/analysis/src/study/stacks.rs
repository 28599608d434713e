//! Times as sums: what each layer adds, by leaving it and all above it out.

use super::evaluated::{
    EvaluatedBar, EvaluatedCell, EvaluatedLayer, EvaluatedRow, EvaluatedStack, EvaluatedTable,
};
use super::select::Selector;
use super::tables::number_cell;
use model::study::{StudyBar, StudyStack};

/// `stack` with its numbers.
pub(super) fn stack(selector: &Selector<'_>, stack: &StudyStack) -> EvaluatedStack {
    EvaluatedStack {
        name: stack.name.clone(),
        title: stack.title.clone(),
        bars: drawable(stack).map(|of_study| bar(selector, of_study)).collect(),
    }
}

/// The bars that have layers: one without is refused in a suite, but may stand in others' results.
fn drawable(stack: &StudyStack) -> impl Iterator<Item = &StudyBar> {
    stack.bars.iter().filter(|bar| !bar.layers.is_empty())
}

fn bar(selector: &Selector<'_>, bar: &StudyBar) -> EvaluatedBar {
    let whole_ns = ns(&of_layer(selector, bar, bar.layers.len() - 1, "time"));
    let layer = |at: usize| {
        let adds = added(selector, bar, at, "time");
        EvaluatedLayer {
            name: bar.layers[at].name.clone(),
            share: ns(&adds).zip(whole_ns).map(|(adds_ns, whole_ns)| adds_ns / whole_ns),
            adds,
            so_far: of_layer(selector, bar, at, "time"),
        }
    };
    EvaluatedBar { name: bar.name.clone(), layers: (0..bar.layers.len()).map(layer).collect() }
}

/// The number of a cell of times.
fn ns(cell: &EvaluatedCell) -> Option<f64> {
    match cell {
        EvaluatedCell::Value(estimate, _) => Some(estimate.median),
        _ => None,
    }
}

/// The bars of `stack` as tables, in which a layer has more than its time.
pub(super) fn tables(selector: &Selector<'_>, stack: &StudyStack) -> Vec<EvaluatedTable> {
    drawable(stack).map(|bar| table(selector, stack, bar)).collect()
}

fn table(selector: &Selector<'_>, stack: &StudyStack, bar: &StudyBar) -> EvaluatedTable {
    // Time and CPU time of a layer are what it adds; of all together, what they sum to.
    let row = |name: &str, at: usize, time_of: fn(&Selector<'_>, &StudyBar, usize, &str) -> EvaluatedCell| {
        EvaluatedRow {
            name: name.to_owned(),
            published: false,
            cells: vec![
                time_of(selector, bar, at, "time"),
                time_of(selector, bar, at, "cpu"),
                of_layer(selector, bar, at, "p99"),
                memory(selector, bar, at),
            ],
        }
    };
    let layers = bar.layers.iter().enumerate().map(|(at, layer)| row(&layer.name, at, added));
    let together = row("together", bar.layers.len() - 1, of_layer);
    let columns = ["adds", "CPU time", "p99 with it", "memory with it"];
    EvaluatedTable {
        name: bar.name.clone(),
        title: stack.title.clone(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: layers.chain([together]).collect(),
        notes: stack.notes.clone(),
    }
}

/// What the layer at `at` adds of `metric`: of the lowest, all of it.
fn added(selector: &Selector<'_>, bar: &StudyBar, at: usize, metric: &str) -> EvaluatedCell {
    match at.checked_sub(1) {
        None => of_layer(selector, bar, at, metric),
        Some(below) => {
            let [with, without] = [at, below].map(|at| term(bar, at, metric));
            cell(selector, &format!("{with} - {without}"))
        }
    }
}

/// What `metric` is with the layer at `at` and without those above.
fn of_layer(selector: &Selector<'_>, bar: &StudyBar, at: usize, metric: &str) -> EvaluatedCell {
    cell(selector, &term(bar, at, metric))
}

/// The memory of a case with drivers; it is not asked of ipcmark's own endpoints.
fn memory(selector: &Selector<'_>, bar: &StudyBar, at: usize) -> EvaluatedCell {
    let case = selector.study.cases.get(&bar.layers[at].of);
    match case.is_some_and(|case| case.spec.drivers.are_none()) {
        true => EvaluatedCell::Empty,
        false => of_layer(selector, bar, at, "memory"),
    }
}

fn term(bar: &StudyBar, at: usize, metric: &str) -> String {
    let size = bar.at.as_ref().map(|size| format!(" at {size}")).unwrap_or_default();
    format!("{metric} of {}{size}", bar.layers[at].of)
}

fn cell(selector: &Selector<'_>, formula: &str) -> EvaluatedCell {
    match formula.parse() {
        Ok(measure) => number_cell(selector, &measure),
        Err(invalid) => EvaluatedCell::Missing(invalid.problem),
    }
}
