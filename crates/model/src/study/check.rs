//! Whether a study can be drawn at all: its formulas name its cases, its rows have a cell per column, its tests can fail.
//!
//! A diagnostic has the place in the file, so that whoever has the text can add line and column.

use super::document::{
    Candidate, FigureX, OtherCell, Study, StudyBar, StudyCell, StudyConclusion, StudyFigure, StudyRow,
    StudySeries, StudyStack, StudyTable, StudyTest,
};
use super::formula::{Measure, MeasureKind};
use super::literal::Literal;
use super::metric::{CallQuantity, Metric};
use super::selection::Selection;
use super::test_sizes::TestSizes;
use crate::diagnostic::Diagnostic;
use crate::invalid::{Invalid, printable};
use crate::pace::Pace;
use crate::peers::Peers;
use crate::units::{Size, Unit};
use crate::workload::Workload;

/// More tables, figures, conclusions, rows, columns, lines or tests than this, of each, are not drawn.
const MOST: usize = 200;
/// More sizes of one case than this are not drawn.
const MOST_SIZES: usize = 100;
/// Longer words are not printed.
const LONGEST: usize = 1000;

fn wrong(problem: impl Into<String>, remedy: impl Into<String>) -> Diagnostic {
    Diagnostic::new(problem, remedy)
}

/// Checks each of `items`, of which there may not be too many.
fn each<T>(name: &str, items: &[T], check: impl Fn(&T) -> Result<(), Diagnostic>) -> Result<(), Diagnostic> {
    if items.len() > MOST {
        return Err(wrong(format!("there are more than {MOST} here"), "give fewer").under(name));
    }
    items
        .iter()
        .enumerate()
        .try_for_each(|(at, item)| check(item).map_err(|diagnostic| diagnostic.under(at).under(name)))
}

fn words(name: &str, text: &str) -> Result<(), Diagnostic> {
    if text.is_empty() {
        return Err(wrong(format!("the {name} is empty"), "say it in words").under(name));
    }
    short(text).map_err(|diagnostic| diagnostic.under(name))
}

fn short(text: &str) -> Result<(), Diagnostic> {
    if text.len() > LONGEST || text.chars().any(|c| c.is_control() && c != '\n') {
        return Err(wrong(
            format!("'{}' is too long, or has control characters", printable(text)),
            format!("give at most {LONGEST} characters of text"),
        ));
    }
    Ok(())
}

impl Study {
    /// Whether it can be drawn; else what is wrong with it.
    pub fn check(&self) -> Result<(), Diagnostic> {
        words("title", &self.title)?;
        words("source", &self.source)?;
        if self.cases.len() > 2 * MOST {
            return Err(wrong(format!("there are more than {} cases", 2 * MOST), "give fewer").under("cases"));
        }
        for (name, selection) in &self.cases {
            let bad = |problem| Err(wrong(problem, "rename it").under(name.clone()).under("cases"));
            if !is_name(name) {
                return bad(format!(
                    "'{}' is not a name for a case: small letters, digits and hyphens",
                    printable(name)
                ));
            }
            if selection.sizes.len() > MOST_SIZES || selection.spec.to_string().len() > LONGEST {
                return bad(format!("the case '{name}' is too large"));
            }
        }
        each("table", &self.tables, |table| self.check_table(table))?;
        each("figure", &self.figures, |figure| self.check_figure(figure))?;
        each("stack", &self.stacks, |stack| self.check_stack(stack))?;
        each("conclusion", &self.conclusions, |conclusion| self.check_conclusion(conclusion))?;
        let mut names: Vec<&str> = Vec::new();
        let of_tables = self.tables.iter().map(|table| &table.name).enumerate().map(|item| ("table", item));
        let of_figures =
            self.figures.iter().map(|figure| &figure.name).enumerate().map(|item| ("figure", item));
        let of_stacks = self.stacks.iter().map(|stack| &stack.name).enumerate().map(|item| ("stack", item));
        for (kind, (at, name)) in of_tables.chain(of_figures).chain(of_stacks) {
            if names.contains(&name.as_str()) {
                let again = wrong(
                    format!("'{}' is there already", printable(name)),
                    "name each table, figure and stack once",
                );
                return Err(again.under("name").under(at).under(kind));
            }
            names.push(name);
        }
        Ok(())
    }

