//! What a suite wants drawn of its results, and the formulas by which it says so.

mod check;
mod document;
pub mod formula;
pub mod literal;
pub mod metric;
mod resolve;
mod selection;
mod test_sizes;

pub use self::document::{
    Candidate, FigureScale, FigureX, HostFact, OtherCell, Study, StudyBar, StudyCell, StudyConclusion,
    StudyFigure, StudyLayer, StudyNeed, StudyRow, StudySeries, StudyStack, StudyTable, StudyTest,
};
pub use self::formula::{Formula, Measure};
pub use self::literal::Literal;
pub use self::metric::Metric;
pub use self::selection::Selection;
pub use self::test_sizes::TestSizes;