    fn check_table(&self, table: &StudyTable) -> Result<(), Diagnostic> {
        words("name", &table.name)?;
        words("title", &table.title)?;
        each("columns", &table.columns, |column| short(column))?;
        each("notes", &table.notes, |note| short(note))?;
        drawn_or_absent(table.rows.is_empty(), table.absent.as_deref(), "rows")?;
        each("rows", &table.rows, |row| self.check_row(row, table.columns.len()))
    }

    fn check_stack(&self, stack: &StudyStack) -> Result<(), Diagnostic> {
        words("name", &stack.name)?;
        words("title", &stack.title)?;
        each("notes", &stack.notes, |note| short(note))?;
        each("bar", &stack.bars, |bar| self.check_bar(bar))
    }

    fn check_bar(&self, bar: &StudyBar) -> Result<(), Diagnostic> {
        words("name", &bar.name)?;
        if let Some(size) = &bar.at {
            size.parse::<Size>().map_err(|invalid| Diagnostic::from(invalid).under("at"))?;
        }
        if bar.layers.is_empty() {
            return Err(wrong("the bar has no layers", "give at least one, of a case").under("layers"));
        }
        each("layers", &bar.layers, |layer| {
            words("name", &layer.name)?;
            let case = self.case(&layer.of).map_err(|diagnostic| diagnostic.under("of"))?;
            if bar.at.is_none() && case.sizes.len() > 1 {
                let problem = format!("'{}' is of several sizes", printable(&layer.of));
                return Err(wrong(problem, "say of the bar which: at = \"64\"").under("of"));
            }
            Ok(())
        })
    }

    fn check_row(&self, row: &StudyRow, columns: usize) -> Result<(), Diagnostic> {
        words("name", &row.name)?;
        if row.cells.len() != columns {
            return Err(wrong(
                format!("the row has {} cells and its table {columns} columns", row.cells.len()),
                "give one cell a column; an empty one is \"\"",
            )
            .under("cells"));
        }
        each("cells", &row.cells, |cell| self.check_cell(cell, row.published))
    }

    fn check_cell(&self, cell: &StudyCell, published: bool) -> Result<(), Diagnostic> {
        match cell {
            StudyCell::Empty => Ok(()),
            StudyCell::Measure(measure) => {
                self.check_measure(measure, Free::No)?;
                if published != measure.formula.metrics().is_empty() {
                    let (problem, remedy) = if published {
                        ("a published row has only numbers of the study", "give a number with its unit")
                    } else {
                        ("the cell names no case", "give a formula, or say of the row: published = true")
                    };
                    return Err(wrong(problem, remedy));
                }
                Ok(())
            }
            StudyCell::Other(OtherCell::Words(text) | OtherCell::Missing(text)) => short(text),
            StudyCell::Other(OtherCell::Host(_) | OtherCell::Best(_)) => Ok(()),
            StudyCell::Other(OtherCell::Setting { name, of }) => {
                short(name)?;
                let under = |diagnostic: Diagnostic| diagnostic.under("of").under("setting");
                if self.case(of).map_err(under)?.sizes.len() > 1 {
                    let problem =
                        format!("'{of}' is of several sizes, and a setting may differ with the size");
                    return Err(under(wrong(problem, "name a case of one size")));
                }
                Ok(())
            }
            StudyCell::Other(OtherCell::Least(candidates)) => self.check_candidates(candidates, "least"),
            StudyCell::Other(OtherCell::Most(candidates)) => self.check_candidates(candidates, "most"),
        }
    }

    fn check_candidates(&self, candidates: &[Candidate], name: &str) -> Result<(), Diagnostic> {
        let Some(first) = candidates.first() else {
            return Err(
                wrong("there is nothing to choose from", "give { name, of }, several times").under(name)
            );
        };
        let unit = first.of.unit().map_err(Diagnostic::from)?;
        each(name, candidates, |candidate| {
            words("name", &candidate.name)?;
            self.check_measure(&candidate.of, Free::No)
                .and_then(|()| is_in(unit, &candidate.of))
                .map_err(|diagnostic| diagnostic.under("of"))
        })
    }

    fn check_figure(&self, figure: &StudyFigure) -> Result<(), Diagnostic> {
        words("name", &figure.name)?;
        words("title", &figure.title)?;
        short(&figure.y).map_err(|diagnostic| diagnostic.under("y"))?;
        each("notes", &figure.notes, |note| short(note))?;
        let is_empty = figure.series.is_empty() && figure.timeline.is_none();
        drawn_or_absent(is_empty, figure.absent.as_deref(), "series")?;
        if let Some(case) = &figure.timeline {
            self.check_timeline(case, figure).map_err(|diagnostic| diagnostic.under("timeline"))?;
        }
        let unit = figure.unit().map_err(Diagnostic::from)?;
        each("series", &figure.series, |series| self.check_series(series, figure.x, unit))
    }

    fn check_timeline(&self, case: &str, figure: &StudyFigure) -> Result<(), Diagnostic> {
        if !figure.series.is_empty() {
            return Err(wrong("a figure has lines or a timeline, not both", "make two figures of it"));
        }
        let selection = self.case(case)?;
        if selection.sizes.len() > 1 {
            let problem = format!("'{case}' is of several sizes, and a timeline is of one case");
            return Err(wrong(problem, "name a case of one size"));
        }
        check_observable(case, selection)?;
        if selection.workload == Workload::Accuracy {
            return Err(wrong(format!("'{case}' cannot be observed"), "name a case of another workload"));
        }
        Ok(())
    }

    fn check_series(&self, series: &StudySeries, over: FigureX, unit: Unit) -> Result<(), Diagnostic> {
        words("name", &series.name)?;
        match (&series.of, series.published.as_slice()) {
            (Some(measure), []) => {
                let free = if over == FigureX::Size { Free::Yes } else { Free::No };
                self.check_measure(measure, free)
                    .and_then(|()| is_in(unit, measure))
                    .and_then(|()| if over == FigureX::Returned { is_of_calls(measure) } else { Ok(()) })
                    .map_err(|diagnostic| diagnostic.under("of"))
            }
            (None, points @ [_, ..]) => each("published", points, |(x, y)| {
                literal_in(Unit::Bytes, x)?;
                literal_in(unit, y)
            }),
            _ => Err(wrong(
                "a line is either of what is measured or as published",
                "give it of = \"rate of CASE\", or published = [[\"4K\", \"3us\"]]",
            )),
        }
    }

    fn check_conclusion(&self, conclusion: &StudyConclusion) -> Result<(), Diagnostic> {
        words("claim", &conclusion.claim)?;
        drawn_or_absent(conclusion.tests.is_empty(), conclusion.absent.as_deref(), "tests")?;
        each("tests", &conclusion.tests, |test| self.check_test(test))
    }

    fn check_test(&self, test: &StudyTest) -> Result<(), Diagnostic> {
        if let Some(name) = &test.name {
            words("name", name)?;
        }
        let under_of = |diagnostic: Diagnostic| diagnostic.under("of");
        let goes_over = self.free(&test.of).map_err(under_of)?;
        let free = if goes_over && test.of.kind == MeasureKind::Value { Free::Yes } else { Free::No };
        self.check_measure(&test.of, free).map_err(under_of)?;
        if let Some(sizes) = &test.sizes
            && (free == Free::No || sizes.0.len() > MOST_SIZES)
        {
            return Err(wrong("the test does not go over sizes", "leave sizes out").under("sizes"));
        }
        let unit = test.of.unit().map_err(Diagnostic::from).map_err(under_of)?;
        let literals =
            [("at_least", &test.at_least), ("at_most", &test.at_most), ("published", &test.published)];
        for (name, literal) in literals {
            literal
                .iter()
                .try_for_each(|literal| literal_in(unit, literal))
                .map_err(|diagnostic| diagnostic.under(name))?;
        }
        match (&test.at_least, &test.at_most) {
            (None, None) => Err(wrong(
                "the test has no bound, so that it always holds",
                "give it at_least, at_most or both",
            )),
            (Some(least), Some(most)) if least.value > most.value => {
                Err(wrong(format!("nothing is at least {least} and at most {most}"), "exchange them")
                    .under("at_least"))
            }
            _ => Ok(()),
        }
    }

    /// Whether `measure` is over sizes: it has a metric of a case with several sizes, and does not say at which.
    fn free(&self, measure: &Measure) -> Result<bool, Diagnostic> {
        let mut free = false;
        for of_case in measure.formula.metrics() {
            free |= of_case.at.is_none() && self.case(&of_case.case)?.sizes.len() > 1;
        }
        Ok(free)
    }

    fn check_measure(&self, measure: &Measure, free: Free) -> Result<(), Diagnostic> {
        for of_case in measure.formula.metrics() {
            let selection = self.case(&of_case.case)?;
            if let Some(reason) = of_case.metric.unavailable_in(selection.workload) {
                return Err(wrong(
                    format!("'{}' has no {}: {reason}", of_case.case, of_case.metric),
                    "take another metric, or a case of another workload",
                ));
            }
            if of_case.metric.probe().is_some() {
                check_observable(&of_case.case, selection)?;
            }
            if let Some(size) = of_case.at.filter(|size| !selection.sizes.contains(size)) {
                return Err(wrong(
                    format!("no [[block]] of the suite measures '{}' at {size}", of_case.case),
                    format!("its sizes are {}", TestSizes(selection.sizes.clone())),
                ));
            }
        }
        let goes_over = self.free(measure)?;
        let wants = free == Free::Yes || measure.kind != MeasureKind::Value;
        match (goes_over, wants) {
            (true, false) => Err(wrong(
                format!("'{measure}' is of several sizes"),
                "say of which, with 'at SIZE' after the name of the case",
            )),
            (false, true) => Err(wrong(
                format!("'{measure}' does not go over sizes"),
                "take a case that is measured at several, and do not say at which",
            )),
            _ => Ok(()),
        }
    }

    fn case(&self, name: &str) -> Result<&Selection, Diagnostic> {
        self.cases.get(name).ok_or_else(|| {
            Diagnostic::from(Invalid::unknown(
                "case of the study",
                name,
                self.cases.keys().map(String::as_str),
            ))
        })
    }
}

/// Refuses cases that have a pace or several peers.
fn check_observable(case: &str, selection: &Selection) -> Result<(), Diagnostic> {
    if (selection.pace, selection.peers) == (Pace::BackToBack, Peers::Pair) {
        return Ok(());
    }
    Err(wrong(
        format!(
            "'{case}' cannot be observed: probes observe one pair, whose iterations follow at once on one another"
        ),
        "name a case without a think time, a rate or several peers",
    ))
}

/// Whether sizes may be left open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Free {
    Yes,
    No,
}

fn is_name(name: &str) -> bool {
    const LONGEST_NAME: usize = 60;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(fits)
}

fn drawn_or_absent(nothing: bool, absent: Option<&str>, what: &str) -> Result<(), Diagnostic> {
    match (nothing, absent) {
        (true, None) => Err(wrong(
            format!("there are no {what}, and nothing says why"),
            format!("give {what}, or absent = \"why there are none\""),
        )),
        (false, Some(_)) => {
            Err(wrong(format!("it cannot be absent and have {what}"), "leave one of them out")
                .under("absent"))
        }
        (true, Some(why)) => words("absent", why),
        (false, None) => Ok(()),
    }
}

fn is_in(unit: Unit, measure: &Measure) -> Result<(), Diagnostic> {
    if measure.unit().map_err(Diagnostic::from)? == unit {
        return Ok(());
    }
    Err(wrong("it is counted in another unit than its first neighbour", "draw them in two figures"))
}

fn literal_in(unit: Unit, literal: &Literal) -> Result<(), Diagnostic> {
    if literal.unit == unit {
        return Ok(());
    }
    let example = match unit {
        Unit::Ns => "a time such as 29us",
        Unit::Bytes => "a size such as 64K or 112192B",
        Unit::BytesPerS => "a rate such as 100MB/s",
        Unit::Number => "a number without a unit",
    };
    Err(wrong(
        format!("'{literal}' is counted in another unit than what it stands beside"),
        format!("give {example}"),
    ))
}

fn is_of_calls(measure: &Measure) -> Result<(), Diagnostic> {
    let of_case = measure.formula.metrics();
    let counts = |metric: &Metric| matches!(metric, Metric::Call(_, CallQuantity::Calls) | Metric::Size);
    let calls = of_case.iter().filter(|of_case| of_case.metric != Metric::Size).count();
    if calls == 1 && of_case.iter().all(|of_case| counts(&of_case.metric)) {
        return Ok(());
    }
    Err(wrong(
        "over the bytes that calls returned there are only numbers of calls of one case",
        "give send.calls or receive.calls of a case",
    ))
}
